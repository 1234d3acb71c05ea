//===- Host.cpp - checks and entry points of the emitted text -------------===//
//
// Order of one call: bind the symbols from the shapes, check, launch. Everything
// is straight-line code over small functions that every kernel shares.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/HostText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace moa::cuda {
namespace {

std::string quoted(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << '"';
  llvm::printEscapedString(text, os);
  os << '"';
  return result;
}

/// Writes the host code of one entry point.
class HostPrinter {
public:
  HostPrinter(const KernelSignature &signature, const Names &names,
              const std::vector<KernelText> &kernels)
      : signature(signature), names(names), kernels(kernels), os(text) {
    for (auto [k, parameter] : llvm::enumerate(signature.parameters))
      numbers[&parameter] = k;
  }
  std::string print() {
    printCall();
    printExamine();
    printEntries();
    return text;
  }

private:
  std::string structName() const { return signature.name + "_call"; }
  const std::string &nameOf(const Parameter &parameter) const {
    return names.of(numbers.at(&parameter));
  }
  /// `c->N`, and `c->Q.s[2]` for a stride.
  std::string field(const std::string &symbol) const {
    for (const Parameter *array : signature.getArrays())
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        if (symbol == array->name + ".s" + std::to_string(axis))
          return "c->" + nameOf(*array) + ".s[" + std::to_string(axis) + "]";
    return "c->" + names.of(symbol);
  }
  std::string expression(const SymExpr &expr) const {
    return Names::expression(expr, [&](const std::string &symbol) {
      for (const Parameter *array : signature.getArrays())
        for (unsigned axis = 0; axis < array->getRank(); ++axis)
          if (symbol == getShapeSymbol(array->name, axis))
            return "Checked(" + nameOf(*array) + "->shape[" + std::to_string(axis) + "])";
      return "Checked(" + field(symbol) + ")";
    });
  }
  static std::string checked(const std::string &text) {
    return llvm::StringRef(text).contains("Checked") ? text : "Checked(" + text + ")";
  }
  /// The parameters of an entry point, in calling order.
  std::vector<std::string> parameters(bool withScalars = true) const {
    std::vector<std::string> list;
    for (const Parameter *array : signature.getArrays())
      if (!array->isOutput)
        list.push_back("const DLTensor *" + nameOf(*array));
    for (const Parameter *scalar : signature.getScalars())
      if (withScalars)
        list.push_back(getScalarCType(scalar->type).str() + " " + nameOf(*scalar));
    for (const Parameter *array : signature.getArrays())
      if (array->isOutput)
        list.push_back("const DLTensor *" + nameOf(*array));
    return list;
  }
  std::string arrayArguments() const {
    std::string list;
    for (bool outputs : {false, true})
      for (const Parameter *array : signature.getArrays())
        if (array->isOutput == outputs)
          list += ", " + nameOf(*array);
    return list;
  }

  /// A list of items in braces or parentheses, as one line to be wrapped.
  void line(const std::string &text, size_t indent = 6) { os << wrapLine(text, indent) << "\n"; }
  std::string arrayList(const std::vector<const Parameter *> &arrays) const {
    std::string list;
    for (const Parameter *array : arrays)
      list += (list.empty() ? "&c->" : ", &c->") + nameOf(*array);
    return "{" + list + "}";
  }

  void printCall() {
    std::string arrays, symbols;
    for (const Parameter *array : signature.getArrays())
      arrays += (arrays.empty() ? "  Array " : ", ") + nameOf(*array);
    for (const std::string &symbol : signature.symbols)
      symbols += (symbols.empty() ? "  int64_t " : ", ") + names.of(symbol);
    os << "// The arguments of one call of " << signature.name << ", bound and checked.\n"
       << "struct " << structName() << " {\n";
    line(arrays + ";");
    if (!symbols.empty())
      line(symbols + ";");
    os << "};\n\n";
  }

  void printExamine() {
    printFunction("static int32_t", signature.name + "_examine",
                  {structName() + " *c", "Message *m"}, parameters(false));
    for (const Parameter *array : signature.getArrays())
      line("  open_array(&c->" + nameOf(*array) + ", m, " + nameOf(*array) + ", " +
           quoted(array->name) + ", " + quoted(array->getTypeText()) + ", " +
           std::to_string(array->getRank()) + ", " + std::to_string(getDLPackCode(array->type)) +
           ", " + std::to_string(getBits(array->type)) + ", " +
           (array->isOutput ? "true" : "false") + ");");
    os << "  if (m->code)\n    return m->code;\n";
    for (const SymbolBinding &binding : signature.bindings)
      line("  bind_symbol(&" + field(binding.name) + ", m, " + quoted(binding.name) + ", " +
           quoted(getReadable(binding.value.str())) + ", " + expression(binding.value) + ");");
    for (const Parameter *array : signature.getArrays()) {
      std::string list;
      for (const SymExpr &extent : array->extents)
        list += (list.empty() ? "{" : ", {") + quoted(getReadable(extent.str())) + ", " +
                expression(extent) + "}";
      if (!list.empty())
        line("  check_extents(c->" + nameOf(*array) + ", m, {" + list + "});");
    }
    static const char *const relations[] = {"equal_to", "not_equal_to", "less",
                                            "less_equal", "greater", "greater_equal"};
    for (const Constraint &constraint : signature.constraints)
      line("  check_constraint<std::" + std::string(relations[constraint.relation]) + "<>>(m, " +
           quoted(constraint.text) + ", " + expression(constraint.lhs) + ", " +
           expression(constraint.rhs) + ");");
    line("  check_memory(m, " + arrayList(signature.getArrays()) + ");");
    std::set<std::string> described;
    for (const KernelText &kernel : kernels)
      for (const TensorMap &map : kernel.parameters.maps)
        if (described.insert(names.of(map.array)).second)
          os << "  check_tiles(c->" << names.of(map.array) << ", m);\n";
    os << "  return m->code;\n}\n\n";
  }

