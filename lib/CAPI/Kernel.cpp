//===- Kernel.cpp - interfaces and calls of kernels in C ------------------===//

#include "lib/CAPI/Handles.h"
#include <algorithm>
#include <cstring>

using namespace moa;
using namespace moa::capi;

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

size_t moa_compilation_kernel_count(const moa_compilation *compilation) {
  return compilation ? compilation->unit.kernels().size() : 0;
}
const moa_kernel_info *moa_compilation_kernel(const moa_compilation *compilation, size_t index) {
  return compilation ? getElement(compilation->unit.kernels(), index) : nullptr;
}

const char *moa_kernel_info_name(const moa_kernel_info *info) { return info ? unwrap(info)->name.c_str() : nullptr; }
const char *moa_kernel_info_text(const moa_kernel_info *info) { return info ? unwrap(info)->text.c_str() : nullptr; }
size_t moa_kernel_info_symbol_count(const moa_kernel_info *info) { return info ? unwrap(info)->symbols.size() : 0; }
const char *moa_kernel_info_symbol(const moa_kernel_info *info, size_t index) {
  return info ? getElement(unwrap(info)->symbols, index) : nullptr;
}
size_t moa_kernel_info_constraint_count(const moa_kernel_info *info) {
  return info ? unwrap(info)->constraints.size() : 0;
}
const char *moa_kernel_info_constraint(const moa_kernel_info *info, size_t index) {
  return info ? getElement(unwrap(info)->constraints, index) : nullptr;
}
size_t moa_kernel_info_parameter_count(const moa_kernel_info *info) {
  return info ? unwrap(info)->parameters.size() : 0;
}
const moa_parameter *moa_kernel_info_parameter(const moa_kernel_info *info, size_t index) {
  return info ? getElement(unwrap(info)->parameters, index) : nullptr;
}

static size_t countScalars(const KernelInfo &info) {
  return std::count_if(info.parameters.begin(), info.parameters.end(),
                       [](const ParameterInfo &parameter) { return parameter.isScalar(); });
}
static size_t countArrays(const KernelInfo &info) { return info.parameters.size() - countScalars(info); }

size_t moa_kernel_info_array_count(const moa_kernel_info *info) { return info ? countArrays(*unwrap(info)) : 0; }
size_t moa_kernel_info_scalar_count(const moa_kernel_info *info) { return info ? countScalars(*unwrap(info)) : 0; }

