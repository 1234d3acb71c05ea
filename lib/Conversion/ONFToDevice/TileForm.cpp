//===- TileForm.cpp - the form of nests that run with tiles ---------------===//
#include "lib/Conversion/ONFToDevice/GpuNests.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace {

/// Counts the distinct operations per pair (row, key). Equal operations on equal operands count
/// once, those of the row alone not at all.
class PairCounter {
public:
  explicit PairCounter(const TilePlan &plan) : key(plan.keyIndex()) {
    for (const rows::Score &score : plan.folded.scores)
      values[score.value] = {next++, true};
  }

  /// Adds the operations of a value that have not been counted.
  void add(Value value) { visit(value); }
  OperationCounts take() { return std::exchange(counts, OperationCounts()); }

private:
  struct ValueNumber {
    unsigned id;
    bool varies; // between the pairs of a row
  };
  ValueNumber visit(Value value);
  ValueNumber visitOp(Operation *op);
  void count(Operation *op);

  Value key;
  llvm::DenseMap<Value, ValueNumber> values;
  std::map<std::string, ValueNumber> known;
  unsigned next = 0;
  OperationCounts counts;
};

PairCounter::ValueNumber PairCounter::visit(Value value) {
  auto found = values.find(value);
  if (found != values.end())
    return found->second;
  Operation *op = value.getDefiningOp();
  ValueNumber number;
  if (value == key) {
    counts.integer += 2; // first key of the tile + column, in 64 bits
    number = {next++, true};
  } else if (!op || op->getNumRegions() != 0) {
    number = {next++, false}; // another index, a state, a fold of the row
  } else {
    number = visitOp(op);
  }
  values[value] = number;
  return number;
}

PairCounter::ValueNumber PairCounter::visitOp(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName() << op->getAttrDictionary() << op->getResultTypes();
  bool varies = false;
  for (Value operand : op->getOperands()) {
    ValueNumber number = visit(operand);
    os << " " << number.id;
    varies |= number.varies;
  }
  auto [entry, isNew] = known.try_emplace(text, ValueNumber{next, varies});
  if (isNew) {
    ++next;
    if (varies)
      count(op);
  }
  return entry->second;
}

static bool isLong(Type type) { return type.isIndex() || type.isInteger(64); }

void PairCounter::count(Operation *op) {
  Type from = op->getOperand(0).getType(), to = op->getResult(0).getType();
  if (isa<LoadOp>(op)) {
    ++counts.loads;
  } else if (isa<arith::DivFOp>(op)) {
    ++counts.special; // a reciprocal and its correction
    counts.f32 += 8;
  } else if (isa<math::ExpOp, math::Exp2Op>(op)) {
    ++counts.special; // its factor is part of an earlier product
  } else if (isa<PiecewiseExp2Op>(op)) {
    ++counts.f32; // two at once: rounding and shift
  } else if (isa<math::AbsFOp, math::FloorOp, math::CeilOp, math::FmaOp>(op)) {
    ++counts.f32;
  } else if (isa<math::LogOp, math::Log2Op, math::SqrtOp, math::RsqrtOp>(op)) {
    ++counts.special;
    counts.f32 += 4;
  } else if (isa<math::TanhOp>(op)) {
    counts.special += 2;
    counts.f32 += 16;
  } else if (isa<math::MathDialect>(op->getDialect())) {
    counts.special += 2; // a library function, with branches
    counts.f32 += 40;
  } else if (isa<FloatType>(from) != isa<FloatType>(to) && (isLong(from) || isLong(to))) {
    ++counts.special; // 64-bit conversions have the same throughput
  } else if (isa<FloatType>(from) || isa<FloatType>(to)) {
    ++counts.f32;
  } else {
    counts.integer += isLong(from) || isLong(to) ? 2 : 1;
  }
}

/// Returns whether a value is at most 0 for all operands. Such values are x − m, if m is a maximum
/// that includes x, and m − x, if m is such a minimum.
bool isAtMostZero(Value value) {
  auto difference = value.getDefiningOp<arith::SubFOp>();
  if (!difference)
    return false;
  auto isExtremeOf = [](Value state, Value x, Monoid monoid) {
    auto acc = state.getDefiningOp<AccOp>();
    if (!acc || acc.getMonoid() != monoid || !acc.getRefs().empty())
      return false;
    Value term = rows::getYielded(acc.getValue());
    Operation *op = term.getDefiningOp();
    bool isOfSeveral =
        monoid == Monoid::max ? isa_and_nonnull<arith::MaximumFOp>(op) : isa_and_nonnull<arith::MinimumFOp>(op);
    return term == x || (isOfSeveral && llvm::is_contained(op->getOperands(), x));
  };
  return isExtremeOf(difference.getRhs(), difference.getLhs(), Monoid::max) ||
         isExtremeOf(difference.getLhs(), difference.getRhs(), Monoid::min);
}

