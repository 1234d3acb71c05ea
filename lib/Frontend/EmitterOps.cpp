//===- EmitterOps.cpp - operators that are not point-wise -----------------===//
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Emitter.h"
#include "lib/Frontend/Symbolic.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

//===----------------------------------------------------------------------===//
// Broadcast, mask and cast
//===----------------------------------------------------------------------===//

TermOr OperatorEmitter::materialise(SourceLoc loc, const ArrayTerm &term, ArrayRef<unsigned> frame, bool widen) {
  Layout layout;
  layout.frame.assign(frame.begin(), frame.end());
  layout.cell = term.cell;
  for (auto [k, axis] : llvm::enumerate(layout.cell)) {
    if (!axis.extent)
      return reporter.error(loc) << "the extent of axis " << k << " of " << shapeText(term.cell)
                                 << " is not determined; write it, as in '[i < N]'";
    axis.isVirtual = false;
  }
  Type element = term.elementType();
  if (term.isFloat() && (widen || !element))
    element = computeType;
  else if (term.isInteger() && (widen || !element))
    element = builder.getIndexType();
  ArrayTerm result = term;
  result.kind = ArrayTerm::Array;
  result.array = toElement(loc, term, element);
  if (term.frame != layout.frame || term.hasVirtualAxes()) {
    Value operand = result.array;
    result = fromLayout(emitMap(loc, ScalarFn::id, {term}, {operand}, layout), layout);
    result.selectsFrom(term);
  }
  result.loc = term.loc;
  result.name = term.name;
  return result;
}

TermOr OperatorEmitter::mask(SourceLoc loc, const ArrayTerm &predicate, const ArrayTerm &term) {
  auto layout = merge(loc, {predicate, term}, "mask");
  if (failed(layout))
    return failure();
  if (!predicate.isBoolean())
    return reporter.error(loc) << "'mask' expects a predicate of type bool first, but got " << elementText(predicate);
  // Give the masked array every axis of the predicate.
  ArrayTerm input = term;
  bool covers = term.isArray() && term.frame == layout->frame && term.rank() == layout->cell.size();
  for (unsigned k = 0; covers && k < term.rank(); ++k)
    covers = term.cell[k].isVirtual == layout->cell[k].isVirtual;
  if (!covers) {
    Type element = term.isArray() ? term.elementType() : term.isFloat() ? computeType : Type(builder.getIndexType());
    Value operand = toElement(loc, term, element);
    input = fromLayout(emitMap(loc, ScalarFn::id, {term}, {operand}, *layout), *layout);
    input.selectsFrom(term);
  }
  ArrayTerm result = input;
  result.array = create<MaskOp>(loc, input.array.getType(), predicate.array, input.array,
                                builder.getDenseI64ArrayAttr(placement(predicate, *layout)));
  result.cell = layout->cell;
  return result;
}

static LogicalResult checkFits(SourceLoc loc, int64_t value, Type type, const Reporter &reporter) {
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || (integer.isUnsigned() ? value >= 0 && llvm::isUIntN(integer.getWidth(), value)
                                        : llvm::isIntN(integer.getWidth(), value)))
    return success();
  return reporter.error(loc) << value << " does not fit in " << getTypeText(type);
}

TermOr OperatorEmitter::lowBits(SourceLoc loc, const ArrayTerm &term, Type type) {
  int64_t mask = (int64_t(1) << type.getIntOrFloatBitWidth()) - 1;
  return map(loc, ScalarFn::and_, "&", {term, ArrayTerm::ofSymbolic(SymExpr(mask))});
}

