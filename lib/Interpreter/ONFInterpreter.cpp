//===- ONFInterpreter.cpp - loops, folds and elements of arrays -----------===//
#include "lib/Interpreter/ONFNodes.h"
#include "lib/Interpreter/UserMonoid.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <optional>

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

namespace {

/// Rows per tile for checks of interval claims if nothing is lifted.
constexpr int64_t kDefaultTile = 16;

struct Nest;

/// A store, or an inner loop nest.
struct Statement {
  explicit Statement(Location loc) : loc(loc) {}
  Location loc;
  Memory *memory = nullptr;
  Node *value = nullptr;
  Element element;
  std::unique_ptr<Nest> nest;
};

struct Nest {
  onf::ForOp op;
  Scope *scope = nullptr;
  std::vector<Node *> indices;
  std::vector<int64_t> extents;
  std::vector<std::vector<int64_t>> orders;
  std::vector<Statement> statements;
  int64_t tileSize = kDefaultTile;
  Tile tile;
  /// For a versioned nest: the array that decides at which indices it runs, and the value there.
  const Memory *choices = nullptr;
  int64_t choice = 0;
  bool runs = true; ///< the pairs of `where` hold
};

class ONFInterpreter final : GraphBuilder {
public:
  ONFInterpreter(const Kernel &kernel, const Symbols &symbols, const KernelInputs &inputs,
                 const InterpretOptions &options)
      : GraphBuilder(kernel, strided, state), strided(symbols), inputs(inputs), options(options) {
    state.setRoundings(options);
  }

  Expected<std::vector<Array>> run(onf::KernelOp op, const Sample *sample);
  /// Set if the row that writes a sampled element was not found from its address, as with a
  /// catenation. There is no result then.
  bool missesRow = false;

private:
  Expected<bool> buildSpecial(Operation *op) override;
  Error makeMemories(onf::KernelOp op);
  Expected<bool> runs(onf::ForOp op);
  bool isOutput(size_t array) const {
    return array >= kernel.argNames.size() && array < kernel.argNames.size() + kernel.resultNames.size();
  }
  bool storesTemporary(const Nest &nest) const;
  Error buildNest(onf::ForOp op, Nest &nest);
  Error buildStatement(Operation *op, Nest &nest);
  Error buildFold(onf::FoldOp op);
  Error buildAcc(onf::AccOp op, AccState *acc);
  void roundOperands(onf::AccOp op, AccState *acc);
  Error buildRegion(Region &region, Scope *&scope, std::vector<Node *> &arguments, Node *&result);
  Expected<bool> buildAt(onf::AtOp op);
  Element buildElement(onf::AccessOpInterface op);
  template <typename AttrT> Expected<std::vector<int64_t>> evaluateAll(ArrayAttr exprs);

  bool isChosen(Nest &nest);
  void execute(Nest &nest);
  void executeStatement(Statement &statement);
  Expected<std::vector<Array>> runWhole();
  Expected<std::vector<Array>> runSample(const Sample &sample);
  void runRow(Nest &nest, const std::vector<int64_t> &row, unsigned output, ArrayRef<int64_t> index);
  std::optional<std::vector<int64_t>> rowOf(const Nest &nest, unsigned output, ArrayRef<int64_t> index);

