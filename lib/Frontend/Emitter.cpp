//===- Emitter.cpp - frames, shapes and point-wise operators --------------===//
#include "lib/Frontend/Emitter.h"
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Symbolic.h"
#include "lib/Support/MathTerm.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

//===----------------------------------------------------------------------===//
// The frame stack
//===----------------------------------------------------------------------===//

unsigned OperatorEmitter::pushFrame(SymExpr extent, StringRef name) {
  frames.push_back({std::move(extent), name.str(), Value()});
  return frames.size() - 1;
}

TermOr OperatorEmitter::iota(SourceLoc loc, const SymExpr &extent) {
  auto type = ArrayType::get(reporter.getContext(), {extent}, IndexType::get(reporter.getContext()));
  return ArrayTerm::ofArray(create<IotaOp>(loc, type, extent));
}

TermOr OperatorEmitter::frameIndex(SourceLoc loc, unsigned position) {
  Frame &frame = frames[position];
  if (!frame.iota)
    frame.iota = iota(loc, frame.extent)->array;
  ArrayTerm term;
  term.array = frame.iota;
  term.frame = {position};
  return term;
}

FailureOr<Cell> OperatorEmitter::mergeLeading(SourceLoc loc, ArrayRef<ArrayTerm> terms, ArrayRef<int64_t> ranks,
                                              Spelling what) {
  std::vector<ArrayTerm> leading;
  for (auto [term, rank] : llvm::zip(terms, ranks)) {
    if (static_cast<int64_t>(term.rank()) < rank) {
      auto error = reporter.error(term.loc) << "'" << what << "' works on cells of rank " << rank;
      if (term.rank() == 0)
        error << ", but this is a scalar";
      else
        error << ", but this has shape " << shapeText(term.cell);
      return failure();
    }
    ArrayTerm part = term;
    part.cell.truncate(term.rank() - rank);
    leading.push_back(std::move(part));
  }
  return mergeCells(loc, leading, what, /*areFrames=*/true);
}

LogicalResult OperatorEmitter::openFrame(SourceLoc loc, MutableArrayRef<ArrayTerm> terms, ArrayRef<int64_t> ranks,
                                         Spelling what) {
  auto leading = mergeLeading(loc, terms, ranks, what);
  if (failed(leading))
    return failure();
  unsigned depth = frames.size();
  for (auto [k, axis] : llvm::enumerate(*leading)) {
    if (!axis.extent)
      return reporter.error(loc) << "the extent of axis " << k << " of the frame of '" << what
                                 << "' is not determined; write it, as in '[i < N]'";
    pushFrame(*axis.extent);
  }
  for (auto [term, rank] : llvm::zip(terms, ranks)) {
    unsigned count = term.rank() - rank;
    // With count = 0, erasing nothing would move every axis onto itself.
    if (count == 0)
      continue;
    for (unsigned k = 0; k < count; ++k)
      if (!term.cell[k].isVirtual)
        term.frame.push_back(depth + k);
    term.cell.erase(term.cell.begin(), term.cell.begin() + count);
  }
  return success();
}

