//===- MoAToDNF.cpp - the pass convert-moa-to-dnf -------------------------===//
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Conversion/Limits.h"
#include "lib/Conversion/MoAToDNF/Laws.h"
#include "lib/Conversion/MoAToDNF/Observer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"
#include <random>

namespace moa {
#define GEN_PASS_DECL_CONVERTMOATODNF
#define GEN_PASS_DEF_CONVERTMOATODNF
#include "lib/Conversion/ConversionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::detail;

//===----------------------------------------------------------------------===//
// Sharing
//===----------------------------------------------------------------------===//

/// Returns whether an operator only renames indices, so that ψ of it costs nothing.
static bool isView(Operation *op) {
  return isa<PsiOp, TransposeOp, ReshapeOp, SliceOp, CatOp, ReverseOp, RotateOp>(op) ||
         (isa<CastOp>(op) && cast<CastOp>(op).getImplicit()) ||
         (isa<MapOp>(op) && cast<MapOp>(op).getFn() == ScalarFn::id);
}

/// Returns whether a value is computed from indices, symbols and constants alone. Sharing it would
/// hide predicates from the analyses and save nothing.
static bool isIndexOnly(Value value, DenseMap<Value, bool> &memo) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return cast<ArrayType>(value.getType()).getRank() == 0;
  auto [it, inserted] = memo.try_emplace(value, false);
  if (!inserted)
    return it->second;
  bool result = isa<ConstantOp, ExtentOp, IotaOp>(op) ||
                ((isa<MapOp, CastOp>(op) || isView(op)) &&
                 llvm::all_of(op->getOperands(), [&](Value v) { return isIndexOnly(v, memo); }));
  memo[value] = result;
  return result;
}

/// Returns whether a value may end in predicates and addresses. Such values are never shared, even
/// if they read arrays of integers or booleans.
static bool isPredicateLike(Value value) {
  Type type = cast<ArrayType>(value.getType()).getElementType();
  Operation *op = value.getDefiningOp();
  return !isa<FloatType>(type) && op && isa<MapOp, CastOp>(op);
}

/// Returns the user's name of a definition, or the name of its operator.
static std::string baseName(Value array) {
  Operation *op = array.getDefiningOp();
  if (auto name = dyn_cast<NameLoc>(op->getLoc()))
    return name.getName().str();
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduce.getFunction() ? reduce.getFunction()->str() : stringifyMonoid(reduce.getMonoid()).str();
  if (auto map = dyn_cast<MapOp>(op))
    return stringifyScalarFn(map.getFn()).str();
  return op->getName().stripDialect().str();
}

/// Finds the arrays that become lets: computed, and either used more than once through views, or
/// reduced and then broadcast along an axis.
static void findShared(Block &body, PsiContext &context) {
  DenseMap<Value, unsigned> demand;
  DenseMap<Value, bool> memo;
  for (Operation &op : llvm::reverse(body)) {
    if (op.getNumResults() != 1)
      continue;
    Value value = op.getResult(0);
    unsigned count = 0;
    bool broadcast = false;
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      bool through = isView(user) && !context.shared.contains(user->getResult(0)) &&
                     (use.getOperandNumber() == 0 || isa<CatOp>(user));
      count += through ? demand.lookup(user->getResult(0)) : 1;
      if (auto map = dyn_cast<MapOp>(user))
        broadcast |=
            cast<DenseI64ArrayAttr>(map.getAxes()[use.getOperandNumber()]).size() < map.getResult().getType().getRank();
    }
    demand[value] = count;
    bool reduces = isa<ReduceOp, InnerOp>(op);
    if (isView(&op) || isIndexOnly(value, memo) || isPredicateLike(value))
      continue;
    if (count > 1 || (broadcast && reduces)) {
      context.shared.insert(value);
      context.names[value] = baseName(value);
    }
  }
}

//===----------------------------------------------------------------------===//
// After the laws
//===----------------------------------------------------------------------===//

