//===- GuardsTest.cpp - intervals of guards against the interpreter -------===//
//
// Derives the intervals of guards written as operations, the fixed ones of the
// lit test and random ones, and lets the interpreter compare every interval
// with the guard at every index of every tile.
//
//===----------------------------------------------------------------------===//
#include "dialects/ONF/IR/ONF.h"
#include "lib/Analysis/Passes.h"
#include "lib/Interpreter/Interpreter.h"
#include "lib/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace moa;

namespace {

class GuardsTest : public ::testing::Test {
protected:
  MLIRContext context;
  std::mt19937 random{5};

  GuardsTest() { context.loadDialect<onf::ONFDialect, MoADialect, arith::ArithDialect>(); }

  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  static onf::KernelOp kernelOf(ModuleOp module) { return *module.getOps<onf::KernelOp>().begin(); }

  /// Inputs of the right shapes: small integers, and truth values.
  KernelInputs inputs(onf::KernelOp kernel, std::map<std::string, int64_t> symbols) {
    KernelInputs result;
    result.symbols = symbols;
    auto arguments = kernel.getBody().getArguments();
    for (unsigned k = 0; k < kernel.getArgNames().size(); ++k) {
      auto type = cast<ArrayType>(arguments[k].getType());
      Array array;
      int64_t size = 1;
      for (unsigned axis = 0; axis < type.getRank(); ++axis) {
        auto extent = type.getExtent(axis).evaluate(
            [&](StringRef name) -> std::optional<int64_t> { return symbols[name.str()]; });
        array.shape.push_back(*extent);
        size *= *extent;
      }
      bool truth = type.getElementType().isInteger(1);
      for (int64_t n = 0; n < size; ++n)
        array.data.push_back(truth ? pick(0, 1) : pick(-3, 12));
      result.arrays.push_back(std::move(array));
    }
    return result;
  }

  /// Derives intervals, then runs the kernel with the interpreter's checks over
  /// several tiles and sizes; the pieces must not change the result.
  /// Returns whether the fold got pieces.
  bool check(ModuleOp module) {
    onf::KernelOp kernel = kernelOf(module);
    OwningOpRef<ModuleOp> plain = cast<ModuleOp>(module->clone());
    auto nest = *kernel.getBody().getOps<onf::ForOp>().begin();
    auto fold = *nest.getBody().getOps<onf::FoldOp>().begin();
    if (llvm::Error error = deriveFoldIntervals(fold))
      llvm::consumeError(std::move(error));
    EXPECT_TRUE(succeeded(verify(module)));
    for (int64_t tile : {1, 4, 7}) {
      SmallVector<Attribute> axes;
      for (unsigned k = 0; k + 1 < nest.getExtents().size(); ++k)
        axes.push_back(onf::AxisAttr::get(&context, {0}, {0}));
      if (!nest.getExtents().empty())
        axes.push_back(onf::AxisAttr::get(&context, {0, 2}, {0, tile}));
      nest.setLiftAttr(ArrayAttr::get(&context, axes));
      for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 0}, {9, 5}, {6, 13}, {13, 13}})
        compare(kernel, kernelOf(*plain), {{"B", 2}, {"N", n}, {"M", m}});
    }
    return bool(fold.getPieces());
  }

  void compare(onf::KernelOp checked, onf::KernelOp plain, std::map<std::string, int64_t> symbols) {
    KernelInputs arguments = inputs(checked, symbols);
    auto got = interpret(checked, arguments), expected = interpret(plain, arguments);
    if (!got || !expected) {
      ADD_FAILURE() << llvm::toString(got.takeError()) << llvm::toString(expected.takeError());
      return;
    }
    EXPECT_EQ((*got)[0].data, (*expected)[0].data);
  }
};

TEST_F(GuardsTest, FixedGuards) {
  auto file = llvm::MemoryBuffer::getFile(MOA_TEST_GUARDS, /*IsText=*/true);
  ASSERT_TRUE(bool(file));
  SmallVector<StringRef> chunks;
  (*file)->getBuffer().split(chunks, "// -----");
  unsigned derived = 0;
  for (StringRef chunk : chunks) {
    OwningOpRef<ModuleOp> module = parse(chunk);
    ASSERT_TRUE(bool(module));
    derived += check(*module);
  }
  EXPECT_GE(derived, 12u);
}

//===----------------------------------------------------------------------===//
// Random guards, fixed seed
//===----------------------------------------------------------------------===//

