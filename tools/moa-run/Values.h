//===- Values.h - the arrays a kernel is run on -----------------*- C++ -*-===//
#ifndef MOA_TOOLS_MOA_RUN_VALUES_H
#define MOA_TOOLS_MOA_RUN_VALUES_H

#include "moa/Compiler.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace moa {

/// One argument or result: memory at a multiple of 64 bytes, row-major.
class Value {
public:
  /// An array of the parameter's element type, all bits set: floats are NaN. An
  /// error with the size when this machine's memory cannot hold it.
  static llvm::Expected<Value> make(const ParameterInfo &info, std::vector<int64_t> shape);

  const ParameterInfo &getInfo() const { return info; }
  const std::vector<int64_t> &getShape() const { return shape; }
  int64_t getNumElements() const { return numElements; }
  int64_t getNumBytes() const;
  char *getData() { return data.get(); }
  const char *getData() const { return data.get(); }

  /// One element as float64, and back: floats round to nearest, integers are
  /// cut to their integral part and stop at the ends of their type; NaN is 0.
  double get(int64_t index) const;
  void set(int64_t index, double value);

  /// What an element holds of a value.
  double getRounded(double value) const;
  /// The multi-index of an element.
  std::vector<int64_t> getIndex(int64_t element) const;

  /// The descriptor; it borrows from this value.
  DLTensor getTensor();
  ReferenceArray getReference() const;
  /// The contents of a .npy file. bfloat16 is stored as two opaque bytes, as
  /// NumPy does.
  std::string getNpy() const;

private:
  Value() = default;
  struct Free {
    void operator()(char *memory) const;
  };
  ParameterInfo info;
  std::vector<int64_t> shape;
  int64_t numElements = 1;
  std::unique_ptr<char, Free> data;
};

/// "f32[N, 4]".
std::string getTypeText(const ParameterInfo &info);
/// "1.5 MiB".
std::string formatBytes(double bytes);

/// The elements of a .npy file as the parameter takes them. Types must agree,
/// but: bf16 is read from V2 and u2 (its bits) and rounded from f4 and f8; f16
/// is rounded from f4 and f8; booleans are read from u1 too.
llvm::Expected<Value> readValue(const ParameterInfo &info, llvm::StringRef path);

/// Seeded elements: floats are standard normal, booleans even odds, integers uniform in
/// `low` ≤ element < `high`.
void fillRandom(Value &value, uint64_t seed, int64_t low = 0, int64_t high = 8);

/// Seeded elements of a float type, uniform in `low` ≤ element ≤ `high`.
void fillUniform(Value &value, uint64_t seed, double low, double high);

/// True for the types of integers, "i8" and "u8" among them.
bool isInteger(llvm::StringRef type);

/// The value of a scalar parameter from its text.
llvm::Expected<Scalar> parseScalar(const ParameterInfo &info, llvm::StringRef text);
/// What the kernel sees of a scalar after rounding to its type.
double getRounded(const ParameterInfo &info, const Scalar &scalar);

} // namespace moa

#endif // MOA_TOOLS_MOA_RUN_VALUES_H
