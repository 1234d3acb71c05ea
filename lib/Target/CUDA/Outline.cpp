//===- Outline.cpp - repeated steps on fragments as functions -------------===//
//
// Compares steps from all pairs of starting points, and outlines the sequence that saves most text,
// until none saves any. Two sequences are equal if their operations are equal, their values
// correspond one to one, and corresponding values share registers alike.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Outline.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Target/CUDA/Expressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace moa::cuda {

namespace {

using Steps = std::vector<Operation *>;

/// Returns whether an operation is arithmetic of one thread without side effects.
bool isScalar(Operation &op) {
  return isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) ||
         isa<device::SymbolOp, device::ScalarOp, device::ThreadOffsetOp, device::Exp2Op, device::HalfFromBitsOp,
             device::ReciprocalOp>(op);
}

/// Returns whether a function can contain the operation: it works on fragments only.
bool isStep(Operation &op) {
  if (isa<device::ReduceOp, device::AnyOp, device::FillOp>(op))
    return true;
  if (!isa<device::MapOp, device::IfAnyOp, scf::IfOp>(op) || op.getNumResults() == 0 ||
      !llvm::all_of(op.getResults(), isFragment))
    return false;
  return llvm::all_of(op.getRegions(), [&](Region &region) {
    return llvm::all_of(region.getOps(), [&](Operation &inner) {
      return inner.hasTrait<OpTrait::IsTerminator>() || isScalar(inner) || (!isa<device::MapOp>(op) && isStep(inner));
    });
  });
}

int64_t countLines(Operation &op) {
  int64_t lines = 1;
  for (Region &region : op.getRegions()) {
    if (isa<device::MapOp>(op))
      lines += llvm::range_size(region.getOps()) > 6 ? 3 : 0;
    else
      for (Operation &inner : region.getOps())
        lines += isScalar(inner) || inner.hasTrait<OpTrait::IsTerminator>() ? 0 : countLines(inner);
    lines += isa<device::MapOp>(op) ? 0 : 1;
  }
  return lines;
}

/// Maps the values of one sequence to those of another.
class Correspondence {
public:
  explicit Correspondence(const FragmentStorage &storage) : storage(storage) {}

  bool match(Operation *a, Operation *b);
  llvm::DenseMap<Value, Value> forward;
  llvm::SetVector<Value> inputs; // of the first sequence

private:
  bool pair(Value a, Value b);
  bool matchOperand(Value a, Value b);
  bool matchRegions(Operation *a, Operation *b);

  const FragmentStorage &storage;
  llvm::DenseMap<Value, Value> backward, arrays, arraysBack;
};

bool Correspondence::pair(Value a, Value b) {
  auto bind = [](auto &map, Value from, Value to) { return map.try_emplace(from, to).first->second == to; };
  if (a.getType() != b.getType() || !bind(forward, a, b) || !bind(backward, b, a))
    return false;
  return !isFragment(a) ||
         (bind(arrays, storage.of(a), storage.of(b)) && bind(arraysBack, storage.of(b), storage.of(a)));
}

bool Correspondence::matchOperand(Value a, Value b) {
  auto known = forward.find(a);
  if (known != forward.end())
    return known->second == b;
  if (backward.count(b))
    return false;
  if (isa<ArrayType>(a.getType())) // an argument of the program
    return a == b;
  Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
  bool inPlace = x && isWrittenInPlace(*x, storage);
  if (inPlace != (y && isWrittenInPlace(*y, storage)))
    return false;
  if (inPlace) {
    if (x->getName() != y->getName() || x->getAttrDictionary() != y->getAttrDictionary() || a.getType() != b.getType())
      return false;
    return x->getNumOperands() == 0 || matchOperand(x->getOperand(0), y->getOperand(0));
  }
  inputs.insert(a);
  return pair(a, b);
}

