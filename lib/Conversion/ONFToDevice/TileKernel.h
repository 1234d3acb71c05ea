//===- TileKernel.h - a kernel of tiles while it is written -----*- C++ -*-===//
//
// A producer copies tiles of the keys' operands into rings. Every consumer
// warpgroup runs, for its 64 rows and each tile of keys,
//
//   scores    S = rows · keysᵀ                              contract
//   passes    states without axes: ⊕ over the tile's keys   map, reduce
//   carriers  O = c · O + P · G                             map, contract
//
// where the states of one tile are merged into the running ones with the
// repairs of their definition. There are two versions of the code for a tile:
// one for keys that every row of the block sees, and one that evaluates the
// guard.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H
#define MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H

#include "dialects/MoA/IR/Monoid.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace moa::tiles {

using rows::Carrier;
using rows::Score;
using Values = ScalarCode::Values;
using device::BarriersType;
using device::FragmentType;
using device::LayoutAttr;
using device::RingType;

inline int64_t padded(int64_t columns) { return llvm::alignTo(columns, 64); }

/// A ring, with the barriers that say when a stage is full and when empty.
struct Ring {
  mlir::Value tiles, full, empty;
};

class TileKernel {
public:
  TileKernel(const TilePlan &plan, device::ProgramOp program, unsigned number)
      : plan(plan), program(program), number(number), b(program.getContext()) {}
  llvm::LogicalResult run();

private:
  //===--- The block ------------------------------------------------------===//
  std::string tiles();
  llvm::StringRef extent(unsigned axis) {
    return llvm::cast<mlir::StringAttr>(plan.nest.getExtents()[axis])
        .getValue();
  }
  Ring makeRing(ScalarCode &code, llvm::StringRef name, int64_t stages,
                int64_t rows, int64_t columns, mlir::Type element,
                bool withEmpty);
  void bindBlock(ScalarCode &code);
  std::pair<mlir::Value, mlir::Value>
  interval(ScalarCode &code, mlir::AffineMap lower, mlir::AffineMap upper);
  void findRange(ScalarCode &code);
  void findFullRange(ScalarCode &code);
  mlir::Value tileAt(ScalarCode &code, mlir::Value position,
                     std::optional<bool> masked);
  mlir::Value hasAllRows(ScalarCode &code);
  void copy(ScalarCode &code, const TileOperand &operand, mlir::Value first,
            const Ring &ring, mlir::Value stage);
  std::pair<mlir::Value, mlir::Value> stageOf(ScalarCode &code, mlir::Value n);
  void produce(ScalarCode &code);

  //===--- A consumer -----------------------------------------------------===//
  /// The states without axes, a fragment of rows each, and whether those with
  /// references have started.
  struct State {
    mlir::Value value, started;
    mlir::Value terms; // of the tile that has been merged last
  };
  void consume(ScalarCode &code);
  Values initialise(ScalarCode &code);
  Values iterate(ScalarCode &code, mlir::Value n, mlir::ValueRange args,
                 bool masked, bool overlapped);
  unsigned countScalarStates();
  unsigned unrepaired();
  void startCarriers(ScalarCode &code, mlir::Value n, Values &sums,
                     mlir::ValueRange weightsOf);
  void finishCarriers(ScalarCode &code, mlir::Value n, Values &sums);
  Values passes(ScalarCode &code, mlir::ValueRange scores,
                mlir::ValueRange args, mlir::Value first, bool masked);
  Values scalarStep(ScalarCode &code, const rows::Scalar &scalar, unsigned k,
                    mlir::ValueRange scores, llvm::ArrayRef<State> olds,
                    llvm::SmallVectorImpl<State> &news, mlir::Value first,
                    bool masked);
  std::optional<unsigned> findTerms(const Carrier &carrier,
                                    llvm::ArrayRef<State> news);
  mlir::Value weights(ScalarCode &code, const Carrier &carrier,
                      mlir::ValueRange scores, llvm::ArrayRef<State> news,
                      mlir::Value first, bool masked);
  mlir::Value factors(ScalarCode &code, onf::AccOp acc,
                      llvm::ArrayRef<State> olds, llvm::ArrayRef<State> news,
                      mlir::Value started);
  void finish(ScalarCode &code, mlir::ValueRange finals);
  std::optional<unsigned> findRowAxis(onf::StoreOp store, mlir::Value loopIndex,
                                      unsigned carrier);
  void bindFinals(ScalarCode &code, mlir::ValueRange in, mlir::ValueRange at);
  void writeElements(ScalarCode &code, mlir::ValueRange finals,
                     mlir::Block &block, std::optional<unsigned> carrier,
                     mlir::Value loopIndex);
  void writeTile(ScalarCode &code, mlir::ValueRange finals, onf::StoreOp store,
                 unsigned carrier, unsigned rowAxis, mlir::Value loopIndex);
  mlir::Value resultOf(onf::AccOp acc) {
    llvm::SmallVector<onf::AccOp> accs = rows::getAccs(plan.fold);
    return plan.fold.getResult(llvm::find(accs, acc) - accs.begin());
  }

