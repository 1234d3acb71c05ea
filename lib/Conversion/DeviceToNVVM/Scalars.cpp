//===- Scalars.cpp - scalar operations, control flow and memory -----------===//
//
// Operations of arith and math keep their meaning on values of the same types, with i64 for
// indices. Operations that are undefined for some operands (quotients, shifts, conversions) give
// the values that the CUDA C++ text defines (lib/Target/CUDA/Helpers.cpp).
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace moa::nvvm {

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void KernelEmitter::emitBlock(Block &block) {
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>() && !launch.isPerBlock(&op)) { // emitted by the roles, for each block
      if (!failed)
        emit(&op);
      if (failed)
        bindPoison(op.getResults());
    }
}

void KernelEmitter::emit(Operation *op) {
  to.loc = op->getLoc();
  llvm::TypeSwitch<Operation *>(op)
      .Case<scf::ForOp>([&](auto loop) { emitFor(loop); })
      .Case<scf::IfOp>([&](auto branch) { emitIf(branch); })
      .Case<memref::AllocaOp>([&](auto local) { emitLocal(local); })
      .Case<memref::LoadOp>([&](auto load) {
        scalars.map(load.getResult(), LLVM::LoadOp::create(b, to.loc, scalarType(load.getType()),
                                                           element(load.getMemref(), load.getIndices())));
      })
      .Case<memref::StoreOp>([&](auto store) {
        LLVM::StoreOp::create(b, to.loc, value(store.getValue()), element(store.getMemref(), store.getIndices()));
      })
      .Case<device::LoadOp>([&](auto load) { emitLoad(load); })
      .Case<device::StoreOp>([&](auto store) { emitStore(store); })
      .Case<device::SignalOp>([&](auto signal) { to.signal(address(signal.getArray(), signal.getOffset())); })
      .Case<device::SignalsOp>([&](auto signals) {
        scalars.map(signals.getResult(), to.widen(to.signals(address(signals.getArray(), signals.getOffset()))));
      })
      .Case<device::StagesOp>([&](auto stages) { emitStages(stages); })
      .Case<device::RaiseOp>(
          [&](auto raise) { to.raise(parameters[cast<BlockArgument>(raise.getArray()).getArgNumber()]); })
      .Case<device::ExitIfOp>([&](auto exit) { emitExit(exit); })
      .Case<device::LoadRunOp>([&](auto load) { emitLoadRun(load); })
      .Case<device::StoreRunOp>([&](auto store) { emitStoreRun(store); })
      .Case<device::SharedOp, device::BarriersOp, device::SpecializeOp, device::WarpgroupOp, device::KeptOp,
            device::AwaitConsumersOp, device::CopyOp, device::CopyRowsOp, device::PublishOp, device::LoadPeerOp,
            device::SyncClusterOp, device::WaitOp, device::ArriveOp, device::FillOp, device::ContractOp,
            device::AwaitOp, device::ClearUnseenOp, device::StoreTileOp, device::AwaitStoresOp, device::SyncWarpgroupOp,
            device::ContractFragmentsOp, device::LoadFragmentOp, device::ConvertLayoutOp, device::CollectOp,
            device::MemberOp, device::MapOp, device::ReduceOp, device::AnyOp, device::IfAnyOp>(
          [&](auto) { emitTile(op); })
      .Default([&](Operation *) { emitScalar(op); });
}

