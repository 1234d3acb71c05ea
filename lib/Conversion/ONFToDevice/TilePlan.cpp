//===- TilePlan.cpp - which nests can run on tensor cores -----------------===//
#include "dialects/MoA/IR/Subscripts.h"
#include "lib/Analysis/Launched.h"
#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "lib/Support/Shorten.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

/// The longest contraction, and the longest axis of a state. Sums of 256 products of 8-bit
/// integers, at most 2^14 each, have 22 bits: exact in i32, and as floats.
static constexpr int64_t kLongest = 256;
/// Rows after which the swizzle of shared memory repeats.
static constexpr int64_t kPageRows = 8;
static_assert(kLongest << 14 <= 1 << 22);

namespace {

class TilePlanner {
public:
  explicit TilePlanner(ForOp nest) : onDemand(nest->getParentOfType<onf::KernelOp>()) { plan.nest = nest; }
  Match<TilePlan> run();

private:
  bool refuse(const Twine &reason) {
    why = reason.str();
    return false;
  }
  bool refuseChain(const Twine &found);
  bool findFold();
  bool findPrologue(ArrayRef<FoldOp> folds);
  std::optional<TilePlan> findProduct();
  bool checkPrologue();
  void joinPrologue();
  bool checkType(const rows::Factors &factors, Type &element);
  bool checkLength(Value inner, int64_t length, Type element, StringRef subject);
  bool findOperand(const rows::Factors &factors, Value index, Value inner, int64_t columns,
                   SmallVectorImpl<TileOperand> &operands);
  bool findTransposed(const rows::Factors &factors, Value inner, int64_t columns);
  static std::optional<unsigned> findKnown(const rows::Factors &factors, ArrayRef<TileOperand> operands,
                                           unsigned first);
  bool findScore(const rows::Score &score);
  bool findAccumulator(const rows::Accumulator &accumulator);
  void orderWeights();
  bool findWeights(const rows::Factors &factors, Type element, unsigned &number);
  bool findOperands();
  bool checkEpilogue();

