//===- Handles.h - the objects of the C interface ---------------*- C++ -*-===//
//
// The opaque types of moa-c/moa.h, and the guards of its functions. This directory is compiled with
// exceptions, because no exception may reach a caller in C.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CAPI_HANDLES_H
#define MOA_CAPI_HANDLES_H

#include "moa-c/moa.h"
#include "moa/Compiler.h"
#include <new>
#include <utility>

struct moa_options {
  moa::CompilerOptions options;
};

struct moa_text {
  std::string bytes;
};

struct moa_error {
  moa_status status = MOA_STATUS_INTERNAL;
  std::string message;
  std::vector<moa::Diagnostic> diagnostics;
};

struct moa_compilation {
  moa::Compilation unit;
  /// Set if an exception left the compilation: its state is unknown.
  bool isBroken = false;
  /// All parts, after the first query of one.
  std::optional<moa::PTXFiles> ptx;
};

struct moa_kernel {
  moa::Kernel kernel;
};

namespace moa::capi {

/// Pointers to diagnostics, interfaces and parameters point to the objects of the C++ interface.
inline const moa_diagnostic *wrap(const Diagnostic *diagnostic) {
  return reinterpret_cast<const moa_diagnostic *>(diagnostic);
}
inline const moa_kernel_info *wrap(const KernelInfo *info) { return reinterpret_cast<const moa_kernel_info *>(info); }
inline const moa_parameter *wrap(const ParameterInfo *parameter) {
  return reinterpret_cast<const moa_parameter *>(parameter);
}
inline const Diagnostic *unwrap(const moa_diagnostic *diagnostic) {
  return reinterpret_cast<const Diagnostic *>(diagnostic);
}
inline const KernelInfo *unwrap(const moa_kernel_info *info) { return reinterpret_cast<const KernelInfo *>(info); }
inline const ParameterInfo *unwrap(const moa_parameter *parameter) {
  return reinterpret_cast<const ParameterInfo *>(parameter);
}

/// Returns the element of a list, wrapped, or null.
template <typename T> auto getElement(const std::vector<T> &list, size_t index) {
  return index < list.size() ? wrap(&list[index]) : nullptr;
}
inline const char *getElement(const std::vector<std::string> &list, size_t index) {
  return index < list.size() ? list[index].c_str() : nullptr;
}

/// Returns a text, or "" for null.
inline const char *orEmpty(const char *text) { return text ? text : ""; }

/// Stores an error if the caller asks for it. If memory runs out, the error is a constant one.
void setError(moa_error **error, moa_status status, const char *message,
              const std::vector<Diagnostic> &diagnostics = {}) noexcept;

/// Runs `work`. If it throws, stores an error and returns null.
template <typename Function> auto guarded(moa_error **error, Function work) noexcept -> decltype(work()) {
  if (error)
    *error = nullptr;
  try {
    return work();
  } catch (const std::bad_alloc &) {
    setError(error, MOA_STATUS_MEMORY, "memory ran out");
  } catch (...) {
    setError(error, MOA_STATUS_INTERNAL, "the compiler failed by an exception");
  }
  return nullptr;
}

} // namespace moa::capi

#endif // MOA_CAPI_HANDLES_H
