//===- TilePredicate.cpp - guards evaluated per tile ----------------------===//
#include "lib/Analysis/TilePredicate.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace moa;

static constexpr int64_t kMaxLiteral = int64_t(1) << 31;
static constexpr int64_t kLimit = int64_t(1) << 48, kInfinity = int64_t(1) << 56;
static constexpr int64_t kMaxFactors = 64; // of a sum, so that no sum overflows
static constexpr unsigned kMaxSplits = 4;

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

struct TilePredicate::Number {
  enum Kind {
    Literal,
    Uniform,
    Row,
    Index,
    Term, // leaves
    Sum,
    Product,
    Min,
    Max,
    Quotient,
    Remainder,
    Choice,
    OfTruth
  };
  explicit Number(Kind kind) : kind(kind) {}
  Kind kind;
  Value value;                        // Uniform
  bool isSmall = false;               // Uniform: magnitude below 2^48
  int64_t constant = 0;               // Literal; of a Sum
  TileTerm term;                      // Term
  mutable unsigned place = 0;         // of the term
  SmallVector<NumberRef, 2> operands; // the second is uniform except in Min and Max
  SmallVector<int64_t, 2> factors;    // of a Sum's operands
  TruthRef condition;                 // Choice, OfTruth
};

struct TilePredicate::Truth {
  enum Kind { Literal, Uniform, Term, NonNegative, Zero, And, Or, Not };
  explicit Truth(Kind kind) : kind(kind) {}
  Kind kind;
  bool literal = false;
  Value value;                       // Uniform
  NumberRef number;                  // Term, NonNegative, Zero
  SmallVector<TruthRef, 2> operands; // null: unknown
};

using Number = TilePredicate::Number;
using Truth = TilePredicate::Truth;
using NumberRef = TilePredicate::NumberRef;
using TruthRef = TilePredicate::TruthRef;

static NumberRef literal(int64_t value) {
  Number node{Number::Literal};
  node.constant = value;
  return std::make_shared<Number>(node);
}

static TruthRef known(bool value) {
  Truth node{Truth::Literal};
  node.literal = value;
  return std::make_shared<Truth>(node);
}

static TruthRef sign(Truth::Kind kind, NumberRef number) {
  if (!number)
    return nullptr;
  if (number->kind == Number::Literal)
    return known(kind == Truth::Zero ? number->constant == 0 : number->constant >= 0);
  Truth node{kind};
  node.number = std::move(number);
  return std::make_shared<Truth>(node);
}

static TruthRef negation(TruthRef x) {
  if (!x)
    return nullptr;
  if (x->kind == Truth::Literal)
    return known(!x->literal);
  if (x->kind == Truth::Not)
    return x->operands[0];
  Truth node{Truth::Not};
  node.operands = {std::move(x)};
  return std::make_shared<Truth>(node);
}

/// Combines two predicates. One operand may be unknown (null): if the other is false, so is a
/// conjunction; if it is true, so is a disjunction.
static TruthRef combine(Truth::Kind kind, TruthRef x, TruthRef y) {
  if (!x && !y)
    return nullptr;
  for (const auto &[one, other] : {std::pair(x, y), std::pair(y, x)})
    if (one && one->kind == Truth::Literal)
      return one->literal == (kind == Truth::And) ? other : one;
  Truth node{kind};
  node.operands = {std::move(x), std::move(y)};
  return std::make_shared<Truth>(node);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Returns the sides of the tile that a value depends on.
unsigned TilePredicate::sidesOf(Value value) {
  auto found = sides.find(value);
  if (found != sides.end())
    return found->second;
  unsigned result = None;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    if (owner == fold)
      result = Indices;
    else if (owner == nest)
      result = argument.getArgNumber() + 1 == nest.getExtents().size() ? Rows : None;
    else
      result = isa<onf::KernelOp>(owner) ? None : Unusable;
  } else {
    Operation *op = value.getDefiningOp();
    if (isa<onf::AccOp, onf::AtOp>(op) || op->getNumRegions() != 0 || !isPure(op))
      result = Unusable;
    for (Value operand : op->getOperands())
      result |= sidesOf(operand);
  }
  return sides[value] = result;
}

