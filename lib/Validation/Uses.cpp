//===- Uses.cpp - moa against its normal form -----------------------------===//
#include "lib/Validation/Readers.h"
#include "lib/Validation/State.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {
/// Both levels of one kernel. A shared array that both levels name is opaque, and its own element
/// is compared once.
class Comparison {
public:
  Comparison(TermContext &terms, KernelOp moa, dnf::KernelOp dnf)
      : terms(terms), moa(moa), dnf(dnf), reader(terms), normal(terms, dnf) {}

  void bindShared();
  void unfoldAll() {
    for (auto let : dnf.getBody().getOps<dnf::LetOp>())
      normal.unfold(let);
  }
  Element ofArray(unsigned result, unsigned rank);
  Element ofOutput(dnf::OutputOp output) { return normal.generic(output); }

private:
  /// A let that only renames another value would match many arrays.
  static bool isAlias(Term term) {
    return term->operands.empty() || term->is(TermKind::Apply) || term->is(TermKind::Load);
  }

  TermContext &terms;
  KernelOp moa;
  dnf::KernelOp dnf;
  MoAReader reader;
  DNFReader normal;
};
} // namespace

/// Binds each shared array of moa to the let with the same term. Both are taken in order, so that
/// the arrays they use are already opaque.
void Comparison::bindShared() {
  DenseMap<Term, int64_t> known;
  for (auto let : dnf.getBody().getOps<dnf::LetOp>()) {
    Term term = normal.generic(let).value;
    if (!term || isAlias(term)) {
      normal.unfold(let);
      continue;
    }
    auto [it, isNew] = known.try_emplace(term, normal.numberOf(let));
    if (!isNew)
      normal.merge(let, it->second);
  }
  if (known.empty())
    return;
  for (Operation &op : moa.getBody().front()) {
    if (op.getNumResults() != 1 || isa<ConstantOp, ExtentOp, IotaOp>(op))
      continue;
    Element element = reader.generic(op.getResult(0));
    auto value = known.find(element.value);
    if (value == known.end())
      continue;
    auto presence = known.find(element.presence);
    reader.bind(op.getResult(0), value->second, presence == known.end() ? -1 : presence->second);
  }
}

Element Comparison::ofArray(unsigned result, unsigned rank) {
  SmallVector<Term> index;
  for (unsigned k = 0; k < rank; ++k)
    index.push_back(terms.index(k));
  return reader.at(moa.getBody().front().getTerminator()->getOperand(result), index, 0);
}

/// Returns the first place where two terms differ: the smallest enclosing operations or elements.
static std::pair<Term, Term> difference(Term a, Term b) {
  while (a->kind == b->kind && a->name == b->name && a->value == b->value && a->operands.size() == b->operands.size() &&
         !llvm::is_contained({TermKind::Load, TermKind::Sum, TermKind::And, TermKind::Or, TermKind::Product,
                              TermKind::NotNegative, TermKind::Zero},
                             a->kind)) {
    Term x = nullptr, y = nullptr;
    for (auto [p, q] : llvm::zip_equal(a->operands, b->operands))
      if (p != q && !x)
        x = p, y = q;
    if (!x || isa<FloatType>(a->type) != isa<FloatType>(x->type))
      break;
    a = x, b = y;
  }
  return {a, b};
}

LogicalResult Validator::compareUses(KernelOp moa, dnf::KernelOp dnf) {
  if (failed(state->open(dnf)))
    return failure();
  TermContext &terms = state->terms;
  auto shared = std::make_unique<Comparison>(terms, moa, dnf);
  shared->bindShared();
  std::unique_ptr<Comparison> unfolded;
  bool reshapes = llvm::any_of(moa.getBody().front(), llvm::IsaPred<ReshapeOp>);
  for (auto output : dnf.getBody().getOps<dnf::OutputOp>()) {
    unsigned k = output.getResult();
    auto type = cast<ArrayType>(cast<TypeAttr>(dnf.getResultTypes()[k]).getValue());
    StringRef name = cast<StringAttr>(dnf.getResultNames()[k]).getValue();
    if (output.getDomain().getValue() !=
        ArrayRef<Attribute>(SmallVector<Attribute>(type.getShape().begin(), type.getShape().end())))
      return output.emitError("the domain of output ") << name << " is not its shape";
    for (auto [axis, index] : llvm::enumerate(output.getNames().getAsValueRange<StringAttr>()))
      terms.nameIndex(terms.index(axis), index);
    Element before = shared->ofArray(k, type.getRank()), after = shared->ofOutput(output);
    bool same = after.value && before.value == after.value && before.presence == after.presence;
    // A shared array may have been rewritten. Then compare again with every let unfolded.
    if (!same) {
      if (!unfolded) {
        unfolded = std::make_unique<Comparison>(terms, moa, dnf);
        unfolded->unfoldAll();
      }
      before = unfolded->ofArray(k, type.getRank());
      after = unfolded->ofOutput(output);
      same = after.value && before.value == after.value && before.presence == after.presence;
    }
    if (!same) {
      auto error = output.emitError("ψ-reduction has given ") << name << " another meaning";
      if (!after.value)
        return error << ": an operation of its normal form is unknown";
      bool value = before.value != after.value;
      auto [a, b] = value ? difference(before.value, after.value) : difference(before.presence, after.presence);
      return error << ": " << (value ? "" : "present where ") << terms.str(a) << " became " << terms.str(b);
    }
    Fact fact{Fact::Uses,
              reshapes ? Fact::ByLemma : Fact::Proved,
              name.str(),
              "the normal form is i ψ " + name.str() +
                  " of the arrays: the same elements, "
                  "ranges, conditions and operations",
              {},
              output.getLoc()};
    if (reshapes)
      fact.because.push_back("Lemma 11");
    facts.push_back(std::move(fact));
  }
  return success();
}
