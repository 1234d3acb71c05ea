//===- KernelBuilder.cpp - small moa kernels for tests --------------------===//
#include "KernelBuilder.h"
#include "dialects/DNF/Transforms/Passes.h"
#include "dialects/MoA/Transforms/Passes.h"
#include "dialects/ONF/Transforms/Passes.h"
#include "lib/Conversion/DNFToONF/DNFToONF.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir;

namespace moa::test {

MLIRContext &getContext() {
  static MLIRContext *context = [] {
    auto *made = new MLIRContext(MLIRContext::Threading::DISABLED);
    made->loadDialect<MoADialect, dnf::DNFDialect, onf::ONFDialect, arith::ArithDialect, math::MathDialect>();
    // Remarks of the derivation are the subject of other tests.
    made->getDiagEngine().registerHandler(
        [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
    return made;
  }();
  return *context;
}

Type typeNamed(llvm::StringRef name) { return parseType(name, &getContext()); }

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

KernelBuilder::KernelBuilder(std::vector<std::string> symbols) : b(&getContext()), loc(b.getUnknownLoc()) {
  module = ModuleOp::create(loc);
  b.setInsertionPointToEnd(module->getBody());
  SmallVector<Attribute> names;
  for (const std::string &name : symbols)
    names.push_back(b.getStringAttr(name));
  ArrayAttr none = b.getArrayAttr({});
  kernel =
      KernelOp::create(b, loc, b.getStringAttr("k"), b.getArrayAttr(names), none, none, none, none, /*within=*/nullptr);
  b.createBlock(&kernel.getBody());
}

StringAttr KernelBuilder::text(StringRef value) { return b.getStringAttr(value); }

ExprAttr KernelBuilder::expr(StringRef text) { return ExprAttr::get(&getContext(), *SymExpr::parse(text)); }

ArrayType KernelBuilder::array(ArrayRef<ExprAttr> shape, Type type) {
  return ArrayType::get(&getContext(), shape, type);
}

ArrayAttr KernelBuilder::attributes(const Axes &axes) {
  SmallVector<Attribute> lists;
  for (const std::vector<int64_t> &list : axes)
    lists.push_back(b.getDenseI64ArrayAttr(list));
  return b.getArrayAttr(lists);
}

Value KernelBuilder::input(std::string name, std::vector<std::string> extents, StringRef type, std::string bound) {
  SmallVector<ExprAttr> shape;
  for (const std::string &extent : extents)
    shape.push_back(expr(extent));
  inputs.push_back({name, bound});
  // Values below the bound are what the inputs hold, so that they may be indices.
  SmallVector<std::string> ranges;
  for (const auto &entry : inputs)
    ranges.push_back(entry.bound.empty() ? "" : "0.." + entry.bound);
  SmallVector<StringRef> texts(ranges.begin(), ranges.end());
  kernel->setAttr("moa.ranges", b.getStrArrayAttr(texts));
  return kernel.getBody().front().addArgument(array(shape, typeNamed(type)), loc);
}

void KernelBuilder::range(double low, double high) {
  inputs.back().low = low;
  inputs.back().high = high;
}

void KernelBuilder::wholeRange(double low, double high) {
  range(low, high);
  inputs.back().whole = true;
}

void KernelBuilder::output(Value value) { outputs.push_back(value); }

Value KernelBuilder::constant(double value, StringRef type) {
  Type element = typeNamed(type);
  TypedAttr attr;
  if (isa<FloatType>(element))
    attr = FloatAttr::get(element, value);
  else
    attr = IntegerAttr::get(element, static_cast<int64_t>(value));
  return ConstantOp::create(b, loc, array({}, element), attr);
}

Value KernelBuilder::extent(StringRef text) {
  return ExtentOp::create(b, loc, array({}, b.getIndexType()), expr(text));
}

Value KernelBuilder::iota(StringRef extent) {
  ExprAttr n = expr(extent);
  return IotaOp::create(b, loc, array({n}, b.getIndexType()), n);
}

Value KernelBuilder::map(ScalarFn fn, std::vector<Value> operands, const Axes &axes) {
  SmallVector<ExprAttr> shape;
  for (auto [operand, list] : llvm::zip(operands, axes))
    for (auto [k, axis] : llvm::enumerate(list)) {
      if (shape.size() <= static_cast<size_t>(axis))
        shape.resize(axis + 1);
      shape[axis] = typeOf(operand).getShape()[k];
    }
  Type element = typeOf(operands.back()).getElementType();
  if (fn >= ScalarFn::eq && fn <= ScalarFn::ge)
    element = b.getI1Type();
  return MapOp::create(b, loc, array(shape, element), fn, operands, attributes(axes));
}

Value KernelBuilder::map(ScalarFn fn, std::vector<Value> operands) {
  Axes axes;
  for (Value operand : operands) {
    axes.emplace_back();
    for (unsigned k = 0; k < typeOf(operand).getRank(); ++k)
      axes.back().push_back(k);
  }
  return map(fn, std::move(operands), axes);
}

Value KernelBuilder::cast(Value x, StringRef type, bool implicit) {
  return CastOp::create(b, loc, typeOf(x).withElementType(typeNamed(type)), x, implicit);
}

Value KernelBuilder::mask(Value p, Value x, std::vector<int64_t> axes) {
  return MaskOp::create(b, loc, x.getType(), p, x, b.getDenseI64ArrayAttr(axes));
}

Value KernelBuilder::reduce(Monoid monoid, Value x, int64_t axis) {
  SmallVector<ExprAttr> shape(typeOf(x).getShape());
  shape.erase(shape.begin() + axis);
  return ReduceOp::create(b, loc, array(shape, typeOf(x).getElementType()), monoid, x, axis, FlatSymbolRefAttr());
}

Value KernelBuilder::reduce(Monoid monoid, Value x) { return reduce(monoid, x, typeOf(x).getRank() - 1); }

Value KernelBuilder::inner(Value a, Value c, int64_t frame, bool lhsFramed, bool rhsFramed, Monoid monoid,
                           ScalarFn fn) {
  ArrayRef<ExprAttr> left = typeOf(a).getShape(), right = typeOf(c).getShape();
  SmallVector<ExprAttr> shape((lhsFramed ? left : right).take_front(frame));
  llvm::append_range(shape, left.drop_front(lhsFramed ? frame : 0).drop_back());
  llvm::append_range(shape, right.drop_front((rhsFramed ? frame : 0) + 1));
  Type element = typeOf(a).getElementType();
  if (fn >= ScalarFn::eq && fn <= ScalarFn::ge)
    element = b.getI1Type();
  return InnerOp::create(b, loc, array(shape, element), monoid, fn, a, c, frame, lhsFramed, rhsFramed, TypeAttr());
}

Value KernelBuilder::psi(Value x, std::vector<Value> indices, std::vector<int64_t> dims, const Axes &axes,
                         std::vector<std::string> frameExtents) {
  SmallVector<ExprAttr> shape;
  for (const std::string &extent : frameExtents)
    shape.push_back(expr(extent));
  for (auto [k, extent] : llvm::enumerate(typeOf(x).getShape()))
    if (!llvm::is_contained(dims, static_cast<int64_t>(k)))
      shape.push_back(extent);
  return PsiOp::create(b, loc, array(shape, typeOf(x).getElementType()), x, indices, b.getDenseI64ArrayAttr(dims),
                       attributes(axes), b.getI64IntegerAttr(frameExtents.size()));
}

Value KernelBuilder::transpose(Value x, std::vector<int64_t> perm) {
  SmallVector<ExprAttr> shape;
  for (int64_t axis : perm)
    shape.push_back(typeOf(x).getShape()[axis]);
  return TransposeOp::create(b, loc, array(shape, typeOf(x).getElementType()), x, b.getDenseI64ArrayAttr(perm));
}

Value KernelBuilder::reshape(Value x, std::vector<std::string> extents) {
  SmallVector<ExprAttr> shape;
  for (const std::string &extent : extents)
    shape.push_back(expr(extent));
  return ReshapeOp::create(b, loc, array(shape, typeOf(x).getElementType()), x);
}

Value KernelBuilder::slice(Value x, int64_t axis, StringRef start, StringRef count) {
  SmallVector<ExprAttr> shape(typeOf(x).getShape());
  shape[axis] = expr(count);
  return SliceOp::create(b, loc, array(shape, typeOf(x).getElementType()), x, axis, expr(start).getValue(),
                         shape[axis].getValue());
}

Value KernelBuilder::reverse(Value x, int64_t axis) { return ReverseOp::create(b, loc, x.getType(), x, axis); }

Value KernelBuilder::rotate(Value x, StringRef by, int64_t axis) {
  return RotateOp::create(b, loc, x.getType(), x, expr(by).getValue(), axis);
}

Value KernelBuilder::cat(Value x, Value y, int64_t axis) {
  SmallVector<ExprAttr> shape(typeOf(x).getShape());
  shape[axis] = ExprAttr::get(&getContext(), typeOf(x).getExtent(axis) + typeOf(y).getExtent(axis));
  return CatOp::create(b, loc, array(shape, typeOf(x).getElementType()), x, y, axis);
}

std::string KernelBuilder::monoid(StringRef name, double identity, StringRef type,
                                  llvm::function_ref<Value(Value, Value)> combine) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(kernel);
  Type element = typeNamed(type);
  TypedAttr attr = isa<FloatType>(element) ? TypedAttr(FloatAttr::get(element, identity))
                                           : IntegerAttr::get(element, static_cast<int64_t>(identity));
  auto op = MonoidOp::create(b, loc, name, attr);
  Type scalar = array({}, element);
  Block *block = b.createBlock(&op.getBody(), {}, {scalar, scalar}, {loc, loc});
  CombinedOp::create(b, loc, combine(block->getArgument(0), block->getArgument(1)));
  return name.str();
}

Value KernelBuilder::reduce(const std::string &monoid, Value x, int64_t axis) {
  SmallVector<ExprAttr> shape(typeOf(x).getShape());
  shape.erase(shape.begin() + axis);
  return ReduceOp::create(b, loc, array(shape, typeOf(x).getElementType()), Monoid::user, x, axis,
                          FlatSymbolRefAttr::get(text(monoid)));
}

OwningOpRef<ModuleOp> KernelBuilder::finish() {
  SmallVector<Attribute> argNames, resultNames, resultTypes;
  for (const Input &input : inputs)
    argNames.push_back(text(input.name));
  for (auto [k, value] : llvm::enumerate(outputs)) {
    resultNames.push_back(text("out" + std::to_string(k)));
    resultTypes.push_back(TypeAttr::get(value.getType()));
  }
  kernel.setArgNamesAttr(b.getArrayAttr(argNames));
  kernel.setResultNamesAttr(b.getArrayAttr(resultNames));
  kernel.setResultTypesAttr(b.getArrayAttr(resultTypes));
  ReturnOp::create(b, loc, outputs);
  EXPECT_TRUE(succeeded(verify(*module)));
  return std::move(module);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static int64_t evaluate(const SymExpr &expr, const Sizes &sizes) {
  return *expr.evaluate([&](StringRef name) -> std::optional<int64_t> { return sizes.at(name.str()); });
}

KernelInputs randomInputs(KernelOp kernel, const std::vector<Input> &inputs, const Sizes &sizes, unsigned seed) {
  std::mt19937 engine(seed);
  KernelInputs result;
  result.symbols = sizes;
  for (auto [arg, input] : llvm::zip(kernel.getBody().getArguments(), inputs)) {
    auto type = mlir::cast<ArrayType>(arg.getType());
    Array array;
    int64_t count = 1;
    for (unsigned axis = 0; axis < type.getRank(); ++axis) {
      array.shape.push_back(evaluate(type.getExtent(axis), sizes));
      count *= array.shape.back();
    }
    bool isFloat = isa<FloatType>(type.getElementType());
    int64_t bound = type.getElementType().isInteger(1) ? 2 : evaluate(*SymExpr::parse(input.bound), sizes);
    std::uniform_real_distribution<double> real(input.low, input.high);
    std::uniform_int_distribution<int64_t> integer(0, std::max<int64_t>(bound, 1) - 1);
    auto drawFloat = [&] {
      double value = real(engine);
      return roundTo(input.whole ? std::nearbyint(value) : value, type.getElementType());
    };
    for (int64_t k = 0; k < count; ++k)
      array.data.push_back(isFloat ? drawFloat() : integer(engine));
    result.arrays.push_back(std::move(array));
  }
  return result;
}

static bool apply(ModuleOp module, llvm::function_ref<void(PassManager &)> passes) {
  PassManager manager(&getContext());
  passes(manager);
  bool done = succeeded(manager.run(module));
  EXPECT_TRUE(done);
  return done;
}

Levels::Levels(OwningOpRef<ModuleOp> module, std::vector<std::string> disabledRules, unsigned seed)
    : moa(std::move(module)) {
  OwningOpRef<ModuleOp> reduced = moa->clone();
  if (!apply(*reduced, [&](PassManager &manager) {
        manager.addPass(createMoAVerify());
        manager.addPass(createConvertMoAToDNFPass({}, seed));
        manager.addPass(dnf::createDNFVerify());
      }))
    return;
  dnf = std::move(reduced);
  OwningOpRef<ModuleOp> derived = dnf->clone();
  if (apply(*derived, [&](PassManager &manager) {
        manager.addPass(createConvertDNFToONFPass(disabledRules));
        manager.addPass(onf::createONFVerify());
      }))
    onf = std::move(derived);
}

std::vector<unsigned> Levels::passes() {
  std::vector<unsigned> counts;
  for (auto nest : getONF().getBody().getOps<onf::ForOp>()) {
    auto folds = nest.getBody().getOps<onf::FoldOp>();
    counts.push_back(std::distance(folds.begin(), folds.end()));
  }
  return counts;
}

std::vector<Array> run(Operation *kernel, const KernelInputs &inputs) {
  auto outputs = interpret(kernel, inputs);
  if (outputs)
    return *outputs;
  ADD_FAILURE() << llvm::toString(outputs.takeError());
  return {};
}

static void compare(const std::vector<Array> &got, const std::vector<Array> &expected,
                    llvm::function_ref<bool(double, double)> equal) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].shape, expected[k].shape) << "output " << k;
    ASSERT_EQ(got[k].data.size(), expected[k].data.size());
    for (size_t i = 0; i < got[k].data.size(); ++i)
      ASSERT_PRED2(equal, got[k].data[i], expected[k].data[i]) << "output " << k << ", element " << i;
  }
}

void expectSame(const std::vector<Array> &got, const std::vector<Array> &expected) {
  compare(got, expected, [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); });
}

void expectClose(const std::vector<Array> &got, const std::vector<Array> &expected, double tolerance) {
  compare(got, expected, [&](double a, double b) {
    if (!std::isfinite(b))
      return a == b || (std::isnan(a) && std::isnan(b));
    return std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b));
  });
}

} // namespace moa::test
