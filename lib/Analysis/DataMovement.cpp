//===- DataMovement.cpp - report as text and as JSON ----------------------===//
#include "lib/Analysis/DataMovement.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace moa;

SymExpr moa::detail::elementsOf(ArrayType type) {
  SymExpr product(1);
  for (unsigned k = 0; k < type.getRank(); ++k)
    product = product * type.getExtent(k);
  return product;
}

DataMovementReport moa::analyzeDataMovement(KernelOp kernel) {
  // Count on a copy after CSE, so that equal arrays are one array.
  OwningOpRef<KernelOp> copy = kernel.clone();
  IRRewriter rewriter(kernel.getContext());
  DominanceInfo dominance(*copy);
  eliminateCommonSubExpressions(rewriter, dominance, *copy);

  DataMovementReport report;
  report.kernel = kernel.getSymName().str();
  report.inputs = moa::detail::countReads(*copy);
  report.intermediates = moa::detail::countIntermediates(*copy);
  for (auto [name, type] : llvm::zip(kernel.getResultNames().getAsValueRange<StringAttr>(),
                                     kernel.getResultTypes().getAsValueRange<TypeAttr>())) {
    auto array = cast<ArrayType>(type);
    report.outputs.push_back({name.str(), array.getElementType(), moa::detail::elementsOf(array), true, ""});
  }
  return report;
}

//===----------------------------------------------------------------------===//
// Sums and numbers
//===----------------------------------------------------------------------===//

static SymExpr sum(const std::vector<ArrayCount> &arrays) {
  SymExpr total;
  for (const ArrayCount &array : arrays)
    total = total + array.elements;
  return total;
}

SymExpr DataMovementReport::inputElements() const { return sum(inputs); }
SymExpr DataMovementReport::outputElements() const { return sum(outputs); }

SymExpr DataMovementReport::classicalElements() const {
  SymExpr total = inputElements();
  for (const IntermediateArray &array : intermediates)
    total = total + array.elements;
  return total;
}

static std::optional<int64_t> valueOf(const SymExpr &expr, const SymbolValues &symbols) {
  return expr.evaluate([&](StringRef name) -> std::optional<int64_t> {
    auto it = symbols.find(name.str());
    return it == symbols.end() ? std::nullopt : std::optional<int64_t>(it->second);
  });
}

/// Returns the bytes of one element in memory; booleans take one.
static int64_t bytesOf(Type type) { return isa<IndexType>(type) ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8; }

static std::optional<int64_t> bytesOf(const std::vector<ArrayCount> &arrays, const SymbolValues &symbols) {
  int64_t total = 0;
  for (const ArrayCount &array : arrays) {
    auto elements = valueOf(array.elements, symbols);
    if (!elements)
      return std::nullopt;
    total += *elements * bytesOf(array.elementType);
  }
  return total;
}

