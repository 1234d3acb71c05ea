/*===- Runtime.c - the run-time code inside an emitted object -------------===*\
 *
 * The build of the compiler translates this file to LLVM bitcode. The CPU target
 * links it into every emitted module and makes it internal there. One constant
 * table per kernel drives it; it does not depend on the kernel's computation.
 *
 * A call binds the symbols from the shapes, checks its arguments, fills the
 * argument block and runs the nests. It allocates no memory. It writes to the
 * caller's arrays only after every check has passed.
 *
\*===----------------------------------------------------------------------===*/
#ifdef __linux__
#define _GNU_SOURCE /* syscall */
#endif
#include "Runtime.h"
#include <errno.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

/* Receives the reason of a refusal; text may be NULL. */
typedef struct {
  char *text;
  size_t size;
} Message;

/* The arguments of one call, bound and checked. */
typedef struct {
  const MoaKernel *kernel;
  const DLTensor *const *tensors;
  int64_t symbols[kMaxSymbols];
  int64_t strides[kMaxArrays][kMaxRank];
  uintptr_t begin[kMaxArrays]; /* first byte, byte_offset applied */
  uint64_t span[kMaxArrays];   /* bytes from the first to the last element */
  int32_t numBound;
} Call;

static int32_t refuse(Message *message, int32_t code, const char *format, ...) {
  if (message->text && message->size) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, message->size, format, arguments);
    va_end(arguments);
  }
  return code;
}

/*===----------------------------------------------------------------------===*\
 * The processor. This file and the entry points are compiled for the baseline.
 * The nests run only on a processor that has their instructions.
\*===----------------------------------------------------------------------===*/

#ifdef __x86_64__
/* Returns the register state that the operating system saves (XGETBV). */
static uint32_t savedState(void) {
  uint32_t words[4] = {0}, low, high;
  __get_cpuid_count(1, 0, &words[0], &words[1], &words[2], &words[3]);
  if (!(words[kECX] >> 27 & 1))
    return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/* Requests AMX tile registers from Linux, which saves them only for processes that ask for them
 * (ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA, Documentation/arch/x86/xstate.rst). A permission
 * lasts as long as the process. */
static int mayUseTiles(void) {
#ifdef __linux__
  return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
#else
  return 0;
#endif
}

static int hasFeature(const MoaFeature *feature, uint32_t saved) {
  uint32_t words[4] = {0};
  if (feature->subleaf) {
    __get_cpuid_count((uint32_t)feature->leaf, 0, &words[0], &words[1], &words[2], &words[3]);
    if (words[kEAX] < feature->subleaf)
      return 0;
  }
  if (!__get_cpuid_count((uint32_t)feature->leaf, (uint32_t)feature->subleaf, &words[0], &words[1], &words[2],
                         &words[3]))
    return 0;
  return (words[feature->reg] >> feature->bit & 1) && (saved & feature->state) == feature->state;
}
#else
static int mayUseTiles(void) { return 0; }
static uint32_t savedState(void) { return 0; }
static int hasFeature(const MoaFeature *feature, uint32_t saved) { return feature && !saved; }
#endif

/* Remembers success, because CPUID is slow on virtual machines. */
static int32_t checkProcessor(const MoaKernel *kernel, Message *message) {
  static int32_t known; /* 1: has all features; 0: unknown or not */
  if (__atomic_load_n(&known, __ATOMIC_RELAXED))
    return MOA_OK;
  char missing[256] = "";
  size_t used = 0;
  int needsTiles = 0;
  uint32_t saved = savedState();
  for (int64_t k = 0; k < kernel->numFeatures; ++k) {
    needsTiles |= kernel->features[k].state == kTileState;
    if (hasFeature(&kernel->features[k], saved) || used >= sizeof missing)
      continue;
    int count = snprintf(missing + used, sizeof missing - used, " %s", kernel->features[k].name);
    used += count > 0 ? (size_t)count : 0;
  }
  if (used)
    return refuse(message, MOA_PROCESSOR, "%s: compiled for %s; this processor lacks%s", kernel->name,
                  kernel->processor, missing);
  if (needsTiles && !mayUseTiles())
    return refuse(message, MOA_PROCESSOR,
                  "%s: compiled for %s; the system does not let this process use the registers of "
                  "AMX tiles (arch_prctl: %s); compile for a processor without them, as with "
                  "--mcpu=x86-64-v4",
                  kernel->name, kernel->processor, strerror(errno));
  __atomic_store_n(&known, 1, __ATOMIC_RELAXED);
  return MOA_OK;
}

/*===----------------------------------------------------------------------===*\
 * Integer expressions
\*===----------------------------------------------------------------------===*/

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) && ((a % b < 0) != (b < 0)));
}