bool Correspondence::matchRegions(Operation *a, Operation *b) {
  for (auto [x, y] : llvm::zip_equal(a->getRegions(), b->getRegions())) {
    if (x.getBlocks().size() != y.getBlocks().size())
      return false;
    for (auto [from, to] : llvm::zip(x, y)) {
      if (from.getNumArguments() != to.getNumArguments() || from.getOperations().size() != to.getOperations().size())
        return false;
      for (auto [p, q] : llvm::zip(from.getArguments(), to.getArguments()))
        if (!pair(p, q))
          return false;
      for (auto [p, q] : llvm::zip(from, to))
        if (!match(&p, &q))
          return false;
    }
  }
  return true;
}

bool Correspondence::match(Operation *a, Operation *b) {
  if (a->getName() != b->getName() || a->getAttrDictionary() != b->getAttrDictionary() ||
      a->getNumOperands() != b->getNumOperands() || a->getNumResults() != b->getNumResults() ||
      a->getNumRegions() != b->getNumRegions())
    return false;
  // The uses of a product decide how it is rounded.
  if (isa<arith::MulFOp>(a) && entersLibrary(a->getResult(0)) != entersLibrary(b->getResult(0)))
    return false;
  for (auto [x, y] : llvm::zip(a->getOperands(), b->getOperands()))
    if (!matchOperand(x, y))
      return false;
  if (!matchRegions(a, b))
    return false;
  for (auto [x, y] : llvm::zip(a->getResults(), b->getResults()))
    if (!pair(x, y))
      return false;
  return true;
}

class Finder {
public:
  Finder(device::KernelOp kernel, const FragmentStorage &storage, bool acrossPhases)
      : kernel(kernel), storage(storage), acrossPhases(acrossPhases) {}
  std::vector<Outline> find();

private:
  struct Position {
    size_t stretch = 0, start = 0;
  };
  void collect(Block &block);
  size_t extend(Position a, Position b, size_t limit, Correspondence &values) const;
  /// Finds all disjoint positions of a sequence, after the given two.
  Outline gather(Position a, Position b, size_t length, std::vector<Position> &positions) const;
  int64_t countSaved(const Outline &outline) const;
  void take(const std::vector<Position> &positions, size_t length);
  bool startsStep(const Steps &steps, size_t k) const;

  device::KernelOp kernel;
  const FragmentStorage &storage;
  bool acrossPhases;
  llvm::DenseSet<Operation *> phases; // loops that are not searched
  std::vector<Steps> stretches;
};

/// Collects the steps of a block and its regions in stretches. Only scalars, which can be computed
/// before the stretch, may be between its steps.
void Finder::collect(Block &block) {
  Steps steps;
  auto end = [&] {
    if (!steps.empty())
      stretches.push_back(std::exchange(steps, {}));
  };
  for (Operation &op : block) {
    if (isWrittenInPlace(op, storage) || isScalar(op))
      continue;
    if (isStep(op))
      steps.push_back(&op);
    else
      end();
  }
  end();
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && !acrossPhases)
      if (auto list = findPhases(loop, storage); list.size() > 1)
        phases.insert(list.begin(), list.end());
    if (!isa<device::MapOp>(op) && !phases.count(&op))
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          collect(inner);
  }
}

/// A reduction and the merge into its state are one step.
bool Finder::startsStep(const Steps &steps, size_t k) const {
  auto reduce = k == 0 || k >= steps.size() ? device::ReduceOp() : dyn_cast<device::ReduceOp>(steps[k - 1]);
  return !reduce || findMerge(reduce).getOperation() != steps[k];
}

size_t Finder::extend(Position a, Position b, size_t limit, Correspondence &values) const {
  const Steps &x = stretches[a.stretch], &y = stretches[b.stretch];
  size_t length = 0;
  while (length < limit && a.start + length < x.size() && b.start + length < y.size() &&
         (a.stretch != b.stretch || a.start + length < b.start) &&
         values.match(x[a.start + length], y[b.start + length]))
    ++length;
  while (length && (!startsStep(x, a.start + length) || !startsStep(y, b.start + length)))
    --length;
  return length;
}

