//===- LevelCheck.h - passes meet the level they are for --------*- C++ -*-===//
#ifndef MOA_PIPELINES_LEVELCHECK_H
#define MOA_PIPELINES_LEVELCHECK_H

namespace mlir {
class PassManager;
} // namespace mlir

namespace moa {

/// Reports the first pass that finds no kernel of the level it works on in a module of
/// kernels of other levels, and sets `found`. Such a pass changes nothing by itself.
void addLevelCheck(mlir::PassManager &passes, bool &found);

} // namespace moa

#endif // MOA_PIPELINES_LEVELCHECK_H