/// Replaces applications of boolean lets without reductions by their bodies.
static void inlinePredicates(dnf::KernelOp kernel) {
  SmallVector<dnf::ApplyOp> applies;
  kernel.walk([&](dnf::ApplyOp apply) { applies.push_back(apply); });
  IRRewriter rewriter(kernel.getContext());
  while (!applies.empty()) {
    dnf::ApplyOp apply = applies.pop_back_val();
    auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(apply, apply.getLetAttr());
    if (!let || !let.getType().isInteger(1) ||
        let.walk([](dnf::ReduceOp) { return WalkResult::interrupt(); }).wasInterrupted())
      continue;
    rewriter.setInsertionPoint(apply);
    IRMapping mapping;
    mapping.map(let.getBody().getArguments(), apply.getIndices());
    for (Operation &op : let.getBody().front().without_terminator())
      if (auto nested = dyn_cast<dnf::ApplyOp>(rewriter.clone(op, mapping)))
        applies.push_back(nested);
    auto yield = cast<dnf::YieldOp>(let.getBody().front().getTerminator());
    rewriter.replaceOp(apply, mapping.lookupOrDefault(yield.getValue()));
  }
}

/// Orders lets by their first use from the outputs, erases unused ones, and names them after the
/// user's definitions. The result does not depend on the order of rewriting.
static void orderLets(dnf::KernelOp kernel, const PsiContext &context) {
  Block &block = kernel.getBody().front();
  llvm::SetVector<Operation *> order;
  std::function<void(Operation *)> visit = [&](Operation *definition) {
    definition->walk([&](dnf::ApplyOp apply) {
      auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(kernel, apply.getLetAttr());
      if (let && !order.contains(let))
        visit(let);
    });
    order.insert(definition);
  };
  SmallVector<dnf::OutputOp> outputs(block.getOps<dnf::OutputOp>());
  llvm::sort(outputs, [](dnf::OutputOp a, dnf::OutputOp b) { return a.getResult() < b.getResult(); });
  for (dnf::OutputOp output : outputs)
    visit(output);
  for (dnf::LetOp let : llvm::make_early_inc_range(block.getOps<dnf::LetOp>()))
    if (!order.contains(let))
      let.erase();
  for (bool lets : {true, false})
    for (Operation *definition : order)
      if (isa<dnf::LetOp>(definition) == lets)
        definition->moveBefore(&block, block.end());

  DenseMap<Operation *, std::string> names;
  for (auto &[let, name] : context.letNames)
    names[let] = name;
  for (auto &[let, present] : context.present)
    if (order.contains(present))
      names[present] = context.letNames.lookup(let) + ".present";
  llvm::StringSet<> taken;
  SmallVector<std::pair<dnf::LetOp, std::string>> renames;
  for (auto let : block.getOps<dnf::LetOp>()) {
    std::string base = names.lookup(let), name = base;
    for (unsigned k = 1; !taken.insert(name).second; ++k)
      name = base + std::to_string(k);
    renames.emplace_back(let, name);
  }
  // Rename in two steps, so that a new name never meets an old one.
  for (unsigned step : {0, 1})
    for (auto [k, rename] : llvm::enumerate(renames)) {
      auto [let, name] = rename;
      std::string target = step ? name : "moa.tmp" + std::to_string(k);
      (void)SymbolTable::replaceAllSymbolUses(let, StringAttr::get(kernel.getContext(), target), kernel);
      let.setSymName(target);
    }
}

/// Returns the law that would have moved an absent element out of the parent of its first use.
static StringRef absenceLawOf(dnf::WhereOp where) {
  Operation *user = *where->user_begin();
  if (isa<dnf::WhereOp>(user))
    return "absent-where";
  if (!isa<dnf::YieldOp>(user))
    return "absent-pointwise";
  Operation *parent = user->getParentOp();
  if (isa<dnf::ReduceOp>(parent))
    return "absent-reduce";
  return isa<dnf::LetOp>(parent) ? "absent-let" : "absent-output";
}

