//===- LowRank.h - a fold over clusters of keys -----------------*- C++ -*-===//
//
// A fold over keys j with terms g(i, row(i)·key(j)) × v(j) runs over clusters c of similar keys
// instead (laws F2 and F9 of docs/Accuracy/LowRank.md). It uses one key κ_c of each, the number of
// members n_c in place of 1, and the sum W_c of their values in place of v. The nests before the
// copies choose the κ_c among the keys and sum up the members.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_LOWRANK_H
#define MOA_ACCURACY_LOWRANK_H

#include "lib/Accuracy/Selection/Adapter.h"

namespace moa::accuracy {

/// The largest number of clusters is M/kKeysPerCluster + kClusterUnit, of outliers M/kKeysPerOutlier.
inline constexpr int64_t kClusterUnit = 64, kKeysPerCluster = 16, kKeysPerOutlier = 32;

/// Seeds of the pilot, the keys that are compared with them, and the parts that count these.
inline constexpr int64_t kPilot = 128, kPilotKeys = 4096, kCountParts = 64;
/// A key at the distance of the radius from κ_c has the weight e^{-kSharpness/2} there.
inline constexpr double kSharpness = 8;

/// t(i, d) = Σ_j w(i, j) · v(j, d), a state of the fold that carries an axis.
struct ClusterSum {
  mutable onf::AccOp acc;
  mutable onf::LoadOp load; // of v
  mlir::Value factor;
};

class KeyClusters final : public Chooser {
public:
  KeyClusters(onf::KernelOp kernel, onf::ForOp nest, const Options &options, int64_t fewest)
      : Chooser(kernel, nest, options), fewest(fewest) {}

  bool plan(std::string &why);
  void run();

private:
  unsigned numPlans() const override { return 1; }
  std::string describe(unsigned plan) override;
  llvm::SmallVector<std::string> listLaws(unsigned plan) override;
  void rewrite(Copy &copy, unsigned plan, mlir::ValueRange rowIndices) override;
  mlir::Value loadMagnitude(Code &at, mlir::IRMapping &map) override;
  bool isMagnitudeSquare() override { return true; }

  //===--- The form of the nest ------------------------------------------===//
  bool findSums(std::string &why);
  bool checkUses(std::string &why);
  const ScoreFold &score() { return scores[0]; }
  SymExpr numKeys() { return scores[0].outer.getExtent(); }
  SymExpr mostClusters() { return SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerCluster)) + SymExpr(kClusterUnit); }
  SymExpr mostPlaces() { return mostClusters() + mostOutliers(); }
  SymExpr mostOutliers() { return SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerOutlier)); }
  SymExpr depth() { return scores[0].fold.getExtent(); }

  //===--- Arrays per head ------------------------------------------------===//
  /// Adds a nest over heads and one more index.
  void addNestOver(llvm::StringRef name, const SymExpr &extent, const Choice &where,
                   llvm::function_ref<void(Code &, mlir::ValueRange)> body);
  mlir::Value addArray(llvm::StringRef suffix, llvm::ArrayRef<SymExpr> inner, mlir::Type element);
  mlir::Value loadKey(Code &at, mlir::ValueRange head, mlir::Value key, mlir::Value k);
  mlir::Value partStart(Code &code, mlir::Value part, const SymExpr &count, mlir::Value parts);
  mlir::Value hashedKey(Code &code, mlir::ValueRange head, mlir::Value part, mlir::Value parts, int64_t salt);
  mlir::Value numClusters(Code &code, mlir::ValueRange head);
  mlir::Value numFirst(Code &code, mlir::ValueRange head);

  //===--- The nests before the copies -----------------------------------===//
  mlir::Value addMagnitudes(llvm::StringRef name, const SymExpr &extent, const Choice &where,
                            llvm::function_ref<mlir::Value(Code &, mlir::Value)> rowOf);
  void addRadius();
  mlir::Value addSeeds(llvm::StringRef suffix, const SymExpr &count, const Choice &where,
                       llvm::function_ref<mlir::Value(Code &, mlir::ValueRange, mlir::Value)> keyOf);
  mlir::Value addHalfSquares(mlir::Value seeds, const SymExpr &count, const Choice &where);
  mlir::Value addNearest(mlir::Value keys, mlir::Value seeds, mlir::Value halves, const SymExpr &count,
                         const SymExpr &seedCount, const Choice &where,
                         mlir::Value (KeyClusters::*ends)(Code &, mlir::ValueRange));
  mlir::Value likeness(Code &at, mlir::ValueRange head, mlir::Value seeds, mlir::Value seed, mlir::Value keys,
                       mlir::Value key, bool seedFirst);
  mlir::Value addNearCounts(mlir::Value nearest, double radii, const Choice &where);
  mlir::Value addCounts(Code &code, mlir::ValueRange head, mlir::Value partCounts, mlir::Value where);
  void addPilot();
  mlir::Value largestOfPart(Code &code, mlir::Value weights, mlir::ValueRange head, mlir::Value part,
                            const SymExpr &count, mlir::Value parts, const SymExpr &longest);
  mlir::Value addDrawn(mlir::Value nearest);
  mlir::Value isOutlier(Code &in, mlir::ValueRange head, mlir::Value key, mlir::Value count, mlir::Value shares);
  void addOutliers(mlir::Value shares, const Choice &likely);
  mlir::Value roomForOutliers(Code &code, mlir::ValueRange head);
  mlir::Value nearness(Code &in, mlir::ValueRange head, mlir::Value c, mlir::Value j, mlir::Value halves,
                       bool seedFirst);
  mlir::Value valueAt(Code &code, const ClusterSum &sum, mlir::ValueRange head, mlir::Value key, mlir::Value column);
  SymExpr widthOf(const ClusterSum &sum);
  void addMeans(mlir::Value halves, mlir::Value shares);
  void addSums();
  void foldOverClusters(Copy &copy, mlir::ValueRange head);
  void readFrom(Copy &copy, onf::LoadOp old, llvm::function_ref<mlir::Value(Code &)> make);
  void readClusters(Copy &copy, mlir::ValueRange head);
  void addClusters();

  int64_t fewest;
  llvm::SmallVector<ClusterSum> sums;
  mlir::Value counts; // members per cluster
  llvm::SmallVector<mlir::Value> means;
  mlir::Value radius, sharpness;           // squared; kSharpness / radius
  mlir::Value pilotSeeds, pilotSeedHalves; // seeds of the pilot, half of their squares
  mlir::Value pilotKeys, pilotHalves;      // keys compared with them, half of theirs
  Choice promising;                        // heads that get clusters
  mlir::Value clusterCount;
  mlir::Value keyHalves; // half of the square of each key
  mlir::Value clusterKeys, members;
  mlir::Value outlierKeys, all; // outliers; number of clusters and outliers
  llvm::SmallVector<mlir::Value> clusterValues;
  mlir::Value rowMagnitudes;
};

} // namespace moa::accuracy

#endif // MOA_ACCURACY_LOWRANK_H
