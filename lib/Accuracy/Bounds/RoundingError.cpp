//===- RoundingError.cpp - a-priori bounds on rounding errors -------------===//
#include "lib/Accuracy/Bounds/RoundingError.h"
#include "lib/Accuracy/Bounds/RoundingErrorBounds.h"
#include "lib/Accuracy/Bounds/RoundingErrorImpl.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using Atom = ErrorExpr::Atom;

//===----------------------------------------------------------------------===//
// State shared by the walks
//===----------------------------------------------------------------------===//

/// Returns a bound on |ln(1 + θ)| for |θ| ≤ unit.
static double toLogarithm(double unit) { return -std::log1p(-unit) * (1 + 1e-9); }

static std::string getOwnName(Location place) {
  if (auto name = dyn_cast<NameLoc>(place))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(place))
    if (auto text = dyn_cast_or_null<StringAttr>(fused.getMetadata()))
      return text.str();
  return {};
}

std::string ErrorContext::describe(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return "index " + std::to_string(argument.getArgNumber());
  Operation *op = value.getDefiningOp();
  if (auto apply = dyn_cast<dnf::ApplyOp>(op))
    return "'" + apply.getLet().str() + "'";
  if (auto psi = dyn_cast<dnf::PsiOp>(op))
    return "'" + arrayName(psi.getArray()) + "'";
  if (isa<arith::ExtFOp>(op))
    return describe(op->getOperand(0));
  std::string name = getOwnName(value.getLoc());
  std::string text = name.empty() ? "the " + op->getName().stripDialect().str() : "'" + name + "'";
  if (auto place = value.getLoc()->findInstanceOf<FileLineColLoc>())
    text += " in line " + std::to_string(place.getLine());
  return text;
}

std::string ErrorContext::reasonAt(Value value, const std::string &what) const {
  std::string name = getOwnName(value.getLoc()), text;
  if (auto place = value.getLoc()->findInstanceOf<FileLineColLoc>())
    text = std::to_string(place.getLine()) + ":" + std::to_string(place.getColumn()) + ": ";
  return text + (name.empty() ? "" : "'" + name + "': ") + what;
}

std::string ErrorContext::arrayName(Value array) const {
  return cast<StringAttr>(dnf::KernelOp(kernel).getArgNames()[cast<BlockArgument>(array).getArgNumber()]).str();
}

std::string ErrorContext::resultName(dnf::OutputOp op) const {
  return cast<StringAttr>(dnf::KernelOp(kernel).getResultNames()[op.getResult()]).str();
}

ErrorExpr ErrorContext::replaceIndices(const ErrorExpr &e, llvm::function_ref<int(int)> to) {
  return pool.substitute(e, [&](const Atom &atom) -> std::optional<ErrorExpr> {
    if (atom.kind != Atom::Kind::Statistic)
      return std::nullopt;
    MagnitudeStatistic statistic = atom.statistic;
    for (int &axis : statistic.axes)
      if (axis >= 0)
        axis = to(axis);
    return pool.statistic(statistic);
  });
}

ErrorExpr ErrorContext::parameter(const std::string &source, double standard) {
  unsigned number = parameters.size();
  parameters.push_back({source, standard});
  return pool.parameter(number, source);
}

int ErrorContext::indexNumber(Value index) {
  auto it = llvm::find(indices, index);
  if (it == indices.end())
    it = indices.insert(indices.end(), index);
  return it - indices.begin();
}

int ErrorContext::originNumber(Operation *origin) {
  auto it = llvm::find(origins, origin);
  if (it == origins.end())
    it = origins.insert(origins.end(), origin);
  return it - origins.begin();
}

std::string ErrorContext::sharedKey(Operation *origin, llvm::ArrayRef<Value> places) {
  std::string key = std::to_string(originNumber(origin));
  for (Value index : places)
    key += "," + std::to_string(indexNumber(index));
  return key;
}

ErrorContext::ErrorContext(dnf::KernelOp kernel) : kernel(kernel), rules(pool), isDouble(usesF64(this->kernel)) {
  const char *arithmetic = "arithmetic", *functions = "elementary functions";
  rules.arithmetic = parameter(arithmetic, isDouble ? model.arithmeticOfF64 : model.arithmetic);
  rules.exponentialRounding = parameter(functions, isDouble ? model.functionOfF64 : model.exponential);
  rules.tanhRounding = parameter(functions, isDouble ? model.functionOfF64 : model.tanh);
  rules.powerRounding = parameter(functions, isDouble ? model.functionOfF64 : model.power);
  rules.functionRounding = parameter(functions, isDouble ? model.functionOfF64 : model.function);
  if (isDouble) {
    rules.tinyValue = 0x1p-1022;
    rules.overflow = 0x1p1023;
  }
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Returns the element type of a parameter; for a select of two different types, its result type.
static Type getTypeAsItIs(Value value) {
  Closure term = resolve({value, nullptr});
  Operation *op = term.value.getDefiningOp();
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    Type a = getTypeAsItIs(select.getTrueValue()), b = getTypeAsItIs(select.getFalseValue());
    if (a == b)
      return a;
    return op->getResult(0).getType();
  }
  return term.value.getType();
}