bool TilePredicate::readsMemory(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  auto found = reads.find(value);
  if (found != reads.end())
    return found->second;
  auto load = dyn_cast<onf::LoadOp>(op);
  // A load at the same address for the whole tile is one number.
  bool result =
      (load && sidesOf(value) != None) || llvm::any_of(op->getOperands(), [&](Value v) { return readsMemory(v); });
  return reads[value] = result;
}

/// Returns true if a value depends on a fold or on an operation that cannot be evaluated
/// separately.
bool TilePredicate::needsFold(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !nest->isProperAncestor(op))
    return false;
  auto found = folded.find(value);
  if (found != folded.end())
    return found->second;
  bool result = isa<onf::AccOp, onf::AtOp>(op) || op->getNumRegions() != 0 ||
                llvm::any_of(op->getOperands(), [&](Value v) { return needsFold(v); });
  return folded[value] = result;
}

static bool isWide(Value value) {
  auto type = dyn_cast<IntegerType>(value.getType());
  return value.getType().isIndex() || (type && type.getWidth() == 64);
}

static std::optional<int64_t> literalOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  auto number = constant.trySExtValue();
  return number && std::abs(*number) <= kMaxLiteral ? number : std::nullopt;
}

bool TilePredicate::isSmall(Value value, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || literalOf(value) || isa<onf::ExtentOp>(op))
    return true; // an index
  if (auto type = dyn_cast<IntegerType>(value.getType()); type && type.getWidth() <= 32)
    return true;
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::ExtUIOp>(op))
    return isSmall(op->getOperand(0), depth);
  return isa<arith::MinSIOp, arith::MaxSIOp, arith::FloorDivSIOp>(op) && depth > 0 &&
         llvm::all_of(op->getOperands(), [&](Value v) { return isSmall(v, depth - 1); });
}

/// Returns x and m if the value is x − m·⌊x / m⌋.
std::optional<std::pair<Value, Value>> TilePredicate::remainderOf(Value value) {
  auto difference = value.getDefiningOp<arith::SubIOp>();
  auto product = difference ? difference.getRhs().getDefiningOp<arith::MulIOp>() : nullptr;
  if (!product || !isWide(value))
    return std::nullopt;
  for (auto [m, q] : {std::pair(product.getLhs(), product.getRhs()), std::pair(product.getRhs(), product.getLhs())}) {
    auto quotient = q.getDefiningOp<arith::FloorDivSIOp>();
    bool isSame = quotient && quotient.getLhs() == difference.getLhs() &&
                  (quotient.getRhs() == m || (literalOf(m) && literalOf(m) == literalOf(quotient.getRhs())));
    if (isSame && sidesOf(m) == 0)
      return std::pair(difference.getLhs(), m);
  }
  return std::nullopt;
}

/// Adds factor · value to a sum, with nested sums and multiples by literals flattened.
bool TilePredicate::flatten(Value value, int64_t factor, Sum &sum) {
  if (std::abs(factor) > kMaxFactors)
    return false;
  if (auto number = literalOf(value)) {
    sum.constant += factor * *number;
    return std::abs(sum.constant) <= kLimit;
  }
  Operation *op = value.getDefiningOp();
  if (op && isWide(value) && !remainderOf(value)) {
    if (isa<arith::AddIOp, arith::SubIOp>(op))
      return flatten(op->getOperand(0), factor, sum) &&
             flatten(op->getOperand(1), isa<arith::AddIOp>(op) ? factor : -factor, sum);
    if (isa<arith::MulIOp>(op))
      for (unsigned k : {0, 1})
        if (auto number = literalOf(op->getOperand(k)); number && std::abs(*number * factor) <= kMaxFactors)
          return flatten(op->getOperand(1 - k), factor * *number, sum);
  }
  int64_t &total = sum.terms[value];
  total += factor;
  if (total == 0)
    sum.terms.erase(value);
  return true;
}

