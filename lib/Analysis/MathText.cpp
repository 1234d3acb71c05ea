//===- MathText.cpp - normal forms as readable mathematics ----------------===//
#include "lib/Analysis/MathText.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/ArrayText.h"
#include "lib/Support/MathTerm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moa;

using Strength = MathTerm::Strength;

namespace {

class MathPrinter {
public:
  std::string run(Operation *kernel);
  std::vector<MathDefinition> definitions(dnf::KernelOp kernel);
  std::string intervals(onf::KernelOp kernel);

  llvm::function_ref<std::string(Operation *)> letName = nullptr;
  llvm::function_ref<bool(Operation *)> wanted = nullptr;

private:
  void printDNF(dnf::KernelOp kernel);
  void printONF(onf::KernelOp kernel);
  void printBlock(Block &block, unsigned indent);
  void printFor(onf::ForOp op, unsigned indent);
  void printFold(onf::FoldOp op, unsigned indent);
  void printAcc(onf::AccOp op, unsigned indent);
  void line(unsigned indent, const Twine &text) { os.indent(2 * indent) << text << '\n'; }

  MathTerm of(Value value);
  MathTerm ofOp(Operation *op);
  MathTerm ofScalar(Operation *op);
  std::string at(Value value, Strength strength) { return of(value).at(strength); }
  MathTerm element(dnf::PsiOp op);
  std::string nameOf(dnf::LetOp let) { return letName ? letName(let) : let.getSymName().str(); }
  MathDefinition define(Operation &op, dnf::KernelOp kernel);
  MathTerm reduction(dnf::ReduceOp op);
  MathTerm reduction(onf::FoldOp op);
  MathTerm reduction(StringRef symbol, BlockArgument index, StringRef hint, const SymExpr &extent, Value present,
                     Value term);
  std::string list(ValueRange values);
  std::string address(onf::AccessOpInterface op);
  std::string rescale(onf::AccOp op);
  std::string name(Value value, StringRef hint);
  void nameIndices(Block &block, ArrayAttr hints);
  void reserve(ArrayAttr inputs) {
    for (auto input : inputs.getAsValueRange<StringAttr>())
      reserved.insert(input);
  }
  void printLegend();

  DenseMap<Value, std::string> names;
  DenseMap<Value, MathTerm> written; // texts under the current names, inside the current reduction
  llvm::StringSet<> reserved;        // the names of the inputs
  llvm::StringMap<unsigned> taken;
  std::optional<ArrayText> arrays; // prints arrays that ψ-reduction has not reduced yet
  Value whole;                     // the array that the current definition defines
  std::string buffer;
  llvm::raw_string_ostream os{buffer};
};

} // namespace

static std::string number(Attribute value) {
  if (auto integer = dyn_cast<IntegerAttr>(value))
    return integer.getType().isInteger(1) ? (integer.getValue().isZero() ? "false" : "true")
                                          : std::to_string(integer.getInt());
  return formatNumber(cast<FloatAttr>(value).getValueAsDouble());
}

/// Returns the symbol of the monoid of a reduction or a state, for example Σ or max.
template <typename OpTy> static StringRef symbolOf(OpTy op) {
  return op.getFunction() ? *op.getFunction() : getReductionSymbol(stringifyMonoid(op.getMonoid()));
}

static MathTerm extentText(const SymExpr &expr) {
  return {expr.str(), expr.getSymbol() || expr.getConstant() ? MathTerm::Atom : MathTerm::Sum};
}

std::string MathPrinter::name(Value value, StringRef hint) {
  std::string base = hint.empty() ? "t" : hint.str();
  unsigned &count = taken[base];
  std::string result;
  do
    result = count++ ? base + std::to_string(count) : base;
  while (reserved.contains(result));
  written.clear();
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
    parts.push_back(of(value).text);
  return llvm::join(parts, ", ");
}

