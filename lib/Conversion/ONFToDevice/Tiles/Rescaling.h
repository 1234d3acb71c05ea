//===- Rescaling.h - states relative to references --------------*- C++ -*-===//
//
// A state that others refer to is a *reference*; in softmax it is the running maximum. It also has a
// value per row, which the other states use. (d, t) and (d', c(d, d') ⊗ t) are the same state, so
// this value need not be up to date. Hence rescaling is conditional. The value is updated and the
// states that use it are rescaled only if a factor c leaves a bound, and once more after the last
// tile.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_RESCALING_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_RESCALING_H

#include "lib/Conversion/ONFToDevice/Tiles/Pivots.h"

namespace moa::tiles {

class Rescaling : WarpgroupPart {
public:
  Rescaling(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const WarpgroupRows &rows)
      : WarpgroupPart(context, code, rows), facts(facts) {}
  Values factor(unsigned number, const Running &olds, const Running &news, llvm::StringRef name = "correction");
  mlir::Value mustRescale(const Running &olds, const Running &news, llvm::ArrayRef<Pivot> pivots);
  /// Returns a state rescaled by a factor.
  mlir::Value rescaled(onf::AccOp acc, mlir::Value state, mlir::Value factor, Over over);
  /// Returns (state ⊗ factor) ⊕ part, with one rounding if ⊗ and ⊕ are those of floats.
  mlir::Value merged(onf::AccOp acc, mlir::Value state, mlir::Value factor, mlir::Value part);
  void addOthers(onf::AccOp acc, mlir::ValueRange coefficients, const Running &olds, mlir::Value &partial);

private:
  mlir::Value bindRescale(const Rescale &rescale, mlir::ValueRange before, mlir::ValueRange after);
  mlir::Value isNearOne(onf::AccOp acc);
  bool isFarFromSingular(const Rescale &rescale);

  const FoldFacts &facts;
};

/// Returns whether all references have values for which the state is defined; null: always.
mlir::Value regular(ScalarCode &code, onf::AccOp acc, llvm::ArrayRef<mlir::Value> refs);
/// Returns whether a row's pivot may include an element: the pivot differs from its infinite
/// identity. For example, a maximum of −∞ includes no element, and its correction factor has no
/// meaning. Null if the identity is finite.
mlir::Value hasElements(ScalarCode &code, onf::AccOp reference, mlir::Value value);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_RESCALING_H
