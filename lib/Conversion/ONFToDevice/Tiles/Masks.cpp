//===- Masks.cpp - masks: the keys of a tile that rows see ----------------===//
#include "lib/Conversion/ONFToDevice/Tiles/Masks.h"
#include "lib/Conversion/ONFToDevice/Tiles/Maps.h"
#include <numeric>

using namespace mlir;
using namespace moa;
using namespace moa::onf;

namespace moa::tiles {

namespace {
/// A guard as a conjunction: comparisons that bound the key, conditions on the row alone, and the
/// rest.
struct Guard {
  struct Bound {
    Value left, right;              // left − right is the key plus a term of the row
    arith::CmpIPredicate predicate; // of left and right, signed
  };
  SmallVector<Bound> bounds;
  SmallVector<Value> ofRow, rest;
};

class GuardSplitter {
public:
  GuardSplitter(Value key, ScalarCode &code) : key(key), code(code) {}

  void read(Value condition, Guard &guard) {
    Operation *op = condition.getDefiningOp();
    if (isa_and_nonnull<arith::AndIOp>(op)) {
      read(op->getOperand(0), guard);
      read(op->getOperand(1), guard);
    } else if (code.isCostly(condition)) {
      guard.rest.push_back(condition);
    } else if (!deps.on(condition, key)) {
      guard.ofRow.push_back(condition);
    } else if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op); !compare || !readBound(compare, guard)) {
      guard.rest.push_back(condition);
    }
  }

private:
  bool readBound(arith::CmpIOp compare, Guard &guard) {
    using Predicate = arith::CmpIPredicate;
    Predicate predicate = compare.getPredicate(), mirrored;
    switch (predicate) {
    case Predicate::slt:
      mirrored = Predicate::sgt;
      break;
    case Predicate::sle:
      mirrored = Predicate::sge;
      break;
    case Predicate::sgt:
      mirrored = Predicate::slt;
      break;
    case Predicate::sge:
      mirrored = Predicate::sle;
      break;
    case Predicate::eq:
      mirrored = Predicate::eq;
      break;
    default:
      return false;
    }
    Value left = compare.getLhs(), right = compare.getRhs();
    auto ofLeft = coefficient(left), ofRight = coefficient(right);
    if (!left.getType().isIndex() || !ofLeft || !ofRight)
      return false;
    int64_t slope = *ofLeft - *ofRight;
    if (slope == 1)
      guard.bounds.push_back({left, right, predicate});
    else if (slope == -1)
      guard.bounds.push_back({right, left, mirrored});
    return slope == 1 || slope == -1;
  }

  /// Returns c of a value c·key + (a term without the key), or nullopt for another form.
  std::optional<int64_t> coefficient(Value value) {
    if (value == key)
      return 1;
    if (!deps.on(value, key))
      return 0;
    Operation *op = value.getDefiningOp();
    if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
      return std::nullopt;
    auto left = coefficient(op->getOperand(0)), right = coefficient(op->getOperand(1));
    if (!left || !right)
      return std::nullopt;
    return isa<arith::AddIOp>(op) ? *left + *right : *left - *right;
  }

  Value key;
  ScalarCode &code;
  rows::Dependence deps;
};
} // namespace

/// Returns whether a value consists of sums of values below 2^48, and literal multiples of such
/// sums.
static bool isSmallSum(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op))
    return isSmallSum(op->getOperand(0)) && isSmallSum(op->getOperand(1));
  if (isa_and_nonnull<arith::MulIOp>(op) && matchPattern(op->getOperand(1), m_Constant()))
    return isSmallSum(op->getOperand(0));
  return TilePredicate::isSmall(value);
}

/// Returns the guards of a fold as one conjunction.
static Guard readGuards(const TilePlan &plan, ScalarCode &code) {
  Guard guard;
  for (GuardOp op : plan.fold.getBody().front().getOps<GuardOp>())
    GuardSplitter(plan.keyIndex(), code).read(op.getCondition(), guard);
  return guard;
}

namespace {
/// The keys that comparisons let a row see, from `lower` to before `upper`, relative to some key.
struct KeyInterval {
  Value lower, upper;
};
} // namespace

