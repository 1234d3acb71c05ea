/*===- Launcher.c - functions of every launcher -------------------*- C -*-===*\
 *
 * Each part is text of emitted launchers (lib/Target/PTX/Launcher.cpp), and code of the run-time
 * library, which defines the names of the parts it compiles (lib/Runtime/Checked.h, Launcher.h).
 *
\*===----------------------------------------------------------------------===*/
/* The text is emitted as it stands. */
/* clang-format off */
#ifdef MOA_PART_INCLUDES
#include <cuda.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#endif /* MOA_PART_INCLUDES */
#ifdef MOA_PART_CHECKS
/*--- Checks ---------------------------------------------------------------------------------*/

/* A kernel needs some of these functions. */
#define MOA_SHARED __attribute__((unused)) static

/* The caller's buffer for the reason of a refusal; text may be NULL. */
typedef struct {
  char *text;
  size_t size;
} moa_message;

MOA_SHARED int32_t moa_refuse(moa_message *m, int32_t code, const char *format, ...) {
  if (m->text && m->size) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(m->text, m->size, format, arguments);
    va_end(arguments);
  }
  return code;
}

/* An integer that remembers overflow and division by zero. */
typedef struct {
  int64_t value;
  int32_t code;
} moa_checked;

MOA_SHARED moa_checked moa_number(int64_t value) { return (moa_checked){value, MOA_OK}; }
MOA_SHARED moa_checked moa_make(bool overflow, int64_t value, moa_checked a, moa_checked b) {
  return (moa_checked){value, a.code ? a.code : b.code ? b.code : overflow ? MOA_OVERFLOW : MOA_OK};
}
MOA_SHARED moa_checked moa_add(moa_checked a, moa_checked b) {
  int64_t r = 0;
  const bool overflow = __builtin_add_overflow(a.value, b.value, &r);
  return moa_make(overflow, r, a, b);
}
MOA_SHARED moa_checked moa_subtract(moa_checked a, moa_checked b) {
  int64_t r = 0;
  const bool overflow = __builtin_sub_overflow(a.value, b.value, &r);
  return moa_make(overflow, r, a, b);
}
MOA_SHARED moa_checked moa_multiply(moa_checked a, moa_checked b) {
  int64_t r = 0;
  const bool overflow = __builtin_mul_overflow(a.value, b.value, &r);
  return moa_make(overflow, r, a, b);
}
MOA_SHARED moa_checked moa_floor_div(moa_checked a, moa_checked b) {
  if (b.value == 0)
    return (moa_checked){0, a.code ? a.code : b.code ? b.code : MOA_CONSTRAINT};
  if (b.value == -1)
    return moa_subtract(moa_make(false, 0, b, b), a);
  const int64_t q = a.value / b.value;
  return moa_make(false, q - (q * b.value != a.value && (a.value < 0) != (b.value < 0)), a, b);
}
MOA_SHARED moa_checked moa_floor_mod(moa_checked a, moa_checked b) {
  if (b.value == -1)
    return moa_make(false, 0, a, b);
  return moa_subtract(a, moa_multiply(moa_floor_div(a, b), b));
}

MOA_SHARED int32_t moa_refuse_value(moa_message *m, moa_checked v, const char *text) {
  return moa_refuse(m, v.code, v.code == MOA_OVERFLOW ? "%s exceeds 64 bits" : "%s divides by zero", text);
}

/* One array argument: strides in elements, the first byte and the bytes to the last element's end. */
typedef struct {
  const DLTensor *tensor;
  const char *name, *type;
  bool is_output;
  int64_t bytes, s[16];
  char *begin;
  uint64_t span;
} moa_array;