/* Applies one binary operation. Returns a code. */
static int32_t apply(int64_t op, int64_t a, int64_t b, int64_t *result) {
  if (op == kAdd)
    return __builtin_add_overflow(a, b, result) ? MOA_OVERFLOW : MOA_OK;
  if (op == kMul)
    return __builtin_mul_overflow(a, b, result) ? MOA_OVERFLOW : MOA_OK;
  if (b == 0)
    return MOA_CONSTRAINT;
  if (b == -1) {
    if (op == kMod) {
      *result = 0;
      return MOA_OK;
    }
    return __builtin_sub_overflow((int64_t)0, a, result) ? MOA_OVERFLOW : MOA_OK;
  }
  int64_t quotient = floorDivide(a, b);
  *result = op == kFloorDiv ? quotient : a - quotient * b;
  return MOA_OK;
}

static int32_t evaluate(const Call *call, const MoaExpr *expr, int64_t *result) {
  int64_t stack[kMaxStack];
  int depth = 0;
  for (const int64_t *pc = expr->code; *pc != kEnd;) {
    switch (*pc) {
    case kPush:
      stack[depth++] = pc[1];
      pc += 2;
      break;
    case kSymbol:
      stack[depth++] = call->symbols[pc[1]];
      pc += 2;
      break;
    case kShape:
      stack[depth++] = call->tensors[pc[1]]->shape[pc[2]];
      pc += 3;
      break;
    default: {
      depth -= 1;
      int32_t code = apply(*pc, stack[depth - 1], stack[depth], &stack[depth - 1]);
      if (code)
        return code;
      pc += 1;
    }
    }
  }
  *result = stack[0];
  return MOA_OK;
}

/* Prints the symbols bound so far, for example " with B = 1, H = 8". */
static const char *bindings(const Call *call, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int32_t k = 0; k < call->numBound && used + 1 < size; ++k) {
    int count = snprintf(text + used, size - used, "%s%s = %lld", k ? ", " : " with ", call->kernel->symbols[k].name,
                         (long long)call->symbols[k]);
    used += count > 0 ? (size_t)count : 0;
  }
  return text;
}

static int32_t evaluateOrRefuse(const Call *call, const MoaExpr *expr, int64_t *result, Message *message) {
  char text[256];
  int32_t code = evaluate(call, expr, result);
  if (code == MOA_OVERFLOW)
    return refuse(message, code, "%s exceeds 64 bits%s", expr->text, bindings(call, text, sizeof text));
  if (code)
    return refuse(message, code, "%s divides by zero%s", expr->text, bindings(call, text, sizeof text));
  return MOA_OK;
}

/*===----------------------------------------------------------------------===*\
 * Checks
\*===----------------------------------------------------------------------===*/

static const char *typeName(int code) {
  switch (code) {
  case kInt:
    return "int";
  case kUInt:
    return "uint";
  case kFloat:
    return "float";
  case kBfloat:
    return "bfloat";
  case kBool:
    return "bool";
  default:
    return "type code ";
  }
}

static int sameType(const MoaArray *array, DLDataType type) {
  if (type.lanes != 1 || type.bits != array->bits)
    return 0;
  return type.code == array->code || (array->code == kBool && type.code == kUInt);
}

