//===- Tolerances.h - the errors that results may have ----------*- C++ -*-===//
#ifndef MOA_PIPELINES_TOLERANCES_H
#define MOA_PIPELINES_TOLERANCES_H

#include "lib/Support/Tolerance.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace moa {

/// Reads tolerances, by the name of their result, from words `O=3e-2,relative,sampled`.
llvm::Expected<std::map<std::string, Tolerance>> readTolerances(llvm::ArrayRef<std::string> words);

/// Sets the tolerance of every result of such a name, in every kernel of moa, dnf or onf, in place
/// of any earlier one.
llvm::Error setTolerances(mlir::ModuleOp module, const std::map<std::string, Tolerance> &tolerances);

} // namespace moa

#endif // MOA_PIPELINES_TOLERANCES_H