/// Reports operators that no law removed, with the law that would have.
static LogicalResult reportLeftovers(dnf::KernelOp kernel, const PsiContext &context) {
  Operation *found = nullptr;
  kernel.walk([&](dnf::PsiOp psi) {
    if (!isa<BlockArgument>(psi.getArray()))
      found = psi.getArray().getDefiningOp();
  });
  if (found) {
    std::string law = context.shared.contains(found->getResult(0)) && !context.enabled("psi-share")
                          ? "share"
                          : found->getName().stripDialect().str();
    return found->emitError("no law reduces ψ of '") << found->getName() << "'; is 'psi-" << law << "' disabled?";
  }
  dnf::OtherwiseOp otherwise;
  kernel.walk([&](dnf::OtherwiseOp op) { otherwise = op->use_empty() ? otherwise : op; });
  if (otherwise)
    return otherwise.emitError("no law makes a join of 'otherwise'; is 'absent-otherwise' disabled?");
  dnf::JoinOp join;
  kernel.walk([&](dnf::JoinOp op) { join = op->use_empty() ? join : op; });
  if (join)
    return join.emitError("no law makes a selection of a catenation; is 'absent-join' disabled?");
  dnf::WhereOp left;
  kernel.walk([&](dnf::WhereOp where) {
    if (where->use_empty())
      return WalkResult::advance();
    left = where;
    return WalkResult::interrupt();
  });
  if (left)
    return left.emitError("no law moves an absent element out of ")
           << "'" << left->getParentOp()->getName() << "'; is '" << absenceLawOf(left) << "' disabled?";
  return success();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

void moa::detail::addLaw(RewritePatternSet &patterns, std::unique_ptr<RewritePattern> pattern, StringRef name) {
  pattern->setDebugName(name);
  patterns.add(std::move(pattern));
}

static LogicalResult tooLarge(Operation *at, const Twine &what, size_t operators, size_t limit) {
  return at->emitError(what) << ", made of " << operators << " operators on arrays; the limit is " << limit
                             << "; read an array at one computed index, as `a[i % N]`, or make it a result of another "
                                "kernel: at each further index it is computed again, as `a` in `cat(a, a)`";
}

/// Refuses kernels whose ψ-reduction would not come to an end. An array that is not shared is
/// repeated at every index at which it is read. For example, after twelve lines `a = cat(a, a)` an
/// element of the last one is 4,096 elements of the first.
static LogicalResult checkReads(KernelOp kernel, const PsiContext &context) {
  Block &body = kernel.getBody().front();
  const size_t operators = body.getOperations().size(), most = 100 * std::max(kMostOps, operators);
  DenseMap<Value, size_t> size; // of an element, with its repeated operands
  for (Operation &op : body) {
    size_t sum = 1;
    for (Value operand : op.getOperands())
      sum += context.shared.contains(operand) ? 1 : size.lookup(operand);
    if (sum > most)
      return tooLarge(&op, "an element takes at least " + Twine(sum) + " scalar operations", operators, most);
    for (Value result : op.getResults())
      size[result] = sum;
  }
  return success();
}

/// Refuses results of ψ-reduction that are too large in the same sense.
static LogicalResult checkSize(dnf::KernelOp kernel, size_t operators) {
  for (auto output : kernel.getOps<dnf::OutputOp>()) {
    size_t ops = 0;
    output.walk([&](Operation *) { ++ops; });
    StringRef name = cast<StringAttr>(kernel.getResultNames()[output.getResult()]).getValue();
    if (size_t most = mostOps(operators); ops > most)
      return tooLarge(output, "an element of '" + name + "' takes " + Twine(ops) + " scalar operations", operators,
                      most);
  }
  return success();
}

namespace {

/// Notifies an observer of every pattern that applied.
struct LawListener final : RewriterBase::Listener {
  LawListener(PsiObserver &observer, dnf::KernelOp kernel) : observer(observer), kernel(kernel) {}
  void notifyPatternEnd(const Pattern &pattern, LogicalResult status) final {
    if (succeeded(status))
      observer.applied(pattern.getDebugName(), kernel);
  }
  PsiObserver &observer;
  dnf::KernelOp kernel;
};

struct ConvertMoAToDNF final : moa::impl::ConvertMoAToDNFBase<ConvertMoAToDNF> {
  using Base::Base;

  void runOnOperation() final {
    std::vector<std::string> laws = getPsiLawNames();
    for (const std::string &law : disable)
      if (!llvm::is_contained(laws, law)) {
        getOperation().emitError("unknown law '") << law << "'";
        return signalPassFailure();
      }
    for (KernelOp kernel : llvm::make_early_inc_range(getOperation().getOps<KernelOp>()))
      if (failed(convert(kernel)))
        return signalPassFailure();
    for (MonoidOp monoid : getOperation().getOps<MonoidOp>())
      if (failed(convert(monoid)))
        return signalPassFailure();
  }

  PsiObserver *observer = nullptr;
  std::function<void(RewritePatternSet &)> moreLaws;

private:
  dnf::KernelOp open(KernelOp kernel);
  LogicalResult applyLaws(dnf::KernelOp result, PsiContext &context);
  LogicalResult convert(KernelOp kernel);
  LogicalResult convert(MonoidOp monoid);
};

} // namespace

/// Makes a dnf.kernel that holds the operators on arrays and outputs i ψ result.
dnf::KernelOp ConvertMoAToDNF::open(KernelOp kernel) {
  OpBuilder b(kernel);
  auto result = dnf::KernelOp::create(b, kernel.getLoc(), kernel.getSymNameAttr(), kernel.getSymbols(),
                                      kernel.getRequires(), kernel.getArgNames(), kernel.getResultNames(),
                                      kernel.getResultTypes(), kernel.getWithinAttr());
  result->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  result.getBody().takeBody(kernel.getBody());
  Block &block = result.getBody().front();
  auto ret = cast<ReturnOp>(block.getTerminator());
  b.setInsertionPointToEnd(&block);
  for (auto [k, value] : llvm::enumerate(ret.getValues())) {
    auto type = cast<ArrayType>(value.getType());
    SmallVector<Attribute> domain(type.getShape().begin(), type.getShape().end());
    Location place = withoutSubscripts(value.getLoc());
    auto output = dnf::OutputOp::create(b, place, b.getI64IntegerAttr(k), b.getArrayAttr(domain), indexNames(type),
                                        TypeAttr::get(type.getElementType()));
    OpBuilder::InsertionGuard guard(b);
    Block *body = b.createBlock(&output.getBody(), {}, SmallVector<Type>(type.getRank(), b.getIndexType()),
                                SmallVector<Location>(type.getRank(), getBarePlace(place)));
    Value element = dnf::PsiOp::create(b, place, type.getElementType(), value, body->getArguments());
    dnf::YieldOp::create(b, place, element, Value());
  }
  ret.erase();
  kernel.erase();
  return result;
}

LogicalResult ConvertMoAToDNF::applyLaws(dnf::KernelOp result, PsiContext &context) {
  RewritePatternSet patterns(&getContext());
  addPsiLaws(patterns, context);
  addAbsenceLaws(patterns, context);
  if (moreLaws)
    moreLaws(patterns);
  if (seed != 0) {
    std::mt19937 random(seed);
    std::shuffle(patterns.getNativePatterns().begin(), patterns.getNativePatterns().end(), random);
  }
  std::optional<LawListener> listener;
  GreedyRewriteConfig config;
  if (observer) {
    observer->began(result);
    config.setListener(&listener.emplace(*observer, result));
  }
  // An operand that a folder drops may be absent: p or true is true only where p is present. So
  // operations are folded only once no operand is absent.
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
      .enableConstantCSE(false)
      .enableFolding(false)
      .setUseTopDownTraversal(seed % 2 == 0)
      .setMaxIterations(GreedyRewriteConfig::kNoLimit);
  return applyPatternsGreedily(result.getBody(), std::move(patterns), config);
}

LogicalResult ConvertMoAToDNF::convert(KernelOp kernel) {
  PsiContext context;
  for (const std::string &law : disable)
    context.disabled.insert(law);
  // Merge equal arrays, so that outputs share common parts.
  IRRewriter rewriter(&getContext());
  {
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
  }
  findShared(kernel.getBody().front(), context);
  if (failed(checkReads(kernel, context)))
    return failure();
  size_t operators = kernel.getBody().front().getOperations().size();
  dnf::KernelOp result = open(kernel);
  if (failed(applyLaws(result, context)))
    return result.emitError("ψ-reduction did not come to an end");
  if (failed(reportLeftovers(result, context)))
    return failure();
  Block &block = result.getBody().front();
  GreedyRewriteConfig folding;
  folding.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled).enableConstantCSE(false);
  if (failed(applyPatternsGreedily(result.getBody(), {}, folding)))
    return result.emitError("arithmetic could not be folded");
  if (observer)
    observer->tidied("arithmetic folded", result);
  inlinePredicates(result);
  if (observer)
    observer->tidied("conditions unfolded", result);
  orderLets(result, context);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!isa<dnf::LetOp, dnf::OutputOp>(op))
      op.erase();
  DominanceInfo dominance(result);
  eliminateCommonSubExpressions(rewriter, dominance, result);
  canonicalise(result);
  if (observer)
    observer->ended(result);
  return checkSize(result, operators);
}

