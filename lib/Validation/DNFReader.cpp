//===- DNFReader.cpp - definitions of the normal form as terms ------------===//
#include "lib/Validation/Readers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moa;
using namespace moa::validation;

//===----------------------------------------------------------------------===//
// Scalar operations
//===----------------------------------------------------------------------===//

static Term readIntegerComparison(TermContext &terms, arith::CmpIOp op, Term a, Term b) {
  using P = arith::CmpIPredicate;
  if (a->type == terms.boolType())
    return op.getPredicate() == P::eq ? terms.same(a, b) : terms.negate(terms.same(a, b));
  switch (op.getPredicate()) {
  case P::eq:
    return terms.equal(a, b);
  case P::ne:
    return terms.negate(terms.equal(a, b));
  case P::slt:
    return terms.below(a, b);
  case P::sle:
    return terms.atMost(a, b);
  case P::sgt:
    return terms.below(b, a);
  case P::sge:
    return terms.atMost(b, a);
  default:
    return nullptr;
  }
}

static Term readFloatComparison(TermContext &terms, arith::CmpFOp op, Term a, Term b) {
  using P = arith::CmpFPredicate;
  auto make = [&](StringRef name, Term x, Term y) { return terms.scalar(name, terms.boolType(), {x, y}); };
  switch (op.getPredicate()) {
  case P::OEQ:
    return make("eqf", a, b);
  case P::UNE:
    return terms.negate(make("eqf", a, b));
  case P::OLT:
    return make("ltf", a, b);
  case P::OLE:
    return make("lef", a, b);
  case P::OGT:
    return make("ltf", b, a);
  case P::OGE:
    return make("lef", b, a);
  case P::AlwaysFalse:
    return terms.truth(false);
  case P::AlwaysTrue:
    return terms.truth(true);
  default:
    return nullptr;
  }
}

/// Returns the name in terms of a float operation, or an empty string.
static StringRef realName(Operation *op) {
  return TypeSwitch<Operation *, StringRef>(op)
      .Case([](arith::AddFOp) { return "addf"; })
      .Case([](arith::SubFOp) { return "subf"; })
      .Case([](arith::MulFOp) { return "mulf"; })
      .Case([](arith::DivFOp) { return "divf"; })
      .Case([](arith::RemFOp) { return "remf"; })
      .Case([](arith::NegFOp) { return "negf"; })
      .Case([](arith::MinimumFOp) { return "minf"; })
      .Case([](arith::MaximumFOp) { return "maxf"; })
      .Case([](math::AbsFOp) { return "absf"; })
      .Case([](math::ExpOp) { return "exp"; })
      .Case([](math::Exp2Op) { return "exp2"; })
      .Case([](math::LogOp) { return "log"; })
      .Case([](math::Log2Op) { return "log2"; })
      .Case([](math::SqrtOp) { return "sqrt"; })
      .Case([](math::RsqrtOp) { return "rsqrt"; })
      .Case([](math::TanhOp) { return "tanh"; })
      .Case([](math::SinOp) { return "sin"; })
      .Case([](math::CosOp) { return "cos"; })
      .Case([](math::ErfOp) { return "erf"; })
      .Case([](math::FloorOp) { return "floor"; })
      .Case([](math::CeilOp) { return "ceil"; })
      .Case([](math::PowFOp) { return "pow"; })
      .Case([](math::Atan2Op) { return "atan2"; })
      .Default([](Operation *) { return ""; });
}

static Term readInteger(TermContext &terms, Operation *op, ArrayRef<Term> x) {
  bool isBool = op->getResult(0).getType().isInteger(1);
  auto other = [&](StringRef name) { return terms.integer(name, x[0], x[1]); };
  return TypeSwitch<Operation *, Term>(op)
      .Case([&](arith::AddIOp) { return terms.sum(x[0], x[1]); })
      .Case([&](arith::SubIOp) { return terms.difference(x[0], x[1]); })
      .Case([&](arith::MulIOp) { return terms.product(x[0], x[1]); })
      .Case([&](arith::FloorDivSIOp) { return terms.quotient(x[0], x[1]); })
      .Case([&](arith::MinSIOp) { return other("min"); })
      .Case([&](arith::MaxSIOp) { return other("max"); })
      .Case([&](arith::ShLIOp) { return other("shl"); })
      .Case([&](arith::ShRSIOp) { return other("shr"); })
      .Case([&](arith::AndIOp) { return isBool ? terms.both(x[0], x[1]) : other("and"); })
      .Case([&](arith::OrIOp) { return isBool ? terms.either(x[0], x[1]) : other("or"); })
      .Case([&](arith::XOrIOp) { return isBool ? terms.negate(terms.same(x[0], x[1])) : other("xor"); })
      .Default([](Operation *) { return nullptr; });
}

