//===- KernelPrinter.cpp - device kernels as CUDA C++ ---------------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include "dialects/Device/IR/LayoutMaps.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>

using namespace mlir;

namespace moa::cuda {

// Longer expressions are split, and a part is named.
static constexpr size_t kLongExpression = 96;

// Constants of one type share a line if they are short.
static constexpr size_t kShortDeclarator = 72, kShortLine = 120;

/// Returns whether blocks start. If an extent of the nest is the number 0, none do.
static bool startsBlocks(device::KernelOp kernel) { return !kernel.getBlocks().isZero(); }

llvm::Expected<KernelText> KernelPrinter::print() {
  depth = 1;
  pushScope();
  scopes.back().start = 0;
  for (gpu::TensorMap &map : launch.parameters.maps)
    map.name = fresh(appendWord(names.of(map.array), "tiles"));
  for (const Outline &outline : outlines)
    used.insert(outline.name);
  if (!startsBlocks(kernel)) {
    write("// Every output of this kernel is empty, so that no block starts.");
    return KernelText{launch, printHeading() + printSignature() + body + "}\n"};
  }
  auto begin = [&](const char *call) {
    helpers.insert(call);
    write(std::string(call) + "();");
  };
  // A kernel without a wait lets the next launch start at once. Others wait first: the next launch
  // could otherwise start before the launches that they wait for have ended.
  if (launch.overlapsPrevious)
    begin("await_overlapped_launch");
  if (launch.idle) {
    helpers.insert({"await_earlier_launches", "let_next_launch_start", "is_skipped"});
    write("if (is_skipped(" + names.of(*launch.idle) + ")) return;");
  }
  if (launch.follows && !launch.overlapsPrevious)
    begin("await_earlier_launches");
  if (launch.letsNextStart)
    begin("let_next_launch_start");
  if (!hasRoles() && device::usesLanes(kernel))
    printThreadPlaces(kernel.getBody());
  printBlock(kernel.getBody().front());
  writeArrays(scopes.back());
  if (!error.empty())
    return llvm::createStringError(error);
  return KernelText{launch, printHeading() + printSignature() + body + "}\n"};
}

std::string KernelPrinter::fresh(llvm::StringRef wish) {
  std::string base = getIdentifier(wish), name = base;
  auto isArray = [&] { return recording && phaseArrays.count(name); };
  for (unsigned k = 2; isArray() || names.isTaken(name) || !used.insert(name).second; ++k)
    name = getNumbered(base, k);
  scopes.back().names.push_back(name);
  return name;
}

KernelPrinter::Scope &KernelPrinter::getBlockScope() {
  return *llvm::find_if(llvm::reverse(scopes), [](Scope &scope) { return scope.start.has_value(); });
}

std::string KernelPrinter::freshArray(llvm::StringRef wish) {
  std::string base = getIdentifier(wish), name = names.isTaken(base) ? appendWord(base, "acc") : base;
  base = name;
  Scope &scope = getBlockScope();
  for (unsigned k = 2; scope.inner.count(name) || names.isTaken(name) || !used.insert(name).second; ++k)
    name = getNumbered(base, k);
  scope.names.push_back(name);
  return name;
}

std::string KernelPrinter::freshState(llvm::StringRef wish) {
  // The wish is often the name of an output, which is taken.
  std::string base = getIdentifier(wish);
  return fresh(names.isTaken(base) ? appendWord(base, "acc") : base);
}

void KernelPrinter::popScope() {
  writeArrays(scopes.back());
  Scope ended = std::move(scopes.back());
  scopes.pop_back();
  for (const std::string &name : ended.names)
    used.erase(name);
  if (scopes.empty())
    return;
  scopes.back().inner.insert(ended.names.begin(), ended.names.end());
  scopes.back().inner.insert(ended.inner.begin(), ended.inner.end());
}

void KernelPrinter::declareArray(const std::string &type, const std::string &declarator) {
  Scope &scope = getBlockScope();
  auto same = llvm::find_if(scope.arrays, [&](auto &entry) { return entry.first == type; });
  if (same == scope.arrays.end())
    scope.arrays.emplace_back(type, declarator);
  else
    same->second += ", " + declarator;
}

void KernelPrinter::writeArrays(Scope &scope) {
  if (!scope.start)
    return;
  std::string text, indent(2 * depth, ' ');
  for (const auto &[type, list] : scope.arrays)
    text += wrapLine(indent + type + " " + list + ";", 2 * depth + 4) + "\n";
  body.insert(*scope.start, text);
}

void KernelPrinter::write(const std::string &text) {
  if (recording && depth == recording->depth && text[0] != '}')
    recording->statements.push_back({body.size(), {}});
  std::string lines = wrapLine(std::string(2 * depth, ' ') + text, 2 * depth + 4);
  isWrapped = lines.find('\n') != std::string::npos;
  body += lines + "\n";
  ++written;
}

void KernelPrinter::writeWithNote(const std::string &text, const std::string &note) {
  std::string whole = text + " // " + note;
  write(2 * depth + whole.size() <= 120 ? whole : text);
}

void KernelPrinter::writeVariable(const std::string &declaration) {
  hasVariables |= recording && depth == recording->depth;
  write(declaration + ";");
}

void KernelPrinter::writeConstant(const std::string &type, const std::string &declarator) {
  if (!continueLine(type, declarator)) {
    write("const " + type + " " + declarator + ";");
    if (recording && depth == recording->depth)
      recording->statements.back().second = {Statement::Constant, declarator, type};
  }
  joinEnd = body.size();
}

void KernelPrinter::writeComment(const std::string &text) {
  if (recording && depth == recording->depth)
    recording->statements.push_back({body.size(), {Statement::Comment, text, ""}});
  std::string indent(2 * depth, ' '), lines;
  addComment(lines, text, 117 - indent.size());
  SmallVector<StringRef> list;
  StringRef(lines).split(list, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : list)
    body += indent + line.str() + "\n";
  joinEnd = 0;
}

bool KernelPrinter::continueLine(const std::string &kind, const std::string &text) {
  size_t line = body.rfind('\n', body.size() - 2) + 1; // start of the previous line
  bool isApart = recording && depth == recording->depth;
  bool fits = !isApart && joinEnd == body.size() && joinKind == kind && text.size() <= kShortDeclarator &&
              body.size() - 1 - line + text.size() + 2 <= kShortLine && !isWrapped;
  joinKind = kind;
  if (!fits)
    return false;
  body.resize(body.size() - 2);
  body += ", " + text + ";\n";
  return true;
}

void KernelPrinter::open(const std::string &head, bool hasScope) {
  if (!head.empty())
    write(head);
  if (!hasScope)
    pushScope();
  ++depth;
  scopes.back().start = body.size();
}

void KernelPrinter::close(const std::string &text) {
  popScope();
  --depth;
  write(text);
}

void KernelPrinter::dropBraces(size_t start) {
  SmallVector<StringRef> lines;
  StringRef(body).drop_front(start).split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::string text;
  bool isShort = lines.size() == 3 || lines.size() == 5;
  for (size_t k = 0; isShort && k + 1 < lines.size(); k += 2) {
    StringRef head = lines[k], only = lines[k + 1].ltrim();
    isShort = head.consume_back(" {") && !only.starts_with("if ") && !only.contains(" if (") &&
              head.size() + 1 + only.size() <= 120;
    text += (k ? std::string(2 * depth, ' ') + head.ltrim(" }").str() : head.str()) + " " + only.str() + "\n";
  }
  if (isShort) {
    body.replace(start, std::string::npos, text);
    joinEnd = 0;
    return;
  }
  // Only the first side is short.
  if (lines.size() < 6 || lines[2].ltrim() != "} else {")
    return;
  StringRef head = lines[0], only = lines[1].ltrim();
  if (!head.consume_back(" {") || only.starts_with("if ") || only.contains(" if (") ||
      head.size() + 1 + only.size() > 120)
    return;
  text = head.str() + " " + only.str() + "\n" + std::string(2 * depth, ' ') + "else {\n";
  body.replace(start, lines[2].end() + 1 - body.data() - start, text);
  joinEnd = 0;
}

Expr KernelPrinter::value(Value v) {
  auto found = values.find(v);
  if (found != values.end())
    return found->second;
  if (auto constant = v.getDefiningOp<arith::ConstantOp>())
    return {constantText(constant), Expr::unary};
  if (auto scalar = v.getDefiningOp<device::ScalarOp>()) {
    const std::string &name = names.of(scalar.getArray());
    addParameter({{}, "", name, getValueType(v.getType()).str() + " " + name});
    return {name};
  }
  if (auto symbol = v.getDefiningOp<device::SymbolOp>())
    if (!function || isWrittenInPlace(*symbol, storage))
      return symbolText(symbol);
  if (error.empty())
    error = "a value is used before it is written";
  return {"0"};
}

/// Prints a constant, by its name if the program or mathematics has one for it.
std::string KernelPrinter::constantText(arith::ConstantOp op, const std::string &name) {
  std::string text = printConstant(op.getValue());
  auto number = dyn_cast<FloatAttr>(op.getValue());
  if (!number || !number.getType().isF32())
    return text;
  float value = number.getValue().convertToFloat();
  constexpr float kLog2E = 1.44269504088896341f, kLn2 = 0.693147180559945309f;
  auto log2E = [&] { return helpers.requestConstant("LOG2_E", "1.44269502f"); };
  auto ln2 = [&] { return helpers.requestConstant("LN_2", "0.693147182f"); };
  if (std::fabs(value) == kLog2E)
    return (value < 0 ? "-" : "") + log2E();
  if (std::fabs(value) == kLn2)
    return (value < 0 ? "-" : "") + ln2();
  if (name.empty())
    return text;
  // A multiple of ln 2 is the exponent of a power of 2.
  float times = std::round(value / kLn2);
  if (times != 0 && times * kLn2 == value)
    text = std::to_string(int64_t(times)) + " * " + ln2();
  return helpers.requestConstant(name, text);
}

Expr KernelPrinter::symbolText(device::SymbolOp op) {
  const SymExpr &expr = op.getExpr();
  std::set<std::string> atoms;
  expr.collectSymbols(atoms);
  for (const std::string &atom : atoms)
    addParameter({{}, "", names.of(atom), "int64_t " + names.of(atom)});
  std::string text = names.expression(expr);
  for (const char *helper : {"floor_div", "floor_mod"})
    if (text.find(helper) != std::string::npos)
      helpers.insert(helper);
  bool plain = expr.getTerms().size() <= 1 && text.find_first_of("*-") == std::string::npos;
  return {text, plain ? Expr::primary : Expr::sum};
}

bool KernelPrinter::isSeparated(Operation &op, Operation *user) {
  for (Operation *next = op.getNextNode(); next && next != user; next = next->getNextNode())
    if (next->getNumRegions() != 0)
      return true;
  return user->getNumRegions() != 0 && isa<scf::ForOp>(user);
}

void KernelPrinter::define(Operation &op, Expr expr, bool mayInline) {
  Value result = op.getResult(0);
  bool once = result.hasOneUse() && (*result.getUsers().begin())->getBlock() == op.getBlock() &&
              !isa<scf::YieldOp>(*result.getUsers().begin()) && !isSeparated(op, *result.getUsers().begin());
  if (isa<NameLoc>(op.getLoc()) && isa<FloatType>(result.getType()))
    once = false;
  // A select whose operand calls a function would become a branch.
  Operation *user = once ? *result.getUsers().begin() : nullptr;
  if (isa_and_nonnull<arith::SelectOp>(user) && user->getOperand(0) != result &&
      expr.text.find('(') != std::string::npos)
    once = false;
  bool isShort = expr.text.size() < kLongExpression || isa_and_nonnull<device::YieldOp>(user);
  if (mayInline && once && isShort) {
    values[result] = std::move(expr);
    return;
  }
  if (auto target = resultRegisters.find(result); target != resultRegisters.end()) {
    write(target->second + " = " + expr.text + ";");
    values[result] = {target->second};
    return;
  }
  std::string name = fresh(wishFor(result, "value"));
  writeConstant(getValueType(result.getType()).str(), name + " = " + expr.text);
  values[result] = {name};
}

void KernelPrinter::printFrom(Operation *op) {
  for (; op; op = getNext(op)) {
    if (isWrittenInPlace(*op, storage) || isa<scf::YieldOp, device::YieldOp>(op))
      continue;
    if (launch.isPerBlock(op) && blockParity.empty()) // printed by the roles, once per block
      continue;
    if (std::optional<Call> call = findCall(op))
      op = printCall(*call);
    else if (auto map = dyn_cast<device::MapOp>(op))
      op = printMaps(map);
    else if (auto reduce = dyn_cast<device::ReduceOp>(op))
      op = printReduce(reduce);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      op = printLoops(loop);
    else
      printStatement(*op);
  }
}

void KernelPrinter::printStatement(Operation &op) {
  llvm::TypeSwitch<Operation *>(&op)
      .Case<scf::ForOp>([&](auto loop) { printLoops(loop); })
      .Case<scf::IfOp>([&](auto branch) { printIf(branch); })
      .Case<memref::AllocaOp>([&](auto local) { printLocal(local); })
      .Case<memref::LoadOp>(
          [&](auto load) { define(op, {element(load.getMemref(), load.getIndices())}, /*mayInline=*/false); })
      .Case<memref::StoreOp>([&](auto store) {
        write(element(store.getMemref(), store.getIndices()) + " = " + value(store.getValue()).text + ";");
      })
      .Case<device::LoadOp>([&](auto load) {
        std::string text = access(load.getArray(), load.getOffset());
        // Results of earlier launches are constant here. Tell the compiler, so that these loads
        // need not wait for other memory accesses.
        if (launch.sharedBytes && launch.awaits(cast<BlockArgument>(load.getArray()).getArgNumber())) {
          helpers.insert("read_awaited");
          text = "read_awaited(" + names.of(load.getArray()) + ", " + value(load.getOffset()).text + ")";
        }
        bool truth = load.getResult().getType().isInteger(1);
        define(op, truth ? Expr{text + " != 0", Expr::equality} : Expr{text});
      })
      .Case<device::StoreOp>([&](auto store) {
        if (store.getPairs())
          return printPair(store);
        write(access(store.getArray(), store.getOffset()) + " = " + value(store.getValue()).text + ";");
      })
      .Case<device::SignalOp>([&](auto signal) {
        helpers.insert("signal");
        write("signal(" + names.of(signal.getArray()) + " + " + value(signal.getOffset()).at(Expr::sum + 1) + ");");
      })
      .Case<device::SignalsOp>([&](auto signals) {
        helpers.insert("signals");
        define(op,
               {"signals(" + names.of(signals.getArray()) + " + " + value(signals.getOffset()).at(Expr::sum + 1) + ")"},
               /*mayInline=*/false);
      })
      .Case<device::StagesOp>([&](auto stages) { printStages(stages); })
      .Case<device::RaiseOp>([&](auto raise) {
        helpers.insert("raise_flag");
        write("raise_flag(" + names.of(raise.getArray()) + ");");
      })
      .Case<device::ExitIfOp>([&](auto exit) { write("if (" + value(exit.getCondition()).text + ") return;"); })
      .Case<device::LoadRunOp>([&](auto load) {
        std::string name = load.getStep() ? "load_runs" : "load_run";
        helpers.insert(name);
        if (load.getAligned())
          helpers.insert(name = load.getStep() ? "load_aligned_runs" : "load_aligned");
        if (load.getStep())
          name += "<" + std::to_string(*load.getStep()) + ">";
        write(name + "(" + element(load.getBuffer(), load.getAt()) + ", " + runAt(load) + ";");
      })
      .Case<device::StoreRunOp>([&](auto store) {
        helpers.insert("store_run");
        if (store.getAligned())
          helpers.insert("store_aligned");
        write((store.getAligned() ? "store_aligned(" : "store_run(") + element(store.getBuffer(), store.getAt()) +
              ", " + runAt(store) + ";");
      })
      .Case<device::ExchangeOp>([&](auto exchange) {
        std::string lanes = "0xffffffff";
        if (exchange.getGroup()) {
          helpers.insert("group_of");
          lanes = "group_of<" + std::to_string(*exchange.getGroup()) + ">()";
        }
        define(op,
               {"__shfl_xor_sync(" + lanes + ", " + value(exchange.getOperand()).text + ", " +
                std::to_string(exchange.getMask()) + ")"},
               /*mayInline=*/false);
      })
      .Case<device::Exp2Op>([&](auto exp) {
        helpers.insert("exp2_approximate");
        define(op, {"exp2_approximate(" + value(exp.getOperand()).text + ")"});
      })
      .Case<device::HalfFromBitsOp>([&](auto half) {
        helpers.insert("half_from_bits");
        define(op, {"half_from_bits(" + value(half.getOperand()).text + ")"});
      })
      .Case<device::ReciprocalOp>([&](device::ReciprocalOp reciprocal) {
        const char *helper = reciprocal.getSubnormals() ? "reciprocal_near" : "reciprocal_approximate";
        helpers.insert(helper);
        define(op, {helper + ("(" + value(reciprocal.getOperand()).text + ")")});
      })
      .Case<device::OpaqueOp>([&](auto opaque) {
        helpers.insert("opaque");
        define(op, {"opaque(" + value(opaque.getOperand()).text + ")"}, /*mayInline=*/false);
      })
      .Case<device::ThreadOp>([&](auto) { define(op, {"int64_t(threadIdx.x)"}); })
      .Case<device::BlockOp>([&](auto) { define(op, {"int64_t(blockIdx.x)"}); })
      .Case<device::SymbolOp>([&](auto symbol) { define(op, symbolText(symbol)); })
      .Default([&](Operation *) {
        if (!printTile(&op))
          printScalar(op);
      });
}

/// Names the constant of a comparison that the program names.
void KernelPrinter::nameBound(Operation &op, std::vector<Expr> &operands) {
  if (!isa<arith::CmpFOp>(op))
    return;
  std::string name = getNameInProgram(op.getResult(0));
  const char *bound = name == "is_large" ? "LARGE_PIVOT" : name == "is_near" ? "RESCALE_LIMIT" : nullptr;
  for (auto [operand, text] : llvm::zip(op.getOperands(), operands))
    if (auto constant = operand.getDefiningOp<arith::ConstantOp>(); constant && bound)
      text = {constantText(constant, bound), Expr::primary};
}

void KernelPrinter::printScalar(Operation &op) {
  std::vector<Expr> operands;
  for (Value operand : op.getOperands())
    operands.push_back(value(operand));
  nameBound(op, operands);
  auto expr = printOperation(&op, operands, helpers.names);
  if (!expr) {
    if (error.empty())
      error = "no CUDA C++ for '" + op.getName().getStringRef().str() + "'";
    return;
  }
  define(op, *expr);
}

std::string KernelPrinter::access(Value array, Value offset) {
  return names.of(array) + "[" + value(offset).text + "]";
}

/// Returns the start, the stride and the number of valid elements of a run.
template <typename OpT> std::string KernelPrinter::runAt(OpT op) {
  std::string stride = op.getAligned() ? "" : value(op.getStride()).text + ", ";
  return names.of(op.getArray()) + " + " + value(op.getOffset()).at(Expr::sum + 1) + ", " + stride +
         value(op.getCount()).text + ")";
}

std::string KernelPrinter::element(Value local, OperandRange indices) {
  std::string text = value(local).text;
  for (Value index : indices)
    text += "[" + value(index).text + "]";
  return text;
}

void KernelPrinter::printLocal(memref::AllocaOp local) {
  std::string name = freshState(wishFor(local.getResult(), "local"));
  std::string text = getValueType(local.getType().getElementType()).str() + " " + name;
  for (int64_t extent : local.getType().getShape()) // C++ has no empty arrays
    text += "[" + std::to_string(std::max<int64_t>(extent, 1)) + "]";
  write(text + ";");
  values[local.getResult()] = {name};
}

void KernelPrinter::assign(ValueRange targets, ValueRange sources) {
  std::vector<std::string> changed, texts;
  for (Value target : targets)
    changed.push_back(values[target].text);
  for (auto [k, source] : llvm::enumerate(sources)) {
    if (isCopiedConstant(source)) {
      texts.emplace_back();
      continue;
    }
    Expr expr = value(source);
    // Whether an assignment before this one changes the source.
    bool isVariable = false;
    for (size_t before = 0; before != k; ++before)
      isVariable |= changed[before] == expr.text && texts[before] != changed[before];
    bool isConstant = source.getDefiningOp<arith::ConstantOp>() || values.count(source);
    if (isVariable || !isConstant) {
      if (isFragment(source)) {
        std::string name = fresh("saved");
        declareRegisters(source, name);
        copyFragment(name, expr.text);
        texts.push_back(name);
        continue;
      }
      std::string name = fresh(wishFor(source, "next"));
      write("const " + getValueType(source.getType()).str() + " " + name + " = " + expr.text + ";");
      expr = {name};
    }
    texts.push_back(expr.text);
  }
  for (size_t k = 0; k != texts.size(); ++k)
    if (texts[k] != changed[k]) {
      if (texts[k].empty())
        copyFragment(changed[k], sources[k]);
      else if (isFragment(targets[k]))
        copyFragment(changed[k], texts[k]);
      else
        write(changed[k] + " = " + texts[k] + ";");
    }
}

void KernelPrinter::printIf(scf::IfOp branch) {
  if (!branch.thenBlock()->getOps<device::SignalsOp>().empty())
    writeComment("Stream-K: two blocks share the tiles of these rows. The first stores its partial states in the "
                 "workspace; the second merges them, or computes all tiles if they are not there yet.");
  for (Value result : branch.getResults())
    if (!values.count(result) && isFragment(result)) {
      declareFragment(result, "result");
    } else if (!values.count(result)) {
      std::string name = fresh(wishFor(result, "result"));
      writeVariable(getValueType(result.getType()).str() + " " + name);
      values[result] = {name};
    }
  auto side = [&](Block &block, scf::YieldOp yield) {
    printBlock(block);
    assign(branch.getResults(), yield.getOperands());
  };
  size_t mark = body.size();
  open("if (" + value(branch.getCondition()).text + ") {");
  side(*branch.thenBlock(), branch.thenYield());
  bool needed = branch.elseBlock() &&
                (!llvm::hasSingleElement(*branch.elseBlock()) ||
                 llvm::any_of(llvm::zip(branch.getResults(), branch.elseYield().getOperands()), [&](auto pair) {
                   auto [result, source] = pair;
                   auto known = values.find(source);
                   return known == values.end() || known->second.text != values[result].text;
                 }));
  if (needed) {
    close("} else {");
    open("");
    side(*branch.elseBlock(), branch.elseYield());
  }
  close();
  dropBraces(mark);
}

/// Prints the stages of a persistent kernel, one after the other.
void KernelPrinter::printStages(device::StagesOp op) {
  helpers.insert({"next_turn", "await_turns", "signals", "end_turn", "low_word", "min_int"});
  const std::string &counters = names.of(op.getArray());
  std::string done = counters + " + " + std::to_string(device::kTurns - 1),
              most = std::to_string(static_cast<int64_t>(op.getResidents()));
  std::vector<Expr> counts;
  std::vector<std::string> ends; // of the turns of each stage
  for (Value count : op.getCounts()) {
    counts.push_back(value(count));
    std::string end = fresh("end");
    writeConstant("int64_t", end + " = " + (ends.empty() ? "" : ends.back() + " + ") + "min_int(" + counts.back().text +
                                 ", " + most + ")");
    ends.push_back(end);
  }
  pushScope();
  std::string number = fresh("turn");
  open("for (int64_t " + number + "; (" + number + " = next_turn(" + counters + ")) < " + ends.back() + ";) {",
       /*hasScope=*/true);
  for (auto [k, stage] : llvm::enumerate(op.getStages())) {
    std::string condition = "if (" + number + " < " + ends[k] + ") {", first = number + (k ? " - " + ends[k - 1] : "");
    if (k == 0) {
      open(condition);
    } else {
      close(k + 1 < ends.size() ? "} else " + condition : "} else {");
      open("");
      write("await_turns(" + done + ", " + ends[k - 1] + ");");
    }
    pushScope();
    std::string at = fresh("at");
    open("for (int64_t " + at + " = " + first + "; " + at + " < " + counts[k].at(Expr::relation + 1) + "; " + at +
             " += " + most + ") {",
         /*hasScope=*/true);
    std::string block = fresh(wishFor(stage.getArgument(0), "block"));
    writeConstant("int64_t", block + " = low_word(" + at + ")");
    values[stage.getArgument(0)] = {block};
    printBlock(stage.front());
    close();
  }
  close();
  write("end_turn(" + done + ");");
  close();
}

/// Returns the heading of a kernel among several: the arrays that it writes.
std::string KernelPrinter::printHeading() {
  if (llvm::hasSingleElement(program.getBody().getOps<device::KernelOp>()))
    return "";
  SmallVector<std::string> outputs;
  for (BlockArgument array : program.getBody().getArguments()) {
    auto writes = [&](Operation *user) {
      return isa<device::StoreOp, device::StoreRunOp, device::StoreTileOp>(user) && kernel->isAncestor(user);
    };
    if (llvm::any_of(array.getUsers(), writes))
      outputs.push_back(names.of(array.getArgNumber()));
  }
  std::string text;
  addComment(text, launch.name + ", launch " + std::to_string(launch.number) + ": " + llvm::join(outputs, ", ") +
                       (launch.overlapsPrevious ? "; overlaps with the previous launch" : "") + ".");
  return text;
}

std::string KernelPrinter::printSignature() {
  std::vector<std::string> words;
  auto typeOf = [&](unsigned number) {
    return cast<ArrayType>(program.getBody().getArgument(number).getType()).getElementType();
  };
  for (unsigned number : launch.parameters.arrays)
    words.push_back((launch.writes(number) ? "" : "const ") + getStorageType(typeOf(number)).str() +
                    (launch.isNoAlias(number) ? " *__restrict__ " : " *") + names.of(number));
  for (const gpu::TensorMap &map : launch.parameters.maps)
    words.push_back("const __grid_constant__ CUtensorMap " + map.name);
  for (unsigned number : launch.parameters.scalars)
    words.push_back(getValueType(typeOf(number)).str() + " " + names.of(number));
  for (const std::string &symbol : launch.parameters.symbols)
    words.push_back("int64_t " + names.of(symbol));
  std::string cluster =
      kernel.getCluster() ? "__cluster_dims__(" + std::to_string(*kernel.getCluster()) + ", 1, 1) " : "";
  std::string line = "__global__ void " + cluster + "__launch_bounds__(" + std::to_string(launch.threads) +
                     (launch.sharedBytes ? ", " + std::to_string(launch.residents) + ") " : ") ") + launch.name + "(";
  return wrapLine(line + llvm::join(words, ", ") + ") {", 4) + "\n";
}

llvm::Expected<std::vector<KernelText>> printKernels(device::ProgramOp program, const Names &names, Helpers &helpers) {
  std::vector<KernelText> texts;
  for (auto kernel : program.getBody().getOps<device::KernelOp>()) {
    FragmentStorage storage(kernel);
    // Merged loops need no functions for their common steps.
    for (bool merges : {true, false}) {
      std::vector<Outline> outlines;
      if (startsBlocks(kernel))
        outlines = findOutlines(kernel, storage, /*acrossPhases=*/!merges);
      Helpers needed = helpers;
      std::string functions;
      for (size_t k = outlines.size(); k-- > 0;) {
        auto function = KernelPrinter(kernel, names, needed, storage, outlines, merges, k).printFunction();
        if (!function)
          return function.takeError();
        functions += *function + "\n";
      }
      KernelPrinter printer(kernel, names, needed, storage, outlines, merges);
      auto text = printer.print();
      if (!text)
        return text.takeError();
      if (!printer.hasMergedAll())
        continue;
      helpers = std::move(needed);
      text->text = functions + text->text;
      texts.push_back(std::move(*text));
      break;
    }
  }
  return texts;
}

} // namespace moa::cuda
