//===- Fragments.h - the registers of a fragment ----------------*- C++ -*-===//
#ifndef MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H
#define MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H

#include "dialects/Device/IR/Device.h"

namespace moa::nvvm {

/// Position of one register of a layout: its number, the number of its row's register in the
/// layout's slice, and its part of the element's indices.
struct RegisterPlace {
  int64_t number = 0, row = 0;
  llvm::SmallVector<int64_t, 2> indices;
};

/// Returns the registers of one thread in order of their numbers.
std::vector<RegisterPlace> getPlaces(device::LayoutAttr layout);

/// Returns whether registers 2k and 2k + 1 hold neighbours of one row.
bool hasNeighbours(device::LayoutAttr layout);

/// Returns whether a fragment is packed. 16-bit floats are packed in pairs of neighbours. 8-bit
/// floats in the accumulator's layout are packed in fours: two pairs that are 8 columns apart, of
/// every 16 columns.
bool isNarrow(mlir::Type fragment);
/// Returns the number of elements per 32-bit register; 1 if the fragment is not packed.
int64_t countPacked(mlir::Type fragment);

/// Return the number of values that hold a fragment, and their type.
int64_t countRegisters(device::FragmentType fragment);
mlir::Type getRegisterType(device::FragmentType fragment);

} // namespace moa::nvvm

#endif // MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H
