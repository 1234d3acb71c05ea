//===- moa-run.cpp - run a specification on real arrays -------------------===//
//
// Compiles for this CPU, runs, and compares with the reference interpreter.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Check.h"
#include "lib/Support/OutputFiles.h"
#include "tools/Schedule.h"
#include "tools/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>

using namespace llvm;

static cl::OptionCategory category("moa-run options");

static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<specification>"),
                                  cl::cat(category));
static cl::list<std::string>
    wordList(cl::Positional,
             cl::desc("<NAME=VALUE>...: a .npy file for an array, a number for "
                      "a scalar or a symbol"),
             cl::cat(category));
static cl::list<std::string> outputList("o", cl::value_desc("NAME=FILE.npy"),
                                        cl::desc("Write an output"),
                                        cl::cat(category));
static cl::list<std::string>
    settings("set", cl::value_desc("name=value"),
             cl::desc("Set a size or an element type of the specification"),
             cl::cat(category));
static cl::opt<std::string>
    kernelName("kernel", cl::value_desc("name"),
               cl::desc("The kernel to run, where there are several"),
               cl::cat(category));
static cl::opt<uint64_t>
    randomSeed("random", cl::value_desc("seed"),
               cl::desc("Make the arrays that are not given: floats are "
                        "standard normal, integers 0 to 7"),
               cl::cat(category));
static cl::opt<std::string>
    check("check", cl::ValueOptional, cl::value_desc("rows|all"),
          cl::desc("Compare sampled rows (16) or all with the interpreter; "
                   "fail beyond the tolerance of the element types"),
          cl::cat(category));
static cl::opt<unsigned> repeat("repeat", cl::init(1), cl::value_desc("n"),
                                cl::desc("Time n runs after one to warm up, "
                                         "show their median; default: one "
                                         "run"),
                                cl::cat(category));
static cl::opt<std::string>
    target("target", cl::init("cpu"), cl::value_desc("cpu|reference|device"),
           cl::desc("Run compiled code, the interpreter of the specification, or "
                    "the program for a GPU on this CPU, with checks"),
           cl::cat(category));
static cl::opt<uint64_t>
    interleaving("interleaving", cl::init(0), cl::value_desc("seed"),
                 cl::desc("With --target=device: let the warpgroups and copies of a "
                          "block take turns in a random order; 0: each as far as it "
                          "gets"),
                 cl::cat(category));
static cl::opt<std::string> schedule("schedule", cl::value_desc("file"),
                                     cl::desc("Read the schedule from a file, as "
                                              "moa-codegen --schedule=print writes it"),
                                     cl::cat(category));
static cl::list<std::string>
    disabled("disable-rule", cl::value_desc("name"), cl::Hidden,
             cl::desc("Leave a law or a rule out (for tests)"),
             cl::cat(category));

namespace {
using Clock = std::chrono::steady_clock;

double getSeconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

int fail(const Twine &message) {
  WithColor::error(errs(), "moa-run") << message << "\n";
  return 1;
}

/// The rows that --check asks for, 0 for all.
Expected<int64_t> getCheckedRows() {
  int64_t rows = 16;
  if (check == "all")
    return 0;
  if (!check.empty() && (StringRef(check).getAsInteger(10, rows) || rows < 1))
    return createStringError("--check takes a number of rows from 1, or 'all', "
                             "not '" +
                             check + "'");
  return rows;
}

/// One run of the tool, after the flags are known to be sound.
class Run {
public:
  Run(moa::Compilation unit, int64_t checkedRows)
      : unit(std::move(unit)), checkedRows(checkedRows) {}
  int execute();

private:
  /// Empty errors are those of the unit, which are in its diagnostics.
  Error run();
  Error checkLevel();
  Error choose();
  Error checkOutputNames();
  Error runCompiled();
  Error runInterpreter();
  Error checkResults(bool &good);
  Error writeOutputs();
  void printCompileTimes(double load);
  void printSpeed(double first, std::vector<double> times);
  Error unitError() { return createStringError(""); }

  moa::Compilation unit;
  int64_t checkedRows;
  moa::KernelInfo info;
  moa::Words files;
  moa::Arguments arguments;
};
} // namespace

