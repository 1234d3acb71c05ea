//===- Addresses.cpp - the normal form against its loops ------------------===//
#include "lib/Validation/State.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// Writes
//===----------------------------------------------------------------------===//

static std::string textOf(const TermContext &terms, ArrayRef<Term> index) {
  std::string text = "[";
  for (Term entry : index)
    text += (text.size() > 1 ? ", " : "") + terms.str(entry);
  return text + "]";
}

/// Every element once: a loop over the whole extent on every axis, and no other loop.
static LogicalResult checkWrite(Validator::State &state, const Write &write, StringRef name,
                                ArrayType type) {
  TermContext &terms = state.terms;
  llvm::SetVector<Term> used;
  for (auto [axis, index] : llvm::enumerate(write.index)) {
    Term extent = terms.extent(type.getShape()[axis].getValue());
    bool one = extent->is(TermKind::Number) && extent->value == 1 &&
               index->is(TermKind::Number) && index->value == 0;
    bool loop = index->is(TermKind::Index) && llvm::is_contained(write.loops, index) &&
                state.variables.extentOf(index) == extent && used.insert(index);
    if (!one && !loop)
      return write.op->emitError("output ")
             << name << " is stored at " << textOf(terms, write.index)
             << ", which is not every element once: axis " << axis
             << " needs the index of a loop over " << terms.str(extent) << " of its own";
  }
  for (Term loop : write.loops) {
    Term extent = state.variables.extentOf(loop);
    if (!used.contains(loop) && !(extent->is(TermKind::Number) && extent->value == 1))
      return write.op->emitError("output ")
             << name << " is stored once for every " << terms.str(loop) << " < "
             << terms.str(extent) << ", but only once is right";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

namespace {
/// Looks for an access among others, up to the names of the indices of reductions.
class Matcher {
public:
  Matcher(Validator::State &state, ArrayRef<Term> rows) : state(state) {
    rowsOf.insert_range(rows);
  }

  /// Whether `have`, with its reduction indices renamed, is `want`. The first index of a
  /// range may stand for the index: rule R6 reads a term there.
  bool matches(const Access &want, const Access &have, bool first) {
    if (want.input != have.input)
      return false;
    if (want.index == have.index)
      return true;
    llvm::SetVector<Term> from, to;
    for (Term entry : have.index)
      collectIndices(entry, from);
    for (Term entry : want.index)
      collectIndices(entry, to);
    SmallVector<Term> free;
    for (Term index : from)
      if (!rowsOf.contains(index))
        free.push_back(index);
    DenseMap<Term, Term> names;
    SmallVector<Term> targets;
    for (Term index : to)
      if (!rowsOf.contains(index))
        targets.push_back(index);
    return assign(free, targets, first, names, want, have);
  }

private:
  bool assign(ArrayRef<Term> free, ArrayRef<Term> targets, bool first,
              DenseMap<Term, Term> &names, const Access &want, const Access &have) {
    if (free.empty())
      return equal(names, want, have);
    for (Term target : targets) {
      if (state.variables.extentOf(target) != state.variables.extentOf(free.front()) ||
          llvm::any_of(names, [&](auto &entry) { return entry.second == target; }))
        continue;
      names[free.front()] = target;
      if (assign(free.drop_front(), targets, first, names, want, have))
        return true;
      names.erase(free.front());
    }
    if (!first)
      return false;
    names[free.front()] = state.terms.number(0);
    bool found = assign(free.drop_front(), targets, first, names, want, have);
    names.erase(free.front());
    return found;
  }

  bool equal(const DenseMap<Term, Term> &names, const Access &want, const Access &have) {
    return llvm::all_of(llvm::zip_equal(want.index, have.index), [&](auto pair) {
      auto [a, b] = pair;
      return a == state.terms.substitute(b, names);
    });
  }

  Validator::State &state;
  DenseSet<Term> rowsOf;
};
} // namespace

/// Accesses with the indices of the loops around a store named as the normal form does.
static void nameRows(TermContext &terms, std::vector<Access> &accesses,
                     const DenseMap<Term, Term> &rows) {
  for (Access &access : accesses) {
    for (Term &entry : access.index)
      entry = terms.substitute(entry, rows);
    access.condition = terms.substitute(access.condition, rows);
  }
}

static LogicalResult compareReads(Validator::State &state, ArrayRef<Access> before,
                                  ArrayRef<Access> after, ArrayRef<Term> rows, StringRef name,
                                  Location place) {
  TermContext &terms = state.terms;
  Matcher matcher(state, rows);
  for (const Access &access : after) {
    // `before` has the whole index where `after` may have its first value.
    bool found = llvm::any_of(before, [&](const Access &other) {
      return matcher.matches(access, other, /*first=*/true);
    });
    if (!found)
      return emitError(access.place, "output ")
             << name << " reads " << terms.inputNames[access.input] << textOf(terms, access.index)
             << " by its address, which its normal form does not";
  }
  for (const Access &access : before) {
    bool found = llvm::any_of(after, [&](const Access &other) {
      return matcher.matches(access, other, /*first=*/false);
    });
    if (!found)
      return emitError(access.place, "output ")
             << name << " reads " << terms.inputNames[access.input] << textOf(terms, access.index)
             << " in its normal form, but no address does";
  }
  return success();
}

LogicalResult Validator::compareAddresses(dnf::KernelOp dnf, onf::KernelOp onf) {
  if (failed(state->open(dnf)))
    return failure();
  const auto &reads = state->accessesOf(dnf);
  TermContext &terms = state->terms;
  ONFAccesses reader(terms, state->variables, onf);
  auto writes = reader.writes();
  if (failed(writes))
    return failure();
  for (unsigned k = 0; k < dnf.getResultTypes().size(); ++k) {
    StringRef name = cast<StringAttr>(onf.getResultNames()[k]).getValue();
    auto type = cast<ArrayType>(cast<TypeAttr>(onf.getResultTypes()[k]).getValue());
    auto isOurs = [&](const Write &write) { return write.output == k; };
    auto count = llvm::count_if(*writes, isOurs);
    if (count != 1)
      return onf.emitError("output ")
             << name << " is stored at " << count << " places, but one is right";
    const Write &write = *llvm::find_if(*writes, isOurs);
    if (failed(checkWrite(*state, write, name, type)))
      return failure();
    facts.push_back({Fact::Writes, Fact::Proved, name.str(),
                     "every element is stored once, at " + textOf(terms, write.index),
                     {}, write.op->getLoc()});
    auto accesses = reader.of(write);
    if (failed(accesses))
      return failure();
    SmallVector<Term> rows;
    DenseMap<Term, Term> named;
    for (auto [axis, index] : llvm::enumerate(write.index)) {
      Term extent = terms.extent(type.getShape()[axis].getValue());
      rows.push_back(state->variables.get(axis, extent, ""));
      if (index->is(TermKind::Index))
        named[index] = rows.back();
    }
    nameRows(terms, *accesses, named);
    if (failed(compareReads(*state, reads[k], *accesses, rows, name, write.op->getLoc())))
      return failure();
    for (const Access &access : *accesses) {
      auto input = cast<ArrayType>(dnf.getBody().getArgument(access.input).getType());
      if (failed(state->checkInside(access, input, nullptr)))
        return failure();
    }
    facts.push_back({Fact::Addresses, Fact::Proved, name.str(),
                     std::to_string(accesses->size()) +
                         " addresses are the multi-indices of the normal form",
                     {}, write.op->getLoc()});
  }
  return success();
}