/// Returns whether a value is at most 1: an exponential of a value that is at most 0.
bool isAtMostOne(Value value) {
  Operation *exp = value.getDefiningOp();
  return isa_and_nonnull<math::ExpOp, math::Exp2Op>(exp) && isAtMostZero(exp->getOperand(0));
}

/// Returns the number of fragments other than scores and weights. These are terms of states that no
/// accumulator has as weights, and operands of an extreme if the score is needed after it. Extremes
/// of scores and terms of the mask alone take no fragment.
int64_t countTerms(const TilePlan &plan) {
  int64_t count = 0;
  for (const rows::Scalar &scalar : plan.folded.scalars) {
    AccOp acc = scalar.acc;
    Value term = rows::splitTerm(acc, plan.keyIndex()).value;
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    options.omitBlockArguments = true;
    (void)getBackwardSlice(term, &slice, options);
    bool isExtreme = (acc.getMonoid() == Monoid::max || acc.getMonoid() == Monoid::min) && acc.getRefs().empty();
    bool ofScores = false, keepsScore = false;
    for (const rows::Score &score : plan.folded.scores) {
      Value value = score.value;
      if (!slice.contains(value.getDefiningOp()))
        continue;
      ofScores = true;
      // A product with a uniform number is the score itself.
      if (value.hasOneUse() && isa<arith::MulFOp>(*value.getUsers().begin()))
        value = value.getUsers().begin()->getResult(0);
      keepsScore |= value != term && !value.hasOneUse();
    }
    bool isWeight = llvm::any_of(plan.weights, [&](ArrayRef<rows::Factors> weights) {
      return llvm::any_of(weights, [&](const rows::Factors &factors) {
        return factors.values.size() == 1 && factors.divisors.empty() && factors.values[0] == term;
      });
    });
    count += ofScores && !isWeight && (!isExtreme || keepsScore);
  }
  return count;
}

/// Returns an e ≥ 0 such that a weight is at most 2^e; 64 if none is known.
double getExponent(Value weight) {
  if (auto product = weight.getDefiningOp<arith::MulFOp>())
    return std::min(getExponent(product.getLhs()) + getExponent(product.getRhs()), 64.0);
  if (auto piecewise = weight.getDefiningOp<PiecewiseExp2Op>()) {
    // It must not grow faster than the correction factors, e^x.
    double times = piecewise.getTimes().convertToDouble(), plus = piecewise.getPlus().convertToDouble();
    bool isShare = times >= 0 && times < 1.4427 && plus < 15 && isAtMostZero(piecewise.getOperand());
    return isShare ? std::max(std::log2(PiecewiseExp2Op::evaluate(plus)), 0.0) : 64;
  }
  auto constant = weight.getDefiningOp<arith::ConstantOp>();
  auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr();
  if (number && number.getValue().isFiniteNonZero())
    return std::log2(std::max(1.0, std::fabs(number.getValueAsDouble())));
  // The remainder of rounding to f16 is at most 2^-11 of the value.
  if (auto rest = weight.getDefiningOp<arith::SubFOp>()) {
    auto widened = rest.getRhs().getDefiningOp<arith::ExtFOp>();
    auto rounded = widened ? widened.getIn().getDefiningOp<arith::TruncFOp>() : arith::TruncFOp();
    if (rounded && rounded.getType().isF16() && rounded.getIn() == rest.getLhs())
      return std::max(getExponent(rest.getLhs()) - 11, 0.0);
  }
  return isAtMostOne(weight) ? 0 : 64;
}

double getExponent(const rows::Factors &weights) {
  double exponent = weights.divisors.empty() ? 0 : 64;
  for (Value factor : weights.values)
    exponent += getExponent(factor);
  return exponent;
}

constexpr int64_t kLargeExtent = int64_t(1) << 20, kSampledRows = 64;