/* Checks one descriptor, except for the extents that the kernel requires. */
static int32_t checkDescriptor(const MoaArray *array, const DLTensor *tensor, Message *message) {
  if (!tensor)
    return refuse(message, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", array->name);
  if (tensor->device.device_type != kCPUDevice)
    return refuse(message, MOA_DEVICE,
                  "%s: expects memory of the CPU (device type 1), but got "
                  "device type %d",
                  array->name, (int)tensor->device.device_type);
  if (tensor->ndim != array->rank)
    return refuse(message, MOA_RANK, "%s: expects %s, rank %d, but got rank %d", array->name, array->type,
                  (int)array->rank, (int)tensor->ndim);
  if (!sameType(array, tensor->dtype))
    return refuse(message, MOA_DTYPE,
                  "%s: expects %s, elements %s%d, but got %s%d with %d lanes "
                  "(DLPack code %d)",
                  array->name, array->type, typeName((int)array->code), (int)array->bits, typeName(tensor->dtype.code),
                  tensor->dtype.bits, tensor->dtype.lanes, tensor->dtype.code);
  if (array->rank && !tensor->shape)
    return refuse(message, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", array->name);
  for (int64_t axis = 0; axis < array->rank; ++axis)
    if (tensor->shape[axis] < 0)
      return refuse(message, MOA_SHAPE, "%s: extent %lld on axis %d is negative", array->name,
                    (long long)tensor->shape[axis], (int)axis);
  return MOA_OK;
}

static int32_t bindSymbols(Call *call, Message *message) {
  const MoaKernel *kernel = call->kernel;
  for (int64_t k = 0; k < kernel->numSymbols; ++k) {
    const MoaSymbol *symbol = &kernel->symbols[k];
    int32_t code = evaluateOrRefuse(call, &symbol->value, &call->symbols[k], message);
    if (code)
      return code;
    if (call->symbols[k] < 0)
      return refuse(message, MOA_SHAPE, "%s = %s = %lld is negative", symbol->name, symbol->value.text,
                    (long long)call->symbols[k]);
    call->numBound = (int32_t)k + 1;
  }
  return MOA_OK;
}

static int32_t checkExtents(Call *call, int64_t index, Message *message) {
  const MoaArray *array = &call->kernel->arrays[index];
  const DLTensor *tensor = call->tensors[index];
  char text[256];
  for (int64_t axis = 0; axis < array->rank; ++axis) {
    int64_t expected = 0;
    int32_t code = evaluateOrRefuse(call, &array->extents[axis], &expected, message);
    if (code)
      return code;
    if (expected != tensor->shape[axis])
      return refuse(message, MOA_SHAPE, "%s: expects %s, so %s = %lld on axis %d, but got %lld%s", array->name,
                    array->type, array->extents[axis].text, (long long)expected, (int)axis,
                    (long long)tensor->shape[axis], bindings(call, text, sizeof text));
  }
  return MOA_OK;
}

static int isEmpty(const DLTensor *tensor) {
  for (int32_t axis = 0; axis < tensor->ndim; ++axis)
    if (tensor->shape[axis] == 0)
      return 1;
  return 0;
}

/* Returns whether every output is empty. */
static int writesNothing(const Call *call) {
  for (int64_t k = 0; k < call->kernel->numArrays; ++k)
    if (call->kernel->arrays[k].isOutput && !isEmpty(call->tensors[k]))
      return 0;
  return 1;
}

/* Checks the constraints. A division by zero is refused unless all outputs are
 * empty. */
static int32_t checkConstraints(Call *call, Message *message) {
  char text[256];
  for (int64_t k = 0; k < call->kernel->numConstraints; ++k) {
    const MoaConstraint *constraint = &call->kernel->constraints[k];
    int64_t a = 0, b = 0;
    if ((evaluate(call, &constraint->lhs, &a) == MOA_CONSTRAINT ||
         evaluate(call, &constraint->rhs, &b) == MOA_CONSTRAINT) &&
        writesNothing(call))
      continue;
    int32_t code = evaluateOrRefuse(call, &constraint->lhs, &a, message);
    if (!code)
      code = evaluateOrRefuse(call, &constraint->rhs, &b, message);
    if (code)
      return code;
    int holds[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
    if (!holds[constraint->relation])
      return refuse(message, MOA_CONSTRAINT, "requires %s, but %s = %lld%s", constraint->text, constraint->lhs.text,
                    (long long)a, bindings(call, text, sizeof text));
  }
  return MOA_OK;
}

/* Fills in strides in elements: the descriptor's, or row-major ones if it has
 * none. Axes with at most one index are row-major, because their stride has no
 * meaning. */
static int32_t fillStrides(Call *call, int64_t index, Message *message) {
  const MoaArray *array = &call->kernel->arrays[index];
  const DLTensor *tensor = call->tensors[index];
  int64_t next = 1;
  memset(call->strides[index], 0, sizeof call->strides[index]);
  if (isEmpty(tensor))
    return MOA_OK;
  for (int64_t axis = array->rank - 1; axis >= 0; --axis) {
    int64_t extent = tensor->shape[axis];
    int64_t stride = next;
    if (tensor->strides && extent > 1)
      stride = tensor->strides[axis];
    if (stride < 0)
      return refuse(message, MOA_STRIDES, "%s: stride %lld on axis %d is negative", array->name, (long long)stride,
                    (int)axis);
    call->strides[index][axis] = stride;
    if (__builtin_mul_overflow(stride, extent, &next))
      return refuse(message, MOA_OVERFLOW,
                    "%s: extent %lld with stride %lld on axis %d exceeds 64 "
                    "bits",
                    array->name, (long long)extent, (long long)stride, (int)axis);
  }
  return MOA_OK;
}

/* Checks that distinct indices of an output have distinct addresses. A
 * sufficient condition: with the axes sorted by stride, each stride exceeds the
 * largest offset of all smaller ones. */
static int32_t checkOutputStrides(Call *call, int64_t index, Message *message) {
  const MoaArray *array = &call->kernel->arrays[index];
  const int64_t *shape = call->tensors[index]->shape;
  const int64_t *strides = call->strides[index];
  int done[kMaxRank] = {0};
  int64_t reach = 0;
  for (int64_t round = 0; round < array->rank; ++round) {
    int64_t best = -1;
    for (int64_t axis = 0; axis < array->rank; ++axis)
      if (!done[axis] && (best < 0 || strides[axis] < strides[best]))
        best = axis;
    done[best] = 1;
    if (shape[best] < 2)
      continue;
    if (strides[best] <= reach)
      return refuse(message, MOA_STRIDES,
                    "%s: stride %lld on axis %d makes elements of the output "
                    "overlap",
                    array->name, (long long)strides[best], (int)best);
    reach += strides[best] * (shape[best] - 1);
  }
  return MOA_OK;
}

/* Computes and checks the address range of one array. */
static int32_t fillRange(Call *call, int64_t index, Message *message) {
  const MoaArray *array = &call->kernel->arrays[index];
  const DLTensor *tensor = call->tensors[index];
  int64_t bytes = array->bits / 8, last = 0;
  for (int64_t axis = 0; axis < array->rank; ++axis) {
    int64_t term = 0;
    if (__builtin_mul_overflow(call->strides[index][axis], tensor->shape[axis] - 1, &term) ||
        __builtin_add_overflow(last, term, &last))
      return refuse(message, MOA_OVERFLOW, "%s: the array exceeds 64 bits", array->name);
  }
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, bytes, &last))
    return refuse(message, MOA_OVERFLOW, "%s: the array exceeds 64 bits", array->name);
  if (!tensor->data)
    return refuse(message, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", array->name);
  call->begin[index] = (uintptr_t)tensor->data + tensor->byte_offset;
  call->span[index] = (uint64_t)last;
  if (call->begin[index] + call->span[index] < call->begin[index])
    return refuse(message, MOA_OVERFLOW, "%s: the array passes the end of the address space", array->name);
  if (call->begin[index] % (uintptr_t)bytes)
    return refuse(message, MOA_ALIGNMENT, "%s: address %p is not a multiple of the element size %lld", array->name,
                  (void *)call->begin[index], (long long)bytes);
  return MOA_OK;
}

static int32_t checkMemory(Call *call, int64_t index, Message *message) {
  if (isEmpty(call->tensors[index]))
    return MOA_OK;
  int32_t code = fillRange(call, index, message);
  if (!code && call->kernel->arrays[index].isOutput)
    code = checkOutputStrides(call, index, message);
  return code;
}

static int overlaps(uintptr_t a, uint64_t sizeA, uintptr_t b, uint64_t sizeB) {
  return sizeA && sizeB && a < b + sizeB && b < a + sizeA;
}

static int32_t checkOverlap(Call *call, Message *message) {
  const MoaKernel *kernel = call->kernel;
  for (int64_t a = 0; a < kernel->numArrays; ++a)
    for (int64_t b = a + 1; b < kernel->numArrays; ++b)
      if (kernel->arrays[b].isOutput && overlaps(call->begin[a], call->span[a], call->begin[b], call->span[b]))
        return refuse(message, MOA_OVERLAP,
                      "output %s (%llu bytes at %p) overlaps %s (%llu bytes at "
                      "%p)",
                      kernel->arrays[b].name, (unsigned long long)call->span[b], (void *)call->begin[b],
                      kernel->arrays[a].name, (unsigned long long)call->span[a], (void *)call->begin[a]);
  return MOA_OK;
}

/* Binds the symbols and checks all arguments but the workspace. */
static int32_t examine(Call *call, Message *message) {
  const MoaKernel *kernel = call->kernel;
  int32_t code = checkProcessor(kernel, message);
  for (int64_t k = 0; k < kernel->numArrays && !code; ++k)
    code = checkDescriptor(&kernel->arrays[k], call->tensors[k], message);
  if (!code)
    code = bindSymbols(call, message);
  for (int64_t k = 0; k < kernel->numArrays && !code; ++k)
    code = checkExtents(call, k, message);
  if (!code)
    code = checkConstraints(call, message);
  for (int64_t k = 0; k < kernel->numArrays && !code; ++k)
    code = fillStrides(call, k, message);
  for (int64_t k = 0; k < kernel->numArrays && !code; ++k)
    code = checkMemory(call, k, message);
  return code ? code : checkOverlap(call, message);
}

static void initialise(Call *call, const MoaKernel *kernel, const DLTensor *const *tensors) {
  call->kernel = kernel;
  call->tensors = tensors;
  call->numBound = 0;
  memset(call->begin, 0, sizeof call->begin);
  memset(call->span, 0, sizeof call->span);
}

/*===----------------------------------------------------------------------===*\
 * Scalars of 16 bits are passed as float and rounded to nearest even
\*===----------------------------------------------------------------------===*/

static uint32_t floatBits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

int64_t moaRoundBf16(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return (bits >> 16) | 0x40;
  return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
}

int64_t moaRoundF16(float value) {
  uint32_t bits = floatBits(value);
  uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) /* rounds to infinity */
    return sign | 0x7c00u;
  if (magnitude < 0x33000001u) /* rounds to zero */
    return sign;
  int exponent = (int)(magnitude >> 23);
  uint32_t mantissa = magnitude & 0x7fffffu, result;
  int shift = 13;
  if (exponent < 113) { /* subnormal */
    mantissa |= 0x800000u;
    shift = 126 - exponent;
    result = mantissa >> shift;
  } else {
    result = ((uint32_t)(exponent - 112) << 10) | (mantissa >> 13);
  }
  uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  result += rest > half || (rest == half && (result & 1));
  return sign | result;
}

/*===----------------------------------------------------------------------===*\
 * Running
\*===----------------------------------------------------------------------===*/

/* Fills the argument block: data pointers and strides of arrays, bits of
 * scalars, values of symbols. */
static void fillArguments(const Call *call, const int64_t *scalars, int64_t *block) {
  const MoaKernel *kernel = call->kernel;
  for (int64_t k = 0; k < kernel->numArrays; ++k) {
    const MoaArray *array = &kernel->arrays[k];
    block[array->slot] = (int64_t)call->begin[k];
    for (int64_t axis = 0; axis < array->rank; ++axis)
      block[array->slot + 1 + axis] = call->strides[k][axis];
  }
  for (int64_t k = 0; k < kernel->numScalars; ++k)
    block[kernel->scalarSlots[k]] = scalars[k];
  for (int64_t k = 0; k < kernel->numSymbols; ++k)
    block[kernel->symbolSlots[k]] = call->symbols[k];
}

/* Fills in the strides of a temporary. Returns its bytes, a multiple of 64, in `bytes`. */
static int32_t fillTemporary(const Call *call, const MoaArray *array, int64_t *block, int64_t *bytes,
                             Message *message) {
  int64_t count = 1;
  for (int64_t axis = array->rank - 1; axis >= 0; --axis) {
    int64_t extent = 0;
    int32_t code = evaluateOrRefuse(call, &array->extents[axis], &extent, message);
    if (code)
      return code;
    block[array->slot + 1 + axis] = count;
    if (__builtin_mul_overflow(count, extent, &count))
      return refuse(message, MOA_OVERFLOW, "%s: %s exceeds 64 bits", call->kernel->name, array->type);
  }
  if (__builtin_mul_overflow(count, array->bits / 8, bytes) || __builtin_add_overflow(*bytes, 63, bytes))
    return refuse(message, MOA_OVERFLOW, "%s: %s exceeds 64 bits", call->kernel->name, array->type);
  *bytes = *bytes / 64 * 64;
  return MOA_OK;
}

/* Places the temporaries one after the other at the start of the workspace.
 * `next` receives the first free byte. */
static int32_t placeTemporaries(const Call *call, int64_t *block, void *workspace, int64_t *next, Message *message) {
  const MoaKernel *kernel = call->kernel;
  *next = 0;
  for (int64_t k = 0; k < kernel->numTemporaries; ++k) {
    const MoaArray *array = &kernel->temporaries[k];
    int64_t bytes = 0;
    int32_t code = fillTemporary(call, array, block, &bytes, message);
    if (code)
      return code;
    block[array->slot] = (int64_t)((uintptr_t)workspace + (uint64_t)*next);
    if (__builtin_add_overflow(*next, bytes, next))
      return refuse(message, MOA_OVERFLOW, "%s: the workspace exceeds 64 bits", kernel->name);
  }
  return MOA_OK;
}

/* The needs of a call's nests: threads worth using, no more than the longest nest has tasks, and
 * bytes after the temporaries: the threads' scratch, then states that pass from nest to nest. Nests
 * run one after the other and use the same bytes. */
typedef struct {
  int64_t threads, scratch, bytes;
} Needs;

static Needs needsOf(const MoaKernel *kernel, const int64_t *block) {
  Needs needs = {0, 0, 0};
  int64_t shared = 0, limit = omp_get_max_threads();
  for (int64_t k = 0; k < kernel->numNests; ++k) {
    const MoaNest *nest = &kernel->nests[k];
    int64_t tasks = nest->tasks(block);
    int64_t bytes = nest->shared ? nest->shared(block) : 0;
    needs.threads = tasks > needs.threads ? tasks : needs.threads;
    shared = bytes > shared ? bytes : shared;
  }
  needs.threads = needs.threads < limit ? needs.threads : limit;
  needs.scratch = needs.threads * kernel->scratchBytes;
  needs.bytes = needs.scratch + shared;
  return needs;
}

/* Runs a nest in chunks of tasks: small enough to balance rows of unequal cost,
 * large enough to make scheduling cheap. */
static void runNest(const MoaNest *nest, const int64_t *block, char *scratch, int64_t scratchBytes, int64_t threads) {
  int64_t tasks = nest->tasks(block);
  if (threads <= 1 || tasks <= 1) {
    if (tasks > 0)
      nest->run(block, scratch, 0, tasks);
    return;
  }
  int64_t size = tasks / (threads * 64) + 1, chunks = (tasks - 1) / size + 1;
#pragma omp parallel num_threads((int)threads)
  {
    char *own = scratch + (int64_t)omp_get_thread_num() * scratchBytes;
#pragma omp for schedule(dynamic, 1)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      int64_t begin = chunk * size, end = begin + size;
      nest->run(block, own, begin, end < tasks ? end : tasks);
    }
  }
}

