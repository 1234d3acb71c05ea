//===- PassFlags.cpp - checks of passes and their options -----------------===//
#include "tools/moa-opt/PassFlags.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <unistd.h>

using namespace llvm;

namespace moa {

using Wrong = std::optional<std::string>;

namespace {
/// An option of a pass: its name, the type of its values in --help (empty for a switch), and the
/// values of an enumeration.
struct PassOption {
  std::string name, type;
  SmallVector<std::string> values;
};
} // namespace

static const mlir::PassRegistryEntry *lookup(StringRef name) {
  if (const mlir::PassInfo *pass = mlir::PassInfo::lookup(name))
    return pass;
  return mlir::PassPipelineInfo::lookup(name);
}

/// Captures the --help text of a pass, which MLIR can only print to standard output.
static std::string getHelp(const mlir::PassRegistryEntry &pass) {
  std::string text;
  FILE *file = std::tmpfile();
  if (!file)
    return text;
  outs().flush();
  int kept = dup(STDOUT_FILENO);
  dup2(fileno(file), STDOUT_FILENO);
  // A large indent puts the descriptions to the right of everything else.
  pass.printHelpStr(0, pass.getOptionWidth() + 80);
  outs().flush();
  dup2(kept, STDOUT_FILENO);
  close(kept);
  std::rewind(file);
  char part[4096];
  while (size_t size = std::fread(part, 1, sizeof part, file))
    text.append(part, size);
  std::fclose(file);
  return text;
}

/// Parses lines of --help such as `  --tile-size=<uint>   - Use this tile size`, followed by values
/// such as `    =normal   - Simplify`, below the line of the pass.
static SmallVector<PassOption> getOptions(const mlir::PassRegistryEntry &pass) {
  SmallVector<PassOption> options;
  SmallVector<StringRef> lines;
  std::string help = getHelp(pass);
  StringRef(help).split(lines, '\n');
  for (StringRef line : drop_begin(lines)) {
    line = line.ltrim();
    StringRef flag = line.take_until([](char c) { return c == ' '; });
    if (flag.consume_front("--")) {
      auto [name, type] = flag.split('=');
      options.push_back({name.str(), type.trim("<>").str(), {}});
    } else if (flag.consume_front("=") && !options.empty()) {
      options.back().values.push_back(flag.str());
    }
  }
  return options;
}

/// Returns the nearest name, if it is similar enough, as the end of a sentence.
template <typename Names> static std::string propose(StringRef name, const Names &names) {
  unsigned best = 1 + name.size() / 3;
  std::string found;
  for (StringRef other : names) {
    unsigned distance = name.edit_distance(other, true, best);
    if (distance < best || (distance == best && found.empty())) {
      best = distance;
      found = other.str();
    }
  }
  return found.empty() ? "" : "; did you mean '" + found + "'?";
}

static Wrong checkPipelines(StringRef flag, StringRef text);

static Wrong checkValue(StringRef pass, const PassOption &option, StringRef value, bool isGiven) {
  std::string start = ("the option '" + Twine(option.name) + "' of the pass '" + pass + "' ").str();
  if (option.type.empty()) {
    static const StringRef truths[] = {"true", "TRUE", "True", "1", "false", "FALSE", "False", "0"};
    if (isGiven && !value.empty() && !is_contained(truths, value))
      return start + "is true or false, not '" + value.str() + "'";
    return std::nullopt;
  }
  if (!isGiven)
    return start + "takes a value: " + option.name + "=VALUE";
  if (!option.values.empty() && !is_contained(option.values, value))
    return start + "is one of " + join(option.values, ", ") + ", not '" + value.str() + "'";
  if (option.type == "pass-manager")
    return checkPipelines(("'" + Twine(option.name) + "'").str(), value);
  bool isUnsigned = option.type == "uint" || option.type == "ulong";
  if (!isUnsigned && option.type != "int" && option.type != "long")
    return std::nullopt;
  SmallVector<StringRef> numbers;
  value.split(numbers, ',');
  for (StringRef number : numbers) {
    int64_t integer = 0;
    bool is32 = option.type == "uint" || option.type == "int";
    if (number.getAsInteger(0, integer) || (isUnsigned && integer < 0) ||
        (is32 && (isUnsigned ? !isUInt<32>(integer) : !isInt<32>(integer))))
      return start + (isUnsigned ? "takes an integer from 0, not '" : "takes an integer, not '") + number.str() + "'";
  }
  return std::nullopt;
}

/// Returns the length of the first option in `text`, which ends at a blank outside of quotes and
/// braces.
static size_t getLength(StringRef text) {
  int depth = 0;
  char quote = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    char c = text[k];
    if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == ' ' && depth == 0)
      return k;
    else
      depth += (c == '{' || c == '(') - (c == '}' || c == ')');
  }
  return text.size();
}

static Wrong checkOptions(StringRef pass, const mlir::PassRegistryEntry &entry, StringRef text) {
  text = text.trim();
  if (text.empty())
    return std::nullopt;
  SmallVector<PassOption> options = getOptions(entry);
  auto names = map_range(options, [](const PassOption &option) { return StringRef(option.name); });
  while (!text.empty()) {
    StringRef word = text.take_front(getLength(text));
    text = text.drop_front(word.size()).ltrim();
    auto [name, value] = word.split('=');
    auto option = find_if(options, [name = name](const PassOption &o) { return o.name == name; });
    if (option == options.end())
      return ("the pass '" + pass + "' has no option '" + name + "'; " +
              (options.empty() ? "it takes none"
                               : "its options: " + join(names.begin(), names.end(), ", ") + propose(name, names)))
          .str();
    if (Wrong wrong = checkValue(pass, *option, value, word.contains('=')))
      return wrong;
  }
  return std::nullopt;
}