Term validation::readScalar(TermContext &terms, Operation *op, ArrayRef<Term> x) {
  Type type = op->getResult(0).getType();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return terms.constant(constant.getValue(), type);
  if (isa<arith::SelectOp>(op))
    return terms.select(x[0], x[1], x[2]);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return readIntegerComparison(terms, compare, x[0], x[1]);
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return readFloatComparison(terms, compare, x[0], x[1]);
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::IndexCastOp,
          arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp>(op))
    return terms.cast(x[0], type);
  if (StringRef name = realName(op); !name.empty())
    return terms.scalar(name, type, x);
  return readInteger(terms, op, x);
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

DNFReader::DNFReader(TermContext &terms, dnf::KernelOp kernel) : terms(terms), kernel(kernel) {
  for (auto let : kernel.getBody().getOps<dnf::LetOp>()) {
    numbers[let] = numbers.size();
    lets[let.getSymName()] = let;
  }
}

Element DNFReader::generic(Operation *definition) {
  Values values;
  Block &body = definition->getRegion(0).front();
  for (BlockArgument argument : body.getArguments())
    values[argument] = terms.index(argument.getArgNumber());
  return block(body, values, 0);
}

Element DNFReader::block(Block &block, Values &values, unsigned depth) {
  for (Operation &op : block.without_terminator()) {
    Term term = operation(&op, values, depth);
    if (!term)
      return {};
    values[op.getResult(0)] = term;
  }
  auto yield = cast<dnf::YieldOp>(block.getTerminator());
  Value present = yield.getPresent();
  return {values.lookup(yield.getValue()), present ? values.lookup(present) : terms.truth(true)};
}

Term DNFReader::operation(Operation *op, Values &values, unsigned depth) {
  SmallVector<Term> operands;
  for (Value operand : op->getOperands())
    if (!isa<ArrayType>(operand.getType()))
      operands.push_back(values.lookup(operand));
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return terms.load(cast<BlockArgument>(psi.getArray()).getArgNumber(), operands, op->getResult(0).getType());
  if (auto extent = dyn_cast<dnf::ExtentOp>(op))
    return terms.extent(extent.getExpr());
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return this->apply(apply, operands, depth);
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op)) {
    Block &body = reduce.getBody().front();
    Term j = boundIndex(terms, depth);
    values[body.getArgument(0)] = j;
    Element x = block(body, values, depth + 1);
    if (!x.value)
      return nullptr;
    std::string monoid = reductionName(reduce.getMonoid(), reduce.getFunctionAttr(), reduce.getOperandTypeAttr());
    return terms.reduce(monoid, reduce.getResult().getType(), j, terms.extent(reduce.getExtent()), x.value, x.presence);
  }
  return readScalar(terms, op, operands);
}

Term DNFReader::apply(dnf::ApplyOp op, ArrayRef<Term> indices, unsigned depth) {
  dnf::LetOp let = lets.lookup(op.getLet());
  if (!unfolded.contains(let))
    return terms.apply(numbers.lookup(let), let.getType(), indices);
  std::vector<Term> key(indices.begin(), indices.end());
  key.push_back(terms.number(depth));
  auto [it, isNew] = applied.try_emplace({let, key}, nullptr);
  if (!isNew)
    return it->second;
  Values values;
  for (auto [argument, index] : llvm::zip_equal(let.getBody().getArguments(), indices))
    values[argument] = index;
  Term result = block(let.getBody().front(), values, depth).value;
  return applied[{let, key}] = result;
}
