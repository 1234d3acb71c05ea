//===- MathText.cpp - normal forms as readable mathematics ----------------===//
#include "lib/Analysis/MathText.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace mlir;
using namespace moa;

namespace {

/// Binding strength of a text: a sum inside a product needs parentheses.
enum Strength { Or = 1, And, Compare, Sum, Product, Unary, Atom };

struct Text {
  std::string text;
  int strength;
};

class MathPrinter {
public:
  std::string run(Operation *kernel);

private:
  void printDNF(dnf::KernelOp kernel);
  void printONF(onf::KernelOp kernel);
  void printBlock(Block &block, unsigned indent);
  void printFor(onf::ForOp op, unsigned indent);
  void printFold(onf::FoldOp op, unsigned indent);
  void printAcc(onf::AccOp op, unsigned indent);
  void line(unsigned indent, const Twine &text) {
    os.indent(2 * indent) << text << '\n';
  }

  Text of(Value value);
  Text ofOp(Operation *op);
  std::string at(Value value, int strength) {
    Text t = of(value);
    return t.strength < strength ? "(" + t.text + ")" : t.text;
  }
  Text binary(Operation *op, StringRef symbol, int strength, bool tightRight);
  Text reduction(dnf::ReduceOp op);
  std::string list(ValueRange values);
  std::string address(ValueRange terms, ArrayAttr coefficients, StringRef constant);
  std::string repair(onf::AccOp op);
  std::string name(Value value, StringRef hint);
  void nameIndices(Block &block, ArrayAttr hints);

  DenseMap<Value, std::string> names;
  llvm::StringMap<unsigned> taken;
  std::string buffer;
  llvm::raw_string_ostream os{buffer};
};

} // namespace

static StringRef symbolOf(Monoid monoid) {
  switch (monoid) {
  case Monoid::add: return "Σ";
  case Monoid::mul: return "Π";
  case Monoid::max: return "max";
  case Monoid::min: return "min";
  case Monoid::and_: return "∀";
  case Monoid::or_: return "∃";
  }
  llvm_unreachable("unknown monoid");
}

static std::string number(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isInteger(1) ? (integer.getValue().isZero() ? "false" : "true")
                                          : std::to_string(integer.getInt());
  double v = cast<FloatAttr>(value).getValueAsDouble();
  if (std::isnan(v))
    return "NaN";
  if (std::isinf(v))
    return v < 0 ? "−∞" : "∞";
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", v);
  return text;
}

static Text extentText(StringRef text) {
  auto expr = SymExpr::parse(text);
  bool atom = expr && (expr->getSymbol() || expr->getConstant());
  return {text.str(), atom ? Atom : Sum};
}

std::string MathPrinter::name(Value value, StringRef hint) {
  std::string base = hint.empty() ? "t" : hint.str();
  unsigned &count = taken[base];
  std::string result = count++ ? base + std::to_string(count) : base;
  names[value] = result;
  return result;
}

void MathPrinter::nameIndices(Block &block, ArrayAttr hints) {
  for (auto [arg, hint] : llvm::zip(block.getArguments(), hints))
    name(arg, cast<StringAttr>(hint).getValue());
}

std::string MathPrinter::list(ValueRange values) {
  SmallVector<std::string> parts;
  for (Value value : values)
    parts.push_back(at(value, 0));
  return llvm::join(parts, ", ");
}

Text MathPrinter::of(Value value) {
  if (auto it = names.find(value); it != names.end())
    return {it->second, Atom};
  Operation *op = value.getDefiningOp();
  return op ? ofOp(op) : Text{"?", Atom};
}

Text MathPrinter::binary(Operation *op, StringRef symbol, int strength,
                         bool tightRight) {
  return {at(op->getOperand(0), strength) + symbol.str() +
              at(op->getOperand(1), strength + (tightRight ? 1 : 0)),
          strength};
}

