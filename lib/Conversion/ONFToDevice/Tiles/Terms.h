//===- Terms.h - terms of states, and weights, of one tile ------*- C++ -*-===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_TERMS_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_TERMS_H

#include "lib/Conversion/ONFToDevice/Tiles/Masks.h"

namespace moa::tiles {

/// Computes terms and weights from the elements of a tile.
class Terms : WarpgroupPart {
public:
  Terms(const TileContext &context, ScalarCode &code, const FoldFacts &facts, const WarpgroupRows &rows, Masks &masks)
      : WarpgroupPart(context, code, rows), facts(facts), masks(masks) {}
  void addScores(mlir::ValueRange scores, Tile &tile);
  mlir::Value reduce(onf::AccOp acc, mlir::Value term, Tile &tile, Running &news, unsigned k);
  /// Sets the weights of each accumulator in `news`; null where the first ones give them.
  void findWeights(const Tile &tile, Running &news);

private:
  void bindTile(const Tile &tile, mlir::ValueRange in, mlir::ValueRange at);
  mlir::Value bindReferences(onf::AccOp acc, llvm::ArrayRef<mlir::Value> refs, llvm::ArrayRef<mlir::Value> factors);
  mlir::Value valuesOf(onf::AccOp acc, mlir::ValueRange factors, mlir::ValueRange divisors, mlir::TypedAttr none,
                       const Tile &tile, const Running &news);
  void maskElement(Element &element, mlir::FloatAttr none, const Tile &tile);
  std::optional<unsigned> findTerms(onf::AccOp acc, const rows::Factors &factors, const Running &news);
  mlir::Value weights(const Accumulator &accumulator, const rows::Factors &factors, const Tile &tile,
                      const Running &news);

  const FoldFacts &facts;
  Masks &masks;
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_TERMS_H
