//===- Nominal.cpp - counts with nominal sizes ----------------------------===//
#include "lib/Support/Nominal.h"

using namespace moa;

double moa::nominal(const SymExpr &count) {
  if (auto number = count.getConstant())
    return double(*number);
  auto value = count.evaluate([](llvm::StringRef) { return std::optional<int64_t>(kNominalSize); });
  return !value ? 0x1p63 : *value > 0 ? double(*value) : double(kNominalSize);
}
