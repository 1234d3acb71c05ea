//===- TilePlan.cpp - which nests run on tensor cores ---------------------===//
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Support/Shorten.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {

class Planner {
public:
  Planner(ForOp nest, std::string &why)
      : onDemand(nest->getParentOfType<onf::KernelOp>()), why(why) {
    plan.nest = nest;
  }
  std::optional<TilePlan> run();

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool refuseChain(const Twine &found);
  bool findFold();
  bool findOperand(const rows::Factors &factors, Value index, Value inner, int64_t columns,
                   SmallVectorImpl<TileOperand> &operands);
  bool findOperands();
  bool checkEpilogue();

  TilePlan plan;
  rows::Dependence deps;
  OnDemand onDemand;
  std::string &why;
  Type element; // of all operands
};

/// What there is in place of a chain of contractions, and what is needed.
bool Planner::refuseChain(const Twine &found) {
  return refuse(found + "; tensor cores take a chain of two contractions, f(A +.* B) +.* C, "
                        "whose rows are the last axis of the nest, '" +
                rows::getIndexName(plan.nest.getBody().getArguments().back()) + "'");
}

/// What each of several passes computes, up to four: of 'x' over 'm', of 'y' over 'm'.
static std::string describe(ArrayRef<FoldOp> folds) {
  constexpr size_t kShown = 4;
  std::string text;
  for (FoldOp fold : folds.take_front(kShown)) {
    auto accs = rows::getAccs(fold);
    if (accs.empty())
      continue;
    auto named = dyn_cast<NameLoc>(accs.front()->getLoc());
    StringRef written = getText(accs.front()->getLoc());
    StringRef name = named ? named.getName().getValue() : written.empty() ? accs.front().getName() : written;
    text += (", of '" + shorten(name, 60) + "' over '" + fold.getName() + "'").str();
  }
  return folds.size() > kShown ? text + " …" : text;
}

bool Planner::findFold() {
  Block &body = plan.nest.getBody().front();
  if (body.getNumArguments() == 0)
    return refuse("the nest has no axes");
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() != 1)
    return refuse("the nest has " + Twine(folds.size()) + " folds" + describe(folds) +
                  ", where tiles take one");
  plan.fold = folds[0];
  std::string found, over = "the fold over '" + plan.fold.getName().str() + "' ";
  auto folded = rows::planFold(plan.fold, body.getArguments().back(), deps, onDemand, &found);
  bool isChain = folded && !folded->scores.empty() && !folded->carriers.empty();
  if (!isChain && !found.empty() && !(folded && !folded->scores.empty()))
    return refuseChain(found);
  if (!folded || folded->scores.empty())
    return refuseChain(over + "holds no contraction");
  if (folded->carriers.empty())
    return refuseChain(over + "has no state with an axis");
  for (AccOp acc : rows::getAccs(plan.fold)) {
    if (acc.getMonoid() == Monoid::user)
      return refuse("the state '" + acc.getName() + "' has a monoid of the specification");
    if (!acc.getRefs().empty() && acc.getCombine() == ScalarFn::select)
      return refuse("the state '" + acc.getName() + "' starts again when what it refers to changes");
  }
  plan.folded = std::move(*folded);
  return true;
}

static std::string getTypeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// X[…] with one term per axis, `inner` the last and `index` one of the others;
/// the rest are the same for the whole block.
bool Planner::findOperand(const rows::Factors &factors, Value index, Value inner,
                          int64_t columns, SmallVectorImpl<TileOperand> &operands) {
  LoadOp load;
  if (factors.values.size() == 1 && factors.divisors.empty() && !factors.narrow)
    load = rows::getReadElement(factors.values[0]);
  if (!load)
    return refuse("an operand of a contraction is computed, but tiles are copied from arrays");
  Type type = load.getResult().getType();
  StringRef name = rows::getArrayName(load);
  if (!type.isBF16() && !type.isF16())
    return refuse("an operand of a contraction does not have 16 bits: " + name + " has elements of " +
                  getTypeText(type));
  if (element && element != type)
    return refuse("the operands have different types: " + name + " has elements of " + getTypeText(type) +
                  ", others " + getTypeText(element));
  element = type;
  unsigned rank = load.getArray().getType().getRank();
  auto isOfAxis = [&](unsigned axis) {
    StringRef stride = cast<StringAttr>(load.getCoefficients()[axis]).getValue();
    return stride == (name + ".s" + Twine(axis)).str();
  };
  if (load.getTerms().size() != rank || load.getConstant() != "0" ||
      !llvm::all_of(llvm::seq(rank), isOfAxis))
    return refuse("an operand is not addressed axis by axis: subscripts of " + name +
                  " must be indices or quotients, without offset, reversal or remainder");
  if (rank < 2 || rank > 5)
    return refuse("an operand has too few axes or too many: " + name + " has " + Twine(rank) +
                  ", the copy engine takes 2 to 5");
  if (load.getTerms().back() != inner)
    return refuse("an operand's last axis is not the contraction's: " + name + " is not read along '" +
                  rows::getIndexName(inner) + "' on its last axis");
  TileOperand operand{load, 0, columns};
  unsigned found = 0;
  for (unsigned axis = 0; axis + 1 < rank; ++axis) {
    Value term = load.getTerms()[axis];
    if (term == index) {
      operand.rowAxis = axis;
      ++found;
    } else if (deps.on(term, index) || deps.on(term, inner) ||
               deps.on(term, plan.nest.getBody().getArguments().back()) ||
               deps.on(term, plan.fold.getBody().getArgument(0))) {
      return refuse("an operand's address depends on more than its row: the subscript of " + name +
                    " on axis " + Twine(axis) + " varies within a tile");
    }
  }
  if (found != 1)
    return refuse("an operand has no axis of rows: " + name + " is not read along '" +
                  rows::getIndexName(index) + "' on one axis");
  operands.push_back(operand);
  return true;
}

