//===- Running.h - values of a consumer from tile to tile -------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_RUNNING_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_RUNNING_H

#include "lib/Conversion/ONFToDevice/Tiles/FoldFacts.h"

namespace moa::tiles {

/// The values carried from tile to tile. Values that are not needed are null.
struct Running {
  struct Scalar {
    mlir::Value reference; // value per row that other states use
    mlir::Value partial;   // over the keys of each lane
    mlir::Value terms;     // of the last merged tile; not carried
  };
  struct Sum {
    mlir::Value sum;
    Values weights;   // distinct ones; each product of the sum takes one
    mlir::Value part; // of a tile in flight, if added in f32; not carried
  };
  llvm::SmallVector<Scalar> scalars;
  llvm::SmallVector<mlir::Value> started; // per rescale
  llvm::SmallVector<Sum> sums;
  template <typename F> void forEach(F visit) {
    auto known = [&](mlir::Value &value) {
      if (value)
        visit(value);
    };
    for (Scalar &scalar : scalars)
      known(scalar.reference), known(scalar.partial);
    for (mlir::Value &value : started)
      known(value);
    for (Sum &sum : sums) {
      known(sum.sum);
      for (mlir::Value &weights : sum.weights)
        known(weights);
    }
  }
  Values values() {
    Values list;
    forEach([&](mlir::Value value) { list.push_back(value); });
    return list;
  }
  /// Returns the same structure with other values.
  Running with(mlir::ValueRange list) const {
    Running result = *this;
    result.forEach([&](mlir::Value &value) {
      value = list.front();
      list = list.drop_front();
    });
    return result;
  }
};
/// Returns names for the loop index and the carried values.
llvm::SmallVector<std::string> namesOf(const FoldFacts &facts, const Running &running);

/// The result of one tile: the states, the correction factors, and the warps that must update
/// their references (`mustMove`) and rescale their sums (`mustRescaleSums`); null: all warps.
struct Step {
  Running next;
  Values factors;
  /// Per rescale: the coefficients of the `others` of its state.
  llvm::SmallVector<Values> coefficients;
  mlir::Value mustMove, mustRescaleSums;
};

/// The mask of a tile. A row sees the positions from the second of `bounds`, if there is one, to
/// before the first, where `rest` holds; positions count from the thread's first element. If
/// `isWord`, `bounds` is instead one word per thread and row, with a bit per element.
struct Presence {
  Values bounds; // fragments over partials
  Values rest;
  bool isWord = false;
};

/// A value per row and key that a tile holds: the fragment's element, times `rest` if that is not
/// null.
struct Element {
  mlir::Value value, rest, fragment; // the fragment has floats, or integers read as floats
  std::optional<double> absent;      // value of masked-out elements, if known
};

struct Tile {
  llvm::SmallVector<Element> elements;
  mlir::Value first;
  const Presence *presence; // null: nothing is masked
  /// Values that exponents subtract instead of a value of the row (Pivots.h).
  llvm::MapVector<mlir::Value, mlir::Value> pivots{};
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_RUNNING_H
