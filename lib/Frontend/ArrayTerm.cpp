//===- ArrayTerm.cpp - a value during elaboration -------------------------===//
#include "lib/Frontend/ArrayTerm.h"
#include "lib/Frontend/Builtins.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

namespace {
enum FloatBits : FloatSet { HasF16 = 1, HasBF16 = 2, HasF32 = 4, HasF64 = 8 };
} // namespace

FloatSet frontend::floatBit(Type type) {
  if (type.isF64())
    return HasF64;
  if (type.isF32())
    return HasF32;
  if (type.isBF16())
    return HasBF16;
  return type.isF16() ? FloatSet(HasF16) : 0;
}

Type frontend::joinFloats(MLIRContext *context, FloatSet set) {
  Builder builder(context);
  if (set & HasF64)
    return builder.getF64Type();
  if ((set & HasF32) || set == (HasF16 | HasBF16))
    return builder.getF32Type();
  if (set & HasBF16)
    return builder.getBF16Type();
  return (set & HasF16) != 0 ? Type(builder.getF16Type()) : Type();
}

void frontend::joinFrames(FrameAxes &frame, ArrayRef<unsigned> more) {
  for (unsigned axis : more)
    if (!llvm::is_contained(frame, axis))
      frame.push_back(axis);
  llvm::sort(frame);
}

ArrayTerm ArrayTerm::ofArray(Value array) {
  ArrayTerm term;
  term.array = array;
  auto type = cast_if_present<ArrayType>(array.getType());
  for (unsigned k = 0; k < type.getRank(); ++k)
    term.cell.push_back(Axis::of(type.getExtent(k)));
  return term;
}

Type ArrayTerm::elementType() const {
  return kind == Array ? llvm::cast<ArrayType>(array.getType()).getElementType() : Type();
}

bool ArrayTerm::isBoolean() const { return kind == Array && elementType().isInteger(1); }

bool ArrayTerm::isInteger() const {
  return kind == Symbolic || (kind == Array && elementType().isIntOrIndex() && !isBoolean());
}

std::string frontend::shapeText(ArrayRef<Axis> cell) {
  std::vector<std::string> extents;
  for (const Axis &axis : cell)
    extents.push_back(axis.extent ? axis.extent->str() : "_");
  return "[" + llvm::join(extents, ", ") + "]";
}

std::string frontend::originText(const Axis &axis, const SymExpr &wanted) {
  if (axis.index.empty() || !axis.extent || *axis.extent == wanted)
    return "";
  return "; '" + axis.index + "' runs over the axis of " + axis.from + " that it is a subscript of: write '" +
         axis.index + " < " + wanted.str() + "'";
}

std::string frontend::shapeText(ArrayRef<SymExpr> shape) {
  std::vector<std::string> extents;
  for (const SymExpr &extent : shape)
    extents.push_back(extent.str());
  return "[" + llvm::join(extents, ", ") + "]";
}

std::string frontend::elementText(const ArrayTerm &term) {
  if (term.kind == ArrayTerm::Symbolic)
    return "index";
  return term.kind == ArrayTerm::Literal ? "a real number" : getTypeText(term.elementType());
}