const char *moa_parameter_name(const moa_parameter *parameter) {
  return parameter ? unwrap(parameter)->name.c_str() : nullptr;
}
const char *moa_parameter_element_type(const moa_parameter *parameter) {
  return parameter ? unwrap(parameter)->elementType.c_str() : nullptr;
}
size_t moa_parameter_extent_count(const moa_parameter *parameter) {
  return parameter ? unwrap(parameter)->extents.size() : 0;
}
const char *moa_parameter_extent(const moa_parameter *parameter, size_t axis) {
  return parameter ? getElement(unwrap(parameter)->extents, axis) : nullptr;
}
const char *moa_parameter_constant(const moa_parameter *parameter, size_t axis) {
  if (!parameter || axis >= unwrap(parameter)->extents.size())
    return nullptr;
  return orEmpty(getElement(unwrap(parameter)->constants, axis)); // IR has no names
}
const char *moa_parameter_range(const moa_parameter *parameter) {
  return parameter ? unwrap(parameter)->range.c_str() : nullptr;
}
bool moa_parameter_is_output(const moa_parameter *parameter) { return parameter && unwrap(parameter)->isOutput; }
bool moa_parameter_is_scalar(const moa_parameter *parameter) { return parameter && unwrap(parameter)->isScalar(); }
bool moa_parameter_tolerance(const moa_parameter *parameter, moa_tolerance *tolerance) {
  if (!parameter || !unwrap(parameter)->within)
    return false;
  const AllowedError &allowed = *unwrap(parameter)->within;
  if (tolerance)
    *tolerance = {allowed.epsilon, allowed.isRelative, allowed.isSampled};
  return true;
}
const char *moa_parameter_decision_of(const moa_parameter *parameter) {
  return parameter ? unwrap(parameter)->decisionOf.c_str() : nullptr;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

moa_scalar moa_scalar_real(double value) {
  moa_scalar scalar{MOA_SCALAR_REAL, {}};
  scalar.value.real = value;
  return scalar;
}

moa_scalar moa_scalar_integer(int64_t value) {
  moa_scalar scalar{MOA_SCALAR_INTEGER, {}};
  scalar.value.integer = value;
  return scalar;
}

namespace {

/// The caller's buffer for the reason of a code.
class Message {
public:
  Message(char *text, size_t size) : text(text), size(size) { set(""); }

  /// Writes a text, cut to fit. A character is not cut in two.
  void set(const char *reason) const {
    if (!text || !size)
      return;
    size_t length = std::min(std::strlen(reason), size - 1);
    if (reason[length])
      while (length && (static_cast<unsigned char>(reason[length]) & 0xC0) == 0x80)
        --length;
    std::memcpy(text, reason, length);
    text[length] = 0;
  }
  int32_t refuse(int32_t code, const std::string &reason) const {
    set(reason.c_str());
    return code;
  }

private:
  char *text;
  size_t size;
};

/// The arguments of a call, as the C++ interface takes them.
struct Arguments {
  std::vector<const DLTensor *> arrays;
  std::vector<Scalar> scalars;
};

/// Memory of a call, freed at its end.
class Workspace {
public:
  explicit Workspace(size_t bytes) : memory(::operator new(bytes, kAlignment, std::nothrow)) {}
  ~Workspace() { ::operator delete(memory, kAlignment, std::nothrow); }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  void *get() const { return memory; }

private:
  static constexpr std::align_val_t kAlignment{64};
  void *memory;
};

} // namespace

static int32_t refuseCount(const Message &message, const char *kind, size_t expected, size_t given) {
  return message.refuse(MOA_NULL_DESCRIPTOR,
                        "expects " + std::to_string(expected) + " " + kind + ", but got " + std::to_string(given));
}

/// Reads the arguments of a call. Returns a code.
static int32_t read(const moa_kernel *kernel, const DLTensor *const *arrays, size_t arrayCount,
                    const moa_scalar *scalars, size_t scalarCount, const Message &message, Arguments &arguments) {
  if (!kernel)
    return message.refuse(MOA_NULL_DESCRIPTOR, "the kernel is NULL");
  const KernelInfo &info = kernel->kernel.info();
  if (arrayCount != countArrays(info))
    return refuseCount(message, "arrays", countArrays(info), arrayCount);
  if (scalarCount != countScalars(info))
    return refuseCount(message, "scalars", countScalars(info), scalarCount);
  if (arrayCount && !arrays)
    return message.refuse(MOA_NULL_DESCRIPTOR, "the list of arrays is NULL");
  if (scalarCount && !scalars)
    return message.refuse(MOA_NULL_DESCRIPTOR, "the list of scalars is NULL");
  arguments.arrays.assign(arrays, arrays + arrayCount);
  for (size_t k = 0; k < scalarCount; ++k) {
    const moa_scalar &scalar = scalars[k];
    if (scalar.kind != MOA_SCALAR_REAL && scalar.kind != MOA_SCALAR_INTEGER)
      return message.refuse(MOA_DTYPE,
                            "scalar " + std::to_string(k) + " has the unknown kind " + std::to_string(scalar.kind));
    arguments.scalars.push_back(scalar.kind == MOA_SCALAR_REAL ? Scalar(scalar.value.real)
                                                               : Scalar(scalar.value.integer));
  }
  return MOA_OK;
}

/// Runs `work` on the arguments of a call, or returns the code of the reason why not.
template <typename Function>
static int64_t call(const moa_kernel *kernel, const DLTensor *const *arrays, size_t arrayCount,
                    const moa_scalar *scalars, size_t scalarCount, char *text, size_t size, Function work) noexcept {
  Message message(text, size);
  try {
    Arguments arguments;
    if (int32_t code = read(kernel, arrays, arrayCount, scalars, scalarCount, message, arguments))
      return -code;
    return work(kernel->kernel, arguments, message);
  } catch (...) { // the C++ interface throws only if memory runs out
    message.set("memory ran out");
    return -MOA_WORKSPACE;
  }
}

/// Returns the bytes of workspace, or minus a code with its reason.
static int64_t findWorkspace(const Kernel &kernel, const Arguments &arguments, const Message &message) {
  int64_t bytes = kernel.workspace(arguments.arrays, arguments.scalars);
  if (bytes < 0) {
    std::string reason;
    if (!kernel.check(arguments.arrays, &reason))
      reason = "the size of the workspace has no 64 bits";
    message.set(reason.c_str());
  }
  return bytes;
}

/// Checks the tolerances of a run. Returns a code with its reason.
static int32_t findShown(const Kernel &kernel, const Arguments &arguments, void *workspace, size_t bytes,
                         const Message &message) {
  std::string reason;
  int32_t code = kernel.shown(arguments.arrays, arguments.scalars, workspace, bytes, &reason);
  return code ? message.refuse(code, reason) : code;
}

/// Runs a kernel. Returns a code with its reason.
static int32_t run(const Kernel &kernel, const Arguments &arguments, void *workspace, size_t bytes,
                   const Message &message) {
  int32_t code = kernel.run(arguments.arrays, arguments.scalars, workspace, bytes);
  if (code == MOA_NOT_SHOWN)
    return message.refuse(code, "a result may exceed its tolerance");
  std::string reason;
  if (!code || kernel.check(arguments.arrays, &reason))
    return message.refuse(code, reason);
  int64_t needed = kernel.workspace(arguments.arrays, arguments.scalars);
  return message.refuse(code, "the workspace is NULL or has less than " + std::to_string(needed) + " bytes");
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void moa_kernel_destroy(moa_kernel *kernel) { delete kernel; }

const moa_kernel_info *moa_kernel_get_info(const moa_kernel *kernel) {
  return kernel ? wrap(&kernel->kernel.info()) : nullptr;
}

int32_t moa_kernel_call(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                        const moa_scalar *scalars, size_t scalar_count, char *message, size_t size) {
  auto work = [](const Kernel &called, const Arguments &arguments, const Message &reason) -> int64_t {
    int64_t bytes = findWorkspace(called, arguments, reason);
    if (bytes < 0)
      return bytes;
    if (!bytes) // tolerance checks need the workspace
      return -run(called, arguments, nullptr, 0, reason);
    Workspace workspace(bytes);
    if (!workspace.get())
      return -reason.refuse(MOA_WORKSPACE, "there is no memory for a workspace of " + std::to_string(bytes) + " bytes");
    int32_t code = run(called, arguments, workspace.get(), bytes, reason);
    if (!code || code == MOA_NOT_SHOWN)
      code = findShown(called, arguments, workspace.get(), bytes, reason);
    return -code;
  };
  return int32_t(-call(kernel, arrays, array_count, scalars, scalar_count, message, size, work));
}

int32_t moa_kernel_check(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                         const moa_scalar *scalars, size_t scalar_count, char *message, size_t size) {
  auto work = [](const Kernel &called, const Arguments &arguments, const Message &reason) -> int64_t {
    std::string text;
    return -reason.refuse(called.check(arguments.arrays, &text), text);
  };
  return int32_t(-call(kernel, arrays, array_count, scalars, scalar_count, message, size, work));
}

int64_t moa_kernel_workspace(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                             const moa_scalar *scalars, size_t scalar_count, char *message, size_t size) {
  return call(kernel, arrays, array_count, scalars, scalar_count, message, size, findWorkspace);
}

int32_t moa_kernel_run(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                       const moa_scalar *scalars, size_t scalar_count, void *workspace, size_t bytes, char *message,
                       size_t size) {
  auto work = [&](const Kernel &called, const Arguments &arguments, const Message &reason) -> int64_t {
    return -run(called, arguments, workspace, bytes, reason);
  };
  return int32_t(-call(kernel, arrays, array_count, scalars, scalar_count, message, size, work));
}

int32_t moa_kernel_shown(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                         const moa_scalar *scalars, size_t scalar_count, void *workspace, size_t bytes, char *message,
                         size_t size) {
  auto work = [&](const Kernel &called, const Arguments &arguments, const Message &reason) -> int64_t {
    return -findShown(called, arguments, workspace, bytes, reason);
  };
  return int32_t(-call(kernel, arrays, array_count, scalars, scalar_count, message, size, work));
}
