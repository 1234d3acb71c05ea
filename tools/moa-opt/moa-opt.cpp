//===- moa-opt.cpp - runs passes on .mlir and .moa files ------------------===//
//
// Registers the project's dialects and passes with MLIR's optimiser driver. A file whose name ends
// in `.moa` is a specification: the front end converts it to a module first.
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/Frontend.h"
#include "lib/Pipelines/LevelCheck.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Pipelines/Tolerances.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/OptionSet.h"
#include "tools/Version.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

static moa::OptionSet optionSet("moa-opt options");

static llvm::cl::list<std::string> settings("set", llvm::cl::value_desc("NAME=VALUE"),
                                            llvm::cl::desc("Value of a symbol or an element type (.moa input only)"),
                                            optionSet);

static llvm::cl::list<std::string> tolerances("within", llvm::cl::value_desc("RESULT=NUMBER[,relative][,sampled]"),
                                              llvm::cl::desc("The error that a result may have (.moa input only)"),
                                              optionSet);

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "moa-opt") << message << "\n";
  return 1;
}

/// Returns the moa module of a specification as text with the user's locations, or null after an
/// error.
static std::unique_ptr<llvm::MemoryBuffer> elaborate(const llvm::MemoryBuffer &source, llvm::StringRef name,
                                                     const mlir::DialectRegistry &registry) {
  auto refuse = [](const llvm::Twine &message) {
    fail(message);
    return nullptr;
  };
  moa::FrontendOptions options;
  for (const std::string &setting : settings) {
    auto [key, value] = llvm::StringRef(setting).split('=');
    if (key.empty() || value.empty())
      return refuse("--set takes NAME=VALUE, but got '" + setting + "'");
    if (!options.settings.try_emplace(key.str(), value.str()).second)
      return refuse("'" + key + "' is set twice");
  }
  auto given = moa::readTolerances(std::vector<std::string>(tolerances.begin(), tolerances.end()));
  if (!given)
    return refuse(llvm::toString(given.takeError()));
  for (const auto &[result, tolerance] : *given)
    options.replacedTolerances.insert(result);
  mlir::MLIRContext context(registry);
  moa::SourceDiagnosticHandler handler(source.getBuffer(), name, &context, llvm::errs());
  auto module = moa::parseMoA(source.getBuffer(), name, options, &context);
  if (!module)
    return nullptr;
  if (llvm::Error error = moa::setTolerances(*module, *given))
    return refuse(llvm::toString(std::move(error)));
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  // A separate name, because its locations refer to the specification.
  return llvm::MemoryBuffer::getMemBufferCopy(text, "<elaborated>");
}

extern "C" int moa_opt_main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  optionSet.join();
  moa::setVersionPrinter();
  mlir::DialectRegistry registry;
  moa::registerDialects(registry);
  moa::registerPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(argc, argv, "MoA optimiser driver\n", registry);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = mlir::openInputFile(input, &error);
  if (!buffer)
    return fail(error);
  if (llvm::StringRef(input).ends_with(".moa")) {
    buffer = elaborate(*buffer, input, registry);
    if (!buffer)
      return 1;
  } else if (!tolerances.empty()) {
    return fail("--within is for specifications; write the attribute 'within' into " + input);
  }
  const auto flags = mlir::MlirOptMainConfig::createFromCLOptions();
  auto config = flags;
  bool wrongLevel = false;
  config.setPassPipelineSetupFn([&](mlir::PassManager &passes) {
    moa::addLevelCheck(passes, wrongLevel);
    passes.getContext()->printOpOnDiagnostic(false);
    return flags.setupPassPipeline(passes);
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  bool done = mlir::succeeded(mlir::MlirOptMain(os, std::move(buffer), registry, config));
  if (!done || wrongLevel)
    return 1;
  // Opened last, so that an error leaves a file as it is.
  auto file = mlir::openOutputFile(output, &error);
  if (!file)
    return fail(error);
  file->os() << text;
  file->keep();
  return 0;
}
