//===- CommandLine.cpp - checks of the command line -----------------------===//
#include "tools/CommandLine.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace llvm;

namespace moa {

static std::string dashed(StringRef name) { return (name.size() == 1 ? "-" : "--") + name.str(); }

/// Returns the flag with the nearest name, if it is similar enough.
static std::string nearest(StringRef name) {
  unsigned best = 1 + name.size() / 3;
  std::string found;
  for (auto &entry : cl::getRegisteredOptions()) {
    StringRef other = entry.first;
    bool isShown = entry.second->getOptionHiddenFlag() == cl::NotHidden;
    if (other.size() < 2 || !isShown)
      continue;
    unsigned distance = name.edit_distance(other, true, best);
    if (distance < best || (distance == best && found.empty())) {
      best = distance;
      found = other.str();
    }
  }
  return found;
}

static std::optional<std::string> checkValue(const cl::Option &option, StringRef name, std::optional<StringRef> value,
                                             bool isLast) {
  if (option.getValueExpectedFlag() == cl::ValueRequired) {
    std::string form =
        dashed(name) + (name.size() == 1 ? " " : "=") + (option.ValueStr.empty() ? "VALUE" : option.ValueStr.upper());
    if (!value && isLast)
      return dashed(name) + " takes a value: " + form;
    return std::nullopt;
  }
  // A pass may be given repeatedly and has options of its own.
  bool isSwitch = option.ValueStr.empty() && option.getValueExpectedFlag() == cl::ValueOptional &&
                  option.getNumOccurrencesFlag() == cl::Optional;
  static const std::set<StringRef> truths = {"true", "TRUE", "True", "1", "false", "FALSE", "False", "0"};
  if (value && isSwitch && !value->empty() && !truths.count(*value))
    return dashed(name) + " is given or not, and takes no value '" + value->str() + "'";
  return std::nullopt;
}

std::optional<std::string> findWrongFlag(int argc, char **argv) {
  auto &options = cl::getRegisteredOptions();
  std::set<cl::Option *> seen;
  for (int k = 1; k < argc; ++k) {
    StringRef word = argv[k];
    if (word == "--")
      break;
    if (!word.starts_with("-") || word.size() == 1)
      continue;
    StringRef body = word.ltrim('-');
    size_t equals = body.find('=');
    StringRef name = body.take_front(equals);
    std::optional<StringRef> value;
    if (equals != StringRef::npos)
      value = body.drop_front(equals + 1);
    auto found = options.find(name);
    // A one-letter flag with its value attached, as -O2.
    if (auto letter = options.find(name.take_front(1)); found == options.end() && body.size() > 1 &&
                                                        llvm::isDigit(body[1]) && letter != options.end() &&
                                                        letter->second->getFormattingFlag() == cl::Prefix) {
      found = letter;
      value = body.drop_front(1);
      name = name.take_front(1);
    }
    // MLIR's driver declares -o only when it parses.
    if (found == options.end() && name == "o") {
      if (value || k + 1 < argc) {
        k += !value;
        continue;
      }
      return std::string("-o takes a value: -o FILENAME");
    }
    if (found == options.end()) {
      std::string other = nearest(name);
      return "there is no flag '" + word.take_front(word.find('=')).str() + "'" +
             (other.empty() ? "; --help lists the flags" : "; did you mean '" + dashed(other) + "'?");
    }
    cl::Option *option = found->second;
    if (auto wrong = checkValue(*option, name, value, k + 1 == argc))
      return wrong;
    bool isOnce = option->getNumOccurrencesFlag() == cl::Optional;
    if (isOnce && !seen.insert(option).second)
      return dashed(name) + " is given twice";
    if (option->getValueExpectedFlag() == cl::ValueRequired && !value)
      ++k;
  }
  return std::nullopt;
}

bool refuseWrongFlag(int argc, char **argv, StringRef tool) {
  std::optional<std::string> wrong = findWrongFlag(argc, argv);
  if (wrong)
    WithColor::error(errs(), tool) << *wrong << "\n";
  return wrong.has_value();
}

} // namespace moa
