//===- PsiLaws.cpp - one ψ law per operator -------------------------------===//
//
// Every law rewrites `i ψ (operator …)` to scalar code over ψ of the operands.
// The equation of docs/Spec.md stands above each.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Conversion/MoAToDNF/Laws.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace moa;
using namespace moa::detail;

std::string moa::detail::indexName(const SymExpr &extent) {
  char first = extent.str().front();
  return {llvm::isAlpha(first) ? llvm::toLower(first) : 'k'};
}

ArrayAttr moa::detail::indexNames(ArrayType type) {
  Builder b(type.getContext());
  SmallVector<Attribute> names;
  for (ExprAttr extent : type.getShape())
    names.push_back(b.getStringAttr(indexName(extent.getValue())));
  return b.getArrayAttr(names);
}

namespace {

SmallVector<Value> pick(ValueRange values, ArrayRef<int64_t> positions) {
  SmallVector<Value> result;
  for (int64_t position : positions)
    result.push_back(values[position]);
  return result;
}

ArrayRef<int64_t> axesOf(ArrayAttr axes, unsigned k) { return cast<DenseI64ArrayAttr>(axes[k]).asArrayRef(); }

/// Base of the laws: ψ on the result of OpTy.
template <typename OpTy> struct PsiLaw : OpRewritePattern<dnf::PsiOp> {
  PsiLaw(MLIRContext *context, PsiContext &psi) : OpRewritePattern<dnf::PsiOp>(context, 1), psi(psi) {}

  LogicalResult matchAndRewrite(dnf::PsiOp op, PatternRewriter &rewriter) const final {
    auto producer = op.getArray().getDefiningOp<OpTy>();
    if (!producer)
      return rewriter.notifyMatchFailure(op, "not the operator of this law");
    if (psi.shared.contains(op.getArray()) && !op->hasAttr(kUnfold))
      return rewriter.notifyMatchFailure(op, "a shared array is applied, not unfolded");
    b = &rewriter;
    loc = withoutSubscripts(producer.getLoc());
    written.clear();
    for (auto [index, text] : llvm::zip(op.getIndices(), getSubscripts(op.getLoc())))
      written.push_back({index, text});
    rewriter.replaceOp(op, element(producer, SmallVector<Value>(op.getIndices())));
    return success();
  }

protected:
  virtual Value element(OpTy op, SmallVector<Value> i) const = 0;

  Value at(Value array, ValueRange indices) const {
    SmallVector<LocationAttr> texts;
    for (Value index : indices)
      texts.push_back(writtenAs(index));
    bool isWritten = llvm::any_of(texts, [](LocationAttr text) { return bool(text); });
    return dnf::PsiOp::create(*b, isWritten ? withSubscripts(*loc, texts) : *loc,
                              cast<ArrayType>(array.getType()).getElementType(), array, indices);
  }
  /// Returns the text that an index was written as, or null.
  LocationAttr writtenAs(Value index) const {
    auto *found = llvm::find_if(written, [&](auto &entry) { return entry.first == index; });
    return found == written.end() ? LocationAttr() : found->second;
  }
  /// Records that `made` was written as `index` was.
  Value inherit(Value made, Value index) const {
    written.push_back({made, writtenAs(index)});
    return made;
  }
  Value extent(const SymExpr &expr) const {
    if (auto value = expr.getConstant())
      return arith::ConstantIndexOp::create(*b, *loc, *value);
    return dnf::ExtentOp::create(*b, *loc, expr);
  }
  /// Builds the reduction of `body(j)` over one axis.
  Value reduce(Monoid monoid, const SymExpr &extent, Type type, TypeAttr rounds, function_ref<Value(Value)> body,
               FlatSymbolRefAttr function = FlatSymbolRefAttr()) const {
    auto op =
        dnf::ReduceOp::create(*b, *loc, type, monoid, extent, b->getStringAttr(indexName(extent)), rounds, function);
    OpBuilder::InsertionGuard guard(*b);
    Block *block = b->createBlock(&op.getBody(), {}, b->getIndexType(), getBarePlace(*loc));
    Value value = body(block->getArgument(0));
    dnf::YieldOp::create(*b, *loc, value, Value());
    return op.getResult();
  }

  PsiContext &psi;
  mutable PatternRewriter *b = nullptr;
  mutable std::optional<Location> loc;
  /// The texts that the indices were written as.
  mutable SmallVector<std::pair<Value, LocationAttr>> written;
};

#define MOA_PSI_LAW(NAME, OP)                                                                                          \
  struct NAME final : PsiLaw<OP> {                                                                                     \
    using PsiLaw::PsiLaw;                                                                                              \
    Value element(OP op, SmallVector<Value> i) const override;                                                         \
  };                                                                                                                   \
  Value NAME::element(OP op, SmallVector<Value> i) const

/// <> ψ c = c
MOA_PSI_LAW(PsiConstant, ConstantOp) { return arith::ConstantOp::create(*b, *loc, op.getValue()); }

/// <> ψ e = e, an integer expression over the symbols
MOA_PSI_LAW(PsiExtent, ExtentOp) { return extent(op.getExpr()); }

/// <i> ψ ι n = i
MOA_PSI_LAW(PsiIota, IotaOp) { return i[0]; }

/// i ψ f(A, B, …) = f(i[axes A] ψ A, i[axes B] ψ B, …). A selection becomes a join, because only
/// the operand that it picks matters; `otherwise` becomes one by A7
MOA_PSI_LAW(PsiMap, MapOp) {
  SmallVector<Value> operands;
  for (auto [k, input] : llvm::enumerate(op.getInputs()))
    operands.push_back(at(input, pick(i, axesOf(op.getAxes(), k))));
  if (op.getFn() == ScalarFn::select)
    return dnf::JoinOp::create(*b, *loc, operands[0], operands[1], operands[2]);
  if (op.getFn() == ScalarFn::otherwise)
    return dnf::OtherwiseOp::create(*b, *loc, operands[0], operands[1]);
  return buildScalarFn(*b, *loc, op.getFn(), operands);
}

/// i ψ cast(A) = cast(i ψ A)
MOA_PSI_LAW(PsiCast, CastOp) {
  return buildCast(*b, *loc, at(op.getInput(), i), op.getResult().getType().getElementType(), !op.getImplicit());
}

/// i ψ mask(p, A) = (i ψ A) where (i[axes p] ψ p)
MOA_PSI_LAW(PsiMask, MaskOp) {
  Value condition = at(op.getPredicate(), pick(i, op.getAxes()));
  return dnf::WhereOp::create(*b, *loc, condition, at(op.getInput(), i));
}

/// q ψ (⊕/ A) = ⊕ over j of (q with j at the axis) ψ A
MOA_PSI_LAW(PsiReduce, ReduceOp) {
  ArrayType type = op.getInput().getType();
  return reduce(
      op.getMonoid(), type.getExtent(op.getAxis()), type.getElementType(), TypeAttr(),
      [&](Value j) {
        SmallVector<Value> index(i);
        index.insert(index.begin() + op.getAxis(), j);
        return at(op.getInput(), index);
      },
      op.getFunctionAttr());
}

/// (p⧺i⧺j) ψ (A g.f B) = g over l of ((p⧺i⧺<l>) ψ A) f ((p⧺<l>⧺j) ψ B)
MOA_PSI_LAW(PsiInner, InnerOp) {
  ArrayType lhs = op.getLhs().getType();
  unsigned frame = op.getFrame();
  unsigned cut = lhs.getRank() - 1 + (op.getLhsFramed() ? 0 : frame);
  ArrayRef<Value> index(i);
  return reduce(op.getMonoid(), lhs.getExtent(lhs.getRank() - 1), op.getResult().getType().getElementType(),
                op.getOperandTypeAttr(), [&](Value l) {
                  SmallVector<Value> left, right;
                  if (op.getLhsFramed())
                    llvm::append_range(left, index.take_front(frame));
                  if (op.getRhsFramed())
                    llvm::append_range(right, index.take_front(frame));
                  llvm::append_range(left, index.slice(frame, cut - frame));
                  left.push_back(l);
                  right.push_back(l);
                  llvm::append_range(right, index.drop_front(cut));
                  return buildScalarFn(*b, *loc, op.getFn(), {at(op.getLhs(), left), at(op.getRhs(), right)});
                });
}

/// Gives an index variable the user's name, the first one that it has.
void nameIndex(Value index, StringRef name) {
  auto argument = dyn_cast<BlockArgument>(index);
  if (argument && !name.empty() && !isa<NameLoc>(argument.getLoc()))
    argument.setLoc(NameLoc::get(StringAttr::get(index.getContext(), name), argument.getLoc()));
}

/// (p⧺q) ψ (psi A I0 … Im) = r ψ A with r[dims k] = (p[axes k] ψ Ik), the rest q
MOA_PSI_LAW(PsiPsi, PsiOp) {
  unsigned rank = op.getInput().getType().getRank();
  SmallVector<Value> index(rank);
  SmallVector<LocationAttr> texts = getSubscripts(op.getLoc());
  for (auto [name, value] : llvm::zip(getAxisNames(op.getLoc()), i))
    nameIndex(value, name);
  for (auto [k, indices] : llvm::enumerate(op.getIndices())) {
    SmallVector<Value> around = pick(i, axesOf(op.getAxes(), k));
    LocationAttr text = k < texts.size() ? texts[k] : LocationAttr(), from;
    for (Value value : around)
      from = from ? from : writtenAs(value);
    ExprAttr extent = op.getInput().getType().getShape()[op.getDims()[k]];
    auto iota = indices.getDefiningOp<IotaOp>();
    // An index that runs over the whole axis keeps the text of the outer index.
    bool passes = !text || (iota && iota.getResult().getType().getShape()[0] == extent);
    Value &entry = index[op.getDims()[k]] = at(indices, around);
    written.push_back({entry, passes && from ? from : text && from ? reachedFrom(text, from) : text});
  }
  unsigned next = op.getFrame();
  for (Value &entry : index)
    if (!entry)
      entry = i[next++];
  return at(op.getInput(), index);
}

/// i ψ (transpose A) = i' ψ A with i'[perm k] = i[k]
MOA_PSI_LAW(PsiTranspose, TransposeOp) {
  SmallVector<Value> index(i.size());
  for (auto [k, axis] : llvm::enumerate(op.getPerm()))
    index[axis] = i[k];
  return at(op.getInput(), index);
}

/// Returns the first axes after [to, from] up to which both shapes have equally many elements, as
/// polynomials; the ends of the shapes if there are none.
std::pair<unsigned, unsigned> nextCut(ArrayType target, ArrayType source, unsigned to, unsigned from) {
  SymExpr have(1);
  for (unsigned a = to; a < target.getRank(); ++a) {
    have = have * target.getExtent(a);
    SymExpr want(1);
    for (unsigned b = from; b < source.getRank(); ++b) {
      want = want * source.getExtent(b);
      if (have == want)
        return {a + 1, b + 1};
    }
  }
  return {target.getRank(), source.getRank()};
}

/// i ψ (v ρ A) = γ'(γ(i; v); ρA) ψ A, separately for each group of axes up to which the shapes have
/// equally many elements (Lemma 11)
MOA_PSI_LAW(PsiReshape, ReshapeOp) {
  ArrayType from = op.getInput().getType(), to = op.getResult().getType();
  SmallVector<Value> index(from.getRank());
  for (unsigned a = 0, b = 0; a < to.getRank() || b < from.getRank();) {
    auto [endTo, endFrom] = nextCut(to, from, a, b);
    Value flat;
    for (; a < endTo; ++a) {
      if (flat)
        flat = arith::MulIOp::create(*this->b, *loc, flat, extent(to.getExtent(a)));
      flat = flat ? arith::AddIOp::create(*this->b, *loc, flat, i[a]).getResult() : i[a];
    }
    if (!flat)
      flat = extent(0);
    for (unsigned k = endFrom; k-- > b;) {
      if (k == b) {
        index[k] = flat;
        break;
      }
      Value n = extent(from.getExtent(k));
      Value quotient = arith::FloorDivSIOp::create(*this->b, *loc, flat, n);
      Value whole = arith::MulIOp::create(*this->b, *loc, quotient, n);
      index[k] = arith::SubIOp::create(*this->b, *loc, flat, whole);
      flat = quotient;
    }
    b = endFrom;
  }
  return at(op.getInput(), index);
}

/// <i> ψ (take or drop A) = <i + start> ψ A
MOA_PSI_LAW(PsiSlice, SliceOp) {
  Value &index = i[op.getAxis()];
  index = inherit(arith::AddIOp::create(*b, *loc, index, extent(op.getStart())), index);
  return at(op.getInput(), i);
}

/// <i> ψ (A ⧺ B) = <i> ψ A if i < n, else <i − n> ψ B
MOA_PSI_LAW(PsiCat, CatOp) {
  Value index = i[op.getAxis()], count = extent(op.getLhs().getType().getExtent(op.getAxis()));
  Value isFirst = arith::CmpIOp::create(*b, *loc, arith::CmpIPredicate::slt, index, count);
  Value first = at(op.getLhs(), i);
  i[op.getAxis()] = inherit(arith::SubIOp::create(*b, *loc, index, count), index);
  return dnf::JoinOp::create(*b, *loc, isFirst, first, at(op.getRhs(), i));
}

/// <i> ψ (reverse A) = <n − 1 − i> ψ A
MOA_PSI_LAW(PsiReverse, ReverseOp) {
  SymExpr last = op.getInput().getType().getExtent(op.getAxis()) - SymExpr(1);
  Value &index = i[op.getAxis()];
  index = inherit(arith::SubIOp::create(*b, *loc, extent(last), index), index);
  return at(op.getInput(), i);
}

/// <i> ψ (k rotate A) = <(i + k) mod n> ψ A
MOA_PSI_LAW(PsiRotate, RotateOp) {
  Value &index = i[op.getAxis()];
  Value sum = arith::AddIOp::create(*b, *loc, index, extent(op.getBy()));
  Value n = extent(op.getInput().getType().getExtent(op.getAxis()));
  index = inherit(buildScalarFn(*b, *loc, ScalarFn::mod, {sum, n}), index);
  return at(op.getInput(), i);
}

#undef MOA_PSI_LAW

/// i ψ x = f_x(i) for a shared array x, where `let f_x(i) = i ψ x` is made once.
struct PsiShare final : OpRewritePattern<dnf::PsiOp> {
  PsiShare(MLIRContext *context, PsiContext &psi) : OpRewritePattern<dnf::PsiOp>(context, 2), psi(psi) {}