  //===--- Maps -----------------------------------------------------------===//
  mlir::Type elementOf(mlir::Value fragment) {
    return llvm::cast<FragmentType>(fragment.getType()).getElementType();
  }
  FragmentType rowType(mlir::Type element) {
    LayoutAttr layout =
        LayoutAttr::getAccumulator(b.getContext(), 64).getSlice(0);
    return FragmentType::get(b.getContext(), {64}, element, layout);
  }
  FragmentType tileType(int64_t columns, mlir::Type element) {
    return FragmentType::get(
        b.getContext(), {64, columns}, element,
        LayoutAttr::getAccumulator(b.getContext(), columns));
  }
  /// A map over rows, or over rows and `columns`. The body gets the inputs'
  /// elements and the element's indices.
  Values
  map(ScalarCode &code, mlir::ValueRange inputs, int64_t columns,
      llvm::ArrayRef<mlir::Type> elements,
      llvm::function_ref<Values(mlir::ValueRange, mlir::ValueRange)> body);
  void bindElement(ScalarCode &code, mlir::ValueRange at, mlir::Value first);
  /// `value` where the element is present and `keep` holds, else `none`; what
  /// `value` reads is read only there. In tiles that are not masked every
  /// element is present.
  mlir::Value guarded(ScalarCode &code, bool masked, mlir::ValueRange at,
                      mlir::Value keep, mlir::Value none,
                      mlir::ValueRange reads,
                      llvm::function_ref<mlir::Value()> value);
  mlir::Value isPresent(ScalarCode &code);
  void clearUnseen(ScalarCode &code, mlir::Value first, mlir::Value stage,
                   mlir::Value parity);
  unsigned numberOf(mlir::Value ref) {
    for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
      if (scalar.acc == ref.getDefiningOp())
        return k;
    llvm_unreachable("references are states without axes of the same fold");
  }
  mlir::Value regular(ScalarCode &code, onf::AccOp acc,
                      llvm::ArrayRef<mlir::Value> refs);
  mlir::Value bindReferences(ScalarCode &code, onf::AccOp acc,
                             llvm::ArrayRef<mlir::Value> refs,
                             llvm::ArrayRef<mlir::Value> factors);
  mlir::Value identity(ScalarCode &code, Monoid monoid, mlir::Type type) {
    return code.constant(
        llvm::cast<mlir::TypedAttr>(getIdentity(monoid, type)));
  }

  const TilePlan &plan;
  device::ProgramOp program;
  unsigned number;
  mlir::OpBuilder b;
  llvm::SmallVector<Ring> rowRings, keyRings, carriedRings;
  bool readsMemory = false; // the states or the guard, beside the operands
  mlir::Value firstRow, lastRow,
      rowBase; // of the block, clamped; of the warpgroup
  mlir::Value firstTile, endTile, firstFull, endFull; // tiles of keys
  mlir::Value numTiles, numMasked, warpgroup;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H