void KernelEmitter::emitScalar(Operation *op) {
  if (failed)
    return;
  Value result;
  if (op->getNumResults() == 1 && op->getNumRegions() == 0) {
    Values in;
    for (Value operand : op->getOperands())
      in.push_back(value(operand));
    result = compute(op, in);
  }
  if (!result)
    return fail(op, "the op is not one of the device level's");
  scalars.map(op->getResult(0), result);
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

/// Returns the function of CUDA's math library (libdevice) that an op calls; empty for other ops.
static StringRef getLibraryName(Operation *op) {
  static const llvm::DenseMap<TypeID, StringRef> names = {
      {TypeID::get<math::ExpOp>(), "exp"},     {TypeID::get<math::Exp2Op>(), "exp2"},
      {TypeID::get<math::ExpM1Op>(), "expm1"}, {TypeID::get<math::LogOp>(), "log"},
      {TypeID::get<math::Log2Op>(), "log2"},   {TypeID::get<math::Log10Op>(), "log10"},
      {TypeID::get<math::Log1pOp>(), "log1p"}, {TypeID::get<math::CbrtOp>(), "cbrt"},
      {TypeID::get<math::TanhOp>(), "tanh"},   {TypeID::get<math::SinhOp>(), "sinh"},
      {TypeID::get<math::CoshOp>(), "cosh"},   {TypeID::get<math::SinOp>(), "sin"},
      {TypeID::get<math::CosOp>(), "cos"},     {TypeID::get<math::TanOp>(), "tan"},
      {TypeID::get<math::AtanOp>(), "atan"},   {TypeID::get<math::ErfOp>(), "erf"},
      {TypeID::get<math::ErfcOp>(), "erfc"},   {TypeID::get<math::RoundOp>(), "round"},
      {TypeID::get<math::PowFOp>(), "pow"},    {TypeID::get<math::Atan2Op>(), "atan2"},
      {TypeID::get<arith::RemFOp>(), "fmod"},  {TypeID::get<math::RsqrtOp>(), "rsqrt"}};
  return names.lookup(op->getName().getTypeID());
}

Value KernelEmitter::callLibrary(Operation *op, StringRef name, ValueRange in) {
  Type type = in[0].getType();
  std::string function = ("__nv_" + name + (type.isF64() ? "" : "f")).str();
  if (name == "rsqrt" && type.isF32())
    function = "__nv_frsqrt_rn";
  SmallVector<Type> types(in.getTypes());
  if (!module.lookupSymbol(function)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::LLVMFuncOp::create(b, op->getLoc(), function, LLVM::LLVMFunctionType::get(type, types));
  }
  return LLVM::CallOp::create(b, to.loc, TypeRange(type), function, in).getResult();
}

Value KernelEmitter::compute(Operation *op, ValueRange in) {
  Type type = op->getResult(0).getType();
  if (StringRef name = getLibraryName(op); !name.empty())
    return callLibrary(op, name, in);
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    if (type.isIndex())
      return to.i64(cast<IntegerAttr>(constant.getValue()).getInt());
    if (isa<Float8E4M3FNType>(type)) // a byte
      return to.constant(b.getI8IntegerAttr(
          static_cast<int8_t>(cast<FloatAttr>(constant.getValue()).getValue().bitcastToAPInt().getZExtValue())));
    return to.constant(cast<TypedAttr>(constant.getValue()));
  }
  if (auto symbol = dyn_cast<device::SymbolOp>(op))
    return symbolValue(symbol.getExpr());
  if (auto scalar = dyn_cast<device::ScalarOp>(op)) {
    Value passed = parameters[cast<BlockArgument>(scalar.getArray()).getArgNumber()];
    if (!type.isInteger(1))
      return passed;
    Value zero = to.constant(b.getI8IntegerAttr(0));
    return to.make<arith::CmpIOp>(arith::CmpIPredicate::ne, passed, zero);
  }
  if (isa<device::ThreadOp>(op))
    return to.widen(to.thread());
  if (isa<device::BlockOp>(op))
    return to.widen(to.block());
  if (auto exchange = dyn_cast<device::ExchangeOp>(op))
    return to.shuffle(in[0], exchange.getMask(), exchange.getGroup());
  if (isa<device::Exp2Op>(op))
    return to.exp2(in[0]);
  if (isa<device::HalfFromBitsOp>(op)) {
    Value bits = to.make<arith::TruncIOp>(b.getI16Type(), to.halvesFromBits(in[0], in[0]));
    return to.make<arith::BitcastOp>(b.getF16Type(), bits);
  }
  if (isa<arith::TruncFOp>(op) && isa<Float8E4M3FNType>(type))
    return to.toFloat8(in[0].getType().isF32() ? in[0] : to.make<arith::ExtFOp>(b.getF32Type(), in[0]));
  if (isa<arith::ExtFOp>(op) && type.isF32() && isa<Float8E4M3FNType>(op->getOperand(0).getType()))
    return to.fromFloat8(in[0]);
  if (isa<device::OpaqueOp>(op))
    return to.opaque(in[0]);
  if (auto reciprocal = dyn_cast<device::ReciprocalOp>(op))
    return to.reciprocal(in[0], reciprocal.getSubnormals());
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op) && type.isF64()) {
    auto predicate = isa<arith::MaximumFOp>(op) ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
    Value first = to.make<arith::CmpFOp>(predicate, in[0], in[1]);
    Value nan = to.make<arith::CmpFOp>(arith::CmpFPredicate::UNE, in[0], in[0]);
    first = to.make<arith::OrIOp>(first, nan);
    return to.make<arith::SelectOp>(first, in[0], in[1]);
  }
  if (Value result = computeInteger(op, in))
    return result;
  if (Value result = computeCast(op, in))
    return result;
  StringRef dialect = op->getName().getDialectNamespace();
  if (dialect != "arith" && dialect != "math")
    return Value();
  Operation *clone = b.clone(*op);
  clone->setOperands(in);
  clone->getResult(0).setType(scalarType(type));
  return to.simplify(clone);
}

