/* Calls the kernel of examples/sdpa.moa on a GPU, through the CUDA driver:
 *
 *   build/bin/moa-codegen examples/sdpa.moa --target=ptx -o build/sdpa.ptx --header build/sdpa.h
 *   cc -I build -I /usr/local/cuda/include examples/c/call_sdpa_gpu.c build/sdpa.c \
 *     -o build/call_sdpa -L /usr/local/cuda/lib64/stubs -lcuda -lm
 *   build/call_sdpa
 *
 * or, with nvcc, on a library of --target=cuda (docs/Calling.md). All values are 1, so
 * every row of weights sums to 1 times 1. */
#include "sdpa.h"
#include <cuda.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 1, H = 2, N = 300, M = 500, D = 128 };

/* The bits of a float as bf16, cut. */
static uint16_t to_bf16(float x) {
  union {
    float value;
    uint32_t bits;
  } word = {x};
  return (uint16_t)(word.bits >> 16);
}
static float from_bf16(uint16_t x) {
  union {
    uint32_t bits;
    float value;
  } word = {(uint32_t)x << 16};
  return word.value;
}

static void check(CUresult result, const char *what) {
  const char *text = "unknown";
  if (result == CUDA_SUCCESS)
    return;
  cuGetErrorString(result, &text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

/* A row-major array of bf16 on device 0. */
static DLTensor describe(CUdeviceptr data, int64_t *shape) {
  DLTensor tensor = {0};
  tensor.data = (void *)(uintptr_t)data;
  tensor.device.device_type = 2; /* kDLCUDA */
  tensor.ndim = 4;
  tensor.dtype.code = 4; /* kDLBfloat */
  tensor.dtype.bits = 16;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

int main(void) {
  static uint16_t q[B * H * N * D], k[B * H * M * D], v[B * H * M * D], o[B * H * N * D];
  for (int i = 0; i < B * H * N * D; ++i)
    q[i] = to_bf16((float)sin(0.1 * i));
  for (int i = 0; i < B * H * M * D; ++i) {
    k[i] = to_bf16((float)cos(0.3 * i));
    v[i] = to_bf16(1);
  }
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUdeviceptr places[4];
  const size_t sizes[4] = {sizeof q, sizeof k, sizeof v, sizeof o};
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < 4; ++i)
    check(cuMemAlloc(&places[i], sizes[i]), "cuMemAlloc");
  check(cuMemcpyHtoD(places[0], q, sizeof q), "copy of Q");
  check(cuMemcpyHtoD(places[1], k, sizeof k), "copy of K");
  check(cuMemcpyHtoD(places[2], v, sizeof v), "copy of V");

  int64_t queries[] = {B, H, N, D}, keys[] = {B, H, M, D};
  DLTensor Q = describe(places[0], queries), K = describe(places[1], keys), V = describe(places[2], keys),
           O = describe(places[3], queries);
  float scale = 0.0883883f; /* 1 / sqrt(D) */

  /* The device is made ready; then why a call would be refused, in words. */
  char message[500];
  if (sdpa_prepare(0) != MOA_OK)
    return 1;
  if (sdpa_check(&Q, &K, &V, scale, &O, message, sizeof message)) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  /* The call returns when the kernel is in the stream. */
  if (sdpa(&Q, &K, &V, scale, &O, /*workspace=*/NULL, /*bytes=*/0, stream) != MOA_OK)
    return 1;
  check(cuStreamSynchronize(stream), "sdpa");
  check(cuMemcpyDtoH(o, places[3], sizeof o), "copy of O");

  float largest = 0;
  for (int i = 0; i < B * H * N * D; ++i)
    largest = fmaxf(largest, fabsf(from_bf16(o[i]) - 1));
  printf("largest distance from 1: %.1e\n", largest);
  return largest < 1e-2f ? 0 : 1;
}