/* Checks rank, element type and shape of a descriptor, but not its extents. */
MOA_SHARED int32_t moa_open_array(moa_array *a, moa_message *m, const DLTensor *t, const char *name,
                                  const char *type, int rank, int code, int bits, bool is_output) {
  memset(a, 0, sizeof *a);
  a->tensor = t;
  a->name = name;
  a->type = type;
  a->is_output = is_output;
  a->bytes = bits / 8;
  if (!t)
    return moa_refuse(m, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", name);
  if (t->ndim != rank)
    return moa_refuse(m, MOA_RANK, "%s: expects %s, rank %d, but got rank %d", name, type, rank, (int)t->ndim);
  const bool same = t->dtype.code == code || (code == 6 && t->dtype.code == 1);
  if (!same || t->dtype.bits != bits || t->dtype.lanes != 1)
    return moa_refuse(m, MOA_DTYPE, "%s: expects %s, but got DLPack type code %d of %d bits, %d lanes", name,
                      type, t->dtype.code, t->dtype.bits, t->dtype.lanes);
  if (rank && !t->shape)
    return moa_refuse(m, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", name);
  for (int axis = 0; axis < rank; ++axis)
    if (t->shape[axis] < 0)
      return moa_refuse(m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", name,
                        (long long)t->shape[axis], axis);
  return MOA_OK;
}

MOA_SHARED int32_t moa_bind_symbol(int64_t *symbol, moa_message *m, const char *name, const char *text,
                                   moa_checked value) {
  *symbol = value.value;
  if (value.code)
    return moa_refuse_value(m, value, text);
  if (value.value < 0)
    return moa_refuse(m, MOA_SHAPE, "%s = %s = %lld is negative", name, text, (long long)value.value);
  return MOA_OK;
}

MOA_SHARED int32_t moa_check_extent(const moa_array *a, moa_message *m, int axis, const char *text,
                                    moa_checked expected) {
  if (expected.code)
    return moa_refuse_value(m, expected, text);
  if (a->tensor->shape[axis] != expected.value)
    return moa_refuse(m, MOA_SHAPE, "%s: expects %s, so %s = %lld on axis %d, but got %lld", a->name, a->type,
                      text, (long long)expected.value, axis, (long long)a->tensor->shape[axis]);
  return MOA_OK;
}

MOA_SHARED int32_t moa_check_constraint(moa_message *m, const char *text, moa_checked lhs, moa_checked rhs,
                                        bool holds) {
  if (lhs.code || rhs.code)
    return moa_refuse_value(m, lhs.code ? lhs : rhs, text);
  if (holds)
    return MOA_OK;
  return moa_refuse(m, MOA_CONSTRAINT, "requires %s, but the left side is %lld and the right side %lld", text,
                    (long long)lhs.value, (long long)rhs.value);
}

MOA_SHARED int32_t moa_check_grids(moa_message *m, const moa_checked *blocks, int count) {
  for (int k = 0; k < count; ++k)
    if (blocks[k].code || blocks[k].value > INT32_MAX)
      return moa_refuse(m, MOA_OVERFLOW, "a grid has more than 2^31 - 1 blocks");
  return MOA_OK;
}

MOA_SHARED bool moa_is_empty(const moa_array *a) {
  for (int axis = 0; axis < a->tensor->ndim; ++axis)
    if (a->tensor->shape[axis] == 0)
      return true;
  return false;
}

/* Finds strides (row-major by default, 0 on axes of one index) and the address range; checks alignment and device. */
MOA_SHARED int32_t moa_resolve(moa_array *a, moa_message *m, int device) {
  const DLTensor *t = a->tensor;
  if (moa_is_empty(a))
    return MOA_OK;
  moa_checked next = moa_number(1), last = moa_number(0);
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    const int64_t extent = t->shape[axis];
    a->s[axis] = extent == 1 ? 0 : t->strides ? t->strides[axis] : next.value;
    if (a->s[axis] < 0)
      return moa_refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is negative", a->name,
                        (long long)a->s[axis], axis);
    next = moa_multiply(next, moa_number(extent));
    last = moa_add(last, moa_multiply(moa_number(a->s[axis]), moa_number(extent - 1)));
  }
  const moa_checked span = moa_multiply(moa_add(last, moa_number(1)), moa_number(a->bytes));
  if (span.code || next.code)
    return moa_refuse(m, MOA_OVERFLOW, "%s: the array exceeds 64 bits", a->name);
  if (!t->data)
    return moa_refuse(m, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", a->name);
  if (t->device.device_type != 2 && t->device.device_type != 13)
    return moa_refuse(m, MOA_DEVICE, "%s: expects memory of a CUDA device (type 2), but got type %d",
                      a->name, (int)t->device.device_type);
  if (t->device.device_type == 2 && t->device.device_id != device)
    return moa_refuse(m, MOA_DEVICE, "%s: is on device %d, but device %d is current", a->name,
                      (int)t->device.device_id, device);
  a->begin = (char *)t->data + t->byte_offset;
  a->span = (uint64_t)span.value;
  if ((uintptr_t)a->begin % (uintptr_t)a->bytes)
    return moa_refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of the element size %lld", a->name,
                      (void *)a->begin, (long long)a->bytes);
  return MOA_OK;
}

