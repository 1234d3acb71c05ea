//===- Names.h - names of values in tile kernels ----------------*- C++ -*-===//
//
// Emitted text names values by their role in the fold and the schedule. A state that the user has
// named keeps its name; one that is named after its monoid gets the name of its role. For example,
// the maximum that other states are rescaled by is the running maximum.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILES_NAMES_H
#define MOA_CONVERSION_ONFTODEVICE_TILES_NAMES_H

#include "lib/Conversion/ONFToDevice/Tiles/FoldFacts.h"

namespace moa::tiles {

/// Returns the name of the position of a tile among those of a block, unless an axis has it.
std::string nameOfPosition(const TilePlan &plan);
/// Returns the name of the first key of a tile.
inline std::string nameOfFirstKey(const TilePlan &plan) { return "first_" + plan.fold.getName().str(); }
/// Returns the name of a state of a whole row, for example `row_sum`.
std::string nameOfRow(onf::AccOp acc);
/// Returns the name of a state's part in each lane, for example `partial_sum`.
std::string nameOfPartial(const FoldFacts &facts, onf::AccOp acc);
/// Returns the name of the value that other states are relative to: the running maximum or, with
/// conditional rescaling, the one at the last rescale.
std::string nameOfReference(const FoldFacts &facts, onf::AccOp acc);
/// Returns the name of a state's terms in a tile, reduced in each lane: for example `tile_max`.
std::string nameInTile(onf::AccOp acc);
/// Returns the name of the tile of an accumulator's row operand. Terms of a row sum are
/// probabilities before the division by the sum.
std::string nameOfWeights(const TilePlan &plan, unsigned accumulator);
/// Returns the name of a score's products, after the arrays that are contracted: `Q_dot_K`.
std::string nameOfProducts(const TileContext &context, unsigned score);
/// Returns the name of the scores of a tile after scaling and masking.
std::string nameOfScores(const TileContext &context, unsigned score);
/// Returns the program's name of the array that an operand loads.
llvm::StringRef nameOfArray(const TileContext &context, const TileOperand &operand);

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILES_NAMES_H
