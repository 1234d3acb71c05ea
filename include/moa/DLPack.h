/*===- DLPack.h - the descriptor kernels take ---------------------*- C -*-===*\
 *
 * DLPack's tensor descriptor (https://dmlc.github.io/dlpack), as far as
 * compiled kernels use it. Include dlpack.h before this file to use the
 * original.
 *
\*===----------------------------------------------------------------------===*/
#ifndef MOA_DLPACK_H
#define MOA_DLPACK_H

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
#include <stdint.h>
typedef struct {
  int32_t device_type; /* 1: CPU */
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

#endif /* MOA_DLPACK_H */