/// Casts to an unsigned type. Integers wrap; floats are truncated and clamped to the range of the
/// type. The result is an ordinary integer.
TermOr OperatorEmitter::castUnsigned(SourceLoc loc, Type type, const ArrayTerm &term) {
  if (term.kind == ArrayTerm::Symbolic && term.symbolic.getConstant())
    return failed(checkFits(loc, *term.symbolic.getConstant(), type, reporter)) ? TermOr(failure()) : TermOr(term);
  if (term.isInteger())
    return lowBits(loc, term, type);
  if (term.isBoolean())
    return map(loc, ScalarFn::select, "select",
               {term, ArrayTerm::ofSymbolic(SymExpr(1)), ArrayTerm::ofSymbolic(SymExpr(0))});
  auto whole = cast(loc, builder.getIndexType(), term);
  if (failed(whole))
    return failure();
  int64_t most = (int64_t(1) << type.getIntOrFloatBitWidth()) - 1;
  auto bounded = map(loc, ScalarFn::max, "max", {*whole, ArrayTerm::ofSymbolic(SymExpr(0))});
  if (failed(bounded))
    return failure();
  return map(loc, ScalarFn::min, "min", {*bounded, ArrayTerm::ofSymbolic(SymExpr(most))});
}

TermOr OperatorEmitter::cast(SourceLoc loc, Type type, const ArrayTerm &term) {
  if (type.isUnsignedInteger())
    return castUnsigned(loc, type, term);
  if (type.isInteger(1) && !term.isBoolean())
    return reporter.error(loc) << "a bool is made by a comparison, as in 'x != 0'";
  ArrayTerm result = term;
  result.source = Type();
  result.cast = isa<FloatType>(type) ? type : Type();
  if (term.isArray() && term.elementType() == type)
    return result;
  auto constantValue = term.kind == ArrayTerm::Symbolic ? term.symbolic.getConstant() : std::nullopt;
  bool isDirect = (term.kind == ArrayTerm::Literal && isa<FloatType>(type)) || constantValue;
  if (constantValue && failed(checkFits(loc, *constantValue, type, reporter)))
    return failure();
  result.kind = ArrayTerm::Array;
  if (isDirect) {
    result.array = scalar(loc, term, type);
    return result;
  }
  Type given = term.isFloat() ? computeType : Type(builder.getIndexType());
  Value operand = term.isArray() ? term.array : scalar(loc, term, given);
  auto arrayType = llvm::cast<ArrayType>(operand.getType()).withElementType(type);
  result.array = create<CastOp>(loc, arrayType, operand, false);
  return result;
}

//===----------------------------------------------------------------------===//
// Reduction and inner product
//===----------------------------------------------------------------------===//

Type OperatorEmitter::reducedType(const ArrayTerm &term) const {
  if (term.isBoolean())
    return IntegerType::get(reporter.getContext(), 1);
  return term.isFloat() ? computeType : Type(IndexType::get(reporter.getContext()));
}

TermOr OperatorEmitter::reduce(SourceLoc loc, Monoid monoid, Spelling what, const ArrayTerm &term, unsigned axis,
                               MonoidOp function) {
  bool isLogic = monoid == Monoid::and_ || monoid == Monoid::or_;
  if (monoid != Monoid::user && term.isBoolean() != isLogic) {
    auto error = reporter.error(loc) << "'" << what << "' reduces " << (isLogic ? "bool" : "numbers") << ", but got "
                                     << elementText(term);
    error << (isLogic ? "; compare first, as in 'x != 0'" : "; count with select(p, 1, 0), or use 'and/' or 'or/'");
    return failure();
  }
  if (failed(checkComputed(loc, term)))
    return failure();
  auto full = materialise(loc, term, term.frame, /*widen=*/true);
  if (failed(full))
    return failure();
  auto type = llvm::cast<ArrayType>(full->array.getType());
  unsigned physical = physicalAxis(*full, axis);
  SmallVector<ExprAttr> shape(type.getShape());
  shape.erase(shape.begin() + physical);
  auto resultType = ArrayType::get(reporter.getContext(), shape, type.getElementType());
  ArrayTerm result = *full;
  result.source = result.cast = Type();
  result.cell.erase(result.cell.begin() + axis);
  result.array = create<ReduceOp>(loc, resultType, monoid, full->array, physical,
                                  function ? FlatSymbolRefAttr::get(function) : FlatSymbolRefAttr());
  return result;
}

