/*--- Calls from tvm-ffi ----------------------------------------------------------------------*/
#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What is used of tvm-ffi 0.1. Include tvm/ffi/c_api.h before this file to use the original declarations. */
#ifdef __cplusplus
extern "C" {
#endif
#ifndef TVM_FFI_C_API_H_
#define TVM_FFI_C_API_H_
enum {
  kTVMFFINone = 0,
  kTVMFFIInt = 1,
  kTVMFFIBool = 2,
  kTVMFFIFloat = 3,
  kTVMFFIOpaquePtr = 4,
  kTVMFFIDataType = 5,
  kTVMFFIDevice = 6,
  kTVMFFIDLTensorPtr = 7,
  kTVMFFIRawStr = 8,
  kTVMFFISmallStr = 11,
  kTVMFFIStr = 65,
  kTVMFFITensor = 70
};
typedef struct {
  uint64_t combined_ref_count;
  int32_t type_index;
  uint32_t padding;
  void (*deleter)(void *self, int flags);
} TVMFFIObject;
typedef struct {
  int32_t type_index;
  uint32_t zero_padding;
  union {
    int64_t v_int64;
    double v_float64;
    void *v_ptr;
  };
} TVMFFIAny;
typedef struct {
  const char *data;
  size_t size;
} TVMFFIByteArray;
void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message);
int TVMFFIStringFromByteArray(const TVMFFIByteArray *input, TVMFFIAny *out);
#endif
void *TVMFFIEnvGetStream(int32_t device_type, int32_t device_id);
#ifdef __cplusplus
}
#endif
static_assert(sizeof(TVMFFIObject) == 24 && sizeof(TVMFFIAny) == 16, "the layout is that of tvm-ffi 0.1");
static_assert(sizeof(DLTensor) == 48, "a tensor object is an object and a DLTensor");

/* A kernel needs some of these functions. */
#define MOA_FFI __attribute__((unused)) static

enum { MOA_FFI_TENSOR, MOA_FFI_BOOL, MOA_FFI_INT, MOA_FFI_F64, MOA_FFI_F32, MOA_FFI_F16, MOA_FFI_BF16 };
enum { MOA_FFI_RUN, MOA_FFI_WORKSPACE, MOA_FFI_CHECK, MOA_FFI_SHOWN }; /* entry points */
enum { MOA_FFI_TEXT = 1024 };

typedef struct {
  const char *name;
  int64_t kind;
  int64_t low, high; /* range of an integer */
} moa_ffi_parameter;

struct moa_ffi_call;
typedef struct {
  const char *name;
  int64_t count;
  const moa_ffi_parameter *parameters; /* in the order of the entry points */
  int64_t (*enter)(struct moa_ffi_call *call, int entry);
  int64_t device;    /* DLPack's type: 1 CPU, 2 CUDA */
  const void *table; /* of a kernel for CPUs */
} moa_ffi_kernel;

typedef struct moa_ffi_call {
  const moa_ffi_kernel *kernel;
  const TVMFFIAny *args;
  void *workspace;
  int64_t bytes;
  char text[MOA_FFI_TEXT]; /* why the call is refused */
} moa_ffi_call;

MOA_FFI bool moa_ffi_is_tensor(const TVMFFIAny *a) {
  return a->type_index == kTVMFFIDLTensorPtr || a->type_index == kTVMFFITensor;
}
MOA_FFI bool moa_ffi_is_int(const TVMFFIAny *a) { return a->type_index == kTVMFFIInt || a->type_index == kTVMFFIBool; }

/* The values of arguments whose kinds are checked. */
MOA_FFI const DLTensor *moa_ffi_tensor(const TVMFFIAny *a) {
  return (const DLTensor *)((char *)a->v_ptr + (a->type_index == kTVMFFITensor ? sizeof(TVMFFIObject) : 0));
}
MOA_FFI int64_t moa_ffi_int(const TVMFFIAny *a) { return a->v_int64; }
MOA_FFI double moa_ffi_real(const TVMFFIAny *a) {
  return a->type_index == kTVMFFIFloat ? a->v_float64 : (double)a->v_int64;
}

