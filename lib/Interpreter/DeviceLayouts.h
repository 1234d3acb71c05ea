//===- DeviceLayouts.h - elements of fragments in registers -----*- C++ -*-===//
#ifndef MOA_INTERPRETER_DEVICELAYOUTS_H
#define MOA_INTERPRETER_DEVICELAYOUTS_H

#include "dialects/Device/IR/Device.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>

namespace moa::interp {

inline constexpr int64_t kWarpThreads = 32, kWarpgroupThreads = 128;

/// A layout spelled out: place p = thread · R + register holds one element.
struct LayoutTable {
  explicit LayoutTable(device::LayoutAttr layout);

  device::LayoutAttr layout;
  int64_t registers = 1, count = 1; // per thread; elements
  std::vector<int64_t> shape;
  std::vector<std::vector<int32_t>> indices; // per axis, of every place
  std::vector<int32_t> elements;             // of every place, row-major
  std::vector<uint8_t> isFirst;              // the place whose replica digits are all 0
  bool isReplicated = false;
};

/// Tables by layout, and the places of rows that go with places of elements.
class LayoutTables {
public:
  const LayoutTable &get(device::LayoutAttr layout);
  /// Per place of `whole`, the place of its row in the same thread under `rows`; −1
  /// where the thread does not hold the row.
  const std::vector<int32_t> &getRows(device::LayoutAttr whole, device::LayoutAttr rows);

private:
  llvm::DenseMap<mlir::Attribute, std::unique_ptr<LayoutTable>> tables;
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, std::unique_ptr<std::vector<int32_t>>>
      rowTables;
};

/// Row and column of register `reg` of a thread in the accumulator of
/// wgmma.m64nNk16 (PTX ISA 8.0, 9.7.14.5.1, figure of matrix D).
inline std::pair<int64_t, int64_t> accumulatorPlace(int64_t thread, int64_t reg) {
  int64_t warp = thread / 32, lane = thread % 32;
  return {16 * warp + lane / 4 + 8 * (reg / 2 % 2), reg / 4 * 8 + lane % 4 * 2 + reg % 2};
}

/// The same of element `i` of 8 in the registers of operand A, m64k16: the groups of
/// four lanes hold rows lane/4 (i in 0, 1, 4, 5) and lane/4 + 8, columns 2·(lane mod
/// 4) + i mod 2, 8 more from i = 4 (ibid., figure of matrix A).
inline std::pair<int64_t, int64_t> operandPlace(int64_t thread, int64_t i) {
  int64_t warp = thread / 32, lane = thread % 32;
  bool isLower = i == 2 || i == 3 || i == 6 || i == 7;
  return {16 * warp + lane / 4 + (isLower ? 8 : 0), lane % 4 * 2 + i % 2 + (i >= 4 ? 8 : 0)};
}

} // namespace moa::interp

#endif // MOA_INTERPRETER_DEVICELAYOUTS_H