/// Returns the quotient of integers rounded as `kind` says, or the remainder with the dividend's
/// sign. A divisor of 0 gives 0, and an overflow wraps.
Value KernelEmitter::divide(Quotient kind, Value x, Value y) {
  auto constant = [&](int64_t value) -> Value { return to.constant(b.getIntegerAttr(x.getType(), value)); };
  auto compare = [&](arith::CmpIPredicate predicate, Value u, Value v) -> Value {
    return to.make<arith::CmpIOp>(predicate, u, v);
  };
  auto choose = [&](Value condition, Value u, Value v) -> Value { return to.make<arith::SelectOp>(condition, u, v); };
  Value zero = constant(0);
  Value isZero = compare(arith::CmpIPredicate::eq, y, zero);
  Value isMinus = compare(arith::CmpIPredicate::eq, y, constant(-1));
  Value special = to.make<arith::OrIOp>(isZero, isMinus);
  Value divisor = choose(special, constant(1), y);
  if (kind == Quotient::remainder)
    return choose(special, zero, to.make<arith::RemSIOp>(x, divisor));
  Value quotient = to.make<arith::DivSIOp>(x, divisor);
  if (kind != Quotient::truncated) {
    bool floors = kind == Quotient::floored;
    Value back = to.make<arith::MulIOp>(quotient, divisor);
    Value inexact = compare(arith::CmpIPredicate::ne, back, x);
    Value divisorSign = compare(arith::CmpIPredicate::slt, divisor, zero);
    Value sign = compare(arith::CmpIPredicate::slt, x, zero);
    Value signs = compare(floors ? arith::CmpIPredicate::ne : arith::CmpIPredicate::eq, sign, divisorSign);
    Value moved = to.make<arith::AddIOp>(quotient, constant(floors ? -1 : 1));
    quotient = choose(to.make<arith::AndIOp>(inexact, signs), moved, quotient);
  }
  Value opposite = to.make<arith::SubIOp>(zero, x);
  return choose(isZero, zero, choose(isMinus, opposite, quotient));
}

/// Shifts left by the amount modulo 64, in 64 bits, or right by less than the type's width.
Value KernelEmitter::shift(Value x, Value y, bool left) {
  Type type = x.getType();
  if (!left) {
    Value most = to.constant(b.getIntegerAttr(type, type.getIntOrFloatBitWidth() - 1));
    Value amount = to.make<arith::MinUIOp>(y, most);
    return to.make<arith::ShRSIOp>(x, amount);
  }
  bool isWide = type.isInteger(64);
  auto wide = [&](Value v) -> Value { return isWide ? v : to.make<arith::ExtSIOp>(b.getI64Type(), v); };
  Value most = to.i64(63), amount = to.make<arith::AndIOp>(wide(y), most);
  Value shifted = to.make<arith::ShLIOp>(wide(x), amount);
  return isWide ? shifted : to.make<arith::TruncIOp>(type, shifted);
}

