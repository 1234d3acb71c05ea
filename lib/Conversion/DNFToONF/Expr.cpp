//===- Expr.cpp - hash-consed scalar expressions --------------------------===//
#include "lib/Conversion/DNFToONF/Expr.h"
#include "dialects/MoA/IR/Subscripts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace moa;

void ExprNode::Profile(llvm::FoldingSetNodeID &nodeId) const {
  nodeId.AddInteger(static_cast<int>(kind));
  nodeId.AddPointer(type.getAsOpaquePointer());
  for (Expr operand : operands)
    nodeId.AddPointer(operand);
  nodeId.AddInteger(id);
  nodeId.AddPointer(value.getAsOpaquePointer());
  nodeId.AddPointer(op ? op->getAsOpaquePointer() : nullptr);
  nodeId.AddPointer(attributes.getAsOpaquePointer());
  nodeId.AddInteger(static_cast<int>(monoid));
  nodeId.AddPointer(rounds.getAsOpaquePointer());
  nodeId.AddPointer(function.getAsOpaquePointer());
  nodeId.AddPointer(extent.getAsOpaquePointer());
}

Expr ExprContext::unique(ExprNode &&node) {
  llvm::FoldingSetNodeID nodeId;
  node.Profile(nodeId);
  void *position = nullptr;
  if (ExprNode *existing = nodes.FindNodeOrInsertPos(nodeId, position))
    return existing;
  for (Expr operand : node.operands) {
    node.freeIndices.insert(operand->freeIndices.begin(), operand->freeIndices.end());
    node.height = std::max(node.height, operand->height);
  }
  if (node.kind == ExprKind::Index)
    node.freeIndices.insert(node.id);
  if (node.kind == ExprKind::Reduce) {
    node.height += 1;
    node.freeIndices.erase(-static_cast<int64_t>(node.height));
  }
  node.serial = serial++;
  storage.push_back(std::move(node));
  nodes.InsertNode(&storage.back(), position);
  return &storage.back();
}

Expr ExprContext::index(int64_t id) {
  ExprNode node;
  node.kind = ExprKind::Index;
  node.type = IndexType::get(context);
  node.id = id;
  return unique(std::move(node));
}

int64_t ExprContext::freshIndex(StringRef name) {
  names.push_back(strings.save(name));
  return names.size() - 1;
}

int64_t Openings::indexFor(Expr reduce) {
  StringRef name = exprs.boundName(reduce);
  SmallVector<int64_t, 1> &known = indices[{reduce->height, reduce->extent.getAsOpaquePointer(), name}];
  auto it = llvm::find_if(known, [&](int64_t index) { return !reduce->dependsOn(index); });
  if (it != known.end())
    return *it;
  known.push_back(exprs.freshIndex(name));
  return known.back();
}

Expr ExprContext::extent(const SymExpr &value) {
  ExprNode node;
  node.type = IndexType::get(context);
  if (auto number = value.getConstant())
    return constant(IntegerAttr::get(node.type, *number), node.type);
  node.kind = ExprKind::Extent;
  node.extent = ExprAttr::get(context, value);
  return unique(std::move(node));
}

Expr ExprContext::constant(Attribute value, Type type) {
  ExprNode node;
  node.kind = ExprKind::Const;
  node.type = type;
  node.value = value;
  return unique(std::move(node));
}

Expr ExprContext::floatConstant(double value, Type type) { return constant(FloatAttr::get(type, value), type); }

Expr ExprContext::boolean(bool value) {
  Type type = IntegerType::get(context, 1);
  return constant(IntegerAttr::get(type, value), type);
}

/// `predicate` is arith's number of the predicate.
Expr ExprContext::compare(StringRef name, int64_t predicate, Expr a, Expr b) {
  auto attribute =
      NamedAttribute(StringAttr::get(context, "predicate"), IntegerAttr::get(IntegerType::get(context, 64), predicate));
  return op(OperationName(name, context), DictionaryAttr::get(context, attribute), {a, b},
            IntegerType::get(context, 1));
}

Expr ExprContext::equal(Expr a, Expr b) {
  return isa<FloatType>(a->type) ? compare("arith.cmpf", 1, a, b) : compare("arith.cmpi", 0, a, b);
}

Expr ExprContext::greater(Expr a, Expr b) { return compare("arith.cmpi", 4, a, b); }
Expr ExprContext::notBelow(Expr a, Expr b) { return compare("arith.cmpi", 5, a, b); }

