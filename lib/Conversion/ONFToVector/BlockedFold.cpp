//===- BlockedFold.cpp - folds in blocks of keys --------------------------===//
#include "lib/Conversion/ONFToVector/Nest.h"

namespace moa::rows {
bool emitBlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex,
                     int64_t vectorsPerTile) {
  return false;
}
} // namespace moa::rows
