//===- Parser.h - syntax analysis -------------------------------*- C++ -*-===//
#ifndef MOA_FRONTEND_PARSER_H
#define MOA_FRONTEND_PARSER_H

#include "lib/Frontend/Lexer.h"

namespace moa::frontend {

/// Parses one text and appends its functions and kernels to `program`. Reports the first error and
/// then fails.
mlir::LogicalResult parseProgram(llvm::StringRef text, unsigned file, const Reporter &reporter, Program &program);

} // namespace moa::frontend

#endif // MOA_FRONTEND_PARSER_H
