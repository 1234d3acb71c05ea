//===- Term.h - scalar values as terms in one normal form -------*- C++ -*-===//
//
// The value that a level computes for one element, as a term. Integers are polynomials over atoms
// (indices, symbols, elements of arrays, quotients), truth values are built from comparisons with
// 0, and everything else is an operation on terms. Terms are uniqued (hash-consed) in one normal
// form, so that two values that are equal by the laws below are the same pointer. This file depends
// on no level.
//
// Laws of the normal form:
// - integers: the laws of commutative rings for + and ·; ⌊e / 1⌋ = e; ⌊(c·e + f) / c⌋ = e + ⌊f /
//   c⌋; arithmetic of constants; a ≤ b is b − a ≥ 0;
// - truth values: Boolean algebra for constants, ¬¬p, p ∧ p and p ∧ ¬p; select of equal, constant
//   and negated operands;
// - floats: commutativity of + · min max; neutral elements that keep every bit; a widening cast
//   followed by a cast is one cast; arithmetic of constants.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_TERM_H
#define MOA_VALIDATION_TERM_H

#include "lib/Support/SymExpr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/StringSaver.h"
#include <optional>
#include <set>

namespace moa::validation {

struct TermNode;
using Term = const TermNode *;

enum class TermKind : uint8_t {
  Number,      // value: an integer of 64 bits
  Symbol,      // name: a symbol of the kernel
  Index,       // value: the number of an index variable, negative for a bound one
  Sum,         // Σ coefficients[k] · operands[k] + value
  Product,     // of integer atoms, sorted
  Quotient,    // ⌊operands[0] / operands[1]⌋
  Load,        // value: an input; operands: the index on every axis
  Constant,    // attribute: a float
  Truth,       // value: 0 or 1
  NotNegative, // operands[0] ≥ 0
  Zero,        // operands[0] = 0
  Not,
  And, // sorted
  Or,  // sorted
  Select,
  Scalar, // name: an operation
  Reduce, // name: the monoid; operands: index variable, extent, body, presence
  Apply,  // value: a definition; operands: the indices
};

struct TermNode : llvm::FoldingSetNode {
  TermKind kind;
  unsigned id;     // order of creation
  unsigned height; // depth of nested reductions
  int64_t value;
  mlir::Type type; // i64 is index
  llvm::StringRef name;
  mlir::Attribute attribute;
  llvm::ArrayRef<Term> operands;
  llvm::ArrayRef<int64_t> coefficients;

  bool is(TermKind k) const { return kind == k; }
  bool isTrue() const { return kind == TermKind::Truth && value == 1; }
  bool isFalse() const { return kind == TermKind::Truth && value == 0; }
  void Profile(llvm::FoldingSetNodeID &key) const;
};

class TermContext {
public:
  explicit TermContext(mlir::MLIRContext *context);

  // Integers.
  Term number(int64_t value);
  Term symbol(llvm::StringRef name);
  Term index(int64_t number);
  /// Returns a fresh index variable, with a name for messages.
  Term freshIndex(llvm::StringRef name);
  Term sum(Term a, Term b) { return combine(a, b, 1); }
  Term difference(Term a, Term b) { return combine(a, b, -1); }
  Term scaled(Term a, int64_t factor) { return combine(number(0), a, factor); }
  Term product(Term a, Term b);
  /// ⌊a / b⌋
  Term quotient(Term a, Term b);
  /// a − b·⌊a / b⌋
  Term remainder(Term a, Term b);
  Term integer(llvm::StringRef name, Term a, Term b);
  Term bits(llvm::StringRef name, Term a, Term b);
  Term extent(llvm::StringRef text);
  Term extent(const SymExpr &expr);

  // Truth values.
  Term truth(bool value);
  Term notNegative(Term a);
  Term isZero(Term a);
  Term atMost(Term a, Term b) { return notNegative(difference(b, a)); }
  Term below(Term a, Term b) { return atMost(sum(a, number(1)), b); }
  Term equal(Term a, Term b) { return isZero(difference(a, b)); }
  Term negate(Term p);
  Term both(Term p, Term q) { return connect(TermKind::And, p, q); }
  Term either(Term p, Term q) { return connect(TermKind::Or, p, q); }
  /// Returns the truth value p ⇔ q.
  Term same(Term p, Term q);

