//===- MoAOps.cpp - verifiers of the moa ops ------------------------------===//
#include "dialects/MoA/IR/MoA.h"
#include "dialects/MoA/IR/Monoid.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace moa;

#define GET_OP_CLASSES
#include "dialects/MoA/IR/MoAOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

static ArrayType arrayOf(Value value) { return cast<ArrayType>(value.getType()); }

/// C1, C2: the axes of an operand, placed at `axes` of the result, have the result's extents.
static LogicalResult verifyPlacement(Operation *op, ArrayType operand, ArrayRef<int64_t> axes, ArrayType result,
                                     StringRef what) {
  if (axes.size() != operand.getRank())
    return op->emitOpError("expects one axis per axis of ")
           << what << " (C1), but got " << axes.size() << " for rank " << operand.getRank();
  for (auto [k, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= static_cast<int64_t>(result.getRank()) || (k > 0 && axes[k - 1] >= axis))
      return op->emitOpError("expects increasing axes of the result for ") << what << " (C1), but got " << axis;
    if (operand.getShape()[k] != result.getShape()[axis])
      return op->emitOpError("expects equal extents (C2), but got ")
             << operand.getExtent(k).str() << " for axis " << k << " of " << what << " and "
             << result.getExtent(axis).str() << " for axis " << axis << " of the result";
  }
  return success();
}

static SmallVector<int64_t> axesOf(ArrayAttr axes, unsigned k) {
  return SmallVector<int64_t>(cast<DenseI64ArrayAttr>(axes[k]).asArrayRef());
}

static LogicalResult verifyAxesList(Operation *op, ArrayAttr axes, unsigned n) {
  if (axes.size() != n || !llvm::all_of(axes, [](Attribute a) { return isa<DenseI64ArrayAttr>(a); }))
    return op->emitOpError("expects one list of axes per operand (C1), but got ") << axes.size() << " for " << n;
  return success();
}

static LogicalResult verifyShape(Operation *op, ArrayType got, ArrayRef<ExprAttr> expected) {
  if (got.getShape() == expected)
    return success();
  return op->emitOpError("expects a result of shape <")
         << llvm::interleaved(llvm::map_range(expected, [](ExprAttr e) { return e.getValue().str(); }))
         << "> (C2), but got " << got;
}

static LogicalResult verifySameElement(Operation *op, ArrayType a, ArrayType b) {
  if (a.getElementType() == b.getElementType())
    return success();
  return op->emitOpError("expects equal element types (C3), but got ")
         << a.getElementType() << " and " << b.getElementType();
}

static LogicalResult verifyMonoid(Operation *op, Monoid monoid, Type element) {
  if (isDefinedOn(monoid, element))
    return success();
  return op->emitOpError("expects ") << (isLogical(monoid) ? "booleans" : "numbers") << " for '"
                                     << stringifyMonoid(monoid) << "' (C5), but got " << element;
}

/// C1: 0 ≤ axis < rank.
static LogicalResult verifyAxis(Operation *op, int64_t axis, ArrayType type) {
  if (axis >= 0 && axis < static_cast<int64_t>(type.getRank()))
    return success();
  return op->emitOpError("expects an axis below the rank (C1), but got ") << axis << " for rank " << type.getRank();
}

//===----------------------------------------------------------------------===//
// Kernel and return
//===----------------------------------------------------------------------===//

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (auto [arg, name] : llvm::zip(region.getArguments(), getArgNames()))
    setName(arg, cast<StringAttr>(name).getValue());
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getArgNames().size())
    return emitOpError("expects one name per parameter (C1), but got ")
           << getArgNames().size() << " for " << block.getNumArguments();
  for (Type type : block.getArgumentTypes())
    if (!isa<ArrayType>(type))
      return emitOpError("expects parameters of array type (C3), but got ") << type;
  if (getResultNames().size() != getResultTypes().size())
    return emitOpError("expects one name per result (C2), but got ")
           << getResultNames().size() << " for " << getResultTypes().size();
  for (Type type : getResultTypes().getAsValueRange<TypeAttr>())
    if (!isa<ArrayType>(type))
      return emitOpError("expects results of array type (C3), but got ") << type;
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError("expects moa.return at its end (C4)");
  return verifyWithin(*this, "C5");
}

