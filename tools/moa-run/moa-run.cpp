//===- moa-run.cpp - runs a specification on arrays -----------------------===//
//
// Compiles for this CPU, runs, and compares with the reference interpreter.
//
//===----------------------------------------------------------------------===//

#include "Arguments.h"
#include "Check.h"
#include "Decisions.h"
#include "lib/Support/OutputFiles.h"
#include "lib/Support/Tolerance.h"
#include "tools/CompilationFlags.h"
#include "tools/Numbers.h"
#include "tools/OptionSet.h"
#include "tools/Schedule.h"
#include "tools/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemAlloc.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <memory>

using namespace llvm;

static moa::OptionSet optionSet("moa-run options");

static cl::opt<std::string> input(cl::Positional, cl::desc("<specification>"), optionSet);
static cl::list<std::string> wordList(cl::Positional,
                                      cl::desc("<NAME=VALUE>...: a .npy file for an array, a number for "
                                               "a scalar or a symbol"),
                                      optionSet);
static cl::list<std::string> outputList("o", cl::value_desc("NAME=FILE.npy"), cl::desc("Write an output"), optionSet);
static moa::CompilationFlags compilationFlags(optionSet);
static cl::opt<bool>
    decisions("decisions", cl::desc("Show the decisions and error estimates of a mixed-precision kernel"), optionSet);
static cl::opt<bool> remarks("remarks", cl::desc("Show the remarks of the passes on standard error"), optionSet);
static cl::opt<std::string> calibrate("calibrate", cl::value_desc("file"),
                                      cl::desc("Write the decisions of this run to a file, for --plans"), optionSet);
static cl::opt<std::string> kernelName("kernel", cl::value_desc("name"),
                                       cl::desc("The kernel to run, where there are several"), optionSet);
static cl::opt<std::string> randomSeed("random", cl::value_desc("seed"),
                                       cl::desc("Make the arrays that are not given: floats are "
                                                "standard normal, integers in their declared range, or 0 to 7"),
                                       optionSet);
static cl::opt<std::string> check("check", cl::ValueOptional, cl::value_desc("rows|all"),
                                  cl::desc("Compare sampled rows (16) or all with the interpreter; "
                                           "fail beyond the tolerance of the element types"),
                                  optionSet);
static cl::opt<std::string> repeat("repeat", cl::init("1"), cl::value_desc("n"),
                                   cl::desc("Time n runs after one to warm up, "
                                            "show their median; default: one "
                                            "run"),
                                   optionSet);
static cl::opt<std::string> target("target", cl::init("cpu"), cl::value_desc("cpu|reference|device"),
                                   cl::desc("Run compiled code, the interpreter of the specification, or "
                                            "the program for a GPU on this CPU, with checks"),
                                   optionSet);
static cl::opt<std::string>
    interleaving("interleaving", cl::init("0"), cl::value_desc("seed"),
                 cl::desc("With --target=device: run blocks, and let the warpgroups and copies of a "
                          "block take turns, in a random order; 0: by their numbers, and each as far as it "
                          "gets"),
                 optionSet);
static cl::opt<std::string> schedule("schedule", cl::value_desc("file"),
                                     cl::desc("Read the schedule from a file, as "
                                              "moa-codegen --schedule=print writes it"),
                                     optionSet);
static cl::list<std::string> disabled("disable-rule", cl::value_desc("name"),
                                      cl::desc("Leave a law or a rule out (for tests)"), optionSet);

