//===- Report.cpp - what the compiler found out ---------------------------===//

#include "lib/Compiler/CompilationImpl.h"
#include "dialects/ONF/IR/ONF.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

std::optional<std::string> printReport(Compilation::Impl &unit,
                                       ReportFormat format) {
  return std::string();
}

} // namespace moa