/* Distinct indices of an output need distinct addresses: each stride exceeds the reach of all smaller ones. */
MOA_SHARED int32_t moa_check_output(const moa_array *a, moa_message *m) {
  bool done[16] = {false};
  int64_t reach = 0;
  for (int round = 0; round < a->tensor->ndim && a->span; ++round) {
    int best = -1;
    for (int axis = 0; axis < a->tensor->ndim; ++axis)
      if (!done[axis] && (best < 0 || a->s[axis] < a->s[best]))
        best = axis;
    done[best] = true;
    if (a->tensor->shape[best] < 2)
      continue;
    if (a->s[best] <= reach)
      return moa_refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d makes elements of the output overlap",
                        a->name, (long long)a->s[best], best);
    reach += a->s[best] * (a->tensor->shape[best] - 1);
  }
  return MOA_OK;
}

#endif /* MOA_PART_CHECKS */
#ifdef MOA_PART_DEVICE
/* Returns the current device; without a context device 0, as in the CUDA runtime. */
MOA_SHARED int32_t moa_find_device(int *device) {
  CUcontext context = NULL;
  CUdevice current = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuCtxGetCurrent(&context) != CUDA_SUCCESS)
    return MOA_DEVICE;
  if (!context && (cuDeviceGet(&current, 0) != CUDA_SUCCESS ||
                   cuDevicePrimaryCtxRetain(&context, current) != CUDA_SUCCESS ||
                   cuCtxSetCurrent(context) != CUDA_SUCCESS))
    return MOA_DEVICE;
  if (cuCtxGetDevice(&current) != CUDA_SUCCESS)
    return MOA_DEVICE;
  *device = (int)current;
  return MOA_OK;
}

#endif /* MOA_PART_DEVICE */
#ifdef MOA_PART_MEMORY
MOA_SHARED int32_t moa_check_memory(moa_array *const *arrays, int count, moa_message *m) {
  int device = 0;
  if (moa_find_device(&device))
    return moa_refuse(m, MOA_DEVICE, "there is no CUDA device");
  for (int k = 0; k < count; ++k) {
    int32_t code = moa_resolve(arrays[k], m, device);
    if (!code && arrays[k]->is_output)
      code = moa_check_output(arrays[k], m);
    if (code)
      return code;
  }
  for (int b = 0; b < count; ++b)
    for (int a = 0; a < count && arrays[b]->is_output; ++a) {
      const moa_array *x = arrays[a], *y = arrays[b];
      const bool later = a < b || !x->is_output;
      if (a != b && later && x->span && y->span && x->begin < y->begin + y->span && y->begin < x->begin + x->span)
        return moa_refuse(m, MOA_OVERLAP, "output %s (%llu bytes at %p) overlaps %s (%llu bytes at %p)", y->name,
                          (unsigned long long)y->span, (void *)y->begin, x->name,
                          (unsigned long long)x->span, (void *)x->begin);
    }
  return MOA_OK;
}

MOA_SHARED int32_t moa_check_workspace(moa_array *const *arrays, int count, moa_message *m, const void *workspace,
                                       size_t bytes, moa_checked needed) {
  if (needed.code)
    return moa_refuse_value(m, needed, "the workspace");
  if (bytes < (size_t)needed.value)
    return moa_refuse(m, MOA_WORKSPACE, "the workspace has %zu bytes, but %lld are needed", bytes,
                      (long long)needed.value);
  if (needed.value && (!workspace || (uintptr_t)workspace % 64))
    return moa_refuse(m, MOA_WORKSPACE, "the workspace at %p is NULL or not a multiple of 64", workspace);
  for (int k = 0; k < count; ++k) {
    const moa_array *a = arrays[k];
    const char *begin = (const char *)workspace;
    if (needed.value && a->span && a->begin < begin + needed.value && begin < a->begin + a->span)
      return moa_refuse(m, MOA_OVERLAP, "the workspace overlaps %s", a->name);
  }
  return MOA_OK;
}

