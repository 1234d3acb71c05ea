//===- DeviceOps.cpp - verifiers of the device ops ------------------------===//
#include "dialects/Device/IR/LayoutMaps.h"

using namespace mlir;
using namespace moa;

static ParseResult parseStep(OpAsmParser &parser, ExprAttr &step) {
  if (succeeded(parser.parseOptionalKeyword("step")))
    return parseExpr(parser, step);
  step = ExprAttr::get(parser.getContext(), 1);
  return success();
}

static void printStep(OpAsmPrinter &printer, Operation *op, ExprAttr step) {
  if (step.getValue() == SymExpr(1))
    return;
  printer << " step ";
  printExpr(printer, op, step);
}

#define GET_OP_CLASSES
#include "dialects/Device/IR/DeviceOps.cpp.inc"

namespace moa::device {

void ProgramOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (auto [arg, name] : llvm::zip(region.getArguments(), getAllNames()))
    setName(arg, name);
}

SmallVector<StringRef> ProgramOp::getAllNames() {
  SmallVector<StringRef> names;
  for (ArrayAttr list : {getArgNamesAttr(), getResultNamesAttr(), getWorkspaceNamesAttr()})
    if (list)
      llvm::append_range(names, list.getAsValueRange<StringAttr>());
  return names;
}

bool ProgramOp::isInput(Value array) { return cast<BlockArgument>(array).getArgNumber() < getArgNames().size(); }

bool ProgramOp::isWorkspace(Value array) {
  return cast<BlockArgument>(array).getArgNumber() >= getArgNames().size() + getResultNames().size();
}

bool ProgramOp::hasTiles(Value array) {
  return !isWorkspace(array) &&
         llvm::any_of(array.getUsers(), [](Operation *user) { return isa<CopyOp, CopyRowsOp, StoreTileOp>(user); });
}

Value ProgramOp::addWorkspace(StringRef name, ArrayType type) {
  SmallVector<Attribute> names, types;
  if (auto list = getWorkspaceNamesAttr()) {
    llvm::append_range(names, list);
    llvm::append_range(types, getWorkspaceTypesAttr());
  }
  Builder b(getContext());
  names.push_back(b.getStringAttr(name));
  types.push_back(TypeAttr::get(type));
  setWorkspaceNamesAttr(b.getArrayAttr(names));
  setWorkspaceTypesAttr(b.getArrayAttr(types));
  return getBody().front().addArgument(type, getLoc());
}

LogicalResult ProgramOp::verify() {
  Block &block = getBody().front();
  size_t inputs = getArgNames().size(), outputs = getResultTypes().size();
  SmallVector<Attribute> declared(getResultTypes().begin(), getResultTypes().end());
  if (auto types = getWorkspaceTypesAttr())
    llvm::append_range(declared, types);
  size_t named = getWorkspaceNamesAttr() ? getWorkspaceNamesAttr().size() : 0;
  if (outputs + named != declared.size())
    return emitOpError("expects a name for every array of the workspace (C4), but got ")
           << named << " for " << declared.size() - outputs;
  if (block.getNumArguments() != inputs + declared.size() || getResultNames().size() != outputs)
    return emitOpError("expects one argument per input, output and array of the workspace (C1), "
                       "but got ")
           << block.getNumArguments() << " for " << inputs << ", " << outputs << " and " << named;
  if (!llvm::all_of(block.getArgumentTypes(), llvm::IsaPred<ArrayType>))
    return emitOpError("expects arguments of array type (C2)");
  for (auto [arg, type] : llvm::zip(block.getArguments().drop_front(inputs), declared))
    if (arg.getType() != cast<TypeAttr>(type).getValue())
      return emitOpError("expects outputs and a workspace of the declared types (C2), but got ") << arg.getType();
  for (BlockArgument arg : block.getArguments().drop_front(inputs + outputs)) {
    Type element = cast<ArrayType>(arg.getType()).getElementType();
    if (!element.isInteger(64) && !element.isInteger(32) && !element.isInteger(8) && !isa<FloatType>(element))
      return emitOpError("expects elements of i64, i32, i8 or a float in the workspace (C4), but got ")
             << arg.getType();
  }
  for (Operation &op : block)
    if (!isa<KernelOp>(op))
      return op.emitOpError("expects only device.kernel in a program (C3)");
  return success();
}