ArrayTerm OperatorEmitter::closeFrame(ArrayTerm term, unsigned depth) {
  Cell cell;
  for (unsigned k = depth; k < frames.size(); ++k)
    cell.push_back({frames[k].extent, !llvm::is_contained(term.frame, k), "", ""});
  cell.append(term.cell.begin(), term.cell.end());
  term.cell = std::move(cell);
  llvm::erase_if(term.frame, [&](unsigned k) { return k >= depth; });
  frames.truncate(depth);
  return term;
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// Matches the axes of `small` to axes of `large` with equal extents, in order.
static std::optional<SmallVector<unsigned>> findAxes(const Cell &small, const Cell &large) {
  SmallVector<unsigned> places;
  // Start at the back: the trailing axes are more likely meant.
  for (unsigned k = small.size(), l = large.size(); k > 0; --k) {
    while (l > 0 && !(large[l - 1].extent == small[k - 1].extent))
      --l;
    if (l == 0)
      return std::nullopt;
    places.insert(places.begin(), --l);
  }
  return places;
}

/// Returns for example '[_, i] m[i]': an index form whose axis k is the axis of `small` matched to
/// axis k of `large`. Unmatched axes of `small` get the subscript 0.
static std::string indexFormText(const ArrayTerm &small, unsigned rank, ArrayRef<std::optional<unsigned>> places) {
  static constexpr char letters[] = "ijklmnpq";
  std::string form, subscripts;
  std::map<unsigned, std::string> names;
  for (auto [k, place] : llvm::enumerate(places)) {
    std::string subscript = place ? std::string(1, letters[names.size() % 8]) : "0";
    if (place)
      names[*place] = subscript;
    subscripts += (k ? ", " : "") + subscript;
  }
  for (unsigned k = 0; k < rank; ++k)
    form += (k ? ", " : "") + (names.count(k) ? names[k] : "_");
  std::string name = small.name.empty() ? "m" : small.name;
  return "[" + form + "] " + name + "[" + subscripts + "]";
}

/// Aligns the axes of `small` with the last axes of `large`, where an axis of extent 1 matches any.
/// Returns nothing unless there is such an axis and the others agree.
static std::optional<SmallVector<std::optional<unsigned>>> findRepeated(const Cell &small, const Cell &large) {
  if (small.size() > large.size())
    return std::nullopt;
  SmallVector<std::optional<unsigned>> places;
  unsigned skipped = large.size() - small.size();
  bool isAny = false;
  for (unsigned k = 0; k < small.size(); ++k) {
    const auto &mine = small[k].extent, &other = large[skipped + k].extent;
    bool isOne = mine && mine->getConstant() == 1 && other != mine;
    if (!isOne && mine != other)
      return std::nullopt;
    isAny |= isOne;
    places.push_back(isOne ? std::nullopt : std::optional(skipped + k));
  }
  return isAny ? std::optional(places) : std::nullopt;
}

/// Says in which extents arrays of equal rank differ, and proposes a correction.
static void explainExtents(InFlightDiagnostic &error, const ArrayTerm &a, const ArrayTerm &b, Spelling what) {
  for (unsigned k = 0; k < a.rank(); ++k)
    if (a.cell[k].extent && b.cell[k].extent && *a.cell[k].extent != *b.cell[k].extent) {
      error << "; axis " << k << " is " << a.cell[k].extent->str() << " on one side and " << b.cell[k].extent->str()
            << " on the other" << originText(a.cell[k], *b.cell[k].extent) << originText(b.cell[k], *a.cell[k].extent);
      break;
    }
  unsigned last = a.rank();
  Cell swapped = b.cell;
  if (last >= 2)
    std::swap(swapped[last - 1], swapped[last - 2]);
  bool fits = llvm::all_of(llvm::zip(a.cell, swapped),
                           [](auto pair) { return std::get<0>(pair).extent == std::get<1>(pair).extent; });
  if (fits)
    error << "; 'transpose(" << (b.name.empty() ? "..." : b.name) << ")' has the shape of the first";
  else if (what == "*" && last >= 2 && a.cell[last - 1].extent == b.cell[last - 2].extent)
    error << "; a product of matrices is '+.*'";
}

void OperatorEmitter::shapeMismatch(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, Spelling what) {
  auto error = reporter.error(loc) << "'" << what << "' combines shapes " << shapeText(a.cell) << " and "
                                   << shapeText(b.cell) << ", but only equal shapes and scalars combine";
  error.attachNote(reporter.exact(a.loc)) << "this has shape " << shapeText(a.cell);
  error.attachNote(reporter.exact(b.loc)) << "this has shape " << shapeText(b.cell);
  for (auto [small, large] : {std::pair(&a, &b), std::pair(&b, &a)})
    if (auto places = findRepeated(small->cell, large->cell)) {
      error << "; an axis of extent 1 is not repeated by itself: ";
      if (small->name.empty())
        error << "with that operand as 'm = ...', ";
      error << "write '" << indexFormText(*small, large->rank(), *places) << "'";
      return;
    }
  if (a.rank() == b.rank())
    return explainExtents(error, a, b, what);
  bool aIsSmall = a.rank() < b.rank();
  const ArrayTerm &small = aIsSmall ? a : b, &large = aIsSmall ? b : a;
  auto places = findAxes(small.cell, large.cell);
  if (!places) {
    error << "; say which axes belong together in an index form";
    return;
  }
  if (small.name.empty())
    error << "; give the operand of shape " << shapeText(small.cell)
          << " a name, 'm = ...', and say which axes it has, as in '";
  else
    error << "; say which axes it has, as in '";
  SmallVector<std::optional<unsigned>> all(places->begin(), places->end());
  error << indexFormText(small, large.rank(), all) << "'";
  bool isOperator = !llvm::isAlpha(what.front());
  bool leads = llvm::all_of(llvm::enumerate(small.cell),
                            [&](auto entry) { return entry.value().extent == large.cell[entry.index()].extent; });
  unsigned rest = large.rank() - small.rank();
  if (isOperator && leads)
    error << " or by cell ranks, '" << what << " @ (" << (aIsSmall ? 0 : rest) << "," << (aIsSmall ? rest : 0) << ")'";
}

void OperatorEmitter::frameMismatch(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, Spelling what) {
  auto error = reporter.error(loc) << "'" << what << "' lifts over the axes before its cells, but these are "
                                   << shapeText(a.cell) << " and " << shapeText(b.cell)
                                   << "; make them equal, or leave them out of one operand";
  error.attachNote(reporter.exact(a.loc)) << "this has " << shapeText(a.cell) << " before its cells";
  error.attachNote(reporter.exact(b.loc)) << "this has " << shapeText(b.cell) << " before its cells";
}

FailureOr<Cell> OperatorEmitter::mergeCells(SourceLoc loc, ArrayRef<ArrayTerm> terms, Spelling what, bool areFrames) {
  Cell cell;
  const ArrayTerm *shaped = nullptr;
  for (const ArrayTerm &term : terms) {
    if (term.rank() == 0)
      continue;
    if (!shaped) {
      shaped = &term;
      cell = term.cell;
      continue;
    }
    bool fits = term.rank() == cell.size();
    for (unsigned k = 0; fits && k < cell.size(); ++k) {
      const Axis &axis = term.cell[k];
      fits = !axis.extent || !cell[k].extent || *axis.extent == *cell[k].extent;
      if (!cell[k].extent)
        cell[k].extent = axis.extent;
      cell[k].isVirtual &= axis.isVirtual;
    }
    if (fits)
      continue;
    if (areFrames)
      frameMismatch(loc, *shaped, term, what);
    else
      shapeMismatch(loc, *shaped, term, what);
    return failure();
  }
  return cell;
}

FailureOr<OperatorEmitter::Layout> OperatorEmitter::merge(SourceLoc loc, ArrayRef<ArrayTerm> terms, Spelling what) {
  Layout layout;
  auto cell = mergeCells(loc, terms, what);
  if (failed(cell))
    return failure();
  layout.cell = std::move(*cell);
  for (const ArrayTerm &term : terms)
    joinFrames(layout.frame, term.frame);
  return layout;
}

ArrayType OperatorEmitter::typeOf(const Layout &layout, Type element) const {
  SmallVector<SymExpr> extents;
  for (unsigned axis : layout.frame)
    extents.push_back(frames[axis].extent);
  for (const Axis &axis : layout.cell)
    if (!axis.isVirtual)
      extents.push_back(*axis.extent);
  return ArrayType::get(reporter.getContext(), extents, element);
}

SmallVector<int64_t> OperatorEmitter::placement(const ArrayTerm &term, const Layout &layout) const {
  SmallVector<int64_t> places;
  for (unsigned axis : term.frame)
    places.push_back(llvm::find(layout.frame, axis) - layout.frame.begin());
  int64_t place = layout.frame.size();
  for (unsigned k = 0; k < layout.cell.size(); ++k) {
    if (k < term.rank() && !term.cell[k].isVirtual)
      places.push_back(place);
    place += !layout.cell[k].isVirtual;
  }
  return places;
}

unsigned OperatorEmitter::physicalAxis(const ArrayTerm &term, unsigned axis) const {
  unsigned place = term.frame.size();
  for (unsigned k = 0; k < axis; ++k)
    place += !term.cell[k].isVirtual;
  return place;
}

ArrayTerm OperatorEmitter::fromLayout(Value array, const Layout &layout) const {
  ArrayTerm term;
  term.array = array;
  term.frame = layout.frame;
  term.cell = layout.cell;
  return term;
}

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

TermOr OperatorEmitter::constant(SourceLoc loc, TypedAttr value) {
  auto type = ArrayType::get(reporter.getContext(), ArrayRef<SymExpr>(), value.getType());
  return ArrayTerm::ofArray(create<ConstantOp>(loc, type, value));
}

FloatAttr OperatorEmitter::realConstant(SourceLoc loc, double value, Type type) {
  FloatAttr rounded = FloatAttr::get(type, value);
  double kept = rounded.getValueAsDouble();
  if (std::isfinite(value) && (!std::isfinite(kept) || (value != 0 && kept == 0))) {
    const char *remedy = kept == 0 ? "; take a larger number, or compute in f64, which a parameter of f64 asks for"
                                   : "; take a smaller number, 'inf', or compute in f64, which a parameter of f64 "
                                     "asks for";
    reporter.error(loc) << formatNumber(value) << " is " << formatNumber(kept) << " in " << getTypeText(type) << remedy;
    hasLost = true;
  }
  return rounded;
}

Value OperatorEmitter::scalar(SourceLoc loc, const ArrayTerm &term, Type element) {
  auto constantValue = term.symbolic.getConstant();
  if (term.kind == ArrayTerm::Literal || (constantValue && isa<FloatType>(element))) {
    double value = term.kind == ArrayTerm::Literal ? term.literal : double(*constantValue);
    return constant(loc, realConstant(loc, value, element))->array;
  }
  if (constantValue)
    return constant(loc, IntegerAttr::get(element, *constantValue))->array;
  auto index = IndexType::get(reporter.getContext());
  auto type = ArrayType::get(reporter.getContext(), ArrayRef<SymExpr>(), index);
  Value extent = create<ExtentOp>(loc, type, term.symbolic);
  if (element == index)
    return extent;
  return create<CastOp>(loc, type.withElementType(element), extent, true);
}

Value OperatorEmitter::toElement(SourceLoc loc, const ArrayTerm &term, Type element) {
  if (!term.isArray())
    return scalar(loc, term, element);
  auto type = llvm::cast<ArrayType>(term.array.getType());
  if (type.getElementType() == element)
    return term.array;
  return create<CastOp>(loc, type.withElementType(element), term.array, true);
}

/// Returns an integer or a literal as the float that a result of `type` is rounded from.
ArrayTerm OperatorEmitter::toFloat(SourceLoc loc, const ArrayTerm &term, Type type) {
  ArrayTerm result = term;
  result.kind = ArrayTerm::Array;
  result.array = toElement(loc, term, type.isF64() ? type : computeType);
  return result;
}

/// Reports a cast to a float wider than the compute type if the cast's result is an operand. The
/// extra precision would be lost.
LogicalResult OperatorEmitter::checkComputed(SourceLoc loc, ArrayRef<ArrayTerm> terms) {
  for (const ArrayTerm &term : terms)
    if (term.isArray() && term.elementType().isF64() && !computeType.isF64())
      return reporter.error(loc) << "this computes in f32 and loses the cast to f64, as no parameter is f64; declare "
                                    "one as f64, or remove the cast";
  return success();
}

FailureOr<Type> OperatorEmitter::unify(SourceLoc loc, Spelling what, ArrayRef<ArrayTerm> args, bool allowBoolean) {
  bool anyBoolean = llvm::any_of(args, [](const ArrayTerm &t) { return t.isBoolean(); });
  bool allBoolean = llvm::all_of(args, [](const ArrayTerm &t) { return t.isBoolean(); });
  if (anyBoolean && !(allBoolean && allowBoolean)) {
    auto error = reporter.error(loc) << "'" << what << "' expects "
                                     << (allowBoolean ? "operands of one kind" : "numbers") << ", but got ";
    llvm::interleaveComma(args, error, [&](const ArrayTerm &t) { error << elementText(t); });
    error << "; make a number of a bool with select(p, 1, 0)";
    return failure();
  }
  if (allBoolean)
    return Type(IntegerType::get(reporter.getContext(), 1));
  if (failed(checkComputed(loc, args)))
    return failure();
  bool anyFloat = llvm::any_of(args, [](const ArrayTerm &t) { return t.isFloat(); });
  return anyFloat ? computeType : Type(IndexType::get(reporter.getContext()));
}

FailureOr<Type> OperatorEmitter::operandType(SourceLoc loc, ScalarFn fn, Spelling what, ArrayRef<ArrayTerm> args) {
  bool floatOnly = (fn >= ScalarFn::exp && fn <= ScalarFn::erf) || fn == ScalarFn::pow || fn >= ScalarFn::fmod;
  bool isLogic = what == "and" || what == "or" || what == "not";
  bool isBits = !isLogic && (fn == ScalarFn::not_ || (fn >= ScalarFn::and_ && fn <= ScalarFn::shr));
  auto got = [&](StringRef expected, StringRef remedy) {
    auto error = reporter.error(loc) << "'" << what << "' expects " << expected << ", but got ";
    llvm::interleaveComma(args, error, [&](const ArrayTerm &t) { error << elementText(t); });
    error << remedy;
    return failure();
  };
  if (isLogic) {
    if (!llvm::all_of(args, [](const ArrayTerm &t) { return t.isBoolean(); }))
      return got("bool", "; compare first, as in 'x != 0'");
    return Type(IntegerType::get(reporter.getContext(), 1));
  }
  if (isBits) {
    bool isShift = fn == ScalarFn::shl || fn == ScalarFn::shr;
    if (!isShift && llvm::all_of(args, [](const ArrayTerm &t) { return t.isBoolean(); }))
      return Type(IntegerType::get(reporter.getContext(), 1));
    if (!llvm::all_of(args, [](const ArrayTerm &t) { return t.isInteger(); }))
      return got(isShift ? "integers" : "integers or bool",
                 llvm::any_of(args, [](const ArrayTerm &t) { return t.isBoolean(); })
                     ? "; make a number of a bool with select(p, 1, 0)"
                 : fn == ScalarFn::xor_ ? "; a power is 'pow(x, y)'"
                                        : "; convert floats, as in 'i32(x)'");
    return Type(IndexType::get(reporter.getContext()));
  }
  bool isSelect = fn == ScalarFn::select;
  if (isSelect && !args[0].isBoolean())
    return got("a bool first", "; compare first, as in 'x != 0'");
  bool allowBoolean =
      isSelect || fn == ScalarFn::otherwise || fn == ScalarFn::eq || fn == ScalarFn::ne || fn == ScalarFn::id;
  auto type = unify(loc, what, isSelect ? args.drop_front() : args, allowBoolean);
  if (failed(type))
    return failure();
  return floatOnly ? computeType : *type;
}

//===----------------------------------------------------------------------===//
// Point-wise operators
//===----------------------------------------------------------------------===//

/// Warns of ±1 / n on integers, which floors to 0 or −1 for n > 1.
void OperatorEmitter::warnOfQuotient(SourceLoc loc, const ArrayTerm &dividend, StringRef divisor) {
  auto value = dividend.kind == ArrayTerm::Symbolic ? dividend.symbolic.getConstant() : std::nullopt;
  if (value && (*value == 1 || *value == -1))
    reporter.warning(loc) << "'/' on integers floors: " << *value << " / " << divisor << " is "
                          << (*value == 1 ? 0 : -1) << " where " << divisor << " is 2 or more; write " << *value
                          << ".0 for a real quotient";
}

/// Folds arithmetic on symbols and literals without an op.
std::optional<TermOr> OperatorEmitter::fold(SourceLoc loc, ScalarFn fn, ArrayRef<ArrayTerm> args) {
  if (llvm::any_of(args, [](const ArrayTerm &t) { return t.isArray(); }) || args.size() > 2)
    return std::nullopt;
  const ArrayTerm &a = args.front(), &b = args.back();
  if (a.kind == ArrayTerm::Symbolic && b.kind == ArrayTerm::Symbolic) {
    std::string why;
    if (auto value = combineSymbolic(fn, a.symbolic, b.symbolic, why)) {
      auto ca = a.symbolic.getConstant(), cb = b.symbolic.getConstant();
      if (fn == ScalarFn::div && ca && cb && *ca % *cb != 0)
        reporter.warning(loc) << "'/' on integers floors: " << *ca << " / " << *cb << " is " << value->str()
                              << "; write " << *ca << ".0 for a real quotient";
      else if (fn == ScalarFn::div && !cb)
        warnOfQuotient(loc, a, b.symbolic.str());
      return TermOr(ArrayTerm::ofSymbolic(*value));
    }
    if (why.empty())
      return std::nullopt;
    reporter.error(loc) << why;
    return TermOr(failure());
  }
  auto real = [](const ArrayTerm &t) -> std::optional<double> {
    if (t.kind == ArrayTerm::Literal)
      return t.literal;
    auto value = t.symbolic.getConstant();
    return value ? std::optional<double>(double(*value)) : std::nullopt;
  };
  auto ra = real(a), rb = real(b);
  if (!ra || !rb)
    return std::nullopt;
  auto value = combineReals(fn, *ra, *rb);
  return value ? std::optional<TermOr>(TermOr(ArrayTerm::ofLiteral(*value))) : std::nullopt;
}

Value OperatorEmitter::emitMap(SourceLoc loc, ScalarFn fn, ArrayRef<ArrayTerm> args, ArrayRef<Value> operands,
                               const Layout &layout) {
  SmallVector<Attribute> axes;
  for (const ArrayTerm &arg : args)
    axes.push_back(builder.getDenseI64ArrayAttr(placement(arg, layout)));
  Type element = llvm::cast<ArrayType>(operands.back().getType()).getElementType();
  if (fn >= ScalarFn::eq && fn <= ScalarFn::ge)
    element = builder.getI1Type();
  return create<MapOp>(loc, typeOf(layout, element), fn, operands, builder.getArrayAttr(axes));
}

TermOr OperatorEmitter::map(SourceLoc loc, ScalarFn fn, Spelling what, ArrayRef<ArrayTerm> args) {
  auto layout = merge(loc, args, what);
  if (failed(layout))
    return failure();
  if (auto folded = fold(loc, fn, args)) {
    if (failed(*folded))
      return failure();
    (*folded)->cell = layout->cell;
    return *folded;
  }
  auto type = operandType(loc, fn, what, args);
  if (failed(type))
    return failure();
  if (fn == ScalarFn::div && type->isIndex())
    warnOfQuotient(loc, args[0], args[1].name.empty() ? "n" : StringRef(args[1].name));
  // Booleans differ if their exclusive or holds.
  if (fn == ScalarFn::xor_ && type->isInteger(1))
    fn = ScalarFn::ne;
  // floor and ceil of an integer are the integer itself.
  if ((fn == ScalarFn::floor || fn == ScalarFn::ceil) && args[0].isInteger())
    return args[0];
  SmallVector<Value> operands;
  for (auto [k, arg] : llvm::enumerate(args)) {
    bool isCondition = fn == ScalarFn::select && k == 0;
    operands.push_back(isCondition ? arg.array : toElement(loc, arg, *type));
  }
  ArrayTerm result = fromLayout(emitMap(loc, fn, args, operands, *layout), *layout);
  for (const ArrayTerm &arg : args)
    result.reads |= arg.reads;
  return result;
}