/* TMA needs adjacent elements on the last axis, and addresses and strides that are multiples of 16 bytes. */
MOA_SHARED int32_t moa_check_tiles(const moa_array *a, moa_message *m) {
  if (moa_is_empty(a))
    return MOA_OK;
  const int last = a->tensor->ndim - 1;
  if (a->tensor->shape[last] > 1 && a->s[last] != 1)
    return moa_refuse(m, MOA_STRIDES, "%s: expects adjacent elements on axis %d, but got stride %lld", a->name,
                      last, (long long)a->s[last]);
  if ((uintptr_t)a->begin % 16)
    return moa_refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of 16", a->name, (void *)a->begin);
  for (int axis = 0; axis < last; ++axis)
    if (a->tensor->shape[axis] > 1 && (a->s[axis] * a->bytes % 16 || a->s[axis] == 0))
      return moa_refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is not a positive multiple of 16 bytes",
                        a->name, (long long)a->s[axis], axis);
  for (int axis = 0; axis <= last; ++axis)
    if (a->tensor->shape[axis] > INT32_MAX)
      return moa_refuse(m, MOA_OVERFLOW, "%s: extent %lld on axis %d exceeds 31 bits", a->name,
                        (long long)a->tensor->shape[axis], axis);
  return MOA_OK;
}
#endif /* MOA_PART_MEMORY */
#ifdef MOA_PART_TILES
/*--- Launches -------------------------------------------------------------------------------*/

/* Describes an array of the workspace, row-major. */
MOA_SHARED void moa_place(moa_array *a, DLTensor *tensor, int rank, int code, int64_t bytes, char *begin, int64_t *shape) {
  memset(a, 0, sizeof *a);
  memset(tensor, 0, sizeof *tensor);
  tensor->ndim = rank;
  tensor->dtype.code = (uint8_t)code;
  tensor->shape = shape;
  a->tensor = tensor;
  a->bytes = bytes;
  a->begin = begin;
  for (int64_t axis = rank, size = 1; axis-- > 0; size *= shape[axis])
    a->s[axis] = size;
}