/// Computes integer operations that arith leaves undefined for some operands; null for others.
Value KernelEmitter::computeInteger(Operation *op, ValueRange in) {
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<arith::FloorDivSIOp>([&](auto) { return divide(Quotient::floored, in[0], in[1]); })
      .Case<arith::CeilDivSIOp>([&](auto) { return divide(Quotient::ceiled, in[0], in[1]); })
      .Case<arith::DivSIOp>([&](auto) { return divide(Quotient::truncated, in[0], in[1]); })
      .Case<arith::RemSIOp>([&](auto) { return divide(Quotient::remainder, in[0], in[1]); })
      .Case<arith::ShLIOp>([&](auto) { return shift(in[0], in[1], /*left=*/true); })
      .Case<arith::ShRSIOp>([&](auto) { return shift(in[0], in[1], /*left=*/false); })
      .Case<math::AbsIOp>([&](auto) -> Value {
        Value zero = to.constant(b.getIntegerAttr(in[0].getType(), 0));
        Value negative = to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, in[0], zero);
        Value opposite = to.make<arith::SubIOp>(zero, in[0]);
        return to.make<arith::SelectOp>(negative, opposite, in[0]);
      })
      .Default([](Operation *) { return Value(); });
}

/// Converts to an integer: truncates towards 0, saturates, and maps NaN to 0.
Value KernelEmitter::toInteger(Value x, Type type) {
  unsigned bits = type.getIntOrFloatBitWidth() - 1;
  auto number = [&](double value) -> Value { return to.constant(b.getFloatAttr(x.getType(), value)); };
  auto integer = [&](const APInt &value) -> Value { return to.constant(b.getIntegerAttr(type, value)); };
  auto choose = [&](arith::CmpFPredicate predicate, Value y, Value yes, Value no) -> Value {
    Value condition = to.make<arith::CmpFOp>(predicate, x, y);
    return to.make<arith::SelectOp>(condition, yes, no);
  };
  double limit = std::ldexp(1.0, static_cast<int>(bits));
  Value result = to.make<arith::FPToSIOp>(type, x);
  Value least = integer(APInt::getSignedMinValue(bits + 1)), lowerLimit = number(-limit);
  result = choose(arith::CmpFPredicate::OLT, lowerLimit, least, result);
  Value largest = integer(APInt::getSignedMaxValue(bits + 1)), upperLimit = number(limit);
  result = choose(arith::CmpFPredicate::OGE, upperLimit, largest, result);
  return choose(arith::CmpFPredicate::UNE, x, integer(APInt::getZero(bits + 1)), result);
}