  TilePlan plan;
  rows::Dependence deps;
  OnDemand onDemand;
  std::string why;
};

/// Refuses a nest that has `found` instead of a chain of contractions. Names the required form.
bool TilePlanner::refuseChain(const Twine &found) {
  return refuse(found +
                "; tensor cores take a contraction, or a chain of two, f(A +.* B) +.* C, "
                "whose rows are the last axis of the nest, '" +
                rows::getIndexName(plan.rowIndex()) + "'");
}

/// Describes the results of up to four passes: of 'x' over 'm', of 'y' over 'm'.
static std::string describe(ArrayRef<FoldOp> folds) {
  constexpr size_t kShown = 4;
  std::string text;
  for (FoldOp fold : folds.take_front(kShown)) {
    auto accs = rows::getAccs(fold);
    if (accs.empty())
      continue;
    auto named = dyn_cast<NameLoc>(accs.front()->getLoc());
    StringRef written = getText(accs.front()->getLoc());
    StringRef name = named ? named.getName().getValue() : written.empty() ? accs.front().getName() : written;
    text += (", of '" + shorten(name, 60) + "' over '" + fold.getName() + "'").str();
  }
  return folds.size() > kShown ? text + " …" : text;
}

/// Finds the prologue contractions: all folds before the main one must be products whose range fits
/// into one tile.
bool TilePlanner::findPrologue(ArrayRef<FoldOp> folds) {
  for (FoldOp fold : folds) {
    auto product = findTileProduct(fold);
    if (!product || product->isMasked || product->left.isTransposed || product->length > kLongest)
      return false;
    plan.prologue.push_back(std::move(*product));
  }
  return true;
}

/// Checks that prologue contractions use the rows of the scores, over all of their columns.
bool TilePlanner::checkPrologue() {
  return llvm::all_of(plan.prologue, [&](const TileProduct &contraction) {
    bool isOfRows = llvm::any_of(plan.rowOperands, [&](const TileOperand &rows) {
      return contraction.length == rows.columns &&
             isSameTile(contraction.left, rows, contraction.fold.getBody().getArgument(0), rows.getInner());
    });
    return isOfRows || refuse("a fold before the one over tiles contracts other rows than that one");
  });
}

/// Finds prologue contractions whose element x, or x where a condition holds and else 0, is only
/// added to an element of an accumulator.
void TilePlanner::joinPrologue() {
  for (TileProduct &contraction : plan.prologue) {
    Value sum = contraction.fold.getResult(0);
    auto at = sum.hasOneUse() ? dyn_cast<AtOp>(*sum.getUsers().begin()) : AtOp();
    if (!at || !at->hasOneUse())
      continue;
    Value part = at.getResult(), condition;
    if (auto select = dyn_cast<arith::SelectOp>(*part.getUsers().begin())) {
      if (select.getTrueValue() != part || !matchPattern(select.getFalseValue(), m_AnyZeroFloat()) ||
          deps.on(select.getCondition(), at.getIndices()[0]) || !select->hasOneUse() ||
          !isSameForRows(select.getCondition(), plan.rowIndex()))
        continue;
      condition = select.getCondition();
      part = select.getResult();
    }
    auto added = dyn_cast<arith::AddFOp>(*part.getUsers().begin());
    auto other = added ? (added.getLhs() == part ? added.getRhs() : added.getLhs()).getDefiningOp<AtOp>() : AtOp();
    if (!other || other.getIndices() != at.getIndices() || !other->hasOneUse())
      continue;
    for (auto [k, accumulator] : llvm::enumerate(plan.folded.accumulators)) {
      bool isTaken =
          llvm::any_of(plan.prologue, [&, k = k](const TileProduct &p) { return p.joined && p.accumulator == k; });
      AccOp acc = accumulator.acc;
      auto accs = rows::getAccs(plan.fold);
      Value result = plan.fold.getResult(llvm::find(accs, acc) - accs.begin());
      if (other.getState() == result && acc.getRefs().empty() && accumulator.extents[0] == contraction.right.columns &&
          !isTaken) {
        contraction.joined = added.getResult();
        contraction.condition = condition;
        contraction.accumulator = k;
        break;
      }
    }
  }
}

/// Returns the plan of a nest that is a single product and nothing else.
std::optional<TilePlan> TilePlanner::findProduct() {
  Block &body = plan.nest.getBody().front();
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.size() != 1 || plan.nest.getChoices())
    return std::nullopt;
  auto product = findTileProduct(folds[0]);
  if (!product)
    return std::nullopt;
  plan.fold = product->fold;
  rows::Accumulator accumulator{product->acc, 0, Float32Type::get(body.getParentOp()->getContext()), {}, {}, {}};
  accumulator.extents.push_back(product->right.columns);
  accumulator.row.narrow = onf::LoadOp(product->left.load).getResult().getType();
  plan.folded.accumulators.push_back(accumulator);
  plan.folded.passes = plan.folded.operands = 1;
  plan.valueOperands.push_back(product->right);
  plan.accumulatorTerms.push_back({{}});
  plan.weights.push_back({accumulator.row});
  plan.product = std::move(*product);
  if (!checkEpilogue())
    return std::nullopt;
  return plan;
}

bool TilePlanner::findFold() {
  Block &body = plan.nest.getBody().front();
  if (body.getNumArguments() == 0)
    return refuse("the nest has no axes");
  auto folds = llvm::to_vector(body.getOps<FoldOp>());
  if (folds.empty() || !findPrologue(ArrayRef(folds).drop_back()))
    return refuse("the nest has " + Twine(folds.size()) + " folds" + describe(folds) + ", where tiles take one");
  plan.fold = folds.back();
  std::string found, over = "the fold over '" + plan.fold.getName().str() + "' ";
  auto folded = rows::planFold(plan.fold, body.getArguments().back(), deps, onDemand, &found, rows::kTensorSums);
  bool isChain = folded && !folded->scores.empty() && !folded->accumulators.empty();
  if (!isChain && !found.empty() && !(folded && !folded->scores.empty()))
    return refuseChain(found);
  if (!folded || folded->scores.empty())
    return refuseChain(over + "holds no contraction");
  for (AccOp acc : rows::getAccs(plan.fold)) {
    if (acc.getMonoid() == Monoid::user)
      return refuse("the state '" + acc.getName() + "' has a user-defined monoid");
    if (!acc.getRefs().empty() && acc.getCombine() == ScalarFn::select)
      return refuse("the state '" + acc.getName() + "' restarts when a state that it refers to changes");
  }
  plan.folded = std::move(*folded);
  return true;
}

