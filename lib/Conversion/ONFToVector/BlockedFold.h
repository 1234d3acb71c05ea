//===- BlockedFold.h - a planned fold while it is written -------*- C++ -*-===//
//
// For one tile of rows:
//
//   stage the row factors of the scores, transposed: rows last
//   for each block of BN keys that some row of the tile needs
//     stage the key factors: contiguous, in the compute type, unless the block is
//       whole and they can be read where they are
//     for each panel of RI vectors of rows
//       scores   S[j][rows]  register tiles of RJ keys × RI vectors
//       passes   states without axes, row operands P[j][rows] of the carriers
//       carriers O[d][rows] = c · O + Σ_j G[j][d] · P[j][rows], the sum of the
//                block from zero in registers
//
// Where the machine has instructions for products of bf16, those whose factors are such run by
// these (Bf16Sums.cpp).
//
// There are two versions of the code for a block: one for BN keys that every row
// sees, and one for any count with a mask per key and vector.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H
#define MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H

#include "lib/Analysis/RepeatedSums.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/Nest.h"

namespace moa::rows {

/// bf16 along a sum that a tile of operands has.
inline constexpr int64_t kTileDepth = 32;

/// Sizes of one blocked fold.
struct BlockShape {
  int64_t lanes, vectors; // of the tile
  int64_t RI, RJ;         // register tile: vectors of rows × broadcast scalars
  int64_t BN;             // keys per block
  int64_t unit;           // bf16 that are added up at a time, along a sum
  int64_t panelWidth() const { return RI * lanes; }
  int64_t panels() const { return vectors / RI; }
};

class BlockedFold {
public:
  BlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex, int64_t vectors,
              FoldPlan plan, const ONFToVectorOptions &options);
  void emit();

private:
  using Values = Emitter::Values;
  /// Copies of a score's operands have `depth` elements of `operand` along k: as many as the score
  /// has terms, of its type. Integers are copied as floats, whose sums are exact, or, as `bytes`,
  /// four in a word: then keys are 128 larger, without sign, and `bias` is what that adds to a
  /// row's sums, negated. As `halves`, two bf16 in a word, with zeros up to a whole number of
  /// units; there depth counts words, and keyStride and the copies of keys are of bf16.
  struct ScoreBuffers {
    mlir::Type operand, sum; // `sum`: of the scores
    bool bytes = false, halves = false;
    int64_t depth, keyStride;
    mlir::Value rows, keys, scores, bias;
  };
  /// Where a microkernel reads key factors: element (j, k) of a score at
  /// j · stride + k, element (j, d) of a carrier at (d / RJ) · panel + j · stride +
  /// d mod RJ. In place where the kernel's argument allows it, else the copies.
  struct KeySource {
    mlir::Value pointer, stride, panel;
  };
  /// As `halves` keys are copied as bf16, one after the other, and from there, or where they are,
  /// packed by two.
  struct CarrierBuffers {
    bool halves = false;
    mlir::Value keys, packed, state, factor;
    mlir::Value rest; // what a sum of blocks lost; null for others
    int64_t lastPadded, padded;
  };
  /// What a register tile multiplies: words, each an element of the type of its sums or of i32,
  /// four i8 or two bf16, those of a at addresses counted in keys.
  struct Terms {
    mlir::Type sum, word, key;
    static Terms of(mlir::Type type) { return {type, type, type}; }
  };
  /// Row operands of carriers.
  struct RowOperands {
    mlir::Value elements, packed;
    bool halves = false, floats = false; // what carriers read
  };
  struct ScalarBuffers {
    mlir::Value state, started; // started is null without refs
    mlir::Value rest;           // what a sum of blocks lost; null for others
  };
  /// Scopes and states of the vectors of a panel.
  struct Panel {
    mlir::Value number;
    unsigned depth; // of the panel's scope
    std::vector<Scope> rows;
    std::vector<Values> olds, news; // [scalar][vector]
  };

  //===--- Blocks (BlockedFold.cpp) ---------------------------------------===//
  void chooseShape();
  void allocate();
  void allocateScore(const Score &score);
  void allocateCarrier(const Carrier &carrier);
  void initialise();
  void addRests();
  void fillBuffer(mlir::Value pointer, mlir::Value element, int64_t count);
  void emitBlock(mlir::Value first, mlir::Value count);
  void emitMaskedBlock(mlir::Value first, mlir::Value count);
  std::pair<mlir::Value, mlir::Value> evaluateMasks();
  mlir::Value piecesCover(bool full);
  void emitBody(bool whole);
  void publish();

  //===--- Staging (Staging.cpp) ------------------------------------------===//
  void stageRows(unsigned score);
  void stageKeys();
  void stageScoreKeys(unsigned score);
  void stageCarrierKeys(unsigned carrier);
  mlir::Value columnsOf(const CarrierBuffers &buffers);
  /// `copies` filled by `stage`, or the operand itself where this block is whole,
  /// the factors are one load in the compute type, and its elements are adjacent
  /// along `inner` when the kernel runs.
  KeySource source(const Factors &factors, mlir::Type type, mlir::Value inner, KeySource copies,
                   bool asCarrier, llvm::function_ref<void()> stage);
  void stageKeyValues();
  /// Runs `body` for each key of the block; absent keys run `zero` instead.
  void overKeys(llvm::function_ref<void(mlir::Value)> body,
                llvm::function_ref<void(mlir::Value)> zero);
  mlir::Value product(const Factors &factors, mlir::Type type);
  mlir::Value operand(unsigned score, const Factors &factors);
  void stageRowBytes(unsigned score, mlir::Value number, mlir::Value base,
                     llvm::function_ref<mlir::Value(mlir::Value)> element);
  void storePanels(mlir::Value vector, mlir::Value pointer, mlir::Type type, mlir::Value d,
                   mlir::Value j, int64_t depth);

