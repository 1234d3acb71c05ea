//===- FoldTrace.cpp - the derivation of folds as text --------------------===//
#include "lib/Explain/FoldTrace.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace moa;

namespace {

/// Prints the plan of one kernel while its expressions live.
class FoldText {
public:
  FoldText(ExprContext &exprs, FoldRules &rules, ArrayRef<NestPlan> nests) : exprs(exprs), rules(rules) {
    for (const NestPlan &nest : nests)
      nameStates(nest);
  }

  std::string str(Expr e) { return exprs.str(named(e)); }
  std::string reduction(Expr reduce, int64_t j, Expr body, Expr present);
  StringRef stateName(Expr reduce) { return names.find(reduce)->second; }
  /// Names indices anew from here on, these first.
  void nameIndices(ArrayRef<int64_t> first);
  void printNest(const NestPlan &nest, dnf::KernelOp kernel);
  void printBlocked(StringRef reason, Expr blocked);

  std::string text;
  llvm::raw_string_ostream os{text};

private:
  void nameStates(const NestPlan &nest);
  void printRescale(const AccPlan &acc);
  StringRef indexName(int64_t id);
  Expr leaf(const Twine &name) { return exprs.index(exprs.freshIndex(name.str())); }
  Expr named(Expr e);
  std::optional<std::string> application(Expr e);

  ExprContext &exprs;
  FoldRules &rules;
  llvm::DenseMap<Expr, std::string> names; // of states
  StateSet states;
  std::map<int64_t, std::string> indices;
  llvm::StringSet<> taken;
};

/// Returns whether `e` is `pattern` with other expressions in place of the indices in `bound`, to
/// which it binds them.
bool matches(Expr pattern, Expr e, std::map<Expr, Expr> &bound) {
  if (auto it = bound.find(pattern); it != bound.end()) {
    if (!it->second)
      it->second = e;
    return it->second == e;
  }
  if (pattern == e)
    return true;
  return pattern->kind == e->kind && pattern->type == e->type && pattern->id == e->id && pattern->value == e->value &&
         pattern->op == e->op && pattern->attributes == e->attributes && pattern->monoid == e->monoid &&
         pattern->rounds == e->rounds && pattern->function == e->function && pattern->extent == e->extent &&
         pattern->operands.size() == e->operands.size() &&
         llvm::all_of(llvm::zip(pattern->operands, e->operands),
                      [&](auto pair) { return matches(std::get<0>(pair), std::get<1>(pair), bound); });
}

} // namespace

/// Names states as in the operational normal form, with a number if names repeat.
void FoldText::nameStates(const NestPlan &nest) {
  llvm::StringMap<unsigned> counts;
  for (const FoldPlan &fold : nest.folds)
    for (const AccPlan *acc : fold.accs) {
      std::string name = acc->name == "or" ? "any" : acc->name == "and" ? "all" : acc->name;
      if (unsigned count = ++counts[name]; count > 1)
        name += std::to_string(count);
      names.try_emplace(acc->reduce, name);
      states.insert(acc->reduce);
    }
}

void FoldText::nameIndices(ArrayRef<int64_t> first) {
  indices.clear();
  taken.clear();
  for (int64_t id : first)
    indexName(id);
}

/// Returns the name that an index was written with, with a number if another index has it.
StringRef FoldText::indexName(int64_t id) {
  auto [it, isNew] = indices.try_emplace(id);
  if (isNew) {
    std::string base = exprs.indexName(id).str();
    it->second = base;
    for (unsigned k = 2; !taken.insert(it->second).second; ++k)
      it->second = base + std::to_string(k);
  }
  return it->second;
}

/// Returns S(b, n, m) if the expression is such an application of a definition and reads no state.
std::optional<std::string> FoldText::application(Expr e) {
  if (e->operands.empty() || e->kind == ExprKind::Psi)
    return std::nullopt;
  for (const ExprContext::LetValue &definition : exprs.letValues) {
    std::map<Expr, Expr> bound;
    for (Expr index : definition.indices)
      if (index->kind == ExprKind::Index)
        bound[index] = nullptr;
    if (bound.size() != definition.indices.size() || rules.reads(e, states) || !matches(definition.value, e, bound))
      continue;
    SmallVector<std::string> arguments;
    for (Expr index : definition.indices)
      arguments.push_back(str(bound[index] ? bound[index] : index));
    return definition.name + "(" + llvm::join(arguments, ", ") + ")";
  }
  return std::nullopt;
}

