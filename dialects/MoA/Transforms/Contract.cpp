//===- Contract.cpp - helpers of the contract passes ----------------------===//

#include "dialects/MoA/Transforms/Contract.h"

using namespace mlir;

namespace moa {

DeclaredSymbols::DeclaredSymbols(ArrayAttr symbols) {
  for (auto name : symbols.getAsValueRange<StringAttr>())
    names.insert(name);
}

LogicalResult DeclaredSymbols::check(Operation *op, StringRef text, StringRef rule) const {
  std::string error;
  std::optional<SymExpr> expr = SymExpr::parse(text, &error);
  if (!expr)
    return op->emitOpError("expects an integer expression (") << rule << "), but got '" << text << "': " << error;
  std::set<std::string> used;
  expr->collectSymbols(used);
  for (const std::string &name : used)
    if (!names.contains(name))
      return op->emitOpError("expects declared symbols (") << rule << "), but got '" << name << "' in '" << text << "'";
  return success();
}

LogicalResult DeclaredSymbols::check(Operation *op, ArrayAttr texts, StringRef rule) const {
  for (auto text : texts.getAsValueRange<StringAttr>())
    if (failed(check(op, text, rule)))
      return failure();
  return success();
}

LogicalResult DeclaredSymbols::check(Operation *op, Type type, StringRef rule) const {
  if (auto array = dyn_cast<ArrayType>(type))
    for (StringAttr extent : array.getShape())
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
  if (failed(symbols.check(kernel, text.take_front(begin).trim(), "K3")))
    return failure();
  return symbols.check(kernel, text.drop_front(end).trim(), "K3");
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
