//===- TileHelpers.cpp - device functions for tiles -----------------------===//
//
// Each function is one instruction sequence. Encodings follow the PTX ISA 8.6: mbarrier
// (9.7.13.15), cp.async.bulk.tensor (9.7.9.25), wgmma and its matrix descriptors (9.7.15).
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/TileHelpers.h"
#include "lib/Target/CUDA/Cuda.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

namespace moa::cuda {

static const std::pair<const char *, const char *> kHelpers[] = {
    {"shared_address",
     R"(DEVICE uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }
)"},
    {"init_barriers", R"(DEVICE void init_barriers(uint64_t *bars, int count, int arrivals) {
  for (int k = 0; k < count; ++k)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bars + k)), "r"(arrivals) : "memory");
}
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); } // to TMA
)"},
    {"wait", R"(DEVICE void wait(uint64_t *bar, int64_t parity) { // until the phase of this parity is complete
  for (uint32_t done = 0; !done;)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(shared_address(bar)), "r"(uint32_t(parity)) : "memory");
}
)"},
    {"arrive", R"(DEVICE void arrive(uint64_t *bar) { // once per warp
  if (threadIdx.x % 32 == 0)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}
)"},
    {"arrive_all", R"(// Arrives once per thread.
DEVICE void arrive_all(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}
)"},
    {"published_words",
     R"(// Registers of a fragment are published in words of 16, 8 or 4 bytes per thread.
template <int R> constexpr int PUBLISHED = R % 4 == 0 ? 4 : R % 2 == 0 ? 2 : 1;
)"},
    {"publish", R"(// Stores a fragment in shared memory, where other blocks of the cluster read it.
template <int THREADS, class T, int R> DEVICE void publish(unsigned char *to, const T (&x)[R]) {
  constexpr int WORDS = PUBLISHED<R>;
  UNROLL for (int r = 0; r < R; r += WORDS)
    UNROLL for (int w = 0; w < WORDS; ++w) ((T *)to)[(r / WORDS * THREADS + threadIdx.x) * WORDS + w] = x[r + w];
}
)"},
    {"load_peer", R"(// Reads a fragment that this thread's counterpart in another block of the cluster has published.
template <int THREADS, class T, int R> DEVICE void load_peer(T (&to)[R], const unsigned char *from, int rank) {
  constexpr int WORDS = PUBLISHED<R>;
  const unsigned char *place = (const unsigned char *)__cluster_map_shared_rank((void *)from, rank);
  UNROLL for (int r = 0; r < R; r += WORDS)
    UNROLL for (int w = 0; w < WORDS; ++w) to[r + w] = ((const T *)place)[(r / WORDS * THREADS + threadIdx.x) * WORDS + w];
}
)"},
    {"sync_cluster", R"(// All consumers of the cluster arrive, and then see each other's shared memory.
DEVICE void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
)"},
    {"copy_unit",
     R"(// Starts the copy of 16 bytes to a place in a tile of [columns / 64][ROWS][128 bytes] with the 128-byte swizzle, or of
// zeros if the row is not present.
template <int ROWS> DEVICE void copy_unit(unsigned char *tile, int row, int unit, const void *from, bool present) {
  const uint32_t to = shared_address(tile) + (unit / 8 * ROWS + row) * 128 + (unit % 8 ^ row % 8) * 16;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(present ? 16 : 0) : "memory");
}
)"},
    {"arrive_copied", R"(// Arrives once per thread, when the copies that the thread has started have landed.
DEVICE void arrive_copied(uint64_t *bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}
)"},
    {"fill",
     R"(template <class T, class U, int R> DEVICE void fill(T (&x)[R], U a) { UNROLL for (int r = 0; r < R; ++r) x[r] = a; }
)"},
    {"copy",
     R"(template <class T, int R> DEVICE void copy(T (&to)[R], const T *x) { UNROLL for (int r = 0; r < R; ++r) to[r] = x[r]; }
)"},
    {"descriptors",
     R"(// Matrix descriptors of tiles stored as [columns / 64][rows][128 bytes] with the 128-byte swizzle. By rows: the
// contraction runs along the columns; by columns: along the rows. A step is 16 elements of the contraction.
DEVICE uint64_t tile_by_rows(const void *tile) {
  return uint64_t((shared_address(tile) & 0x3ffff) >> 4) | 64ull << 32 | 1ull << 62;
}
template <int ROWS> DEVICE uint64_t tile_by_columns(const void *tile) { return tile_by_rows(tile) | ROWS * 8ull << 16; }
template <int ROWS> DEVICE uint64_t row_step(int k) { return k / 4 * (ROWS * 8) + k % 4 * 2; }
)"},
    {"await_products",
     R"(// Waits for all but the last PENDING groups of wgmma. The empty asm keeps reads of `sum` after the wait.
template <int PENDING, int R> DEVICE void await_products(float (&sum)[R]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
  UNROLL for (int r = 0; r < R; ++r) asm volatile("" : "+f"(sum[r])::"memory");
}
)"},
    {"await_integer_products", R"(// The same for sums of integers.
template <int PENDING, int R> DEVICE void await_integer_products(int32_t (&sum)[R]) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
  UNROLL for (int r = 0; r < R; ++r) asm volatile("" : "+r"(sum[r])::"memory");
}
)"},
    {"append_members",
     R"(// Appends the numbers of the threads with `in` to a list of length `count`, in order. Returns the new length.
DEVICE int64_t append_members(uint16_t *list, int64_t count, bool in, int64_t number, int *warps) {
  const unsigned bits = __ballot_sync(0xffffffff, in), lane = threadIdx.x % 32;
  if (lane == 0) warps[threadIdx.x / 32] = __popc(bits);
  __syncthreads();
  int64_t place = count + __popc(bits & ((1u << lane) - 1));
  for (int warp = 0; warp < blockDim.x / 32; ++warp) {
    count += warps[warp];
    if (warp < threadIdx.x / 32) place += warps[warp];
  }
  if (in) list[place] = uint16_t(number);
  __syncthreads();
  return count;
}
)"},
    {"clear_masked_rows",
     R"(// Zeroes the rows of a tile whose keys no row of the block sees, because 0 * NaN would reach the sum. A key that some
// rows see stays: if it is NaN or infinite, the others are NaN. Bit 2c + e of word l stands for row 8c + 2l + e.
template <int COLUMNS, int CONSUMERS, int R>
DEVICE void clear_masked_rows(unsigned char *tile, uint32_t *words, const bool (&mask)[R]) {
  constexpr int ROWS = 2 * R, THREADS = 128 * CONSUMERS;
  const auto sync_consumers = [] { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); };
  uint32_t bits = 0;
  UNROLL for (int k = 0; k < R / 2; ++k)
    bits |= uint32_t(mask[k / 2 * 4 + k % 2] || mask[k / 2 * 4 + 2 + k % 2]) << k;
  UNROLL for (int lanes = 4; lanes < 32; lanes *= 2) bits |= __shfl_xor_sync(0xffffffff, bits, lanes);
  if (threadIdx.x < 4) words[threadIdx.x] = 0;
  sync_consumers();
  if (threadIdx.x % 32 < 4) atomicOr(&words[threadIdx.x % 32], bits);
  sync_consumers();
  for (int row = threadIdx.x; row < ROWS; row += THREADS) {
    if (words[row % 8 / 2] >> (row / 8 * 2 + row % 2) & 1) continue;
    for (int unit = 0; unit < COLUMNS / 8; ++unit)
      *(uint4 *)(tile + (unit / 8 * ROWS + row) * 128 + unit % 8 * 16) = make_uint4(0, 0, 0, 0);
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  sync_consumers();
}
)"},
    {"clear_masked_columns",
     R"(// Zeroes the columns of a tile of bytes whose keys are masked for all rows of the block, because 0 * NaN would reach
// the sum. Bit 2c + e of word l stands for column 8c + 2l + e: byte 2 * (c % 2) + e of word l of 16 bytes c / 2.
template <int ROWS, int CONSUMERS, int R>
DEVICE void clear_masked_columns(unsigned char *tile, uint32_t *words, const bool (&mask)[R]) {
  constexpr int THREADS = 128 * CONSUMERS;
  const auto sync_consumers = [] { asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); };
  uint32_t bits = 0;
  UNROLL for (int k = 0; k < R / 2; ++k)
    bits |= uint32_t(mask[k / 2 * 4 + k % 2] || mask[k / 2 * 4 + 2 + k % 2]) << k;
  UNROLL for (int lanes = 4; lanes < 32; lanes *= 2) bits |= __shfl_xor_sync(0xffffffff, bits, lanes);
  if (threadIdx.x < 4) words[threadIdx.x] = 0;
  sync_consumers();
  if (threadIdx.x % 32 < 4) atomicOr(&words[threadIdx.x % 32], bits);
  sync_consumers();
  for (int k = threadIdx.x; k < ROWS * 32; k += THREADS) {
    const int l = k % 4, unit = k / 4 % 8, row = k / 32;
    const uint32_t kept = ((words[l] >> unit * 4 & 15) * 0x204081u & 0x1010101u) * 255u;
    *(uint32_t *)(tile + row * 128 + (unit ^ row % 8) * 16 + l * 4) &= kept;
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  sync_consumers();
}
)"},
    {"put_fragment",
     R"(// Writes a warpgroup's fragment of packed pairs into 64 rows of a tile, with its swizzle.
template <int ROWS, int R> DEVICE void put_fragment(unsigned char *tile, const uint32_t (&x)[R]) {
  const int lane = threadIdx.x % 32, first = threadIdx.x / 32 % 4 * 16 + lane / 4;
  UNROLL for (int k = 0; k < R; ++k) {
    const int row = first + k % 2 * 8, unit = k / 2 % 8 ^ row % 8;
    *(uint32_t *)(tile + (k / 16 * ROWS + row) * 128 + unit * 16 + lane % 4 * 4) = x[k];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(2 + threadIdx.x / 128) : "memory");
}
)"},
    {"await_stores",
     R"(// Waits until the tile stores that this thread has started have read shared memory.
DEVICE void await_stores() {
  if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
)"},
    {"pack_bf16", R"(template <int R> DEVICE void pack_bf16(uint32_t (&to)[R], const float (&from)[2 * R]) {
  UNROLL for (int r = 0; r < R; ++r)
    asm volatile("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to[r]) : "f"(from[2 * r + 1]), "f"(from[2 * r]));
}
)"},
    {"pack_e4m3",
     R"(// Rounds groups of four to 8 bits: two pairs of a row, 8 columns apart.
template <int R> DEVICE void pack_e4m3(uint32_t (&to)[R], const float (&from)[4 * R]) {
  UNROLL for (int r = 0; r < R; ++r) {
    const float *x = from + r / 2 * 8 + r % 2 * 2;
    asm volatile("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f32 low, %2, %1; cvt.rn.satfinite.e4m3x2.f32 high, %4, %3; "
                 "mov.b32 %0, {low, high};}" : "=r"(to[r]) : "f"(x[0]), "f"(x[1]), "f"(x[4]), "f"(x[5]));
  }
}
)"},
    {"halves_from_bits",
     R"(// Pairs of f16 whose bits are 16 times the integers nearest to 2^24 * max(x, 0): rounding to a subnormal f16 rounds to
// an integer.
template <int R> DEVICE void halves_from_bits(uint32_t (&to)[R], const float (&from)[2 * R]) {
  UNROLL for (int r = 0; r < R; ++r) {
    asm volatile("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(to[r]) : "f"(from[2 * r + 1]), "f"(from[2 * r]));
    to[r] <<= 4;
  }
}
)"},
    {"add_halves", R"(DEVICE uint32_t add_halves(uint32_t x, uint32_t y) {
  asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(x) : "r"(y));
  return x;
}
)"},
    {"halves_of", R"(DEVICE __half2 halves_of(uint32_t bits) {
  return __halves2half2(__ushort_as_half(uint16_t(bits)), __ushort_as_half(uint16_t(bits >> 16)));
}
)"},
    {"pack_e4m3_of_halves",
     R"(// Rounds groups of four from 16 to 8 bits: two pairs of a row, 8 columns apart.
template <int R> DEVICE void pack_e4m3_of_halves(uint32_t (&to)[R], const uint32_t (&from)[2 * R]) {
  UNROLL for (int r = 0; r < R; ++r) {
    const uint32_t *x = from + r / 2 * 4 + r % 2;
    asm volatile("{.reg .b16 low, high; cvt.rn.satfinite.e4m3x2.f16x2 low, %1; cvt.rn.satfinite.e4m3x2.f16x2 high, %2; "
                 "mov.b32 %0, {low, high};}" : "=r"(to[r]) : "r"(x[0]), "r"(x[2]));
  }
}
)"},
    {"pack_f16", R"(template <int R> DEVICE void pack_f16(uint32_t (&to)[R], const float (&from)[2 * R]) {
  UNROLL for (int r = 0; r < R; ++r)
    asm volatile("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to[r]) : "f"(from[2 * r + 1]), "f"(from[2 * r]));
}
)"},
};