Expr ExprContext::psi(int64_t input, ArrayRef<Expr> indices, Type type) {
  ExprNode node;
  node.kind = ExprKind::Psi;
  node.type = type;
  node.id = input;
  node.operands.assign(indices.begin(), indices.end());
  return unique(std::move(node));
}

static std::optional<SymExpr> asSymExpr(Expr e) {
  if (e->kind == ExprKind::Extent)
    return e->extent.getValue();
  if (e->kind == ExprKind::Const && e->type.isIndex())
    return SymExpr(cast<IntegerAttr>(e->value).getInt());
  return std::nullopt;
}

std::optional<double> moa::floatValue(Expr e) {
  auto value = e->kind == ExprKind::Const ? dyn_cast<FloatAttr>(e->value) : FloatAttr();
  return value ? std::optional(value.getValueAsDouble()) : std::nullopt;
}

Expr ExprContext::foldOp(StringRef name, ArrayRef<Expr> operands) {
  if (operands.size() != 2)
    return nullptr;
  if (name == "arith.mulf" && floatValue(operands[0]) == 1)
    return operands[1];
  if ((name == "arith.mulf" || name == "arith.divf") && floatValue(operands[1]) == 1)
    return operands[0];
  if (name == "arith.andi") {
    Expr yes = boolean(true);
    if (operands[0] == yes || operands[0] == operands[1])
      return operands[1];
    if (operands[1] == yes)
      return operands[0];
  }
  auto a = asSymExpr(operands[0]), b = asSymExpr(operands[1]);
  if (b && b->isZero() && (name == "arith.addi" || name == "arith.subi"))
    return operands[0];
  if (a && a->isZero() && name == "arith.addi")
    return operands[1];
  if (!a || !b)
    return nullptr;
  if (name == "arith.addi")
    return extent(*a + *b);
  if (name == "arith.subi")
    return extent(*a - *b);
  if (name == "arith.muli")
    return extent(*a * *b);
  if (name == "arith.floordivsi" && !b->isZero())
    return extent(SymExpr::floorDiv(*a, *b));
  return nullptr;
}

/// Returns ¬e for comparisons of integers and their combinations; null for others.
Expr ExprContext::negation(Expr e) {
  if (e->isOp("arith.xori") && e->operands[1] == boolean(true))
    return e->operands[0];
  if (e->isOp("arith.cmpi")) {
    // eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
    constexpr int64_t opposite[] = {1, 0, 5, 4, 3, 2, 9, 8, 7, 6};
    auto predicate = cast<IntegerAttr>(e->attributes.get("predicate")).getInt();
    return compare("arith.cmpi", opposite[predicate], e->operands[0], e->operands[1]);
  }
  bool isAnd = e->isOp("arith.andi");
  if (!isAnd && !e->isOp("arith.ori"))
    return nullptr;
  Expr a = negation(e->operands[0]), b = a ? negation(e->operands[1]) : nullptr;
  return b ? op(isAnd ? "arith.ori" : "arith.andi", {a, b}, e->type) : nullptr;
}

Expr ExprContext::op(OperationName name, DictionaryAttr attributes, ArrayRef<Expr> operands, Type type) {
  if (Expr folded = foldOp(name.getStringRef(), operands))
    return folded;
  if (name.getStringRef() == "arith.xori" && operands[1] == boolean(true))
    if (Expr other = negation(operands[0]))
      return other;
  ExprNode node;
  node.kind = ExprKind::Op;
  node.type = type;
  node.op = name;
  node.attributes = attributes;
  node.operands.assign(operands.begin(), operands.end());
  return unique(std::move(node));
}

Expr ExprContext::op(StringRef name, ArrayRef<Expr> operands, Type type) {
  // Fast-math attributes of arith and math default to none; spelling them out
  // makes an operation built here equal to one that was read.
  OperationName opName(name, context);
  SmallVector<NamedAttribute> attributes;
  if (opName.hasInterface<arith::ArithFastMathInterface>())
    attributes.emplace_back(StringAttr::get(context, "fastmath"),
                            arith::FastMathFlagsAttr::get(context, arith::FastMathFlags::none));
  return op(opName, DictionaryAttr::get(context, attributes), operands, type);
}

Expr ExprContext::withOperands(Expr e, ArrayRef<Expr> operands) {
  return e->kind == ExprKind::Psi ? psi(e->id, operands, e->type) : op(*e->op, e->attributes, operands, e->type);
}

Expr ExprContext::guarded(Expr condition, Expr value, Expr otherwise) {
  return condition == boolean(true) ? value : op("arith.select", {condition, value, otherwise}, value->type);
}