Outline Finder::gather(Position a, Position b, size_t length, std::vector<Position> &positions) const {
  Outline outline;
  positions = {a};
  llvm::SetVector<Value> inputs;
  for (size_t stretch = b.stretch; stretch < stretches.size(); ++stretch)
    for (size_t start = stretch == b.stretch ? b.start : 0; start < stretches[stretch].size(); ++start) {
      Correspondence values(storage);
      if ((stretch == positions.back().stretch && start < positions.back().start + length) ||
          !startsStep(stretches[stretch], start) || extend(a, {stretch, start}, length, values) != length)
        continue;
      positions.push_back({stretch, start});
      inputs = values.inputs;
      outline.values.push_back(std::move(values.forward));
    }
  outline.inputs.assign(inputs.begin(), inputs.end());
  outline.values.insert(outline.values.begin(), llvm::DenseMap<Value, Value>());
  if (positions.size() > 1)
    for (auto [value, other] : outline.values[1])
      outline.values.front()[value] = value;
  for (Position position : positions) {
    auto first = stretches[position.stretch].begin() + position.start;
    outline.occurrences.emplace_back(first, first + length);
  }
  for (auto [k, op] : llvm::enumerate(outline.occurrences.front()))
    for (unsigned number = 0; number < op->getNumResults(); ++number)
      if (llvm::any_of(outline.occurrences, [&, at = k](const Steps &steps) {
            return llvm::any_of(steps[at]->getResult(number).getUsers(), [&](Operation *user) {
              Operation *here = steps[at]->getBlock()->findAncestorOpInBlock(*user);
              return !llvm::is_contained(steps, here);
            });
          }))
        outline.outputs.push_back(op->getResult(number));
  return outline;
}

/// Returns the lines saved: those of the further occurrences, minus the function's frame and calls.
int64_t Finder::countSaved(const Outline &outline) const {
  int64_t lines = 0, count = outline.occurrences.size(), words = outline.inputs.size() + outline.outputs.size();
  for (Operation *op : outline.occurrences.front())
    lines += countLines(*op);
  return lines * (count - 1) - 3 - count * (1 + words / 10) - words / 5;
}

/// Splits the stretches at the occurrences of a sequence. The first becomes a stretch of its own, and
/// the steps inside the others are dropped.
void Finder::take(const std::vector<Position> &positions, size_t length) {
  std::vector<Steps> rest;
  llvm::DenseSet<Operation *> written;
  for (Position position : llvm::drop_begin(positions))
    for (size_t k = 0; k < length; ++k)
      stretches[position.stretch][position.start + k]->walk([&](Operation *op) { written.insert(op); });
  for (auto [number, steps] : llvm::enumerate(stretches)) {
    if (written.count(steps.front()) &&
        !llvm::any_of(positions, [&, at = number](Position p) { return p.stretch == at; }))
      continue;
    size_t next = 0;
    auto keep = [&](size_t from, size_t to) {
      if (from < to)
        rest.emplace_back(steps.begin() + from, steps.begin() + to);
    };
    for (auto [k, position] : llvm::enumerate(positions))
      if (position.stretch == number) {
        keep(next, position.start);
        next = position.start + length;
        if (k == 0)
          keep(position.start, next);
      }
    keep(next, steps.size());
  }
  stretches = std::move(rest);
}

