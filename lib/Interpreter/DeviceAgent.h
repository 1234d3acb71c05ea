//===- DeviceAgent.h - warpgroups and producer of a block -------*- C++ -*-===//
#ifndef MOA_INTERPRETER_DEVICEAGENT_H
#define MOA_INTERPRETER_DEVICEAGENT_H

#include "lib/Interpreter/DeviceLayouts.h"
#include "lib/Interpreter/DeviceShared.h"
#include <functional>

namespace moa::interp {

/// The rendezvous of a block's consumers in clear_unseen.
struct Meeting {
  device::ClearUnseenOp op;
  int64_t stage = 0;
  std::vector<uint8_t> seen, present; // per row; per agent
  unsigned arrived = 0;
  uint64_t round = 0; // number of completed meetings
};

/// A list of `device.collect`, with indices relative to the first one asked for.
struct MemberList {
  int64_t first = 0;
  std::vector<int64_t> members;
};

/// State shared by the agents of one block.
struct BlockState {
  /// `warps` gives the number of warps of each agent.
  BlockState(Launch &launch, LayoutTables &layouts, llvm::ArrayRef<unsigned> warps, int64_t limit)
      : layouts(layouts), shared(launch, warps, limit), consumers(std::max<unsigned>(warps.size(), 2) - 1) {}
  LayoutTables &layouts;
  Shared shared;
  unsigned consumers;
  Meeting meeting;
  llvm::DenseMap<mlir::Value, MemberList> lists;
};

/// A warpgroup, the producer's thread, or all threads of a kernel without roles.
class Agent final : public Threads {
public:
  Agent(Launch &launch, Registers &registers, size_t width, std::string where, BlockState &block, unsigned number,
        int64_t firstThread)
      : Threads(launch, registers, width, std::move(where)), block(block), number(number), firstThread(firstThread) {}

  void checkEnd();
  std::string describeWait();
  /// Runs the roles of a warp-specialised block.
  std::function<void(device::SpecializeOp)> runRoles;

protected:
  bool special(mlir::Operation *op) override;
  bool finishRegion(Frame &frame) override;
  int64_t threadNumber(size_t k) override { return firstThread + k; }

private:
  bool isWarpgroup(mlir::Operation *op);
  bool isTogether(mlir::Operation *op);
  std::optional<unsigned> barrierOf(mlir::Value barriers, mlir::Value slot, mlir::Operation *op);
  std::optional<std::vector<int64_t>> indicesOf(mlir::OperandRange values, mlir::Operation *op);
  /// Returns the stage, the barrier and the array of a copy.
  template <typename OpT> std::optional<PendingCopy> describe(OpT op);
  bool copy(device::CopyOp op);
  void enter(device::CopyRowsOp op);
  bool finishRound(device::CopyRowsOp op, Frame &frame);
  bool wait(device::WaitOp op);
  bool arrive(device::ArriveOp op);
  void fill(device::FillOp op);
  void contract(device::ContractOp op);
  bool readOperand(device::ContractOp op, const FlightPtr &contraction, std::vector<double> &rows);
  bool readStage(device::ContractOp op, const FlightPtr &contraction, std::vector<double> &columns);
  void await(device::AwaitOp op);
  bool clearUnseen(device::ClearUnseenOp op);
  void clear(device::ClearUnseenOp op, RingMemory &ring);
  void storeTile(device::StoreTileOp op);
  void writeOutput(device::StoreTileOp op, const RingMemory &ring, int64_t stage, int64_t first,
                   std::vector<int64_t> coordinates);
  void awaitStores(device::AwaitStoresOp op);
  void syncWarpgroup(device::SyncWarpgroupOp op);
  void publish(device::PublishOp op);
  void syncCluster(device::SyncClusterOp op);
  void loadPeer(device::LoadPeerOp op);
  unsigned warpOf(size_t thread) const { return block.shared.getWarp(number, thread / kWarpThreads); }
  /// Operations of warps on their own registers (DeviceWarps.cpp).
  std::vector<uint8_t> activeWarps() const;
  void contractFragments(device::ContractFragmentsOp op);
  void loadFragment(device::LoadFragmentOp op);
  void convertLayout(device::ConvertLayoutOp op);
  void map(device::MapOp op);
  bool bindElements(device::MapOp op, const LayoutTable &table);
  void reduce(device::ReduceOp op);
  bool holdsRow(device::ReduceOp op, int32_t place, const LayoutTable &table, const std::vector<int32_t> &rowOf);
  void addPairs(device::ReduceOp op, const Lanes &cells, const LayoutTable &table, const LayoutTable &rows,
                const std::vector<int32_t> &rowOf);
  /// Returns for each warp whether a boolean fragment is true for any active thread.
  std::vector<uint8_t> anyOf(mlir::Value condition, mlir::Operation *op);
  void any(device::AnyOp op);
  void enter(device::IfAnyOp op);
  void enter(device::CollectOp op);
  bool beginRound(Frame &frame);
  bool finishRound(device::CollectOp op, Frame &frame);
  void member(device::MemberOp op);
  bool checkReplicas(mlir::Value fragment, llvm::ArrayRef<Cell> cells, mlir::Operation *op);
  const LayoutTable &tableOf(mlir::Value fragment) {
    return block.layouts.get(mlir::cast<device::FragmentType>(fragment.getType()).getLayout());
  }

  BlockState &block;
  unsigned number;
  int64_t firstThread;
  std::optional<uint64_t> joined; // round of the meeting it waits in
  std::vector<FlightPtr> stores;  // bulk stores of tiles in flight
  PendingCopy rowsCopied;         // of the device.copy_rows whose body runs
};

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICEAGENT_H