std::string requestContraction(int64_t columns, llvm::StringRef type, std::set<std::string> &helpers) {
  std::string name = "WGMMA_" + std::to_string(columns) + "_" + type.str();
  helpers.insert(name);
  return name;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Macros for the operands of instructions, `%0, …, %63` and `"+f"(d[0]), …`, by groups.
static const char *const kOperandMacros =
    R"(// Placeholders of an instruction's operands by tens, and its accumulator registers by fours and sixteens.
#define TEN(t) "%" t "0, %" t "1, %" t "2, %" t "3, %" t "4, %" t "5, %" t "6, %" t "7, %" t "8, %" t "9, "
#define SUMS_4(d, k) "+f"(d[k]), "+f"(d[(k) + 1]), "+f"(d[(k) + 2]), "+f"(d[(k) + 3])
#define SUMS_16(d, k) SUMS_4(d, k), SUMS_4(d, (k) + 4), SUMS_4(d, (k) + 8), SUMS_4(d, (k) + 12)
)";

/// The same for integer registers.
static const char *const kIntegerMacros =
    R"(#define INT_SUMS_4(d, k) "+r"(d[k]), "+r"(d[(k) + 1]), "+r"(d[(k) + 2]), "+r"(d[(k) + 3])
#define INT_SUMS_16(d, k) INT_SUMS_4(d, k), INT_SUMS_4(d, (k) + 4), INT_SUMS_4(d, (k) + 8), INT_SUMS_4(d, (k) + 12)
)";

