//===- Npy.h - NumPy's .npy files -------------------------------*- C++ -*-===//
#ifndef MOA_SUPPORT_NPY_H
#define MOA_SUPPORT_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moa {

/// A row-major, little-endian array in memory. `type` is NumPy's kind letter and size: "f4", "b1",
/// "i8", "u1"; bfloat16 is stored as "V2".
struct NpyArray {
  std::string type;
  std::vector<int64_t> shape;
  llvm::ArrayRef<char> bytes; ///< borrowed from `buffer` when read
  std::shared_ptr<llvm::MemoryBuffer> buffer;

  int64_t getNumElements() const;
};

/// Reads a file in version 1 to 3 of the format. Big-endian data, Fortran order, structured types,
/// and truncated or too long files are errors that name the file.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);

std::string writeNpy(llvm::StringRef type, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<char> bytes);

} // namespace moa

#endif // MOA_SUPPORT_NPY_H
