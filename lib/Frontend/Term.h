//===- Term.h - a value during elaboration ----------------------*- C++ -*-===//
//
// Elaboration runs a function for all its cells at once. A term therefore has
// two kinds of axes: *frame* axes, over which some enclosing lift or index
// form ranges, and *cell* axes, which the expression sees. The array behind a
// term holds the frame axes first, by position on the frame stack, then the
// cell axes. A term may lack a frame axis (it does not vary with it), and a
// cell axis may be virtual: the array does not have it, the elements do not
// vary along it, and its extent may even be unknown until the term meets one
// that knows (the `_` of an index form).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_FRONTEND_TERM_H
#define MOA_FRONTEND_TERM_H

#include "lib/Frontend/AST.h"

namespace moa::frontend {

/// One cell axis.
struct Axis {
  std::optional<SymExpr> extent; // unknown only if virtual
  bool isVirtual = false;
  /// Of an index whose extent follows from a use: the index, and the array that it is a
  /// subscript of, for messages.
  std::string index, from;

  static Axis of(SymExpr extent) { return {std::move(extent), false, "", ""}; }
  static Axis virtualOf(std::optional<SymExpr> extent) { return {std::move(extent), true, "", ""}; }
};
using Cell = llvm::SmallVector<Axis, 4>;

/// The float types of the arrays that a term was computed from, as bits.
using FloatSet = unsigned;
FloatSet floatBit(mlir::Type type);
/// The smallest float type that holds every member; null for the empty set.
mlir::Type joinFloats(mlir::MLIRContext *context, FloatSet set);

struct Term {
  enum Kind { Array, Symbolic, Literal };
  Kind kind = Array;
  mlir::Value array;                    // Array
  SymExpr symbolic;                     // Symbolic: an integer over the symbols
  double literal = 0;                   // Literal: a real number that takes the type it meets
  llvm::SmallVector<unsigned, 4> frame; // positions on the frame stack, increasing
  Cell cell;

  // Where the elements come from, for the rounding of contraction operands.
  mlir::Type source; // float type of the input that this selects from
  mlir::Type cast;   // type of the user's cast that this is the result of
  FloatSet reads = 0;

  // For messages: the expression, and its text if it is a name.
  SourceLoc loc;
  std::string name;
  // Of a whole expression, as a subscript: as it was written, and where that begins.
  llvm::StringRef text;
  SourceLoc start;

  static Term ofSymbolic(SymExpr value) {
    Term term;
    term.kind = Symbolic;
    term.symbolic = std::move(value);
    return term;
  }
  static Term ofLiteral(double value) {
    Term term;
    term.kind = Literal;
    term.literal = value;
    return term;
  }
  /// An array without frame whose axes are the cell axes.
  static Term ofArray(mlir::Value array);

  bool isArray() const { return kind == Array; }
  unsigned rank() const { return cell.size(); }
  /// Null for a literal, index for a symbolic term.
  mlir::Type elementType() const;
  bool isBoolean() const;
  bool isInteger() const;
  bool isFloat() const { return !isBoolean() && !isInteger(); }
  bool hasVirtualAxes() const {
    return llvm::any_of(cell, [](const Axis &axis) { return axis.isVirtual; });
  }
  /// Copies where the elements come from: the result selects from `other`.
  void selectsFrom(const Term &other) {
    source = other.source;
    cast = other.cast;
    reads = other.reads;
  }
};

/// "[B, H, N + M]" in the user's symbols, with `_` for an unknown extent.
std::string shapeText(llvm::ArrayRef<Axis> cell);
std::string shapeText(llvm::ArrayRef<SymExpr> shape);
/// "; 'j' runs over an axis of m …: write 'j < M'", where an index took another extent than
/// is wanted from a subscript; else nothing.
std::string originText(const Axis &axis, const SymExpr &wanted);
/// The name of the element type, "a real number" for a literal.
std::string elementText(const Term &term);

} // namespace moa::frontend

#endif // MOA_FRONTEND_TERM_H
