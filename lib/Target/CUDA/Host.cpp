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

  void printCall() {
    os << "// The arguments of one call of " << signature.name << ", bound and checked.\n"
       << "struct " << structName() << " {\n";
    for (const Parameter *array : signature.getArrays())
      os << "  Array " << nameOf(*array) << ";\n";
    for (const std::string &symbol : signature.symbols)
      os << "  int64_t " << names.of(symbol) << ";\n";
    os << "};\n\n";
  }

  void printExamine() {
    printFunction("static int32_t", signature.name + "_examine",
                  {structName() + " *c", "Message *m"}, parameters(false));
    for (const Parameter *array : signature.getArrays())
      os << "  if (int32_t code = open_array(&c->" << nameOf(*array) << ", m, " << nameOf(*array)
         << ", " << quoted(array->name) << ", " << quoted(array->getTypeText()) << ", "
         << array->getRank() << ", " << getDLPackCode(array->type) << ", "
         << getBits(array->type) << ", " << (array->isOutput ? "true" : "false")
         << "))\n    return code;\n";
    for (const SymbolBinding &binding : signature.bindings)
      os << "  if (int32_t code = bind_symbol(&" << field(binding.name) << ", m, "
         << quoted(binding.name) << ", " << quoted(getReadable(binding.value.str())) << ",\n"
         << "                                 " << checked(expression(binding.value))
         << "))\n    return code;\n";
    for (const Parameter *array : signature.getArrays())
      for (auto [axis, extent] : llvm::enumerate(array->extents))
        os << "  if (int32_t code = check_extent(c->" << nameOf(*array) << ", m, " << axis << ", "
           << quoted(getReadable(extent.str())) << ", " << checked(expression(extent))
           << "))\n    return code;\n";
    static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
    for (const Constraint &constraint : signature.constraints) {
      os << "  {\n    const Checked lhs = " << checked(expression(constraint.lhs))
         << ", rhs = " << checked(expression(constraint.rhs)) << ";\n"
         << "    if (int32_t code = check_constraint(m, " << quoted(constraint.text)
         << ", lhs, rhs, lhs.value " << relations[constraint.relation]
         << " rhs.value))\n      return code;\n  }\n";
    }
    std::string list;
    for (const Parameter *array : signature.getArrays())
      list += (list.empty() ? "" : ", ") + ("&c->" + nameOf(*array));
    os << "  Array *const arrays[] = {" << list << "};\n"
       << "  if (int32_t code = check_memory(arrays, " << signature.getArrays().size()
       << ", m))\n    return code;\n";
    std::set<std::string> described;
    for (const KernelText &kernel : kernels)
      for (const TensorMap &map : kernel.parameters.maps)
        if (described.insert(map.name).second)
          os << "  if (int32_t code = check_tiles(c->" << names.of(map.array)
             << ", m))\n    return code;\n";
    os << "  return MOA_OK;\n}\n\n";
  }

  void printFunction(const std::string &result, const std::string &name,
                     std::vector<std::string> list, const std::vector<std::string> &more) {
    list.insert(list.end(), more.begin(), more.end());
    std::string row = result + " " + name + "(";
    size_t indent = row.size();
    for (auto [k, item] : llvm::enumerate(list)) {
      std::string word = item + (k + 1 == list.size() ? ") {" : ",");
      if (row.size() + word.size() + 1 > 100 && row.size() > indent) {
        os << row << "\n";
        row = std::string(indent, ' ');
      } else if (row.size() > indent) {
        row += " ";
      }
      row += word;
    }
    os << row << "\n";
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
    os << "  if (int32_t code = check_blocks(" << checked(expression(kernel.blocks)) << "))\n"
       << "    return code;\n"
       << "  if (const int64_t blocks = (" << checked(expression(kernel.blocks)) << ").value) {\n";
    for (const TensorMap &map : kernel.parameters.maps)
      os << "    CUtensorMap " << map.name << ";\n    if (int32_t code = describe_tiles(&" << map.name
         << ", &m, c->" << names.of(map.array) << ", " << map.rowAxis << ", " << map.rows << "))\n"
         << "      return code;\n";
    if (kernel.sharedBytes)
      os << "    if (cudaFuncSetAttribute(" << kernel.name
         << ", cudaFuncAttributeMaxDynamicSharedMemorySize, " << kernel.sharedBytes
         << ") != cudaSuccess)\n      return MOA_LAUNCH;\n";
    os << "    " << kernel.name << "<<<unsigned(blocks), " << kernel.threads << ", "
       << kernel.sharedBytes << ", cudaStream_t(stream)>>>(\n       ";
    std::vector<std::string> arguments;
    for (unsigned number : kernel.parameters.arrays)
      arguments.push_back(argument(number));
    for (const TensorMap &map : kernel.parameters.maps)
      arguments.push_back(map.name);
    for (unsigned number : kernel.parameters.scalars)
      arguments.push_back(argument(number));
    for (const std::string &symbol : kernel.parameters.symbols)
      arguments.push_back(field(symbol));
    size_t width = 7;
    for (auto [k, item] : llvm::enumerate(arguments)) {
      if (width + item.size() + 2 > 110) {
        os << "\n       ";
        width = 7;
      }
      os << " " << item << (k + 1 == arguments.size() ? ");\n" : ",");
      width += item.size() + 2;
    }
    if (arguments.empty())
      os << ");\n";
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
      os << "  " << structName() << " call, *c = &call;\n  Message m = " << message << ";\n";
    };
    begin("int32_t", "", {"void *workspace", "size_t bytes", "void *stream"});
    open("{nullptr, 0}");
    os << "  (void)workspace, (void)bytes; // none is needed\n"
       << "  if (int32_t code = " << examine << ")\n    return code;\n";
    for (const KernelText &kernel : kernels)
      printLaunch(kernel);
    os << "  return cudaPeekAtLastError() == cudaSuccess ? MOA_OK : MOA_LAUNCH;\n}\n\n";
    begin("int64_t", "_workspace", {});
    open("{nullptr, 0}");
    for (const Parameter *scalar : signature.getScalars())
      os << "  (void)" << nameOf(*scalar) << ";\n";
    os << "  return -int64_t(" << examine << ");\n}\n\n";
    begin("int32_t", "_check", {"char *message", "size_t n"});
    open("{message, n}");
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
