/* Counts the allocations of calls: count IMAGE MANIFEST LIBCUDA. The kernel is that of examples/backward.moa. */
#include "moa-c/runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t);
static long allocations;
void *malloc(size_t n) {
  ++allocations;
  return __libc_malloc(n);
}

static char *read_all(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 4 << 20);
  *size = fread(text, 1, (4 << 20) - 1, file);
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  char message[300];
  size_t bytes, ignored;
  char *image = read_all(argv[argc - 3], &bytes), *manifest = read_all(argv[argc - 2], &ignored);
  moa_program *program;
  if (moa_program_load_gpu(image, bytes, manifest, &program, message, sizeof message))
    return puts(message), 1;
  const moa_function *function = moa_program_find(program, "backward");
  /* The stand-in for the driver knows kernels by their names, here without parameters. */
  void *driver = dlopen(argv[argc - 1], RTLD_NOW);
  void (*set_kernel)(const char *, int, const int *);
  *(void **)&set_kernel = dlsym(driver, "set_kernel");
  for (int k = 0; k < 3; ++k) {
    char name[32];
    snprintf(name, sizeof name, "backward_%d", k);
    set_kernel(name, 0, NULL);
  }
  int64_t shape[] = {2, 4, 64, 128};
  DLTensor tensors[9];
  const DLTensor *arrays[9];
  size_t count = 0;
  for (size_t k = 0; k < moa_function_parameters(function); ++k) {
    moa_argument parameter;
    if (moa_function_parameter(function, k, &parameter) || parameter.role == MOA_SCALAR)
      continue;
    DLTensor *tensor = &tensors[count];
    memset(tensor, 0, sizeof *tensor);
    tensor->data = (char *)0x700000000000 + (count << 36);
    tensor->device.device_type = 2;
    tensor->ndim = parameter.rank;
    tensor->dtype = parameter.dtype;
    tensor->shape = shape;
    arrays[count++] = tensor;
  }
  moa_value scale = {.f = 0.125};
  if (moa_function_prepare(function, 0, message, sizeof message))
    return puts(message), 1;
  allocations = 0;
  for (int k = 0; k < 100; ++k)
    if (moa_function_call(function, arrays, &scale, (void *)0x10000, 1 << 20, NULL, message, sizeof message))
      return puts(message), 1;
  long found = allocations;
  printf("%ld allocations in 100 calls\n", found);
  moa_program_destroy(program);
  return 0;
}
