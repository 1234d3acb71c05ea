/*===- arrays.c - arrays and scalars of a call ----------------------------===*/
#include "native.h"
#include <string.h>

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static bool is_same_type(DLDataType given, DLDataType wanted) {
  return given.code == wanted.code && given.bits == wanted.bits && given.lanes == 1;
}

static bool refuse_type(const Param *param, const char *given) {
  PyErr_Format(python.argument_type_error, "%s: expects %s[%s], but got an array of %s", param->name, param->type,
               param->shape, given);
  return false;
}

/// Refuses an element type of DLPack by its name.
static bool refuse_dlpack_type(const Param *param, DLDataType given) {
  static const char *const names[] = {
      "int%d",       "uint%d",          "float%d",       "pointers",           "bfloat%d",      "complex%d",
      "bool",        "float8_e3m4",     "float8_e4m3",   "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
      "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"};
  char text[64];
  if (given.lanes != 1)
    PyOS_snprintf(text, sizeof text, "vectors of %d elements", (int)given.lanes);
  else if (given.code < sizeof names / sizeof *names)
    PyOS_snprintf(text, sizeof text, names[given.code], (int)given.bits);
  else
    PyOS_snprintf(text, sizeof text, "DLPack type %d of %d bits", (int)given.code, (int)given.bits);
  return refuse_type(param, text);
}

/// Refuses the element type of a NumPy array by its name.
static bool refuse_numpy_type(const Param *param, PyObject *object) {
  PyObject *dtype = PyObject_GetAttr(object, name_dtype);
  PyObject *name = dtype ? PyObject_GetAttr(dtype, name_name) : NULL;
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  PyErr_Clear();
  refuse_type(param, text ? text : "an unknown type");
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  return false;
}

/// Returns whether a NumPy array has elements of ml_dtypes.bfloat16.
static bool is_bfloat16(PyObject *object) {
  PyObject *dtype = PyObject_GetAttr(object, name_dtype);
  PyObject *name = dtype ? PyObject_GetAttr(dtype, name_name) : NULL;
  const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  bool same = text && !strcmp(text, "bfloat16");
  PyErr_Clear();
  Py_XDECREF(name);
  Py_XDECREF(dtype);
  return same;
}

static bool refuse_rank(const Param *param, int rank) {
  PyErr_Format(python.argument_error, "%s: expects %s[%s], rank %d, but got rank %d", param->name, param->type,
               param->shape, (int)param->rank, rank);
  return false;
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// Gives axes of fewer than two indices the stride of a row-major array: what they have is of no
/// meaning.
static void normalise(DLTensor *tensor) {
  int64_t next = 1;
  for (int axis = tensor->ndim - 1; axis >= 0; --axis) {
    if (tensor->shape[axis] < 2)
      tensor->strides[axis] = next;
    next = tensor->strides[axis];
    if (tensor->shape[axis] > 1 && next <= INT64_MAX / tensor->shape[axis] && next >= 0)
      next *= tensor->shape[axis];
  }
}

/// The array interface of NumPy in C.
typedef struct {
  int two, nd;
  char typekind;
  int itemsize, flags;
  Py_intptr_t *shape, *strides;
  void *data;
  PyObject *descr;
} PyArrayInterface;
enum { kNotSwapped = 0x200, kWriteable = 0x400 };

/// Returns the element type of an array of NumPy, with 0 bits if kernels have no such type.
static DLDataType get_numpy_type(const PyArrayInterface *array, PyObject *object) {
  DLDataType none = {0, 0, 0}, type = {0, (uint8_t)(8 * array->itemsize), 1};
  switch (array->typekind) {
  case 'i':
    return type;
  case 'u':
    type.code = 1;
    return type;
  case 'f':
    type.code = 2;
    return array->itemsize <= 8 ? type : none;
  case 'b':
    type.code = 6;
    return type;
  case 'V':
    type.code = 4;
    return array->itemsize == 2 && is_bfloat16(object) ? type : none;
  default:
    return none;
  }
}

static bool read_numpy(const Param *param, PyObject *object, Slot *slot) {
  PyObject *capsule = PyObject_GetAttr(object, name_array_struct);
  const PyArrayInterface *array = capsule ? PyCapsule_GetPointer(capsule, NULL) : NULL;
  bool ok = array != NULL;
  DLTensor *tensor = &slot->tensor;
  if (ok && array->nd != param->rank)
    ok = refuse_rank(param, array->nd);
  if (ok && !is_same_type(get_numpy_type(array, object), param->dtype))
    ok = refuse_numpy_type(param, object);
  if (ok && !(array->flags & kNotSwapped) && array->itemsize > 1) {
    PyErr_Format(python.argument_type_error, "%s: the bytes of elements are not in the order of this machine",
                 param->name);
    ok = false;
  }
  for (int axis = 0; ok && axis < param->rank; ++axis) {
    tensor->shape[axis] = array->shape[axis];
    tensor->strides[axis] = array->strides[axis] / array->itemsize;
    if (array->shape[axis] > 1 && array->strides[axis] % array->itemsize) {
      PyErr_Format(python.argument_error,
                   "%s: the stride of %zd bytes on axis %d is not a multiple of the element size %d", param->name,
                   (Py_ssize_t)array->strides[axis], axis, array->itemsize);
      ok = false;
    }
  }
  if (ok) {
    tensor->data = array->data;
    tensor->device = (DLDevice){1, 0};
    tensor->ndim = param->rank;
    tensor->dtype = param->dtype;
    slot->is_readonly = !(array->flags & kWriteable);
  }
  Py_XDECREF(capsule);
  return ok;
}

typedef struct ManagedTensor {
  DLTensor tensor;
  void *context;
  void (*deleter)(struct ManagedTensor *);
} ManagedTensor;

typedef struct VersionedTensor {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct VersionedTensor *);
  uint64_t flags;
  DLTensor tensor;
} VersionedTensor;
enum { kReadOnly = 1 };

