//===- LayoutMaps.h - maps derived from the digits of layouts ---*- C++ -*-===//
//
// Digits contribute to an index independently: an element's index is the sum of the contributions
// of its warp, its lane and its register. So each place of a layout can be compared separately with
// the formulas of an instruction, and conversions between two layouts follow from their digits
// alone.
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

struct Where {
  int64_t warp = 0, lane = 0, reg = 0;
  bool operator==(const Where &other) const { return warp == other.warp && lane == other.lane && reg == other.reg; }
  int64_t of(Place place) const { return place == Place::warp ? warp : place == Place::lane ? lane : reg; }
};

using Indices = llvm::SmallVector<int64_t, 2>;

/// A layout as a map from places to elements, and back.
class LayoutMap {
public:
  explicit LayoutMap(LayoutAttr layout);
  Indices getIndices(const Where &where) const;
  /// Returns the place of an element. Of several replicas it returns the one in the warp and lane
  /// of `near`, if there is one.
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

/// The registers of a fragment, ordered as elements of an operand's tiles.
struct TileRegisters {
  llvm::SmallVector<int64_t> rowStarts, columnStarts; ///< relative to the warp's first element
  /// [row of tiles][column of tiles][element]
  std::vector<std::vector<llvm::SmallVector<int64_t, 8>>> registers;
};

/// Returns nothing if the layout does not consist of such tiles.
std::optional<TileRegisters> getTileRegisters(LayoutAttr layout, const TileOperand &operand);

struct TileContraction {
  const TileInstruction *instruction = nullptr;
  TileRegisters a, b, c;
};

/// Returns the contraction with the largest instruction whose tiles the layouts hold. Otherwise
/// returns nothing and sets `why` to the verifier's message.
std::optional<TileContraction> getTileContraction(FragmentType a, FragmentType b, FragmentType c, std::string &why);

//===----------------------------------------------------------------------===//
// Reading tiles
//===----------------------------------------------------------------------===//

/// The ldmatrix instructions that read a fragment of packed pairs from a tile.
struct MatrixLoads {
  bool isTransposed = false; ///< ldmatrix.trans
  int64_t count = 1;         ///< matrices per instruction: 1, 2 or 4
  /// Distance in rows and columns of the tile from matrix 0 to matrix 1, and to matrix 2.
  std::array<Indices, 2> steps = {Indices{0, 0}, Indices{0, 0}};
  struct Load {
    int64_t row = 0, column = 0;         ///< of the first matrix
    llvm::SmallVector<int64_t, 4> pairs; ///< numbers of register pairs
  };
  std::vector<Load> loads;
};

/// Returns nothing if lanes do not hold the elements that ldmatrix gives them. `transposed`: the
/// fragment's columns lie along the tile's rows.
std::optional<MatrixLoads> getMatrixLoads(LayoutAttr layout, bool transposed);

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// The registers of one layout as functions of those of another.
struct LayoutConversion {
  int64_t width = 1;       ///< registers that move together: 2 if pairs stay pairs
  bool movesLanes = false; ///< true if some thread reads from another lane
  /// For each register of the result (for each pair if the width is 2), the source registers of all
  /// threads, ascending.
  std::vector<llvm::SmallVector<int64_t, 4>> sources;
};

/// Returns nothing, and the reason in `why`, if an element would leave its warp. `packed`:
/// registers are pairs of 16 bits.
std::optional<LayoutConversion> getConversion(LayoutAttr from, LayoutAttr to, bool packed, std::string &why);

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// Returns true if warps read the ring's stages themselves (`device.load_fragment`).
bool isReadByWarps(mlir::Value ring);

/// Returns the wait directly after a store, or null. One branch of a thread can then do both.
AwaitStoresOp findWait(StoreTileOp store);
/// Returns the number of elements of one access of a run with this private array. The offset of an
/// aligned run is a multiple of it.
int64_t countAligned(mlir::MemRefType buffer);
/// Returns true if the kernel's text needs the number of a thread's warp or lane.
bool usesLanes(KernelOp kernel);
/// Returns true if this op is the last `device.barriers` of the kernel, so that all barriers are
/// known after it.
bool isLastBarriers(mlir::Operation *op);

} // namespace moa::device

#endif // MOA_DIALECTS_DEVICE_IR_LAYOUTMAPS_H
