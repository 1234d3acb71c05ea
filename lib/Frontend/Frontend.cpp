//===- Frontend.cpp - from a specification to the moa dialect -------------===//
#include "lib/Frontend/Frontend.h"
#include "lib/Frontend/Elaborator.h"
#include "lib/Frontend/Parser.h"
#include "lib/Frontend/Resolver.h"
#include "lib/Support/SourceLine.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

static constexpr char preludeText[] = {
#include "lib/Frontend/PreludeText.inc"
};

StringRef moa::getPreludeText() { return StringRef(preludeText, sizeof(preludeText)); }

/// Returns the name of the compile-time constant that each extent of the header is, by array and
/// axis. The name is empty for other extents.
static std::vector<std::vector<std::string>> findConstants(const KernelDecl &kernel) {
  std::vector<std::vector<std::string>> arrays;
  for (const std::vector<ArrayDecl> *decls : {&kernel.params, &kernel.results})
    for (const ArrayDecl &decl : *decls) {
      arrays.emplace_back();
      for (const ExprPtr &extent : decl.shape) {
        bool isConstant = extent->kind == ExprKind::Name && llvm::any_of(kernel.symbols, [&](const SymbolDecl &symbol) {
                            return symbol.kind == SymbolDecl::Constant && symbol.name == extent->name;
                          });
        arrays.back().push_back(isConstant ? extent->name : "");
      }
    }
  return arrays;
}

OwningOpRef<ModuleOp> moa::parseMoA(StringRef text, StringRef filename, const FrontendOptions &options,
                                    MLIRContext *context) {
  context->loadDialect<MoADialect>();
  Reporter reporter(context, filename);
  Program program;
  if (options.usePrelude && failed(parseProgram(getPreludeText(), SourceLoc::Prelude, reporter, program)))
    return nullptr;
  if (failed(parseProgram(text, SourceLoc::User, reporter, program)))
    return nullptr;
  if (program.kernels.empty()) {
    reporter.error(SourceLoc()) << "the specification has no kernel";
    return nullptr;
  }
  if (failed(resolveNames(program, reporter)) || failed(checkSettings(program, options.settings, reporter)))
    return nullptr;
  OpBuilder builder(context);
  OwningOpRef<ModuleOp> module(ModuleOp::create(FileLineColLoc::get(context, filename, 1, 1)));
  for (const KernelDecl &kernel : program.kernels) {
    auto signature = resolveSignature(kernel, options.settings, options.replacedTolerances, reporter);
    if (failed(signature))
      return nullptr;
    builder.setInsertionPointToEnd(module->getBody());
    Elaborator elaborator(program, kernel, std::move(*signature), reporter, builder);
    if (failed(elaborator.run()))
      return nullptr;
  }
  if (failed(verify(*module)))
    return nullptr;
  if (options.constants)
    for (const KernelDecl &kernel : program.kernels)
      (*options.constants)[kernel.name] = findConstants(kernel);
  return module;
}

SourceDiagnosticHandler::SourceDiagnosticHandler(StringRef text, StringRef filename, MLIRContext *context,
                                                 llvm::raw_ostream &os)
    : sources{{filename.str(), text.str()}, {"prelude.moa", getPreludeText().str()}},
      handler(context, [this, &os](Diagnostic &diagnostic) { print(diagnostic, os); }) {}

static StringRef getLabel(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note: ";
  case DiagnosticSeverity::Warning:
    return "warning: ";
  case DiagnosticSeverity::Remark:
    return "remark: ";
  case DiagnosticSeverity::Error:
    return "error: ";
  }
  return "";
}

void SourceDiagnosticHandler::print(const Diagnostic &diagnostic, llvm::raw_ostream &os) const {
  auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
  if (place)
    os << place.getFilename().getValue() << ':' << place.getLine() << ':' << place.getColumn() << ": ";
  os << getLabel(diagnostic.getSeverity()) << diagnostic.str() << '\n';
  auto source = place ? sources.find(place.getFilename().str()) : sources.end();
  if (source != sources.end())
    os << renderSourceLine(source->second, place.getLine(), place.getColumn());
  for (const Diagnostic &note : diagnostic.getNotes())
    print(note, os);
}