LogicalResult KernelOp::verify() {
  int64_t threads = getThreads();
  if (threads < 32 || threads > 1024 || threads % 32 != 0)
    return emitOpError("expects a multiple of 32 up to 1024 as the threads of a block "
                       "(C1), but got ")
           << threads;
  if (getBody().getNumArguments() != 0)
    return emitOpError("expects no arguments of its own (C2), but got ") << getBody().getNumArguments();
  if (getCluster() && *getCluster() != 2 && *getCluster() != 4 && *getCluster() != 8)
    return emitOpError("expects a cluster of 2, 4 or 8 blocks (C3), but got ") << static_cast<int64_t>(*getCluster());
  if (getCluster() && !getBody().front().getOps<NextBlockOp>().empty())
    return emitOpError("expects no cluster in a kernel with device.next_block (C3)");
  return success();
}

/// C1, C2: the array is a parameter of the program, an input or an output as expected.
static LogicalResult verifyParameter(Operation *op, Value array, bool output, bool orWorkspace = false) {
  auto arg = dyn_cast<BlockArgument>(array);
  auto program = op->getParentOfType<ProgramOp>();
  if (!arg || !program || arg.getOwner() != &program.getBody().front())
    return op->emitOpError("expects a parameter of the program (C1)");
  if (program.isWorkspace(array) ? !orWorkspace : program.isInput(array) == output)
    return op->emitOpError("expects an ")
           << (output ? "output" : "input") << (orWorkspace ? " or an array of the workspace" : "")
           << " (C2), but got argument " << arg.getArgNumber();
  return success();
}

static LogicalResult verifyElement(Operation *op, Type value, ArrayType array) {
  if (value != array.getElementType())
    return op->emitOpError("expects the array's element type ") << array.getElementType() << " (C3), but got " << value;
  return success();
}

LogicalResult ScalarOp::verify() {
  if (getArray().getType().getRank() != 0)
    return emitOpError("expects an array of rank 0 (C4), but got rank ") << getArray().getType().getRank();
  return failure(failed(verifyParameter(*this, getArray(), false)) ||
                 failed(verifyElement(*this, getResult().getType(), getArray().getType())));
}

LogicalResult LoadOp::verify() {
  return failure(failed(verifyParameter(*this, getArray(), false, /*orWorkspace=*/true)) ||
                 failed(verifyElement(*this, getResult().getType(), getArray().getType())));
}

/// Returns true if a thread's registers 2k and 2k + 1 hold neighbouring columns: the last digit of
/// a column's number is that of a register's.
static bool hasPairs(LayoutAttr layout) {
  auto digits = layout.getDigits(1);
  return !digits.empty() && digits.back().place == Place::register_ && digits.back().stride == 1 &&
         digits.back().size == 2;
}

LogicalResult StoreOp::verify() {
  if (failed(verifyParameter(*this, getArray(), true, /*orWorkspace=*/true)) ||
      failed(verifyElement(*this, getValue().getType(), getArray().getType())))
    return failure();
  if (!getPairs())
    return success();
  auto map = (*this)->getParentOfType<MapOp>();
  auto argument = dyn_cast<BlockArgument>(getValue());
  auto program = (*this)->getParentOfType<ProgramOp>();
  bool isOfMap = map && argument && argument.getOwner() == &map.getBody().front() &&
                 argument.getArgNumber() < map.getInputs().size() && map.getLayout().getRank() == 2 &&
                 cast<FragmentType>(map.getInputs()[argument.getArgNumber()].getType()).getLayout() == map.getLayout();
  bool areAll =
      isOfMap && map.getNumResults() == 0 &&
      !map.walk([](StoreOp store) { return store.getPairs() ? WalkResult::advance() : WalkResult::interrupt(); })
           .wasInterrupted();
  if (!areAll || !getValue().getType().isF32() || !hasPairs(map.getLayout()) ||
      !(program && program.isWorkspace(getArray())))
    return emitOpError("expects pairs in the workspace, of an f32 fragment with neighbours in two "
                       "registers of a thread, in a map that only stores pairs (C4)");
  return success();
}

/// Checks the counter of a signal (C1 to C3).
template <typename OpT> static LogicalResult verifyCounter(OpT op) {
  auto program = op->template getParentOfType<ProgramOp>();
  if (program && isa<BlockArgument>(op.getArray()) && !program.isWorkspace(op.getArray()))
    return op.emitOpError("expects an array of the workspace (C2)");
  if (failed(verifyParameter(op, op.getArray(), true, /*orWorkspace=*/true)))
    return failure();
  return verifyElement(op, IntegerType::get(op.getContext(), 32), op.getArray().getType());
}

LogicalResult SignalOp::verify() { return verifyCounter(*this); }
LogicalResult SignalsOp::verify() { return verifyCounter(*this); }

LogicalResult RaiseOp::verify() {
  if (failed(verifyCounter(*this)))
    return failure();
  ArrayType type = getArray().getType();
  for (unsigned axis = 0; axis < type.getRank(); ++axis)
    if (type.getExtent(axis).getConstant() != 1)
      return emitOpError("expects an array of one element (C4), but got ") << type;
  return success();
}

