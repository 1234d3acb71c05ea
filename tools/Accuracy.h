//===- Accuracy.h - what a tool is told of sizes and errors -----*- C++ -*-===//
#ifndef MOA_TOOLS_ACCURACY_H
#define MOA_TOOLS_ACCURACY_H

#include "moa/Compiler.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace moa {

/// Options of both tools: what a specification is compiled for, and what results may lose.
struct CompilationFlags {
  explicit CompilationFlags(llvm::cl::OptionCategory &category)
      : optimization("O", llvm::cl::Prefix, llvm::cl::init(1), llvm::cl::value_desc("level"),
                     llvm::cl::desc("How hard LLVM works on code for a CPU, 0 to 3 (default 1)"),
                     llvm::cl::cat(category)),
        settings("set", llvm::cl::value_desc("name=value"),
                 llvm::cl::desc("Set a size or an element type of the specification"),
                 llvm::cl::cat(category)),
        tolerances(
            "within", llvm::cl::value_desc("result=number[,relative][,sampled]"),
            llvm::cl::desc(
                "Let the compiler spend accuracy on a result, up to this error, whatever the "
                "specification says"),
            llvm::cl::cat(category)),
        spend("spend", llvm::cl::ValueOptional, llvm::cl::value_desc("keys"),
              llvm::cl::desc(
                  "Compute in fewer bits where results allow the error (within), from so many rows "
                  "and keys "
                  "on (default: where it pays); otherwise that is done where --decisions or "
                  "--plans is given"),
              llvm::cl::cat(category)),
        pilot("pilot", llvm::cl::ValueOptional, llvm::cl::value_desc("multiply-adds"),
              llvm::cl::desc("With --spend on a GPU, look at few rows and keys of a head first "
                             "where it has more "
                             "multiply-adds than that (default: 0; without the option, where "
                             "--spend has no number and "
                             "it pays)"),
              llvm::cl::cat(category)),
        lowRank(
            "low-rank", llvm::cl::ValueOptional, llvm::cl::value_desc("keys"),
            llvm::cl::desc(
                "Let few keys stand for many where results allow the error (within), from so many "
                "rows and keys on (default 32768); with --spend, fewer bits at indices where they "
                "do not"),
            llvm::cl::cat(category)),
        plans("plans", llvm::cl::value_desc("file"),
              llvm::cl::desc("Compile with the decisions of a file, as moa-run --calibrate writes "
                             "it; nothing is "
                             "estimated"),
              llvm::cl::cat(category)),
        checkPlans(
            "check-plans",
            llvm::cl::desc(
                "Estimate with --plans too, and take more accurate plans where theirs are too far "
                "off"),
            llvm::cl::cat(category)),
        noToleranceCheck(
            "no-tolerance-check",
            llvm::cl::desc("Leave out what tells whether results are shown to be within their "
                           "tolerances: bounds "
                           "that each call evaluates, what it returns of them, and warnings"),
            llvm::cl::cat(category)) {}

  /// Tells the compiler. To it an empty text of plans is that there are none; an empty file is a
  /// mistake.
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
    else if (pilot.getNumOccurrences() &&
             (work.getAsInteger(10, options.pilotFrom) || options.pilotFrom < 0))
      return llvm::createStringError("--pilot expects a number of multiply-adds, but got '" + work +
                                     "'");
    if (llvm::Error error = readKeys(lowRank, AccuracyOptions::kLowRankFrom, options.lowRankFrom))
      return error;
    if (plans.getNumOccurrences() && plans.empty())
      return llvm::createStringError("--plans expects a file, as moa-run --calibrate writes it");
    if (checkPlans && plans.empty())
      return llvm::createStringError("--check-plans goes with --plans");
    return plans.empty() ? llvm::Error::success() : readPlans(options);
  }

  /// What a number that stands alone among these words was meant for, with what separates it from a
  /// message, or nothing.
  std::string explainNumber(const std::vector<std::string> &words) const {
    for (const std::string &word : words)
      for (const llvm::cl::opt<std::string> *option : {&spend, &pilot, &lowRank})
        if (uint64_t number; option->getNumOccurrences() && option->empty() &&
                             !llvm::StringRef(word).getAsInteger(10, number))
          return ("; the number of --" + option->ArgStr + " is joined to it: --" + option->ArgStr +
                  "=" + word)
              .str();
    return "";
  }

  llvm::cl::opt<unsigned> optimization;
  llvm::cl::list<std::string> settings, tolerances;
  llvm::cl::opt<std::string> spend, pilot, lowRank, plans;
  llvm::cl::opt<bool> checkPlans, noToleranceCheck;

private:
  /// From how many keys on an option applies, if it is given.
  static llvm::Error readKeys(const llvm::cl::opt<std::string> &option, int64_t otherwise,
                              int64_t &keys) {
    llvm::StringRef text = option.getValue();
    if (option.getNumOccurrences() && text.empty())
      keys = otherwise;
    else if (option.getNumOccurrences() && (text.getAsInteger(10, keys) || keys < 256))
      return llvm::createStringError(
          "--" + option.ArgStr + " expects a number of keys from 256 on, but got '" + text + "'");
    return llvm::Error::success();
  }
  llvm::Error readPlans(AccuracyOptions &options) const {
    auto text = llvm::MemoryBuffer::getFile(plans);
    if (!text)
      return llvm::createStringError(plans + ": " + text.getError().message());
    if ((*text)->getBuffer().trim().empty())
      return llvm::createStringError(plans +
                                     ": the file is empty; moa-run --calibrate writes plans");
    options.plans = (*text)->getBuffer().str();
    options.plansFile = plans;
    return llvm::Error::success();
  }
};

} // namespace moa

#endif // MOA_TOOLS_ACCURACY_H