/* Returns the first multiple of 64 in a workspace and reduces `bytes` accordingly. Callers may pass
 * any address (NumPy arrays are not aligned), so NAME_workspace adds 64 bytes. */
static void *alignWorkspace(void *workspace, size_t *bytes) {
  size_t gap = (64 - (uintptr_t)workspace % 64) % 64;
  *bytes = *bytes > gap ? *bytes - gap : 0;
  return (void *)((uintptr_t)workspace + gap);
}

static int32_t checkWorkspace(const MoaKernel *kernel, const void *workspace, size_t bytes, int64_t needed,
                              Message *message) {
  if (!needed)
    return MOA_OK;
  if (!workspace)
    return refuse(message, MOA_WORKSPACE, "%s: the workspace is NULL; pass at least the %lld bytes of %s_workspace",
                  kernel->name, (long long)needed + 64, kernel->name);
  if (bytes < (uint64_t)needed)
    return refuse(message, MOA_WORKSPACE,
                  "%s: the workspace has %llu bytes from its first multiple of 64 on, but %lld are needed; "
                  "pass at least the %lld bytes of %s_workspace",
                  kernel->name, (unsigned long long)bytes, (long long)needed, (long long)needed + 64, kernel->name);
  return MOA_OK;
}

static int32_t checkWorkspaceOverlap(const Call *call, const void *workspace, int64_t bytes, Message *message) {
  for (int64_t k = 0; k < call->kernel->numArrays; ++k)
    if (overlaps(call->begin[k], call->span[k], (uintptr_t)workspace, (uint64_t)bytes))
      return refuse(message, MOA_OVERLAP, "the workspace overlaps %s", call->kernel->arrays[k].name);
  return MOA_OK;
}