NumberRef TilePredicate::term(TileTerm term) {
  for (auto [value, factor] : term.values) {
    auto type = dyn_cast<IntegerType>(value.getType());
    if (!value.getType().isIndex() && !(type && type.getWidth() <= 64))
      return nullptr;
  }
  Number node{Number::Term};
  node.term = std::move(term);
  return std::make_shared<Number>(node);
}

/// Builds a sum. All parts of one side form one term if one of them reads memory.
NumberRef TilePredicate::sumOf(const Sum &sum) {
  Number node{Number::Sum};
  node.constant = sum.constant;
  int64_t factors = 0;
  auto add = [&](NumberRef operand, int64_t factor) {
    factors += std::abs(factor);
    node.operands.push_back(operand);
    node.factors.push_back(factor);
    return operand != nullptr;
  };
  for (Side side : {Rows, Indices}) {
    TileTerm whole;
    whole.ofRow = side == Rows;
    bool isRead = false;
    for (auto [value, factor] : sum.terms)
      if (sidesOf(value) == side) {
        whole.values.emplace_back(value, factor);
        isRead |= readsMemory(value);
      }
    if (isRead) {
      if (!add(term(whole), 1))
        return nullptr;
      continue;
    }
    for (auto [value, factor] : whole.values)
      if (!add(number(value), factor))
        return nullptr;
  }
  for (auto [value, factor] : sum.terms)
    if (unsigned of = sidesOf(value); of != Rows && of != Indices && !add(number(value), factor))
      return nullptr;
  if (factors > kMaxFactors)
    return nullptr;
  if (node.operands.empty())
    return literal(node.constant);
  return std::make_shared<Number>(node);
}

NumberRef TilePredicate::number(Value value) {
  if (auto constant = literalOf(value))
    return literal(*constant);
  unsigned of = sidesOf(value);
  if (of & Unusable)
    return nullptr;
  if (of == 0) {
    Number node{Number::Uniform};
    node.value = value;
    node.isSmall = isSmall(value);
    return std::make_shared<Number>(node);
  }
  if (isa<BlockArgument>(value))
    return std::make_shared<Number>(Number{of == Rows ? Number::Row : Number::Index});
  bool isOneSided = of == Rows || of == Indices;
  if (!isOneSided)
    return structure(value);
  NumberRef result = readsMemory(value) ? nullptr : structure(value);
  return result ? result : term({{{value, 1}}, of == Rows});
}

NumberRef TilePredicate::structure(Value value) {
  Operation *op = value.getDefiningOp();
  auto make = [](Number::Kind kind, ArrayRef<NumberRef> operands, TruthRef condition = nullptr) -> NumberRef {
    if (llvm::is_contained(operands, nullptr))
      return nullptr;
    Number node{kind};
    node.operands.assign(operands.begin(), operands.end());
    node.condition = std::move(condition);
    return std::make_shared<Number>(node);
  };
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op)) {
    auto to = dyn_cast<IntegerType>(value.getType());
    auto from = dyn_cast<IntegerType>(op->getOperand(0).getType());
    bool isNarrowed = to && to.getWidth() < (from ? from.getWidth() : 64);
    bool isTruth = from && from.getWidth() == 1;
    return isNarrowed || isTruth ? nullptr : number(op->getOperand(0));
  }
  if (isa<arith::ExtUIOp>(op) && op->getOperand(0).getType().isInteger(1)) {
    TruthRef condition = truth(op->getOperand(0));
    return condition ? make(Number::OfTruth, {}, condition) : nullptr;
  }
  if (!isWide(value))
    return nullptr; // narrow integers wrap around
  if (auto remainder = remainderOf(value))
    return make(Number::Remainder, {number(remainder->first), number(remainder->second)});
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op))
    return make(isa<arith::MinSIOp>(op) ? Number::Min : Number::Max,
                {number(op->getOperand(0)), number(op->getOperand(1))});
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    TruthRef condition = truth(select.getCondition());
    NumberRef yes = number(select.getTrueValue()), no = number(select.getFalseValue());
    return make(Number::Choice, {yes, no}, condition);
  }
  if (isa<arith::FloorDivSIOp>(op) && sidesOf(op->getOperand(1)) == 0)
    return make(Number::Quotient, {number(op->getOperand(0)), number(op->getOperand(1))});
  if (isa<arith::MulIOp>(op) && !literalOf(op->getOperand(0)) && !literalOf(op->getOperand(1)))
    for (unsigned k : {0, 1})
      if (sidesOf(op->getOperand(k)) == 0)
        return make(Number::Product, {number(op->getOperand(1 - k)), number(op->getOperand(k))});
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    Sum sum;
    if (!flatten(value, 1, sum) || (sum.terms.size() == 1 && sum.terms.front().first == value))
      return nullptr;
    return sumOf(sum);
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Predicates
//===----------------------------------------------------------------------===//

