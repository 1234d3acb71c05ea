//===- ThreadRows.cpp - kernels with one thread per row -------------------===//
//
// Every nest can run so. The last axis is cut into tiles of as many rows as a block has threads. A
// block takes one tile and one index of every other axis.
//
//===----------------------------------------------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Conversion/ONFToVector/Running.h"

using namespace mlir;
using namespace moa;

namespace {
/// Emits one nest as a kernel with a thread per row.
class RowKernel {
public:
  RowKernel(onf::ForOp nest, device::ProgramOp program, unsigned number, int64_t threads)
      : nest(nest), program(program), kernelNumber(number), threads(threads), b(program.getContext()),
        running(rows::findRunningFold(nest)) {}
  LogicalResult run();

private:
  SymExpr blocks();
  void bindIndices(ScalarCode &code);
  void statements(ScalarCode &code, Block &block);
  void runFold(ScalarCode &code);
  const SymExpr &extent(unsigned axis) { return getSymExpr(nest.getExtents()[axis]); }
  SymExpr tiles() {
    const SymExpr &last = extent(nest.getExtents().size() - 1);
    return SymExpr::floorDiv(last + SymExpr(threads - 1), SymExpr(threads));
  }

  onf::ForOp nest;
  device::ProgramOp program;
  unsigned kernelNumber;
  int64_t threads;
  OpBuilder b;
  std::optional<rows::RunningFold> running; // along an axis that no blocks divide
  Value inside;                             // whether this thread has a row; null: always
};
} // namespace

SymExpr RowKernel::blocks() {
  unsigned rank = nest.getExtents().size();
  if (rank == 0)
    return 1;
  SymExpr count = tiles();
  for (unsigned axis = 0; axis + 1 < rank; ++axis)
    if (!running || axis != running->axis)
      count = extent(axis) * count;
  return count;
}

/// Binds the indices: block = ((i0 · n1 + i1) · … ) · tiles + tile; the last index is tile ·
/// threads + thread.
void RowKernel::bindIndices(ScalarCode &code) {
  Value thread = device::ThreadOp::create(b, code.loc, b.getIndexType());
  int64_t rank = nest.getExtents().size();
  if (rank == 0) {
    inside = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, thread, code.index(0));
    return;
  }
  auto nameOf = [&](unsigned axis) { return cast<StringAttr>(nest.getNames()[axis]).getValue(); };
  Value rest = device::BlockOp::create(b, code.loc, b.getIndexType());
  // The rest after the last division is the first index.
  auto digit = [&](Value radix, unsigned left, StringRef name) -> Value {
    if (left == 0)
      return rest;
    // At most the number of blocks, so that divisions have 32 bits.
    radix = code.narrow(radix);
    Value result = arith::RemUIOp::create(b, code.named(name), rest, radix);
    rest = arith::DivUIOp::create(b, left == 1 ? code.named(nameOf(0)) : code.loc, rest, radix);
    return result;
  };
  Value tile = digit(code.symbol(tiles()), rank - 1 - running.has_value(), "tile");
  Value first = arith::MulIOp::create(b, code.loc, tile, code.index(threads));
  code.row = arith::AddIOp::create(b, code.named(nameOf(rank - 1)), first, thread);
  Block &body = nest.getBody().front();
  code.bind(body.getArgument(rank - 1), code.row);
  for (int64_t axis = rank - 2; axis >= 0; --axis)
    if (!running || axis != running->axis)
      code.bind(body.getArgument(axis),
                digit(code.symbol(extent(axis)), axis - (running && running->axis < axis), nameOf(axis)));
  inside = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, code.row, code.symbol(extent(rank - 1)));
}

/// Emits stores and loops in order. Everything else is emitted where it is needed.
void RowKernel::statements(ScalarCode &code, Block &block) {
  for (Operation &op : block) {
    code.loc = withoutName(op.getLoc());
    if (auto fold = dyn_cast<onf::FoldOp>(op)) {
      if (!running)
        emitFold(code, fold);
    } else if (auto store = dyn_cast<onf::StoreOp>(op))
      code.store(store);
    else if (auto loop = dyn_cast<onf::ForOp>(op)) {
      std::function<void(unsigned)> inner = [&](unsigned axis) {
        if (axis == loop.getExtents().size())
          return statements(code, loop.getBody().front());
        const SymExpr &size = getSymExpr(loop.getExtents()[axis]);
        StringRef name = cast<StringAttr>(loop.getNames()[axis]).getValue();
        Value end = code.symbol(size);
        code.loop(code.index(0), end, name, [&](Value index) {
          code.bind(loop.getBody().getArgument(axis), index);
          inner(axis + 1);
        });
      };
      inner(0);
    }
  }
}

/// Adds a term to a state of a running fold. A sum has two values, the second for compensation.
static void addTerm(ScalarCode &code, OpBuilder &b, onf::AccOp acc, MutableArrayRef<Value> state, Value term) {
  if (!rows::isPureSum(acc)) {
    state[0] = buildMonoid(b, code.loc, acc.getMonoid(), state[0], term);
    return;
  }
  auto [sum, lost] = sumAndRest(code, state[0], term);
  state[0] = sum;
  state[1] = arith::AddFOp::create(b, code.loc, state[1], lost);
}

