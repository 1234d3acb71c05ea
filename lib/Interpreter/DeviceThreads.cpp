//===- DeviceThreads.cpp - threads of a device kernel ---------------------===//
#include "lib/Interpreter/DeviceThreads.h"
#include "dialects/Device/IR/LayoutMaps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cstring>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

int64_t Launch::valueOf(device::SymbolOp op) {
  auto [entry, isNew] = symbolValues.try_emplace(op, 0);
  if (!isNew)
    return entry->second;
  auto value = evaluate(op.getExpr(), symbols);
  if (value)
    return symbolValues[op] = *value;
  fail(op.getLoc(), llvm::toString(value.takeError()));
  return 0;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

void Threads::fail(Operation *op, const Twine &message) { launch.fail(op->getLoc(), message + " (" + where + ")"); }

void Threads::failAt(Operation *op, size_t k, const Twine &message) {
  launch.fail(op->getLoc(), message + " (" + where + ", thread " + Twine(threadNumber(k)) + ")");
}

const Register &Threads::find(Value value, Operation *user) {
  auto found = registers.find(value);
  if (found == registers.end() || !found->second.lanes) {
    static thread_local const Register none{Lanes(ofInt(0)), nullptr};
    fail(user, "'" + user->getName().getStringRef() + "' has an operand without a value");
    return none;
  }
  const Register &content = found->second;
  if (!content.contraction && inFlight.empty())
    return content;
  // Contractions run in order, so that one may continue another's accumulator.
  auto next = dyn_cast<device::ContractOp>(user);
  bool isAwait = isa<device::AwaitOp>(user) || (next && next.getC() == value && content.contraction);
  if (content.contraction && !isAwait)
    fail(user, "uses the result of the contraction at " + locationText(content.contraction->op->getLoc()) +
                   "which has not been awaited");
  for (const FlightPtr &other : inFlight)
    if (cast<device::ContractOp>(other->op).getC() == value && !isAwait)
      fail(user, "uses the sum that the contraction at " + locationText(other->op->getLoc()) +
                     "continues, before it is awaited");
  return content;
}

std::optional<int64_t> Threads::getUniform(Value value, Operation *user) {
  Lanes lanes = get(value, user);
  std::optional<int64_t> result;
  for (size_t k = 0; k < lanes.size(); ++k) {
    if (!lanes.isUniform() && !active[k])
      continue;
    if (result && *result != lanes[k].i) {
      fail(user, "needs one index for all threads, but got " + Twine(*result) + " and " + Twine(lanes[k].i));
      return std::nullopt;
    }
    result = lanes[k].i;
  }
  return failed() ? std::nullopt : result;
}

/// Defines a value. Registers that a contraction in flight reads or writes must not change.
void Threads::define(Value value, Register content, Operation *op) {
  for (const FlightPtr &other : inFlight) {
    auto started = cast<device::ContractOp>(other->op);
    if (started.getResult() == value || started.getC() == value || started.getA() == value)
      fail(op, "overwrites registers that the contraction at " + locationText(started.getLoc()) + "still " +
                   (started.getA() == value ? "reads" : "writes") + ": it is not awaited");
  }
  registers[value] = std::move(content);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void Threads::push(Operation *op, Block &block, const Mask &mask) {
  Frame frame{op, &block, block.begin(), active, {}, {}, {}, false, std::nullopt, {}};
  frames.push_back(std::move(frame));
  active = mask;
}

void Threads::start(Block &block, const Mask &mask) {
  active = mask;
  push(block.getParentOp(), block, mask);
}

bool Threads::run(unsigned budget) {
  turns = budget;
  waiting = nullptr;
  while (!frames.empty() && !failed() && turns != 0) {
    Frame &frame = frames.back();
    if (frame.next == frame.block->end() || frame.next->hasTrait<OpTrait::IsTerminator>()) {
      leave(frame.next == frame.block->end() ? nullptr : &*frame.next);
      continue;
    }
    Operation *op = &*frame.next;
    size_t depth = frames.size();
    ++frame.next;
    if (!execute(op)) {
      --frames[depth - 1].next;
      waiting = op;
      return false;
    }
  }
  return frames.empty();
}

void Threads::leave(Operation *terminator) {
  yielded.clear();
  if (terminator)
    for (Value value : terminator->getOperands())
      yielded.push_back(read(value, terminator));
  if (failed())
    return;
  Frame &frame = frames.back();
  if (auto loop = dyn_cast<scf::ForOp>(frame.op)) {
    for (auto [arg, next] : llvm::zip(loop.getRegionIterArgs(), yielded)) {
      // Threads whose loop has ended keep their values.
      bool partly = !active.isAll() && !isa<device::FragmentType>(arg.getType());
      if (partly)
        next.lanes = merge(active, adapt(next.lanes), adapt(registers[arg].lanes));
    }
    for (auto [arg, next] : llvm::zip(loop.getRegionIterArgs(), yielded))
      define(arg, next, loop);
    Cells advanced(frame.index.size());
    for (size_t k = 0; k < advanced.size(); ++k)
      advanced[k] = ofInt(frame.index[k].i + frame.step[k].i);
    frame.index = Lanes(std::move(advanced));
    if (beginIteration(frame))
      return;
    for (auto [arg, result] : llvm::zip(loop.getRegionIterArgs(), loop.getResults()))
      define(result, registers[arg], loop);
  } else if (isa<scf::IfOp>(frame.op)) {
    if (frame.other) {
      frame.first = yielded;
      Block &block = frame.op->getRegion(1).front();
      frame.block = &block;
      frame.next = block.begin();
      active = *frame.other;
      frame.other.reset();
      frame.isSplit = true;
      return;
    }
    finishIf(frame);
  } else if (!finishRegion(frame)) {
    return;
  }
  active = frame.outer;
  frames.pop_back();
}

void Threads::finishIf(Frame &frame) {
  for (auto [k, result] : llvm::enumerate(frame.op->getResults())) {
    Register value = yielded[k];
    // `active` are the threads of the second side.
    if (frame.isSplit)
      value.lanes = merge(active, adapt(value.lanes), adapt(frame.first[k].lanes));
    define(result, std::move(value), frame.op);
  }
}

/// Starts an iteration for the threads whose index is in range. Returns false if there is none.
bool Threads::beginIteration(Frame &frame) {
  if (frame.index.isUniform() && frame.end.isUniform()) {
    if (frame.index[0].i >= frame.end[0].i)
      return false;
  } else {
    Lanes inside;
    Instr less;
    less.code = Code::CmpI;
    less.width = 64;
    less.resultWidth = 1;
    less.predicate = static_cast<int>(arith::CmpIPredicate::slt);
    compute(less, IntegerType::get(frame.op->getContext(), 1), {frame.index, frame.end}, frame.outer, inside);
    active = frame.outer.where(inside, true);
    if (!active.any())
      return false;
  }
  define(cast<scf::ForOp>(frame.op).getInductionVar(), frame.index);
  frame.next = frame.block->begin();
  return true;
}

void Threads::enter(scf::ForOp op) {
  Lanes low = get(op.getLowerBound(), op), high = get(op.getUpperBound(), op), step = get(op.getStep(), op);
  SmallVector<Register> inits;
  for (Value init : op.getInitArgs())
    inits.push_back(read(init, op));
  for (size_t k = 0; k < step.size(); ++k)
    if (step[k].i < 1)
      return failAt(op, k, "a loop's step is " + Twine(step[k].i));
  if (failed())
    return;
  for (auto [arg, init] : llvm::zip(op.getRegionIterArgs(), inits))
    define(arg, init, op);
  push(op, *op.getBody(), active);
  Frame &frame = frames.back();
  frame.index = low;
  frame.end = high;
  frame.step = step;
  if (beginIteration(frame))
    return;
  for (auto [result, init] : llvm::zip(op.getResults(), inits))
    define(result, init, op);
  active = frame.outer;
  frames.pop_back();
}

void Threads::enter(scf::IfOp op) {
  Lanes condition = get(op.getCondition(), op);
  if (failed())
    return;
  Mask yes = active, no = active;
  bool someYes = true, someNo = true;
  if (condition.isUniform()) {
    someYes = condition[0].i;
    someNo = !someYes;
  } else {
    yes = active.where(condition, true);
    no = active.where(condition, false);
    someYes = yes.any();
    someNo = no.any();
  }
  bool hasElse = op.elseBlock();
  if (someYes && someNo && hasElse) {
    for (Type type : op.getResultTypes())
      if (isa<device::FragmentType>(type))
        return fail(op, "threads of one warpgroup take both sides, but the result is a "
                        "fragment");
    push(op, *op.thenBlock(), yes);
    frames.back().other = no;
  } else if (someYes) {
    push(op, *op.thenBlock(), yes);
  } else if (hasElse) {
    push(op, *op.elseBlock(), no);
  }
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Threads::execute(Operation *op) {
  if (isa<arith::ArithDialect>(op->getDialect()) && !isa<arith::SelectOp>(op))
    return scalar(op), true;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<scf::ForOp, scf::IfOp>([&](auto flow) { return enter(flow), true; })
      .Case<arith::SelectOp>([&](auto choice) { return select(choice), true; })
      .Case<device::LoadOp, memref::LoadOp>([&](auto read) { return load(read), true; })
      .Case<device::StoreOp, memref::StoreOp>([&](auto write) { return store(write), true; })
      .Case<device::NextBlockOp, device::StagesOp>([&](auto next) { return beginBlock(next), true; })
      .Case<device::AwaitConsumersOp>([](auto) { return true; }) // each block runs alone
      .Case<device::SignalOp, device::SignalsOp>([&](auto counter) { return count(counter), true; })
      .Case<device::RaiseOp>([&](auto raised) { return raise(raised), true; })
      .Case<device::ExitIfOp>([&](auto exit) { return end(exit), true; })
      .Case<device::LoadRunOp>([&](auto run) { return load(run), true; })
      .Case<device::StoreRunOp>([&](auto run) { return store(run), true; })
      .Case<device::ExchangeOp>([&](auto lanes) { return exchange(lanes), true; })
      .Case<memref::AllocaOp>([&](auto local) {
        auto array = std::make_unique<PrivateArray>();
        array->shape.assign(local.getType().getShape().begin(), local.getType().getShape().end());
        array->count = countOf(array->shape);
        array->cells = Cells(array->count * width);
        array->written.assign(array->count * width, 0);
        privates[local.getResult()] = std::move(array);
        return true;
      })
      .Case<device::SymbolOp>(
          [&](auto symbol) { return define(symbol.getResult(), Lanes(ofInt(launch.valueOf(symbol)))), true; })
      .Case<device::ScalarOp>([&](auto scalar) {
        unsigned number = cast<BlockArgument>(scalar.getArray()).getArgNumber();
        define(scalar.getResult(), Lanes(launch.memories[number]->load(0)));
        return true;
      })
      .Case<device::BlockOp>([&](auto block) { return define(block.getResult(), Lanes(ofInt(launch.block))), true; })
      .Case<device::ThreadOp>([&](auto thread) {
        Cells numbers(width);
        for (size_t k = 0; k < width; ++k)
          numbers[k] = ofInt(threadNumber(k));
        return define(thread.getResult(), Lanes(std::move(numbers))), true;
      })
      .Case<device::Exp2Op>([&](auto) { return approximate(op, approximateExp2), true; })
      .Case<device::HalfFromBitsOp>([&](auto) { return approximate(op, halfFromBits), true; })
      .Case<device::OpaqueOp, device::KeptOp>(
          [&](auto same) { return define(same.getResult(), get(same.getOperand(), op)), true; })
      .Case<device::ReciprocalOp>([&](device::ReciprocalOp reciprocal) {
        approximate(op, reciprocal.getSubnormals() ? roundedReciprocal : approximateReciprocal);
        return true;
      })
      .Default([&](Operation *) {
        if (isa<device::DeviceDialect>(op->getDialect()))
          return special(op);
        return scalar(op), true;
      });
}

bool Threads::special(Operation *op) {
  fail(op, "'" + op->getName().getStringRef() + "' has no meaning for these threads");
  return true;
}

void Threads::scalar(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto [known, isFirst] = launch.constants.try_emplace(op);
    if (isFirst)
      if (auto cell = ofAttribute(constant.getValue()))
        known->second = Lanes(*cell);
    if (known->second)
      return define(constant.getResult(), known->second);
    return fail(op, "a constant that is no scalar");
  }
  auto [entry, isNew] = launch.instrs.try_emplace(op);
  if (isNew)
    entry->second = instrOf(op);
  if (!entry->second)
    return fail(op, "'" + op->getName().getStringRef() + "' has no meaning here");
  SmallVector<Lanes, 3> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand, op));
  if (failed())
    return;
  Lanes result;
  if (const char *why = compute(*entry->second, op->getResult(0).getType(), operands, active, result))
    return fail(op, why);
  define(op->getResult(0), std::move(result));
}

