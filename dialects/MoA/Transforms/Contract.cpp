//===- Contract.cpp - helpers of the contract passes ----------------------===//

#include "dialects/MoA/Transforms/Contract.h"

using namespace mlir;

namespace moa {

DeclaredSymbols::DeclaredSymbols(ArrayAttr symbols) {
  for (auto name : symbols.getAsValueRange<StringAttr>())
    names.insert(name);
}

LogicalResult DeclaredSymbols::check(Operation *op, const SymExpr &expr, StringRef rule) const {
  std::set<std::string> used;
  expr.collectSymbols(used);
  for (const std::string &name : used)
    if (!names.contains(name))
      return op->emitOpError("expects declared symbols (")
             << rule << "), but got '" << name << "' in '" << expr.str() << "'";
  return success();
}

LogicalResult DeclaredSymbols::check(Operation *op, ArrayAttr exprs, StringRef rule) const {
  for (const SymExpr &expr : exprs.getAsValueRange<ExprAttr>())
    if (failed(check(op, expr, rule)))
      return failure();
  return success();
}

LogicalResult DeclaredSymbols::check(Operation *op, Type type, StringRef rule) const {
  if (auto array = dyn_cast<ArrayType>(type))
    for (ExprAttr extent : array.getShape())
      if (failed(check(op, extent.getValue(), rule)))
        return failure();
  return success();
}

/// K3: a constraint compares two expressions over declared symbols.
static LogicalResult verifyConstraint(Operation *kernel, StringRef text, const DeclaredSymbols &symbols) {
  size_t begin = text.find_first_of("=!<>");
  size_t end = text.find_first_not_of("=!<>", begin);
  StringRef relation = text.slice(begin, end);
  if (begin == StringRef::npos || end == StringRef::npos ||
      !llvm::is_contained({"==", "!=", "<", "<=", ">", ">="}, relation))
    return kernel->emitOpError("expects comparisons as constraints (K3), but "
                               "got '")
           << text << "'";
  for (StringRef side : {text.take_front(begin).trim(), text.drop_front(end).trim()}) {
    std::string error;
    auto expr = SymExpr::parse(side, &error);
    if (!expr)
      return kernel->emitOpError("expects an integer expression (K3), but got '") << side << "': " << error;
    if (failed(symbols.check(kernel, *expr, "K3")))
      return failure();
  }
  return success();
}

LogicalResult verifyInterface(Operation *kernel, ArrayAttr symbols, ArrayAttr constraints, ArrayAttr argNames,
                              ArrayAttr resultNames, ArrayAttr resultTypes) {
  llvm::StringSet<> seen;
  for (ArrayAttr names : {symbols, argNames, resultNames})
    for (auto name : names.getAsValueRange<StringAttr>())
      if (!seen.insert(name).second)
        return kernel->emitOpError("expects distinct names (K1), but '") << name << "' is declared twice";
  DeclaredSymbols declared(symbols);
  for (BlockArgument argument : kernel->getRegion(0).getArguments())
    if (failed(declared.check(kernel, argument.getType(), "K2")))
      return failure();
  for (Type type : resultTypes.getAsValueRange<TypeAttr>())
    if (failed(declared.check(kernel, type, "K2")))
      return failure();
  for (auto text : constraints.getAsValueRange<StringAttr>())
    if (failed(verifyConstraint(kernel, text, declared)))
      return failure();
  return success();
}

} // namespace moa
