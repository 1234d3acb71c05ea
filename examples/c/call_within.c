/* Calls a kernel whose result has a tolerance, and asks whether it is within it:
 *
 *   build/bin/moa-codegen examples/sdpa.moa --set T=f32 --within O=1e-3 \
 *     -o build/within.o --header build/within.h
 *   cc -I build examples/c/call_within.c build/within.o -o build/call_within \
 *     -L /usr/lib/llvm-22/lib -Wl,-rpath,/usr/lib/llvm-22/lib -lomp -lm
 *   build/call_within
 *
 * First with scores of moderate size, for which a bound shows it. Then with scores
 * of several thousand, for which none does: the result is there all the same. */
#include "within.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 2, N = 64, M = 80, D = 128 };

/* A row-major array of f32 in memory of this CPU. */
static DLTensor describe(float *data, int64_t *shape) {
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = 1; /* kDLCPU */
  tensor.ndim = 4;
  tensor.dtype.code = 2; /* kDLFloat */
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

int main(void) {
  static float q[B * H * N * D], k[B * H * M * D], v[B * H * M * D], o[B * H * N * D];
  for (int i = 0; i < B * H * N * D; ++i)
    q[i] = (float)sin(0.1 * i);
  for (int i = 0; i < B * H * M * D; ++i) {
    k[i] = (float)cos(0.3 * i);
    v[i] = (float)sin(0.7 * i);
  }
  int64_t queries[] = {B, H, N, D}, keys[] = {B, H, M, D};
  DLTensor Q = describe(q, queries), K = describe(k, keys), V = describe(v, keys), O = describe(o, queries);

  int64_t bytes = sdpa_workspace(&Q, &K, &V, 1, &O);
  if (bytes < 0)
    return 1;
  size_t size = ((size_t)bytes + 63) / 64 * 64;
  void *workspace = size ? aligned_alloc(64, size) : NULL;
  if (size && !workspace)
    return 1;

  const float scales[] = {0.0883883f, 1e3f}; /* the first is 1 / sqrt(D) */
  int32_t codes[2];
  for (int i = 0; i < 2; ++i) {
    char message[500] = "";
    int32_t code = sdpa(&Q, &K, &V, scales[i], &O, workspace, size, /*stream=*/NULL);
    /* MOA_NOT_SHOWN is no failure: O was computed, and may well be within 1e-3. On a GPU
     * sdpa returns before that is known, so that the words and the code are asked for here. */
    if (code == MOA_OK || code == MOA_NOT_SHOWN)
      code = sdpa_shown(&Q, &K, &V, scales[i], &O, workspace, size, NULL, message, sizeof message);
    codes[i] = code;
    printf("scale %g: %s\n", scales[i], code == MOA_OK ? "shown to be within 1e-3" : message);
  }
  free(workspace);
  return codes[0] == MOA_OK && codes[1] == MOA_NOT_SHOWN ? 0 : 1;
}
