//===- Inside.cpp - indices proved to lie inside their axes ---------------===//
#include "lib/Validation/Inside.h"
#include "lib/Validation/State.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

InsideProver::InsideProver(dnf::KernelOp kernel)
    : state(std::make_unique<Validator::State>(kernel.getContext())), isOpen(succeeded(state->open(kernel))) {}

InsideProver::~InsideProver() = default;

TermContext &InsideProver::getTerms() { return state->terms; }

Term InsideProver::getIndex(unsigned number, const SymExpr &extent, StringRef name) {
  return state->variables.get(number, state->terms.extent(extent), name);
}

bool InsideProver::isInside(Term index, const SymExpr &extent) {
  TermContext &terms = state->terms;
  Term size = terms.extent(extent);
  auto [it, isNew] = known.try_emplace({index, size}, false);
  if (!isNew || !isOpen)
    return it->second;
  auto holds = [&](Term goal) {
    Proof proof = state->prover.prove(goal, terms.truth(true));
    return proof.holds && proof.assumptions.empty();
  };
  return it->second = holds(index) && holds(terms.difference(terms.difference(size, terms.number(1)), index));
}
