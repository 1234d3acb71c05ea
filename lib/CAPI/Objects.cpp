//===- Objects.cpp - objects in this process, in C ------------------------===//

#include "lib/CAPI/Handles.h"
#include "lib/Target/CPU/Codegen.h"

using namespace moa;
using namespace moa::capi;

struct moa_code {
  std::unique_ptr<cpu::LoadedObject> object;
};

/// Returns the value. If there is none, stores the error and returns a null value.
template <typename T> static T take(llvm::Expected<T> value, moa_error **error) {
  if (value)
    return std::move(*value);
  setError(error, MOA_STATUS_QUERY, llvm::toString(value.takeError()).c_str());
  return nullptr;
}

moa_code *moa_load_object(const void *object, size_t bytes, moa_error **error) {
  return guarded(error, [&]() -> moa_code * {
    if (!object || !bytes) {
      setError(error, MOA_STATUS_ARGUMENT, object ? "the object is empty" : "the object is NULL");
      return nullptr;
    }
    auto loaded = take(cpu::LoadedObject::load(llvm::ArrayRef(static_cast<const char *>(object), bytes)), error);
    return loaded ? new moa_code{std::move(loaded)} : nullptr;
  });
}

void *moa_code_function(const moa_code *code, const char *name, moa_error **error) {
  return guarded(error, [&]() -> void * {
    if (!code || !name) {
      setError(error, MOA_STATUS_ARGUMENT, code ? "the name of the function is NULL" : "the code is NULL");
      return nullptr;
    }
    return take(code->object->lookup(name), error);
  });
}

void moa_code_destroy(moa_code *code) { delete code; }
