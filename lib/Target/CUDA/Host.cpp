//===- Host.cpp - checks and entry points of emitted files ----------------===//
//
// A call opens the arrays, binds the symbols from the shapes, checks its arguments, and launches.
// The code is straight-line, over small functions that all kernels share.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CText.h"
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/HostText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace moa::cuda {
namespace {

class HostPrinter {
public:
  HostPrinter(const gpu::HostTable &table, const Names &names)
      : table(table), signature(table.signature), arrays(signature.getArrays()), names(names), os(output) {}
  std::string print() {
    printCall();
    printEntries();
    return output;
  }

private:
  const std::string &nameOf(const Parameter &parameter) const {
    return names.of(&parameter - signature.parameters.data());
  }
  /// Returns the field for an extent or a stride of an array, else an empty text.
  std::string partOfArray(const std::string &symbol) const {
    for (const Parameter *array : arrays)
      for (unsigned axis = 0; axis < array->getRank(); ++axis) {
        std::string place = "[" + std::to_string(axis) + "]";
        if (symbol == getShapeSymbol(array->name, axis))
          return nameOf(*array) + ".shape" + place;
        if (symbol == array->name + ".s" + std::to_string(axis))
          return nameOf(*array) + ".s" + place;
      }
    return "";
  }
  /// For example, `N`, `Q.shape[1]`, or `Q.s[2]` for a stride.
  std::string field(const std::string &symbol) const {
    std::string part = partOfArray(symbol);
    return part.empty() ? names.of(symbol) : part;
  }
  std::string expression(const SymExpr &expr) const {
    return Names::expression(expr, [&](const std::string &symbol) { return "Checked(" + field(symbol) + ")"; });
  }
  /// Prints an expression where a Checked is expected: plain symbols convert implicitly.
  std::string argument(const SymExpr &expr) const {
    std::string text = expression(expr);
    llvm::StringRef rest = text;
    if (rest.consume_front("Checked(") && rest.consume_back(")") && !rest.contains('('))
      return rest.str();
    return text;
  }
  /// Returns the parameters of an entry point, in calling order.
  std::vector<std::string> parameters() const {
    std::vector<std::string> list;
    for (const Parameter *parameter : signature.getCallingOrder())
      list.push_back(declareParameter(*parameter, nameOf(*parameter)));
    return list;
  }
  std::string arrayList() const {
    return llvm::join(llvm::map_range(arrays, [&](const Parameter *array) { return nameOf(*array); }), ", ");
  }

  /// Prints a line, wrapped if it is long.
  void line(const std::string &text, size_t indent = 6) { os << wrapLine(text, indent) << "\n"; }
  void returnUnless(const std::vector<std::string> &checks) {
    if (!checks.empty())
      os << "  if (!(" << joinRows(checks, " && ", 8, ")) return m.code;\n");
  }

  /// Prints the function for one call: opens arrays, binds symbols, checks, and launches.
  void printCall() {
    std::vector<std::string> list = {"const DLTensor *const (&given)[" + std::to_string(arrays.size()) + "]"};
    for (const Parameter *scalar : signature.getScalars())
      list.push_back(declareParameter(*scalar, nameOf(*scalar)));
    for (const char *more : {"Message &&m", "void **stream = nullptr"})
      list.push_back(more);
    if (!table.workspace.empty())
      for (const char *more : {"char *workspace = nullptr", "size_t bytes = 0", "int64_t *needed = nullptr"})
        list.push_back(more);
    if (signature.hasInputDependentTolerance())
      list.push_back("bool reads = false");
    os << "// Checks the arguments of a call, then launches it if a stream is given"
       << (!signature.hasInputDependentTolerance() ? "." : ", or computes and reads bounds on its errors.")
       << (table.workspace.empty() ? " Needs no workspace.\n" : "\n");
    printFunction("static int32_t", signature.name + "_call", list);
    os << "  if (m.size) *m.text = 0;\n";
    std::vector<std::string> rows;
    for (const Parameter *array : arrays)
      rows.push_back(llvm::formatv("{{{0}, {1}, {2}, {3}, {4}, {5}}", quote(array->name), quote(array->getTypeText()),
                                   array->getRank(), getDLPackCode(array->type), getBits(array->type) / 8,
                                   array->isOutput ? "true" : "false"));
    os << "  Array arrays[] = {\n      " << joinRows(rows, ", ", 6, "};\n");
    line("  auto &[" + arrayList() + "] = arrays;");
    os << "  for (int k = 0; k < " << rows.size() << "; ++k) if (!open_array(m, arrays[k], given[k])) return m.code;\n";
    std::vector<std::string> checks = printBindings();
    addExtents(checks);
    addConstraints(checks);
    checks.push_back("check_memory(m, arrays)");
    for (unsigned array : table.tiled)
      checks.push_back("check_tiles(m, " + names.of(array) + ")");
    returnUnless(checks);
    if (!table.workspace.empty()) {
      printSize();
      os << "  if (!is_known(m, \"the workspace\", size)) return m.code;\n"
         << "  if (needed) *needed = size.value;\n";
    }
    printConditions();
    declareLaunches();
    printMaps(/*ofWorkspace=*/false);
    os << "  if (!stream) return MOA_OK;\n";
    if (!table.workspace.empty())
      os << "  if (!check_workspace(m, arrays, workspace, bytes, size.value)) return m.code;\n";
    printMaps(/*ofWorkspace=*/true);
    printSharedMemory();
    if (table.launches.size() > 1)
      os << "  int latest = -1; // launch of this call\n";
    if (signature.hasInputDependentTolerance()) {
      printLaunches(/*forReport=*/true);
      os << "  if (reads) {\n";
      printBounds();
      os << "    return m.code;\n  }\n";
    }
    printLaunches(/*forReport=*/false);
    std::string shown;
    for (const ShownLater *never : signature.getNeverShown()) {
      const std::string &name = names.of(never->parameter);
      line("  // Nothing shows that '" + signature.parameters[never->parameter].name + "' is within " +
               never->within.str() + ".",
           5);
      shown += (shown.empty() ? "" : " && ") + name + ".is_empty";
    }
    os << "  return " << (shown.empty() ? "m.code" : "m.code || (" + shown + ") ? m.code : MOA_NOT_SHOWN")
       << ";\n}\n\n";
  }

  /// Prints the comparisons of computed error bounds with the tolerances.
  void printBounds() {
    for (const ShownLater &shown : signature.shownLater) {
      std::string result = names.of(shown.parameter) + ", " + quote(shown.within.str()) + ", ";
      if (shown.bounds.empty()) {
        line("    not_shown(m, " + result + quote(shown.why) + ");", 8);
        continue;
      }
      const gpu::WorkspaceArray &bounds = gpu::getArray(table.workspace, shown.bounds);
      std::vector<std::string> counts;
      for (const SymExpr &extent : bounds.extents) {
        std::string value = argument(extent);
        counts.push_back(llvm::StringRef(value).contains('(') ? "(" + value + ").value" : value);
      }
      line("    check_bounds(m, *stream, " + result + getNumberText(shown.within.epsilon) + ", " +
               argument(bounds.number) + ", " + quote(bounds.getAxes()) + ", {" + llvm::join(counts, ", ") + "});",
           8);
    }
  }
  /// Prints the launches that compute error bounds, or all others.
  void printLaunches(bool forReport) {
    for (const gpu::HostLaunch &launch : table.launches)
      if (launch.isReportOnly == forReport)
        printLaunch(launch);
  }

  /// Binds symbols that are an extent. Returns the checks that bind other symbols.
  std::vector<std::string> printBindings() {
    std::string plain, others;
    std::vector<std::string> checks;
    for (const SymbolBinding &binding : signature.bindings) {
      const std::string &name = names.of(binding.name);
      std::string extent = argument(binding.value);
      if (partOfArray(binding.value.str()) == extent) {
        extents[extent] = binding.name;
        plain += (plain.empty() ? "" : ", ") + name + " = " + extent;
        continue;
      }
      others += (others.empty() ? "" : ", ") + name;
      checks.push_back("bind_symbol(m, &" + name + ", " + quote(binding.name) + ", " +
                       quote(getReadable(binding.value.str())) + ", " + extent + ")");
    }
    if (!plain.empty())
      line("  [[maybe_unused]] const int64_t " + plain + ";");
    if (!others.empty())
      line("  [[maybe_unused]] int64_t " + others + ";");
    return checks;
  }

  /// Adds checks of the extents that no symbol was bound to.
  void addExtents(std::vector<std::string> &checks) const {
    std::vector<std::string> rows;
    for (const Parameter *array : arrays)
      for (auto [axis, extent] : llvm::enumerate(array->extents)) {
        auto bound = extents.find(field(getShapeSymbol(array->name, axis)));
        if (bound == extents.end() || bound->second != extent.str())
          rows.push_back("{" + nameOf(*array) + ", " + std::to_string(axis) + ", " + quote(getReadable(extent.str())) +
                         ", " + argument(extent) + "}");
      }
    if (!rows.empty())
      checks.push_back("check_extents(m, {" + joinRows(rows, ", ", 26, "})", /*after=*/3));
  }
  void addConstraints(std::vector<std::string> &checks) const {
    static const char *const relations[] = {"equal_to",   "not_equal_to", "less",
                                            "less_equal", "greater",      "greater_equal"};
    for (const Constraint &constraint : signature.constraints)
      checks.push_back("check_constraint<std::" + std::string(relations[constraint.relation]) + "<>>(m, " +
                       quote(constraint.text) + ", " + argument(constraint.lhs) + ", " + argument(constraint.rhs) +
                       ")");
  }

  /// Joins items with a separator and an end, with as many per line as fit. `after` columns must
  /// stay free at the end.
  static std::string joinRows(llvm::ArrayRef<std::string> items, const char *separator, size_t indent,
                              const char *end = "", size_t after = 0) {
    std::string text;
    size_t column = indent;
    for (auto [k, item] : llvm::enumerate(items)) {
      std::string word = item + (k + 1 == items.size() ? end : separator);
      size_t more = k + 1 == items.size() ? after : 0;
      if (k && column + word.size() + more > 120) {
        text = llvm::StringRef(text).rtrim().str() + "\n" + std::string(indent, ' ');
        column = indent;
      }
      bool isWrapped = item.find('\n') != std::string::npos;
      text += isWrapped ? word : wrapLine(std::string(column, ' ') + word, indent + 4).substr(column);
      size_t last = text.rfind('\n');
      column = last == std::string::npos ? column + word.size() : text.size() - last - 1;
    }
    return text;
  }

  void printFunction(const std::string &result, const std::string &name, const std::vector<std::string> &list) {
    std::string head = result + " " + name + "(";
    line(head + llvm::join(list, ", ") + ") {", 4);
  }

  /// Prints the bytes of the workspace, and its offsets if they are known only at run time.
  void printSize() {
    if (!table.hasRuntimeOffsets)
      return line("  const Checked size = " + argument(table.workspaceBytes) + ";");
    std::vector<std::string> list;
    for (const gpu::WorkspaceArray &array : table.workspace)
      list.push_back(argument(array.bytes));
    std::string count = std::to_string(list.size()), start = "size";
    if (std::string unit = std::to_string(table.workspace[0].unit); unit != "1")
      start = unit + " * floor_div(size + " + std::to_string(table.workspace[0].slack) + ", " + unit + ")";
    os << "  // The arrays of the workspace, in order. Those of no bytes take no room.\n";
    line("  const Checked bytes_of[] = {" + llvm::join(list, ", ") + "};", 6);
    os << "  int64_t places[" << count << "];\n  Checked size = 0;\n"
       << "  for (int k = 0; k < " << count << "; ++k) {\n"
       << "    const Checked place = " << start
       << ";\n    places[k] = place.value;\n    size = (bytes_of[k].value ? place : size) + bytes_of[k];\n  }\n";
  }
  /// Prints a descriptor for a workspace array, like those of the caller's arrays.
  void printPlaced(const gpu::WorkspaceArray &array) {
    std::vector<std::string> shape;
    for (const SymExpr &extent : array.extents)
      shape.push_back(extent.getConstant() ? extent.str() : "(" + expression(extent) + ").value");
    const std::string &name = names.of(array.number);
    line("  int64_t " + name + "_shape[] = {" + llvm::join(shape, ", ") + "};", 6);
    line("  const Array " + name + " = in_workspace(" + quote(array.name) + ", " + std::to_string(shape.size()) + ", " +
             (array.type == ElementType::BF16 ? "4" : "2") + ", " + std::to_string(getBits(array.type) / 8) +
             ", (char *)" + argument(array.number) + ", " + name + "_shape);",
         6);
  }

  /// Returns the type of elements in kernels, which have no unsigned types: they reinterpret the bits.
  static std::string getPointee(const Parameter &array) {
    switch (array.type) {
    case ElementType::BF16:
      return "__nv_bfloat16";
    case ElementType::F16:
      return "__half";
    case ElementType::I1:
    case ElementType::F8E4M3:
      return "uint8_t";
    default:
      llvm::StringRef type = getScalarCType(array.type);
      type.consume_front("u");
      return type.str();
    }
  }
  std::string argument(unsigned number) const {
    if (const gpu::WorkspaceArray *array = table.findTemporary(number)) {
      std::string address = "workspace";
      if (auto offset = array->offset.getConstant())
        address = *offset ? "(workspace + " + std::to_string(*offset) + ")" : address;
      else
        address = "(workspace + places[" + std::to_string(array - table.workspace.data()) + "])";
      return "(" + getPointee(*array) + " *)" + address;
    }
    const Parameter &parameter = signature.parameters[number];
    std::string name = names.of(number);
    if (!parameter.isScalar())
      return (parameter.isOutput ? "(" : "(const ") + getPointee(parameter) + " *)" + name + ".begin";
    if (parameter.type == ElementType::BF16)
      return "__float2bfloat16_rn(" + name + ")";
    if (parameter.type == ElementType::F16)
      return "__float2half_rn(" + name + ")";
    return name;
  }
  void printConditions() {
    std::vector<std::string> calls;
    for (const gpu::LaunchCondition &condition : table.conditions) {
      std::vector<std::string> pairs;
      for (const auto &[x, y] : condition)
        pairs.push_back(argument(x) + ", " + argument(y));
      calls.push_back("all_larger({" + llvm::join(pairs, ", ") + "})");
    }
    if (!calls.empty())
      line("  const bool is_needed[] = {" + llvm::join(calls, ", ") + "};", 6);
  }
  /// For example, `blocks[1]`.
  static std::string blocksOf(const gpu::HostLaunch &launch) { return "blocks[" + std::to_string(launch.number) + "]"; }
  /// Returns the condition under which a call needs a launch, or an empty text.
  std::string needOf(const gpu::HostLaunch &launch) const {
    std::string entry = !signature.hasInputDependentTolerance() ? "" : launch.isReportOnly ? "reads" : "!reads";
    std::string more = launch.conditionNumber ? "is_needed[" + std::to_string(*launch.conditionNumber) + "]" : "";
    return entry + (entry.empty() || more.empty() ? "" : " && ") + more;
  }
  /// Returns the field of a tensor map in `maps`: its parameter in the kernel, and the launch if
  /// there are several.
  std::string fieldOf(const gpu::HostLaunch &launch, const gpu::TensorMap &map) const {
    return map.name + (table.launches.size() == 1 ? "" : "_" + std::to_string(launch.number));
  }
  /// Prints the number of blocks of each launch, which is 0 for one that the call does not need, and
  /// variables for the tensor maps.
  void declareLaunches() {
    std::vector<std::string> grids, fields;
    for (const gpu::HostLaunch &launch : table.launches) {
      std::string need = needOf(launch), count = argument(launch.blocks);
      grids.push_back(need.empty() ? count : need + " ? " + count + " : Checked(0)");
      for (const gpu::TensorMap &map : launch.parameters.maps)
        fields.push_back(fieldOf(launch, map));
    }
    if (!grids.empty())
      os << "  const Checked blocks[] = {" << joinRows(grids, ", ", 28, "};\n");
    if (!fields.empty())
      os << "  struct { CUtensorMap " << joinRows(fields, ", ", 23, "; } maps = {};\n");
  }
  /// Prints the tensor maps of the workspace or of the caller's arrays, for all launches, and checks
  /// of their grids: nothing is launched if anything is refused.
  void printMaps(bool ofWorkspace) {
    std::set<unsigned> placed;
    std::map<std::string, std::vector<std::string>> checks; // by condition
    if (!ofWorkspace && !table.launches.empty())
      checks[""].push_back("check_grids(m, blocks)");
    for (const gpu::HostLaunch &launch : table.launches)
      for (const gpu::TensorMap &map : launch.parameters.maps) {
        const gpu::WorkspaceArray *array = table.findTemporary(map.array);
        if ((array != nullptr) != ofWorkspace)
          continue;
        if (array && placed.insert(map.array).second)
          printPlaced(*array);
        std::string step = map.hasSteps() ? ", " + quote(getReadable(map.step.str())) + ", " + argument(map.step) : "";
        checks[needOf(launch).empty() ? "" : blocksOf(launch) + ".value"].push_back(
            (map.hasSteps() ? "describe_steps(m, &maps." : "describe_tiles(m, &maps.") + fieldOf(launch, map) + ", " +
            names.of(map.array) + ", " + std::to_string(map.rowAxis) + ", " + std::to_string(map.rows) + step + ")");
      }
    for (auto &[need, list] : checks)
      if (!list.empty() && need.empty())
        returnUnless(list);
      else if (!list.empty())
        os << "  if (" << need << " &&\n      !(" << joinRows(list, " && ", 8, ")) return m.code;\n");
  }
  /// Prints the requests for shared memory of several launches: nothing is launched if one of them
  /// is refused.
  void printSharedMemory() {
    for (const gpu::HostLaunch &launch : table.launches)
      if (launch.sharedBytes && table.launches.size() > 1)
        line("  if (" + blocksOf(launch) + ".value && !allow_shared_memory(m, " + launch.name + ", " +
             std::to_string(launch.sharedBytes) + ")) return m.code;");
  }
  void printLaunch(const gpu::HostLaunch &launch) {
    std::vector<std::string> arguments;
    for (unsigned number : launch.parameters.arrays)
      arguments.push_back(argument(number));
    for (const gpu::TensorMap &map : launch.parameters.maps)
      arguments.push_back("maps." + fieldOf(launch, map));
    for (unsigned number : launch.parameters.scalars)
      arguments.push_back(argument(number));
    for (const std::string &symbol : launch.parameters.symbols)
      arguments.push_back(field(symbol));
    std::string count = blocksOf(launch) + ".value", grid = launch.printGrid(count);
    std::string last = std::to_string(launch.threads) + ", " + std::to_string(launch.sharedBytes) + ", *stream";
    for (const std::string &item : arguments)
      last += ", " + item;
    if (table.launches.size() == 1)
      return line("  if (" + count + ") launch_kernel(m, " + launch.name + ", " + grid + ", " + last + ");");
    std::string call = "!launch_kernel_in_order(m, " + launch.name + ", latest, " + std::to_string(launch.number) +
                       ", " + std::to_string(launch.getFirstOverlapped()) + ", " + grid + ", " + last;
    if (launch.isReliedOn) {
      os << "  if (" << count << ") {\n";
      line("    if (" + call + ")) return m.code;", 8);
      os << "  } else latest = -1; // later launches rely on its wait\n";
    } else {
      line("  if (" + count + " && " + call + ")) return m.code;");
    }
  }
  void printEntry(const char *result, const char *suffix, std::vector<std::string> more, const std::string &call,
                  const std::vector<std::string> &before = {}) {
    std::vector<std::string> list = parameters();
    list.insert(list.end(), more.begin(), more.end());
    std::string head = wrapLine(std::string("extern \"C\" ") + result + " " + signature.name + suffix + "(" +
                                    llvm::join(list, ", ") + ") {",
                                4);
    std::string statement = "return " + call + ";";
    size_t last = head.size() - head.rfind('\n') - 1; // columns of the last line
    if (before.empty() && last + statement.size() + 3 <= 120) {
      os << head << " " << statement << " }\n";
      return;
    }
    os << head << "\n";
    for (const std::string &first : before)
      line("  " + first);
    line("  " + statement);
    os << "}\n";
  }
  void printEntries() {
    std::string call = signature.name + "_call({" + arrayList() + "}";
    for (const Parameter *scalar : signature.getScalars())
      call += ", " + nameOf(*scalar);
    if (table.workspace.empty()) {
      printEntry("int32_t", "", {"void * /*workspace*/", "size_t /*bytes*/", "void *stream"}, call + ", {}, &stream)");
      printEntry("int64_t", "_workspace", {}, "-int64_t(" + call + ", {}))");
    } else {
      printEntry("int32_t", "", {"void *workspace", "size_t bytes", "void *stream"},
                 call + ", {}, &stream, (char *)workspace, bytes)");
      printEntry("int64_t", "_workspace", {}, "code ? -int64_t(code) : needed",
                 {"int64_t needed = 0;", "const int32_t code = " + call + ", {}, nullptr, nullptr, 0, &needed);"});
    }
    printEntry("int32_t", "_check", {"char *message", "size_t n"}, call + ", {message, message ? n : 0})");
    if (signature.hasInputDependentTolerance())
      printEntry("int32_t", "_shown", {"void *workspace", "size_t bytes", "void *stream", "char *message", "size_t n"},
                 call + ", {message, message ? n : 0}, &stream, (char *)workspace, bytes, nullptr, true)",
                 {"if (message && n) *message = 0;"});
    std::string list = "device";
    for (const gpu::HostLaunch &launch : table.launches)
      list += ", " + launch.name;
    line("extern \"C\" int32_t " + signature.name + "_prepare(int32_t device) { return prepare_device(" + list + "); }",
         4);
  }

  const gpu::HostTable &table;
  const KernelSignature &signature;
  const std::vector<const Parameter *> arrays;
  const Names &names;
  std::map<std::string, std::string> extents; // extents that bind a symbol, with its name
  std::string output;
  llvm::raw_string_ostream os;
};

} // namespace

std::string printHost(const gpu::HostTable &table, const Names &names) { return HostPrinter(table, names).print(); }

} // namespace moa::cuda