  //===--- Panels (Panels.cpp) --------------------------------------------===//
  void emitPanel(mlir::Value number);
  void withRow(Panel &panel, unsigned u, llvm::function_ref<void()> body);
  void emitScore(unsigned score, Panel &panel);
  void emitPass(unsigned pass, Panel &panel);
  void skipKey(unsigned pass, mlir::Value j);
  mlir::Value toIndex(mlir::Value sum);
  void bindPassValues(unsigned pass, Panel &panel, unsigned u, mlir::Value j);
  Values accumulate(unsigned pass, Panel &panel, unsigned u, mlir::Value j,
                    mlir::ValueRange partial);
  void storeOperands(unsigned pass, Panel &panel, unsigned u, mlir::Value j, mlir::Value present);
  void finishPass(unsigned pass, Panel &panel, unsigned u, mlir::ValueRange partial);
  /// Where a state's refs are regular; null if they always are.
  mlir::Value regular(onf::AccOp acc, Panel &panel, unsigned u);
  struct Repair {
    Correction correction;
    mlir::Value apply;
  };
  Repair repair(onf::AccOp acc, Panel &panel, unsigned u, mlir::Value started);
  mlir::Value updateStarted(onf::AccOp acc, Panel &panel, unsigned u, mlir::Value pointer);
  void emitCarrier(unsigned carrier, Panel &panel);
  Values zeros(mlir::Type type);
  Values microKernel(const Terms &terms, mlir::Value a, mlir::Value aRow, mlir::Value aDepth,
                     mlir::Value b, mlir::Value from, mlir::Value to, Values sums);
  mlir::Value addDots(Build b, mlir::Value keys, mlir::Value rows, mlir::Value sum);
  Values integerSums(unsigned score, Panel &panel, mlir::Value keys, mlir::Value rows);
  Values longSums(const Terms &terms, mlir::Value a, mlir::Value aRow, mlir::Value aDepth,
                  mlir::Value b, int64_t depth);
  void addToState(unsigned carrier, mlir::Value where, mlir::Value sum, int64_t u);

  //===--- Products of bf16 (Bf16Sums.cpp) --------------------------------===//
  bool isHalf(onf::AccOp acc, mlir::Type type, const Factors &row, const Factors &key) const;
  bool isHalf(const Score &score) const;
  bool isHalf(const Carrier &carrier) const;
  bool usesTiles() const;
  Terms halfTerms();
  mlir::Value interleaved(Build b, mlir::Value low, mlir::Value high);
  void stageRowHalves(unsigned score, mlir::Value base,
                      llvm::function_ref<mlir::Value(mlir::Value)> element);
  void packOperands(unsigned pass, Panel &panel);
  mlir::Value keyWords(mlir::Value from, mlir::Value stride, mlir::Value word, mlir::Value d);
  void packKeys(unsigned carrier, mlir::Value from, mlir::Value stride);
  void packPairs(unsigned carrier, mlir::Value from, mlir::Value stride);
  void packTiles(unsigned carrier, mlir::Value from, mlir::Value stride);
  void configureTiles();
  void releaseTiles();
  void tileSums(mlir::Value keys, mlir::Value keyStride, int64_t keyTiles, mlir::Value rows,
                mlir::Value steps, mlir::Value to);
  void tileScore(unsigned score, mlir::Value rows);
  void tileCarrier(unsigned carrier, Panel &panel);

  mlir::Value vectorOffset(Panel &panel, unsigned u); // in rows of the tile
  mlir::Value load(mlir::Type element, mlir::Value pointer, mlir::Value offset, bool row = true) {
    return e.loadState(e.here(), element, row, pointer, offset);
  }
  void store(mlir::Value value, mlir::Value pointer, mlir::Value offset) {
    e.storeState(e.here(), value, pointer, offset);
  }
  mlir::Type booleanType() { return mlir::IntegerType::get(fold.getContext(), 1); }

  Emitter &e;
  onf::FoldOp fold;
  mlir::Value laneIndex, key;
  onf::GuardOp guard;
  FoldPlan plan;
  const ONFToVectorOptions options;
  const RepeatedSums repeated;
  BlockShape shape;
  llvm::SmallVector<ScoreBuffers> scores;
  llvm::SmallVector<CarrierBuffers> carriers;
  llvm::SmallVector<ScalarBuffers> scalars;
  llvm::SmallVector<RowOperands> operands;
  llvm::SmallVector<mlir::Value> carrierStarted, kept, keyValues, rowLoads, guardLoads;
  mlir::Value tileSum, tileRest; // of a tile of sums that is not stored where it belongs
  mlir::Value masks, anyOfKey, anyOfRow;
  mlir::Value vectors; // of the panels that hold rows
  /// The block being written: its first key and count, and whether it is masked.
  mlir::Value first, count;
  bool masked = false, whole = false;
  llvm::SmallVector<KeySource> scoreKeys, carrierKeys;
};

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H