/// Returns the predicate Σ ≥ 0. A maximum is ≥ 0 if one operand is, a minimum if both are; a
/// negative factor swaps the two.
TruthRef TilePredicate::nonNegative(Sum sum, unsigned splits) {
  for (auto [value, factor] : sum.terms) {
    Operation *op = value.getDefiningOp();
    bool opens = isa_and_nonnull<arith::MinSIOp, arith::MaxSIOp>(op) && isWide(value) && splits > 0 &&
                 sidesOf(value) == (Rows | Indices);
    if (!opens)
      continue;
    TruthRef parts[2];
    for (unsigned k : {0, 1}) {
      Sum rest = sum;
      int64_t times = factor;
      rest.terms.erase(value);
      if (flatten(op->getOperand(k), times, rest))
        parts[k] = nonNegative(rest, splits - 1);
    }
    bool either = isa<arith::MaxSIOp>(op) == (factor > 0);
    return combine(either ? Truth::Or : Truth::And, parts[0], parts[1]);
  }
  return sign(Truth::NonNegative, sumOf(sum));
}

TruthRef TilePredicate::comparison(Operation *op) {
  using arith::CmpIPredicate;
  auto compare = cast<arith::CmpIOp>(op);
  CmpIPredicate kind = compare.getPredicate();
  Value x = compare.getLhs(), y = compare.getRhs();
  if (x.getType().isInteger(1)) {
    if (kind != CmpIPredicate::eq && kind != CmpIPredicate::ne)
      return nullptr;
    TruthRef p = truth(x), q = truth(y);
    if (!p || !q)
      return nullptr;
    TruthRef same = combine(Truth::Or, combine(Truth::And, p, q), combine(Truth::And, negation(p), negation(q)));
    return kind == CmpIPredicate::eq ? same : negation(same);
  }
  Sum sum;
  bool isSwapped = kind == CmpIPredicate::slt || kind == CmpIPredicate::sle;
  if (!flatten(isSwapped ? y : x, 1, sum) || !flatten(isSwapped ? x : y, -1, sum))
    return nullptr;
  switch (kind) {
  case CmpIPredicate::eq:
    return sign(Truth::Zero, sumOf(sum));
  case CmpIPredicate::ne:
    return negation(sign(Truth::Zero, sumOf(sum)));
  case CmpIPredicate::slt:
  case CmpIPredicate::sgt:
    --sum.constant;
    [[fallthrough]];
  case CmpIPredicate::sle:
  case CmpIPredicate::sge:
    return nonNegative(sum, kMaxSplits);
  default:
    return nullptr; // unsigned
  }
}

TruthRef TilePredicate::truth(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return known(!constant.isZero());
  unsigned of = sidesOf(value);
  if (of == 0) {
    Truth node{Truth::Uniform};
    node.value = value;
    return std::make_shared<Truth>(node);
  }
  bool isOneSided = of == Rows || of == Indices;
  TruthRef result = isOneSided && readsMemory(value) ? nullptr : structureOfTruth(value);
  if (result || !isOneSided) {
    readsPairs |= !result && readsMemory(value);
    return result;
  }
  Truth node{Truth::Term};
  node.number = term({{{value, 1}}, of == Rows});
  return std::make_shared<Truth>(node);
}

