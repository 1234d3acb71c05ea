//===- Access.cpp - indices and addresses of loads and stores -------------===//
#include "dialects/ONF/IR/ONF.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace moa;
using namespace moa::onf;

#include "dialects/ONF/IR/ONFInterfaces.cpp.inc"

//===----------------------------------------------------------------------===//
// Linear forms
//===----------------------------------------------------------------------===//

void LinearIndex::add(Value value, const SymExpr &factor) {
  SymExpr &sum = terms[value];
  sum = sum + factor;
  if (sum.isZero())
    terms.erase(value);
}

bool LinearIndex::operator==(const LinearIndex &other) const {
  return constant == other.constant && terms.size() == other.terms.size() && llvm::all_of(terms, [&](const auto &term) {
           auto found = other.terms.find(term.first);
           return found != other.terms.end() && found->second == term.second;
         });
}

Value LinearIndex::getValue() const {
  bool isValue = constant.isZero() && terms.size() == 1 && terms.front().second == SymExpr(1);
  return isValue ? terms.front().first : Value();
}

std::optional<IndexParts> moa::onf::getParts(const LinearIndex &index) {
  if (!index.constant.isZero() || index.terms.size() != 2)
    return std::nullopt;
  auto [first, factor] = index.terms.front();
  auto [second, other] = index.terms.back();
  if (factor == SymExpr(1))
    return IndexParts{second, first, other};
  return other == SymExpr(1) ? std::optional(IndexParts{first, second, factor}) : std::nullopt;
}

static SymExpr placeholder(unsigned term) { return SymExpr::symbol("$" + std::to_string(term)); }

SymExpr Subscript::getExpr() const {
  SymExpr sum = constant;
  for (const auto &[term, factor] : factors)
    sum = sum + factor * placeholder(term);
  return sum;
}

std::optional<Subscript> Subscript::get(const SymExpr &expr) {
  std::set<std::string> symbols;
  expr.collectSymbols(symbols);
  // Replaces the placeholder `one` by 1 and the others by 0.
  auto evaluateAt = [&](StringRef one) {
    return expr.substitute([&](StringRef symbol) -> std::optional<SymExpr> {
      return symbol.starts_with("$") ? std::optional(SymExpr(symbol == one)) : std::nullopt;
    });
  };
  Subscript result{evaluateAt(""), {}};
  for (const std::string &symbol : symbols) {
    unsigned term;
    if (!StringRef(symbol).starts_with("$"))
      continue;
    if (StringRef(symbol).drop_front().getAsInteger(10, term))
      return std::nullopt;
    if (SymExpr factor = evaluateAt(symbol) - result.constant; !factor.isZero())
      result.factors[term] = factor;
  }
  return result.getExpr() == expr ? std::optional(result) : std::nullopt;
}

bool Subscript::operator==(const Subscript &other) const {
  return constant == other.constant && factors == other.factors;
}

llvm::hash_code moa::onf::hash_value(const std::vector<Subscript> &axes) {
  llvm::hash_code hash = axes.size();
  for (const Subscript &axis : axes)
    hash = llvm::hash_combine(hash, axis.getExpr().str());
  return hash;
}

//===----------------------------------------------------------------------===//
// #onf.subscripts
//===----------------------------------------------------------------------===//

SubscriptsAttr SubscriptsAttr::getIdentity(MLIRContext *context, unsigned rank) {
  std::vector<Subscript> axes(rank);
  for (unsigned axis = 0; axis < rank; ++axis)
    axes[axis].factors[axis] = SymExpr(1);
  return get(context, std::move(axes));
}

bool SubscriptsAttr::isIdentity() const { return *this == getIdentity(getContext(), getAxes().size()); }

std::optional<unsigned> SubscriptsAttr::findAxis(unsigned term) const {
  std::optional<unsigned> found;
  for (auto [axis, subscript] : llvm::enumerate(getAxes()))
    if (auto factor = subscript.factors.find(term); factor != subscript.factors.end()) {
      if (found || factor->second != SymExpr(1))
        return std::nullopt;
      found = axis;
    }
  return found;
}