bool isPlainOp(Operation *op) {
  return isa<ThreadOp, SymbolOp, ScalarOp, LoadOp, StoreOp, RaiseOp, LoadRunOp, StoreRunOp, ExchangeOp, Exp2Op,
             HalfFromBitsOp>(op);
}

LogicalResult StagesOp::verify() {
  if (failed(verifyCounter(*this)))
    return failure();
  ArrayType type = getArray().getType();
  if (type.getRank() != 1 || type.getExtent(0).getConstant() != kTurns)
    return emitOpError("expects an array of ") << kTurns << " elements (C4), but got " << type;
  auto hasNumber = [](Region &stage) {
    return stage.getNumArguments() == 1 && stage.getArgument(0).getType().isIndex();
  };
  if (getCounts().size() < 2 || getCounts().size() != getStages().size() || !llvm::all_of(getStages(), hasNumber))
    return emitOpError("expects two stages or more, as many counts, and an index of each (C5), but got ")
           << getStages().size() << " stages and " << getCounts().size() << " counts";
  if (static_cast<int64_t>(getResidents()) < 1)
    return emitOpError("expects at least one block in the grid (C6), but got ") << static_cast<int64_t>(getResidents());
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()) || (*this)->getNextNode())
    return emitOpError("expects to stand in a kernel's own block, as the last operation (C7)");
  Operation *found = nullptr;
  for (Region &stage : getStages())
    stage.walk([&](Operation *op) {
      if (!found && op->getName().getDialectNamespace() == "device" && !isPlainOp(op))
        found = op;
    });
  if (!found)
    return success();
  InFlightDiagnostic error = emitOpError("expects neither shared memory and roles nor numbers of blocks inside (C8)");
  error.attachNote(found->getLoc()) << "this is the operation";
  return error;
}

LogicalResult NextBlockOp::verify() {
  if (failed(verifyCounter(*this)))
    return failure();
  auto kernel = dyn_cast_or_null<KernelOp>((*this)->getParentOp());
  SpecializeOp roles;
  if (kernel)
    for (auto found : kernel.getBody().front().getOps<SpecializeOp>())
      roles = found;
  if (!roles || !(*this)->isBeforeInBlock(roles) || roles.getProducer().front().getOps<AwaitConsumersOp>().empty() ||
      !llvm::hasSingleElement(kernel.getBody().front().getOps<NextBlockOp>()))
    return emitOpError("expects to be the only one of a kernel, in its own block, before roles whose "
                       "producer awaits consumers (C4)");
  if (static_cast<int64_t>(getResidents()) < 1)
    return emitOpError("expects at least one block in the grid (C5), but got ") << static_cast<int64_t>(getResidents());
  for (Operation &front : llvm::make_range(kernel.getBody().front().begin(), roles->getIterator())) {
    Operation *found = nullptr;
    front.walk([&](Operation *op) {
      if (isa<CollectOp, StoreOp, StoreRunOp, BlockOp, ThreadOp, SignalOp, RaiseOp, ExchangeOp>(op))
        found = op;
    });
    if (!found)
      continue;
    InFlightDiagnostic error = emitOpError("expects no stores, lists, exchanges, or numbers of "
                                           "threads and blocks before the roles (C6)");
    error.attachNote(found->getLoc()) << "this is the operation";
    return error;
  }
  return success();
}

LogicalResult ExitIfOp::verify() {
  if (!isa_and_nonnull<KernelOp>((*this)->getParentOp()))
    return emitOpError("expects to stand in a kernel's own block (C1)");
  for (Operation &op : llvm::make_range((*this)->getBlock()->begin(), (*this)->getIterator()))
    if (!isa<LoadOp>(op) && !isMemoryEffectFree(&op)) {
      InFlightDiagnostic error = emitOpError("expects only loads and operations without effects before it (C2)");
      error.attachNote(op.getLoc()) << "this operation is before it";
      return error;
    }
  return success();
}

/// Checks a run and the row of the private array that holds its elements.
template <typename OpT> static LogicalResult verifyRun(OpT op, bool output, bool hasStep = false) {
  MemRefType buffer = cast<MemRefType>(op.getBuffer().getType());
  Type element = buffer.getElementType();
  if (failed(verifyParameter(op, op.getArray(), output, /*orWorkspace=*/true)) ||
      failed(verifyElement(op, element, op.getArray().getType())))
    return failure();
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (bits < 8 || bits > 64)
    return op.emitOpError("expects elements of 8 to 64 bits (C4), but got ") << element;
  if (!buffer.hasStaticShape() || buffer.getRank() != static_cast<int64_t>(op.getAt().size()) + 1 + hasStep)
    return op.emitOpError("expects constant extents, ")
           << (hasStep ? "two" : "one") << " more than indices (C5), but got " << op.getAt().size() << " for "
           << buffer;
  int64_t bytes = buffer.getShape().back() * (bits / 8);
  if (bytes < 4 || bytes > 64 || (bytes & (bytes - 1)) != 0)
    return op.emitOpError("expects rows of 4 to 64 bytes, a power of two (C6), but got ") << bytes;
  auto program = op->template getParentOfType<ProgramOp>();
  if (op.getAligned() && !program.isWorkspace(op.getArray()) && !program.hasTiles(op.getArray()))
    return op.emitOpError("expects an aligned run in the workspace or in an array with tiles (C8)");
  return success();
}

