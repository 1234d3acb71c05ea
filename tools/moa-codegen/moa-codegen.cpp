//===- moa-codegen.cpp - compiles a specification -------------------------===//
//
// Turns flags into the options of moa::Compiler and writes the results. All outputs are generated
// before the first one is written, so an error leaves no files.
//
//===----------------------------------------------------------------------===//

#include "lib/Support/OutputFiles.h"
#include "moa/Compiler.h"
#include "tools/CompilationFlags.h"
#include "tools/OptionSet.h"
#include "tools/Schedule.h"
#include "tools/Version.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

static moa::OptionSet optionSet("moa-codegen options");

static cl::list<std::string> inputs(cl::Positional, cl::desc("<specification>"), optionSet);
static cl::opt<std::string> output("o", cl::value_desc("file"),
                                   cl::desc("Where the code goes; - for "
                                            "standard output"),
                                   optionSet);
static cl::opt<std::string> target("target", cl::init("cpu"), cl::value_desc("cpu|cuda|ptx|cubin"),
                                   cl::desc("The kind of code: cpu gives an object file, cuda CUDA C++, ptx PTX "
                                            "with a launcher in C and a manifest, cubin machine code of a GPU"),
                                   optionSet);
static cl::opt<std::string> arch("arch", cl::value_desc("name"), cl::desc("The GPU architecture: sm_90a"), optionSet);
static cl::opt<std::string> processor("mcpu", cl::value_desc("name"),
                                      cl::desc("The processor, by its LLVM name; default: this one"), optionSet);
static cl::opt<std::string> binding("binding", cl::value_desc("tvm-ffi"),
                                    cl::desc("Add functions for the calling convention of a library to the entry "
                                             "points: tvm-ffi"),
                                    optionSet);
static cl::opt<std::string> emit("emit", cl::value_desc("level"),
                                 cl::desc("Stop at a level and write its text: moa, dnf, onf, lifted, "
                                          "vector, llvm, device; or math: the normal forms as mathematics"),
                                 optionSet);
static cl::opt<std::string> header("header", cl::value_desc("file"),
                                   cl::desc("Where the C header of the entry points goes"), optionSet);
static cl::opt<std::string> manifest("manifest", cl::value_desc("file"),
                                     cl::desc("Where the JSON description of the entry points goes, for launchers"),
                                     optionSet);
static cl::opt<std::string> report("report", cl::value_desc("text|json"),
                                   cl::desc("Write data movement, workspace and schedule to standard "
                                            "output"),
                                   optionSet);
static cl::opt<bool> explain("explain", cl::desc("Write the derivation of the kernels to standard output, law by law"),
                             optionSet);
static cl::list<std::string> atList("at", cl::value_desc("symbol=value"),
                                    cl::desc("Add numbers to the report: a size for each run-time symbol"), optionSet);
static cl::opt<std::string> schedule("schedule", cl::value_desc("print|file"),
                                     cl::desc("Write the schedule to standard output, or read it from "
                                              "a file"),
                                     optionSet);
static moa::CompilationFlags compilationFlags(optionSet);
static cl::list<std::string> disabled("disable-rule", cl::value_desc("name"),
                                      cl::desc("Leave a law or a rule out (for tests)"), optionSet);
static cl::opt<std::string> dumpDirectory("dump-dir", cl::value_desc("directory"),
                                          cl::desc("Write every level into a directory"), optionSet);
static cl::opt<bool> decisions("decisions",
                               cl::desc("Add the decisions and error estimates of mixed-precision kernels to "
                                        "their results"),
                               optionSet);
static cl::opt<bool> remarks("remarks", cl::desc("Show the remarks of the passes on standard error"), optionSet);
static cl::opt<bool> timing("timing", cl::desc("Show the time of every stage on standard error"), optionSet);

static int fail(const Twine &message) {
  WithColor::error(errs(), "moa-codegen") << message << "\n";
  return 1;
}