SubscriptsAttr SubscriptsAttr::get(MLIRContext *context, ArrayRef<LinearIndex> indices, SmallVectorImpl<Value> &terms) {
  std::vector<Subscript> axes;
  for (const LinearIndex &index : indices) {
    Subscript &axis = axes.emplace_back();
    axis.constant = index.constant;
    for (const auto &[value, factor] : index.terms) {
      unsigned number = llvm::find(terms, value) - terms.begin();
      if (number == terms.size())
        terms.push_back(value);
      axis.factors[number] = factor;
    }
  }
  return get(context, std::move(axes));
}

static ParseResult parseAxes(AsmParser &parser, SubscriptsAttr &subscripts) {
  std::vector<Subscript> axes;
  auto parseAxis = [&]() -> ParseResult {
    std::string text;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseString(&text))
      return failure();
    auto expr = SymExpr::parse(text);
    auto subscript = expr ? Subscript::get(*expr) : std::nullopt;
    if (!subscript)
      return parser.emitError(loc) << "expects a form that is linear in the terms $0, $1, … (C1), but got '" << text
                                   << "'";
    axes.push_back(std::move(*subscript));
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseAxis))
    return failure();
  subscripts = SubscriptsAttr::get(parser.getContext(), std::move(axes));
  return success();
}

static void printAxes(AsmPrinter &printer, SubscriptsAttr subscripts) {
  printer << '[';
  llvm::interleaveComma(subscripts.getAxes(), printer,
                        [&](const Subscript &axis) { printer << '"' << axis.getExpr().str() << '"'; });
  printer << ']';
}

Attribute SubscriptsAttr::parse(AsmParser &parser, Type) {
  SubscriptsAttr result;
  if (parser.parseLess() || parseAxes(parser, result) || parser.parseGreater())
    return Attribute();
  return result;
}

void SubscriptsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printAxes(printer, *this);
  printer << '>';
}

namespace moa::onf {
ParseResult parseSubscripts(OpAsmParser &parser, SubscriptsAttr &subscripts,
                            ArrayRef<OpAsmParser::UnresolvedOperand> terms) {
  if (succeeded(parser.parseOptionalKeyword("at")))
    return parseAxes(parser, subscripts);
  subscripts = SubscriptsAttr::getIdentity(parser.getContext(), terms.size());
  return success();
}

void printSubscripts(OpAsmPrinter &printer, Operation *, SubscriptsAttr subscripts, OperandRange) {
  if (subscripts.isIdentity())
    return;
  printer << " at ";
  printAxes(printer, subscripts);
}

LogicalResult verifyAccess(AccessOpInterface op) {
  ArrayRef<Subscript> axes = op.getSubscripts().getAxes();
  unsigned rank = op.getArray().getType().getRank();
  if (axes.size() != rank)
    return op->emitOpError("expects one index per axis (C1), but got ") << axes.size() << " for rank " << rank;
  llvm::SmallBitVector used(op.getTerms().size());
  for (const Subscript &axis : axes)
    for (const auto &[term, factor] : axis.factors) {
      if (term >= used.size())
        return op->emitOpError("expects indices over its ") << used.size() << " terms (C1), but got $" << term;
      used.set(term);
    }
  if (int unused = used.find_first_unset(); unused >= 0)
    return op->emitOpError("expects every term in an index (C1), but $") << unused << " is not used";
  return success();
}

} // namespace moa::onf

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

LinearIndex AccessOpInterface::getIndex(unsigned axis) {
  const Subscript &subscript = getSubscripts().getAxes()[axis];
  LinearIndex index{subscript.constant, {}};
  for (const auto &[term, factor] : subscript.factors)
    index.add(getTerms()[term], factor);
  return index;
}

FlatAddress AccessOpInterface::getAddress() {
  unsigned number = cast<BlockArgument>(getArray()).getArgNumber();
  StringRef name = getOperation()->getParentOfType<KernelOp>().getArrayName(number);
  FlatAddress address{{}, SmallVector<SymExpr>(getTerms().size())};
  for (auto [axis, subscript] : llvm::enumerate(getSubscripts().getAxes())) {
    SymExpr stride = getStride(name, axis);
    address.constant = address.constant + subscript.constant * stride;
    for (const auto &[term, factor] : subscript.factors)
      address.coefficients[term] = address.coefficients[term] + factor * stride;
  }
  return address;
}
