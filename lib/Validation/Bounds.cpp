//===- Bounds.cpp - every access lies inside its array --------------------===//
#include "dialects/MoA/IR/Unsigned.h"
#include "lib/Validation/Predicate.h"
#include "lib/Validation/State.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// The facts of a kernel
//===----------------------------------------------------------------------===//

/// Reads the range `low..high` of an input: low ≤ element < high for every index.
static llvm::Expected<Assumption> readRange(TermContext &terms, unsigned input, StringRef name, ArrayType type,
                                            StringRef range) {
  auto [low, high] = range.split("..");
  SmallVector<Term> index;
  for (unsigned k = 0; k < type.getRank(); ++k)
    index.push_back(terms.freshIndex("i"));
  Term element = terms.valueOf(terms.load(input, index, type.getElementType()));
  Assumption assumption;
  assumption.fact = terms.both(terms.atMost(terms.extent(low), element), terms.below(element, terms.extent(high)));
  assumption.text = (name + " in " + range).str();
  assumption.isRange = true;
  return assumption;
}

LogicalResult Validator::State::open(Operation *kernel, ArrayAttr argNames, ArrayAttr constraints, TypeRange inputs,
                                     ArrayAttr resultTypes) {
  if (isOpen)
    return success();
  isOpen = true;
  for (StringRef name : argNames.getAsValueRange<StringAttr>()) {
    if (isUnsigned(kernel, name))
      terms.unsignedInputs.insert(terms.inputNames.size());
    terms.inputNames.push_back(name.str());
  }
  // The entry points check that all extents of parameters and results are not negative.
  SmallVector<Type> arrays(inputs);
  for (Type type : resultTypes.getAsValueRange<TypeAttr>())
    arrays.push_back(type);
  for (Type type : arrays)
    for (ExprAttr extent : cast<ArrayType>(type).getShape())
      prover.splitSymbols(terms.extent(extent.getValue()));
  for (Type type : arrays)
    for (ExprAttr extent : cast<ArrayType>(type).getShape())
      if (Term term = terms.extent(extent.getValue()); !term->is(TermKind::Symbol))
        prover.addNotNegative(term);
  SmallVector<Type> types(inputs);
  auto read = [&](StringRef text) -> Term {
    auto term = parsePredicate(terms, text, types);
    if (term)
      return *term;
    kernel->emitError(llvm::toString(term.takeError()));
    return nullptr;
  };
  for (StringRef text : constraints.getAsValueRange<StringAttr>()) {
    Term fact = read(text);
    if (!fact)
      return failure();
    prover.addFact(fact);
  }
  if (auto ranges = kernel->getAttrOfType<ArrayAttr>(kRangesAttr))
    for (auto [k, range] : llvm::enumerate(ranges.getAsValueRange<StringAttr>()))
      if (!range.empty() && k < types.size()) {
        auto assumption = readRange(terms, k, terms.inputNames[k], cast<ArrayType>(types[k]), range);
        if (!assumption)
          return kernel->emitError(llvm::toString(assumption.takeError()));
        prover.addAssumption(std::move(*assumption));
      }
  if (auto assumes = kernel->getAttrOfType<ArrayAttr>(kAssumesAttr))
    for (StringRef text : assumes.getAsValueRange<StringAttr>()) {
      Term fact = read(text);
      if (!fact)
        return failure();
      if (fact->isFalse())
        return kernel->emitError("the assumption '") << text << "' never holds";
      prover.addAssumption({fact, ("assume " + text).str(), false});
    }
  return success();
}

LogicalResult Validator::State::open(dnf::KernelOp kernel) {
  return open(kernel, kernel.getArgNames(), kernel.getRequires(), kernel.getBody().getArgumentTypes(),
              kernel.getResultTypes());
}

std::vector<std::vector<Access>> &Validator::State::accessesOf(dnf::KernelOp kernel) {
  if (readKernel == kernel)
    return accesses;
  readKernel = kernel;
  accesses.assign(kernel.getResultTypes().size(), {});
  DNFAccesses reader(terms, variables, kernel);
  for (auto output : kernel.getBody().getOps<dnf::OutputOp>())
    accesses[output.getResult()] = reader.of(output);
  return accesses;
}

