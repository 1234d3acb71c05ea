//===- Accesses.h - which elements a level reads, and when ------*- C++ -*-===//
//
// The use relation of an output: every element of an input that one element of the output depends
// on. An access holds the multi-index, as terms over the output's index and the indices of
// reductions, and the condition under which the element is read.
//
// An element is read only where its value is needed. A selection needs only the operand it picks.
// `and` and `or` need the right operand only if the left one does not decide. A reduction needs
// only its present elements.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_VALIDATION_ACCESSES_H
#define MOA_VALIDATION_ACCESSES_H

#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Validation/Term.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include <map>
#include <memory>
#include <set>

namespace moa::validation {

struct Access {
  int64_t input;
  llvm::SmallVector<Term> index;
  Term condition; ///< false if the element is named, but never read
  mlir::Location place;
  /// The source texts of the indices; empty if unknown.
  llvm::SmallVector<mlir::LocationAttr> written = {};
};

/// Index variables of loops and reductions. There is one for every depth and extent, so that
/// reductions with a common subterm read it once.
class Variables {
public:
  explicit Variables(TermContext &terms) : terms(terms) {}
  Term get(unsigned depth, Term extent, llvm::StringRef name);
  /// Names a variable. The first name wins.
  void setName(Term variable, llvm::StringRef name);
  /// Names the index of a block if the user has given it a name.
  void setName(Term variable, mlir::BlockArgument index);
  bool isNamed(Term variable) const { return named.contains(variable); }
  /// Returns the extent of a variable, or null.
  Term extentOf(Term variable) const { return extents.lookup(variable); }
  /// Returns true if the variable has no value because its extent is the number 0.
  bool isEmpty(Term variable) const {
    Term extent = extentOf(variable);
    return extent && extent->is(TermKind::Number) && extent->value <= 0;
  }

private:
  TermContext &terms;
  std::map<std::pair<unsigned, Term>, Term> made;
  llvm::DenseMap<Term, Term> extents;
  llvm::DenseSet<Term> named;
};

void collectIndices(Term term, llvm::SetVector<Term> &indices);

/// Returns the conjuncts of a condition that mention no other index variables than these.
Term restrictTo(TermContext &terms, Term condition, const llvm::SetVector<Term> &indices);

/// Visits the operands of a selection, `and` or `or`, each under the condition that it is needed. A
/// selection needs the operand it picks. `and` and `or` need the right operand only if the left one
/// does not decide. Returns false for other operations.
bool visitChoice(TermContext &terms, mlir::Operation *op, Term condition,
                 llvm::function_ref<void(mlir::Value, Term)> visit, llvm::function_ref<Term(mlir::Value)> termOf);

/// The worklist: values in environments (here numbers), each with the conditions under which it is
/// needed. The last value in program order comes first. All users of a value stand after it, so all
/// its conditions are known when it is visited. It is visited once for each condition that is left.
///
/// A condition is a set of conjuncts. It is dropped if another one has a subset of its conjuncts,
/// and so covers it. Two conditions that differ only in one conjunct and its negation are merged
/// into the conjuncts they share. If there are too many conditions, only their common conjuncts are
/// kept, which covers them all.
class Agenda {
public:
  Agenda(TermContext &terms, mlir::Operation *kernel);
  void add(mlir::Value value, unsigned env, Term condition);
  bool isEmpty() const { return waiting.empty(); }
  struct Item {
    mlir::Value value;
    unsigned env;
    llvm::SmallVector<Term> conditions;
  };
  Item next();
  void clear() { entries.clear(), waiting.clear(); }
  /// The position of a value in the program, within its environment.
  using Place = std::tuple<unsigned, unsigned, unsigned>;
  Place placeOf(mlir::Value value, unsigned env) const;

private:
  struct Entry {
    mlir::Value value;
    llvm::SmallVector<Term> conditions, done;
  };
  bool merge(llvm::SmallVectorImpl<Term> &conditions, Term &condition);

  TermContext &terms;
  llvm::DenseMap<mlir::Operation *, unsigned> positions;
  std::map<Place, Entry> entries;
  std::set<Place> waiting;
};

std::vector<Access> inOrder(std::vector<std::pair<Agenda::Place, Access>> &accesses);

class DNFAccesses {
public:
  DNFAccesses(TermContext &terms, Variables &variables, dnf::KernelOp kernel);
  /// Returns the accesses of one element of an output, at the output's own index variables.
  std::vector<Access> of(dnf::OutputOp output);

private:
  struct Env {
    llvm::DenseMap<mlir::Value, Term> values;
    unsigned depth = 0, number = 0;
    /// For a let: its application, which gives the indices of the let.
    dnf::ApplyOp call;
    Env *outer = nullptr;
  };
  using Arguments = std::vector<Term>;
  Env &makeEnv();
  void need(mlir::Value value, Env &env, Term condition);
  void needYield(mlir::Block &block, Env &env, Term condition);
  void visit(mlir::Value value, Env &env, Term condition);
  void visitApply(dnf::ApplyOp op, Env &env, Term condition);
  Term termOf(mlir::Value value, Env &env);
  Term termOfReduce(dnf::ReduceOp op, Env &env);
  Env &applied(dnf::LetOp let, const Arguments &arguments, unsigned depth);
  void enter(dnf::ReduceOp op, Env &env);
  mlir::LocationAttr writtenAs(mlir::Operation *reader, unsigned index, Env &env, ExprAttr extent);