/* Encodes a tensor map of tiles: `rows` indices of one axis and 128 bytes of the last. */
MOA_SHARED int32_t moa_describe_tiles(moa_message *m, CUtensorMap *map, const moa_array *a, int row_axis, int rows) {
  memset(map, 0, sizeof *map);
  if (moa_is_empty(a))
    return MOA_OK; /* no tile is copied */
  const int rank = a->tensor->ndim;
  cuuint64_t extents[5], strides[5];
  cuuint32_t box[5], ones[5];
  for (int k = 0; k < rank; ++k) {
    const int axis = rank - 1 - k;
    extents[k] = (cuuint64_t)a->tensor->shape[axis];
    ones[k] = 1;
    box[k] = k == 0 ? (cuuint32_t)(128 / a->bytes) : axis == row_axis ? (cuuint32_t)rows : 1;
    if (k)
      strides[k - 1] = a->s[axis] ? (cuuint64_t)(a->s[axis] * a->bytes) : 16;
  }
  const CUtensorMapDataType type = a->bytes == 1                  ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                   : a->tensor->dtype.code == 4 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                                : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const CUresult made =
      cuTensorMapEncodeTiled(map, type, (cuuint32_t)rank, a->begin, extents, strides, box, ones,
                             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return made == CUDA_SUCCESS ? MOA_OK : moa_refuse(m, MOA_LAUNCH, "%s: no tiles of this array", a->name);
}
#endif /* MOA_PART_TILES */
#ifdef MOA_PART_STEPS

/* The same for every `step`-th index of that axis, from the first on. */
MOA_SHARED int32_t moa_describe_steps(moa_message *m, CUtensorMap *map, const moa_array *a, int row_axis, int rows,
                                      const char *text, moa_checked step) {
  if (step.code)
    return moa_refuse_value(m, step, text);
  if (step.value < 1)
    return moa_describe_tiles(m, map, a, row_axis, rows);
  int64_t shape[5];
  DLTensor tensor = *a->tensor;
  moa_array every = *a;
  for (int axis = 0; axis < tensor.ndim; ++axis)
    shape[axis] = a->tensor->shape[axis];
  if (shape[row_axis])
    shape[row_axis] = 1 + (shape[row_axis] - 1) / step.value;
  tensor.shape = shape;
  every.tensor = &tensor;
  every.s[row_axis] = shape[row_axis] > 1 ? a->s[row_axis] * step.value : 0;
  return moa_describe_tiles(m, map, &every, row_axis, rows);
}
#endif /* MOA_PART_STEPS */
#ifdef MOA_PART_ROUND

/* Rounds a float to nearest, to the 16 bits of a kernel's parameter. */
MOA_SHARED uint16_t moa_to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (x != x)
    return 0x7fff;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
MOA_SHARED uint16_t moa_to_f16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (x != x)
    return 0x7fff;
  if (size >= 0x477ff000) /* rounds to 2^16 or beyond */
    return (uint16_t)(sign | 0x7c00);
  if (size < 0x38800000) { /* subnormal: whole multiples of 2^-24 */
    const float magnitude = x < 0 ? -x : x;
    const float shifted = magnitude + 0.5f; /* 2^-24 is the last bit of [0.5, 1) */
    uint32_t rounded;
    memcpy(&rounded, &shifted, sizeof rounded);
    return (uint16_t)(sign | (rounded - 0x3f000000));
  }
  return (uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}

#endif /* MOA_PART_ROUND */
#ifdef MOA_PART_LOAD
/* The code of this file, loaded by the first call for all devices of the process. */
static CUlibrary moa_library;

MOA_SHARED int32_t moa_open_library(CUlibrary *library) {
  *library = __atomic_load_n(&moa_library, __ATOMIC_ACQUIRE);
  if (*library)
    return MOA_OK;
  CUlibrary mine = NULL, other = NULL;
  if (cuLibraryLoadData(&mine, moa_ptx, NULL, NULL, 0, NULL, NULL, 0) != CUDA_SUCCESS)
    return MOA_LAUNCH;
  const bool first = __atomic_compare_exchange_n(&moa_library, &other, mine, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE);
  if (!first)
    cuLibraryUnload(mine); /* another thread was faster */
  *library = first ? mine : other;
  return MOA_OK;
}

/* Finds a kernel on the current device and allows it its shared memory. */
MOA_SHARED int32_t moa_open_kernel(moa_message *m, CUkernel *kernel, const char *name, int shared_bytes) {
  CUlibrary library;
  CUdevice device = 0;
  if (moa_open_library(&library) || cuLibraryGetKernel(kernel, library, name) != CUDA_SUCCESS ||
      cuCtxGetDevice(&device) != CUDA_SUCCESS)
    return moa_refuse(m, MOA_LAUNCH, "CUDA refused to load %s", name);
  if (shared_bytes && cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes, *kernel,
                                           device) != CUDA_SUCCESS)
    return moa_refuse(m, MOA_LAUNCH, "CUDA refused %d bytes of shared memory", shared_bytes);
  return MOA_OK;
}

#endif /* MOA_PART_LOAD */
#ifdef MOA_PART_LAUNCH
/* Launches a kernel. It may overlap with the previous launch of the call if that has at least the number `least`, and
   waits on the device for the results that it needs (programmatic dependent launch). */
MOA_SHARED int32_t moa_launch(moa_message *m, CUkernel kernel, int *latest, int number, int least, int64_t blocks,
                              int threads, int shared_bytes, void **parameters, void *stream) {
  CUlaunchAttribute overlap;
  memset(&overlap, 0, sizeof overlap);
  overlap.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  overlap.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config;
  memset(&config, 0, sizeof config);
  config.gridDimX = (unsigned)blocks, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = (unsigned)threads, config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = (unsigned)shared_bytes, config.hStream = (CUstream)stream;
  config.attrs = &overlap, config.numAttrs = *latest >= least ? 1 : 0;
  const CUresult launched = cuLaunchKernelEx(&config, (CUfunction)kernel, parameters, NULL);
  *latest = number;
  return launched == CUDA_SUCCESS ? MOA_OK : moa_refuse(m, MOA_LAUNCH, "CUDA refused launch %d", number);
}