static std::string getTypeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// Returns the load if an operand is an element of an array; else null.
static LoadOp getElement(const rows::Factors &factors) {
  bool isOne = factors.values.size() == 1 && factors.divisors.empty() && !factors.narrow;
  return isOne ? rows::getReadElement(factors.values[0]) : LoadOp();
}

/// Returns the name of an array for messages. A temporary is described by the expression that it
/// stores, because its own name does not occur in the specification.
static std::string describeArray(LoadOp load) {
  std::string name = rows::getArrayName(load).str();
  auto kernel = load->getParentOfType<onf::KernelOp>();
  auto argument = cast<BlockArgument>(load.getArray());
  if (!kernel.isTemporary(argument.getArgNumber()))
    return name;
  StringRef text;
  kernel.walk([&](StoreOp store) {
    for (Operation *op = store; store.getArray() == argument && text.empty() && op != kernel; op = op->getParentOp())
      text = getText(op->getLoc());
  });
  return text.empty() ? name : name + ", which stores '" + text.str() + "',";
}

/// Checks that the operands of a contraction have one type. Tensor cores multiply floats of 16 and
/// 8 bits into f32, and i8 into i32; sums of integers are planned for i8 only. `element` is the
/// type of the operands so far, if any.
bool TilePlanner::checkType(const rows::Factors &factors, Type &element) {
  LoadOp load = getElement(factors);
  if (!load && factors.narrow)
    return refuse("an operand of a contraction is computed from arrays without its axis of rows or "
                  "keys, so that its tiles cannot be stored; gather these arrays along its rows "
                  "first, or make it a parameter");
  if (!load)
    return refuse("an operand of a contraction is computed, but tiles are copied from arrays; if it "
                  "depends on rows or keys alone and its arrays have their axes, round it by a cast");
  Type type = load.getResult().getType();
  std::string name = describeArray(load);
  if (!type.isInteger(8) && !type.isBF16() && !type.isF16() && !isa<Float8E4M3FNType>(type))
    return refuse("an operand of a contraction does not have 16 or 8 bits: " + name + " has elements of " +
                  getTypeText(type));
  if (element && element != type)
    return refuse("the operands of a contraction have different types: " + name + " has elements of " +
                  getTypeText(type) + ", the other " + getTypeText(element));
  element = type;
  return true;
}

/// Checks that tiles can have this many columns. `subject` begins the message.
bool TilePlanner::checkLength(Value inner, int64_t length, Type element, StringRef subject) {
  std::string has = ": '" + rows::getIndexName(inner).str() + "' has " + std::to_string(length) + " indices";
  int64_t unit = 128 / element.getIntOrFloatBitWidth();
  if (length % unit != 0)
    return refuse(subject + " is no multiple of " + Twine(unit) + ", which the copy engine needs" + has);
  return true;
}

/// Returns the length of a page if an index along the rows is r mod length.
static std::optional<int64_t> getPage(const LinearIndex &place, Value index) {
  if (!place.constant.isZero() || place.terms.size() != 2 || place.terms.lookup(index) != SymExpr(1))
    return std::nullopt;
  for (const auto &[term, factor] : place.terms) {
    auto quotient = term.getDefiningOp<arith::FloorDivSIOp>();
    auto length = quotient ? getConstantIntValue(quotient.getRhs()) : std::nullopt;
    if (length && *length > 0 && quotient.getLhs() == index && factor == SymExpr(-*length))
      return length;
  }
  return std::nullopt;
}

