//===- Header.cpp - the C header of emitted kernels -----------------------===//

#include "lib/Target/Header.h"
#include "lib/Target/CText.h"
#include "lib/Target/EmittedText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace moa {

static const char *const kPreamble =
    R"(#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

)";

static const char *const kNotShownText =
    R"( *
 * MOA_NOT_SHOWN   of NAME: every result was computed, as written, but of one with
 *                 a tolerance (`within`) nothing shows that it is within that.
)";

static const char *const kShown =
    R"( *
 * NAME_shown      of a call with the same arguments, workspace and stream, waits
 *                 for it and returns
 *                   0 where a bound on the errors of each result with a tolerance
 *                     for every input (`within`, not `sampled`) is at most that;
 *                   MOA_NOT_SHOWN where that is not so, or nothing is known, with
 *                     result, bound, its place and how many there are
 *                     in message (at most n bytes, or NULL);
 *                   another code as NAME does.
 *                 It writes to the workspace.
)";
static const char *const kShownOnCpu =
    R"( *                 Call it after NAME, whose bounds it compares.
)";

static const char *const kSampled =
    R"( *
 * `sampled`: where a kernel spends accuracy, it does so for an index of the leading
 * axes, a head, whose error is below the tolerance by what 64 of its rows say that
 * are computed both ways, with a confidence of 95 %; others are as they are written.
)";

static const char *const kTVMFFI =
    R"( *
 * __tvm_ffi_NAME  NAME for tvm-ffi, with its tagged values: the arguments of NAME in
 *                 order, then optionally the workspace, a tensor of uint8. It returns
 *                 0 or MOA_NOT_SHOWN and raises an error for any other code.
 *                 __tvm_ffi_NAME_workspace returns the bytes of workspace. Both need
 *                 symbols of libtvm_ffi.
)";

static const char *const kLicence =
    R"( *
 * This file and the code it describes were written by a compiler; they carry no
 * licence obligation.
 */
)";

/// Returns a parameter's name, changed if it is reserved in C or C++ or used by the header.
static std::string getCName(llvm::StringRef name) {
  static const llvm::StringSet<> ours = {"bytes", "device", "message", "n", "stream", "workspace"};
  bool taken = isReservedWord(name) || ours.contains(name);
  return taken ? (name + "_").str() : name.str();
}

std::string printHeader(llvm::ArrayRef<KernelSignature> kernels, llvm::StringRef guard, llvm::StringRef machines,
                        llvm::StringRef notes, Binding binding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Kernels compiled from a specification by MoA for " << machines << ".\n *\n";
  for (const KernelSignature &kernel : kernels)
    os << " *   kernel " << kernel.getText() << "\n";
  os << notes;
  auto anyWithin = [&](bool isSampled) {
    return llvm::any_of(kernels, [&](const KernelSignature &kernel) {
      return llvm::any_of(kernel.parameters, [&](const Parameter &parameter) {
        return parameter.within && parameter.within->isSampled == isSampled;
      });
    });
  };
  bool isBounded = anyWithin(false), isSampled = anyWithin(true);
  if (isBounded)
    os << kNotShownText;
  if (llvm::any_of(kernels, [](const KernelSignature &kernel) { return kernel.hasShown; }))
    os << kShown << (machines == "CPUs" ? kShownOnCpu : "");
  os << (isSampled ? kSampled : "") << (binding == Binding::TVMFFI ? kTVMFFI : "") << kLicence;
  os << "#ifndef " << guard << "\n#define " << guard << "\n\n" << kPreamble << getEntryDeclarations();
  os << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const KernelSignature &kernel : kernels) {
    std::vector<std::string> own;
    for (const Parameter *parameter : kernel.getCallingOrder())
      own.push_back(declareParameter(*parameter, getCName(parameter->name)));
    auto declare = [&](const std::string &head, std::vector<std::string> parameters,
                       std::initializer_list<const char *> more) {
      parameters.insert(parameters.end(), more.begin(), more.end());
      os << printDeclaration(head, parameters, ";", 80) << "\n";
    };
    os << "\n/* kernel " << kernel.name << "\n";
    for (const Parameter &parameter : kernel.parameters)
      os << " *   " << (parameter.isOutput ? "out " : "in  ") << parameter.getText() << "\n";
    for (const Constraint &constraint : kernel.constraints)
      os << " *   require " << constraint.text << "\n";
    os << " */\n";
    declare("int32_t " + kernel.name, own, {"void *workspace", "size_t bytes", "void *stream"});
    declare("int64_t " + kernel.name + "_workspace", own, {});
    declare("int32_t " + kernel.name + "_check", own, {"char *message", "size_t n"});
    if (kernel.hasShown)
      declare("int32_t " + kernel.name + "_shown", own,
              {"void *workspace", "size_t bytes", "void *stream", "char *message", "size_t n"});
    declare("int32_t " + kernel.name + "_prepare", {}, {"int32_t device"});
  }
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return text;
}

} // namespace moa