LogicalResult ReturnOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  if (getValues().size() != kernel.getResultTypes().size())
    return emitOpError("expects one value per result (C1), but got ")
           << getValues().size() << " for " << kernel.getResultTypes().size();
  for (auto [value, type] : llvm::zip(getValues(), kernel.getResultTypes().getAsValueRange<TypeAttr>()))
    if (arrayOf(value).getShape() != cast<ArrayType>(type).getShape())
      return emitOpError("expects the shape of the declared result (C2), but got ")
             << value.getType() << " for " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  ArrayType type = getResult().getType();
  if (type.getRank() != 0)
    return emitOpError("expects a scalar result (C1), but got rank ") << type.getRank();
  if (getValue().getType() != type.getElementType())
    return emitOpError("expects the result's element type (C2), but got ")
           << getValue().getType() << " for " << type.getElementType();
  return success();
}

LogicalResult ExtentOp::verify() {
  ArrayType type = getResult().getType();
  if (type.getRank() != 0 || !type.getElementType().isIndex())
    return emitOpError("expects a scalar result of type index (C1), but got ") << type;
  return success();
}

LogicalResult IotaOp::verify() {
  ArrayType type = getResult().getType();
  if (type.getRank() != 1 || !type.getElementType().isIndex() || type.getShape()[0] != getExtentAttr())
    return emitOpError("expects a vector of the given extent and type index "
                       "(C1), but got ")
           << type;
  return success();
}

static Type getResultElementType(ScalarFn fn, Type element) {
  bool compares = fn >= ScalarFn::eq && fn <= ScalarFn::ge;
  return compares ? IntegerType::get(element.getContext(), 1) : element;
}

/// C4: the function is defined on the element type.
static LogicalResult verifyOperand(Operation *op, ScalarFn fn, Type element) {
  auto refuse = [&](StringRef wanted) {
    return op->emitOpError("expects a ") << wanted << " operand for '" << stringifyScalarFn(fn) << "' (C4), but got "
                                         << element;
  };
  bool floatOnly = (fn >= ScalarFn::exp && fn <= ScalarFn::ceil) || fn == ScalarFn::pow || fn >= ScalarFn::fmod;
  if (floatOnly && !isa<FloatType>(element))
    return refuse("float");
  bool bits = fn == ScalarFn::not_ || (fn >= ScalarFn::and_ && fn <= ScalarFn::shr);
  if (bits && isa<FloatType>(element))
    return refuse("boolean or integer");
  bool anyType = bits || fn == ScalarFn::id || fn == ScalarFn::eq || fn == ScalarFn::ne || fn == ScalarFn::select ||
                 fn == ScalarFn::otherwise;
  if (!anyType && element.isInteger(1))
    return refuse("number");
  return success();
}

LogicalResult MapOp::verify() {
  ScalarFn fn = getFn();
  if (getInputs().size() != getArity(fn))
    return emitOpError("expects ") << getArity(fn) << " operands for '" << stringifyScalarFn(fn) << "' (C3), but got "
                                   << getInputs().size();
  if (failed(verifyAxesList(*this, getAxes(), getInputs().size())))
    return failure();
  ArrayType result = getResult().getType();
  for (auto [k, input] : llvm::enumerate(getInputs()))
    if (failed(verifyPlacement(*this, arrayOf(input), axesOf(getAxes(), k), result, "operand " + std::to_string(k))))
      return failure();
  unsigned first = fn == ScalarFn::select ? 1 : 0;
  Type element = arrayOf(getInputs()[first]).getElementType();
  for (Value input : getInputs().drop_front(first + 1))
    if (arrayOf(input).getElementType() != element)
      return emitOpError("expects equal element types (C4), but got ")
             << element << " and " << arrayOf(input).getElementType();
  Type expected = getResultElementType(fn, element);
  if (result.getElementType() != expected)
    return emitOpError("expects a result of element type ") << expected << " (C4), but got " << result.getElementType();
  if (first && !arrayOf(getInputs()[0]).getElementType().isInteger(1))
    return emitOpError("expects a condition of type i1 (C4), but got ") << arrayOf(getInputs()[0]).getElementType();
  return verifyOperand(*this, fn, element);
}

LogicalResult CastOp::verify() { return verifyShape(*this, getResult().getType(), arrayOf(getInput()).getShape()); }

LogicalResult MaskOp::verify() {
  if (!arrayOf(getPredicate()).getElementType().isInteger(1))
    return emitOpError("expects a predicate of element type i1 (C1), but got ")
           << arrayOf(getPredicate()).getElementType();
  if (getInput().getType() != getResult().getType())
    return emitOpError("expects the result to have the type of the input (C2), "
                       "but got ")
           << getResult().getType();
  return verifyPlacement(*this, arrayOf(getPredicate()), getAxes(), getResult().getType(), "the predicate");
}

