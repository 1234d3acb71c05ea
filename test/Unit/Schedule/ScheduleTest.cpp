//===- ScheduleTest.cpp - machines, cost model, lifting -------------------===//
#include "lib/Schedule/Schedule.h"
#include "lib/Schedule/Lifting.h"
#include "lib/Schedule/NestShape.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir;
using namespace moa;

namespace {

//===----------------------------------------------------------------------===//
// Digits, by enumeration
//===----------------------------------------------------------------------===//

TEST(Lifting, QuotientOfAShape) {
  // The lifted shape must keep τ: 8·12·64·32 = (2·3·4·8)·(4·4·16·4).
  SmallVector<int64_t> quotient = liftedShape({8, 12, 64, 32}, {2, 3, 4, 8});
  EXPECT_EQ(quotient, (SmallVector<int64_t>{4, 4, 16, 4}));
  EXPECT_EQ(8 * 12 * 64 * 32, 2 * 3 * 4 * 8 * 4 * 4 * 16 * 4);
  EXPECT_EQ(liftedShape({7, 1, 0}, {2, 3, 4}), (SmallVector<int64_t>{4, 1, 0}));
}

/// All digit vectors below the bounds; calls back with each.
template <typename Function> void forDigits(ArrayRef<int64_t> bounds, Function function) {
  for (int64_t bound : bounds)
    if (bound == 0)
      return;
  SmallVector<int64_t> digits(bounds.size(), 0);
  while (true) {
    function(digits);
    size_t k = digits.size();
    while (k > 0 && ++digits[k - 1] == bounds[k - 1])
      digits[--k] = 0;
    if (k == 0)
      return;
  }
}

void expectBijection(ArrayRef<int64_t> sizes, int64_t extent) {
  SmallVector<int64_t> bounds = {liftedQuotient(sizes, extent)};
  bounds.append(sizes.begin(), sizes.end());
  std::set<int64_t> seen;
  forDigits(bounds, [&](ArrayRef<int64_t> digits) {
    int64_t index = liftedIndex(sizes, digits);
    if (index >= extent) // the guard
      return;
    EXPECT_TRUE(seen.insert(index).second) << index << " twice";
    EXPECT_EQ(liftedDigits(sizes, index), SmallVector<int64_t>(digits));
  });
  EXPECT_EQ(int64_t(seen.size()), extent);
  EXPECT_TRUE(seen.empty() || (*seen.begin() == 0 && *seen.rbegin() == extent - 1));
}

TEST(Lifting, DigitsAreABijection) {
  for (int64_t extent : {0, 1, 5, 16, 96, 97, 200}) {
    expectBijection({}, extent);
    expectBijection({16}, extent);
    expectBijection({6, 16}, extent);
    expectBijection({2, 3, 4}, extent);
  }
  std::mt19937 random(11);
  for (unsigned round = 0; round < 200; ++round) {
    SmallVector<int64_t> sizes;
    for (unsigned k = random() % 4; k > 0; --k)
      sizes.push_back(1 + random() % 7);
    expectBijection(sizes, random() % 150);
  }
}

TEST(Lifting, WholeShapeByEnumeration) {
  SmallVector<int64_t> shape = {8, 12, 64, 32}, factors = {2, 3, 4, 8};
  SmallVector<int64_t> quotient = liftedShape(shape, factors), bounds;
  for (unsigned k = 0; k < 4; ++k) {
    bounds.push_back(quotient[k]);
    bounds.push_back(factors[k]);
  }
  std::vector<bool> seen(8 * 12 * 64 * 32);
  forDigits(bounds, [&](ArrayRef<int64_t> digits) {
    int64_t flat = 0;
    for (unsigned k = 0; k < 4; ++k) {
      int64_t index = liftedIndex({factors[k]}, digits.slice(2 * k, 2));
      ASSERT_LT(index, shape[k]);
      flat = flat * shape[k] + index;
    }
    ASSERT_FALSE(seen[flat]);
    seen[flat] = true;
  });
  EXPECT_TRUE(llvm::all_of(seen, [](bool b) { return b; }));
}

TEST(Lifting, ProofHoldsForEveryExtent) {
  MLIRContext context;
  context.loadDialect<onf::ONFDialect>();
  auto axis = [&](ArrayRef<int64_t> sizes) {
    SmallVector<int64_t> all = {0}, resources = {0};
    all.append(sizes.begin(), sizes.end());
    resources.append(sizes.size(), 2);
    return onf::AxisAttr::get(&context, resources, all);
  };
  const std::vector<std::vector<int64_t>> all = {{}, {16}, {6, 16}, {9, 8}, {2, 3, 4}, {1, 1}, {128}, {1, 512}};
  for (const std::vector<int64_t> &sizes : all) {
    llvm::Error error = verifyBijection(axis(sizes));
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }
}

//===----------------------------------------------------------------------===//
// Machines
//===----------------------------------------------------------------------===//

Machine machine(StringRef name) { return llvm::cantFail(loadMachine(name)); }

template <typename T> std::string errorOf(llvm::Expected<T> value) {
  return value ? "" : llvm::toString(value.takeError());
}

TEST(Machines, RoundTrip) {
  EXPECT_GE(knownMachines().size(), 4u);
  for (const Machine &m : knownMachines()) {
    std::string text = printMachine(m);
    EXPECT_EQ(printMachine(llvm::cantFail(parseMachine(text))), text);
  }
}

TEST(Machines, LaneCounts) {
  EXPECT_EQ(machine("zen4").laneCounts(32), (std::vector<int64_t>{1, 4, 8, 16}));
  EXPECT_EQ(machine("zen4").laneCounts(64), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(machine("avx2").laneCounts(32), (std::vector<int64_t>{1, 4, 8}));
}

TEST(Machines, Host) {
  Machine host = hostMachine();
  EXPECT_GE(host.cores, 1);
  EXPECT_GE(host.l1Bytes, 4096);
  EXPECT_GE(host.l2Bytes, host.l1Bytes);
}

TEST(Machines, BadDescriptions) {
  std::string good = printMachine(machine("avx2"));
  auto with = [&](StringRef from, StringRef to) {
    std::string text = good;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos);
    return errorOf(parseMachine(text.replace(at, from.size(), to.str())));
  };
  EXPECT_NE(with("\"registers\"", "\"register\"").find("unknown key 'register'"), std::string::npos);
  EXPECT_NE(with("[128, 256]", "[256, 128]").find("vector_bits"), std::string::npos);
  EXPECT_NE(with("[128, 256]", "[]").find("vector_bits"), std::string::npos);
  EXPECT_NE(with(": 32768", ": 0").find("positive integer 'l1_bytes'"), std::string::npos);
  EXPECT_NE(errorOf(parseMachine("{")), "");
  EXPECT_NE(errorOf(parseMachine("[]")).find("object"), std::string::npos);
  EXPECT_NE(errorOf(loadMachine("/nonexistent/machine.json")).find("known are host"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

class ScheduleTest : public ::testing::Test {
protected:
  MLIRContext context;
  ScheduleTest() { context.loadDialect<onf::ONFDialect, MoADialect, arith::ArithDialect>(); }

  /// A weighted sum of rows: s_ij = Σ_k Q_ik K_jk, o_id = Σ_j s_ij V_jd.
  OwningOpRef<ModuleOp> weighted(StringRef rows, StringRef inner, StringRef carried, StringRef type = "f32") {
    std::string text = R"(
onf.kernel @f attributes {symbols = ["H", "N", "M"], requires = [], arg_names = ["Q", "V"],
    result_names = ["O"], result_types = [!moa.array<[H, "ROWS", "CARRIED"], TYPE>]} {
^bb0(%Q: !moa.array<[H, "ROWS", "INNER"], TYPE>, %V: !moa.array<[M, "CARRIED"], TYPE>,
     %O: !moa.array<[H, "ROWS", "CARRIED"], TYPE>):
  onf.for ["h", "i"] in ["H", "ROWS"] {
  ^bb0(%h: index, %i: index):
    %o = onf.fold "j" in "M" : !moa.array<["CARRIED"], TYPE> {
    ^bb0(%j: index):
      %s = onf.fold "k" in "INNER" : TYPE {
      ^bb0(%k: index):
        %q = onf.load %Q[%h, %i, %k] : !moa.array<[H, "ROWS", "INNER"], TYPE> -> TYPE
        %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> TYPE {
          onf.yield %q : TYPE
        } repair {
        }
        onf.yield %a : TYPE
      }
      %a = onf.acc add "o" carries ["d"] in ["CARRIED"] refs() mul [] : () -> !moa.array<["CARRIED"], TYPE> {
      ^bb0(%d: index):
        %v = onf.load %V[%j, %d] : !moa.array<[M, "CARRIED"], TYPE> -> TYPE
        %p = arith.mulf %s, %v : TYPE
        onf.yield %p : TYPE
      } repair {
      }
      onf.yield %a : !moa.array<["CARRIED"], TYPE>
    }
    onf.for ["d"] in ["CARRIED"] {
    ^bb0(%d: index):
      %x = onf.at %o[%d] : !moa.array<["CARRIED"], TYPE> -> TYPE
      onf.store %x, %O[%h, %i, %d] : TYPE, !moa.array<[H, "ROWS", "CARRIED"], TYPE>
    }
  }
})";
    auto replace = [&](StringRef from, StringRef to) {
      for (size_t at; (at = text.find(from.str())) != std::string::npos;)
        text.replace(at, from.size(), to.str());
    };
    // Extents print without quotes where they are names or numbers.
    replace("\"ROWS\", \"INNER\"], TYPE>", (rows + ", " + inner + "], TYPE>").str());
    replace("\"ROWS\", \"CARRIED\"], TYPE>", (rows + ", " + carried + "], TYPE>").str());
    replace("[M, \"CARRIED\"], TYPE>", ("[M, " + carried + "], TYPE>").str());
    replace("array<[\"CARRIED\"]", ("array<[" + carried + "]").str());
    replace("ROWS", rows);
    replace("INNER", inner);
    replace("CARRIED", carried);
    replace("TYPE", type);
    return parseSourceString<ModuleOp>(text, &context);
  }

  static onf::KernelOp kernel(OwningOpRef<ModuleOp> &module) { return *module->getOps<onf::KernelOp>().begin(); }

  Schedule choose(StringRef machineName, StringRef rows, StringRef inner, StringRef carried, StringRef type = "f32") {
    auto module = weighted(rows, inner, carried, type);
    EXPECT_TRUE(bool(module));
    Machine target = machine(machineName);
    Schedule schedule = chooseSchedule(kernel(module), target);
    llvm::Error error = checkSchedule(kernel(module), schedule, target);
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
    return schedule;
  }
};

int64_t lanes(const Schedule &s) { return s.nests[0].axes.back().getSize(onf::Resource::lane); }
int64_t registers(const Schedule &s) { return s.nests[0].axes.back().getSize(onf::Resource::register_); }
int64_t block(const Schedule &s) { return s.nests[0].folds[0].getSize(onf::Resource::cache); }

TEST_F(ScheduleTest, DefaultsOfTheCostModel) {
  for (StringRef name : {"zen4", "avx512"}) {
    Schedule s = choose(name, "N", "128", "128");
    EXPECT_EQ(lanes(s), 16) << name.str();
    EXPECT_EQ(registers(s), 18) << name.str();
    // A panel of values, block × 48 rows, takes about half of the first level.
    EXPECT_EQ(block(s), name == "zen4" ? 96 : 128) << name.str();
  }
  EXPECT_EQ(lanes(choose("avx2", "N", "128", "128")), 8);
  EXPECT_EQ(lanes(choose("zen4", "N", "128", "128", "f64")), 8);
}

TEST_F(ScheduleTest, EveryDefaultFits) {
  // `choose` checks the working set against the machine.
  for (StringRef name : {"zen4", "avx512", "avx2", "generic"})
    for (StringRef width : {"1", "16", "64", "128", "512", "D"})
      for (StringRef type : {"f32", "f64"}) {
        Schedule s = choose(name, "N", width, width, type);
        EXPECT_GE(registers(s), 1);
        EXPECT_GE(block(s), 8);
        EXPECT_EQ(registers(s) * lanes(s), s.nests[0].getRows());
      }
}

TEST_F(ScheduleTest, SmallConstantExtentsShrinkTheTile) {
  auto tile = [&](StringRef rows) {
    Schedule s = choose("zen4", rows, "64", "64");
    return std::make_pair(registers(s), lanes(s));
  };
  using Tile = std::pair<int64_t, int64_t>;
  EXPECT_EQ(tile("0"), Tile(1, 1));
  EXPECT_EQ(tile("1"), Tile(1, 1));
  EXPECT_EQ(tile("3"), Tile(1, 4));
  EXPECT_EQ(tile("16"), Tile(1, 16));
  EXPECT_EQ(tile("40"), Tile(3, 16));
}

TEST_F(ScheduleTest, TooMuchForTheCacheTakesTheSmallestTile) {
  auto module = weighted("N", "128", "100000");
  Machine target = machine("generic");
  Schedule s = chooseSchedule(kernel(module), target);
  EXPECT_EQ(registers(s), 1);
  EXPECT_EQ(block(s), 8);
  llvm::Error error = checkSchedule(kernel(module), s, target);
  ASSERT_TRUE(bool(error));
  EXPECT_NE(llvm::toString(std::move(error)).find("more than half of the 262144 bytes"), std::string::npos);
}

TEST_F(ScheduleTest, RoundTripAndLift) {
  auto module = weighted("N", "128", "128");
  Schedule s = chooseSchedule(kernel(module), machine("zen4"));
  std::string text = printSchedule(s);
  Schedule again = llvm::cantFail(parseSchedule(text));
  EXPECT_EQ(printSchedule(again), text);
  ASSERT_TRUE(succeeded(lift(kernel(module), again)));
  auto nest = *kernel(module).getBody().getOps<onf::ForOp>().begin();
  auto axis = cast<onf::AxisAttr>((*nest.getLift())[1]);
  EXPECT_EQ(axis.getTile(), 288);
  EXPECT_EQ(axis.getSize(onf::Resource::lane), 16);
  auto fold = *nest.getBody().getOps<onf::FoldOp>().begin();
  EXPECT_EQ(fold.getLift()->getSize(onf::Resource::cache), 96);
}

TEST_F(ScheduleTest, ShapesOfNests) {
  auto module = weighted("N", "32", "D");
  std::vector<NestShape> shapes = nestShapes(kernel(module));
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_EQ(shapes[0].names, (std::vector<std::string>{"h", "i"}));
  EXPECT_FALSE(shapes[0].laneExtent);
  EXPECT_EQ(shapes[0].bits, 32u);
  ASSERT_EQ(shapes[0].folds.size(), 1u);
  EXPECT_EQ(shapes[0].folds[0].inner, 32);
  EXPECT_EQ(shapes[0].folds[0].carried, assumedExtent);
}

TEST_F(ScheduleTest, BadSchedules) {
  auto module = weighted("N", "128", "128");
  Machine target = machine("zen4");
  std::string good = printSchedule(chooseSchedule(kernel(module), target));
  auto with = [&](StringRef from, StringRef to) -> std::string {
    std::string text = good;
    size_t at = text.find(from.str());
    EXPECT_NE(at, std::string::npos) << from.str();
    auto schedule = parseSchedule(text.replace(at, from.size(), to.str()));
    if (!schedule)
      return llvm::toString(schedule.takeError());
    llvm::Error error = checkSchedule(kernel(module), *schedule, target);
    return error ? llvm::toString(std::move(error)) : "";
  };
  auto expect = [&](StringRef from, StringRef to, StringRef message) {
    std::string error = with(from, to);
    EXPECT_NE(error.find(message.str()), std::string::npos) << "got '" << error << "' for " << to.str();
  };
  EXPECT_EQ(with("\"lane\": 16", "\"lane\": 8"), "");
  expect("\"register\"", "\"registers\"", "unknown key 'registers' in axis 'i'");
  expect("\"nests\"", "\"nest\"", "unknown key 'nest'");
  expect("\"register\": 18", "\"register\": 0", "from 1 to 16777216 for 'register'");
  expect("\"register\": 18", "\"register\": -3", "but got -3");
  expect("\"register\": 18", "\"register\": \"6\"", "for 'register'");
  expect("\"core\": 0", "\"core\": 4", "expects 0, the rest");
  expect("\"core\": 0, \"sequential\": 22, ", "", "expects 'sequential': 0");
  expect("\"core\": 0, \"sequential\": 22", "\"core\": 0, \"sequential\": 0", "for 'sequential'");
  expect("\"lane\": 16", "\"lane\": 12", "has 1, 4, 8, 16");
  expect("\"lane\": 16", "\"lane\": 32", "asks for 32 lanes of 32 bits");
  expect("\"cache\": 96", "\"cache\": 4096", "bytes per core");
  expect("\"register\": 18", "\"register\": 600", "bytes per core");
  expect("\"name\": \"i\"", "\"name\": \"x\"", "expects the axes of nest 0 <h i>");
  expect("\"name\": \"j\"", "\"name\": \"k\"", "expects the folds of nest 0 <j>");
  expect("\"kernel\": \"f\"", "\"kernel\": \"g\"", "is for kernel 'g', not 'f'");
  expect("\"name\": \"h\", \"core\": 0", "\"name\": \"h\", \"core\": 0, \"lane\": 16",
         "expects only the factor 'core' on axis 'h'");
  EXPECT_NE(errorOf(parseSchedule("{")), "");
  EXPECT_NE(errorOf(loadSchedule("/nonexistent.json")).find("cannot read schedule"), std::string::npos);
}

} // namespace
