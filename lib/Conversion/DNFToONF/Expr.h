//===- Expr.h - hash-consed scalar expressions ------------------*- C++ -*-===//
//
// The fold rules work on scalar expressions of the denotational normal form. An Expr is an
// immutable node, made once per structure: two expressions that are equal up to the names of bound
// indices are the same pointer. Bound indices are numbered by the height of their binder, so that
// equality needs no renaming. open() replaces a bound index by a free one.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_DNFTOONF_EXPR_H
#define MOA_CONVERSION_DNFTOONF_EXPR_H

#include "dialects/DNF/IR/DNF.h"
#include "lib/Support/MathTerm.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"
#include <deque>
#include <set>

namespace moa {

struct ExprNode;
using Expr = const ExprNode *;

enum class ExprKind {
  Index,  // a free (id ≥ 0) or bound (id < 0) index
  Extent, // an integer expression over the symbols
  Const,  // a scalar constant
  Psi,    // an input array at a full index: operands are the indices
  Op,     // a scalar operation of arith or math
  Reduce, // operands: body, and the condition if the range is restricted
};

struct ExprNode : llvm::FoldingSetNode {
  ExprKind kind;
  mlir::Type type;
  llvm::SmallVector<Expr, 3> operands;
  int64_t id = 0;                        // Index: number; Psi: input number
  mlir::Attribute value;                 // Const
  std::optional<mlir::OperationName> op; // Op
  mlir::DictionaryAttr attributes;       // Op
  Monoid monoid = Monoid::add;           // Reduce
  mlir::TypeAttr rounds;                 // Reduce
  mlir::FlatSymbolRefAttr function;      // Reduce: the monoid `user`
  ExprAttr extent;                       // Extent: its value; Reduce: the range
  unsigned height = 0;                   // 1 + the deepest Reduce inside
  std::set<int64_t> freeIndices;
  unsigned serial = 0; // order of creation

  bool isOp(llvm::StringRef name) const { return kind == ExprKind::Op && op->getStringRef() == name; }
  bool dependsOn(int64_t index) const { return freeIndices.count(index) != 0; }
  /// Reduce: the condition of the range, or null.
  Expr getPresent() const { return operands.size() > 1 ? operands[1] : nullptr; }
  void Profile(llvm::FoldingSetNodeID &nodeId) const;
};

/// Makes and owns expressions.
class ExprContext {
public:
  explicit ExprContext(mlir::MLIRContext *context) : context(context) {}

  Expr index(int64_t id);
  int64_t freshIndex(llvm::StringRef name);
  llvm::StringRef indexName(int64_t id) const { return names[id]; }
  Expr extent(const SymExpr &value);
  Expr constant(mlir::Attribute value, mlir::Type type);
  Expr floatConstant(double value, mlir::Type type);
  Expr boolean(bool value);
  Expr psi(int64_t input, llvm::ArrayRef<Expr> indices, mlir::Type type);
  /// Makes a scalar operation. Folds integer arithmetic on extents, ×1 and ÷1.
  Expr op(mlir::OperationName name, mlir::DictionaryAttr attributes, llvm::ArrayRef<Expr> operands, mlir::Type type);
  Expr op(llvm::StringRef name, llvm::ArrayRef<Expr> operands, mlir::Type type);
  /// Makes an operation whose result has the type of its first operand.
  Expr op(llvm::StringRef name, llvm::ArrayRef<Expr> operands) { return op(name, operands, operands.front()->type); }
  /// Returns a Psi or an Op with other operands.
  Expr withOperands(Expr e, llvm::ArrayRef<Expr> operands);
  /// a ∧ b, where null stands for true.
  Expr both(Expr a, Expr b) { return a && b ? op("arith.andi", {a, b}) : a ? a : b; }
  /// Returns `value` where `condition` holds, and `otherwise` elsewhere.
  Expr guarded(Expr condition, Expr value, Expr otherwise);
  /// a = b, of floats (false for NaN) or integers; a > b and a ≥ b, of integers.
  Expr equal(Expr a, Expr b);
  Expr greater(Expr a, Expr b);
  Expr notBelow(Expr a, Expr b);
  /// ⊕ over `free` in 0 ≤ free < extent (where `present`) of body.
  Expr reduce(Monoid monoid, ExprAttr extent, int64_t free, Expr body, Expr present, mlir::TypeAttr rounds,
              llvm::StringRef name, mlir::FlatSymbolRefAttr function = {});
  /// Returns the body and condition of a reduction at a free index.
  std::pair<Expr, Expr> open(Expr reduce, int64_t free);
  /// Returns the sum of `body`, where `present`, at the index `free` over the range of `of` and in its place.
  Expr sumOver(Expr of, int64_t free, Expr body, Expr present, mlir::TypeAttr rounds = {});
  /// Returns the reduction with another body and condition at a free index, under the same name.
  Expr withBody(Expr reduce, int64_t free, Expr body, Expr present);
  /// Returns the name of the index that a reduction was written with.
  llvm::StringRef boundName(Expr reduce) const;

  /// Replaces subexpressions, outermost first. Bodies of reductions are rewritten at a fresh index.
  Expr replace(Expr e, llvm::function_ref<Expr(Expr)> with);

