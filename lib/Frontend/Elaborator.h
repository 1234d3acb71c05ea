//===- Elaborator.h - from syntax to the moa dialect ------------*- C++ -*-===//
#ifndef MOA_FRONTEND_ELABORATOR_H
#define MOA_FRONTEND_ELABORATOR_H

#include "lib/Frontend/Emitter.h"
#include "lib/Frontend/Signature.h"

namespace moa::frontend {

struct Builtin;

/// Elaborates one kernel. Functions are inlined and lifted over all their cells at once. Every
/// definition becomes operators on whole arrays.
class Elaborator {
public:
  Elaborator(const Program &program, const KernelDecl &kernel, Signature signature, Reporter &reporter,
             mlir::OpBuilder &builder);

  /// Emits the kernel at the builder's insertion point.
  mlir::LogicalResult run();

private:
  struct Scope {
    const Body *body = nullptr;
    std::vector<ArrayTerm> params;
    // A definition whose index forms get their extents from the context has no term before its
    // first use.
    std::vector<std::optional<ArrayTerm>> definitions;
    SymbolTable symbols;
    std::map<unsigned, unsigned> indexVars;    // to positions on the frame stack
    std::map<const Expr *, ArrayTerm> hoisted; // elaborated early to find their shape
  };
  /// The shape that the context gives to index forms, or null.
  using Context = const Cell *;

  // Kernels (Elaborator.cpp).
  KernelOp createKernel();
  void setUnsigned(KernelOp op);
  mlir::LogicalResult readUnsigned();
  mlir::LogicalResult elaborateNeeded();
  mlir::LogicalResult elaborateResults(llvm::SmallVectorImpl<mlir::Value> &values);
  mlir::FailureOr<mlir::Value> elaborateResult(const ArrayDecl &decl, const Signature::Array &declared);
  mlir::LogicalResult checkUnneeded(mlir::Block &block);
  /// Reports divisions by a size that is set to 0, if a result needs the quotient.
  mlir::LogicalResult refuseZeroDivisors(KernelOp checked);
  /// Elaborates the definitions of the current body in the given order.
  mlir::LogicalResult elaborateDefinitions(llvm::ArrayRef<unsigned> order);
  mlir::LogicalResult elaborateDefinition(unsigned k, Context context);
  mlir::LogicalResult checkUnused(llvm::ArrayRef<unsigned> order);

  // Expressions (Elaborator.cpp).
  TermOr elaborate(const Expr &expr, Context context = nullptr);
  TermOr dispatch(const Expr &expr, Context context);
  TermOr elaborateName(const Expr &expr, Context context);
  TermOr elaborateBinary(const Expr &expr, Context context);
  mlir::LogicalResult checkDivisor(const Expr &expr, llvm::ArrayRef<ArrayTerm> terms);
  TermOr elaborateReduce(const Expr &expr);
  TermOr elaborateInner(const Expr &expr);
  /// Elaborates operands; those that need a context for their index forms come last. With
  /// `combine`, operands combine point-wise. Without it, an operand takes the shape of another one
  /// only if it has no shape of its own.
  mlir::FailureOr<std::vector<ArrayTerm>> elaborateOperands(llvm::ArrayRef<ExprPtr> args, Context context,
                                                            bool combine);
  bool needsContext(const Expr &expr) const;
  /// Returns true if all extents can be derived without a context.
  mlir::FailureOr<bool> isDetermined(const Expr &expr);
  /// Finds the shape of the first operand that has one of its own. Keeps the operand's term.
  mlir::LogicalResult findContext(const Expr &expr, Cell &shape);
  mlir::LogicalResult findContextOfForm(const Expr &form, Cell &shape);
  mlir::FailureOr<const ArrayTerm *> hoist(const Expr &expr);
  bool isPointwiseCall(const Expr &expr) const;
  mlir::FailureOr<SymExpr> elaborateSymbolic(const Expr &expr, llvm::StringRef what, llvm::StringRef remedy = "");