std::optional<DataMovementReport::Numbers> DataMovementReport::evaluate(const SymbolValues &symbols) const {
  auto in = valueOf(inputElements(), symbols), out = valueOf(outputElements(), symbols);
  auto classical = valueOf(classicalElements(), symbols);
  auto inBytes = bytesOf(inputs, symbols), outBytes = bytesOf(outputs, symbols);
  if (!in || !out || !classical || !inBytes || !outBytes)
    return std::nullopt;
  Numbers numbers{*in, *out, *classical, *inBytes, *outBytes, 0, 0};
  if (*in)
    numbers.ratioWithoutOutput = double(*classical) / double(*in);
  if (*in + *out)
    numbers.ratioWithOutput = double(*classical + *out) / double(*in + *out);
  return numbers;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

static llvm::json::Object toObject(const SymExpr &elements, const SymbolValues *symbols) {
  llvm::json::Object object{{"elements", elements.str()}};
  if (symbols)
    if (auto value = valueOf(elements, *symbols))
      object["value"] = *value;
  return object;
}

static llvm::json::Array toArray(const std::vector<ArrayCount> &arrays, const SymbolValues *symbols) {
  llvm::json::Array list;
  for (const ArrayCount &array : arrays) {
    llvm::json::Object object = toObject(array.elements, symbols);
    std::string type;
    llvm::raw_string_ostream(type) << array.elementType;
    object["name"] = array.name;
    object["type"] = type;
    object["exact"] = array.exact;
    if (!array.note.empty())
      object["note"] = array.note;
    list.push_back(std::move(object));
  }
  return list;
}

llvm::json::Value DataMovementReport::toJSON(const SymbolValues *symbols) const {
  llvm::json::Array arrays;
  for (const IntermediateArray &array : intermediates) {
    llvm::json::Object object = toObject(array.elements, symbols);
    object["kind"] = array.kind;
    if (!array.name.empty())
      object["name"] = array.name;
    if (array.line)
      object["line"] = array.line;
    arrays.push_back(std::move(object));
  }
  llvm::json::Object report{{"kernel", kernel},
                            {"inputs", toArray(inputs, symbols)},
                            {"outputs", toArray(outputs, symbols)},
                            {"input_total", toObject(inputElements(), symbols)},
                            {"output_total", toObject(outputElements(), symbols)},
                            {"classical", llvm::json::Object{{"intermediates", std::move(arrays)},
                                                             {"total", toObject(classicalElements(), symbols)}}}};
  if (!symbols)
    return report;
  llvm::json::Object values;
  for (const auto &[name, value] : *symbols)
    values[name] = value;
  report["symbols"] = std::move(values);
  if (auto numbers = evaluate(*symbols)) {
    report["input_bytes"] = numbers->inputBytes;
    report["output_bytes"] = numbers->outputBytes;
    report["ratio_without_output"] = numbers->ratioWithoutOutput;
    report["ratio_with_output"] = numbers->ratioWithOutput;
  }
  return report;
}

static void printLine(llvm::raw_ostream &os, StringRef name, const SymExpr &elements, const SymbolValues *symbols,
                      const llvm::Twine &note = "") {
  os << "  " << llvm::left_justify(name, 18) << ' ' << llvm::left_justify(elements.str(), 32);
  if (symbols)
    if (auto value = valueOf(elements, *symbols))
      os << ' ' << *value;
  std::string text = note.str();
  if (!text.empty())
    os << "  " << text;
  os << '\n';
}

static void printArrays(llvm::raw_ostream &os, StringRef title, const std::vector<ArrayCount> &arrays,
                        const SymExpr &total, const SymbolValues *symbols) {
  os << title << ", distinct elements:\n";
  for (const ArrayCount &array : arrays)
    printLine(os, array.name, array.elements, symbols, array.exact ? "" : "upper bound: " + array.note);
  bool exact = llvm::all_of(arrays, [](const ArrayCount &a) { return a.exact; });
  printLine(os, "total", total, symbols, exact ? "" : "upper bound");
}

void DataMovementReport::print(llvm::raw_ostream &os, const SymbolValues *symbols) const {
  os << "data movement of " << kernel << " in elements";
  if (symbols) {
    const char *separator = " at ";
    for (const auto &[name, value] : *symbols) {
      os << separator << name << " = " << value;
      separator = ", ";
    }
  }
  os << '\n';
  printArrays(os, "inputs", inputs, inputElements(), symbols);
  printArrays(os, "outputs", outputs, outputElements(), symbols);
  os << "intermediates of the classical evaluation:\n";
  for (const IntermediateArray &array : intermediates)
    printLine(os, array.name.empty() ? "(unnamed)" : StringRef(array.name), array.elements, symbols,
              array.kind + (array.line ? ", line " + std::to_string(array.line) : ""));
  printLine(os, "with the inputs", classicalElements(), symbols);
  auto numbers = symbols ? evaluate(*symbols) : std::nullopt;
  if (!numbers)
    return;
  os << llvm::format("ratio classical / inputs: %.4g without the outputs, %.4g with "
                     "them\n",
                     numbers->ratioWithoutOutput, numbers->ratioWithOutput);
  os << "bytes: " << numbers->inputBytes << " in, " << numbers->outputBytes << " out\n";
}