/* Returns the number of elements of a temporary, and its extents. It is known to fit 64 bits. */
static int64_t countElements(const Call *call, const MoaArray *array, int64_t *extents) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < array->rank; ++axis) {
    evaluate(call, &array->extents[axis], &extents[axis]);
    count *= extents[axis];
  }
  return count;
}

static void append(Message *message, const char *format, ...) {
  size_t used = message->text && message->size ? strlen(message->text) : 0;
  if (!message->text || used + 1 >= message->size)
    return;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message->text + used, message->size - used, format, arguments);
  va_end(arguments);
}

/* Checks that the bounds of one result are at most its tolerance. A NaN is not. */
static int32_t checkBounds(const Call *call, const MoaShown *shown, const int64_t *block, Message *message) {
  const MoaArray *temporary = &call->kernel->temporaries[shown->temporary];
  const float *bounds = (const float *)block[temporary->slot];
  int64_t extents[kMaxRank], first = -1, numBeyond = 0;
  int64_t count = countElements(call, temporary, extents);
  for (int64_t k = 0; k < count; ++k) {
    if (bounds[k] <= shown->epsilon)
      continue;
    first = first < 0 ? k : first;
    numBeyond += 1;
  }
  if (first < 0)
    return MOA_OK;
  append(message, "%s%s is not shown to be within %s: ", message->text && *message->text ? "; " : "",
         call->kernel->arrays[shown->array].name, shown->within);
  if (*shown->why)
    append(message, "%s", shown->why);
  else if (bounds[first] <= 3.4e38f)
    append(message, "the bound on its errors is %.2e", (double)bounds[first]);
  else
    append(message, "no bound on its errors holds for these inputs: they are too large or too small for the "
                    "types, not finite, or have sums that may cancel");
  if (temporary->rank) {
    int64_t size = count, rest = first;
    for (int64_t axis = 0; axis < temporary->rank; ++axis) {
      size /= extents[axis];
      append(message, "%s%lld", axis ? ", " : " at [", (long long)(rest / size));
      rest %= size;
    }
    append(message, "], and too large at %lld of %lld indices of [%s]", (long long)numBeyond, (long long)count,
           shown->axes);
  }
  return MOA_NOT_SHOWN;
}

