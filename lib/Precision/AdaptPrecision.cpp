//===- AdaptPrecision.cpp - fewer bits where an error is allowed ----------===//
#include "lib/Precision/Adapter.h"
#include "lib/Precision/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {
#define GEN_PASS_DEF_ADAPTPRECISIONPASS
#include "lib/Precision/PrecisionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::precision;

/// Terms of a sum of products of 8-bit integers, which f32 holds exactly.
static constexpr int64_t kMostTerms = 256;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// The results of the nest. Each may have an error, measured over rows: on a sample of
/// them, in the norm over axes that the rows are one of.
bool Adapter::findResults(std::string &why) {
  bool fits = true;
  Value row = nest.getBody().front().getArguments().back();
  nest.walk([&](onf::StoreOp store) {
    StringRef name = kernel.getArrayName(numberOf(store));
    auto refuse = [&](const Twine &reason) {
      if (fits)
        why = ("'" + name + "' " + reason).str();
      fits = false;
    };
    if (kernel.isTemporary(numberOf(store)))
      return refuse("is read by other nests");
    WithinAttr within = getWithin(kernel, numberOf(store) - kernel.getNumInputs());
    if (!within)
      return refuse("may have no error");
    Result result{store, within.getTolerance(), {}, {}, {}, {}};
    if (!result.allowed.isSampled || !result.allowed.isRelative)
      return refuse("has a tolerance that is not relative and sampled");
    for (auto [term, text] : llvm::zip_equal(
             store.getTerms(), store.getCoefficients().getAsValueRange<StringAttr>())) {
      int64_t rank = store.getArray().getType().getRank(), axis;
      if (term == row && !text.rsplit(".s").second.getAsInteger(10, axis) && axis + 2 < rank)
        return refuse("has an error per row, of which a sample says nothing");
    }
    for (auto loop = store->getParentOfType<onf::ForOp>(); loop != nest;
         loop = loop->getParentOfType<onf::ForOp>()) {
      result.names.insert(result.names.begin(), loop.getNames().begin(), loop.getNames().end());
      result.extents.insert(result.extents.begin(), loop.getExtents().begin(), loop.getExtents().end());
    }
    results.push_back(result);
  });
  return fits && !results.empty();
}

bool Adapter::plan(std::string &why) {
  scores = findScores(nest, onDemand, kMostTerms);
  if (scores.empty()) {
    why = "no fold sums up products of rows of two inputs";
    return false;
  }
  if (!findResults(why))
    return false;
  auto isShort = [](StringRef extent) {
    auto size = SymExpr::parse(extent)->getConstant();
    return size && *size < kFewest;
  };
  if (isShort(cast<StringAttr>(nest.getExtents().getValue().back()).getValue()) ||
      llvm::any_of(scores, [&](Score &score) { return isShort(score.outer.getExtent()); })) {
    why = "rows or the indices of a fold are known to be few";
    return false;
  }
  for (auto [k, score] : llvm::enumerate(scores))
    for (auto [n, other] : llvm::enumerate(scores))
      if (score.row.array() == other.key.array() ||
          (k != n && score.key.array() == other.key.array())) {
        why = "one array is an operand of several sums, or both of its operands";
        return false;
      }
  Plan all;
  for (unsigned k = 0; k < scores.size(); ++k)
    all.scores.push_back(k);
  if (options.sums)
    carriers = findCarriers(nest, onDemand);
  // Of one fold, and of different arrays.
  for (auto [k, carrier] : llvm::enumerate(carriers))
    for (const Carrier &other : ArrayRef(carriers).drop_front(k + 1))
      if (carrier.outer != other.outer || carrier.load.getArray() == other.load.getArray()) {
        why = "values of several folds, or several sums of one array, are rounded";
        return false;
      }
  // Where sums can be of 8 bits, scores alone are no faster than 16 bits.
  all.sums = !carriers.empty();
  plans.push_back(all);
  headNames.assign(nest.getNames().begin(), nest.getNames().end());
  headExtents.assign(nest.getExtents().begin(), nest.getExtents().end());
  headNames.pop_back();
  headExtents.pop_back();
  sampleNames = headNames;
  sampleExtents = headExtents;
  sampleNames.push_back(editor.text("r"));
  sampleExtents.push_back(editor.text(SymExpr(kSample)));
  return true;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Says on the kernel what may be computed how; there is one list per result.
void Adapter::note() {
  Builder b(kernel.getContext());
  SmallVector<Attribute> lists;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kSpentAttr))
    lists.assign(known.begin(), known.end());
  lists.resize(kernel.getNumOutputs(), b.getArrayAttr({}));
  for (Result &result : results) {
    SmallVector<Attribute> texts;
    for (auto [p, plan] : llvm::enumerate(plans)) {
      SmallVector<std::string> sums;
      bool isCommon = true;
      for (unsigned k : plan.scores) {
        auto nameOf = [&](const Operand &operand) {
          return kernel.getArrayName(operand.array().getArgNumber()).str();
        };
        sums.push_back(nameOf(scores[k].row) + " and " + nameOf(scores[k].key));
        isCommon &= hasCommonScales(scores[k]);
      }
      std::string text = "plan " + std::to_string(p + 1) + ": sums of products of " +
                         llvm::join(sums, ", ") + " in 8-bit integers with a scale " + (isCommon ? "for all rows" : "per row");
      if (plan.sums)
        for (const Carrier &carrier : carriers)
          text += "; weights and " +
                  kernel.getArrayName(cast<BlockArgument>(carrier.load.getArray()).getArgNumber()).str() +
                  " of sums in e4m3 with a scale per column";
      texts.push_back(b.getStringAttr(text));
    }
    lists[numberOf(result.store) - kernel.getNumInputs()] = b.getArrayAttr(texts);
  }
  kernel->setAttr(kSpentAttr, b.getArrayAttr(lists));
}