static StringRef comparison(Operation *op) {
  static const StringRef integers[] = {" = ", " ≠ ", " < ", " ≤ ", " > ",
                                       " ≥ ", " < ", " ≤ ", " > ", " ≥ "};
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return integers[static_cast<unsigned>(cmp.getPredicate())];
  switch (cast<arith::CmpFOp>(op).getPredicate()) {
  case arith::CmpFPredicate::OEQ: case arith::CmpFPredicate::UEQ: return " = ";
  case arith::CmpFPredicate::ONE: case arith::CmpFPredicate::UNE: return " ≠ ";
  case arith::CmpFPredicate::OLT: case arith::CmpFPredicate::ULT: return " < ";
  case arith::CmpFPredicate::OLE: case arith::CmpFPredicate::ULE: return " ≤ ";
  case arith::CmpFPredicate::OGT: case arith::CmpFPredicate::UGT: return " > ";
  default: return " ≥ ";
  }
}

Text MathPrinter::reduction(dnf::ReduceOp op) {
  Block &body = op.getBody().front();
  std::string index = name(body.getArgument(0), op.getName());
  auto yield = cast<dnf::YieldOp>(body.getTerminator());
  std::string range = index + "<" + extentText(op.getExtent()).text;
  if (yield.getPresent())
    range += " | " + at(yield.getPresent(), 0);
  std::string text = symbolOf(op.getMonoid()).str() + "{" + range + "} " +
                     at(yield.getValue(), Product);
  --taken[op.getName()];
  return {text, Sum};
}

std::string MathPrinter::address(ValueRange terms, ArrayAttr coefficients,
                                 StringRef constant) {
  SmallVector<std::string> parts;
  for (auto [term, coefficient] : llvm::zip(terms, coefficients)) {
    Text c = extentText(cast<StringAttr>(coefficient).getValue());
    parts.push_back(at(term, Product) + "·" +
                    (c.strength < Product ? "(" + c.text + ")" : c.text));
  }
  if (constant != "0" || parts.empty())
    parts.push_back(constant.str());
  return llvm::join(parts, " + ");
}

Text MathPrinter::ofOp(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return {number(constant.getValue()), Atom};
  if (auto extent = dyn_cast<dnf::ExtentOp>(op))
    return extentText(extent.getExpr());
  if (auto extent = dyn_cast<onf::ExtentOp>(op))
    return extentText(extent.getExpr());
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return {of(psi.getArray()).text +
                (psi.getIndices().empty() ? "" : "[" + list(psi.getIndices()) + "]"),
            Atom};
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return {apply.getLet().str() + "(" + list(apply.getIndices()) + ")", Atom};
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return reduction(reduce);
  if (auto load = dyn_cast<onf::LoadOp>(op))
    return {of(load.getArray()).text +
                (load.getArray().getType().getRank() == 0
                     ? ""
                     : "@(" + address(load.getTerms(), load.getCoefficients(),
                                      load.getConstant()) + ")"),
            Atom};
  if (auto element = dyn_cast<onf::AtOp>(op))
    return {of(element.getState()).text + "[" + list(element.getIndices()) + "]", Atom};
  if (auto where = dyn_cast<arith::SelectOp>(op))
    return {"(" + at(where.getCondition(), 0) + " ? " + at(where.getTrueValue(), 0) +
                " : " + at(where.getFalseValue(), 0) + ")",
            Atom};
  if (isa<arith::CmpIOp, arith::CmpFOp>(op))
    return binary(op, comparison(op), Compare, true);
  if (isa<arith::AddFOp, arith::AddIOp>(op))
    return binary(op, " + ", Sum, false);
  if (isa<arith::SubFOp, arith::SubIOp>(op))
    return binary(op, " − ", Sum, true);
  if (isa<arith::MulFOp, arith::MulIOp>(op))
    return binary(op, "·", Product, false);
  if (isa<arith::DivFOp>(op))
    return binary(op, "/", Product, true);
  if (isa<arith::FloorDivSIOp>(op))
    return {"⌊" + at(op->getOperand(0), Product) + "/" + at(op->getOperand(1), Unary) + "⌋",
            Atom};
  if (isa<arith::AndIOp>(op))
    return binary(op, " ∧ ", And, false);
  if (isa<arith::OrIOp>(op))
    return binary(op, " ∨ ", Or, false);
  if (isa<arith::NegFOp>(op))
    return {"−" + at(op->getOperand(0), Unary), Unary};
  if (isa<arith::ExtFOp, arith::IndexCastOp, arith::SIToFPOp, arith::UIToFPOp,
          arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastUIOp>(op))
    return of(op->getOperand(0));
  if (isa<arith::TruncFOp>(op)) {
    std::string type;
    llvm::raw_string_ostream(type) << op->getResult(0).getType();
    return {type + "(" + list(op->getOperands()) + ")", Atom};
  }
  return {op->getName().stripDialect().str() + "(" + list(op->getOperands()) + ")", Atom};
}