  void printFunction(const std::string &result, const std::string &name,
                     std::vector<std::string> list, const std::vector<std::string> &more) {
    list.insert(list.end(), more.begin(), more.end());
    std::string head = result + " " + name + "(";
    line(head + llvm::join(list, ", ") + ") {", 4);
  }

  std::string argument(unsigned number) const {
    const Parameter &parameter = signature.parameters[number];
    std::string name = names.of(number);
    if (!parameter.isScalar()) {
      std::string type = parameter.type == ElementType::I1     ? "uint8_t"
                         : parameter.type == ElementType::BF16 ? "__nv_bfloat16"
                         : parameter.type == ElementType::F16
                             ? "__half"
                             : getScalarCType(parameter.type).str();
      return "(" + std::string(parameter.isOutput ? "" : "const ") + type + " *)c->" + name +
             ".begin";
    }
    if (parameter.type == ElementType::BF16)
      return "__float2bfloat16_rn(" + name + ")";
    if (parameter.type == ElementType::F16)
      return "__float2half_rn(" + name + ")";
    return name;
  }
  void printLaunch(const KernelText &kernel) {
    line("  const Checked blocks = " + expression(kernel.blocks) + ";");
    os << "  if (blocks.code || blocks.value > INT32_MAX)\n    return MOA_OVERFLOW;\n"
       << "  if (blocks.value) {\n";
    std::string described;
    for (const TensorMap &map : kernel.parameters.maps)
      described += (described.empty() ? "    CUtensorMap " : ", ") + map.name;
    if (!described.empty())
      line(described + ";", 8);
    for (const TensorMap &map : kernel.parameters.maps)
      os << "    describe_tiles(&" << map.name << ", &m, c->" << names.of(map.array) << ", "
         << map.rowAxis << ", " << map.rows << ");\n";
    if (!described.empty())
      os << "    if (m.code)\n      return m.code;\n";
    if (kernel.sharedBytes)
      os << "    if (cudaFuncSetAttribute(" << kernel.name
         << ", cudaFuncAttributeMaxDynamicSharedMemorySize, " << kernel.sharedBytes
         << ") != cudaSuccess)\n      return MOA_LAUNCH;\n";
    std::vector<std::string> arguments;
    for (unsigned number : kernel.parameters.arrays)
      arguments.push_back(argument(number));
    for (const TensorMap &map : kernel.parameters.maps)
      arguments.push_back(map.name);
    for (unsigned number : kernel.parameters.scalars)
      arguments.push_back(argument(number));
    for (const std::string &symbol : kernel.parameters.symbols)
      arguments.push_back(field(symbol));
    line("    " + kernel.name + "<<<unsigned(blocks.value), " + std::to_string(kernel.threads) + ", " +
         std::to_string(kernel.sharedBytes) + ", cudaStream_t(stream)>>>(" +
         llvm::join(arguments, ", ") + ");", 8);
    os << "  }\n";
  }
  void printEntries() {
    const std::string &name = signature.name;
    std::string examine = name + "_examine(c, &m" + arrayArguments() + ")";
    auto begin = [&](const char *result, const std::string &suffix,
                     std::vector<std::string> more) {
      std::vector<std::string> list = parameters();
      list.insert(list.end(), more.begin(), more.end());
      printFunction(std::string("extern \"C\" ") + result, name + suffix, list, {});
    };
    auto open = [&](const char *message) {
      os << "  " << structName() << " call = {}, *c = &call;\n  Message m = {" << message
         << ", MOA_OK};\n";
    };
    begin("int32_t", "", {"void *workspace", "size_t bytes", "void *stream"});
    open("nullptr, 0");
    os << "  (void)workspace, (void)bytes; // none is needed\n"
       << "  if (int32_t code = " << examine << ")\n    return code;\n";
    for (const KernelText &kernel : kernels) {
      os << (kernels.size() > 1 ? "  {\n" : "");
      printLaunch(kernel);
      os << (kernels.size() > 1 ? "  }\n" : "");
    }
    os << "  return cudaPeekAtLastError() == cudaSuccess ? MOA_OK : MOA_LAUNCH;\n}\n\n";
    begin("int64_t", "_workspace", {});
    open("nullptr, 0");
    for (const Parameter *scalar : signature.getScalars())
      os << "  (void)" << nameOf(*scalar) << ";\n";
    os << "  return -int64_t(" << examine << ");\n}\n\n";
    begin("int32_t", "_check", {"char *message", "size_t n"});
    open("message, n");
    for (const Parameter *scalar : signature.getScalars())
      os << "  (void)" << nameOf(*scalar) << ";\n";
    os << "  if (message && n)\n    message[0] = 0;\n  return " << examine << ";\n}\n\n";
    printFunction("extern \"C\" int32_t", name + "_prepare", {"int32_t device"}, {});
    os << "  return prepare_device(device);\n}\n";
  }

  const KernelSignature &signature;
  const Names &names;
  const std::vector<KernelText> &kernels;
  std::map<const Parameter *, unsigned> numbers;
  std::string text;
  llvm::raw_string_ostream os;
};

} // namespace

std::string printHost(const KernelSignature &signature, const Names &names,
                      const std::vector<KernelText> &kernels) {
  return HostPrinter(signature, names, kernels).print();
}

} // namespace moa::cuda
