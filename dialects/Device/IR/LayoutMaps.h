//===- LayoutMaps.h - what follows from the digits of layouts ---*- C++ -*-===//
//
// A digit adds to an index by itself: the index of an element is what its warp adds,
// what its lane adds and what its register adds. So a layout is compared with the
// formulas of an instruction place by place, and where two layouts hold an element
// follows from their digits alone.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DEVICE_IR_LAYOUTMAPS_H
#define MOA_DIALECTS_DEVICE_IR_LAYOUTMAPS_H

#include "dialects/Device/IR/Device.h"
#include <array>
#include <optional>
#include <string>

namespace moa::device {

inline constexpr int64_t kWarps = 4, kLanes = 32;

/// A warp, a lane of it, a register of that thread.
struct Where {
  int64_t warp = 0, lane = 0, reg = 0;
  bool operator==(const Where &other) const {
    return warp == other.warp && lane == other.lane && reg == other.reg;
  }
  int64_t of(Place place) const {
    return place == Place::warp ? warp : place == Place::lane ? lane : reg;
  }
};

using Indices = llvm::SmallVector<int64_t, 2>;

/// A layout as a map from places to elements, and back.
class LayoutMap {
public:
  explicit LayoutMap(LayoutAttr layout);
  /// The indices of the element that a place holds.
  Indices getIndices(const Where &where) const;
  /// Where an element is: of its replicas the one in the warp and lane of `near`, if
  /// there is one.
  Where getWhere(llvm::ArrayRef<int64_t> indices, const Where &near) const;

private:
  llvm::SmallVector<llvm::SmallVector<LayoutAttr::Digit>> axes;
  llvm::SmallVector<LayoutAttr::Digit> replicas;
};

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

/// An operand of mma.sync: its extents, and the row and column of element i of a lane.
struct TileOperand {
  int64_t rows, columns, elements;
  std::array<int64_t, 2> (*place)(int64_t lane, int64_t i);
};

/// mma.sync m…n…k… (PTX ISA 8.6, 9.7.14.5).
struct TileInstruction {
  int64_t m, n, k;
  TileOperand a, b, c;
};

/// The registers of a fragment that are the elements of an operand's tiles.
struct TileRegisters {
  llvm::SmallVector<int64_t> rowStarts, columnStarts; ///< behind those of the warp
  /// [row of tiles][column of tiles][element]
  std::vector<std::vector<llvm::SmallVector<int64_t, 8>>> registers;
};

/// Nothing if the layout is not one of such tiles.
std::optional<TileRegisters> getTileRegisters(LayoutAttr layout, const TileOperand &operand);

/// A contraction of fragments, tile by tile.
struct TileContraction {
  const TileInstruction *instruction = nullptr;
  TileRegisters a, b, c;
};

/// The largest instruction that the layouts hold tiles of; else what a verifier says.
std::optional<TileContraction> getTileContraction(FragmentType a, FragmentType b, FragmentType c,
                                                  std::string &why);

//===----------------------------------------------------------------------===//
// Reading tiles
//===----------------------------------------------------------------------===//

/// Instructions that read a fragment of packed pairs from a tile.
struct MatrixLoads {
  bool isTransposed = false; ///< ldmatrix.trans
  int64_t count = 1;         ///< matrices of one instruction: 1, 2 or 4
  /// Rows and columns of the tile between the matrices 0 and 1, and 0 and 2.
  std::array<Indices, 2> steps = {Indices{0, 0}, Indices{0, 0}};
  struct Load {
    int64_t row = 0, column = 0;         ///< of the first matrix
    llvm::SmallVector<int64_t, 4> pairs; ///< of registers, by their numbers
  };
  std::vector<Load> loads;
};

/// `transposed`: the fragment's columns lie along the tile's rows. Nothing if lanes do
/// not hold what the instruction gives them.
std::optional<MatrixLoads> getMatrixLoads(LayoutAttr layout, bool transposed);

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// How registers of one layout come from those of another.
struct LayoutConversion {
  int64_t width = 1;       ///< registers that move as one: 2 for pairs that stay together
  bool movesLanes = false; ///< some thread takes an element from another lane
  /// For each of the result's registers (pairs, for a width of 2) those that the threads
  /// take it from, ascending.
  std::vector<llvm::SmallVector<int64_t, 4>> sources;
};

/// `packed`: registers are pairs of 16 bits. Else why there is none: an element that
/// leaves its warp.
std::optional<LayoutConversion> getConversion(LayoutAttr from, LayoutAttr to, bool packed,
                                              std::string &why);

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Whether warps read stages of a ring by themselves (`device.load_fragment`).
bool isReadByWarps(mlir::Value ring);

/// Returns the wait that directly follows a store, so that one branch of a thread does both; null
/// if there is none.
AwaitStoresOp findWait(StoreTileOp store);
/// The elements of one access of a run that is read into such a private array: what the offset of
/// an aligned run is a multiple of.
int64_t countAligned(mlir::MemRefType buffer);
/// Whether a kernel's text needs the number of a thread's warp or lane.
bool usesLanes(KernelOp kernel);
/// Whether all barriers of the kernel are known behind this op.
bool isLastBarriers(mlir::Operation *op);

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_IR_LAYOUTMAPS_H
