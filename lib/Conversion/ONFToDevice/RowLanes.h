//===- RowLanes.h - row kernels with a group of lanes per row ---*- C++ -*-===//
//
// A row kernel runs a nest whose folds and loops go along the last axis of the arrays they access.
// For example: a row's maximum or norm, a normalization, an elementwise map, a gather of rows. Each
// row has a group of lanes. A lane loads and stores runs of adjacent elements by accesses of 16
// bytes. The lanes' partial states are combined by butterfly shuffles with the fold's correction
// factors. The order depends on lane numbers only.
//
// A fold over anything but the columns is *serial*: all lanes of a row take its indices in order.
// For example, it runs over keys, whose scores are folds over columns, and whose values are added
// to states with an axis of columns. Each lane has its columns of inner folds and states. Every
// lane computes the scalars.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_ROWLANES_H
#define MOA_CONVERSION_ONFTODEVICE_ROWLANES_H

#include "lib/Conversion/ONFToDevice/ScalarCode.h"
#include <map>
#include <set>

namespace moa {

/// The shape of a row kernel. Column c of a row is element c mod `width` of run c / (lanes · width)
/// of lane (c / width) mod `lanes`.
struct RowLanes {
  mutable onf::ForOp nest;
  int64_t lanes = 32; ///< per row, a power of two
  int64_t width = 8;  ///< elements of a run, a power of two
  /// If true, the columns are the last axis of the nest and the rows the axis before it.
  bool columnsInNest = false;
  /// Runs that a lane has of each row in a block, if `columnsInNest`.
  int64_t runsPerLane = 1;
  /// Rows that each lane takes one after the other.
  int64_t rowsPerLane = 1;
  /// Folds of the nest that are not over columns. Rows of a warp may be at different indices of
  /// them.
  llvm::SmallVector<onf::FoldOp, 1> serial;
  bool isSerial(onf::FoldOp fold) const { return llvm::is_contained(serial, fold); }
  unsigned rowAxis() const { return nest.getExtents().size() - (columnsInNest ? 2 : 1); }
  int64_t step() const { return lanes * width; }
  int64_t rows() const { return 4 * (32 / lanes); } ///< of a block whose lanes have one each
};

/// Returns whether accesses at consecutive indices are adjacent: the index is the subscript of the
/// array's last axis and of no other.
bool isAdjacentAlong(onf::LoadOp load, mlir::Value index);
bool isAdjacentAlong(onf::StoreOp store, mlir::Value index);

/// Emits the code of one lane.
class LaneCode {
public:
  using Values = ScalarCode::Values;
  /// Takes the number of an element in its run, and the states.
  using Body = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  LaneCode(ScalarCode &code, const RowLanes &form, mlir::Value lane);
  /// Emits a loop over this lane's columns in order. `body` takes the previous states; the index is
  /// bound to the column. Columns outside of `range`, if given, may be skipped.
  Values overColumns(mlir::Block &scope, llvm::StringRef name, const SymExpr &extent,
                     std::optional<std::pair<mlir::Value, mlir::Value>> range, mlir::ValueRange inits,
                     llvm::ArrayRef<std::string> names, Body body);
  /// Emits the stores of a loop over columns, from run `firstRun` on. Stores nothing if `isStored`
  /// is given and false.
  void store(mlir::Block &scope, mlir::Value index, llvm::StringRef name, const SymExpr &extent, mlir::Value firstRun,
             int64_t numRuns, mlir::Value isStored);
  /// Returns the value of the lane whose number differs by `mask`.
  mlir::Value exchange(mlir::Value value, int64_t mask);
  /// Returns whether this lane is the lower one of the pair.
  mlir::Value isLower(int64_t mask);
  const RowLanes &getForm() const { return form; }
  /// Loads the runs that do not depend on the index of a serial fold, before its loop.
  void enter(onf::FoldOp fold);
  /// Loads the runs that depend on the bound index, all of them before anything is computed.
  void beginStep(onf::FoldOp fold);
  void endStep();
  void leave() { isInSerial = false; }
  /// Returns the type of a lane's elements of a state of a serial fold with an axis of columns.
  mlir::MemRefType stateType(const SymExpr &extent, mlir::Type element);
  /// Emits `body` at the places of all elements of such a state.
  void overState(const SymExpr &extent, llvm::StringRef name, llvm::function_ref<void(mlir::ValueRange)> body);
  /// Returns the place of the bound column in states with an axis of columns.
  Values getPlace() const { return place; }
  /// Returns the number of terms that one lane adds, if known.
  std::optional<int64_t> termsOf(const SymExpr &extent) const;

private:
  struct Run {
    onf::LoadOp load;
    mlir::Value buffer;
    bool isKept = false; // `buffer` has a row per run
  };
  struct Columns {
    mlir::Block &scope;
    mlir::Value index;
    llvm::StringRef name;
    const SymExpr &extent;
  };
  Values run(const Columns &columns, mlir::Value number, mlir::ValueRange states, llvm::ArrayRef<std::string> names,
             Body body, llvm::function_ref<void(mlir::Value, mlir::Value)> after);
  Values overRuns(const Columns &columns, std::optional<std::pair<mlir::Value, mlir::Value>> range,
                  mlir::ValueRange inits, llvm::ArrayRef<std::string> names, Body body,
                  llvm::function_ref<void(mlir::Value, mlir::Value)> after);
  mlir::Value read(onf::LoadOp load, mlir::Value index, mlir::Value first, mlir::Value count, mlir::Value buffer,
                   mlir::ValueRange at, mlir::IntegerAttr step = {});
  bool keep(const Columns &columns);
  void keepOf(onf::FoldOp fold, mlir::Block &scope, const SymExpr &extent, bool isOfStep);
  mlir::Value firstOf(mlir::Value number);
  mlir::Value countFrom(const Columns &columns, mlir::Value first, int64_t runs = 1);
  mlir::MemRefType bufferType(mlir::Type element, std::optional<int64_t> runs = std::nullopt);

  ScalarCode &code;
  mlir::OpBuilder &b;
  const RowLanes &form;
  mlir::Value lane, firstColumn;
  std::set<std::string> shared;            // runs that several scopes load
  std::map<std::string, mlir::Value> kept; // buffers of runs that are loaded once
  Values place;                            // run and element of the bound column
  bool isInSerial = false;                 // in a serial loop, whose loads do not dominate later code
  std::vector<std::string> ofStep;         // buffers for the current step only
};

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_ROWLANES_H