/// Values of the symbols of an interval: all are equal, except for one with an offset.
struct Sample {
  int64_t symbol, off = 0;
  unsigned which = 0;
};

/// Returns the largest lower or the smallest upper bound of the 64 rows from `row` on. Nullopt: there
/// is none, or it is not known.
std::optional<int64_t> boundAt(AffineMap map, int64_t row, const Sample &at, bool isLower) {
  MLIRContext *context = map.getContext();
  SmallVector<Attribute> operands, values;
  for (unsigned k = 0; k < map.getNumInputs(); ++k) {
    bool isSymbol = k >= map.getNumDims();
    int64_t symbol = at.symbol + (isSymbol && k - map.getNumDims() == at.which ? at.off : 0);
    operands.push_back(IntegerAttr::get(IndexType::get(context), isSymbol ? symbol : row + k * (kSampledRows - 1)));
  }
  if (failed(map.constantFold(operands, values)) || values.empty())
    return std::nullopt;
  std::optional<int64_t> result;
  for (Attribute value : values) {
    int64_t number = cast<IntegerAttr>(value).getInt();
    result = !result ? number : isLower ? std::max(*result, number) : std::min(*result, number);
  }
  return result;
}

/// Returns whether later rows visit fewer indices than the first ones if all extents are equal. For
/// example, the keys of causal attention are visited by fewer and fewer queries.
bool visitsFewerLater(FoldOp fold) {
  if (!fold.getPieces() || fold.getPieces()->size() != 1)
    return false;
  auto piece = cast<PieceAttr>((*fold.getPieces())[0]);
  auto countAt = [&](int64_t row) {
    Sample sample{kLargeExtent};
    int64_t low = boundAt(piece.getVisitLower(), row, sample, true).value_or(0);
    int64_t high = boundAt(piece.getVisitUpper(), row, sample, false).value_or(kLargeExtent);
    return std::min(high, kLargeExtent) - std::max<int64_t>(low, 0);
  };
  return countAt(kLargeExtent / 2) < countAt(0);
}

/// Returns the most indices that an aligned group of 64 rows visits, from samples of rows and
/// symbols; nullopt if they may be many. It affects shapes, not results.
std::optional<int64_t> countVisited(const TilePlan &plan) {
  auto pieces = onf::FoldOp(plan.fold).getPieces();
  bool isPlain = llvm::all_of(rows::getAccs(plan.fold),
                              [](AccOp acc) { return acc.getMonoid() == Monoid::add && acc.getRefs().empty(); });
  if (!pieces || pieces->size() != 1 || !isPlain)
    return std::nullopt;
  constexpr int64_t few = 512;
  auto piece = cast<PieceAttr>((*pieces)[0]);
  int64_t most = 0;
  constexpr int64_t large = kLargeExtent, apart = 16 * few;
  SmallVector<Sample> samples{{large}, {large + 37}};
  for (unsigned which = 0; which < piece.getVisitLower().getNumSymbols(); ++which)
    llvm::append_range(samples, std::initializer_list<Sample>{{large, apart, which}, {large, -apart, which}});
  for (const Sample &sample : samples)
    for (int64_t row = 0; row < 128 * kSampledRows; row += kSampledRows) {
      auto low = boundAt(piece.getVisitLower(), row, sample, true),
           high = boundAt(piece.getVisitUpper(), row, sample, false);
      if (!low || !high)
        return std::nullopt;
      most = std::max(most, *high - std::max<int64_t>(*low, 0));
    }
  return most <= few ? std::optional(most) : std::nullopt;
}

/// Returns the keys of the shortest pages of an operand; 0 if no keys are found by pages.
int64_t findPage(const TilePlan &plan) {
  int64_t page = 0;
  for (const auto *operands : {&plan.keyOperands, &plan.valueOperands})
    for (const TileOperand &operand : *operands)
      if (operand.page)
        page = page ? std::gcd(page, *operand.page) : *operand.page;
  return page;
}

/// Returns whether a block can hand over a fold to another one (Tiles/StreamK.cpp).
bool canShare(const TilePlan &plan) {
  if (findPage(plan))
    return false; // a stage has several arrivals
  bool isAlike = !plan.product && plan.prologue.empty() && !plan.fold.getPieces() && !rows::getGuard(plan.fold);
  return isAlike && llvm::all_of(rows::getAccs(plan.fold), [](AccOp acc) {
           Type type = rows::getYielded(acc.getValue()).getType();
           return type.isF32() || type.isInteger(1);
         });
}

