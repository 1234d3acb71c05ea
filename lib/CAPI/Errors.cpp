//===- Errors.cpp - errors, diagnostics and texts in C --------------------===//

#include "lib/CAPI/Handles.h"

using namespace moa;
using namespace moa::capi;

/// The error if there is no memory for another one. It is never destroyed.
static moa_error *getOutOfMemory() {
  static moa_error error{MOA_STATUS_MEMORY, "memory ran out", {}}; // short enough to need no allocation
  return &error;
}

void capi::setError(moa_error **error, moa_status status, const char *message,
                    const std::vector<Diagnostic> &diagnostics) noexcept {
  if (!error)
    return;
  try {
    *error = new moa_error{status, message, diagnostics};
  } catch (...) {
    *error = getOutOfMemory();
  }
}

//===----------------------------------------------------------------------===//
// Version
//===----------------------------------------------------------------------===//

int32_t moa_api_version(void) { return MOA_API_VERSION; }
const char *moa_version_text(void) { return MOA_VERSION_TEXT; }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

moa_status moa_error_code(const moa_error *error) { return error ? error->status : MOA_STATUS_OK; }
const char *moa_error_message(const moa_error *error) { return error ? error->message.c_str() : nullptr; }
size_t moa_error_diagnostic_count(const moa_error *error) { return error ? error->diagnostics.size() : 0; }
const moa_diagnostic *moa_error_diagnostic(const moa_error *error, size_t index) {
  return error ? getElement(error->diagnostics, index) : nullptr;
}
void moa_error_destroy(moa_error *error) {
  if (error != getOutOfMemory())
    delete error;
}

moa_severity moa_diagnostic_severity(const moa_diagnostic *diagnostic) {
  return diagnostic ? static_cast<moa_severity>(unwrap(diagnostic)->severity) : MOA_SEVERITY_ERROR;
}
const char *moa_diagnostic_file(const moa_diagnostic *diagnostic) {
  return diagnostic ? unwrap(diagnostic)->file.c_str() : nullptr;
}
uint32_t moa_diagnostic_line(const moa_diagnostic *diagnostic) { return diagnostic ? unwrap(diagnostic)->line : 0; }
uint32_t moa_diagnostic_column(const moa_diagnostic *diagnostic) { return diagnostic ? unwrap(diagnostic)->column : 0; }
const char *moa_diagnostic_message(const moa_diagnostic *diagnostic) {
  return diagnostic ? unwrap(diagnostic)->message.c_str() : nullptr;
}
size_t moa_diagnostic_note_count(const moa_diagnostic *diagnostic) {
  return diagnostic ? unwrap(diagnostic)->notes.size() : 0;
}
const moa_diagnostic *moa_diagnostic_note(const moa_diagnostic *diagnostic, size_t index) {
  return diagnostic ? getElement(unwrap(diagnostic)->notes, index) : nullptr;
}

static_assert(int(Severity::Error) == MOA_SEVERITY_ERROR && int(Severity::Warning) == MOA_SEVERITY_WARNING &&
              int(Severity::Remark) == MOA_SEVERITY_REMARK && int(Severity::Note) == MOA_SEVERITY_NOTE);

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

const char *moa_text_data(const moa_text *text) { return text ? text->bytes.c_str() : nullptr; }
size_t moa_text_size(const moa_text *text) { return text ? text->bytes.size() : 0; }
void moa_text_destroy(moa_text *text) { delete text; }
