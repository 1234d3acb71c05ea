//===- ValueNames.cpp - names of values in the emitted text ---------------===//
//
// A scalar of a state is named after the state, and a stored scalar after its array: `next_max`,
// `other_max` of another lane, `O_result`. Otherwise names of the program take precedence. A value
// without one is named after the operation that defines it.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa::cuda {

static std::string wordFor(Operation *op);

/// Returns the name of a value in the program, or else the word for its operation.
static std::string wordFor(Value value) {
  std::string name = getNameInProgram(value);
  return name.empty() ? wordFor(value.getDefiningOp()) : name;
}

/// Returns the word for an operation's result, or an empty text.
static std::string wordFor(Operation *op) {
  if (!op)
    return "";
  bool isStep = op->getNumOperands() == 2 && matchPattern(op->getOperand(1), m_One());
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case<device::BlockOp>([](auto) { return "block"; })
      .Case<device::ThreadOp>([](auto) { return "thread"; })
      .Case<device::SymbolOp>([](device::SymbolOp symbol) {
        // A stride `A.s0`, an extent, or an expression of extents.
        std::string spelled = symbol.getExpr().str();
        llvm::StringRef text = spelled;
        bool isPlain = llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
        return text.contains('.') && !text.contains(' ') ? "stride" : isPlain ? "extent" : "count";
      })
      .Case<device::Exp2Op, device::HalfFromBitsOp, math::ExpOp, math::Exp2Op, math::PowFOp>(
          [](auto) { return "power"; })
      .Case<math::LogOp, math::Log2Op>([](auto) { return "logarithm"; })
      .Case<math::FmaOp>([](math::FmaOp fma) {
        bool isExponent =
            llvm::all_of(fma->getUsers(), [](Operation *user) { return isa<device::Exp2Op, math::Exp2Op>(user); });
        return isExponent ? "exponent" : "sum";
      })
      .Case<device::ScalarOp>([](device::ScalarOp scalar) {
        unsigned number = cast<BlockArgument>(scalar.getArray()).getArgNumber();
        return "wide_" + scalar->getParentOfType<device::ProgramOp>().getAllNames()[number].str();
      })
      .Case<arith::RemUIOp, arith::RemSIOp>([](auto) { return "rest"; })
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>([](auto) { return "quotient"; })
      .Case<arith::CmpIOp, arith::CmpFOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [](Operation *o) { return o->getResult(0).getType().isInteger(1) ? "condition" : "bits"; })
      .Case<arith::MinSIOp, arith::MinimumFOp, arith::MinNumFOp>([](auto) { return "smaller"; })
      .Case<arith::MaxSIOp, arith::MaximumFOp, arith::MaxNumFOp>([](auto) { return "larger"; })
      .Case<arith::SubIOp>([&](auto) { return isStep ? "previous" : "difference"; })
      .Case<arith::AddIOp>([&](auto) { return isStep ? "following" : "position"; })
      .Case<arith::MulIOp>([](auto) { return "offset"; })
      .Case<arith::MulFOp>(
          [](arith::MulFOp product) { return matchPattern(product.getRhs(), m_AnyZeroFloat()) ? "zero" : "product"; })
      .Case<arith::AddFOp>([](auto) { return "sum"; })
      .Case<arith::SubFOp>([](auto) { return "difference"; })
      .Case<arith::DivFOp>([](auto) { return "ratio"; })
      .Case<device::ReciprocalOp>([](auto) { return "reciprocal"; })
      .Case<arith::NegFOp>([](arith::NegFOp negated) {
        // The second product of the exponent x·log₂e − m·log₂e.
        auto product = negated.getOperand().getDefiningOp<arith::MulFOp>();
        return product && matchPattern(product.getRhs(), m_Constant()) ? "exponent_offset" : "negated";
      })
      .Case<math::AbsFOp>([](auto) { return "magnitude"; })
      .Case<arith::IndexCastOp, arith::ExtUIOp, arith::TruncIOp, device::OpaqueOp>(
          [](Operation *o) { return wordFor(o->getOperand(0)); })
      .Case<device::ThreadOffsetOp>([](device::ThreadOffsetOp offset) {
        auto index = cast<BlockArgument>(offset.getIndex());
        unsigned inputs = cast<device::MapOp>(index.getOwner()->getParentOp()).getInputs().size();
        return index.getArgNumber() == inputs ? "row_offset" : "column";
      })
      .Case<arith::TruncFOp>([](auto) { return "rounded"; })
      .Case<arith::ExtFOp>([](auto) { return "wide"; })
      .Case<arith::SelectOp>([](arith::SelectOp select) {
        for (Value side : {select.getTrueValue(), select.getFalseValue()})
          if (std::string word = wordFor(side); !word.empty())
            return word;
        return std::string("chosen");
      })
      .Default([](auto) { return ""; });
}

