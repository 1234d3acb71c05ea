//===- Refusal.cpp - the message for an index that may leave its axis -----===//
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Validation/Predicate.h"
#include "lib/Validation/Remedies.h"
#include "lib/Validation/State.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

namespace {
/// A longer term is less readable than the subscript it comes from.
constexpr size_t maxLength = 100;

/// The message for one index of one array that was not proved to be in bounds.
class Refusal {
public:
  Refusal(TermContext &terms, const Prover &prover, const Variables &variables, const Access &access, unsigned axis,
          Term extent, Term condition)
      : terms(terms), prover(prover), variables(variables), access(access), axis(axis), index(access.index[axis]),
        extent(extent), condition(condition), remedies(terms, prover, variables, index, extent, condition) {}

  void emit(Operation *kernel);

private:
  void nameApart();
  bool isReadable(Term term);
  std::string text(Term term);
  std::string goalText();
  std::string conditionText();
  std::string remedyText(Term load);
  std::string guardText();
  Term findLoad(Term term);
  bool fails(Term goal) {
    Prover trial = prover;
    return !trial.prove(goal, condition).holds;
  }

  TermContext &terms;
  const Prover &prover;
  const Variables &variables;
  const Access &access;
  unsigned axis;
  Term index, extent, condition;
  Remedies remedies;
  StringRef written;
  bool isAsWritten = false; ///< `index` is the subscript of its own array
  bool isReached = false;   ///< the index reaches the array through an index of another array
  bool below = false, above = false;
};
} // namespace

/// Gives the index variables of one message different names.
void Refusal::nameApart() {
  llvm::SetVector<Term> indices;
  for (Term entry : access.index)
    collectIndices(entry, indices);
  collectIndices(condition, indices);
  llvm::StringSet<> taken;
  for (Term variable : indices) {
    std::string name = terms.nameOf(variable);
    for (unsigned k = 2; !taken.insert(name).second; ++k)
      name = terms.nameOf(variable) + std::to_string(k);
    terms.nameIndex(variable, name);
  }
}

/// Returns true if the text of a term is an expression of the language.
bool Refusal::isReadable(Term term) {
  switch (term->kind) {
  case TermKind::Constant:
  case TermKind::Reduce:
  case TermKind::Apply:
    return false;
  case TermKind::Scalar:
    if (!term->type.isIntOrIndex() || term->operands.empty() || term->name == "fptosi" || term->name == "same")
      return false;
    break;
  default:
    break;
  }
  return llvm::all_of(term->operands, [&](Term operand) { return isReadable(operand); });
}

std::string Refusal::text(Term term) {
  if (term == index && isAsWritten)
    return written.str();
  std::string own = isReadable(term) ? terms.str(term) : "";
  return own.size() > maxLength ? "" : own;
}

std::string Refusal::goalText() {
  std::string name = text(index), end = terms.str(extent);
  if (name.empty())
    name = written.empty() ? "the index" : written.str();
  return below && above ? "0 <= " + name + " < " + end : below ? name + " >= 0" : name + " < " + end;
}

/// Returns true for a name, a number, a call or a subscript: there is no operator outside brackets.
static bool isOneWord(StringRef text) {
  int depth = 0;
  for (char c : text) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && !llvm::isAlnum(c) && c != '_' && c != ')' && c != ']')
      return false;
  }
  return true;
}

/// Returns the conjuncts of the condition that share variables with the index.
std::string Refusal::conditionText() {
  llvm::SetVector<Term> mine;
  collectIndices(index, mine);
  std::string result;
  for (Term part : condition->is(TermKind::And) ? condition->operands : ArrayRef(condition)) {
    llvm::SetVector<Term> theirs;
    collectIndices(part, theirs);
    std::string own = text(part);
    if (own.empty() || part->isTrue() || !llvm::any_of(theirs, [&](Term k) { return mine.contains(k); }))
      continue;
    result += (result.empty() ? " where " : " and ") + own;
  }
  return result.size() > 2 * maxLength ? "" : result;
}

/// Returns the outermost parameter element in the index, or null.
Term Refusal::findLoad(Term term) {
  if (term->is(TermKind::Load))
    return term->type.isIntOrIndex() ? term : nullptr;
  for (Term part : term->operands)
    if (Term found = findLoad(part))
      return found;
  return nullptr;
}

