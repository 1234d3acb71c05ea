//===- Runtime.cpp - the C interface of the run-time library --------------===//
#include "lib/Runtime/Program.h"
#include <cstring>
#include <dlfcn.h>
#include <new>

using namespace moa::runtime;

static const Function &get(const moa_function *function) { return *reinterpret_cast<const Function *>(function); }

static int32_t fail(char *message, size_t n, const std::string &why) {
  Message m{message, n};
  return moa_refuse(&m, MOA_PROGRAM, "%s", why.c_str());
}

/// Loads kernels for a CPU. `findCode` finds the entry points, or says why it cannot.
template <typename Function>
static int32_t loadCpu(const char *manifest, moa_program **program, char *message, size_t n, Function findCode) {
  clear({message, n});
  if (!program)
    return fail(message, n, "the place of the program is NULL");
  *program = nullptr;
  if (!manifest)
    return fail(message, n, "the manifest is NULL");
  std::string why;
  std::unique_ptr<Program> made = readManifest(manifest, /*isCpu=*/true, why);
  if (!made)
    return fail(message, n, why);
  try {
    why = findCode(*made);
    if (why.empty())
      *program = new moa_program{std::move(made)};
  } catch (const std::bad_alloc &) {
    why = "there is too little memory";
  }
  if (why.empty())
    return MOA_OK;
  if (made && made->file)
    dlclose(made->file);
  return fail(message, n, why);
}

extern "C" {

int32_t moa_runtime_version(void) { return MOA_RUNTIME_VERSION; }

int32_t moa_program_load_gpu(const void *image, size_t bytes, const char *manifest, moa_program **program,
                             char *message, size_t n) {
  clear({message, n});
  if (!program)
    return fail(message, n, "the place of the program is NULL");
  *program = nullptr;
  if (!image || !bytes || !manifest)
    return fail(message, n, image && bytes ? "the manifest is NULL" : "the image is empty");
  std::string why;
  std::unique_ptr<Program> made = readManifest(manifest, /*isCpu=*/false, why);
  if (!made)
    return fail(message, n, why);
  try {
    const char *begin = static_cast<const char *>(image);
    made->image.assign(begin, begin + bytes);
    made->image.push_back(0); // PTX ends with a zero
    *program = new moa_program{std::move(made)};
  } catch (const std::bad_alloc &) {
    return fail(message, n, "there is too little memory");
  }
  return MOA_OK;
}

int32_t moa_program_load_cpu(const char *library, const char *manifest, moa_program **program, char *message,
                             size_t n) {
  if (!library) {
    if (program)
      *program = nullptr;
    return fail(message, n, "the path of the library is NULL");
  }
  return loadCpu(manifest, program, message, n, [&](Program &made) { return cpu::load(made, library); });
}

int32_t moa_program_load_functions(moa_finder find, void *context, const char *manifest, moa_program **program,
                                   char *message, size_t n) {
  if (!find) {
    if (program)
      *program = nullptr;
    return fail(message, n, "the finder of the functions is NULL");
  }
  return loadCpu(manifest, program, message, n,
                 [&](Program &made) { return cpu::findEntryPoints(made, find, context, "the code"); });
}

void moa_program_destroy(moa_program *program) {
  if (!program)
    return;
  if (!program->program->isCpu)
    gpu::unload(*program->program);
  else if (program->program->file)
    dlclose(program->program->file);
  delete program;
}

size_t moa_program_count(const moa_program *program) { return program->program->functions.size(); }

const moa_function *moa_program_function(const moa_program *program, size_t number) {
  const auto &functions = program->program->functions;
  return number < functions.size() ? reinterpret_cast<const moa_function *>(functions[number].get()) : nullptr;
}

const char *moa_program_name(const moa_program *program, size_t number) {
  const auto &functions = program->program->functions;
  return number < functions.size() ? functions[number]->name.c_str() : nullptr;
}

const moa_function *moa_program_find(const moa_program *program, const char *name) {
  for (const auto &function : program->program->functions)
    if (name && function->name == name)
      return reinterpret_cast<const moa_function *>(function.get());
  return nullptr;
}

size_t moa_function_parameters(const moa_function *function) { return get(function).parameters.size(); }

int32_t moa_function_parameter(const moa_function *function, size_t number, moa_argument *parameter) {
  const Function &f = get(function);
  if (number >= f.parameters.size())
    return MOA_RANK;
  const Parameter &p = f.parameters[number];
  std::memset(parameter, 0, sizeof *parameter);
  parameter->name = p.name.c_str();
  parameter->type = p.type->name;
  parameter->shape = p.shape.c_str();
  parameter->role = p.role;
  parameter->rank = int32_t(p.extents.size());
  parameter->dtype.code = uint8_t(p.type->code);
  parameter->dtype.bits = uint8_t(p.type->bits);
  parameter->dtype.lanes = 1;
  return MOA_OK;
}

int32_t moa_function_shapes(const moa_function *function, const DLTensor *const *arrays, int64_t *const *shapes,
                            char *message, size_t n) {
  Message m{message, n};
  clear(m);
  return findShapes(get(function), m, arrays, shapes);
}

int32_t moa_function_check(const moa_function *function, const DLTensor *const *arrays, const moa_value *scalars,
                           char *message, size_t n) {
  const Function &f = get(function);
  Arguments given{arrays, scalars, nullptr, 0, nullptr};
  return (f.program->isCpu ? cpu::check : gpu::check)(f, {message, n}, given);
}

int64_t moa_function_workspace(const moa_function *function, const DLTensor *const *arrays, const moa_value *scalars,
                               char *message, size_t n) {
  const Function &f = get(function);
  Arguments given{arrays, scalars, nullptr, 0, nullptr};
  return (f.program->isCpu ? cpu::workspace : gpu::workspace)(f, {message, n}, given);
}

int32_t moa_function_call(const moa_function *function, const DLTensor *const *arrays, const moa_value *scalars,
                          void *workspace, size_t bytes, void *stream, char *message, size_t n) {
  const Function &f = get(function);
  Arguments given{arrays, scalars, workspace, bytes, stream};
  return (f.program->isCpu ? cpu::call : gpu::call)(f, {message, n}, given);
}

int32_t moa_function_has_shown(const moa_function *function) { return get(function).hasShown; }

int32_t moa_function_shown(const moa_function *function, const DLTensor *const *arrays, const moa_value *scalars,
                           void *workspace, size_t bytes, void *stream, char *message, size_t n) {
  const Function &f = get(function);
  Arguments given{arrays, scalars, workspace, bytes, stream};
  return (f.program->isCpu ? cpu::shown : gpu::shown)(f, {message, n}, given);
}

int32_t moa_function_prepare(const moa_function *function, int32_t device, char *message, size_t n) {
  const Function &f = get(function);
  return (f.program->isCpu ? cpu::prepare : gpu::prepare)(f, {message, n}, device);
}

} // extern "C"