/// Replaces one index by another. Structure and heights do not change: inner binders have smaller
/// heights, so neither index is theirs.
Expr ExprContext::rename(Expr e, int64_t from, Expr to) {
  llvm::DenseMap<Expr, Expr> memo;
  std::function<Expr(Expr)> go = [&](Expr node) -> Expr {
    if (!node->freeIndices.count(from))
      return node;
    if (node->kind == ExprKind::Index)
      return to;
    auto it = memo.find(node);
    if (it != memo.end())
      return it->second;
    ExprNode copy;
    copy.kind = node->kind;
    copy.type = node->type;
    copy.id = node->id;
    copy.op = node->op;
    copy.attributes = node->attributes;
    copy.monoid = node->monoid;
    copy.rounds = node->rounds;
    copy.extent = node->extent;
    copy.function = node->function;
    for (Expr operand : node->operands)
      copy.operands.push_back(go(operand));
    Expr result = unique(std::move(copy));
    if (node->kind == ExprKind::Reduce) {
      reduceNames.try_emplace(result, boundName(node));
      inheritPlace(node, result);
    }
    return memo[node] = result;
  };
  return go(e);
}

Expr ExprContext::reduce(Monoid monoid, ExprAttr extent, int64_t free, Expr body, Expr present, TypeAttr rounds,
                         StringRef name, FlatSymbolRefAttr function) {
  if (present == boolean(true))
    present = nullptr;
  unsigned height = std::max(body->height, present ? present->height : 0) + 1;
  Expr bound = index(-static_cast<int64_t>(height));
  ExprNode node;
  node.kind = ExprKind::Reduce;
  node.type = body->type;
  node.monoid = monoid;
  node.extent = extent;
  node.rounds = rounds;
  node.function = function;
  node.operands.push_back(rename(body, free, bound));
  if (present)
    node.operands.push_back(rename(present, free, bound));
  Expr result = unique(std::move(node));
  reduceNames.try_emplace(result, strings.save(name));
  return result;
}

StringRef ExprContext::boundName(Expr reduce) const {
  auto it = reduceNames.find(reduce);
  return it == reduceNames.end() ? StringRef("k") : it->second;
}

StringRef ExprContext::writtenText(Expr reduce) const {
  auto place = places.find(reduce);
  return place == places.end() || isa<NameLoc>(place->second) ? "" : getText(place->second);
}

SmallVector<Expr> ExprContext::writtenReductions(Expr e) const {
  SetVector<Expr> found;
  DenseSet<Expr> seen;
  SmallVector<Expr> open{e};
  while (!open.empty()) {
    Expr node = open.pop_back_val();
    if (!seen.insert(node).second)
      continue;
    if (node->kind == ExprKind::Reduce && !writtenText(node).empty())
      found.insert(node);
    else
      open.append(node->operands.rbegin(), node->operands.rend());
  }
  return found.takeVector();
}

std::string ExprContext::strAsWritten(Expr e) {
  DenseSet<Expr> written;
  written.insert_range(writtenReductions(e));
  return str(replace(e, [&](Expr node) -> Expr {
    if (!written.count(node))
      return nullptr;
    return index(freshIndex(("(" + writtenText(node) + ")").str()));
  }));
}

Location ExprContext::placeOf(Expr reduce, Location otherwise) const {
  auto place = places.find(reduce);
  return place == places.end() ? otherwise : place->second;
}

std::string ExprContext::nameOf(Expr reduce, StringRef otherwise) const {
  auto name = reductionNames.find(reduce);
  return name == reductionNames.end() ? otherwise.str() : name->second;
}

void ExprContext::inheritPlace(Expr from, Expr to) {
  auto it = places.find(from);
  if (it == places.end() || to->kind != ExprKind::Reduce)
    return;
  Location place = it->second; // the insertion below may move it
  places.try_emplace(to, place);
}

void ExprContext::inheritName(Expr from, Expr to) {
  inheritPlace(from, to);
  auto it = reductionNames.find(from);
  if (it == reductionNames.end() || to->kind != ExprKind::Reduce)
    return;
  std::string name = it->second; // the insertion below may move it
  reductionNames.try_emplace(to, std::move(name));
}

std::pair<Expr, Expr> ExprContext::open(Expr reduce, int64_t free) {
  int64_t bound = -static_cast<int64_t>(reduce->height);
  Expr variable = index(free), present = reduce->getPresent();
  return {rename(reduce->operands[0], bound, variable), present ? rename(present, bound, variable) : nullptr};
}

Expr ExprContext::sumOver(Expr of, int64_t free, Expr body, Expr present, TypeAttr rounds) {
  Expr sum = reduce(Monoid::add, of->extent, free, body, present, rounds, boundName(of));
  inheritPlace(of, sum);
  return sum;
}