TruthRef TilePredicate::structureOfTruth(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return nullptr;
  if (isa<arith::AndIOp, arith::OrIOp>(op))
    return combine(isa<arith::AndIOp>(op) ? Truth::And : Truth::Or, truth(op->getOperand(0)), truth(op->getOperand(1)));
  auto either = [&](TruthRef p, Value x, Value y) { // p ? x : y
    if (!p)
      return TruthRef();
    return combine(Truth::Or, combine(Truth::And, p, truth(x)), combine(Truth::And, negation(p), truth(y)));
  };
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return either(truth(select.getCondition()), select.getTrueValue(), select.getFalseValue());
  if (isa<arith::XOrIOp>(op)) {
    TruthRef p = truth(op->getOperand(0)), q = truth(op->getOperand(1));
    if (!p || !q)
      return nullptr;
    if (q->kind == Truth::Literal)
      return q->literal ? negation(p) : p;
    return combine(Truth::Or, combine(Truth::And, p, negation(q)), combine(Truth::And, negation(p), q));
  }
  return isa<arith::CmpIOp>(op) ? comparison(op) : nullptr;
}

TilePredicate::TilePredicate(onf::ForOp nest, onf::FoldOp fold) : nest(nest), fold(fold) {
  for (auto op : fold.getBody().getOps<onf::GuardOp>())
    guard = op.getCondition();
  if (!guard)
    return;
  root = truth(guard);
  readsPairs &= !needsFold(guard);
  // Collect the remaining terms.
  std::function<void(const TruthRef &)> visitTruth;
  std::function<void(const NumberRef &)> visit = [&](const NumberRef &node) {
    if (!node)
      return;
    if (node->kind == Number::Term) {
      auto found = llvm::find(terms, node->term);
      node->place = found - terms.begin();
      if (found == terms.end())
        terms.push_back(node->term);
    }
    for (const NumberRef &operand : node->operands)
      visit(operand);
    visitTruth(node->condition);
  };
  visitTruth = [&](const TruthRef &node) {
    if (!node)
      return;
    visit(node->number);
    for (const TruthRef &operand : node->operands)
      visitTruth(operand);
  };
  visitTruth(root);
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

/// Returns true if a bound may be infinite, because it depends on values from memory.
static bool isUnlimited(const NumberRef &node) {
  if (node->kind == Number::Term || (node->kind == Number::Uniform && !node->isSmall))
    return true;
  return llvm::any_of(node->operands, isUnlimited);
}

namespace {

/// Emits a predicate over one tile.
class Writer {
public:
  explicit Writer(const TilePredicate::Tile &tile) : tile(tile), b(tile.builder) {}
  TileTruth truth(const TruthRef &node);

private:
  TileRange number(const NumberRef &node);
  TileRange quotient(TileRange x, Value divisor);
  TileRange remainder(const NumberRef &node);
  TileRange product(const NumberRef &node);

  Value index(int64_t value) { return arith::ConstantIndexOp::create(b, tile.loc, value); }
  Value boolean(bool value) { return arith::ConstantOp::create(b, tile.loc, b.getBoolAttr(value)); }
  template <typename Op> Value make(Value x, Value y) { return b.createOrFold<Op>(tile.loc, x, y); }
  Value compare(arith::CmpIPredicate predicate, Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(tile.loc, predicate, x, y);
  }
  Value select(Value c, Value x, Value y) { return b.createOrFold<arith::SelectOp>(tile.loc, c, x, y); }
  Value toIndex(Value value) {
    if (value.getType().isIndex())
      return value;
    if (value.getType().isInteger(1)) {
      Value no = index(0), yes = index(1);
      return select(value, yes, no);
    }
    return arith::IndexCastOp::create(b, tile.loc, b.getIndexType(), value);
  }
  Value times(Value x, int64_t factor) { return factor == 1 ? x : make<arith::MulIOp>(x, index(factor)); }

  const TilePredicate::Tile &tile;
  OpBuilder &b;
};

} // namespace

TileRange TilePredicate::limit(OpBuilder &b, Location loc, TileRange range) {
  auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(b, loc, value); };
  Value most = index(kLimit), least = index(-kLimit);
  Value isLow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, range.low, least);
  Value isHigh = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, range.high, most);
  Value low = arith::MinSIOp::create(b, loc, range.low, most);
  Value high = arith::MaxSIOp::create(b, loc, range.high, least);
  return {arith::SelectOp::create(b, loc, isLow, index(-kInfinity), low),
          arith::SelectOp::create(b, loc, isHigh, index(kInfinity), high)};
}

