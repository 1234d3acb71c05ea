//===- Compiler.cpp - the public interface --------------------------------===//

#include "moa/Compiler.h"
#include "lib/Analysis/MathText.h"
#include "lib/Compiler/CompilationImpl.h"
#include "lib/Target/CPU/EntryPoints.h"
#include "lib/Target/GPU/Header.h"
#include "lib/Target/Manifest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace moa {

static const char *const kLevelNames[] = {"moa", "dnf", "onf", "lifted", "vector", "llvm", "device"};

const char *getLevelName(Level level) { return kLevelNames[static_cast<int>(level)]; }

std::optional<Level> parseLevel(const std::string &name) {
  for (size_t k = 0; k < std::size(kLevelNames); ++k)
    if (name == kLevelNames[k])
      return static_cast<Level>(k);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Compiler
//===----------------------------------------------------------------------===//

Compiler::Compiler(CompilerOptions options) : options(std::move(options)) {}

Compilation Compiler::compileText(const std::string &text, const std::string &name) const {
  auto impl = std::make_unique<Compilation::Impl>(options);
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
  if (!llvm::isLegalUTF8String(&begin, begin + text.size()))
    impl->log.addError(name + ": the text is not UTF-8; the first malformed byte is at offset " +
                       llvm::Twine(reinterpret_cast<const char *>(begin) - text.data()));
  else
    impl->read(text, name);
  return Compilation(std::move(impl));
}

Compilation Compiler::compileFile(const std::string &path) const {
  auto fail = [&](const llvm::Twine &message) {
    auto impl = std::make_unique<Compilation::Impl>(options);
    impl->log.addError(message);
    return Compilation(std::move(impl));
  };
  if (path != "-" && llvm::sys::fs::is_directory(path))
    return fail(path + ": this is a directory");
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return fail(path + ": " + buffer.getError().message());
  return compileText((*buffer)->getBuffer().str(), path == "-" ? "<stdin>" : path);
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

Compilation::Compilation(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Compilation::Compilation(Compilation &&) = default;
Compilation &Compilation::operator=(Compilation &&) = default;
Compilation::~Compilation() = default;

bool Compilation::ok() const { return !impl->log.hasErrors(); }
Level Compilation::inputLevel() const { return impl->getEntryLevel(); }
const std::vector<Diagnostic> &Compilation::diagnostics() const { return impl->log.get(); }
std::string Compilation::renderDiagnostics(bool remarks, const std::string &program) const {
  return impl->log.render(remarks, program);
}
const std::vector<KernelInfo> &Compilation::kernels() const { return impl->infos; }
const std::vector<StageTime> &Compilation::times() const { return impl->times; }

/// Prints one kernel's module of a level after Lifted.
static bool printKernel(Compilation::Impl &impl, unsigned kernel, Level level, llvm::raw_ostream &os) {
  if (level == Level::LLVM) {
    llvm::Module *module = impl.getLLVM(kernel, /*packed=*/false);
    if (module)
      module->print(os, nullptr);
    return module;
  }
  mlir::ModuleOp module = impl.getKernelModule(kernel, level);
  if (module)
    module.print(os);
  return bool(module);
}

std::optional<std::string> Compilation::print(Level level) {
  if (!impl->isOpen())
    return std::nullopt;
  std::string text;
  llvm::raw_string_ostream os(text);
  if (level == Level::Device) {
    mlir::ModuleOp device = impl->getDeviceModule();
    if (!device)
      return std::nullopt;
    device.print(os);
    os << "\n";
    return text;
  }
  if (level > Level::Lifted) {
    for (unsigned kernel = 0; kernel < impl->signatures.size(); ++kernel) {
      if (kernel)
        os << (level == Level::LLVM ? "\n; -----\n\n" : "\n// -----\n\n");
      if (!printKernel(*impl, kernel, level, os))
        return std::nullopt;
    }
    return text;
  }
  mlir::ModuleOp module = impl->getModule(level);
  if (!module)
    return std::nullopt;
  module.print(os);
  os << "\n";
  return text;
}

std::optional<std::string> Compilation::mathematics() {
  if (!impl->isOpen())
    return std::nullopt;
  std::string text;
  for (const KernelInfo &kernel : kernels()) {
    text += "kernel " + kernel.text + "\n";
    for (Level level : {Level::DNF, Level::ONF}) {
      if (level < impl->getEntryLevel())
        continue;
      mlir::Operation *op = impl->getKernelOp(kernel.name, level);
      if (!op)
        return std::nullopt;
      text += std::string("\n") + (level == Level::DNF ? "Denotational" : "Operational") + " normal form\n\n" +
              printMathematics(op) + "\n";
    }
  }
  return text;
}

std::optional<std::vector<char>> Compilation::object() {
  if (!impl->isOpen())
    return std::nullopt;
  const llvm::SmallVectorImpl<char> *bytes = impl->getObject(/*packed=*/false);
  if (!bytes)
    return std::nullopt;
  return std::vector<char>(bytes->begin(), bytes->end());
}

std::optional<std::string> Compilation::header() {
  if (!impl->isOpen())
    return std::nullopt;
  std::string guard = "MOA_KERNELS";
  for (unsigned k = 0; k < impl->signatures.size(); ++k) {
    if (!impl->checkEntryName(k))
      return std::nullopt;
    guard += "_" + llvm::StringRef(impl->signatures[k].name).upper();
  }
  guard += "_H";
  if (!impl->findShown())
    return std::nullopt;
  if (!impl->options.architecture.empty())
    return gpu::printHeader(impl->signatures, guard, impl->getBinding());
  llvm::TargetMachine *machine = impl->getTargetMachine(/*host=*/false);
  if (!machine)
    return std::nullopt;
  std::optional<bool> usesTiles = impl->usesTiles();
  if (!usesTiles)
    return std::nullopt;
  return cpu::printHeader(impl->signatures, guard, cpu::getProcessor(*machine, *usesTiles), impl->getBinding());
}

std::optional<std::string> Compilation::manifest() {
  if (!impl->isOpen())
    return std::nullopt;
  if (!impl->options.architecture.empty()) {
    std::optional<PTXFiles> files = ptx();
    return files ? std::optional(std::move(files->manifest)) : std::nullopt;
  }
  for (unsigned k = 0; k < impl->signatures.size(); ++k)
    if (!impl->checkEntryName(k))
      return std::nullopt;
  return printManifest(impl->signatures);
}

std::optional<std::string> Compilation::report(ReportFormat format, const std::map<std::string, int64_t> &symbols) {
  return impl->isOpen() ? printReport(*impl, format, symbols) : std::nullopt;
}

} // namespace moa