/// Returns whether a value is the same for all rows of each page.
static bool isOfPage(Value value, Value index, int64_t length) {
  if (value == index)
    return false;
  Operation *op = value.getDefiningOp();
  auto quotient = dyn_cast_or_null<arith::FloorDivSIOp>(op);
  if (quotient && quotient.getLhs() == index && getConstantIntValue(quotient.getRhs()) == length)
    return true;
  return !op || (op->getNumRegions() == 0 &&
                 llvm::all_of(op->getOperands(), [&](Value operand) { return isOfPage(operand, index, length); }));
}

/// Finds an operand X[…] with one term per axis: `inner` on the last, `index` or a multiple of it
/// on one other. The remaining terms must be the same for the whole block. Rows of the nest may have
/// an offset that is the same, too: the tile may then hold rows after the last one, which are not stored.
/// Keys may be found by pages: X[f(⌊r / P⌋), …, r mod P, …, k].
bool TilePlanner::findOperand(const rows::Factors &factors, Value index, Value inner, int64_t columns,
                              SmallVectorImpl<TileOperand> &operands) {
  LoadOp load = getElement(factors);
  std::string shown = describeArray(load);
  unsigned rank = load.getArray().getType().getRank();
  SymExpr step(1);
  LinearIndex offset;
  std::optional<int64_t> page;
  for (unsigned axis = 0; axis + 1 < rank && index == plan.keyIndex() && !page; ++axis)
    page = getPage(load.getIndex(axis), index);
  auto isUniform = [&](Value term) {
    bool isOfKeys = deps.on(term, plan.keyIndex()) && !(page && isOfPage(term, index, *page));
    return (index == plan.keyIndex() || !deps.on(term, index)) && !deps.on(term, inner) &&
           !deps.on(term, plan.rowIndex()) && !isOfKeys;
  };
  auto isOfAxis = [&](unsigned axis) {
    LinearIndex place = load.getIndex(axis);
    if (page && getPage(place, index))
      return true;
    bool hasOffset = place.terms.size() > 1 && axis + 1 < rank && index == plan.rowIndex();
    if (hasOffset && place.constant.isZero() && place.terms.lookup(index) == SymExpr(1)) {
      place.terms.erase(index);
      offset = place;
      return llvm::all_of(llvm::make_first_range(place.terms), isUniform);
    }
    if (!place.constant.isZero() || place.terms.size() != 1)
      return false;
    auto [term, factor] = place.terms.front();
    auto [base, times] = takeApart(term);
    if (base == index)
      step = times * factor;
    return base == index || factor == SymExpr(1);
  };
  if (!llvm::all_of(llvm::seq(rank), isOfAxis))
    return refuse("an operand is not addressed axis by axis: subscripts of " + shown +
                  " must be indices or quotients, along rows multiples of one, without offset, "
                  "reversal or remainder");
  if (rank < 2 || rank > 5)
    return refuse("an operand has too few axes or too many: " + shown + " has " + Twine(rank) +
                  ", the copy engine takes 2 to 5");
  if (load.getIndex(rank - 1).getValue() != inner)
    return refuse("an operand's last axis is not the contraction's: " + shown + " is not read along '" +
                  rows::getIndexName(inner) + "' on its last axis");
  TileOperand operand;
  operand.load = load;
  operand.columns = columns;
  unsigned found = 0;
  for (unsigned axis = 0; axis + 1 < rank; ++axis) {
    LinearIndex place = load.getIndex(axis);
    Value term = place.terms.front().first;
    if (place.terms.count(index) || takeApart(term).first == index) {
      operand.rowAxis = axis;
      operand.step = step;
      operand.offset = offset;
      operand.page = page;
      ++found;
    } else if (!isUniform(term)) {
      return refuse("an operand's address depends on more than its row: the subscript of " + shown + " on axis " +
                    Twine(axis) + " varies within a tile");
    }
  }
  if (found != 1)
    return refuse("an operand has no axis of rows: " + shown + " is not read along '" + rows::getIndexName(index) +
                  "' on one axis");
  if (!isPositive(step, plan.nest))
    return refuse("rows of an operand may coincide: " + shown + " is read along '" + rows::getIndexName(index) +
                  "' at distances of " + step.str() + "; require that these are at least 1");
  if (page && (*page % kPageRows != 0 || !SymExpr::mod(plan.fold.getExtent(), SymExpr(*page)).isZero()))
    return refuse("pages of an operand do not fit tiles: " + shown + " has pages of " + Twine(*page) + " rows, of " +
                  plan.fold.getExtent().str() + " in all; tiles take whole pages of a multiple of " + Twine(kPageRows) +
                  " rows");
  operands.push_back(operand);
  return true;
}