std::vector<Outline> Finder::find() {
  collect(kernel.getBody().front());
  std::vector<Outline> outlines;
  for (;;) {
    int64_t most = 1;
    size_t bestLength = 0;
    Outline best;
    std::vector<Position> bestPositions;
    for (Position a; a.stretch < stretches.size(); ++a.stretch)
      for (a.start = 0; a.start < stretches[a.stretch].size(); ++a.start)
        for (Position b{a.stretch, a.start + 1}; b.stretch < stretches.size(); ++b.stretch, b.start = 0)
          for (; b.start < stretches[b.stretch].size(); ++b.start) {
            if (!startsStep(stretches[a.stretch], a.start) || !startsStep(stretches[b.stretch], b.start))
              continue;
            Correspondence values(storage);
            size_t length = extend(a, b, ~size_t(0), values);
            if (length == 0)
              continue;
            std::vector<Position> positions;
            Outline outline = gather(a, b, length, positions);
            if (int64_t saved = countSaved(outline); saved > most) {
              most = saved, bestLength = length;
              best = std::move(outline), bestPositions = std::move(positions);
            }
          }
    if (bestLength == 0)
      return outlines;
    take(bestPositions, bestLength);
    outlines.push_back(std::move(best));
  }
}

} // namespace

std::vector<Outline> findOutlines(device::KernelOp kernel, const FragmentStorage &storage, bool acrossPhases) {
  return Finder(kernel, storage, acrossPhases).find();
}

SmallVector<scf::ForOp> findPhases(scf::ForOp first, const FragmentStorage &storage) {
  SmallVector<scf::ForOp> loops{first};
  auto isOfLoops = [&](Value value) { return llvm::is_contained(loops, value.getDefiningOp()); };
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop) {
      if ((isScalar(*op) || isWrittenInPlace(*op, storage)) && llvm::none_of(op->getOperands(), isOfLoops))
        continue;
      break;
    }
    // The registers hold the initial values of the loop.
    auto isThere = [&](auto pair) {
      auto [init, argument] = pair;
      return isFragment(init) && storage.of(init) == storage.of(argument);
    };
    if (llvm::none_of(loop.getInitArgs(), isOfLoops) || loop.getStep() != first.getStep() ||
        isOfLoops(loop.getLowerBound()) || isOfLoops(loop.getUpperBound()) ||
        !llvm::all_of(llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs()), isThere))
      break;
    loops.push_back(loop);
  }
  return loops;
}

bool isWrittenInPlace(Operation &op, const FragmentStorage &storage) {
  // A quotient is computed once and named.
  if (auto symbol = dyn_cast<device::SymbolOp>(op))
    return symbol.getExpr().str().find_first_of("/%") == std::string::npos || symbol->hasOneUse();
  if (auto fill = dyn_cast<device::FillOp>(op))
    return storage.isCopiedConstant(fill);
  return isa<arith::ConstantOp, device::ScalarOp>(op);
}

device::MapOp findMerge(device::ReduceOp op) {
  auto map = dyn_cast_or_null<device::MapOp>(op->getNextNode());
  if (!map || map.getNumResults() != 1 || map.getInputs().size() != 2 || map.getInputs()[1] != op.getResult() ||
      !op.getResult().hasOneUse() || map.getInputs()[0].getType() != op.getResult().getType())
    return {};
  Block &block = map.getBody().front();
  auto yield = cast<device::YieldOp>(block.getTerminator());
  Operation *merge = yield.getValues()[0].getDefiningOp();
  if (!merge || merge != &block.front() || merge->getNextNode() != yield || merge->getNumOperands() != 2 ||
      merge->getOperand(0) != block.getArgument(0) || merge->getOperand(1) != block.getArgument(1))
    return {};
  bool matches = false;
  switch (op.getMonoid()) {
  case Monoid::add:
    matches = isa<arith::AddFOp>(merge);
    break;
  case Monoid::mul:
    matches = isa<arith::MulFOp>(merge);
    break;
  case Monoid::max:
    matches = isa<arith::MaximumFOp, arith::MaxSIOp>(merge);
    break;
  case Monoid::min:
    matches = isa<arith::MinimumFOp, arith::MinSIOp>(merge);
    break;
  case Monoid::and_:
    matches = isa<arith::AndIOp>(merge);
    break;
  case Monoid::or_:
    matches = isa<arith::OrIOp>(merge);
    break;
  case Monoid::user:
    break;
  }
  return matches ? map : device::MapOp();
}

} // namespace moa::cuda
