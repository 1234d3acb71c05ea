//===- HostText.h - host functions of emitted files -------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_HOSTTEXT_H
#define MOA_TARGET_CUDA_HOSTTEXT_H

namespace moa::cuda {

/// DLPack's descriptor and the return codes.
inline const char *const kDeclarations =
    R"moa(#ifndef DLPACK_DLPACK_H_ // DLPack's descriptor (https://dmlc.github.io/dlpack)
#define DLPACK_DLPACK_H_
typedef struct { int32_t device_type, device_id; } DLDevice; // type 2: CUDA, 13: CUDA managed
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType; // code 0: int, 1: uint, 2: float, 4: bfloat, 6: bool
typedef struct {
  void *data; DLDevice device; int32_t ndim; DLDataType dtype;
  int64_t *shape, *strides; uint64_t byte_offset; // strides in elements; NULL: row-major
} DLTensor;
#endif

#ifndef MOA_CODES // return codes; nothing is written unless it is MOA_OK, MOA_NOT_SHOWN or MOA_LAUNCH
#define MOA_CODES
enum { MOA_OK = 0,
  MOA_NULL_DESCRIPTOR = 1, MOA_RANK = 2, MOA_DTYPE = 3, // a descriptor or its shape, its axes, its element type
  MOA_SHAPE = 4, MOA_CONSTRAINT = 5, // extents disagree; a `require` of the specification is false
  MOA_STRIDES = 6, MOA_ALIGNMENT = 7, // negative, or an output overlaps itself; not aligned to the element
  MOA_DEVICE = 8, MOA_NULL_DATA = 9, // not memory of the current device; NULL, but the array is not empty
  MOA_OVERLAP = 10, MOA_WORKSPACE = 11, // an output and another array; NULL, too small, or misaligned
  MOA_OVERFLOW = 12, MOA_LAUNCH = 14, MOA_NOT_SHOWN = 15 }; // too large a size or grid; refused; not shown `within`
#endif
)moa";

/// A function of the host code. It is emitted if later text mentions one of its names, or always if
/// it has none.
struct HostFunction {
  const char *name, *text;
};