static ContractionOperand makeOperand(ErrorContext &context, dnf::ReduceOp op, Value value, const std::string &name) {
  ContractionOperand operand{name, value.getLoc(), !isTakenAsItIs(value), {}, Type()};
  if (!operand.isComputed) {
    operand.type = getTypeAsItIs(value);
    if (auto psi = resolve({value, nullptr}).value.getDefiningOp<dnf::PsiOp>())
      operand.array = context.arrayName(psi.getArray());
  } else
    operand.type = op.getOperandType().value_or(value.getType());
  operand.standard = getFormatOf(operand.type);
  operand.parameter = context.parameters.size();
  for (unsigned k = 0; k < ContractionOperand::kParameters; ++k)
    context.parameter(name, 0);
  return operand;
}

/// Names the contractions of a kernel after the definition they are in; from the second one on with
/// a number.
static void findContractions(ErrorContext &context) {
  for (Operation &definition : context.kernel.getBody().front()) {
    std::string base;
    if (auto let = dyn_cast<dnf::LetOp>(definition))
      base = let.getSymName().str();
    else
      base = context.resultName(cast<dnf::OutputOp>(definition));
    unsigned count = 0;
    definition.walk<WalkOrder::PreOrder>([&](dnf::ReduceOp op) {
      auto yield = getYield(op.getBody());
      auto product = yield.getValue().getDefiningOp<arith::MulFOp>();
      if (op.getMonoid() != Monoid::add || !product)
        return;
      std::string name = base + (++count > 1 ? "." + std::to_string(count) : "");
      unsigned first = context.operands.size();
      context.operands.push_back(makeOperand(context, op, product.getLhs(), name + ".lhs"));
      context.operands.push_back(makeOperand(context, op, product.getRhs(), name + ".rhs"));
      ErrorContext::Contraction contraction{first, first + 1, {}, 0};
      contraction.accumulateParameter = context.parameters.size();
      contraction.accumulate = context.parameter("sums of " + name, 0);
      context.contractions.emplace(op, contraction);
    });
  }
}

//===----------------------------------------------------------------------===//
// The analysis
//===----------------------------------------------------------------------===//

/// Returns the indices of the result at which statistics of at least two arrays are kept.
std::vector<int> RoundingErrorAnalysis::Impl::findFree(const Result &result, dnf::OutputOp op) {
  std::map<int, std::set<std::string>> arrays;
  for (const ErrorValue *value : {&result.deep, &result.shallow})
    for (const ErrorExpr *e : {&value->relative, &value->absolute})
      for (const Atom *atom : e->collectAtoms())
        for (int axis : atom->statistic.axes)
          if (atom->kind == Atom::Kind::Statistic && axis >= 0)
            arrays[axis].insert(atom->statistic.array);
  std::vector<int> free;
  for (Value index : op.getBody().getArguments()) {
    int number = context.indexNumber(index);
    if (arrays[number].size() > 1)
      free.push_back(number);
  }
  return free;
}

ErrorExpr RoundingErrorAnalysis::Impl::keep(const ErrorExpr &e, const std::vector<int> &free) {
  auto to = [&](int index) { return llvm::is_contained(free, index) ? index : MagnitudeStatistic::kExtreme; };
  return context.replaceIndices(e, to);
}

/// Adds the rounding of the result, and drops statistics at indices that are not kept.
void RoundingErrorAnalysis::Impl::finish(Result &result, dnf::OutputOp op) {
  result.rounding = context.parameters.size();
  Type type =
      cast<ArrayType>(cast<TypeAttr>(context.kernel.getResultTypes()[op.getResult()]).getValue()).getElementType();
  const OperandFormat *format = getFormatOf(type);
  std::string source = "rounding of " + result.name;
  bool isNarrower = format && type != op.getType();
  ErrorExpr relative = context.parameter(source, isNarrower ? toLogarithm(format->relative) : 0);
  ErrorExpr absolute = context.parameter(source, isNarrower ? format->absolute : 0);
  for (ErrorValue *value : {&result.deep, &result.shallow}) {
    value->relative += relative;
    value->absolute += absolute;
  }
  if (isNarrower && std::isfinite(format->limit)) {
    const ErrorExpr &magnitude = result.deep.magnitude;
    ErrorFact fact{"'" + result.name + "' stays in the range of " + format->name.str(), std::nullopt, format->limit};
    if (!magnitude.isUnknown())
      fact.value = magnitude;
    result.deep.facts.insert(context.rules.fact(std::move(fact)));
  }
  result.free = findFree(result, op);
  for (ErrorValue *value : {&result.deep, &result.shallow})
    for (ErrorExpr *e : {&value->relative, &value->absolute})
      *e = keep(*e, result.free);
}

