//===- LevelCheck.h - checks that passes find their level -------*- C++ -*-===//
#ifndef MOA_PIPELINES_LEVELCHECK_H
#define MOA_PIPELINES_LEVELCHECK_H

namespace mlir {
class PassManager;
} // namespace mlir

namespace moa {

/// Reports the first pass that finds no kernel of its level in a module with kernels of other
/// levels, and sets `found`. Such a pass would change nothing.
void addLevelCheck(mlir::PassManager &passes, bool &found);

} // namespace moa

#endif // MOA_PIPELINES_LEVELCHECK_H
