//===- Names.cpp - names of values in tile kernels ------------------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Names.h"
#include "lib/Conversion/ONFToDevice/Tiles/Running.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

/// Returns a state's name in the program; empty if it only repeats the monoid, as in `max` or `add2`.
static std::string nameInProgram(AccOp acc) {
  StringRef name = acc.getName(), word = name.rtrim("0123456789");
  bool isOfMonoid = llvm::is_contained({"add", "mul", "max", "min", "and", "or", "any", "all"}, word);
  return isOfMonoid ? "" : name.str();
}

static StringRef wordOf(Monoid monoid) {
  static const char *const kWords[] = {"sum", "product", "max", "min", "all", "any"};
  return monoid == Monoid::user ? "state" : kWords[unsigned(monoid)];
}

/// Returns whether the value of a state only depends on whether its range has elements.
static bool isExistence(AccOp acc) {
  auto constant = rows::getYielded(acc.getValue()).getDefiningOp<arith::ConstantOp>();
  auto truth = constant ? dyn_cast<BoolAttr>(constant.getValue()) : BoolAttr();
  return truth && truth.getValue() && acc.getMonoid() == Monoid::or_;
}

std::string nameOfPosition(const TilePlan &plan) {
  auto isAxis = [&](StringRef name) {
    return plan.fold.getName() == name || llvm::any_of(plan.nest.getNames(), [&](Attribute axis) {
             return cast<StringAttr>(axis).getValue() == name;
           });
  };
  return !isAxis("n") ? "n" : !isAxis("t") ? "t" : "tile_number";
}

std::string nameOfRow(AccOp acc) {
  std::string name = nameInProgram(acc);
  return !name.empty() ? name : isExistence(acc) ? "row_has_keys" : ("row_" + wordOf(acc.getMonoid())).str();
}

std::string nameOfPartial(const FoldFacts &facts, AccOp acc) {
  unsigned k = facts.numberOf(acc.getResult());
  std::string name = nameInProgram(acc);
  bool isRunning = facts.isReference[k] && facts.lazy;
  if (!name.empty())
    return (isRunning ? "running_" : "partial_") + name;
  if (isExistence(acc))
    return "has_keys";
  return ((isRunning ? "running_" : facts.isReference[k] ? "lane_" : "partial_") + wordOf(acc.getMonoid())).str();
}

std::string nameOfReference(const FoldFacts &facts, AccOp acc) {
  std::string name = nameInProgram(acc);
  return (facts.lazy ? "reference_" : "running_") + (name.empty() ? wordOf(acc.getMonoid()).str() : name);
}

std::string nameInTile(AccOp acc) {
  std::string name = nameInProgram(acc);
  return "tile_" + (name.empty() ? wordOf(acc.getMonoid()).str() : name);
}

std::string nameOfWeights(const TilePlan &plan, unsigned accumulator) {
  AccOp acc = plan.folded.accumulators[accumulator].acc;
  const rows::Factors &factors = plan.weights[accumulator][0];
  bool isOfSum = factors.values.size() == 1 && factors.divisors.empty() &&
                 llvm::any_of(plan.folded.scalars, [&](const rows::Scalar &scalar) {
                   AccOp other = scalar.acc;
                   return other.getMonoid() == Monoid::add && llvm::equal(other.getRefs(), acc.getRefs()) &&
                          !other.getRefs().empty() && rows::getYielded(other.getValue()) == factors.values[0];
                 });
  std::string name = isOfSum ? "probabilities" : "weights";
  return plan.folded.accumulators.size() == 1 ? name : name + "_of_" + acc.getName().str();
}

StringRef nameOfArray(const TileContext &context, const TileOperand &operand) {
  Value array = LoadOp(operand.load).getArray();
  return context.program.getAllNames()[cast<BlockArgument>(array).getArgNumber()];
}

std::string nameOfProducts(const TileContext &context, unsigned score) {
  const TilePlan &plan = context.plan;
  const ProductTerm &term = plan.scoreTerms[score].front();
  return (nameOfArray(context, plan.rowOperands[term.row]) + "_dot_" + nameOfArray(context, plan.keyOperands[term.key]))
      .str();
}

std::string nameOfScores(const TileContext &context, unsigned score) {
  return context.plan.folded.scores.size() == 1 ? "scores" : "scores_" + nameOfProducts(context, score);
}

SmallVector<std::string> namesOf(const FoldFacts &facts, const Running &running) {
  const TilePlan &plan = facts.plan;
  SmallVector<std::string> names{nameOfPosition(plan)};
  for (auto [k, scalar] : llvm::enumerate(running.scalars)) {
    AccOp acc = plan.folded.scalars[k].acc;
    if (facts.isReference[k])
      names.push_back(nameOfReference(facts, acc));
    names.push_back(nameOfPartial(facts, acc));
  }
  for (Value started : running.started)
    if (started)
      names.push_back("started");
  for (auto [k, sum] : llvm::enumerate(running.sums)) {
    std::string name = AccOp(plan.folded.accumulators[k].acc).getName().str();
    names.push_back(name);
    for (Value weights : sum.weights)
      if (weights)
        names.push_back(nameOfWeights(plan, k));
  }
  return names;
}

} // namespace moa::tiles
