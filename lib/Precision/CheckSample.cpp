//===- CheckSample.cpp - what kernels lose as they are written ------------===//
//
// A kernel as it is written rounds weights to 16 bits where it sums up their products, which loses
// more, relative to a result, the more its terms cancel. What that is of some rows is measured:
// their sums of what rounding leaves of the weights are computed beside those of what it makes of
// them, in one copy of the nest. Relative to |P|·|V| it loses no more than its types say, but where
// f16 has fewer bits, or none, for weights that are small.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Analysis/RepeatedSums.h"
#include "lib/Precision/Adapter.h"
#include "lib/Precision/Bounds.h"
#include "lib/Precision/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace moa {
#define GEN_PASS_DEF_CHECKSAMPLEPASS
#include "lib/Precision/PrecisionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::precision;

namespace {
/// What is left of weights that f16 rounds is multiplied by this, as it may be below all of f16.
constexpr double kRestOfF16 = 4096;
/// From here on f16 has all its bits.
constexpr double kLeastNormalF16 = 0x1p-14;

class SampleCheck final : public Chooser {
public:
  using Chooser::Chooser;
  /// Whether something is measured of results of one measure, other than `told`, to which it adds
  /// them.
  bool plan(bool isRelative, llvm::SmallPtrSetImpl<Value> &told);
  void run();

private:
  unsigned numPlans() const override { return 1; } // the nest as it is written
  std::string describe(unsigned) override { return "as written"; }
  SmallVector<std::string> listLaws(unsigned) override { return {}; }
  void rewrite(Copy &, unsigned, ValueRange) override {}
  Value loadMagnitude(Code &, IRMapping &) override { return {}; }
  bool isMagnitudeSquare() override { return false; }

  void pickRows();
  void addRests(Copy &copy);
  Value addRest(Value value);
  void storeExact(Copy &copy, ArrayRef<Value> arrays);
  void storeWritten(Copy &copy, ArrayRef<Value> arrays);

  SmallVector<Carrier> rounded;
  llvm::DenseMap<Value, Value>
      wholes; // of what is read of states, and what follows from it, with what rounding leaves
};
} // namespace

/// A tolerance of a sample, and weights that are rounded to 16 bits: of a component-wise one to
/// f16. What else the nest stores is not asked for.
bool SampleCheck::plan(bool isRelative, llvm::SmallPtrSetImpl<Value> &told) {
  std::string why;
  if (nest.getExtents().empty())
    return false;
  nest.walk([&](onf::StoreOp store) {
    if (kernel.isTemporary(numberOf(store)) || told.contains(store.getArray()))
      return;
    WithinAttr within = getWithin(kernel, numberOf(store) - kernel.getNumInputs());
    Tolerance allowed = within ? within.getTolerance() : Tolerance();
    if (!within || !allowed.isSampled || allowed.isRelative != isRelative ||
        (isRelative && isErrorOfRow(store)) ||
        errorAsWritten(nest, store.getArray(), allowed).size >= allowed.epsilon)
      return;
    results.push_back(resultOf(store, allowed));
  });
  if (results.empty())
    return false;
  scores = findScores(nest, onDemand);
  measured = findCarriers(nest, onDemand, /*anyWeights=*/true);
  for (const Carrier &carrier : measured) {
    Type operand = onf::AccOp(carrier.acc).getOperandType().value_or(Type());
    if (operand && (operand.isF16() || (operand.isBF16() && !isComponentWise())) &&
        carrier.weight.getType().isF32())
      rounded.push_back(carrier);
  }
  // What else they lose, in scores or in nests before, no sample of this nest has.
  auto isMeasured = [&](onf::AccOp acc) {
    return llvm::any_of(measured, [&](const Carrier &carrier) { return carrier.acc == acc; });
  };
  llvm::erase_if(results, [&](const Result &result) {
    return !llvm::all_of(findRounded(kernel, onf::StoreOp(result.store).getArray(), nest),
                         isMeasured) ||
           (isComponentWise() && !hasMeasureOf(result));
  });
  if (rounded.empty() || results.empty() || (isComponentWise() && !findMeasure(why)))
    return false;
  for (Result &result : results)
    told.insert(result.store.getArray());
  return true;
}

