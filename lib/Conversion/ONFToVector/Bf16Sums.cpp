//===- Bf16Sums.cpp - sums of products of bf16 ----------------------------===//
//
// Operands are packed two bf16 to a word, consecutive along the sum, and padded with zeros to a
// whole number of units. With L lanes and panels of RI vectors of rows, the layouts are:
//
//   rows of scores        [k / 2][RI·L]              words
//   keys of scores        [j][k]                     elements, read in place if possible
//   operands of accumulators  [j / 2][RI·L]              words
//   keys of accumulators      [d / RJ][j / 2][d mod RJ]  words, for pairs
//                         [d][j / 2]                 words, for tiles
//
// A 16 × 16 tile of sums has keys (or indices d) down and rows across, the memory layout of scores
// and states. AMX registers 0 to 3 hold 2 × 2 tiles of sums, 4 and 5 keys, 6 and 7 rows.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/BlockedFold.h"
#include <array>

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

/// Rows and columns of a tile of sums; also the words in one row of an operand tile.
static constexpr int64_t kTile = 16;
static constexpr unsigned kKeyTiles = 4, kRowTiles = 6, kTileRegisters = 8;

//===----------------------------------------------------------------------===//
// Eligible sums
//===----------------------------------------------------------------------===//

/// Returns whether both factors of a product are bf16, by element type or by rounding, and at least
/// one is loaded as bf16. Returns false for sums that another fold recomputes: these need equal
/// bits.
bool BlockedFold::isBf16(AccOp acc, Type type, const Factors &rowFactors, const Factors &keyFactors) const {
  unsigned read = 0;
  auto is = [&](const Factors &factors) {
    LoadOp load = factors.values.size() == 1 && factors.divisors.empty() ? getReadElement(factors.values[0]) : LoadOp();
    bool isRead = load && load.getResult().getType().isBF16();
    read += isRead;
    return factors.narrow ? factors.narrow.isBF16() : isRead;
  };
  if (options.bf16Dots == Bf16Dots::none || !type.isF32() || !is(rowFactors) || !is(keyFactors))
    return false;
  return read > 0 && !repeated.contains(acc);
}

bool BlockedFold::isBf16(const Score &score) const {
  return score.further.empty() && isBf16(getAccs(score.fold)[0], score.type, score.row, score.key);
}

bool BlockedFold::isBf16(const Accumulator &accumulator) const {
  return accumulator.further.empty() && isBf16(accumulator.acc, accumulator.type, accumulator.row, accumulator.key);
}

bool BlockedFold::usesTiles() const {
  auto isAny = [&](const auto &sums) { return llvm::any_of(sums, [&](const auto &sum) { return isBf16(sum); }); };
  return options.bf16Dots == Bf16Dots::tiles && (isAny(plan.scores) || isAny(plan.accumulators));
}

