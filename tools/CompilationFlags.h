//===- CompilationFlags.h - flags of both tools -----------------*- C++ -*-===//
#ifndef MOA_TOOLS_COMPILATIONFLAGS_H
#define MOA_TOOLS_COMPILATIONFLAGS_H

#include "moa/Compiler.h"
#include "tools/OptionSet.h"
#include "tools/TextFile.h"
#include "llvm/Support/CommandLine.h"

namespace moa {

/// Options of both tools: sizes and targets of a specification, and tolerances of its results.
struct CompilationFlags {
  explicit CompilationFlags(const OptionSet &set)
      : optimization("O", llvm::cl::Prefix, llvm::cl::init(1), llvm::cl::value_desc("level"),
                     llvm::cl::desc("LLVM's optimisation level for CPU code, 0 to 3 (default 1)"), set),
        settings("set", llvm::cl::value_desc("name=value"),
                 llvm::cl::desc("Set a size or an element type of the specification"), set),
        tolerances("within", llvm::cl::value_desc("result=number[,relative][,sampled]"),
                   llvm::cl::desc("Allow this error in a result, so that mixed precision may be used; overrides the "
                                  "specification"),
                   set),
        spend("spend", llvm::cl::ValueOptional, llvm::cl::value_desc("keys"),
              llvm::cl::desc("Use mixed precision where results allow the error (within), from this number of "
                             "rows and keys on (default: where it pays); without --spend, only with "
                             "--decisions or --plans"),
              set),
        pilot("pilot", llvm::cl::ValueOptional, llvm::cl::value_desc("multiply-adds"),
              llvm::cl::desc("With --spend on a GPU, first sample few rows and keys of heads with more "
                             "multiply-adds than this (default 0; without --pilot, where it pays, "
                             "unless --spend has a number)"),
              set),
        lowRank("low-rank", llvm::cl::ValueOptional, llvm::cl::value_desc("keys"),
                llvm::cl::desc("Approximate many keys by few where results allow the error (within), from this "
                               "number of rows and keys on (default 32768); with --spend, mixed precision at all "
                               "other indices"),
                set),
        plans("plans", llvm::cl::value_desc("file"),
              llvm::cl::desc("Compile with the decisions of a file, as moa-run --calibrate writes "
                             "it, and without estimates"),
              set),
        checkPlans("check-plans",
                   llvm::cl::desc("Estimate errors with --plans too, and take more accurate plans where an error is "
                                  "too large"),
                   set),
        noToleranceCheck("no-tolerance-check",
                         llvm::cl::desc("Do not check tolerances: calls evaluate no bounds and return no code "
                                        "for results that may exceed them, and there are no warnings"),
                         set) {}

  /// Copies the options to the compiler's.
  llvm::Error apply(CompilerOptions &compiler) const {
    compiler.optimization = optimization;
    compiler.settings.assign(settings.begin(), settings.end());
    if (!compiler.accuracy)
      compiler.accuracy.emplace();
    AccuracyOptions &options = *compiler.accuracy;
    options.tolerances.assign(tolerances.begin(), tolerances.end());
    options.checksPlans = checkPlans;
    options.checksTolerances = !noToleranceCheck;
    options.warnsIfUnused = spend.getNumOccurrences() > 0;
    options.mixedPrecision |= options.warnsIfUnused;
    if (llvm::Error error = readKeys(spend, 0, options.mixedPrecisionFrom))
      return error;
    llvm::StringRef work = pilot.getValue();
    if (pilot.getNumOccurrences() && !options.warnsIfUnused)
      return llvm::createStringError("--pilot goes with --spend");
    if (pilot.getNumOccurrences() && work.empty())
      options.pilotFrom = 0;
    else if (pilot.getNumOccurrences() && (work.getAsInteger(10, options.pilotFrom) || options.pilotFrom < 0))
      return llvm::createStringError("--pilot expects a number of multiply-adds, but got '" + work + "'");
    if (llvm::Error error = readKeys(lowRank, AccuracyOptions::kLowRankFrom, options.lowRankFrom))
      return error;
    if (plans.getNumOccurrences() && plans.empty())
      return llvm::createStringError("--plans expects a file, as moa-run --calibrate writes it");
    if (checkPlans && plans.empty())
      return llvm::createStringError("--check-plans goes with --plans");
    return plans.empty() ? llvm::Error::success() : readPlans(options);
  }

  /// Explains a stray number among `words` that was meant as the value of an option, as the end of
  /// a message. Returns an empty string if there is none.
  std::string explainNumber(const std::vector<std::string> &words) const {
    for (const std::string &word : words)
      for (const llvm::cl::opt<std::string> *option : {&spend, &pilot, &lowRank})
        if (uint64_t number;
            option->getNumOccurrences() && option->empty() && !llvm::StringRef(word).getAsInteger(10, number))
          return ("; the number of --" + option->ArgStr + " is joined to it: --" + option->ArgStr + "=" + word).str();
    return "";
  }

  llvm::cl::opt<unsigned> optimization;
  llvm::cl::list<std::string> settings, tolerances;
  llvm::cl::opt<std::string> spend, pilot, lowRank, plans;
  llvm::cl::opt<bool> checkPlans, noToleranceCheck;

private:
  /// Reads the number of keys of an option, if it is given.
  static llvm::Error readKeys(const llvm::cl::opt<std::string> &option, int64_t otherwise, int64_t &keys) {
    llvm::StringRef text = option.getValue();
    if (option.getNumOccurrences() && text.empty())
      keys = otherwise;
    else if (option.getNumOccurrences() && (text.getAsInteger(10, keys) || keys < 256))
      return llvm::createStringError("--" + option.ArgStr + " expects a number of keys from 256 on, but got '" + text +
                                     "'");
    return llvm::Error::success();
  }
  llvm::Error readPlans(AccuracyOptions &options) const {
    auto text = readText(plans, "moa-run --calibrate writes plans");
    if (!text)
      return text.takeError();
    options.plans = std::move(*text);
    options.plansFile = plans;
    return llvm::Error::success();
  }
};

} // namespace moa

#endif // MOA_TOOLS_COMPILATIONFLAGS_H
