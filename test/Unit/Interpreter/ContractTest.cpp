//===- ContractTest.cpp - dnf and onf kernels that break a contract -------===//
#include "TestSupport.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace moa;
using namespace moa::test;

namespace {

std::string readInput(const std::string &name) {
  auto buffer = llvm::MemoryBuffer::getFile(std::string(MOA_TEST_INPUTS) + "/" + name);
  EXPECT_TRUE(bool(buffer)) << name;
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// The text of a kernel with one passage replaced.
std::string edited(const std::string &name, const std::string &from, const std::string &to) {
  std::string text = readInput(name);
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

KernelInputs gqaInputs(int64_t n, int64_t m) {
  KernelInputs inputs;
  inputs.arrays = {random({1, 2, n, 3}, 1), random({1, 1, m, 3}, 2), random({1, 1, m, 3}, 3), scalar(1)};
  return inputs;
}

std::string editedError(const std::string &from, const std::string &to) {
  KernelText text(edited("gqa.onf.mlir", from, to));
  return errorOf(text.get(), gqaInputs(7, 9));
}

#define EXPECT_CONTAINS(TEXT, PART) EXPECT_NE(std::string(TEXT).find(PART), std::string::npos) << (TEXT)

TEST(ONFContract, FullIntervalsHoldOnlyPresentIndices) {
  EXPECT_CONTAINS(editedError("(s0, d0 + s0 - s1 + 1)>", "(s0, d0 + s0 - s1 + 2)>"),
                  "fold 'j', index 3, tile [0, 5]: the index is absent but in a full "
                  "interval");
}

TEST(ONFContract, VisitedIntervalsHoldAllPresentIndices) {
  EXPECT_CONTAINS(editedError("(s0, d1 + s0 - s1 + 1)", "(s0, d1 + s0 - s1)"),
                  "fold 'j', index 7, tile [0, 5]: the index is present but in no "
                  "visited interval");
}

TEST(ONFContract, FullIntervalsStayInTheRange) {
  EXPECT_CONTAINS(editedError("(s0, d0 + s0 - s1 + 1)>", "(s0 + 1)>"),
                  "the full interval [0, 10) leaves the range of 9");
}

TEST(ONFContract, NoPieceClaimsThatNothingIsPresent) {
  EXPECT_CONTAINS(editedError("pieces [#causal]", "pieces []"), "the index is present but in no visited interval");
}

TEST(ONFContract, PieceChecksCanBeSwitchedOff) {
  KernelText text(edited("gqa.onf.mlir", "(s0, d1 + s0 - s1 + 1)", "(0)"));
  InterpretOptions options;
  options.checkPieces = false;
  EXPECT_EQ(run(text.get(), gqaInputs(7, 9), options).size(), 2u);
}

TEST(ONFContract, ElementsAreWrittenOnce) {
  EXPECT_CONTAINS(editedError("%O[%b, %h, %i, %d]", "%O[%b, %i, %d] at [\"$0\", \"0\", \"$1\", \"$2\"]"),
                  "element [0, 0, 0, 0] of 'O' is written twice");
}

TEST(ONFContract, AllElementsAreWritten) {
  EXPECT_CONTAINS(editedError("onf.for [\"d\"] in [\"D\"]", "onf.for [\"d\"] in [\"D - 1\"]"),
                  "element [0, 0, 0, 2] of output 'O' is never written");
}

TEST(ONFContract, IndicesAreInsideTheirAxes) {
  // A row-major address is an element of the array, but no index along its last axis.
  EXPECT_CONTAINS(editedError("%K[%b, %g, %j, %k]", "%K[%b, %g, %j, %k] at [\"0\", \"0\", \"0\", "
                                                    "\"G*M*D*$0 + M*D*$1 + D*$2 + $3\"]"),
                  "is no element of 'K' of shape [1, 1, 9, 3]");
}

TEST(ONFContract, SingularStatesAreIdentities) {
  // Declaring a value singular that the maximum takes later.
  std::string text = edited("gqa.onf.mlir", "refs(%m) mul [0xFF800000 : f32] : (f32) -> f32",
                            "refs(%m) mul [1.0 : f32] : (f32) -> f32");
  KernelText kernel(text);
  KernelInputs inputs = gqaInputs(2, 2);
  for (double &x : inputs.arrays[0].data)
    x = 1;
  inputs.arrays[1].data = {-1, 0, 0, 1, 0, 0};
  EXPECT_CONTAINS(errorOf(kernel.get(), inputs),
                  "state 'l' is not the identity while a state it refers to is singular");
}

TEST(ONFContract, StatesFollowTheirDefinition) {
  // Without the repair the sum differs unless the first key has the maximum.
  std::string text = edited("gqa.onf.mlir", "%c = math.exp %difference : f32", "%c = arith.constant 1.0 : f32");
  KernelText broken(text), sound(readInput("gqa.onf.mlir"));
  KernelInputs inputs = gqaInputs(1, 2);
  inputs.arrays[0].data.assign(6, 1);
  inputs.arrays[1].data = {1, 0, 0, 0, 0, 0};
  EXPECT_EQ(run(broken.get(), inputs)[1].data, run(sound.get(), inputs)[1].data);
  inputs.arrays[1].data = {0, 0, 0, 1, 0, 0};
  EXPECT_NE(run(broken.get(), inputs)[1].data, run(sound.get(), inputs)[1].data);
}

TEST(ONFContract, UnknownOperation) {
  EXPECT_CONTAINS(editedError("%scale0 = onf.load", "%w = arith.constant dense<0.0> : vector<2xf32>\n"
                                                    "    %scale0 = onf.load"),
                  "no meaning for 'arith.constant' in the interpreter");
}

//===----------------------------------------------------------------------===//
// dnf
//===----------------------------------------------------------------------===//

std::string dnf(const std::string &body) {
  return R"mlir(
dnf.kernel @k attributes {symbols = ["N"], requires = [], arg_names = ["x", "t"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[N], i32>):
)mlir" + body +
         "\n}\n";
}

KernelInputs dnfInputs() {
  KernelInputs inputs;
  inputs.arrays = {vector({10, 20, 30}), vector({2, 0, 5})};
  return inputs;
}

constexpr char kGather[] = R"mlir(
  dnf.output 0 over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %k = dnf.psi %t[%i] : !moa.array<[N], i32> -> i32
    %j = arith.index_cast %k : i32 to index
    %v = dnf.psi %x[%j] : !moa.array<[N], f32> -> f32
)mlir";

TEST(DNF, GathersOutsideNameTheValues) {
  KernelText text(dnf(std::string(kGather) + "dnf.yield %v : f32 }"));
  EXPECT_CONTAINS(errorOf(text.get(), dnfInputs()), "index [5] is outside 'x' of shape [3]");
}

TEST(DNF, SelectIgnoresTheOtherBranch) {
  KernelText text(dnf(std::string(kGather) + R"mlir(
    %n = dnf.extent "N"
    %p = arith.cmpi slt, %j, %n : index
    %z = arith.constant -1.0 : f32
    %r = arith.select %p, %v, %z : f32
    dnf.yield %r : f32 })mlir"));
  EXPECT_EQ(run(text.get(), dnfInputs())[0].data, std::vector<double>({30, 10, -1}));
}

TEST(DNF, LogicIgnoresTheRightOperandWhereTheLeftDecides) {
  for (bool isAnd : {true, false}) {
    KernelText text(dnf(std::string(kGather) + R"mlir(
    %n = dnf.extent "N"
    %p = arith.cmpi )mlir" +
                        (isAnd ? "slt" : "sge") + R"mlir(, %j, %n : index
    %c = arith.constant 20.0 : f32
    %q = arith.cmpf olt, %v, %c : f32
    %l = arith.)mlir" + (isAnd ? "andi" : "ori") +
                        R"mlir( %p, %q : i1
    %one = arith.constant 1.0 : f32
    %z = arith.constant -1.0 : f32
    %r = arith.select %l, %one, %z : f32
    dnf.yield %r : f32 })mlir"));
    EXPECT_EQ(run(text.get(), dnfInputs())[0].data, std::vector<double>({-1, 1, isAnd ? -1.0 : 1.0}));
  }
}