BlockedFold::TileTypes BlockedFold::bf16Types() {
  Builder b(fold.getContext());
  return {b.getF32Type(), b.getI32Type(), b.getBF16Type()};
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

/// Rounds both vectors to bf16 and interleaves them: each word has one element of each.
Value BlockedFold::interleaved(Build b, Value low, Value high) {
  Type bf16 = b.b.getBF16Type(), words = e.rowType(b.b.getI32Type());
  Value highBf16 = e.convert(b, high, bf16), lowBf16 = e.convert(b, low, bf16);
  Value both = vector::InterleaveOp::create(b.b, e.loc, lowBf16, highBf16);
  return vector::BitCastOp::create(b.b, e.loc, words, both);
}

/// Packs one vector of rows of a score.
void BlockedFold::stageRowBf16(unsigned score, Value base, llvm::function_ref<Value(Value)> element) {
  const ScoreBuffers &buffers = scores[score];
  int64_t extent = plan.scores[score].extent;
  Type type = plan.scores[score].type;
  auto put = [&](Value word, bool isPair) {
    Value both[2] = {nullptr, e.here().identity(Monoid::add, e.rowType(type))};
    for (int64_t k = 0; k != 1 + isPair; ++k)
      e.scoped([&](Scope &) { both[k] = element(e.here().add(e.here().mul(word, 2), k)); });
    Build b = e.here();
    Value place = b.add(base, b.mul(word, shape.panelWidth()));
    store(interleaved(b, both[0], both[1]), buffers.rows, place);
  };
  Value fullWords = e.here().index(extent / 2);
  e.loop(e.here().index(0), fullWords, 1, [&](Value word) { put(word, true); });
  if (extent % 2)
    e.scoped([&](Scope &) { put(fullWords, false); });
  Value none = e.here().constant(e.rowType(buffers.operand), e.here().b.getI32IntegerAttr(0));
  Value depth = e.here().index(buffers.depth), numWords = e.here().index(llvm::divideCeil(extent, 2));
  e.loop(numWords, depth, 1,
         [&](Value word) { store(none, buffers.rows, e.here().add(base, e.here().mul(word, shape.panelWidth()))); });
}

/// Packs the row operands of this pass, with zeros after the last key.
void BlockedFold::packOperands(unsigned pass, Panel &panel) {
  llvm::SmallDenseSet<unsigned> done;
  for (auto [accumulator, buffers] : llvm::zip_equal(plan.accumulators, accumulators)) {
    if (accumulator.pass != pass || !buffers.bf16 || !done.insert(accumulator.operand).second)
      continue;
    const RowOperands &rows = operands[accumulator.operand];
    Build b = e.here();
    Type type = accumulator.type;
    Value end = b.mul(b.ceilDiv(count, shape.unit), shape.unit), zero = b.identity(Monoid::add, e.rowType(type));
    if (!whole) {
      Value to = b.mul(end, shape.panelWidth()), from = b.mul(count, shape.panelWidth());
      e.loop(from, to, shape.lanes, [&](Value offset) { store(zero, rows.elements, offset); });
    }
    Value numWords = e.here().mul(b.ceilDiv(count, shape.unit), shape.unit / 2), firstWord = b.index(0);
    e.loop(firstWord, numWords, 1, [&](Value word) {
      for (int64_t u = 0; u != shape.RI; ++u) {
        Build b = e.here();
        Value offset = b.add(b.mul(word, 2 * shape.panelWidth()), u * shape.lanes);
        Value low = load(type, rows.elements, offset);
        Value high = load(type, rows.elements, b.add(offset, shape.panelWidth()));
        Value place = b.add(b.mul(word, shape.panelWidth()), u * shape.lanes);
        store(interleaved(b, low, high), rows.packed, place);
      }
    });
  }
}

/// Returns the words of keys 2·word and 2·word + 1 at d, d + 1, …, from bf16 elements at `from`.
Value BlockedFold::keyWords(Value from, Value stride, Value word, Value d) {
  Build b = e.here();
  Value place = b.add(b.mul(b.mul(word, 2), stride), d);
  Type bf16 = b.b.getBF16Type();
  Value odd = load(bf16, from, b.add(place, stride)), even = load(bf16, from, place);
  return interleaved(b, even, odd);
}

void BlockedFold::packKeys(unsigned accumulator, Value from, Value stride) {
  usesTiles() ? packTiles(accumulator, from, stride) : packPairs(accumulator, from, stride);
}

void BlockedFold::packPairs(unsigned accumulator, Value from, Value stride) {
  const AccumulatorBuffers &buffers = accumulators[accumulator];
  Value numWords = e.here().ceilDiv(count, 2), firstWord = e.here().index(0);
  e.loop(firstWord, numWords, 1, [&](Value word) {
    Value padded = e.here().index(buffers.padded), start = e.here().index(0);
    e.loop(start, padded, shape.lanes, [&](Value d) {
      storePanels(keyWords(from, stride, word, d), buffers.packed, e.here().b.getI32Type(), d, word, shape.BN / 2);
    });
  });
}

/// Packs the keys of an accumulator for tiles, by transposing squares of 16 × 16 words.
void BlockedFold::packTiles(unsigned accumulator, Value from, Value stride) {
  const AccumulatorBuffers &buffers = accumulators[accumulator];
  Build b = e.here();
  Value numWords = b.mul(b.ceilDiv(count, kTileDepth), kTile), firstWord = b.index(0);
  e.loop(firstWord, numWords, kTile, [&](Value word) {
    Value padded = e.here().index(buffers.padded), start = e.here().index(0);
    e.loop(start, padded, kTile, [&](Value d) {
      Values square;
      for (int64_t k = 0; k != kTile; ++k)
        square.push_back(keyWords(from, stride, e.here().add(word, k), d));
      for (auto [k, row] : llvm::enumerate(transpose(e.here(), square))) {
        Build b = e.here();
        Value index = b.add(d, static_cast<int64_t>(k));
        store(row, buffers.packed, b.add(b.mul(index, shape.BN / 2), word));
      }
    });
  });
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

static void call(Build b, StringRef name, ArrayRef<int> registers, ArrayRef<Value> operands = {}) {
  SmallVector<Value> all;
  for (int number : registers)
    all.push_back(arith::ConstantOp::create(b.b, b.loc, b.b.getI8IntegerAttr(number)));
  llvm::append_range(all, operands);
  LLVM::CallIntrinsicOp::create(b.b, b.loc, b.b.getStringAttr("llvm.x86." + name), ValueRange(all));
}

/// Configures all registers as tiles of 16 rows of 64 bytes (palette 1).
void BlockedFold::configureTiles() {
  if (!usesTiles())
    return;
  Build b = e.here();
  std::array<int8_t, 64> bytes{};
  bytes[0] = 1;
  for (unsigned k = 0; k != kTileRegisters; ++k) {
    bytes[16 + 2 * k] = 64;
    bytes[48 + k] = kTile;
  }
  auto type = VectorType::get({64}, b.b.getI8Type());
  Value words = arith::ConstantOp::create(b.b, e.loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)));
  Value memory = e.scratch(64);
  b.store(words, memory, 1);
  call(b, "ldtilecfg", {}, memory);
  tileSum = e.scratchFor(b.b.getF32Type(), 2 * kTile * shape.panelWidth());
  tileRest = e.scratchFor(b.b.getF32Type(), 2 * kTile * shape.panelWidth());
}