/// Returns the name of a tile element's index: `first_m + j` is `m`, `row_base + i` is `row`.
static std::string indexWord(arith::AddIOp sum) {
  bool isElement = llvm::any_of(sum->getOperands(), [](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return argument && isa<device::MapOp>(argument.getOwner()->getParentOp());
  });
  for (Value operand : sum->getOperands()) {
    std::string name = getNameInProgram(operand);
    llvm::StringRef rest = name;
    rest.consume_front("own_");
    if (isElement && (rest.consume_front("first_") || rest.consume_back("_base")))
      return rest.str();
  }
  return "";
}

/// Returns whether a condition is x = −∞, or this and others.
static bool comparesWithMinusInfinity(Value condition) {
  if (auto both = condition.getDefiningOp<arith::AndIOp>())
    return comparesWithMinusInfinity(both.getLhs()) || comparesWithMinusInfinity(both.getRhs());
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  return compare && compare.getPredicate() == arith::CmpFPredicate::OEQ &&
         matchPattern(compare.getRhs(), m_NegInfFloat());
}

std::string KernelPrinter::wishForFragment(Value fragment) const {
  static const char *const kReduced[] = {"row_sum", "row_product", "row_max", "row_min", "row_all", "row_any"};
  bool onlyScales = !fragment.use_empty();
  for (OpOperand &use : fragment.getUses()) {
    Operation *user = use.getOwner();
    std::string state;
    if (auto loop = dyn_cast<scf::ForOp>(user))
      state = storage.nameOf(loop.getTiedLoopRegionIterArg(&use));
    else if (isa<scf::YieldOp>(user))
      state = storage.nameOf(user->getParentOp()->getResult(use.getOperandNumber()));
    if (!state.empty())
      return "next_" + state;
    if (isa<device::ClearUnseenOp>(user))
      return "mask";
    auto map = dyn_cast<device::MapOp>(user);
    onlyScales &= map && llvm::all_of(map.getBody().getArgument(use.getOperandNumber()).getUsers(),
                                      [](Operation *inner) { return isa<arith::MulFOp>(inner); });
  }
  Operation *definition = fragment.getDefiningOp();
  if (auto reduce = dyn_cast_or_null<device::ReduceOp>(definition))
    return kReduced[unsigned(reduce.getMonoid())];
  auto map = dyn_cast_or_null<device::MapOp>(definition);
  if (!map)
    return "";
  bool isOfRows = cast<device::FragmentType>(fragment.getType()).getShape().size() == 1;
  std::string prefix = isOfRows ? "row_" : "";
  if (onlyScales)
    return prefix + "factor";
  auto yield = cast<device::YieldOp>(map.getBody().front().getTerminator());
  Value made = yield.getValues()[cast<OpResult>(fragment).getResultNumber()];
  if (made.getType().isInteger(1) && getNameInProgram(made).empty())
    return prefix + (comparesWithMinusInfinity(made) ? "is_minus_infinity" : "condition");
  std::string word = wordFor(made);
  bool isPlain = word.empty() || word == "exponent_offset"; // says enough without the prefix
  return getNameInProgram(made).empty() && !isPlain ? prefix + word : word;
}

//===----------------------------------------------------------------------===//
// States of folds
//===----------------------------------------------------------------------===//

/// Returns the value of another lane that a scalar is, at most converted, or null.
static device::ExchangeOp getExchange(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto exchange = dyn_cast<device::ExchangeOp>(op))
      return exchange;
    auto compare = dyn_cast<arith::CmpIOp>(op); // a boolean is exchanged as an integer
    bool isConverted = isa<arith::TruncFOp, arith::ExtFOp, arith::TruncIOp, arith::IndexCastOp>(op);
    if (!isConverted && !(compare && compare.getPredicate() == arith::CmpIPredicate::ne))
      return nullptr;
    value = op->getOperand(0);
  }
  return nullptr;
}

std::string KernelPrinter::stateOf(Value value) const {
  if (auto known = states.find(value); known != states.end())
    return known->second;
  states[value] = ""; // while it is searched
  std::string state = findState(value);
  return states[value] = state;
}

std::string KernelPrinter::findState(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument != loop.getInductionVar() ? getNameInProgram(argument) : "";
  }
  Operation *op = value.getDefiningOp();
  unsigned number = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return getNameInProgram(loop.getRegionIterArg(number));
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return stateOf(branch.thenYield().getOperand(number));
  if (device::ExchangeOp exchange = getExchange(value))
    return stateOf(exchange.getOperand());
  if (isa<arith::ExtUIOp, arith::ExtFOp, arith::IndexCastOp>(op)) // before an exchange
    return stateOf(op->getOperand(0));
  if (auto select = dyn_cast<arith::SelectOp>(op)) { // the unchanged state comes last
    std::string state = stateOf(select.getFalseValue());
    Operation *changed = select.getTrueValue().getDefiningOp();
    bool isChanged = isa_and_nonnull<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::SelectOp>(changed) &&
                     llvm::any_of(changed->getOperands(), [&](Value operand) { return stateOf(operand) == state; });
    return isChanged || stateOf(select.getTrueValue()) == state ? state : "";
  }
  if (!isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp, arith::MaximumFOp, arith::MinimumFOp,
           arith::MaxSIOp, arith::MinSIOp, arith::AndIOp, arith::OrIOp>(op) ||
      op->getOperand(0) == op->getOperand(1))
    return "";
  std::string left = stateOf(op->getOperand(0)), right = stateOf(op->getOperand(1));
  // Rounding errors are added to those of the lanes.
  bool isRest = StringRef(left).ends_with("_rest") && right.empty();
  return left == right || isRest ? left : "";
}