TEST(DNF, AbsentOutputsAreZeroAndNotEvaluated) {
  KernelText text(dnf(std::string(kGather) + R"mlir(
    %n = dnf.extent "N"
    %p = arith.cmpi slt, %j, %n : index
    dnf.yield %v if %p : f32 })mlir"));
  EXPECT_EQ(run(text.get(), dnfInputs())[0].data, std::vector<double>({30, 10, 0}));
}

TEST(DNF, RoundoffMovesComputedFloatsOnly) {
  KernelText text(dnf(std::string(kGather) + R"mlir(
    %one = arith.constant 1.0 : f32
    %sum = arith.addf %v, %one : f32
    %large = arith.maximumf %sum, %one : f32
    dnf.yield %large : f32 })mlir"));
  InterpretOptions options;
  options.roundoff = 0x1p-10;
  KernelInputs inputs = dnfInputs();
  inputs.arrays[1] = vector({2, 0, 1});
  auto moved = interpret(text.get(), inputs, options);
  ASSERT_TRUE(static_cast<bool>(moved));
  std::vector<double> exact = run(text.get(), inputs)[0].data;
  for (auto [x, y] : llvm::zip_equal((*moved)[0].data, exact))
    EXPECT_EQ(std::fabs(x / y - 1), 0x1p-10);
}