MathTerm MathPrinter::of(Value value) {
  if (auto it = names.find(value); it != names.end())
    return {it->second};
  if (auto it = written.find(value); it != written.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  // Shared subterms are printed at each use, so the text may grow exponentially.
  constexpr size_t longest = size_t(1) << 16;
  MathTerm text = op ? ofOp(op) : MathTerm{"?"};
  if (text.text.size() > longest)
    text = {"…"};
  return written[value] = text;
}

MathTerm MathPrinter::reduction(StringRef symbol, BlockArgument argument, StringRef hint, const SymExpr &extent,
                                Value present, Value term) {
  DenseMap<Value, MathTerm> outside;
  std::swap(outside, written);
  std::string index = name(argument, hint);
  std::string range = index + "<" + extentText(extent).text;
  if (present)
    range += " | " + of(present).text;
  std::string text = symbol.str() + "{" + range + "} " + at(term, MathTerm::Product);
  --taken[hint];
  written = std::move(outside);
  return {text, MathTerm::Sum};
}

MathTerm MathPrinter::reduction(dnf::ReduceOp op) {
  Block &body = op.getBody().front();
  auto yield = cast<dnf::YieldOp>(body.getTerminator());
  return reduction(symbolOf(op), body.getArgument(0), op.getName(), op.getExtent(), yield.getPresent(),
                   yield.getValue());
}

/// Prints a fold inside an expression. Such a fold has one state, which reads no other state.
MathTerm MathPrinter::reduction(onf::FoldOp op) {
  Block &body = op.getBody().front();
  Value present;
  for (auto guard : body.getOps<onf::GuardOp>())
    present = guard.getCondition();
  auto acc = *body.getOps<onf::AccOp>().begin();
  auto yield = cast<onf::YieldOp>(acc.getValue().front().getTerminator());
  return reduction(symbolOf(acc), body.getArgument(0), op.getName(), op.getExtent(), present, yield.getValues()[0]);
}

std::string MathPrinter::address(onf::AccessOpInterface op) {
  onf::FlatAddress address = op.getAddress();
  SmallVector<std::string> parts;
  for (auto [term, coefficient] : llvm::zip_equal(op.getTerms(), address.coefficients)) {
    MathTerm c = extentText(coefficient);
    parts.push_back(at(term, MathTerm::Product) + "·" + (c.strength < MathTerm::Product ? "(" + c.text + ")" : c.text));
  }
  if (!address.constant.isZero() || parts.empty())
    parts.push_back(address.constant.str());
  return llvm::join(parts, " + ");
}

MathTerm MathPrinter::ofScalar(Operation *op) {
  SmallVector<MathTerm> operands;
  for (Value operand : op->getOperands())
    operands.push_back(of(operand));
  std::string type;
  llvm::raw_string_ostream(type) << op->getResult(0).getType();
  auto predicate = op->getAttrOfType<IntegerAttr>("predicate");
  return makeMathTerm(op->getName().getStringRef(), operands, op->getResult(0).getType().isInteger(1), type,
                      predicate ? predicate.getInt() : 0);
}

MathTerm MathPrinter::ofOp(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return {number(constant.getValue())};
  if (auto extent = dyn_cast<dnf::ExtentOp>(op))
    return extentText(extent.getExpr());
  if (auto extent = dyn_cast<onf::ExtentOp>(op))
    return extentText(extent.getExpr());
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return element(psi);
  if (auto apply = dyn_cast<dnf::ApplyOp>(op)) {
    auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(op, apply.getLetAttr());
    return {nameOf(let) + "(" + list(apply.getIndices()) + ")"};
  }
  if (auto join = dyn_cast<dnf::JoinOp>(op))
    return {"join(" + of(join.getCondition()).text + ", " + of(join.getFirst()).text + ", " +
            of(join.getSecond()).text + ")"};
  if (auto otherwise = dyn_cast<dnf::OtherwiseOp>(op))
    return {"otherwise(" + list(otherwise->getOperands()) + ")"};
  if (auto where = dyn_cast<dnf::WhereOp>(op))
    return {at(where.getValue(), MathTerm::Or) + " where " + of(where.getCondition()).text, MathTerm::Any};
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op))
    return reduction(reduce);
  if (auto fold = dyn_cast<onf::FoldOp>(op))
    return reduction(fold);
  if (auto load = dyn_cast<onf::LoadOp>(op))
    return {of(load.getArray()).text + (load.getArray().getType().getRank() == 0 ? "" : "@(" + address(load) + ")")};
  if (auto element = dyn_cast<onf::AtOp>(op))
    return {of(element.getState()).text + "[" + list(element.getIndices()) + "]"};
  return ofScalar(op);
}

