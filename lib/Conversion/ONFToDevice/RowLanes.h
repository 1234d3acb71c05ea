//===- RowLanes.h - a nest whose rows lanes share ---------------*- C++ -*-===//
//
// A nest whose folds and loops run along the last axis of what they read or store (a row's
// largest element, its norm, its quotient by either; a map, a gather of rows) has a group of
// lanes per row. A lane takes runs of adjacent elements by accesses of 16 bytes; what each
// has folded is joined by exchanges between the lanes of the group, with the repairs of the
// fold, in an order that the lanes' numbers give.
//
// A fold over something else than columns (keys, whose products with a row are folds over columns,
// and whose values states with an axis of columns add up) is *serial*: all lanes of a row take its
// indices in order, each has its columns of what folds and states inside of it run over, and its
// scalars are computed by all.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_ROWLANES_H
#define MOA_CONVERSION_ONFTODEVICE_ROWLANES_H

#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include <map>
#include <set>

namespace moa {

/// How such a nest runs. Column c of a row is element c mod `width` of run
/// c / (lanes · width) of lane (c / width) mod `lanes`.
struct RowLanes {
  mutable onf::ForOp nest;
  int64_t lanes = 32; ///< per row, a power of two
  int64_t width = 8;  ///< elements of a run, a power of two
  /// The last axis of the nest is that of the columns, and the one before that of the rows;
  /// a block has so many runs of it.
  bool columnsInNest = false;
  int64_t runs = 1;
  /// So many rows of a lane follow each other.
  int64_t turns = 1;
  /// Folds of the nest that are not over columns. Rows of a warp may take different indices of
  /// them.
  llvm::SmallVector<onf::FoldOp, 1> serial;
  bool isSerial(onf::FoldOp fold) const { return llvm::is_contained(serial, fold); }
  unsigned rowAxis() const { return nest.getExtents().size() - (columnsInNest ? 2 : 1); }
  int64_t step() const { return lanes * width; }
  int64_t rows() const { return 4 * (32 / lanes); } ///< of a block, in one turn
};

/// The form of a nest, or nothing.
std::optional<RowLanes> findRowLanes(onf::ForOp nest);
/// Whether a nest is lifted to lanes along its rows.
bool isLiftedToLanes(onf::ForOp nest);
/// Whether what is read or written at neighbours of an index is adjacent: the index is the
/// subscript of the array's last axis and of no other.
bool isAdjacentAlong(onf::LoadOp load, mlir::Value index);
bool isAdjacentAlong(onf::StoreOp store, mlir::Value index);
/// Writes the kernel.
mlir::LogicalResult lowerRowLanes(const RowLanes &form, device::ProgramOp program, unsigned number);

/// What a lane of a row does.
class LaneCode {
public:
  using Values = ScalarCode::Values;
  /// Of the number of a run's element, and the states.
  using Body = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  LaneCode(ScalarCode &code, const RowLanes &form, mlir::Value lane);
  /// All columns of this lane in order: `body` with the index bound to each of them, on the
  /// states that the one before gave.
  /// What is below and from an end on has no columns that matter, if they are given.
  Values overColumns(mlir::Block &scope, llvm::StringRef name, llvm::StringRef extent,
                     std::optional<std::pair<mlir::Value, mlir::Value>> range,
                     mlir::ValueRange inits, llvm::ArrayRef<std::string> names, Body body);
  /// Stores of a loop over the columns from `firstRun` on; none where `isStored`, if
  /// there is one, is false.
  void store(mlir::Block &scope, mlir::Value index, llvm::StringRef name, llvm::StringRef extent,
             mlir::Value firstRun, int64_t numRuns, mlir::Value isStored);
  /// The value of the lane whose number differs by `mask`.
  mlir::Value exchange(mlir::Value value, int64_t mask);
  /// Whether this lane is the lower one of such a pair.
  mlir::Value isLower(int64_t mask);
  const RowLanes &getForm() const { return form; }
  /// Reads what columns need in every step of a serial fold, in front of it.
  void enter(onf::FoldOp fold);
  /// Reads what they need in the step whose index is bound, all of it before anything is computed.
  void beginStep(onf::FoldOp fold);
  void endStep();
  void leave() { isInSerial = false; }
  /// A state of a serial fold with an axis of columns: the elements that a lane has of it.
  mlir::MemRefType stateType(llvm::StringRef extent, mlir::Type element);
  /// `body` at the places of all elements of such a state.
  void overState(llvm::StringRef extent, llvm::StringRef name,
                 llvm::function_ref<void(mlir::ValueRange)> body);
  /// The place, in states with an axis of columns, of the column that is bound.
  Values getPlace() const { return place; }
  /// Terms that one lane adds up, if known.
  std::optional<int64_t> termsOf(llvm::StringRef extent) const;

private:
  struct Run {
    onf::LoadOp load;
    mlir::Value buffer;
    bool isKept = false; // a row of the buffer for each run
  };
  struct Columns {
    mlir::Block &scope;
    mlir::Value index;
    llvm::StringRef name, extent;
  };
  Values run(const Columns &columns, mlir::Value number, mlir::ValueRange states,
             llvm::ArrayRef<std::string> names, Body body,
             llvm::function_ref<void(mlir::Value, mlir::Value)> behind);
  Values overRuns(const Columns &columns, std::optional<std::pair<mlir::Value, mlir::Value>> range,
                  mlir::ValueRange inits, llvm::ArrayRef<std::string> names, Body body,
                  llvm::function_ref<void(mlir::Value, mlir::Value)> behind);
  mlir::Value read(onf::LoadOp load, mlir::Value index, mlir::Value first, mlir::Value count,
                   mlir::Value buffer, mlir::ValueRange at, mlir::IntegerAttr step = {});
  bool keep(const Columns &columns);
  void keepOf(onf::FoldOp fold, mlir::Block &scope, llvm::StringRef extent, bool isOfStep);
  mlir::Value firstOf(mlir::Value number);
  mlir::Value countFrom(const Columns &columns, mlir::Value first, int64_t runs = 1);
  mlir::MemRefType bufferType(mlir::Type element, std::optional<int64_t> runs = std::nullopt);

  ScalarCode &code;
  mlir::OpBuilder &b;
  const RowLanes &form;
  mlir::Value lane, firstColumn;
  std::set<std::string> shared;            // runs that several scopes read
  std::map<std::string, mlir::Value> kept; // and where they are
  Values place;                            // run and element of the column that is bound
  bool isInSerial = false; // in a loop, outside of which nothing that is read in it is there
  std::vector<std::string> ofStep; // what is kept for this step only
};

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_ROWLANES_H