/// Computes conversions to or from integers; null for others. A boolean is 0 or 1 in every type.
Value KernelEmitter::computeCast(Operation *op, ValueRange in) {
  Type type = scalarType(op->getResult(0).getType());
  if (isa<arith::FPToSIOp>(op))
    return toInteger(in[0], type);
  if (isa<arith::SIToFPOp>(op) && in[0].getType().isInteger(1))
    return to.make<arith::UIToFPOp>(type, in[0]);
  if (!isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return Value();
  Type from = in[0].getType();
  unsigned have = from.getIntOrFloatBitWidth(), want = type.getIntOrFloatBitWidth();
  if (have == want)
    return in[0];
  if (want == 1) {
    Value zero = to.constant(b.getIntegerAttr(from, 0));
    return to.make<arith::CmpIOp>(arith::CmpIPredicate::ne, in[0], zero);
  }
  if (want < have)
    return to.make<arith::TruncIOp>(type, in[0]);
  if (have == 1 || isa<arith::ExtUIOp>(op))
    return to.make<arith::ExtUIOp>(type, in[0]);
  return to.make<arith::ExtSIOp>(type, in[0]);
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

/// Returns the quotient rounded down, or the remainder with the divisor's sign; 0 for a divisor of
/// 0.
Value KernelEmitter::floorDivide(Value x, Value y, bool remainder) {
  Value quotient = divide(Quotient::floored, x, y);
  if (!remainder)
    return quotient;
  Value whole = to.make<arith::MulIOp>(quotient, y);
  Value rest = to.make<arith::SubIOp>(x, whole);
  Value zero = to.i64(0);
  return to.make<arith::SelectOp>(to.equals(y, 0), zero, rest);
}

Value KernelEmitter::symbolValue(const SymExpr &expr) {
  Value sum;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    Value term = to.i64(coefficient);
    for (const auto &[atom, power] : monomial) {
      Value factor;
      if (atom->kind == SymExpr::Atom::Kind::Symbol) {
        factor = symbols.lookup(atom->text);
      } else {
        Value divisor = symbolValue(atom->rhs), dividend = symbolValue(atom->lhs);
        factor = floorDivide(dividend, divisor, atom->kind == SymExpr::Atom::Kind::Mod);
      }
      for (unsigned k = 0; k != power; ++k)
        term = to.mul(term, factor);
    }
    sum = sum ? to.add(sum, term) : term;
  }
  return sum ? sum : to.i64(0);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// Returns whether the body of a loop indexes private arrays. The loop must then be unrolled,
/// because registers have no addresses.
static bool mustUnroll(scf::ForOp loop) {
  WalkResult found = loop.walk([&](Operation *op) {
    bool indexes = isa<memref::LoadOp, memref::StoreOp, device::LoadRunOp, device::StoreRunOp>(op) &&
                   llvm::is_contained(op->getOperands(), loop.getInductionVar());
    return indexes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

void KernelEmitter::emitFor(scf::ForOp loop) {
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  auto code = scf::ForOp::create(
      b, to.loc, value(loop.getLowerBound()), value(loop.getUpperBound()), value(loop.getStep()),
      registers(loop.getInitArgs()), [&](OpBuilder &, Location loc, Value index, ValueRange states) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(index.getParentBlock());
        // In loops over tiles, LLVM would make several counters that depend on one.
        scalars.map(loop.getInductionVar(), hasRoles() ? to.opaque(index) : index);
        SmallVector<Value> arguments(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
        bindAll(arguments, states);
        emitBlock(*loop.getBody());
        scf::YieldOp::create(b, loc, registers(yield.getOperands()));
      });
  if (mustUnroll(loop))
    code->setAttr("loop_annotation",
                  parseAttribute("#llvm.loop_annotation<unroll = <disable = false>>", b.getContext()));
  bindAll(loop.getResults(), code.getResults());
}

void KernelEmitter::emitIf(scf::IfOp branch) {
  SmallVector<Type> types = registerTypes(branch.getResultTypes());
  bool hasElse = branch.elseBlock() != nullptr;
  auto code = scf::IfOp::create(b, to.loc, types, value(branch.getCondition()), hasElse);
  auto side = [&](Block *from, Block *block) {
    OpBuilder::InsertionGuard guard(b);
    if (!block->empty() && block->back().hasTrait<OpTrait::IsTerminator>())
      block->back().erase();
    b.setInsertionPointToEnd(block);
    emitBlock(*from);
    scf::YieldOp::create(b, branch.getLoc(), registers(from->getTerminator()->getOperands()));
  };
  side(branch.thenBlock(), code.thenBlock());
  if (hasElse)
    side(branch.elseBlock(), code.elseBlock());
  bindAll(branch.getResults(), code.getResults());
}

/// The rest of the kernel runs only where the condition does not hold.
void KernelEmitter::emitExit(device::ExitIfOp exit) {
  Value continues = to.make<arith::XOrIOp>(value(exit.getCondition()), to.constant(b.getBoolAttr(true)));
  b.setInsertionPointToStart(scf::IfOp::create(b, to.loc, continues, /*withElseRegion=*/false).thenBlock());
}

/// Blocks take slices of the stages from a counter, in order. A block that takes
/// a slice of a stage first waits until all slices of earlier stages are done.
void KernelEmitter::emitStages(device::StagesOp op) {
  Value taken = parameters[cast<BlockArgument>(op.getArray()).getArgNumber()];
  Value done = LLVM::GEPOp::create(b, to.loc, taken.getType(), b.getI32Type(), taken,
                                   ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(device::kTurns - 1)});
  Value most = to.i64(op.getResidents()), end = to.i64(0);
  Values counts, ends;
  for (Value count : op.getCounts()) {
    counts.push_back(value(count));
    ends.push_back(end = to.add(end, to.make<arith::MinSIOp>(counts.back(), most)));
  }
  Value shared = sharedWord();
  auto isFirst = [&] { return to.equals(to.thread(), 0); };
  scf::WhileOp::create(
      b, to.loc, TypeRange(b.getI64Type()), ValueRange{to.i64(0)},
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        when(isFirst(), [&] { LLVM::StoreOp::create(b, loc, to.fetchAndAdd(taken), shared); });
        to.synchronize();
        Value slice = to.widen(LLVM::LoadOp::create(b, loc, b.getI32Type(), shared, /*alignment=*/4,
                                                    /*isVolatile=*/true));
        scf::ConditionOp::create(b, loc, to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, slice, ends.back()), slice);
      },
      [&](OpBuilder &, Location loc, ValueRange args) {
        OpBuilder::InsertionGuard guard(b);
        b.setInsertionPointToEnd(args[0].getParentBlock());
        Value slice = args[0];
        auto emitSlice = [&](size_t k) {
          Value first = slice;
          if (k > 0) {
            when(isFirst(), [&] { to.awaitSignals(done, to.narrow(ends[k - 1])); });
            to.synchronize();
            first = to.make<arith::SubIOp>(slice, ends[k - 1]);
          }
          auto loop = scf::ForOp::create(b, loc, first, counts[k], most);
          OpBuilder::InsertionGuard inner(b);
          b.setInsertionPointToStart(loop.getBody());
          Region &stage = op.getStages()[k];
          scalars.map(stage.getArgument(0), to.widen(to.narrow(loop.getInductionVar())));
          emitBlock(stage.front());
          to.loc = loc;
        };
        // Each stage is in the else branch of the one before.
        OpBuilder::InsertPoint after = b.saveInsertionPoint();
        for (size_t k = 0; k + 1 < ends.size(); ++k) {
          Value isOwn = to.make<arith::CmpIOp>(arith::CmpIPredicate::slt, slice, ends[k]);
          auto branch = scf::IfOp::create(b, loc, isOwn, /*withElseRegion=*/true);
          if (k == 0)
            after = OpBuilder::InsertPoint(branch->getBlock(), std::next(branch->getIterator()));
          b.setInsertionPointToStart(branch.thenBlock());
          emitSlice(k);
          b.setInsertionPointToStart(branch.elseBlock());
        }
        emitSlice(ends.size() - 1);
        b.restoreInsertionPoint(after);
        to.synchronize();
        when(isFirst(), [&] { to.signalAlone(done); });
        scf::YieldOp::create(b, loc, args);
      });
}

/// Returns the address of four bytes of shared memory.
Value KernelEmitter::sharedWord() {
  static constexpr llvm::StringLiteral kName = "moa$turn"; // not a name of a program
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  if (!module.lookupSymbol(kName)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    LLVM::GlobalOp::create(b, kernel.getLoc(), b.getI32Type(), /*isConstant=*/false, LLVM::Linkage::Internal, kName,
                           Attribute(), /*alignment=*/4, kSharedSpace);
  }
  return LLVM::AddressOfOp::create(b, to.loc, type, kName);
}

void KernelEmitter::when(Value condition, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, to.loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void KernelEmitter::emitLocal(memref::AllocaOp local) {
  MemRefType type = local.getType();
  // In the entry block, where the optimiser turns it into registers.
  OpBuilder::InsertionGuard guard(b);
  Value count = to.i64(type.getNumElements());
  b.setInsertionPointAfterValue(count);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  scalars.map(local.getResult(), LLVM::AllocaOp::create(b, to.loc, pointer, scalarType(type.getElementType()), count));
}

Value KernelEmitter::element(Value local, ValueRange indices) {
  auto type = cast<MemRefType>(local.getType());
  Value number = to.i64(0);
  for (auto [extent, index] : llvm::zip(type.getShape(), indices))
    number = to.add(to.mul(number, extent), value(index));
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::GEPOp::create(b, to.loc, pointer, scalarType(type.getElementType()), value(local), ValueRange(number));
}

/// Returns the type of an element in memory: booleans and 8-bit floats are bytes.
static Type storageType(Type element) {
  return element.isInteger(1) || isa<Float8E4M3FNType>(element) ? IntegerType::get(element.getContext(), 8) : element;
}

Value KernelEmitter::address(Value array, Value offset) {
  auto number = cast<BlockArgument>(array).getArgNumber();
  Type element = storageType(cast<ArrayType>(array.getType()).getElementType());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  return LLVM::GEPOp::create(b, to.loc, pointer, element, parameters[number], ValueRange(value(offset)));
}

/// Returns whether an array has the same elements wherever a kernel reads it. Inputs do; so do
/// arrays that earlier launches wrote, after the wait for them.
bool KernelEmitter::isInvariant(Value array) {
  auto program = cast<device::ProgramOp>(kernel->getParentOp());
  return program.isInput(array) || launch.awaits(cast<BlockArgument>(array).getArgNumber());
}

void KernelEmitter::emitLoad(device::LoadOp load) {
  Type type = load.getResult().getType();
  Value where = address(load.getArray(), load.getOffset());
  auto read = LLVM::LoadOp::create(b, to.loc, storageType(type), where);
  read.setInvariant(isInvariant(load.getArray()));
  Value result = read;
  if (type.isInteger(1)) {
    Value zero = to.constant(b.getI8IntegerAttr(0));
    result = to.make<arith::CmpIOp>(arith::CmpIPredicate::ne, result, zero);
  }
  scalars.map(load.getResult(), result);
}

void KernelEmitter::emitStore(device::StoreOp store) {
  if (store.getPairs()) // the register of the even column stores both
    return place->number % 2 == 0 ? emitPair(store) : void();
  Value stored = value(store.getValue());
  if (stored.getType().isInteger(1))
    stored = to.make<arith::ExtUIOp>(b.getI8Type(), stored);
  LLVM::StoreOp::create(b, to.loc, stored, address(store.getArray(), store.getOffset()));
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Returns the number of runs of an access, the elements per run, and the distance between runs.
template <typename OpT> static std::array<int64_t, 3> shapeOf(OpT op) {
  ArrayRef<int64_t> shape = cast<MemRefType>(op.getBuffer().getType()).getShape();
  if constexpr (std::is_same_v<OpT, device::LoadRunOp>)
    if (op.getStep())
      return {shape.drop_back().back(), shape.back(), int64_t(*op.getStep())};
  return {1, shape.back(), shape.back()};
}

/// Emits `whole(pointer)` if the elements are adjacent, aligned and all exist, else
/// `single(element, pointer)` for each element that exists.
template <typename OpT>
void KernelEmitter::overRun(OpT op, int64_t unitBytes, llvm::function_ref<void(Value)> whole,
                            llvm::function_ref<void(int64_t, Value)> single) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  auto [runs, width, step] = shapeOf(op);
  int64_t count = (runs - 1) * step + width;
  Value first = address(op.getArray(), op.getOffset()), exist = value(op.getCount());
  Value isWhole = to.make<arith::CmpIOp>(arith::CmpIPredicate::sge, exist, to.i64(count));
  if (!op.getAligned()) {
    Value bits = LLVM::PtrToIntOp::create(b, to.loc, b.getI64Type(), first);
    Value isAligned = to.equals(to.make<arith::AndIOp>(bits, to.i64(unitBytes - 1)), 0);
    isWhole = to.make<arith::AndIOp>(to.equals(value(op.getStride()), 1), isWhole);
    isWhole = to.make<arith::AndIOp>(isWhole, isAligned);
  }
  auto branch = scf::IfOp::create(b, to.loc, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  whole(first);
  b.setInsertionPointToStart(branch.elseBlock());
  for (int64_t e = 0; e < runs * width; ++e) {
    int64_t k = e / width * step + e % width;
    b.setInsertionPoint(branch.elseBlock()->getTerminator());
    Value exists = to.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, exist, to.i64(k));
    Value offset = to.mul(value(op.getStride()), k);
    when(exists, [&] {
      auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
      single(e,
             LLVM::GEPOp::create(b, to.loc, pointer, storageType(buffer.getElementType()), first, ValueRange(offset)));
    });
  }
}

/// Returns the type and size of an access of up to 16 bytes, in 32-bit words.
static std::pair<Type, int64_t> getUnit(OpBuilder &b, MemRefType buffer) {
  int64_t bytes = buffer.getShape().back() * buffer.getElementTypeBitWidth() / 8;
  int64_t words = std::min<int64_t>(bytes, 16) / 4;
  Type type = b.getI32Type();
  return {words == 1 ? type : VectorType::get(words, type), 4 * words};
}

/// Returns the address of a buffer's row, plus `offset` elements.
Value KernelEmitter::rowOf(Value buffer, ValueRange at, int64_t offset) {
  auto type = cast<MemRefType>(buffer.getType());
  Value number = to.i64(0);
  for (auto [k, index] : llvm::enumerate(at))
    number = to.mul(to.add(number, value(index)), type.getShape()[k + 1]);
  for (int64_t extent : type.getShape().drop_front(at.size() + 1))
    number = to.mul(number, extent);
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::GEPOp::create(b, to.loc, pointer, storageType(type.getElementType()), value(buffer),
                             ValueRange(to.add(number, offset)));
}

void KernelEmitter::emitLoadRun(device::LoadRunOp op) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  Type element = storageType(buffer.getElementType());
  auto [unit, bytes] = getUnit(b, buffer);
  auto [runs, width, step] = shapeOf(op);
  int64_t perUnit = bytes * 8 / buffer.getElementTypeBitWidth(), count = runs * width;
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  auto whole = [&, width = width, step = step, unit = unit, bytes = bytes](Value first) {
    for (int64_t k = 0; k < count; k += perUnit) {
      Value offset = to.i64(k / width * step + k % width);
      Value from = LLVM::GEPOp::create(b, to.loc, pointer, element, first, ValueRange(offset));
      auto read = LLVM::LoadOp::create(b, to.loc, unit, from, bytes);
      read.setInvariant(isInvariant(op.getArray()));
      LLVM::StoreOp::create(b, to.loc, read, rowOf(op.getBuffer(), op.getAt(), k), /*alignment=*/4);
    }
  };
  overRun(op, bytes, whole, [&](int64_t k, Value from) {
    auto read = LLVM::LoadOp::create(b, to.loc, element, from);
    read.setInvariant(isInvariant(op.getArray()));
    LLVM::StoreOp::create(b, to.loc, read, rowOf(op.getBuffer(), op.getAt(), k));
  });
}

void KernelEmitter::emitStoreRun(device::StoreRunOp op) {
  auto buffer = cast<MemRefType>(op.getBuffer().getType());
  Type element = storageType(buffer.getElementType());
  auto [unit, bytes] = getUnit(b, buffer);
  int64_t perUnit = bytes * 8 / buffer.getElementTypeBitWidth(), count = buffer.getShape().back();
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  auto whole = [&](Value first) {
    for (int64_t k = 0; k < count; k += perUnit) {
      Value to_ = LLVM::GEPOp::create(b, to.loc, pointer, element, first, ValueRange(to.i64(k)));
      Value bits = LLVM::LoadOp::create(b, to.loc, unit, rowOf(op.getBuffer(), op.getAt(), k),
                                        /*alignment=*/4);
      LLVM::StoreOp::create(b, to.loc, bits, to_, bytes);
    }
  };
  overRun(op, bytes, whole, [&](int64_t k, Value at) {
    Value stored = LLVM::LoadOp::create(b, to.loc, element, rowOf(op.getBuffer(), op.getAt(), k));
    LLVM::StoreOp::create(b, to.loc, stored, at);
  });
}

} // namespace moa::nvvm