//===----------------------------------------------------------------------===//
// dnf
//===----------------------------------------------------------------------===//

MathTerm MathPrinter::element(dnf::PsiOp op) {
  Value array = op.getArray();
  MathTerm text;
  if (names.count(array) || !arrays)
    text = of(array);
  else
    text = array == whole ? arrays->definition(array) : arrays->of(array);
  if (op.getIndices().empty())
    return text;
  return {text.at(MathTerm::Atom) + "[" + list(op.getIndices()) + "]"};
}

/// Prints a let or an output, and names its indices.
MathDefinition MathPrinter::define(Operation &op, dnf::KernelOp kernel) {
  taken.clear();
  Block &definition = op.getRegion(0).front();
  std::string head;
  if (auto let = dyn_cast<dnf::LetOp>(op)) {
    nameIndices(definition, let.getNames());
    head = nameOf(let) + "(" + list(definition.getArguments()) + ")";
  } else {
    auto output = cast<dnf::OutputOp>(op);
    nameIndices(definition, output.getNames());
    head = cast<StringAttr>(kernel.getResultNames()[output.getResult()]).getValue().str();
    if (definition.getNumArguments())
      head += "[" + list(definition.getArguments()) + "]";
  }
  auto yield = cast<dnf::YieldOp>(definition.getTerminator());
  // Before the first law, the value is an element of the array that the let or output defines.
  // Print the definition of that array instead of its name.
  auto psi = yield.getValue().getDefiningOp<dnf::PsiOp>();
  whole = psi ? psi.getArray() : Value();
  std::string text = of(yield.getValue()).text;
  if (yield.getPresent())
    text += "  if " + of(yield.getPresent()).text + ", else 0";
  return {&op, head, text};
}

std::vector<MathDefinition> MathPrinter::definitions(dnf::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  nameIndices(body, kernel.getArgNames());
  reserve(kernel.getArgNames());
  std::vector<Operation *> chosen;
  for (Operation &op : body)
    if (isa<dnf::LetOp, dnf::OutputOp>(op) && (!wanted || wanted(&op)))
      chosen.push_back(&op);
  bool isReduced = llvm::all_of(body, llvm::IsaPred<dnf::LetOp, dnf::OutputOp>);
  if (!isReduced && !chosen.empty())
    arrays.emplace(body, kernel.getArgNames());
  std::vector<MathDefinition> result;
  for (Operation *op : chosen)
    result.push_back(define(*op, kernel));
  return result;
}

