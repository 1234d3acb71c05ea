//===- Helpers.cpp - small device functions of the emitted text -----------===//
//
// Each is what one operation of the compiler means and C++ does not say.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Cuda.h"

namespace moa::cuda {

static const std::pair<const char *, const char *> kHelpers[] = {
    {"max_nan", R"(// The larger value; NaN if one is NaN.
__device__ __forceinline__ float max_nan(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ double max_nan(double a, double b) { return a > b || a != a ? a : b; }
)"},
    {"min_nan", R"(// The smaller value; NaN if one is NaN.
__device__ __forceinline__ float min_nan(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
__device__ __forceinline__ double min_nan(double a, double b) { return a < b || a != a ? a : b; }
)"},
    {"exp2_approximate", R"(// 2^x with a relative error below 2^-22, subnormal results 0.
__device__ __forceinline__ float exp2_approximate(float x) {
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    {"reciprocal_approximate", R"(// 1/x within one unit in the last place, subnormal results 0.
__device__ __forceinline__ float reciprocal_approximate(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
)"},
    {"differ_ordered", R"(// Two numbers that differ; false with NaN.
template <class T> __device__ __forceinline__ bool differ_ordered(T a, T b) { return a < b || a > b; }
)"},
    {"both_numbers", R"(template <class T> __device__ __forceinline__ bool both_numbers(T a, T b) { return a == a && b == b; }
)"},
    {"floor_div", R"(// The quotient rounded down; 0 for a divisor of 0.
template <class T> __device__ __forceinline__ T floor_div(T a, T b) {
  if (b == 0 || b == -1)
    return b ? T(0 - uint64_t(a)) : 0;
  T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
)"},
    {"floor_mod", R"(// The remainder with the divisor's sign; 0 for a divisor of 0.
template <class T> __device__ __forceinline__ T floor_mod(T a, T b) {
  if (b == 0 || b == -1)
    return 0;
  T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"ceil_div", R"(// The quotient rounded up; 0 for a divisor of 0.
template <class T> __device__ __forceinline__ T ceil_div(T a, T b) {
  if (b == 0 || b == -1)
    return b ? T(0 - uint64_t(a)) : 0;
  T q = a / b;
  return q * b != a && (a < 0) == (b < 0) ? q + 1 : q;
}
)"},
    {"trunc_div", R"(// The quotient rounded towards 0; 0 for a divisor of 0.
template <class T> __device__ __forceinline__ T trunc_div(T a, T b) {
  return b == 0 ? 0 : b == -1 ? T(0 - uint64_t(a)) : T(a / b);
}
)"},
    {"trunc_mod", R"(// The remainder with the dividend's sign; 0 for a divisor of 0.
template <class T> __device__ __forceinline__ T trunc_mod(T a, T b) { return b == 0 || b == -1 ? 0 : T(a % b); }
)"},
    {"shift_left", R"(template <class T> __device__ __forceinline__ T shift_left(T a, T n) { return T(uint64_t(a) << (n & 63)); }
)"},
    {"shift_right", R"(template <class T> __device__ __forceinline__ T shift_right(T a, T n) { return T(a >> n); }
)"},
    {"max_int", R"(template <class T> __device__ __forceinline__ T max_int(T a, T b) { return a > b ? a : b; }
)"},
    {"min_int", R"(template <class T> __device__ __forceinline__ T min_int(T a, T b) { return a < b ? a : b; }
)"},
    {"to_int", R"(// Truncated towards 0 and limited to T; 0 for NaN.
template <class T, class F> __device__ __forceinline__ T to_int(F x) {
  constexpr int bits = 8 * sizeof(T) - 1;
  const F limit = F(2) * F(1ull << (bits - 1));
  if (x != x)
    return 0;
  if (x >= limit)
    return T((1ull << bits) - 1);
  return x < -limit ? T(1ull << bits) : T(x);
}
)"},
};

std::string printHelpers(const std::set<std::string> &helpers) {
  std::string text;
  for (auto [name, definition] : kHelpers)
    if (helpers.count(name))
      text += std::string(text.empty() ? "" : "\n") + definition;
  return text;
}

} // namespace moa::cuda