static std::optional<std::string> checkFlags() {
  if (inputs.size() != 1)
    return inputs.empty() ? std::string("there is no specification to compile; see moa-codegen "
                                        "--help")
                          : "takes one specification, but got " + join(inputs, ", ") +
                                compilationFlags.explainNumber({inputs.begin(), inputs.end()});
  static const char *const targets[] = {"cpu", "cuda", "ptx", "cubin"};
  if (!is_contained(targets, target))
    return "there is no target '" + target + "'; there are cpu, cuda, ptx and cubin";
  if (target == "cpu" && !arch.empty())
    return "--arch names a GPU; --target=cpu takes --mcpu";
  if (target != "cpu" && !arch.empty() && arch != "sm_90a")
    return "there is no GPU architecture '" + arch + "'; there is sm_90a";
  if (processor.getNumOccurrences() && processor.empty())
    return "--mcpu expects the name of a processor; --mcpu=native is this one";
  if (target != "cpu" && !processor.empty())
    return std::string("--mcpu names a CPU; --target=" + target + " takes --arch");
  if (target != "cpu" && compilationFlags.optimization.getNumOccurrences())
    return std::string("-O is for CPU code, not for --target=" + target);
  if (target == "cubin" && !header.empty())
    return std::string("machine code of a GPU has no entry points for C; --header goes with "
                       "--target=cpu, cuda and ptx");
  if (binding.getNumOccurrences() && binding != "tvm-ffi")
    return "there is no binding '" + binding + "'; there is tvm-ffi";
  if (target == "cubin" && !binding.empty())
    return std::string("machine code of a GPU has no entry points for C; --binding goes with "
                       "--target=cpu, cuda and ptx");
  if (!emit.empty() && emit != "math" && !moa::parseLevel(emit))
    return "there is no level '" + emit + "'; there are moa, dnf, onf, lifted, vector, llvm, device and math";
  if (!report.empty() && report != "text" && report != "json")
    return "--report is text or json, not '" + report + "'";
  if (!atList.empty() && report.empty())
    return std::string("--at adds numbers to a report; give --report=text or json too");
  StringRef named = StringSwitch<StringRef>(sys::path::extension(output))
                        .Cases({".cu", ".cuh"}, "cuda")
                        .Case(".ptx", "ptx")
                        .Case(".cubin", "cubin")
                        .Cases({".o", ".obj"}, "cpu")
                        .Default(target);
  if (emit.empty() && named != target)
    return "-o " + output + " names a file of --target=" + named.str() + ", but the target is " + target +
           (target.getNumOccurrences() ? "" : ", the default") + "; give that target or another name";
  if (output.empty() && header.empty() && manifest.empty() && emit.empty() && report.empty() && schedule != "print" &&
      !explain)
    return std::string("nothing to write; give -o, --header, --manifest, --emit, --explain, --report "
                       "or --schedule=print");
  return std::nullopt;
}

/// Reads the values of --at; returns false for a malformed one.
static bool readSymbols(std::map<std::string, int64_t> &symbols) {
  for (const std::string &word : atList) {
    auto [name, text] = StringRef(word).split('=');
    int64_t value = 0;
    if (name.empty() || text.getAsInteger(10, value) || value < 0) {
      fail("--at takes SYMBOL=VALUE, not '" + word + "'; a size is an integer from 0 to 2^63 - 1");
      return false;
    }
    if (!symbols.emplace(name.str(), value).second) {
      fail("--at gives '" + name + "' two sizes");
      return false;
    }
  }
  return true;
}

struct Artefact {
  std::string path;
  std::string contents;
};

static bool add(std::vector<Artefact> &artefacts, StringRef path, std::optional<std::string> contents) {
  if (contents)
    artefacts.push_back({path.str(), std::move(*contents)});
  return contents.has_value();
}