bool Planner::findOperands() {
  Value row = plan.nest.getBody().getArguments().back();
  Value key = plan.fold.getBody().getArgument(0);
  auto has = [](Value index, int64_t extent) {
    return ": '" + rows::getIndexName(index).str() + "' has " + std::to_string(extent) + " indices";
  };
  for (const rows::Score &score : plan.folded.scores) {
    Value inner = score.fold.getBody().getArgument(0);
    if (!score.type.isF32())
      return refuse("a contraction is not summed in f32");
    if (score.extent > 256)
      return refuse("a contraction is longer than 256" + has(inner, score.extent));
    if (score.extent % 8 != 0)
      return refuse("a contraction's length is no multiple of 8, which the copy engine needs" +
                    has(inner, score.extent));
    if (!findOperand(score.row, row, inner, score.extent, plan.rowOperands) ||
        !findOperand(score.key, key, inner, score.extent, plan.keyOperands))
      return false;
  }
  for (const rows::Carrier &carrier : plan.folded.carriers) {
    if (!carrier.type.isF32())
      return refuse("a state with an axis is not summed in f32");
    Value inner = carrier.acc.getValue().getArgument(0);
    if (carrier.extents.size() != 1 || carrier.extents[0] > 256)
      return refuse("a state carries more than one axis of 256" + has(inner, carrier.extents[0]));
    if (carrier.extents[0] % 8 != 0)
      return refuse("an axis of a state is no multiple of 8, which the copy engine needs" +
                    has(inner, carrier.extents[0]));
    if (!findOperand(carrier.key, key, inner, carrier.extents[0], plan.carried))
      return false;
    if (carrier.row.narrow != element)
      return refuse("a computed operand is not rounded to the other's type, as it is without a cast");
  }
  return true;
}

/// Loops behind the fold run over the axis of one carrier.
bool Planner::checkEpilogue() {
  for (auto loop : plan.nest.getBody().getOps<ForOp>()) {
    if (loop.getExtents().size() != 1)
      return refuse("an output loop has several axes");
    StringRef extent = cast<StringAttr>(loop.getExtents()[0]).getValue();
    bool known = llvm::any_of(plan.folded.carriers, [&](const rows::Carrier &carrier) {
      return extent == std::to_string(carrier.extents[0]);
    });
    WalkResult inner = loop.getBody().walk([](Operation *op) {
      return isa<ForOp, FoldOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (!known || inner.wasInterrupted())
      return refuse("an output loop is not over the axis of a state, but over '" +
                    rows::getIndexName(loop.getBody().getArgument(0)) + "'");
  }
  return true;
}

std::optional<TilePlan> Planner::run() {
  if (!findFold() || !findOperands() || !checkEpilogue())
    return std::nullopt;
  return plan;
}

} // namespace

bool moa::contractsHalves(ForOp nest) {
  auto isHalf = [](Type type) { return type.isBF16() || type.isF16(); };
  WalkResult found = nest.walk([&](AccOp acc) {
    if (acc.getMonoid() != Monoid::add)
      return WalkResult::advance();
    if (rows::roundsOperands(acc) && isHalf(*acc.getOperandType()))
      return WalkResult::interrupt();
    auto product = rows::getYielded(acc.getValue()).getDefiningOp<arith::MulFOp>();
    if (!product || product.getLhs() == product.getRhs()) // a square is no contraction
      return WalkResult::advance();
    bool ofHalves = llvm::all_of(product.getOperands(), [&](Value factor) {
      LoadOp load = rows::getReadElement(factor);
      return load && isHalf(load.getResult().getType());
    });
    return ofHalves ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

std::optional<TilePlan> moa::findTiles(ForOp nest, std::string &why) {
  return Planner(nest, why).run();
}

bool moa::isLiftedToTiles(ForOp nest) {
  auto lift = nest.getLift();
  return lift && !lift->empty() &&
         llvm::is_contained(cast<AxisAttr>(lift->getValue().back()).getResources(),
                            static_cast<int64_t>(Resource::warpgroup));
}

std::optional<TilePlan> moa::planTiles(ForOp nest, std::string &why) {
  auto plan = findTiles(nest, why);
  if (!plan)
    return std::nullopt;
  auto pipeline = nest.getPipeline();
  auto keys = plan->fold.getLift();
  if (!pipeline || !keys) {
    why = "it has no pipeline, or its fold is not lifted";
    return std::nullopt;
  }
  auto rows = cast<AxisAttr>(nest.getLift()->getValue().back());
  TileShape &shape = plan->shape;
  shape.warpgroups = rows.getSize(Resource::warpgroup);
  shape.stages = keys->getSize(Resource::stage);
  shape.keys = keys->getSize(Resource::shared);
  shape.consumerRegisters = pipeline->getConsumer();
  shape.producerRegisters = pipeline->getProducer();
  shape.overlap = pipeline->getOverlap();
  shape.descending = pipeline->getDescending();
  shape.groupBytes = pipeline->getGroup();
  shape.repairBound = pipeline->getLazy();
  shape.holdsRows = pipeline->getHeld();
  if (rows.getTile() != shape.rows() || keys->getTile() != shape.stages * shape.keys) {
    why = "its factors are not those of warpgroups and stages";
    return std::nullopt;
  }
  return plan;
}
