//===- BoundPlans.cpp - plans with bounds for every input -----------------===//
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

/// Finds plans of 16 bits, or of sums of two 16-bit floats, whose errors dnf-bound-errors bounds.
/// Weights and values are in bf16, because underflow in f16 has an error that is not relative.
/// Scores are in f16 if dnf-bound-errors has a bound for that and its lists `scores` and `sums` hold
/// the inputs of these contractions; otherwise all is bf16.
bool Adapter::planBound(std::string &why) {
  if (!options.uses("B5")) {
    why = "law B5, of bounds that a kernel evaluates, is disabled";
    return false;
  }
  bounds = Bounds::read(kernel);
  for (NestResult &result : results)
    if (!bounds || !bounds->hasBound(editor.nameOf(result.store.getArray()), "written")) {
      why = whyNoBounds(kernel);
      return false;
    }
  std::string whyNot = "this processor has nothing for products of 16 bits";
  if (options.halves || options.bf16) {
    if (scores.empty())
      whyNot = whyNoScores();
    else if (isKnownFew(rows()) || isKnownFew(scores.front().outer.getExtent()))
      whyNot = "rows or the indices of a fold are known to be few";
    else
      addHalvesPlan(whyNot);
  }
  for (Plan &plan : plans) {
    bool areClasses = llvm::all_of(results, [&](NestResult &result) {
      return bounds->hasBound(editor.nameOf(result.store.getArray()), "halves");
    });
    for (const ScoreFold &score : scores)
      areClasses &= bounds->isOf("scores", editor.nameOf(score.row.array())) &&
                    bounds->isOf("scores", editor.nameOf(score.key.array()));
    for (const WeightedSum &weighted : anyWeightedSums)
      areClasses &= bounds->isOf("sums", editor.nameOf(weighted.load.getArray()));
    Type bf16 = Builder(kernel.getContext()).getBF16Type();
    if (!areClasses)
      plan.half = bf16;
    plan.sumHalf = bf16;
  }
  if (plans.empty() && !options.decisions) {
    why = whyNot;
    return false;
  }
  findHead();
  return true;
}

/// Adds the decision: the first plan whose bounds are within the tolerances. If no plan fits, the
/// unmodified nest runs, and the reported decision is 0 if its own bounds are within the tolerances,
/// −1 otherwise.
void Adapter::runBound() {
  if (!plans.empty())
    recordPlans();
  addDecisionResults();
  if (!plans.empty()) {
    addSizeCondition();
    for (const Plan &plan : plans)
      addHalves(plan);
  }
  SmallVector<std::string> formats{"written"};
  for (const Plan &plan : plans)
    formats.push_back(plan.isSplit ? plan.half.isF16() ? "split" : "bf16x2" : plan.half.isF16() ? "halves" : "bf16");
  std::vector<BoundNests> each;
  SmallVector<onf::ForOp> nests;
  for (NestResult &result : results) {
    std::string name = editor.nameOf(result.store.getArray()).str();
    BoundNests &of = each.emplace_back(editor, *bounds, name, findHeadAxes(nest, result.store), headExtents);
    for (const std::string &text : formats)
      of.addStatistics(text);
    llvm::append_range(nests, of.nests);
  }
  chosen = addHeadChoice("_choice");
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    SmallVector<Value> allowed(formats.size());
    SmallVector<SmallVector<Value>> values(results.size());
    for (auto [o, result] : llvm::enumerate(results)) {
      // Rounded down to f32.
      float limit = static_cast<float>(result.allowed.epsilon);
      if (limit > result.allowed.epsilon)
        limit = std::nextafter(limit, 0.0f);
      for (auto [p, text] : llvm::enumerate(formats)) {
        Value bound = each[o].write(code, head, text);
        Value is = code.compare(arith::CmpFPredicate::OLE, bound, code.real(limit));
        values[o].push_back(bound);
        allowed[p] = allowed[p] ? code.both(allowed[p], is) : is;
      }
    }
    Value notShown = code.index(kNoCertifiedPlan);
    Value plan = code.select(allowed[0], code.index(0), notShown), none = code.index(0);
    Value first = isTabled ? planOfTable(code, head) : Value(), choice = none;
    for (unsigned p = plans.size(); p > 0; --p) {
      Value takes = code.both(isTried(code, tried, head), allowed[p]);
      if (first) {
        Value isLater = code.compare(arith::CmpIPredicate::sge, code.index(p), first);
        Value isAny = code.compare(arith::CmpIPredicate::sgt, first, none);
        takes = code.both(takes, code.both(isLater, isAny));
      }
      plan = code.select(takes, code.index(p), plan);
      choice = code.select(takes, code.index(p), choice);
    }
    code.store(choice, chosen.array, head);
    if (planArray)
      code.store(plan, planArray, head);
    for (auto [o, array] : llvm::enumerate(estimateArrays)) {
      Attribute size = editor.expr(formats.size());
      code.loops({editor.text("p")}, {size}, [&](Code &in, ValueRange p) {
        Value value = values[o][0];
        for (unsigned k = 1; k < formats.size(); ++k) {
          Value here = in.compare(arith::CmpIPredicate::eq, p[0], in.index(k));
          value = in.select(here, values[o][k], value);
        }
        in.store(value, array, placed(head, {p[0]}));
      });
    }
  });
  if (!plans.empty())
    addCopies();
  fuseNests(nests);
  SmallVector<onf::ForOp> tries;
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (tried.array && other.getChoices() == tried.array)
      tries.push_back(other);
  fuseNests(tries);
}

} // namespace moa::accuracy
