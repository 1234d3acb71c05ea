/*===- native.h - calls of kernels from Python ---------------------*- C -*-===*\
 *
 * The extension module moa._native: reads the arguments of a call, and calls
 * the run-time library (moa-c/runtime.h), which it opens by dlopen. It uses
 * Python's limited API of 3.10, so one file serves all later versions.
 *
 * What depends on a library of arrays is in Python (moa/_frameworks.py), as one
 * tuple for each type of array: its adapter.
 *
\*===----------------------------------------------------------------------===*/
#ifndef MOA_PYTHON_NATIVE_H
#define MOA_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#include "moa-c/runtime.h"
#include <stdbool.h>

/// The functions of libmoa-runtime.so.
typedef struct {
  int32_t (*version)(void);
  int32_t (*load_gpu)(const void *, size_t, const char *, moa_program **, char *, size_t);
  int32_t (*load_functions)(moa_finder, void *, const char *, moa_program **, char *, size_t);
  void (*destroy)(moa_program *);
  const moa_function *(*find)(const moa_program *, const char *);
  size_t (*parameters)(const moa_function *);
  int32_t (*parameter)(const moa_function *, size_t, moa_argument *);
  int32_t (*shapes)(const moa_function *, const DLTensor *const *, int64_t *const *, char *, size_t);
  int32_t (*check)(const moa_function *, const DLTensor *const *, const moa_value *, char *, size_t);
  int64_t (*workspace)(const moa_function *, const DLTensor *const *, const moa_value *, char *, size_t);
  int32_t (*call)(const moa_function *, const DLTensor *const *, const moa_value *, void *, size_t, void *, char *,
                  size_t);
  int32_t (*has_shown)(const moa_function *);
  int32_t (*shown)(const moa_function *, const DLTensor *const *, const moa_value *, void *, size_t, void *, char *,
                   size_t);
  int32_t (*prepare)(const moa_function *, int32_t, char *, size_t);
} Runtime;
extern Runtime runtime;

/// What the Python modules give, by _native.configure.
typedef struct {
  PyObject *argument_error, *argument_type_error, *device_error;
  PyObject *refuse;   ///< (kernel, code, text): raises the error of a code
  PyObject *resolve;  ///< (type): its adapter, or None if it is no type of arrays
  PyObject *scalar;   ///< (object, name, dtype): an int or a float
  PyObject *stream;   ///< (object): the handle of a stream, an int
  PyObject *warn;     ///< (kernel, text): warns that a result is not shown
  PyObject *adapters; ///< a dict from types to adapters
  PyObject *numpy;    ///< (): the adapter of a call without input arrays
} Python;
extern Python python;
extern PyObject *name_array_struct, *name_dtype, *name_name;

/// The fields of an adapter, moa._frameworks.Adapter.
enum {
  ADAPTER_KIND,      ///< 0: the array interface of NumPy; 1: DLPack
  ADAPTER_EXPORT,    ///< (array, name): a capsule of DLPack
  ADAPTER_EMPTY,     ///< (shape, dtype, device): a new array
  ADAPTER_FINISH,    ///< (array): the result, or None if it is the new array
  ADAPTER_STREAM,    ///< (device): the handle of the current stream
  ADAPTER_WORKSPACE, ///< (bytes, device, stream): an address and its owner
  ADAPTER_ENTER,     ///< (device): makes a device current; the device before it, or None
  ADAPTER_LEAVE,     ///< (device): makes the former device current again
  ADAPTER_WRITABLE   ///< whether arrays can be results
};

/// One parameter of a kernel.
typedef struct {
  const char *name, *type, *shape;
  PyObject *name_object, *type_object;
  int32_t role, rank;
  DLDataType dtype;
} Param;

/// One array of a call.
typedef struct {
  DLTensor tensor;
  PyObject *object; ///< borrowed
  PyObject *owner;  ///< the capsule that keeps the memory
  PyObject *adapter;
  bool is_readonly;
} Slot;

/// Reads an array for a parameter. The shape and the strides go to `room`, of twice the rank.
/// Returns false with an exception set.
bool read_array(const Param *param, PyObject *object, Slot *slot, int64_t *room);
/// Reads a scalar for a parameter. Returns false with an exception set.
bool read_scalar(const Param *param, PyObject *object, moa_value *value);

/// The type moa._native.Program.
typedef struct {
  PyObject_HEAD moa_program *program;
  PyObject *code; ///< what keeps the code of a CPU program
} Program;

extern PyObject *program_type, *function_type;
PyObject *make_program_type(void);
PyObject *make_function_type(void);

#endif /* MOA_PYTHON_NATIVE_H */
