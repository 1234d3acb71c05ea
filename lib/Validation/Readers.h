//===- Readers.h - what a level computes for one element --------*- C++ -*-===//
//
// Two readers that share nothing but terms. That of moa pushes a multi-index
// through the operators by their definitions (docs/Spec.md, section 1); that of dnf
// reads the definitions of the normal form as they stand.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_READERS_H
#define MOA_VALIDATION_READERS_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/MoA/IR/MoA.h"
#include "lib/Validation/Term.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace moa::validation {

/// The value of an element, and where it is present.
struct Element {
  Term value = nullptr, presence = nullptr;
};

/// The free index of a reduction inside `depth` others, until it is bound.
Term boundIndex(TermContext &terms, unsigned depth);

/// How a reduction is told from others: its monoid and what it rounds to.
std::string reductionName(Monoid monoid, mlir::FlatSymbolRefAttr function, mlir::TypeAttr rounds);

/// Integer and float operations on terms, from those of the arith and math
/// dialects; null for an operation that is none of them.
Term readScalar(TermContext &terms, mlir::Operation *op, llvm::ArrayRef<Term> operands);

class MoAReader {
public:
  explicit MoAReader(TermContext &terms) : terms(terms) {}

  /// i ψ array, inside `depth` reductions.
  Element at(mlir::Value array, llvm::ArrayRef<Term> index, unsigned depth);
  /// From here on the elements of `array` stand for themselves: definition
  /// `value`, present where definition `presence` says (-1: where computed).
  void bind(mlir::Value array, int64_t value, int64_t presence);
  /// The element at the indices 0, 1, … of its own, unbound.
  Element generic(mlir::Value array);
  /// A scalar of a monoid's body, whose arguments are bound by set().
  void set(mlir::Value scalar, Term value) { scalars[scalar] = value; }

private:
  struct Binding {
    int64_t value, presence;
  };
  Element compute(mlir::Operation *op, llvm::ArrayRef<Term> index, unsigned depth);
  Element map(MapOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Element reduce(ReduceOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Element inner(InnerOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Element gather(PsiOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Element reshape(ReshapeOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Element catenate(CatOp op, llvm::ArrayRef<Term> index, unsigned depth);
  Term function(ScalarFn fn, llvm::ArrayRef<Term> x, mlir::Type type);

  TermContext &terms;
  llvm::DenseMap<mlir::Value, Binding> bindings;
  llvm::DenseMap<mlir::Value, Term> scalars;
  std::map<std::pair<void *, std::vector<Term>>, Element> memo;
};

class DNFReader {
public:
  DNFReader(TermContext &terms, dnf::KernelOp kernel);

  /// Definition k of the kernel, lets first, at the indices 0, 1, … of its own.
  Element generic(mlir::Operation *definition);
  /// From here on a let is unfolded where it is applied.
  void unfold(dnf::LetOp let) { unfolded.insert(let); }
  int64_t numberOf(dnf::LetOp let) const { return numbers.lookup(let); }
  /// Lets that are equal are one.
  void merge(dnf::LetOp let, int64_t number) { numbers[let] = number; }

private:
  using Values = llvm::DenseMap<mlir::Value, Term>;
  Element block(mlir::Block &block, Values &values, unsigned depth);
  Term operation(mlir::Operation *op, Values &values, unsigned depth);
  Term apply(dnf::ApplyOp op, llvm::ArrayRef<Term> indices, unsigned depth);

  TermContext &terms;
  dnf::KernelOp kernel;
  llvm::DenseMap<mlir::Operation *, int64_t> numbers;
  llvm::StringMap<dnf::LetOp> lets;
  llvm::DenseSet<mlir::Operation *> unfolded;
  std::map<std::pair<mlir::Operation *, std::vector<Term>>, Term> applied;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_READERS_H