//===----------------------------------------------------------------------===//
// dnf
//===----------------------------------------------------------------------===//

void MathPrinter::printDNF(dnf::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  nameIndices(body, kernel.getArgNames());
  size_t width = 0;
  SmallVector<std::pair<std::string, std::string>> lines;
  for (Operation &op : body) {
    taken.clear();
    Block &definition = op.getRegion(0).front();
    ArrayAttr hints;
    std::string head;
    if (auto let = dyn_cast<dnf::LetOp>(op)) {
      nameIndices(definition, let.getNames());
      head = let.getSymName().str() + "(" + list(definition.getArguments()) + ")";
    } else {
      auto output = cast<dnf::OutputOp>(op);
      nameIndices(definition, output.getNames());
      head = cast<StringAttr>(kernel.getResultNames()[output.getResult()]).getValue().str();
      if (definition.getNumArguments())
        head += "[" + list(definition.getArguments()) + "]";
    }
    auto yield = cast<dnf::YieldOp>(definition.getTerminator());
    std::string text = at(yield.getValue(), 0);
    if (yield.getPresent())
      text += "  if " + at(yield.getPresent(), 0) + ", else 0";
    width = std::max(width, head.size());
    lines.emplace_back(head, text);
  }
  for (auto &[head, text] : lines)
    line(1, head + std::string(width - head.size(), ' ') + " = " + text);
}

//===----------------------------------------------------------------------===//
// onf
//===----------------------------------------------------------------------===//

static std::string liftText(Attribute lift) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (lift)
    stream << "   lifted " << lift;
  return text;
}

std::string MathPrinter::repair(onf::AccOp op) {
  Block &block = op.getRepair().front();
  for (auto [k, ref] : llvm::enumerate(op.getRefs())) {
    names[block.getArgument(2 * k)] = names[ref] + "⁻";
    names[block.getArgument(2 * k + 1)] = names[ref];
  }
  auto yield = cast<onf::YieldOp>(block.getTerminator());
  return at(yield.getValues()[0], Product);
}

void MathPrinter::printAcc(onf::AccOp op, unsigned indent) {
  Block &value = op.getValue().front();
  std::string state = name(op.getResult(), op.getName()), head = state;
  if (value.getNumArguments()) {
    nameIndices(value, op.getNames());
    SmallVector<std::string> ranges;
    for (auto [arg, extent] : llvm::zip(value.getArguments(), op.getExtents()))
      ranges.push_back(names[arg] + "<" + cast<StringAttr>(extent).getValue().str());
    head += "[" + llvm::join(ranges, ", ") + "]";
  }
  std::string old = state;
  if (!op.getRefs().empty())
    old += "·" + repair(op);
  auto yield = cast<onf::YieldOp>(value.getTerminator());
  bool infix = op.getMonoid() == Monoid::add || op.getMonoid() == Monoid::mul;
  std::string term = at(yield.getValues()[0], infix ? Sum : 0);
  if (infix)
    line(indent, head + " ← " + old + (op.getMonoid() == Monoid::add ? " + " : " · ") + term);
  else
    line(indent, head + " ← " + symbolOf(op.getMonoid()) + "(" + old + ", " + term + ")");
}