/// Of each group of parts of the rows the last row, and of each part one of the others that a hash
/// picks; of 64 rows and fewer all, and the last once more.
void SampleCheck::pickRows() {
  picked.numbers = editor.addTemporary(base() + "_looked", picked.extents,
                                       Builder(kernel.getContext()).getI32Type());
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange indices) {
    auto add = [&](Value x, int64_t y) { return code.make<arith::AddIOp>(x, code.index(y)); };
    Value r = indices.back(), count = code.extent(rows());
    auto [start, others] = countOthers(code, r, count, parts());
    Value hash = code.make<arith::RemSIOp>(code.hash(r, indices.drop_back()),
                                           code.make<arith::MaxSIOp>(others, code.index(1)));
    Value end =
        code.make<arith::MulIOp>(add(r, 1 - parts().count), count); // of a group, behind the picks
    Value last = add(code.make<arith::FloorDivSIOp>(end, code.index(parts().numGroups())), -1);
    Value isLast =
        code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, r, code.index(parts().count));
    Value row = code.make<arith::SelectOp>(isLast, last, code.make<arith::AddIOp>(start, hash));
    Value isAll = code.make<arith::CmpIOp>(arith::CmpIPredicate::sle, count, code.index(kSample));
    Value itself = code.make<arith::MinSIOp>(r, add(count, -1));
    code.store(code.make<arith::SelectOp>(isAll, itself, row), picked.numbers, indices);
  });
}

/// Beside each sum of rounded weights that of what is left of them.
void SampleCheck::addRests(Copy &copy) {
  for (const Carrier &carrier : rounded) {
    auto acc = cast<onf::AccOp>(copy.map.lookup(carrier.acc.getOperation()));
    auto fold = acc->getParentOfType<onf::FoldOp>();
    Value weight = copy.map.lookup(carrier.weight);
    Type operand = *acc.getOperandType();
    double factor = operand.isF16() ? kRestOfF16 : 1;
    Code code(kernel, OpBuilder(acc), acc.getLoc());
    Value near =
        code.make<arith::ExtFOp>(weight.getType(), code.make<arith::TruncFOp>(operand, weight));
    Value rest = code.make<arith::SubFOp>(weight, near);
    if (isComponentWise()) {
      Value size = code.make<math::AbsFOp>(weight);
      Value isSmall =
          code.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, size, code.real(kLeastNormalF16));
      rest = code.make<arith::SelectOp>(isSmall, rest, code.real(0));
    }
    if (factor != 1)
      rest = code.make<arith::MulFOp>(rest, code.real(factor));
    IRMapping map;
    map.map(weight, rest);
    code.b.setInsertionPoint(
        fold.getBody().front().getTerminator()); // states stand in the order of the fold's results
    auto other = cast<onf::AccOp>(code.b.clone(*acc, map));
    other.setNameAttr(editor.text(acc.getName() + "_rest"));
    // The fold with one more state.
    OpBuilder b(fold);
    SmallVector<Type> types(fold.getResultTypes());
    types.push_back(other.getType());
    auto made =
        onf::FoldOp::create(b, fold.getLoc(), types, fold.getNameAttr(), fold.getExtentAttr(),
                            onf::AxisAttr(), ArrayAttr(), ValueRange{});
    made.getBody().takeBody(fold.getBody());
    auto yield = cast<onf::YieldOp>(made.getBody().front().back());
    SmallVector<Value> states(yield.getValues());
    states.push_back(other);
    b.setInsertionPoint(yield);
    onf::YieldOp::create(b, yield.getLoc(), states);
    yield.erase();
    unsigned number = made.getNumResults() - 1;
    fold.replaceAllUsesWith(made.getResults().drop_back());
    for (Operation *user : llvm::make_early_inc_range(made.getResult(carrier.result).getUsers()))
      if (auto at = dyn_cast<onf::AtOp>(user)) {
        Code behind(kernel, OpBuilder(at), at.getLoc());
        behind.b.setInsertionPointAfter(at);
        IRMapping states;
        states.map(at.getState(), made.getResult(number));
        Value left = behind.b.clone(*at, states)->getResult(0);
        if (factor != 1)
          left = behind.make<arith::MulFOp>(left, behind.real(1 / factor));
        wholes[at.getResult()] = behind.make<arith::AddFOp>(at.getResult(), left);
      }
    copy.map.map(carrier.outer.getOperation(), made.getOperation());
    fold.erase();
  }
}

