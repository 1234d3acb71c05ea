//===- Fragments.h - the registers of a fragment ----------------*- C++ -*-===//
#ifndef MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H
#define MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H

#include "dialects/Device/IR/Device.h"

namespace moa::nvvm {

/// Where one register of a layout is: its number, the number of its row's register
/// in the layout's slice, and what the register adds to the element's indices.
struct RegisterPlace {
  int64_t number = 0, row = 0;
  llvm::SmallVector<int64_t, 2> indices;
};

/// The registers of one thread in order of their numbers.
std::vector<RegisterPlace> getPlaces(device::LayoutAttr layout);

/// Whether registers 2k and 2k + 1 hold neighbours of one row.
bool hasNeighbours(device::LayoutAttr layout);

/// Fragments of 16-bit floats are packed in pairs of neighbours; those of 8 bits, in the
/// accumulator's layout, in fours: of every 16 columns the pairs 8 columns apart.
bool isNarrow(mlir::Type fragment);
/// Elements of a register of 32 bits; 1 where fragments are not packed.
int64_t countPacked(mlir::Type fragment);

/// How many values hold a fragment, and of which type.
int64_t countRegisters(device::FragmentType fragment);
mlir::Type getRegisterType(device::FragmentType fragment);

} // namespace moa::nvvm

#endif // MOA_CONVERSION_DEVICETONVVM_FRAGMENTS_H
