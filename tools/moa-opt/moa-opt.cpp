//===- moa-opt.cpp - runs passes on .mlir and .moa files ------------------===//
//
// Registers the project's dialects and passes with MLIR's optimiser driver. A file whose name ends
// in `.moa` is a specification: the front end converts it to a module first.
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/Frontend.h"
#include "lib/Pipelines/LevelCheck.h"
#include "lib/Pipelines/ReadModule.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Pipelines/Tolerances.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/ToolUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "tools/CommandLine.h"
#include "tools/Version.h"
#include "tools/moa-opt/PassFlags.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

static llvm::cl::list<std::string> settings("set", llvm::cl::value_desc("NAME=VALUE"),
                                            llvm::cl::desc("Value of a symbol or an element type (.moa input only)"));

static llvm::cl::list<std::string> tolerances("within", llvm::cl::value_desc("RESULT=NUMBER[,relative][,sampled]"),
                                              llvm::cl::desc("The error that a result may have (.moa input only)"));

/// Returns the moa module of a specification as text with the user's locations.
static std::unique_ptr<llvm::MemoryBuffer> elaborate(const llvm::MemoryBuffer &source, llvm::StringRef name,
                                                     const mlir::DialectRegistry &registry) {
  moa::FrontendOptions options;
  for (const std::string &setting : settings) {
    auto [key, value] = llvm::StringRef(setting).split('=');
    if (key.empty() || value.empty()) {
      llvm::errs() << "moa-opt: error: --set takes NAME=VALUE, but got '" << setting << "'\n";
      return nullptr;
    }
    if (!options.settings.try_emplace(key.str(), value.str()).second) {
      llvm::errs() << "moa-opt: error: '" << key << "' is set twice\n";
      return nullptr;
    }
  }
  auto fail = [](llvm::Error error) {
    llvm::errs() << "moa-opt: error: " << llvm::toString(std::move(error)) << '\n';
    return nullptr;
  };
  auto given = moa::readTolerances(std::vector<std::string>(tolerances.begin(), tolerances.end()));
  if (!given)
    return fail(given.takeError());
  for (const auto &[result, tolerance] : *given)
    options.replacedTolerances.insert(result);
  mlir::MLIRContext context(registry);
  moa::SourceDiagnosticHandler handler(source.getBuffer(), name, &context, llvm::errs());
  auto module = moa::parseMoA(source.getBuffer(), name, options, &context);
  if (!module)
    return nullptr;
  if (llvm::Error error = moa::setTolerances(*module, *given))
    return fail(std::move(error));
  std::string text;
  llvm::raw_string_ostream os(text);
  module->print(os, mlir::OpPrintingFlags().enableDebugInfo());
  // A separate name, because its locations refer to the specification.
  return llvm::MemoryBuffer::getMemBufferCopy(text, "<elaborated>");
}

/// Returns true if the text of a level can be parsed. Errors are printed in the compiler's words,
/// before MLIR's driver prints its own.
static bool isReadable(const llvm::MemoryBuffer &buffer, llvm::StringRef name, const mlir::DialectRegistry &registry,
                       const mlir::MlirOptMainConfig &config) {
  size_t at = 0;
  auto read = [&](std::unique_ptr<llvm::MemoryBuffer> chunk, llvm::raw_ostream &) {
    // Prepend empty lines, so that line numbers are those of the whole file.
    if (size_t found = buffer.getBuffer().find(chunk->getBuffer(), at); found != llvm::StringRef::npos)
      at = found;
    std::string text(buffer.getBuffer().take_front(at).count('\n'), '\n');
    text += chunk->getBuffer();
    at += chunk->getBufferSize();
    mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
    context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
    moa::SourceDiagnosticHandler handler(buffer.getBuffer(), name, &context, llvm::errs());
    return mlir::success(bool(moa::readModule(text, name, &context)));
  };
  auto whole = llvm::MemoryBuffer::getMemBuffer(buffer.getMemBufferRef());
  return mlir::succeeded(mlir::splitAndProcessBuffer(std::move(whole), mlir::NoSourceChunkBufferHandler(read),
                                                     llvm::nulls(), config.inputSplitMarker()));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  moa::setVersionPrinter();
  mlir::DialectRegistry registry;
  moa::registerDialects(registry);
  moa::registerPasses();
  std::string header = mlir::registerCLIOptions("MoA optimiser driver\n", registry);
  if (moa::refuseWrongFlag(argc, argv, "moa-opt"))
    return 1;
  if (std::optional<std::string> wrong = moa::findWrongPass(argc, argv)) {
    llvm::WithColor::error(llvm::errs(), "moa-opt") << *wrong << "\n";
    return 1;
  }
  auto [input, output] = mlir::parseCLIOptions(argc, argv, header);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = mlir::openInputFile(input, &error);
  if (buffer && llvm::StringRef(input).ends_with(".moa"))
    if (!(buffer = elaborate(*buffer, input, registry)))
      return 1;
  const auto flags = mlir::MlirOptMainConfig::createFromCLOptions();
  bool isText = buffer && !llvm::StringRef(input).ends_with(".moa");
  if (isText && !tolerances.empty()) {
    llvm::errs() << "moa-opt: error: --within is for specifications; write the attribute 'within' "
                    "into "
                 << input << '\n';
    return 1;
  }
  // Tests that verify MLIR's messages need the original wording.
  if (isText && !flags.shouldVerifyDiagnostics() && !flags.shouldShowDialects() &&
      !isReadable(*buffer, input, registry, flags))
    return 1;
  auto file = buffer ? mlir::openOutputFile(output, &error) : nullptr;
  if (!file) {
    llvm::errs() << "moa-opt: error: " << error << '\n';
    return 1;
  }
  auto config = flags;
  bool wrongLevel = false;
  config.setPassPipelineSetupFn([&](mlir::PassManager &passes) {
    moa::addLevelCheck(passes, wrongLevel);
    if (!flags.shouldVerifyDiagnostics())
      moa::addRewording(*passes.getContext());
    return flags.setupPassPipeline(passes);
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  bool done = mlir::succeeded(mlir::MlirOptMain(os, std::move(buffer), registry, config));
  if (wrongLevel)
    return 1;
  file->os() << text;
  if (!done)
    return 1;
  file->keep();
  return 0;
}