/// Returns the macro `name`: inline assembly of one wgmma of m64, n = columns and 32 bytes of k.
/// Operand a comes last, so that b and add have fixed operand numbers.
static std::string printContraction(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> words;
  name.split(words, '_');
  int columns = 0;
  words[1].getAsInteger(10, columns);
  std::string type = words[2].lower();
  bool isInteger = type == "s8", isByte = isInteger || type == "e4m3";
  int sums = columns / 2;
  auto place = [&](int k) { return "%" + std::to_string(sums + k); };
  std::vector<std::string> lines = {"#define " + name.str() + "(d, b, add, A, " + (isInteger ? "" : "SIGNS, ") + "...)",
                                    "  asm volatile(\"{.reg .pred p; setp.ne.b32 p, " + place(1) +
                                        ", 0; wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) +
                                        (isInteger ? "k32.s32."
                                         : isByte  ? "k32.f32."
                                                   : "k16.f32.") +
                                        type + "." + type + " {\""};
  std::string row;
  auto add = [&](const std::string &word) {
    if (row.empty() || row.size() + 1 + word.size() > 117) {
      if (!row.empty())
        lines.push_back(row);
      row = std::string(15, ' ') + word;
      return;
    }
    row += " " + word;
  };
  // The placeholders of the sums: tens by macro, the rest explicitly.
  for (int k = 0; k < (sums - 1) / 10; ++k)
    add("TEN(\"" + (k ? std::to_string(k) : "") + "\")");
  std::string rest;
  for (int k = (sums - 1) / 10 * 10; k < sums; ++k)
    rest += "%" + std::to_string(k) + (k + 1 == sums ? "" : ", ");
  add("\"" + rest + "}, \"");
  add("A \", " + place(0) + (isInteger ? ", p;}\"" : ", p, \" SIGNS \";}\""));
  for (int k = 0; k < sums;) {
    int count = k + 16 <= sums ? 16 : 4;
    std::string item = (isInteger ? "INT_SUMS_" : "SUMS_") + std::to_string(count) + "(d, " + std::to_string(k) + ")";
    add((k ? "" : ": ") + item + (k + count < sums ? "," : ""));
    k += count;
  }
  add(": \"l\"(b), \"r\"(add), __VA_ARGS__)");
  lines.push_back(row);
  std::string text;
  for (auto [k, line] : llvm::enumerate(lines))
    text +=
        line + (k + 1 == lines.size() ? "\n" : std::string(line.size() < 118 ? 118 - line.size() : 1, ' ') + "\\\n");
  return text;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The coordinates of a tile of an array of `rank`: parameters, placeholders from `first`, and
/// operands from the innermost axis outwards.
namespace {
struct Coordinates {
  std::string parameters, places, operands;
  Coordinates(int rank, int first, int columns, bool hasColumn = false) {
    for (int axis = 0; axis + 1 < rank; ++axis)
      parameters += ", int i" + std::to_string(axis);
    for (int k = 0; k < rank; ++k)
      places += (k ? ", %" : "%") + std::to_string(first + k);
    operands = "\"r\"(" + std::string(hasColumn ? "column + " : "") + std::to_string(columns) + " * box)";
    if (hasColumn)
      parameters += ", int column";
    for (int axis = rank - 2; axis >= 0; --axis)
      operands += ", \"r\"(i" + std::to_string(axis) + ")";
  }
};
} // namespace

static int getRank(llvm::StringRef name) {
  int rank = 0;
  name.rsplit('_').second.drop_back().getAsInteger(10, rank);
  return rank;
}

/// Prints copy_tile_4d, which copies a tile of an array of rank 4 in boxes of 128 bytes of the
/// columns. For 8-bit elements it is copy_byte_tile_4d. copy_part_4d copies some rows of a tile.
static std::string printCopy(llvm::StringRef name) {
  bool ofBytes = name.starts_with("copy_byte_"), isPart = name.contains("_part_");
  Coordinates at(getRank(name), 3, ofBytes ? 128 : 64, name.contains("_from_"));
  return (isPart ? std::string("// Starts the TMA copy of COUNT of the ROWS of a tile into shared memory.\n"
                               "template <int ROWS, int COUNT, int COLUMNS>\n")
                 : std::string("// Starts the TMA copy of a tile into shared memory; the barrier's phase completes "
                               "when its bytes have arrived.\n"
                               "template <int ROWS, int COLUMNS>\n")) +
         wrapLine("DEVICE void " + name.str() + "(unsigned char *to, const CUtensorMap *map, uint64_t *bar" +
                      at.parameters + ") {",
                  4) +
         "\n"
         "  asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\"\n"
         "               ::\"r\"(shared_address(bar)), \"n\"(" +
         (isPart ? "COUNT" : "ROWS") + " * COLUMNS" + (ofBytes ? "" : " * 2") +
         ") : \"memory\");\n"
         "  UNROLL for (int box = 0; box < COLUMNS / " +
         (ofBytes ? "128" : "64") +
         "; ++box)\n"
         "    asm volatile(\"cp.async.bulk.tensor." +
         std::to_string(getRank(name)) +
         "d.shared::cluster.global.mbarrier::complete_tx::bytes \"\n"
         "                 \"[%0], [%1, {" +
         at.places +
         "}], [%2];\" ::\"r\"(shared_address(to) + box * ROWS * 128), \"l\"(map),\n"
         "                 \"r\"(shared_address(bar)), " +
         at.operands + " : \"memory\");\n}\n";
}

/// Prints store_tile_4d, which stores 64 rows of a tile in boxes of 64 columns. store_tile_async_4d
/// does not wait until they have been read.
static std::string printStore(llvm::StringRef name) {
  Coordinates at(getRank(name), 2, 64);
  bool waits = !name.contains("_async_");
  return std::string(waits ? "// Stores 64 rows by TMA and waits until shared memory has been read.\n"
                           : "// Starts to store 64 rows by TMA.\n") +
         "template <int ROWS, int COLUMNS>\n"
         "DEVICE void " +
         name.str() + "(const unsigned char *from, const CUtensorMap *map" + at.parameters +
         ") {\n"
         "  if (threadIdx.x % 128 != 0) return;\n"
         "  UNROLL for (int box = 0; box < COLUMNS / 64; ++box)\n"
         "    asm volatile(\"cp.async.bulk.tensor." +
         std::to_string(getRank(name)) + "d.global.shared::cta.bulk_group [%0, {" + at.places + "}], [%1];\"\n" +
         wrapLine("                 ::\"l\"(map), \"r\"(shared_address(from) + box * ROWS * 128), " + at.operands +
                      " : \"memory\");",
                  17) +
         "\n"
         "  asm volatile(\"cp.async.bulk.commit_group;" +
         (waits ? "\\n\\tcp.async.bulk.wait_group.read 0;" : "") + "\" ::: \"memory\");\n}\n";
}

static bool isCopyOfTile(llvm::StringRef name) {
  return llvm::any_of(
      std::initializer_list<const char *>{"copy_tile_", "copy_part_", "copy_byte_tile_", "copy_byte_part_"},
      [&](const char *prefix) { return name.starts_with(prefix); });
}

std::string printTileHelpers(const std::set<std::string> &helpers) {
  std::string text, products;
  for (auto [name, definition] : kHelpers)
    if (helpers.count(name) || (llvm::StringRef(name) == "shared_address" && helpers.count("init_barriers")))
      text += definition;
  for (const std::string &name : helpers) {
    if (llvm::StringRef(name).starts_with("WGMMA_"))
      products += printContraction(name);
    if (isCopyOfTile(name))
      text += printCopy(name);
    if (llvm::StringRef(name).starts_with("store_tile_"))
      text += printStore(name);
  }
  if (llvm::StringRef(products).contains("INT_SUMS_"))
    products = kIntegerMacros + products;
  return text + (products.empty() ? "" : kOperandMacros + products);
}

} // namespace moa::cuda