int64_t countAligned(MemRefType buffer) {
  int64_t bytes = buffer.getElementTypeBitWidth() / 8;
  return std::max<int64_t>(std::min<int64_t>(16, buffer.getShape().back() * bytes) / bytes, 1);
}

LogicalResult LoadRunOp::verify() {
  if (failed(verifyRun(*this, /*output=*/false, getStep().has_value())))
    return failure();
  int64_t width = cast<MemRefType>(getBuffer().getType()).getShape().back(), step = getStep().value_or(width);
  if (step <= 0 || step % width != 0)
    return emitOpError("expects a step of a multiple of ") << width << " elements (C7), but got " << step;
  return success();
}

LogicalResult StoreRunOp::verify() { return verifyRun(*this, /*output=*/true); }

LogicalResult ExchangeOp::verify() {
  if (getMask() < 1 || getMask() > 31)
    return emitOpError("expects a mask of 1 to 31 (C1), but got ") << getMask();
  int64_t group = getGroup().value_or(32);
  if (getGroup() && (group > 16 || !llvm::isPowerOf2_64(group) || int64_t(getMask()) >= group))
    return emitOpError("expects a group of a power of two lanes, above the mask ")
           << getMask() << " and 16 at most (C1), but got " << group;
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult SpecializeOp::verify() {
  auto kernel = (*this)->getParentOfType<KernelOp>();
  int64_t threads = 128 * (getWarpgroups() + 1);
  if (!kernel || static_cast<int64_t>(kernel.getThreads()) != threads)
    return emitOpError("expects a block of ") << threads << " threads, one warpgroup per consumer and one more (C1)";
  if (getTogether() && !kernel.getBody().front().getOps<NextBlockOp>().empty())
    return emitOpError("expects a producer of one thread in a kernel with device.next_block (C2)");
  return success();
}

LogicalResult AwaitConsumersOp::verify() {
  auto roles = dyn_cast_or_null<SpecializeOp>((*this)->getParentOp());
  auto kernel = (*this)->getParentOfType<KernelOp>();
  if (!roles || (*this)->getBlock() != &roles.getProducer().front() ||
      !llvm::hasSingleElement(roles.getProducer().front().getOps<AwaitConsumersOp>()) || !kernel ||
      kernel.getBody().front().getOps<NextBlockOp>().empty())
    return emitOpError("expects to stand once in the producer's own block, of a kernel with "
                       "device.next_block (C1)");
  for (Operation &front : llvm::make_range((*this)->getBlock()->begin(), (*this)->getIterator())) {
    CopyOp early;
    front.walk([&](CopyOp copy) {
      auto barriers = copy.getBarriers().getDefiningOp<BarriersOp>();
      early = barriers && barriers.getOdd() ? copy : early;
    });
    if (!early)
      continue;
    InFlightDiagnostic error = emitOpError("expects no copy before it that completes odd barriers (C2)");
    error.attachNote(early.getLoc()) << "this is the operation";
    return error;
  }
  return success();
}

LogicalResult KeptOp::verify() {
  auto roles = (*this)->getParentOfType<SpecializeOp>();
  if (!roles)
    return emitOpError("expects to stand in a role of a specialized block (C2)");
  Operation *number = getOperand().getDefiningOp();
  if (!number || number->getBlock() != roles->getBlock())
    return emitOpError("expects a number that is computed before the block's roles (C1)");
  return success();
}

LogicalResult CollectOp::verify() {
  auto kernel = dyn_cast<KernelOp>((*this)->getParentOp());
  bool isBehind = kernel && llvm::any_of(kernel.getBody().front().getOps<SpecializeOp>(),
                                         [&](SpecializeOp roles) { return roles->isBeforeInBlock(*this); });
  if (!kernel || isBehind)
    return emitOpError("expects to stand in a kernel's own block, before its roles (C1)");
  Block &block = getBody().front();
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex())
    return emitOpError("expects one index as the argument of its body (C2)");
  auto yield = dyn_cast<YieldOp>(block.back());
  size_t lists = getLists().size();
  bool isTruth = yield && llvm::all_of(yield.getValues().getTypes(), [](Type type) { return type.isInteger(1); });
  if (!isTruth || yield.getValues().size() != lists || getCounts().size() != lists || lists == 0)
    return emitOpError("expects one boolean and one count per list (C3), but got ")
           << (yield ? yield.getValues().size() : 0) << " and " << getCounts().size() << " for " << lists;
  if (!llvm::all_equal(getLists().getTypes()))
    return emitOpError("expects lists of one capacity (C4), but got ") << getLists().getTypes();
  return success();
}

