//===- LoopPrinter.cpp - loops, and several loops as one ------------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::cuda {

bool KernelPrinter::mustUnroll(scf::ForOp loop) {
  bool found = false;
  loop.walk([&](Operation *op) {
    for (Value index : op->getOperands())
      found |= isa<memref::LoadOp, memref::StoreOp, device::LoadRunOp, device::StoreRunOp>(op) &&
               index == loop.getInductionVar();
  });
  return found;
}

void KernelPrinter::printFor(scf::ForOp loop) {
  SmallVector<Value> fragments, initial;
  for (auto [arg, use] : llvm::zip(loop.getRegionIterArgs(), loop.getInitArgsMutable())) {
    Value init = use.get();
    if (isFragment(arg)) {
      declareFragment(arg, "state");
      if (isNeverRead(use))
        continue;
      fragments.push_back(arg);
      initial.push_back(init);
      continue;
    }
    std::string name = freshState(wishFor(arg, "state"));
    writeVariable(getValueType(arg.getType()).str() + " " + name + " = " + value(init).text);
    values[arg] = {name};
  }
  assign(fragments, initial);
  pushScope();
  std::string i = fresh(wishFor(loop.getInductionVar(), "i"));
  open(std::string(mustUnroll(loop) ? "UNROLL " : "") + "for (int64_t " + i + " = " + value(loop.getLowerBound()).text +
           "; " + i + " < " + value(loop.getUpperBound()).at(Expr::relation + 1) + "; ++" + i + ") {",
       /*hasScope=*/true);
  values[loop.getInductionVar()] = {i};
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  aliasConditional(loop, yield);
  printBlock(*loop.getBody());
  assign(loop.getRegionIterArgs(), yield.getOperands());
  close();
  for (auto [result, arg] : llvm::zip(loop.getResults(), loop.getRegionIterArgs()))
    values[result] = Expr(values[arg]); // copy first: the map may grow
}

