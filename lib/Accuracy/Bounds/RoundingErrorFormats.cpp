//===- RoundingErrorFormats.cpp - formats of operands ---------------------===//
#include "lib/Accuracy/Bounds/RoundingErrorFormats.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace moa;

static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// Name, relative error, error relative to the largest of the row, absolute error, largest magnitude,
// error per accumulated term, values that flush to 0 (OperandFormat).
// A scale is max|row| divided by the largest value of the format, in f32.
// Dividing by it and multiplying by it again takes three roundings of 2⁻²⁴. The factor 1 + 2⁻¹⁵
// covers them.
static const OperandFormat formats[] = {
    {"f64", 0, 0, 0, kNoLimit, 0},
    {"f32", 0x1p-24, 0, 0, kNoLimit, 0},
    {"tf32x3", 0x1p-21, 0, 0, kNoLimit, 0x1p-25},
    {"tf32", 0x1p-11, 0, 0, kNoLimit, 0x1p-25},
    {"bf16", 0x1p-8, 0, 0, kNoLimit, 0x1p-26, 1},
    {"fp16", 0x1p-11, 0, 0x1p-25, 65504, 0x1p-26},
    // x·2^e in fp16, where the largest |x·2^e| of a head is below 2^15, and at least 2^14 unless e
    // = 63; e ≥ −63.
    {"fp16p", 0x1p-11, 0x1p-39, 0x1p-88, 0x1p77, 0x1p-26},
    // Sums of two floats. Products omit the product of the two small parts, and each term is
    // accumulated three times.
    {"fp16x2", 0x1p-21, 0x1.01p-39, 0x1p-87, 0x1p77, 0x1.8p-25},
    {"bf16x2", 0x1p-15, 0, 0, kNoLimit, 0x1.8p-25, 2},
    {"int8", 0, (1 + 0x1p-15) / 254, 0, kNoLimit, 0},
    {"e4m3", 0x1p-4 + 0x1p-20, (1 + 0x1p-15) * 0x1p-10 / 448, 0, kNoLimit, 0x1p-18},
};

const OperandFormat *moa::lookupOperandFormat(llvm::StringRef name) {
  auto it = llvm::find_if(formats, [&](const auto &format) { return format.name == name; });
  return it == std::end(formats) ? nullptr : it;
}

const OperandFormat *moa::getFormatOf(mlir::Type type) {
  if (type.isF64())
    return lookupOperandFormat("f64");
  if (type.isF32())
    return lookupOperandFormat("f32");
  if (type.isBF16())
    return lookupOperandFormat("bf16");
  if (type.isF16())
    return lookupOperandFormat("fp16");
  return nullptr;
}

bool moa::holdsExactly(const OperandFormat &format, mlir::Type type) {
  const OperandFormat *own = getFormatOf(type);
  if (own == &format || format.name == "f64")
    return true;
  if (type.isBF16())
    return format.name == "f32" || format.name == "tf32" || format.name == "tf32x3";
  if (type.isF16()) // 11 bits and a narrow range of exponents
    return format.name == "f32" || format.name == "tf32" || format.name == "tf32x3";
  return false;
}

llvm::Expected<FormatAssignment> moa::parseFormats(llvm::StringRef text) {
  FormatAssignment assignment;
  llvm::SmallVector<llvm::StringRef> entries;
  text.split(entries, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef entry : entries) {
    auto [operand, name] = entry.trim().split(':');
    const OperandFormat *format = lookupOperandFormat(name.trim());
    if (!format)
      return llvm::createStringError("'" + entry.str() + "' names no format; write operand:format with one of " +
                                     llvm::join(llvm::map_range(formats, [](const auto &f) { return f.name; }), ", "));
    if (!assignment.emplace(operand.trim().str(), format).second)
      return llvm::createStringError("'" + operand.str() + "' has two formats");
  }
  return assignment;
}
