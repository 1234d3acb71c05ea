//===- TilePlan.cpp - which nests run on tensor cores ---------------------===//
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "lib/Conversion/ONFToVector/OnDemand.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {

class Planner {
public:
  Planner(ForOp nest, std::string &why)
      : block(nest->getParentOfType<onf::KernelOp>()),
        onDemand(nest->getParentOfType<onf::KernelOp>(), block), why(why) {
    plan.nest = nest;
  }
  std::optional<TilePlan> run();

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool findFold();
  bool findOperand(const rows::Factors &factors, Value index, Value inner, int64_t columns,
                   SmallVectorImpl<TileOperand> &operands);
  bool findOperands();
  bool checkEpilogue();

  TilePlan plan;
  rows::Dependence deps;
  ArgumentBlock block;
  rows::OnDemand onDemand;
  std::string &why;
  Type element; // of all operands
};

bool Planner::findFold() {
  Block &body = plan.nest.getBody().front();
  if (body.getNumArguments() == 0)
    return refuse("the nest has no axes");
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() != 1)
    return refuse("the nest has " + Twine(folds.size()) + " folds");
  plan.fold = folds[0];
  auto folded = rows::planFold(plan.fold, body.getArguments().back(), deps, onDemand);
  if (!folded || folded->scores.empty() || folded->carriers.empty())
    return refuse("the fold is no chain of contractions");
  plan.folded = std::move(*folded);
  return true;
}

/// X[…] with one term per axis, `inner` the last and `index` one of the others;
/// the rest are the same for the whole block.
bool Planner::findOperand(const rows::Factors &factors, Value index, Value inner,
                          int64_t columns, SmallVectorImpl<TileOperand> &operands) {
  if (factors.values.size() != 1 || !factors.divisors.empty() || factors.narrow)
    return refuse("an operand of a contraction is computed");
  LoadOp load = rows::getReadElement(factors.values[0]);
  if (!load)
    return refuse("an operand of a contraction is computed");
  Type type = load.getResult().getType();
  if (!type.isBF16() && !type.isF16())
    return refuse("an operand of a contraction does not have 16 bits");
  if (element && element != type)
    return refuse("the operands have different types");
  element = type;
  unsigned rank = load.getArray().getType().getRank();
  auto kernel = load->getParentOfType<onf::KernelOp>();
  unsigned number = cast<BlockArgument>(load.getArray()).getArgNumber();
  StringRef name = cast<StringAttr>(kernel.getArgNames()[number]).getValue();
  if (load.getTerms().size() != rank || rank < 2 || rank > 5 || load.getConstant() != "0")
    return refuse("an operand is not addressed axis by axis");
  TileOperand operand{load, 0, columns};
  unsigned found = 0;
  for (unsigned axis = 0; axis < rank; ++axis) {
    Value term = load.getTerms()[axis];
    StringRef stride = cast<StringAttr>(load.getCoefficients()[axis]).getValue();
    if (stride != (name + ".s" + Twine(axis)).str())
      return refuse("an operand is not addressed axis by axis");
    if (axis + 1 == rank) {
      if (term != inner)
        return refuse("an operand's last axis is not the contraction's");
    } else if (term == index) {
      operand.rowAxis = axis;
      ++found;
    } else if (deps.on(term, index) || deps.on(term, inner) ||
               deps.on(term, plan.nest.getBody().getArguments().back()) ||
               deps.on(term, plan.fold.getBody().getArgument(0))) {
      return refuse("an operand's address depends on more than its row");
    }
  }
  if (found != 1)
    return refuse("an operand has no axis of rows");
  operands.push_back(operand);
  return true;
}

bool Planner::findOperands() {
  Value row = plan.nest.getBody().getArguments().back();
  Value key = plan.fold.getBody().getArgument(0);
  for (const rows::Score &score : plan.folded.scores) {
    Value inner = score.fold.getBody().getArgument(0);
    if (!score.type.isF32())
      return refuse("a contraction is not summed in f32");
    if (score.extent > 256)
      return refuse("a contraction is longer than 256");
    if (score.extent % 8 != 0)
      return refuse("a contraction's length is no multiple of 8, which the copy engine needs");
    if (!findOperand(score.row, row, inner, score.extent, plan.rowOperands) ||
        !findOperand(score.key, key, inner, score.extent, plan.keyOperands))
      return false;
  }
  for (const rows::Carrier &carrier : plan.folded.carriers) {
    if (!carrier.type.isF32())
      return refuse("a state with an axis is not summed in f32");
    if (carrier.extents.size() != 1 || carrier.extents[0] > 256)
      return refuse("a state carries more than one axis of 256");
    if (carrier.extents[0] % 8 != 0)
      return refuse("an axis of a state is no multiple of 8, which the copy engine needs");
    if (!findOperand(carrier.key, key, carrier.acc.getValue().getArgument(0),
                     carrier.extents[0], plan.carried))
      return false;
    if (carrier.row.narrow != element)
      return refuse("a computed operand is not rounded to the other's type");
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
      return refuse("an output loop is not over the axis of a state");
  }
  return true;
}

std::optional<TilePlan> Planner::run() {
  if (!findFold() || !findOperands() || !checkEpilogue())
    return std::nullopt;
  return plan;
}

} // namespace

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
