//===- HostText.h - host functions every emitted file holds -----*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_HOSTTEXT_H
#define MOA_TARGET_CUDA_HOSTTEXT_H

namespace moa::cuda {

/// The descriptor and the codes.
inline const char *const kDeclarations =
    R"moa(// DLPack's descriptor (https://dmlc.github.io/dlpack).
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type, device_id; // type 2: CUDA, 13: CUDA managed
} DLDevice;
typedef struct {
  uint8_t code, bits; // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
  uint16_t lanes;     // 1
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides; // strides in elements; NULL: row-major
  uint64_t byte_offset;
} DLTensor;
#endif

// What an entry point returns. Any other code than MOA_OK: nothing was written.
#ifndef MOA_CODES
#define MOA_CODES
enum {
  MOA_OK = 0,
  MOA_NULL_DESCRIPTOR = 1, // a descriptor or its shape is NULL
  MOA_RANK = 2,            // wrong number of axes
  MOA_DTYPE = 3,           // wrong element type
  MOA_SHAPE = 4,           // extents disagree with each other
  MOA_CONSTRAINT = 5,      // a `require` of the specification is false
  MOA_STRIDES = 6,         // negative, or an output overlaps itself
  MOA_ALIGNMENT = 7,       // data is not aligned to the element size
  MOA_DEVICE = 8,          // not memory of the current device
  MOA_NULL_DATA = 9,       // data is NULL, but the array is not empty
  MOA_OVERLAP = 10,        // an output overlaps another array
  MOA_WORKSPACE = 11,      // NULL, too small, or misaligned
  MOA_OVERFLOW = 12,       // a size exceeds 64 bits, or a grid its limit
  MOA_LAUNCH = 14          // the driver refused a launch
};
#endif
)moa";

/// A function of the host code; one without a name is always there, another where
/// what follows it names it.
struct HostFunction {
  const char *name, *text;
};

