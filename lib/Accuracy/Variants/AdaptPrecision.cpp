//===- AdaptPrecision.cpp - the pass onf-adapt-precision ------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorBounds.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "lib/Accuracy/Variants/Exponents.h"
#include "lib/Analysis/Jumps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {
#define GEN_PASS_DEF_ADAPTPRECISIONPASS
#include "lib/Accuracy/AccuracyPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::accuracy;

//===----------------------------------------------------------------------===//
// Cost model
//===----------------------------------------------------------------------===//

/// Smallest sampled tolerance for 8 bits, if there are plans of 16 bits.
static constexpr double kLeastOfBytes = 0x1p-9;

/// On a CPU, 8-bit dot products save three of four multiply-adds of a score, less kCpuWorkPerScore
/// for conversion and scales. Moving a byte costs as much as kCpuWorkPerByte multiply-adds of f32;
/// the sample as much as kCpuSampleRows rows (benchmarks/cpu/NOTES.md).
static constexpr int64_t kCpuWorkPerScore = 4, kCpuWorkPerByte = 14, kCpuSampleRows = 160;

/// On a CPU, dot products of bf16 take at most half the time of f32. If half of the heads use them,
/// 1/kCpuSaved of the work that the unmodified nest does without them is saved
/// (benchmarks/cpu/NOTES.md).
static constexpr int64_t kCpuSaved = 4;

static SymExpr carriedBy(onf::FoldOp fold) {
  SymExpr sum;
  for (auto acc : fold.getBody().getOps<onf::AccOp>())
    if (!acc.getExtents().empty()) {
      SymExpr product(1);
      for (const SymExpr &extent : acc.getExtents().getAsValueRange<ExprAttr>())
        product = product * extent;
      sum = sum + product;
    }
  return sum;
}

/// Returns true if a CPU uses bf16 dot products for this sum in the unmodified nest.
static bool isAlone(onf::AccOp acc) {
  auto is = acc->getAttrOfType<BoolAttr>(onf::kAloneAttr);
  return is && is.getValue();
}

static bool isFast(const ScoreFold &score) {
  return score.row.load.getResult().getType().isBF16() && score.key.load.getResult().getType().isBF16() &&
         isAlone(*score.fold.getBody().getOps<onf::AccOp>().begin());
}

static bool isFast(const WeightedSum &weighted) {
  Type type = weighted.load.getResult().getType();
  return type.isBF16() && weighted.acc.getOperandType() == type && isAlone(weighted.acc);
}

/// Returns (x, y); plans pay if x > y. In general x counts multiply-adds of the nest, and y those
/// that take as long as the nests before it. With scores alone in 8 bits, half of the heads save
/// three quarters of the work of scores; both sides are times 8 then.
std::pair<SymExpr, SymExpr> Adapter::weigh() {
  SymExpr work, bytes, sample, saved;
  bool isSplit = llvm::any_of(plans, [](const Plan &plan) { return plan.isSplit; });
  auto bytesOf = [](onf::LoadOp load) { return SymExpr(load.getResult().getType().getIntOrFloatBitWidth() / 8); };
  auto add = [&](onf::FoldOp outer, const SymExpr &width, onf::LoadOp key, bool isSaved) {
    const SymExpr &keys = outer.getExtent();
    if (isSaved)
      work = work + rows() * keys * width;
    // Keys are read for the scale, rounded, written, and read twice by the sample.
    bytes = bytes + keys * width * (bytesOf(key) * SymExpr(3) + SymExpr(isSplit ? 6 : 2));
  };
  for (const ScoreFold &score : scores) {
    const SymExpr &width = score.fold.getExtent();
    add(score.outer, width, score.key.load, !options.bf16 || !isFast(score));
    bytes = bytes + rows() * width * (bytesOf(score.row.load) * SymExpr(2) + SymExpr(isSplit ? 3 : 1));
    const SymExpr &keys = score.outer.getExtent();
    sample = sample + keys * (width + carriedBy(score.outer));
    saved = saved + rows() * keys * (width - SymExpr(kCpuWorkPerScore));
  }
  if (!options.sums && plans.size() == 1 && !plans[0].half)
    return {saved * SymExpr(3), (bytes * SymExpr(kCpuWorkPerByte) + sample * SymExpr(kCpuSampleRows)) * SymExpr(8)};
  for (const WeightedSum &weighted : weightedSums.empty() ? anyWeightedSums : weightedSums)
    add(weighted.outer, getSymExpr(weighted.acc.getExtents()[0]), weighted.load, !options.bf16 || !isFast(weighted));
  if (options.bf16)
    return {work, (bytes * SymExpr(kCpuWorkPerByte) + sample * SymExpr(kCpuSampleRows)) * SymExpr(kCpuSaved)};
  bool isSingle = llvm::any_of(plans, [](const Plan &plan) { return bool(plan.half); });
  // The other heads must save the cost of those that do not take the plan.
  int64_t perByte = 2 * (isSplit && plans.size() == 1 ? options.workPerByteSplit
                         : isSingle                   ? options.workPerByte16
                                                      : options.workPerByte8);
  // A mask, such as a causal one, is assumed to leave half of the pairs.
  bool isMasked =
      llvm::any_of(scores, [](ScoreFold &score) { return !score.outer.getBody().getOps<onf::GuardOp>().empty(); });
  if (isMasked && !isSingle)
    perByte *= 2;
  return {work, bytes * SymExpr(perByte)};
}