/// Runs the axis of a running fold (scan) in order, in steps of several indices whose terms are
/// loaded together. At each index, the states so far are stored, then the next term is added.
void RowKernel::runFold(ScalarCode &code) {
  constexpr int64_t together = 16;
  onf::FoldOp fold = running->fold;
  SmallVector<onf::AccOp> accs = rows::getAccs(fold);
  Value axis = nest.getBody().getArgument(running->axis), j = fold.getBody().getArgument(0);
  Value end = code.symbol(fold.getExtent());
  auto identityOf = [&](onf::AccOp acc) {
    return code.constant(cast<TypedAttr>(getIdentity(acc.getMonoid(), acc.getResult().getType())));
  };
  ScalarCode::Values inits;
  SmallVector<unsigned> firsts;
  std::vector<std::string> names{"step"};
  for (onf::AccOp acc : accs) {
    firsts.push_back(inits.size());
    inits.append(rows::isPureSum(acc) ? 2 : 1,
                 identityOf(acc)); // a sum, and its rounding errors
    names.push_back(acc.getName().str());
    if (rows::isPureSum(acc))
      names.push_back(acc.getName().str() + "_rest");
  }
  // The factor of each weight per step of the axis.
  SmallVector<ScalarCode::Values> steps(accs.size());
  code.open();
  code.bind(axis, code.index(2));
  code.bind(j, code.index(0));
  for (auto [weights, factors] : llvm::zip_equal(running->weights, steps))
    for (Value weight : weights)
      factors.push_back(code.eval(weight));
  code.close();
  SymExpr count = SymExpr::floorDiv(fold.getExtent() + SymExpr(together), SymExpr(together));
  Value numSteps = code.symbol(count);
  code.loop(code.index(0), numSteps, inits, names, [&](Value step, ValueRange olds) {
    Value first = arith::MulIOp::create(b, code.named("first"), step, code.index(together));
    SmallVector<ScalarCode::Values> terms(together);
    ScalarCode::Values counts, places; // steps so far, and the index of the axis there
    for (int64_t k = 0; k < together; ++k) {
      counts.push_back(arith::AddIOp::create(b, code.named(fold.getName()), first, code.index(k)));
      places.push_back(running->descends
                           ? arith::SubIOp::create(b, code.named(fold.getName()), end, counts[k]).getResult()
                           : counts[k]);
      Value exists = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, counts[k], end);
      SmallVector<Type> types;
      for (onf::AccOp acc : accs)
        types.push_back(acc.getResult().getType());
      terms[k] = code.branch(
          exists, types,
          [&] {
            code.bind(j, running->descends ? arith::SubIOp::create(b, code.loc, places[k], code.index(1)).getResult()
                                           : places[k]);
            for (auto &weights : running->weights) // of the newest term
              for (Value weight : weights)
                code.bind(weight, code.constant(b.getFloatAttr(weight.getType(), 1)));
            ScalarCode::Values values;
            for (onf::AccOp acc : accs)
              values.push_back(code.eval(rows::getYielded(acc.getValue())));
            return values;
          },
          [&] {
            ScalarCode::Values none;
            for (onf::AccOp acc : accs)
              none.push_back(identityOf(acc));
            return none;
          });
    }
    ScalarCode::Values states(olds);
    for (int64_t k = 0; k < together; ++k) {
      Value isStored = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::sle, counts[k], end);
      code.when(isStored, [&] {
        code.bind(axis, places[k]);
        for (auto [acc, at, result] : llvm::zip_equal(accs, firsts, fold.getResults()))
          code.bind(result, rows::isPureSum(acc)
                                ? arith::AddFOp::create(b, code.loc, states[at], states[at + 1]).getResult()
                                : states[at]);
        statements(code, nest.getBody().front());
      });
      for (auto [acc, at, factors, term] : llvm::zip_equal(accs, firsts, steps, terms[k])) {
        MutableArrayRef<Value> state = MutableArrayRef(states).slice(at, rows::isPureSum(acc) ? 2 : 1);
        for (Value factor : factors) {
          if (k == 0) { // before the first term, whatever the factor is
            Value isFirst = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::eq, step, code.index(0));
            Value one = code.constant(b.getFloatAttr(factor.getType(), 1));
            factor = arith::SelectOp::create(b, code.loc, isFirst, one, factor);
          }
          for (Value &part : state)
            part = arith::MulFOp::create(b, code.loc, part, factor);
        }
        addTerm(code, b, acc, state, term);
      }
    }
    return states;
  });
}

LogicalResult RowKernel::run() {
  b.setInsertionPointToEnd(&program.getBody().front());
  beginKernel(b, nest, program, Twine(kernelNumber), blocks(), threads);
  ScalarCode code(b, mapArrays(nest, program), nest.getLoc());
  Value chosen = nest.buildChoice();
  bindIndices(code);
  if (chosen)
    inside = code.both(code.eval(chosen), inside);
  code.when(inside, [&] { running ? runFold(code) : statements(code, nest.getBody().front()); });
  return failure(code.failed);
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
class RowMatch final : public FormMatch {
public:
  explicit RowMatch(onf::ForOp nest) : nest(nest) {}
  DictionaryAttr describe() final { return DictionaryAttr::get(nest.getContext()); }
  LogicalResult lower(device::ProgramOp program, unsigned number) final {
    auto lift = nest.getLift();
    // A nest without axes has one element.
    int64_t threads = lift->empty() ? 128 : cast<onf::AxisAttr>(lift->getValue().back()).getTile();
    return RowKernel(nest, program, number, threads).run();
  }

private:
  onf::ForOp nest;
};
} // namespace

static Match<std::unique_ptr<FormMatch>> matchRows(onf::ForOp nest) { return std::make_unique<RowMatch>(nest); }

const KernelForm moa::forms::rows = {kRowsForm, "threads", matchRows};
