/*===- module.c - the module moa._native ----------------------------------===*/
#include "native.h"
#include <dlfcn.h>
#include <string.h>

Runtime runtime;
Python python;
PyObject *name_array_struct, *name_dtype, *name_name, *program_type, *function_type;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static void program_dealloc(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  Program *self = (Program *)object;
  if (self->program)
    runtime.destroy(self->program);
  Py_XDECREF(self->code);
  freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
  free_object(object);
  Py_DECREF(type);
}

static PyType_Slot program_slots[] = {
    {Py_tp_dealloc, (void *)program_dealloc}, {Py_tp_doc, (void *)"The kernels of one specification."}, {0, NULL}};
static PyType_Spec program_spec = {"moa._native.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT, program_slots};

PyObject *make_program_type(void) { return PyType_FromSpec(&program_spec); }

static PyObject *make_program(moa_program *made, PyObject *code) {
  allocfunc allocate = (allocfunc)PyType_GetSlot((PyTypeObject *)program_type, Py_tp_alloc);
  Program *self = (Program *)allocate((PyTypeObject *)program_type, 0);
  if (!self) {
    runtime.destroy(made);
    return NULL;
  }
  self->program = made;
  Py_XINCREF(code);
  self->code = code;
  return (PyObject *)self;
}

static bool check_open(void) {
  if (runtime.version)
    return true;
  PyErr_SetString(PyExc_RuntimeError, "the run-time library is not open");
  return false;
}

/// load_gpu(image, manifest)
static PyObject *load_gpu(PyObject *module, PyObject *args) {
  const char *image, *manifest;
  Py_ssize_t bytes;
  char message[1024] = "";
  moa_program *made = NULL;
  if (!check_open() || !PyArg_ParseTuple(args, "y#s", &image, &bytes, &manifest))
    return NULL;
  if (runtime.load_gpu(image, (size_t)bytes, manifest, &made, message, sizeof message))
    return PyErr_Format(PyExc_ValueError, "%s", message);
  return make_program(made, NULL);
}

/// Returns the address that a dict has for a name.
static void *find_address(void *addresses, const char *name) {
  PyObject *address = PyDict_GetItemString(addresses, name);
  return address ? PyLong_AsVoidPtr(address) : NULL;
}

/// load_functions(addresses, manifest, code): a dict from names to addresses, and the object that keeps them
static PyObject *load_functions(PyObject *module, PyObject *args) {
  const char *manifest;
  PyObject *addresses, *code;
  char message[1024] = "";
  moa_program *made = NULL;
  if (!check_open() || !PyArg_ParseTuple(args, "O!sO", &PyDict_Type, &addresses, &manifest, &code))
    return NULL;
  if (runtime.load_functions(find_address, addresses, manifest, &made, message, sizeof message))
    return PyErr_Format(PyExc_ValueError, "%s", message);
  return make_program(made, code);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// open_runtime(path)
static PyObject *open_runtime(PyObject *module, PyObject *args) {
  const char *path;
  if (!PyArg_ParseTuple(args, "s", &path))
    return NULL;
  void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!file)
    return PyErr_Format(PyExc_ImportError, "%s", dlerror());
  Runtime found;
  const struct {
    const char *name;
    void *place;
  } functions[] = {{"moa_runtime_version", &found.version},
                   {"moa_program_load_gpu", &found.load_gpu},
                   {"moa_program_load_functions", &found.load_functions},
                   {"moa_program_destroy", &found.destroy},
                   {"moa_program_find", &found.find},
                   {"moa_function_parameters", &found.parameters},
                   {"moa_function_parameter", &found.parameter},
                   {"moa_function_shapes", &found.shapes},
                   {"moa_function_check", &found.check},
                   {"moa_function_workspace", &found.workspace},
                   {"moa_function_call", &found.call},
                   {"moa_function_has_shown", &found.has_shown},
                   {"moa_function_shown", &found.shown},
                   {"moa_function_prepare", &found.prepare}};
  for (size_t k = 0; k < sizeof functions / sizeof *functions; ++k) {
    void *address = dlsym(file, functions[k].name);
    if (!address)
      return PyErr_Format(PyExc_ImportError, "%s has no function %s; the library is too old for this package", path,
                          functions[k].name);
    memcpy(functions[k].place, &address, sizeof address);
  }
  runtime = found;
  return PyLong_FromLong(runtime.version());
}

/// configure(**what): the objects of struct Python
static PyObject *configure(PyObject *module, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"argument_error",
                          "argument_type_error",
                          "device_error",
                          "refuse",
                          "resolve",
                          "scalar",
                          "stream",
                          "warn",
                          "adapters",
                          "numpy",
                          NULL};
  Python given;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOOOOO!O", names, &given.argument_error,
                                   &given.argument_type_error, &given.device_error, &given.refuse, &given.resolve,
                                   &given.scalar, &given.stream, &given.warn, &PyDict_Type, &given.adapters,
                                   &given.numpy))
    return NULL;
  PyObject *all[] = {given.argument_error, given.argument_type_error,
                     given.device_error,   given.refuse,
                     given.resolve,        given.scalar,
                     given.stream,         given.warn,
                     given.adapters,       given.numpy};
  for (size_t k = 0; k < sizeof all / sizeof *all; ++k)
    Py_INCREF(all[k]); // for as long as the process lives
  python = given;
  Py_INCREF(Py_None);
  return Py_None;
}

static PyMethodDef methods[] = {
    {"open_runtime", open_runtime, METH_VARARGS, "Opens libmoa-runtime.so and returns its version."},
    {"configure", (PyCFunction)(void (*)(void))configure, METH_VARARGS | METH_KEYWORDS, "Gives errors and functions."},
    {"load_gpu", load_gpu, METH_VARARGS, "Loads PTX with its manifest."},
    {"load_functions", load_functions, METH_VARARGS, "Loads functions of this process with their manifest."},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Calls of kernels.", -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__native(void) {
  name_array_struct = PyUnicode_InternFromString("__array_struct__");
  name_dtype = PyUnicode_InternFromString("dtype");
  name_name = PyUnicode_InternFromString("name");
  if (!name_array_struct || !name_dtype || !name_name)
    return NULL;
  program_type = make_program_type();
  function_type = program_type ? make_function_type() : NULL;
  PyObject *module = function_type ? PyModule_Create(&definition) : NULL;
  if (!module)
    return NULL;
  Py_INCREF(function_type);
  Py_INCREF(program_type);
  if (PyModule_AddObject(module, "Function", function_type) || PyModule_AddObject(module, "Program", program_type)) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
