//===- KernelEditor.cpp - arrays and nests added to a kernel --------------===//
#include "lib/Accuracy/Stages/KernelEditor.h"
#include "dialects/ONF/Transforms/Temporaries.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa::accuracy {

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

Value Code::load(Value array, ValueRange indices) { return make<onf::LoadOp>(array, indices); }

Value Code::loadFrom(Value array, ValueRange indices, Value further) {
  std::vector<onf::Subscript> axes = onf::SubscriptsAttr::getIdentity(b.getContext(), indices.size()).getAxes();
  axes.back().factors[indices.size()] = SymExpr(1);
  Type element = cast<ArrayType>(array.getType()).getElementType();
  return make<onf::LoadOp>(element, array, placed(indices, {further}), onf::SubscriptsAttr::get(b.getContext(), axes));
}

Value Code::loadFloat(Value array, ValueRange indices) { return widen(load(array, indices)); }

void Code::store(Value value, Value array, ValueRange indices) { onf::StoreOp::create(b, loc, value, array, indices); }

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value Code::extent(const SymExpr &expr) { return make<onf::ExtentOp>(b.getIndexType(), expr); }

Value Code::index(int64_t value) { return make<arith::ConstantIndexOp>(value); }

Value Code::integer(int64_t value) { return make<arith::ConstantIntOp>(b.getI32Type(), value); }

Value Code::real(double value) { return make<arith::ConstantOp>(b.getF32FloatAttr(static_cast<float>(value))); }

Value Code::widen(Value value) {
  if (value.getType().isF32() || value.getType().isF64())
    return value;
  return make<arith::ExtFOp>(b.getF32Type(), value);
}

Value Code::toIndex(Value value) { return make<arith::IndexCastOp>(b.getIndexType(), value); }

Value Code::toReal(Value index) {
  Value wide = make<arith::IndexCastOp>(b.getI64Type(), index);
  return make<arith::SIToFPOp>(b.getF32Type(), wide);
}

Value Code::toNumber(Value condition) {
  Value no = index(0), yes = index(1);
  return select(condition, yes, no);
}

template <typename FloatOp, typename IntegerOp> static Value makeFor(Code &code, Value x, Value y) {
  if (isa<FloatType>(x.getType()))
    return code.make<FloatOp>(x, y);
  return code.make<IntegerOp>(x, y);
}

Value Code::add(Value x, Value y) { return makeFor<arith::AddFOp, arith::AddIOp>(*this, x, y); }
Value Code::sub(Value x, Value y) { return makeFor<arith::SubFOp, arith::SubIOp>(*this, x, y); }
Value Code::mul(Value x, Value y) { return makeFor<arith::MulFOp, arith::MulIOp>(*this, x, y); }
Value Code::max(Value x, Value y) { return makeFor<arith::MaximumFOp, arith::MaxSIOp>(*this, x, y); }
Value Code::min(Value x, Value y) { return makeFor<arith::MinimumFOp, arith::MinSIOp>(*this, x, y); }
Value Code::div(Value x, Value y) { return make<arith::DivFOp>(x, y); }
Value Code::absolute(Value x) { return make<math::AbsFOp>(x); }
Value Code::floorDiv(Value x, Value y) { return make<arith::FloorDivSIOp>(x, y); }
Value Code::compare(arith::CmpIPredicate is, Value x, Value y) { return make<arith::CmpIOp>(is, x, y); }
Value Code::compare(arith::CmpFPredicate is, Value x, Value y) { return make<arith::CmpFOp>(is, x, y); }
Value Code::both(Value x, Value y) { return make<arith::AndIOp>(x, y); }
Value Code::select(Value condition, Value x, Value y) { return make<arith::SelectOp>(condition, x, y); }

