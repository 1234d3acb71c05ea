//===- Memory.cpp - addresses, loads and stores ---------------------------===//
//
// The address of a load is a uniform offset, whose terms are added as far out as possible, plus one
// offset per lane. Lanes at distance one are read as a vector, others are gathered. The distance
// may be known only at run time, so code has both versions.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/Emitter.h"
#include "lib/Support/IndexCast.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

//===----------------------------------------------------------------------===//
// Scratch
//===----------------------------------------------------------------------===//

Value Emitter::scratch(int64_t bytes) {
  Build b = at(0);
  Value pointer = b.address(b.b.getI8Type(), scratchPointer, b.index(scratchBytes));
  scratchBytes += llvm::alignTo(std::max<int64_t>(bytes, 1), 64);
  return pointer;
}

/// Converts a value from its storage type to the element type.
static Value fromStorage(Build b, Type element, Value value) {
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (element.isInteger(1)) {
    Value zero = b.constant(value.getType(), b.b.getI8IntegerAttr(0));
    return b.cmp(arith::CmpIPredicate::ne, value, zero);
  }
  if (element.isIndex())
    return arith::IndexCastOp::create(b.b, b.loc, type, value);
  if (isa<Float8E4M3FNType>(element))
    return arith::BitcastOp::create(b.b, b.loc, type, value);
  return value;
}

static Value toStorage(Build b, Value value) {
  Type element = getElementTypeOrSelf(value), type = storageType(element);
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(type);
  if (element.isInteger(1))
    return arith::ExtUIOp::create(b.b, b.loc, type, value);
  if (element.isIndex())
    return arith::IndexCastOp::create(b.b, b.loc, type, value);
  if (isa<Float8E4M3FNType>(element))
    return arith::BitcastOp::create(b.b, b.loc, type, value);
  return value;
}

Value Emitter::loadState(Build b, Type element, bool row, Value pointer, Value offset) {
  Type type = storageType(element);
  Value where = b.address(type, pointer, offset), value;
  if (isa<VectorType>(offset.getType())) {
    Value all = b.constant(rowType(b.b.getI1Type()), b.b.getBoolAttr(true));
    Value zero = LLVM::ZeroOp::create(b.b, loc, rowType(type));
    value = LLVM::masked_gather::create(b.b, loc, rowType(type), where, all, zero, storageBytes(element));
  } else {
    value = b.load(typeOf(type, row), where, storageBytes(element));
  }
  return fromStorage(b, element, value);
}

void Emitter::storeState(Build b, Value value, Value pointer, Value offset) {
  Type element = getElementTypeOrSelf(value);
  Value where = b.address(storageType(element), pointer, offset);
  b.store(toStorage(b, value), where, storageBytes(element));
}

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

void Emitter::bindLanes(Scope &scope, Value index, Value base, Value last, bool exact) {
  Build b = here();
  auto type = VectorType::get({lanes}, IndexType::get(kernel.getContext()));
  Value step = vector::StepOp::create(b.b, loc, type);
  Value vector = b.add(b.splat(base, lanes), step);
  Value isFull;
  if (!exact) {
    vector = b.min(vector, b.splat(last, lanes));
    isFull = b.sle(b.add(base, lanes - 1), last);
  }
  scope.values[index] = vector;
  scope.lanes[index] = isFull;
}

/// Uses the innermost lane index that `term` depends on.
std::optional<int64_t> Emitter::laneFactor(Value term, Value &full) {
  for (Scope *scope : llvm::reverse(stack))
    for (auto &[index, isFull] : scope->lanes)
      if (deps.on(term, index)) {
        full = isFull;
        return factorOf(term, index, deps);
      }
  return isRow(term) ? std::nullopt : std::optional<int64_t>(0);
}

Emitter::Address Emitter::address(AccessOpInterface op) {
  Address result;
  FlatAddress form = op.getAddress();
  SmallVector<Emitted> uniform{{extent(form.constant), 0}};
  Value stride = at(0).index(0), full;
  bool linear = true;
  for (auto [term, expr] : llvm::zip_equal(op.getTerms(), form.coefficients)) {
    Value coefficient = extent(expr);
    Emitted emitted = eval(term);
    result.depth = std::max(result.depth, emitted.depth);
    result.context = std::max(result.context, emitted.context);
    Build b = at(emitted.depth);
    if (!isa<VectorType>(emitted.value.getType())) {
      uniform.push_back({b.mul(emitted.value, coefficient), emitted.depth});
      continue;
    }
    if (auto factor = laneFactor(term, full))
      stride = at(0).add(stride, at(0).mul(coefficient, *factor));
    else
      linear = false;
    Value product = b.mul(emitted.value, splat({coefficient, 0}));
    Emitted &sum = result.perLane;
    sum.depth = std::max(sum.depth, emitted.depth);
    sum.value = sum.value ? at(sum.depth).add(sum.value, product) : product;
  }
  llvm::stable_sort(uniform, [](const Emitted &x, const Emitted &y) { return x.depth < y.depth; });
  Emitted sum = uniform.front();
  for (const Emitted &term : llvm::drop_begin(uniform))
    sum = {at(term.depth).add(sum.value, term.value), term.depth};
  result.uniform = sum;
  if (linear && result.perLane.value)
    result.stride = stride;
  result.full = full;
  return result;
}