TileRange Writer::quotient(TileRange x, Value divisor) {
  Value low = make<arith::FloorDivSIOp>(x.low, divisor), high = make<arith::FloorDivSIOp>(x.high, divisor);
  if (auto constant = literalOf(divisor); constant && *constant > 0)
    return {low, high};
  return {make<arith::MinSIOp>(low, high), make<arith::MaxSIOp>(low, high)};
}

/// Emits the range of x mod m: exact if both ends have the same quotient, else all remainders.
TileRange Writer::remainder(const NumberRef &node) {
  TileRange x = number(node->operands[0]), m = number(node->operands[1]);
  Value low = make<arith::FloorDivSIOp>(x.low, m.low), high = make<arith::FloorDivSIOp>(x.high, m.low);
  Value isSame = compare(arith::CmpIPredicate::eq, low, high);
  Value one = index(1), zero = index(0), whole = make<arith::MulIOp>(m.low, low);
  Value least = make<arith::MinSIOp>(zero, make<arith::AddIOp>(m.low, one));
  Value most = make<arith::MaxSIOp>(zero, make<arith::SubIOp>(m.low, one));
  // For m = 0 the quotient is 0, and the remainder is x.
  Value isNone = compare(arith::CmpIPredicate::eq, m.low, zero);
  isSame = make<arith::OrIOp>(isSame, isNone);
  return {select(isSame, make<arith::SubIOp>(x.low, whole), least),
          select(isSame, make<arith::SubIOp>(x.high, whole), most)};
}

/// Emits the range of a product; it is unbounded unless all numbers are below 2^30.
TileRange Writer::product(const NumberRef &node) {
  TileRange x = number(node->operands[0]), y = number(node->operands[1]);
  Value most = index(int64_t(1) << 30), least = index(-(int64_t(1) << 30));
  Value fits;
  for (Value value : {x.low, x.high, y.low})
    for (Value inside :
         {compare(arith::CmpIPredicate::sle, value, most), compare(arith::CmpIPredicate::sge, value, least)})
      fits = fits ? make<arith::AndIOp>(fits, inside) : inside;
  Value low = make<arith::MulIOp>(x.low, y.low), high = make<arith::MulIOp>(x.high, y.low);
  Value lowest = index(-kInfinity), lower = select(fits, make<arith::MinSIOp>(low, high), lowest);
  Value highest = index(kInfinity), upper = select(fits, make<arith::MaxSIOp>(low, high), highest);
  return TilePredicate::limit(b, tile.loc, {lower, upper});
}

