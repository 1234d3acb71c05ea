//===- Signature.cpp - a kernel's parameters as its callers see them ------===//

#include "lib/Target/Signature.h"
#include "dialects/DNF/IR/DNF.h"
#include "dialects/Device/IR/Device.h"
#include "dialects/MoA/IR/MoA.h"
#include "dialects/MoA/IR/Unsigned.h"
#include "dialects/ONF/IR/Hints.h"
#include "dialects/ONF/IR/ONF.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace moa {

namespace {
struct ElementInfo {
  ElementType type;
  const char *name;
  unsigned bits;
  int code;
  const char *cType;
};
} // namespace

// DLPack's type codes.
enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6, kFloat8 = 10 };

static const ElementInfo kElements[] = {
    {ElementType::F64, "f64", 64, kFloat, "double"},
    {ElementType::F32, "f32", 32, kFloat, "float"},
    {ElementType::BF16, "bf16", 16, kBfloat, "float"},
    {ElementType::F16, "f16", 16, kFloat, "float"},
    {ElementType::F8E4M3, "f8E4M3FN", 8, kFloat8, "uint8_t"},
    {ElementType::I1, "bool", 8, kBool, "bool"},
    {ElementType::I8, "i8", 8, kInt, "int8_t"},
    {ElementType::I16, "i16", 16, kInt, "int16_t"},
    {ElementType::I32, "i32", 32, kInt, "int32_t"},
    {ElementType::I64, "i64", 64, kInt, "int64_t"},
    {ElementType::U8, "u8", 8, kUInt, "uint8_t"},
    {ElementType::U16, "u16", 16, kUInt, "uint16_t"},
    {ElementType::U32, "u32", 32, kUInt, "uint32_t"},
};

static const ElementInfo &getInfo(ElementType type) { return kElements[static_cast<unsigned>(type)]; }

llvm::StringRef getName(ElementType type) { return getInfo(type).name; }
unsigned getBits(ElementType type) { return getInfo(type).bits; }
int getDLPackCode(ElementType type) { return getInfo(type).code; }
llvm::StringRef getScalarCType(ElementType type) { return getInfo(type).cType; }

std::optional<ElementType> getElementType(Type type, bool isUnsigned) {
  if (isUnsigned)
    return type.isInteger(8)    ? std::optional(ElementType::U8)
           : type.isInteger(16) ? std::optional(ElementType::U16)
           : type.isInteger(32) ? std::optional(ElementType::U32)
                                : std::nullopt;
  if (type.isF64())
    return ElementType::F64;
  if (type.isF32())
    return ElementType::F32;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF16())
    return ElementType::F16;
  if (isa<Float8E4M3FNType>(type))
    return ElementType::F8E4M3;
  if (type.isInteger(1))
    return ElementType::I1;
  if (type.isInteger(8))
    return ElementType::I8;
  if (type.isInteger(16))
    return ElementType::I16;
  if (type.isInteger(32))
    return ElementType::I32;
  if (type.isInteger(64))
    return ElementType::I64;
  return std::nullopt;
}

std::string Parameter::getAxes() const {
  return llvm::join(llvm::map_range(extents, [](const SymExpr &extent) { return getReadable(extent.str()); }), ", ");
}

std::string Parameter::getTypeText() const {
  std::string text = moa::getName(type).str();
  if (extents.empty())
    return text;
  std::vector<std::string> axes;
  for (const SymExpr &extent : extents)
    axes.push_back(extent.str());
  return text + "[" + llvm::join(axes, ", ") + "]";
}

std::string Parameter::getText() const {
  return name + " : " + getTypeText() + (within ? " within " + within->str() : "");
}

/// Returns the parameters that a predicate accepts, in order.
template <typename Predicate>
static std::vector<const Parameter *> selectParameters(llvm::ArrayRef<Parameter> parameters, Predicate isIncluded) {
  std::vector<const Parameter *> list;
  for (const Parameter &parameter : parameters)
    if (isIncluded(parameter))
      list.push_back(&parameter);
  return list;
}

