/*===- DLPack.h - the arguments and codes of kernels --------------*- C -*-===*\
 *
 * The descriptor of arrays, and the codes that calls return. The text after the
 * include is part of every emitted header.
 *
\*===----------------------------------------------------------------------===*/
#include <stdint.h>

/* DLPack's descriptor (https://dmlc.github.io/dlpack). Include dlpack.h before
 * this file to use the original declarations. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type; /* 1: CPU, 2: CUDA, 13: CUDA managed */
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} DLTensor;
#endif

/* What an entry point returns. Any other code than MOA_OK, MOA_NOT_SHOWN and
 * MOA_LAUNCH: nothing was written. After MOA_LAUNCH, earlier launches of the
 * call may have written. */
#ifndef MOA_CODES
#define MOA_CODES
enum {
  MOA_OK = 0,
  MOA_NULL_DESCRIPTOR = 1, /* a descriptor or its shape is NULL */
  MOA_RANK = 2,            /* wrong number of axes */
  MOA_DTYPE = 3,           /* wrong element type */
  MOA_SHAPE = 4,           /* extents disagree with each other */
  MOA_CONSTRAINT = 5,      /* a `require` of the specification is false */
  MOA_STRIDES = 6,         /* negative, or an output overlaps itself */
  MOA_ALIGNMENT = 7,       /* data is not aligned to the element size */
  MOA_DEVICE = 8,          /* not memory of this CPU or this GPU */
  MOA_NULL_DATA = 9,       /* data is NULL, but the array is not empty */
  MOA_OVERLAP = 10,        /* an output overlaps another array */
  MOA_WORKSPACE = 11,      /* NULL, too small, or on a GPU misaligned */
  MOA_OVERFLOW = 12,       /* a size exceeds 64 bits */
  MOA_PROCESSOR = 13,      /* a CPU lacks instructions that the code uses */
  MOA_LAUNCH = 14,         /* CUDA refused to launch */
  MOA_NOT_SHOWN = 15       /* computed, but not shown to be `within` */
};
#endif
