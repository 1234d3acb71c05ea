/* Stands for libcuda.so.1 and writes down what it is asked to do. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 1 << 20, KERNELS = 256, PARAMETERS = 64 };

/* What a test sets: the refused call (counted from 0 over all functions), the version of the driver, the capability. */
int refused_call = -1, refused_map = -1, version = 13000, capability = 90, has_context = 1, copies, refuses;
/* What it reads. */
int calls, maps, launches, loads, after_refusal, opened;
char refused_name[64], record[ROOM];
static size_t used;
static struct {
  char name[128];
  int count, sizes[PARAMETERS];
} kernels[KERNELS];
static int num_kernels;

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  struct {
    int id, padding;
    int value[16];
  } *attributes;
  unsigned num_attributes;
} config;

void clear_record(void) { used = 0, record[0] = 0, calls = maps = launches = after_refusal = 0, refused_name[0] = 0; }

static void note(const char *text) {
  size_t n = strlen(text);
  if (used + n + 1 > ROOM)
    abort();
  memcpy(record + used, text, n + 1);
  used += n;
}

/* The sizes of a kernel's parameters in bytes. */
void set_kernel(const char *name, int count, const int *sizes) {
  int k = 0;
  while (k < num_kernels && strcmp(kernels[k].name, name))
    ++k;
  if (k == KERNELS || count > PARAMETERS)
    abort();
  snprintf(kernels[k].name, sizeof kernels[k].name, "%s", name);
  kernels[k].count = count;
  memcpy(kernels[k].sizes, sizes, sizeof(int) * (size_t)count);
  num_kernels += k == num_kernels;
}

static int refuses_this(const char *name) {
  int refused = calls++ == refused_call;
  if (refused)
    snprintf(refused_name, sizeof refused_name, "%s", name);
  return refused;
}
#define MAY_REFUSE                                                                                                     \
  if (refuses_this(__func__))                                                                                          \
  return 999

int cuInit(unsigned flags) {
  MAY_REFUSE;
  return flags ? 1 : 0;
}
int cuDriverGetVersion(int *v) {
  MAY_REFUSE;
  *v = version;
  return 0;
}
int cuDeviceGet(int *device, int k) {
  MAY_REFUSE;
  *device = k;
  return k < 2 ? 0 : 101;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  MAY_REFUSE;
  (void)device;
  *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : -1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  MAY_REFUSE;
  *context = (char *)&calls + device;
  return 0;
}
int cuCtxGetCurrent(void **context) {
  MAY_REFUSE;
  *context = has_context ? &calls : NULL;
  return 0;
}
int cuCtxSetCurrent(void *context) {
  MAY_REFUSE;
  has_context = context != NULL;
  return 0;
}
int cuCtxPushCurrent_v2(void *context) {
  MAY_REFUSE;
  return context ? 0 : 1;
}
int cuCtxPopCurrent_v2(void **context) {
  MAY_REFUSE;
  *context = NULL;
  return 0;
}
int cuCtxGetDevice(int *device) {
  MAY_REFUSE;
  *device = 0;
  return has_context ? 0 : 201;
}
int cuStreamSynchronize(void *stream) {
  MAY_REFUSE;
  (void)stream;
  return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, void *stream) {
  MAY_REFUSE;
  (void)stream, ++copies;
  if (refuses)
    return 1;
  memcpy(to, (const void *)(uintptr_t)from, n);
  return 0;
}
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  MAY_REFUSE;
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  ++loads, ++opened;
  *library = &loads;
  return strstr(code, ".visible .entry") ? 0 : 218;
}
int cuLibraryUnload(void *library) {
  --opened;
  return library == &loads ? 0 : 1;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  MAY_REFUSE;
  int k = 0;
  while (k < num_kernels && strcmp(kernels[k].name, name))
    ++k;
  if (library != &loads || k == num_kernels)
    return 500;
  *kernel = &kernels[k];
  return 0;
}
int cuKernelGetFunction(void **function, void *kernel) {
  MAY_REFUSE;
  *function = kernel;
  return 0;
}
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  MAY_REFUSE;
  (void)kernel, (void)device;
  return attribute == 8 && value > 0 ? 0 : 1;
}
int cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *base, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  struct {
    int type, rank;
    void *base;
    uint64_t extents[5], strides[4];
    uint32_t box[5];
    uint8_t steps[5], others[4];
  } seen;
  MAY_REFUSE;
  if (maps++ == refused_map)
    return 1;
  memset(&seen, 0, sizeof seen);
  seen.type = type, seen.rank = (int)rank, seen.base = base;
  for (unsigned k = 0; k < rank; ++k) {
    seen.extents[k] = extents[k], seen.box[k] = box[k], seen.steps[k] = (uint8_t)steps[k];
    if (k + 1 < rank)
      seen.strides[k] = strides[k];
  }
  seen.others[0] = (uint8_t)interleave, seen.others[1] = (uint8_t)swizzle;
  seen.others[2] = (uint8_t)promotion, seen.others[3] = (uint8_t)fill;
  memcpy(map, &seen, sizeof seen);
  return (uintptr_t)map % 64 ? 1 : 0;
}
int cuLaunchKernelEx(const config *c, void *kernel, void **values, void **extra) {
  char line[512];
  int k, j, number = (int)(((char *)kernel - (char *)kernels) / (ptrdiff_t)sizeof kernels[0]);
  (void)extra;
  if (refused_name[0])
    ++after_refusal;
  MAY_REFUSE;
  ++launches;
  snprintf(line, sizeof line, "%s grid %u %u %u block %u %u %u shared %u stream %p attributes %u %d %d\n",
           kernels[number].name, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
           c->stream, c->num_attributes, c->num_attributes ? c->attributes[0].id : 0,
           c->num_attributes ? c->attributes[0].value[0] : 0);
  note(line);
  for (k = 0; k < kernels[number].count; ++k) {
    for (j = 0; j < kernels[number].sizes[k]; ++j) {
      snprintf(line, sizeof line, "%02x", ((unsigned char *)values[k])[j]);
      note(line);
    }
    note("\n");
  }
  return 0;
}
