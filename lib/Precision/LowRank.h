//===- LowRank.h - few keys for many ----------------------------*- C++ -*-===//
//
// A fold over keys j whose terms are g(i, row(i)·key(j)) × v(j) is computed over classes c of keys
// that are near each other: over a key κ_c of each, with the number n_c of its members in place of
// 1 and the sum W_c of their values in place of v (law F2 of docs/LowRank.md). A plan is a number
// of classes. In front of it stand the nests that look for keys that are near each other, and those
// that choose the κ_c among the keys and sum up what belongs to them.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_PRECISION_LOWRANK_H
#define MOA_PRECISION_LOWRANK_H

#include "lib/Precision/Adapter.h"
#include "llvm/ADT/SetVector.h"

namespace moa::precision {

/// There are at most a multiple of so many classes, and one for so many keys. Behind them stand odd
/// keys, which are near none of them: at most one of so many.
inline constexpr int64_t kClassUnit = 64, kKeysPerClass = 16, kKeysPerOdd = 32;

/// Blocks of rows that do not have the same keys, and what their length is a multiple of: tiles of
/// rows are of one block.
inline constexpr int64_t kBlocks = 16, kBlockUnit = 128;

/// Where values are fitted, one class for so many keys, and the fewest; at most twice as many with
/// odd keys.
inline constexpr int64_t kKeysPerFitted = 128, kFewestFitted = 512;

/// Seeds that tell how many classes there are, and keys that are compared with them.
inline constexpr int64_t kPilot = 128, kPilotKeys = 4096, kCountParts = 64;
/// A key whose distance to another class is the radius belongs to that to e^{-kSharpness/2}.
inline constexpr double kSharpness = 8;

/// Indices in front of the rows, and more of them.
inline llvm::SmallVector<mlir::Value> at(mlir::ValueRange head,
                                         std::initializer_list<mlir::Value> more) {
  llvm::SmallVector<mlir::Value> indices(head);
  llvm::append_range(indices, more);
  return indices;
}

/// t(i, d) = Σ_j w(i, j) · v(j, d), a state of the fold that carries an axis.
struct WeightedSum {
  mutable onf::AccOp acc;
  mutable onf::LoadOp load; // of v
  mlir::Value factor;       // v as it is multiplied
};

class KeyClasses final : public Chooser {
public:
  KeyClasses(onf::KernelOp kernel, onf::ForOp nest, const Options &options, int64_t fewest)
      : Chooser(kernel, nest, options), fewest(fewest) {}

  /// Whether the nest is of this form; `why` says why not.
  bool plan(std::string &why);
  void run();

private:
  unsigned numPlans() const override { return 1; }
  std::string describe(unsigned plan) override;
  llvm::SmallVector<std::string> listLaws(unsigned plan) override;
  void rewrite(Copy &copy, unsigned plan, mlir::ValueRange rowIndices) override;
  mlir::Value loadMagnitude(Code &at, mlir::IRMapping &map) override;
  bool isMagnitudeSquare() override { return true; }
  bool errsWithMagnitude() override {
    return true;
  } // keys of a class differ in scores by as much as the query is long
  llvm::SmallVector<mlir::Value> addSample(unsigned plan, llvm::StringRef name = "_sample",
                                           mlir::Type element = {}) override;