void MathPrinter::printDNF(dnf::KernelOp kernel) {
  std::vector<MathDefinition> lines = definitions(kernel);
  size_t width = 0;
  for (const MathDefinition &definition : lines)
    width = std::max(width, definition.head.size());
  for (const MathDefinition &definition : lines)
    line(1, definition.head + std::string(width - definition.head.size(), ' ') + " = " + definition.text);
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

std::string MathPrinter::rescale(onf::AccOp op) {
  Block &block = op.getRepair().front();
  written.clear();
  for (auto [k, ref] : llvm::enumerate(op.getRefs())) {
    std::string now = names.lookup(ref); // copy: inserting may move the entries
    names[block.getArgument(2 * k)] = now + "⁻";
    names[block.getArgument(2 * k + 1)] = now;
  }
  auto yield = cast<onf::YieldOp>(block.getTerminator());
  std::string text = "·" + at(yield.getValues()[0], MathTerm::Product);
  for (auto [other, coefficient] : llvm::zip_equal(op.getOthers(), yield.getValues().drop_front()))
    text += " + " + names[other] + "⁻·" + at(coefficient, MathTerm::Product);
  return text;
}

void MathPrinter::printAcc(onf::AccOp op, unsigned indent) {
  Block &value = op.getValue().front();
  // A state without its own name is named after its monoid.
  StringRef hint = op.getName() == "or" ? "any" : op.getName() == "and" ? "all" : op.getName();
  std::string state = name(op.getResult(), hint), head = state;
  if (value.getNumArguments()) {
    nameIndices(value, op.getNames());
    SmallVector<std::string> ranges;
    for (auto [arg, extent] : llvm::zip(value.getArguments(), op.getExtents()))
      ranges.push_back(names[arg] + "<" + getSymExpr(extent).str());
    head += "[" + llvm::join(ranges, ", ") + "]";
  }
  std::string old = state;
  if (!op.getRefs().empty())
    old += rescale(op);
  auto yield = cast<onf::YieldOp>(value.getTerminator());
  Value term = yield.getValues()[0];
  auto infix = [&](StringRef symbol, Strength strength) {
    line(indent, head + " ← " + old + symbol + at(term, strength));
  };
  switch (op.getMonoid()) {
  case Monoid::add:
    return infix(" + ", MathTerm::Sum);
  case Monoid::mul:
    return infix(" · ", MathTerm::Product);
  case Monoid::and_:
    return infix(" and ", MathTerm::And);
  case Monoid::or_:
    return infix(" or ", MathTerm::Or);
  case Monoid::max:
  case Monoid::min:
  case Monoid::user:
    line(indent, head + " ← " + symbolOf(op).str() + "(" + old + ", " + of(term).text + ")");
  }
}

void MathPrinter::printFold(onf::FoldOp op, unsigned indent) {
  Block &body = op.getBody().front();
  std::string index = name(body.getArgument(0), op.getName());
  std::string head = "fold " + index + " < " + op.getExtent().str();
  for (auto guard : body.getOps<onf::GuardOp>())
    head += " where " + of(guard.getCondition()).text;
  if (op.getPieces())
    head += " (" + std::to_string(op.getPieces()->size()) + " interval(s) per tile)";
  line(indent, head + ":" + liftText(op.getLiftAttr()));
  printBlock(body, indent + 1);
  auto yield = cast<onf::YieldOp>(body.getTerminator());
  for (auto [result, state] : llvm::zip(op.getResults(), yield.getValues()))
    names[result] = names.lookup(state); // copy: inserting may move the entries
}

void MathPrinter::printFor(onf::ForOp op, unsigned indent) {
  Block &body = op.getBody().front();
  nameIndices(body, op.getNames());
  SmallVector<std::string> ranges;
  for (auto [arg, extent] : llvm::zip(body.getArguments(), op.getExtents()))
    ranges.push_back(names[arg] + " < " + getSymExpr(extent).str());
  std::string chosen;
  if (op.getChoices()) {
    SmallVector<std::string> indices;
    for (Value index : op.getChoiceIndices())
      indices.push_back(names[index]);
    chosen =
        " where " + names[op.getChoices()] + "[" + llvm::join(indices, ", ") + "] = " + std::to_string(*op.getChoice());
  }
  line(indent, "for " + llvm::join(ranges, ", ") + chosen + ":" + liftText(op.getLiftAttr()));
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
      line(indent, of(store.getArray()).text + "@(" + address(store) + ") = " + of(store.getValue()).text);
    } else if (op.getNumResults() == 1 && isa<FloatType>(op.getResult(0).getType()) && !op.getResult(0).hasOneUse() &&
               !op.getResult(0).use_empty() && !isa<arith::ConstantOp, arith::ExtFOp, onf::LoadOp>(op)) {
      std::string text = of(op.getResult(0)).text;
      line(indent, name(op.getResult(0), "t") + " = " + text);
    }
  }
}

void MathPrinter::printONF(onf::KernelOp kernel) {
  Block &body = kernel.getBody().front();
  nameIndices(body, kernel.getArgNames());
  reserve(kernel.getArgNames());
  for (BlockArgument array : body.getArguments().drop_front(kernel.getNumInputs()))
    names[array] = kernel.getArrayName(array.getArgNumber()).str();
  for (auto loop : body.getOps<onf::ForOp>()) {
    taken.clear();
    printFor(loop, 1);
  }
  printLegend();
}

