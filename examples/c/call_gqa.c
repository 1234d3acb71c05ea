/* Calls the kernel of examples/gqa_causal.moa, compiled to an object file:
 *
 *   build/bin/moa-codegen examples/gqa_causal.moa --set T=f32 \
 *     -o build/gqa.o --header build/gqa.h
 *   cc -I build examples/c/call_gqa.c build/gqa.o -o build/call_gqa \
 *     -L /usr/lib/llvm-22/lib -Wl,-rpath,/usr/lib/llvm-22/lib -lomp -lm
 *   build/call_gqa
 *
 * All values are 1, so every row of weights sums to 1 times 1. */
#include "gqa.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 8, G = 2, N = 100, M = 120, D = 128 };

/* A row-major array of f32 in memory of this CPU. */
static DLTensor describe(float *data, int64_t *shape, int32_t rank) {
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = 1; /* kDLCPU */
  tensor.ndim = rank;
  tensor.dtype.code = 2; /* kDLFloat */
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

int main(void) {
  static float q[B * H * N * D], k[B * G * M * D], v[B * G * M * D];
  static float o[B * H * N * D], lse[B * H * N];
  for (int i = 0; i < B * H * N * D; ++i)
    q[i] = (float)sin(0.1 * i);
  for (int i = 0; i < B * G * M * D; ++i) {
    k[i] = (float)cos(0.3 * i);
    v[i] = 1;
  }
  int64_t queries[] = {B, H, N, D}, keys[] = {B, G, M, D}, rows[] = {B, H, N};
  DLTensor Q = describe(q, queries, 4), K = describe(k, keys, 4), V = describe(v, keys, 4), O = describe(o, queries, 4),
           L = describe(lse, rows, 3);
  float scale = 0.0883883f; /* 1 / sqrt(D) */

  /* Why a call would be refused, in words. */
  char message[500];
  if (gqa_causal_check(&Q, &K, &V, scale, &O, &L, message, sizeof message)) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  /* The kernel allocates nothing: its workspace is the caller's. */
  int64_t bytes = gqa_causal_workspace(&Q, &K, &V, scale, &O, &L);
  if (bytes < 0)
    return 1;
  size_t size = ((size_t)bytes + 63) / 64 * 64;
  void *workspace = size ? aligned_alloc(64, size) : NULL;
  if (size && !workspace)
    return 1;
  int32_t code = gqa_causal(&Q, &K, &V, scale, &O, &L, workspace, size, /*stream=*/NULL);
  free(workspace);
  if (code != MOA_OK)
    return 1;

  float largest = 0;
  for (int i = 0; i < B * H * N * D; ++i)
    largest = fmaxf(largest, fabsf(o[i] - 1));
  printf("largest distance from 1: %.1e, lse of the first row: %.4f\n", largest, lse[0]);
  return largest < 1e-5f ? 0 : 1;
}
