//===- Instructions.cpp - sequences of PTX instructions as ops ------------===//
#include "lib/Conversion/DeviceToNVVM/Instructions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::nvvm {

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value Instructions::constant(TypedAttr value) {
  Value &known = constants[value];
  if (known)
    return known;
  OpBuilder::InsertionGuard guard(b);
  if (lastConstant)
    b.setInsertionPointAfter(lastConstant);
  else
    b.setInsertionPointToStart(entry);
  lastConstant = arith::ConstantOp::create(b, entry->getParentOp()->getLoc(), value);
  return known = lastConstant->getResult(0);
}

/// Floats are not folded: LLVM knows when their bits do not change.
Value Instructions::simplify(Operation *op) {
  Value result = op->getResult(0);
  auto isInteger = [](Value v) { return isa<IntegerType>(v.getType()); };
  if (!isInteger(result) || !llvm::all_of(op->getOperands(), isInteger))
    return result;
  // A first fold may only swap the operands.
  SmallVector<OpFoldResult, 1> folded;
  if (succeeded(op->fold(folded)) && folded.empty())
    (void)op->fold(folded);
  if (folded.empty())
    return result;
  op->erase();
  if (auto value = dyn_cast<Attribute>(folded[0]))
    return constant(cast<TypedAttr>(value));
  return cast<Value>(folded[0]);
}

