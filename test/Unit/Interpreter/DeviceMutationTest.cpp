//===- DeviceMutationTest.cpp - one change in a compiled program ----------===//
//
// A right program, changed in one place that orders its warpgroups, must not give
// the right result in silence: the interpreter reports it, or the numbers differ.
//
//===----------------------------------------------------------------------===//
#include "DeviceSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include <algorithm>
#include <array>

using namespace mlir;
using namespace moa;
using namespace moa::test;

namespace {

class DeviceMutations : public ::testing::Test {
protected:
  /// Two blocks of rows, several tiles of keys with a guard and without.
  void SetUp() override {
    sizes.queries = 140;
    sizes.keys = 420;
    sizes.depth = sizes.width = 128;
    sizes.heads = 1;
    prepare(kAttend);
  }

  /// Takes one version of the kernel: that for few rows, or else the other one.
  void prepare(const std::string &spec, bool isOfFewRows = false) {
    std::vector<std::string> disabled;
    if (!isOfFewRows)
      disabled.push_back("R4");
    Compilation unit = compileAttend(sizes, "bf16", spec, disabled);
    auto text = unit.print(Level::Device);
    ASSERT_TRUE(text) << unit.renderDiagnostics();
    program = std::make_unique<DeviceProgram>(*text);
    if (isOfFewRows) {
      auto kernels = DeviceProgram::programOf(program->get()).getBody().getOps<device::KernelOp>();
      notLaunched = (*kernels.begin()).getSymName().str();
    }
    auto arrays = attendInputs(sizes, BFloat16Type::get(program->get().getContext()));
    if (spec == kTopLeft)
      for (ReferenceArray *array : {&arrays[1], &arrays[2]})
        std::fill(array->data.begin() + sizes.queries * 128, array->data.end(), NAN);
    inputs = toInputs(arrays);
    auto outputs = run(program->get());
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    right = *outputs;
  }

  llvm::Expected<std::vector<Array>> run(ModuleOp module) {
    return runDevice(DeviceProgram::programOf(module), inputs);
  }

  /// What a change leads to: an error's text, "" if the result is another, nothing
  /// if the result is the same.
  std::optional<std::string> outcome(ModuleOp module) {
    auto outputs = run(module);
    if (!outputs)
      return llvm::toString(outputs.takeError());
    for (auto [got, expected] : llvm::zip_equal(*outputs, right))
      for (auto [x, y] : llvm::zip_equal(got.data, expected.data))
        if (!sameBits(x, y))
          return "";
    return std::nullopt;
  }

  /// Applies `change` to every op of a kind, each in a copy of its own.
  template <typename OpT> std::vector<std::string> survivors(llvm::function_ref<bool(OpT)> change) {
    unsigned count = 0;
    auto isLaunched = [&](OpT op) {
      return op->template getParentOfType<device::KernelOp>().getSymName() != notLaunched;
    };
    program->get().walk([&](OpT op) { count += isLaunched(op); });
    EXPECT_GT(count, 0u);
    std::vector<std::string> list;
    for (unsigned number = 0; number < count; ++number) {
      OwningOpRef<ModuleOp> copy = program->get().clone();
      unsigned k = 0;
      OpT chosen;
      copy->walk([&](OpT op) {
        if (isLaunched(op) && k++ == number)
          chosen = op;
      });
      std::string text;
      llvm::raw_string_ostream(text) << number << ": " << chosen->getName() << " in "
                                     << chosen->getParentOp()->getName();
      if (change(chosen) && !outcome(*copy))
        list.push_back(text);
    }
    return list;
  }

