//===- Helpers.cpp - small device functions of the emitted text -----------===//
//
// Semantics of operations that C++ lacks.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/TileHelpers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

namespace moa::cuda {

static const std::pair<const char *, const char *> kHelpers[] = {
    {"max_nan",
     R"(DEVICE float max_nan(float a, float b) { asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
)"},
    {"min_nan",
     R"(DEVICE float min_nan(float a, float b) { asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b)); return a; }
)"},
    {"max_nan_double", R"(DEVICE double max_nan_double(double a, double b) { return a > b || a != a ? a : b; }
)"},
    {"min_nan_double", R"(DEVICE double min_nan_double(double a, double b) { return a < b || a != a ? a : b; }
)"},
    {"store_pair", R"(// Stores two adjacent elements; the first has an even index.
DEVICE void store_pair(float *to, float x, float y) { *(float2 *)to = make_float2(x, y); }
)"},
    {"exp2_approximate", R"(// 2^x with a relative error below 2^-22, subnormal results 0.
DEVICE float exp2_approximate(float x) { asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); return x; }
)"},
    {"reciprocal_approximate", R"(// 1/x within one unit in the last place, subnormal results 0.
DEVICE float reciprocal_approximate(float x) { asm("rcp.approx.ftz.f32 %0, %0;" : "+f"(x)); return x; }
)"},
    {"reciprocal_near",
     R"(DEVICE float reciprocal_near(float x) { asm("rcp.approx.f32 %0, %0;" : "+f"(x)); return x; } // within one ulp
)"},
    {"half_from_bits",
     R"(// The f16 whose bits are 16 times the integer nearest to 2^24 * max(x, 0).
DEVICE __half half_from_bits(float x) {
  uint16_t bits;
  asm("{cvt.rn.relu.f16.f32 %0, %1; shl.b16 %0, %0, 4;}" : "=h"(bits) : "f"(x));
  return __ushort_as_half(bits);
}
)"},
    {"to_e4m3",
     R"(// The bits of the nearest e4m3 float, saturated to the largest finite one.
DEVICE uint8_t to_e4m3(float x) {
  uint16_t bits;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return uint8_t(bits);
}
)"},
    {"from_e4m3", R"(DEVICE float from_e4m3(uint8_t bits) {
  float x;
  asm("{.reg .b32 both; .reg .b16 low, high; cvt.rn.f16x2.e4m3x2 both, %1; mov.b32 {low, high}, both; cvt.f32.f16 %0, low;}"
      : "=f"(x) : "h"(uint16_t(bits)));
  return x;
}
)"},
    {"await_earlier_launches",
     R"(// Programmatic dependent launch: waits until the previous launch has ended and its writes are visible.
DEVICE void await_earlier_launches() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
)"},
    {"let_next_launch_start",
     R"(// Programmatic dependent launch: lets the next launch start once all blocks have called this. It sees what this one
// has awaited, because of the fence, even if it does not wait.
DEVICE void let_next_launch_start() {
  asm volatile("fence.acq_rel.gpu; griddepcontrol.launch_dependents;" ::: "memory");
}
)"},
    {"await_overlapped_launch",
     R"(// This launch overlaps with the previous one, and does not need its results. Those of earlier launches are visible:
// each block of the previous launch awaits them before it lets this launch start. An extra last block ends only after
// the previous launch, so that waiting for this launch waits for both. Predicated: a branch changes the schedule.
DEVICE void await_overlapped_launch() {
  asm volatile("{.reg .pred last; .reg .b32 number, blocks; mov.u32 number, %ctaid.x; mov.u32 blocks, %nctaid.x; "
               "add.u32 number, number, 1; setp.eq.u32 last, number, blocks; "
               "@last griddepcontrol.launch_dependents; @last griddepcontrol.wait; @last exit;}" ::: "memory");
}
)"},
    {"is_skipped",
     R"(// Returns whether the skip flag is 0. It was written before the previous launch started, so that blocks need not wait
// to read it. Only the last block then waits for the previous launch.
DEVICE bool is_skipped(const int32_t *flag) {
  asm volatile("" : "+l"(flag));
  if (__ldg(flag) != 0) return false;
  if (blockIdx.x + 1 == gridDim.x) {
    let_next_launch_start();
    await_earlier_launches();
  }
  return true;
}
)"},
    {"low_word",
     R"(// The low 32 bits, zero-extended: shows the compiler that an index is below 2^32.
DEVICE int64_t low_word(int64_t x) { return int64_t(uint32_t(x)); }
)"},
    {"opaque",
     R"(// The same value, hidden from the optimizer, which would hoist values that depend on it.
DEVICE int32_t opaque(int32_t x) { asm volatile("" : "+r"(x)); return x; }
DEVICE int64_t opaque(int64_t x) { asm volatile("" : "+l"(x)); return x; }
DEVICE float opaque(float x) { asm volatile("" : "+f"(x)); return x; }
)"},
    {"read_awaited",
     R"(// Loads an element that an earlier launch has written. This launch has awaited that one, or was started after it; the
// empty asm keeps the load from moving up.
template <class T> DEVICE auto read_awaited(const T *x, int64_t i) {
  asm volatile("" : "+l"(x));
  return __ldg(x + i);
}
)"},
    {"signal", R"(// Adds one to a counter after all stores of this warp (release).
DEVICE void signal(int32_t *counter) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}
)"},
    {"signals",
     R"(// Reads a counter; stores of the warps that it counts are then visible (acquire).
DEVICE int64_t signals(const int32_t *counter) {
  int32_t count;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
  return count;
}
)"},
    {"next_block",
     R"(// Takes the next block number from the tile scheduler; the grid starts with the first `residents` numbers.
DEVICE int64_t next_block(int32_t *counter, int64_t residents) {
  int32_t count;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;" : "=r"(count) : "l"(counter) : "memory");
  return residents + count;
}
)"},
    {"next_turn", R"(// Takes the next number from the scheduler, for all threads of this block.
DEVICE int64_t next_turn(int32_t *counter) {
  __shared__ int32_t turn;
  if (threadIdx.x == 0) asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], 1;" : "=r"(turn) : "l"(counter) : "memory");
  __syncthreads();
  return low_word(turn);
}
)"},
    {"await_turns",
     R"(// Waits until `count` numbers are done; the stores of their blocks are then visible.
DEVICE void await_turns(const int32_t *counter, int64_t count) {
  if (threadIdx.x == 0) {
    int32_t done; // polled by relaxed loads, because each acquire invalidates the L1 cache
    do {
      asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(done) : "l"(counter) : "memory");
    } while (done < count);
    signals(counter);
  }
  __syncthreads();
}
)"},
    {"end_turn",
     R"(// Marks this block's number as done, after all stores of its threads (release).
DEVICE void end_turn(int32_t *counter) {
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(counter) : "memory");
}
)"},
    {"raise_flag", R"(// Sets a flag to 1. Any number of threads may do so, in any order.
DEVICE void raise_flag(int32_t *flag) { asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory"); }
)"},
    {"load_run",
     R"(// Loads the first `count` elements of a run: by accesses of up to 16 bytes if adjacent and aligned, else one by one.
// Both ways pack elements alike, so that they use the same registers. The loop that runs once is branched over, where
// straight-line code would be predicated.
template <bool IS_ALIGNED = false, class T, int W>
DEVICE void load_run(T (&to)[W], const T *from, int64_t stride, int64_t count) {
  constexpr int BYTES = W * sizeof(T), UNIT = BYTES < 16 ? BYTES : 16;
  struct alignas(UNIT) Unit { uint32_t words[UNIT / 4]; };
  uint32_t words[BYTES / 4];
  if (stride == 1 && count >= W && (IS_ALIGNED || uintptr_t(from) % UNIT == 0)) {
    UNROLL for (int u = 0; u < BYTES / UNIT; ++u) {
      const Unit unit = reinterpret_cast<const Unit *>(from)[u];
      UNROLL for (int w = 0; w < UNIT / 4; ++w) words[u * (UNIT / 4) + w] = unit.words[w];
    }
  } else {
    int32_t again = 0;
    do {
      T single[W] = {};
      UNROLL for (int e = 0; e < W; ++e)
        if (e < count) single[e] = from[e * stride];
      memcpy(words, single, BYTES);
      asm volatile("" : "+r"(again));
    } while (again != 0);
  }
  UNROLL for (int w = 0; w < BYTES / 4; ++w) asm("" : "+r"(words[w]));
  memcpy(to, words, BYTES);
}
)"},
    {"load_aligned", R"(// The same for adjacent elements of which the first is aligned.
template <class T, int W> DEVICE void load_aligned(T (&to)[W], const T *from, int64_t count) {
  load_run<true>(to, from, 1, count);
}
)"},
    {"load_runs",
     R"(// The same for several rows, STEP elements apart, with one test of their alignment. Serial folds use it, where the loop
// of load_run costs more than it saves.
template <int STEP, bool IS_ALIGNED = false, class T, int R, int W>
DEVICE void load_runs(T (&to)[R][W], const T *from, int64_t stride, int64_t count) {
  constexpr int UNIT = W * sizeof(T) < 16 ? W : 16 / sizeof(T);
  struct alignas(UNIT * sizeof(T)) Unit { T x[UNIT]; };
  if (stride == 1 && count >= (R - 1) * STEP + W && (IS_ALIGNED || uintptr_t(from) % sizeof(Unit) == 0)) {
    UNROLL for (int r = 0; r < R; ++r)
      UNROLL for (int u = 0; u < W / UNIT; ++u) {
        const Unit unit = reinterpret_cast<const Unit *>(from + r * STEP)[u];
        UNROLL for (int e = 0; e < UNIT; ++e) to[r][u * UNIT + e] = unit.x[e];
      }
  } else {
    UNROLL for (int r = 0; r < R; ++r)
      UNROLL for (int e = 0; e < W; ++e)
        if (r * STEP + e < count) to[r][e] = from[(r * STEP + e) * stride];
  }
}
)"},
    {"load_aligned_runs", R"(// The same for adjacent elements of which the first is aligned.
template <int STEP, class T, int R, int W> DEVICE void load_aligned_runs(T (&to)[R][W], const T *from, int64_t count) {
  load_runs<STEP, true>(to, from, 1, count);
}
)"},
    {"group_of", R"(// The lane mask of this lane's group of adjacent lanes.
template <int LANES> DEVICE uint32_t group_of() { return ((1u << LANES) - 1) << (threadIdx.x & (32 - LANES)); }
)"},
    {"store_run", R"(// Stores the first `count` elements of a run, as load_run loads them.
template <bool IS_ALIGNED = false, class T, int W>
DEVICE void store_run(const T (&from)[W], T *to, int64_t stride, int64_t count) {
  constexpr int UNIT = W * sizeof(T) < 16 ? W : 16 / sizeof(T);
  struct alignas(UNIT * sizeof(T)) Unit { T x[UNIT]; };
  if (stride == 1 && count >= W && (IS_ALIGNED || uintptr_t(to) % sizeof(Unit) == 0)) {
    UNROLL for (int u = 0; u < W / UNIT; ++u) {
      Unit unit;
      UNROLL for (int e = 0; e < UNIT; ++e) unit.x[e] = from[u * UNIT + e];
      reinterpret_cast<Unit *>(to)[u] = unit;
    }
  } else {
    int32_t again = 0;
    do {
      UNROLL for (int e = 0; e < W; ++e)
        if (e < count) to[e * stride] = from[e];
      asm volatile("" : "+r"(again));
    } while (again != 0);
  }
}
)"},
    {"store_aligned", R"(// The same for adjacent elements of which the first is aligned.
template <class T, int W> DEVICE void store_aligned(const T (&from)[W], T *to, int64_t count) {
  store_run<true>(from, to, 1, count);
}
)"},
    {"differ_ordered", R"(// Returns whether two numbers differ; false with NaN.
template <class T> DEVICE bool differ_ordered(T a, T b) { return a < b || a > b; }
)"},
    {"both_numbers",
     R"(template <class T> DEVICE bool both_numbers(T a, T b) { return a == a && b == b; }
)"},
    {"floor_div", R"(template <class T> DEVICE T floor_div(T a, T b) { // rounded down; 0 for a divisor of 0
  if (b == 0 || b == -1) return b ? T(0 - uint64_t(a)) : 0;
  T q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
)"},
    {"floor_mod", R"(// The remainder with the divisor's sign; 0 for a divisor of 0.
template <class T> DEVICE T floor_mod(T a, T b) {
  if (b == 0 || b == -1) return 0;
  T r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
)"},
    {"ceil_div", R"(// The quotient rounded up; 0 for a divisor of 0.
template <class T> DEVICE T ceil_div(T a, T b) {
  if (b == 0 || b == -1) return b ? T(0 - uint64_t(a)) : 0;
  T q = a / b;
  return q * b != a && (a < 0) == (b < 0) ? q + 1 : q;
}
)"},
    {"trunc_div", R"(// The quotient rounded towards 0; 0 for a divisor of 0.
template <class T> DEVICE T trunc_div(T a, T b) {
  return b == 0 ? 0 : b == -1 ? T(0 - uint64_t(a)) : T(a / b);
}
)"},
    {"trunc_mod", R"(// The remainder with the dividend's sign; 0 for a divisor of 0.
template <class T> DEVICE T trunc_mod(T a, T b) { return b == 0 || b == -1 ? 0 : T(a % b); }
)"},
    {"shift_left",
     R"(template <class T> DEVICE T shift_left(T a, T n) { return T(uint64_t(a) << (n & 63)); }
)"},
    {"shift_right", R"(template <class T> DEVICE T shift_right(T a, T n) { return T(a >> n); }
)"},
    {"max_int", R"(template <class T> DEVICE T max_int(T a, T b) { return a > b ? a : b; }
)"},
    {"min_int", R"(template <class T> DEVICE T min_int(T a, T b) { return a < b ? a : b; }
)"},
    {"to_byte", R"(// Truncates towards 0 and saturates to 8 bits; 0 for NaN.
DEVICE int8_t to_byte(float x) {
  int32_t y;
  asm("cvt.rzi.sat.s8.f32 %0, %1;" : "=r"(y) : "f"(x));
  return int8_t(y);
}
)"},
    {"to_int", R"(// Truncates towards 0 and saturates to T; 0 for NaN.
template <class T, class F> DEVICE T to_int(F x) {
  constexpr int bits = 8 * sizeof(T) - 1;
  const F limit = F(2) * F(1ull << (bits - 1));
  if (x != x) return 0;
  if (x >= limit) return T((1ull << bits) - 1);
  return x < -limit ? T(1ull << bits) : T(x);
}
)"},
};

std::string Helpers::request(const std::string &wish, llvm::function_ref<std::string(const std::string &)> define) {
  std::string name = wish;
  for (unsigned k = 2; names.count(name); ++k) {
    std::string known = define(name);
    if (own.find(known) != std::string::npos)
      return name;
    name = wish + "_" + std::to_string(k);
  }
  names.insert(name);
  own += define(name);
  return name;
}

std::string Helpers::requestConstant(const std::string &wish, const std::string &number) {
  std::string name = wish;
  for (unsigned k = 2; names.count(name); ++k) {
    if (llvm::is_contained(constants, std::pair(name, number)))
      return name;
    name = wish + "_" + std::to_string(k);
  }
  names.insert(name);
  constants.emplace_back(name, number);
  return name;
}

/// Turns a function template over integers into one for int64_t. Returns other functions unchanged.
static std::string specialise(std::string text) {
  const std::string head = "template <class T> DEVICE T ";
  size_t at = text.find(head);
  if (at == std::string::npos)
    return text;
  text.replace(at, head.size(), "DEVICE int64_t ");
  for (const char *before : {" ", "("})
    for (const char *after : {" ", "("}) {
      const std::string word = std::string(before) + "T" + after;
      for (at = text.find(word); at != std::string::npos; at = text.find(word, at))
        text.replace(at + 1, 1, "int64_t");
    }
  return text;
}

std::string printHelpers(const Helpers &helpers) {
  std::string text = "\n#define DEVICE __device__ __forceinline__\n#define UNROLL _Pragma(\"unroll\")\n";
  std::string constants;
  for (const auto &[name, number] : helpers.constants)
    constants += (constants.empty() ? "constexpr float " : ", ") + name + " = " + number;
  if (!constants.empty())
    text += wrapLine(constants + ";", 4) + "\n";
  for (auto [name, definition] : kHelpers) {
    if (helpers.names.count(name))
      text += specialise(definition);
    if (helpers.names.count(std::string(name) + "<>"))
      text += definition;
  }
  return text + printTileHelpers(helpers.names) + helpers.own;
}

/// Returns the places where a line can be broken: the position of the blank before the next piece,
/// and the depth of parentheses there.
static std::vector<std::pair<size_t, int>> findBreaks(llvm::StringRef line, size_t from) {
  std::vector<std::pair<size_t, int>> breaks;
  int depth = 0;
  bool quoted = false;
  for (size_t k = 0; k < line.size(); ++k) {
    char c = line[k];
    if (c == '"' && (k == 0 || line[k - 1] != '\\'))
      quoted = !quoted;
    if (quoted)
      continue;
    depth += llvm::StringRef("([{").contains(c);
    depth -= llvm::StringRef(")]}").contains(c);
    if (k <= from || c != ' ')
      continue;
    llvm::StringRef rest = line.drop_front(k);
    bool isOperator = llvm::any_of(llvm::ArrayRef<const char *>{" ? ", " : ", " && ", " || ", " + ", " - ", " * "},
                                   [&](const char *sign) { return rest.starts_with(sign); });
    if (isOperator || line[k - 1] == ',' || line.take_front(k).ends_with(" ="))
      breaks.emplace_back(k, depth);
  }
  return breaks;
}

std::string wrapLine(const std::string &line, size_t indent) {
  constexpr size_t kColumns = 120;
  if (line.size() <= kColumns)
    return line;
  // Choose the outermost place in the right half of the line, and the last of these.
  std::pair<size_t, int> best{0, 0};
  size_t start = line.find_first_not_of(' ');
  for (auto [at, depth] : findBreaks(line, start)) {
    if (at > kColumns)
      break;
    bool isEarly = best.first < kColumns / 2;
    if (best.first == 0 || depth <= best.second || isEarly)
      best = {at, depth};
  }
  if (best.first == 0)
    return line;
  return line.substr(0, best.first) + "\n" + wrapLine(std::string(indent, ' ') + line.substr(best.first + 1), indent);
}

} // namespace moa::cuda