  Machine state;
  Symbols strided;
  const KernelInputs &inputs;
  const InterpretOptions &options;
  std::vector<std::unique_ptr<Memory>> memories; // inputs, outputs, temporaries
  std::vector<std::unique_ptr<Fold>> folds;
  std::vector<std::unique_ptr<Nest>> nests;
  Nest *currentNest = nullptr;
  /// The loops that read elements of a state with one axis by their own index; null for any other
  /// reader.
  llvm::DenseMap<AccState *, SmallVector<onf::ForOp>> readers;
  /// The output of a sample; stores to other arrays are skipped.
  const Memory *only = nullptr;
};

//===----------------------------------------------------------------------===//
// Construction
//===----------------------------------------------------------------------===//

Error ONFInterpreter::makeMemories(onf::KernelOp op) {
  Block &block = op.getBody().front();
  for (unsigned k = 0; k < block.getNumArguments(); ++k) {
    auto type = cast<ArrayType>(block.getArgument(k).getType());
    auto shape = evaluateShape(type, strided);
    if (!shape)
      return shape.takeError();
    // A temporary of a nest that does not run has no elements.
    if (onf::StoreOp store = op.isTemporary(k) ? op.getStore(k) : onf::StoreOp()) {
      auto isStored = runs(cast<onf::ForOp>(block.findAncestorOpInBlock(*store)));
      if (!isStored)
        return isStored.takeError();
      if (!*isStored)
        shape->assign(shape->size(), 0);
    }
    memories.push_back(std::make_unique<Memory>(op.getArrayName(k), *shape, Form::of(type.getElementType()),
                                                /*hasGaps=*/!op.isTemporary(k)));
    memories.back()->bindStrides(strided);
    if (op.isInput(k))
      memories.back()->fill(inputs.arrays[k]);
  }
  return Error::success();
}

/// Returns whether the pairs of `where` of a nest hold.
Expected<bool> ONFInterpreter::runs(onf::ForOp op) {
  auto pairs = evaluateAll<ExprAttr>(op.getWhere().value_or(ArrayAttr::get(op.getContext(), {})));
  if (!pairs)
    return pairs.takeError();
  for (size_t k = 0; k + 1 < pairs->size(); k += 2)
    if ((*pairs)[k] <= (*pairs)[k + 1])
      return false;
  return true;
}

template <typename AttrT> Expected<std::vector<int64_t>> ONFInterpreter::evaluateAll(ArrayAttr exprs) {
  std::vector<int64_t> values;
  for (auto &&expr : exprs.getAsValueRange<AttrT>()) {
    auto value = evaluate(expr, strided);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

Element ONFInterpreter::buildElement(onf::AccessOpInterface op) {
  Element element;
  std::vector<Node *> terms = nodesOf(op.getTerms());
  auto number = [&](const SymExpr &expr) -> int64_t {
    auto value = evaluate(expr, strided);
    if (value)
      return *value;
    element.fault = llvm::toString(value.takeError());
    return 0;
  };
  for (const onf::Subscript &axis : op.getSubscripts().getAxes()) {
    Element::Index &index = element.indices.emplace_back();
    index.constant = number(axis.constant);
    for (const auto &[term, factor] : axis.factors)
      index.terms.emplace_back(terms[term], number(factor));
  }
  return element;
}

Error ONFInterpreter::buildNest(onf::ForOp op, Nest &nest) {
  auto extents = evaluateAll<ExprAttr>(op.getExtents());
  if (!extents)
    return extents.takeError();
  auto isRun = runs(op);
  if (!isRun)
    return isRun.takeError();
  nest.runs = *isRun;
  nest.op = op;
  nest.extents = std::move(*extents);
  for (auto [k, extent] : llvm::enumerate(nest.extents)) {
    onf::AxisAttr lift;
    if (auto lifts = op.getLift())
      lift = cast<onf::AxisAttr>((*lifts)[k]);
    nest.orders.push_back(liftedOrder(extent, lift));
    if (lift && k + 1 == nest.extents.size())
      nest.tileSize = lift.getTile();
  }
  if (op.getChoices()) {
    nest.choices = memories[cast<BlockArgument>(op.getChoices()).getArgNumber()].get();
    nest.choice = *op.getChoice();
  }
  Block &block = op.getBody().front();
  nest.scope = makeScope(++depth);
  nest.indices = makeArguments(block, nest.scope);
  for (Operation &inner : block)
    if (Error error = buildStatement(&inner, nest))
      return error;
  --depth;
  return Error::success();
}

Error ONFInterpreter::buildStatement(Operation *op, Nest &nest) {
  Statement statement(op->getLoc());
  if (auto loop = dyn_cast<onf::ForOp>(op)) {
    statement.nest = std::make_unique<Nest>();
    if (Error error = buildNest(loop, *statement.nest))
      return error;
  } else if (auto store = dyn_cast<onf::StoreOp>(op)) {
    auto arg = dyn_cast<BlockArgument>(store.getArray());
    if (!arg || arg.getArgNumber() < kernel.argNames.size())
      return makeError(locationText(op->getLoc()) + "a store to an array that is "
                                                    "no output");
    statement.memory = memories[arg.getArgNumber()].get();
    statement.memory->setForm(Form::of(store.getValue().getType()));
    statement.value = nodeOf(store.getValue());
    statement.element = buildElement(store);
  } else {
    return buildOp(op);
  }
  nest.statements.push_back(std::move(statement));
  return Error::success();
}

Error ONFInterpreter::buildRegion(Region &region, Scope *&scope, std::vector<Node *> &arguments, Node *&result) {
  Block &block = region.front();
  scope = makeScope(++depth);
  arguments = makeArguments(block, scope);
  for (Operation &op : block.without_terminator())
    if (Error error = buildOp(&op))
      return error;
  --depth;
  result = nodeOf(cast<onf::YieldOp>(block.getTerminator()).getValues()[0]);
  return Error::success();
}

Error ONFInterpreter::buildAcc(onf::AccOp op, AccState *acc) {
  Type type = op.getResult().getType();
  if (auto array = dyn_cast<ArrayType>(type))
    type = array.getElementType();
  acc->name = op.getName().str();
  acc->monoid = op.getMonoid();
  acc->form = Form::of(type);
  auto user = getUserMonoid(op);
  if (!user)
    return user.takeError();
  acc->user = std::move(*user);
  acc->identity = acc->user ? acc->user->getIdentity() : identityOf(acc->monoid, type);
  acc->combine = op.getCombine();
  auto extents = evaluateAll<ExprAttr>(op.getExtents());
  if (!extents)
    return extents.takeError();
  acc->extents = std::move(*extents);
  for (auto [k, ref] : llvm::enumerate(op.getRefs())) {
    acc->refs.push_back(static_cast<AccState *>(nodeOf(ref)));
    auto value = dyn_cast<FloatAttr>(op.getSingular()[k]);
    if (!value)
      return makeError(locationText(op.getLoc()) + "a singular value that is no float");
    acc->singular.push_back(value.getValueAsDouble());
  }
  if (Error error = buildRegion(op.getValue(), acc->valueScope, acc->indices, acc->value))
    return error;
  if (options.roundsOperands && op.getOperandType() && acc->form.isFloat())
    roundOperands(op, acc);
  if (op.getRepair().empty())
    return Error::success();
  if (Error error = buildRegion(op.getRepair(), acc->rescaleScope, acc->oldAndNew, acc->factor))
    return error;
  auto yield = cast<onf::YieldOp>(op.getRepair().front().getTerminator());
  for (auto [other, coefficient] : llvm::zip_equal(op.getOthers(), yield.getValues().drop_front())) {
    acc->others.push_back(static_cast<AccState *>(nodeOf(other)));
    acc->coefficients.push_back(nodeOf(coefficient));
  }
  return Error::success();
}

/// Returns true if a value is an element of an array, possibly widened.
static bool isElement(Value value) {
  while (auto widened = value.getDefiningOp<arith::ExtFOp>())
    value = widened.getIn();
  return bool(value.getDefiningOp<onf::LoadOp>());
}

/// Rounds computed operands of a product or quotient to the acc's type. A quotient x / y is the
/// product of x and 1 / y. Elements of arrays are not rounded.
void ONFInterpreter::roundOperands(onf::AccOp op, AccState *acc) {
  Value term = cast<onf::YieldOp>(op.getValue().front().getTerminator()).getValues()[0];
  auto type = dyn_cast<FloatType>(*op.getOperandType());
  Operation *product = term.getDefiningOp();
  if (!type || type.getWidth() >= 64 || !isa_and_nonnull<arith::MulFOp, arith::DivFOp>(product))
    return;
  Value x = product->getOperand(0), y = product->getOperand(1);
  bool divides = isa<arith::DivFOp>(product);
  auto rounded = [&](Value operand, bool isRead) -> FloatType {
    return isRead || type.getWidth() >= operand.getType().getIntOrFloatBitWidth() ? FloatType() : type;
  };
  acc->value =
      make<RoundedProduct>(acc->value->scope, op.getLoc(), RoundedProduct::Factor{nodeOf(x), rounded(x, isElement(x))},
                           RoundedProduct::Factor{nodeOf(y), rounded(y, !divides && isElement(y))}, divides);
}

Error ONFInterpreter::buildFold(onf::FoldOp op) {
  folds.push_back(std::make_unique<Fold>(op.getLoc()));
  Fold &fold = *folds.back();
  fold.name = op.getName().str();
  auto extent = evaluate(op.getExtent(), strided);
  if (!extent)
    return extent.takeError();
  fold.extent = *extent;
  fold.order = liftedOrder(*extent, op.getLift().value_or(onf::AxisAttr()));
  fold.bodyScope = makeScope(++depth);
  Block &block = op.getBody().front();
  fold.index = makeArguments(block, fold.bodyScope)[0];
  for (Operation &inner : block.without_terminator()) {
    if (auto guard = dyn_cast<onf::GuardOp>(inner)) {
      fold.guard = nodeOf(guard.getCondition());
    } else if (auto accOp = dyn_cast<onf::AccOp>(inner)) {
      auto *acc = make<AccState>(fold.bodyScope, inner.getLoc());
      if (Error error = buildAcc(accOp, acc))
        return error;
      define(accOp.getResult(), acc);
      fold.accs.push_back(acc);
    } else if (Error error = buildOp(&inner)) {
      return error;
    }
  }
  --depth;
  fold.scope = captureScope(op.getBody());
  fold.hasPieces = op.getPieces() && options.checkPieces;
  if (fold.hasPieces) {
    for (auto piece : op.getPieces()->getAsRange<onf::PieceAttr>())
      fold.pieces.push_back(
          {piece.getVisitLower(), piece.getVisitUpper(), piece.getFullLower(), piece.getFullUpper(), piece.getFull()});
    fold.bounds = nodesOf(op.getBounds());
    fold.tile = &currentNest->tile;
    // The claims depend on the tile of the row.
    Scope *bounds = scopeOf(op.getBounds());
    fold.scope = bounds->depth > fold.scope->depth ? bounds : fold.scope;
    if (currentNest->scope->depth > fold.scope->depth)
      fold.scope = currentNest->scope;
  }
  for (auto [k, result] : llvm::enumerate(op.getResults()))
    define(result, make<FoldResult>(fold.scope, op.getLoc(), fold, unsigned(k)));
  return Error::success();
}

Expected<bool> ONFInterpreter::buildAt(onf::AtOp op) {
  if (!op.getState().getDefiningOp<onf::FoldOp>())
    return makeError(locationText(op.getLoc()) + "onf.at reads a state that is no result of a fold");
  auto *result = static_cast<FoldResult *>(nodeOf(op.getState()));
  auto index = op.getIndices().size() == 1 ? dyn_cast<BlockArgument>(op.getIndices()[0]) : BlockArgument();
  auto loop = index ? dyn_cast<onf::ForOp>(index.getOwner()->getParentOp()) : onf::ForOp();
  bool isInside = loop && isa<onf::ForOp>(loop->getParentOp()) && loop.getExtents().size() == 1;
  readers[result->fold.accs[result->position]].push_back(isInside ? loop : onf::ForOp());
  define(op.getResult(), make<AtNode>(scopeOf(op->getOperands()), op.getLoc(), result, nodesOf(op.getIndices())));
  return true;
}

Expected<bool> ONFInterpreter::buildSpecial(Operation *op) {
  if (auto fold = dyn_cast<onf::FoldOp>(op)) {
    if (Error error = buildFold(fold))
      return error;
    return true;
  }
  if (auto at = dyn_cast<onf::AtOp>(op))
    return buildAt(at);
  if (auto extent = dyn_cast<onf::ExtentOp>(op)) {
    makeExtent(extent.getResult(), evaluate(extent.getExpr(), strided));
    return true;
  }
  auto load = dyn_cast<onf::LoadOp>(op);
  if (!load)
    return false;
  auto arg = dyn_cast<BlockArgument>(load.getArray());
  if (!arg || isOutput(arg.getArgNumber()))
    return makeError(locationText(op->getLoc()) + "a load from an array that is "
                                                  "no input");
  define(load.getResult(),
         make<LoadNode>(scopeOf(load.getTerms()), op->getLoc(), *memories[arg.getArgNumber()], buildElement(load),
                        /*isStored=*/arg.getArgNumber() >= kernel.argNames.size()));
  return true;
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

void ONFInterpreter::executeStatement(Statement &statement) {
  if (statement.nest)
    return execute(*statement.nest);
  if (only && statement.memory != only)
    return;
  Memory &memory = *statement.memory;
  int64_t flat = statement.element.compute(machine, statement.loc, memory);
  Cell value = machine.get(statement.value);
  if (machine.failed)
    return;
  if (memory.store(flat, value) > 1)
    machine.fail(statement.loc,
                 "element " + indexText(memory.indexOf(flat)) + " of '" + memory.getName() + "' is written twice");
}

/// Returns true if the nest runs at the current indices.
bool ONFInterpreter::isChosen(Nest &nest) {
  if (!nest.choices)
    return true;
  std::vector<int64_t> index;
  ArrayRef<int64_t> axes = *nest.op.getChoiceAxes();
  for (int64_t axis : axes)
    index.push_back(machine.get(nest.indices[axis]).i);
  int64_t address = nest.choices->addressOf(index);
  if (!nest.choices->isWritten(address)) {
    machine.fail(nest.op.getLoc(), "element " + indexText(index) + " of '" + nest.choices->getName() +
                                       "' chooses a nest, but was not stored");
    return false;
  }
  return nest.choices->read(address) == static_cast<double>(nest.choice);
}

void ONFInterpreter::execute(Nest &nest) {
  if (!nest.runs)
    return;
  std::vector<int64_t> digits(nest.orders.size(), 0), sizes;
  for (const auto &order : nest.orders)
    sizes.push_back(order.size());
  if (llvm::is_contained(sizes, 0))
    return;
  do {
    machine.enter(*nest.scope);
    for (size_t k = 0; k < digits.size(); ++k) {
      int64_t i = nest.orders[k][digits[k]];
      machine.set(nest.indices[k], ofInt(i));
      nest.tile.first = i / nest.tileSize * nest.tileSize;
      nest.tile.last = std::min(nest.tile.first + nest.tileSize, nest.extents[k]) - 1;
    }
    if (!isChosen(nest))
      continue;
    for (Statement &statement : nest.statements)
      if (!machine.failed)
        executeStatement(statement);
  } while (!machine.failed && nextIndex(digits, sizes));
}

Expected<std::vector<Array>> ONFInterpreter::runWhole() {
  for (auto &nest : nests)
    execute(*nest);
  if (machine.failed)
    return machine.takeError();
  std::vector<Array> outputs;
  for (size_t k = kernel.argNames.size(); isOutput(k); ++k) {
    std::vector<int64_t> missing;
    outputs.push_back(memories[k]->gather(&missing));
    if (!missing.empty())
      return makeError("element " + indexText(missing) + " of output '" + memories[k]->getName() +
                       "' is never written");
  }
  return outputs;
}

/// Returns the indices at which a loop nest writes an element. Every index must be that of an axis
/// of a store.
std::optional<std::vector<int64_t>> ONFInterpreter::rowOf(const Nest &nest, unsigned output, ArrayRef<int64_t> index) {
  onf::StoreOp store;
  onf::ForOp(nest.op).walk([&](onf::StoreOp op) {
    bool isOfOutput = cast<BlockArgument>(op.getArray()).getArgNumber() == kernel.argNames.size() + output;
    if (isOfOutput && !store)
      store = op;
  });
  if (!store || !nest.runs)
    return std::nullopt;
  std::vector<int64_t> row(nest.extents.size(), -1);
  auto place = [&](Value value, int64_t at) {
    auto arg = dyn_cast_or_null<BlockArgument>(value);
    if (arg && arg.getOwner()->getParentOp() == nest.op)
      row[arg.getArgNumber()] = at;
  };
  for (auto [axis, position] : llvm::enumerate(index)) {
    LinearIndex subscript = store.getIndex(axis);
    place(subscript.getValue(), position);
    if (auto parts = onf::getParts(subscript)) {
      auto size = evaluate(parts->size, strided);
      if (!size || *size <= 0)
        return llvm::consumeError(size.takeError()), std::nullopt;
      place(parts->group, position / *size);
      place(parts->member, position % *size);
    }
  }
  for (auto [k, i] : llvm::enumerate(row))
    if (i < 0 || i >= nest.extents[k])
      return std::nullopt;
  return row;
}

/// Runs one row for one element of an output. An inner loop that writes the element at its own
/// index runs only for that index. States that only such loops read are computed only there.
void ONFInterpreter::runRow(Nest &nest, const std::vector<int64_t> &row, unsigned output, ArrayRef<int64_t> index) {
  std::vector<std::pair<Nest *, std::vector<std::vector<int64_t>>>> orders;
  auto restrict = [&](Nest &loop, const std::vector<int64_t> &at) {
    orders.emplace_back(&loop, std::move(loop.orders));
    loop.orders.clear();
    for (int64_t i : at)
      loop.orders.push_back({i});
  };
  restrict(nest, row);
  onf::ForOp inside;
  std::vector<int64_t> needed;
  for (Statement &statement : nest.statements)
    if (auto at = statement.nest ? rowOf(*statement.nest, output, index) : std::nullopt) {
      restrict(*statement.nest, *at);
      inside = statement.nest->op;
      needed = *at;
    }
  for (auto &[acc, loops] : readers)
    if (inside && llvm::all_of(loops, [](onf::ForOp loop) { return bool(loop); }))
      acc->needed = llvm::is_contained(loops, inside) ? needed : std::vector<int64_t>();
  execute(nest);
  for (auto &[acc, loops] : readers)
    acc->needed.reset();
  for (auto &[loop, order] : orders)
    loop->orders = std::move(order);
}

bool ONFInterpreter::storesTemporary(const Nest &nest) const {
  size_t first = kernel.argNames.size() + kernel.resultNames.size();
  return llvm::any_of(nest.statements, [&](const Statement &statement) {
    if (statement.nest)
      return storesTemporary(*statement.nest);
    return llvm::any_of(llvm::drop_begin(memories, first),
                        [&](auto &memory) { return memory.get() == statement.memory; });
  });
}

Expected<std::vector<Array>> ONFInterpreter::runSample(const Sample &sample) {
  Memory &memory = *memories[kernel.argNames.size() + sample.output];
  // Compute all temporaries: the sampled elements may load any of their elements.
  for (auto &nest : nests)
    if (storesTemporary(*nest))
      execute(*nest);
  only = &memory;
  Array elements;
  for (const std::vector<int64_t> &index : sample.indices) {
    int64_t address = memory.addressOf(index);
    for (auto &nest : nests) {
      if (memory.isWritten(address) || machine.failed)
        break;
      if (auto row = rowOf(*nest, sample.output, index))
        runRow(*nest, *row, sample.output, index);
    }
    if (machine.failed)
      return machine.takeError();
    if (!memory.isWritten(address)) {
      missesRow = true;
      return std::vector<Array>();
    }
    elements.data.push_back(memory.read(address));
  }
  elements.shape = {static_cast<int64_t>(elements.data.size())};
  return std::vector<Array>{std::move(elements)};
}

Expected<std::vector<Array>> ONFInterpreter::run(onf::KernelOp op, const Sample *sample) {
  if (Error error = makeMemories(op))
    return error;
  for (Operation &inner : op.getBody().front()) {
    nests.push_back(std::make_unique<Nest>());
    currentNest = nests.back().get();
    if (Error error = buildNest(cast<onf::ForOp>(inner), *currentNest))
      return error;
  }
  return sample ? runSample(*sample) : runWhole();
}

} // namespace

Expected<std::vector<Array>> moa::interp::interpretONF(Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                       const KernelInputs &inputs, const InterpretOptions &options,
                                                       const Sample *sample) {
  auto kernelOp = cast<onf::KernelOp>(op);
  ONFInterpreter interpreter(kernel, symbols, inputs, options);
  auto result = interpreter.run(kernelOp, sample);
  if (!interpreter.missesRow)
    return result;
  llvm::cantFail(std::move(result));
  auto outputs = ONFInterpreter(kernel, symbols, inputs, options).run(kernelOp, nullptr);
  if (!outputs)
    return outputs;
  const Array &whole = (*outputs)[sample->output];
  Array elements;
  for (const std::vector<int64_t> &index : sample->indices) {
    int64_t linear = 0;
    for (auto [i, extent] : llvm::zip_equal(index, whole.shape))
      linear = linear * extent + i;
    elements.data.push_back(whole.data[linear]);
  }
  elements.shape = {static_cast<int64_t>(elements.data.size())};
  return std::vector<Array>{std::move(elements)};
}