  // Index forms and subscripts (ElaborateIndex.cpp).
  TermOr elaborateIndex(const Expr &expr);
  TermOr elaborateIndexForm(const Expr &expr, Context context);
  void noteOrigins(const Expr &form, Cell &cell);
  TermOr placeWildcards(const Expr &form, ArrayTerm body, unsigned variables);
  mlir::FailureOr<SymExpr> findExtent(const Expr &form, unsigned position, Context context);
  mlir::LogicalResult findUses(const Expr &expr, const IndexVar &var, std::optional<SymExpr> &extent, SourceLoc &where);
  bool isClosed(const Expr &expr, llvm::ArrayRef<unsigned> inside = {}) const;

  // Calls (ElaborateCall.cpp).
  TermOr elaborateCall(const Expr &expr, Context context);
  TermOr elaborateBuiltin(const Expr &expr, const Builtin &builtin, Context context);
  TermOr applyFunction(SourceLoc loc, const FunctionDecl &function, llvm::ArrayRef<ArrayTerm> args);
  mlir::LogicalResult bindCells(SourceLoc loc, const FunctionDecl &function, llvm::ArrayRef<ArrayTerm> args,
                                Scope &scope);
  TermOr applyRef(const Expr &ref, llvm::ArrayRef<ArrayTerm> args);
  TermOr elaborateTranspose(const Expr &expr, const ArrayTerm &term);
  TermOr elaborateTakeDrop(const Expr &expr, bool isTake, ArrayTerm term);
  TermOr takeDrop(SourceLoc loc, bool isTake, const ArrayTerm &term, unsigned axis, const SymExpr &count);
  TermOr elaborateReverseRotate(const Expr &expr, const Builtin &builtin, const ArrayTerm &term);
  TermOr elaborateReshape(const Expr &expr, const ArrayTerm &term);
  TermOr elaborateCat(const Expr &expr);
  TermOr elaboratePsi(const Expr &expr);
  TermOr elaborateOuter(const Expr &expr);
  TermOr elaborateFullInner(const Expr &expr);
  TermOr elaborateFullReduce(const Expr &expr);
  mlir::FailureOr<unsigned> elaborateAxis(const Expr &expr, const ArrayTerm &term, llvm::StringRef what);
  mlir::FailureOr<unsigned> elaborateOptionalAxis(const Expr &expr, unsigned position, const ArrayTerm &term);
  /// Returns a named monoid, or `user` for a monoid defined in the specification.
  mlir::FailureOr<Monoid> getMonoid(const Expr &ref);
  TermOr reduceWith(const Expr &ref, Monoid monoid, SourceLoc loc, Spelling what, const ArrayTerm &term, unsigned axis);
  /// Returns the op of a user-defined monoid on an element type, created once.
  mlir::FailureOr<MonoidOp> getMonoidOp(const Expr &ref, mlir::Type element);
  mlir::FailureOr<mlir::TypedAttr> getIdentityAttr(const FunctionDecl &monoid, mlir::Type element, SourceLoc use);
  /// Checks e ≥ 0, and reports `what` if it does not hold. If only the run-time sizes decide, adds
  /// it to the kernel's constraints.
  mlir::LogicalResult requireNonNegative(SourceLoc loc, const SymExpr &e, llvm::StringRef what);

  const Program &program;
  const KernelDecl &kernel;
  Signature signature;
  Reporter &reporter;
  mlir::OpBuilder &builder;
  OperatorEmitter emitter;
  Scope *scope = nullptr;
  std::map<std::pair<int, const void *>, MonoidOp> monoids; // by function and type
  /// Quotients by a size that is set to 0, by location.
  llvm::DenseMap<mlir::Attribute, const Expr *> zeroDivisors;
  unsigned depth = 0;
};

} // namespace moa::frontend

#endif // MOA_FRONTEND_ELABORATOR_H