/// Adds NAME.ptx, NAME.c and NAME.json.
static bool addPTX(std::vector<Artefact> &artefacts, moa::Compilation &compilation) {
  std::optional<moa::PTXFiles> files = compilation.ptx();
  if (!files)
    return false;
  artefacts.push_back({output, files->text});
  if (output == "-")
    return true;
  auto beside = [](StringRef extension) {
    SmallString<128> path(output);
    sys::path::replace_extension(path, extension);
    return path.str().str();
  };
  artefacts.push_back({beside(".c"), files->launcher});
  artefacts.push_back({beside(".json"), files->manifest});
  return true;
}

/// Generates all outputs that the flags ask for; returns false after an error.
static bool makeArtefacts(moa::Compilation &compilation, std::vector<Artefact> &artefacts) {
  StringRef textPath = output.empty() ? "-" : StringRef(output);
  if (emit == "math" && !add(artefacts, textPath, compilation.mathematics()))
    return false;
  if (auto level = moa::parseLevel(emit); level && !add(artefacts, textPath, compilation.print(*level)))
    return false;
  if (schedule == "print" && !add(artefacts, "-", compilation.schedule()))
    return false;
  std::map<std::string, int64_t> symbols;
  if (!readSymbols(symbols))
    return false;
  if (!report.empty() &&
      !add(artefacts, "-",
           compilation.report(report == "json" ? moa::ReportFormat::JSON : moa::ReportFormat::Text, symbols)))
    return false;
  if (explain && !add(artefacts, "-", compilation.explain()))
    return false;
  if (!header.empty() && !add(artefacts, header, compilation.header()))
    return false;
  if (!manifest.empty() && !add(artefacts, manifest, compilation.manifest()))
    return false;
  if (!emit.empty() || output.empty())
    return true;
  if (target == "cuda")
    return add(artefacts, output, compilation.cuda());
  if (target == "ptx")
    return addPTX(artefacts, compilation);
  std::optional<std::vector<char>> object = target == "cubin" ? compilation.cubin() : compilation.object();
  return object && add(artefacts, output, std::string(object->begin(), object->end()));
}

static Error write(const std::vector<Artefact> &artefacts) {
  moa::OutputFiles files;
  files.protect(inputs.front());
  files.protect(compilationFlags.plans);
  if (!schedule.empty() && schedule != "print")
    files.protect(schedule);
  for (const Artefact &artefact : artefacts)
    if (Error error = files.add(artefact.path, artefact.contents))
      return error;
  return files.commit();
}

static void printTimes(const moa::Compilation &compilation) {
  double total = 0;
  for (const moa::StageTime &time : compilation.times()) {
    errs() << format("%10.1f ms  ", 1e3 * time.seconds) << time.stage << "\n";
    total += time.seconds;
  }
  errs() << format("%10.1f ms  ", 1e3 * total) << "total\n";
}

extern "C" int moa_codegen_main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  optionSet.join();
  optionSet.hideOthers();
  moa::setVersionPrinter();
  cl::ParseCommandLineOptions(argc, argv, "Compiles array specifications to kernels\n");
  if (std::optional<std::string> wrong = checkFlags())
    return fail(*wrong);
  moa::CompilerOptions options;
  options.disabledRules.assign(disabled.begin(), disabled.end());
  options.processor = processor;
  options.binding = binding;
  if (target != "cpu")
    options.architecture = arch.empty() ? "sm_90a" : arch.getValue();
  options.dumpDirectory = dumpDirectory;
  options.explain = explain;
  options.accuracy.emplace().decisions = decisions;
  if (Error error = compilationFlags.apply(options))
    return fail(toString(std::move(error)));
  if (!schedule.empty() && schedule != "print")
    if (Error error = moa::readSchedule(schedule, options))
      return fail(toString(std::move(error)));
  moa::Compilation compilation = moa::Compiler(options).compileFile(inputs.front());
  std::vector<Artefact> artefacts;
  bool made = compilation.ok() && makeArtefacts(compilation, artefacts) && compilation.ok();
  errs() << compilation.renderDiagnostics(remarks, "moa-codegen");
  if (!made)
    return 1;
  if (timing)
    printTimes(compilation);
  if (Error error = write(artefacts))
    return fail(toString(std::move(error)));
  return 0;
}
