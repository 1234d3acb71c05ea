//===- Masks.h - the keys of a tile that rows see ---------------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_MASKS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_MASKS_H

#include "lib/Conversion/ONFToDevice/Tiles/Running.h"

namespace moa::tiles {

/// Emits the guard of a fold for the elements of tiles.
class Masks : WarpgroupPart {
public:
  Masks(const TileContext &context, ScalarCode &code, const WarpgroupRows &rows) : WarpgroupPart(context, code, rows) {}
  /// Returns whether the bound row sees any key of the fold; null if only its elements tell.
  mlir::Value seesSome();
  Presence findPresence(mlir::Value first, mlir::ValueRange scores = {});
  /// Returns whether the row sees the key, by the bounds from `findPresence`. Columns count from
  /// `start`, if given.
  mlir::Value isPresent(const Presence &presence, mlir::ValueRange bounds, mlir::Value column,
                        mlir::Value start = mlir::Value());
  /// Returns the mask of the tile from `first` on, with a boolean per element.
  mlir::Value maskOf(const Presence &presence, mlir::Value first);
  void clearUnseen(const Presence &presence, mlir::Value first, mlir::Value stage,
                   llvm::ArrayRef<std::pair<mlir::Value, bool>> rings);

private:
  mlir::Value seesAtAll(llvm::ArrayRef<mlir::Value> conditions);
  llvm::SmallVector<unsigned> findScoresRead(llvm::ArrayRef<mlir::Value> conditions);
  int64_t columnsAtOnce(const Presence &presence);
  void bindNearest(mlir::ValueRange at, mlir::Value first, mlir::Value start);
  Presence readPresence(const Presence &presence, mlir::Value first, mlir::ValueRange scores);
  mlir::Value numberInThread(mlir::Value column);
  int64_t laneStride();
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_MASKS_H