/// Returns whether a condition selects between the values of this lane and of another one.
static bool selectsLane(Value condition) {
  return llvm::any_of(condition.getUsers(), [&](Operation *user) {
    auto select = dyn_cast<arith::SelectOp>(user);
    return select && select.getCondition() == condition &&
           (getExchange(select.getTrueValue()) || getExchange(select.getFalseValue()));
  });
}

/// Returns a name for a value of a state: the next one in a loop, or that of one or several lanes.
std::string KernelPrinter::wishForState(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return "";
  for (OpOperand &use : value.getUses()) {
    auto yield = dyn_cast<scf::YieldOp>(use.getOwner());
    Operation *parent = yield ? yield->getParentOp() : nullptr;
    std::string state;
    if (auto loop = dyn_cast_or_null<scf::ForOp>(parent))
      state = getNameInProgram(loop.getRegionIterArg(use.getOperandNumber()));
    if (!state.empty())
      return "next_" + state;
    if (auto branch = dyn_cast_or_null<scf::IfOp>(parent))
      if (std::string wish = wishForState(branch.getResult(use.getOperandNumber()));
          StringRef(wish).starts_with("next_"))
        return wish;
  }
  if (selectsLane(value))
    return "is_left";
  std::string state = stateOf(value);
  if (state.empty()) {
    // The total of a compensated sum.
    std::string sum = isa<arith::AddFOp>(op) ? stateOf(op->getOperand(0)) : "";
    return !sum.empty() && stateOf(op->getOperand(1)) == sum + "_rest" ? "total_" + sum : "";
  }
  if (isa<scf::IfOp>(op))
    return state;
  if (getExchange(value))
    return "other_" + state;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (getExchange(select.getFalseValue()))
      return "left_" + state;
    return (getExchange(select.getTrueValue()) ? "right_" : "rescaled_") + state;
  }
  return "joined_" + state;
}

/// Returns a name for a value that is stored: `O_result` for an element of the output `O`, or the
/// next value of a state in registers.
std::string KernelPrinter::wishForStored(Value value) const {
  for (Operation *user : value.getUsers()) {
    if (auto store = dyn_cast<device::StoreOp>(user); store && store.getValue() == value)
      return appendWord(names.of(store.getArray()), "result");
    auto local = dyn_cast<memref::StoreOp>(user);
    std::string name = local && local.getValue() == value ? getNameInProgram(local.getMemref()) : "";
    StringRef base = name;
    if (base.consume_back("_run") || base.consume_back("_pair"))
      return appendWord(base, "result");
    if (!base.empty() && base != "run")
      return "next_" + name;
  }
  return "";
}

/// Returns a name for an element of an array, for example `K_element`.
std::string KernelPrinter::wishForLoaded(Value value) const {
  Operation *op = value.getDefiningOp();
  if (auto load = dyn_cast_or_null<device::LoadOp>(op))
    return appendWord(names.of(load.getArray()), "element");
  auto local = dyn_cast_or_null<memref::LoadOp>(op);
  std::string name = local ? getNameInProgram(local.getMemref()) : "";
  StringRef base = name;
  if (!base.consume_back("_run") && !base.consume_back("_pair"))
    base.consume_back("_row");
  return base.empty() || base == "run" ? "" : appendWord(base, "element");
}

/// Returns the array that a sum is an offset into, directly or as a part of the offset. Null: none
/// or several.
static Value arrayAt(Value sum) {
  Value array;
  for (Operation *user : sum.getUsers()) {
    Value found;
    if (isa<arith::AddIOp>(user))
      found = arrayAt(user->getResult(0));
    else
      llvm::TypeSwitch<Operation *>(user).Case<device::LoadOp, device::StoreOp, device::LoadRunOp, device::StoreRunOp>(
          [&](auto access) { found = access.getOffset() == sum ? access.getArray() : nullptr; });
    if (!found || (array && array != found))
      return nullptr;
    array = found;
  }
  return array;
}

std::string KernelPrinter::wishFor(Value value, const char *fallback) const {
  if (value.getDefiningOp() && !isa<device::FragmentType, MemRefType>(value.getType()))
    for (const std::string &wish : {wishForState(value), wishForStored(value)})
      if (!wish.empty())
        return wish;
  std::string wish = getNameInProgram(value);
  if (wish.empty())
    wish = wishForLoaded(value);
  if (wish.empty() && isFragment(value))
    wish = wishForFragment(value);
  if (auto sum = value.getDefiningOp<arith::AddIOp>(); sum && wish.empty())
    wish = indexWord(sum);
  if (value.getDefiningOp<arith::AddIOp>() && wish.empty())
    if (Value array = arrayAt(value))
      wish = appendWord(names.of(array), "offset");
  if (wish.empty())
    wish = wordFor(value.getDefiningOp());
  return wish.empty() ? fallback : wish;
}

} // namespace moa::cuda