/// Reads an array through DLPack. The capsule is not consumed: it stays with the slot, and its own
/// destructor ends the loan.
static bool read_dlpack(const Param *param, PyObject *object, Slot *slot) {
  PyObject *export = PyTuple_GetItem(slot->adapter, ADAPTER_EXPORT);
  slot->owner = PyObject_CallFunctionObjArgs(export, object, param->name_object, NULL);
  if (!slot->owner)
    return false;
  const DLTensor *source = NULL;
  if (PyCapsule_IsValid(slot->owner, "dltensor_versioned")) {
    const VersionedTensor *managed = PyCapsule_GetPointer(slot->owner, "dltensor_versioned");
    if (managed->major == 1) {
      source = &managed->tensor;
      slot->is_readonly = managed->flags & kReadOnly;
    }
  } else if (PyCapsule_IsValid(slot->owner, "dltensor")) {
    source = &((const ManagedTensor *)PyCapsule_GetPointer(slot->owner, "dltensor"))->tensor;
  }
  if (!source) {
    PyErr_Format(python.argument_type_error, "%s: its __dlpack__ returns no tensor of DLPack 0 or 1", param->name);
    return false;
  }
  if (source->ndim != param->rank)
    return refuse_rank(param, source->ndim);
  DLDataType given = source->dtype;
  if (param->dtype.code == 6 && given.code == 1) // older libraries export a bool as a byte
    given.code = 6;
  if (!is_same_type(given, param->dtype))
    return refuse_dlpack_type(param, source->dtype);
  DLTensor *tensor = &slot->tensor;
  int64_t next = 1;
  for (int axis = param->rank - 1; axis >= 0; --axis) {
    tensor->shape[axis] = source->shape[axis];
    tensor->strides[axis] = source->strides ? source->strides[axis] : next;
    next *= source->shape[axis];
  }
  tensor->data = source->data;
  tensor->byte_offset = source->byte_offset;
  tensor->device = source->device;
  if (tensor->device.device_type == 3) // memory of the CPU that CUDA has pinned
    tensor->device = (DLDevice){1, 0};
  tensor->ndim = param->rank;
  tensor->dtype = param->dtype;
  return true;
}

/// Returns the adapter of an object's type, borrowed, or None.
static PyObject *get_adapter(PyObject *object) {
  PyObject *type = (PyObject *)Py_TYPE(object);
  PyObject *adapter = PyDict_GetItemWithError(python.adapters, type);
  if (adapter || PyErr_Occurred())
    return adapter;
  adapter = PyObject_CallFunctionObjArgs(python.resolve, type, NULL);
  if (!adapter || PyDict_SetItem(python.adapters, type, adapter)) {
    Py_XDECREF(adapter);
    return NULL;
  }
  Py_DECREF(adapter); // the dict has it
  return adapter;
}

bool read_array(const Param *param, PyObject *object, Slot *slot, int64_t *room) {
  slot->object = object;
  slot->tensor.shape = room;
  slot->tensor.strides = room + param->rank;
  slot->adapter = get_adapter(object);
  if (!slot->adapter)
    return false;
  if (slot->adapter == Py_None) {
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    if (name)
      PyErr_Format(python.argument_type_error, "%s: expects an array, %s[%s], but got %U", param->name, param->type,
                   param->shape, name);
    Py_XDECREF(name);
    return false;
  }
  PyObject *kind = PyTuple_GetItem(slot->adapter, ADAPTER_KIND);
  bool ok = kind == Py_True ? read_numpy(param, object, slot) : read_dlpack(param, object, slot);
  if (ok)
    normalise(&slot->tensor);
  return ok;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

static bool read_integer(const Param *param, PyObject *object, moa_value *value) {
  bool is_unsigned = param->dtype.code == 1, is_bool = param->dtype.code == 6;
  int bits = is_bool ? 1 : param->dtype.bits;
  int64_t low = is_unsigned || is_bool ? 0 : INT64_MIN >> (64 - bits);
  int64_t high = is_unsigned || is_bool ? ((int64_t)1 << bits) - 1 : INT64_MAX >> (64 - bits);
  int overflow = 0;
  value->i = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value->i == -1 && PyErr_Occurred())
    return false;
  if (!overflow && value->i >= low && value->i <= high)
    return true;
  PyErr_Format(python.argument_error, "%s: expects %s, an integer from %lld to %lld, but got %S", param->name,
               param->type, (long long)low, (long long)high, object);
  return false;
}

bool read_scalar(const Param *param, PyObject *object, moa_value *value) {
  bool is_float = param->dtype.code == 2 || param->dtype.code == 4;
  PyObject *made = NULL;
  if (!(is_float && PyFloat_Check(object)) && !PyLong_Check(object)) {
    object = made = PyObject_CallFunctionObjArgs(python.scalar, object, param->name_object, param->type_object, NULL);
    if (!made)
      return false;
  }
  bool ok = true;
  if (is_float) {
    value->f = PyFloat_AsDouble(object);
    ok = value->f != -1 || !PyErr_Occurred();
  } else {
    ok = read_integer(param, object, value);
  }
  Py_XDECREF(made);
  return ok;
}