/// Lowers the body of a monoid to scalar code: the laws P1, P4 and P5 at the empty index.
LogicalResult ConvertMoAToDNF::convert(MonoidOp monoid) {
  Block &old = monoid.getBody().front();
  if (!isa<ArrayType>(old.getArgument(0).getType()))
    return success();
  OpBuilder b(&getContext());
  Location loc = monoid.getLoc();
  Block *block = b.createBlock(&monoid.getBody(), monoid.getBody().end(),
                               {monoid.getElementType(), monoid.getElementType()}, {loc, loc});
  IRMapping scalars;
  scalars.map(old.getArguments(), block->getArguments());
  for (Operation &op : old) {
    Value value;
    SmallVector<Value> operands;
    for (Value operand : op.getOperands())
      operands.push_back(scalars.lookup(operand));
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      value = arith::ConstantOp::create(b, op.getLoc(), constant.getValue());
    } else if (auto map = dyn_cast<MapOp>(op)) {
      // Both arguments of a monoid are present.
      bool fills = map.getFn() == ScalarFn::otherwise;
      value = buildScalarFn(b, op.getLoc(), fills ? ScalarFn::id : map.getFn(), operands);
    } else if (auto cast = dyn_cast<CastOp>(op)) {
      Type type = cast.getResult().getType().getElementType();
      value = buildCast(b, op.getLoc(), operands[0], type, !cast.getImplicit());
    } else if (isa<CombinedOp>(op)) {
      CombinedOp::create(b, op.getLoc(), operands[0]);
      break;
    } else {
      return op.emitError("a monoid is made of scalar functions, but this is '") << op.getName() << "'";
    }
    scalars.map(op.getResult(0), value);
  }
  old.erase();
  return success();
}

std::unique_ptr<Pass> moa::createConvertMoAToDNFPass(std::vector<std::string> disabledLaws, unsigned seed,
                                                     PsiObserver *observer,
                                                     std::function<void(RewritePatternSet &)> moreLaws) {
  ConvertMoAToDNFOptions options;
  options.disable.assign(disabledLaws.begin(), disabledLaws.end());
  options.seed = seed;
  auto pass = std::make_unique<ConvertMoAToDNF>(options);
  pass->observer = observer;
  pass->moreLaws = std::move(moreLaws);
  return pass;
}

std::vector<std::string> moa::getPsiLawNames() {
  std::vector<std::string> names = psiLawNames();
  llvm::append_range(names, absenceLawNames());
  return names;
}
