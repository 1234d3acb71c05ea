//===- Panels.cpp - scores, passes and accumulators of one panel of rows ------===//
#include "lib/Conversion/ONFToVector/BlockedFold.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace moa;

namespace moa::rows {
using namespace moa::onf;

void BlockedFold::withRow(Panel &panel, unsigned u, llvm::function_ref<void()> body) {
  e.stack.push_back(&panel.rows[u]);
  body();
  e.stack.pop_back();
}

Value BlockedFold::vectorOffset(Panel &panel, unsigned u) {
  Build b = e.here();
  return b.mul(b.add(b.mul(panel.number, shape.RI), u), shape.lanes);
}

void BlockedFold::emitPanel(Value number) {
  Panel panel;
  panel.number = number;
  panel.depth = e.depth();
  panel.rows.resize(shape.RI);
  panel.olds.resize(plan.scalars.size());
  for (unsigned u = 0; u != panel.rows.size(); ++u) {
    panel.rows[u].builder = e.top().builder;
    withRow(panel, u, [&] {
      Build b = e.here();
      bindRows(e, panel.rows[u], laneIndex, b.add(b.mul(number, shape.RI), u));
    });
  }
  for (unsigned k = 0; k != scores.size(); ++k)
    emitScore(k, panel);
  for (auto [read, buffer] : llvm::zip_equal(plan.rowLoads, rowLoads))
    for (unsigned u = 0; u != panel.rows.size(); ++u)
      withRow(panel, u, [&, read = read, buffer = buffer]() mutable {
        Build b = e.here();
        Value column = b.address(storageType(read.getResult().getType()), buffer, b.index(u * shape.lanes));
        e.stageLoad(read, key, first, count, column, shape.panelWidth());
      });
  for (auto [k, scalar] : llvm::enumerate(plan.scalars))
    for (unsigned u = 0; u != panel.rows.size(); ++u)
      panel.olds[k].push_back(load(scalar.acc.getResult().getType(), scalars[k].state, vectorOffset(panel, u)));
  panel.news = panel.olds;
  for (unsigned pass = 0; pass != plan.passes; ++pass)
    emitPass(pass, panel);
  for (auto [k, values] : llvm::enumerate(panel.news))
    for (unsigned u = 0; u != panel.rows.size(); ++u)
      store(values[u], scalars[k].state, vectorOffset(panel, u));
  for (unsigned k = 0; k != accumulators.size(); ++k)
    emitAccumulator(k, panel);
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// Emits sum + Σ of the products in each lane: of four bytes, unsigned in `keys`, or of two bf16.
Value BlockedFold::addDots(Build b, Value keys, Value rows, Value sum) {
  bool isInteger = getElementTypeOrSelf(sum).isInteger();
  auto type = isInteger ? VectorType::get({4 * shape.lanes}, b.b.getI8Type())
                        : VectorType::get({2 * shape.lanes}, b.b.getBF16Type());
  auto partsOf = [&](Value words) { return vector::BitCastOp::create(b.b, e.loc, type, words); };
  std::string name = isInteger ? "llvm.x86.avx512.vpdpbusd." : "llvm.x86.avx512bf16.dpbf16ps.";
  name += std::to_string(32 * shape.lanes);
  return LLVM::CallIntrinsicOp::create(b.b, e.loc, sum.getType(), b.b.getStringAttr(name),
                                       ValueRange{sum, partsOf(keys), partsOf(rows)})
      .getResult(0);
}

BlockedFold::Values BlockedFold::zeros(Type type) {
  return Values(shape.RJ * shape.RI, e.here().identity(Monoid::add, e.rowType(type)));
}

/// Emits sums[r][u] + Σ_k a[k·aDepth + r·aRow] · b[k][u] for from ≤ k < to, in RJ × RI registers.
/// Packed words are multiplied by dot-product instructions.
BlockedFold::Values BlockedFold::microKernel(const TileTypes &types, Value a, Value aRow, Value aDepth, Value b,
                                             Value from, Value to, Values sums) {
  Type type = types.word;
  bool isDot = type.isInteger();
  unsigned align = type.getIntOrFloatBitWidth() / 8, keyAlign = types.key.getIntOrFloatBitWidth() / 8;
  Type vectorType = e.rowType(type);
  return e.loop(from, to, 1, sums, [&](Value k, ValueRange args) {
    Build at = e.here();
    Value rowPointer = at.address(type, b, at.mul(k, shape.panelWidth()));
    Value keyPointer = at.address(types.key, a, at.mul(k, aDepth));
    Values rows, next;
    for (int64_t u = 0; u != shape.RI; ++u)
      rows.push_back(at.load(vectorType, at.address(type, rowPointer, at.index(u * shape.lanes)), align * shape.lanes));
    for (int64_t r = 0; r != shape.RJ; ++r) {
      Value where = at.address(types.key, keyPointer, at.mul(aRow, r));
      Value scalar = at.splat(at.load(type, where, keyAlign), shape.lanes);
      for (int64_t u = 0; u != shape.RI; ++u) {
        Value sum = args[r * shape.RI + u];
        next.push_back(isDot ? addDots(at, scalar, rows[u], sum)
                             : math::FmaOp::create(at.b, e.loc, scalar, rows[u], sum).getResult());
      }
    }
    return next;
  });
}

/// Emits microKernel for 0 ≤ k < depth words. Long sums are taken in blocks and compensated exactly
/// like a fold of their own (Fold.cpp), so that a recomputed sum has the same bits.
BlockedFold::Values BlockedFold::longSums(const TileTypes &types, Value a, Value aRow, Value aDepth, Value b,
                                          int64_t depth) {
  Type type = types.sum;
  int64_t most = types.word == type ? kSumBlock : kSumBlock / 2;
  Value zero = e.at(0).index(0), end = e.at(0).index(depth);
  if (depth <= most)
    return microKernel(types, a, aRow, aDepth, b, zero, end, zeros(type));
  size_t numSums = shape.RJ * shape.RI;
  Values inits(2 * numSums, e.here().identity(Monoid::add, e.rowType(type)));
  Values parts = e.loop(zero, end, most, inits, [&](Value base, ValueRange args) {
    Values next(args);
    Value to = e.here().min(e.here().add(base, most), end);
    Values block = microKernel(types, a, aRow, aDepth, b, base, to, zeros(type));
    for (size_t k = 0; k != numSums; ++k)
      std::tie(next[k], next[numSums + k]) = e.here().addCompensated(args[k], args[numSums + k], block[k]);
    return next;
  });
  Values sums;
  for (size_t k = 0; k != numSums; ++k)
    sums.push_back(e.here().combine(Monoid::add, parts[k], parts[numSums + k]));
  return sums;
}

/// Emits sums of integer products in the type of the scores. They are exact, so need no blocks.
BlockedFold::Values BlockedFold::integerSums(unsigned number, Panel &panel, Value keys, Value rows) {
  const ScoreBuffers &buffers = scores[number];
  Values sums;
  if (buffers.bytes)
    for (int64_t k = 0; k != shape.RJ * shape.RI; ++k)
      sums.push_back(k < shape.RI ? load(buffers.operand, buffers.bias, vectorOffset(panel, k)) : sums[k - shape.RI]);
  else
    sums = zeros(buffers.operand);
  Build b = e.here();
  Value depth = b.index(buffers.depth), start = b.index(0), step = b.index(1);
  sums = microKernel(TileTypes::of(buffers.operand), keys, scoreKeys[number].stride, step, rows, start, depth, sums);
  if (buffers.bytes && isa<FloatType>(buffers.sum))
    for (Value &sum : sums)
      sum = arith::SIToFPOp::create(e.here().b, e.loc, e.rowType(buffers.sum), sum);
  return sums;
}

void BlockedFold::emitScore(unsigned number, Panel &panel) {
  const Score &score = plan.scores[number];
  const ScoreBuffers &buffers = scores[number];
  Build b = e.here();
  Value rows = b.address(buffers.operand, buffers.rows, b.mul(panel.number, buffers.depth * shape.panelWidth()));
  if (buffers.bf16 && usesTiles())
    return tileScore(number, rows);
  e.loop(b.index(0), count, shape.RJ, [&](Value j) {
    Build b = e.here();
    const KeySource &source = scoreKeys[number];
    TileTypes types = buffers.bf16 ? bf16Types() : TileTypes::of(buffers.operand);
    Value keys = b.address(types.key, source.pointer, b.mul(j, source.stride));
    Value depth = b.index(buffers.bf16 ? 2 : 1);
    Values sums = score.isInteger() ? integerSums(number, panel, keys, rows)
                                    : longSums(types, keys, source.stride, depth, rows, buffers.depth);
    Value base = e.here().mul(j, shape.panelWidth());
    for (auto [k, sum] : llvm::enumerate(sums))
      store(sum, buffers.scores, e.here().add(base, static_cast<int64_t>(k) * shape.lanes));
  });
}

void BlockedFold::emitAccumulator(unsigned number, Panel &panel) {
  const Accumulator &accumulator = plan.accumulators[number];
  const AccumulatorBuffers &buffers = accumulators[number];
  if (buffers.bf16 && usesTiles())
    return tileAccumulator(number, panel);
  Value panelState = e.here().mul(panel.number, buffers.padded * shape.panelWidth());
  Value columns = columnsOf(buffers), firstColumn = e.here().index(0);
  e.loop(firstColumn, columns, shape.RJ, [&](Value d) {
    Build b = e.here();
    const KeySource &source = accumulatorKeys[number];
    Value panel = b.div(d, shape.RJ);
    TileTypes types = TileTypes::of(accumulator.type);
    Value one = b.index(1), keyRow = one, rows = operands[accumulator.operand].elements, depth = count;
    if (buffers.bf16) { // words of two keys
      types = bf16Types();
      keyRow = b.index(2);
      rows = operands[accumulator.operand].packed;
      depth = b.ceilDiv(count, 2);
    }
    Value keys = b.address(types.key, source.pointer, b.mul(panel, source.panel));
    Values inits = zeros(accumulator.type);
    Value start = b.index(0);
    Values sums = microKernel(types, keys, keyRow, source.stride, rows, start, depth, inits);
    Value base = e.here().add(panelState, e.here().mul(d, shape.panelWidth()));
    for (auto [k, sum] : llvm::enumerate(sums))
      addToState(number, e.here().add(base, static_cast<int64_t>(k) * shape.lanes), sum, k % shape.RI);
  });
}

/// Adds the sum over a block to one element of an accumulator's state, in vector u of the panel.
void BlockedFold::addToState(unsigned number, Value where, Value sum, int64_t u) {
  Build b = e.here();
  Type type = plan.accumulators[number].type;
  const AccumulatorBuffers &buffers = accumulators[number];
  Value old = load(type, buffers.state, where), next;
  if (buffers.rest) {
    std::tie(next, old) = b.addCompensated(old, load(type, buffers.rest, where), sum);
    store(old, buffers.rest, where);
  } else if (accumulatorStarted[number]) {
    Value factor = load(type, buffers.factor, b.index(u * shape.lanes));
    next = math::FmaOp::create(b.b, e.loc, old, factor, sum);
  } else {
    next = b.combine(Monoid::add, old, sum);
  }
  store(next, buffers.state, where);
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

static unsigned numberOf(const FoldPlan &plan, Value ref) {
  for (auto [k, scalar] : llvm::enumerate(plan.scalars))
    if (scalar.acc == ref.getDefiningOp())
      return k;
  llvm_unreachable("refs are states without axes of the same fold");
}

Value BlockedFold::regular(AccOp acc, Panel &panel, unsigned u) {
  Build b = e.here();
  Value ok;
  for (auto [ref, singular] : llvm::zip_equal(acc.getRefs(), acc.getSingular())) {
    Value now = panel.news[numberOf(plan, ref)][u];
    ok = b.bothRegular(ok, now, singular);
  }
  return ok;
}

BlockedFold::Rescale BlockedFold::rescale(AccOp acc, Panel &panel, unsigned u, Value started) {
  Rescale result;
  Build b = e.here();
  Value changed;
  Values olds, news, others;
  for (Value ref : acc.getRefs()) {
    unsigned number = numberOf(plan, ref);
    olds.push_back(panel.olds[number][u]);
    news.push_back(panel.news[number][u]);
    changed = b.either(changed, b.differs(olds.back(), news.back()));
  }
  for (Value other : acc.getOthers())
    others.push_back(panel.olds[numberOf(plan, other)][u]);
  result.correction = e.correctionOf(acc, olds, news, others, true);
  Value isRegular = regular(acc, panel, u);
  result.apply = b.both(b.both(started, changed), isRegular);
  return result;
}

/// Marks the state as started in rows where a present key met regular references. Returns the mask
/// before this update.
Value BlockedFold::updateStarted(AccOp acc, Panel &panel, unsigned u, Value pointer) {
  Value offset = vectorOffset(panel, u);
  Value before = load(booleanType(), pointer, offset);
  Value now = regular(acc, panel, u);
  if (masked)
    now = e.here().both(now, load(booleanType(), anyOfRow, offset));
  Build b = e.here();
  now = now ? b.either(before, now) : b.constant(before.getType(), b.b.getBoolAttr(true));
  store(now, pointer, offset);
  return before;
}

/// Converts a sum of integers to the index type in which it is read.
Value BlockedFold::toIndex(Value sum) {
  Build b = e.here();
  if (isa<FloatType>(getElementTypeOrSelf(sum)))
    sum = arith::FPToSIOp::create(b.b, e.loc, e.rowType(b.b.getI32Type()), sum);
  return arith::IndexCastOp::create(b.b, e.loc, e.rowType(b.b.getIndexType()), sum);
}

/// Binds key j of the block and the stored values that belong to it.
void BlockedFold::bindPassValues(unsigned pass, Panel &panel, unsigned u, Value j) {
  Scope &scope = e.top();
  Build b = e.here();
  scope.values[key] = b.add(first, j);
  Value offset = b.add(b.mul(j, shape.panelWidth()), u * shape.lanes);
  for (auto [score, buffers] : llvm::zip_equal(plan.scores, scores)) {
    Value sum = load(buffers.sum, buffers.scores, offset), read = score.value;
    if (!read)
      read = score.fold.getResult(0), sum = toIndex(sum);
    scope.values[read] = sum;
  }
  for (auto [entry, pointer] : llvm::zip_equal(plan.kept, kept))
    if (entry.second < pass)
      scope.values[entry.first] = load(entry.first.getType(), pointer, offset);
  for (auto [read, pointer] : llvm::zip_equal(plan.rowLoads, rowLoads))
    scope.values[read.getResult()] = load(read.getResult().getType(), pointer, offset);
  for (auto [value, pointer] : llvm::zip_equal(plan.keyValues, keyValues))
    scope.values[value] = load(value.getType(), pointer, j, false);
}

/// Stores the row operands of the accumulators of this pass, 0 for masked-out keys.
void BlockedFold::storeOperands(unsigned pass, Panel &panel, unsigned u, Value j, Value present) {
  llvm::SmallDenseSet<unsigned> done;
  for (const Accumulator &accumulator : plan.accumulators) {
    if (accumulator.pass != pass || !done.insert(accumulator.operand).second)
      continue;
    // Packing rounds operands that are only read packed.
    Factors factors = accumulator.row;
    if (!operands[accumulator.operand].floats)
      factors.narrow = Type();
    Value value = product(factors, accumulator.type);
    Build b = e.here();
    if (Value keep = b.both(present, regular(accumulator.acc, panel, u)))
      value = b.select(keep, value, b.identity(Monoid::add, value.getType()));
    store(value, operands[accumulator.operand].elements, b.add(b.mul(j, shape.panelWidth()), u * shape.lanes));
  }
}

/// Adds key j to the block's partial states of one vector of rows. Returns the new partials.
BlockedFold::Values BlockedFold::accumulate(unsigned pass, Panel &panel, unsigned u, Value j, ValueRange partial) {
  // Hoist values that depend only on the row: push the scope of the row directly after the panel's,
  // then a scope for this key and vector.
  Scope scope;
  scope.builder = e.top().builder;
  std::vector<Scope *> inner(e.stack.begin() + panel.depth + 1, e.stack.end());
  e.stack.resize(panel.depth + 1);
  e.stack.push_back(&panel.rows[u]);
  e.stack.push_back(&scope);
  bindPassValues(pass, panel, u, j);
  Value present;
  if (masked) {
    Build b = e.here();
    Value v = b.add(b.mul(panel.number, shape.RI), u);
    Value offset = b.add(b.mul(v, shape.BN), j);
    present = load(booleanType(), masks, b.mul(offset, shape.lanes));
    scope.guardedFrom = e.depth();
    scope.present = present;
  }
  Values next;
  for (auto &scalar : plan.scalars) {
    if (scalar.pass != pass)
      continue;
    AccOp acc = scalar.acc;
    Value term = e.evalTerm(acc);
    Build b = e.here();
    term = b.splat(term, shape.lanes);
    if (Value keep = b.both(present, regular(acc, panel, u)))
      term = b.select(keep, term, e.identityOf(acc, term.getType()));
    next.push_back(e.combine(acc, partial[next.size()], term));
  }
  storeOperands(pass, panel, u, j, present);
  for (auto [entry, pointer] : llvm::zip_equal(plan.kept, kept))
    if (entry.second == pass) {
      Value value = e.rowValue(entry.first);
      Build b = e.here();
      store(value, pointer, b.add(b.mul(j, shape.panelWidth()), u * shape.lanes));
    }
  e.stack.resize(panel.depth + 1);
  e.stack.insert(e.stack.end(), inner.begin(), inner.end());
  return next;
}

/// Stores row operands of 0 for a key that no row sees. Reads nothing.
void BlockedFold::skipKey(unsigned pass, Value j) {
  for (const Accumulator &accumulator : plan.accumulators) {
    if (accumulator.pass != pass)
      continue;
    Build b = e.here();
    Value zero = b.identity(Monoid::add, e.rowType(accumulator.type));
    for (int64_t u = 0; u != shape.RI; ++u)
      store(zero, operands[accumulator.operand].elements, b.add(b.mul(j, shape.panelWidth()), u * shape.lanes));
  }
}

void BlockedFold::emitPass(unsigned pass, Panel &panel) {
  Values inits;
  unsigned perRow = 0;
  for (auto &scalar : plan.scalars)
    perRow += scalar.pass == pass;
  for (unsigned u = 0; u != panel.rows.size(); ++u)
    for (auto &scalar : plan.scalars)
      if (AccOp acc = scalar.acc; scalar.pass == pass)
        inits.push_back(e.identityOf(acc, e.rowType(acc.getResult().getType())));
  Values partial = e.loop(e.here().index(0), count, 1, inits, [&](Value j, ValueRange args) {
    auto body = [&] {
      Values next;
      for (unsigned u = 0; u != panel.rows.size(); ++u)
        next.append(accumulate(pass, panel, u, j, args.slice(u * perRow, perRow)));
      return next;
    };
    if (!masked)
      return body();
    Value seen = load(booleanType(), anyOfKey, j, false);
    return e.branch(seen, args.getTypes(), body, [&] {
      skipKey(pass, j);
      return Values(args);
    });
  });
  for (unsigned u = 0; u != panel.rows.size(); ++u)
    withRow(panel, u, [&] { finishPass(pass, panel, u, ValueRange(partial).slice(u * perRow, perRow)); });
  packOperands(pass, panel);
}

/// Rescales the states before the block and merges the block's partials into them.
void BlockedFold::finishPass(unsigned pass, Panel &panel, unsigned u, ValueRange partial) {
  unsigned index = 0;
  for (auto [k, scalar] : llvm::enumerate(plan.scalars)) {
    if (scalar.pass != pass)
      continue;
    AccOp acc = scalar.acc;
    Value state = panel.olds[k][u], rest;
    if (scalars[k].rest)
      rest = load(acc.getResult().getType(), scalars[k].rest, vectorOffset(panel, u));
    if (scalars[k].started) {
      Value started = updateStarted(acc, panel, u, scalars[k].started);
      Rescale fix = rescale(acc, panel, u, started);
      state = e.rescaled(acc, state, fix.correction, fix.apply);
      if (rest)
        rest = e.rescaled(acc, rest, fix.correction, fix.apply);
    }
    Value next;
    if (rest) {
      std::tie(next, rest) = e.here().addCompensated(state, rest, partial[index++]);
      store(rest, scalars[k].rest, vectorOffset(panel, u));
    } else {
      next = e.combine(acc, state, partial[index++]);
    }
    panel.news[k][u] = next;
    panel.rows[u].values[acc.getResult()] = next;
  }
  for (auto [k, accumulator] : llvm::enumerate(plan.accumulators)) {
    if (accumulator.pass != pass || !accumulatorStarted[k])
      continue;
    AccOp acc = accumulator.acc;
    Value started = updateStarted(acc, panel, u, accumulatorStarted[k]);
    Rescale fix = rescale(acc, panel, u, started);
    Build b = e.here();
    Value one = b.constant(e.rowType(accumulator.type), FloatAttr::get(accumulator.type, 1.0));
    Value place = b.index(u * shape.lanes);
    store(b.select(fix.apply, fix.correction.factor, one), accumulators[k].factor, place);
  }
}

} // namespace moa::rows
