//===- OracleTest.cpp - compiled kernels against the interpreter ------------===//
//
// Every file in kernels/ is a lifted onf kernel. Its first lines name the sizes to
// run with and the tolerance. Each is lowered in blocks and index by index, run
// on random arrays, and compared with the float64 interpreter.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "dialects/ONF/IR/ONF.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Support/HalfFloat.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace moa;
using namespace moa::test;

namespace {

std::vector<std::string> kernelFiles() {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(MOA_TEST_KERNELS, error), end; it != end && !error; it.increment(error))
    files.push_back(llvm::sys::path::stem(it->path()).str());
  std::sort(files.begin(), files.end());
  return files;
}

/// The text after `key` in the file's head.
llvm::StringRef heading(llvm::StringRef text, llvm::StringRef key) {
  return text.split(key).second.split('\n').first.trim();
}

/// One trial: a kernel of one file, at one set of sizes.
class Trial {
public:
  Trial(llvm::StringRef text, llvm::StringRef sizes) : text(text) {
    for (llvm::StringRef part : llvm::split(sizes.trim(), ' '))
      part.split('=').second.getAsInteger(10, inputs.symbols[part.split('=').first.str()]);
  }
  void check(const ONFToVectorOptions &options, double tolerance);

private:
  int64_t extent(ExprAttr expression) {
    return *expression.getValue().evaluate(
        [&](llvm::StringRef name) -> std::optional<int64_t> { return inputs.symbols.at(name.str()); });
  }
  void addInput(ArrayType type, std::mt19937 &random);
  void addSlots(ArrayType type, const std::vector<int64_t> &shape, char *bytes, bool scalar);

  llvm::StringRef text;
  KernelInputs inputs;
  std::vector<std::vector<char>> bytes;
  std::vector<int64_t> slots;
};

size_t bytesOf(Type type) { return type.isIndex() ? 8 : std::max(1u, type.getIntOrFloatBitWidth() / 8); }

template <typename T> void put(char *where, T value) { std::memcpy(where, &value, sizeof value); }
template <typename T> T get(const char *where) {
  T value;
  std::memcpy(&value, where, sizeof value);
  return value;
}

/// Writes an element and returns what it became.
double putElement(char *where, Type type, double value) {
  value = isa<FloatType>(type) ? roundTo(value, type) : std::trunc(value);
  if (type.isF64())
    put<double>(where, value);
  else if (type.isF32())
    put<float>(where, static_cast<float>(value));
  else if (type.isBF16())
    put<uint16_t>(where, toBF16(static_cast<float>(value)));
  else if (type.isF16())
    put<uint16_t>(where, toFloat16(value));
  else if (type.isInteger(1))
    *where = value != 0;
  else if (type.isInteger(8))
    put<int8_t>(where, static_cast<int8_t>(value));
  else if (type.isInteger(16))
    put<int16_t>(where, static_cast<int16_t>(value));
  else if (type.isInteger(32))
    put<int32_t>(where, static_cast<int32_t>(value));
  else if (type.isInteger(64) || type.isIndex())
    put<int64_t>(where, static_cast<int64_t>(value));
  else
    ADD_FAILURE() << "an element type that the test does not know";
  return value;
}

double getElement(const char *where, Type type) {
  if (type.isF64())
    return get<double>(where);
  if (type.isF32())
    return get<float>(where);
  if (type.isBF16())
    return fromBF16(get<uint16_t>(where));
  if (type.isF16())
    return fromFloat16(get<uint16_t>(where));
  if (type.isInteger(1))
    return *where;
  if (type.isInteger(8))
    return get<int8_t>(where);
  if (type.isInteger(16))
    return get<int16_t>(where);
  if (type.isInteger(32))
    return get<int32_t>(where);
  if (type.isInteger(64) || type.isIndex())
    return static_cast<double>(get<int64_t>(where));
  ADD_FAILURE() << "an element type that the test does not know";
  return 0;
}

void Trial::addSlots(ArrayType type, const std::vector<int64_t> &shape, char *data, bool scalar) {
  if (!scalar)
    return pushArray(slots, data, shape);
  int64_t slot = 0;
  std::memcpy(&slot, data, bytesOf(type.getElementType()));
  slots.push_back(slot);
}