/// Returns the number of an equal operand of the same sum, whose operands start at `first`.
std::optional<unsigned> TilePlanner::findKnown(const rows::Factors &factors, ArrayRef<TileOperand> operands,
                                               unsigned first) {
  LoadOp load = getElement(factors);
  for (unsigned number = first; number != operands.size(); ++number)
    if (isSameElement(load, operands[number].load))
      return number;
  return std::nullopt;
}

bool TilePlanner::findScore(const rows::Score &score) {
  Value inner = score.fold.getBody().getArgument(0);
  if (!score.type.isF32() && !score.type.isIndex())
    return refuse("a contraction is not summed in f32");
  if (score.extent > kLongest)
    return refuse("a contraction is longer than " + Twine(kLongest) + ": '" + rows::getIndexName(inner) + "' has " +
                  Twine(score.extent) + " indices");
  Type element;
  auto &terms = plan.scoreTerms.emplace_back();
  unsigned firstRow = plan.rowOperands.size(), firstKey = plan.keyOperands.size();
  Value rowIndex = plan.rowIndex(), keyIndex = plan.keyIndex();
  auto add = [&](const rows::Factors &row, const rows::Factors &key) {
    if (!checkType(row, element) || !checkType(key, element) ||
        !checkLength(inner, score.extent, element, "a contraction's length"))
      return false;
    auto knownRow = findKnown(row, plan.rowOperands, firstRow), knownKey = findKnown(key, plan.keyOperands, firstKey);
    terms.push_back({knownRow.value_or(plan.rowOperands.size()), knownKey.value_or(plan.keyOperands.size())});
    return (knownRow || findOperand(row, rowIndex, inner, score.extent, plan.rowOperands)) &&
           (knownKey || findOperand(key, keyIndex, inner, score.extent, plan.keyOperands));
  };
  return add(score.row, score.key) &&
         llvm::all_of(score.further, [&](const rows::FactorPair &pair) { return add(pair.row, pair.key); });
}

/// Finds an 8-bit operand of an accumulator, X[…, d, …, j], which instructions read along the keys.
/// It must be a temporary, because its keys are interleaved in memory.
bool TilePlanner::findTransposed(const rows::Factors &factors, Value inner, int64_t columns) {
  LoadOp load = getElement(factors);
  auto kernel = plan.nest->getParentOfType<onf::KernelOp>();
  ArrayType type = load.getArray().getType();
  if (!findOperand(factors, inner, plan.keyIndex(), columns, plan.valueOperands))
    return false;
  bool isWhole = SymExpr::mod(type.getExtent(type.getRank() - 1), SymExpr(16)).isZero();
  if (!kernel.isTemporary(cast<BlockArgument>(load.getArray()).getArgNumber()) || !isWhole)
    return refuse("an 8-bit operand of a state with an axis must be a temporary with a multiple of "
                  "16 keys, not " +
                  rows::getArrayName(load));
  plan.valueOperands.back().isTransposed = true;
  return true;
}