inline const HostFunction kHostFunctions[] = {
    {"", R"moa(
//===- Checks ---------------------------------------------------------------------------------===//
namespace {
// An error: the caller's buffer, which may be empty, and the code. The second macro adds the name of the array `a`.
struct Message { char *text; size_t size; int32_t code = MOA_OK; };
bool fail(Message &m, int32_t code, int /*length*/) { m.code = code; return false; }
#define REFUSE_IF(wrong, number, ...) if (wrong) return fail(m, number, snprintf(m.text, m.size, __VA_ARGS__))
#define REJECT_IF(wrong, number, reason, ...) REFUSE_IF(wrong, number, "%s: " reason, a.name, __VA_ARGS__)
struct Checked { // an integer that remembers overflow and division by zero
  int64_t value;
  int32_t code;
  Checked(int64_t v, int32_t c = MOA_OK) : value(v), code(c) {}
  Checked(__int128 v, Checked a, Checked b)
      : value(int64_t(v)), code(a.code ? a.code : b.code ? b.code : v != value ? MOA_OVERFLOW : MOA_OK) {}
  [[maybe_unused]] friend Checked operator+(Checked a, Checked b) { return {__int128(a.value) + b.value, a, b}; }
  [[maybe_unused]] friend Checked operator-(Checked a, Checked b) { return {__int128(a.value) - b.value, a, b}; }
  [[maybe_unused]] friend Checked operator*(Checked a, Checked b) { return {__int128(a.value) * b.value, a, b}; }
};
)moa"},
    {"-Checked( -floor_div( -floor_mod(", R"moa(Checked operator-(Checked a) { return 0 - a; }
)moa"},
    {"floor_div", R"moa(Checked floor_div(Checked a, Checked b) {
  if (b.value == 0) return Checked(0, a.code ? a.code : b.code ? b.code : MOA_CONSTRAINT);
  const __int128 q = __int128(a.value) / b.value;
  return {q - (q * b.value != a.value && (a.value < 0) != (b.value < 0)), a, b};
}
)moa"},
    {"floor_mod", R"moa(Checked floor_mod(Checked a, Checked b) { return a - floor_div(a, b) * b; }
)moa"},
    {"", R"moa(struct Array {
  const char *name, *type;
  int rank, code, bytes; // DLPack's type code; bytes of an element
  bool is_output, is_empty = false;
  const DLTensor *tensor = nullptr;
  int64_t *shape = nullptr, s[16] = {}, span = 0; // strides in elements; bytes from `begin` to the last element's end
  char *begin = nullptr;
};
static_assert(sizeof(long) == sizeof(int64_t), "%ld prints an int64_t");
// Checks rank, element type and shape of a descriptor, but not its extents.
bool open_array(Message &m, Array &a, const DLTensor *tensor) {
  REFUSE_IF(!tensor, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", a.name);
  a.tensor = tensor;
  const auto [code, bits, lanes] = tensor->dtype;
  REJECT_IF(tensor->ndim != a.rank, MOA_RANK, "expects %s, rank %d, but got rank %d", a.type, a.rank, tensor->ndim);
  REJECT_IF((code != a.code && (a.code != 6 || code != 1)) || bits != 8 * a.bytes || lanes != 1, MOA_DTYPE,
            "expects %s, but got DLPack type code %d of %d bits, %d lanes", a.type, code, bits, lanes);
  a.shape = tensor->shape;
  REFUSE_IF(a.rank && !a.shape, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", a.name);
  for (int k = 0; k < a.rank; ++k) {
    REJECT_IF(a.shape[k] < 0, MOA_SHAPE, "extent %ld on axis %d is negative", a.shape[k], k);
    a.is_empty |= a.shape[k] == 0;
  }
  return true;
}
)moa"},
    {"is_known", R"moa(bool is_known(Message &m, const char *text, Checked v) {
  REFUSE_IF(v.code, v.code, v.code == MOA_OVERFLOW ? "%s exceeds 64 bits" : "%s divides by zero", text);
  return true;
}
)moa"},
    {"bind_symbol",
     R"moa(bool bind_symbol(Message &m, int64_t *symbol, const char *name, const char *text, Checked v) {
  *symbol = v.value;
  REFUSE_IF(!v.code && v.value < 0, MOA_SHAPE, "%s = %s = %ld is negative", name, text, v.value);
  return is_known(m, text, v);
}
)moa"},
    {"check_extents",
     R"moa(struct Extent { const Array &array; int axis; const char *text; Checked value; };
template <int N> bool check_extents(Message &m, const Extent (&expected)[N]) {
  for (const auto &[a, axis, text, v] : expected) {
    REJECT_IF(!v.code && a.shape[axis] != v.value, MOA_SHAPE, "expects %s, so %s = %ld on axis %d, but got %ld", a.type,
              text, v.value, axis, a.shape[axis]);
    if (!is_known(m, text, v)) return false;
  }
  return true;
}
)moa"},
    {"check_constraint",
     R"moa(template <class Relation> bool check_constraint(Message &m, const char *text, Checked a, Checked b) {
  REFUSE_IF(!a.code && !b.code && !Relation()(a.value, b.value), MOA_CONSTRAINT,
            "requires %s, but the left side is %ld and the right side %ld", text, a.value, b.value);
  return is_known(m, text, a) && is_known(m, text, b);
}
)moa"},
    {"check_grids",
     R"moa(template <int N> bool check_grids(Message &m, const Checked (&blocks)[N]) {
  for (auto [n, code] : blocks) REFUSE_IF(code || n > INT32_MAX, MOA_OVERFLOW, "a grid has more than 2^31 - 1 blocks");
  return true;
}
)moa"},
    {"check_workspace",
     R"moa(template <int N>
bool check_workspace(Message &m, const Array (&arrays)[N], const char *workspace, size_t bytes, int64_t needed) {
  REFUSE_IF(bytes < size_t(needed), MOA_WORKSPACE, "the workspace has %zu bytes, but %ld are needed", bytes, needed);
  REFUSE_IF(needed && (!workspace || uintptr_t(workspace) % 64), MOA_WORKSPACE,
            "the workspace at %p is NULL or not a multiple of 64", (const void *)workspace);
  for (const Array &a : arrays)
    REFUSE_IF(needed && a.span && a.begin < workspace + needed && workspace < a.begin + a.span, MOA_OVERLAP,
              "the workspace overlaps %s", a.name);
  return true;
}
)moa"},
    {"",
     R"moa(// Finds strides (row-major by default, 0 on axes of one index) and the address range; checks alignment and device.
// Distinct indices of an output need distinct addresses: each stride exceeds the reach of all smaller ones.
bool resolve(Message &m, Array &a, int device) {
  if (a.is_empty) return true;
  const DLTensor *t = a.tensor;
  Checked next(1), last(0);
  for (int k = a.rank - 1; k >= 0; --k) {
    a.s[k] = a.shape[k] == 1 ? 0 : t->strides ? t->strides[k] : next.value;
    REJECT_IF(a.s[k] < 0, MOA_STRIDES, "stride %ld on axis %d is negative", a.s[k], k);
    next = next * a.shape[k];
    last = last + Checked(a.s[k]) * (a.shape[k] - 1);
  }
  const Checked span = (last + 1) * a.bytes;
  REFUSE_IF(span.code || next.code, MOA_OVERFLOW, "%s: the array exceeds 64 bits", a.name);
  REFUSE_IF(!t->data, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", a.name);
  const auto [type, id] = t->device;
  REJECT_IF(type != 2 && type != 13, MOA_DEVICE, "expects memory of a CUDA device (type 2), but got type %d", type);
  REJECT_IF(type == 2 && id != device, MOA_DEVICE, "is on device %d, but device %d is current", id, device);
  a.begin = (char *)t->data + t->byte_offset;
  a.span = span.value;
  const bool is_aligned = uintptr_t(a.begin) % uintptr_t(a.bytes) == 0;
  REJECT_IF(!is_aligned, MOA_ALIGNMENT, "address %p is not a multiple of the element size %d", a.begin, a.bytes);
  int64_t reach = 0;
  for (unsigned left = a.is_output ? (1u << a.rank) - 1 : 0, k = 0; left; left &= ~(1u << k)) {
    k = __builtin_ctz(left);
    for (int j = 0; j < a.rank; ++j) if (left >> j & 1 && a.s[j] < a.s[k]) k = j;
    const bool meet = a.shape[k] > 1 && a.s[k] <= reach;
    REJECT_IF(meet, MOA_STRIDES, "stride %ld on axis %d makes elements of the output overlap", a.s[k], int(k));
    reach += a.s[k] * (a.shape[k] - 1);
  }
  return true;
}
template <int N> bool check_memory(Message &m, Array (&arrays)[N]) {
  int device = 0;
  REFUSE_IF(cudaGetDevice(&device) != cudaSuccess, MOA_DEVICE, "there is no CUDA device");
  for (Array &a : arrays) if (!resolve(m, a, device)) return false;
  for (int i = 0; i < N * N; ++i) {
    const Array &y = arrays[i / N], &x = arrays[i % N];
    const bool meet = &x != &y && x.span && y.span && x.begin < y.begin + y.span && y.begin < x.begin + x.span;
    const bool is_new = i % N < i / N || !x.is_output; // two outputs are compared once
    REFUSE_IF(meet && y.is_output && is_new, MOA_OVERLAP, "output %s (%ld bytes at %p) overlaps %s (%ld "
              "bytes at %p)", y.name, y.span, y.begin, x.name, x.span, x.begin);
  }
  return true;
}
)moa"},
    {"check_tiles",
     R"moa(// TMA needs adjacent elements on the last axis, and addresses and strides that are multiples of 16 bytes.
bool check_tiles(Message &m, const Array &a) {
  const int64_t last = a.rank - 1, stride = a.is_empty || a.shape[last] == 1 ? 1 : a.s[last];
  REJECT_IF(stride != 1, MOA_STRIDES, "expects adjacent elements on axis %d, but got stride %ld", int(last), stride);
  REJECT_IF(uintptr_t(a.begin) % 16, MOA_ALIGNMENT, "address %p is not a multiple of 16", a.begin);
  for (int k = 0; k <= last && !a.is_empty; ++k) {
    const bool is_whole = a.shape[k] == 1 || k == last || (a.s[k] > 0 && a.s[k] * a.bytes % 16 == 0);
    REJECT_IF(!is_whole, MOA_STRIDES, "stride %ld on axis %d is not a positive multiple of 16 bytes", a.s[k], k);
    REJECT_IF(a.shape[k] > INT32_MAX, MOA_OVERFLOW, "extent %ld on axis %d exceeds 31 bits", a.shape[k], k);
  }
  return true;
}
)moa"},
    {"in_workspace", R"moa(// Describes an array of the workspace, row-major.
Array in_workspace(const char *name, int rank, int code, int bytes, char *begin, int64_t *shape) {
  Array a = {name, "", rank, code, bytes, false};
  a.shape = shape;
  a.begin = begin;
  for (int64_t axis = rank, size = 1; axis-- > 0; size *= shape[axis]) {
    a.s[axis] = size;
    a.is_empty |= shape[axis] == 0;
  }
  return a;
}
)moa"},
    {"describe_tiles",
     R"moa(// Encodes a tensor map of tiles: `rows` indices of one axis and 64 of the last. Empty arrays need none.
bool describe_tiles(Message &m, CUtensorMap *map, const Array &a, int row_axis, int rows) {
  static std::atomic<PFN_cuTensorMapEncodeTiled_v12000> known{nullptr};
  auto encode = known.load();
  if (a.is_empty) return true;
  if (!encode)
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault);
  known = encode;
  REFUSE_IF(!encode, MOA_DEVICE, "the driver has no cuTensorMapEncodeTiled");
  cuuint64_t extents[5], strides[5];
  cuuint32_t box[5], ones[] = {1, 1, 1, 1, 1};
  for (int k = 0, axis = a.rank - 1; axis >= 0; ++k, --axis) {
    extents[k] = cuuint64_t(a.shape[axis]);
    box[k] = k == 0 ? 64 : axis == row_axis ? rows : 1;
    if (k) strides[k - 1] = a.s[axis] ? cuuint64_t(a.s[axis] * a.bytes) : 16;
  }
  const auto type = a.tensor->dtype.code == 4 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const auto describe = [&] {
    return encode(map, type, a.rank, a.begin, extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }; // a thread without a context is given the primary one
  REFUSE_IF(describe() && (cudaFree(nullptr) || describe()), MOA_LAUNCH, "%s: no tiles of this array", a.name);
  return true;
}
)moa"},
    {"describe_steps",
     R"moa(// The same for every `step`-th index of that axis, from the first on.
bool describe_steps(Message &m, CUtensorMap *map, Array a, int row_axis, int rows, const char *text, Checked step) {
  if (!is_known(m, text, step)) return false;
  if (a.is_empty || step.value < 1) return describe_tiles(m, map, a, row_axis, rows);
  int64_t shape[5], &extent = shape[row_axis];
  for (int axis = 0; axis < a.rank; ++axis) shape[axis] = a.shape[axis];
  a.shape = shape;
  extent = 1 + (extent - 1) / step.value;
  a.s[row_axis] = extent > 1 ? a.s[row_axis] * step.value : 0;
  return describe_tiles(m, map, a, row_axis, rows);
}
)moa"},
    {"not_shown check_bounds",
     R"moa(// Reports that a non-empty result is not shown to be within its tolerance.
void not_shown(Message &m, const Array &a, const char *within, const char *why) {
  const size_t used = m.size ? strlen(m.text) : 0;
  if (a.is_empty || m.code == MOA_LAUNCH) return;
  m.code = MOA_NOT_SHOWN;
  snprintf(m.text + used, m.size - used, "%s%s is not shown to be within %s: %s", used ? "; " : "", a.name, within,
           why);
}
)moa"},
    {"check_bounds",
     R"moa(// Waits for bounds on a result's errors and reports those that exceed the tolerance or are NaN.
void check_bounds(Message &m, void *stream, const Array &a, const char *within, double allowed,
                  const float *bounds, const char *axes, std::initializer_list<int64_t> shape) {
  float part[256], found = 0;
  int64_t count = 1, first = -1, beyond = 0;
  for (int64_t extent : shape) count *= extent;
  for (int64_t k = 0; k < count && !a.is_empty && m.code != MOA_LAUNCH; k += 256) {
    const int64_t n = count - k < 256 ? count - k : 256;
    if (cudaMemcpyAsync(part, bounds + k, n * sizeof *part, cudaMemcpyDeviceToHost, cudaStream_t(stream)) ||
        cudaStreamSynchronize(cudaStream_t(stream))) {
      m.code = MOA_LAUNCH;
      snprintf(m.text, m.size, "CUDA did not copy the bounds of %s", a.name);
      return;
    }
    for (int64_t j = 0; j < n; ++j)
      if (!(part[j] <= allowed) && !beyond++) {
        first = k + j;
        found = part[j];
      }
  }
  if (!beyond) return;
  char why[1024];
  size_t used = found <= 3.4e38f
      ? snprintf(why, sizeof why, "the bound on its errors is %.2e", double(found))
      : snprintf(why, sizeof why, "no bound on its errors holds for these inputs: they are too large or too small for "
                 "the types, not finite, or have sums that may cancel");
  const char *before = " at [";
  int64_t size = count;
  for (int64_t extent : shape) {
    size /= extent;
    used += snprintf(why + used, sizeof why - used, "%s%ld", before, first / size);
    before = ", ";
    first %= size;
  }
  if (shape.size())
    snprintf(why + used, sizeof why - used, "], and too large at %ld of %ld indices of [%s]", beyond, count, axes);
  not_shown(m, a, within, why);
}
)moa"},
    {"all_larger", R"moa(// Returns whether x > y for all pairs x, y without an error.
bool all_larger(std::initializer_list<Checked> pairs) {
  for (const Checked *x = pairs.begin(); x != pairs.end(); x += 2)
    if (!x[0].code && !x[1].code && x[0].value <= x[1].value) return false;
  return true;
}
)moa"},
    {"launch_kernel",
     R"moa(template <class... Parameters, class... Arguments>
void launch_kernel(Message &m, void (*kernel)(Parameters...), int64_t blocks, int threads, int bytes,
                   void *stream, const Arguments &...arguments) {
  cudaLaunchConfig_t config = {dim3(unsigned(blocks)), dim3(threads), size_t(bytes), cudaStream_t(stream), nullptr, 0};
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) ||
      cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...)) m.code = MOA_LAUNCH;
}
)moa"},
    {"allow_shared_memory",
     R"moa(template <class Kernel> bool allow_shared_memory(Message &m, Kernel kernel, int bytes) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  REFUSE_IF(error, MOA_LAUNCH, "CUDA refused %d bytes of shared memory: %s", bytes, cudaGetErrorString(error));
  return true;
}
)moa"},
    {"launch_kernel_in_order",
     R"moa(// Launches a kernel. It may overlap with the previous launch of the call if that has at least the number `least`, and
// waits on the device for the results that it needs (programmatic dependent launch).
template <class... Parameters, class... Arguments>
bool launch_kernel_in_order(Message &m, void (*kernel)(Parameters...), int &latest, int number, int least,
                            int64_t blocks, int threads, size_t shared_bytes, void *stream,
                            const Arguments &...arguments) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = cudaStream_t(stream);
  config.attrs = &overlap;
  config.numAttrs = latest >= least;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  REFUSE_IF(error, MOA_LAUNCH, "CUDA refused launch %d: %s", number, cudaGetErrorString(error));
  latest = number;
  return true;
}
)moa"},
    {"", R"moa(// Loads kernels onto a device, which is current meanwhile.
template <class... Kernels> int32_t prepare_device(int32_t device, Kernels... kernels) {
  int before = 0;
  cudaFuncAttributes found;
  if (cudaGetDevice(&before) || cudaSetDevice(device)) return MOA_DEVICE;
  const bool failed = cudaFree(nullptr) || (... || cudaFuncGetAttributes(&found, kernels));
  return cudaSetDevice(before) || failed ? MOA_DEVICE : MOA_OK;
}
} // namespace
)moa"},
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_HOSTTEXT_H
