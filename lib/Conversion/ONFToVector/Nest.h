//===- Nest.h - emits the functions of one nest -----------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_NEST_H
#define MOA_CONVERSION_ONFTOVECTOR_NEST_H

#include "lib/Conversion/ONFToVector/Emitter.h"
#include "lib/Conversion/ONFToVector/ONFToVector.h"
#include "lib/Conversion/ONFToVector/Running.h"

namespace moa::rows {

/// Reports an error for each part of the kernel that cannot be lowered. Nothing may be emitted
/// after a failure.
mlir::LogicalResult checkKernel(onf::KernelOp kernel);

/// Emits the functions of one nest.
class NestEmitter {
public:
  /// `chosen` is the condition under which the nest runs, or null. `merging`: emits the second nest
  /// of a split one, which merges its parts.
  NestEmitter(onf::KernelOp kernel, onf::ForOp nest, mlir::Value chosen, unsigned number, const ArgumentBlock &block,
              Dependence &deps, const ONFToVectorOptions &options, bool merging = false);
  /// Appends the functions to the module of the builder. Returns false after an error.
  bool emit(mlir::OpBuilder builder);
  int64_t getScratchBytes() const { return emitter.scratchBytes; }
  bool isSplit() { return bool(split); }
  /// Describes the shared workspace of the parts and the sizes for which it is needed.
  std::string getSharedText();

private:
  void emitTasks(mlir::OpBuilder builder);
  void countTasks(mlir::OpBuilder builder, llvm::StringRef suffix,
                  llvm::function_ref<mlir::Value(Emitter &, mlir::Value)> result);
  void emitTask(mlir::Value taskNumber);
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
  const SymExpr &extentOf(unsigned axis);

  //===--- Ranges in parts (Split.cpp) ------------------------------------===//
  struct Parts {
    mlir::Value count, taskPerPart; // whether each part is a task, or all parts are one
  };
  onf::FoldOp findSplit();
  void planTotals();
  Parts partsOf(Emitter &e);
  llvm::SmallVector<StateBuffer> totalsAt(mlir::Value base);
  mlir::Value sharedPart(mlir::Value partNumber);
  void overElements(llvm::ArrayRef<StateBuffer> buffers, llvm::function_ref<void(unsigned, mlir::Value)> body);
  void mergeParts(mlir::Value base, mlir::Value from, mlir::Value to,
                  llvm::function_ref<llvm::SmallVector<StateBuffer>(mlir::Value)> partOf);
  llvm::SmallVector<StateBuffer> emitPart(mlir::Value partNumber);
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
  std::optional<RunningFold> running;    // along an axis that tasks do not split
  onf::FoldOp split;                     // or null
  llvm::SmallVector<StateBuffer> totals; // layout of a part's states, without storage
  llvm::SmallVector<int64_t> offsets;
  int64_t partBytes = 0;
  Parts parts;
  mlir::Value task, taskPart; // number of the task and, if it is one part, of that
};

/// Opens the scope of vector number `v` of the tile and binds its rows.
void bindRows(Emitter &emitter, Scope &scope, mlir::Value laneIndex, mlir::Value v);

/// Emits a fold in blocks of its index, with contractions as register-tiled products. Returns
/// false, with nothing emitted, if the fold has no plan (FoldPlan.h).
bool emitBlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex, int64_t vectorsPerTile,
                     const ONFToVectorOptions &options);

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_NEST_H