bool TilePlanner::findAccumulator(const rows::Accumulator &accumulator) {
  if (!accumulator.type.isF32())
    return refuse("a state with an axis is not summed in f32");
  Value inner = accumulator.acc.getValue().getArgument(0);
  if (accumulator.extents.size() != 1 || accumulator.extents[0] > kLongest)
    return refuse("a state carries more than one axis of " + Twine(kLongest) + ": '" + rows::getIndexName(inner) +
                  "' has " + Twine(accumulator.extents[0]) + " indices");
  Type element;
  if (!checkType(accumulator.key, element) ||
      !checkLength(inner, accumulator.extents[0], element, "an axis of a state"))
    return false;
  bool isByte = element.getIntOrFloatBitWidth() == 8;
  auto &terms = plan.accumulatorTerms.emplace_back();
  plan.weights.emplace_back();
  unsigned first = plan.valueOperands.size();
  Value keyIndex = plan.keyIndex();
  auto add = [&](const rows::Factors &row, const rows::Factors &key) {
    if (!checkType(key, element))
      return false;
    auto known = findKnown(key, plan.valueOperands, first);
    ProductTerm &term = terms.emplace_back();
    term.key = known.value_or(plan.valueOperands.size());
    bool isFound = known || (isByte ? findTransposed(key, inner, accumulator.extents[0])
                                    : findOperand(key, keyIndex, inner, accumulator.extents[0], plan.valueOperands));
    return isFound && findWeights(row, element, term.row);
  };
  if (!add(accumulator.row, accumulator.key) ||
      !llvm::all_of(accumulator.further, [&](const rows::FactorPair &pair) { return add(pair.row, pair.key); }))
    return false;
  orderWeights();
  return true;
}

/// Puts those weights first from which all others are computed, if there are any.
void TilePlanner::orderWeights() {
  auto &weights = plan.weights.back();
  auto isOf = [&](const rows::Factors &whole, const rows::Factors &other) {
    SetVector<Operation *> slice;
    BackwardSliceOptions options;
    options.inclusive = true;
    (void)getBackwardSlice(other.values[0], &slice, options);
    return slice.contains(whole.values[0].getDefiningOp());
  };
  for (unsigned k = 1; k < weights.size(); ++k)
    if (llvm::all_of(weights, [&](const rows::Factors &other) { return isOf(weights[k], other); })) {
      std::swap(weights[0], weights[k]);
      for (ProductTerm &term : plan.accumulatorTerms.back())
        term.row = term.row == 0 ? k : term.row == k ? 0 : term.row;
      return;
    }
}

/// Adds weights of the latest accumulator, each once.
bool TilePlanner::findWeights(const rows::Factors &factors, Type element, unsigned &number) {
  if (factors.narrow != element)
    return refuse("a computed operand is not rounded to the other's type; cast it to that type, "
                  "or not at all");
  auto &weights = plan.weights.back();
  number = llvm::find(weights, factors) - weights.begin();
  if (number == weights.size())
    weights.push_back(factors);
  return true;
}

bool TilePlanner::findOperands() {
  return llvm::all_of(plan.folded.scores, [&](const rows::Score &score) { return findScore(score); }) &&
         llvm::all_of(plan.folded.accumulators,
                      [&](const rows::Accumulator &accumulator) { return findAccumulator(accumulator); });
}

/// Checks that loops after the fold run over the axis of one accumulator.
bool TilePlanner::checkEpilogue() {
  auto isColumns = [](const SymExpr &extent) {
    return [=](const auto &product) { return extent == product.right.columns; };
  };
  for (auto loop : plan.nest.getBody().getOps<ForOp>()) {
    if (loop.getExtents().size() != 1)
      return refuse("an output loop has several axes");
    const SymExpr &extent = getSymExpr(loop.getExtents()[0]);
    bool known = llvm::any_of(plan.folded.accumulators,
                              [&](const rows::Accumulator &accumulator) { return extent == accumulator.extents[0]; }) &&
                 llvm::all_of(plan.prologue, isColumns(extent));
    WalkResult inner = loop.getBody().walk(
        [](Operation *op) { return isa<ForOp, FoldOp>(op) ? WalkResult::interrupt() : WalkResult::advance(); });
    if (!known || inner.wasInterrupted())
      return refuse("an output loop is not over the axis of a state, but over '" +
                    rows::getIndexName(loop.getBody().getArgument(0)) + "'");
  }
  return true;
}

Match<TilePlan> TilePlanner::run() {
  ForOp nest = plan.nest;
  if (auto product = findProduct())
    return *product;
  plan = TilePlan();
  plan.nest = nest;
  if (!findFold() || !findOperands() || !checkPrologue() || !checkEpilogue())
    return Reason(why);
  joinPrologue();
  return plan;
}

} // namespace

