//===- ArrayTerm.h - a value during elaboration -----------------*- C++ -*-===//
//
// Elaboration runs a function for all its cells at once. A term therefore has two kinds of axes:
// *frame* axes, over which an enclosing lift or index form ranges, and *cell* axes, which the
// expression sees. The array of a term has the frame axes first, in the order of the frame stack,
// then the cell axes.
//
// A term that does not vary along a frame axis lacks this axis. A cell axis may be virtual: the
// array lacks it, and the elements do not vary along it. The extent of a virtual axis may be
// unknown until the term is combined with a term that has the extent (the `_` of an index form).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_FRONTEND_ARRAYTERM_H
#define MOA_FRONTEND_ARRAYTERM_H

#include "lib/Frontend/AST.h"

namespace moa::frontend {

/// One cell axis.
struct Axis {
  std::optional<SymExpr> extent; // unknown only if virtual
  bool isVirtual = false;
  /// For messages, of an axis whose extent follows from a use of its index: the index, and the
  /// array that it subscripts.
  std::string index, from;

  static Axis of(SymExpr extent) { return {std::move(extent), false, "", ""}; }
  static Axis virtualOf(std::optional<SymExpr> extent) { return {std::move(extent), true, "", ""}; }
};
using Cell = llvm::SmallVector<Axis, 4>;

/// The float types of the arrays that a term depends on, as bits.
using FloatSet = unsigned;
FloatSet floatBit(mlir::Type type);
/// Returns the smallest float type that holds every member, or null for the empty set.
mlir::Type joinFloats(mlir::MLIRContext *context, FloatSet set);

/// Positions on the frame stack, increasing.
using FrameAxes = llvm::SmallVector<unsigned, 4>;
/// Adds frame axes to others.
void joinFrames(FrameAxes &frame, llvm::ArrayRef<unsigned> more);

struct ArrayTerm {
  enum Kind { Array, Symbolic, Literal };
  Kind kind = Array;
  mlir::Value array;  // Array
  SymExpr symbolic;   // Symbolic: an integer over the symbols
  double literal = 0; // Literal: a real number that takes the type of its context
  FrameAxes frame;
  Cell cell;

  // Where the elements come from, for the rounding of contraction operands.
  mlir::Type source; // float type of the input that this term selects from
  mlir::Type cast;   // type of the user's cast that this term is the result of
  FloatSet reads = 0;

  // For messages: the expression, and its text if it is a name.
  SourceLoc loc;
  std::string name;
  // The source text and its beginning, if the term is a whole expression such as a subscript.
  llvm::StringRef text;
  SourceLoc start;

  static ArrayTerm ofSymbolic(SymExpr value) {
    ArrayTerm term;
    term.kind = Symbolic;
    term.symbolic = std::move(value);
    return term;
  }
  static ArrayTerm ofLiteral(double value) {
    ArrayTerm term;
    term.kind = Literal;
    term.literal = value;
    return term;
  }
  /// Returns a term without frame axes; all axes of the array are cell axes.
  static ArrayTerm ofArray(mlir::Value array);

  bool isArray() const { return kind == Array; }
  unsigned rank() const { return cell.size(); }
  /// Null for a literal and for a symbolic term.
  mlir::Type elementType() const;
  bool isBoolean() const;
  bool isInteger() const;
  bool isFloat() const { return !isBoolean() && !isInteger(); }
  bool hasVirtualAxes() const {
    return llvm::any_of(cell, [](const Axis &axis) { return axis.isVirtual; });
  }
  /// Copies the origin of the elements: the result selects from `other`.
  void selectsFrom(const ArrayTerm &other) {
    source = other.source;
    cast = other.cast;
    reads = other.reads;
  }
};

/// Returns for example "[B, H, N + M]" in the user's symbols, with `_` for an unknown extent.
std::string shapeText(llvm::ArrayRef<Axis> cell);
std::string shapeText(llvm::ArrayRef<SymExpr> shape);
/// If the index of an axis got another extent than `wanted` from a subscript, returns "; 'j' runs
/// over the axis of m …: write 'j < M'". Otherwise returns "".
std::string originText(const Axis &axis, const SymExpr &wanted);
/// Returns the name of the element type, or "a real number" for a literal.
std::string elementText(const ArrayTerm &term);

} // namespace moa::frontend

#endif // MOA_FRONTEND_ARRAYTERM_H
