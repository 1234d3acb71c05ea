//===- Readers.h - the term a level computes for one element ----*- C++ -*-===//
//
// Two readers that share only the terms. The reader of moa pushes a multi-index through the
// operators by their definitions (docs/Spec.md, section 1). The reader of dnf reads the definitions
// of the normal form unmodified.
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

/// The value of an element, and the condition under which it is present.
struct Element {
  Term value = nullptr, presence = nullptr;
};

/// Returns the free index of a reduction inside `depth` others, until it is bound.
Term boundIndex(TermContext &terms, unsigned depth);

/// Returns a name that identifies a reduction: its monoid and the type it rounds to.
std::string reductionName(Monoid monoid, mlir::FlatSymbolRefAttr function, mlir::TypeAttr rounds);

/// Returns the term of an operation of the arith or math dialect on integers or floats. Returns
/// null for any other operation.
Term readScalar(TermContext &terms, mlir::Operation *op, llvm::ArrayRef<Term> operands);

class MoAReader {
public:
  explicit MoAReader(TermContext &terms) : terms(terms) {}

  /// Returns i ψ array, inside `depth` reductions.
  Element at(mlir::Value array, llvm::ArrayRef<Term> index, unsigned depth);
  /// Treats the elements of `array` as opaque from here on: applications of definition `value`,
  /// present where definition `presence` says (-1: by computing the presence).
  void bind(mlir::Value array, int64_t value, int64_t presence);
  /// Returns the unbound element at the array's own indices 0, 1, ….
  Element generic(mlir::Value array);
  /// Binds an argument of a monoid's body to a scalar.
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

  /// Returns definition k of the kernel, lets first, at its own indices 0, 1, ….
  Element generic(mlir::Operation *definition);
  /// Unfolds a let at each application from here on.
  void unfold(dnf::LetOp let) { unfolded.insert(let); }
  int64_t numberOf(dnf::LetOp let) const { return numbers.lookup(let); }
  /// Gives a let the number of another let that is equal to it.
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