bool moa::contractsNarrow(ForOp nest) {
  auto isHalf = [](Type type) { return type.isBF16() || type.isF16(); };
  WalkResult found = nest.walk([&](AccOp acc) {
    if (acc.getMonoid() != Monoid::add)
      return WalkResult::advance();
    if (rows::roundsOperands(acc) && isHalf(*acc.getOperandType()))
      return WalkResult::interrupt();
    Operation *product = rows::getYielded(acc.getValue()).getDefiningOp();
    if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product) ||
        product->getOperand(0) == product->getOperand(1)) // a square is no contraction
      return WalkResult::advance();
    bool isNarrow = llvm::all_of(product->getOperands(), [&](Value factor) {
      LoadOp load = rows::getReadElement(factor);
      Type type = load ? load.getResult().getType() : Type();
      return load && (isa<arith::MulFOp>(product) ? isHalf(type) : type.isInteger(8));
    });
    return isNarrow ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found.wasInterrupted();
}

std::pair<Value, SymExpr> moa::takeApart(Value term) {
  auto product = term.getDefiningOp<arith::MulIOp>();
  if (!product)
    return {term, SymExpr(1)};
  for (unsigned side : {0, 1})
    if (auto times = getSymbolic(product->getOperand(side))) {
      auto [index, more] = takeApart(product->getOperand(1 - side));
      return {index, more * *times};
    }
  return {term, SymExpr(1)};
}

bool moa::anySource(ValueRange values, llvm::function_ref<std::optional<bool>(Operation *)> find) {
  SmallVector<Value> open(values);
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    std::optional<bool> isFound = op ? find(op) : std::nullopt;
    if (!isFound)
      continue;
    if (*isFound)
      return true;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        open.push_back(operand);
  }
  return false;
}

bool moa::isSameElement(LoadOp x, LoadOp y) {
  return x && y && x.getArray() == y.getArray() && llvm::equal(x.getTerms(), y.getTerms()) &&
         x.getSubscripts() == y.getSubscripts();
}

Match<TilePlan> moa::findTiles(ForOp nest) { return TilePlanner(nest).run(); }

bool moa::canRescaleLazily(const TilePlan &plan) {
  bool any = false, can = true;
  auto visit = [&](AccOp acc) {
    if (acc.getRefs().empty())
      return;
    any = true;
    can &= acc.getCombine() == ScalarFn::mul && acc.getOthers().empty() &&
           rows::getYielded(acc.getRepair()).getType().isF32();
    for (Value ref : acc.getRefs()) {
      AccOp extreme = ref.getDefiningOp<AccOp>();
      can &= extreme.getRefs().empty() && (extreme.getMonoid() == Monoid::max || extreme.getMonoid() == Monoid::min);
    }
  };
  for (const rows::Scalar &scalar : plan.folded.scalars)
    visit(scalar.acc);
  for (const rows::Accumulator &accumulator : plan.folded.accumulators)
    visit(accumulator.acc);
  return any && can;
}

bool moa::isInterleaved(Value array) {
  auto argument = cast<BlockArgument>(array);
  auto arrays = argument.getOwner()->getParentOp()->getAttrOfType<DenseI64ArrayAttr>(kInterleavedAttr);
  return arrays && llvm::is_contained(arrays.asArrayRef(), argument.getArgNumber());
}

Type moa::getResultElement(const TilePlan &plan) {
  for (auto loop : plan.nest.getBody().getOps<ForOp>())
    for (auto store : loop.getBody().getOps<StoreOp>()) {
      Type element = store.getArray().getType().getElementType();
      bool isOfRows = llvm::any_of(
          plan.rowOperands, [&](const TileOperand &operand) { return operand.load.getResult().getType() == element; });
      if ((element.isBF16() || element.isF16()) && !isOfRows)
        return element;
    }
  return Type();
}

int64_t moa::getResultColumns(const TilePlan &plan) {
  int64_t columns = 0;
  for (const rows::Accumulator &accumulator : plan.folded.accumulators)
    columns = std::max(columns, paddedColumns(accumulator.extents[0]));
  return columns;
}
