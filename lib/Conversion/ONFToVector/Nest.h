//===- Nest.h - one row nest as functions -----------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_NEST_H
#define MOA_CONVERSION_ONFTOVECTOR_NEST_H

#include "lib/Conversion/ONFToVector/Emitter.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"

namespace moa::rows {

/// Reports what this lowering does not know; nothing is emitted after a failure.
mlir::LogicalResult checkKernel(onf::KernelOp kernel);

/// Writes the functions of one nest.
class NestEmitter {
public:
  NestEmitter(onf::KernelOp kernel, onf::ForOp nest, unsigned number,
              const ArgumentBlock &block, Dependence &deps,
              const ONFToVectorOptions &options);
  /// Appends the functions to the module of the builder; false after an error.
  bool emit(mlir::OpBuilder builder);
  int64_t getScratchBytes() const { return emitter.scratchBytes; }

private:
  void emitTasks(mlir::OpBuilder builder);
  void emitTask(mlir::Value task);
  void overFactors(unsigned axis, mlir::ArrayRef<mlir::Value> digits);
  void emitTile(mlir::Value firstRow);
  void emitTileFold(onf::FoldOp fold);
  void emitRowCode();
  void emitStores(mlir::Block &block, mlir::Value laneMask);
  mlir::Value laneIndex();
  int64_t tileOf(unsigned axis) const { return tiles[axis]; }
  mlir::StringRef extentOf(unsigned axis);

  onf::ForOp nest;
  unsigned number;
  ONFToVectorOptions options;
  llvm::SmallVector<int64_t> tiles; // rows per task, per axis
  Emitter emitter;
};

/// Opens the scope of vector number `v` of the tile and binds its rows.
void bindRows(Emitter &emitter, Scope &scope, mlir::Value laneIndex, mlir::Value v);

/// Writes a fold in blocks of its index with contractions as register-tiled
/// products; false, with nothing written, where its form does not allow it.
bool emitBlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex,
                     int64_t vectorsPerTile);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_NEST_H
