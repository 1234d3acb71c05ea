/*===- Runtime.h - tables of an emitted kernel --------------------*- C -*-===*\
 *
 * A compiled kernel passes these tables to the run-time code in its object file.
 * The compiler emits them as constants (EntryPoints.cpp), in the field order
 * below.
 *
\*===----------------------------------------------------------------------===*/
#ifndef MOA_TARGET_CPU_RUNTIME_RUNTIME_H
#define MOA_TARGET_CPU_RUNTIME_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

/* DLPack's descriptor, by layout. */
typedef struct {
  int32_t device_type;
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

enum { kCPUDevice = 1 };
enum { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6 };

/* Return codes of the entry points, as in the emitted header. */
enum {
  MOA_OK = 0,
  MOA_NULL_DESCRIPTOR = 1,
  MOA_RANK = 2,
  MOA_DTYPE = 3,
  MOA_SHAPE = 4,
  MOA_CONSTRAINT = 5,
  MOA_STRIDES = 6,
  MOA_ALIGNMENT = 7,
  MOA_DEVICE = 8,
  MOA_NULL_DATA = 9,
  MOA_OVERLAP = 10,
  MOA_WORKSPACE = 11,
  MOA_OVERFLOW = 12,
  MOA_PROCESSOR = 13,
  MOA_NOT_SHOWN = 15
};

/* Postfix code of integer expressions. Push and Symbol have one operand, Shape
 * has two (array, axis). The others act on the top of the stack. */
enum { kEnd = 0, kPush = 1, kSymbol = 2, kShape = 3, kAdd = 4, kMul = 5, kFloorDiv = 6, kMod = 7 };
enum { kMaxStack = 64, kMaxRank = 16, kMaxSymbols = 64, kMaxArrays = 32 };

typedef struct {
  const char *text;
  const int64_t *code;
} MoaExpr;

/* A symbol, bound to an expression over shapes and earlier symbols. */
typedef struct {
  const char *name;
  MoaExpr value;
} MoaSymbol;

/* lhs `relation` rhs: 0 ==, 1 !=, 2 <, 3 <=, 4 >, 5 >=. */
typedef struct {
  const char *text;
  int64_t relation;
  MoaExpr lhs;
  MoaExpr rhs;
} MoaConstraint;

typedef struct {
  const char *name;
  const char *type; /* as in the specification */
  int64_t isOutput;
  int64_t code; /* DLPack's type code */
  int64_t bits;
  int64_t rank;
  const MoaExpr *extents;
  int64_t slot; /* of the data pointer in the argument block */
} MoaArray;

typedef struct {
  int64_t (*tasks)(const int64_t *args);
  int64_t (*shared)(const int64_t *args); /* bytes shared with the next nest, or NULL */
  void (*run)(const int64_t *args, void *scratch, int64_t begin, int64_t end);
} MoaNest;

/* A result with a tolerance for every input, and the temporary of f32 that holds bounds on its
 * errors. */
typedef struct {
  int64_t array;
  int64_t temporary;
  double epsilon;
  const char *within; /* as in the specification */
  const char *axes;   /* extents of the axes with one bound per index, or "" */
  const char *why;    /* reason if no bound is known for any inputs, or "" */
} MoaShown;

/* One bit of CPUID (leaf, subleaf, register), and the register state that the
 * operating system must save. */
enum { kEAX = 0, kEBX = 1, kECX = 2, kEDX = 3 };
enum { kNoState = 0, kAVXState = 0x6, kAVX512State = 0xe6, kTileState = 0x60000 };
typedef struct {
  const char *name;
  int64_t leaf;
  int64_t subleaf;
  int64_t reg;
  int64_t bit;
  int64_t state;
} MoaFeature;

typedef struct {
  const char *name;
  int64_t numArrays;
  const MoaArray *arrays; /* inputs, then outputs */
  int64_t numScalars;
  const int64_t *scalarSlots;
  int64_t numSymbols;
  const MoaSymbol *symbols; /* in binding order */
  const int64_t *symbolSlots;
  int64_t numConstraints;
  const MoaConstraint *constraints;
  int64_t numNests;
  const MoaNest *nests;
  int64_t numTemporaries;
  const MoaArray *temporaries; /* row-major, at the start of the workspace */
  int64_t numShown;
  const MoaShown *shown;
  int64_t numSlots;     /* the last one has the address of the shared memory */
  int64_t scratchBytes; /* per thread */
  const char *processor;
  int64_t numFeatures; /* extensions beyond the baseline */
  const MoaFeature *features;
} MoaKernel;

#endif /* MOA_TARGET_CPU_RUNTIME_RUNTIME_H */