/* Adds to the text of a call. */
MOA_FFI void moa_ffi_say(moa_ffi_call *c, const char *format, ...) {
  const size_t used = strlen(c->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(c->text + used, MOA_FFI_TEXT - used, format, arguments);
  va_end(arguments);
}
MOA_FFI int moa_ffi_raise(const moa_ffi_call *c, const char *kind) {
  TVMFFIErrorSetRaisedFromCStr(kind, c->text);
  return -1;
}
MOA_FFI const char *moa_ffi_describe(int32_t type_index) {
  switch (type_index) {
  case kTVMFFINone:
    return "None";
  case kTVMFFIInt:
    return "an int";
  case kTVMFFIBool:
    return "a bool";
  case kTVMFFIFloat:
    return "a float";
  case kTVMFFIOpaquePtr:
    return "a pointer";
  case kTVMFFIDataType:
    return "a dtype";
  case kTVMFFIDevice:
    return "a device";
  case kTVMFFIDLTensorPtr:
  case kTVMFFITensor:
    return "a tensor";
  case kTVMFFIRawStr:
  case kTVMFFISmallStr:
  case kTVMFFIStr:
    return "a str";
  case 78: /* kTVMFFIBigInt, which older headers lack */
    return "an int of more than 64 bits";
  default:
    return "another object";
  }
}

/* Checks the kind of one argument, and the range of an integer. */
MOA_FFI int moa_ffi_check(moa_ffi_call *c, const moa_ffi_parameter *p, int place) {
  const TVMFFIAny *a = &c->args[place];
  const char *expected = "a float";
  if (p->kind == MOA_FFI_TENSOR) {
    if (moa_ffi_is_tensor(a))
      return 0;
    expected = "a tensor";
  } else if (p->kind == MOA_FFI_INT || p->kind == MOA_FFI_BOOL) {
    if (moa_ffi_is_int(a) && p->low <= a->v_int64 && a->v_int64 <= p->high)
      return 0;
    if (moa_ffi_is_int(a)) {
      moa_ffi_say(c, "%s: expects %s from %lld to %lld, but argument %d is %lld", p->name,
                  p->kind == MOA_FFI_INT ? "an int" : "a bool or an int", (long long)p->low, (long long)p->high, place,
                  (long long)a->v_int64);
      return moa_ffi_raise(c, "ValueError");
    }
    expected = p->kind == MOA_FFI_INT ? "an int" : "a bool";
  } else if (a->type_index == kTVMFFIFloat || moa_ffi_is_int(a)) {
    return 0;
  }
  moa_ffi_say(c, "%s: expects %s, but argument %d is %s", p->name, expected, place, moa_ffi_describe(a->type_index));
  return moa_ffi_raise(c, "TypeError");
}

/* Returns the number of the device of the first array on a GPU. */
MOA_FFI int32_t moa_ffi_device(const moa_ffi_call *c) {
  int64_t k;
  for (k = 0; k < c->kernel->count; ++k) {
    const DLTensor *t = c->kernel->parameters[k].kind == MOA_FFI_TENSOR ? moa_ffi_tensor(&c->args[k]) : NULL;
    if (t && (t->device.device_type == 2 || t->device.device_type == 13))
      return t->device.device_id;
  }
  return 0;
}

/* Takes the last argument, bytes of the device, or None. */
MOA_FFI int moa_ffi_take_workspace(moa_ffi_call *c, int place) {
  const TVMFFIAny *a = &c->args[place];
  const DLTensor *t = moa_ffi_is_tensor(a) ? moa_ffi_tensor(a) : NULL;
  if (a->type_index == kTVMFFINone)
    return 0;
  if (!t || (t->ndim && !t->shape)) {
    moa_ffi_say(c, "workspace: expects a tensor or None, but argument %d is %s", place,
                t || moa_ffi_is_tensor(a) ? "a tensor without a descriptor" : moa_ffi_describe(a->type_index));
    return moa_ffi_raise(c, "TypeError");
  }
  if (t->dtype.code != 1 || t->dtype.bits != 8 || t->dtype.lanes != 1) {
    moa_ffi_say(c, "workspace: expects elements of uint8, but got DLPack type code %d of %d bits, %d lanes",
                (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes);
    return moa_ffi_raise(c, "TypeError");
  }
  if (t->ndim != 1) {
    moa_ffi_say(c, "workspace: expects one axis, but got %d", (int)t->ndim);
    return moa_ffi_raise(c, "ValueError");
  }
  if (t->strides && t->shape[0] > 1 && t->strides[0] != 1) {
    moa_ffi_say(c, "workspace: expects adjacent bytes, but got stride %lld", (long long)t->strides[0]);
    return moa_ffi_raise(c, "ValueError");
  }
  if (t->shape[0] > 0) {
    const int type = (int)t->device.device_type, device = (int)t->device.device_id;
    if (type != c->kernel->device && (c->kernel->device != 2 || type != 13)) {
      moa_ffi_say(c, "workspace: expects memory of device type %d, but got type %d", (int)c->kernel->device, type);
      return moa_ffi_raise(c, "RuntimeError");
    }
    if (type == 2 && device != moa_ffi_device(c)) {
      moa_ffi_say(c, "workspace: expects memory of device %d, but is on device %d", (int)moa_ffi_device(c), device);
      return moa_ffi_raise(c, "RuntimeError");
    }
    c->workspace = (char *)t->data + t->byte_offset;
    c->bytes = t->data ? t->shape[0] : 0;
  }
  return 0;
}

/* Opens a call of NAME or NAME_suffix: checks the number and the kinds of its arguments. */
MOA_FFI int moa_ffi_open(moa_ffi_call *c, const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t num_args,
                         const char *suffix, bool takes_workspace) {
  int k;
  c->kernel = kernel;
  c->args = args;
  c->workspace = NULL;
  c->bytes = 0;
  c->text[0] = 0;
  if (num_args != kernel->count && (num_args != kernel->count + 1 || !takes_workspace)) {
    moa_ffi_say(c, "%s%s takes %d arguments (", kernel->name, suffix, (int)kernel->count);
    for (k = 0; k < kernel->count; ++k)
      moa_ffi_say(c, k ? ", %s" : "%s", kernel->parameters[k].name);
    moa_ffi_say(c, ")%s, but got %d", takes_workspace ? " and optionally a workspace" : "", (int)num_args);
    return moa_ffi_raise(c, "TypeError");
  }
  for (k = 0; k < kernel->count; ++k)
    if (moa_ffi_check(c, &kernel->parameters[k], k))
      return -1;
  return num_args > kernel->count ? moa_ffi_take_workspace(c, k) : 0;
}

/* Raises the error of a code, in the words of NAME_check or of the call itself. */
MOA_FFI int moa_ffi_refuse(moa_ffi_call *c, int64_t code) {
  const char *name = c->kernel->name;
  if (!c->text[0]) {
    const int64_t checked = c->kernel->enter(c, MOA_FFI_CHECK);
    code = checked ? checked : code;
  }
  if (!c->text[0] && code == MOA_WORKSPACE)
    moa_ffi_say(c, "workspace: %s needs %lld bytes%s, but got %lld at %p", name,
                (long long)c->kernel->enter(c, MOA_FFI_WORKSPACE), c->kernel->device == 2 ? " at a multiple of 64" : "",
                (long long)c->bytes, c->workspace);
  else if (!c->text[0] && code == MOA_OVERLAP)
    moa_ffi_say(c, "workspace: overlaps an array of %s", name);
  else if (!c->text[0])
    moa_ffi_say(c, "%s: %s, code %d", name, code > MOA_OVERFLOW ? "CUDA refused a launch" : "refused", (int)code);
  return moa_ffi_raise(c, code == MOA_DTYPE                           ? "TypeError"
                          : code == MOA_DEVICE || code > MOA_OVERFLOW ? "RuntimeError"
                                                                      : "ValueError");
}
MOA_FFI int moa_ffi_return_int(TVMFFIAny *result, int64_t value) {
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = value;
  return 0;
}

/* Runs a kernel. Returns its code, 0 or MOA_NOT_SHOWN. */
MOA_FFI int moa_ffi_run(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  moa_ffi_call c;
  int64_t code;
  if (moa_ffi_open(&c, kernel, args, num_args, "", true))
    return -1;
  code = kernel->enter(&c, MOA_FFI_RUN);
  return code && code != MOA_NOT_SHOWN ? moa_ffi_refuse(&c, code) : moa_ffi_return_int(result, code);
}

/* Returns the bytes of workspace that a call needs. */
MOA_FFI int moa_ffi_size(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  moa_ffi_call c;
  int64_t bytes;
  if (moa_ffi_open(&c, kernel, args, num_args, "_workspace", false))
    return -1;
  bytes = kernel->enter(&c, MOA_FFI_WORKSPACE);
  return bytes < 0 ? moa_ffi_refuse(&c, -bytes) : moa_ffi_return_int(result, bytes);
}

/* Returns a str: the results that are not shown to be within their tolerances, or nothing. */
MOA_FFI int moa_ffi_show(const moa_ffi_kernel *kernel, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result) {
  moa_ffi_call c;
  TVMFFIByteArray text;
  int64_t code;
  if (moa_ffi_open(&c, kernel, args, num_args, "_shown", true))
    return -1;
  code = kernel->enter(&c, MOA_FFI_SHOWN);
  if (code && code != MOA_NOT_SHOWN)
    return moa_ffi_refuse(&c, code);
  text.data = c.text;
  text.size = code ? strlen(c.text) : 0;
  return TVMFFIStringFromByteArray(&text, result);
}