/// Writes straight-line code for random integers and truth values.
class GuardWriter {
public:
  explicit GuardWriter(unsigned seed) : random(seed) {}

  std::string write() {
    std::string p = truth(2);
    return text + "      onf.guard " + p + "\n";
  }

private:
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  std::string define(const std::string &code) {
    std::string name = "%v" + std::to_string(next++);
    text += "      " + name + " = " + code + "\n";
    return name;
  }

  std::string number(int64_t low, int64_t high) {
    return define("arith.constant " + std::to_string(pick(low, high)) + " : index");
  }

  std::string leaf() {
    static const char *const names[] = {"%i", "%j", "%i", "%j", "%wi", "%b", "%c", "%pb"};
    int64_t k = pick(0, 9);
    return k < 8 ? names[k] : number(-5, 12);
  }

  std::string integer(unsigned depth) {
    if (depth == 0 || pick(0, 3) == 0)
      return leaf();
    std::string a = integer(depth - 1);
    auto binary = [&](const char *op, const std::string &b) {
      return define(std::string("arith.") + op + " " + a + ", " + b + " : index");
    };
    switch (pick(0, 13)) {
    case 0:
    case 1:
    case 2:
      return binary("addi", integer(depth - 1));
    case 3:
    case 4:
      return binary("subi", integer(depth - 1));
    case 5:
      return binary("muli", number(-3, 3));
    case 6:
      return binary("floordivsi", number(1, 5));
    case 7:
      return binary("ceildivsi", number(1, 5));
    case 8:
      return binary("remsi", number(1, 5));
    case 9:
      return binary("divsi", number(1, 5));
    case 10:
      return binary("minsi", integer(depth - 1));
    case 11:
      return binary("maxsi", integer(depth - 1));
    case 12:
      return binary("muli", integer(depth - 1));
    default: {
      std::string b = integer(depth - 1), p = truth(depth - 1);
      return define("arith.select " + p + ", " + a + ", " + b + " : index");
    }
    }
  }

  std::string truth(unsigned depth) {
    static const char *const compare[] = {"slt", "sle", "sgt", "sge", "eq", "ne"};
    int64_t k = depth == 0 ? 0 : pick(0, 9);
    if (k <= 4) {
      std::string a = integer(2), b = integer(2);
      return define(std::string("arith.cmpi ") + compare[pick(0, 5)] + ", " + a + ", " + b + " : index");
    }
    if (k == 5)
      return pick(0, 1) ? "%x" : "%f";
    static const char *const logic[] = {"andi", "ori", "xori"};
    std::string a = truth(depth - 1), b = truth(depth - 1);
    if (k == 9)
      return define("arith.select " + truth(depth - 1) + ", " + a + ", " + b + " : i1");
    return define(std::string("arith.") + logic[k - 6] + " " + a + ", " + b + " : i1");
  }

  std::mt19937 random;
  std::string text;
  unsigned next = 0;
};

TEST_F(GuardsTest, RandomGuards) {
  unsigned derived = 0;
  for (unsigned seed = 0; seed < 400 && !HasFailure(); ++seed) {
    std::string text = R"(
onf.kernel @f attributes {symbols = ["B", "N", "M"], requires = [],
    arg_names = ["X", "P", "w", "flag"], result_names = ["O"],
    result_types = [!moa.array<[B, N], index>]} {
^bb0(%X: !moa.array<[N, M], i1>, %P: !moa.array<[B], i32>, %w: !moa.array<[], i64>,
     %flag: !moa.array<[], i1>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %c = onf.extent "M - N"
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %x = onf.load %X[%i, %j] : !moa.array<[N, M], i1> -> i1
      %f = onf.load %flag[] : !moa.array<[], i1> -> i1
      %w64 = onf.load %w[] : !moa.array<[], i64> -> i64
      %wi = arith.index_cast %w64 : i64 to index
      %p32 = onf.load %P[%b] : !moa.array<[B], i32> -> i32
      %pb = arith.index_cast %p32 : i32 to index
)" + GuardWriter(seed).write() +
                       R"(
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
})";
    OwningOpRef<ModuleOp> module = parse(text);
    ASSERT_TRUE(bool(module)) << text;
    derived += check(*module);
    EXPECT_FALSE(HasFailure()) << "seed " << seed << "\n" << text;
  }
  EXPECT_GT(derived, 200u);
}

} // namespace
