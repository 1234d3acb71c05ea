//===- Staging.cpp - copies of a fold's operands --------------------------===//
//
// Row factors of a score are copied once per tile and key factors once per block, contiguous and in
// the compute type. A whole block reads an operand in place if it has this type and its elements
// are adjacent. Keys that no row of the tile sees are not read, and their copies are zero.
//
//===----------------------------------------------------------------------===//
#include "lib/Conversion/ONFToVector/BlockedFold.h"
#include "lib/Conversion/ONFToVector/Columns.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

Value BlockedFold::product(const Factors &factors, Type type) {
  Value result;
  for (Value factor : factors.values) {
    Value vector = e.rowValue(factor);
    result = result ? e.here().combine(Monoid::mul, result, vector) : vector;
  }
  if (!result)
    result = e.here().constant(e.rowType(type), FloatAttr::get(type, 1.0));
  for (Value factor : factors.divisors) {
    Value vector = e.rowValue(factor);
    result = arith::DivFOp::create(e.here().b, e.loc, result, vector);
  }
  if (factors.narrow)
    result = e.round(e.here(), result, factors.narrow);
  return result;
}

/// Returns the element to copy of a score's operand, at the current k and j or row.
Value BlockedFold::operand(unsigned number, const Factors &factors) {
  const Score &score = plan.scores[number];
  if (!score.isInteger())
    return product(factors, score.type);
  Value byte = e.rowValue(getReadElement(factors.values.front()).getResult());
  if (scores[number].bytes)
    return byte;
  return arith::SIToFPOp::create(e.here().b, e.loc, e.rowType(scores[number].operand), byte);
}

/// Packs vector `number` of the rows: four bytes of consecutive k per lane, zeros after the last.
/// Stores its bias −128·Σ_k row, so that bias + Σ_k (key + 128)·row is the score.
void BlockedFold::stageRowBytes(unsigned score, Value number, Value base, llvm::function_ref<Value(Value)> element) {
  const ScoreBuffers &buffers = scores[score];
  Type words = e.rowType(buffers.operand);
  Build b = e.here();
  Value none = b.constant(words, b.b.getI32IntegerAttr(0));
  auto pack = [&](Value word, int64_t numBytes, Value sum) {
    Value packed;
    for (int64_t k = 0; k != numBytes; ++k)
      e.scoped([&](Scope &) {
        Value byte = element(e.here().add(e.here().mul(word, 4), k));
        Build b = e.here();
        sum = b.add(sum, arith::ExtSIOp::create(b.b, e.loc, words, byte));
        Value bits = arith::ExtUIOp::create(b.b, e.loc, words, byte);
        if (k)
          bits = arith::ShLIOp::create(b.b, e.loc, bits, b.constant(words, b.b.getI32IntegerAttr(8 * k)));
        packed = b.either(packed, bits);
      });
    store(packed, buffers.rows, e.here().add(base, e.here().mul(word, shape.panelWidth())));
    return sum;
  };
  int64_t extent = plan.scores[score].extent, fullWords = extent / 4;
  Value end = b.index(fullWords), start = b.index(0);
  Value sum =
      e.loop(start, end, 1, {none}, [&](Value word, ValueRange sums) { return Values{pack(word, 4, sums[0])}; })[0];
  if (extent % 4)
    sum = pack(e.here().index(fullWords), extent % 4, sum);
  Value factor = e.here().constant(words, e.here().b.getI32IntegerAttr(-128));
  Value place = e.here().mul(number, shape.lanes);
  store(e.here().mul(sum, factor), buffers.bias, place);
}