//===----------------------------------------------------------------------===//
// One access
//===----------------------------------------------------------------------===//

/// Returns true if a term contains an array element.
static bool readsArrays(Term term, DenseSet<Term> &seen) {
  return seen.insert(term).second &&
         (term->is(TermKind::Load) || llvm::any_of(term->operands, [&](Term part) { return readsArrays(part, seen); }));
}

/// Returns the conjuncts of a condition that contain no array elements.
static Term withoutArrays(TermContext &terms, Term condition) {
  Term kept = terms.truth(true);
  ArrayRef<Term> parts = condition->is(TermKind::And) ? condition->operands : ArrayRef<Term>(condition);
  for (Term part : parts) {
    DenseSet<Term> seen;
    if (!readsArrays(part, seen))
      kept = terms.both(kept, part);
  }
  return kept;
}

LogicalResult Validator::State::checkAxis(const Access &access, unsigned axis, ArrayType type,
                                          std::vector<Fact> *shown) {
  Term index = access.index[axis], extent = terms.extent(type.getExtent(axis));
  llvm::SetVector<Term> mentioned;
  // An index of a loop over the axis needs no proof under any condition.
  bool isLoop = index->is(TermKind::Index) && variables.extentOf(index) == extent;
  Term condition = isLoop ? terms.truth(true) : access.condition;
  if (!inside.insert({access.input, axis, index, condition}).second)
    return success();
  // Skip an index already proved to be in bounds under every condition.
  if (!shown && insideAlways.count({access.input, axis, index}))
    return success();
  Fact fact{Fact::Bounds,
            Fact::Proved,
            terms.inputNames[access.input],
            "0 <= " + terms.str(index) + " < " + terms.str(extent) + " on axis " + std::to_string(axis),
            {},
            access.place};
  if (!isLoop) {
    std::set<std::string> lemmas, assumptions;
    bool checked = false, always = true;
    Term indicesOnly = withoutArrays(terms, condition);
    for (bool below : {false, true}) {
      Term goal = below ? terms.difference(terms.difference(extent, terms.number(1)), index) : index;
      Proof proof = prover.prove(goal, indicesOnly);
      if (!proof.holds || !proof.assumptions.empty())
        if (indicesOnly != condition)
          if (Proof more = prover.prove(goal, condition); more.holds && (!proof.holds || more.assumptions.empty())) {
            proof = more;
            checked = true;
          }
      if (!proof.holds)
        return refuse(access, axis, extent, condition), failure();
      always &= proof.always;
      lemmas.insert(proof.lemmas.begin(), proof.lemmas.end());
      assumptions.insert(proof.assumptions.begin(), proof.assumptions.end());
    }
    if (always)
      insideAlways.insert({access.input, axis, index});
    fact.status = !assumptions.empty() ? Fact::Assumed
                  : checked            ? Fact::Checked
                  : lemmas.empty()     ? Fact::Proved
                                       : Fact::ByLemma;
    fact.because.assign(assumptions.begin(), assumptions.end());
    fact.because.insert(fact.because.end(), lemmas.begin(), lemmas.end());
    if (fact.status == Fact::Checked)
      fact.because.push_back(terms.str(condition));
  }
  if (shown)
    shown->push_back(std::move(fact));
  return success();
}

LogicalResult Validator::State::checkInside(const Access &access, ArrayType type, std::vector<Fact> *shown) {
  for (unsigned axis = 0; axis < access.index.size(); ++axis)
    if (failed(checkAxis(access, axis, type, shown)))
      return failure();
  return success();
}

LogicalResult Validator::checkBounds(dnf::KernelOp dnf) {
  if (failed(state->open(dnf)))
    return failure();
  for (const std::vector<Access> &accesses : state->accessesOf(dnf))
    for (const Access &access : accesses) {
      if (access.condition->isFalse())
        continue;
      auto type = cast<ArrayType>(dnf.getBody().getArgument(access.input).getType());
      if (failed(state->checkInside(access, type, &facts)))
        return failure();
    }
  return success();
}