static std::string noPass(StringRef name) {
  SmallVector<StringRef> names;
  for (auto &entry : cl::getRegisteredOptions())
    if (lookup(entry.first))
      names.push_back(entry.first);
  std::string meant = propose(name, names);
  return "there is no pass '" + name.str() + "'" + (meant.empty() ? "; --help lists the passes" : meant);
}

namespace {
/// The text of a pipeline as in --pass-pipeline: passes, their options, and the operations that
/// they run on.
struct Pipeline {
  StringRef flag, text;
  size_t at = 0;

  void skipBlanks() { at = std::min(text.find_first_not_of(" \t\r\n", at), text.size()); }

  Wrong expects(StringRef what) const {
    return (flag + " expects " + what + " after '" + text.take_front(at) +
            "'; its form is 'builtin.module(PASS,PASS{OPTION=VALUE})'")
        .str();
  }

  /// Takes `{ … }` after a pass; returns false if it does not end.
  bool takeOptions(StringRef &options) {
    int depth = 0;
    size_t start = at + 1;
    for (; at < text.size(); ++at) {
      depth += (text[at] == '{') - (text[at] == '}');
      if (depth == 0) {
        options = text.slice(start, at++);
        return true;
      }
    }
    return false;
  }

  /// Checks PASS, PASS{OPTIONS} or OPERATION(PASSES) at the current position, for operations
  /// `root`.
  Wrong checkElement(StringRef root) {
    skipBlanks();
    StringRef name =
        text.drop_front(at).take_while([](char c) { return isAlnum(c) || c == '-' || c == '_' || c == '.'; });
    if (name.empty())
      return expects("a pass");
    at += name.size();
    skipBlanks();
    if (at < text.size() && text[at] == '(') {
      ++at;
      if (Wrong wrong = checkList(name))
        return wrong;
      if (at == text.size())
        return expects("')'");
      ++at;
      return std::nullopt;
    }
    const mlir::PassRegistryEntry *pass = lookup(name);
    if (!pass)
      return noPass(name);
    StringRef options;
    if (at < text.size() && text[at] == '{' && !takeOptions(options))
      return expects("'}'");
    if (Wrong wrong = checkOptions(name, *pass, options))
      return wrong;
    return checkRoot(name, *pass, root);
  }

  /// Checks that a pass runs on operations `root`.
  static Wrong checkRoot(StringRef name, const mlir::PassRegistryEntry &pass, StringRef root) {
    if (root.empty() || root == "any")
      return std::nullopt;
    mlir::OpPassManager passes(root);
    auto fails = [](const Twine &) { return mlir::failure(); };
    if (mlir::succeeded(pass.addToPipeline(passes, "", fails)))
      return std::nullopt;
    return ("the pass '" + name + "' does not run on '" + root + "'" +
            (root == "builtin.module" ? "" : "; most passes run on 'builtin.module'"))
        .str();
  }

  /// Checks elements separated by commas, up to a ')' or the end.
  Wrong checkList(StringRef root) {
    skipBlanks();
    if (at < text.size() && text[at] == ')')
      return std::nullopt;
    while (true) {
      if (Wrong wrong = checkElement(root))
        return wrong;
      skipBlanks();
      if (at == text.size() || text[at] == ')')
        return std::nullopt;
      if (text[at] != ',')
        return expects("',' or ')'");
      ++at;
    }
  }

  /// Checks the whole text: one OPERATION(PASSES).
  Wrong check() {
    skipBlanks();
    StringRef root = text.drop_front(at).take_until([](char c) { return c == '(' || c == '{'; });
    bool isNamed = root.size() + at < text.size() && text[at + root.size()] == '(';
    if (Wrong wrong = isNamed ? checkElement("") : checkList(""))
      return wrong;
    if (!isNamed)
      return (flag + " must name the operation of its passes: 'builtin.module(" + text.trim() + ")'").str();
    skipBlanks();
    return at == text.size() ? std::nullopt : expects("nothing");
  }
};
} // namespace

/// Checks several OPERATION(PASSES), separated by commas.
static Wrong checkPipelines(StringRef flag, StringRef text) {
  Pipeline pipeline{flag, text};
  Wrong wrong = pipeline.checkList("");
  return wrong || pipeline.at == text.size() ? wrong : pipeline.expects("nothing");
}

std::optional<std::string> findWrongPass(int argc, char **argv) {
  for (int k = 1; k < argc; ++k) {
    StringRef word = argv[k];
    if (word == "--")
      break;
    if (!word.consume_front("-"))
      continue;
    word.consume_front("-");
    auto [name, value] = word.split('=');
    Wrong wrong;
    if (name == "pass-pipeline") {
      StringRef text = word.contains('=') ? value : k + 1 < argc ? StringRef(argv[++k]) : "";
      wrong = Pipeline{"--pass-pipeline", text}.check();
    } else if (const mlir::PassRegistryEntry *pass = lookup(name)) {
      wrong = checkOptions(name, *pass, value);
    }
    if (wrong)
      return wrong;
  }
  return std::nullopt;
}

} // namespace moa
