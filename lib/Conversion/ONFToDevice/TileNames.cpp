//===- TileNames.cpp - names of values in tile kernels --------------------===//
//
// Emitted text names values by their role in the fold and the schedule. A state that the user has
// named keeps its name; one that is named after its monoid gets the name of its role. For example,
// the maximum that other states are rescaled by is the running maximum.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToDevice/TileKernel.h"

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

/// Returns the name of the position of a tile among those of a block, unless an axis has it.
std::string TileKernel::nameOfPosition() {
  auto isAxis = [&](StringRef name) {
    return plan.fold.getName() == name || llvm::any_of(plan.nest.getNames(), [&](Attribute axis) {
             return cast<StringAttr>(axis).getValue() == name;
           });
  };
  return !isAxis("n") ? "n" : !isAxis("t") ? "t" : "tile_number";
}

/// Returns the name of a state of a whole row, for example `row_sum`.
std::string TileKernel::nameOfRow(AccOp acc) {
  std::string name = nameInProgram(acc);
  return !name.empty() ? name : isExistence(acc) ? "row_has_keys" : ("row_" + wordOf(acc.getMonoid())).str();
}

/// Returns the name of a state's part in each lane, for example `partial_sum`.
std::string TileKernel::nameOfPartial(AccOp acc) {
  unsigned k = numberOf(acc.getResult());
  std::string name = nameInProgram(acc);
  bool isRunning = isReference[k] && lazy;
  if (!name.empty())
    return (isRunning ? "running_" : "partial_") + name;
  if (isExistence(acc))
    return "has_keys";
  return ((isRunning ? "running_" : isReference[k] ? "lane_" : "partial_") + wordOf(acc.getMonoid())).str();
}

/// Returns the name of the value that other states are relative to: the running maximum or, with
/// conditional rescaling, the one at the last rescale.
std::string TileKernel::nameOfReference(AccOp acc) {
  std::string name = nameInProgram(acc);
  return (lazy ? "reference_" : "running_") + (name.empty() ? wordOf(acc.getMonoid()).str() : name);
}

/// Returns the name of a state's terms in a tile, reduced in each lane: for example `tile_max`.
std::string TileKernel::nameInTile(AccOp acc) {
  std::string name = nameInProgram(acc);
  return "tile_" + (name.empty() ? wordOf(acc.getMonoid()).str() : name);
}

/// Returns the name of the tile of an accumulator's row operand. Terms of a row sum are
/// probabilities before the division by the sum.
std::string TileKernel::nameOfWeights(unsigned accumulator) {
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

/// Returns the name of a score's products, after the arrays that are contracted: `Q_dot_K`.
std::string TileKernel::nameOfProducts(unsigned score) {
  const ProductTerm &term = plan.scoreTerms[score].front();
  auto nameOf = [&](const TileOperand &operand) {
    Value array = LoadOp(operand.load).getArray();
    return program.getAllNames()[cast<BlockArgument>(array).getArgNumber()].str();
  };
  return nameOf(plan.rowOperands[term.row]) + "_dot_" + nameOf(plan.keyOperands[term.key]);
}

/// Returns the name of the scores of a tile after scaling and masking.
std::string TileKernel::nameOfScores(unsigned score) {
  return plan.folded.scores.size() == 1 ? "scores" : "scores_" + nameOfProducts(score);
}

} // namespace moa::tiles