  TermContext &terms;
  Variables &variables;
  dnf::KernelOp kernel;
  Agenda agenda;
  llvm::StringMap<dnf::LetOp> lets;
  std::map<std::tuple<mlir::Operation *, Arguments, unsigned>, Env *> applications;
  std::vector<std::unique_ptr<Env>> envs;
  std::vector<std::pair<Agenda::Place, Access>> accesses;
};

/// A store of the operational level: the index on every axis. Temporaries are numbered after the
/// outputs.
struct Write {
  /// An axis that two loops cover: size · group + member takes every index of the axis once.
  struct Parts {
    unsigned axis;
    Term group, member, size;
  };
  unsigned output;
  llvm::SmallVector<Term> index;
  llvm::SmallVector<Term> loops;
  mlir::Operation *op;
  llvm::SmallVector<Parts> parts = {};
  /// Returns the parts of the index along an axis, or null.
  const Parts *findParts(unsigned axis) const {
    auto found = llvm::find_if(parts, [&](const Parts &of) { return of.axis == axis; });
    return found == parts.end() ? nullptr : found;
  }
};

class ONFAccesses {
public:
  ONFAccesses(TermContext &terms, Variables &variables, onf::KernelOp kernel);
  /// Returns every store, in order.
  std::vector<Write> writes();
  /// Returns the accesses of the value of a store, with the indices of the enclosing loops renamed
  /// to `rows`. A read of a temporary counts as the reads of the value stored there.
  std::vector<Access> of(const Write &write, const llvm::DenseMap<Term, Term> &rows);
  /// Returns the accesses of the nest of a store when arrays are computed as a whole. A state that
  /// carries axes then computes all its elements if any is needed, regardless of the condition on
  /// the index read. Nests that store temporaries are not entered.
  std::vector<Access> ofComputed(const Write &write, const llvm::DenseMap<Term, Term> &rows);
  /// Rewrites reads of the parts of a range (R4) to reads of the whole range. Parts whose index is
  /// a loop of the store that was read last stay.
  void join(Access &access) { joinParts(access), dropParts(access); }
  /// Returns true if the kernel has temporaries or states that carry axes.
  bool computesArrays();
  /// Returns the accesses of temporaries that of() has met.
  llvm::ArrayRef<Access> ofTemporaries() const { return temporaries; }

private:
  /// Values inside a state that carries axes, at one element of it. The outermost environment holds
  /// the values outside all such states: those of the nest of an output, or of an element of a
  /// temporary.
  struct Env {
    llvm::DenseMap<mlir::Value, Term> values;
    unsigned number = 0;
    onf::AccOp acc;
    Env *outer = nullptr;
    unsigned level = 0; // number of temporaries entered
  };
  Env &makeEnv(onf::AccOp acc, Env *outer);
  static Env &homeOf(mlir::Region *region, Env &env);
  void need(mlir::Value value, Env &env, Term condition);
  void visit(mlir::Value value, Env &env, Term condition);
  void visitAt(onf::AtOp at, Env &env, Term condition);
  void visitState(onf::FoldOp fold, unsigned number, Env &env, Term condition);
  void visitAcc(onf::AccOp acc, Env &env, Term condition);
  Env &carried(onf::AccOp acc, Env &env, llvm::ArrayRef<Term> indices);
  Term termOf(mlir::Value value, Env &env);
  Term compute(mlir::Value value, Env &env);
  Term termOfState(onf::AccOp acc, Env &env);
  Term termOfArgument(mlir::BlockArgument argument, unsigned level);
  Env &stored(onf::StoreOp store, Env &reader, llvm::ArrayRef<Term> indices);
  onf::StoreOp storeOf(onf::LoadOp load);
  Term whereRun(mlir::Operation *store);
  void joinParts(Access &access);
  void dropParts(Access &access);
  llvm::SmallVector<Term> multiIndex(onf::AccessOpInterface op, Env &env);
  unsigned depthOf(mlir::Operation *loop);
  void forget();

  TermContext &terms;
  Variables &variables;
  onf::KernelOp kernel;
  Agenda agenda;
  llvm::DenseMap<Term, Term> rows;
  llvm::DenseSet<Term> ownLoops;            // of the store being read
  llvm::DenseMap<mlir::Value, Term> wholes; // states that carry axes
  std::map<std::tuple<mlir::Operation *, Env *, std::vector<Term>>, Env *> elements;
  std::vector<std::unique_ptr<Env>> envs;
  std::vector<std::pair<Agenda::Place, Access>> accesses;
  std::vector<Access> temporaries;
  bool isComputed = false; // reads of whole nests (ofComputed), not only of needed elements
};

} // namespace moa::validation

#endif // MOA_VALIDATION_ACCESSES_H