namespace {
using Clock = std::chrono::steady_clock;

double getSeconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

int fail(const Twine &message) {
  WithColor::error(errs(), "moa-run") << message << "\n";
  return 1;
}

/// Returns the number of rows that --check compares; 0 for all.
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

struct Numbers {
  int64_t checkedRows = 0;
  uint64_t seed = 0, repeat = 1, interleaving = 0;
};

Expected<Numbers> readNumbers() {
  Numbers numbers;
  auto rows = getCheckedRows();
  if (!rows)
    return rows.takeError();
  numbers.checkedRows = *rows;
  struct Option {
    const cl::opt<std::string> &text;
    uint64_t &value;
    uint64_t low, high;
  };
  for (const Option &option :
       {Option{randomSeed, numbers.seed, 0, UINT64_MAX}, Option{repeat, numbers.repeat, 1, UINT32_MAX},
        Option{interleaving, numbers.interleaving, 0, UINT64_MAX}}) {
    if (!option.text.getNumOccurrences())
      continue;
    auto value = moa::readNumber(option.text.ArgStr, option.text, option.low, option.high);
    if (!value)
      return value.takeError();
    option.value = *value;
  }
  return numbers;
}

/// One run of the tool, after the flags have been checked.
class Run {
public:
  Run(moa::Compilation compilation, const Numbers &numbers)
      : compilation(std::move(compilation)), numbers(numbers), checkedRows(numbers.checkedRows) {}
  int execute();

private:
  /// Empty errors are errors of the compilation, which are in its diagnostics.
  Error run();
  Error checkLevel();
  Error choose();
  Error checkOutputNames();
  Error runCompiled();
  Error runInterpreter();
  Error checkResults(bool &good);
  void printDelivered(const moa::OutputError &error);
  std::string getRangeHint();
  /// Adds the outputs to `out`. If they do not exist yet, only tests that they can be written.
  Error addOutputs(moa::OutputFiles &out, bool exist);
  void printCompileTimes(double load);
  void printSpeed(double first, std::vector<double> times);
  Error compilationError() { return createStringError(""); }

  moa::Compilation compilation;
  Numbers numbers;
  int64_t checkedRows;
  moa::KernelInfo info;
  moa::Words files;
  moa::Arguments arguments;
  /// Names the results that are not proved to be within their tolerances.
  std::string notShown;
};
} // namespace

/// Checks that the target can run the level of the input, and that --check can compare with it.
Error Run::checkLevel() {
  moa::Level level = compilation.inputLevel();
  std::string where = input + " is at the level " + moa::getLevelName(level);
  if (level == moa::Level::Device && target != "device")
    return createStringError(where + "; --target=device runs it");
  if (target == "reference" && level != moa::Level::MoA)
    return createStringError("--target=reference interprets specifications, but " + where);
  // Sampled rows are evaluated on the dnf level.
  moa::Level last = checkedRows == 0 ? moa::Level::MoA : moa::Level::DNF;
  if (check.getNumOccurrences() && level > last)
    return createStringError("--check compares with the interpreter of the specification, but " + where +
                             "; check the specification, or compare the files of -o");
  return Error::success();
}

/// Selects the kernel by its name, or the only one.
Error Run::choose() {
  std::vector<std::string> names;
  for (const moa::KernelInfo &kernel : compilation.kernels()) {
    names.push_back(kernel.name);
    if (kernel.name == kernelName || (kernelName.empty() && compilation.kernels().size() == 1)) {
      info = kernel;
      return Error::success();
    }
  }
  return createStringError((kernelName.empty() ? std::string("choose a kernel") : "no kernel '" + kernelName + "'") +
                           "; there are " + join(names, ", "));
}

Error Run::checkOutputNames() {
  auto words = moa::splitWords({outputList.begin(), outputList.end()}, "-o takes NAME=FILE.npy");
  if (!words)
    return words.takeError();
  files = std::move(*words);
  for (const auto &[name, path] : files)
    if (none_of(info.parameters, [&name = name](const moa::ParameterInfo &p) { return p.isOutput && p.name == name; }))
      return createStringError("kernel '" + info.name + "' has no output '" + name + "': " + info.text);
  return Error::success();
}

void Run::printCompileTimes(double load) {
  outs() << "compile  ";
  double lowered = 0, jit = 0;
  for (const moa::StageTime &time : compilation.times()) {
    outs() << time.stage << format(" %.1f, ", 1e3 * time.seconds);
    bool late = time.stage == "optimise" || time.stage == "codegen" || time.stage == "load";
    (late ? jit : lowered) += time.seconds;
  }
  outs() << format("ms: specification to lowered code %.3f s, machine code "
                   "%.3f s, in all %.3f s\n",
                   lowered, jit, load);
}

