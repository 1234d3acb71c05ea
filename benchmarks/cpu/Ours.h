//===- Ours.h - kernels through the library, on plain arrays ----*- C++ -*-===//
#ifndef MOA_BENCHMARKS_CPU_OURS_H
#define MOA_BENCHMARKS_CPU_OURS_H

#include "moa/Compiler.h"
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace moa::bench {

/// A row-major array of floats and its descriptor.
class FloatArray {
public:
  explicit FloatArray(std::vector<int64_t> extents) : shape(std::move(extents)) {
    int64_t size = 1;
    for (int64_t extent : shape)
      size *= extent;
    values.resize(size);
    std::memset(&tensor, 0, sizeof tensor);
    tensor.data = values.data();
    tensor.device.device_type = 1;
    tensor.ndim = shape.size();
    tensor.dtype = {2, 32, 1};
    tensor.shape = shape.data();
  }
  FloatArray(const FloatArray &) = delete;
  FloatArray &operator=(const FloatArray &) = delete;

  std::vector<int64_t> shape;
  std::vector<float> values;
  DLTensor tensor;
};

/// Memory aligned as kernels ask for.
struct Workspace {
  explicit Workspace(size_t bytes)
      : bytes((bytes + 63) / 64 * 64), data(bytes ? std::aligned_alloc(64, this->bytes) : nullptr) {}
  ~Workspace() { std::free(data); }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  size_t bytes;
  void *data;
};

} // namespace moa::bench

#endif // MOA_BENCHMARKS_CPU_OURS_H
