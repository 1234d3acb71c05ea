//===- TileHelpers.h - device functions for tiles ---------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_TILEHELPERS_H
#define MOA_TARGET_CUDA_TILEHELPERS_H

#include <cstdint>
#include <set>
#include <string>

namespace moa::cuda {

/// The name of a function that issues one wgmma of 64 x `columns` x 16, which the
/// file will then hold. Operand a comes from registers or shared memory; b stands
/// by rows (k along them, template argument 0) or by columns (1).
std::string requestContraction(int64_t columns, bool isBF16, bool fromRegisters,
                               std::set<std::string> &helpers);

/// The definitions of the tile functions among `helpers`.
std::string printTileHelpers(const std::set<std::string> &helpers);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_TILEHELPERS_H