/// Stages rows[panel][k][vector of the panel] of one score.
void BlockedFold::stageRows(unsigned number) {
  Score &score = plan.scores[number];
  Values buffers;
  for (LoadOp read : score.rowLoads)
    buffers.push_back(e.scratchFor(read.getResult().getType(), score.extent * shape.lanes));
  e.loop(e.here().index(0), vectors, 1, [&](Value v) {
    bindRows(e, e.top(), laneIndex, v);
    Build b = e.here();
    Value RI = b.index(shape.RI);
    Value panel = b.div(v, RI);
    Value u = b.rem(v, RI);
    Value inPanel = b.mul(u, shape.lanes);
    Value base = b.add(b.mul(panel, scores[number].depth * shape.panelWidth()), inPanel);
    Value index = score.fold.getBody().getArgument(0);
    Value zero = b.index(0), extent = b.index(score.extent);
    for (auto [read, buffer] : llvm::zip_equal(score.rowLoads, buffers))
      e.stageLoad(read, index, zero, extent, buffer, shape.lanes);
    auto element = [&](Value k) {
      e.top().values[index] = k;
      for (auto [read, buffer] : llvm::zip_equal(score.rowLoads, buffers))
        e.top().values[read.getResult()] = load(read.getResult().getType(), buffer, e.here().mul(k, shape.lanes));
      return operand(number, score.row);
    };
    if (scores[number].bytes)
      return stageRowBytes(number, v, base, element);
    if (scores[number].bf16)
      return stageRowBf16(number, base, element);
    e.loop(zero, extent, 1, [&](Value k) {
      Value value = element(k);
      Build b = e.here();
      store(value, scores[number].rows, b.add(base, b.mul(k, shape.panelWidth())));
    });
  });
}

void BlockedFold::overKeys(llvm::function_ref<void(Value)> body, llvm::function_ref<void(Value)> zero) {
  e.loop(e.here().index(0), count, 1, [&](Value j) {
    e.top().values[key] = e.here().add(first, j);
    if (!masked)
      return body(j);
    unsigned depth = e.depth();
    Value seen = load(booleanType(), anyOfKey, j, false);
    e.when(
        seen,
        [&] {
          e.top().guardedFrom = depth;
          body(j);
        },
        [&] { zero(j); });
  });
}

/// Stages keys[j][k] of one score, with zero rows up to a whole register tile. Bytes are offset by
/// 128; bf16 have zeros after the last.
void BlockedFold::stageScoreKeys(unsigned number) {
  const Score &score = plan.scores[number];
  const ScoreBuffers &buffers = scores[number];
  auto overRow = [&](Value j, int64_t from, int64_t to, llvm::function_ref<Value(Value)> value) {
    Value end = e.here().index(to), start = e.here().index(from);
    e.loop(start, end, shape.lanes, [&](Value k) {
      Value vector = value(k);
      Build b = e.here();
      store(vector, buffers.keys, b.add(b.mul(j, buffers.keyStride), k));
    });
  };
  auto zerosFrom = [&](Value j, int64_t from) {
    overRow(j, from, buffers.keyStride, [&](Value) {
      Builder &b = e.here().b;
      Type type = buffers.bytes ? Type(b.getI8Type()) : buffers.bf16 ? Type(b.getBF16Type()) : buffers.operand;
      return e.here().constant(e.rowType(type), b.getZeroAttr(type));
    });
  };
  auto zero = [&](Value j) { zerosFrom(j, 0); };
  // Elements after the row are not read. They only fill up a word or a tile.
  bool isWhole = score.extent % shape.lanes == 0;
  int64_t stop = isWhole ? score.extent : buffers.keyStride;
  auto asBf16 = [&](Value value, Value k) -> Value {
    value = e.convert(e.here(), value, e.here().b.getBF16Type());
    if (isWhole)
      return value;
    Build b = e.here();
    Value lane = vector::StepOp::create(b.b, e.loc, e.rowType(b.b.getIndexType()));
    Value inside = b.slt(lane, b.splat(b.sub(b.index(score.extent), k), shape.lanes));
    return b.select(inside, value, b.identity(Monoid::add, value.getType()));
  };
  FoldOp inner = score.fold;
  overKeys(
      [&](Value j) {
        overRow(j, 0, stop, [&](Value k) {
          Value last = e.here().index(score.extent - 1);
          e.bindLanes(e.top(), inner.getBody().getArgument(0), k, last, isWhole);
          Value value = operand(number, score.key);
          if (buffers.bf16)
            return asBf16(value, k);
          if (!buffers.bytes)
            return value;
          Build b = e.here();
          Value sign = b.constant(value.getType(), b.b.getI8IntegerAttr(-128));
          return arith::XOrIOp::create(b.b, e.loc, value, sign).getResult();
        });
        if (stop < buffers.keyStride)
          zerosFrom(j, stop);
      },
      zero);
  Build b = e.here();
  int64_t unit = std::max(shape.RJ, buffers.bf16 ? shape.unit : 1);
  Value end = b.mul(b.ceilDiv(count, unit), unit);
  e.loop(count, end, 1, zero);
}