/// Returns a guarded read, such as 'select(i + 1 < N, x[i + 1], 0)'.
std::string Refusal::guardText() {
  const std::string &array = terms.inputNames[access.input];
  std::string name = text(index), indices;
  // Trailing axes that are read as a whole have no subscript.
  size_t last = access.written.empty() ? access.index.size() : axis + 1;
  for (size_t k = axis + 1; k < access.written.size(); ++k)
    if (access.written[k])
      last = k + 1;
  for (Term entry : ArrayRef(access.index).take_front(last)) {
    std::string own = text(entry);
    llvm::SetVector<Term> mentioned;
    collectIndices(entry, mentioned);
    bool isNamed = llvm::all_of(mentioned, [&](Term k) { return variables.isNamed(k); });
    if (own.empty() || !isNamed)
      return "read " + array + " under a condition (select, mask)";
    indices += (indices.empty() ? "" : ", ") + own;
  }
  std::string guard = below && above ? "0 <= " + name + " and " + name + " < " + text(extent)
                      : below        ? name + " >= 0"
                                     : name + " < " + text(extent);
  if (isReached)
    return "let it be read only where " + guard + " (select, mask)";
  return "read " + array + " under a condition, as in 'select(" + guard + ", " + array + "[" + indices +
         "], 0)' or by mask";
}

std::string Refusal::remedyText(Term load) {
  std::string result, end = terms.str(extent);
  auto add = [&](const std::string &remedy) { result += (result.empty() ? "" : ", or ") + remedy; };
  if (load) {
    const std::string &from = terms.inputNames[load->value];
    std::string range = remedies.findRange(load), known;
    if (!range.empty())
      add("declare the range of " + from + " ('in 0.." + range + "')");
    else if (known = remedies.findAssumption(load); !known.empty())
      add("write 'assume " + known + "'");
  } else if (std::string sizes = remedies.findConstraint(); !sizes.empty()) {
    add("write 'require " + sizes + "' ('assume' it if the caller need not be asked)");
  }
  if (!text(index).empty()) {
    add(guardText());
    return result;
  }
  // An index that was not computed from parameters can only be clamped or wrapped.
  std::string own = written.empty() ? "e" : written.str();
  std::optional<bool> clamped = remedies.isMendedByClamp(), wrapped = remedies.isMendedByRemainder();
  if (clamped)
    add("clamp it, as in 'min(max(" + own + ", 0), " + end + " - 1)'");
  if (wrapped)
    add("wrap it, as in '" + (isOneWord(own) ? own : "(" + own + ")") + " % " + end + "'");
  if (clamped.value_or(false) || wrapped.value_or(false))
    result += ", with 'require " + end + " > 0'";
  if (result.empty())
    add(guardText());
  return result;
}

void Refusal::emit(Operation *kernel) {
  nameApart();
  below = fails(index);
  above = fails(remedies.getUpper(index));
  std::optional<SourceIndex> place;
  if (axis < access.written.size() && access.written[axis])
    place = readSourceIndex(access.written[axis]);
  if (place) {
    written = place->text;
    isReached = bool(place->from);
  }
  if (kernel && !written.empty()) {
    llvm::StringMap<Term> names;
    llvm::SetVector<Term> indices;
    collectIndices(index, indices);
    for (Term variable : indices)
      names[terms.nameOf(variable)] = variable;
    SmallVector<Type> types(kernel->getRegion(0).getArgumentTypes());
    isAsWritten = parseInteger(terms, written, types, names) == index;
  }
  std::string name = text(index);
  if (name.empty())
    name = written.empty() ? "an index" : "'" + written.str() + "'";
  const std::string &array = terms.inputNames[access.input];
  Term load = findLoad(index);
  auto error = emitError(place ? place->place : access.place)
               << (text(index).empty() && written.empty() ? "" : "index ") << name << " may be outside of axis " << axis
               << " of " << array << ", whose extent is " << terms.str(extent) << ": " << goalText()
               << " could not be shown" << conditionText() << "; " << remedyText(load);
  if (place && place->from) {
    SourceIndex from = readSourceIndex(place->from);
    auto &note = error.attachNote(from.place) << "which is read here";
    if (!from.text.empty())
      note << " at the index " << from.text;
  }
  if (!kernel)
    return;
  Block &inputs = kernel->getRegion(0).front();
  error.attachNote(inputs.getArgument(access.input).getLoc()) << array << " is declared here";
  if (load && load->value != access.input)
    error.attachNote(inputs.getArgument(load->value).getLoc())
        << terms.inputNames[load->value] << ", which the index is read from, is declared here";
}

void Validator::State::refuse(const Access &access, unsigned axis, Term extent, Term condition) {
  if (isOfRules) {
    emitError(access.place) << "the loops read " << terms.inputNames[access.input] << " at "
                            << terms.str(access.index[axis]) << " of axis " << axis << ", whose extent is "
                            << terms.str(extent)
                            << ", under no condition that keeps it inside; this is an error of the compiler: report it";
    return;
  }
  const Access *shown = &access;
  // The loops have no source text of an index; the normal form has.
  if (access.written.empty())
    for (const std::vector<Access> &output : accesses)
      for (const Access &other : output)
        if (other.input == access.input && other.index[axis] == access.index[axis])
          shown = &other;
  Refusal(terms, prover, variables, *shown, axis, extent, condition).emit(readKernel);
}
