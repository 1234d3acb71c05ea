//===- Nest.h - one row nest as functions -----------------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_NEST_H
#define MOA_CONVERSION_ONFTOVECTOR_NEST_H

#include "lib/Conversion/ONFToVector/Emitter.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Conversion/ONFToVector/Running.h"

namespace moa::rows {

/// Reports what this lowering does not know; nothing is emitted after a failure.
mlir::LogicalResult checkKernel(onf::KernelOp kernel);

/// Writes the functions of one nest.
class NestEmitter {
public:
  /// `chosen`: a value of the nest that says where it runs, or null. `merging`: the second
  /// nest of one whose range is split, which merges the parts.
  NestEmitter(onf::KernelOp kernel, onf::ForOp nest, mlir::Value chosen, unsigned number,
              const ArgumentBlock &block, Dependence &deps, const ONFToVectorOptions &options,
              bool merging = false);
  /// Appends the functions to the module of the builder; false after an error.
  bool emit(mlir::OpBuilder builder);
  int64_t getScratchBytes() const { return emitter.scratchBytes; }
  /// Whether a fold of the nest is split over cores.
  bool isSplit() { return bool(split); }
  /// What its parts take of the workspace, and where.
  std::string getSharedText();

private:
  void emitTasks(mlir::OpBuilder builder);
  void countTasks(mlir::OpBuilder builder, llvm::StringRef suffix,
                  llvm::function_ref<mlir::Value(Emitter &, mlir::Value)> result);
  void emitTask(mlir::Value task);
  void overFactors(unsigned axis, mlir::ArrayRef<mlir::Value> digits);
  void emitTile(mlir::Value firstRow);
  void emitRows(mlir::Value firstRow);
  void finishTile();
  void emitTileOf(onf::FoldOp fold);
  void emitTileFold(onf::FoldOp fold);
  bool isTileFold(onf::FoldOp fold);
  void emitRowCode();
  void emitColumns(onf::ForOp loop);
  void emitRunning();
  mlir::Value laneMask();
  void emitStores(mlir::Block &block, mlir::Value laneMask);
  mlir::Value laneIndex();
  int64_t tileOf(unsigned axis) const { return tiles[axis]; }
  mlir::StringRef extentOf(unsigned axis);

  //===--- Ranges in parts (Split.cpp) ------------------------------------===//
  struct Parts {
    mlir::Value count, few; // few: a task is one part
  };
  onf::FoldOp findSplit();
  void planTotals();
  Parts partsOf(Emitter &e);
  llvm::SmallVector<StateBuffer> totalsAt(mlir::Value base);
  mlir::Value sharedPart(mlir::Value number);
  void overElements(llvm::ArrayRef<StateBuffer> buffers,
                    llvm::function_ref<void(unsigned, mlir::Value)> body);
  void mergeParts(mlir::Value base, mlir::Value from, mlir::Value to,
                  llvm::function_ref<llvm::SmallVector<StateBuffer>(mlir::Value)> partOf);
  llvm::SmallVector<StateBuffer> emitPart(mlir::Value number);
  void emitParts();
  void emitMerge();
  void emitShared(mlir::OpBuilder builder);

  onf::ForOp nest;
  mlir::Value chosen;
  unsigned number;
  ONFToVectorOptions options;
  llvm::SmallVector<int64_t> tiles; // rows per task, per axis
  Emitter emitter;
  bool merging;
  bool hasColumns = false;               // the axis before the last one runs in blocks of columns
  std::optional<RunningFold> running;    // along an axis that tasks do not share
  onf::FoldOp split;                     // or null
  llvm::SmallVector<StateBuffer> totals; // of a part, without storage
  llvm::SmallVector<int64_t> offsets;
  int64_t partBytes = 0;
  Parts parts;
  mlir::Value task, group; // the tile and part of the task, where few
};

/// Opens the scope of vector number `v` of the tile and binds its rows.
void bindRows(Emitter &emitter, Scope &scope, mlir::Value laneIndex, mlir::Value v);

/// Writes a fold in blocks of its index with contractions as register-tiled
/// products; false, with nothing written, where its form does not allow it.
bool emitBlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex,
                     int64_t vectorsPerTile, const ONFToVectorOptions &options);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_NEST_H