/// Whether the input is at a level that the target runs and --check compares with.
Error Run::checkLevel() {
  moa::Level level = unit.inputLevel();
  std::string where = input + " is at the level " + moa::getLevelName(level);
  if (level == moa::Level::Device && target != "device")
    return createStringError(where + "; --target=device runs it");
  if (target == "reference" && level != moa::Level::MoA)
    return createStringError("--target=reference interprets specifications, but " + where);
  // Sampled rows are those of the level dnf.
  moa::Level last = checkedRows == 0 ? moa::Level::MoA : moa::Level::DNF;
  if (check.getNumOccurrences() && level > last)
    return createStringError("--check compares with the interpreter of the specification, but " +
                             where + "; check the specification, or compare what -o writes");
  return Error::success();
}

/// The kernel to run, by name or because there is one.
Error Run::choose() {
  std::vector<std::string> names;
  for (const moa::KernelInfo &kernel : unit.kernels()) {
    names.push_back(kernel.name);
    if (kernel.name == kernelName ||
        (kernelName.empty() && unit.kernels().size() == 1)) {
      info = kernel;
      return Error::success();
    }
  }
  return createStringError((kernelName.empty()
                                ? std::string("choose a kernel")
                                : "no kernel '" + kernelName + "'") +
                           "; there are " + join(names, ", "));
}

Error Run::checkOutputNames() {
  auto words = moa::splitWords({outputList.begin(), outputList.end()},
                               "-o takes NAME=FILE.npy");
  if (!words)
    return words.takeError();
  files = std::move(*words);
  for (const auto &[name, path] : files)
    if (none_of(info.parameters, [&name = name](const moa::ParameterInfo &p) {
          return p.isOutput && p.name == name;
        }))
      return createStringError("kernel '" + info.name + "' has no output '" +
                               name + "': " + info.text);
  return Error::success();
}

void Run::printCompileTimes(double load) {
  outs() << "compile  ";
  double lowered = 0, jit = 0;
  for (const moa::StageTime &time : unit.times()) {
    outs() << time.stage << format(" %.1f, ", 1e3 * time.seconds);
    bool late = time.stage == "optimise" || time.stage == "codegen" ||
                time.stage == "load";
    (late ? jit : lowered) += time.seconds;
  }
  outs() << format("ms: specification to lowered code %.3f s, machine code "
                   "%.3f s, in all %.3f s\n",
                   lowered, jit, load);
}

void Run::printSpeed(double first, std::vector<double> times) {
  double median = first;
  if (!times.empty()) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2,
                     times.end());
    median = times[times.size() / 2];
  }
  outs() << format("run      %.3f ms", 1e3 * median);
  if (!times.empty())
    outs() << format(" (median of %zu; first %.3f ms)", times.size(),
                     1e3 * first);
  if (auto flops = unit.flops(info.name, arguments.symbols, arguments.scalars))
    outs() << format(", %.1f GFLOP/s", *flops / median * 1e-9);
  double bytes = arguments.getInputBytes() + arguments.getOutputBytes();
  outs() << "\nbytes    " << moa::formatBytes(arguments.getInputBytes())
         << " in, " << moa::formatBytes(arguments.getOutputBytes()) << " out"
         << format(", %.2f GB/s\n", bytes / median * 1e-9);
}

Error Run::runCompiled() {
  Clock::time_point start = Clock::now();
  std::optional<moa::Kernel> kernel;
  {
    moa::Progress progress("compiling");
    kernel = unit.load(info.name);
  }
  if (!kernel)
    return unitError();
  double load = getSeconds(start);
  std::vector<const DLTensor *> tensors = arguments.getTensors();
  std::vector<double> times;
  double first = 0;
  {
    moa::Progress progress("running");
    unsigned more = repeat > 1 ? unsigned(repeat) : 0;
    for (unsigned k = 0; k <= more; ++k) {
      start = Clock::now();
      std::string message;
      if (int32_t code = (*kernel)(tensors, arguments.scalars, &message))
        return createStringError("the kernel refused the call, code " +
                                 Twine(code) + ": " + message);
      (k ? times.emplace_back() : first) = getSeconds(start);
      progress.advance(k + 1, more + 1);
    }
  }
  printCompileTimes(load);
  printSpeed(first, times);
  return Error::success();
}

