//===- Names.cpp - C++ names and types ------------------------------------===//
#include "lib/Target/CNames.h"
#include "lib/Target/CUDA/Cuda.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::cuda {

std::string getIdentifier(llvm::StringRef wish) {
  std::string name;
  for (char c : wish)
    name += llvm::isAlnum(c) ? c : '_';
  if (name.empty() || llvm::isDigit(name.front()))
    name = "v" + name;
  if (isReservedWord(name))
    name += "_";
  return name;
}

llvm::StringRef getValueType(Type type) {
  if (type.isF64())
    return "double";
  if (type.isF32())
    return "float";
  if (type.isBF16())
    return "__nv_bfloat16";
  if (type.isF16())
    return "__half";
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(8))
    return "int8_t";
  if (type.isInteger(16))
    return "int16_t";
  if (type.isInteger(32))
    return "int32_t";
  return "int64_t";
}

llvm::StringRef getStorageType(Type element) {
  return element.isInteger(1) ? "uint8_t" : getValueType(element);
}

std::string Names::choose(llvm::StringRef wish) {
  std::string name = getIdentifier(wish), result = name;
  for (unsigned k = 2; !taken.insert(result).second; ++k)
    result = name + "_" + std::to_string(k);
  return result;
}

Names::Names(device::ProgramOp program) {
  std::vector<std::string> plain;
  for (ArrayAttr list : {program.getArgNames(), program.getResultNames()})
    for (auto name : list.getAsValueRange<StringAttr>())
      plain.push_back(name.str());
  for (const std::string &name : plain)
    arguments.push_back(choose(name));
  for (auto symbol : program.getSymbols().getAsValueRange<StringAttr>())
    symbols[symbol.str()] = choose(symbol);
  for (auto [k, name] : llvm::enumerate(plain)) {
    auto type = cast<ArrayType>(program.getBody().getArgument(k).getType());
    for (unsigned axis = 0; axis < type.getRank(); ++axis) {
      std::string stride = name + ".s" + std::to_string(axis);
      symbols[stride] = choose(stride);
    }
  }
}

std::string Names::expression(const SymExpr &expr) const {
  return expression(expr, [&](const std::string &name) { return of(name); });
}

static std::string printAtom(const SymExpr::Atom &atom,
                             llvm::function_ref<std::string(const std::string &)> name) {
  if (atom.kind == SymExpr::Atom::Kind::Symbol)
    return name(atom.text);
  bool isMod = atom.kind == SymExpr::Atom::Kind::Mod;
  return (isMod ? "floor_mod<int64_t>(" : "floor_div<int64_t>(") +
         Names::expression(atom.lhs, name) + ", " + Names::expression(atom.rhs, name) + ")";
}

std::string
Names::expression(const SymExpr &expr,
                  llvm::function_ref<std::string(const std::string &)> name) {
  if (expr.isZero())
    return "0";
  std::string text;
  for (const auto &[monomial, coefficient] : expr.getTerms()) {
    std::string term;
    for (const auto &[atom, power] : monomial)
      for (unsigned k = 0; k < power; ++k)
        term += (term.empty() ? "" : " * ") + printAtom(*atom, name);
    uint64_t magnitude = coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
    if (term.empty())
      term = std::to_string(magnitude);
    else if (magnitude != 1)
      term = std::to_string(magnitude) + " * " + term;
    if (text.empty())
      text = (coefficient < 0 ? "-" : "") + term;
    else
      text += (coefficient < 0 ? " - " : " + ") + term;
  }
  return text;
}

} // namespace moa::cuda