  //===--- What there is --------------------------------------------------===//
  bool findSums(std::string &why);
  bool checkUses(std::string &why);
  const Score &score() { return scores[0]; }
  SymExpr numKeys() { return *SymExpr::parse(scores[0].outer.getExtent()); }
  SymExpr mostClasses() {
    return SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerClass)) + SymExpr(kClassUnit);
  }
  SymExpr mostOdd() { return SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerOdd)); }
  SymExpr depth() { return *SymExpr::parse(scores[0].fold.getExtent()); }

  //===--- Arrays over the axes in front of the rows -----------------------===//
  using Extents = llvm::SmallVector<mlir::Attribute>;
  std::pair<Extents, Extents> headed(llvm::StringRef name, const SymExpr &extent);
  mlir::Value addArray(llvm::StringRef suffix, llvm::ArrayRef<SymExpr> inner, mlir::Type element);
  mlir::IRMapping headMap(mlir::ValueRange head, mlir::Value row);
  mlir::Value loadKey(Code &at, mlir::ValueRange head, mlir::Value key, mlir::Value k);
  mlir::Value partStart(Code &code, mlir::Value part, const SymExpr &count, mlir::Value parts);
  mlir::Value hashedKey(Code &code, mlir::ValueRange head, mlir::Value part, mlir::Value parts,
                        int64_t salt);
  mlir::Value numClasses(Code &code, mlir::ValueRange head);
  mlir::Value numFirst(Code &code, mlir::ValueRange head);

  //===--- The nests in front ---------------------------------------------===//
  mlir::Value addMagnitudes(llvm::StringRef name, const SymExpr &extent, const Choice &where,
                            llvm::function_ref<mlir::Value(Code &, mlir::Value)> rowOf);
  void addRadius();
  mlir::Value
  addSeeds(llvm::StringRef suffix, const SymExpr &count, const Choice &where,
           llvm::function_ref<mlir::Value(Code &, mlir::ValueRange, mlir::Value)> keyOf);
  mlir::Value addHalfSquares(mlir::Value seeds, const SymExpr &count, const Choice &where);
  mlir::Value addNearest(mlir::Value keys, mlir::Value seeds, mlir::Value halves,
                         const SymExpr &count, const SymExpr &seedCount, const Choice &where,
                         mlir::Value (KeyClasses::*ends)(Code &, mlir::ValueRange));
  mlir::Value likeness(Code &at, mlir::ValueRange head, mlir::Value seeds, mlir::Value seed,
                       mlir::Value keys, mlir::Value key, bool seedFirst);
  mlir::Value addNearCounts(mlir::Value nearest, double radii, const Choice &where);
  mlir::Value addCounts(Code &code, mlir::ValueRange head, mlir::Value counts, mlir::Value where);
  Choice addChoiceOf(llvm::StringRef name);
  void addPilot();
  mlir::Value overVariate(Code &code, mlir::Value weight, mlir::ValueRange head, mlir::Value number,
                          int64_t salt);
  mlir::Value placeOfLargest(Code &code, llvm::StringRef index, const SymExpr &longest,
                             llvm::function_ref<mlir::Value(Code &, mlir::Value)> weightAt,
                             llvm::function_ref<mlir::Value(Code &, mlir::Value)> isThere);
  mlir::Value largestOfPart(Code &code, mlir::Value weights, mlir::ValueRange head,
                            mlir::Value part, const SymExpr &count, mlir::Value parts,
                            const SymExpr &longest);
  mlir::Value addLargest(llvm::StringRef name, mlir::Value weights, const SymExpr &count,
                         int64_t parts, const Choice &choice);
  mlir::Value addDrawn(mlir::Value nearest);
  mlir::Value isOdd(Code &in, mlir::ValueRange head, mlir::Value key, mlir::Value count,
                    mlir::Value shares);
  void addOdd(mlir::Value shares, const Choice &likely);
  mlir::Value roomForOdd(Code &code, mlir::ValueRange head);
  mlir::Value nearness(Code &in, mlir::ValueRange head, mlir::Value c, mlir::Value j,
                       mlir::Value halves, bool seedFirst);
  mlir::Value valueAt(Code &code, const WeightedSum &sum, mlir::ValueRange head, mlir::Value key,
                      mlir::Value column);
  SymExpr widthOf(const WeightedSum &sum);
  void addMeans(mlir::Value halves, mlir::Value shares);
  void addSums();
  void foldOverClasses(Copy &copy, mlir::ValueRange head);
  using ValueOf =
      llvm::function_ref<mlir::Value(Code &, unsigned sum, mlir::Value index, mlir::Value along)>;
  void readFrom(Copy &copy, onf::LoadOp old, llvm::function_ref<mlir::Value(Code &)> make);
  void readClasses(Copy &copy, mlir::ValueRange head, ValueOf valueOf = nullptr);
  void addClasses();

  //===--- Values that are right on some rows (Fitted.cpp) -----------------===//
  mlir::Value tighten(Code &code, mlir::ValueRange head, mlir::Value limit) override;
  bool findFit();
  bool mayFit() const { return fit.has_value(); }
  /// From so many rows and keys on values are fitted: with shorter rows what finds out is a larger
  /// part of the whole.
  int64_t fitFrom() {
    int64_t least = *depth().getConstant();
    return fewest == kFrom && least < kFitDepth ? kFrom * kFitDepth / least : fewest;
  }
  static constexpr int64_t kFitDepth = 64;
  void runFromFit(llvm::function_ref<void()> add);
  /// Places of the fold where values are fitted.
  SymExpr fittedPlaces() {
    return SymExpr::floorDiv(numKeys(), SymExpr(kKeysPerFitted / 2)) + SymExpr(2 * kFewestFitted);
  }
  mlir::Value isFitted(Code &code, mlir::ValueRange head) { return isTried(code, smooth, head); }
  RowSet rowSetOf(llvm::StringRef name, int64_t count, const Choice &where,
                  llvm::function_ref<mlir::Value(Code &, mlir::ValueRange, mlir::Value)> rowOf);
  mlir::Value hashedRow(Code &code, mlir::ValueRange head, mlir::Value part, int64_t parts,
                        int64_t salt);
  void addLikeness();
  mlir::Value isSmooth(Code &code, mlir::ValueRange head, mlir::Value where);
  mlir::Value numFitted(Code &code);
  void widenRadius(mlir::Value nearest);
  RowSet addFitRows();
  mlir::Value addShares();
  std::pair<mlir::Value, mlir::Value> addInverse(mlir::Value shares);
  std::pair<mlir::Value, mlir::Value> solveFit();
  void addFit();

  //===--- Rows that do not have the same keys (KeyBlocks.cpp) -------------===//
  bool findBound(std::string &why);
  bool isBounded() { return bool(bound.guard); }
  mlir::Value boundOfFirst(Code &code, mlir::ValueRange head);
  SymExpr blockLength();
  /// Places of the fold in a block: of classes, as many as there may be, and of keys behind them.
  SymExpr classPlaces() { return mostClasses() + mostOdd(); }
  SymExpr blockPlaces() { return classPlaces() + blockLength(); }
  void addBlockEnds();
  std::pair<Extents, Extents> blocked(llvm::StringRef name, const SymExpr &extent);
  struct Place {
    mlir::Value isClass, number; // of the class
    mlir::Value isOdd, odd;      // the odd key
    mlir::Value isOwn, own;      // from the block's first key on
  };
  Place readPlace(Code &code, mlir::ValueRange head, mlir::Value x);
  mlir::Value keyOfPlace(Code &code, mlir::ValueRange head, mlir::Value block, const Place &place);
  void addBlockKeys();
  void addBlockValues();
  void addBlockRows();
  void enterBlocks(Copy &copy, bool isSample);
  void leaveBlocks(Copy &copy, unsigned plan);

  /// Row i has the keys j ≤ i + Σ sign · rest + constant.
  struct Bound {
    onf::GuardOp guard;
    llvm::SetVector<mlir::Operation *> ops;               // of the condition, that know the key
    llvm::SmallVector<std::pair<mlir::Value, bool>> rest; // and whether it is added
    int64_t constant = 0;
  };

  /// The result that is a weighted sum's elements times what does not depend on them, so that it is
  /// linear in values: its number, and that of the sum, which no other result knows.
  struct Fit {
    unsigned result, sum;
  };

  /// From so many rows and keys on it is tried. Where nothing else is asked for, rows that bound
  /// keys have more, as sums up to each block of them are written and read: on an H200 it takes
  /// longer than what it saves at 32,768, and wins from a quarter to two thirds at 131,072
  /// (benchmarks/gpu/NOTES.md).
  int64_t from() { return isBounded() && fewest == kFrom ? 4 * kFrom : fewest; }
  static constexpr int64_t kFrom = 32768; // the pass's own
  int64_t fewest;
  Bound bound;
  mlir::Value blockFrom,
      blockKeys; // by block, of the keys that all of its rows have, and not of the one before
  mlir::Value blockStart, blockEnd; // the first place, and the last one of its first row
  mlir::Value blockRows;            // rows by block
  llvm::SmallVector<WeightedSum> sums;
  mlir::Value counts; // members of the classes, of the keys of a block where there are such
  llvm::SmallVector<mlir::Value> means;
  mlir::Value radius, sharpness;           // of classes, squared; and what it makes of distances
  mlir::Value pilotSeeds, pilotSeedHalves; // few keys, and half of their squares
  mlir::Value pilotKeys, pilotHalves; // more keys that are compared with them, and half of theirs
  Choice promising;                   // where classes are looked for
  mlir::Value classes;                // how many there are
  mlir::Value keyHalves;              // half of the square of each key
  mlir::Value classKeys, members;     // κ and n
  mlir::Value oddKeys, all; // which are near no class; and how many there are with the classes
  llvm::SmallVector<mlir::Value> classValues; // means, by weighted sum
  mlir::Value rowMagnitudes;
  std::optional<Fit> fit;
  mlir::Value alike;      // of some rows, how much of what others weigh they weigh too
  Choice smooth, fitting; // where values are to be fitted, and where they are
};

} // namespace moa::precision

#endif // MOA_PRECISION_LOWRANK_H