Error Run::runInterpreter() {
  Clock::time_point start = Clock::now();
  std::optional<std::vector<moa::ReferenceArray>> results;
  moa::TileCounts tiles;
  {
    moa::Progress progress("running the interpreter");
    std::vector<moa::ReferenceArray> inputs = arguments.getReferences(info);
    results = target == "device"
                  ? unit.runDevice(info.name, inputs, arguments.symbols, interleaving, &tiles)
                  : unit.evaluate(info.name, moa::Level::MoA, inputs,
                                  /*roundoff=*/0, arguments.symbols);
  }
  if (!results)
    return unitError();
  for (size_t k = 0; k < results->size(); ++k)
    for (int64_t i = 0; i < arguments.outputs[k].getNumElements(); ++i)
      arguments.outputs[k].set(i, (*results)[k].data[i]);
  outs() << format("run      %.3f s in the interpreter\n", getSeconds(start));
  if (!tiles.copied.empty()) {
    const char *before = "tiles    copied: ";
    for (const auto &[array, count] : tiles.copied)
      outs() << std::exchange(before, ", ") << array << " " << count;
    outs() << "; guard evaluated in " << tiles.masked << "\n";
  }
  return Error::success();
}

Error Run::checkResults(bool &good) {
  auto errors =
      moa::checkOutputs(unit, info, arguments.getReferences(info),
                                  arguments.symbols, arguments.outputs,
                                  checkedRows, randomSeed + 1);
  if (!errors)
    return unitError();
  for (const moa::OutputError &error : *errors) {
    good &= error.ok();
    outs() << "check    " << error.name << ": " << error.rows << " of "
           << error.allRows << " rows, largest error "
           << format("%.2e, relative L2 error %.2e (bound %.0e)", error.maximum,
                     error.relative, error.tolerance);
    if (error.conditioning > 0)
      outs() << format("; one rounding per operation moves the reference by %.1e",
                       error.conditioning);
    if (error.illConditioned())
      outs() << ": ill-conditioned";
    outs() << (error.mismatch ? ", NaN or infinity at the wrong place" : "")
           << (error.ok() ? "\n" : ": FAILED\n");
  }
  return Error::success();
}

Error Run::writeOutputs() {
  moa::OutputFiles out;
  out.protect(input);
  out.protect(schedule);
  for (const std::string &word : wordList)
    out.protect(StringRef(word).split('=').second);
  for (const moa::Value &output : arguments.outputs) {
    auto file = files.find(output.getInfo().name);
    if (file != files.end())
      if (Error error = out.add(file->second, output.getNpy()))
        return error;
  }
  return out.commit();
}

Error Run::run() {
  if (!unit.ok())
    return unitError();
  if (Error error = checkLevel())
    return error;
  if (Error error = choose())
    return error;
  if (Error error = checkOutputNames())
    return error;
  auto words =
      moa::splitWords({wordList.begin(), wordList.end()}, "expects NAME=VALUE");
  if (!words)
    return words.takeError();
  std::optional<uint64_t> seed;
  if (randomSeed.getNumOccurrences())
    seed = randomSeed;
  {
    moa::Progress progress("preparing the arrays");
    auto made = moa::makeArguments(unit, info, *words, seed);
    if (!made)
      return made.takeError();
    arguments = std::move(*made);
  }
  if (target != "cpu" || check.getNumOccurrences())
    if (Error error = arguments.checkForInterpreters(info))
      return error;
  if (Error error = target == "cpu" ? runCompiled() : runInterpreter())
    return error;
  if (Error error = writeOutputs())
    return error;
  bool good = true;
  if (check.getNumOccurrences())
    if (Error error = checkResults(good))
      return error;
  outs().flush();
  return good ? Error::success()
              : createStringError("the result is not within the bound");
}

int Run::execute() {
  Error error = run();
  bool failed = bool(error);
  std::string message = toString(std::move(error));
  errs() << unit.renderDiagnostics();
  if (!message.empty())
    fail(message);
  return failed;
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  moa::setVersionPrinter();
  cl::ParseCommandLineOptions(argc, argv,
                              "Runs an array specification on this CPU\n");
  if (target != "cpu" && target != "reference" && target != "device")
    return fail("there is no target '" + target +
                "'; there are cpu, reference and device");
  if (interleaving.getNumOccurrences() && target != "device")
    return fail("--interleaving applies to --target=device only");
  if (repeat == 0)
    return fail("--repeat takes a number from 1");
  auto checkedRows = getCheckedRows();
  if (!checkedRows)
    return fail(toString(checkedRows.takeError()));
  moa::CompilerOptions options;
  options.settings.assign(settings.begin(), settings.end());
  options.disabledRules.assign(disabled.begin(), disabled.end());
  if (schedule == "print")
    return fail("--schedule takes a file; moa-codegen --schedule=print writes one");
  if (!schedule.empty())
    if (Error error = moa::readSchedule(schedule, options))
      return fail(toString(std::move(error)));
  return Run(moa::Compiler(options).compileFile(input), *checkedRows).execute();
}
