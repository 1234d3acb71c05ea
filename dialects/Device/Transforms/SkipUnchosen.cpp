//===- SkipUnchosen.cpp - end blocks early if an array chooses none -------===//
//
// Blocks of a kernel with a choice load it after the arithmetic of their indices. If no block is
// chosen, thousands of blocks do so, wave after wave. The kernel that stores the choices knows this
// first, and can set a flag.
//
// If a kernel in between has waited for the one that stores, later kernels need not wait again to
// learn that they have no work. So they, and kernels whose results only they read, end while its
// last blocks run.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/Transforms/Accesses.h"
#include "dialects/Device/Transforms/KernelRewrites.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
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

/// The stores of an array of choices, all in one kernel: device.store or device.store_run.
struct Choices {
  KernelOp writer;
  SmallVector<Operation *> stores;
};

/// An array of choices, and the value for which blocks do work.
using Choice = std::pair<BlockArgument, int64_t>;

class Skipper {
public:
  explicit Skipper(ProgramOp program) : program(program), b(program.getContext()), stores(program) {
    // Kernels that only `NAME_shown` needs are launched after the rest, whatever is chosen.
    const llvm::SetVector<KernelOp> telling = findReportOnly(program);
    for (auto kernel : program.getBody().getOps<KernelOp>())
      if (!telling.contains(kernel))
        kernels.push_back(kernel);
    for (KernelOp kernel : kernels) {
      degree = std::max(degree, degreeOf(kernel));
      most = std::max(most, countBlocks(kernel));
    }
  }

  void run() {
    llvm::MapVector<Choice, SmallVector<KernelOp>> readers;
    llvm::MapVector<Choice, KernelOp> writers;
    for (KernelOp kernel : kernels)
      for (const Choice &choice : choicesOf(kernel))
        if (auto choices = findChoices(choice))
          writers[choice] = choices->writer;
    for (KernelOp kernel : kernels)
      if (SmallVector<Choice> list = choicesOf(kernel); !list.empty() && isEnded(kernel))
        readers[list.front()].push_back(kernel);
    // Earlier stores first: later choices depend on them, so their flags skip more.
    SmallVector<std::pair<Choice, KernelOp>> order(writers.begin(), writers.end());
    llvm::stable_sort(order, [](const auto &x, const auto &y) {
      return x.second != y.second && KernelOp(x.second)->isBeforeInBlock(y.second);
    });
    llvm::MapVector<Choice, SmallVector<KernelOp>> idle;
    for (const auto &[choice, writer] : order) {
      SmallVector<KernelOp> list = idle[choice] = findIdle(choice, writer);
      for (KernelOp kernel : list)
        kernel->setAttr(kSkipFlagAttr, b.getStringAttr(nameOf(addFlag(choice))));
    }
    dropUnsafe();
    for (auto &[choice, list] : readers) {
      auto choices = findChoices(choice);
      if (!choices)
        continue;
      llvm::erase_if(list, [&](KernelOp kernel) {
        auto ends = idle.find(choice);
        return !isLaunchedFor(kernel, choices->writer) ||
               (ends != idle.end() && kernel->hasAttr(kSkipFlagAttr) && llvm::is_contained(ends->second, kernel));
      });
      if (list.empty())
        continue;
      Value flag = addFlag(choice);
      for (KernelOp kernel : list)
        exit(flag, kernel);
    }
  }

private:
  /// Returns true if the kernel has so many blocks that ending them early pays. A kernel that
  /// overlaps with the one before it hides its blocks already, and a block with work would wait for
  /// the load.
  bool hasMany(KernelOp kernel) {
    return degreeOf(kernel) == degree && kFew * countBlocks(kernel) >= most && !kernel->hasAttr(kOverlapAttr);
  }

  /// Returns the choice of a kernel, followed by the choices that it depends on (`where`).
  SmallVector<Choice> choicesOf(KernelOp kernel) {
    SmallVector<Choice> list;
    SmallVector<StringRef> names = program.getAllNames();
    for (auto at = kernel->getAttrOfType<DictionaryAttr>(kChosenAttr); at; at = at.getAs<DictionaryAttr>("where")) {
      auto by = at.getAs<StringAttr>("by");
      auto is = at.getAs<IntegerAttr>("is");
      auto found = by && is ? llvm::find(names, by.getValue()) : names.end();
      if (found == names.end())
        break;
      list.push_back({program.getBody().getArgument(found - names.begin()), is.getInt()});
    }
    return list;
  }

  /// Returns true if ending a kernel's blocks after its wait pays, and none ends early yet.
  bool isEnded(KernelOp kernel) {
    return hasMany(kernel) && !kernel->hasAttr(kSkipFlagAttr) && kernel.getBody().getOps<ExitIfOp>().empty();
  }

  /// Returns the stores of a choice if a flag can summarise them.
  std::optional<Choices> findChoices(const Choice &choice) {
    auto choices = findStores(choice.first);
    return choices && isFirstOver(program, choices->writer) ? choices : std::nullopt;
  }