/// Stores lanes d, d + 1, … of row j in panels of RJ: panels[d / RJ][j][d mod RJ].
void BlockedFold::storePanels(Value vector, Value pointer, Type type, Value d, Value j, int64_t depth) {
  Build b = e.here();
  Value RJ = b.index(shape.RJ);
  auto where = [&](Value d) {
    Value inside = b.rem(d, RJ);
    Value panel = b.mul(b.sub(d, inside), depth);
    return b.add(b.add(panel, b.mul(j, shape.RJ)), inside);
  };
  if (shape.RJ >= shape.lanes)
    return store(vector, pointer, where(d));
  for (int64_t k = 0; k != shape.lanes; k += shape.RJ) {
    Value part = vector::ExtractStridedSliceOp::create(b.b, e.loc, vector, ArrayRef<int64_t>{k},
                                                       ArrayRef<int64_t>{shape.RJ}, ArrayRef<int64_t>{1});
    store(part, pointer, where(b.add(d, k)));
  }
}

/// Returns the number of columns of an accumulator's state, including padding.
Value BlockedFold::columnsOf(const AccumulatorBuffers &buffers) {
  return e.columns ? e.columns : e.here().index(buffers.padded);
}

void BlockedFold::stageAccumulatorKeys(unsigned number) {
  const Accumulator &accumulator = plan.accumulators[number];
  const AccumulatorBuffers &buffers = accumulators[number];
  AccOp acc = accumulator.acc;
  auto indices = acc.getValue().getArguments();
  auto overCarried = [&](Value j, llvm::function_ref<Value(Value)> value) {
    std::function<void(unsigned, Value)> nest = [&](unsigned axis, Value flat) {
      bool last = axis + 1 == indices.size();
      int64_t size = last ? buffers.lastPadded : accumulator.extents[axis];
      Value end = last && e.columns ? e.columns : e.here().index(size);
      e.loop(e.here().index(0), end, last ? shape.lanes : 1, [&](Value index) {
        Build b = e.here();
        Value next = b.add(b.mul(flat, size), index);
        if (!last) {
          e.top().values[indices[axis]] = index;
          return nest(axis + 1, next);
        }
        Value vector = value(index);
        if (!buffers.bf16)
          return storePanels(vector, buffers.keys, accumulator.type, next, j, shape.BN);
        Build at = e.here();
        vector = e.convert(at, vector, at.b.getBF16Type());
        store(vector, buffers.keys, at.add(at.mul(j, buffers.padded), next));
      });
    };
    nest(0, e.here().index(0));
  };
  auto zero = [&](Value j) {
    overCarried(j, [&](Value) { return e.here().identity(Monoid::add, e.rowType(accumulator.type)); });
  };
  overKeys(
      [&](Value j) {
        overCarried(j, [&](Value index) {
          int64_t extent = accumulator.extents.back();
          Value last = e.columns ? e.here().sub(e.columns, e.here().index(1)) : e.here().index(extent - 1);
          e.bindLanes(e.top(), indices.back(), index, last,
                      !e.columns && extent % shape.lanes == 0 && extent == buffers.lastPadded);
          return product(accumulator.key, accumulator.type);
        });
      },
      zero);
  if (buffers.bf16) {
    Build b = e.here();
    e.loop(count, b.mul(b.ceilDiv(count, shape.unit), shape.unit), 1, zero);
  }
}