/// Returns the type to which a computed operand of a contraction is rounded, or null for none. The
/// user's cast decides first, then the type of the other operand, if that is an input or selects
/// from one. Otherwise it is the join of the float types of the arrays read. Types of 32 bits or
/// more round nothing.
Type OperatorEmitter::roundingType(const ArrayTerm &a, const ArrayTerm &b) const {
  MLIRContext *context = reporter.getContext();
  FloatSet set = 0;
  bool isExact = false;
  for (auto [computed, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (computed->source)
      continue;
    Type type = computed->cast ? computed->cast : other->source ? other->source : joinFloats(context, computed->reads);
    if (type)
      set |= floatBit(type);
    else
      isExact = true;
  }
  Type type = joinFloats(context, set);
  bool isNarrow = type && !isExact && type.getIntOrFloatBitWidth() < 32;
  return isNarrow ? type : Type();
}

static SmallVector<ExprAttr> innerShape(ArrayType a, ArrayType b, unsigned frame, bool aFramed, bool bFramed) {
  SmallVector<ExprAttr> shape((aFramed ? a : b).getShape().take_front(frame));
  llvm::append_range(shape, a.getShape().drop_front(aFramed ? frame : 0).drop_back());
  llvm::append_range(shape, b.getShape().drop_front(bFramed ? frame + 1 : 1));
  return shape;
}

LogicalResult OperatorEmitter::checkInner(SourceLoc loc, Spelling what, const ArrayTerm &a, const ArrayTerm &b) {
  for (const ArrayTerm *term : {&a, &b})
    if (term->rank() == 0)
      return reporter.error(term->loc) << "'" << what << "' contracts an axis, but this is a scalar";
  const Axis &left = a.cell.back(), &right = b.cell.front();
  if (!left.extent || !right.extent || *left.extent == *right.extent)
    return success();
  auto error = reporter.error(loc) << "'" << what << "' contracts the last axis of " << shapeText(a.cell)
                                   << " with the first of " << shapeText(b.cell) << ", but " << left.extent->str()
                                   << " and " << right.extent->str() << " differ";
  if (b.rank() == 2 && b.cell.back().extent == left.extent)
    error << "; write 'transpose(" << (b.name.empty() ? "..." : b.name) << ")' on the right";
  error.attachNote(reporter.exact(b.loc)) << "this has cells of shape " << shapeText(b.cell);
  return error;
}

TermOr OperatorEmitter::inner(SourceLoc loc, Monoid monoid, ScalarFn fn, Spelling what, const ArrayTerm &a,
                              const ArrayTerm &b) {
  if (failed(checkInner(loc, what, a, b)))
    return failure();
  bool isLogic = monoid == Monoid::and_ || monoid == Monoid::or_;
  auto type = unify(loc, what, {a, b}, /*allowBoolean=*/isLogic);
  if (failed(type))
    return failure();
  bool isBits = fn >= ScalarFn::and_ && fn <= ScalarFn::shr;
  bool applies = isLogic ? fn == ScalarFn::and_ || fn == ScalarFn::or_ : !isBits || !isa<FloatType>(*type);
  if (isLogic != type->isInteger(1) || !applies)
    return reporter.error(loc) << "'" << what << "' does not apply to " << elementText(a) << " and " << elementText(b);
  FrameAxes frame = a.frame;
  joinFrames(frame, b.frame);
  // An operand without frame axes is shared. One with some of them is broadcast.
  bool aFramed = !a.frame.empty(), bFramed = !b.frame.empty();
  auto left = materialise(loc, a, aFramed ? ArrayRef(frame) : ArrayRef<unsigned>(), false);
  if (failed(left))
    return failure();
  auto right = materialise(loc, b, bFramed ? ArrayRef(frame) : ArrayRef<unsigned>(), false);
  if (failed(right))
    return failure();
  Type rounding = isa<FloatType>(*type) ? roundingType(a, b) : Type();
  Value x = toElement(loc, *left, *type), y = toElement(loc, *right, *type);
  auto shape = innerShape(llvm::cast<ArrayType>(x.getType()), llvm::cast<ArrayType>(y.getType()), frame.size(), aFramed,
                          bFramed);
  auto resultType = ArrayType::get(reporter.getContext(), shape, *type);
  ArrayTerm result;
  result.array = create<InnerOp>(loc, resultType, monoid, fn, x, y, frame.size(), aFramed, bFramed,
                                 rounding ? TypeAttr::get(rounding) : TypeAttr());
  result.frame = frame;
  result.cell.append(left->cell.begin(), left->cell.end() - 1);
  result.cell.append(right->cell.begin() + 1, right->cell.end());
  result.reads = a.reads | b.reads;
  return result;
}

//===----------------------------------------------------------------------===//
// Indexing
//===----------------------------------------------------------------------===//

LogicalResult OperatorEmitter::checkSubscript(SourceLoc loc, const ArrayTerm &subscript, const Axis &axis) {
  if (!subscript.isInteger())
    return reporter.error(subscript.loc) << "a subscript is an integer, but this is " << elementText(subscript);
  if (subscript.kind != ArrayTerm::Symbolic)
    return success();
  auto value = subscript.symbolic.getConstant();
  auto past = axis.extent ? (subscript.symbolic - *axis.extent).getConstant() : std::nullopt;
  bool isNegative = value && *value < 0;
  if (!isNegative && (!past || *past < 0))
    return success();
  auto error = reporter.error(subscript.loc)
               << "subscript " << subscript.symbolic.str() << " is outside of an axis of extent "
               << (axis.extent ? axis.extent->str() : "_");
  if (axis.extent && !axis.extent->isZero())
    error << "; the first element has the index 0, the last one " << (*axis.extent - SymExpr(1)).str();
  return error;
}

FailureOr<OperatorEmitter::Layout> OperatorEmitter::subscriptLayout(SourceLoc loc, const ArrayTerm &term,
                                                                    ArrayRef<std::optional<ArrayTerm>> subscripts) {
  if (subscripts.size() > term.rank()) {
    auto error = reporter.error(loc);
    if (term.rank() == 0)
      error << "a scalar takes no subscripts";
    else
      error << "an array of shape " << shapeText(term.cell) << " takes at most " << term.rank()
            << (term.rank() == 1 ? " subscript" : " subscripts") << ", but got " << subscripts.size();
    return failure();
  }
  std::vector<ArrayTerm> used;
  for (auto [k, subscript] : llvm::enumerate(subscripts))
    if (subscript) {
      if (failed(checkSubscript(loc, *subscript, term.cell[k])))
        return failure();
      used.push_back(*subscript);
    }
  auto layout = merge(loc, used, "[...]");
  if (failed(layout))
    return failure();
  for (Axis &axis : layout->cell) {
    if (!axis.extent)
      return reporter.error(loc) << "the extent of a subscript is not determined; write it, as in "
                                    "'[i < N]'";
    axis.isVirtual = false;
  }
  return layout;
}

namespace {
struct Selection {
  OpBuilder &builder;
  SmallVector<Value> indices = {};
  SmallVector<int64_t> dims = {};
  SmallVector<Attribute> axes = {};
  SmallVector<LocationAttr> written = {};

  void add(Value index, int64_t dim, ArrayRef<int64_t> places, LocationAttr text = {}) {
    indices.push_back(index);
    written.push_back(text);
    dims.push_back(dim);
    axes.push_back(builder.getDenseI64ArrayAttr(places));
  }
};
} // namespace

/// Returns a text of the user on one line, or "" if it is too long or from the prelude.
static std::string onOneLine(StringRef written, SourceLoc start) {
  std::string text;
  if (start.file == SourceLoc::User && written.size() <= 60 && !written.contains("//"))
    for (StringRef word : llvm::split(written, '\n'))
      text += (text.empty() ? "" : " ") + word.trim().str();
  return text;
}

void OperatorEmitter::noteText(const ArrayTerm &term, const Expr &expr) const {
  Operation *op = term.isArray() ? term.array.getDefiningOp() : nullptr;
  std::string text = onOneLine(expr.text, expr.start);
  if (!text.empty() && isa_and_nonnull<ReduceOp, InnerOp>(op) && isa<FileLineColLoc>(op->getLoc()))
    op->setLoc(withText(op->getLoc(), text));
}

/// Returns the source text and location of a subscript. For the prelude, this is the location of
/// the call.
LocationAttr OperatorEmitter::writtenAs(const ArrayTerm &subscript) const {
  std::string text = onOneLine(subscript.text, subscript.start);
  SourceLoc place = subscript.text.empty() ? subscript.loc : subscript.start;
  LocationAttr written = makeSourceIndex(reporter.getContext(), text, reporter.location(place));
  std::optional<Location> call = reporter.getCall();
  if (!call || place.file != SourceLoc::User)
    return written;
  // The text of a subscript inside a function has no meaning at its call.
  return reachedFrom(written, makeSourceIndex(reporter.getContext(), "", *call));
}

TermOr OperatorEmitter::index(SourceLoc loc, const ArrayTerm &given, ArrayRef<std::optional<ArrayTerm>> subscripts) {
  auto layout = subscriptLayout(loc, given, subscripts);
  if (failed(layout))
    return failure();
  auto term = materialise(loc, given, given.frame, /*widen=*/false);
  if (failed(term))
    return failure();
  // The frame of the array is indexed in step with the frame of the subscripts.
  bool isFixed = layout->frame.empty() && layout->cell.empty();
  Selection selection{builder};
  if (!isFixed) {
    joinFrames(layout->frame, term->frame);
    for (auto [k, axis] : llvm::enumerate(term->frame)) {
      auto position = frameIndex(loc, axis);
      selection.add(position->array, k, placement(*position, *layout));
    }
  }
  Layout full = *layout;
  for (unsigned k = 0; k < term->rank(); ++k) {
    if (k >= subscripts.size() || !subscripts[k])
      full.cell.push_back(term->cell[k]);
    else
      selection.add(toElement(loc, *subscripts[k], builder.getIndexType()), term->frame.size() + k,
                    placement(*subscripts[k], *layout), writtenAs(*subscripts[k]));
  }
  if (isFixed)
    full.frame = term->frame;
  unsigned frame = isFixed ? 0 : layout->frame.size() + layout->cell.size();
  Value array = create<PsiOp>(loc, typeOf(full, term->elementType()), term->array, selection.indices, selection.dims,
                              builder.getArrayAttr(selection.axes), frame);
  SmallVector<StringRef> names;
  for (unsigned axis : ArrayRef(layout->frame).take_front(frame))
    names.push_back(frames[axis].name);
  Operation *op = array.getDefiningOp();
  op->setLoc(withSubscripts(op->getLoc(), selection.written, names));
  ArrayTerm result = fromLayout(array, full);
  result.selectsFrom(*term);
  return result;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

TermOr OperatorEmitter::transpose(SourceLoc loc, const ArrayTerm &term, ArrayRef<int64_t> perm) {
  ArrayTerm result = term;
  for (unsigned k = 0; k < perm.size(); ++k)
    result.cell[k] = term.cell[perm[k]];
  if (!term.isArray())
    return result;
  SmallVector<int64_t> physical;
  for (unsigned k = 0; k < term.frame.size(); ++k)
    physical.push_back(k);
  for (int64_t axis : perm)
    if (!term.cell[axis].isVirtual)
      physical.push_back(physicalAxis(term, axis));
  if (llvm::is_sorted(physical))
    return result;
  Layout layout{result.frame, result.cell};
  result.array =
      create<TransposeOp>(loc, typeOf(layout, term.elementType()), term.array, builder.getDenseI64ArrayAttr(physical));
  return result;
}

TermOr OperatorEmitter::slice(SourceLoc loc, const ArrayTerm &term, unsigned axis, const SymExpr &start,
                              const SymExpr &count) {
  ArrayTerm result = term;
  result.cell[axis].extent = count;
  if (term.cell[axis].isVirtual)
    return result;
  if (start.isZero() && count == *term.cell[axis].extent)
    return result;
  Layout layout{result.frame, result.cell};
  result.array =
      create<SliceOp>(loc, typeOf(layout, term.elementType()), term.array, physicalAxis(term, axis), start, count);
  return result;
}

TermOr OperatorEmitter::reverse(SourceLoc loc, const ArrayTerm &term, unsigned axis) {
  ArrayTerm result = term;
  if (!term.cell[axis].isVirtual)
    result.array = create<ReverseOp>(loc, term.array.getType(), term.array, physicalAxis(term, axis));
  return result;
}

TermOr OperatorEmitter::rotate(SourceLoc loc, const ArrayTerm &term, const SymExpr &by, unsigned axis) {
  ArrayTerm result = term;
  if (!term.cell[axis].isVirtual)
    result.array = create<RotateOp>(loc, term.array.getType(), term.array, by, physicalAxis(term, axis));
  return result;
}

TermOr OperatorEmitter::cat(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, unsigned axis) {
  if (a.rank() != b.rank())
    return reporter.error(loc) << "'cat' joins arrays of equal rank, but these have shapes " << shapeText(a.cell)
                               << " and " << shapeText(b.cell);
  std::vector<ArrayTerm> parts = {a, b};
  for (unsigned k = 0; k < a.rank(); ++k) {
    auto &left = parts[0].cell[k].extent, &right = parts[1].cell[k].extent;
    if (k == axis)
      continue;
    if (!left)
      left = right;
    if (!right)
      right = left;
    if (left == right)
      continue;
    auto error = reporter.error(loc) << "'cat' along axis " << axis << " joins shapes " << shapeText(a.cell) << " and "
                                     << shapeText(b.cell) << ", which differ on axis " << k;
    if (a.cell[axis].extent == b.cell[axis].extent)
      error << "; write 'cat(x, y, " << k << ")' to join them there";
    error.attachNote(reporter.exact(b.loc)) << "this has shape " << shapeText(b.cell);
    return failure();
  }
  auto type = unify(loc, "cat", parts, /*allowBoolean=*/true);
  if (failed(type))
    return failure();
  if (a.isArray() && b.isArray() && a.elementType() == b.elementType())
    type = a.elementType();
  FrameAxes frame = a.frame;
  joinFrames(frame, b.frame);
  SmallVector<Value> arrays;
  for (ArrayTerm &part : parts) {
    auto whole = materialise(loc, part, frame, /*widen=*/false);
    if (failed(whole))
      return failure();
    part = std::move(*whole);
    arrays.push_back(toElement(loc, part, *type));
  }
  std::string why;
  auto sum = combineSymbolic(ScalarFn::add, *parts[0].cell[axis].extent, *parts[1].cell[axis].extent, why);
  if (!sum)
    return reporter.error(loc) << "the extent of 'cat' has no value: " << why;
  Layout layout{frame, parts[0].cell};
  layout.cell[axis] = Axis::of(*sum);
  ArrayTerm result =
      fromLayout(create<CatOp>(loc, typeOf(layout, *type), arrays[0], arrays[1], physicalAxis(parts[0], axis)), layout);
  if (a.source == b.source && a.cast == b.cast)
    result.selectsFrom(a);
  result.reads = a.reads | b.reads;
  return result;
}

static std::optional<SymExpr> product(ArrayRef<SymExpr> extents) {
  SymExpr result(1);
  std::string why;
  for (const SymExpr &extent : extents) {
    auto next = combineSymbolic(ScalarFn::mul, result, extent, why);
    if (!next)
      return std::nullopt;
    result = *next;
  }
  return result;
}

TermOr OperatorEmitter::reshape(SourceLoc loc, const ArrayTerm &given, ArrayRef<SymExpr> shape) {
  auto term = materialise(loc, given, given.frame, /*widen=*/false);
  if (failed(term))
    return failure();
  SmallVector<SymExpr> before;
  for (const Axis &axis : term->cell)
    before.push_back(*axis.extent);
  auto had = product(before), has = product(shape);
  if (!had || !has || *had != *has) {
    auto error = reporter.error(loc) << "'reshape' keeps the number of elements, but " << shapeText(term->cell)
                                     << " has " << (had ? had->str() : "too many") << " and " << shapeText(shape)
                                     << " has " << (has ? has->str() : "too many") << " elements";
    return failure();
  }
  Layout layout;
  layout.frame = term->frame;
  for (const SymExpr &extent : shape)
    layout.cell.push_back(Axis::of(extent));
  Value array = create<ReshapeOp>(loc, typeOf(layout, term->elementType()), term->array);
  ArrayTerm result = fromLayout(array, layout);
  result.selectsFrom(*term);
  return result;
}
