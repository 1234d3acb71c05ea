//===- Addresses.cpp - the normal form against its loops ------------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Validation/State.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

static std::string textOf(TermContext &terms, ArrayRef<Term> index) {
  std::string text = "[";
  for (Term entry : index)
    text += (text.size() > 1 ? ", " : "") + terms.str(entry);
  return text + "]";
}

/// Checks that every element is stored once: each axis has a loop over its whole extent, and there
/// is no other loop.
static LogicalResult checkWrite(Validator::State &state, const Write &write, StringRef name, ArrayType type) {
  TermContext &terms = state.terms;
  llvm::SetVector<Term> used;
  for (auto [axis, index] : llvm::enumerate(write.index)) {
    Term extent = terms.extent(type.getExtent(axis));
    bool one = extent->is(TermKind::Number) && extent->value == 1 && index->is(TermKind::Number) && index->value == 0;
    if (const Write::Parts *parts = write.findParts(axis);
        parts && used.insert(parts->group) && used.insert(parts->member))
      continue;
    bool loop = index->is(TermKind::Index) && llvm::is_contained(write.loops, index) &&
                state.variables.extentOf(index) == extent && used.insert(index);
    if (!one && !loop)
      return write.op->emitError("output ")
             << name << " is stored at " << textOf(terms, write.index) << ", which is not every element once: axis "
             << axis << " needs the index of a loop over " << terms.str(extent) << " of its own";
  }
  for (Term loop : write.loops) {
    Term extent = state.variables.extentOf(loop);
    if (!used.contains(loop) && !(extent->is(TermKind::Number) && extent->value == 1))
      return write.op->emitError("output ") << name << " is stored once for every " << terms.str(loop) << " < "
                                            << terms.str(extent) << ", but only once is right";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

namespace {
/// An access with the index terms simplified under its condition, and the indices of reductions in
/// them.
struct Reading {
  Reading(TermContext &terms, Access &access, const DenseSet<Term> &rows) : access(access) {
    // A reduction may be computed only where it is needed.
    for (Term &entry : access.index)
      if (entry->height > 0)
        entry = terms.under(entry, access.condition);
    llvm::SetVector<Term> indices;
    for (Term entry : access.index)
      collectIndices(entry, indices);
    llvm::copy_if(indices, std::back_inserter(free), [&](Term index) { return !rows.contains(index); });
  }
  Access &access;
  SmallVector<Term> free;
};

/// Compares accesses up to renaming of reduction indices.
class Matcher {
public:
  explicit Matcher(Validator::State &state) : state(state) {}

  /// Returns true if `have`, with its reduction indices renamed, equals `want`. With `first`, an
  /// index may also be replaced by 0, the first of its range: rule R6 reads an element there.
  bool matches(const Reading &want, const Reading &have, bool first) {
    names.clear();
    if (want.access.input != have.access.input)
      return false;
    return want.access.index == have.access.index || assign(have.free, want.free, first, want.access, have.access);
  }

  /// Returns the inverse renaming of the last match, without indices replaced by 0.
  DenseMap<Term, Term> namesBack() const {
    DenseMap<Term, Term> back;
    for (auto [have, want] : names)
      if (want->is(TermKind::Index))
        back[want] = have;
    return back;
  }

private:
  bool assign(ArrayRef<Term> free, ArrayRef<Term> targets, bool first, const Access &want, const Access &have) {
    if (free.empty())
      return llvm::all_of(llvm::zip_equal(want.index, have.index), [&](auto pair) {
        auto [a, b] = pair;
        return a == state.terms.substitute(b, names);
      });
    for (Term target : targets) {
      if (state.variables.extentOf(target) != state.variables.extentOf(free.front()) ||
          llvm::any_of(names, [&](auto &entry) { return entry.second == target; }))
        continue;
      names[free.front()] = target;
      if (assign(free.drop_front(), targets, first, want, have))
        return true;
      names.erase(free.front());
    }
    if (!first)
      return false;
    names[free.front()] = state.terms.number(0);
    bool found = assign(free.drop_front(), targets, first, want, have);
    if (!found)
      names.erase(free.front());
    return found;
  }

  Validator::State &state;
  DenseMap<Term, Term> names;
};
} // namespace

/// Checks that `before` and `after` read the same elements. Renames the reduction indices in
/// `after` to those of the normal form.
static LogicalResult compareReads(Validator::State &state, MutableArrayRef<Access> before,
                                  MutableArrayRef<Access> after, const DenseSet<Term> &rows, StringRef name) {
  TermContext &terms = state.terms;
  Matcher matcher(state);
  auto readings = [&](MutableArrayRef<Access> accesses) {
    return llvm::map_to_vector(accesses, [&](Access &access) { return Reading(terms, access, rows); });
  };
  SmallVector<Reading> wanted = readings(before), found = readings(after);
  // Most accesses are renamed in the same way, and their conditions share many terms.
  DenseMap<Term, Term> names;
  Substitution renaming(terms, names);
  for (Reading &reading : found) {
    Access &access = reading.access;
    // The access in `before` has the whole index where `after` may have its first value.
    if (llvm::none_of(wanted, [&](const Reading &other) { return matcher.matches(reading, other, /*first=*/true); }))
      return emitError(access.place, "output ")
             << name << " reads " << terms.inputNames[access.input] << textOf(terms, access.index)
             << " by its address, which its normal form does not";
    if (DenseMap<Term, Term> back = matcher.namesBack(); back != names)
      renaming = Substitution(terms, names = std::move(back));
    for (Term &entry : access.index)
      entry = renaming.of(entry);
    for (Term &index : reading.free)
      index = renaming.of(index);
    access.condition = renaming.of(access.condition);
  }
  for (const Reading &reading : wanted) {
    const Access &access = reading.access;
    if (access.condition->isFalse())
      continue;
    if (llvm::none_of(found, [&](const Reading &other) { return matcher.matches(reading, other, /*first=*/false); }))
      return emitError(access.place, "output ")
             << name << " reads " << terms.inputNames[access.input] << textOf(terms, access.index)
             << " in its normal form, but no address does";
  }
  return success();
}

/// Returns the stores of output or temporary k, each of which stores every element once. There is
/// one, or one in each of two versions of an output, of which one runs.
static FailureOr<SmallVector<Write>> findWrites(Validator::State &state, onf::KernelOp onf, ArrayRef<Write> writes,
                                                unsigned k, std::vector<Fact> &facts) {
  StringRef name = onf.getArrayName(onf.getNumInputs() + k);
  auto type = cast<ArrayType>(onf.getBody().getArgument(onf.getNumInputs() + k).getType());
  SmallVector<Write> found;
  llvm::copy_if(writes, std::back_inserter(found), [&](const Write &write) { return write.output == k; });
  auto nestOf = [&](const Write &write) { return onf.getBody().front().findAncestorOpInBlock(*write.op); };
  bool hasVersions =
      found.size() == 2 && k < onf.getNumOutputs() && onf::areComplementary(nestOf(found[0]), nestOf(found[1]));
  if (found.size() != 1 && !hasVersions)
    return onf.emitError("output ") << name << " is stored at " << found.size() << " places, but one is right";
  for (const Write &write : found) {
    if (failed(checkWrite(state, write, name, type)))
      return failure();
    facts.push_back({Fact::Writes,
                     Fact::Proved,
                     name.str(),
                     "every element is stored once, at " + textOf(state.terms, write.index),
                     {},
                     write.op->getLoc()});
  }
  return found;
}

/// Checks that every element of a temporary is stored once.
static LogicalResult checkTemporaries(Validator::State &state, onf::KernelOp onf, ArrayRef<Write> writes,
                                      std::vector<Fact> &facts) {
  for (unsigned k = state.terms.inputNames.size(); k < onf.getBody().getNumArguments(); ++k)
    state.terms.inputNames.push_back(onf.getArrayName(k).str());
  for (unsigned k = 0; k < onf.getNumTemporaries(); ++k)
    if (failed(findWrites(state, onf, writes, onf.getNumOutputs() + k, facts)))
      return failure();
  return success();
}

static LogicalResult checkInside(Validator::State &state, onf::KernelOp onf, ArrayRef<Access> accesses) {
  for (const Access &access : accesses)
    if (failed(state.checkInside(access, cast<ArrayType>(onf.getBody().getArgument(access.input).getType()), nullptr)))
      return failure();
  return success();
}

/// Checks that the nest of a store reads in bounds when it computes whole arrays. The outputs may
/// need only some elements. But each element of a temporary is stored, and a state that carries an
/// axis computes each of its elements.
static LogicalResult checkComputed(Validator::State &state, onf::KernelOp onf, ONFAccesses &reader, const Write &write,
                                   const DenseMap<Term, Term> &rows) {
  if (!reader.computesArrays())
    return success();
  std::vector<Access> accesses = reader.ofComputed(write, rows);
  llvm::append_range(accesses, reader.ofTemporaries());
  state.isOfRules = true;
  LogicalResult result = checkInside(state, onf, accesses);
  state.isOfRules = false;
  return result;
}

/// Checks the nests of all temporaries in the same way.
static LogicalResult checkTemporariesComputed(Validator::State &state, onf::KernelOp onf, ONFAccesses &reader,
                                              ArrayRef<Write> writes) {
  for (const Write &write : writes)
    if (write.output >= onf.getNumOutputs() && failed(checkComputed(state, onf, reader, write, DenseMap<Term, Term>())))
      return failure();
  return success();
}

/// Names the indices of the loops around a store by the index of the stored element.
static DenseMap<Term, Term> nameLoops(Validator::State &state, const Write &write, ArrayType type,
                                      DenseSet<Term> &rows) {
  TermContext &terms = state.terms;
  DenseMap<Term, Term> named;
  for (auto [axis, index] : llvm::enumerate(write.index)) {
    Term row = state.variables.get(axis, terms.extent(type.getExtent(axis)), "");
    rows.insert(row);
    if (const Write::Parts *parts = write.findParts(axis)) {
      named[parts->group] = terms.quotient(row, parts->size);
      named[parts->member] = terms.remainder(row, parts->size);
    } else if (index->is(TermKind::Index)) {
      named[index] = row;
    }
  }
  return named;
}

/// Compares the reads of a store with those of the normal form, and checks that all are in bounds.
static LogicalResult compareWrite(Validator::State &state, dnf::KernelOp dnf, onf::KernelOp onf, ONFAccesses &reader,
                                  const Write &write, ArrayRef<Access> reads, std::vector<Fact> &facts) {
  unsigned k = write.output;
  StringRef name = cast<StringAttr>(onf.getResultNames()[k]).getValue();
  auto type = cast<ArrayType>(cast<TypeAttr>(onf.getResultTypes()[k]).getValue());
  DenseSet<Term> rows;
  DenseMap<Term, Term> named = nameLoops(state, write, type, rows);
  std::vector<Access> accesses = reader.of(write, named), wanted(reads);
  llvm::for_each(wanted, [&](Access &access) { reader.join(access); });
  if (failed(checkInside(state, onf, reader.ofTemporaries())) ||
      failed(compareReads(state, wanted, accesses, rows, name)))
    return failure();
  for (const Access &access : accesses) {
    auto input = cast<ArrayType>(dnf.getBody().getArgument(access.input).getType());
    if (failed(state.checkInside(access, input, nullptr)))
      return failure();
  }
  if (failed(checkComputed(state, onf, reader, write, named)))
    return failure();
  facts.push_back({Fact::Addresses,
                   Fact::Proved,
                   name.str(),
                   std::to_string(accesses.size()) + " addresses are the multi-indices of the normal form",
                   {},
                   write.op->getLoc()});
  return success();
}

LogicalResult Validator::compareAddresses(dnf::KernelOp dnf, onf::KernelOp onf) {
  if (failed(state->open(dnf)))
    return failure();
  auto &reads = state->accessesOf(dnf);
  ONFAccesses reader(state->terms, state->variables, onf);
  std::vector<Write> writes = reader.writes();
  if (failed(checkTemporaries(*state, onf, writes, facts)))
    return failure();
  for (unsigned k = 0; k < dnf.getResultTypes().size(); ++k) {
    auto found = findWrites(*state, onf, writes, k, facts);
    if (failed(found))
      return failure();
    for (const Write &write : *found)
      if (failed(compareWrite(*state, dnf, onf, reader, write, reads[k], facts)))
        return failure();
  }
  return checkTemporariesComputed(*state, onf, reader, writes);
}

LogicalResult Validator::checkBounds(onf::KernelOp onf) {
  TypeRange inputs = TypeRange(onf.getBody().getArgumentTypes()).take_front(onf.getArgNames().size());
  if (failed(state->open(onf, onf.getArgNames(), onf.getRequires(), inputs, onf.getResultTypes())))
    return failure();
  ONFAccesses reader(state->terms, state->variables, onf);
  std::vector<Write> writes = reader.writes();
  if (failed(checkTemporaries(*state, onf, writes, facts)))
    return failure();
  for (unsigned k = 0; k < onf.getResultTypes().size(); ++k) {
    auto found = findWrites(*state, onf, writes, k, facts);
    if (failed(found))
      return failure();
    for (const Write &write : *found) {
      std::vector<Access> accesses = reader.of(write, DenseMap<Term, Term>());
      if (failed(checkInside(*state, onf, reader.ofTemporaries())))
        return failure();
      for (const Access &access : accesses)
        if (failed(state->checkInside(access, cast<ArrayType>(inputs[access.input]), &facts)))
          return failure();
      if (failed(checkComputed(*state, onf, reader, write, DenseMap<Term, Term>())))
        return failure();
    }
  }
  return checkTemporariesComputed(*state, onf, reader, writes);
}
