//===- SkipUnchosen.cpp - blocks that have nothing to do end at once ------===//
//
// Blocks of a kernel that an array chooses look up whether it chooses them, behind the arithmetic of their
// indices. Where it chooses none, thousands of them do so, wave after wave. What stores the array knows that first.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/Launches.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace moa::device {
#define GEN_PASS_DEF_DEVICESKIPUNCHOSEN
#include "dialects/Device/Transforms/DevicePasses.h.inc"

namespace {
/// A kernel has few blocks if another one has more by this factor.
constexpr double kFew = 16;

/// An array that chooses, and where one kernel stores it.
struct Choices {
  KernelOp writer;
  SmallVector<StoreOp> stores;
};

/// An array and the value of it that blocks do something for.
using Choice = std::pair<BlockArgument, int64_t>;

class Skipper {
public:
  explicit Skipper(ProgramOp program) : program(program), b(program.getContext()) {
    llvm::append_range(kernels, program.getBody().getOps<KernelOp>());
    for (KernelOp kernel : kernels) {
      degree = std::max(degree, degreeOf(kernel));
      most = std::max(most, countBlocks(kernel));
    }
  }

  void run() {
    llvm::MapVector<Choice, SmallVector<KernelOp>> readers;
    for (KernelOp kernel : kernels)
      if (auto choice = findChoice(kernel))
        readers[*choice].push_back(kernel);
    for (auto &[choice, list] : readers) {
      auto choices = findStores(choice.first);
      if (!choices || !isClearedBefore(choices->writer))
        continue;
      llvm::erase_if(list, [&](KernelOp kernel) { return !isLaunchedFor(kernel, choices->writer); });
      if (!list.empty())
        add(choice, *choices, list);
    }
  }

private:
  /// Whether a kernel has so many blocks that it pays to end them. One that runs beside the one in front of it hides
  /// them there, and has a last block that waits.
  bool hasMany(KernelOp kernel) {
    return degreeOf(kernel) == degree && kFew * countBlocks(kernel) >= most && !kernel->hasAttr(kBesideAttr);
  }

  /// What blocks are chosen by where there are many, and none ends early yet.
  std::optional<Choice> findChoice(KernelOp kernel) {
    auto chosen = kernel->getAttrOfType<DictionaryAttr>(kChosenAttr);
    if (!chosen || !hasMany(kernel) || !kernel.getBody().getOps<ExitIfOp>().empty())
      return std::nullopt;
    auto by = chosen.getAs<StringAttr>("by");
    auto is = chosen.getAs<IntegerAttr>("is");
    SmallVector<StringRef> names = program.getAllNames();
    auto found = by && is ? llvm::find(names, by.getValue()) : names.end();
    if (found == names.end())
      return std::nullopt;
    return Choice{program.getBody().getArgument(found - names.begin()), is.getInt()};
  }

  /// The stores of an array of the workspace if one kernel has them all, and each stores one element.
  std::optional<Choices> findStores(BlockArgument array) {
    Choices choices;
    if (!program.isWorkspace(array) || !isa<IntegerType>(cast<ArrayType>(array.getType()).getElementType()))
      return std::nullopt;
    for (Operation *user : array.getUsers()) {
      if (isa<LoadOp, LoadRunOp>(user))
        continue;
      auto store = dyn_cast<StoreOp>(user);
      Operation *around = user->getParentOp();
      while (isa<scf::IfOp, scf::ForOp>(around))
        around = around->getParentOp();
      auto kernel = dyn_cast<KernelOp>(around);
      if (!store || !kernel || (choices.writer && choices.writer != kernel))
        return std::nullopt;
      choices.writer = kernel;
      choices.stores.push_back(store);
    }
    return choices.writer ? std::optional(choices) : std::nullopt;
  }