/// Returns the expression with states and definitions replaced by their names.
Expr FoldText::named(Expr e) {
  for (int64_t id : e->freeIndices)
    if (id >= 0)
      indexName(id);
  return exprs.replace(e, [&](Expr node) -> Expr {
    if (names.count(node))
      return leaf(stateName(node));
    // Indices of inner reductions are not free here, and stay.
    if (node->kind == ExprKind::Index && node->id >= 0 && e->dependsOn(node->id))
      return leaf(indexName(node->id));
    if (auto call = application(node))
      return leaf(*call);
    return nullptr;
  });
}

/// Σ{m<M | present} body
std::string FoldText::reduction(Expr reduce, int64_t j, Expr body, Expr present) {
  Expr written = named(body);
  std::string term = exprs.str(written), range = indexName(j).str() + "<" + reduce->extent.getValue().str();
  if (present)
    range += " | " + str(present);
  bool isSum = written->isOp("arith.addf") || written->isOp("arith.subf") || written->isOp("arith.addi") ||
               written->isOp("arith.subi");
  StringRef symbol =
      reduce->function ? reduce->function.getValue() : getReductionSymbol(stringifyMonoid(reduce->monoid));
  return (symbol + "{" + range + "} " + (isSum ? "(" + term + ")" : term)).str();
}

void FoldText::printRescale(const AccPlan &acc) {
  const RescaleRule &rescale = acc.rescale;
  SmallVector<std::string> refs;
  for (Expr ref : rescale.refs)
    refs.push_back(stateName(ref).str());
  std::string all = llvm::join(refs, ", "), before = llvm::join(refs, "⁻, ") + "⁻";
  if (rescale.resets) {
    os << "      R3: the term of " << stateName(acc.reduce) << " is the identity unless its index "
       << "attains " << all << " of this pass:\n        when " << before << " becomes " << all << ", "
       << stateName(acc.reduce) << " starts again\n";
    return;
  }
  auto old = [&](Expr state) { return leaf(stateName(state) + "⁻"); };
  auto now = [&](Expr state) { return leaf(stateName(state)); };
  auto textOf = [&](Expr value) {
    return exprs.str(exprs.replace(value, [&](Expr node) -> Expr {
      // New names are leaves already; other indices get their names here.
      bool known = node->kind == ExprKind::Index && node->id >= 0 && indices.count(node->id);
      return known ? leaf(indices[node->id]) : nullptr;
    }));
  };
  os << "      R3: the term of " << stateName(acc.reduce) << " reads " << all << " of this pass and is "
     << (rescale.others.empty() ? "G·H" : "G·H times differences from these states") << ",\n"
     << "        G = " << str(rescale.g) << "\n        H = " << str(rescale.h) << "\n        when " << before
     << (refs.size() == 1 ? " becomes " : " become ") << all << ", " << stateName(acc.reduce) << " is multiplied by H("
     << all << ")/H(" << before << ") = " << textOf(rules.correctionFactor(rescale.h, acc.states, old, now)) << "\n";
  SmallVector<Expr> by;
  for (Expr h : rescale.from)
    by.push_back(rules.difference(h, acc.states, old, now));
  for (const RescaleRule::Other &other : rescale.others)
    os << "        and " << stateName(other.sum) << "⁻ is added to it, multiplied by the same and by "
       << textOf(rules.coefficient(other, by)) << "\n";
  for (auto [ref, singular] : llvm::zip(refs, rescale.singular))
    if (!std::isnan(singular))
      os << "        while " << ref << " = " << formatNumber(singular) << ", " << stateName(acc.reduce)
         << " stays the identity\n";
}