void KernelPrinter::aliasConditional(scf::ForOp loop, scf::YieldOp yield) {
  for (auto [k, operand] : llvm::enumerate(yield.getOperands())) {
    auto branch = operand.getDefiningOp<scf::IfOp>();
    if (!branch || branch->getBlock() != loop.getBody() || !operand.hasOneUse())
      continue;
    unsigned number = cast<OpResult>(operand).getResultNumber();
    BlockArgument arg = loop.getRegionIterArg(k);
    bool readLater = llvm::any_of(arg.getUsers(), [&](Operation *user) {
      Operation *here = loop.getBody()->findAncestorOpInBlock(*user);
      return here && branch->isBeforeInBlock(here) && !isa<scf::YieldOp>(here);
    });
    if (!readLater && branch.elseYield().getOperand(number) == arg)
      values[operand] = Expr(values[arg]);
  }
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

Operation *KernelPrinter::printLoops(scf::ForOp first) {
  SmallVector<scf::ForOp> loops = findPhases(first, storage);
  if (!merges || recording || loops.size() == 1 || llvm::any_of(loops, mustUnroll)) {
    printFor(first);
    return first;
  }
  if (!printPhases(loops))
    mergedAll = false;
  return loops.back();
}

/// Returns the statements of a loop's body, printed at a depth, and the arrays that it declares.
std::vector<Statement> KernelPrinter::record(scf::ForOp loop, size_t at, Scope &scope) {
  std::string outer = std::exchange(body, "");
  size_t outerDepth = std::exchange(depth, at);
  recording.emplace();
  recording->depth = depth;
  joinEnd = 0;
  pushScope();
  scopes.back().start = 0;
  scopes.back().inner = phaseNames; // the arrays of all phases are declared together
  auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
  aliasConditional(loop, yield);
  printBlock(*loop.getBody());
  assign(loop.getRegionIterArgs(), yield.getOperands());
  scope.arrays = std::exchange(scopes.back().arrays, {});
  phaseNames = scopes.back().inner;
  scopes.back().start.reset();
  popScope();
  std::vector<Statement> statements;
  for (auto [k, entry] : llvm::enumerate(recording->statements)) {
    auto [start, statement] = entry;
    size_t end = k + 1 == recording->statements.size() ? body.size() : recording->statements[k + 1].first;
    if (statement.kind == Statement::Lines)
      statement.text = body.substr(start, end - start);
    statements.push_back(statement);
  }
  recording.reset();
  body = std::move(outer);
  depth = outerDepth;
  joinEnd = 0;
  return statements;
}

/// Returns the types and declarators of all arrays, or nothing if a name has two meanings.
std::optional<std::vector<std::pair<std::string, std::string>>>
KernelPrinter::uniteArrays(ArrayRef<Scope> parts, ArrayRef<Statement> statements) {
  std::vector<std::pair<std::string, std::string>> arrays;
  std::map<std::string, std::string> types;
  for (const Statement &statement : statements)
    if (statement.kind == Statement::Constant)
      types[StringRef(statement.text).split(" = ").first.str()] = "const";
  for (const Scope &part : parts)
    for (const auto &[type, list] : part.arrays) {
      SmallVector<StringRef> declarators;
      StringRef(list).split(declarators, ", ");
      for (StringRef declarator : declarators) {
        auto [name, extent] = declarator.split('[');
        std::string whole = type + "[" + extent.str();
        auto [known, isNew] = types.try_emplace(name.str(), whole);
        if (known->second != whole)
          return std::nullopt;
        if (isNew)
          arrays.emplace_back(type, declarator.str());
      }
    }
  return arrays;
}

void KernelPrinter::writeStatements(ArrayRef<Statement> statements, size_t recorded) {
  for (const Statement &statement : statements) {
    if (statement.kind == Statement::Constant) {
      writeConstant(statement.type, statement.text);
      continue;
    }
    if (statement.kind == Statement::Comment) {
      writeComment(statement.text);
      continue;
    }
    SmallVector<StringRef> lines;
    StringRef(statement.text).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (StringRef line : lines)
      body += line.drop_front(2 * (recorded - depth)).str() + "\n";
    ++written;
  }
}

/// Returns the position of the parenthesis that closes the first one that `text` does not open.
static size_t findClosing(StringRef text) {
  int depth = 1;
  for (auto [k, c] : llvm::enumerate(text)) {
    depth += (c == '(') - (c == ')');
    if (depth == 0)
      return k;
  }
  return StringRef::npos;
}

/// Prints a statement after a condition, without braces: on the same line or, if both conditions
/// are combined, on the next one. Returns false if it does not fit or is a conditional that cannot
/// be combined with this one.
bool KernelPrinter::writeUnder(const std::string &head, const Statement &statement, size_t recorded) {
  StringRef text = StringRef(statement.text).drop_front(2 * recorded);
  std::string indent(2 * recorded, ' '), first = head, rest = text.str();
  // Combine two conditions.
  if (text.consume_front("if (")) {
    size_t end = findClosing(text);
    if (text.count('\n') != 1 || text.contains("||") || end == StringRef::npos)
      return false;
    first = StringRef(head).drop_back(2).str() + " && " + text.take_front(end + 1).str();
    rest = text.drop_front(end + 1).str(); // a blank, the statement, and the end of its line
    if (2 * depth + rest.size() > 120)
      return false;
    if (2 * depth + first.size() + rest.size() - 1 > 120)
      rest = "\n" + indent + " " + rest;
  }
  if (statement.kind != Statement::Lines || 2 * depth + first.size() + rest.find('\n') > 120)
    return false;
  Statement whole = statement;
  whole.text = indent + first + rest;
  writeStatements(whole, recorded);
  return true;
}

/// Prints an enumeration of the phases, after the names of their loops, and returns its constants.
std::vector<std::string> KernelPrinter::declarePhases(ArrayRef<scf::ForOp> loops) {
  std::vector<std::string> labels;
  for (auto [k, first] : llvm::enumerate(loops)) {
    scf::ForOp loop = first;
    auto named = dyn_cast<NameLoc>(loop.getLoc());
    labels.push_back(fresh(named ? StringRef(named.getName().str()).upper() : "PHASE_" + std::to_string(k)));
  }
  std::string text = "enum { " + llvm::join(labels, ", ") + " };";
  if (labels == std::vector<std::string>{"FIRST", "MASKED", "FULL"})
    text += " // the first tile, partial tiles, which need the mask, and full tiles";
  write(text);
  return labels;
}

/// Prints loops over consecutive ranges as one loop with several phases. Returns false if they have
/// little in common; the text is then invalid.
bool KernelPrinter::printPhases(llvm::MutableArrayRef<scf::ForOp> loops) {
  // Scalars between the loops do not depend on them.
  for (Operation *op = loops.front(); op != loops.back(); op = op->getNextNode())
    if (!isa<scf::ForOp>(op) && !isWrittenInPlace(*op, storage))
      printStatement(*op);
  for (scf::ForOp loop : loops)
    for (Value argument : loop.getRegionIterArgs())
      declareFragment(argument, "state");
  SmallVector<Value> targets, initial;
  for (auto [argument, use] : llvm::zip(loops[0].getRegionIterArgs(), loops[0].getInitArgsMutable()))
    if (!isNeverRead(use)) {
      targets.push_back(argument);
      initial.push_back(use.get());
    }
  assign(targets, initial);
  unsigned count = loops.size();
  std::vector<std::string> from, to;
  for (scf::ForOp loop : loops) {
    from.push_back(value(loop.getLowerBound()).text);
    to.push_back(value(loop.getUpperBound()).text);
  }
  bool isOneRange = llvm::equal(ArrayRef(from).drop_front(), ArrayRef(to).drop_back());
  std::string begin = fresh(isOneRange ? "phase_bounds" : "phase_begin"), end = isOneRange ? begin : fresh("phase_end");
  std::string phase = fresh("phase"), i;
  std::vector<std::string> labels = declarePhases(loops);
  pushScope();
  i = fresh(wishFor(loops[0].getInductionVar(), "i"));
  std::vector<std::vector<Statement>> bodies;
  std::vector<Scope> parts(count);
  phaseArrays.clear();
  phaseNames.clear();
  hasVariables = false;
  for (auto [loop, part] : llvm::zip(loops, parts)) {
    values[loop.getInductionVar()] = {i};
    bodies.push_back(record(loop, depth + 3, part));
    for (auto [result, argument] : llvm::zip(loop.getResults(), loop.getRegionIterArgs()))
      values[result] = Expr(values[argument]);
  }
  auto merged = hasVariables ? std::nullopt : mergePhases(bodies, phase, labels);
  auto arrays = merged ? uniteArrays(parts, *merged) : std::nullopt;
  if (!arrays)
    return false;
  if (isOneRange)
    from.push_back(to.back());
  else
    write("const int64_t " + end + "[] = {" + llvm::join(to, ", ") + "};");
  write("const int64_t " + begin + "[] = {" + llvm::join(from, ", ") + "};");
  write("UNROLL for (int " + phase + " = " + labels.front() + "; " + phase + " <= " + labels.back() + "; ++" + phase +
        ") // unrolled: conditions on it are constant");
  ++depth;
  open("for (int64_t " + i + " = " + begin + "[" + phase + "]; " + i + " < " + end + "[" + phase +
           (isOneRange ? " + 1" : "") + "]; ++" + i + ") {",
       /*hasScope=*/true);
  for (const auto &[type, declarator] : *arrays)
    declareArray(type, declarator);
  const unsigned all = (1u << count) - 1;
  size_t recorded = depth + 1;
  ArrayRef<Statement> rest = *merged;
  auto next = [&] {
    size_t length = 0;
    while (length < rest.size() && rest[length].phases == rest[0].phases)
      ++length;
    auto stretch = rest.take_front(length);
    rest = rest.drop_front(length);
    return stretch;
  };
  while (!rest.empty()) {
    ArrayRef<Statement> stretch = next();
    if (stretch[0].phases == all) {
      writeStatements(stretch, recorded);
      continue;
    }
    // A comment needs no condition.
    while (!stretch.empty() && stretch[0].kind == Statement::Comment) {
      writeStatements(stretch.take_front(), recorded);
      stretch = stretch.drop_front();
    }
    if (stretch.empty())
      continue;
    std::string head = "if (" + printCondition(stretch[0].phases, phase, labels) + ") ";
    bool hasElse = !rest.empty() && rest[0].phases == (all & ~stretch[0].phases);
    if (!hasElse && stretch.size() == 1 && writeUnder(head, stretch[0], recorded))
      continue;
    size_t mark = body.size();
    open(head + "{");
    writeStatements(stretch, recorded);
    if (hasElse) {
      close("} else {");
      open("");
      writeStatements(next(), recorded);
    }
    close();
    dropBraces(mark);
  }
  close();
  --depth;
  return true;
}

} // namespace moa::cuda