Value Code::hash(Value number, ValueRange others) {
  constexpr int64_t prime = 1048573;
  static_assert(prime * 1024 / 32 <= kHashes);
  auto modulo = [&](Value x, int64_t y) { return make<arith::RemSIOp>(x, index(y)); };
  auto times = [&](Value x, int64_t y) { return mul(x, index(y)); };
  Value hash = times(number, 7919);
  for (Value other : others)
    hash = modulo(add(times(modulo(hash, prime), 104729), other), prime);
  for (int64_t shift : {12345, 54321}) {
    Value moved = modulo(add(hash, index(shift)), prime);
    Value square = mul(moved, moved);
    Value divisor = index(32);
    hash = floorDiv(modulo(square, prime * 1024), divisor);
  }
  return hash;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

static ArrayAttr noText(OpBuilder &b) { return b.getArrayAttr({}); }

Code::Values Code::fold(StringRef name, const SymExpr &extent,
                        llvm::function_ref<SmallVector<State>(Code &, Value, Value &)> body,
                        llvm::function_ref<SmallVector<Sum>(Code &)> sums) {
  // The body is built first, because it determines the states.
  auto block = std::make_unique<Block>();
  Value index = block->addArgument(b.getIndexType(), loc), present;
  Code inside(kernel, OpBuilder(b.getContext()), loc);
  inside.b.setInsertionPointToEnd(block.get());
  SmallVector<State> terms = body(inside, index, present);
  if (present)
    onf::GuardOp::create(inside.b, loc, present);
  Values states;
  for (State &term : terms) {
    auto acc =
        onf::AccOp::create(inside.b, loc, term.value.getType(), term.monoid, term.name, noText(b), noText(b),
                           ValueRange(), ValueRange(), ScalarFn::mul, noText(b), TypeAttr(), FlatSymbolRefAttr());
    OpBuilder value(b.getContext());
    value.createBlock(&acc.getValue());
    onf::YieldOp::create(value, loc, term.value);
    states.push_back(acc.getResult());
  }
  for (Sum &sum : sums ? sums(inside) : SmallVector<Sum>()) {
    auto type = ArrayType::get(b.getContext(), {sum.extent}, sum.value.getType());
    auto acc = onf::AccOp::create(inside.b, loc, type, Monoid::add, sum.name, b.getArrayAttr({sum.axis}),
                                  b.getArrayAttr({sum.extent}), ValueRange(), ValueRange(), ScalarFn::mul, noText(b),
                                  sum.operand ? TypeAttr::get(sum.operand) : TypeAttr(), FlatSymbolRefAttr());
    Code term(kernel, OpBuilder(b.getContext()), loc);
    Block *termBlock = term.b.createBlock(&acc.getValue());
    Value factor = sum.along(term, termBlock->addArgument(b.getIndexType(), loc));
    onf::YieldOp::create(term.b, loc, term.mul(sum.value, factor));
    states.push_back(acc.getResult());
  }
  onf::YieldOp::create(inside.b, loc, states);
  auto fold = onf::FoldOp::create(b, loc, TypeRange(ValueRange(states)), b.getStringAttr(name),
                                  ExprAttr::get(b.getContext(), extent), onf::AxisAttr(), ArrayAttr(), ValueRange());
  fold.getBody().push_back(block.release());
  return Values(fold.getResults());
}

static onf::ForOp makeLoop(OpBuilder &b, Location loc, ArrayRef<Attribute> names, ArrayRef<Attribute> extents) {
  auto loop = onf::ForOp::create(b, loc, b.getArrayAttr(names), b.getArrayAttr(extents));
  Block &block = loop.getBody().emplaceBlock();
  for (size_t k = 0; k < extents.size(); ++k)
    block.addArgument(b.getIndexType(), loc);
  return loop;
}

void Code::loops(ArrayRef<Attribute> names, ArrayRef<Attribute> extents,
                 llvm::function_ref<void(Code &, ValueRange)> body) {
  if (extents.empty())
    return body(*this, {});
  onf::ForOp loop = makeLoop(b, loc, names, extents);
  Code inside(kernel, OpBuilder::atBlockEnd(&loop.getBody().front()), loc);
  body(inside, loop.getBody().getArguments());
}

void setChoice(onf::ForOp nest, const Choice &choice) {
  Builder b(nest.getContext());
  nest.getChoicesMutable().assign(choice.array);
  nest.setChoiceAxesAttr(b.getDenseI64ArrayAttr(choice.axes));
  nest.setChoiceAttr(b.getI64IntegerAttr(choice.value));
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

std::string KernelEditor::makeName(const Twine &name) {
  std::string result = name.str();
  auto isTaken = [&] {
    return kernel.findArray(result) || llvm::any_of(kernel.getSymbols().getAsValueRange<StringAttr>(),
                                                    [&](StringRef symbol) { return symbol == result; });
  };
  while (isTaken())
    result += "_";
  return result;
}

static ArrayAttr append(ArrayAttr list, MLIRContext *context, Attribute entry) {
  SmallVector<Attribute> entries;
  if (list)
    llvm::append_range(entries, list);
  entries.push_back(entry);
  return ArrayAttr::get(context, entries);
}

static ArrayType makeType(ArrayRef<Attribute> extents, Type element) {
  SmallVector<ExprAttr> shape;
  for (Attribute extent : extents)
    shape.push_back(cast<ExprAttr>(extent));
  return ArrayType::get(element.getContext(), shape, element);
}

Value KernelEditor::addTemporary(const Twine &name, ArrayRef<Attribute> extents, Type element) {
  ArrayType type = makeType(extents, element);
  SmallVector<SymExpr> shape;
  for (unsigned axis = 0; axis < type.getRank(); ++axis)
    shape.push_back(type.getExtent(axis));
  return onf::addTemporary(kernel, makeName(name), shape, element, kernel.getLoc());
}

Value KernelEditor::addResult(const Twine &name, ArrayRef<Attribute> extents, Type element) {
  ArrayType type = makeType(extents, element);
  Attribute called = text(makeName(name));
  MLIRContext *context = kernel.getContext();
  unsigned number = kernel.getNumInputs() + kernel.getNumOutputs();
  kernel.setResultNamesAttr(append(kernel.getResultNamesAttr(), context, called));
  kernel.setResultTypesAttr(append(kernel.getResultTypesAttr(), context, TypeAttr::get(type)));
  if (ArrayAttr within = kernel.getWithinAttr())
    kernel.setWithinAttr(append(within, context, UnitAttr::get(context)));
  return kernel.getBody().insertArgument(number, type, kernel.getLoc());
}

std::pair<KernelEditor::Attributes, KernelEditor::Attributes> KernelEditor::axesOf(Value array,
                                                                                   ArrayRef<unsigned> without) {
  Attributes names, extents;
  for (auto [axis, extent] : llvm::enumerate(cast<ArrayType>(array.getType()).getShape()))
    if (!llvm::is_contained(without, axis)) {
      names.push_back(text("i" + Twine(axis)));
      extents.push_back(extent);
    }
  return {names, extents};
}

onf::ForOp KernelEditor::addNest(ArrayRef<Attribute> names, ArrayRef<Attribute> extents, const Choice *choice,
                                 llvm::function_ref<void(Code &, ValueRange)> body) {
  OpBuilder b(before);
  onf::ForOp loop = makeLoop(b, before.getLoc(), names, extents);
  if (choice)
    setChoice(loop, *choice);
  Code code(kernel, OpBuilder::atBlockEnd(&loop.getBody().front()), before.getLoc());
  body(code, loop.getBody().getArguments());
  return loop;
}

} // namespace moa::accuracy