/* Returns MOA_NOT_SHOWN unless the bounds of every result that is not empty are within its
 * tolerance. */
static int32_t checkTolerances(const Call *call, const int64_t *block, Message *message) {
  int32_t code = MOA_OK;
  for (int64_t k = 0; k < call->kernel->numShown; ++k) {
    const MoaShown *shown = &call->kernel->shown[k];
    int32_t found = isEmpty(call->tensors[shown->array]) ? MOA_OK : checkBounds(call, shown, block, message);
    code = found ? found : code;
  }
  return code;
}

/* Checks the arguments of a call, fills `block` and places the temporaries at the
 * start of the workspace. `freePlace` receives the first free byte. The places of
 * temporaries do not depend on the number of threads. */
static int32_t openCall(Call *call, const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars,
                        int64_t *block, void *workspace, int64_t *freePlace, Message *message) {
  initialise(call, kernel, tensors);
  int32_t code = examine(call, message);
  if (code)
    return code;
  fillArguments(call, scalars, block);
  return placeTemporaries(call, block, workspace, freePlace, message);
}

static int32_t checkSpace(const Call *call, const void *workspace, size_t bytes, int64_t needed, Message *message) {
  int32_t code = checkWorkspace(call->kernel, workspace, bytes, needed, message);
  return code ? code : checkWorkspaceOverlap(call, workspace, needed, message);
}

