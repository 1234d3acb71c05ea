//===- DeviceLayouts.h - elements of fragments in registers -----*- C++ -*-===//
#ifndef MOA_INTERPRETER_DEVICELAYOUTS_H
#define MOA_INTERPRETER_DEVICELAYOUTS_H

#include "dialects/Device/IR/Device.h"
#include "lib/Interpreter/DeviceLanes.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace moa::interp {

inline constexpr int64_t kWarpThreads = 32, kWarpgroupThreads = 128;

/// A layout as tables. Place p = thread · R + register holds one element.
struct LayoutTable {
  explicit LayoutTable(device::LayoutAttr layout);

  device::LayoutAttr layout;
  int64_t registers = 1, count = 1; // per thread; elements
  std::vector<int64_t> shape;
  std::vector<std::vector<int32_t>> indices; // per axis, of every place
  std::vector<Lanes> indexLanes;             // the same as values of threads
  /// With two axes: the places of every thread in the order of their columns.
  std::vector<int32_t> byColumn;
  std::vector<int32_t> elements; // of every place, row-major number
  std::vector<uint8_t> isFirst;  // of every place, true if its replica digits are all 0
  bool isReplicated = false;
};

/// Caches tables by layout, and maps places of elements to places of their rows.
class LayoutTables {
public:
  const LayoutTable &get(device::LayoutAttr layout);
  /// Returns for each place of `whole` the place of its row in the same thread under `rows`, or −1
  /// if the thread does not hold the row.
  const std::vector<int32_t> &getRows(device::LayoutAttr whole, device::LayoutAttr rows);

private:
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<LayoutTable>> tables;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, std::unique_ptr<std::vector<int32_t>>> rowTables;
};

/// Returns row and column of register `reg` of a thread in the accumulator of wgmma.m64nNk16 (PTX
/// ISA 8.0, 9.7.14.5.1, figure of matrix D).
inline std::pair<int64_t, int64_t> accumulatorPlace(int64_t thread, int64_t reg) {
  int64_t warp = thread / 32, lane = thread % 32;
  return {16 * warp + lane / 4 + 8 * (reg / 2 % 2), reg / 4 * 8 + lane % 4 * 2 + reg % 2};
}

/// Returns row and column of element `i` of 8 in the registers of operand A, m64k16 (ibid., figure
/// of matrix A). A group of four lanes holds row lane/4 for i in 0, 1, 4, 5, and row lane/4 + 8
/// otherwise. The column is 2·(lane mod 4) + i mod 2, plus 8 for i ≥ 4.
inline std::pair<int64_t, int64_t> operandPlace(int64_t thread, int64_t i) {
  int64_t warp = thread / 32, lane = thread % 32;
  bool isLower = i == 2 || i == 3 || i == 6 || i == 7;
  return {16 * warp + lane / 4 + (isLower ? 8 : 0), lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0)};
}

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICELAYOUTS_H