/// Returns whether the nest folds parts of a range: an axis before the last one bounds the indices of
/// the fold, and no operand depends on it.
bool foldsParts(const TilePlan &plan) {
  GuardOp guard = rows::getGuard(plan.fold);
  if (!guard || plan.product)
    return false;
  rows::Dependence deps;
  auto isRead = [&](ArrayRef<TileOperand> operands, Value axis) {
    return llvm::any_of(operands, [&](const TileOperand &operand) {
      return llvm::any_of(LoadOp(operand.load).getTerms(), [&](Value term) { return deps.on(term, axis); });
    });
  };
  return llvm::any_of(plan.nest.getBody().getArguments().drop_back(), [&](Value axis) {
    return deps.on(guard.getCondition(), axis) && !isRead(plan.rowOperands, axis) && !isRead(plan.keyOperands, axis) &&
           !isRead(plan.valueOperands, axis);
  });
}

TileFold describeFold(TilePlan &plan) {
  TileFold fold;
  fold.name = plan.fold.getName().str();
  for (auto each : plan.nest.getBody().getOps<FoldOp>()) {
    fold.hasPieces |= bool(each.getPieces());
    fold.visitsFewerLater |= visitsFewerLater(each);
  }
  fold.extent = plan.fold.getExtent().getConstant();
  auto countOperands = [](ArrayRef<ProductTerm> terms, unsigned ProductTerm::*operand) {
    llvm::SmallSetVector<unsigned, 4> different;
    for (const ProductTerm &term : terms)
      different.insert(term.*operand);
    return static_cast<int64_t>(different.size());
  };
  auto addColumns = [&](SmallVectorImpl<TileColumns> &list, ArrayRef<ProductTerm> terms, const TileOperand &operand) {
    TileColumns &columns = list.emplace_back(operand.columns, operand.getBytes(), operand.isTransposed);
    columns.products = terms.size();
    columns.rowOperands = countOperands(terms, &ProductTerm::row);
    columns.keyOperands = countOperands(terms, &ProductTerm::key);
  };
  for (ArrayRef<ProductTerm> terms : plan.scoreTerms)
    addColumns(fold.depths, terms, plan.keyOperands[terms[0].key]);
  PairCounter counter(plan);
  for (const rows::Scalar &scalar : plan.folded.scalars)
    counter.add(rows::splitTerm(scalar.acc, plan.keyIndex()).value);
  for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators)) {
    addColumns(fold.widths, plan.accumulatorTerms[k], plan.valueOperands[plan.accumulatorTerms[k][0].key]);
    if (!accumulator.acc.getRefs().empty())
      fold.rescaledColumns += paddedColumns(accumulator.extents[0]);
    for (const rows::Factors &weights : plan.weights[k])
      for (const auto &factors : {weights.values, weights.divisors})
        for (Value factor : factors)
          counter.add(factor);
  }
  fold.isProduct = plan.product.has_value();
  for (const TileProduct &contraction : plan.prologue) {
    TileColumns columns(contraction.right.columns);
    fold.prologueBytes += paddedColumns(contraction.length) * columns.paddedBytes();
    fold.prologueSums += contraction.joined ? 0 : columns.padded() / 2;
  }
  fold.visited = fold.isProduct ? fold.extent : countVisited(plan);
  fold.weights = 0;
  for (const auto &weights : plan.weights)
    fold.weights += weights.size();
  fold.states = plan.folded.scalars.size();
  fold.terms = countTerms(plan);
  if (getResultElement(plan))
    fold.resultBytes = 2 * getResultColumns(plan);
  fold.canGroup = plan.nest.getExtents().size() > 1;
  fold.canShare = canShare(plan);
  fold.isPart = foldsParts(plan);
  fold.page = findPage(plan);
  auto kernel = plan.nest->getParentOfType<onf::KernelOp>();
  for (unsigned array = 0; array != kernel.getBody().getNumArguments(); ++array)
    fold.hasWorkspace |= kernel.isTemporary(array);
  if (canRescaleLazily(plan)) {
    // Weights are rounded while they are off by up to the bound. f16 ends at 2^16, f8E4M3FN at 448,
    // and sums in f32 at 2^128. In the two narrow types, only bounded weights may be off.
    fold.mostRescaleBound = 64;
    fold.rescaleBound = 8;
    for (const auto &weights : plan.weights)
      for (const rows::Factors &factors : weights) {
        bool isHalf = factors.narrow && factors.narrow.isF16();
        bool isByte = factors.narrow && isa<Float8E4M3FNType>(factors.narrow);
        if (!isHalf && !isByte)
          continue;
        // A weight may equal the largest number.
        double most = std::log2(isHalf ? 65504.0 : 448.0) - getExponent(factors);
        int64_t room = std::max<int64_t>(std::floor(most + 0x1p-20), 0);
        fold.mostRescaleBound = std::min(fold.mostRescaleBound, room);
        fold.rescaleBound = std::min<int64_t>(fold.rescaleBound, std::min<int64_t>(room, 3));
      }
  }
  fold.counts = counter.take();
  // Each state combines the tile's terms.
  fold.counts.f32 += plan.folded.scalars.size();
  for (const rows::Score &score : plan.folded.scores)
    if (score.type.isIndex())
      fold.counts.integer += 1; // conversion of a sum to float
  if (GuardOp guard = rows::getGuard(plan.fold); guard && !fold.isProduct) {
    fold.guarded = true;
    fold.listBytes = tileListBytes(plan);
    counter.add(guard.getCondition());
    fold.guardCounts = counter.take();
  }
  return fold;
}

