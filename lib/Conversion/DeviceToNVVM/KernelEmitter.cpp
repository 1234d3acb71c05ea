//===- KernelEmitter.cpp - a device kernel as an llvm.func ----------------===//
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"

using namespace mlir;

namespace moa::nvvm {

// Shared memory is one array, declared in the same way by every kernel of a module.
static constexpr StringRef kShared = "moa_shared";

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Returns the type of a parameter; the caller passes a boolean as a byte.
Type KernelEmitter::parameterType(unsigned argument) {
  auto program = cast<device::ProgramOp>(kernel->getParentOp());
  auto array = cast<ArrayType>(program.getBody().getArgument(argument).getType());
  if (array.getRank() != 0 || argument >= program.getArgNames().size())
    return LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  Type element = array.getElementType();
  return element.isInteger(1) ? b.getI8Type() : element;
}

LLVM::LLVMFuncOp KernelEmitter::createFunction() {
  SmallVector<Type> types;
  types.append(launch.parameters.arrays.size(), LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace));
  auto generic = LLVM::LLVMPointerType::get(b.getContext());
  unsigned firstMap = types.size();
  types.append(launch.parameters.maps.size(), generic);
  for (unsigned scalar : launch.parameters.scalars)
    types.push_back(parameterType(scalar));
  types.append(launch.parameters.symbols.size(), b.getI64Type());
  b.setInsertionPointToEnd(module.getBody());
  auto function = LLVM::LLVMFuncOp::create(b, kernel.getLoc(), launch.name,
                                           LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types));
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    b.getDenseI32ArrayAttr({static_cast<int32_t>(launch.threads), 1, 1}));
  if (kernel.getCluster())
    function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                      b.getDenseI32ArrayAttr({static_cast<int32_t>(*kernel.getCluster()), 1, 1}));
  if (launch.sharedBytes)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      b.getI32IntegerAttr(static_cast<int32_t>(launch.residents)));
  for (auto [k, array] : llvm::enumerate(launch.parameters.arrays)) {
    // An array that an earlier launch writes changes until the wait, so it must not count as
    // constant. Otherwise no output overlaps another array, which the host has checked.
    if (launch.isNoAlias(array))
      function.setArgAttr(k, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    if (!launch.writes(array))
      function.setArgAttr(k, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
  auto descriptor = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  for (unsigned k = 0; k != launch.parameters.maps.size(); ++k) {
    function.setArgAttr(firstMap + k, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(descriptor));
    function.setArgAttr(firstMap + k, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(64));
    function.setArgAttr(firstMap + k, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
  }
  return function;
}

void KernelEmitter::bindParameters(LLVM::LLVMFuncOp function) {
  unsigned next = 0;
  for (unsigned array : launch.parameters.arrays)
    parameters[array] = function.getArgument(next++);
  for (const gpu::TensorMap &map : launch.parameters.maps)
    maps[map.name] = function.getArgument(next++);
  for (unsigned scalar : launch.parameters.scalars)
    parameters[scalar] = function.getArgument(next++);
  for (const std::string &symbol : launch.parameters.symbols)
    symbols[symbol] = function.getArgument(next++);
}

LogicalResult KernelEmitter::run() {
  LLVM::LLVMFuncOp function = createFunction();
  if (launch.sharedBytes && !module.lookupSymbol(kShared)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, kernel.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                           LLVM::Linkage::External, kShared, Attribute(), /*alignment=*/1024, kSharedSpace);
  }
  Block *entry = function.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  to.setEntry(*entry);
  to.loc = kernel.getLoc();
  bindParameters(function);
  // An overlapping launch (PDL) does not wait, except for an extra last block. So this launch ends
  // after the earlier ones, and a later wait for it covers them too.
  if (launch.overlapsPrevious)
    to.awaitAsLastBlock(/*exits=*/true);
  if (launch.idle) {
    auto branch = scf::IfOp::create(b, to.loc, to.hasNothingToDo(parameters[*launch.idle]),
                                    /*withElseRegion=*/true);
    b.setInsertionPointToStart(branch.thenBlock());
    to.awaitAsLastBlock(/*exits=*/false);
    b.setInsertionPointToStart(branch.elseBlock());
  }
  if (launch.follows && !launch.overlapsPrevious)
    to.awaitEarlierLaunches();
  if (launch.letsNextStart)
    to.letNextLaunchStart();
  // After the wait, arrays of earlier launches are constant. Addresses that are known only from
  // here on keep loads from moving before the wait. One address serves all loads of an array,
  // because one per load costs registers where they are loaded in tiles.
  for (unsigned array : launch.parameters.arrays)
    if (launch.awaits(array))
      parameters[array] = to.opaque(parameters[array]);
  if (!hasRoles() && device::usesLanes(kernel))
    bindThread();
  emitBlock(kernel.getBody().front());
  b.setInsertionPointToEnd(entry); // after the code that an exit skips
  LLVM::ReturnOp::create(b, kernel.getLoc(), ValueRange());
  return failure(failed);
}

Value KernelEmitter::sharedAddress(int64_t byte) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  Value base = LLVM::AddressOfOp::create(b, to.loc, type, kShared);
  return to.add(LLVM::PtrToIntOp::create(b, to.loc, b.getI32Type(), base), byte);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Type KernelEmitter::scalarType(Type type) {
  if (isa<Float8E4M3FNType>(type)) // a byte
    return IntegerType::get(type.getContext(), 8);
  return type.isIndex() ? IntegerType::get(type.getContext(), 64) : type;
}

Values KernelEmitter::registers(Value v) {
  if (!isa<device::FragmentType>(v.getType()))
    return {value(v)};
  return fragments.lookup(v);
}

Values KernelEmitter::registers(ValueRange list) {
  Values all;
  for (Value v : list)
    all.append(registers(v));
  return all;
}

void KernelEmitter::bind(Value v, ValueRange list) {
  if (isa<device::FragmentType>(v.getType()))
    fragments[v] = Values(list);
  else
    scalars.map(v, list[0]);
}

void KernelEmitter::bindAll(ValueRange list, ValueRange from) {
  for (Value v : list) {
    auto fragment = dyn_cast<device::FragmentType>(v.getType());
    size_t count = fragment ? countRegisters(fragment) : 1;
    bind(v, from.take_front(count));
    from = from.drop_front(count);
  }
}

SmallVector<Type> KernelEmitter::registerTypes(TypeRange types) {
  SmallVector<Type> all;
  for (Type type : types) {
    if (auto fragment = dyn_cast<device::FragmentType>(type))
      all.append(countRegisters(fragment), getRegisterType(fragment));
    else
      all.push_back(scalarType(type));
  }
  return all;
}

void KernelEmitter::bindPoison(ValueRange list) {
  for (Value v : list) {
    Values poison;
    for (Type type : registerTypes(v.getType()))
      if (type.isIntOrFloat())
        poison.push_back(LLVM::PoisonOp::create(b, to.loc, type));
    if (!poison.empty())
      bind(v, poison);
  }
}

void KernelEmitter::fail(Operation *op, const Twine &why) {
  if (!failed)
    op->emitError() << "has no PTX: " << why;
  failed = true;
}

} // namespace moa::nvvm