Value MonoidOp::getReturned() { return cast<CombinedOp>(getBody().front().getTerminator()).getValue(); }

LogicalResult MonoidOp::verify() {
  Block &block = getBody().front();
  auto end = block.empty() ? CombinedOp() : dyn_cast<CombinedOp>(block.back());
  if (!end)
    return emitOpError("expects moa.combined at its end (C1)");
  auto isScalar = [&](Type type) {
    auto array = dyn_cast<ArrayType>(type);
    return (array ? array.getElementType() : type) == getElementType() && (!array || array.getRank() == 0);
  };
  Type type = end.getValue().getType();
  if (block.getNumArguments() != 2 || !isScalar(type) ||
      !llvm::all_equal({type, block.getArgument(0).getType(), block.getArgument(1).getType()}))
    return emitOpError("expects two arguments and a result that are scalars of type ") << getElementType() << " (C1)";
  if (!isa<ModuleOp>((*this)->getParentOp()))
    return emitOpError("expects to stand in a module (C2)");
  return success();
}

LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyMonoidUse(*this, getMonoid(), getFunctionAttr(), arrayOf(getInput()).getElementType(), "C6", symbols);
}

LogicalResult ReduceOp::verify() {
  ArrayType input = arrayOf(getInput());
  if (failed(verifyAxis(*this, getAxis(), input)) || failed(verifySameElement(*this, input, getResult().getType())))
    return failure();
  SmallVector<ExprAttr> shape(input.getShape());
  shape.erase(shape.begin() + getAxis());
  if (failed(verifyMonoid(*this, getMonoid(), input.getElementType())))
    return failure();
  return verifyShape(*this, getResult().getType(), shape);
}

LogicalResult InnerOp::verify() {
  ArrayType lhs = arrayOf(getLhs()), rhs = arrayOf(getRhs());
  uint64_t frame = getFrame();
  uint64_t lf = getLhsFramed() ? frame : 0, rf = getRhsFramed() ? frame : 0;
  if (frame > std::max(lhs.getRank(), rhs.getRank()) || lhs.getRank() < lf + 1 || rhs.getRank() < rf + 1)
    return emitOpError("expects cells of rank 1 or more (C1), but got ranks ")
           << lhs.getRank() << " and " << rhs.getRank() << " with frame " << static_cast<int64_t>(frame);
  if (frame && !getLhsFramed() && !getRhsFramed())
    return emitOpError("expects a framed operand where there is a frame (C2)");
  if (getLhsFramed() && getRhsFramed() && lhs.getShape().take_front(frame) != rhs.getShape().take_front(frame))
    return emitOpError("expects equal frames (C3), but got ") << lhs << " and " << rhs;
  if (lhs.getShape().back() != rhs.getShape()[rf])
    return emitOpError("expects equal contracted extents (C4), but got ")
           << lhs.getExtent(lhs.getRank() - 1).str() << " and " << rhs.getExtent(rf).str();
  if (failed(verifySameElement(*this, lhs, rhs)))
    return failure();
  if (getMonoid() == Monoid::user)
    return emitOpError("expects a named monoid (C5)");
  if (getArity(getFn()) != 2)
    return emitOpError("expects a function of two operands (C6), but got '") << stringifyScalarFn(getFn()) << "'";
  Type term = getResultElementType(getFn(), lhs.getElementType());
  if (failed(verifyOperand(*this, getFn(), lhs.getElementType())) || failed(verifyMonoid(*this, getMonoid(), term)))
    return failure();
  if (getResult().getType().getElementType() != term)
    return emitOpError("expects a result of element type ")
           << term << " (C6), but got " << getResult().getType().getElementType();
  SmallVector<ExprAttr> shape((getLhsFramed() ? lhs : rhs).getShape().take_front(frame));
  llvm::append_range(shape, lhs.getShape().drop_front(lf).drop_back());
  llvm::append_range(shape, rhs.getShape().drop_front(rf + 1));
  return verifyShape(*this, getResult().getType(), shape);
}