void RoundingErrorAnalysis::Impl::run() {
  findContractions(context);
  bool repeat = true;
  // Every walk but the last gives up at least one relation.
  while (repeat) {
    ErrorWalk walk(context);
    resultList.clear();
    for (dnf::OutputOp op : context.kernel.getBody().getOps<dnf::OutputOp>()) {
      Result result;
      result.name = context.resultName(op);
      result.deep = walk.output(op, false);
      result.shallow = walk.output(op, true);
      resultList.push_back(std::move(result));
    }
    repeat = walk.mustRepeat();
  }
  unsigned k = 0;
  for (dnf::OutputOp op : context.kernel.getBody().getOps<dnf::OutputOp>())
    finish(resultList[k++], op);
}

const OperandFormat *RoundingErrorAnalysis::Impl::formatOf(const ContractionOperand &operand,
                                                           const FormatAssignment &formats) const {
  auto it = formats.find(operand.name);
  return it == formats.end() ? operand.standard : it->second;
}

/// Returns the value of each parameter under an assignment.
std::vector<double> RoundingErrorAnalysis::Impl::values(const FormatAssignment &formats) const {
  std::vector<double> values;
  for (const ErrorParameter &parameter : context.parameters)
    values.push_back(parameter.standard);
  for (const ContractionOperand &operand : context.operands) {
    const OperandFormat *format = formatOf(operand, formats);
    // A value computed in the type of the format is already rounded to it.
    bool isAsComputed = format && (format->name == "f64" || (format->name == "f32" && !context.isDouble));
    // Kernels in f64 do not flush operands. An element of bf16 may be multiplied as bf16 even if
    // its operand has a wider format.
    const OperandFormat *read = !operand.isComputed && operand.type.isBF16() ? getFormatOf(operand.type) : format;
    if (read && !context.isDouble)
      values[operand.parameter + 3] = read->flushed;
    if (!format || (operand.isComputed ? isAsComputed : holdsExactly(*format, operand.type)))
      continue;
    values[operand.parameter] = toLogarithm(format->relative);
    values[operand.parameter + 1] = format->ofRow;
    values[operand.parameter + 2] = format->absolute;
  }
  for (const auto &[op, contraction] : context.contractions) {
    double &unit = values[contraction.accumulateParameter];
    for (unsigned k : {contraction.lhs, contraction.rhs})
      if (const OperandFormat *format = formatOf(context.operands[k], formats))
        unit = std::max(unit, format->accumulate);
  }
  return values;
}

ErrorExpr RoundingErrorAnalysis::Impl::insert(const ErrorExpr &e, const std::vector<double> &values) {
  return context.pool.substitute(e, [&](const Atom &atom) -> std::optional<ErrorExpr> {
    if (atom.kind != Atom::Kind::Parameter)
      return std::nullopt;
    return ErrorExpr(values[atom.parameter]);
  });
}

std::string RoundingErrorAnalysis::Impl::indexName(int number) const {
  auto argument = cast<BlockArgument>(context.indices[number]);
  Operation *owner = argument.getOwner()->getParentOp();
  if (auto output = dyn_cast<dnf::OutputOp>(owner))
    return cast<StringAttr>(output.getNames()[argument.getArgNumber()]).str();
  if (auto let = dyn_cast<dnf::LetOp>(owner))
    return cast<StringAttr>(let.getNames()[argument.getArgNumber()]).str();
  return cast<dnf::ReduceOp>(owner).getName().str();
}