void Trial::addInput(ArrayType type, std::mt19937 &random) {
  Type element = type.getElementType();
  Array array;
  int64_t count = 1;
  for (ExprAttr expression : type.getShape()) {
    array.shape.push_back(extent(expression));
    count *= array.shape.back();
  }
  std::normal_distribution<double> normal;
  bytes.emplace_back(std::max<int64_t>(count, 1) * bytesOf(element) + 8);
  for (int64_t k = 0; k != count; ++k) {
    double value = normal(random);
    if (type.getRank() == 0)
      value = isa<FloatType>(element) ? 0.3 + std::abs(value) / 4 : 23;
    else if (element.isInteger(1))
      value = value < 0.8;
    else if (element.isIntOrIndex() && bytesOf(element) > 1)
      value *= 1000; // more than one byte
    array.data.push_back(putElement(&bytes.back()[k * bytesOf(element)], element, value));
  }
  addSlots(type, array.shape, bytes.back().data(), type.getRank() == 0);
  inputs.arrays.push_back(array);
}

void Trial::check(const ONFToVectorOptions &options, double tolerance) {
  MLIRContext context;
  context.loadDialect<MoADialect, onf::ONFDialect, arith::ArithDialect, math::MathDialect>();
  auto module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  auto kernel = *module->getOps<onf::KernelOp>().begin();
  size_t numInputs = kernel.getArgNames().size();
  std::mt19937 random(11);
  std::vector<std::vector<char>> outputs;
  for (BlockArgument arg : kernel.getBody().getArguments().take_front(numInputs))
    addInput(cast<ArrayType>(arg.getType()), random);
  auto shapes = outputShapes(kernel, inputs.symbols);
  ASSERT_TRUE(static_cast<bool>(shapes)) << llvm::toString(shapes.takeError());
  for (auto [arg, shape] : llvm::zip_equal(kernel.getBody().getArguments().drop_front(numInputs), *shapes)) {
    auto type = cast<ArrayType>(arg.getType());
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    outputs.emplace_back(count * bytesOf(type.getElementType()) + 8, 'x');
    addSlots(type, shape, outputs.back().data(), false);
  }
  for (Attribute symbol : kernel.getSymbols())
    slots.push_back(inputs.symbols.at(cast<StringAttr>(symbol).getValue().str()));
  std::string error;
  auto compiled = Kernel::compile(text, options, error);
  ASSERT_TRUE(compiled) << error;
  compiled->run(slots, true);
  auto want = interpret(kernel, inputs);
  ASSERT_TRUE(static_cast<bool>(want)) << llvm::toString(want.takeError());
  for (auto [k, array] : llvm::enumerate(*want)) {
    Type element = cast<ArrayType>(kernel.getBody().getArgument(numInputs + k).getType()).getElementType();
    std::vector<double> got, finite;
    for (size_t e = 0; e != array.data.size(); ++e) {
      double value = getElement(&outputs[k][e * bytesOf(element)], element);
      double expected = array.data[e];
      if (!std::isfinite(expected)) {
        ASSERT_EQ(std::isnan(value), std::isnan(expected)) << e;
        ASSERT_TRUE(std::isnan(value) || value == expected) << e;
        continue;
      }
      got.push_back(value);
      finite.push_back(expected);
    }
    EXPECT_LE(relativeError(got, finite), tolerance) << "output " << k;
    EXPECT_EQ(std::string(outputs[k].end() - 8, outputs[k].end()), "xxxxxxxx");
  }
}

class Oracle : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Oracle, testing::ValuesIn(kernelFiles()), [](auto &info) { return info.param; });

TEST_P(Oracle, Agrees) {
  auto file = llvm::MemoryBuffer::getFile(std::string(MOA_TEST_KERNELS "/") + GetParam() + ".mlir");
  ASSERT_TRUE(static_cast<bool>(file));
  llvm::StringRef text = (*file)->getBuffer();
  double tolerance = 0;
  ASSERT_FALSE(heading(text, "tolerance:").getAsDouble(tolerance));
  for (llvm::StringRef sizes : llvm::split(heading(text, "sizes:"), ';'))
    for (bool blocks : {true, false}) {
      SCOPED_TRACE(sizes.str() + (blocks ? " blocks" : " general"));
      ONFToVectorOptions options;
      options.blocks = blocks;
      Trial(text, sizes).check(options, tolerance);
    }
}

} // namespace