/// Stages values that depend on the key alone, with lanes over the keys of the block.
void BlockedFold::stageKeyValues() {
  if (plan.keyValues.empty())
    return;
  e.loop(e.here().index(0), count, shape.lanes, [&](Value j) {
    Build b = e.here();
    Value one = b.index(1), last = b.sub(b.add(first, count), one);
    unsigned depth = e.depth();
    e.bindLanes(e.top(), key, b.add(first, j), last);
    auto stage = [&] {
      for (auto [value, pointer] : llvm::zip_equal(plan.keyValues, keyValues)) {
        Value vector = e.rowValue(value);
        store(vector, pointer, j);
      }
    };
    if (!masked)
      return stage();
    e.scoped([&](Scope &scope) {
      scope.guardedFrom = depth;
      scope.present = load(booleanType(), anyOfKey, j);
      stage();
    });
  });
}

BlockedFold::KeySource BlockedFold::source(const Factors &factors, Type type, Value inner, KeySource copies,
                                           bool asAccumulator, llvm::function_ref<void()> stage) {
  std::optional<Emitter::Strided> place;
  if (whole && factors.values.size() == 1 && factors.divisors.empty() && !factors.narrow)
    if (LoadOp load = getReadElement(factors.values.front()); load && load.getResult().getType() == type)
      place = e.strided(load, key, first, inner);
  if (!place) {
    stage();
    return copies;
  }
  Value adjacent = e.here().eq(place->inner, e.here().index(1));
  if (e.columns) // the operand in place has no padding
    adjacent = e.here().both(adjacent, e.here().eq(e.columns, e.here().index(kColumns)));
  e.when(adjacent, [] {}, stage);
  Build b = e.here();
  return {b.select(adjacent, place->pointer, copies.pointer), b.select(adjacent, place->outer, copies.stride),
          asAccumulator ? b.select(adjacent, b.index(shape.RJ), copies.panel) : Value()};
}

void BlockedFold::stageKeys() {
  scoreKeys.clear();
  accumulatorKeys.clear();
  for (unsigned k = 0; k != scores.size(); ++k) {
    FoldOp inner = plan.scores[k].fold;
    int64_t stride = scores[k].bytes ? scores[k].keyStride / 4 : scores[k].keyStride;
    KeySource copies{scores[k].keys, e.here().index(stride), nullptr};
    Type type = scores[k].operand;
    if (scores[k].bf16) {
      type = e.here().b.getBF16Type();
      if (plan.scores[k].extent % shape.unit != 0) { // words or tiles would be partial
        stageScoreKeys(k);
        scoreKeys.push_back(copies);
        continue;
      }
    }
    scoreKeys.push_back(source(plan.scores[k].key, type, inner.getBody().getArgument(0), copies,
                               /*asAccumulator=*/false, [&] { stageScoreKeys(k); }));
  }
  for (unsigned k = 0; k != accumulators.size(); ++k) {
    const Accumulator &accumulator = plan.accumulators[k];
    AccOp acc = accumulator.acc;
    KeySource copies{accumulators[k].keys, e.here().index(shape.RJ), e.here().index(shape.RJ * shape.BN)};
    auto stage = [&] { stageAccumulatorKeys(k); };
    if (accumulators[k].bf16) {
      KeySource from{accumulators[k].keys, e.here().index(accumulators[k].padded), nullptr};
      if (accumulator.extents.size() == 1 && accumulator.extents[0] == accumulators[k].padded)
        from = source(accumulator.key, e.here().b.getBF16Type(), acc.getValue().getArgument(0), from,
                      /*asAccumulator=*/false, stage);
      else
        stage();
      packKeys(k, from.pointer, from.stride);
      int64_t words = shape.BN / 2;
      accumulatorKeys.push_back(
          {accumulators[k].packed, e.here().index(2 * shape.RJ), e.here().index(2 * shape.RJ * words)});
      continue;
    }
    // The memory of several axes need not be contiguous and has no padding.
    if (accumulator.extents.size() == 1 && accumulator.extents[0] % shape.RJ == 0 &&
        accumulator.extents[0] == accumulators[k].padded)
      accumulatorKeys.push_back(source(accumulator.key, accumulator.type, acc.getValue().getArgument(0), copies,
                                       /*asAccumulator=*/true, stage));
    else
      accumulatorKeys.push_back((stage(), copies));
  }
  stageKeyValues();
}

} // namespace moa::rows