  AttendSizes sizes;
  std::unique_ptr<DeviceProgram> program;
  std::string notLaunched; ///< a kernel
  KernelInputs inputs;
  std::vector<Array> right;
};

TEST_F(DeviceMutations, EveryArrivalCounts) {
  // Nobody waits for the stage of the last tile, behind the loops.
  for (const std::string &name : survivors<device::ArriveOp>([](device::ArriveOp op) { return op.erase(), true; }))
    EXPECT_EQ(name.find("in scf.for"), std::string::npos) << name;
}

TEST_F(DeviceMutations, EveryParityCounts) {
  auto flip = [](device::WaitOp op) {
    OpBuilder b(op);
    Value one = arith::ConstantIndexOp::create(b, op.getLoc(), 1);
    op.getParityMutable().assign(arith::SubIOp::create(b, op.getLoc(), one, op.getParity()).getResult());
    return true;
  };
  EXPECT_EQ(survivors<device::WaitOp>(flip), std::vector<std::string>());
}

TEST_F(DeviceMutations, EveryWaitCounts) {
  // In the loop over guarded tiles the values of the tile before have been waited for
  // when its unseen rows were cleared.
  EXPECT_LE(survivors<device::WaitOp>([](device::WaitOp op) { return op.erase(), true; }).size(), 1u);
}

TEST_F(DeviceMutations, EveryAwaitCounts) {
  auto later = [](device::AwaitOp op) { return op.setPending(op.getPending() + 1), true; };
  EXPECT_EQ(survivors<device::AwaitOp>(later), std::vector<std::string>());
  auto none = [](device::AwaitOp op) {
    op.getResult().replaceAllUsesWith(op.getFragment());
    op.erase();
    return true;
  };
  EXPECT_EQ(survivors<device::AwaitOp>(none), std::vector<std::string>());
}

TEST_F(DeviceMutations, EveryCopyCounts) {
  EXPECT_EQ(survivors<device::CopyOp>([](device::CopyOp op) { return op.erase(), true; }), std::vector<std::string>());
}

TEST_F(DeviceMutations, EveryCopyCountsForFewRows) {
  sizes.queries = 1;
  prepare(kAttend, /*isOfFewRows=*/true);
  EXPECT_EQ(survivors<device::CopyOp>([](device::CopyOp op) { return op.erase(), true; }), std::vector<std::string>());
}

TEST_F(DeviceMutations, EveryClearingCountsWhereUnseenKeysAreNaN) {
  prepare(kTopLeft);
  for (const Array &output : right)
    for (double value : output.data)
      ASSERT_FALSE(std::isnan(value));
  // The first tile's: in the loop every guarded tile but the last is seen by some row.
  unsigned cleared = 0;
  program->get().walk([&](device::ClearUnseenOp) { ++cleared; });
  auto left = survivors<device::ClearUnseenOp>([](device::ClearUnseenOp op) { return op.erase(), true; });
  EXPECT_LT(left.size(), cleared);
  // And all of them at once.
  OwningOpRef<ModuleOp> copy = program->get().clone();
  copy->walk([](device::ClearUnseenOp op) { op.erase(); });
  EXPECT_EQ(outcome(*copy), "");
}

/// Keys that grow from tile to tile move the reference of a row: in the loop over full
/// tiles, which come last, or in the one over guarded tiles, where this is the end. Keys
/// of 1e12 give scores that are shifted.
TEST_F(DeviceMutations, EveryBranchOfWarpsCounts) {
  auto skip = [](device::IfAnyOp op) {
    op.replaceAllUsesWith(ValueRange(op.getOtherwise()));
    op.erase();
    return true;
  };
  const KernelInputs even = inputs;
  const std::array<double, 4> sizesOfTiles[] = {{16.0, 64.0, 0.1, 4.0}, {0.1, 0.1, 0.1, 8.0}, {1e12, 1e12, 1e12, 1e12}};
  std::vector<std::string> left;
  for (auto [number, sizesOf] : llvm::enumerate(sizesOfTiles)) {
    inputs = even;
    for (size_t k = 0; k < inputs.arrays[1].data.size(); ++k)
      inputs.arrays[1].data[k] *= sizesOf[k / (128 * 128)];
    auto outputs = run(program->get());
    ASSERT_TRUE(bool(outputs)) << llvm::toString(outputs.takeError());
    right = *outputs;
    std::vector<std::string> now = survivors<device::IfAnyOp>(skip), both;
    std::set_intersection(left.begin(), left.end(), now.begin(), now.end(), std::back_inserter(both));
    left = number == 0 ? now : both;
  }
  EXPECT_EQ(left, std::vector<std::string>());
}

/// The accumulator and its rows with the lanes of rows and columns exchanged.
TEST_F(DeviceMutations, ALayoutThatIsNotTheMachinesGivesAnotherResult) {
  OwningOpRef<ModuleOp> copy = program->get().clone();
  unsigned changed = 0;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](device::LayoutAttr layout) -> Attribute {
    SmallVector<int64_t> strides(layout.getStrides());
    for (auto [place, size, stride] : llvm::zip(layout.getPlaces(), layout.getSizes(), strides))
      if (place == static_cast<int64_t>(device::Place::lane))
        stride = size == 8 ? 1 : 8;
    ++changed;
    return device::LayoutAttr::get(layout.getContext(), layout.getRanks(), layout.getPlaces(), layout.getSizes(),
                                   strides);
  });
  replacer.recursivelyReplaceElementsIn(*copy, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
  EXPECT_GT(changed, 0u);
  EXPECT_EQ(outcome(*copy), "");
}

/// Blocks of kernels that may run beside each other stand in one order: where one needs what the
/// other one writes, some orders say so.
TEST(DeviceOrder, KernelsBesideEachOther) {
  auto text = [](const std::string &attributes) {
    return R"(device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"],
        result_types = [!moa.array<[N], f32>], workspace_names = ["w"], workspace_types = [!moa.array<[N], f32>]} {
      ^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %w: !moa.array<[N], f32>):
      device.kernel @a blocks "N" threads 32 {
        %i = device.block
        %t = device.thread
        %zero = arith.constant 0 : index
        %is = arith.cmpi eq, %t, %zero : index
        scf.if %is {
          %s = device.symbol "x.s0"
          %from = arith.muli %i, %s : index
          %e = device.load %x[%from] : !moa.array<[N], f32> -> f32
          device.store %e, %w[%i] : f32, !moa.array<[N], f32>
        }
      }
      device.kernel @b blocks "N" threads 32 )" +
           attributes + R"( {
        %i = device.block
        %t = device.thread
        %zero = arith.constant 0 : index
        %is = arith.cmpi eq, %t, %zero : index
        scf.if %is {
          %e = device.load %w[%i] : !moa.array<[N], f32> -> f32
          %s = device.symbol "y.s0"
          %to = arith.muli %i, %s : index
          device.store %e, %y[%to] : f32, !moa.array<[N], f32>
        }
      }
    })";
  };
  KernelInputs inputs;
  inputs.arrays.push_back({{8}, {0, 1, 2, 3, 4, 5, 6, 7}});
  auto run = [&](const std::string &attributes, uint64_t seed) {
    DeviceProgram program(text(attributes));
    DeviceOptions options;
    options.interleaving = seed;
    auto outputs = runDevice(DeviceProgram::programOf(program.get()), inputs, options);
    if (!outputs)
      return llvm::toString(outputs.takeError());
    return (*outputs)[0].data == inputs.arrays[0].data ? std::string() : std::string("wrong");
  };
  unsigned found = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(run("", seed), "");
    found += !run("attributes {moa.beside}", seed).empty();
  }
  EXPECT_EQ(run("attributes {moa.beside}", 0), ""); // by their numbers
  EXPECT_EQ(found, 7u);
}

} // namespace
