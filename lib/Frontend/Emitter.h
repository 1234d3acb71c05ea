//===- Emitter.h - operators on terms ---------------------------*- C++ -*-===//
//
// Each member checks the language rules of one operator of the algebra and emits its op. Nothing
// here depends on syntax.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_FRONTEND_EMITTER_H
#define MOA_FRONTEND_EMITTER_H

#include "lib/Frontend/ArrayTerm.h"
#include "lib/Frontend/Reporter.h"

namespace moa::frontend {

using TermOr = mlir::FailureOr<ArrayTerm>;

/// The source text of an operator, for messages. It also distinguishes `and`, `or`, `not` (on
/// booleans) from `&`, `|`, `~` (on integers).
using Spelling = llvm::StringRef;

class OperatorEmitter {
public:
  OperatorEmitter(const Reporter &reporter, mlir::OpBuilder &builder, mlir::Type computeType)
      : reporter(reporter), builder(builder), computeType(computeType) {}

  // The frame stack.
  unsigned frameDepth() const { return frames.size(); }
  /// Pushes an axis, with the name of its index variable if any, and returns its position.
  unsigned pushFrame(SymExpr extent, llvm::StringRef name = "");
  /// Returns the index along a frame axis, a scalar of type index.
  TermOr frameIndex(SourceLoc loc, unsigned position);
  /// Turns leading cell axes of all terms into frame axes so that term k keeps `ranks[k]` cell axes
  /// (Ω). The leading axes of the terms must be equal, or absent.
  mlir::LogicalResult openFrame(SourceLoc loc, llvm::MutableArrayRef<ArrayTerm> terms, llvm::ArrayRef<int64_t> ranks,
                                Spelling what);
  /// Pops the frame axes from `depth` on. They become leading cell axes of the term.
  ArrayTerm closeFrame(ArrayTerm term, unsigned depth);

  // Operators.
  TermOr constant(SourceLoc loc, mlir::TypedAttr value);
  /// Returns a real number rounded to a float type. Reports an error if a finite number becomes
  /// infinite or 0 (lostConstants).
  mlir::FloatAttr realConstant(SourceLoc loc, double value, mlir::Type type);
  /// Returns true if an error was reported for a number that its type cannot hold.
  bool lostConstants() const { return hasLost; }
  TermOr map(SourceLoc loc, ScalarFn fn, Spelling what, llvm::ArrayRef<ArrayTerm> args);
  TermOr mask(SourceLoc loc, const ArrayTerm &predicate, const ArrayTerm &term);
  /// Reduces along an axis. `function` is the op of a user-defined monoid, on the type of
  /// reducedType().
  TermOr reduce(SourceLoc loc, Monoid monoid, Spelling what, const ArrayTerm &term, unsigned axis,
                MonoidOp function = MonoidOp());
  /// Returns the element type in which a reduction of the term computes.
  mlir::Type reducedType(const ArrayTerm &term) const;
  /// Contracts the last cell axis of a with the first of b.
  TermOr inner(SourceLoc loc, Monoid monoid, ScalarFn fn, Spelling what, const ArrayTerm &a, const ArrayTerm &b);
  /// Stores the source text of a reduction in its operation.
  void noteText(const ArrayTerm &term, const Expr &expr) const;
  /// Selects by subscripts. A missing subscript takes a whole axis.
  TermOr index(SourceLoc loc, const ArrayTerm &term, llvm::ArrayRef<std::optional<ArrayTerm>> subscripts);
  TermOr cast(SourceLoc loc, mlir::Type type, const ArrayTerm &term);
  /// Reduces an integer modulo 2^w for an unsigned type: x & (2^w − 1).
  TermOr lowBits(SourceLoc loc, const ArrayTerm &term, mlir::Type type);
  TermOr iota(SourceLoc loc, const SymExpr &extent);
  /// Permutes the cell axes; `perm` covers all of them.
  TermOr transpose(SourceLoc loc, const ArrayTerm &term, llvm::ArrayRef<int64_t> perm);
  TermOr slice(SourceLoc loc, const ArrayTerm &term, unsigned axis, const SymExpr &start, const SymExpr &count);
  TermOr reverse(SourceLoc loc, const ArrayTerm &term, unsigned axis);
  TermOr rotate(SourceLoc loc, const ArrayTerm &term, const SymExpr &by, unsigned axis);
  TermOr cat(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, unsigned axis);
  TermOr reshape(SourceLoc loc, const ArrayTerm &term, llvm::ArrayRef<SymExpr> shape);