/// Returns the interval of the bound row, relative to the bound key and limited to `size` keys.
static KeyInterval findInterval(OpBuilder &b, ScalarCode &code, const Guard &guard, Value size) {
  using Predicate = arith::CmpIPredicate;
  auto sub = [&](Value x, Value y) { return b.createOrFold<arith::SubIOp>(code.loc, x, y); };
  auto least = [&](Value x, Value y) { return b.createOrFold<arith::MinSIOp>(code.loc, x, y); };
  auto most = [&](Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(code.loc, x, y); };
  Value one = code.index(1);
  KeyInterval keys{code.index(0), size};
  // Values that may need all 64 bits are clamped to ends far outside of every tile.
  auto limited = [&](Value side) {
    Value value = code.eval(side);
    if (isSmallSum(side))
      return value;
    constexpr int64_t far = int64_t(1) << 56;
    Value end = code.index(far);
    return least(most(value, code.index(-far)), end);
  };
  for (const Guard::Bound &bound : guard.bounds) {
    Value left = limited(bound.left), at = sub(limited(bound.right), left);
    Predicate p = bound.predicate;
    Value end = p == Predicate::sle || p == Predicate::sgt || p == Predicate::eq
                    ? b.createOrFold<arith::AddIOp>(code.loc, at, one)
                    : at;
    if (p == Predicate::slt || p == Predicate::sle || p == Predicate::eq)
      keys.upper = least(keys.upper, end);
    if (p == Predicate::sgt || p == Predicate::sge)
      keys.lower = most(keys.lower, end);
    if (p == Predicate::eq)
      keys.lower = most(keys.lower, at);
  }
  return keys;
}

/// Returns whether the bound row exists and satisfies these conditions on the row alone.
Value Masks::seesAtAll(ArrayRef<Value> conditions) {
  Value count = code.symbol(context.rowExtent()), row = code.eval(plan.rowIndex());
  Value sees = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, row, count);
  for (Value condition : conditions)
    sees = code.both(sees, code.eval(condition));
  return sees;
}

Value Masks::seesSome() {
  Guard guard = readGuards(plan, code);
  if (!guard.rest.empty())
    return Value();
  code.bind(plan.keyIndex(), code.index(0));
  KeyInterval keys = findInterval(b, code, guard, code.symbol(plan.fold.getExtent()));
  Value some = arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::slt, keys.lower, keys.upper);
  return code.both(seesAtAll(guard.ofRow), some);
}

/// Returns the mask of the tile from `first` on. Comparisons that bound the key give an interval of
/// positions, which is computed once per row and counts from the thread's first element. The rest
/// of the guard is evaluated at every element, with the tile's scores if it reads any.
Presence Masks::findPresence(Value first, ValueRange scores) {
  Guard guard = readGuards(plan, code);
  bool hasLower = llvm::any_of(guard.bounds, [](const Guard::Bound &bound) {
    return bound.predicate != arith::CmpIPredicate::slt && bound.predicate != arith::CmpIPredicate::sle;
  });
  SmallVector<Type> types(hasLower ? 2 : 1, b.getI32Type());
  // Relative to the thread's first column.
  Values bounds = map(code, "visible_end,visible_begin", {}, Over::parts(), types, [&](ValueRange, ValueRange at) {
    bindElement(at[0], first);
    code.bind(plan.keyIndex(), first);
    auto sub = [&](Value x, Value y) { return b.createOrFold<arith::SubIOp>(code.loc, x, y); };
    auto least = [&](Value x, Value y) { return b.createOrFold<arith::MinSIOp>(code.loc, x, y); };
    Value keys = code.index(plan.shape.keys), zero = code.index(0);
    auto [lower, upper] = findInterval(b, code, guard, least(keys, sub(code.symbol(plan.fold.getExtent()), first)));
    Value sees = seesAtAll(guard.ofRow);
    upper = b.createOrFold<arith::MaxSIOp>(code.named("end_column"), upper, zero);
    upper = arith::SelectOp::create(b, code.loc, sees, upper, zero);
    Value start = arith::MulIOp::create(b, code.named("first_column"), at[1], code.index(laneStride()));
    auto fromStart = [&](Value x) -> Value {
      return arith::IndexCastOp::create(b, code.loc, b.getI32Type(), sub(x, start));
    };
    Values results{fromStart(upper)};
    if (hasLower)
      results.push_back(fromStart(least(lower, keys)));
    return results;
  });
  Presence presence{bounds, guard.rest};
  return guard.rest.empty() ? presence : readPresence(presence, first, scores);
}

/// Binds the row and the key of an element of the columns from `start` on, both clamped to the
/// last.
void Masks::bindNearest(ValueRange at, Value first, Value start) {
  if (start)
    first = arith::AddIOp::create(b, code.loc, first, start);
  Value row = arith::AddIOp::create(b, code.loc, rows.base, at[0]);
  auto last = [&](const SymExpr &extent) -> Value {
    Value one = code.index(1);
    return arith::SubIOp::create(b, code.loc, code.symbol(extent), one);
  };
  code.bind(plan.rowIndex(), arith::MinSIOp::create(b, code.loc, row, last(context.rowExtent())));
  Value left = arith::SubIOp::create(b, code.loc, last(plan.fold.getExtent()), first);
  Value size = arith::MinSIOp::create(b, code.loc, left, code.index(plan.shape.keys - 1));
  auto narrow = [&](Value x) -> Value { return arith::IndexCastOp::create(b, code.loc, b.getI32Type(), x); };
  Value most = narrow(size), place = arith::MinSIOp::create(b, code.loc, narrow(at[1]), most);
  place = arith::IndexCastOp::create(b, code.loc, b.getIndexType(), place);
  code.bind(plan.keyIndex(), arith::AddIOp::create(b, code.loc, first, place));
}

