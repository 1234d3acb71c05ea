//===- Phases.cpp - merging the statements of consecutive loops -----------===//
#include "lib/Target/CUDA/Phases.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using llvm::StringRef;

namespace moa::cuda {

using Statements = std::vector<Statement>;

/// Merges a body into the statements so far along the longest common subsequence.
static Statements align(const Statements &merged, const Statements &body, unsigned phase) {
  size_t rows = merged.size(), columns = body.size();
  std::vector<std::vector<unsigned>> common(rows + 1, std::vector<unsigned>(columns + 1));
  for (size_t i = rows; i-- > 0;)
    for (size_t j = columns; j-- > 0;)
      common[i][j] = merged[i] == body[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  Statements result;
  auto add = [&](const Statement &statement, unsigned phases) {
    result.push_back(statement);
    result.back().phases |= phases;
  };
  size_t i = 0, j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && merged[i] == body[j])
      add(merged[i++], 1u << phase), ++j;
    else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1]))
      add(merged[i++], 0);
    else
      add(body[j++], 1u << phase);
  }
  return result;
}

static StringRef nameOf(const Statement &constant) { return StringRef(constant.text).split(" = ").first; }

/// Returns whether a statement contains the word; for a constant, whether its value does.
static bool mentions(const Statement &statement, StringRef word) {
  StringRef text = statement.text;
  if (statement.kind == Statement::Constant)
    text = text.split(" = ").second;
  auto isPart = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = text.find(word); at != StringRef::npos; at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !isPart(text[at - 1])) && (end == text.size() || !isPart(text[end])))
      return true;
  }
  return false;
}

static StringRef valueOf(const Statement &constant) { return StringRef(constant.text).split(" = ").second; }

/// Returns whether the value of a constant may depend on the statement.
static bool defines(const Statement &statement, const Statement &constant) {
  if (statement.kind == Statement::Constant)
    return mentions(constant, nameOf(statement));
  StringRef rest = statement.text;
  while (!rest.empty()) {
    StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!word.empty() && !llvm::isDigit(word[0]) && mentions(constant, word))
      return true;
    rest = rest.drop_front(std::max<size_t>(word.size(), 1));
  }
  return false;
}

/// Returns one constant that has the value of each phase.
static Statement choose(llvm::ArrayRef<Statement> values, const std::string &phase,
                        llvm::ArrayRef<std::string> labels) {
  auto part = [](StringRef value) {
    int depth = 0;
    for (char c : value) {
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == '?' && depth == 0)
        return "(" + value.str() + ")";
    }
    return value.str();
  };
  std::string text;
  for (const Statement &value : values.drop_back())
    text += printCondition(value.phases, phase, labels) + " ? " + part(valueOf(value)) + " : ";
  text += text.empty() ? valueOf(values.back()).str() : part(valueOf(values.back()));
  return {Statement::Constant, nameOf(values.back()).str() + " = " + text, values.back().type,
          (1u << labels.size()) - 1};
}

/// Defines constants for all phases if they are needed outside their stretch of equal phases. This
/// may make further constants needed. Returns false if it is impossible.
static bool shareConstants(Statements &list, const std::string &phase, llvm::ArrayRef<std::string> labels) {
  const unsigned all = (1u << labels.size()) - 1;
  for (size_t k = 0; k < list.size(); ++k) {
    if (list[k].kind != Statement::Constant || list[k].phases == all)
      continue;
    std::string name = nameOf(list[k]).str();
    size_t end = k, last = k;
    while (end < list.size() && list[end].phases == list[k].phases)
      ++end;
    bool isLocal = true;
    for (size_t other = 0; other < list.size(); ++other) {
      if (list[other].kind == Statement::Constant && nameOf(list[other]) == name) {
        if (list[other].type != list[k].type || list[other].phases == all)
          return false;
        last = std::max(last, other);
      }
      if (list[other].phases & list[k].phases && mentions(list[other], name))
        isLocal &= other > k && other < end;
    }
    if (isLocal)
      continue;
    Statements values, between;
    for (size_t other = k; other <= last; ++other) {
      // A value moves after the statements in between, so these must not affect it.
      bool isValue = list[other].kind == Statement::Constant && nameOf(list[other]) == name;
      auto decides = [&](const Statement &value) {
        return !isValue && list[other].phases & value.phases && defines(list[other], value);
      };
      if ((!isValue && mentions(list[other], name)) || llvm::any_of(values, decides))
        return false;
      (isValue ? values : between).push_back(list[other]);
    }
    // Place it before the statements of single phases, unless its value depends on them.
    Statement shared = choose(values, phase, labels);
    list.erase(list.begin() + k, list.begin() + last + 1);
    list.insert(list.begin() + k, between.begin(), between.end());
    size_t to = k + between.size(), first = to;
    while (first > 0 && list[first - 1].phases != all && !defines(list[first - 1], shared))
      --first;
    list.insert(list.begin() + first, std::move(shared));
    k = size_t(-1);
  }
  return true;
}

/// Moves each comment to the statement that it precedes in its phases.
static void placeComments(Statements &list) {
  for (size_t k = list.size(); k-- > 0;) {
    if (list[k].kind != Statement::Comment)
      continue;
    size_t next = k + 1;
    while (next < list.size() && (list[next].kind == Statement::Comment || !(list[next].phases & list[k].phases)))
      ++next;
    if (next == list.size())
      continue;
    list[k].phases = list[next].phases;
    std::rotate(list.begin() + k, list.begin() + k + 1, list.begin() + next);
  }
}

std::optional<Statements> mergePhases(const std::vector<Statements> &bodies, const std::string &phase,
                                      llvm::ArrayRef<std::string> labels) {
  std::vector<std::string> numbers;
  for (size_t k = 0; k < bodies.size() && labels.empty(); ++k)
    numbers.push_back(std::to_string(k));
  if (labels.empty())
    labels = numbers;
  Statements merged;
  auto countCode = [](const Statements &list) {
    return llvm::count_if(list, [](const Statement &statement) { return statement.kind != Statement::Comment; });
  };
  size_t before = 0;
  for (auto [number, body] : llvm::enumerate(bodies)) {
    merged = align(merged, body, number);
    before += countCode(body);
  }
  if (!shareConstants(merged, phase, labels) || 10 * countCode(merged) > 7 * ptrdiff_t(before))
    return std::nullopt;
  placeComments(merged);
  return merged;
}

std::string printCondition(unsigned phases, const std::string &phase, llvm::ArrayRef<std::string> labels) {
  const unsigned all = (1u << labels.size()) - 1, others = all & ~phases;
  auto numberOf = [](unsigned only) { return llvm::countr_zero(only); };
  if (llvm::has_single_bit(phases))
    return phase + " == " + labels[numberOf(phases)];
  if (llvm::has_single_bit(others))
    return phase + " != " + labels[numberOf(others)];
  std::vector<std::string> words;
  for (unsigned k = 0; k < labels.size(); ++k)
    if (phases >> k & 1)
      words.push_back(phase + " == " + labels[k]);
  return "(" + llvm::join(words, " || ") + ")";
}

} // namespace moa::cuda