  /// Returns the kernels that have no work if the value was never stored, after a kernel that waits
  /// for `writer`: those that are chosen for the value, and those whose results only such kernels
  /// read.
  SmallVector<KernelOp> findIdle(const Choice &choice, KernelOp writer) {
    SmallVector<KernelOp> list;
    SmallVector<KernelOp> waiting;
    for (KernelOp kernel : kernels) {
      if (!writer->isBeforeInBlock(kernel))
        continue;
      // If the writer has no work, kernels that wait for its choices have none either.
      bool isFree = !kernel->hasAttr(kSkipFlagAttr) || kernel->getAttr(kSkipFlagAttr) == writer->getAttr(kSkipFlagAttr);
      bool hasWaited = llvm::any_of(waiting, [&](KernelOp other) { return hasWaitedFor(other, kernel); });
      if (hasWaited && isFree && isLaunchedFor(kernel, writer))
        list.push_back(kernel);
      if (waitsAfter(kernel, writer))
        waiting.push_back(kernel);
    }
    auto isIdle = [&](KernelOp kernel) {
      // An overlapping kernel after it would not have waited for earlier kernels.
      auto next = dyn_cast_or_null<KernelOp>(kernel->getNextNode());
      if (next && next->hasAttr(kOverlapAttr) && !llvm::is_contained(list, next))
        return false;
      if (llvm::is_contained(choicesOf(kernel), choice))
        return true;
      Accesses own(kernel);
      return llvm::all_of(own.written, [&](Value array) {
        return program.isWorkspace(array) && llvm::all_of(array.getUsers(), [&](Operation *user) {
                 auto reader = user->getParentOfType<KernelOp>();
                 return reader == kernel || llvm::is_contained(list, reader);
               });
      });
    };
    while (true) {
      size_t count = list.size();
      llvm::erase_if(list, [&](KernelOp kernel) { return !isIdle(kernel); });
      if (list.size() == count)
        return list;
    }
  }

  /// Returns the stores of a workspace array if they are all in one kernel, outside of maps over
  /// tiles.
  std::optional<Choices> findStores(BlockArgument array) {
    Choices choices;
    if (!program.isWorkspace(array) || !isa<IntegerType>(cast<ArrayType>(array.getType()).getElementType()))
      return std::nullopt;
    for (Operation *user : array.getUsers()) {
      if (isa<LoadOp, LoadRunOp>(user))
        continue;
      Operation *around = user->getParentOp();
      while (isa<scf::IfOp, scf::ForOp>(around))
        around = around->getParentOp();
      auto kernel = dyn_cast<KernelOp>(around);
      if (!isa<StoreOp, StoreRunOp>(user) || !kernel || (choices.writer && choices.writer != kernel))
        return std::nullopt;
      choices.writer = kernel;
      choices.stores.push_back(user);
    }
    return choices.writer ? std::optional(choices) : std::nullopt;
  }

  /// Returns true if `writer` is before `kernel` and hosts launch it whenever they launch `kernel`.
  static bool isLaunchedFor(KernelOp kernel, KernelOp writer) {
    return writer->isBeforeInBlock(kernel) && isLaunchedWith(writer, kernel);
  }

  /// Removes skip flags that are unsafe: a kernel that waits for one choice may itself be skipped
  /// by a later one, and kernels that relied on its wait must then wait themselves.
  void dropUnsafe() {
    auto isUnsafe = [](KernelOp kernel) {
      Value flag = getSkipFlag(kernel);
      return flag && (!findWaiting(flag, kernel) || findUnsafeOverlap(kernel, flag));
    };
    for (auto found = llvm::find_if(kernels, isUnsafe); found != kernels.end();
         found = llvm::find_if(kernels, isUnsafe))
      (*found)->removeAttr(kSkipFlagAttr);
  }

  Value zeroOf(Location loc) { return arith::ConstantIndexOp::create(b, loc, 0); }
  Value numberOf(Location loc, Type type, int64_t value) {
    return arith::ConstantOp::create(b, loc, b.getIntegerAttr(type, value));
  }

  StringRef nameOf(Value array) { return program.getAllNames()[cast<BlockArgument>(array).getArgNumber()]; }

  /// Returns the flag of a choice. Creates it and its raises at the first call.
  Value addFlag(const Choice &choice) {
    auto [array, value] = choice;
    if (Value known = flags.lookup(choice))
      return known;
    std::string name = freshArrayName(program, (nameOf(array) + "_any" + Twine(value)).str());
    Value flag = program.addWorkspace(name, ArrayType::get(b.getContext(), {SymExpr(1)}, b.getI32Type()));
    stores.clear(flag);
    const Choices choices = *findStores(array);
    for (Operation *store : choices.stores) {
      b.setInsertionPointAfter(store);
      if (auto run = dyn_cast<StoreRunOp>(store))
        raise(flag, run, value);
      else
        raise(flag, cast<StoreOp>(store).getValue(), value);
    }
    return flags[choice] = flag;
  }

  void raise(Value flag, Value stored, int64_t value) {
    Location loc = stored.getLoc();
    Value isIt =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, stored, numberOf(loc, stored.getType(), value));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(scf::IfOp::create(b, loc, isIt, /*withElseRegion=*/false).thenYield());
    RaiseOp::create(b, loc, flag);
  }

  void raise(Value flag, StoreRunOp run, int64_t value) {
    Location loc = run.getLoc();
    int64_t length = cast<MemRefType>(run.getBuffer().getType()).getShape().back();
    for (int64_t k = 0; k < length; ++k) {
      Value place = arith::ConstantIndexOp::create(b, loc, k);
      Value exists = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, place, run.getCount());
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(scf::IfOp::create(b, loc, exists, /*withElseRegion=*/false).thenYield());
      SmallVector<Value> at(run.getAt());
      at.push_back(place);
      raise(flag, memref::LoadOp::create(b, loc, run.getBuffer(), at), value);
    }
  }

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
  llvm::DenseMap<Choice, Value> flags;
  FirstStores stores;
};

struct DeviceSkipUnchosen final : impl::DeviceSkipUnchosenBase<DeviceSkipUnchosen> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([](ProgramOp program) {
      if (!program.getBody().getOps<KernelOp>().empty()) // at least one stores a result
        Skipper(program).run();
    });
  }
};
} // namespace
} // namespace moa::device