LogicalResult MemberOp::verify() {
  auto collect = getList().getDefiningOp<CollectOp>();
  if (!collect || collect->getParentOfType<KernelOp>() != (*this)->getParentOfType<KernelOp>())
    return emitOpError("expects a list that the same kernel collects (C1)");
  return success();
}

LogicalResult CopyOp::verify() {
  if (getArray().getType().getElementType() != getRing().getType().getElementType())
    return emitOpError("expects the ring's element type ")
           << getRing().getType().getElementType() << " (C1), but got " << getArray().getType().getElementType();
  unsigned rank = getArray().getType().getRank();
  if (getCoordinates().size() + 1 != rank)
    return emitOpError("expects coordinates of all axes but the last (C2), but got ")
           << getCoordinates().size() << " for rank " << rank;
  if (getRowAxis() >= getCoordinates().size())
    return emitOpError("expects an axis with a coordinate as the rows (C2), but got ")
           << static_cast<int64_t>(getRowAxis());
  if (auto number = getStep().getConstant(); number && *number < 1)
    return emitOpError("expects an expression, at least 1, as the step of rows (C3), but got '") << *number << "'";
  int64_t rows = getRing().getType().getRows();
  if (getFirst() && (getTileRows() < 8 || getTileRows() % 8 != 0 || rows % getTileRows() != 0))
    return emitOpError("expects a count of rows that is a multiple of 8 and divides ")
           << rows << " (C4), but got " << getTileRows();
  return verifyParameter(*this, getArray(), /*output=*/false, /*orWorkspace=*/true);
}

YieldOp CopyRowsOp::getYield() { return cast<YieldOp>(getBody().front().getTerminator()); }

LogicalResult CopyRowsOp::verify() {
  RingType ring = getRing().getType();
  if (getArray().getType().getElementType() != ring.getElementType())
    return emitOpError("expects the ring's element type ")
           << ring.getElementType() << " (C1), but got " << getArray().getType().getElementType();
  Block &block = getBody().front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (block.getNumArguments() != 1 || !block.getArgument(0).getType().isIndex() || !yield ||
      yield.getValues().size() != 2 || !yield.getValues()[0].getType().isIndex() ||
      !yield.getValues()[1].getType().isInteger(1))
    return emitOpError("expects a body from one index to an index and a boolean (C2)");
  int64_t columns = getColumns(), unit = 16 / ring.getElementBytes();
  if (columns < unit || columns % unit != 0 || columns > ring.getColumns())
    return emitOpError("expects columns in multiples of ")
           << unit << ", up to " << ring.getColumns() << " (C3), but got " << columns;
  auto roles = (*this)->getParentOfType<SpecializeOp>();
  if (!roles || !roles.getTogether() || !roles.getProducer().isAncestor((*this)->getParentRegion()))
    return emitOpError("expects a producer that works together (C4)");
  int64_t arrivals = getBarriers().getType().getArrivals();
  if (arrivals != kThreads)
    return emitOpError("expects barriers of ") << kThreads << " arrivals (C5), but got " << arrivals;
  return verifyParameter(*this, getArray(), /*output=*/false, /*orWorkspace=*/true);
}

/// Returns the consumers of a block whose cluster has several, or null.
static SpecializeOp findClusteredRoles(Operation *op) {
  auto kernel = op->getParentOfType<KernelOp>();
  auto roles = op->getParentOfType<SpecializeOp>();
  bool isConsumer = roles && roles.getConsumer().isAncestor(op->getParentRegion());
  return kernel && kernel.getCluster() && isConsumer ? roles : SpecializeOp();
}

int64_t PublishOp::getBytes() {
  return 4 * 128 * getFragment().getType().getLayout().getNumRegisters() *
         (*this)->getParentOfType<SpecializeOp>().getWarpgroups();
}

