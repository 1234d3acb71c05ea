//===- moa-random.cpp - specifications made at random ---------------------===//
//
//   moa-random --count=2000              the seeds 1 to 2000, at every level
//   moa-random --seed=17 --print         one program, its text and its result
//   moa-random --seed=17 --minimise      the same, made smaller while it fails
//
//===----------------------------------------------------------------------===//
#include "Generator.h"
#include "Shrink.h"
#include "Workers.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <unistd.h>

using namespace moa;
using namespace moa::random;
namespace cl = llvm::cl;

static cl::OptionCategory category("moa-random");
static cl::opt<uint64_t> seed("seed", cl::desc("one program, by its seed"), cl::cat(category));
static cl::opt<uint64_t> first("first", cl::desc("the first seed"), cl::init(1), cl::cat(category));
static cl::opt<uint64_t> count("count", cl::desc("how many programs"), cl::init(100), cl::cat(category));
static cl::opt<unsigned> jobs("jobs", cl::desc("processes"), cl::init(1), cl::cat(category));
static cl::opt<bool> printText("print", cl::desc("print the programs"), cl::cat(category));
static cl::opt<bool> minimise("minimise", cl::desc("make what fails smaller"), cl::cat(category));
static cl::opt<unsigned> codeEvery("code-every", cl::desc("run the CPU code of every so manieth program; 0: of none"),
                                   cl::init(1), cl::cat(category));
static cl::opt<unsigned> optimization("O", cl::Prefix, cl::desc("how hard LLVM works, 0 to 3"), cl::init(0),
                                      cl::cat(category));
static cl::opt<std::string> processor("mcpu", cl::desc("compile for this processor"), cl::cat(category));
static cl::opt<unsigned> timeLimit("time-limit", cl::desc("seconds for one program"), cl::init(60), cl::cat(category));
static cl::list<std::string> without("without", cl::CommaSeparated, cl::desc("rows of the operator table to leave out"),
                                     cl::cat(category));
static cl::opt<std::string> spoil("spoil", cl::desc("put a fault into the results of dnf, onf, lifted or code"),
                                  cl::cat(category));
static cl::opt<std::string> table("table", cl::desc("write the result as Markdown to this file"), cl::cat(category));

namespace {
struct Totals {
  uint64_t programs = 0, failures = 0, equal = 0, bounded = 0, infinite = 0, untried = 0;
  std::map<std::string, uint64_t> operators, classes;
};
} // namespace

static CheckOptions makeOptions() {
  CheckOptions options;
  options.optimization = optimization;
  options.processor = processor;
  options.codeEvery = codeEvery;
  options.spoil = spoil;
  return options;
}

static std::string printSizes(const Sizes &sizes) {
  std::string text;
  for (const auto &[name, value] : sizes)
    text += (text.empty() ? "" : " ") + name + "=" + std::to_string(value);
  return text;
}

/// The failure and a program that has it.
static void explain(const Program &program, const Result &result) {
  llvm::outs() << program.print();
  for (const std::string &setting : program.settings())
    llvm::outs() << "// --set " << setting << "\n";
  llvm::outs() << "// " << printSizes(result.sizes) << "\n";
  // A compiler that crashes on the program does so in another process.
  llvm::outs().flush();
  if (result.failure.find("crash") == std::string::npos && result.failure != "rejected")
    llvm::outs() << printInputs(program, result.round, result.sizes);
  llvm::outs() << result.failure << ": " << result.detail << "\n";
}

static void report(uint64_t number, const Result &result) {
  llvm::outs() << "seed " << number << ": " << result.failure << ": " << result.detail << "\n";
  llvm::outs().flush();
  Program program = makeProgram(number);
  if (!minimise) {
    if (printText)
      explain(program, result);
    return;
  }
  CheckOptions options = makeOptions();
  Result last = result;
  Sizes sizes = result.sizes;
  // A crash does not say with which sizes it came.
  bool withSizes = !sizes.empty();
  auto fails = [&](const Program &candidate, const Sizes &values) {
    if (withSizes)
      options.sizes = values;
    options.rounds = withSizes ? std::vector<unsigned>{result.round} : CheckOptions().rounds;
    Result found = checkApart(candidate, options, timeLimit);
    bool same = found.failure == result.failure;
    if (same)
      last = found;
    return same;
  };
  if (!fails(program, sizes)) {
    llvm::outs() << "alone it does not fail\n";
    return;
  }
  explain(shrink(program, sizes, fails), last);
}

static int runOne() {
  Program program = makeProgram(seed);
  if (printText) {
    llvm::outs() << program.print();
    for (const std::string &setting : program.settings())
      llvm::outs() << "// --set " << setting << "\n";
  }
  llvm::outs().flush();
  Result result = checkApart(program, makeOptions(), timeLimit);
  if (!result.failure.empty()) {
    report(seed, result);
    return 1;
  }
  llvm::outs() << "seed " << seed << ": agrees, " << result.equal << " values equal, " << result.bounded
               << " within their bounds, " << result.infinite << " not finite\n";
  return 0;
}

static void writeTable(const Totals &totals, double seconds, llvm::raw_ostream &os) {
  os << "| | |\n|---|---:|\n"
     << "| programs | " << totals.programs << " |\n| failures | " << totals.failures
     << " |\n| programs that no size fits | " << totals.untried << " |\n| values equal | " << totals.equal
     << " |\n| values within their bounds | " << totals.bounded << " |\n| values that are not finite | "
     << totals.infinite << " |\n| seconds | " << uint64_t(seconds) << " |\n\n";
  for (const auto &[name, number] : totals.classes)
    os << "- " << name << ": " << number << "\n";
  os << "\n| operator | times |\n|---|---:|\n";
  for (const auto &[name, number] : totals.operators) {
    std::string text;
    for (char c : name)
      text += c == '|' ? "&#124;" : std::string(1, c);
    os << "| `" << text << "` | " << number << " |\n";
  }
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Checks specifications made at random\n");
  // One thread per process: the processes are the parallelism.
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/0);
  disableOperators(without);
  if (seed.getNumOccurrences())
    return runOne();
  auto start = std::chrono::steady_clock::now();
  Totals totals;
  checkAll(first, count, jobs, makeOptions(), timeLimit, [&](uint64_t number, const Result &result) {
    ++totals.programs;
    totals.equal += result.equal;
    totals.bounded += result.bounded;
    totals.infinite += result.infinite;
    totals.untried += result.failure.empty() && !result.tried;
    Program program = makeProgram(number);
    for (const auto &[name, times] : program.counts())
      totals.operators[name] += times;
    if (printText && !minimise)
      llvm::outs() << "// seed " << number << "\n" << program.print();
    if (result.failure.empty())
      return;
    ++totals.failures;
    ++totals.classes[result.failure];
    report(number, result);
  });
  std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  llvm::outs() << totals.programs << " programs, " << totals.failures << " failures, " << totals.untried
               << " without sizes; " << totals.equal << " values equal, " << totals.bounded << " within their bounds, "
               << totals.infinite << " not finite\n";
  for (const auto &[name, number] : totals.classes)
    llvm::outs() << "  " << name << ": " << number << "\n";
  if (!table.empty()) {
    std::error_code error;
    llvm::raw_fd_ostream os(table, error);
    if (error) {
      llvm::errs() << "moa-random: cannot write " << table << ": " << error.message() << "\n";
      return 2;
    }
    writeTable(totals, spent.count(), os);
  }
  return totals.failures != 0;
}