/// The value with nothing left out, beside it.
Value SampleCheck::addRest(Value value) {
  if (Value known = wholes.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value whole = value;
  if (op && !isa<onf::FoldOp, onf::LoadOp>(op) && op->getNumRegions() == 0) {
    IRMapping map;
    bool changes = false;
    for (Value operand : op->getOperands()) {
      Value other = addRest(operand);
      changes |= other != operand;
      map.map(operand, other);
    }
    if (changes) {
      OpBuilder b(op);
      b.setInsertionPointAfter(op);
      whole = b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
    }
  }
  return wholes[value] = whole;
}

/// Stores the results in these arrays of f32 as they are written, rounded to their types; of
/// component-wise tolerances, of which only the sums differ, before that.
void SampleCheck::storeWritten(Copy &copy, ArrayRef<Value> arrays) {
  if (isComponentWise())
    return storeIn(copy, arrays);
  for (auto [result, array] : llvm::zip_equal(results, arrays)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    Code at(kernel, OpBuilder(store), store.getLoc());
    auto type = cast<FloatType>(onf::StoreOp(result.store).getArray().getType().getElementType());
    Value value = store.getValue();
    if (cast<FloatType>(value.getType()).getWidth() > type.getWidth())
      value = at.make<arith::TruncFOp>(type, value);
    at.store(type.getWidth() < 32 ? at.widen(value) : value, array, indicesOf(copy, store));
    store.erase();
  }
}

/// Stores the results with nothing left out in these arrays of f32.
void SampleCheck::storeExact(Copy &copy, ArrayRef<Value> arrays) {
  for (auto [result, array] : llvm::zip_equal(results, arrays)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    Value value = addRest(store.getValue());
    if (auto truncated = value.getDefiningOp<arith::TruncFOp>())
      value = truncated.getIn();
    Code at(kernel, OpBuilder(store), store.getLoc());
    at.store(value, array, indicesOf(copy, store));
  }
}

void SampleCheck::run() {
  isCheck = true;
  if (!kernel->hasAttr(kSpentAttr))
    RepeatedSums::note(kernel); // before there are copies
  findHead();
  addCondition(1);
  pickRows();
  for (const Score &score : scores)
    picked.gathered.push_back(addGathered(score, score.row.array()));
  Type f32 = Builder(kernel.getContext()).getF32Type();
  SmallVector<Value> exact = addSampleArrays("_exact", picked.extents, f32),
                     written = addSampleArrays("_written", picked.extents, f32);
  Copy copy = copySample(sampled);
  for (auto [score, rows] : llvm::zip_equal(scores, picked.gathered))
    readSampledRows(copy, score, rows);
  addRests(copy);
  storeExact(copy, exact);
  storeWritten(copy, written);
  // In parts of the keys weights would be relative to other extremes, which matters where small
  // ones have fewer bits.
  if (llvm::none_of(rounded, [](const Carrier &carrier) {
        return onf::AccOp(carrier.acc).getOperandType()->isF16();
      }))
    splitSample(copy, kPartLength);
  if (isComponentWise())
    addMeasure();
  for (auto [result, array] : llvm::zip_equal(results, exact))
    result.sample = array;
  addErrors({written});
  tellEstimates();
}

namespace {
struct CheckSample final : moa::impl::CheckSamplePassBase<CheckSample> {
  using Base::Base;

  void runOnOperation() final {
    Options options;
    options.halves = true;
    for (auto kernel : getOperation().getOps<onf::KernelOp>()) {
      if (!kernel.getWithin())
        continue;
      llvm::SmallPtrSet<Value, 4> told;
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>())) {
        if (nest.getLift() || (nest.getChoices() && nest.getChoice() != 0))
          continue;
        for (bool isRelative : {true, false})
          if (SampleCheck check(kernel, nest, options); check.plan(isRelative, told))
            check.run();
      }
      tellUnmeasured(kernel, told);
    }
  }

  /// A sum that a result follows from whose operands are rounded, if what that loses is not known
  /// beforehand: of weights of its elements to bf16 the types say it, relative to |P|·|V|.
  onf::AccOp findUnknown(onf::KernelOp kernel, Value result, const Tolerance &allowed) {
    llvm::SmallPtrSet<Operation *, 4> known;
    OnDemand onDemand(kernel);
    if (!allowed.isRelative)
      for (auto nest : kernel.getBody().getOps<onf::ForOp>()) {
        auto storesIt = [&](onf::StoreOp store) {
          return store.getArray() == result ? WalkResult::interrupt() : WalkResult::advance();
        };
        if (nest.walk(storesIt).wasInterrupted())
          for (const Carrier &carrier : findCarriers(nest, onDemand, /*anyWeights=*/true))
            if (Type operand = carrier.acc.getOperandType().value_or(Type());
                operand && !operand.isF16())
              known.insert(carrier.acc);
      }
    for (onf::AccOp acc : findRounded(kernel, result))
      if (!known.contains(acc))
        return acc;
    return onf::AccOp();
  }

  /// Nothing ever shows of a result that it is within its tolerance if a sample should tell what
  /// rounded operands lose, and none does.
  void tellUnmeasured(onf::KernelOp kernel, const llvm::SmallPtrSetImpl<Value> &told) {
    KernelEditor editor(kernel, *kernel.getBody().getOps<onf::ForOp>().begin());
    SmallVector<Attribute> shown;
    if (auto known = kernel->getAttrOfType<ArrayAttr>(onf::kShownAttr))
      shown.assign(known.begin(), known.end());
    unsigned numTold = shown.size();
    for (unsigned k = kernel.getNumInputs();
         !kernel.isTemporary(k) && k < kernel.getBody().getNumArguments(); ++k) {
      Value result = kernel.getBody().getArgument(k);
      WithinAttr within = getWithin(kernel, k - kernel.getNumInputs());
      Tolerance allowed = within ? within.getTolerance() : Tolerance();
      if (!within || !allowed.isSampled || told.contains(result))
        continue;
      onf::AccOp unknown = findUnknown(kernel, result, allowed);
      if (!unknown || errorAsWritten(kernel, result, allowed).size >=
                          allowed.epsilon) // the latter are told with bounds
        continue;
      std::string why, of = unknown.getName() == stringifyMonoid(unknown.getMonoid())
                                ? ""
                                : (" of '" + unknown.getName() + "'").str();
      llvm::raw_string_ostream(why)
          << "nothing measures what it loses where products" << of
          << " have a computed factor that is rounded to " << *unknown.getOperandType()
          << ", as a sample of its rows would; f32(…) around that rounds nothing, and moa-run "
             "--check=all "
          << "--no-tolerance-check measures every row";
      warnOfNeverShown(kernel, k, allowed, why);
      shown.push_back(tellNeverShown(editor, k, why, !onlyKnown));
    }
    if (shown.size() > numTold)
      kernel->setAttr(onf::kShownAttr, ArrayAttr::get(kernel.getContext(), shown));
  }
};
} // namespace