TEST(DNF, WhereIsAbsence) {
  // Before the laws of absence moved it: through functions, lets and sums.
  KernelText text(dnf(R"mlir(
  dnf.let @f over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %c = arith.constant 1 : index
    %p = arith.cmpi ne, %i, %c : index
    %v = dnf.psi %x[%i] : !moa.array<[N], f32> -> f32
    %w = dnf.where %p, %v : f32
    %s = arith.addf %w, %w : f32
    dnf.yield %s : f32
  }
  dnf.output 0 over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %s = dnf.reduce add over "j" in "N" : f32 {
    ^bb0(%j: index):
      %v = dnf.apply @f(%j) : f32
      dnf.yield %v : f32
    }
    dnf.yield %s : f32
  })mlir"));
  EXPECT_EQ(run(text.get(), dnfInputs())[0].data, std::vector<double>({80, 80, 80}));
}

TEST(DNF, LetsAreAppliedInsideTheirDomain) {
  KernelText text(dnf(R"mlir(
  dnf.let @f over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %v = dnf.psi %x[%i] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %c = arith.constant 1 : index
    %j = arith.addi %i, %c : index
    %v = dnf.apply @f(%j) : f32
    dnf.yield %v : f32
  })mlir"));
  EXPECT_CONTAINS(errorOf(text.get(), dnfInputs()), "index 3 is outside axis 0 of 'f' with domain [3]");
}

TEST(DNF, MarkedConversionsRound) {
  KernelText text(dnf(R"mlir(
  dnf.output 0 over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %c = arith.constant 0.1 : f64
    %f = arith.truncf %c : f64 to f32
    %b = arith.truncf %f {moa.round} : f32 to bf16
    %e = arith.extf %b : bf16 to f32
    %d = arith.subf %f, %e : f32
    dnf.yield %d : f32
  })mlir"));
  EXPECT_EQ(run(text.get(), dnfInputs())[0].data[0], 0.1 - 0.10009765625);
}

TEST(DNF, UnknownOperation) {
  KernelText text(dnf(R"mlir(
  dnf.output 0 over ["i"] in ["N"] -> f32 {
  ^bb0(%i: index):
    %c = arith.constant 0.1 : f32
    %r:2 = arith.addui_extended %i, %i : index, i1
    dnf.yield %c : f32
  })mlir"));
  EXPECT_CONTAINS(errorOf(text.get(), dnfInputs()), "no meaning for 'arith.addui_extended'");
}

} // namespace