/// Prints a bound of an interval. `rows` names the first and last row of a tile, `operands` the
/// symbols of the bound.
static std::string boundText(AffineExpr e, ArrayRef<std::string> rows, ArrayRef<std::string> operands) {
  if (auto constant = dyn_cast<AffineConstantExpr>(e))
    return std::to_string(constant.getValue());
  if (auto dim = dyn_cast<AffineDimExpr>(e))
    return rows[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(e))
    return operands[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(e);
  std::string a = boundText(binary.getLHS(), rows, operands);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (e.getKind() == AffineExprKind::Add) {
    // Print a + x·(−1) as a − x.
    auto product = dyn_cast<AffineBinaryOpExpr>(binary.getRHS());
    auto minus = product && product.getKind() == AffineExprKind::Mul ? dyn_cast<AffineConstantExpr>(product.getRHS())
                                                                     : AffineConstantExpr();
    if (minus && minus.getValue() == -1)
      return a + " − " + boundText(product.getLHS(), rows, operands);
    if (factor && factor.getValue() < 0)
      return a + " − " + std::to_string(-factor.getValue());
    return a + " + " + boundText(binary.getRHS(), rows, operands);
  }
  std::string b = boundText(binary.getRHS(), rows, operands);
  if (isa<AffineBinaryOpExpr>(binary.getLHS()))
    a = "(" + a + ")";
  switch (e.getKind()) {
  case AffineExprKind::Mul:
    return b + "·" + a;
  case AffineExprKind::Mod:
    return a + " mod " + b;
  case AffineExprKind::CeilDiv:
    return "⌈" + a + "/" + b + "⌉";
  default:
    return "⌊" + a + "/" + b + "⌋";
  }
}

std::string MathPrinter::intervals(onf::KernelOp kernel) {
  nameIndices(kernel.getBody().front(), kernel.getArgNames());
  for (auto nest : kernel.getBody().getOps<onf::ForOp>()) {
    taken.clear();
    nameIndices(nest.getBody().front(), nest.getNames());
    for (auto fold : nest.getBody().getOps<onf::FoldOp>()) {
      if (!fold.getPieces())
        continue;
      std::string row = nest.getNames().empty() ? "row" : cast<StringAttr>(nest.getNames().getValue().back()).str();
      std::vector<std::string> rows = {row + "⁻", row + "⁺"}, operands;
      for (Value bound : fold.getBounds())
        operands.push_back(at(bound, MathTerm::Sum));
      auto bounds = [&](AffineMap map, StringRef combine) {
        SmallVector<std::string> parts;
        for (AffineExpr result : map.getResults())
          parts.push_back(boundText(result, rows, operands));
        return parts.size() == 1 ? parts[0] : combine.str() + "(" + llvm::join(parts, ", ") + ")";
      };
      for (auto piece : fold.getPieces()->getAsRange<onf::PieceAttr>()) {
        auto interval = [&](AffineMap lower, AffineMap upper) {
          return bounds(lower, "max") + " ≤ " + fold.getName().str() + " < " + bounds(upper, "min");
        };
        std::string text = "rows " + rows[0] + " ≤ " + row + " ≤ " + rows[1] + " need " +
                           interval(piece.getVisitLower(), piece.getVisitUpper());
        if (piece.getFull())
          text += "; all of them need " + interval(piece.getFullLower(), piece.getFullUpper());
        line(1, text);
      }
    }
  }
  return buffer;
}

void MathPrinter::printLegend() {
  static const std::pair<StringRef, StringRef> notes[] = {
      {"@(", "A@(e): the element of A at offset e; A.s0, A.s1, … are its strides"},
      {" ← ", "t ← …: a state, at every index of the fold; it starts at the identity"},
      {"⁻", "m⁻: m before this index"},
      {"interval(s) per tile", "intervals per tile: only these indices are visited"},
      {" ? ", "(p ? a : b): a where p holds, else b"},
      {"   lifted ", "lifted <…>: how an axis is split, outermost factor first"}};
  std::string text = buffer;
  StringRef gap = "\n";
  for (auto [sign, note] : notes)
    if (StringRef(text).contains(sign)) {
      os << gap << "  (" << note << ")\n";
      gap = "";
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

std::string moa::printMathematics(Operation *kernel) { return MathPrinter().run(kernel); }

std::vector<MathDefinition> moa::getMathDefinitions(Operation *kernel,
                                                    llvm::function_ref<std::string(Operation *)> letName,
                                                    llvm::function_ref<bool(Operation *)> wanted) {
  MathPrinter printer;
  printer.letName = letName;
  printer.wanted = wanted;
  return printer.definitions(cast<dnf::KernelOp>(kernel));
}

std::string moa::printIntervals(Operation *kernel) { return MathPrinter().intervals(cast<onf::KernelOp>(kernel)); }