TileRange Writer::number(const NumberRef &node) {
  switch (node->kind) {
  case Number::Literal: {
    Value value = index(node->constant);
    return {value, value};
  }
  case Number::Uniform: {
    Value value = toIndex(tile.evaluate(node->value));
    TileRange range{value, value};
    return node->isSmall ? range : TilePredicate::limit(b, tile.loc, range);
  }
  case Number::Row:
    return tile.rows;
  case Number::Index:
    return tile.indices;
  case Number::Term:
    return tile.terms[node->place];
  case Number::Sum: {
    TileRange sum;
    auto add = [&](Value &to, Value x) { to = to ? make<arith::AddIOp>(to, x) : x; };
    auto subtract = [&](Value &to, Value x) { to = make<arith::SubIOp>(to ? to : index(0), x); };
    // Positive terms come first, so that differences are emitted as differences.
    for (bool positive : {true, false})
      for (auto [operand, factor] : llvm::zip_equal(node->operands, node->factors)) {
        if ((factor > 0) != positive)
          continue;
        TileRange range = number(operand);
        // Clamp, so that sums of sums cannot overflow.
        if (!operand->operands.empty() && isUnlimited(operand))
          range = TilePredicate::limit(b, tile.loc, range);
        if (positive) {
          add(sum.low, times(range.low, factor));
          add(sum.high, times(range.high, factor));
        } else {
          subtract(sum.low, times(range.high, -factor));
          subtract(sum.high, times(range.low, -factor));
        }
      }
    if (node->constant != 0) {
      add(sum.low, index(node->constant));
      add(sum.high, index(node->constant));
    }
    return sum;
  }
  case Number::Product:
    return product(node);
  case Number::Min:
  case Number::Max: {
    TileRange x = number(node->operands[0]), y = number(node->operands[1]);
    if (node->kind == Number::Min)
      return {make<arith::MinSIOp>(x.low, y.low), make<arith::MinSIOp>(x.high, y.high)};
    return {make<arith::MaxSIOp>(x.low, y.low), make<arith::MaxSIOp>(x.high, y.high)};
  }
  case Number::Quotient: {
    Value divisor = number(node->operands[1]).low;
    return quotient(number(node->operands[0]), divisor);
  }
  case Number::Remainder:
    return remainder(node);
  case Number::Choice: {
    TileTruth c = truth(node->condition);
    TileRange x = number(node->operands[0]), y = number(node->operands[1]);
    auto choose = [&](Value yes, Value no, Value both) { return select(c.always, yes, select(c.never, no, both)); };
    return {choose(x.low, y.low, make<arith::MinSIOp>(x.low, y.low)),
            choose(x.high, y.high, make<arith::MaxSIOp>(x.high, y.high))};
  }
  case Number::OfTruth: {
    TileTruth c = truth(node->condition);
    Value lowest = index(0), always = index(1), low = select(c.always, always, lowest);
    Value highest = index(1), never = index(0), high = select(c.never, never, highest);
    return {low, high};
  }
  }
  llvm_unreachable("unknown number");
}

TileTruth Writer::truth(const TruthRef &node) {
  using arith::CmpIPredicate;
  if (!node)
    return {boolean(false), boolean(false)};
  auto inverse = [&](Value x) { return make<arith::XOrIOp>(x, boolean(true)); };
  switch (node->kind) {
  case Truth::Literal:
    return {boolean(!node->literal), boolean(node->literal)};
  case Truth::Uniform: {
    Value value = tile.evaluate(node->value);
    return {inverse(value), value};
  }
  case Truth::Term: {
    TileRange range = number(node->number);
    return {compare(CmpIPredicate::eq, range.high, index(0)), compare(CmpIPredicate::ne, range.low, index(0))};
  }
  case Truth::NonNegative: {
    TileRange range = number(node->number);
    return {compare(CmpIPredicate::slt, range.high, index(0)), compare(CmpIPredicate::sge, range.low, index(0))};
  }
  case Truth::Zero: {
    TileRange range = number(node->number);
    Value zero = index(0);
    Value isBelow = compare(CmpIPredicate::slt, range.high, zero);
    Value never = make<arith::OrIOp>(compare(CmpIPredicate::sgt, range.low, zero), isBelow);
    Value endsAtZero = compare(CmpIPredicate::eq, range.high, zero);
    Value always = make<arith::AndIOp>(compare(CmpIPredicate::eq, range.low, zero), endsAtZero);
    return {never, always};
  }
  case Truth::And:
  case Truth::Or: {
    TileTruth x = truth(node->operands[0]), y = truth(node->operands[1]);
    if (node->kind == Truth::And)
      return {make<arith::OrIOp>(x.never, y.never), make<arith::AndIOp>(x.always, y.always)};
    return {make<arith::AndIOp>(x.never, y.never), make<arith::OrIOp>(x.always, y.always)};
  }
  case Truth::Not: {
    TileTruth x = truth(node->operands[0]);
    return {x.always, x.never};
  }
  }
  llvm_unreachable("unknown predicate");
}

TileTruth TilePredicate::emit(const Tile &tile) const { return Writer(tile).truth(root); }