/// Returns the temporaries whose last axis is interleaved in memory: the 8-bit operands of
/// accumulators.
SmallVector<int64_t> findInterleaved(const TilePlan &plan) {
  SmallVector<int64_t> arrays;
  for (const TileOperand &operand : plan.valueOperands) {
    int64_t array = cast<BlockArgument>(operand.load.getArray()).getArgNumber();
    if (operand.isTransposed && !llvm::is_contained(arrays, array))
      arrays.push_back(array);
  }
  return arrays;
}

/// Reads the shape from the attributes of a nest and its fold.
Match<TileShape> readShape(TilePlan &plan) {
  auto pipeline = plan.nest.getPipeline();
  auto keys = plan.fold.getLift();
  if (!pipeline || !keys)
    return Reason("it has no pipeline, or its fold is not lifted");
  auto rows = cast<AxisAttr>(plan.nest.getLift()->getValue().back());
  TileShape shape;
  shape.warpgroups = rows.getSize(Resource::warpgroup);
  shape.stages = keys->getSize(Resource::stage);
  shape.keys = keys->getSize(Resource::shared);
  shape.consumerRegisters = pipeline->getConsumer();
  shape.producerRegisters = pipeline->getProducer();
  shape.overlap = pipeline->getOverlap();
  shape.descending = pipeline->getDescending();
  shape.groupBytes = pipeline->getGroup();
  shape.rescaleBound = pipeline->getLazy();
  shape.holdsRows = pipeline->getHeld();
  shape.takesTurns = pipeline->getTurns();
  shape.shares = pipeline->getShares();
  if (rows.getTile() != shape.rows() || keys->getTile() != shape.stages * shape.keys)
    return Reason("its factors are not those of warpgroups and stages");
  return shape;
}

class TileMatch final : public FormMatch {
public:
  explicit TileMatch(TilePlan plan) : plan(std::move(plan)) {}
  DictionaryAttr describe() final {
    NamedAttrList data(writeFold(plan.nest.getContext(), describeFold(plan)));
    if (SmallVector<int64_t> arrays = findInterleaved(plan); !arrays.empty())
      data.set(kInterleavedKey, DenseI64ArrayAttr::get(plan.nest.getContext(), arrays));
    return data.getDictionary(plan.nest.getContext());
  }
  LogicalResult lower(device::ProgramOp program, unsigned number) final {
    auto shape = readShape(plan);
    if (!shape)
      return plan.nest.emitOpError("is bound to warpgroups, but cannot run so: ") << shape.why();
    plan.shape = *shape;
    return lowerTiles(plan, program, number);
  }

private:
  TilePlan plan;
};

Match<std::unique_ptr<FormMatch>> matchTiles(ForOp nest) {
  auto plan = findTiles(nest);
  if (!plan)
    return Reason(plan.why());
  return std::make_unique<TileMatch>(std::move(*plan));
}

} // namespace

const KernelForm moa::forms::tiles = {kTilesForm, "warpgroups", matchTiles};