void BlockedFold::releaseTiles() {
  if (usesTiles())
    call(e.here(), "tilerelease", {});
}

/// Emits to[r][row] = Σ_k keys[r][k] · rows[k][row] for 16·keyTiles indices r, the rows of the
/// panel, and 32·steps indices k.
void BlockedFold::tileSums(Value keys, Value keyStride, int64_t keyTiles, Value rows, Value steps, Value to) {
  int64_t width = shape.panelWidth();
  Build b = e.here();
  Type bf16 = b.b.getBF16Type(), word = b.b.getI32Type(), sum = b.b.getF32Type();
  auto overSums = [&](llvm::function_ref<void(int, int64_t, int64_t)> body) {
    for (int64_t r = 0; r != keyTiles; ++r)
      for (int64_t u = 0; u != shape.RI; ++u)
        body(static_cast<int>(r * shape.RI + u), r, u);
  };
  overSums([&](int number, int64_t, int64_t) { call(b, "tilezero", number); });
  e.loop(b.index(0), steps, 1, [&](Value step) {
    Build b = e.here();
    for (int64_t r = 0; r != keyTiles; ++r) {
      Value firstKeyOffset = b.mul(keyStride, kTile * r);
      Value keyOffset = b.add(b.mul(step, kTileDepth), firstKeyOffset);
      int number = static_cast<int>(kKeyTiles + r);
      call(b, "tileloadd64", number, {b.address(bf16, keys, keyOffset), b.i64(b.mul(keyStride, 2))});
    }
    for (int64_t u = 0; u != shape.RI; ++u) {
      Value rowOffset = b.add(b.mul(step, kTile * width), u * kTile);
      int number = static_cast<int>(kRowTiles + u);
      call(b, "tileloadd64", number, {b.address(word, rows, rowOffset), b.i64(b.index(4 * width))});
    }
    overSums([&](int number, int64_t r, int64_t u) {
      call(b, "tdpbf16ps", {number, static_cast<int>(kKeyTiles + r), static_cast<int>(kRowTiles + u)});
    });
  });
  overSums([&](int number, int64_t r, int64_t u) {
    Build b = e.here();
    Value place = b.address(sum, to, b.index(r * kTile * width + u * kTile));
    call(b, "tilestored64", number, {place, b.i64(b.index(4 * width))});
  });
}

