/*===- call.c - one call of a kernel --------------------------------------===*/
#include "native.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/// The type moa._native.Function, the base of moa.Kernel.
typedef struct {
  PyObject_HEAD Program *program;
  const moa_function *function;
  Param *params; ///< inputs and scalars, then outputs
  size_t num_params, num_given, num_arrays, num_inputs, num_scalars, frame_bytes;
  PyObject *name, *results, *signature;
  bool is_cuda, has_shown;
  uint64_t prepared; ///< a bit for each device
} Function;

typedef enum { MODE_CALL, MODE_CHECK, MODE_WORKSPACE, MODE_SHOWN, MODE_SHAPES } Mode;

/// The arguments of one call.
typedef struct {
  Function *self;
  Mode mode;
  PyObject **values; ///< by parameter, borrowed; NULL: not given
  Slot *slots;       ///< by array
  const DLTensor **arrays;
  moa_value *scalars;
  int64_t **shapes; ///< of outputs
  PyObject **made;  ///< the outputs, owned
  PyObject *out, *stream, *workspace;
  PyObject *first; ///< the adapter of the first array
  int32_t device;
  void *handle; ///< of the stream
  void *memory; ///< the workspace
  int64_t bytes;
  char message[2048];
} Frame;

//===----------------------------------------------------------------------===//
// Binding arguments to parameters
//===----------------------------------------------------------------------===//

static bool refuse_arguments(const Function *self, const char *format, PyObject *part) {
  PyObject *what = PyUnicode_FromFormat(format, part);
  if (what)
    PyErr_Format(PyExc_TypeError, "%U() %U; it is %U", self->name, what, self->signature);
  Py_XDECREF(what);
  return false;
}

/// Returns whether a keyword is a name. Keywords of calls are interned, as the names are.
static bool is_name(PyObject *keyword, PyObject *name) {
  return keyword == name || PyUnicode_Compare(keyword, name) == 0;
}

static PyObject *word_out, *word_stream, *word_workspace;

static bool bind_keyword(Frame *frame, PyObject *keyword, PyObject *value) {
  const Function *self = frame->self;
  PyObject **place = NULL;
  for (size_t k = 0; k < self->num_given && !place; ++k)
    if (is_name(keyword, self->params[k].name_object)) {
      place = &frame->values[k];
      if (*place)
        return refuse_arguments(self, "got multiple values for argument '%U'", keyword);
    }
  if (!place)
    place = is_name(keyword, word_out)         ? &frame->out
            : is_name(keyword, word_stream)    ? &frame->stream
            : is_name(keyword, word_workspace) ? &frame->workspace
                                               : NULL;
  if (!place)
    return refuse_arguments(self, "got an unexpected keyword argument '%U'", keyword);
  *place = value;
  return true;
}

static bool bind(Frame *frame, PyObject *args, PyObject *kwargs) {
  const Function *self = frame->self;
  size_t given = (size_t)PyTuple_Size(args);
  if (given > self->num_given) {
    PyObject *counts = PyUnicode_FromFormat("takes %zu arguments, but %zu were given", self->num_given, given);
    if (counts)
      refuse_arguments(self, "%U", counts);
    Py_XDECREF(counts);
    return false;
  }
  for (size_t k = 0; k < given; ++k)
    frame->values[k] = PyTuple_GetItem(args, (Py_ssize_t)k);
  PyObject *keyword, *value;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &keyword, &value))
    if (!bind_keyword(frame, keyword, value))
      return false;
  for (size_t k = 0; k < self->num_given; ++k)
    if (!frame->values[k])
      return refuse_arguments(self, "misses the argument '%U'", self->params[k].name_object);
  if (frame->out == Py_None)
    frame->out = NULL;
  if (frame->stream == Py_None)
    frame->stream = NULL;
  if (frame->workspace == Py_None)
    frame->workspace = NULL;
  return true;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// Raises the error of a code.