/// "f.O=1,0;g.P=2": the plans that are given for this nest.
LogicalResult Adapter::readTable() {
  SmallVector<StringRef> lists, entries;
  StringRef(options.table).split(lists, ';', -1, /*KeepEmpty=*/false);
  for (StringRef list : lists) {
    auto [key, numbers] = list.split('=');
    if (key != (kernel.getSymName() + "." + base()).str())
      continue;
    numbers.split(entries, ',', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries) {
      int64_t plan = 0;
      if (entry.getAsInteger(10, plan) || plan < 0 || plan > int64_t(plans.size()))
        return nest.emitError("there is no plan '")
               << entry << "' for '" << base() << "'; there are 0 to " << plans.size();
      table.push_back(plan);
    }
  }
  return success();
}

void Adapter::run() {
  note();
  Builder b(kernel.getContext());
  std::string name = base();
  bool estimates = table.empty() || options.check;
  if (options.decisions) {
    SmallVector<Attribute> told, extents(headExtents);
    if (auto known = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr))
      told.assign(known.begin(), known.end());
    auto add = [&](StringRef of, StringRef suffix, Type element) {
      told.push_back(editor.text(of));
      return editor.addResult(of + suffix, extents, element);
    };
    planArray = add(name, "_plan", b.getI32Type());
    extents.push_back(editor.text(Twine(plans.size())));
    if (estimates)
      for (Result &result : results)
        estimateArrays.push_back(
            add(kernel.getArrayName(numberOf(result.store)), "_estimate", b.getF32Type()));
    kernel->setAttr(kDecisionsAttr, b.getArrayAttr(told));
  }
  addCondition();
  DenseMap<Value, Mean> means;
  for (Score &score : scores) {
    Rounded key = roundedArrays.lookup({score.key.array(), score.key.axis});
    if (!key.data) {
      if (score.keyAxis)
        means[score.key.array()] = addMean(score.key.array(), *score.keyAxis);
      const Mean *mean = score.keyAxis ? &means[score.key.array()] : nullptr;
      key = addRounded(score.key.array(), score.key.axis, mean,
                       hasCommonScales(score) ? score.keyAxis : std::nullopt);
      roundedArrays[{score.key.array(), score.key.axis}] = key;
    }
    if (auto mean = means.find(score.key.array()); mean != means.end())
      shifts[&score] = addShift(score, mean->second);
    Rounded &row = roundedArrays[{score.row.array(), score.row.axis}];
    if (!row.data)
      row = addRounded(score.row.array(), score.row.axis, nullptr,
                       key.across ? rowAxisOf(score) : std::nullopt);
  }
  if (plans[0].sums)
    for (Carrier &carrier : carriers)
      if (RoundedValues &values = roundedValues[carrier.load.getArray()]; !values.data)
        values = addRoundedValues(carrier);
  if (estimates) {
    addSampleRows();
    for (Score &score : scores) {
      gathered.push_back(addGathered(score, score.row.array()));
      Rounded rows = rounded(score.row);
      if (rows.across)
        rows.data = addGathered(score, rows.data);
      else
        rows = addRounded(gathered.back(), sampleExtents.size());
      gatheredRounded.push_back(rows);
    }
    for (auto [result, sample] : llvm::zip_equal(results, addSample(nullptr, 0)))
      result.sample = sample;
    SmallVector<SmallVector<Value>> samples;
    for (auto [p, plan] : llvm::enumerate(plans))
      samples.push_back(addSample(&plan, p + 1));
    addErrors(samples);
  }
  chosen.array = editor.addTemporary(name + "_choice", headExtents, b.getI32Type());
  for (unsigned axis = 0; axis < headExtents.size(); ++axis)
    chosen.axes.push_back(axis);
  estimates ? addDecision() : addTable();
  for (auto [p, plan] : llvm::enumerate(plans)) {
    Copy copy = copyNest();
    for (unsigned k : plan.scores)
      roundScore(copy, scores[k], rounded(scores[k].row), {}, rounded(scores[k].key));
    if (plan.sums)
      for (const Carrier &carrier : carriers)
        roundCarrier(copy, carrier);
    chosen.value = p + 1;
    setChoice(copy.nest, chosen);
  }
  chosen.value = 0;
  setChoice(nest, chosen);
}

namespace {
struct AdaptPrecision final : moa::impl::AdaptPrecisionPassBase<AdaptPrecision> {
  using Base::Base;

  void runOnOperation() final {
    Options options{decisions, check, sums, table};
    for (auto kernel : getOperation().getOps<onf::KernelOp>()) {
      if (!kernel.getWithin())
        continue;
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>())) {
        if (nest.getLift() || nest.getChoices())
          continue;
        std::string why;
        Adapter adapter(kernel, nest, options);
        if (!adapter.plan(why)) {
          nest.emitRemark("computes nothing in fewer bits: ") << why;
          continue;
        }
        if (failed(adapter.readTable()))
          return signalPassFailure();
        adapter.run();
      }
    }
  }
};
} // namespace
