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
  /// The same where a Checked is expected: a symbol or an extent alone becomes one.
  std::string argument(const SymExpr &expr) const {
    std::string text = expression(expr);
    llvm::StringRef rest = text;
    if (rest.consume_front("Checked(") && rest.consume_back(")") && !rest.contains('('))
      return rest.str();
    return text;
  }
  enum class Scalars { none, unnamed, named };
  /// The parameters of an entry point, in calling order.
  std::vector<std::string> parameters(Scalars scalars) const {
    std::vector<std::string> list;
    for (const Parameter *array : signature.getArrays())
      if (!array->isOutput)
        list.push_back("const DLTensor *" + nameOf(*array));
    for (const Parameter *scalar : signature.getScalars())
      if (scalars != Scalars::none)
        list.push_back(getScalarCType(scalar->type).str() +
                       (scalars == Scalars::named ? " " + nameOf(*scalar) : " /*" + nameOf(*scalar) + "*/"));
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

  /// The checks in order, each of which lets the next ones happen.
  void printExamine() {
    os << "// Binds and checks the arguments of one call.\n";
    printFunction("static int32_t", signature.name + "_examine", {structName() + " *c", "Message *m"},
                  parameters(Scalars::none));
    std::vector<std::string> checks;
    for (const Parameter *array : signature.getArrays())
      checks.push_back("open_array(&c->" + nameOf(*array) + ", m, " + nameOf(*array) + ", " +
                       quoted(array->name) + ", " + quoted(array->getTypeText()) + ", " +
                       std::to_string(array->getRank()) + ", " +
                       std::to_string(getDLPackCode(array->type)) + ", " +
                       std::to_string(getBits(array->type)) + ", " +
                       (array->isOutput ? "true" : "false") + ")");
    for (const SymbolBinding &binding : signature.bindings)
      checks.push_back("bind_symbol(&" + field(binding.name) + ", m, " + quoted(binding.name) + ", " +
                       quoted(getReadable(binding.value.str())) + ", " + argument(binding.value) + ")");
    for (const Parameter *array : signature.getArrays()) {
      std::string list;
      for (const SymExpr &extent : array->extents)
        list += (list.empty() ? "{" : ", {") + quoted(getReadable(extent.str())) + ", " +
                argument(extent) + "}";
      if (!list.empty())
        checks.push_back("check_extents(c->" + nameOf(*array) + ", m, {" + list + "})");
    }
    static const char *const relations[] = {"equal_to", "not_equal_to", "less",
                                            "less_equal", "greater", "greater_equal"};
    for (const Constraint &constraint : signature.constraints)
      checks.push_back("check_constraint<std::" + std::string(relations[constraint.relation]) +
                       "<>>(m, " + quoted(constraint.text) + ", " + argument(constraint.lhs) + ", " +
                       argument(constraint.rhs) + ")");
    checks.push_back("check_memory(m, " + arrayList(signature.getArrays()) + ")");
    std::set<std::string> described;
    for (const KernelText &kernel : kernels)
      for (const gpu::TensorMap &map : kernel.launch.parameters.maps)
        if (described.insert(names.of(map.array)).second)
          checks.push_back("check_tiles(c->" + names.of(map.array) + ", m)");
    os << "  (void)(" << joinRows(checks, " && ", 9) << ");\n  return m->code;\n}\n\n";
  }

  /// Items with a separator, as many on a line as fit, one at least.
  static std::string joinRows(llvm::ArrayRef<std::string> items, const char *separator, size_t indent) {
    std::string text;
    size_t column = indent;
    for (auto [k, item] : llvm::enumerate(items)) {
      std::string word = item + (k + 1 == items.size() ? "" : separator);
      if (k && column + word.size() > 120) {
        text = llvm::StringRef(text).rtrim().str() + "\n" + std::string(indent, ' ');
        column = indent;
      }
      text += wrapLine(std::string(column, ' ') + word, indent + 4).substr(column);
      column += word.size();
    }
    return text;
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
    line("  const Checked blocks = " + expression(kernel.launch.blocks) + ";");
    os << "  if (blocks.code || blocks.value > INT32_MAX) return MOA_OVERFLOW;\n"
       << "  if (blocks.value) {\n";
    std::string described;
    std::vector<std::string> maps;
    for (const gpu::TensorMap &map : kernel.launch.parameters.maps)
      described += (described.empty() ? "    CUtensorMap " : ", ") + map.name;
    if (!described.empty())
      line(described + ";", 8);
    for (const gpu::TensorMap &map : kernel.launch.parameters.maps)
      maps.push_back("describe_tiles(&" + map.name + ", &m, c->" + names.of(map.array) + ", " +
                     std::to_string(map.rowAxis) + ", " + std::to_string(map.rows) + ")");
    if (!described.empty())
      os << "    if (!(" << joinRows(maps, " && ", 10) << ")) return m.code;\n";
    if (kernel.launch.sharedBytes)
      os << "    if (cudaFuncSetAttribute(" << kernel.launch.name
         << ", cudaFuncAttributeMaxDynamicSharedMemorySize, " << kernel.launch.sharedBytes
         << "))\n      return MOA_LAUNCH;\n";
    std::vector<std::string> arguments;
    for (unsigned number : kernel.launch.parameters.arrays)
      arguments.push_back(argument(number));
    for (const gpu::TensorMap &map : kernel.launch.parameters.maps)
      arguments.push_back(map.name);
    for (unsigned number : kernel.launch.parameters.scalars)
      arguments.push_back(argument(number));
    for (const std::string &symbol : kernel.launch.parameters.symbols)
      arguments.push_back(field(symbol));
    line("    " + kernel.launch.name + "<<<unsigned(blocks.value), " + std::to_string(kernel.launch.threads) + ", " +
         std::to_string(kernel.launch.sharedBytes) + ", cudaStream_t(stream)>>>(" +
         llvm::join(arguments, ", ") + ");", 8);
    os << "  }\n";
  }
  void printEntries() {
    const std::string &name = signature.name;
    auto begin = [&](const char *result, const std::string &suffix, Scalars scalars,
                     std::vector<std::string> more) {
      std::vector<std::string> list = parameters(scalars);
      list.insert(list.end(), more.begin(), more.end());
      printFunction(std::string("extern \"C\" ") + result, name + suffix, list, {});
    };
    auto examine = [&](const std::string &message) {
      os << "  " << structName() << " call = {}, *c = &call;\n  Message m = {" << message << ", MOA_OK};\n";
      return name + "_examine(c, &m" + arrayArguments() + ")";
    };
    begin("int32_t", "", Scalars::named, {"void * /*workspace*/", "size_t /*bytes*/", "void *stream"});
    std::string call = examine("nullptr, 0");
    os << "  if (" << call << ") return m.code;\n";
    for (const KernelText &kernel : kernels) {
      os << (kernels.size() > 1 ? "  {\n" : "");
      printLaunch(kernel);
      os << (kernels.size() > 1 ? "  }\n" : "");
    }
    os << "  return cudaPeekAtLastError() == cudaSuccess ? MOA_OK : MOA_LAUNCH;\n}\n";
    begin("int64_t", "_workspace", Scalars::unnamed, {});
    call = examine("nullptr, 0");
    os << "  return -int64_t(" << call << "); // none is needed\n}\n";
    begin("int32_t", "_check", Scalars::unnamed, {"char *message", "size_t n"});
    os << "  if (message && n) message[0] = 0;\n";
    call = examine("message, message ? n : 0");
    os << "  return " << call << ";\n}\n"
       << "extern \"C\" int32_t " << name << "_prepare(int32_t device) { return prepare_device(device); }\n";
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
