//===- Accesses.h - which elements a level reads, and where -----*- C++ -*-===//
//
// The use relation of an output: for every element of an input that one element of
// it depends on, the multi-index as terms over the output's index and the indices of
// reductions, and the condition under which it is read. An element is read where its
// value is needed: of a selection only the operand that is picked, of `and` and `or`
// the right operand only where the left one does not decide, of a reduction only what
// is present.
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
  Term condition; ///< false of what is written, but never read
  mlir::Location place;
  /// What the indices were written as; empty where that is not known.
  llvm::SmallVector<mlir::LocationAttr> written = {};
};

/// Index variables of loops and reductions: one for every depth and extent, so that
/// what two reductions share is read once.
class Variables {
public:
  explicit Variables(TermContext &terms) : terms(terms) {}
  Term get(unsigned depth, Term extent, llvm::StringRef name);
  /// The user's name of a variable, the first one that it has.
  void setName(Term variable, llvm::StringRef name);
  /// The name of an index of a block, if the user has given one.
  void setName(Term variable, mlir::BlockArgument index);
  bool isNamed(Term variable) const { return named.contains(variable); }
  /// The extent of a variable, or null.
  Term extentOf(Term variable) const { return extents.lookup(variable); }
  /// Whether the variable has no value, its extent being the number 0.
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

/// Index variables in a term.
void collectIndices(Term term, llvm::SetVector<Term> &indices);

/// The parts of a condition that speak of nothing but these index variables.
Term restrictTo(TermContext &terms, Term condition, const llvm::SetVector<Term> &indices);

/// Visits what a selection, `and` or `or` needs, where it needs it: of a selection the
/// operand that is picked, of the others the right operand where the left one does not
/// decide. False of other operations.
bool visitChoice(TermContext &terms, mlir::Operation *op, Term condition,
                 llvm::function_ref<void(mlir::Value, Term)> visit,
                 llvm::function_ref<Term(mlir::Value)> termOf);

/// What is still to be visited: values in environments, which are numbers here, under the
/// conditions where they are needed. The last one of the program comes first: whoever needs
/// a value stands behind it, so that all of its conditions are known when its turn comes, and
/// it is visited once for each that is left of them. Conditions are sets of parts; one with
/// all parts of another one is implied by it, two that differ in one part and its negation
/// are what they have in common, and of very many only that is kept, which is less than each.
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
  /// Forgets what was visited.
  void clear() { entries.clear(), waiting.clear(); }
  /// Where a value stands in the program, in its environment.
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

/// Accesses as they stand in the program.
std::vector<Access> inOrder(std::vector<std::pair<Agenda::Place, Access>> &accesses);

class DNFAccesses {
public:
  DNFAccesses(TermContext &terms, Variables &variables, dnf::KernelOp kernel);
  /// What the element of an output at its own index variables reads.
  std::vector<Access> of(dnf::OutputOp output);

private:
  struct Env {
    llvm::DenseMap<mlir::Value, Term> values;
    unsigned depth = 0, number = 0;
    /// Of a let: where it is applied, for the indices that it uses.
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
  mlir::LocationAttr writtenAs(mlir::Operation *reader, unsigned index, Env &env,
                               mlir::StringAttr extent);

  TermContext &terms;
  Variables &variables;
  dnf::KernelOp kernel;
  Agenda agenda;
  llvm::StringMap<dnf::LetOp> lets;
  std::map<std::tuple<mlir::Operation *, Arguments, unsigned>, Env *> applications;
  std::vector<std::unique_ptr<Env>> envs;
  std::vector<std::pair<Agenda::Place, Access>> accesses;
};

/// An element that the operational level writes: the index on every axis. Temporaries are
/// numbered behind the outputs.
struct Write {
  unsigned output;
  llvm::SmallVector<Term> index;
  /// Variables of the loops around.
  llvm::SmallVector<Term> loops;
  mlir::Operation *op;
};

class ONFAccesses {
public:
  ONFAccesses(TermContext &terms, Variables &variables, onf::KernelOp kernel);
  /// Every store, in order; an error where an address is no multi-index.
  mlir::FailureOr<std::vector<Write>> writes();
  /// What the value of a store reads, in these names of the indices of the loops around. An
  /// element of a temporary is what is stored there: reading it reads the inputs that this does.
  mlir::FailureOr<std::vector<Access>> of(const Write &write,
                                          const llvm::DenseMap<Term, Term> &rows);
  /// What the nest of a store reads as it computes arrays as a whole. A state that carries axes has
  /// all of its elements where one is needed, whatever the condition says of the index of that one.
  /// Nests that store temporaries are not entered.
  mlir::FailureOr<std::vector<Access>> ofComputed(const Write &write,
                                                  const llvm::DenseMap<Term, Term> &rows);
  /// Reads whole ranges where parts of them are read, for each part, as R4 or the specification
  /// says it. Of the store that was read last: a part that is an index of its loops stays one.
  void join(Access &access) { joinParts(access), dropParts(access); }
  /// Whether arrays are computed as a whole: temporaries, or states that carry axes.
  bool computesArrays();
  /// The elements of temporaries that were read on the way.
  llvm::ArrayRef<Access> ofTemporaries() const { return temporaries; }

private:
  /// Values inside of a state that carries axes, at one element of it; or those outside of
  /// all such states: of the nest of an output, or of that of an element of a temporary.
  struct Env {
    llvm::DenseMap<mlir::Value, Term> values;
    unsigned number = 0;
    onf::AccOp acc;
    Env *outer = nullptr;
    unsigned level = 0; // temporaries that were entered
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
  template <typename OpT> mlir::FailureOr<llvm::SmallVector<Term>> multiIndex(OpT op, Env &env);
  unsigned depthOf(mlir::Operation *loop);
  void forget();

  TermContext &terms;
  Variables &variables;
  onf::KernelOp kernel;
  Agenda agenda;
  llvm::DenseMap<Term, Term> rows;
  llvm::DenseSet<Term> ownLoops;            // of the store that is read
  llvm::DenseMap<mlir::Value, Term> wholes; // states that carry axes
  std::map<std::tuple<mlir::Operation *, Env *, std::vector<Term>>, Env *> elements;
  std::vector<std::unique_ptr<Env>> envs;
  std::vector<std::pair<Agenda::Place, Access>> accesses;
  std::vector<Access> temporaries;
  bool isComputed = false; // what nests compute is read, not what outputs need
  bool failed = false;
};

} // namespace moa::validation

#endif // MOA_VALIDATION_ACCESSES_H
