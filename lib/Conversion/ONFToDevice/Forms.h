//===- Forms.h - the forms of GPU nests -------------------------*- C++ -*-===//
//
// A form is a way to lower a nest to a GPU kernel: tiles, warp products, runs of columns, lanes
// along rows, one thread per row. Each form has a file of its own, and a line in Forms.def.
//
// `onf-find-forms` matches all forms of a nest once and stores them in the attribute `moa.forms`.
// `onf-lift-gpu` chooses a schedule among the stored ones. `convert-onf-to-device` lowers the nest
// in the chosen form. docs/AddingAForm.md adds a form step by step.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_FORMS_H
#define MOA_CONVERSION_ONFTODEVICE_FORMS_H

#include "dialects/Device/IR/Device.h"
#include "dialects/ONF/IR/ONFForms.h"

namespace moa {

/// Why something does not match.
struct Reason {
  std::string text;
  explicit Reason(const llvm::Twine &text) : text(text.str()) {}
};

/// A value, or the reason why there is none. For example:
///
///   Match<int64_t> half(int64_t x) {
///     if (x % 2 != 0)
///       return Reason(llvm::Twine(x) + " is odd");
///     return x / 2;
///   }
template <typename T> class Match {
public:
  template <typename U, std::enable_if_t<std::is_convertible_v<U, T>, int> = 0>
  Match(U &&value) : value(std::forward<U>(value)) {}
  Match(Reason reason) : reason(std::move(reason.text)) {}
  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  T *operator->() { return &*value; }
  const std::string &why() const { return reason; }

private:
  std::optional<T> value;
  std::string reason;
};

/// A nest as one form sees it.
class FormMatch {
public:
  virtual ~FormMatch() = default;
  /// Returns the data of `#onf.form`, which schedules read.
  virtual mlir::DictionaryAttr describe() = 0;
  /// Lowers the nest, which is bound to the form, to kernel `number` of the program. Fails with a
  /// diagnostic.
  virtual mlir::LogicalResult lower(device::ProgramOp program, unsigned number) = 0;
};

struct KernelForm {
  llvm::StringLiteral name;
  /// The factors of a nest in this form, for messages: "is bound to …, but cannot run so".
  llvm::StringLiteral factors;
  Match<std::unique_ptr<FormMatch>> (*match)(onf::ForOp nest);
  /// True if the form is only for nests to which no earlier form applies.
  bool isForOthers = false;
};

namespace forms {
#define MOA_FORM(NAME) extern const KernelForm NAME;
#include "lib/Conversion/ONFToDevice/Forms.def"
} // namespace forms

/// Returns whether a nest can have a form. Its schedule may still choose another one.
bool applies(const KernelForm &form, onf::ForOp nest);
/// Returns the form with this name, or null.
const KernelForm *getForm(llvm::StringRef name);
/// Matches all forms. Returns a list of `#onf.form`, in order of preference.
mlir::ArrayAttr findForms(onf::ForOp nest);
/// Stores the forms of the kernel's nests in `moa.forms`.
void setForms(onf::KernelOp kernel);

} // namespace moa

#endif // MOA_CONVERSION_ONFTODEVICE_FORMS_H