Value Instructions::i32(int64_t value) { return constant(b.getI32IntegerAttr(value)); }
Value Instructions::i64(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
Value Instructions::f32(float value) { return constant(b.getF32FloatAttr(value)); }
Value Instructions::i1(bool value) { return constant(b.getBoolAttr(value)); }
Value Instructions::add(Value x, Value y) { return make<arith::AddIOp>(x, y); }
Value Instructions::mul(Value x, Value y) { return make<arith::MulIOp>(x, y); }

static Value constantLike(Instructions &to, Value x, int64_t y) {
  return x.getType().isInteger(64) ? to.i64(y) : to.i32(y);
}
Value Instructions::add(Value x, int64_t y) { return y == 0 ? x : add(x, constantLike(*this, x, y)); }
Value Instructions::mul(Value x, int64_t y) { return y == 1 ? x : mul(x, constantLike(*this, x, y)); }
Value Instructions::div(Value x, int64_t y) { return y == 1 ? x : make<arith::DivUIOp>(x, constantLike(*this, x, y)); }
Value Instructions::rem(Value x, int64_t y) { return make<arith::RemUIOp>(x, constantLike(*this, x, y)); }
Value Instructions::equals(Value x, int64_t y) {
  return make<arith::CmpIOp>(arith::CmpIPredicate::eq, x, constantLike(*this, x, y));
}
Value Instructions::narrow(Value x) { return make<arith::TruncIOp>(b.getI32Type(), x); }
Value Instructions::widen(Value x) { return make<arith::ExtUIOp>(b.getI64Type(), x); }

//===----------------------------------------------------------------------===//
// Assembly
//===----------------------------------------------------------------------===//

Values Instructions::assembly(StringRef text, StringRef constraints, ValueRange operands, TypeRange results,
                              bool isVolatile) {
  Type type;
  if (results.size() == 1)
    type = results[0];
  else if (!results.empty())
    type = LLVM::LLVMStructType::getLiteral(b.getContext(), llvm::to_vector(results));
  auto op = LLVM::InlineAsmOp::create(
      b, loc, type ? TypeRange(type) : TypeRange(), operands, text, constraints, isVolatile,
      /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  if (results.empty())
    return {};
  if (results.size() == 1)
    return {op.getRes()};
  Values values;
  for (size_t k = 0; k != results.size(); ++k)
    values.push_back(LLVM::ExtractValueOp::create(b, loc, op.getRes(), k));
  return values;
}

Value Instructions::call(StringRef intrinsic, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, type, b.getStringAttr(intrinsic), operands).getResult(0);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

Value Instructions::thread() { return NVVM::ThreadIdXOp::create(b, loc, b.getI32Type()); }
Value Instructions::block() { return NVVM::BlockIdXOp::create(b, loc, b.getI32Type()); }

Value Instructions::exchange(Value value, Value operand, NVVM::ShflKind kind, Value lanes) {
  Type type = value.getType();
  auto exchange = [&](Value word) -> Value {
    Value clamp = i32(31), members = lanes ? lanes : i32(-1);
    return NVVM::ShflOp::create(b, loc, word.getType(), members, word, operand, clamp, kind, UnitAttr());
  };
  if (type.isF32() || type.isInteger(32))
    return exchange(value);
  if (type.getIntOrFloatBitWidth() < 32) {
    Value word = make<arith::ExtUIOp>(b.getI32Type(), value);
    return make<arith::TruncIOp>(type, exchange(word));
  }
  Value bits = type.isF64() ? make<arith::BitcastOp>(b.getI64Type(), value) : value;
  Value high = narrow(make<arith::ShRUIOp>(bits, i64(32)));
  Value low = widen(exchange(narrow(bits)));
  Value distance = i64(32);
  high = make<arith::ShLIOp>(widen(exchange(high)), distance);
  bits = make<arith::OrIOp>(low, high);
  return type.isF64() ? make<arith::BitcastOp>(type, bits) : bits;
}

Value Instructions::shuffle(Value value, int64_t mask, std::optional<int64_t> group) {
  Value lanes;
  if (group) { // bits of the lanes of this group
    Value ofGroup = i32(31 & -*group), first = make<arith::AndIOp>(thread(), ofGroup);
    lanes = make<arith::ShLIOp>(i32((int64_t(1) << *group) - 1), first);
  }
  return exchange(value, i32(mask), NVVM::ShflKind::bfly, lanes);
}

Value Instructions::shuffleFrom(Value value, Value lane) { return exchange(value, lane, NVVM::ShflKind::idx); }

Value Instructions::vote(ValueRange conditions) {
  Value condition = conditions[0];
  for (Value other : conditions.drop_front())
    condition = make<arith::OrIOp>(condition, other);
  return NVVM::VoteSyncOp::create(b, loc, b.getI1Type(), i32(-1), condition, NVVM::VoteSyncKind::any);
}

Value Instructions::broadcast(Value value) {
  Value clamp = i32(31), first = i32(0), members = i32(-1);
  return NVVM::ShflOp::create(b, loc, value.getType(), members, value, first, clamp, NVVM::ShflKind::idx, UnitAttr());
}

void Instructions::synchronize() { NVVM::Barrier0Op::create(b, loc); }

void Instructions::synchronize(Value barrier, int64_t threads) {
  assembly("bar.sync $0, " + std::to_string(threads) + ";", "r,~{memory}", barrier, {});
}

void Instructions::setRegisters(int64_t count, bool more) {
  NVVM::SetMaxRegisterOp::create(b, loc, count,
                                 more ? NVVM::SetMaxRegisterAction::increase : NVVM::SetMaxRegisterAction::decrease);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Value Instructions::sharedPointer(Value address) {
  auto type = LLVM::LLVMPointerType::get(b.getContext(), kSharedSpace);
  return LLVM::IntToPtrOp::create(b, loc, type, address);
}

void Instructions::initBarrier(Value address, int64_t arrivals) {
  assembly("mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", {address, i32(arrivals)}, {});
}

void Instructions::publishBarriers() { NVVM::FenceMbarrierInitOp::create(b, loc); }

void Instructions::awaitAsLastBlock(bool exits) {
  assembly(std::string("{.reg .pred last; .reg .b32 behind, blocks; mov.u32 behind, %ctaid.x; mov.u32 blocks, "
                       "%nctaid.x; "
                       "add.u32 behind, behind, 1; setp.eq.u32 last, behind, blocks; @last "
                       "griddepcontrol.launch_dependents; "
                       "@last griddepcontrol.wait;") +
               (exits ? " @last exit;}" : "}"),
           "~{memory}", {}, {});
}
Value Instructions::hasNothingToDo(Value flag) {
  return equals(assembly("ld.global.nc.b32 $0, [$1];", "=r,l,~{memory}", flag, b.getI32Type()).front(), 0);
}
void Instructions::letNextLaunchStart() {
  assembly("fence.acq_rel.gpu; griddepcontrol.launch_dependents;", "~{memory}", {}, {});
}
void Instructions::awaitEarlierLaunches() { assembly("griddepcontrol.wait;", "~{memory}", {}, {}); }

void Instructions::signal(Value counter) {
  assembly("{\n\t.reg .pred first;\n\t.reg .b32 lane;\n\tbar.warp.sync 0xffffffff;\n\tmov.u32 "
           "lane, %tid.x;\n\t"
           "and.b32 lane, lane, 31;\n\tsetp.eq.u32 first, lane, 0;\n\t"
           "@first red.release.gpu.global.add.s32 [$0], 1;\n\t}",
           "l,~{memory}", counter, {});
}

void Instructions::signalAlone(Value counter) {
  assembly("red.release.gpu.global.add.s32 [$0], 1;", "l,~{memory}", counter, {});
}

void Instructions::awaitSignals(Value counter, Value count) {
  assembly("{\n\t.reg .pred more;\n\t.reg .b32 found;\n\tAGAIN:\n\tld.relaxed.gpu.global.s32 "
           "found, [$0];\n\t"
           "setp.lt.s32 more, found, $1;\n\t@more bra AGAIN;\n\tld.acquire.gpu.global.s32 found, "
           "[$0];\n\t}",
           "l,r,~{memory}", {counter, count}, {});
}

Value Instructions::signals(Value counter) {
  return assembly("ld.acquire.gpu.global.s32 $0, [$1];", "=r,l,~{memory}", counter, b.getI32Type()).front();
}

Value Instructions::fetchAndAdd(Value counter) {
  return assembly("atom.relaxed.gpu.global.add.s32 $0, [$1], 1;", "=r,l,~{memory}", counter, b.getI32Type()).front();
}

void Instructions::raise(Value flag) { assembly("st.relaxed.gpu.global.s32 [$0], 1;", "l,~{memory}", flag, {}); }

void Instructions::wait(Value barrier, Value parity) {
  assembly("{\n\t.reg .pred done;\n\tAGAIN:\n\t"
           "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n\t"
           "@!done bra AGAIN;\n\t}",
           "r,r,~{memory}", {barrier, parity}, {});
}

void Instructions::arrive(Value barrier, Value lane) {
  assembly("{\n\t.reg .pred first;\n\tsetp.eq.u32 first, $1, 0;\n\t"
           "@first mbarrier.arrive.shared::cta.b64 _, [$0];\n\t}",
           "r,r,~{memory}", {barrier, lane}, {});
}

void Instructions::arriveAll(Value barrier) {
  assembly("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", barrier, {});
}

void Instructions::expectBytes(Value barrier, int64_t bytes) {
  assembly("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], " + std::to_string(bytes) + ";", "r,~{memory}", barrier,
           {});
}

/// Returns `{$2, $3, $4}` and `r,r,r` for the coordinates of a box.
static std::pair<std::string, std::string> coordinates(unsigned first, size_t count) {
  std::string list, constraints;
  for (size_t k = 0; k != count; ++k) {
    list += (k ? ", $" : "$") + std::to_string(first + k);
    constraints += ",r";
  }
  return {list, constraints};
}

void Instructions::copyBox(Value to, Value map, Value barrier, ValueRange at) {
  auto [list, constraints] = coordinates(3, at.size());
  Values operands{to, map, barrier};
  llvm::append_range(operands, at);
  assembly("cp.async.bulk.tensor." + std::to_string(at.size()) +
               "d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {" + list + "}], [$2];",
           "r,l,r" + constraints + ",~{memory}", operands, {});
}

/// Copies `bytes`, 16 or 0, and fills the rest of the 16 bytes with zeros.
void Instructions::copyUnit(Value to, Value from, Value bytes) {
  assembly("cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}", {to, from, bytes}, {});
}

void Instructions::arriveCopied(Value barrier) {
  assembly("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", "r,~{memory}", barrier, {});
}

void Instructions::storeBox(Value from, Value map, ValueRange at) {
  auto [list, constraints] = coordinates(2, at.size());
  Values operands{map, from};
  llvm::append_range(operands, at);
  assembly("cp.async.bulk.tensor." + std::to_string(at.size()) + "d.global.shared::cta.bulk_group [$0, {" + list +
               "}], [$1];",
           "l,r" + constraints + ",~{memory}", operands, {});
}

void Instructions::commitStores(bool andWait) {
  const char *text =
      andWait ? "cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" : "cp.async.bulk.commit_group;";
  assembly(text, "~{memory}", {}, {});
}

void Instructions::awaitStores() { assembly("cp.async.bulk.wait_group.read 0;", "~{memory}", {}, {}); }

void Instructions::publishShared() { assembly("fence.proxy.async.shared::cta;", "~{memory}", {}, {}); }

void Instructions::syncCluster() {
  assembly("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;", "~{memory}", {}, {});
}

Value Instructions::loadPeer(Value address, Value rank, Type type) {
  bool isFloat = isa<FloatType>(type);
  return assembly("{\n\t.reg .b32 place;\n\tmapa.shared::cluster.u32 place, $1, $2;\n\tld.shared::cluster." +
                      std::string(isFloat ? "f32" : "u32") + " $0, [place];\n\t}",
                  std::string(isFloat ? "=f" : "=r") + ",r,r,~{memory}", {address, rank}, type)[0];
}

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

// A tile is laid out as [pieces of 128 bytes][rows][128 bytes] with the 128-byte swizzle. The
// stride between groups of eight rows is 1024 bytes. By columns, the leading offset is the distance
// between pieces of 64 columns. Bit 62 selects the swizzle.
Value Instructions::descriptor(Value address, int64_t rows) {
  Value masked = make<arith::AndIOp>(address, i32(0x3ffff));
  Value low = widen(div(masked, 16));
  uint64_t rest = uint64_t(rows * 8) << 16 | uint64_t(64) << 32 | uint64_t(1) << 62;
  return make<arith::OrIOp>(low, i64(static_cast<int64_t>(rest)));
}

/// Returns the offset of step k, 32 bytes along the contraction, in units of 16 bytes.
static int64_t rowStep(int64_t rows, int64_t k) { return k / 4 * (rows * 8) + k % 4 * 2; }
static int64_t columnStep(int64_t k) { return k * 128; }

Values Instructions::contract(const ContractionShape &shape, ValueRange sum, ValueRange a, Value bTile) {
  unsigned sums = shape.columns / 2;
  bool fromRegisters = shape.aRows == 0;
  bool isInteger = isa<IntegerType>(shape.element);
  Type number = isInteger ? Type(b.getI32Type()) : b.getF32Type();
  SmallVector<Type> types(sums, number);
  Values operands(sum);
  if (sum.empty())
    operands.assign(sums, LLVM::UndefOp::create(b, loc, number));
  llvm::append_range(operands, a);
  operands.push_back(bTile);
  // Operands are numbered after the results and the registers tied to them.
  unsigned first = 2 * sums, tile = first + a.size();
  std::string list, text = "{\n\t.reg .pred adds;\n\t.reg .pred always;\n\t.reg .b64 a;\n\t"
                           ".reg .b64 b;\n\t";
  text += std::string("setp.ne.b32 adds, ") + (sum.empty() ? "0" : "1") +
          ", 0;\n\tsetp.ne.b32 always, 1, 0;\n\twgmma.fence.sync.aligned;\n\t";
  for (unsigned k = 0; k != sums; ++k)
    list += (k ? ", $" : "$") + std::to_string(k);
  bool isHalf = shape.element.getIntOrFloatBitWidth() == 16;
  std::string type = isInteger ? "s8" : !isHalf ? "e4m3" : shape.element.isBF16() ? "bf16" : "f16";
  std::string kinds = (isInteger ? "k32.s32." : isHalf ? "k16.f32." : "k32.f32.") + type + "." + type;
  // Floats have factors for signs, and 16-bit elements have transpositions.
  std::string last = isInteger ? "" : ", 1, 1";
  if (isHalf)
    last += std::string(fromRegisters ? ", " : ", 0, ") + (shape.byColumns ? "1" : "0");
  for (int64_t k = 0; k != shape.steps; ++k) {
    int64_t step = shape.byColumns ? columnStep(k) : rowStep(shape.bRows, k);
    text += "add.s64 b, $" + std::to_string(tile) + ", " + std::to_string(step) + ";\n\t";
    std::string left;
    if (fromRegisters) {
      for (unsigned r = 0; r != 4; ++r)
        left += (r ? ", $" : "{$") + std::to_string(first + 4 * k + r);
      left += "}";
    } else {
      text += "add.s64 a, $" + std::to_string(first) + ", " + std::to_string(rowStep(shape.aRows, k)) + ";\n\t";
      left = "a";
    }
    text += "wgmma.mma_async.sync.aligned.m64n" + std::to_string(shape.columns) + kinds + " {" + list + "}, " + left +
            ", b, " + (k == 0 ? "adds" : "always") + last + ";\n\t";
  }
  text += "wgmma.commit_group.sync.aligned;\n\t}";
  std::string constraints;
  for (unsigned k = 0; k != sums; ++k)
    constraints += isInteger ? "=r," : "=f,";
  for (unsigned k = 0; k != sums; ++k)
    constraints += std::to_string(k) + ",";
  for (size_t k = 0; k != a.size(); ++k)
    constraints += fromRegisters ? "r," : "l,";
  return assembly(text, constraints + "l,~{memory}", operands, types);
}

Values Instructions::awaitProducts(ValueRange sum, int64_t pending) {
  std::string constraints;
  for (Value x : sum)
    constraints += isa<IntegerType>(x.getType()) ? "=r," : "=f,";
  for (size_t k = 0; k != sum.size(); ++k)
    constraints += std::to_string(k) + ",";
  return assembly("wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";", constraints + "~{memory}", sum,
                  sum.getTypes());
}

/// Extracts the members of a struct.
static Values unpack(Instructions &to, Value list, size_t count) {
  Values values;
  for (size_t k = 0; k != count; ++k)
    values.push_back(LLVM::ExtractValueOp::create(to.b, to.loc, list, k));
  return values;
}

Values Instructions::multiply(const device::TileInstruction &tile, Type element, ValueRange sum, ValueRange leftWords,
                              ValueRange rightWords) {
  NVVM::MMATypes type = element.isF64()   ? NVVM::MMATypes::f64
                        : element.isF16() ? NVVM::MMATypes::f16
                                          : NVVM::MMATypes::bf16;
  auto operand = [&](ValueRange words) {
    Values values(words);
    if (element.isF16()) // pairs, as the op expects
      for (Value &word : values)
        word = LLVM::BitcastOp::create(b, loc, VectorType::get(2, b.getF16Type()), word);
    return values;
  };
  Values left = operand(leftWords), right = operand(rightWords);
  Type result = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(sum.getTypes()));
  Value list =
      NVVM::MmaOp::create(b, loc, result, left, right, sum, {tile.m, tile.n, tile.k}, std::nullopt, std::nullopt,
                          std::array{type, type}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  return unpack(*this, list, sum.size());
}

Values Instructions::loadMatrices(Value address, int64_t count, bool transposed) {
  SmallVector<Type> words(count, b.getI32Type());
  Type type = count == 1 ? words[0] : Type(LLVM::LLVMStructType::getLiteral(b.getContext(), words));
  Value list =
      NVVM::LdMatrixOp::create(b, loc, type, sharedPointer(address), static_cast<uint32_t>(count),
                               transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
                               NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8), NVVM::LdStMatrixEltType::B16);
  return count == 1 ? Values{list} : unpack(*this, list, count);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value Instructions::exp2(Value x) { return call("llvm.nvvm.ex2.approx.ftz.f", b.getF32Type(), x); }

Value Instructions::opaque(Value x) {
  Type type = x.getType();
  const char *constraint = type.isF32() ? "=f,0" : type.isInteger(32) ? "=r,0" : "=l,0";
  return assembly("", constraint, x, type)[0];
}
Value Instructions::reciprocal(Value x, bool subnormals) {
  if (subnormals)
    return assembly("rcp.approx.f32 $0, $1;", "=f,f", x, b.getF32Type(), /*isVolatile=*/false)[0];
  return call("llvm.nvvm.rcp.approx.ftz.f", b.getF32Type(), x);
}

// Volatile: a product in flight still reads its registers, which must not be written before the
// wait for it.
Value Instructions::pack(Value low, Value high, bool isBF16) {
  return assembly(isBF16 ? "cvt.rn.bf16x2.f32 $0, $1, $2;" : "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", {high, low},
                  b.getI32Type())[0];
}

Value Instructions::packFour(ValueRange x) {
  return assembly("{\n\t.reg .b16 low, high;\n\tcvt.rn.satfinite.e4m3x2.f32 low, $2, $1;\n\t"
                  "cvt.rn.satfinite.e4m3x2.f32 high, $4, $3;\n\tmov.b32 $0, {low, high};\n\t}",
                  "=r,f,f,f,f", x, b.getI32Type())[0];
}

Value Instructions::halvesFromBits(Value low, Value high) {
  Value bits = assembly("cvt.rn.relu.f16x2.f32 $0, $1, $2;", "=r,f,f", {high, low}, b.getI32Type())[0];
  return make<arith::ShLIOp>(bits, i32(4));
}

Value Instructions::addHalves(Value x, Value y) {
  return assembly("add.rn.f16x2 $0, $1, $2;", "=r,r,r", {x, y}, b.getI32Type())[0];
}

Value Instructions::sumOfHalves(Value x) {
  SmallVector<Type> types(2, b.getF32Type());
  Values both = assembly("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, $2;\n\t"
                         "cvt.f32.f16 $0, low;\n\tcvt.f32.f16 $1, high;\n\t}",
                         "=f,=f,r", x, types);
  return make<arith::AddFOp>(both[0], both[1]);
}

Value Instructions::packPairs(Value low, Value high) {
  return assembly("{\n\t.reg .b16 low, high;\n\tcvt.rn.satfinite.e4m3x2.f16x2 low, $1;\n\t"
                  "cvt.rn.satfinite.e4m3x2.f16x2 high, $2;\n\tmov.b32 $0, {low, high};\n\t}",
                  "=r,r,r", {low, high}, b.getI32Type())[0];
}

Value Instructions::toFloat8(Value x) {
  Value bits = assembly("{\n\t.reg .b16 pair;\n\t.reg .f32 none;\n\tmov.f32 none, 0f00000000;\n\t"
                        "cvt.rn.satfinite.e4m3x2.f32 pair, none, $1;\n\tcvt.u32.u16 $0, pair;\n\t}",
                        "=r,f", x, b.getI32Type())[0];
  return make<arith::TruncIOp>(b.getI8Type(), bits);
}

Value Instructions::fromFloat8(Value x) {
  Value bits = make<arith::ExtUIOp>(b.getI32Type(), x);
  return assembly("{\n\t.reg .b16 pair, low, high;\n\t.reg .b32 both;\n\tcvt.u16.u32 pair, $1;\n\t"
                  "cvt.rn.f16x2.e4m3x2 both, pair;\n\tmov.b32 {low, high}, both;\n\tcvt.f32.f16 $0, low;\n\t}",
                  "=f,r", bits, b.getF32Type())[0];
}

} // namespace moa::nvvm