Expr ExprContext::withBody(Expr of, int64_t free, Expr body, Expr present) {
  Expr result = reduce(of->monoid, of->extent, free, body, present, of->rounds, boundName(of), of->function);
  inheritName(of, result);
  return result;
}

Expr ExprContext::replace(Expr e, llvm::function_ref<Expr(Expr)> with) {
  llvm::DenseMap<Expr, Expr> memo;
  Openings openings(*this);
  std::function<Expr(Expr)> go = [&](Expr node) -> Expr {
    if (Expr other = with(node))
      return other;
    if (node->operands.empty())
      return node;
    auto it = memo.find(node);
    if (it != memo.end())
      return it->second;
    Expr result = node;
    if (node->kind == ExprKind::Reduce) {
      int64_t free = openings.indexFor(node);
      auto [body, present] = open(node, free);
      Expr newBody = go(body), newPresent = present ? go(present) : nullptr;
      if (newBody != body || newPresent != present)
        result = withBody(node, free, newBody, newPresent);
    } else {
      SmallVector<Expr> operands;
      for (Expr operand : node->operands)
        operands.push_back(go(operand));
      if (!llvm::equal(operands, node->operands))
        result = withOperands(node, operands);
    }
    return memo[node] = result;
  };
  return go(e);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

MathTerm ExprContext::termOfOp(Expr e, PrintedTerms &terms) const {
  SmallVector<MathTerm> operands;
  for (Expr operand : e->operands)
    operands.push_back(term(operand, terms));
  std::string type;
  llvm::raw_string_ostream(type) << e->type;
  auto predicate = e->attributes.getAs<IntegerAttr>("predicate");
  return makeMathTerm(e->op->getStringRef(), operands, e->type.isInteger(1), type, predicate ? predicate.getInt() : 0);
}

MathTerm ExprContext::term(Expr e, PrintedTerms &terms) const {
  if (auto it = terms.find(e); it != terms.end())
    return it->second;
  constexpr size_t kMaxText = 4000;
  MathTerm made = makeTerm(e, terms);
  if (made.text.size() > kMaxText)
    made = {"…"};
  return terms[e] = made;
}

MathTerm ExprContext::makeTerm(Expr e, PrintedTerms &terms) const {
  switch (e->kind) {
  case ExprKind::Index:
    return {e->id >= 0 ? names[e->id].str() : "k" + std::to_string(-e->id)};
  case ExprKind::Extent: {
    const SymExpr &extent = e->extent.getValue();
    return {extent.str(), extent.getSymbol() || extent.getConstant() ? MathTerm::Atom : MathTerm::Sum};
  }
  case ExprKind::Const:
    if (auto value = dyn_cast<FloatAttr>(e->value))
      return {formatNumber(value.getValueAsDouble())};
    if (e->type.isInteger(1))
      return {cast<IntegerAttr>(e->value).getValue().isZero() ? "false" : "true"};
    return {std::to_string(cast<IntegerAttr>(e->value).getInt())};
  case ExprKind::Psi: {
    SmallVector<std::string> indices;
    for (Expr operand : e->operands)
      indices.push_back(term(operand, terms).text);
    return {inputNames[e->id] + (indices.empty() ? "" : "[" + llvm::join(indices, ", ") + "]")};
  }
  case ExprKind::Op:
    return termOfOp(e, terms);
  case ExprKind::Reduce:
    if (auto it = reductionNames.find(e); it != reductionNames.end())
      return {it->second};
    return {((e->function ? e->function.getValue() : getReductionSymbol(stringifyMonoid(e->monoid))) + "{k" +
             Twine(e->height) + "<" + e->extent.getValue().str() + "} " +
             term(e->operands[0], terms).at(MathTerm::Product))
                .str(),
            MathTerm::Sum};
  }
  llvm_unreachable("unknown expression");
}

void moa::walk(Expr e, llvm::function_ref<void(Expr)> visit) {
  llvm::DenseSet<Expr> seen;
  std::function<void(Expr)> go = [&](Expr node) {
    if (!seen.insert(node).second)
      return;
    visit(node);
    for (Expr operand : node->operands)
      go(operand);
  };
  go(e);
}

bool moa::anyNode(Expr e, llvm::function_ref<bool(Expr)> holds) {
  llvm::DenseSet<Expr> seen;
  std::function<bool(Expr)> go = [&](Expr node) {
    return seen.insert(node).second && (holds(node) || llvm::any_of(node->operands, go));
  };
  return go(e);
}

SmallVector<Expr> moa::outermostReductions(Expr value) {
  SmallVector<Expr> result;
  llvm::DenseSet<Expr> seen;
  std::function<void(Expr)> go = [&](Expr node) {
    if (!seen.insert(node).second)
      return;
    if (node->kind == ExprKind::Reduce) {
      result.push_back(node);
      return;
    }
    for (Expr operand : node->operands)
      go(operand);
  };
  go(value);
  return result;
}

//===----------------------------------------------------------------------===//
// Import
//===----------------------------------------------------------------------===//

ExprImporter::ExprImporter(ExprContext &exprs, dnf::KernelOp kernel) : exprs(exprs), kernel(kernel) {
  for (Attribute name : kernel.getArgNames())
    exprs.inputNames.push_back(cast<StringAttr>(name).getValue().str());
}

Expr ExprImporter::apply(dnf::ApplyOp op, Env &env) {
  auto let = SymbolTable::lookupNearestSymbolFrom<dnf::LetOp>(op, op.getLetAttr());
  std::vector<Expr> indices;
  for (Value index : op.getIndices())
    indices.push_back(env.lookup(index));
  auto key = std::make_pair(let.getOperation(), indices);
  if (auto it = applied.find(key); it != applied.end())
    return it->second;
  Env inner;
  for (auto [arg, index] : llvm::zip(let.getBody().getArguments(), indices))
    inner[arg] = index;
  Expr value = block(let.getBody().front(), inner).first;
  // The one reduction of a let is named after it, for messages.
  SmallVector<Expr> reductions = outermostReductions(value);
  if (value->kind == ExprKind::Reduce)
    exprs.reductionNames.try_emplace(value, let.getSymName().str());
  else if (reductions.size() == 1 && llvm::none_of(reductions[0]->freeIndices, [&](int64_t i) {
             return llvm::none_of(indices, [&](Expr e) { return e->id == i; });
           }))
    exprs.reductionNames.try_emplace(reductions[0],
                                     (let.getSymName() + "." + stringifyMonoid(reductions[0]->monoid)).str());
  exprs.letValues.push_back({let.getSymName().str(), std::move(indices), value});
  return applied[key] = value;
}

Expr ExprImporter::operation(Operation *op, Env &env) {
  if (auto psi = dyn_cast<dnf::PsiOp>(op)) {
    SmallVector<Expr> indices;
    for (Value index : psi.getIndices())
      indices.push_back(env.lookup(index));
    return exprs.psi(cast<BlockArgument>(psi.getArray()).getArgNumber(), indices, psi.getResult().getType());
  }
  if (auto extent = dyn_cast<dnf::ExtentOp>(op))
    return exprs.extent(extent.getExpr());
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return exprs.constant(constant.getValue(), constant.getType());
  if (auto call = dyn_cast<dnf::ApplyOp>(op))
    return apply(call, env);
  if (auto reduce = dyn_cast<dnf::ReduceOp>(op)) {
    auto [index, isNew] = reductionIndices.try_emplace(op, 0);
    if (isNew)
      index->second = exprs.freshIndex(reduce.getName());
    int64_t free = index->second;
    env[reduce.getBody().getArgument(0)] = exprs.index(free);
    auto [body, present] = block(reduce.getBody().front(), env);
    Expr result = exprs.reduce(reduce.getMonoid(), reduce.getExtentAttr(), free, body, present,
                               reduce.getOperandTypeAttr(), reduce.getName(), reduce.getFunctionAttr());
    exprs.places.try_emplace(result, op->getLoc());
    return result;
  }
  SmallVector<Expr> operands;
  for (Value operand : op->getOperands())
    operands.push_back(env.lookup(operand));
  // Properties (comparison predicates, fast-math flags) and discardable
  // attributes together identify the operation.
  return exprs.op(op->getName(), op->getAttrDictionary(), operands, op->getResult(0).getType());
}

std::pair<Expr, Expr> ExprImporter::block(Block &body, Env &env) {
  for (Operation &op : body.without_terminator())
    env[op.getResult(0)] = operation(&op, env);
  auto yield = cast<dnf::YieldOp>(body.getTerminator());
  return {env.lookup(yield.getValue()), yield.getPresent() ? env.lookup(yield.getPresent()) : nullptr};
}

std::pair<Expr, Expr> ExprImporter::output(dnf::OutputOp op, ArrayRef<Expr> indices) {
  Env env;
  for (auto [arg, index] : llvm::zip(op.getBody().getArguments(), indices))
    env[arg] = index;
  return block(op.getBody().front(), env);
}