void Run::printSpeed(double first, std::vector<double> times) {
  double median = first;
  if (!times.empty()) {
    std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
    median = times[times.size() / 2];
  }
  outs() << format("run      %.3f ms", 1e3 * median);
  if (!times.empty())
    outs() << format(" (median of %zu; first %.3f ms)", times.size(), 1e3 * first);
  if (auto flops = compilation.flops(info.name, arguments.symbols, arguments.scalars))
    outs() << format(", %.1f GFLOP/s", *flops / median * 1e-9);
  double bytes = arguments.getInputBytes() + arguments.getOutputBytes();
  outs() << "\nbytes    " << moa::formatBytes(arguments.getInputBytes()) << " in, "
         << moa::formatBytes(arguments.getOutputBytes()) << " out" << format(", %.2f GB/s\n", bytes / median * 1e-9);
}

Error Run::runCompiled() {
  Clock::time_point start = Clock::now();
  std::optional<moa::Kernel> kernel;
  {
    moa::Progress progress("compiling");
    kernel = compilation.load(info.name);
  }
  if (!kernel)
    return compilationError();
  double load = getSeconds(start);
  std::vector<const DLTensor *> tensors = arguments.getTensors();
  std::vector<double> times;
  double first = 0;
  {
    moa::Progress progress("running");
    unsigned more = numbers.repeat > 1 ? unsigned(numbers.repeat) : 0;
    std::string message;
    auto refused = [&](int64_t code) {
      return createStringError("the kernel refused the call, code " + Twine(code) + ": " + message);
    };
    if (int32_t code = kernel->check(tensors, &message))
      return refused(code);
    int64_t bytes = kernel->workspace(tensors, arguments.scalars);
    if (bytes < 0)
      return refused(-bytes);
    auto release = [bytes](void *memory) { deallocate_buffer(memory, bytes, 64); };
    std::unique_ptr<void, decltype(release)> workspace(bytes ? allocate_buffer(bytes, 64) : nullptr, release);
    for (unsigned k = 0; k <= more; ++k) {
      start = Clock::now();
      int32_t code = kernel->run(tensors, arguments.scalars, workspace.get(), bytes);
      (k ? times.emplace_back() : first) = getSeconds(start);
      if (code && code != moa::Kernel::kNotShown)
        return refused(code);
      progress.advance(k + 1, more + 1);
    }
    if (int32_t code = kernel->shown(tensors, arguments.scalars, workspace.get(), bytes, &message)) {
      if (code != moa::Kernel::kNotShown)
        return refused(code);
      notShown = message;
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
                  ? compilation.runDevice(info.name, inputs, arguments.symbols, numbers.interleaving, &tiles, &notShown)
                  : compilation.evaluate(info.name, moa::Level::MoA, inputs, {}, arguments.symbols);
  }
  if (!results)
    return compilationError();
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

/// Prints, for example, "O: error 1.9e-3 of 3e-2 allowed (relative L2 per index of [B, H], worst at
/// [1, 3])".
void Run::printDelivered(const moa::OutputError &error) {
  const moa::ParameterInfo &output = *find_if(info.parameters, [&](const moa::ParameterInfo &parameter) {
    return parameter.isOutput && parameter.name == error.name;
  });
  outs() << "within   " << error.name << ": error " << moa::getNumberText(error.delivered.error, 3) << " of "
         << moa::getNumberText(error.allowed->epsilon) << " allowed (";
  size_t leading = output.extents.size() - moa::getErrorAxes(output.extents.size());
  if (!error.allowed->isRelative)
    outs() << "component-wise";
  else
    outs() << "relative L2" << (leading ? " per index of [" : "")
           << join(ArrayRef(output.extents).take_front(leading), ", ") << (leading ? "]" : "");
  if (error.rows < error.allRows)
    outs() << ", of the rows compared";
  if (!error.delivered.worst.empty())
    outs() << ", worst at ["
           << join(map_range(error.delivered.worst, [](int64_t i) { return std::to_string(i); }), ", ") << "]";
  outs() << (error.keepsTolerance() ? ")\n" : "): FAILED\n");
}

/// For random inputs, suggests ranges for float inputs that have none.
std::string Run::getRangeHint() {
  SmallVector<StringRef> names;
  std::string example;
  for (const moa::ParameterInfo &parameter : info.parameters)
    if (!parameter.isOutput && !parameter.isScalar() && parameter.range.empty() && parameter.elementType != "bool" &&
        StringRef(parameter.elementType).contains('f') && llvm::none_of(wordList, [&](const std::string &word) {
          return StringRef(word).starts_with(parameter.name + "=");
        })) {
      names.push_back(parameter.name);
      if (example.empty())
        example = parameter.name + " : " + getTypeText(parameter);
    }
  if (!randomSeed.getNumOccurrences() || names.empty())
    return "";
  return "; declare the ranges that " + join(names, ", ") + (names.size() == 1 ? " has" : " have") +
         " in use, as in '" + example + " in -1.0..0'";
}

Error Run::checkResults(bool &good) {
  auto errors = moa::checkOutputs(compilation, info, arguments.getReferences(info), arguments.symbols,
                                  arguments.outputs, checkedRows, numbers.seed + 1);
  if (!errors)
    return compilationError();
  for (const moa::OutputError &error : *errors) {
    good &= error.ok();
    outs() << "check    " << error.name << ": " << error.rows << " of " << error.allRows << " rows, largest error "
           << format("%.2e, relative L2 error %.2e (bound %.0e", error.maximum, error.relative, error.tolerance);
    if (error.operands > 0)
      outs() << format(" and %.1e of rounded operands", error.operands);
    if (error.operands > error.kMostOfOperands)
      outs() << format(", of which %.1e count", error.kMostOfOperands);
    if (error.spendable > 0)
      outs() << ", and " << moa::getNumberText(error.spendable, 3) << " that may be spent"
             << (error.allowed->isRelative
                     ? ""
                     : ", " + moa::getNumberText(error.allowed->epsilon) + " of each component's magnitude");
    outs() << ")";
    if (error.ties > 0)
      outs() << "; " << error.ties << " more where a rounding decides";
    if (error.conditioning > 0)
      outs() << format("; one rounding per operation moves the reference by %.1e", error.conditioning);
    outs() << (error.mismatch ? ", NaN or infinity at the wrong place: " : "") << error.note;
    if (error.illConditioned() && !error.mismatch)
      outs() << ": UNDECIDED, as these inputs are ill-conditioned" << getRangeHint() << "\n";
    else
      outs() << (error.mismatch || error.relative > error.getBound() ? ": FAILED\n" : "\n");
    if (error.allowed)
      printDelivered(error);
  }
  return Error::success();
}

Error Run::addOutputs(moa::OutputFiles &out, bool exist) {
  out.protect(input);
  out.protect(schedule);
  out.protect(compilationFlags.plans);
  for (const std::string &word : wordList)
    out.protect(StringRef(word).split('=').second);
  for (const auto &[name, path] : files) {
    auto output = find_if(arguments.outputs,
                          [&name = name](const moa::HostArray &value) { return value.getInfo().name == name; });
    if (Error error = out.add(path, exist ? output->getNpy() : ""))
      return error;
  }
  if (!calibrate.empty())
    return out.add(calibrate, exist ? moa::getPlans(compilation, info, arguments.outputs) : "");
  return Error::success();
}

Error Run::run() {
  if (!compilation.ok())
    return compilationError();
  if (Error error = checkLevel())
    return error;
  if (Error error = choose())
    return error;
  if (!calibrate.empty() && compilation.inputLevel() > moa::Level::ONF)
    return createStringError("--calibrate: " + input + " is at the level " +
                             moa::getLevelName(compilation.inputLevel()) +
                             ", before which plans are taken; calibrate the specification");
  if (!calibrate.empty() && none_of(info.parameters, [](const moa::ParameterInfo &p) { return !p.decisionOf.empty(); }))
    return createStringError("--calibrate: kernel '" + info.name +
                             "' decides nothing, as no result has a tolerance (within) "
                             "that a plan can use; --remarks says why");
  if (Error error = checkOutputNames())
    return error;
  auto words = moa::splitWords({wordList.begin(), wordList.end()}, "expects NAME=VALUE");
  if (!words)
    return createStringError(toString(words.takeError()) +
                             compilationFlags.explainNumber({wordList.begin(), wordList.end()}));
  {
    moa::OutputFiles none;
    if (Error error = addOutputs(none, /*exist=*/false))
      return error;
  }
  std::optional<uint64_t> seed;
  if (randomSeed.getNumOccurrences())
    seed = numbers.seed;
  {
    moa::Progress progress("preparing the arrays");
    auto made = moa::makeArguments(compilation, info, *words, seed);
    if (!made)
      return made.takeError();
    arguments = std::move(*made);
  }
  if (target != "cpu" || check.getNumOccurrences())
    if (Error error = arguments.checkForInterpreters(info))
      return error;
  if (Error error = target == "cpu" ? runCompiled() : runInterpreter())
    return error;
  if (decisions)
    moa::printDecisions(outs(), info, arguments.outputs);
  moa::OutputFiles out;
  if (Error error = addOutputs(out, /*exist=*/true))
    return error;
  if (Error error = out.commit())
    return error;
  bool good = true;
  if (check.getNumOccurrences())
    if (Error error = checkResults(good))
      return error;
  outs().flush();
  if (!good)
    return createStringError("the result is not within the bound");
  return notShown.empty()
             ? Error::success()
             : createStringError(notShown + ". It was computed all the same; --no-tolerance-check takes it as it is");
}

int Run::execute() {
  Error error = run();
  bool failed = bool(error);
  std::string message = toString(std::move(error));
  errs() << compilation.renderDiagnostics(remarks, "moa-run");
  if (!message.empty())
    fail(message);
  return failed;
}

extern "C" int moa_run_main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  optionSet.join();
  optionSet.hideOthers();
  moa::setVersionPrinter();
  cl::ParseCommandLineOptions(argc, argv, "Runs an array specification on this CPU\n");
  if (target != "cpu" && target != "reference" && target != "device")
    return fail("there is no target '" + target + "'; there are cpu, reference and device");
  if (interleaving.getNumOccurrences() && target != "device")
    return fail("--interleaving applies to --target=device only");
  if (!schedule.empty() && target == "reference")
    return fail("--schedule applies to compiled code and to --target=device; --target=reference "
                "interprets the specification");
  if (repeat.getNumOccurrences() && target != "cpu")
    return fail("--repeat times compiled code; --target=" + target + " is an interpreter");
  if (input.empty())
    return fail("there is no specification to run; see moa-run --help");
  if (calibrate.getNumOccurrences() && calibrate.empty())
    return fail("--calibrate expects a file to write");
  auto numbers = readNumbers();
  if (!numbers)
    return fail(toString(numbers.takeError()));
  moa::CompilerOptions options;
  options.disabledRules.assign(disabled.begin(), disabled.end());
  options.accuracy.emplace();
  options.accuracy->decisions = decisions || !calibrate.empty();
  // Plans of a file are for a GPU.
  options.accuracy->variantsOfGpu = target == "device" || !calibrate.empty();
  if (Error error = compilationFlags.apply(options))
    return fail(toString(std::move(error)));
  bool isAsked = options.accuracy->decisions || options.accuracy->lowRankFrom > 0 ||
                 compilationFlags.spend.getNumOccurrences() > 0;
  if (target == "reference" && (isAsked || !compilationFlags.plans.empty()))
    return fail("--decisions, --calibrate, --low-rank, --plans and --spend apply to compiled code "
                "and to --target=device; "
                "--target=reference spends no accuracy");
  if (schedule == "print")
    return fail("--schedule takes a file; moa-codegen --schedule=print writes one");
  if (!schedule.empty())
    if (Error error = moa::readSchedule(schedule, options))
      return fail(toString(std::move(error)));
  return Run(moa::Compiler(options).compileFile(input), *numbers).execute();
}