LogicalResult PublishOp::verify() {
  if (!findClusteredRoles(*this))
    return emitOpError("expects to stand in a consumer of a kernel with clusters (C1)");
  Type element = getFragment().getType().getElementType();
  if (!element.isF32() && !element.isInteger(32))
    return emitOpError("expects elements of f32 or i32 (C2), but got ") << element;
  RingType ring = getRing().getType();
  int64_t room = ring.getStages() * ring.getStageBytes(), at = getAt();
  if (at % 16 != 0 || at + getBytes() > room)
    return emitOpError("expects a place at whole 16 bytes with room in the ring's ")
           << room << " bytes (C3), but got " << getBytes() << " bytes at " << at;
  for (Operation *user : getRing().getUsers())
    if (auto other = dyn_cast<PublishOp>(user); other && other != *this)
      if (at < static_cast<int64_t>(other.getAt()) + other.getBytes() &&
          static_cast<int64_t>(other.getAt()) < at + getBytes())
        return emitOpError("expects a place that no other fragment has (C4), but got ") << at;
  return success();
}

LogicalResult LoadPeerOp::verify() {
  if (!findClusteredRoles(*this))
    return emitOpError("expects to stand in a consumer of a kernel with clusters (C1)");
  auto published = getPublished().getDefiningOp<PublishOp>();
  if (!published || published.getFragment().getType() != getResult().getType())
    return emitOpError("expects the result of a device.publish and its fragment's type (C2), but got ")
           << getResult().getType();
  return success();
}

LogicalResult SyncClusterOp::verify() {
  if (!findClusteredRoles(*this))
    return emitOpError("expects to stand in a consumer of a kernel with clusters (C1)");
  return success();
}

bool isFilledByThreads(Value barriers) { return llvm::any_of(barriers.getUsers(), llvm::IsaPred<CopyRowsOp>); }

LogicalResult FillOp::verify() {
  Type element = getResult().getType().getElementType();
  if (getValue().getType() != element)
    return emitOpError("expects a value of the element type ") << element << " (C1), but got " << getValue().getType();
  return success();
}

/// Returns true for the layout of wgmma's accumulator, which has 8, 16, … columns.
static bool isAccumulator(FragmentType fragment) {
  ArrayRef<int64_t> shape = fragment.getShape();
  return shape.size() == 2 && shape[1] >= 8 && shape[1] % 8 == 0 &&
         fragment.getLayout() == LayoutAttr::getAccumulator(fragment.getContext(), shape[1]);
}

LogicalResult ContractOp::verify() {
  FragmentType result = getResult().getType();
  RingType b = getB().getType();
  int64_t depth = getTransposed() ? b.getColumns() : b.getRows();
  int64_t columns = getTransposed() ? b.getRows() : b.getColumns();
  int64_t rows = 0, inner = 0;
  Type element;
  if (auto fragment = dyn_cast<FragmentType>(getA().getType())) {
    if (!isAccumulator(fragment))
      return emitOpError("expects operand a in the accumulator's layout (C2)");
    rows = fragment.getShape()[0];
    inner = fragment.getShape()[1];
    element = fragment.getElementType();
  } else if (auto ring = dyn_cast<RingType>(getA().getType())) {
    rows = 64;
    inner = ring.getColumns();
    element = ring.getElementType();
    if (!getARow())
      return emitOpError("expects the first of the 64 rows of a (C1)");
  }
  if (inner != depth || result.getShape() != ArrayRef<int64_t>({rows, columns}))
    return emitOpError("expects extents that agree (C1), but got ")
           << rows << " x " << inner << " by " << depth << " x " << columns;
  if (!isAccumulator(result) || (getC() && getC().getType() != result))
    return emitOpError("expects c and the result in the accumulator's layout (C2)");
  bool isInteger = isa<IntegerType>(element);
  if (element != b.getElementType() ||
      (isInteger ? !result.getElementType().isInteger(32) : !result.getElementType().isF32()))
    return emitOpError("expects a and b of one type and a result of ")
           << (isInteger ? "i32" : "f32") << " (C3), but got " << element << " by " << b.getElementType() << " into "
           << result.getElementType();
  if (auto asked = getDepth()) {
    int64_t unit = 32 / b.getElementBytes(), most = static_cast<int64_t>(*asked);
    if (most % unit != 0 || most <= 0 || most > depth || !getTransposed() || !isa<RingType>(getA().getType()))
      return emitOpError("expects a depth in rings of a multiple of ")
             << unit << " up to " << depth << " (C5), but got " << most;
  }
  if (getC() && getC().getDefiningOp<ContractOp>() && !getC().hasOneUse())
    return emitOpError("expects that nothing else reads the sum of another contraction that it continues (C6)");
  bool inRegisters = isa<FragmentType>(getA().getType());
  if (b.getElementBytes() == 1 && (!getTransposed() || (inRegisters && (isInteger || inner % 32 != 0))))
    return emitOpError("expects b of 8 bits transposed, and a fragment a of floats with a multiple of 32 "
                       "columns (C4), but got ")
           << getA().getType() << (getTransposed() ? "" : " by rows of b");
  return success();
}

