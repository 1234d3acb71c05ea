//===- Binding.cpp - entry points for other calling conventions -----------===//

#include "lib/Target/Binding.h"
#include "lib/Target/CText.h"
#include "lib/Target/EmittedText.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {

std::optional<Binding> parseBinding(llvm::StringRef name) {
  if (name.empty())
    return Binding::None;
  return name == "tvm-ffi" ? std::optional(Binding::TVMFFI) : std::nullopt;
}

static BindingParameter describe(const Parameter &parameter) {
  const std::string &name = parameter.name;
  unsigned bits = getBits(parameter.type);
  if (!parameter.isScalar())
    return {name, BindingParameter::Tensor};
  switch (parameter.type) {
  case ElementType::F64:
    return {name, BindingParameter::F64};
  case ElementType::F32:
    return {name, BindingParameter::F32};
  case ElementType::F16:
    return {name, BindingParameter::F16};
  case ElementType::BF16:
    return {name, BindingParameter::BF16};
  case ElementType::I1:
    return {name, BindingParameter::Bool, 0, 1};
  case ElementType::U8:
  case ElementType::U16:
  case ElementType::U32:
  case ElementType::F8E4M3:
    return {name, BindingParameter::Int, 0, (int64_t(1) << bits) - 1};
  default:
    return {name, BindingParameter::Int, llvm::minIntN(bits), llvm::maxIntN(bits)};
  }
}

std::vector<BindingParameter> getBindingParameters(const KernelSignature &signature) {
  std::vector<BindingParameter> list;
  for (const Parameter *parameter : signature.getCallingOrder())
    list.push_back(describe(*parameter));
  return list;
}

bool isBindingName(llvm::StringRef name) {
  return name.starts_with("moa_") || name.starts_with("TVMFFI") || name.starts_with("kTVMFFI") ||
         name.starts_with("va_");
}

/// Follows BindingCalls.c on a GPU.
static const char *const kStream = R"(
/* Returns the stream that the environment has for the device of the arrays. */
MOA_FFI void *moa_ffi_stream(const moa_ffi_call *c) { return TVMFFIEnvGetStream(2, moa_ffi_device(c)); }

/* The entry points of a kernel. */
#ifdef __cplusplus
#define MOA_FFI_ENTRY extern "C" int
#else
#define MOA_FFI_ENTRY int
#endif
)";

/// Returns the expression that an entry point takes for an argument.
static std::string getArgument(const Parameter &parameter, size_t place) {
  std::string value = std::string("(moa_a") + (place ? " + " + std::to_string(place) : "") + ")";
  if (!parameter.isScalar())
    return "moa_ffi_tensor" + value;
  std::string type = getScalarCType(parameter.type).str();
  switch (parameter.type) {
  case ElementType::F64:
    return "moa_ffi_real" + value;
  case ElementType::F32:
  case ElementType::BF16:
  case ElementType::F16:
    return "(float)moa_ffi_real" + value;
  default:
    return "(" + type + ")moa_ffi_int" + value;
  }
}

static std::string printKernel(const KernelSignature &signature) {
  static const char *const kinds[] = {"TENSOR", "BOOL", "INT", "F64", "F32", "F16", "BF16"};
  const std::string &name = signature.name;
  std::string text = "\nstatic const moa_ffi_parameter moa_ffi_parameters_of_" + name + "[] = {\n";
  auto number = [](int64_t value) { return value == INT64_MIN ? "INT64_MIN" : std::to_string(value); };
  for (const BindingParameter &parameter : getBindingParameters(signature))
    text += "    {" + quote(parameter.name) + ", MOA_FFI_" + kinds[parameter.kind] + ", " + number(parameter.low) +
            ", " + number(parameter.high) + "},\n";
  text += "};\nstatic int64_t moa_ffi_enter_" + name + "(moa_ffi_call *moa_c, int moa_entry) {\n" +
          "  const TVMFFIAny *const moa_a = moa_c->args;\n";
  std::vector<std::string> arguments;
  std::vector<const Parameter *> order = signature.getCallingOrder();
  for (size_t place = 0; place < order.size(); ++place)
    arguments.push_back(getArgument(*order[place], place));
  auto addCall = [&](const char *entry, const char *suffix, std::initializer_list<const char *> more) {
    std::vector<std::string> list = arguments;
    list.insert(list.end(), more.begin(), more.end());
    text += std::string("  if (moa_entry == ") + entry + ")\n" +
            printDeclaration("    return " + name + suffix, list, ";", 110) + "\n";
  };
  addCall("MOA_FFI_WORKSPACE", "_workspace", {});
  addCall("MOA_FFI_CHECK", "_check", {"moa_c->text", "MOA_FFI_TEXT"});
  const char *workspace = "moa_c->workspace", *bytes = "(size_t)moa_c->bytes", *stream = "moa_ffi_stream(moa_c)";
  bool hasShown = signature.hasInputDependentTolerance();
  if (hasShown)
    addCall("MOA_FFI_SHOWN", "_shown", {workspace, bytes, stream, "moa_c->text", "MOA_FFI_TEXT"});
  std::vector<std::string> list = arguments;
  list.insert(list.end(), {workspace, bytes, stream});
  text += printDeclaration("  return " + name, list, ";", 110) + "\n}\n";
  text += "static const moa_ffi_kernel moa_ffi_of_" + name + " = {\n    " + quote(name) + ", " +
          std::to_string(order.size()) + ", moa_ffi_parameters_of_" + name + ", moa_ffi_enter_" + name +
          ", 2, NULL};\n";
  auto addEntry = [&](const char *suffix, const char *function) {
    text += "MOA_FFI_ENTRY __tvm_ffi_" + name + suffix + "(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);\n";
    text +=
        printDeclaration("MOA_FFI_ENTRY __tvm_ffi_" + name + suffix,
                         {"void *self", "const TVMFFIAny *args", "int32_t num_args", "TVMFFIAny *result"}, " {", 110) +
        "\n  (void)self;\n  return " + function + "(&moa_ffi_of_" + name + ", args, num_args, result);\n}\n";
  };
  addEntry("", "moa_ffi_run");
  addEntry("_workspace", "moa_ffi_size");
  if (hasShown)
    addEntry("_shown", "moa_ffi_show");
  return text;
}

std::string printBinding(llvm::ArrayRef<KernelSignature> kernels) {
  std::string text = getBindingCalls().str() + kStream;
  for (const KernelSignature &kernel : kernels)
    text += printKernel(kernel);
  return text;
}

} // namespace moa