LogicalResult PsiOp::verify() {
  ArrayType input = arrayOf(getInput()), result = getResult().getType();
  uint64_t n = getIndices().size(), frame = getFrame();
  if (getDims().size() != n)
    return emitOpError("expects one selected axis per index (C1), but got ") << getDims().size() << " for " << n;
  if (failed(verifyAxesList(*this, getAxes(), n)))
    return failure();
  if (n > input.getRank() || frame > result.getRank() || result.getRank() != frame + input.getRank() - n)
    return emitOpError("expects the frame and the axes of the input that no index "
                       "selects as result (C2), but got rank ")
           << result.getRank() << " with frame " << static_cast<int64_t>(frame) << " and " << n << " of "
           << input.getRank() << " axes selected";
  auto frameType = ArrayType::get(getContext(), result.getShape().take_front(frame), result.getElementType());
  SmallVector<ExprAttr> rest(input.getShape());
  for (int64_t k = n; k-- > 0;) {
    int64_t dim = getDims()[k];
    if (failed(verifyAxis(*this, dim, input)))
      return failure();
    if (k > 0 && getDims()[k - 1] >= dim)
      return emitOpError("expects increasing selected axes (C1), but got ") << dim;
    ArrayType index = arrayOf(getIndices()[k]);
    if (!index.getElementType().isIndex())
      return emitOpError("expects indices of type index (C3), but got ") << index.getElementType();
    if (failed(verifyPlacement(*this, index, axesOf(getAxes(), k), frameType, "index " + std::to_string(k))))
      return failure();
    rest.erase(rest.begin() + dim);
  }
  if (failed(verifySameElement(*this, input, result)))
    return failure();
  SmallVector<ExprAttr> shape(result.getShape().take_front(frame));
  llvm::append_range(shape, rest);
  return verifyShape(*this, result, shape);
}

LogicalResult TransposeOp::verify() {
  ArrayType input = arrayOf(getInput());
  SmallVector<bool> seen(input.getRank(), false);
  SmallVector<ExprAttr> shape;
  for (int64_t axis : getPerm()) {
    if (failed(verifyAxis(*this, axis, input)))
      return failure();
    if (seen[axis])
      return emitOpError("expects a permutation (C2), but got axis ") << axis << " twice";
    seen[axis] = true;
    shape.push_back(input.getShape()[axis]);
  }
  if (getPerm().size() != input.getRank())
    return emitOpError("expects a permutation of ") << input.getRank() << " axes (C2), but got " << getPerm().size();
  if (failed(verifySameElement(*this, input, getResult().getType())))
    return failure();
  return verifyShape(*this, getResult().getType(), shape);
}

LogicalResult ReshapeOp::verify() {
  SymExpr before(1), after(1);
  ArrayType input = arrayOf(getInput()), result = getResult().getType();
  for (unsigned k = 0; k < input.getRank(); ++k)
    before = before * input.getExtent(k);
  for (unsigned k = 0; k < result.getRank(); ++k)
    after = after * result.getExtent(k);
  if (before != after)
    return emitOpError("expects as many elements as the input (C1), but got ")
           << after.str() << " for " << before.str();
  return verifySameElement(*this, input, result);
}

LogicalResult SliceOp::verify() {
  ArrayType input = arrayOf(getInput());
  if (failed(verifyAxis(*this, getAxis(), input)) || failed(verifySameElement(*this, input, getResult().getType())))
    return failure();
  SmallVector<ExprAttr> shape(input.getShape());
  shape[getAxis()] = getCountAttr();
  return verifyShape(*this, getResult().getType(), shape);
}

LogicalResult CatOp::verify() {
  ArrayType lhs = arrayOf(getLhs()), rhs = arrayOf(getRhs());
  if (failed(verifyAxis(*this, getAxis(), lhs)) || failed(verifySameElement(*this, lhs, rhs)) ||
      failed(verifySameElement(*this, lhs, getResult().getType())))
    return failure();
  SmallVector<ExprAttr> left(lhs.getShape()), right(rhs.getShape());
  bool agree = left.size() == right.size();
  for (size_t k = 0; agree && k < left.size(); ++k)
    agree = static_cast<int64_t>(k) == static_cast<int64_t>(getAxis()) || left[k] == right[k];
  if (!agree)
    return emitOpError("expects equal extents on all axes but axis ")
           << getAxis() << " (C2), but got " << lhs << " and " << rhs;
  SymExpr sum = lhs.getExtent(getAxis()) + rhs.getExtent(getAxis());
  left[getAxis()] = ExprAttr::get(getContext(), sum);
  return verifyShape(*this, getResult().getType(), left);
}

static LogicalResult verifySameType(Operation *op, Value input, Value result, int64_t axis) {
  if (failed(verifyAxis(op, axis, arrayOf(input))))
    return failure();
  if (input.getType() != result.getType())
    return op->emitOpError("expects the type of the input (C2), but got ") << result.getType();
  return success();
}

LogicalResult ReverseOp::verify() { return verifySameType(*this, getInput(), getResult(), getAxis()); }

LogicalResult RotateOp::verify() { return verifySameType(*this, getInput(), getResult(), getAxis()); }
