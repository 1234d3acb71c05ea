//===- ValueNames.cpp - names of values in the emitted text ---------------===//
//
// Names of the program take precedence. A value without one is named after the state that it
// becomes next, or after the operation that defines it.
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
        llvm::StringRef text = symbol.getExpr();
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
      .Case<arith::RemUIOp, arith::RemSIOp>([](auto) { return "rest"; })
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp>([](auto) { return "quotient"; })
      .Case<arith::CmpIOp, arith::CmpFOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(
          [](Operation *o) { return o->getResult(0).getType().isInteger(1) ? "condition" : "bits"; })
      .Case<arith::MinSIOp, arith::MinimumFOp, arith::MinNumFOp>([](auto) { return "smaller"; })
      .Case<arith::MaxSIOp, arith::MaximumFOp, arith::MaxNumFOp>([](auto) { return "larger"; })
      .Case<arith::SubIOp>([&](auto) { return isStep ? "previous" : "difference"; })
      .Case<arith::AddIOp>([&](auto) { return isStep ? "following" : "position"; })
      .Case<arith::MulIOp>([](auto) { return "offset"; })
      .Case<arith::MulFOp>([](auto) { return "product"; })
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
    return prefix + "condition";
  std::string word = wordFor(made);
  return getNameInProgram(made).empty() && !word.empty() ? prefix + word : word;
}

std::string KernelPrinter::wishFor(Value value, const char *fallback) const {
  std::string wish = getNameInProgram(value);
  if (wish.empty() && isa<device::FragmentType>(value.getType()))
    wish = wishForFragment(value);
  if (auto sum = value.getDefiningOp<arith::AddIOp>(); sum && wish.empty())
    wish = indexWord(sum);
  if (wish.empty())
    wish = wordFor(value.getDefiningOp());
  return wish.empty() ? fallback : wish;
}

} // namespace moa::cuda