int64_t ContractOp::getSteps() {
  auto ring = dyn_cast<RingType>(getA().getType());
  int64_t inner = ring ? ring.getColumns() : cast<FragmentType>(getA().getType()).getShape()[1];
  return static_cast<int64_t>(getDepth().value_or(inner)) * getB().getType().getElementBytes() / 32;
}

LogicalResult ContractFragmentsOp::verify() {
  FragmentType a = getA().getType(), b = getB().getType(), result = getResult().getType();
  for (FragmentType fragment : {a, b, result})
    if (fragment.getShape().size() != 2)
      return emitOpError("expects fragments of rows and columns (C1), but got ") << fragment;
  if (a.getShape()[1] != b.getShape()[0] || result.getShape() != ArrayRef<int64_t>({a.getShape()[0], b.getShape()[1]}))
    return emitOpError("expects extents that agree (C1), but got ")
           << a.getShape()[0] << " x " << a.getShape()[1] << " by " << b.getShape()[0] << " x " << b.getShape()[1]
           << " into " << result.getShape()[0] << " x " << result.getShape()[1];
  if (getC() && getC().getType() != result)
    return emitOpError("expects c of the result's type (C2), but got ") << getC().getType();
  Type element = a.getElementType();
  bool isHalf = element.isF16() || element.isBF16();
  if (element != b.getElementType() || !(isHalf || element.isF64()) ||
      !(isHalf ? result.getElementType().isF32() : result.getElementType().isF64()))
    return emitOpError("expects f16 or bf16 into f32, or f64 into f64 (C3), but got ")
           << element << " by " << b.getElementType() << " into " << result.getElementType();
  std::string why;
  if (!getTileContraction(a, b, result, why))
    return emitOpError(why);
  return success();
}

LogicalResult LoadFragmentOp::verify() {
  RingType ring = getRing().getType();
  FragmentType result = getResult().getType();
  if (ring.getElementType() != result.getElementType())
    return emitOpError("expects the ring's element type ")
           << ring.getElementType() << " (C1), but got " << result.getElementType();
  if (!isa<FloatType>(result.getElementType()))
    return emitOpError("expects floats (C1), but got ") << result.getElementType();
  if (!getMatrixLoads(result.getLayout(), getTransposed()))
    return emitOpError("expects lanes that hold two neighbours each of every 8 x 8 elements "
                       "(C2), but got ")
           << result.getLayout();
  ArrayRef<int64_t> shape = result.getShape();
  int64_t rows = shape[getTransposed()], columns = shape[!getTransposed()];
  if (rows > ring.getRows() || columns > ring.getColumns())
    return emitOpError("expects no more rows and columns than the tile has (C3), but got ")
           << rows << " x " << columns << " of " << ring.getRows() << " x " << ring.getColumns();
  return success();
}

/// Returns true if elements are packed in pairs, as 16-bit floats are.
static bool isPacked(FragmentType fragment) {
  return isa<FloatType>(fragment.getElementType()) && fragment.getElementType().getIntOrFloatBitWidth() == 16;
}

LogicalResult ConvertLayoutOp::verify() {
  FragmentType from = getFragment().getType(), to = getResult().getType();
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError("expects one shape and element type (C1), but got ") << from << " to " << to;
  std::string why;
  if (!getConversion(from.getLayout(), to.getLayout(), isPacked(from), why))
    return emitOpError("expects every warp to keep its elements (C2), but ")
           << why << "; bind the same digits to warps in both layouts";
  return success();
}

OpFoldResult ConvertLayoutOp::fold(FoldAdaptor) {
  if (getFragment().getType() == getResult().getType())
    return getFragment();
  return {};
}

LogicalResult ClearUnseenOp::verify() {
  FragmentType seen = getSeen().getType();
  RingType ring = getRing().getType();
  int64_t count = getInterleaved() ? ring.getColumns() : ring.getRows();
  bool isKnown = getInterleaved() ? ring.getElementBytes() == 1 && count == 128 : count <= 128;
  if (!seen.getElementType().isInteger(1) || !isKnown ||
      seen.getLayout() != LayoutAttr::getAccumulator(getContext(), count))
    return emitOpError("expects booleans for up to 128 rows of the ring, or 128 interleaved "
                       "columns of 8 bits "
                       "(C1), but got ")
           << seen << " for " << count << (getInterleaved() ? " columns" : " rows");
  return success();
}

