// A block of 128 threads on this CPU: what the instructions of a kernel's helpers do, by
// the figures of the PTX ISA (9.7.14.5), in place of the helpers that are assembly.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <thread>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __global__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __cvta_generic_to_shared(p) ((const unsigned char *)(p) - shared_bytes)
#define UNROLL
#define DEVICE inline

struct {
  unsigned x;
} static thread_local threadIdx;
alignas(1024) unsigned char shared_bytes[1 << 17];
struct CUtensorMap {
  const uint16_t *data;
  int64_t rows, columns;
};

static pthread_barrier_t warps[4], block;
static uint64_t exchanged[4][32][8];
static uint64_t *mine(unsigned lane) { return exchanged[threadIdx.x / 32][lane]; }
static void together() { pthread_barrier_wait(&warps[threadIdx.x / 32]); }
static void __syncthreads() { pthread_barrier_wait(&block); }
static const unsigned char *at(unsigned address) { return shared_bytes + address; }

template <class T> T __shfl_sync(unsigned, T value, int from) {
  memcpy(mine(threadIdx.x % 32), &value, sizeof value);
  together();
  memcpy(&value, mine(from), sizeof value);
  together();
  return value;
}

static float halfToFloat(uint16_t bits) {
  _Float16 x;
  memcpy(&x, &bits, 2);
  return float(x);
}
static float bfloatToFloat(uint16_t bits) {
  uint32_t word = uint32_t(bits) << 16;
  float x;
  memcpy(&x, &word, 4);
  return x;
}
struct __half {
  uint16_t bits;
};
static float __half2float(__half x) { return halfToFloat(x.bits); }
static uint32_t toBFloat(float x) {
  uint32_t b;
  memcpy(&b, &x, 4);
  return (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
static uint32_t toHalf(float x) {
  _Float16 h = _Float16(x);
  uint16_t b;
  memcpy(&b, &h, 2);
  return b;
}
template <int R> void pack_bf16(uint32_t (&to)[R], const float (&x)[2 * R]) {
  for (int r = 0; r < R; ++r)
    to[r] = toBFloat(x[2 * r]) | toBFloat(x[2 * r + 1]) << 16;
}
template <int R> void pack_f16(uint32_t (&to)[R], const float (&x)[2 * R]) {
  for (int r = 0; r < R; ++r)
    to[r] = toHalf(x[2 * r]) | toHalf(x[2 * r + 1]) << 16;
}

// Element [row, k] of a stands in lane 4 · (row mod 8) + (k mod 8) / 2, in the register
// row / 8 + 2 · (k / 8); [k, column] of b in lane 4 · column + (k mod 8) / 2, register k / 8.
template <int DEPTH, class F> void multiply(float *const (&s)[4], const uint32_t *a, const uint32_t *b, F value) {
  unsigned lane = threadIdx.x % 32;
  uint64_t *to = mine(lane);
  for (int r = 0; r < DEPTH / 4; ++r)
    to[r] = a[r];
  for (int r = 0; r < DEPTH / 8; ++r)
    to[4 + r] = b[r];
  together();
  for (int i = 0; i < 4; ++i) {
    int row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
    double sum = *s[i];
    for (int k = 0; k < DEPTH; ++k) {
      uint64_t x = mine(4 * (row % 8) + k % 8 / 2)[row / 8 + 2 * (k / 8)];
      uint64_t y = mine(4 * column + k % 8 / 2)[4 + k / 8];
      sum += double(value(uint16_t(x >> k % 2 * 16))) * value(uint16_t(y >> k % 2 * 16));
    }
    *s[i] = float(sum);
  }
  together();
}
static void mma_m16n8k16_bf16(float &s0, float &s1, float &s2, float &s3, uint32_t a0, uint32_t a1, uint32_t a2,
                              uint32_t a3, uint32_t b0, uint32_t b1) {
  uint32_t a[] = {a0, a1, a2, a3}, b[] = {b0, b1};
  multiply<16>({&s0, &s1, &s2, &s3}, a, b, bfloatToFloat);
}
static void mma_m16n8k8_f16(float &s0, float &s1, float &s2, float &s3, uint32_t a0, uint32_t a1, uint32_t b0) {
  uint32_t a[] = {a0, a1}, b[] = {b0};
  multiply<8>({&s0, &s1, &s2, &s3}, a, b, halfToFloat);
}
static void mma_m8n8k4_f64(double &s0, double &s1, double a0, double b0) {
  unsigned lane = threadIdx.x % 32;
  memcpy(mine(lane), &a0, 8), memcpy(mine(lane) + 1, &b0, 8);
  together();
  for (double *s : {&s0, &s1})
    for (int k = 0; k < 4; ++k) {
      double x, y;
      memcpy(&x, mine(lane / 4 * 4 + k), 8);
      memcpy(&y, mine((lane % 4 * 2 + (s == &s1)) * 4 + k) + 1, 8);
      *s = std::fma(x, y, *s);
    }
  together();
}

template <bool TRANSPOSED> void read_matrices(uint32_t *const (&x)[4], uint32_t address) {
  unsigned lane = threadIdx.x % 32;
  *mine(lane) = address;
  together();
  for (int m = 0; m < 4; ++m)
    for (unsigned e = 0; e < 2; ++e) {
      unsigned row = TRANSPOSED ? lane % 4 * 2 + e : lane / 4, column = TRANSPOSED ? lane / 4 : lane % 4 * 2 + e;
      uint16_t element;
      memcpy(&element, at(unsigned(*mine(8 * m + row))) + 2 * column, 2);
      *x[m] = e ? *x[m] | uint32_t(element) << 16 : element;
    }
  together();
}
static void load_matrices_4(uint32_t &x0, uint32_t &x1, uint32_t &x2, uint32_t &x3, uint32_t address) {
  read_matrices<false>({&x0, &x1, &x2, &x3}, address);
}
static void load_matrices_4_transposed(uint32_t &x0, uint32_t &x1, uint32_t &x2, uint32_t &x3, uint32_t address) {
  read_matrices<true>({&x0, &x1, &x2, &x3}, address);
}

// Tiles: 16-byte unit u of row r stands at u xor (r mod 8).
static unsigned place(int rows, int row, int column) {
  return (column / 64 * rows + row) * 128 + (column % 64 / 8 ^ row % 8) * 16 + column % 8 * 2;
}
static void init_barriers(uint64_t *, int, int) {}
static void publish_barriers() {}
static void wait(uint64_t *, int64_t) { __syncthreads(); }
template <int ROWS, int COLUMNS>
void copy_tile_2d(unsigned char *to, const CUtensorMap *map, uint64_t *, int64_t first) {
  for (int r = 0; r < ROWS; ++r)
    for (int c = 0; c < COLUMNS; ++c)
      memcpy(to + place(ROWS, r, c), &map->data[(first + r) * map->columns + c], 2);
}
// a · bᵀ of wgmma: a in registers as for mma.sync, b by rows.
template <int STEPS, int ROWS, int R> void start_products(float (&sum)[R], const uint32_t *a, const void *b) {
  unsigned lane = threadIdx.x % 32;
  std::vector<double> sums(R);
  for (int step = 0; step < STEPS; ++step) {
    for (int r = 0; r < 4; ++r)
      mine(lane)[r] = a[4 * step + r];
    together();
    for (int e = 0; e < R; ++e) {
      int row = lane / 4 + 8 * (e / 2 % 2), column = e / 4 * 8 + lane % 4 * 2 + e % 2;
      for (int k = 0; k < 16; ++k) {
        uint64_t x = mine(4 * (row % 8) + k % 8 / 2)[row / 8 + 2 * (k / 8)];
        uint16_t y;
        memcpy(&y, (const unsigned char *)b + place(ROWS, column, 16 * step + k), 2);
        sums[e] += double(bfloatToFloat(uint16_t(x >> k % 2 * 16))) * bfloatToFloat(y);
      }
    }
    together();
  }
  for (int e = 0; e < R; ++e)
    sum[e] = float(sums[e]);
}
template <int PENDING, int R> void await_products(float (&)[R]) {}

static void run_block(const std::function<void()> &kernel) {
  for (auto &warp : warps)
    pthread_barrier_init(&warp, nullptr, 32);
  pthread_barrier_init(&block, nullptr, 128);
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < 128; ++k)
    threads.emplace_back([=] {
      threadIdx.x = k;
      kernel();
    });
  for (auto &thread : threads)
    thread.join();
}
