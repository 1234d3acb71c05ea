//===- PsiTrace.cpp - ψ-reduction as text, law by law ---------------------===//
//
// Prints each definition after every step, and keeps the text if it has changed. Lets get their
// final names only at the end, so the texts hold their numbers until then.
//
//===----------------------------------------------------------------------===//
#include "lib/Explain/PsiTrace.h"
#include "lib/Analysis/MathText.h"
#include "lib/Conversion/MoAToDNF/MoAToDNF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moa;

/// Encloses the number of a let. No name has this character.
static constexpr char kMark = '\x01';

std::string moa::getNumberedLaw(StringRef law) {
  // The laws of each kind in the order of their numbers in docs/Spec.md.
  static constexpr StringRef psi[] = {"psi-constant", "psi-extent",    "psi-iota",    "psi-map",
                                      "psi-cast",     "psi-mask",      "psi-reduce",  "psi-inner",
                                      "psi-psi",      "psi-transpose", "psi-reshape", "psi-slice",
                                      "psi-reverse",  "psi-rotate",    "psi-share",   "psi-cat"};
  static constexpr StringRef absence[] = {"absent-pointwise", "absent-where", "absent-reduce",   "absent-output",
                                          "absent-let",       "absent-join",  "absent-otherwise"};
  auto find = [&](ArrayRef<StringRef> laws, StringRef kind) -> std::optional<std::string> {
    auto it = llvm::find(laws, law);
    if (it == laws.end())
      return std::nullopt;
    return (kind + Twine(it - laws.begin() + 1) + " " + law).str();
  };
  if (auto name = find(psi, "P"))
    return *name;
  return find(absence, "A").value_or(law.str());
}

/// Returns a name for a let that is erased before it gets its own.
static std::string provisionalName(dnf::LetOp let) {
  auto named = dyn_cast<NameLoc>(let.getLoc());
  std::string name = named ? named.getName().str() : let.getSymName().str();
  StringRef suffix = ".present";
  if (named && let.getSymName().ends_with(suffix))
    name += suffix;
  return name;
}

/// Most steps of a definition that are kept, before its end. Every step prints the whole
/// definition, so nobody would read thousands.
static constexpr size_t kMostSteps = 100;

/// Prints all definitions and keeps those that have changed. Returns whether any has.
bool PsiTrace::record(StringRef step, dnf::KernelOp op, bool isEnd) {
  Kernel &kernel = kernels[op.getSymName()];
  llvm::DenseMap<Operation *, unsigned> numbers;
  for (auto &[definition, entry] : kernel.definitions)
    numbers.try_emplace(definition, numbers.size());
  kernel.names.resize(numbers.size());
  auto number = [&](Operation *let) {
    auto [it, isNew] = numbers.try_emplace(let, numbers.size());
    if (isNew)
      kernel.names.push_back(provisionalName(cast<dnf::LetOp>(let)));
    return kMark + std::to_string(it->second) + kMark;
  };
  bool changed = false;
  auto wanted = [&](Operation *definition) {
    auto it = kernel.definitions.find(definition);
    if (isEnd || it == kernel.definitions.end() || it->second.lines.size() <= kMostSteps)
      return true;
    changed = it->second.isCut = true;
    return false;
  };
  // Sort by number; a let gets its number when it is first mentioned.
  std::vector<MathDefinition> found = getMathDefinitions(op, number, wanted);
  llvm::sort(found, [&](const MathDefinition &a, const MathDefinition &b) {
    auto of = [&](const MathDefinition &x) {
      auto it = numbers.find(x.op);
      return it == numbers.end() ? ~0u : it->second;
    };
    return of(a) < of(b);
  });
  for (const MathDefinition &definition : found) {
    Definition &entry = kernel.definitions[definition.op];
    entry.head = definition.head;
    if (!entry.lines.empty() && entry.lines.back().text == definition.text)
      continue;
    changed = true;
    StringRef what = entry.isCut ? "…" : step;
    entry.lines.push_back({entry.lines.empty() ? "" : what.str(), definition.text});
  }
  return changed;
}

void PsiTrace::began(dnf::KernelOp kernel) {
  kernels[kernel.getSymName()] = Kernel();
  record("", kernel);
}

void PsiTrace::applied(StringRef law, dnf::KernelOp kernel) {
  auto &[times, silent] = kernels[kernel.getSymName()].laws[getNumberedLaw(law)];
  ++times;
  silent += !record(getNumberedLaw(law), kernel);
}

void PsiTrace::tidied(StringRef what, dnf::KernelOp kernel) { record(what, kernel); }

void PsiTrace::ended(dnf::KernelOp op) {
  record("conditions in order", op, /*isEnd=*/true);
  Kernel &kernel = kernels[op.getSymName()];
  llvm::DenseSet<Operation *> left;
  for (Operation &definition : op.getBody().front())
    left.insert(&definition);
  unsigned number = 0;
  for (auto &[definition, entry] : kernel.definitions) {
    entry.isLeft = left.contains(definition);
    if (entry.isLeft && isa<dnf::LetOp>(definition))
      kernel.names[number] = cast<dnf::LetOp>(definition).getSymName().str();
    ++number;
  }
}

/// Returns the text with names in place of numbers.
std::string PsiTrace::resolve(StringRef text, const Kernel &kernel) const {
  std::string result;
  while (!text.empty()) {
    auto [before, rest] = text.split(kMark);
    result += before;
    auto [number, after] = rest.split(kMark);
    unsigned value = 0;
    if (!number.empty() && !number.getAsInteger(10, value))
      result += kernel.names[value];
    text = after;
  }
  return result;
}

/// Prints how often each law was applied, by number.
void PsiTrace::printTally(const Kernel &kernel, llvm::raw_ostream &os) const {
  std::vector<std::string> order;
  for (const std::string &law : getPsiLawNames())
    order.push_back(getNumberedLaw(law));
  os << "  Laws applied:";
  llvm::ListSeparator comma(",");
  unsigned silent = 0;
  for (const std::string &law : order)
    if (auto it = kernel.laws.find(law); it != kernel.laws.end()) {
      os << comma << " " << StringRef(law).split(' ').first << " " << it->second.first << "×";
      silent += it->second.second;
    }
  os << ".\n";
  if (silent)
    os << "  (" << silent
       << " of them print no line: they rewrite constants, extents and lossless conversions,\n"
          "  which print the same before and after.)\n";
}

std::string PsiTrace::print(StringRef name) const {
  auto found = kernels.find(name);
  if (found == kernels.end())
    return "";
  const Kernel &kernel = found->second;
  size_t width = 0;
  for (auto &[op, definition] : kernel.definitions)
    for (const Line &line : definition.lines)
      width = std::max(width, line.step.size());
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto &[op, definition] : kernel.definitions) {
    os << "  " << resolve(definition.head, kernel) << " = " << resolve(definition.lines.front().text, kernel) << "\n";
    for (const Line &line : llvm::drop_begin(definition.lines))
      os << "    " << llvm::left_justify(line.step, width) << "  = " << resolve(line.text, kernel) << "\n";
    if (!definition.isLeft)
      os << "    unfolded where it is used\n";
    os << "\n";
  }
  printTally(kernel, os);
  return text;
}