/// Returns the number of columns whose conditions a thread evaluates at once. Returns 0 for one
/// column after the other, if loads need protection or sums and scores leave few registers. The
/// bounds are those at which ptxas 13.0 does not spill.
int64_t Masks::columnsAtOnce(const Presence &presence) {
  if (!llvm::all_of(presence.rest, [&](Value condition) { return canClamp(plan, condition); }))
    return 0;
  int64_t left = plan.shape.consumerRegisters - int64_t(plan.folded.scores.size()) * plan.shape.keys / 2;
  for (const Accumulator &accumulator : plan.folded.accumulators)
    left -= padded(accumulator.extents[0]) / 2;
  return left >= 104 ? plan.shape.keys : left >= 88 ? std::gcd(plan.shape.keys, int64_t(32)) : 0;
}

/// Returns the numbers of the scores that conditions read.
SmallVector<unsigned> Masks::findScoresRead(ArrayRef<Value> conditions) {
  SmallVector<Value> open(conditions);
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    bool isScore = llvm::any_of(plan.folded.scores, [&](const Score &score) { return score.value == value; });
    if (seen.insert(value).second && op && !isScore)
      open.append(op->operand_begin(), op->operand_end());
  }
  SmallVector<unsigned> numbers;
  for (auto [k, score] : llvm::enumerate(plan.folded.scores))
    if (seen.contains(score.value))
      numbers.push_back(k);
  return numbers;
}

/// Evaluates the rest of the guard once per element and returns the mask as words of bits, so that
/// no result occupies a register of its own. If no load needs the protection of other conditions,
/// as many columns are evaluated at once as registers allow.
Presence Masks::readPresence(const Presence &presence, Value first, ValueRange scores) {
  SmallVector<unsigned> read = findScoresRead(presence.rest);
  Values inputs(presence.bounds);
  for (unsigned k : read)
    inputs.push_back(scores[k]);
  unsigned bounds = presence.bounds.size();
  int64_t lanes = typeOver(Over::parts(), b.getI1Type()).getShape()[1];
  Type word = plan.shape.keys / lanes <= 32 ? b.getI32Type() : b.getI64Type();
  assert(plan.shape.keys / lanes <= 64 && "a tile has at most 256 keys");
  auto number = [&](int64_t value) { return code.constant(b.getIntegerAttr(word, value)); };
  auto bitsOf = [&](int64_t columns, Value start, llvm::function_ref<void(ValueRange)> bind) -> Value {
    Value bits = map(code, "bit", inputs, Over::tile(columns), {word}, [&](ValueRange in, ValueRange at) {
      bind(at);
      for (auto [k, value] : llvm::zip(read, in.drop_front(bounds)))
        code.bind(plan.folded.scores[k].value, asFloat(code, value));
      Value present = isPresent(presence, in.take_front(bounds), at[1], start);
      Value place = arith::IndexCastOp::create(b, code.loc, word, numberInThread(at[1]));
      Value bit = arith::ShLIOp::create(b, code.loc, number(1), place);
      return Values{arith::SelectOp::create(b, code.loc, present, bit, number(0))};
    })[0];
    return device::ReduceOp::create(b, code.named("bits"), typeOver(Over::parts(), word), Monoid::add, bits);
  };
  int64_t columns = columnsAtOnce(presence);
  if (!read.empty() && columns != plan.shape.keys) // scores exist for whole tiles
    columns = 0;
  auto bitsAtOnce = [&](Value start) {
    bool clamped = code.clampsLoads;
    Value bits = bitsOf(columns, start, [&](ValueRange at) {
      bindNearest(at, first, start);
      clampLoads(code, plan);
      code.eager = true;
    });
    code.clampsLoads = clamped;
    code.eager = false;
    return bits;
  };
  Value words;
  if (columns == plan.shape.keys) {
    words = bitsAtOnce(Value());
  } else if (columns > 0) {
    Value none = device::FillOp::create(b, code.named("words"), typeOver(Over::parts(), word), number(0));
    words = code.loop(0, plan.shape.keys / columns, none, {"step", "words"}, [&](Value step, ValueRange olds) {
      Value start = arith::MulIOp::create(b, code.named("start"), step, code.index(columns));
      return map(code, "words", {olds[0], bitsAtOnce(start)}, Over::parts(), {word}, [&](ValueRange in, ValueRange) {
        Value place = arith::MulIOp::create(b, code.loc, step, code.index(columns / lanes));
        Value moved = arith::ShLIOp::create(b, code.loc, in[1], arith::IndexCastOp::create(b, code.loc, word, place));
        return Values{arith::OrIOp::create(b, code.loc, in[0], moved)};
      });
    })[0];
  } else {
    words = bitsOf(plan.shape.keys, Value(), [&](ValueRange at) { bindElement(at, first); });
  }
  words = map(code, "visible_bits", words, Over::parts(), {word},
              [&](ValueRange in, ValueRange) { return Values{device::OpaqueOp::create(b, code.loc, in[0])}; })[0];
  return {{words}, {}, /*isWord=*/true};
}