  // Anything.
  Term load(int64_t input, llvm::ArrayRef<Term> indices, mlir::Type element);
  Term constant(mlir::Attribute value, mlir::Type type);
  Term real(double value, mlir::Type type);
  Term select(Term condition, Term a, Term b);
  Term scalar(llvm::StringRef name, mlir::Type type, llvm::ArrayRef<Term> operands);
  Term cast(Term a, mlir::Type type);
  /// Returns the reduction over a free index, which it binds. Bound indices are numbered by height,
  /// so that terms equal up to renaming of bound indices (α-equivalence) are the same term.
  Term reduce(llvm::StringRef monoid, mlir::Type type, Term index, Term extent, Term body, Term presence);
  Term apply(int64_t definition, mlir::Type type, llvm::ArrayRef<Term> indices);

  /// Returns the term with index variables replaced. Use Substitution for many terms.
  Term substitute(Term term, const llvm::DenseMap<Term, Term> &with);
  /// Simplifies the term under a condition: its conjuncts become true, their negations false.
  Term under(Term term, Term condition);
  /// Returns readable mathematics, with the names of inputs and index variables.
  std::string str(Term term);
  llvm::SmallVector<std::string> inputNames;
  /// Inputs with unsigned elements.
  std::set<int64_t> unsignedInputs;
  /// Returns the value of a loaded element: for x : u8[N] its low 8 bits (Unsigned.h).
  Term valueOf(Term load);
  void nameIndex(Term index, llvm::StringRef name) { indexNames[index] = names.save(name); }
  std::string nameOf(Term index) const;

  mlir::Type indexType() const { return index_; }
  mlir::Type boolType() const { return bool_; }
  unsigned size() const { return created; }

private:
  Term unique(TermKind kind, int64_t value, mlir::Type type, llvm::StringRef name, mlir::Attribute attribute,
              llvm::ArrayRef<Term> operands, llvm::ArrayRef<int64_t> coefficients = {});
  Term combine(Term a, Term b, int64_t factor);
  Term makeSum(llvm::MutableArrayRef<std::pair<Term, int64_t>> parts, int64_t constant);
  Term times(Term a, Term b);
  Term connect(TermKind kind, Term p, Term q);
  Term foldReal(llvm::StringRef name, mlir::Type type, llvm::ArrayRef<Term> operands);
  Term castReal(Term a, mlir::Type type);
  Term castInteger(Term a, mlir::Type type);
  mlir::Type canonical(mlir::Type type) const;
  std::optional<std::pair<Term, int64_t>> takeRemainder(Term sum);
  Term withRemainders(Term term);
  using Parts = llvm::SmallVector<std::pair<Term, int64_t>>;
  void print(llvm::raw_ostream &os, Term term, unsigned strength, unsigned depth) const;
  void printSum(llvm::raw_ostream &os, const Parts &parts, int64_t constant, unsigned depth) const;
  void printComparison(llvm::raw_ostream &os, Term term, unsigned depth) const;

  mlir::Type index_, bool_;
  llvm::FoldingSet<TermNode> nodes;
  llvm::BumpPtrAllocator allocator;
  llvm::UniqueStringSaver names;
  llvm::StringMap<Term> extents;
  llvm::DenseMap<Term, llvm::StringRef> indexNames;
  llvm::DenseMap<Term, Term> readable;
  unsigned created = 0;
  int64_t fresh = int64_t(1) << 32;
};

/// Simultaneous substitution in terms, with results shared between calls. The index of a reduction
/// stays bound while its body is rewritten, so that each term is visited once even if reductions
/// nest. The index is freed first only if a replacement contains deeper nested reductions than the
/// term it replaces. This avoids capture.
class Substitution {
public:
  Substitution(TermContext &terms, const llvm::DenseMap<Term, Term> &with);
  Term of(Term term);

private:
  Term rebuild(Term term, llvm::ArrayRef<Term> operands);
  Term ofReduce(Term term);
  bool touches(Term term);

  TermContext *terms;
  llvm::DenseMap<Term, Term> memo;
  llvm::DenseMap<Term, bool> touched;
  bool isIdentity, grows;
};

/// Integer arithmetic that wraps at 64 bits.
inline int64_t wrapMul(int64_t a, int64_t b) { return uint64_t(a) * uint64_t(b); }
inline int64_t wrapAdd(int64_t a, int64_t b) { return uint64_t(a) + uint64_t(b); }

/// Splits an integer into coefficients of atoms and products, and a constant.
void splitSum(Term term, llvm::SmallVectorImpl<std::pair<Term, int64_t>> &parts, int64_t &constant);

} // namespace moa::validation

#endif // MOA_VALIDATION_TERM_H
