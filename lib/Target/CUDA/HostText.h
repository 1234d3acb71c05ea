//===- HostText.h - host functions every emitted file holds -----*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_HOSTTEXT_H
#define MOA_TARGET_CUDA_HOSTTEXT_H

namespace moa::cuda {

/// The descriptor, the codes and the functions that check arguments.
inline const char *const kDeclarations =
    R"moa(// DLPack's descriptor (https://dmlc.github.io/dlpack).
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type; // 2: CUDA, 13: CUDA managed
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code; // 0 int, 1 uint, 2 float, 4 bfloat, 6 bool
  uint8_t bits;
  uint16_t lanes; // 1
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; // in elements; NULL: row-major
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

inline const char *const kHostFunctions =
    R"moa(//===- Checks ---------------------------------------------------------------------------------===//

namespace {

// Where the reason of a refusal goes; text may be NULL.
struct Message {
  char *text;
  size_t size;
};

int32_t refuse(Message *m, int32_t code, const char *format, ...) {
  if (m->text && m->size) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->text, m->size, format, arguments);
    va_end(arguments);
  }
  return code;
}

// An integer that remembers overflow and division by zero.
struct Checked {
  int64_t value;
  int32_t code;
  Checked(int64_t v, int32_t c = MOA_OK) : value(v), code(c) {}
};
[[maybe_unused]] Checked make(bool overflow, int64_t value, Checked a, Checked b) {
  return Checked(value, a.code ? a.code : b.code ? b.code : overflow ? MOA_OVERFLOW : MOA_OK);
}
[[maybe_unused]] Checked operator+(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_add_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
[[maybe_unused]] Checked operator-(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_sub_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
[[maybe_unused]] Checked operator-(Checked a) { return Checked(0) - a; }
[[maybe_unused]] Checked operator*(Checked a, Checked b) {
  int64_t r = 0;
  bool overflow = __builtin_mul_overflow(a.value, b.value, &r);
  return make(overflow, r, a, b);
}
template <class T> Checked floor_div(Checked a, Checked b) {
  if (b.value == 0)
    return Checked(0, a.code ? a.code : b.code ? b.code : MOA_CONSTRAINT);
  if (b.value == -1)
    return Checked(0) - a;
  int64_t q = a.value / b.value;
  return make(false, q - (q * b.value != a.value && (a.value < 0) != (b.value < 0)), a, b);
}
template <class T> Checked floor_mod(Checked a, Checked b) {
  if (b.value == -1)
    return make(false, 0, a, b);
  return a - floor_div<T>(a, b) * b;
}

[[maybe_unused]] int32_t refuse_value(Message *m, Checked v, const char *text) {
  return refuse(m, v.code, v.code == MOA_OVERFLOW ? "%s exceeds 64 bits" : "%s divides by zero", text);
}

// One array argument: strides in elements, the first byte and the bytes to the last element's end.
struct Array {
  const DLTensor *tensor;
  const char *name, *type;
  bool is_output;
  int64_t bytes, s[16];
  char *begin;
  uint64_t span;
};

// Everything that concerns one descriptor but not its extents.
int32_t open_array(Array *a, Message *m, const DLTensor *t, const char *name, const char *type, int rank,
                   int code, int bits, bool is_output) {
  *a = Array{t, name, type, is_output, bits / 8, {}, nullptr, 0};
  if (!t)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", name);
  if (t->ndim != rank)
    return refuse(m, MOA_RANK, "%s: expects %s, rank %d, but got rank %d", name, type, rank, int(t->ndim));
  const bool same = t->dtype.code == code || (code == 6 && t->dtype.code == 1);
  if (!same || t->dtype.bits != bits || t->dtype.lanes != 1)
    return refuse(m, MOA_DTYPE, "%s: expects %s, but got DLPack type code %d of %d bits, %d lanes", name,
                  type, t->dtype.code, t->dtype.bits, t->dtype.lanes);
  if (rank && !t->shape)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", name);
  for (int axis = 0; axis < rank; ++axis)
    if (t->shape[axis] < 0)
      return refuse(m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", name,
                    (long long)t->shape[axis], axis);
  return MOA_OK;
}

[[maybe_unused]] int32_t bind_symbol(int64_t *symbol, Message *m, const char *name, const char *text, Checked value) {
  *symbol = value.value;
  if (value.code)
    return refuse_value(m, value, text);
  if (value.value < 0)
    return refuse(m, MOA_SHAPE, "%s = %s = %lld is negative", name, text, (long long)value.value);
  return MOA_OK;
}

[[maybe_unused]] int32_t check_extent(const Array &a, Message *m, int axis, const char *text, Checked expected) {
  if (expected.code)
    return refuse_value(m, expected, text);
  if (a.tensor->shape[axis] != expected.value)
    return refuse(m, MOA_SHAPE, "%s: expects %s, so %s = %lld on axis %d, but got %lld", a.name, a.type,
                  text, (long long)expected.value, axis, (long long)a.tensor->shape[axis]);
  return MOA_OK;
}

[[maybe_unused]] int32_t check_constraint(Message *m, const char *text, Checked lhs, Checked rhs, bool holds) {
  if (lhs.code || rhs.code)
    return refuse_value(m, lhs.code ? lhs : rhs, text);
  return holds ? int32_t(MOA_OK)
               : refuse(m, MOA_CONSTRAINT, "requires %s, but the left side is %lld and the right side %lld",
                        text, (long long)lhs.value, (long long)rhs.value);
}

int32_t check_blocks(Checked blocks) {
  return blocks.code || blocks.value > INT32_MAX ? MOA_OVERFLOW : MOA_OK;
}

bool is_empty(const Array &a) {
  for (int axis = 0; axis < a.tensor->ndim; ++axis)
    if (a.tensor->shape[axis] == 0)
      return true;
  return false;
}

// Strides (row-major without any, 0 on axes of one index), the address range, alignment, device.
int32_t resolve(Array *a, Message *m, int device) {
  const DLTensor *t = a->tensor;
  if (is_empty(*a))
    return MOA_OK;
  Checked next(1), last(0);
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    const int64_t extent = t->shape[axis];
    a->s[axis] = extent == 1 ? 0 : t->strides ? t->strides[axis] : next.value;
    if (a->s[axis] < 0)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is negative", a->name,
                    (long long)a->s[axis], axis);
    next = next * extent;
    last = last + Checked(a->s[axis]) * (extent - 1);
  }
  const Checked span = (last + 1) * a->bytes;
  if (span.code || next.code)
    return refuse(m, MOA_OVERFLOW, "%s: the array exceeds 64 bits", a->name);
  if (!t->data)
    return refuse(m, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", a->name);
  if (t->device.device_type != 2 && t->device.device_type != 13)
    return refuse(m, MOA_DEVICE, "%s: expects memory of a CUDA device (type 2), but got device type %d",
                  a->name, int(t->device.device_type));
  if (t->device.device_type == 2 && t->device.device_id != device)
    return refuse(m, MOA_DEVICE, "%s: is on device %d, but device %d is current", a->name,
                  int(t->device.device_id), device);
  a->begin = (char *)t->data + t->byte_offset;
  a->span = uint64_t(span.value);
  if (uintptr_t(a->begin) % uintptr_t(a->bytes))
    return refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of the element size %lld", a->name,
                  (void *)a->begin, (long long)a->bytes);
  return MOA_OK;
}