  /// Materialises a term for a reduction or an output, with every axis of its cell and all frame
  /// axes of `frame`. Casts it to the compute type if `widen`.
  TermOr materialise(SourceLoc loc, const ArrayTerm &term, llvm::ArrayRef<unsigned> frame, bool widen);
  ArrayTerm toFloat(SourceLoc loc, const ArrayTerm &term, mlir::Type type);
  /// Returns the cell shape of terms that combine point-wise: their shapes are equal or scalar.
  mlir::FailureOr<Cell> mergeCells(SourceLoc loc, llvm::ArrayRef<ArrayTerm> terms, Spelling what,
                                   bool areFrames = false);

  /// Returns the number of operations emitted so far, to stop programs that grow without bound.
  unsigned getOpCount() const { return opCount; }

private:
  struct Layout {
    FrameAxes frame;
    Cell cell;
  };
  template <typename Op, typename... Args> mlir::Value create(SourceLoc loc, Args &&...args) {
    ++opCount;
    return Op::create(builder, reporter.location(loc), std::forward<Args>(args)...).getResult();
  }
  mlir::FailureOr<Layout> merge(SourceLoc loc, llvm::ArrayRef<ArrayTerm> terms, Spelling what);
  mlir::FailureOr<Cell> mergeLeading(SourceLoc loc, llvm::ArrayRef<ArrayTerm> terms, llvm::ArrayRef<int64_t> ranks,
                                     Spelling what);
  /// Returns the array type of a layout. It has no virtual axes.
  ArrayType typeOf(const Layout &layout, mlir::Type element) const;
  llvm::SmallVector<int64_t> placement(const ArrayTerm &term, const Layout &layout) const;
  /// Returns the position of a cell axis among the axes of the array.
  unsigned physicalAxis(const ArrayTerm &term, unsigned axis) const;
  mlir::Value toElement(SourceLoc loc, const ArrayTerm &term, mlir::Type element);
  mlir::Value scalar(SourceLoc loc, const ArrayTerm &term, mlir::Type element);
  mlir::LogicalResult checkComputed(SourceLoc loc, llvm::ArrayRef<ArrayTerm> terms);
  mlir::FailureOr<mlir::Type> operandType(SourceLoc loc, ScalarFn fn, Spelling what, llvm::ArrayRef<ArrayTerm> args);
  mlir::FailureOr<mlir::Type> unify(SourceLoc loc, Spelling what, llvm::ArrayRef<ArrayTerm> args, bool allowBoolean);
  std::optional<TermOr> fold(SourceLoc loc, ScalarFn fn, llvm::ArrayRef<ArrayTerm> args);
  mlir::Value emitMap(SourceLoc loc, ScalarFn fn, llvm::ArrayRef<ArrayTerm> args, llvm::ArrayRef<mlir::Value> operands,
                      const Layout &layout);
  ArrayTerm fromLayout(mlir::Value array, const Layout &layout) const;
  void warnOfQuotient(SourceLoc loc, const ArrayTerm &dividend, llvm::StringRef divisor);
  void shapeMismatch(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, Spelling what);
  void frameMismatch(SourceLoc loc, const ArrayTerm &a, const ArrayTerm &b, Spelling what);
  mlir::LogicalResult checkInner(SourceLoc loc, Spelling what, const ArrayTerm &a, const ArrayTerm &b);
  mlir::Type roundingType(const ArrayTerm &a, const ArrayTerm &b) const;
  TermOr castUnsigned(SourceLoc loc, mlir::Type type, const ArrayTerm &term);
  mlir::FailureOr<Layout> subscriptLayout(SourceLoc loc, const ArrayTerm &term,
                                          llvm::ArrayRef<std::optional<ArrayTerm>> subscripts);
  mlir::LocationAttr writtenAs(const ArrayTerm &subscript) const;
  mlir::LogicalResult checkSubscript(SourceLoc loc, const ArrayTerm &subscript, const Axis &axis);

  const Reporter &reporter;
  mlir::OpBuilder &builder;
  mlir::Type computeType;
  struct Frame {
    SymExpr extent;
    std::string name; // of an index variable
    mlir::Value iota; // emitted at the first use
  };
  llvm::SmallVector<Frame> frames;
  unsigned opCount = 0;
  bool hasLost = false;
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_EMITTER_H