/* NAME */
int32_t moaLaunch(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block,
                  void *workspace, size_t bytes) {
  Message message = {0, 0};
  Call call;
  int64_t freePlace = 0;
  workspace = alignWorkspace(workspace, &bytes);
  int32_t code = openCall(&call, kernel, tensors, scalars, block, workspace, &freePlace, &message);
  if (code)
    return code;
  Needs needs = needsOf(kernel, block);
  code = checkSpace(&call, workspace, bytes, freePlace + needs.bytes, &message);
  if (code)
    return code;
  char *scratch = (char *)((uintptr_t)workspace + (uint64_t)freePlace);
  block[kernel->numSlots - 1] = (int64_t)(uintptr_t)(scratch + needs.scratch);
  for (int64_t k = 0; k < kernel->numNests; ++k)
    runNest(&kernel->nests[k], block, scratch, kernel->scratchBytes, needs.threads);
  return checkTolerances(&call, block, &message);
}

/* NAME_workspace: returns the bytes needed, or minus the code of the refusal. */
int64_t moaWorkspace(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block) {
  Message message = {0, 0};
  Call call;
  int64_t freePlace = 0;
  int32_t code = openCall(&call, kernel, tensors, scalars, block, 0, &freePlace, &message);
  if (code)
    return -(int64_t)code;
  int64_t needed = freePlace + needsOf(kernel, block).bytes;
  return needed ? needed + 64 : 0; /* see alignWorkspace */
}