inline const HostFunction kHostFunctions[] = {
    {"", R"moa(
//===- Checks ---------------------------------------------------------------------------------===//

namespace {

// The first refusal of a call; the caller's text may be NULL. The checks after it do nothing.
struct Message {
  char *text;
  size_t size;
  int32_t code;
};

void refuse(Message *m, int32_t code, const char *format, ...) {
  m->code = code;
  if (!m->text || !m->size)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(m->text, m->size, format, arguments);
  va_end(arguments);
}

// An integer that remembers overflow and division by zero.
struct Checked {
  int64_t value;
  int32_t code;
  Checked(int64_t v, int32_t c = MOA_OK) : value(v), code(c) {}
  Checked(__int128 v, Checked a, Checked b)
      : value(int64_t(v)), code(a.code ? a.code : b.code ? b.code : v != int64_t(v) ? MOA_OVERFLOW : MOA_OK) {}
  friend Checked operator+(Checked a, Checked b) { return Checked(__int128(a.value) + b.value, a, b); }
  friend Checked operator-(Checked a, Checked b) { return Checked(__int128(a.value) - b.value, a, b); }
  friend Checked operator-(Checked a) { return Checked(0) - a; }
  friend Checked operator*(Checked a, Checked b) { return Checked(__int128(a.value) * b.value, a, b); }
};
)moa"},
    {"floor_div", R"moa(
template <class T> Checked floor_div(Checked a, Checked b) {
  if (b.value == 0)
    return Checked(0, a.code ? a.code : b.code ? b.code : MOA_CONSTRAINT);
  if (b.value == -1)
    return Checked(0) - a;
  const int64_t q = a.value / b.value;
  return Checked(q - (q * b.value != a.value && (a.value < 0) != (b.value < 0)), a, b);
}
)moa"},
    {"floor_mod", R"moa(
template <class T> Checked floor_mod(Checked a, Checked b) {
  return b.value == -1 ? Checked(0, a, b) : a - floor_div<T>(a, b) * b;
}
)moa"},
    {"refuse_value", R"moa(
void refuse_value(Message *m, Checked v, const char *text) {
  refuse(m, v.code, v.code == MOA_OVERFLOW ? "%s exceeds 64 bits" : "%s divides by zero", text);
}
)moa"},
    {"", R"moa(
// One array argument: strides in elements, the first byte and the bytes to the last element's end.
struct Array {
  const DLTensor *tensor;
  const char *name, *type;
  bool is_output;
  int64_t bytes, s[16];
  char *begin;
  uint64_t span;
};
typedef long long Int; // as printf takes it

// Everything that concerns one descriptor but not its extents.
void open_array(Array *a, Message *m, const DLTensor *t, const char *name, const char *type, int rank, int code,
                int bits, bool is_output) {
  *a = Array{t, name, type, is_output, bits / 8, {}, nullptr, 0};
  if (m->code)
    return;
  if (!t)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", name);
  if (t->ndim != rank)
    return refuse(m, MOA_RANK, "%s: expects %s, rank %d, but got rank %d", name, type, rank, int(t->ndim));
  const bool same = t->dtype.code == code || (code == 6 && t->dtype.code == 1);
  if (!same || t->dtype.bits != bits || t->dtype.lanes != 1)
    return refuse(m, MOA_DTYPE, "%s: expects %s, but got DLPack type code %d of %d bits, %d lanes", name, type,
                  t->dtype.code, t->dtype.bits, t->dtype.lanes);
  if (rank && !t->shape)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", name);
  for (int k = 0; k < rank; ++k)
    if (t->shape[k] < 0)
      return refuse(m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", name, Int(t->shape[k]), k);
}
)moa"},
    {"bind_symbol", R"moa(
void bind_symbol(int64_t *symbol, Message *m, const char *name, const char *text, Checked value) {
  *symbol = value.value;
  if (m->code)
    return;
  if (value.code)
    return refuse_value(m, value, text);
  if (value.value < 0)
    refuse(m, MOA_SHAPE, "%s = %s = %lld is negative", name, text, Int(value.value));
}
)moa"},
    {"check_extents", R"moa(
struct Extent {
  const char *text;
  Checked value;
};
template <int RANK> void check_extents(const Array &a, Message *m, const Extent (&expected)[RANK]) {
  for (int k = 0; k < RANK && !m->code; ++k) {
    const auto &[text, value] = expected[k];
    if (value.code)
      refuse_value(m, value, text);
    else if (a.tensor->shape[k] != value.value)
      refuse(m, MOA_SHAPE, "%s: expects %s, so %s = %lld on axis %d, but got %lld", a.name, a.type, text,
             Int(value.value), k, Int(a.tensor->shape[k]));
  }
}
)moa"},
    {"check_constraint", R"moa(
template <class Relation> void check_constraint(Message *m, const char *text, Checked lhs, Checked rhs) {
  if (m->code)
    return;
  if (lhs.code || rhs.code)
    return refuse_value(m, lhs.code ? lhs : rhs, text);
  if (!Relation()(lhs.value, rhs.value))
    refuse(m, MOA_CONSTRAINT, "requires %s, but the left side is %lld and the right side %lld", text, Int(lhs.value),
           Int(rhs.value));
}
)moa"},
    {"", R"moa(
bool is_empty(const Array &a) {
  for (int k = 0; k < a.tensor->ndim; ++k)
    if (a.tensor->shape[k] == 0)
      return true;
  return false;
}

// Strides (row-major without any, 0 on axes of one index), the address range, alignment, device.
void resolve(Array *a, Message *m, int device) {
  const DLTensor *t = a->tensor;
  if (is_empty(*a))
    return;
  Checked next(1), last(0);
  for (int k = t->ndim - 1; k >= 0; --k) {
    a->s[k] = t->shape[k] == 1 ? 0 : t->strides ? t->strides[k] : next.value;
    if (a->s[k] < 0)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is negative", a->name, Int(a->s[k]), k);
    next = next * t->shape[k];
    last = last + Checked(a->s[k]) * (t->shape[k] - 1);
  }
  const Checked span = (last + 1) * a->bytes;
  if (span.code || next.code)
    return refuse(m, MOA_OVERFLOW, "%s: the array exceeds 64 bits", a->name);
  if (!t->data)
    return refuse(m, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", a->name);
  const int type = t->device.device_type, id = t->device.device_id;
  if (type != 2 && type != 13)
    return refuse(m, MOA_DEVICE, "%s: expects memory of a CUDA device (type 2), but got device type %d", a->name, type);
  if (type == 2 && id != device)
    return refuse(m, MOA_DEVICE, "%s: is on device %d, but device %d is current", a->name, id, device);
  a->begin = (char *)t->data + t->byte_offset;
  a->span = uint64_t(span.value);
  if (uintptr_t(a->begin) % uintptr_t(a->bytes))
    refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of the element size %lld", a->name, (void *)a->begin,
           Int(a->bytes));
}

// Distinct indices of an output have distinct addresses: in order of the strides, each passes all that
// the smaller ones reach.
void check_output(const Array &a, Message *m) {
  bool done[16] = {};
  int64_t reach = 0;
  for (int round = 0; round < a.tensor->ndim && a.span; ++round) {
    int best = -1;
    for (int k = 0; k < a.tensor->ndim; ++k)
      if (!done[k] && (best < 0 || a.s[k] < a.s[best]))
        best = k;
    done[best] = true;
    if (a.tensor->shape[best] < 2)
      continue;
    if (a.s[best] <= reach)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d makes elements of the output overlap", a.name,
                    Int(a.s[best]), best);
    reach += a.s[best] * (a.tensor->shape[best] - 1);
  }
}

template <int N> void check_memory(Message *m, Array *const (&arrays)[N]) {
  int device = 0;
  if (!m->code && cudaGetDevice(&device) != cudaSuccess)
    refuse(m, MOA_DEVICE, "there is no CUDA device");
  for (int k = 0; k < N && !m->code; ++k) {
    resolve(arrays[k], m, device);
    if (!m->code && arrays[k]->is_output)
      check_output(*arrays[k], m);
  }
  for (int b = 0; b < N; ++b)
    for (int a = 0; a < N && arrays[b]->is_output && !m->code; ++a) {
      const Array &x = *arrays[a], &y = *arrays[b];
      const bool later = a < b || !x.is_output;
      if (a != b && later && x.span && y.span && x.begin < y.begin + y.span && y.begin < x.begin + x.span)
        refuse(m, MOA_OVERLAP, "output %s (%llu bytes at %p) overlaps %s (%llu bytes at %p)", y.name,
               (unsigned long long)y.span, (void *)y.begin, x.name, (unsigned long long)x.span, (void *)x.begin);
    }
}
)moa"},
    {"check_tiles", R"moa(
// The copy engine takes rows of adjacent elements, and addresses and strides of whole 16 bytes.
void check_tiles(const Array &a, Message *m) {
  if (m->code || is_empty(a))
    return;
  const int last = a.tensor->ndim - 1;
  if (a.s[last] > 1)
    return refuse(m, MOA_STRIDES, "%s: expects adjacent elements on axis %d, but got stride %lld", a.name, last,
                  Int(a.s[last]));
  if (uintptr_t(a.begin) % 16)
    return refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of 16", a.name, (void *)a.begin);
  for (int k = 0; k < last; ++k)
    if (a.tensor->shape[k] > 1 && (a.s[k] * a.bytes % 16 || a.s[k] == 0))
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is not a positive multiple of 16 bytes", a.name,
                    Int(a.s[k]), k);
  for (int k = 0; k <= last; ++k)
    if (a.tensor->shape[k] > INT32_MAX)
      return refuse(m, MOA_OVERFLOW, "%s: extent %lld on axis %d exceeds 31 bits", a.name, Int(a.tensor->shape[k]), k);
}
)moa"},
    {"describe_tiles", R"moa(
// Tiles of `rows` indices of one axis and 64 of the last.
void describe_tiles(CUtensorMap *map, Message *m, const Array &a, int row_axis, int rows) {
  memset(map, 0, sizeof *map);
  if (m->code || is_empty(a))
    return; // no tile is copied
  static PFN_cuTensorMapEncodeTiled_v12000 encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (!encode && (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000,
                                                   cudaEnableDefault, &found) != cudaSuccess ||
                  found != cudaDriverEntryPointSuccess))
    return refuse(m, MOA_DEVICE, "the driver has no cuTensorMapEncodeTiled");
  const int rank = a.tensor->ndim;
  cuuint64_t extents[5], strides[5];
  cuuint32_t box[5], ones[5];
  for (int k = 0; k < rank; ++k) {
    const int axis = rank - 1 - k;
    extents[k] = cuuint64_t(a.tensor->shape[axis]);
    ones[k] = 1;
    box[k] = k == 0 ? 64 : axis == row_axis ? rows : 1;
    if (k)
      strides[k - 1] = a.s[axis] ? cuuint64_t(a.s[axis] * a.bytes) : 16;
  }
  const auto type = a.tensor->dtype.code == 4 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (encode(map, type, rank, a.begin, extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    refuse(m, MOA_LAUNCH, "%s: no tiles of this array", a.name);
}
)moa"},
    {"", R"moa(
// Loads the code of this file onto a device.
int32_t prepare_device(int32_t device) {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device) != cudaSuccess)
    return MOA_DEVICE;
  const bool loaded = cudaFree(nullptr) == cudaSuccess;
  return cudaSetDevice(before) == cudaSuccess && loaded ? MOA_OK : MOA_DEVICE;
}

} // namespace
)moa"},
};

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_HOSTTEXT_H