  /// Whether the first kernel is always launched, has a block, and has ended when the writer starts.
  bool isClearedBefore(KernelOp writer) {
    KernelOp first = kernels.front();
    auto blocks = SymExpr::parse(first.getBlocks())->getConstant();
    if (!conditionsOf(first).empty() || !blocks || *blocks <= 0 || !first.getBody().getOps<ExitIfOp>().empty())
      return false;
    for (KernelOp kernel : ArrayRef(kernels).drop_front()) {
      if (!kernel->hasAttr(kBesideAttr)) // this one has waited for the first
        return kernel == writer || kernel->isBeforeInBlock(writer);
    }
    return false;
  }

  /// Whether the writer stands in front of a kernel, and hosts launch it wherever they launch that.
  static bool isLaunchedFor(KernelOp kernel, KernelOp writer) {
    auto pairs = conditionsOf(kernel);
    return writer->isBeforeInBlock(kernel) &&
           llvm::all_of(conditionsOf(writer), [&](const auto &pair) { return llvm::is_contained(pairs, pair); });
  }

  Value zeroOf(Location loc) { return arith::ConstantIndexOp::create(b, loc, 0); }
  Value numberOf(Location loc, Type type, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  void add(const Choice &choice, const Choices &choices, ArrayRef<KernelOp> readers) {
    auto [array, value] = choice;
    SmallVector<StringRef> names = program.getAllNames();
    std::string name = (names[array.getArgNumber()] + "_any" + Twine(value)).str();
    while (llvm::is_contained(names, name))
      name += "_";
    Value flag = program.addWorkspace(name, ArrayType::get(b.getContext(), {SymExpr(1)}, b.getI32Type()));
    clear(flag);
    for (StoreOp store : choices.stores)
      raise(flag, store, value);
    for (KernelOp kernel : readers)
      exit(flag, kernel);
  }

  /// The first thread of the first kernel stores 0.
  void clear(Value flag) {
    KernelOp first = kernels.front();
    Location loc = first.getLoc();
    if (!clears) {
      b.setInsertionPointToStart(&first.getBody().front());
      auto isFirst = [&](Value number) -> Value {
        return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, number, zeroOf(loc));
      };
      Value ofBlock = isFirst(BlockOp::create(b, loc)), ofThread = isFirst(ThreadOp::create(b, loc));
      Value one = arith::AndIOp::create(b, loc, ofBlock, ofThread);
      clears = scf::IfOp::create(b, loc, one, /*withElseRegion=*/false);
    }
    b.setInsertionPoint(clears.thenYield());
    StoreOp::create(b, loc, numberOf(loc, b.getI32Type(), 0), flag, zeroOf(loc), /*pairs=*/false);
  }

  /// Whoever stores the value raises the flag.
  void raise(Value flag, StoreOp store, int64_t value) {
    Location loc = store.getLoc();
    b.setInsertionPointAfter(store);
    Value number = numberOf(loc, store.getValue().getType(), value);
    Value isIt = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, store.getValue(), number);
    auto branch = scf::IfOp::create(b, loc, isIt, /*withElseRegion=*/false);
    b.setInsertionPoint(branch.thenYield());
    RaiseOp::create(b, loc, flag);
  }

  /// Blocks end where nobody has.
  void exit(Value flag, KernelOp kernel) {
    Location loc = kernel.getLoc();
    b.setInsertionPointToStart(&kernel.getBody().front());
    Value any = LoadOp::create(b, loc, b.getI32Type(), flag, zeroOf(loc));
    Value none = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, any, numberOf(loc, b.getI32Type(), 0));
    ExitIfOp::create(b, loc, none);
  }

  ProgramOp program;
  OpBuilder b;
  SmallVector<KernelOp> kernels;
  unsigned degree = 0;
  double most = 0;
  scf::IfOp clears; ///< of the first kernel's first thread
};

struct DeviceSkipUnchosen final : impl::DeviceSkipUnchosenBase<DeviceSkipUnchosen> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](ProgramOp program) { Skipper(program).run(); });
  }
};
} // namespace
} // namespace moa::device