static bool refuse_code(const Frame *frame, int64_t code) {
  PyObject *number = PyLong_FromLongLong(code),
           *text = PyUnicode_DecodeUTF8(frame->message, (Py_ssize_t)strlen(frame->message), "replace");
  PyObject *done =
      number && text ? PyObject_CallFunctionObjArgs(python.refuse, frame->self->name, number, text, NULL) : NULL;
  Py_XDECREF(done);
  Py_XDECREF(number);
  Py_XDECREF(text);
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_SystemError, "an error was not raised");
  return false;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// Prepares the kernel for a device, once.
static bool prepare(Frame *frame, int32_t device) {
  Function *self = frame->self;
  if (device >= 0 && device < 64 && self->prepared >> device & 1)
    return true;
  int32_t code;
  Py_BEGIN_ALLOW_THREADS;
  code = runtime.prepare(self->function, device, frame->message, sizeof frame->message);
  Py_END_ALLOW_THREADS;
  if (code)
    return refuse_code(frame, code);
  if (device >= 0 && device < 64)
    self->prepared |= (uint64_t)1 << device;
  return true;
}

/// Checks that an array is where the kernel runs, and that all arrays are on one device.
static bool check_device(Frame *frame, const Param *param, const Slot *slot) {
  int type = (int)slot->tensor.device.device_type, device = slot->tensor.device.device_id;
  if (!frame->self->is_cuda) {
    if (type == 1)
      return true;
    PyErr_Format(python.device_error,
                 "%s: is on a device of DLPack type %d, but the kernel runs on the CPU; "
                 "copy it to the CPU, or compile with target=\"cuda\"",
                 param->name, type);
    return false;
  }
  if (type == 13) // managed memory is on every device
    return true;
  if (type != 2) {
    if (!prepare(frame, 0)) // a missing GPU is the first reason
      return false;
    PyErr_Format(python.device_error,
                 "%s: is in the memory of the CPU, but the kernel runs on a CUDA device; "
                 "copy it there, or compile with target=\"cpu\"",
                 param->name);
    return false;
  }
  if (frame->device >= 0 && frame->device != device) {
    PyErr_Format(python.device_error, "%s: is on CUDA device %d, but an array before it on device %d", param->name,
                 device, (int)frame->device);
    return false;
  }
  frame->device = device;
  return true;
}

/// Calls a function of the adapter with the device.
static PyObject *ask_adapter(const Frame *frame, int field, int32_t device) {
  PyObject *number = PyLong_FromLong(device);
  PyObject *answer = number ? PyObject_CallFunctionObjArgs(PyTuple_GetItem(frame->first, field), number, NULL) : NULL;
  Py_XDECREF(number);
  return answer;
}

