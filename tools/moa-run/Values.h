//===- Values.h - arguments and results of a kernel -------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_VALUES_H
#define MOA_TOOLS_MOA_RUN_VALUES_H

#include "moa/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace moa {

/// One argument or result: row-major memory, aligned to 64 bytes.
class HostArray {
public:
  /// Returns an array of the parameter's element type with all bits set, so that floats are NaN.
  /// Returns an error with the size if this machine has too little memory.
  static llvm::Expected<HostArray> make(const ParameterInfo &info, std::vector<int64_t> shape);

  const ParameterInfo &getInfo() const { return info; }
  const std::vector<int64_t> &getShape() const { return shape; }
  int64_t getNumElements() const { return numElements; }
  int64_t getNumBytes() const;
  char *getData() { return data.get(); }
  const char *getData() const { return data.get(); }

  /// Read and write one element as float64. Floats round to nearest. Integers are truncated and
  /// saturate at the ends of their type; NaN becomes 0.
  double get(int64_t index) const;
  void set(int64_t index, double value);

  /// Returns a value rounded to the element type.
  double getRounded(double value) const;
  std::vector<int64_t> getIndex(int64_t element) const;

  /// Returns a descriptor that borrows from this value.
  DLTensor getTensor();
  ReferenceArray getReference() const;
  /// Returns the contents of a .npy file. As in NumPy, bfloat16 is stored as two opaque bytes.
  std::string getNpy() const;

private:
  HostArray() = default;
  struct Free {
    void operator()(char *memory) const;
  };
  ParameterInfo info;
  std::vector<int64_t> shape;
  int64_t numElements = 1;
  std::unique_ptr<char, Free> data;
};

/// Prints, for example, "f32[N, 4]".
std::string getTypeText(const ParameterInfo &info);
/// Prints, for example, "1.5 MiB".
std::string formatBytes(double bytes);

/// Reads a .npy file as a parameter. Types must agree, with these exceptions: bf16 is read from V2
/// and u2 (its bits) and rounded from f4 and f8; f16 is rounded from f4 and f8; booleans are also
/// read from u1.
llvm::Expected<HostArray> readArray(const ParameterInfo &info, llvm::StringRef path);

/// Generates elements from a seed: floats are standard normal, booleans uniform, integers uniform
/// in `low` ≤ element < `high`.
void fillRandom(HostArray &value, uint64_t seed, int64_t low = 0, int64_t high = 8);

/// Generates float elements from a seed, uniform in `low` ≤ element ≤ `high`.
void fillUniform(HostArray &value, uint64_t seed, double low, double high);

/// Returns true for integer types, for example "i8" and "u8".
bool isInteger(llvm::StringRef type);

llvm::Expected<Scalar> parseScalar(const ParameterInfo &info, llvm::StringRef text);
/// Returns a scalar rounded to the parameter's type.
double getRounded(const ParameterInfo &info, const Scalar &scalar);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_VALUES_H
