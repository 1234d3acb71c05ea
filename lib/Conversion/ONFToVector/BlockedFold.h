//===- BlockedFold.h - emits a planned fold in blocks of keys ---*- C++ -*-===//
//
// Emits, for one tile of rows (the block structure of flash attention):
//
//   stage the row factors of the scores, transposed: rows last
//   for each block of BN keys that some row of the tile needs
//     stage the key factors: contiguous, in the compute type, unless the block is
//       whole and they can be read in place
//     for each panel of RI vectors of rows
//       scores   S[j][rows]  register tiles of RJ keys × RI vectors
//       passes   states without axes, row operands P[j][rows] of the accumulators
//       accumulators O[d][rows] = c · O + Σ_j G[j][d] · P[j][rows], where the sum over
//                the block starts from zero in registers
//
// Products of two bf16 factors use the machine's bf16 instructions if it has any (Bf16Sums.cpp).
//
// The code for a block has two versions: one for BN keys that every row sees, and one for any
// number of keys with a mask per key and vector.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H
#define MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H

#include "lib/Analysis/RepeatedSums.h"
#include "lib/Conversion/ONFToVector/FoldPlan.h"
#include "lib/Conversion/ONFToVector/Nest.h"

namespace moa::rows {

/// Number of bf16 along the sum in an operand tile.
inline constexpr int64_t kTileDepth = 32;

/// Sizes of one blocked fold.
struct BlockShape {
  int64_t lanes, vectors; // of the tile
  int64_t RI, RJ;         // register tile: vectors of rows × broadcast scalars
  int64_t BN;             // keys per block
  int64_t unit;           // bf16 that one instruction adds up, along a sum
  int64_t panelWidth() const { return RI * lanes; }
  int64_t panels() const { return vectors / RI; }
};

class BlockedFold {
public:
  BlockedFold(Emitter &emitter, onf::FoldOp fold, mlir::Value laneIndex, int64_t vectors, FoldPlan plan,
              const ONFToVectorOptions &options);
  void emit();

private:
  using Values = Emitter::Values;
  /// Copies of a score's operands, with `depth` elements of type `operand` along k. By default
  /// these are the score's terms in its own type. Integers are copied as floats, whose sums are
  /// exact, or packed:
  ///   bytes   four i8 per word. Keys are offset by 128 to be unsigned, as vpdpbusd needs; `bias`
  ///           is −128 · Σ_k row, which cancels the offset.
  ///   bf16    two bf16 per word, zero-padded to whole units. `depth` counts words; `keyStride` and
  ///           the copies of keys are in bf16.
  struct ScoreBuffers {
    mlir::Type operand, sum; // `sum`: of the scores
    bool bytes = false, bf16 = false;
    int64_t depth, keyStride;
    mlir::Value rows, keys, scores, bias;
  };
  /// Where a microkernel reads key factors: element (j, k) of a score at j · stride + k, element
  /// (j, d) of an accumulator at (d / RJ) · panel + j · stride + d mod RJ. This is the kernel's argument
  /// if its layout allows, else the copies.
  struct KeySource {
    mlir::Value pointer, stride, panel;
  };
  /// If `bf16`, keys are copied as bf16 or read in place, and then packed into words of two.
  struct AccumulatorBuffers {
    bool bf16 = false;
    mlir::Value keys, packed, state, factor;
    mlir::Value rest; // compensation of a sum over blocks; null for others
    int64_t lastPadded, padded;
  };
  /// The types in a register tile: of a sum, of the word that one multiplication takes, and of the
  /// key elements that addresses count. A word is one element of the sum's type, or an i32 of four
  /// i8 or two bf16.
  struct TileTypes {
    mlir::Type sum, word, key;
    static TileTypes of(mlir::Type type) { return {type, type, type}; }
  };
  /// The row operands of accumulators, as elements and packed into words of two bf16.
  struct RowOperands {
    mlir::Value elements, packed;
    bool bf16 = false, floats = false; // the forms that accumulators read
  };
  struct ScalarBuffers {
    mlir::Value state, started; // started is null without refs
    mlir::Value rest;           // compensation of a sum over blocks; null for others
  };
  /// The scopes and states of the vectors of a panel.
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
  void allocateAccumulator(const Accumulator &accumulator);
  void initialise();
  void addRests();
  void fillBuffer(mlir::Value pointer, mlir::Value vector, int64_t repeats);
  void emitBlock(mlir::Value firstKey, mlir::Value numKeys);
  void emitMaskedBlock(mlir::Value firstKey, mlir::Value numKeys);
  std::pair<mlir::Value, mlir::Value> evaluateMasks();
  mlir::Value piecesCover(bool full);
  void emitBody(bool whole);
  void publish();

