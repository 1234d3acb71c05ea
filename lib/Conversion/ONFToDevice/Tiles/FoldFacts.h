//===- FoldFacts.h - properties of a fold's states --------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_FOLDFACTS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_FOLDFACTS_H

#include "lib/Conversion/ONFToDevice/Tiles/Context.h"

namespace moa::tiles {

/// A correction factor c(d, d'), which rescales states from old references to new ones. States
/// with equal factors share it.
struct Rescale {
  mutable onf::AccOp acc; // one of the states
  llvm::SmallVector<unsigned> refs;
  unsigned pass;     // after which the references are known
  bool needsStarted; // the references do not record whether they were regular
};

/// A product s·u of a score s with a factor u.
struct ScaledScore {
  mlir::Value value, factor;
};

/// What is known of a fold before its kernel is emitted.
struct FoldFacts {
  explicit FoldFacts(const TilePlan &plan);
  /// Returns the number of a state without axes.
  unsigned numberOf(mlir::Value state) const;
  /// Returns the terms of a state as tiles reduce them. A bound is separate if it can be evaluated
  /// once per row, also for rows that see no key.
  rows::SplitTerm termsOf(onf::AccOp acc) const;

  const TilePlan &plan;
  llvm::SmallVector<Rescale> rescales;
  llvm::SmallVector<int> rescaleOfScalar, rescaleOfAccumulator; // -1: none
  llvm::SmallVector<bool> isReference;                          // per scalar
  bool lazy = false;                                            // rescaling is conditional
  bool readsMemory = false;                                     // the states or the guard load more than the operands
  bool statesRead = false;                                      // the states do
  llvm::SmallVector<onf::LoadOp> readOnce;                      // loads with one address per block
  llvm::SmallVector<ScaledScore> scaledScores;                  // per score; null: none

private:
  int addRescale(onf::AccOp acc);
  void planRescales();
  llvm::DenseSet<mlir::Operation *> findLoadsOfBounds();
  bool isSameForBlock(onf::LoadOp load);
  void findLoads();
  bool isReadOnce(mlir::Value value);
  void findScaledScores();
};

/// Returns the value of an expression in which some leaves are known; nullopt if it depends on
/// others.
std::optional<double> valueWhere(mlir::Value value, llvm::DenseMap<mlir::Value, double> &known);
/// Returns whether 0 < u < 2¹²⁷, so that u·log₂e is finite.
mlir::Value keepsOrder(ScalarCode &code, mlir::Value u);
/// Returns whether all uses of a difference are exponentials of it.
bool isExponent(mlir::Value difference);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_FOLDFACTS_H