/// Returns the number of a column among the columns that its thread holds of a row.
Value Masks::numberInThread(Value column) {
  Value offset = device::ThreadOffsetOp::create(b, code.loc, column), sum;
  int64_t place = 1;
  SmallVector<LayoutAttr::Digit> digits =
      typeOver(Over::tile(plan.shape.keys), b.getF32Type()).getLayout().getDigits(1);
  for (const LayoutAttr::Digit &digit : llvm::reverse(digits)) {
    if (digit.place != device::Place::register_)
      continue;
    Value part = arith::DivUIOp::create(b, code.loc, offset, code.index(digit.weight));
    part = arith::RemUIOp::create(b, code.loc, part, code.index(digit.size));
    part = arith::MulIOp::create(b, code.loc, part, code.index(place));
    sum = sum ? arith::AddIOp::create(b, code.loc, sum, part).getResult() : part;
    place *= digit.size;
  }
  return sum;
}

/// Returns the distance in columns between the first elements of neighbouring lanes.
int64_t Masks::laneStride() {
  for (const LayoutAttr::Digit &digit : typeOver(Over::tile(plan.shape.keys), b.getF32Type()).getLayout().getDigits(1))
    if (digit.place == device::Place::lane)
      return digit.weight;
  return 0;
}

Value Masks::isPresent(const Presence &presence, ValueRange bounds, Value column, Value start) {
  if (presence.isWord) {
    Type word = bounds[0].getType();
    auto number = [&](int64_t value) { return code.constant(b.getIntegerAttr(word, value)); };
    Value place = arith::IndexCastOp::create(b, code.loc, word, numberInThread(column));
    Value one = number(1), moved = arith::ShRSIOp::create(b, code.loc, bounds[0], place);
    Value bit = arith::AndIOp::create(b, code.loc, moved, one);
    return arith::CmpIOp::create(b, code.loc, arith::CmpIPredicate::ne, bit, number(0));
  }
  Value position =
      arith::IndexCastOp::create(b, code.loc, b.getI32Type(), device::ThreadOffsetOp::create(b, code.loc, column));
  if (start)
    position =
        arith::AddIOp::create(b, code.loc, position, arith::IndexCastOp::create(b, code.loc, b.getI32Type(), start));
  auto compare = [&](arith::CmpIPredicate relation, Value bound) -> Value {
    return arith::CmpIOp::create(b, code.loc, relation, position, bound);
  };
  Value present = compare(arith::CmpIPredicate::slt, bounds[0]);
  if (bounds.size() > 1)
    present = code.both(present, compare(arith::CmpIPredicate::sge, bounds[1]));
  for (Value condition : presence.rest) {
    if (code.eager || !code.isCostly(condition)) {
      present = code.both(present, code.eval(condition));
      continue;
    }
    present = code.branch(
        present, {b.getI1Type()}, [&] { return Values{code.eval(condition)}; },
        [&] { return Values{code.constant(b.getBoolAttr(false))}; })[0];
  }
  return present;
}

Value Masks::maskOf(const Presence &presence, Value first) {
  return map(code, "mask", presence.bounds, Over::tile(plan.shape.keys), {b.getI1Type()},
             [&](ValueRange in, ValueRange at) {
               bindElement(at, first);
               return Values{isPresent(presence, in, at[1])};
             })[0];
}

/// Clears elements of operands that no row of the block sees. They must not meet the weights, not
/// even with weight 0: they may be infinite or NaN.
void Masks::clearUnseen(const Presence &presence, Value first, Value stage, ArrayRef<std::pair<Value, bool>> rings) {
  Value seen = maskOf(presence, first);
  for (auto [tiles, isInterleaved] : rings)
    device::ClearUnseenOp::create(b, code.loc, tiles, stage, seen, isInterleaved);
}

} // namespace moa::tiles
