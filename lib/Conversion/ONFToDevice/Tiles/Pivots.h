//===- Pivots.h - exponents of large references -----------------*- C++ -*-===//
//
// The exponent of e^(x − m) is one fused multiply-add, x·log₂e − m·log₂e, whose second product is
// rounded once per row. This scales all weights of a row by one factor, at most 2^(m·2⁻²⁴). It is
// harmless if |m| is small, and may be infinite otherwise. In tiles with a row of large |m|, x − m
// replaces x, and 0 replaces m. The same code then computes (x − m)·log₂e − 0. The branch of
// conditional rescaling decides this, so that elements cost nothing if no row is large
// (docs/Spec.md, Lemma 19).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_PIVOTS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_PIVOTS_H

#include "lib/Conversion/ONFToDevice/Tiles/Running.h"

namespace moa::tiles {

/// A value of the row that the exponents of some elements subtract, or that they are subtracted
/// from.
struct Pivot {
  mlir::Value value, reference; // onf value, and the fragment that holds it
  llvm::SmallVector<unsigned, 2> elements;
};

class Pivots : WarpgroupPart {
public:
  Pivots(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const WarpgroupRows &rows)
      : WarpgroupPart(context, code, rows), facts(facts) {}
  /// Returns the pivots that are references of states of a pass.
  llvm::SmallVector<Pivot> findReferences(const Tile &tile, unsigned pass);
  /// Returns the references of pivots, then the fragments of their elements.
  Values valuesOf(llvm::ArrayRef<Pivot> pivots, const Tile &tile);
  Values shiftLarge(const Tile &tile, llvm::ArrayRef<Pivot> pivots);
  /// Replaces the pivots and elements of a tile with the results of `shiftLarge`.
  void takeShifted(Tile &tile, llvm::ArrayRef<Pivot> pivots, mlir::ValueRange values);
  void shiftByRows(Tile &tile);

private:
  bool isOfRowAlone(mlir::Value value);
  mlir::Value pivotOf(const Element &element);
  llvm::SmallVector<Pivot> findPivots(const Tile &tile, llvm::function_ref<bool(mlir::Value)> isKnown);
  mlir::Value nearestMultiple(mlir::Value reference, mlir::Value inverse);
  mlir::Value shiftElement(const Element &element, mlir::Value reference);
  mlir::Value shiftReference(const Element &element, mlir::Value reference, mlir::Value large);

  const FoldFacts &facts;
};

/// Returns |value| > 1024; `finite` excludes infinities.
mlir::Value isLarge(ScalarCode &code, mlir::Value value, bool finite);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_PIVOTS_H