std::vector<const Parameter *> KernelSignature::getArrays() const {
  return selectParameters(parameters, [](const Parameter &parameter) { return !parameter.isScalar(); });
}

std::vector<const Parameter *> KernelSignature::getScalars() const {
  return selectParameters(parameters, [](const Parameter &parameter) { return parameter.isScalar(); });
}

std::vector<const Parameter *> KernelSignature::getCallingOrder() const {
  std::vector<const Parameter *> order = getArrays();
  std::vector<const Parameter *> scalars = getScalars();
  auto firstOutput = llvm::find_if(order, [](const Parameter *parameter) { return parameter->isOutput; });
  order.insert(firstOutput, scalars.begin(), scalars.end());
  return order;
}

std::string KernelSignature::getText() const {
  std::vector<std::string> inputs, outputs;
  for (const Parameter &parameter : parameters)
    (parameter.isOutput ? outputs : inputs).push_back(parameter.getText());
  std::string text = name + "(" + llvm::join(inputs, ", ") + ") -> (" + llvm::join(outputs, ", ") + ")";
  for (const Constraint &constraint : constraints)
    text += " require " + constraint.text;
  return text;
}

std::string getReadable(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '%');
  for (llvm::StringRef &part : parts)
    part = part.trim();
  return llvm::join(parts, " % ");
}