#endif /* MOA_PART_LAUNCH */
#ifdef MOA_PART_PREPARE
/* Returns whether x > y for all pairs x, y without an error. */
MOA_SHARED int moa_all_larger(const moa_checked *pairs, int count) {
  for (int k = 0; k < count; k += 2)
    if (!pairs[k].code && !pairs[k + 1].code && pairs[k].value <= pairs[k + 1].value)
      return 0;
  return 1;
}

/* Loads kernels onto a device. */
MOA_SHARED int32_t moa_prepare(int32_t device, const char *const *names, const int *shared_bytes, int count) {
  moa_message none = {NULL, 0};
  CUdevice chosen = 0;
  CUcontext context = NULL;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&chosen, device) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, chosen) != CUDA_SUCCESS || cuCtxPushCurrent(context) != CUDA_SUCCESS)
    return MOA_DEVICE;
  int32_t code = MOA_OK;
  for (int k = 0; k < count && !code; ++k) {
    CUkernel kernel;
    CUfunction loaded;
    code = moa_open_kernel(&none, &kernel, names[k], shared_bytes[k]);
    if (!code && cuKernelGetFunction(&loaded, kernel) != CUDA_SUCCESS)
      code = MOA_LAUNCH;
  }
  return cuCtxPopCurrent(&context) == CUDA_SUCCESS ? code : MOA_DEVICE;
}
#endif /* MOA_PART_PREPARE */
#ifdef MOA_PART_BOUNDS

/* Reports that a non-empty result is not shown to be within its tolerance. */
MOA_SHARED int32_t moa_not_shown(moa_message *m, const moa_array *a, const char *within, const char *why) {
  if (moa_is_empty(a))
    return MOA_OK;
  if (m->text && m->size) {
    const size_t used = strlen(m->text);
    snprintf(m->text + used, m->size - used, "%s%s is not shown to be within %s: %s", used ? "; " : "", a->name,
             within, why);
  }
  return MOA_NOT_SHOWN;
}

/* Waits for bounds on a result's errors and reports those that exceed the tolerance or are NaN. */
MOA_SHARED int32_t moa_check_bounds(moa_message *m, void *stream, const moa_array *a, const char *within,
                                    double allowed, const char *place, const char *axes,
                                    const int64_t *extents, int rank) {
  float part[256], found = 0;
  char why[1024];
  size_t used;
  int64_t count = !moa_is_empty(a), first = -1, beyond = 0, size, k, j;
  int axis;
  for (axis = 0; axis < rank; ++axis)
    count *= extents[axis];
  for (k = 0; k < count; k += 256) {
    const int64_t n = count - k < 256 ? count - k : 256;
    const CUdeviceptr from = (CUdeviceptr)(uintptr_t)place + (CUdeviceptr)k * sizeof *part;
    if (cuMemcpyDtoHAsync(part, from, (size_t)n * sizeof *part, (CUstream)stream) != CUDA_SUCCESS ||
        cuStreamSynchronize((CUstream)stream) != CUDA_SUCCESS)
      return moa_refuse(m, MOA_LAUNCH, "CUDA did not copy the bounds of %s", a->name);
    for (j = 0; j < n; ++j)
      if (!(part[j] <= allowed) && !beyond++) {
        first = k + j;
        found = part[j];
      }
  }
  if (!beyond)
    return MOA_OK;
  if (found <= 3.4e38f)
    used = (size_t)snprintf(why, sizeof why, "the bound on its errors is %.2e", (double)found);
  else
    used = (size_t)snprintf(why, sizeof why, "no bound on its errors holds for these inputs: they are too large "
                            "or too small for the types, not finite, or have sums that may cancel");
  for (axis = 0, size = count; axis < rank; ++axis, first %= size) {
    size /= extents[axis];
    used += (size_t)snprintf(why + used, sizeof why - used, "%s%lld", axis ? ", " : " at [", (long long)(first / size));
  }
  if (rank)
    snprintf(why + used, sizeof why - used, "], and too large at %lld of %lld indices of [%s]", (long long)beyond,
             (long long)count, axes);
  return moa_not_shown(m, a, within, why);
}
#endif /* MOA_PART_BOUNDS */