/// Returns the condition that every loop between `op` and the scope at `depth` has an iteration, or
/// null if that is certain. Loads hoisted out of these loops are predicated by it.
Value Emitter::nonEmpty(Operation *op, unsigned depth) {
  Value condition;
  auto require = [&](Value index, const SymExpr &end) {
    auto bound = findBound(index);
    if (bound && bound->depth <= depth)
      return;
    if (end.getConstant().value_or(0) > 0)
      return;
    Build b = at(0);
    Value size = extent(end);
    condition = b.both(condition, b.slt(b.index(0), size));
  };
  for (Operation *parent = op->getParentOp(); parent && parent != kernel; parent = parent->getParentOp()) {
    if (auto fold = dyn_cast<FoldOp>(parent))
      require(fold.getBody().getArgument(0), fold.getExtent());
    ArrayAttr ends;
    if (auto acc = dyn_cast<AccOp>(parent))
      ends = acc.getExtents();
    if (auto loop = dyn_cast<ForOp>(parent))
      ends = loop.getExtents();
    if (ends)
      for (auto [index, end] : llvm::zip(parent->getRegion(0).getArguments(), ends))
        require(index, getSymExpr(end));
  }
  return condition;
}

/// Returns the depth at which to emit a load. A load that may fault stays below all guards and
/// conditions. Other loads leave a guarded scope unless they depend on its index.
unsigned Emitter::depthOfLoad(unsigned depth, bool mayFault) const {
  for (unsigned k = stack.size(); k-- > 0;)
    if (int from = stack[k]->guardedFrom; from >= 0 && (mayFault || depth >= static_cast<unsigned>(from)))
      depth = std::max(depth, k);
  if (mayFault)
    for (unsigned open : openContexts())
      depth = std::max(depth, contexts[open].condition.depth);
  return depth;
}