LogicalResult StoreTileOp::verify() {
  FragmentType fragment = getFragment().getType();
  Type element = getArray().getType().getElementType();
  if (fragment.getShape().size() != 2 || fragment.getShape()[0] != 64 || fragment.getElementType() != element ||
      getRing().getType().getElementType() != element)
    return emitOpError("expects 64 rows of the output's and the ring's type (C1), but got ") << fragment;
  if (fragment.getShape()[1] > getRing().getType().getColumns())
    return emitOpError("expects no more columns than the ring has (C2), but got ")
           << fragment.getShape()[1] << " and " << getRing().getType().getColumns();
  unsigned rank = getArray().getType().getRank();
  if (getCoordinates().size() + 1 != rank || getRowAxis() + 1 >= rank)
    return emitOpError("expects coordinates of all axes but the last (C3), but got ")
           << getCoordinates().size() << " for rank " << rank;
  return verifyParameter(*this, getArray(), /*output=*/true);
}

LogicalResult MapOp::verify() {
  LayoutAttr whole = getLayout();
  auto fits = [&](Type type) {
    auto fragment = cast<FragmentType>(type);
    return fragment.getLayout() == whole || (whole.getRank() == 2 && (fragment.getLayout() == whole.getSlice(0) ||
                                                                      fragment.getLayout() == whole.getThreadPart(1)));
  };
  auto isWhole = [&](Type type) { return cast<FragmentType>(type).getLayout() == whole; };
  auto elementOf = [](Type type) { return cast<FragmentType>(type).getElementType(); };
  if (!llvm::all_of(getInputs().getTypes(), fits) || !llvm::all_of(getResultTypes(), isWhole))
    return emitOpError("expects inputs in its layout, its rows' or its threads' parts, and "
                       "results in its layout (C1)");
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputs().size() + whole.getRank())
    return emitOpError("expects one argument per input and axis (C2), but got ") << block.getNumArguments();
  for (auto [arg, input] : llvm::zip(block.getArguments(), getInputs().getTypes()))
    if (arg.getType() != elementOf(input))
      return emitOpError("expects arguments of the inputs' element types (C2), but got ")
             << arg.getType() << " for " << elementOf(input);
  for (BlockArgument arg : block.getArguments().drop_front(getInputs().size()))
    if (!arg.getType().isIndex())
      return emitOpError("expects indices after the elements (C2), but got ") << arg.getType();
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValues().size() != getNumResults())
    return emitOpError("expects one value per result (C3)");
  for (auto [value, result] : llvm::zip(yield.getValues().getTypes(), getResultTypes()))
    if (value != elementOf(result))
      return emitOpError("expects values of the results' element types (C3), but got ")
             << value << " for " << elementOf(result);
  return success();
}

LogicalResult ThreadOffsetOp::verify() {
  auto arg = dyn_cast<BlockArgument>(getIndex());
  auto map = arg ? dyn_cast_or_null<MapOp>(arg.getOwner()->getParentOp()) : MapOp();
  if (!map || arg.getArgNumber() < map.getInputs().size())
    return emitOpError("expects an index of the map around it (C1)");
  return success();
}

LogicalResult AnyOp::verify() {
  if (!getCondition().getType().getElementType().isInteger(1))
    return emitOpError("expects a fragment of booleans (C1), but got ") << getCondition().getType();
  return success();
}

LogicalResult IfAnyOp::verify() {
  if (!getCondition().getType().getElementType().isInteger(1))
    return emitOpError("expects a fragment of booleans (C1), but got ") << getCondition().getType();
  if (getOtherwise().getTypes() != getResultTypes())
    return emitOpError("expects results of the types of the other values (C2)");
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || yield.getValues().getTypes() != getResultTypes())
    return emitOpError("expects to yield the results' types (C2)");
  return success();
}

LogicalResult ReduceOp::verify() {
  FragmentType from = getFragment().getType(), to = getResult().getType();
  if (from.getShape().size() != 2)
    return emitOpError("expects a fragment of rows and columns (C3), but got rank ") << from.getShape().size();
  if (to.getLayout() != from.getLayout().getSlice(0) && to.getLayout() != from.getLayout().getThreadPart(1))
    return emitOpError("expects the layout of the fragment's rows, or of the threads' "
                       "parts of them (C1)");
  bool isOfHalves = getMonoid() == Monoid::add && from.getElementType().isF16() && to.getElementType().isF32() &&
                    to.getLayout() == from.getLayout().getThreadPart(1) && hasPairs(from.getLayout());
  if (to.getElementType() != from.getElementType() && !isOfHalves)
    return emitOpError("expects the fragment's element type ")
           << from.getElementType() << ", or f32 for a thread's sums of pairs of f16 (C2), but got "
           << to.getElementType();
  if (getMonoid() == Monoid::user)
    return emitOpError("expects a named monoid (C4)");
  return success();
}

} // namespace moa::device