void MathPrinter::printFold(onf::FoldOp op, unsigned indent) {
  Block &body = op.getBody().front();
  std::string index = name(body.getArgument(0), op.getName());
  std::string head = "fold " + index + " < " + op.getExtent().str();
  for (auto guard : body.getOps<onf::GuardOp>())
    head += " where " + at(guard.getCondition(), 0);
  if (op.getPieces())
    head += " (" + std::to_string(op.getPieces()->size()) + " interval(s) per tile)";
  line(indent, head + ":" + liftText(op.getLiftAttr()));
  printBlock(body, indent + 1);
  auto yield = cast<onf::YieldOp>(body.getTerminator());
  for (auto [result, state] : llvm::zip(op.getResults(), yield.getValues()))
    names[result] = names[state];
}

void MathPrinter::printFor(onf::ForOp op, unsigned indent) {
  Block &body = op.getBody().front();
  nameIndices(body, op.getNames());
  SmallVector<std::string> ranges;
  for (auto [arg, extent] : llvm::zip(body.getArguments(), op.getExtents()))
    ranges.push_back(names[arg] + " < " + cast<StringAttr>(extent).getValue().str());
  line(indent, "for " + llvm::join(ranges, ", ") + ":" + liftText(op.getLiftAttr()));
  printBlock(body, indent + 1);
}

void MathPrinter::printBlock(Block &block, unsigned indent) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<onf::ForOp>(op)) {
      printFor(loop, indent);
    } else if (auto fold = dyn_cast<onf::FoldOp>(op)) {
      printFold(fold, indent);
    } else if (auto acc = dyn_cast<onf::AccOp>(op)) {
      printAcc(acc, indent);
    } else if (auto store = dyn_cast<onf::StoreOp>(op)) {
      line(indent, of(store.getArray()).text + "@(" +
                       address(store.getTerms(), store.getCoefficients(),
                               store.getConstant()) +
                       ") = " + at(store.getValue(), 0));
    } else if (op.getNumResults() == 1 && isa<FloatType>(op.getResult(0).getType()) &&
               !op.getResult(0).hasOneUse() && !op.getResult(0).use_empty() &&
               !isa<arith::ConstantOp, arith::ExtFOp, onf::LoadOp>(op)) {
      std::string text = of(op.getResult(0)).text;
      line(indent, name(op.getResult(0), "t") + " = " + text);
    }
  }
}

void MathPrinter::printONF(onf::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  nameIndices(body, kernel.getArgNames());
  unsigned inputs = kernel.getArgNames().size();
  for (auto [k, hint] : llvm::enumerate(kernel.getResultNames()))
    names[body.getArgument(inputs + k)] = cast<StringAttr>(hint).getValue().str();
  for (auto loop : body.getOps<onf::ForOp>()) {
    taken.clear();
    printFor(loop, 1);
  }
}

std::string MathPrinter::run(Operation *kernel) {
  auto header = [&](StringRef name, ArrayAttr symbols) {
    SmallVector<std::string> parts;
    for (Attribute symbol : symbols)
      parts.push_back(cast<StringAttr>(symbol).getValue().str());
    os << name << "[" << llvm::join(parts, ", ") << "]\n";
  };
  if (auto dnf = dyn_cast<dnf::KernelOp>(kernel)) {
    header(dnf.getSymName(), dnf.getSymbols());
    printDNF(dnf);
  } else if (auto onf = dyn_cast<onf::KernelOp>(kernel)) {
    header(onf.getSymName(), onf.getSymbols());
    printONF(onf);
  }
  return buffer;
}

std::string moa::printMathematics(Operation *kernel) {
  return MathPrinter().run(kernel);
}