Value Emitter::neededRows(unsigned depth, bool mayFault) {
  Build b = at(depth);
  SmallVector<unsigned> open;
  if (mayFault)
    open = openContexts();
  Value needed;
  auto require = [&](Value condition) {
    if (needed && isa<VectorType>(needed.getType()) != isa<VectorType>(condition.getType())) {
      needed = b.splat(needed, lanes);
      condition = b.splat(condition, lanes);
    }
    needed = b.both(needed, condition);
  };
  for (unsigned k = 0; k <= depth; ++k)
    if (stack[k]->present)
      require(stack[k]->present);
  for (unsigned k : llvm::reverse(open)) {
    Value condition = contexts[k].condition.value;
    if (!contexts[k].holds)
      condition = b.differs(condition, b.constant(condition.getType(), b.b.getBoolAttr(true)));
    require(condition);
  }
  return needed;
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

Value Emitter::pointerOf(Value array) {
  unsigned number = cast<BlockArgument>(array).getArgNumber();
  return slot(block.getSlot(number), LLVM::LLVMPointerType::get(kernel.getContext()));
}

Value Emitter::loadUniform(Build b, Type element, Value pointer) {
  Value value = b.load(storageType(element), pointer, storageBytes(element));
  return fromStorage(b, element, value);
}

/// Returns the condition under which the lanes are contiguous in memory.
Value Emitter::consecutive(Build b, const Address &address, Value allowed) {
  if (!address.stride)
    return b.truth(false);
  Value condition = b.eq(address.stride, b.index(1));
  return b.both(b.both(condition, address.full), allowed);
}

Value Emitter::loadLanes(unsigned depth, Type element, Value pointer, const Address &address, Value allowed,
                         bool mayFault) {
  // Branches that merge 16-bit floats become library calls on some x86 targets, so move integers.
  Type stored = storageType(element), storage = movedType(element);
  unsigned align = storageBytes(element);
  Value value;
  outside(depth, [&] {
    Value needed = neededRows(depth, mayFault), condition = consecutive(here(), address, allowed);
    if (mayFault && needed)
      condition = here().both(condition, here().all(needed));
    auto contiguous = [&]() -> Values {
      Build b = here();
      Value first = vector::ExtractOp::create(b.b, loc, address.perLane.value, 0);
      Value where = b.address(storage, pointer, first);
      return {b.load(rowType(storage), where, align)};
    };
    auto gathered = [&]() -> Values {
      Build b = here();
      Value where = b.address(storage, pointer, address.perLane.value);
      Value mask = allowed ? b.splat(allowed, lanes) : Value();
      if (needed)
        mask = b.both(mask, b.splat(needed, lanes));
      auto maskType = rowType(b.b.getI1Type());
      if (!mask)
        mask = b.constant(maskType, b.b.getBoolAttr(true));
      Value zero = LLVM::ZeroOp::create(b.b, loc, rowType(storage));
      return {LLVM::masked_gather::create(b.b, loc, rowType(storage), where, mask, zero, align).getResult()};
    };
    auto read = [&]() -> Values {
      return matchPattern(condition, m_Zero()) ? gathered()
                                               : branch(condition, {rowType(storage)}, contiguous, gathered);
    };
    auto nothing = [&]() -> Values { return {LLVM::ZeroOp::create(here().b, loc, rowType(storage))}; };
    value = mayFault && needed ? branch(here().any(needed), {rowType(storage)}, read, nothing)[0] : read()[0];
    if (storage != stored)
      value = LLVM::BitcastOp::create(here().b, loc, rowType(stored), value);
    value = fromStorage(here(), element, value);
  });
  return value;
}

Emitted Emitter::evalLoad(LoadOp load) {
  Type element = load.getResult().getType();
  unsigned number = cast<BlockArgument>(load.getArray()).getArgNumber();
  if (block.isScalar(number))
    return remember(load.getResult(), slot(block.getSlot(number), element), 0);
  Address where = address(load);
  bool mayFault = !onDemand.isInBounds(load);
  unsigned depth = depthOfLoad(where.depth, mayFault);
  unsigned known = mayFault ? context : where.context;
  Value allowed = nonEmpty(load, depth), base = pointerOf(load.getArray());
  Build b = at(where.uniform.depth);
  Value pointer = b.address(storageType(element), base, where.uniform.value);
  if (where.perLane.value)
    return remember(load.getResult(), loadLanes(depth, element, pointer, where, allowed, mayFault), depth, known);
  if (mayFault)
    if (Value needed = neededRows(depth, mayFault))
      allowed = at(depth).both(allowed, at(depth).any(needed));
  if (allowed)
    pointer = at(depth).select(allowed, pointer, arguments);
  return remember(load.getResult(), loadUniform(at(depth), element, pointer), depth, known);
}

std::optional<Emitter::Strided> Emitter::strided(LoadOp load, Value outer, Value first, Value inner) {
  if (block.isScalar(cast<BlockArgument>(load.getArray()).getArgNumber()))
    return std::nullopt;
  Strided result;
  result.outer = strideAlong(load, outer);
  result.inner = strideAlong(load, inner);
  if (!result.outer || !result.inner)
    return std::nullopt;
  bool uniform = true;
  scoped([&](Scope &scope) {
    scope.values[outer] = first;
    scope.values[inner] = here().index(0);
    Address where = address(load);
    uniform = !where.perLane.value;
    if (uniform)
      result.pointer =
          here().address(storageType(load.getResult().getType()), pointerOf(load.getArray()), where.uniform.value);
  });
  return uniform ? std::optional(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

Value Emitter::convert(Build b, Value value, Type element) {
  Type from = getElementTypeOrSelf(value), to = element;
  if (from == element)
    return value;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = vector.clone(element);
  if (isa<FloatType>(from) && isa<FloatType>(element)) {
    unsigned have = from.getIntOrFloatBitWidth(), want = element.getIntOrFloatBitWidth();
    if (have < want)
      return arith::ExtFOp::create(b.b, loc, to, value);
    if ((have == 64 && want == 16) || (have != 32 && want == 8) || have == want)
      return convert(b, convert(b, value, b.b.getF32Type()), element);
    return arith::TruncFOp::create(b.b, loc, to, value);
  }
  if (from.isIndex() || element.isIndex())
    return castIndex(b.b, loc, value, to);
  if (isa<IntegerType>(from) && isa<IntegerType>(element)) {
    if (from.getIntOrFloatBitWidth() > element.getIntOrFloatBitWidth())
      return arith::TruncIOp::create(b.b, loc, to, value);
    if (from.isInteger(1))
      return arith::ExtUIOp::create(b.b, loc, to, value);
    return arith::ExtSIOp::create(b.b, loc, to, value);
  }
  std::string types;
  llvm::raw_string_ostream(types) << from << " to the element type " << element;
  fail(kernel, "cannot convert " + types + "; convert the value in the specification");
  return value;
}

void Emitter::emitStore(StoreOp store, Value laneMask) {
  Type element = store.getArray().getType().getElementType();
  Type storage = storageType(element);
  Value value = this->value(store.getValue());
  Address where = address(store);
  Build b = here();
  Value base = pointerOf(store.getArray());
  Value pointer = b.address(storage, base, where.uniform.value);
  unsigned align = storageBytes(element);
  value = toStorage(b, convert(b, value, element));
  if (!where.perLane.value) {
    if (isa<VectorType>(value.getType()))
      value = vector::ExtractOp::create(b.b, loc, value, 0);
    b.store(value, pointer, align);
    return;
  }
  value = b.splat(value, lanes);
  auto scatter = [&] {
    Build b = here();
    Value address = b.address(storage, pointer, where.perLane.value), bits = value;
    Type type = rowType(movedType(element));
    if (type != rowType(storage))
      bits = LLVM::BitcastOp::create(b.b, loc, type, value);
    LLVM::masked_scatter::create(b.b, loc, bits, address, laneMask, b.b.getI32IntegerAttr(align));
  };
  when(
      consecutive(b, where, Value()),
      [&] {
        Build b = here();
        Value first = vector::ExtractOp::create(b.b, loc, where.perLane.value, 0);
        b.store(value, b.address(storage, pointer, first), align);
      },
      scatter);
}

} // namespace moa::rows
