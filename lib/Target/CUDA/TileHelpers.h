//===- TileHelpers.h - device functions for tiles ---------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_TILEHELPERS_H
#define MOA_TARGET_CUDA_TILEHELPERS_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <set>
#include <string>

namespace moa::cuda {

/// The name of a macro for one wgmma of 64 x `columns` x 32 bytes of operands of a type
/// ("BF16", "F16", "S8"), which the file will then hold: the sums, the descriptor of b,
/// whether to add, the text of operand a (its registers or descriptor start at
/// %`columns`/2 + 2), signs and transpositions where the type has some, operand a.
std::string requestContraction(int64_t columns, llvm::StringRef type,
                               std::set<std::string> &helpers);

/// The definitions of the tile functions among `helpers`.
std::string printTileHelpers(const std::set<std::string> &helpers);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_TILEHELPERS_H
