/* Calls a kernel without a compiler: libmoa-runtime reads its manifest.
 *
 *   build/bin/moa-codegen examples/scaled_norm.moa --set T=f32 -o build/norm.o --manifest build/norm.json
 *   cc -shared build/norm.o -o build/libnorm.so \
 *     -L /usr/lib/llvm-22/lib -Wl,-rpath,/usr/lib/llvm-22/lib -lomp -lm
 *   cc -I include examples/c/call_runtime.c -o build/call_runtime -L build/lib -Wl,-rpath,build/lib -lmoa-runtime
 *   build/call_runtime build/libnorm.so build/norm.json
 *
 * For a GPU, load build/norm.ptx by moa_program_load_gpu; arrays and workspace are then memory of the device. */
#include "moa-c/runtime.h"
#include <stdio.h>
#include <stdlib.h>

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  char *text = file ? calloc(1, 1 << 20) : NULL;
  if (text && fread(text, 1, (1 << 20) - 1, file) == 0)
    text[0] = 0;
  if (file)
    fclose(file);
  return text;
}

int main(int argc, char **argv) {
  char message[500];
  char *manifest = argc == 3 ? read_text(argv[2]) : NULL;
  moa_program *program = NULL;
  if (!manifest || moa_program_load_cpu(argv[1], manifest, &program, message, sizeof message)) {
    fprintf(stderr, "%s\n", manifest ? message : "expects a library and its manifest");
    return 1;
  }
  const moa_function *norm = moa_program_find(program, "scaled_norm");

  /* One input x of f32[2, 3]; the library tells the shape of the result. */
  float x[] = {3, 4, 0, -6, 0, 8}, *result = NULL;
  int64_t shape[] = {2, 3}, rows[1] = {0}, *const shapes[] = {rows};
  DLTensor in = {0}, out;
  in.data = x;
  in.device.device_type = 1; /* kDLCPU */
  in.ndim = 2;
  in.dtype.code = 2, in.dtype.bits = 32, in.dtype.lanes = 1;
  in.shape = shape;
  const DLTensor *arrays[] = {&in, &out};
  int32_t code = moa_function_shapes(norm, arrays, shapes, message, sizeof message);
  if (!code) {
    result = calloc((size_t)rows[0], sizeof *result);
    out = in;
    out.data = result;
    out.ndim = 1;
    out.shape = rows;
    int64_t bytes = moa_function_workspace(norm, arrays, NULL, message, sizeof message);
    void *workspace = bytes > 0 ? malloc((size_t)bytes) : NULL;
    code = bytes < 0 ? (int32_t)-bytes
                     : moa_function_call(norm, arrays, NULL, workspace, (size_t)bytes, /*stream=*/NULL, message,
                                         sizeof message);
    free(workspace);
  }
  if (code)
    fprintf(stderr, "code %d: %s\n", code, message);
  else
    printf("%g %g\n", result[0], result[1]);
  free(result);
  free(manifest);
  moa_program_destroy(program);
  return code != 0;
}