// Distinct indices of an output have distinct addresses: in order of the strides, each passes all that
// the smaller ones reach.
int32_t check_output(const Array &a, Message *m) {
  bool done[16] = {};
  int64_t reach = 0;
  for (int round = 0; round < a.tensor->ndim && a.span; ++round) {
    int best = -1;
    for (int axis = 0; axis < a.tensor->ndim; ++axis)
      if (!done[axis] && (best < 0 || a.s[axis] < a.s[best]))
        best = axis;
    done[best] = true;
    if (a.tensor->shape[best] < 2)
      continue;
    if (a.s[best] <= reach)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d makes elements of the output overlap",
                    a.name, (long long)a.s[best], best);
    reach += a.s[best] * (a.tensor->shape[best] - 1);
  }
  return MOA_OK;
}

int32_t check_memory(Array *const *arrays, int count, Message *m) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess)
    return refuse(m, MOA_DEVICE, "there is no CUDA device");
  for (int k = 0; k < count; ++k) {
    if (int32_t code = resolve(arrays[k], m, device))
      return code;
    if (arrays[k]->is_output)
      if (int32_t code = check_output(*arrays[k], m))
        return code;
  }
  for (int b = 0; b < count; ++b)
    for (int a = 0; a < count && arrays[b]->is_output; ++a) {
      const Array &x = *arrays[a], &y = *arrays[b];
      const bool later = a < b || !x.is_output;
      if (a != b && later && x.span && y.span && x.begin < y.begin + y.span && y.begin < x.begin + x.span)
        return refuse(m, MOA_OVERLAP, "output %s (%llu bytes at %p) overlaps %s (%llu bytes at %p)", y.name,
                      (unsigned long long)y.span, (void *)y.begin, x.name, (unsigned long long)x.span,
                      (void *)x.begin);
    }
  return MOA_OK;
}

// The copy engine takes rows of adjacent elements, and addresses and strides of whole 16 bytes.
[[maybe_unused]] int32_t check_tiles(const Array &a, Message *m) {
  if (is_empty(a))
    return MOA_OK;
  const int last = a.tensor->ndim - 1;
  if (a.s[last] > 1)
    return refuse(m, MOA_STRIDES, "%s: expects adjacent elements on axis %d, but got stride %lld", a.name, last,
                  (long long)a.s[last]);
  if (uintptr_t(a.begin) % 16)
    return refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of 16", a.name, (void *)a.begin);
  for (int axis = 0; axis < last; ++axis)
    if (a.tensor->shape[axis] > 1 && (a.s[axis] * a.bytes % 16 || a.s[axis] == 0))
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is not a positive multiple of 16 bytes", a.name,
                    (long long)a.s[axis], axis);
  for (int axis = 0; axis <= last; ++axis)
    if (a.tensor->shape[axis] > INT32_MAX)
      return refuse(m, MOA_OVERFLOW, "%s: extent %lld on axis %d exceeds 31 bits", a.name,
                    (long long)a.tensor->shape[axis], axis);
  return MOA_OK;
}

// Tiles of `rows` indices of one axis and 64 of the last.
[[maybe_unused]] int32_t describe_tiles(CUtensorMap *map, Message *m, const Array &a, int row_axis, int rows) {
  memset(map, 0, sizeof *map);
  if (is_empty(a))
    return MOA_OK; // no tile is copied
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
  const bool bf16 = a.tensor->dtype.code == 4;
  const CUresult made =
      encode(map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, a.begin, extents,
             strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return made == CUDA_SUCCESS ? int32_t(MOA_OK) : refuse(m, MOA_LAUNCH, "%s: no tiles of this array", a.name);
}

// Loads the code of this file onto a device.
int32_t prepare_device(int32_t device) {
  int before = 0;
  if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device) != cudaSuccess)
    return MOA_DEVICE;
  const bool loaded = cudaFree(nullptr) == cudaSuccess;
  return cudaSetDevice(before) == cudaSuccess && loaded ? MOA_OK : MOA_DEVICE;
}

} // namespace
)moa";

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_HOSTTEXT_H