/// Adds the facts of the bound, except those that hold for every input.
void RoundingErrorAnalysis::Impl::addFacts(ErrorBound &bound, const Result &result, const FormatAssignment &formats,
                                           const std::vector<double> &values) {
  std::set<unsigned> numbers = result.deep.facts;
  numbers.insert(result.shallow.facts.begin(), result.shallow.facts.end());
  auto add = [&](ErrorFact fact) {
    if (fact.value) {
      auto constant = fact.value->getConstant();
      if (constant && *constant * (1 + 1e-6) <= fact.limit)
        return;
    }
    // Of two facts with the same limit, keep the one with the larger magnitude.
    auto covers = [](const ErrorFact &a, const ErrorFact &b) {
      return a == b ||
             (a.value && b.value && a.text == b.text && a.limit == b.limit && b.value->isDominatedBy(*a.value));
    };
    if (llvm::any_of(bound.facts, [&](const auto &other) { return covers(other, fact); }))
      return;
    llvm::erase_if(bound.facts, [&](const auto &other) { return covers(fact, other); });
    bound.facts.push_back(std::move(fact));
  };
  for (unsigned number : numbers) {
    ErrorFact fact = context.rules.facts[number];
    if (fact.value)
      fact.value = insert(keep(*fact.value, result.free), values);
    if (auto operand = std::exchange(fact.operand, std::nullopt)) {
      const ContractionOperand &of = context.operands[*operand];
      const OperandFormat *format = formatOf(of, formats);
      if (!format || !std::isfinite(format->limit) || (holdsExactly(*format, of.type) && !of.isComputed))
        continue;
      fact.text = "'" + of.name + "' stays in the range of " + format->name.str();
      fact.limit = format->limit;
    }
    add(std::move(fact));
  }
}

RoundingErrorAnalysis::RoundingErrorAnalysis(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
RoundingErrorAnalysis::RoundingErrorAnalysis(RoundingErrorAnalysis &&) = default;
RoundingErrorAnalysis &RoundingErrorAnalysis::operator=(RoundingErrorAnalysis &&) = default;
RoundingErrorAnalysis::~RoundingErrorAnalysis() = default;

RoundingErrorAnalysis RoundingErrorAnalysis::create(dnf::KernelOp kernel) {
  auto impl = std::make_unique<Impl>(kernel);
  impl->run();
  return RoundingErrorAnalysis(std::move(impl));
}

llvm::ArrayRef<ContractionOperand> RoundingErrorAnalysis::operands() const { return impl->context.operands; }

std::vector<std::string> RoundingErrorAnalysis::freeIndices(unsigned result) const {
  std::vector<std::string> names;
  for (int number : impl->resultList[result].free)
    names.push_back(impl->indexName(number));
  return names;
}

llvm::Error RoundingErrorAnalysis::check(const FormatAssignment &formats) const {
  std::vector<std::string> names;
  for (const ContractionOperand &operand : operands())
    names.push_back(operand.name);
  for (const auto &entry : formats)
    if (!llvm::is_contained(names, entry.first))
      return llvm::createStringError(
          "there is no operand '" + entry.first + "'; " +
          (names.empty() ? "the kernel has no contractions" : "the kernel has " + llvm::join(names, ", ")));
  return llvm::Error::success();
}

ErrorBound RoundingErrorAnalysis::bound(unsigned number, const FormatAssignment &formats) const {
  const Impl::Result &result = impl->resultList[number];
  std::vector<double> values = impl->values(formats);
  ErrorExprPool &pool = impl->context.pool;
  auto finish = [&](const ErrorValue &value, const std::vector<double> &numbers, ErrorExpr &relative,
                    ErrorExpr &absolute) {
    ErrorExpr exponent = impl->insert(value.relative, numbers);
    relative = pool.expm1(exponent);
    absolute = impl->insert(value.absolute, numbers);
    if (!absolute.isZero())
      absolute = pool.exp(exponent) * absolute;
  };
  ErrorBound bound;
  finish(result.shallow, values, bound.relative, bound.absolute);
  finish(result.deep, values, bound.deepRelative, bound.deepAbsolute);
  bound.hasDeep = !(bound.relative == bound.deepRelative) || !(bound.absolute == bound.deepAbsolute);
  std::set<std::string> sources;
  for (auto [parameter, value] : llvm::zip(impl->context.parameters, values)) {
    if (value == 0 || !sources.insert(parameter.source).second)
      continue;
    std::vector<double> without = values;
    for (auto [other, changed] : llvm::zip(impl->context.parameters, without))
      if (other.source == parameter.source)
        changed = 0;
    ErrorBound::Contribution contribution{parameter.source, {}, {}};
    finish(result.shallow, without, contribution.relativeWithout, contribution.absoluteWithout);
    if (!(contribution.relativeWithout == bound.relative) || !(contribution.absoluteWithout == bound.absolute))
      bound.contributions.push_back(std::move(contribution));
  }
  impl->addFacts(bound, result, formats, values);
  for (const ErrorExpr *e : {&bound.relative, &bound.absolute})
    for (const Atom *atom : e->collectAtoms())
      if (atom->kind == Atom::Kind::Unknown && !llvm::is_contained(bound.reasons, atom->text))
        bound.reasons.push_back(atom->text);
  return bound;
}