  //===--- Staging (Staging.cpp) ------------------------------------------===//
  void stageRows(unsigned score);
  void stageKeys();
  void stageScoreKeys(unsigned score);
  void stageAccumulatorKeys(unsigned accumulator);
  mlir::Value columnsOf(const AccumulatorBuffers &buffers);
  /// Returns the operand in place if this block is whole, the factors are one load in the compute
  /// type, and its elements are adjacent along `inner` at run time. Otherwise returns `copies`,
  /// which `stage` fills.
  KeySource source(const Factors &factors, mlir::Type type, mlir::Value inner, KeySource copies, bool asAccumulator,
                   llvm::function_ref<void()> stage);
  void stageKeyValues();
  /// Runs `body` for each key of the block, or `zero` for a key that no row sees.
  void overKeys(llvm::function_ref<void(mlir::Value)> body, llvm::function_ref<void(mlir::Value)> zero);
  mlir::Value product(const Factors &factors, mlir::Type type);
  mlir::Value operand(unsigned score, const Factors &factors);
  void stageRowBytes(unsigned score, mlir::Value number, mlir::Value base,
                     llvm::function_ref<mlir::Value(mlir::Value)> element);
  void storePanels(mlir::Value vector, mlir::Value pointer, mlir::Type type, mlir::Value d, mlir::Value j,
                   int64_t depth);

  //===--- Panels (Panels.cpp) --------------------------------------------===//
  void emitPanel(mlir::Value number);
  void withRow(Panel &panel, unsigned u, llvm::function_ref<void()> body);
  void emitScore(unsigned score, Panel &panel);
  void emitPass(unsigned pass, Panel &panel);
  void skipKey(unsigned pass, mlir::Value j);
  mlir::Value toIndex(mlir::Value sum);
  void bindPassValues(unsigned pass, Panel &panel, unsigned u, mlir::Value j);
  Values accumulate(unsigned pass, Panel &panel, unsigned u, mlir::Value j, mlir::ValueRange partial);
  void storeOperands(unsigned pass, Panel &panel, unsigned u, mlir::Value j, mlir::Value present);
  void finishPass(unsigned pass, Panel &panel, unsigned u, mlir::ValueRange partial);
  /// Returns where the references of a state are regular; null if they always are. For example, a
  /// running maximum of −∞ is singular: it includes no key yet.
  mlir::Value regular(onf::AccOp acc, Panel &panel, unsigned u);
  struct Rescale {
    Correction correction;
    mlir::Value apply;
  };
  Rescale rescale(onf::AccOp acc, Panel &panel, unsigned u, mlir::Value started);
  mlir::Value updateStarted(onf::AccOp acc, Panel &panel, unsigned u, mlir::Value pointer);
  void emitAccumulator(unsigned accumulator, Panel &panel);
  Values zeros(mlir::Type type);
  Values microKernel(const TileTypes &types, mlir::Value a, mlir::Value aRow, mlir::Value aDepth, mlir::Value b,
                     mlir::Value from, mlir::Value to, Values sums);
  mlir::Value addDots(Build b, mlir::Value keys, mlir::Value rows, mlir::Value sum);
  Values integerSums(unsigned score, Panel &panel, mlir::Value keys, mlir::Value rows);
  Values longSums(const TileTypes &types, mlir::Value a, mlir::Value aRow, mlir::Value aDepth, mlir::Value b,
                  int64_t depth);
  void addToState(unsigned accumulator, mlir::Value where, mlir::Value sum, int64_t u);

  //===--- Products of bf16 (Bf16Sums.cpp) --------------------------------===//
  bool isBf16(onf::AccOp acc, mlir::Type type, const Factors &rowFactors, const Factors &keyFactors) const;
  bool isBf16(const Score &score) const;
  bool isBf16(const Accumulator &accumulator) const;
  bool usesTiles() const;
  TileTypes bf16Types();
  mlir::Value interleaved(Build b, mlir::Value low, mlir::Value high);
  void stageRowBf16(unsigned score, mlir::Value base, llvm::function_ref<mlir::Value(mlir::Value)> element);
  void packOperands(unsigned pass, Panel &panel);
  mlir::Value keyWords(mlir::Value from, mlir::Value stride, mlir::Value word, mlir::Value d);
  void packKeys(unsigned accumulator, mlir::Value from, mlir::Value stride);
  void packPairs(unsigned accumulator, mlir::Value from, mlir::Value stride);
  void packTiles(unsigned accumulator, mlir::Value from, mlir::Value stride);
  void configureTiles();
  void releaseTiles();
  void tileSums(mlir::Value keys, mlir::Value keyStride, int64_t keyTiles, mlir::Value rows, mlir::Value steps,
                mlir::Value to);
  void tileScore(unsigned score, mlir::Value rows);
  void tileAccumulator(unsigned accumulator, Panel &panel);

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
  llvm::SmallVector<AccumulatorBuffers> accumulators;
  llvm::SmallVector<ScalarBuffers> scalars;
  llvm::SmallVector<RowOperands> operands;
  llvm::SmallVector<mlir::Value> accumulatorStarted, kept, keyValues, rowLoads, guardLoads;
  mlir::Value tileSum, tileRest; // for tiles of sums that are not stored in place
  mlir::Value masks, anyOfKey, anyOfRow;
  mlir::Value vectors; // number of vectors, in whole panels
  /// The block being emitted: its first key, its number of keys, and whether it is masked.
  mlir::Value first, count;
  bool masked = false, whole = false;
  llvm::SmallVector<KeySource> scoreKeys, accumulatorKeys;
};

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_BLOCKEDFOLD_H
