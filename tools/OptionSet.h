//===- OptionSet.h - options of one tool ------------------------*- C++ -*-===//
#ifndef MOA_TOOLS_OPTIONSET_H
#define MOA_TOOLS_OPTIONSET_H

#include "llvm/Support/CommandLine.h"
#include <vector>

namespace moa {

/// The command-line options of one tool. An option with this modifier is not on the command line
/// until the tool calls join(). So one library holds several tools whose options have equal names.
class OptionSet {
public:
  explicit OptionSet(llvm::StringRef title) : category(title) {}

  /// Adds an option; called by the option's constructor.
  template <class Option> void apply(Option &option) const {
    option.addCategory(category);
    option.addSubCommand(apart);
  }

  /// Puts the options on the command line. Must be called once, before the command line is parsed.
  void join() {
    std::vector<llvm::cl::Option *> options(apart.PositionalOpts.begin(), apart.PositionalOpts.end());
    for (auto &[name, option] : apart.OptionsMap)
      options.push_back(option);
    for (llvm::cl::Option *option : options) {
      option->Subs.clear(); // an option of no subcommand is one of the command line itself
      option->addArgument();
    }
  }

  /// Hides the options of other libraries from --help.
  void hideOthers() { llvm::cl::HideUnrelatedOptions(category); }

private:
  // Modifiers are passed by constant references.
  mutable llvm::cl::OptionCategory category;
  /// Has no name, so that LLVM does not know it as a subcommand.
  mutable llvm::cl::SubCommand apart;
};

} // namespace moa

#endif // MOA_TOOLS_OPTIONSET_H
