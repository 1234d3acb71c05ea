//===- SpecificationFuzzer.cpp - any text as a specification --------------===//
//
// Text goes through the front end; what it accepts satisfies the contract of the moa
// level and comes back from its own printed form.
//
//===----------------------------------------------------------------------===//
#include "Context.h"
#include "dialects/MoA/IR/MoA.h"
#include "lib/Frontend/Frontend.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  mlir::MLIRContext &context =
      moa::fuzz::getContext([](mlir::DialectRegistry &registry) { registry.insert<moa::MoADialect>(); });
  auto module = moa::parseMoA(text, "fuzz.moa", {}, &context);
  if (!module)
    return 0;
  if (mlir::failed(mlir::verify(*module)))
    llvm::report_fatal_error("the front end's module does not verify");
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  if (!mlir::parseSourceString<mlir::ModuleOp>(printed, &context))
    llvm::report_fatal_error("the printed module does not parse");
  return 0;
}