void Adapter::addSizeCondition() {
  auto addOn = [&](Code &code, Value isLarge) { addPiloted(code, isLarge); };
  llvm::function_ref<void(Code &, Value)> also = nullptr;
  if (canPilot())
    also = addOn;
  options.fewest ? addCondition(std::max(options.fewest, kFewest), std::nullopt, also)
                 : addCondition(kFewest, weigh(), also);
  if (!also)
    return addOpen();
  addScales();
  addPilot();
}

bool Adapter::plan(std::string &why) { return findPlans(why) && keepFastPlans(why); }

/// Removes plans whose nests would run slowly, by a trial on a copy of the kernel. With decisions
/// or a table all plans stay, so that their numbers do not depend on the target.
bool Adapter::keepFastPlans(std::string &why) {
  if (!options.reasonSlow || options.decisions || !options.table.empty())
    return true;
  std::optional<ScopedDiagnosticHandler> silence;
  silence.emplace(kernel.getContext(), [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> module(ModuleOp::create(kernel.getLoc()));
  module->push_back(kernel->clone());
  auto copy = *module->getOps<onf::KernelOp>().begin();
  auto nests = kernel.getBody().getOps<onf::ForOp>();
  size_t place = std::distance(nests.begin(), llvm::find(nests, nest));
  Options plain = options;
  plain.reasonSlow = nullptr;
  plain.table.clear();
  Adapter trial(copy, *std::next(copy.getBody().getOps<onf::ForOp>().begin(), place), plain);
  std::string unused;
  if (!trial.plan(unused))
    llvm_unreachable("a copy of a nest has its plans");
  trial.run();
  llvm::SmallBitVector slow(plans.size());
  SmallVector<std::string> reasons;
  for (auto written : copy.getBody().getOps<onf::ForOp>()) {
    int64_t number = static_cast<int64_t>(written.getChoice().value_or(0)) - trial.numEarlier;
    if (written.getChoices() != trial.chosen.array || number < 1)
      continue;
    std::string reason = options.reasonSlow(copy, written);
    if (reason.empty())
      continue;
    slow.set(number - 1);
    reasons.push_back(describe(number) + " would run slowly: " + reason);
  }
  silence.reset();
  if (slow.any())
    why = llvm::join(reasons, "; ");
  for (int number = slow.size() - 1; number >= 0; --number)
    if (slow[number]) {
      if (!plans[number].half)
        weightedSums.clear();
      plans.erase(plans.begin() + number);
    }
  if (slow.any() && !plans.empty())
    nest.emitRemark("leaves out plans: ") << why;
  return !plans.empty();
}

bool Adapter::findPlans(std::string &why) {
  scores = findScores(nest, onDemand);
  bool fits = !nest.getExtents().empty() && findResults(why, /*takesBounds=*/true);
  if (fits && isBound)
    return planBound(why);
  if (scores.empty()) {
    why = whyNoScores();
    return false;
  }
  if (!fits)
    return false;
  if (isKnownFew(rows()) ||
      llvm::any_of(scores, [&](ScoreFold &score) { return isKnownFew(score.outer.getExtent()); })) {
    why = "rows or the indices of a fold are known to be few";
    return false;
  }
  std::string whyNot;
  bool hasHalves = false, hasBytes = false;
  if (options.bf16)
    hasHalves = addHalvesPlan(whyNot);
  auto isOfBf16 = [](const ScoreFold &score) {
    return score.row.load.getResult().getType().isBF16() && score.key.load.getResult().getType().isBF16();
  };
  // Products of bf16 are as fast as those of 8 bits.
  bool areFast = options.bf16 && llvm::all_of(scores, isOfBf16);
  // Inputs of 16 bits have no other plan. Small tolerances are tried too, because results such as
  // logarithms may lose little.
  bool areNarrow = llvm::all_of(scores, [](const ScoreFold &score) {
    return score.row.load.getResult().getType().getIntOrFloatBitWidth() == 16 &&
           score.key.load.getResult().getType().getIntOrFloatBitWidth() == 16;
  });
  if (!hasHalves && !areFast) {
    bool loseMore = options.halves && !areNarrow;
    if (!(options.bf16 || loseMore) || allow(kLeastOfBytes))
      hasBytes = addBytesPlan(why);
    else if (!options.bf16)
      why = "8 bits are not accurate enough for a tolerance below 2^-9";
    hasHalves = options.halves && addHalvesPlan(whyNot);
  }
  if (!hasBytes && !hasHalves) {
    why += why.empty() || whyNot.empty() ? whyNot : "; and " + whyNot;
    return false;
  }
  SmallVector<Value> rounded;
  for (const ScoreFold &score : scores)
    rounded.push_back(score.fold.getResult(0));
  for (ArrayRef<WeightedSum> list : {ArrayRef(weightedSums), ArrayRef(anyWeightedSums)})
    for (const WeightedSum &weighted : list)
      rounded.push_back(weighted.acc.getResult());
  if (auto jump = findJump(rounded)) {
    why = describeJump(*jump);
    return false;
  }
  // A sample can miss the few rows with the largest errors in an exponent. Their size is measured
  // instead, which requires known factors.
  for (const ScoreFold &score : scores)
    if (Operation *unknown = !needsEstimates() ? nullptr : findExponents(score, nest).unknown) {
      why = "errors of sums of products of " + nameOf(score.row) + " and " + nameOf(score.key) +
            " reach an exponential through '" + unknown->getName().getStringRef().str() +
            "' with a factor that depends on more than the row or the key, so that a sample may miss the rows with "
            "the largest errors; use factors of the row or of the key alone";
      return false;
    }
  findHead();
  return true;
}

bool Adapter::addBytesPlan(std::string &why) {
  if (!options.uses("B2")) {
    why = "law B2, of products of integers, is disabled";
    return false;
  }
  for (auto [k, score] : llvm::enumerate(scores))
    for (auto [n, other] : llvm::enumerate(scores))
      if (score.row.array() == other.key.array() || (k != n && score.key.array() == other.key.array())) {
        const char *what = k == n ? "both operands of a sum of products" : "an operand of several sums of products";
        why = "'" + nameOf(other.key) + "' is " + what + ", which the plan of 8 bits does not support";
        return false;
      }
  Plan all;
  if (options.sums)
    weightedSums = findWeightedSums(nest, onDemand);
  // Weighted sums must be in one fold and read different arrays.
  for (auto [k, weighted] : llvm::enumerate(weightedSums))
    for (const WeightedSum &other : ArrayRef(weightedSums).drop_front(k + 1))
      if (weighted.outer != other.outer || weighted.load.getArray() == other.load.getArray()) {
        why = weighted.outer == other.outer
                  ? "several weighted sums read one array, which the plan of 8 bits does not support"
                  : "weighted sums are in several folds, but the plan of 8 bits needs one fold";
        return false;
      }
  // With weighted sums in 16 bits, scores in 8 bits would gain nothing.
  all.sums = !weightedSums.empty();
  plans.push_back(all);
  return true;
}

std::string Adapter::namesOf(ArrayRef<WeightedSum> list, StringRef separator) {
  llvm::SetVector<StringRef> names;
  for (const WeightedSum &weighted : list)
    names.insert(editor.nameOf(weighted.load.getArray()));
  return llvm::join(names, separator);
}

SmallVector<std::string> Adapter::listLaws(unsigned number) {
  const Plan &plan = plans[number - 1];
  SmallVector<std::string> laws;
  if (plan.half) {
    SmallVector<std::string> scaled;
    auto add = [&](const std::string &name) {
      if (!llvm::is_contained(scaled, name))
        scaled.push_back(name);
    };
    for (const ScoreFold &score : scores)
      if (plan.half.isF16())
        add(nameOf(score.row)), add(nameOf(score.key));
    if (plan.sumHalf && plan.sumHalf.isF16() && !anyWeightedSums.empty())
      add(namesOf(anyWeightedSums, " and "));
    if (!scaled.empty())
      laws.push_back("B4: " + llvm::join(scaled, " and ") + " times powers of 2, which f16 then holds");
    if (plan.isSplit)
      laws.push_back("B6: operands as sums of two floats, and products as those of three pairs");
    if (isBound)
      laws.push_back("B5: a bound on the errors decides, evaluated at each index before the rows");
    if (laws.empty())
      laws.push_back("none: operands are rounded to bf16, which has the range of f32");
    return laws;
  }
  SmallVector<std::string> meanKeys, products;
  for (const ScoreFold &score : scores) {
    if (score.keyAxis && options.uses("B1"))
      meanKeys.push_back(nameOf(score.key));
    products.push_back(nameOf(score.row) + " and " + nameOf(score.key));
  }
  if (!meanKeys.empty())
    laws.push_back("B1: scores less those of the mean of 64 keys of " + llvm::join(meanKeys, ", ") +
                   ", so that the common part of keys is not rounded");
  laws.push_back("B2: products of " + llvm::join(products, ", ") + " as those of integers times two steps");
  bool hasTotal = llvm::any_of(weightedSums, [](const WeightedSum &weighted) { return weighted.total.has_value(); });
  if (plan.sums && hasTotal && options.uses("B3"))
    laws.push_back("B3: " + namesOf(weightedSums, " and ") +
                   " less the mean of 64 rows, where that is large, which the sum of weights brings back");
  if (plan.sums && options.uses("B7"))
    laws.push_back("B7: exponentials that are weights of e4m3 by lines between powers of 2");
  return laws;
}

std::string Adapter::describe(unsigned number) {
  const Plan &plan = plans[number - 1];
  SmallVector<std::string> sums;
  bool isCommon = true;
  auto textOf = [](Type type) { return type.isF16() ? "f16 with powers of 2 as scales" : "bf16"; };
  for (const ScoreFold &score : scores) {
    sums.push_back(nameOf(score.row) + " and " + nameOf(score.key));
    isCommon &= hasCommonScales(score);
  }
  if (plan.half) {
    std::string how = plan.isSplit ? "as sums of two floats of " : "in ";
    std::string text = "sums of products of " + llvm::join(sums, ", ") + " " + how + textOf(plan.half);
    if (anyWeightedSums.empty())
      return text;
    return text + "; weights and " + namesOf(anyWeightedSums, " ") + " of sums " + how + textOf(plan.sumHalf);
  }
  std::string text = "sums of products of " + llvm::join(sums, ", ") + " in 8-bit integers with a scale " +
                     (isCommon ? "for all rows" : "per row");
  if (plan.sums)
    for (const WeightedSum &weighted : weightedSums)
      text +=
          "; weights and " + editor.nameOf(weighted.load.getArray()).str() + " of sums in e4m3 with a scale per column";
  return text;
}

/// Returns the magnitude of a row's largest element. If the score has factors per row on the way to
/// an exponential, returns the square of their product with it.
Value Adapter::loadMagnitude(Code &at, IRMapping &map) {
  const ScoreFold &first = scores[0];
  Type type = plans[0].half;
  Value size = loadLargest(at, first.row, type ? halfOfRow(first, type) : rounded(first.row), map);
  if (!isMagnitudeSquare())
    return size;
  auto ofKeys = [&](const ExponentPath &, unsigned) { return at.real(1); };
  return timesFactors(at, at.mul(size, size), first, nest, map, ofKeys);
}

bool Adapter::isMagnitudeSquare() { return hasFactorsOfRows(scores[0], nest); }

void Adapter::rewrite(Copy &copy, unsigned number, ValueRange rowIndices) {
  const Plan &plan = plans[number - 1];
  for (auto [k, score] : llvm::enumerate(scores)) {
    if (plan.half)
      halveScore(copy, k, plan, rowIndices);
    else
      roundScore(copy, score, rowIndices.empty() ? rounded(score.row) : gatheredRounded[k], rowIndices,
                 rounded(score.key));
  }
  for (const WeightedSum &weighted : plan.half ? ArrayRef(anyWeightedSums) : ArrayRef<WeightedSum>())
    halveWeightedSum(copy, weighted, plan);
  if (plan.sums && !plan.half)
    for (const WeightedSum &weighted : weightedSums)
      roundWeightedSum(copy, weighted);
}

void Adapter::addBytes() {
  for (ScoreFold &score : scores) {
    RoundedArray key = roundedArrays.lookup({score.key.array(), score.key.axis});
    if (!key.data) {
      key = addRounded(score.key.array(), score.key.axis, findMean(score),
                       hasCommonScales(score) ? score.keyAxis : std::nullopt);
      roundedArrays[{score.key.array(), score.key.axis}] = key;
    }
    // The shift is computed where rows are rounded, if that nest has the indices of this one.
    auto mean = means.find(score.key.array());
    Value shift = mean != means.end() ? shifts[&score] = addShiftArray(score) : Value();
    auto storeShiftAt = [&](Code &code, ValueRange indices) { storeShift(code, score, mean->second, shift, indices); };
    RoundedArray &row = roundedArrays[{score.row.array(), score.row.axis}];
    bool isTogether = shift && !row.data && hasRowsOfNest(score.row);
    if (shift && !isTogether)
      editor.addNest(nest.getNames().getValue(), nest.getExtents().getValue(), &sampled, storeShiftAt);
    if (!row.data) {
      auto across = key.across ? rowAxisOf(score) : std::nullopt;
      row = isTogether ? addRounded(score.row.array(), score.row.axis, nullptr, across, storeShiftAt)
                       : addRounded(score.row.array(), score.row.axis, nullptr, across);
    }
  }
  if (plans[0].sums)
    for (WeightedSum &weighted : weightedSums)
      if (RoundedValues &values = roundedValues[weighted.load.getArray()]; !values.data)
        values = addRoundedValues(weighted);
}

void Adapter::run() {
  if (isBound)
    return runBound();
  leadAlternatives();
  recordPlans();
  addDecisionResults();
  addSizeCondition();
  bool hasBytes = !plans[0].half;
  if (hasBytes)
    addBytes();
  for (const Plan &plan : plans)
    if (plan.half)
      addHalves(plan);
  if (needsEstimates()) {
    addSampleRows();
    for (auto [k, score] : llvm::enumerate(scores)) {
      picked.gathered.push_back(addGathered(score, score.row.array()));
      for (const Plan &plan : plans)
        if (plan.half) {
          const RoundedArray &rows = halfOfRow(score, plan.half);
          for (Value data : {rows.data, rows.rest})
            if (Value *known = data ? &gatheredHalves[{data, k}] : nullptr; known && !*known)
              *known = addGathered(score, data);
        }
      if (llvm::any_of(plans, [&](const Plan &plan) { return asksScores(plan); }))
        reach.push_back(addReach(score, /*ofSample=*/true));
      if (!hasBytes)
        continue;
      RoundedArray rows = rounded(score.row);
      if (rows.across)
        rows.data = addGathered(score, rows.data);
      else
        rows = addRounded(picked.gathered.back(), picked.extents.size());
      gatheredRounded.push_back(rows);
    }
  }
  addChoice();
  fuseNests(switchedNests());
}

namespace {
struct AdaptPrecision final : moa::impl::AdaptPrecisionPassBase<AdaptPrecision> {
  using Base::Base;
  NestReason reasonSlow;

  void runOnOperation() final {
    if (failed(checkLaws(getOperation(), disable, kPrecisionLaws)))
      return signalPassFailure();
    Options options{decisions,
                    check,
                    sums,
                    halves,
                    bf16,
                    table,
                    /*isShared=*/false,
                    fewest,
                    pilot,
                    reasonSlow,
                    workPerByte8,
                    workPerByte16,
                    workPerByteSplit,
                    SmallVector<std::string>(disable.begin(), disable.end())};
    auto adapt = [&](onf::KernelOp kernel, onf::ForOp nest) { return Adapter(kernel, nest, options); };
    if (failed(chooseEverywhere(getOperation(), "computes nothing in fewer bits: ", warns,
                                /*takesLeft=*/true, adapt)))
      signalPassFailure();
    for (auto kernel : getOperation().getOps<onf::KernelOp>()) {
      kernel->removeAttr(kBoundsAttr);
      kernel->removeAttr(kStoredAttr);
    }
  }
};
} // namespace

std::unique_ptr<Pass> moa::createAdaptPrecisionPass(AdaptPrecisionPassOptions options, NestReason reasonSlow) {
  auto pass = std::make_unique<AdaptPrecision>(std::move(options));
  pass->reasonSlow = std::move(reasonSlow);
  return pass;
}