/// Emits the scores of a panel. Compensates long sums in the same way as longSums.
void BlockedFold::tileScore(unsigned number, Value rows) {
  const ScoreBuffers &buffers = scores[number];
  const KeySource &source = scoreKeys[number];
  int64_t width = shape.panelWidth(), most = kSumBlock / 2;
  e.loop(e.here().index(0), count, 2 * kTile, [&](Value j) {
    Build b = e.here();
    Type bf16 = b.b.getBF16Type(), word = b.b.getI32Type(), sum = buffers.sum;
    Value keys = b.address(bf16, source.pointer, b.mul(j, source.stride));
    Value to = b.address(sum, buffers.scores, b.mul(j, width));
    if (buffers.depth <= most)
      return tileSums(keys, source.stride, 2, rows, b.index(buffers.depth / kTile), to);
    auto overVectors = [&](llvm::function_ref<void(Value)> body) {
      Value end = e.here().index(2 * kTile * width), start = e.here().index(0);
      e.loop(start, end, shape.lanes, body);
    };
    Value zero = b.identity(Monoid::add, e.rowType(sum));
    overVectors([&](Value offset) {
      store(zero, to, offset);
      store(zero, tileRest, offset);
    });
    Value end = e.here().index(buffers.depth);
    e.loop(e.here().index(0), end, most, [&](Value base) {
      Build b = e.here();
      Value limit = b.index(most), steps = b.ceilDiv(b.min(b.sub(end, base), limit), kTile);
      Value from = b.address(bf16, keys, b.mul(base, 2)), of = b.address(word, rows, b.mul(base, width));
      tileSums(from, source.stride, 2, of, steps, tileSum);
      overVectors([&](Value offset) {
        Value term = load(sum, tileSum, offset), oldRest = load(sum, tileRest, offset), oldSum = load(sum, to, offset);
        auto [total, rest] = e.here().addCompensated(oldSum, oldRest, term);
        store(total, to, offset);
        store(rest, tileRest, offset);
      });
    });
    overVectors([&](Value offset) {
      Value oldRest = load(sum, tileRest, offset), oldSum = load(sum, to, offset);
      store(e.here().combine(Monoid::add, oldSum, oldRest), to, offset);
    });
  });
}

/// Adds the sums of a block to the state of a panel.
void BlockedFold::tileAccumulator(unsigned number, Panel &panel) {
  const Accumulator &accumulator = plan.accumulators[number];
  const AccumulatorBuffers &buffers = accumulators[number];
  int64_t width = shape.panelWidth(), keyTiles = buffers.padded % (2 * kTile) == 0 ? 2 : 1;
  Value state = e.here().mul(panel.number, buffers.padded * width);
  Value columns = columnsOf(buffers), firstColumn = e.here().index(0);
  e.loop(firstColumn, columns, keyTiles * kTile, [&](Value d) {
    Build b = e.here();
    Value keys = b.address(b.b.getBF16Type(), buffers.packed, b.mul(d, shape.BN));
    Value rows = operands[accumulator.operand].packed;
    Value steps = b.ceilDiv(count, kTileDepth), stride = b.index(shape.BN);
    tileSums(keys, stride, keyTiles, rows, steps, tileSum);
    Value end = e.here().index(keyTiles * kTile), start = e.here().index(0);
    e.loop(start, end, 1, [&](Value r) {
      for (int64_t u = 0; u != shape.RI; ++u) {
        Build b = e.here();
        Value sum = load(accumulator.type, tileSum, b.add(b.mul(r, width), u * shape.lanes));
        addToState(number, b.add(state, b.add(b.mul(b.add(d, r), width), u * shape.lanes)), sum, u);
      }
    });
  });
}

} // namespace moa::rows