  /// Replaces free indices.
  Expr renamed(Expr e, const llvm::DenseMap<int64_t, Expr> &with) {
    return replace(e, [&](Expr node) { return node->kind == ExprKind::Index ? with.lookup(node->id) : nullptr; });
  }

  mlir::MLIRContext *getContext() const { return context; }
  /// Names of input arrays, for printing.
  llvm::SmallVector<std::string> inputNames;
  /// Names of reductions, from the lets they were written as.
  llvm::DenseMap<Expr, std::string> reductionNames;
  /// Where reductions were written.
  llvm::DenseMap<Expr, mlir::Location> places;
  /// Returns the source text of a reduction without a name, such as `max/ x`; empty otherwise.
  llvm::StringRef writtenText(Expr reduce) const;
  /// Returns the outermost reductions without a name in `e`, once each.
  llvm::SmallVector<Expr> writtenReductions(Expr e) const;
  /// Returns `str` with reductions without a name as the user wrote them.
  std::string strAsWritten(Expr e);
  /// Values of lets at the indices where they are applied, for printing.
  struct LetValue {
    std::string name;
    std::vector<Expr> indices;
    Expr value;
  };
  std::vector<LetValue> letValues;
  /// Returns where a reduction was written, or `otherwise` if that is unknown.
  mlir::Location placeOf(Expr reduce, mlir::Location otherwise) const;
  /// Returns the name of a reduction, or `otherwise` if it has none.
  std::string nameOf(Expr reduce, llvm::StringRef otherwise) const;
  /// Gives the reduction `to` the place of `from`, unless it has one.
  void inheritPlace(Expr from, Expr to);
  /// Does the same for the place and the name.
  void inheritName(Expr from, Expr to);
  /// Returns readable mathematics, for remarks. Named reductions print as their names.
  std::string str(Expr e) const {
    PrintedTerms terms;
    return term(e, terms).text;
  }

private:
  Expr compare(llvm::StringRef name, int64_t predicate, Expr a, Expr b);
  Expr negation(Expr e);
  Expr unique(ExprNode &&node);
  Expr rename(Expr e, int64_t from, Expr to);
  Expr foldOp(llvm::StringRef name, llvm::ArrayRef<Expr> operands);
  /// Printed subexpressions, memoized: the text of a shared one may be exponentially longer.
  using PrintedTerms = llvm::DenseMap<Expr, MathTerm>;
  MathTerm term(Expr e, PrintedTerms &terms) const;
  MathTerm makeTerm(Expr e, PrintedTerms &terms) const;
  MathTerm termOfOp(Expr e, PrintedTerms &terms) const;

  mlir::MLIRContext *context;
  llvm::FoldingSet<ExprNode> nodes;
  std::deque<ExprNode> storage;
  llvm::BumpPtrAllocator allocator;
  llvm::UniqueStringSaver strings{allocator}; // names outlive every table that grows
  std::vector<llvm::StringRef> names;
  llvm::DenseMap<Expr, llvm::StringRef> reduceNames;
  unsigned serial = 0;
};

/// Returns the value of a float constant.
std::optional<double> floatValue(Expr e);

/// Calls `visit` on `e` and every node below it, once each.
void walk(Expr e, llvm::function_ref<void(Expr)> visit);
/// Returns whether `e` or a node below it satisfies a predicate.
bool anyNode(Expr e, llvm::function_ref<bool(Expr)> holds);

/// Chooses the free indices at which one traversal opens reductions: one for all reductions of the
/// same height, range and name, so that shared subexpressions stay shared. With an index per
/// opening, a cascade in which two reductions read each result would be walked twice at each level.
class Openings {
public:
  explicit Openings(ExprContext &exprs) : exprs(exprs) {}
  /// Returns an index that is not free in `reduce`. A reduction inside another one has less height,
  /// and so another index.
  int64_t indexFor(Expr reduce);

private:
  ExprContext &exprs;
  std::map<std::tuple<unsigned, const void *, llvm::StringRef>, llvm::SmallVector<int64_t, 1>> indices;
};

/// Returns the reductions of `value` outside any other reduction, in order.
llvm::SmallVector<Expr> outermostReductions(Expr value);

/// Reads the definitions of a dnf.kernel as expressions, with lets unfolded.
class ExprImporter {
public:
  ExprImporter(ExprContext &exprs, dnf::KernelOp kernel);
  /// Returns the value of an output at `indices`, and the condition of its presence (or null).
  std::pair<Expr, Expr> output(dnf::OutputOp op, llvm::ArrayRef<Expr> indices);

private:
  using Env = llvm::DenseMap<mlir::Value, Expr>;
  std::pair<Expr, Expr> block(mlir::Block &block, Env &env);
  Expr operation(mlir::Operation *op, Env &env);
  Expr apply(dnf::ApplyOp op, Env &env);

  ExprContext &exprs;
  dnf::KernelOp kernel;
  std::map<std::pair<mlir::Operation *, std::vector<Expr>>, Expr> applied;
  /// The free index of every reduction, the same wherever its let is applied, so that the lets that
  /// its body applies are read once. No let is applied in its own body.
  llvm::DenseMap<mlir::Operation *, int64_t> reductionIndices;
};

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_EXPR_H