  LogicalResult matchAndRewrite(dnf::PsiOp op, PatternRewriter &rewriter) const final {
    if (!psi.shared.contains(op.getArray()) || op->hasAttr(kUnfold))
      return rewriter.notifyMatchFailure(op, "not a shared array");
    dnf::LetOp &let = psi.lets[op.getArray()];
    if (!let)
      let = makeLet(op, rewriter);
    rewriter.replaceOp(op, buildApply(rewriter, op.getLoc(), let, SmallVector<Value>(op.getIndices()), psi));
    return success();
  }

private:
  dnf::LetOp makeLet(dnf::PsiOp op, PatternRewriter &rewriter) const {
    Operation *definition = op;
    while (!isa<dnf::KernelOp>(definition->getParentOp()))
      definition = definition->getParentOp();
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(definition);
    ArrayType type = op.getArray().getType();
    SmallVector<Attribute> domain(type.getShape().begin(), type.getShape().end());
    Location loc = withoutSubscripts(op.getArray().getLoc());
    auto let =
        dnf::LetOp::create(rewriter, loc, rewriter.getStringAttr("v" + Twine(psi.counter++)),
                           rewriter.getArrayAttr(domain), indexNames(type), TypeAttr::get(type.getElementType()));
    psi.letNames[let] = psi.names.lookup(op.getArray());
    SmallVector<Type> types(domain.size(), rewriter.getIndexType());
    Block *block =
        rewriter.createBlock(&let.getBody(), {}, types, SmallVector<Location>(domain.size(), getBarePlace(loc)));
    auto unfold = dnf::PsiOp::create(rewriter, loc, type.getElementType(), op.getArray(), block->getArguments());
    unfold->setAttr(kUnfold, rewriter.getUnitAttr());
    dnf::YieldOp::create(rewriter, loc, unfold.getResult(), Value());
    return let;
  }
  PsiContext &psi;
};

} // namespace

