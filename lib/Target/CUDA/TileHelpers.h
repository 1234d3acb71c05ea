//===- TileHelpers.h - device functions for tiles ---------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_TILEHELPERS_H
#define MOA_TARGET_CUDA_TILEHELPERS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <set>
#include <string>

namespace moa::cuda {

/// Returns the name of a macro for one wgmma of 64 x `columns` x 32 bytes and adds it to `helpers`.
/// The operand type is "BF16", "F16", "S8" or "E4M3". Macro parameters are the sums, the descriptor
/// of b, the add predicate, the text of operand a (registers or descriptor from %`columns`/2 + 2
/// on), signs and transpositions if the type has any, and operand a.
std::string requestContraction(int64_t columns, llvm::StringRef type, std::set<std::string> &helpers);

std::string printTileHelpers(const std::set<std::string> &helpers);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_TILEHELPERS_H