void FoldText::printNest(const NestPlan &nest, dnf::KernelOp kernel) {
  SmallVector<int64_t> order(nest.rows.begin(), nest.rows.end());
  for (auto &[id, extent] : nest.carriedExtents)
    order.push_back(id);
  std::map<std::string, int64_t> ranges; // by the text of the range
  for (auto [extent, id] : nest.foldIndex)
    ranges[extent.getValue().str()] = id;
  for (auto &[range, id] : ranges)
    order.push_back(id);
  nameIndices(order);
  os << "  For each row";
  llvm::ListSeparator comma(",");
  for (auto [id, extent] : llvm::zip(nest.rows, nest.extents))
    os << comma << " " << indexName(id) << "<" << getSymExpr(extent).str();
  os << ":\n";
  for (const auto &[number, fold] : llvm::enumerate(nest.folds)) {
    os << "    pass " << number + 1 << " over " << indexName(fold.index) << "<" << fold.extent.getValue().str();
    if (fold.present)
      os << " | " << str(fold.present);
    if (fold.accs.size() > 1)
      os << ", by R2 one reduction of " << fold.accs.size();
    os << ":\n";
    for (const AccPlan *acc : fold.accs) {
      os << "      " << stateName(acc->reduce);
      if (acc->carried)
        os << "[" << indexName(*acc->carried) << "<" << nest.carriedExtents.at(*acc->carried).getValue().str() << "]";
      os << " = " << reduction(acc->reduce, fold.index, acc->body, acc->present) << "\n";
      if (!acc->rescale.refs.empty())
        printRescale(*acc);
    }
  }
  for (const OutputPlan &output : nest.outputs)
    os << "    writes " << exprs.inputNames[kernel.getArgNames().size() + output.result] << " = " << str(output.value)
       << "\n";
}

/// Returns file:line:column; for code inside a function, that of the user's call.
static std::string placeText(Location place) {
  if (auto call = place->findInstanceOf<CallSiteLoc>())
    return placeText(call.getCaller());
  auto at = place->findInstanceOf<FileLineColLoc>();
  return at ? (" at " + at.getFilename().getValue() + ":" + Twine(at.getLine()) + ":" + Twine(at.getColumn())).str()
            : "";
}

/// Prints the blocking subterm, and the user's text of its states without a name.
void FoldText::printBlocked(StringRef reason, Expr blocked) {
  os << reason << ",\n      blocked by " << str(blocked) << "\n";
  for (Expr reduce : exprs.writtenReductions(blocked))
    if (names.count(reduce))
      os << "      where " << stateName(reduce) << " is " << exprs.writtenText(reduce)
         << placeText(exprs.places.find(reduce)->second) << "\n";
}

void FoldTrace::rewrote(StringRef rule, Expr reduce, int64_t j, Expr body, Expr present, Expr after) {
  rewrites.push_back({rule.str(), reduce, j, body, present, after});
}

void FoldTrace::refused(const AccPlan &acc) {
  refusals.push_back({acc.reduce, acc.rescale.blocked, acc.rescale.reason});
}

void FoldTrace::planned(dnf::KernelOp kernel, ExprContext &exprs, FoldRules &rules, ArrayRef<NestPlan> nests) {
  FoldText text(exprs, rules, nests);
  for (const Rewrite &rewrite : rewrites) {
    SmallVector<int64_t> others;
    for (int64_t id : rewrite.body->freeIndices)
      if (id >= 0 && id != rewrite.j)
        others.push_back(id);
    text.nameIndices(others);
    text.os << "  " << rewrite.rule << "  " << text.reduction(rewrite.reduce, rewrite.j, rewrite.body, rewrite.present)
            << "\n      = " << text.str(rewrite.after) << "\n";
  }
  for (const Refusal &refusal : refusals) {
    text.nameIndices({});
    text.os << "  R3 has no rescale for " << text.stateName(refusal.reduce) << ", which takes another pass: ";
    if (refusal.blocked)
      text.printBlocked(refusal.reason, refusal.blocked);
    else
      text.os << "the rule is disabled\n";
  }
  for (const NestPlan &nest : nests) {
    text.os << (text.text.empty() ? "" : "\n");
    text.printNest(nest, kernel);
  }
  texts[kernel.getSymName()] = text.text;
  rewrites.clear();
  refusals.clear();
}

std::string FoldTrace::print(StringRef kernel) const { return texts.lookup(kernel); }