static bool find_stream(Frame *frame) {
  PyObject *handle = frame->stream ? PyObject_CallFunctionObjArgs(python.stream, frame->stream, NULL)
                                   : ask_adapter(frame, ADAPTER_STREAM, frame->device);
  if (!handle)
    return false;
  frame->handle = PyLong_AsVoidPtr(handle);
  Py_DECREF(handle);
  return frame->handle || !PyErr_Occurred();
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

/// Stores what the caller gave as results in `made`.
static bool bind_results(Frame *frame) {
  const Function *self = frame->self;
  size_t count = self->num_params - self->num_given;
  PyObject *out = frame->out;
  if (!out)
    return true;
  if (!PyTuple_Check(out) && !PyList_Check(out)) {
    if (count != 1) {
      PyErr_Format(python.argument_type_error, "out: expects a tuple or a list of %zu arrays", count);
      return false;
    }
    Py_INCREF(out);
    frame->made[0] = out;
    return true;
  }
  if ((size_t)PySequence_Size(out) != count) {
    PyErr_Format(python.argument_error, "out: expects %zu arrays, but got %zd", count, PySequence_Size(out));
    return false;
  }
  for (size_t k = 0; k < count; ++k) {
    frame->made[k] = PySequence_GetItem(out, (Py_ssize_t)k);
    if (!frame->made[k])
      return false;
    if (frame->made[k] == Py_None)
      Py_CLEAR(frame->made[k]);
  }
  return true;
}

/// Makes one result in the library of the first array.
static PyObject *make_result(const Frame *frame, const Param *param, const int64_t *shape) {
  PyObject *extents = PyTuple_New(param->rank), *result = NULL;
  for (int axis = 0; extents && axis < param->rank; ++axis) {
    PyObject *extent = PyLong_FromLongLong(shape[axis]);
    if (!extent || PyTuple_SetItem(extents, axis, extent))
      Py_CLEAR(extents);
  }
  PyObject *device = extents ? PyLong_FromLong(frame->device) : NULL;
  if (device)
    result = PyObject_CallFunctionObjArgs(PyTuple_GetItem(frame->first, ADAPTER_EMPTY), extents, param->type_object,
                                          device, NULL);
  Py_XDECREF(device);
  Py_XDECREF(extents);
  return result;
}

static bool read_results(Frame *frame) {
  const Function *self = frame->self;
  bool found = false;
  for (size_t k = self->num_given; k < self->num_params; ++k) {
    const Param *param = &self->params[k];
    size_t number = k - self->num_given, array = self->num_inputs + number;
    bool is_given = frame->made[number] != NULL;
    if (!is_given) {
      if (!found) {
        int32_t code =
            runtime.shapes(self->function, frame->arrays, frame->shapes, frame->message, sizeof frame->message);
        if (code)
          return refuse_code(frame, code);
        found = true;
      }
      frame->made[number] = make_result(frame, param, frame->shapes[number]);
      if (!frame->made[number])
        return false;
    }
    Slot *slot = &frame->slots[array];
    if (!read_array(param, frame->made[number], slot, slot->tensor.shape) || !check_device(frame, param, slot))
      return false;
    if (is_given && (slot->is_readonly || PyTuple_GetItem(slot->adapter, ADAPTER_WRITABLE) != Py_True)) {
      PyErr_Format(python.argument_error, "%s: the result cannot be written, because its array is read-only",
                   param->name);
      return false;
    }
  }
  return true;
}

/// Returns what a call returns: the result, or a named tuple of the results.
static PyObject *give_results(Frame *frame) {
  const Function *self = frame->self;
  size_t count = self->num_params - self->num_given;
  PyObject *finish = PyTuple_GetItem(frame->first, ADAPTER_FINISH);
  for (size_t k = 0; k < count && finish != Py_None; ++k) {
    if (frame->out)
      break;
    PyObject *made = PyObject_CallFunctionObjArgs(finish, frame->made[k], NULL);
    if (!made)
      return NULL;
    Py_DECREF(frame->made[k]);
    frame->made[k] = made;
  }
  if (count == 1) {
    PyObject *result = frame->made[0];
    frame->made[0] = NULL;
    return result;
  }
  PyObject *all = PyTuple_New((Py_ssize_t)count);
  for (size_t k = 0; all && k < count; ++k) {
    PyTuple_SetItem(all, (Py_ssize_t)k, frame->made[k]);
    frame->made[k] = NULL;
  }
  PyObject *results = all ? PyObject_Call(self->results, all, NULL) : NULL;
  Py_XDECREF(all);
  return results;
}

static PyObject *give_shapes(Frame *frame) {
  const Function *self = frame->self;
  int32_t code = runtime.shapes(self->function, frame->arrays, frame->shapes, frame->message, sizeof frame->message);
  if (code)
    return refuse_code(frame, code), NULL;
  size_t count = self->num_params - self->num_given;
  PyObject *all = PyTuple_New((Py_ssize_t)count);
  for (size_t k = 0; all && k < count; ++k) {
    int rank = self->params[self->num_given + k].rank;
    PyObject *shape = PyTuple_New(rank);
    for (int axis = 0; shape && axis < rank; ++axis)
      PyTuple_SetItem(shape, axis, PyLong_FromLongLong(frame->shapes[k][axis]));
    if (!shape || PyTuple_SetItem(all, (Py_ssize_t)k, shape))
      Py_CLEAR(all);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

/// The workspace of a thread, which later calls on the CPU use again.
typedef struct {
  void *memory;
  size_t bytes;
} Kept;
static pthread_key_t kept_key;
static const size_t kMostKept = (size_t)256 << 20;

static void free_kept(void *kept) {
  free(((Kept *)kept)->memory);
  free(kept);
}

/// Returns memory of this thread, or NULL. Needs no GIL.
static void *get_memory(size_t bytes) {
  Kept *kept = pthread_getspecific(kept_key);
  if (!kept) {
    kept = calloc(1, sizeof *kept);
    if (!kept || pthread_setspecific(kept_key, kept)) {
      free(kept);
      return NULL;
    }
  }
  if (kept->bytes < bytes) {
    free(kept->memory);
    size_t whole = (bytes + 63) / 64 * 64;
    kept->memory = whole < bytes ? NULL : aligned_alloc(64, whole);
    kept->bytes = kept->memory ? whole : 0;
  }
  return kept->memory;
}

static void release_memory(void) {
  Kept *kept = pthread_getspecific(kept_key);
  if (kept && kept->bytes > kMostKept) {
    free(kept->memory);
    *kept = (Kept){NULL, 0};
  }
}

/// Reads the workspace that the caller gave.
static bool read_workspace(Frame *frame, Slot *slot, int64_t *room) {
  static Param param = {"workspace", "u8", "bytes", NULL, NULL, MOA_OUTPUT, 1, {1, 8, 1}};
  param.name_object = word_workspace;
  if (!read_array(&param, frame->workspace, slot, room) || !check_device(frame, &param, slot))
    return false;
  if (slot->is_readonly || slot->tensor.strides[0] != 1) {
    PyErr_SetString(python.argument_error, "workspace: expects adjacent elements that can be written");
    return false;
  }
  frame->memory = (char *)slot->tensor.data + slot->tensor.byte_offset;
  frame->bytes = slot->tensor.shape[0];
  return true;
}

/// Gets memory of the device. Returns its owner.
static PyObject *get_device_memory(Frame *frame, int64_t bytes) {
  PyObject *answer = PyObject_CallFunction(PyTuple_GetItem(frame->first, ADAPTER_WORKSPACE), "LiKO", (long long)bytes,
                                           (int)frame->device, (unsigned long long)(uintptr_t)frame->handle,
                                           frame->stream ? frame->stream : Py_None);
  if (!answer)
    return NULL;
  PyObject *address = PyTuple_GetItem(answer, 0);
  frame->memory = address ? PyLong_AsVoidPtr(address) : NULL;
  frame->bytes = bytes;
  if (frame->memory || !PyErr_Occurred())
    return answer;
  Py_DECREF(answer);
  return NULL;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static void say_no_memory(Frame *frame, int64_t bytes) {
  PyOS_snprintf(frame->message, sizeof frame->message, "there is no memory for a workspace of %lld bytes",
                (long long)bytes);
}

/// Runs the kernel, and finds what is not shown if that is asked for. Needs no GIL.
static int32_t execute(Frame *frame) {
  const Function *self = frame->self;
  char *message = frame->message;
  size_t size = sizeof frame->message;
  int32_t code = runtime.call(self->function, frame->arrays, frame->scalars, frame->memory, (size_t)frame->bytes,
                              frame->handle, message, size);
  bool asks = code == MOA_NOT_SHOWN ? !self->is_cuda || frame->mode == MODE_SHOWN : !code && frame->mode == MODE_SHOWN;
  if (!asks)
    return code;
  int32_t shown = runtime.shown(self->function, frame->arrays, frame->scalars, frame->memory, (size_t)frame->bytes,
                                frame->handle, message, size);
  return shown ? shown : code;
}

/// Checks, gets the workspace and runs. Returns a code.
static int64_t run(Frame *frame, PyObject **owner) {
  const Function *self = frame->self;
  char *message = frame->message;
  size_t size = sizeof frame->message;
  int64_t bytes = 0, code = 0;
  bool is_done = false;
  Py_BEGIN_ALLOW_THREADS;
  if (frame->mode == MODE_CHECK) {
    code = runtime.check(self->function, frame->arrays, frame->scalars, message, size);
    is_done = true;
  } else {
    if (!frame->workspace)
      bytes = runtime.workspace(self->function, frame->arrays, frame->scalars, message, size);
    code = bytes < 0 ? -bytes : 0;
    is_done = code || frame->mode == MODE_WORKSPACE;
    if (!is_done && bytes && !self->is_cuda) {
      frame->memory = get_memory((size_t)bytes);
      frame->bytes = bytes;
      if (!frame->memory) {
        say_no_memory(frame, bytes);
        code = MOA_WORKSPACE;
        is_done = true;
      }
    }
    if (!is_done && !(bytes && self->is_cuda)) {
      code = execute(frame);
      is_done = true;
    }
    if (bytes > 0 && !self->is_cuda)
      release_memory();
  }
  Py_END_ALLOW_THREADS;
  if (frame->mode == MODE_WORKSPACE)
    frame->bytes = bytes;
  if (is_done)
    return code;
  *owner = get_device_memory(frame, bytes);
  if (!*owner)
    return -1;
  Py_BEGIN_ALLOW_THREADS;
  code = execute(frame);
  Py_END_ALLOW_THREADS;
  return code;
}

/// Returns what the mode asks for after a run with this code.
static PyObject *finish(Frame *frame, int64_t code) {
  PyObject *text = NULL, *warned = NULL;
  if (code < 0)
    return NULL;
  if (code && code != MOA_NOT_SHOWN)
    return refuse_code(frame, code), NULL;
  switch (frame->mode) {
  case MODE_CHECK:
    Py_INCREF(Py_None);
    return Py_None;
  case MODE_WORKSPACE:
    return PyLong_FromLongLong(frame->bytes);
  case MODE_SHOWN:
    return PyUnicode_FromString(code ? frame->message : "");
  default:
    break;
  }
  if (code) {
    text = PyUnicode_FromString(frame->message);
    warned = text ? PyObject_CallFunctionObjArgs(python.warn, frame->self->name, text, NULL) : NULL;
    Py_XDECREF(text);
    if (!warned)
      return NULL;
    Py_DECREF(warned);
  }
  return give_results(frame);
}

static PyObject *call_on_device(Frame *frame) {
  int64_t room[2];
  Slot given = {0};
  PyObject *owner = NULL, *before = NULL, *result = NULL;
  if (frame->self->is_cuda) {
    if (frame->device < 0)
      frame->device = 0;
    if (!prepare(frame, frame->device))
      return NULL;
    before = ask_adapter(frame, ADAPTER_ENTER, frame->device);
    if (!before)
      return NULL;
  }
  bool ok = !frame->self->is_cuda || find_stream(frame);
  ok = ok && read_results(frame);
  ok = ok && (!frame->workspace || read_workspace(frame, &given, room));
  if (ok)
    result = finish(frame, run(frame, &owner));
  if (before && before != Py_None) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *left = PyObject_CallFunctionObjArgs(PyTuple_GetItem(frame->first, ADAPTER_LEAVE), before, NULL);
    Py_XDECREF(left);
    if (type || left)
      PyErr_Restore(type, value, trace);
    else
      Py_CLEAR(result);
  }
  Py_XDECREF(before);
  // Leaving may wait for the kernel, so the memory is kept until then.
  Py_XDECREF(owner);
  Py_XDECREF(given.owner);
  return result;
}

static bool read_inputs(Frame *frame) {
  const Function *self = frame->self;
  size_t array = 0, scalar = 0;
  for (size_t k = 0; k < self->num_given; ++k) {
    const Param *param = &self->params[k];
    if (param->role == MOA_SCALAR) {
      if (!read_scalar(param, frame->values[k], &frame->scalars[scalar++]))
        return false;
      continue;
    }
    Slot *slot = &frame->slots[array++];
    if (!read_array(param, frame->values[k], slot, slot->tensor.shape) || !check_device(frame, param, slot))
      return false;
    if (!frame->first)
      frame->first = slot->adapter;
  }
  return true;
}

static PyObject *call_bound(Frame *frame) {
  if (!read_inputs(frame))
    return NULL;
  if (frame->mode == MODE_SHAPES)
    return give_shapes(frame);
  PyObject *adapter = NULL;
  if (!frame->first) {
    frame->first = adapter = PyObject_CallFunctionObjArgs(python.numpy, NULL);
    if (!adapter)
      return NULL;
  }
  PyObject *result = bind_results(frame) ? call_on_device(frame) : NULL;
  Py_XDECREF(adapter);
  return result;
}

/// Takes memory for `count` elements from a block; a NULL block measures.
static void *take(char *block, size_t *used, size_t bytes, size_t count) {
  size_t begin = (*used + 15) / 16 * 16;
  *used = begin + bytes * count;
  return block ? block + begin : NULL;
}

/// Lays a frame out in memory, which may be NULL to measure. Returns the bytes.
static size_t lay_out(const Function *self, Frame *frame, char *block) {
  size_t used = 0, outputs = self->num_params - self->num_given;
  frame->values = take(block, &used, sizeof *frame->values, self->num_given);
  frame->slots = take(block, &used, sizeof *frame->slots, self->num_arrays);
  frame->arrays = take(block, &used, sizeof *frame->arrays, self->num_arrays);
  frame->scalars = take(block, &used, sizeof *frame->scalars, self->num_scalars);
  frame->shapes = take(block, &used, sizeof *frame->shapes, outputs);
  frame->made = take(block, &used, sizeof *frame->made, outputs);
  size_t array = 0;
  for (size_t k = 0; k < self->num_params; ++k) {
    const Param *param = &self->params[k];
    if (param->role == MOA_SCALAR)
      continue;
    int64_t *room = take(block, &used, sizeof *room, 2 * (size_t)param->rank);
    if (block) {
      frame->slots[array].tensor.shape = room;
      frame->arrays[array] = &frame->slots[array].tensor;
    }
    if (param->role == MOA_OUTPUT) {
      int64_t *shape = take(block, &used, sizeof *shape, (size_t)param->rank);
      if (block)
        frame->shapes[k - self->num_given] = shape;
    }
    ++array;
  }
  return used;
}

static PyObject *invoke(Function *self, Mode mode, PyObject *args, PyObject *kwargs) {
  _Alignas(16) char local[4096];
  Frame frame;
  if (!self->function) {
    PyErr_SetString(PyExc_TypeError, "the kernel has no code; moa.compile makes kernels");
    return NULL;
  }
  memset(&frame, 0, offsetof(Frame, message));
  frame.message[0] = 0;
  char *block = self->frame_bytes <= sizeof local ? local : PyMem_Malloc(self->frame_bytes);
  if (!block)
    return PyErr_NoMemory();
  memset(block, 0, self->frame_bytes);
  lay_out(self, &frame, block);
  frame.self = self;
  frame.mode = mode;
  frame.device = -1;
  PyObject *result = bind(&frame, args, kwargs) ? call_bound(&frame) : NULL;
  for (size_t k = 0; k < self->num_arrays; ++k)
    Py_XDECREF(frame.slots[k].owner);
  for (size_t k = 0; k < self->num_params - self->num_given; ++k)
    Py_XDECREF(frame.made[k]);
  if (block != local)
    PyMem_Free(block);
  return result;
}

//===----------------------------------------------------------------------===//
// The type
//===----------------------------------------------------------------------===//

static void clear(Function *self) {
  for (size_t k = 0; self->params && k < self->num_params; ++k) {
    Py_XDECREF(self->params[k].name_object);
    Py_XDECREF(self->params[k].type_object);
  }
  PyMem_Free(self->params);
  self->params = NULL;
  self->function = NULL;
  Py_CLEAR(self->program);
  Py_CLEAR(self->name);
  Py_CLEAR(self->results);
  Py_CLEAR(self->signature);
}

static void function_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  clear((Function *)object);
  freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
  free_object(object);
  Py_DECREF(type);
}

static PyObject *function_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  return invoke((Function *)self, MODE_CALL, args, kwargs);
}
static PyObject *function_check(PyObject *self, PyObject *args, PyObject *kwargs) {
  return invoke((Function *)self, MODE_CHECK, args, kwargs);
}
static PyObject *function_workspace(PyObject *self, PyObject *args, PyObject *kwargs) {
  return invoke((Function *)self, MODE_WORKSPACE, args, kwargs);
}
static PyObject *function_shown(PyObject *self, PyObject *args, PyObject *kwargs) {
  return invoke((Function *)self, MODE_SHOWN, args, kwargs);
}
static PyObject *function_shapes(PyObject *self, PyObject *args, PyObject *kwargs) {
  return invoke((Function *)self, MODE_SHAPES, args, kwargs);
}

static bool read_params(Function *self) {
  self->num_params = runtime.parameters(self->function);
  self->params = PyMem_Calloc(self->num_params ? self->num_params : 1, sizeof *self->params);
  self->num_given = self->num_arrays = self->num_inputs = self->num_scalars = 0;
  if (!self->params)
    return PyErr_NoMemory(), false;
  for (size_t k = 0; k < self->num_params; ++k) {
    moa_argument facts;
    runtime.parameter(self->function, k, &facts);
    Param *param = &self->params[k];
    *param = (Param){facts.name,
                     facts.type,
                     facts.shape,
                     PyUnicode_InternFromString(facts.name),
                     PyUnicode_InternFromString(facts.type),
                     facts.role,
                     facts.rank,
                     facts.dtype};
    if (!param->name_object || !param->type_object)
      return false;
    self->num_given += facts.role != MOA_OUTPUT;
    self->num_scalars += facts.role == MOA_SCALAR;
    self->num_arrays += facts.role != MOA_SCALAR;
    self->num_inputs += facts.role == MOA_INPUT;
  }
  Frame frame;
  self->frame_bytes = lay_out(self, &frame, NULL);
  return true;
}

/// _bind(program, name, is_cuda, results, signature)
static PyObject *function_bind(PyObject *object, PyObject *args) {
  Function *self = (Function *)object;
  PyObject *program, *name, *results, *signature;
  int is_cuda;
  if (!PyArg_ParseTuple(args, "O!UpOU", (PyTypeObject *)program_type, &program, &name, &is_cuda, &results, &signature))
    return NULL;
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  clear(self);
  Py_INCREF(program);
  self->program = (Program *)program;
  self->function = text ? runtime.find(self->program->program, text) : NULL;
  if (!self->function)
    return PyErr_Format(PyExc_ValueError, "the program has no kernel '%U'", name);
  Py_INCREF(name);
  Py_INCREF(results);
  Py_INCREF(signature);
  self->name = name;
  self->results = results;
  self->signature = signature;
  self->is_cuda = is_cuda;
  self->prepared = 0;
  self->has_shown = runtime.has_shown(self->function);
  if (!read_params(self)) {
    clear(self);
    return NULL;
  }
  Py_INCREF(Py_None);
  return Py_None;
}

#define MOA_METHOD(name, function, text)                                                                               \
  {name, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, text}
static PyMethodDef function_methods[] = {
    {"_bind", function_bind, METH_VARARGS, "Finds the kernel in a program."},
    MOA_METHOD("check", function_check,
               "check(*inputs, out=None, **named)\n--\n\n"
               "Raises the error that a call with these arguments raises. Computes nothing."),
    MOA_METHOD("workspace_bytes", function_workspace,
               "workspace_bytes(*inputs, out=None, **named)\n--\n\n"
               "Returns the bytes of workspace of a call with these arguments."),
    MOA_METHOD("shown", function_shown,
               "shown(*inputs, out=None, stream=None, workspace=None, **named)\n--\n\n"
               "Computes the results, and returns which of them are not shown to be within their\n"
               "tolerances for every input, or an empty text. Waits for the stream."),
    MOA_METHOD("result_shapes", function_shapes,
               "result_shapes(*inputs, **named)\n--\n\n"
               "Returns the shapes of the results, a tuple for each, for these arguments."),
    {NULL, NULL, 0, NULL}};
static PyType_Slot function_slots[] = {{Py_tp_dealloc, (void *)function_dealloc},
                                       {Py_tp_call, (void *)function_call},
                                       {Py_tp_methods, function_methods},
                                       {Py_tp_doc, (void *)"A kernel that is called with arrays."},
                                       {0, NULL}};
static PyType_Spec function_spec = {"moa._native.Function", sizeof(Function), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, function_slots};

PyObject *make_function_type(void) {
  word_out = PyUnicode_InternFromString("out");
  word_stream = PyUnicode_InternFromString("stream");
  word_workspace = PyUnicode_InternFromString("workspace");
  if (!word_out || !word_stream || !word_workspace)
    return NULL;
  if (pthread_key_create(&kept_key, free_kept)) {
    PyErr_SetString(PyExc_RuntimeError, "the system has no more keys of threads");
    return NULL;
  }
  return PyType_FromSpec(&function_spec);
}