std::string getShapeSymbol(llvm::StringRef array, unsigned axis) {
  return (array + ".shape[" + llvm::Twine(axis) + "]").str();
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

const char *Constraint::getRelation() const {
  static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
  return relations[relation];
}

static llvm::Expected<Constraint> parseConstraint(llvm::StringRef text) {
  // Try longer spellings first. The numbers are those of Constraint::relation.
  static const std::pair<const char *, int> relations[] = {{"==", 0}, {"!=", 1}, {"<=", 3},
                                                           {">=", 5}, {"<", 2},  {">", 4}};
  for (auto [spelling, relation] : relations) {
    size_t position = text.find(spelling);
    if (position == llvm::StringRef::npos)
      continue;
    std::string error;
    auto lhs = SymExpr::parse(text.take_front(position).trim(), &error);
    auto rhs = SymExpr::parse(text.drop_front(position + strlen(spelling)).trim(), &error);
    if (!lhs || !rhs)
      return llvm::createStringError("constraint '" + text + "': " + error);
    return Constraint{getReadable(text), relation, *lhs, *rhs};
  }
  return llvm::createStringError("constraint '" + text + "' is not a comparison");
}

//===----------------------------------------------------------------------===//
// Binding of symbols
//===----------------------------------------------------------------------===//

namespace {
/// Solves extents for the symbols they mention, one symbol at a time.
class BindingSolver {
public:
  explicit BindingSolver(KernelSignature &signature) : signature(signature) {}

  llvm::Error solve() {
    // First bind the symbols that are an extent by themselves, in order of declaration, then the
    // symbols that follow from an extent linear in them.
    for (const std::string &name : signature.symbols)
      bindFirst(name, /*alone=*/true);
    for (bool progress = true; progress;) {
      progress = false;
      for (const std::string &name : signature.symbols)
        progress |= !bound.count(name) && bindFirst(name, /*alone=*/false);
    }
    for (const std::string &name : signature.symbols)
      if (!bound.count(name))
        return llvm::createStringError("kernel '" + signature.name + "': the value of '" + name +
                                       "' does not follow from the shapes of the parameters");
    return llvm::Error::success();
  }

private:
  bool bindFirst(const std::string &name, bool alone) {
    for (const Parameter &parameter : signature.parameters)
      for (unsigned axis = 0; axis < parameter.getRank(); ++axis) {
        const SymExpr &extent = parameter.extents[axis];
        if (alone && extent.getSymbol() != name)
          continue;
        SymExpr shape = SymExpr::symbol(getShapeSymbol(parameter.name, axis));
        if (std::optional<SymExpr> value = solveFor(name, extent, shape)) {
          signature.bindings.push_back({name, *value});
          bound.insert(name);
          return true;
        }
      }
    return false;
  }

  /// Solves extent = shape for `name`. The extent must be c·name + rest with a constant c and a
  /// rest of bound symbols. If c does not divide shape − rest, the later check of the extent fails.
  std::optional<SymExpr> solveFor(const std::string &name, const SymExpr &extent, const SymExpr &shape) const {
    SymExpr symbol = SymExpr::symbol(name);
    SymExpr rest = extent.substitute([&](llvm::StringRef other) -> std::optional<SymExpr> {
      if (other == name)
        return SymExpr(0);
      return SymExpr::symbol(other);
    });
    std::optional<int64_t> factor;
    for (const auto &[monomial, coefficient] : extent.getTerms())
      if (monomial.size() == 1 && monomial[0].second == 1 && monomial[0].first->kind == SymExpr::Atom::Kind::Symbol &&
          monomial[0].first->text == name)
        factor = coefficient;
    if (!factor || extent != rest + symbol * SymExpr(*factor))
      return std::nullopt;
    std::set<std::string> needed;
    rest.collectSymbols(needed);
    for (const std::string &other : needed)
      if (!bound.count(other))
        return std::nullopt;
    return SymExpr::floorDiv(shape - rest, SymExpr(*factor));
  }

  KernelSignature &signature;
  std::set<std::string> bound;
};
} // namespace

//===----------------------------------------------------------------------===//
// Reading a kernel op
//===----------------------------------------------------------------------===//

static llvm::Expected<Parameter> getParameter(llvm::StringRef name, ArrayType array, bool isOutput,
                                              bool isUnsigned = false) {
  std::optional<ElementType> type = getElementType(array.getElementType(), isUnsigned);
  if (!type)
    return llvm::createStringError("parameter '" + name + "' has an element type this target cannot pass");
  Parameter parameter{name.str(), *type, {}, isOutput, {}};
  for (unsigned axis = 0; axis < array.getRank(); ++axis)
    parameter.extents.push_back(array.getExtent(axis));
  return parameter;
}

std::vector<const ShownLater *> KernelSignature::getNeverShown() const {
  std::vector<const ShownLater *> list;
  for (const ShownLater &shown : shownLater)
    if (shown.bounds.empty())
      list.push_back(&shown);
  return list;
}

/// Reads the results whose tolerances are checked at run time.
static llvm::Error readShown(device::ProgramOp program, KernelSignature &signature) {
  auto list = program->getAttrOfType<mlir::ArrayAttr>(onf::kShownAttr);
  auto isTemporary = [&](StringAttr name) {
    mlir::ArrayAttr names = program.getWorkspaceNamesAttr();
    return names && llvm::is_contained(names, Attribute(name));
  };
  for (Attribute attribute : list ? list.getValue() : mlir::ArrayRef<Attribute>()) {
    auto entry = dyn_cast<mlir::DictionaryAttr>(attribute);
    auto result = entry ? entry.getAs<StringAttr>("result") : StringAttr();
    auto bound = entry ? entry.getAs<StringAttr>("bound") : StringAttr();
    auto within = entry ? entry.getAs<WithinAttr>("within") : WithinAttr();
    auto why = entry ? entry.getAs<StringAttr>("why") : StringAttr();
    auto found = llvm::find_if(signature.parameters,
                               [&](const Parameter &p) { return p.isOutput && result && p.name == result.getValue(); });
    bool isKnown = bound ? isTemporary(bound) : bool(why);
    if (!isKnown || !within || found == signature.parameters.end())
      return llvm::createStringError("expects a result, a tolerance, and a temporary or a reason, "
                                     "in each entry of 'moa.shown'");
    signature.shownLater.push_back({unsigned(found - signature.parameters.begin()), bound ? bound.getValue().str() : "",
                                    why ? why.getValue().str() : "", within.getTolerance()});
  }
  return llvm::Error::success();
}

template <typename KernelT> static llvm::Expected<KernelSignature> readKernel(KernelT kernel) {
  KernelSignature signature;
  signature.name = kernel.getSymName().str();
  auto strings = [](mlir::ArrayAttr list, std::vector<std::string> &out) {
    for (Attribute attribute : list)
      out.push_back(cast<StringAttr>(attribute).getValue().str());
  };
  strings(kernel.getSymbols(), signature.symbols);
  std::vector<std::string> names, results, constraints;
  strings(kernel.getArgNames(), names);
  strings(kernel.getResultNames(), results);
  strings(kernel.getRequires(), constraints);
  Block &body = kernel.getBody().front();
  for (auto [k, name] : llvm::enumerate(names)) {
    auto parameter =
        getParameter(name, cast<ArrayType>(body.getArgument(k).getType()), false, isUnsigned(kernel, name));
    if (!parameter)
      return parameter.takeError();
    signature.parameters.push_back(std::move(*parameter));
  }
  for (auto [k, name] : llvm::enumerate(results)) {
    Type type = cast<TypeAttr>(kernel.getResultTypes()[k]).getValue();
    auto parameter = getParameter(name, cast<ArrayType>(type), true, isUnsigned(kernel, name));
    if (!parameter)
      return parameter.takeError();
    if (WithinAttr within = getWithin(kernel, k))
      parameter->within = within.getTolerance();
    signature.parameters.push_back(std::move(*parameter));
  }
  for (const std::string &text : constraints) {
    auto constraint = parseConstraint(text);
    if (!constraint)
      return constraint.takeError();
    signature.constraints.push_back(std::move(*constraint));
  }
  if constexpr (std::is_same_v<KernelT, device::ProgramOp>)
    if (llvm::Error error = readShown(kernel, signature))
      return error;
  if (llvm::Error error = BindingSolver(signature).solve())
    return error;
  return signature;
}

llvm::Expected<std::vector<Parameter>> getTemporaries(Operation *module) {
  std::vector<Parameter> temporaries;
  if (auto list = module->getAttrOfType<mlir::ArrayAttr>("moa.temporaries"))
    for (auto entry : list.getAsRange<mlir::DictionaryAttr>()) {
      auto type = cast<TypeAttr>(entry.get("type")).getValue();
      auto parameter =
          getParameter(cast<StringAttr>(entry.get("name")).getValue(), cast<ArrayType>(type), /*isOutput=*/false);
      if (!parameter)
        return parameter.takeError();
      temporaries.push_back(std::move(*parameter));
    }
  return temporaries;
}

llvm::Expected<std::vector<ShownResult>> getShown(Operation *module, const KernelSignature &signature) {
  std::vector<ShownResult> shown;
  auto list = module->getAttrOfType<mlir::ArrayAttr>(onf::kShownAttr);
  auto temporaries = getTemporaries(module);
  if (!temporaries || !list)
    return temporaries ? llvm::Expected<std::vector<ShownResult>>(std::move(shown)) : temporaries.takeError();
  for (auto entry : list.getAsRange<mlir::DictionaryAttr>()) {
    auto nameOf = [&](StringRef key) { return cast<StringAttr>(entry.get(key)).getValue(); };
    std::vector<const Parameter *> arrays = signature.getArrays();
    auto array = llvm::find_if(arrays, [&](const Parameter *p) { return p->isOutput && p->name == nameOf("result"); });
    auto bound = llvm::find_if(*temporaries, [&](const Parameter &p) { return p.name == nameOf("bound"); });
    if (array == arrays.end() || !(*array)->within || bound == temporaries->end())
      return llvm::createStringError("expects a result with a tolerance, and a temporary, of 'moa.shown'");
    auto why = entry.getAs<StringAttr>("why");
    shown.push_back({size_t(array - arrays.begin()), size_t(bound - temporaries->begin()), why ? why.str() : ""});
  }
  return shown;
}

llvm::Expected<KernelSignature> getSignature(Operation *kernel) {
  using Result = llvm::Expected<KernelSignature>;
  return llvm::TypeSwitch<Operation *, Result>(kernel)
      .Case<KernelOp, dnf::KernelOp, onf::KernelOp, device::ProgramOp>([](auto op) { return readKernel(op); })
      .Default([](Operation *) -> Result { return llvm::createStringError("expects a kernel op"); });
}

} // namespace moa