std::vector<std::string> moa::detail::psiLawNames() {
  return {"psi-constant", "psi-extent",  "psi-iota",   "psi-map",       "psi-cast",    "psi-mask",
          "psi-reduce",   "psi-inner",   "psi-psi",    "psi-transpose", "psi-reshape", "psi-slice",
          "psi-cat",      "psi-reverse", "psi-rotate", "psi-share"};
}

void moa::detail::addPsiLaws(RewritePatternSet &patterns, PsiContext &context) {
  addIfEnabled<PsiConstant>(patterns, context, "psi-constant");
  addIfEnabled<PsiExtent>(patterns, context, "psi-extent");
  addIfEnabled<PsiIota>(patterns, context, "psi-iota");
  addIfEnabled<PsiMap>(patterns, context, "psi-map");
  addIfEnabled<PsiCast>(patterns, context, "psi-cast");
  addIfEnabled<PsiMask>(patterns, context, "psi-mask");
  addIfEnabled<PsiReduce>(patterns, context, "psi-reduce");
  addIfEnabled<PsiInner>(patterns, context, "psi-inner");
  addIfEnabled<PsiPsi>(patterns, context, "psi-psi");
  addIfEnabled<PsiTranspose>(patterns, context, "psi-transpose");
  addIfEnabled<PsiReshape>(patterns, context, "psi-reshape");
  addIfEnabled<PsiSlice>(patterns, context, "psi-slice");
  addIfEnabled<PsiCat>(patterns, context, "psi-cat");
  addIfEnabled<PsiReverse>(patterns, context, "psi-reverse");
  addIfEnabled<PsiRotate>(patterns, context, "psi-rotate");
  addIfEnabled<PsiShare>(patterns, context, "psi-share");
}