void Threads::approximate(Operation *op, double (*function)(double)) {
  Lanes x = get(op->getOperand(0), op);
  Cells y(x.size());
  for (size_t k = 0; k < y.size(); ++k)
    y[k] = ofFloat(function(x[k].f));
  define(op->getResult(0), Lanes(std::move(y)));
}

void Threads::select(arith::SelectOp op) {
  Lanes condition = get(op.getCondition(), op);
  Register yes = read(op.getTrueValue(), op), no = read(op.getFalseValue(), op);
  if (failed())
    return;
  if (condition.isUniform())
    return define(op.getResult(), condition[0].i ? yes : no, op);
  if (isa<device::FragmentType>(op.getType()))
    return fail(op, "threads of one warpgroup choose different fragments");
  Lanes x = adapt(yes.lanes), y = adapt(no.lanes);
  const Cell *chosen = condition.data(), *ifTrue = x.data(), *ifFalse = y.data();
  size_t stepX = !x.isUniform(), stepY = !y.isUniform();
  Cells out = Cells::some(width);
  for (size_t k = 0; k < width; ++k)
    out[k] = chosen[k].i ? ifTrue[k * stepX] : ifFalse[k * stepY];
  define(op.getResult(), Lanes(std::move(out)));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string interp::outside(int64_t address, const Memory &memory) {
  return "address " + std::to_string(address) + " is no element of '" + memory.getName() + "' of shape " +
         indexText(memory.getShape());
}

void Threads::load(device::LoadOp op) {
  unsigned number = cast<BlockArgument>(op.getArray()).getArgNumber();
  Memory &memory = *launch.memories[number];
  Lanes at = get(op.getOffset(), op);
  if (failed())
    return;
  Cells out(at.size());
  for (size_t k = 0; k < out.size(); ++k) {
    if (!at.isUniform() && !active[k])
      continue;
    if (!memory.isElement(at[k].i))
      return failAt(op, k, "loads outside of its array: " + outside(at[k].i, memory));
    if (number >= launch.firstWorkspace && !memory.isWritten(at[k].i))
      return failAt(op, k,
                    "element " + indexText(memory.indexOf(at[k].i)) + " of '" + memory.getName() +
                        "' in the workspace has not been written");
    out[k] = memory.load(at[k].i);
  }
  define(op.getResult(), Lanes(std::move(out)));
}

/// Returns the address of a counter that an earlier kernel must have set.
std::optional<int64_t> Threads::findCounter(Operation *op, Memory &memory, Value offset) {
  Lanes at = get(offset, op);
  if (failed())
    return std::nullopt;
  if (!at.isUniform())
    return fail(op, "threads of one block have different counters"), std::nullopt;
  if (!memory.isElement(at[0].i))
    return failAt(op, 0, "counts outside of its array: " + outside(at[0].i, memory)), std::nullopt;
  if (!memory.isWritten(at[0].i))
    return fail(op, "counter " + Twine(at[0].i) + " of '" + memory.getName() + "' has not been set"), std::nullopt;
  return at[0].i;
}

void Threads::count(device::SignalOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  auto at = findCounter(op, memory, op.getOffset());
  if (!at)
    return;
  if (width % 32 != 0)
    return fail(op, "one thread signals without the others of its warp");
  for (size_t k = 0; k < width; ++k)
    if (!active[k])
      return failAt(op, k, "does not signal with the others of its warp");
  memory.set(*at, ofInt(memory.load(*at).i + int64_t(width / 32)));
}

/// Runs each block from its beginning instead of taking tiles from the dynamic scheduler. Checks
/// that the counter starts at 0, and that the kernel has as many blocks as it hands out.
void Threads::beginBlock(device::NextBlockOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  auto at = findCounter(op, memory, op.getOffset());
  auto blocks = getUniform(op.getBlocks(), op);
  if (!at || !blocks)
    return;
  if (int64_t count = memory.load(*at).i; count != 0)
    return fail(op,
                "counter " + Twine(*at) + " of '" + memory.getName() + "' starts at " + Twine(count) + " and not at 0");
  if (launch.blocks != *blocks)
    return fail(op, "hands out " + Twine(*blocks) + " blocks, but the kernel has " + Twine(launch.blocks));
  define(op.getResult(), Lanes(ofInt(launch.block)));
}

/// Assigns the block to a stage by a counter. Blocks run one after the other, so stages never
/// overlap. Checks that the counters start at 0, and that the stages have as many blocks as the
/// kernel.
void Threads::beginBlock(device::StagesOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  for (int64_t counter : {int64_t(0), device::kTurns - 1})
    if (!memory.isWritten(counter))
      return fail(op, "counter " + Twine(counter) + " of '" + memory.getName() + "' has not been set");
  if (int64_t done = memory.load(device::kTurns - 1).i; done != 0) // nobody waits here for the increments of blocks
    return fail(op, "counter " + Twine(device::kTurns - 1) + " of '" + memory.getName() + "' starts at " + Twine(done) +
                        " and not at 0");
  int64_t number = memory.load(0).i, before = 0, end = 0;
  std::optional<size_t> stage;
  for (auto [k, value] : llvm::enumerate(op.getCounts())) {
    auto count = getUniform(value, op);
    if (!count)
      return;
    if (!stage && number < end + *count)
      stage = k, before = end;
    end += *count;
  }
  if (launch.blocks != end || !stage)
    return fail(op, "block " + Twine(number) + " of " + Twine(end) + " in stages, but the kernel has " +
                        Twine(launch.blocks));
  memory.set(0, ofInt(number + 1));
  Block &block = op.getStages()[*stage].front();
  define(block.getArgument(0), Lanes(ofInt(number - before)));
  push(op, block, active);
}

void Threads::count(device::SignalsOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  if (auto at = findCounter(op, memory, op.getOffset()))
    define(op.getResult(), Lanes(memory.load(*at)));
}

void Threads::raise(device::RaiseOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  if (!memory.isWritten(0))
    return fail(op, "flag '" + Twine(memory.getName()) + "' has not been set to 0");
  memory.set(0, ofInt(1));
}

/// Ends all threads of the block; the op is in the kernel's top-level block.
void Threads::end(device::ExitIfOp op) {
  auto ends = getUniform(op.getCondition(), op);
  if (ends && *ends)
    frames.back().next = frames.back().block->end();
}

void Threads::store(device::StoreOp op) {
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  Lanes at = get(op.getOffset(), op), value = get(op.getValue(), op);
  if (failed())
    return;
  checkStore(op);
  // The registers of a thread are adjacent lanes.
  for (size_t k = 0; op.getPairs() && k + 1 < width; k += 2) {
    bool isPair = active[k] == active[k + 1] && at[k].i % 2 == 0 && at[k + 1].i == at[k].i + 1;
    if ((active[k] || active[k + 1]) && !isPair)
      return failAt(op, k,
                    "stores no pair: two columns have the offsets " + Twine(at[k].i) + " and " + Twine(at[k + 1].i));
  }
  for (size_t k = 0; k < width && !failed(); ++k) {
    if (!active[k])
      continue;
    if (!memory.isElement(at[k].i))
      return failAt(op, k, "stores outside of its array: " + outside(at[k].i, memory));
    if (memory.store(at[k].i, value[k]) > 1)
      return failAt(
          op, k, "element " + indexText(memory.indexOf(at[k].i)) + " of '" + memory.getName() + "' is written twice");
    if (memory.isCopied)
      launch.stored[{&memory, at[k].i}] = op;
  }
}

PrivateArray *Threads::getPrivate(Value value) {
  auto found = privates.find(value);
  return found == privates.end() ? nullptr : found->second.get();
}

/// Returns nothing after an error.
std::optional<Places> Threads::placesOf(Operation *op, const PrivateArray &array, OperandRange operands) {
  SmallVector<Lanes> indices;
  for (Value index : operands)
    indices.push_back(get(index, op));
  if (failed())
    return std::nullopt;
  bool isUniform = llvm::all_of(indices, [](const Lanes &index) { return index.isUniform(); });
  Places places;
  if (!isUniform)
    places.each.resize(width);
  for (size_t k = 0; k < width; ++k) {
    if (!active[k])
      continue;
    int64_t place = 0;
    for (auto [index, extent] : llvm::zip(indices, array.shape)) {
      if (index[k].i < 0 || index[k].i >= extent) {
        failAt(op, k,
               "index " + Twine(index[k].i) + " is outside of a private array of shape " + indexText(array.shape));
        return std::nullopt;
      }
      place = place * extent + index[k].i;
    }
    (isUniform ? places.first : places.each[k]) = place * int64_t(width);
    if (isUniform)
      break;
  }
  return places;
}

void Threads::load(memref::LoadOp op) {
  PrivateArray *array = getPrivate(op.getMemref());
  if (!array)
    return fail(op, "a private array of other threads");
  auto places = placesOf(op, *array, op.getIndices());
  if (!places)
    return;
  const Cell *cells = array->cells.begin();
  // If it is true, the elements are adjacent.
  bool isWhole = active.isAll() && places->each.empty();
  if (isWhole && !std::memchr(&array->written[places->first], 0, width))
    return define(op.getResult(), Lanes(Cells(cells + places->first, cells + places->first + width)));
  Cells out(width);
  for (size_t k = 0; k < width; ++k) {
    if (!active[k])
      continue;
    int64_t place = (*places)[k];
    if (!array->written[place])
      return failAt(op, k, "reads an element of a private array that was never written");
    out[k] = cells[place];
  }
  define(op.getResult(), Lanes(std::move(out)));
}

void Threads::store(memref::StoreOp op) {
  PrivateArray *array = getPrivate(op.getMemref());
  if (!array)
    return fail(op, "a private array of other threads");
  auto places = placesOf(op, *array, op.getIndices());
  Lanes value = get(op.getValue(), op);
  if (failed())
    return;
  for (size_t k = 0; k < width; ++k) {
    if (!active[k])
      continue;
    int64_t place = (*places)[k];
    array->cells[place] = value[k];
    array->written[place] = 1;
  }
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Calls `element` for every existing element of every thread's run, with the thread, the array,
/// the element's address, and its place in the private array.
template <typename OpT, typename F> void Threads::overRun(OpT op, F element) {
  PrivateArray *array = getPrivate(op.getBuffer());
  if (!array)
    return fail(op, "a private array of other threads");
  Memory &memory = *launch.memories[cast<BlockArgument>(op.getArray()).getArgNumber()];
  Lanes first = get(op.getOffset(), op), stride = get(op.getStride(), op), count = get(op.getCount(), op);
  SmallVector<Lanes> rows;
  for (Value index : op.getAt())
    rows.push_back(get(index, op));
  int64_t length = array->shape.back(), runs = 1, step = length;
  if constexpr (std::is_same_v<OpT, device::LoadRunOp>)
    if (op.getStep())
      step = *op.getStep(), runs = array->shape[array->shape.size() - 2];
  int64_t aligned = op.getAligned() ? device::countAligned(op.getBuffer().getType()) : 0;
  for (size_t k = 0; k < width && !failed(); ++k) {
    if (!active[k])
      continue;
    int64_t row = 0;
    for (auto [index, extent] : llvm::zip(rows, array->shape)) {
      if (index[k].i < 0 || index[k].i >= extent)
        return failAt(
            op, k, "row " + Twine(index[k].i) + " is outside of a private array of shape " + indexText(array->shape));
      row = row * extent + index[k].i;
    }
    if (aligned && (stride[k].i != 1 || first[k].i % aligned != 0))
      return failAt(op, k,
                    "a run that is said to be aligned has stride " + Twine(stride[k].i) + " and begins at element " +
                        Twine(first[k].i));
    for (int64_t e = 0, start = 0, inRun = 0; e < runs * length && !failed(); ++e, ++inRun) {
      if (inRun == length) {
        inRun = 0;
        start += step;
      }
      int64_t column = start + inRun, address = first[k].i + column * stride[k].i;
      size_t place = (row * runs * length + e) * width + k;
      if (column >= count[k].i) {
        if constexpr (std::is_same_v<OpT, device::LoadRunOp>)
          array->written[place] = 0; // its content is undefined
        continue;
      }
      if (!memory.isElement(address))
        return failAt(op, k, "a run reaches outside of its array: " + outside(address, memory));
      element(k, memory, address, place);
    }
  }
}

void Threads::load(device::LoadRunOp op) {
  PrivateArray *array = getPrivate(op.getBuffer());
  unsigned number = cast<BlockArgument>(op.getArray()).getArgNumber();
  overRun(op, [&](size_t k, Memory &memory, int64_t address, size_t place) {
    if (number >= launch.firstWorkspace && !memory.isWritten(address))
      return failAt(op, k,
                    "element " + indexText(memory.indexOf(address)) + " of '" + memory.getName() +
                        "' in the workspace has not been written");
    array->cells[place] = memory.load(address);
    array->written[place] = 1;
  });
}

void Threads::store(device::StoreRunOp op) {
  PrivateArray *array = getPrivate(op.getBuffer());
  overRun(op, [&](size_t k, Memory &memory, int64_t address, size_t place) {
    if (!array->written[place])
      return failAt(op, k, "stores an element of a private array that was never written");
    if (memory.store(address, array->cells[place]) > 1)
      return failAt(
          op, k, "element " + indexText(memory.indexOf(address)) + " of '" + memory.getName() + "' is written twice");
    if (memory.isCopied)
      launch.stored[{&memory, address}] = op;
  });
}

/// Exchanges values between lanes of a warp, or of a group of lanes. All of them must be active.
void Threads::exchange(device::ExchangeOp op) {
  Lanes x = get(op.getOperand(), op);
  if (failed())
    return;
  size_t group = op.getGroup().value_or(width);
  for (size_t k = 0; k < width; ++k) {
    auto others = llvm::seq(k - k % group, k - k % group + group);
    if (!active[k] && llvm::any_of(others, [&](size_t other) { return active[other]; }))
      return failAt(op, k, "lanes exchange values, but this one is not there");
  }
  Cells y(width);
  for (size_t k = 0; k < width; ++k)
    if (active[k])
      y[k] = x[k ^ op.getMask()];
  define(op.getResult(), Lanes(std::move(y)));
}