/* NAME_shown: says in words which results a call with this workspace has not shown to be within
 * their tolerances. */
int32_t moaShown(const MoaKernel *kernel, const DLTensor *const *tensors, const int64_t *scalars, int64_t *block,
                 void *workspace, size_t bytes, char *text, size_t size) {
  Message message = {text, size};
  Call call;
  int64_t freePlace = 0;
  if (text && size)
    text[0] = 0;
  workspace = alignWorkspace(workspace, &bytes);
  int32_t code = openCall(&call, kernel, tensors, scalars, block, workspace, &freePlace, &message);
  if (!code)
    code = checkSpace(&call, workspace, bytes, freePlace, &message);
  return code ? code : checkTolerances(&call, block, &message);
}

/* NAME_check */
int32_t moaCheck(const MoaKernel *kernel, const DLTensor *const *tensors, char *text, size_t size) {
  Message message = {text, size};
  Call call;
  if (text && size)
    text[0] = 0;
  initialise(&call, kernel, tensors);
  return examine(&call, &message);
}

/* NAME_prepare: starts the threads ahead of the first call. */
int32_t moaPrepare(const MoaKernel *kernel, int32_t device) {
  Message message = {0, 0};
  if (device != 0)
    return MOA_DEVICE;
  int32_t code = checkProcessor(kernel, &message);
  if (code)
    return code;
  int64_t started = 0;
#pragma omp parallel reduction(+ : started)
  started += 1;
  return started > 0 ? MOA_OK : MOA_DEVICE;
}
