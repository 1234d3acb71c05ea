//===- Launcher.cpp - C code that launches PTX through the driver ---------===//
//
// Entry points, codes and messages are those of CUDA C++ files (lib/Target/CUDA/Host.cpp). A call
// binds the symbols from the shapes, checks its arguments, and launches.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CText.h"
#include "lib/Target/EmittedText.h"
#include "lib/Target/PTX/PTX.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace llvm;

namespace moa::ptx {
namespace {

/// Wraps a statement to lines of at most 110 columns, after commas outside of string literals.
std::string wrapped(const std::string &statement) {
  constexpr size_t width = 110;
  std::string text, line;
  size_t cut = 0; // position in the line; 0: none
  bool inString = false;
  for (size_t k = 0; k != statement.size(); ++k) {
    char letter = statement[k];
    line += letter;
    if (letter == '"' && (k == 0 || statement[k - 1] != '\\'))
      inString = !inString;
    if (line.size() > width && cut != 0) {
      text += line.substr(0, cut) + "\n";
      line = "      " + line.substr(cut + 1);
      cut = 0;
    }
    if (letter == ',' && !inString && k + 1 != statement.size() && statement[k + 1] == ' ')
      cut = line.size();
  }
  return text + line;
}

/// Chooses distinct C names for a program's arguments and symbols, which neither the file nor the
/// driver's header declares.
class HostNames {
public:
  explicit HostNames(const KernelSignature &signature) {
    for (const Parameter &parameter : signature.parameters)
      arguments[&parameter] = choose(parameter.name);
    for (const std::string &symbol : signature.symbols)
      symbols[symbol] = choose(symbol);
  }
  const std::string &of(const Parameter &parameter) const { return arguments.at(&parameter); }
  const std::string &of(const std::string &symbol) const { return symbols.at(symbol); }

private:
  std::string choose(StringRef wish) {
    static const std::set<std::string> own = {
        "c",      "m",      "n",         "code",     "call",  "message", "stream", "bytes",  "grid",
        "device", "arrays", "workspace", "lhs",      "rhs",   "NULL",    "memset", "memcpy", "size_t",
        "linux",  "unix",   "EOF",       "DLTensor", "stdin", "stdout",  "stderr"};
    std::string name;
    for (char letter : wish)
      name += isAlnum(letter) ? letter : '_';
    StringRef lower(name);
    bool isForeign = lower.starts_with_insensitive("moa") || lower.starts_with_insensitive("cu") || own.count(name) ||
                     isReservedWord(name);
    if (isForeign || isDigit(name.front()) || name.front() == '_')
      name = "v_" + name;
    std::string result = name;
    for (unsigned k = 2; !taken.insert(result).second; ++k)
      result = name + "_" + std::to_string(k);
    return result;
  }
  std::map<const Parameter *, std::string> arguments;
  std::map<std::string, std::string> symbols;
  std::set<std::string> taken;
};

class ProgramPrinter {
public:
  explicit ProgramPrinter(const gpu::HostTable &table)
      : table(table), signature(table.signature), arrays(signature.getArrays()), names(signature), os(text) {}
  std::string print() {
    printCall();
    if (table.hasRuntimeOffsets)
      printLayout();
    printExamine();
    printRun();
    printSize();
    printCheck();
    if (signature.hasInputDependentTolerance())
      printShown();
    printPrepare();
    return text;
  }
  std::string printPrototypes() const {
    std::string result;
    for (const std::string &head : heads)
      if (!StringRef(head).starts_with("static"))
        result += head + ";\n";
    return result;
  }

private:
  std::string structName() const { return "moa_call_of_" + signature.name; }
  std::string examine() const { return "moa_examine_" + signature.name; }
  std::string place(const Parameter &array) const { return "&c->" + names.of(array); }
  /// For example, `c->N`, or `c->Q.s[2]` for a stride.
  std::string field(const std::string &symbol) const {
    for (const Parameter *array : arrays)
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        if (symbol == array->name + ".s" + std::to_string(axis))
          return formatv("c->{0}.s[{1}]", names.of(*array), axis);
    return "c->" + names.of(symbol);
  }
  std::string symbol(const std::string &name) const {
    for (const Parameter *array : arrays)
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        if (name == getShapeSymbol(array->name, axis))
          return formatv("{0}->shape[{1}]", names.of(*array), axis);
    return field(name);
  }
  static std::string number(const std::string &value) { return "moa_number(" + value + ")"; }
  static std::string apply(const char *function, const std::string &x, const std::string &y) {
    return formatv("moa_{0}({1}, {2})", function, x, y);
  }
  std::string expression(const SymExpr &expr) const {
    std::string sum;
    for (const auto &[monomial, coefficient] : expr.getTerms()) {
      std::string constant = coefficient == INT64_MIN ? "INT64_MIN" : std::to_string(coefficient);
      std::string term = monomial.empty() || coefficient != 1 ? number(constant) : "";
      for (const auto &[atom, power] : monomial) {
        std::string factor;
        if (atom->kind == SymExpr::Atom::Kind::Symbol)
          factor = number(symbol(atom->text));
        else
          factor = apply(atom->kind == SymExpr::Atom::Kind::Mod ? "floor_mod" : "floor_div", expression(atom->lhs),
                         expression(atom->rhs));
        for (unsigned k = 0; k != power; ++k)
          term = term.empty() ? factor : apply("multiply", term, factor);
      }
      sum = sum.empty() ? term : apply("add", sum, term);
    }
    return sum.empty() ? number("0") : sum;
  }
  /// Returns a list of expressions with a suffix each.
  std::string expressions(ArrayRef<SymExpr> list, const char *suffix = "") const {
    return join(map_range(list, [&](const SymExpr &expr) { return expression(expr) + suffix; }), ", ");
  }
  /// Returns the parameters of an entry point, in calling order.
  std::vector<std::string> parameters(bool withScalars = true) const {
    std::vector<std::string> list;
    for (const Parameter *parameter : signature.getCallingOrder())
      if (withScalars || !parameter->isScalar())
        list.push_back(declareParameter(*parameter, names.of(*parameter)));
    return list;
  }
  std::string arrayList() const {
    return join(map_range(arrays, [&](const Parameter *array) { return place(*array); }), ", ");
  }

  /// Prints a statement, wrapped if it is long.
  void line(const std::string &statement) { os << wrapped(statement) << "\n"; }
  /// Prints `code = CHECK; if (code) return code;`.
  void check(const std::string &call) {
    line("  code = " + call + ";");
    os << "  if (code)\n    return code;\n";
  }
  void printHead(const std::string &result, const std::string &name, const std::vector<std::string> &list) {
    heads.push_back(printDeclaration(result + " " + name, list, "", 110));
    os << heads.back() << " {\n";
  }

  void printCall() {
    os << "/* The arguments of one call of " << signature.name << ", bound and checked. */\n"
       << "typedef struct {\n";
    for (const Parameter *array : arrays)
      os << "  moa_array " << names.of(*array) << ";\n";
    for (const std::string &symbol : signature.symbols)
      os << "  int64_t " << names.of(symbol) << ";\n";
    if (!table.launches.empty())
      os << "  moa_checked moa_blocks[" << table.launches.size() << "]; /* of every launch */\n";
    if (table.numMaps)
      os << "  CUtensorMap moa_maps[" << table.numMaps << "]; /* of all launches, in order */\n";
    os << "} " << structName() << ";\n\n";
  }

  //===--------------------------------------------------------------------===//
  // The workspace
  //===--------------------------------------------------------------------===//

  /// Returns an expression for the bytes of the workspace. If offsets are known only at run time,
  /// it also computes these.
  std::string size() const {
    return table.hasRuntimeOffsets ? "moa_layout_of_" + signature.name + "(c, moa_places)"
                                   : expression(table.workspaceBytes);
  }
  std::string declarePlaces() const {
    return table.hasRuntimeOffsets ? formatv("  int64_t moa_places[{0}];\n", table.workspace.size()).str() : "";
  }
  void printLayout() {
    std::vector<SymExpr> sizes;
    for (const gpu::WorkspaceArray &array : table.workspace)
      sizes.push_back(array.bytes);
    const gpu::WorkspaceArray &first = table.workspace[0];
    std::string unit = number(std::to_string(first.unit)), slack = number(std::to_string(first.slack));
    std::string start =
        first.unit == 1 ? "size" : apply("multiply", unit, apply("floor_div", apply("add", "size", slack), unit));
    printHead("static moa_checked", "moa_layout_of_" + signature.name,
              {"const " + structName() + " *c", "int64_t *places"});
    os << "  /* the arrays of the workspace, in the order of their places */\n";
    line("  const moa_checked bytes_of[] = {" + expressions(sizes) + "};");
    os << "  moa_checked size = moa_number(0);\n  int k;\n  for (k = 0; k < " << sizes.size()
       << "; ++k) {\n    const moa_checked place = " << start
       << ";\n    places[k] = place.value; /* arrays of no bytes take no room */\n"
          "    size = moa_add(bytes_of[k].value ? place : size, bytes_of[k]);\n  }\n  return size;\n}\n\n";
  }
  std::string offsetOf(const gpu::WorkspaceArray &array) const {
    return array.offset.getConstant() ? expression(array.offset) + ".value"
                                      : formatv("moa_places[{0}]", &array - table.workspace.data()).str();
  }
  /// Prints a variable with the address of a workspace array. Returns the name of the variable.
  std::string printPlace(const gpu::WorkspaceArray &array) {
    std::string place = "moa_place_" + std::to_string(array.number);
    line("    char *" + place + " = (char *)workspace + " + offsetOf(array) + ";");
    return place;
  }
  /// Prints a descriptor for a workspace array, like those of the caller's arrays.
  void printPlaced(const gpu::WorkspaceArray &array) {
    unsigned number = array.number;
    line(formatv("  int64_t moa_shape_{0}[] = {{{1}};", number, expressions(array.extents, ".value")));
    os << "  DLTensor moa_tensor_" << number << ";\n  moa_array moa_placed_" << number << ";\n";
    line(formatv(
        "  moa_place(&moa_placed_{0}, &moa_tensor_{0}, {1}, {2}, {3}, (char *)workspace + {4}, moa_shape_{0});", number,
        array.getRank(), array.type == ElementType::BF16 ? 4 : 2, getBits(array.type) / 8, offsetOf(array)));
  }

  //===--------------------------------------------------------------------===//
  // Checks
  //===--------------------------------------------------------------------===//

  /// Returns the call that checks the arguments of an entry point; `reads` for NAME_shown.
  std::string callOfExamine(bool reads = false) const {
    std::string list = examine() + "(c, &m";
    if (signature.hasInputDependentTolerance())
      list += reads ? ", true" : ", false";
    for (const Parameter *array : arrays)
      list += ", " + names.of(*array);
    return list + ")";
  }
  void printExamine() {
    std::vector<std::string> list = {structName() + " *c", "moa_message *m"};
    if (signature.hasInputDependentTolerance())
      list.push_back("bool moa_reads");
    append_range(list, parameters(false));
    printHead("static int32_t", examine(), list);
    os << "  int32_t code = MOA_OK;\n";
    for (const Parameter *array : arrays)
      check(formatv("moa_open_array({0}, m, {1}, {2}, {3}, {4}, {5}, {6}, {7})", place(*array), names.of(*array),
                    quote(array->name), quote(array->getTypeText()), array->getRank(), getDLPackCode(array->type),
                    getBits(array->type), array->isOutput ? "true" : "false"));
    for (const SymbolBinding &binding : signature.bindings)
      check(formatv("moa_bind_symbol(&{0}, m, {1}, {2}, {3})", field(binding.name), quote(binding.name),
                    quote(getReadable(binding.value.str())), expression(binding.value)));
    for (const Parameter *array : arrays)
      for (auto [axis, extent] : enumerate(array->extents))
        check(formatv("moa_check_extent({0}, m, {1}, {2}, {3})", place(*array), axis, quote(getReadable(extent.str())),
                      expression(extent)));
    for (const Constraint &constraint : signature.constraints) {
      os << "  {\n";
      line(formatv("    const moa_checked lhs = {0}, rhs = {1};", expression(constraint.lhs),
                   expression(constraint.rhs)));
      os << "    code = moa_check_constraint(m, " << quote(constraint.text) << ", lhs, rhs, lhs.value "
         << constraint.getRelation() << " rhs.value);\n    if (code)\n      return code;\n  }\n";
    }
    os << "  moa_array *const arrays[] = {" << arrayList() << "};\n";
    check(formatv("moa_check_memory(arrays, {0}, m)", arrays.size()));
    for (unsigned array : table.tiled)
      check(formatv("moa_check_tiles({0}, m)", place(signature.parameters[array])));
    for (auto [k, condition] : enumerate(table.conditions)) {
      std::vector<SymExpr> pairs;
      for (const auto &[x, y] : condition)
        pairs.insert(pairs.end(), {x, y});
      line(formatv("  const moa_checked moa_sizes_{0}[] = {{{1}};", k, expressions(pairs)));
      os << formatv("  const int moa_is_needed_{0} = moa_all_larger(moa_sizes_{0}, {1});\n", k, pairs.size());
    }
    for (const gpu::HostLaunch &launch : table.launches) {
      std::string need = needOf(launch), count = expression(launch.blocks);
      line("  " + blocksOf(launch) + " = " + (need.empty() ? count : need + " ? " + count + " : " + number("0")) + ";");
    }
    if (!table.launches.empty())
      check(formatv("moa_check_grids(m, c->moa_blocks, {0})", table.launches.size()));
    if (!table.workspace.empty()) {
      os << declarePlaces();
      line("  const moa_checked moa_size = " + size() + ";");
      os << "  if (moa_size.code)\n    return moa_refuse_value(m, moa_size, \"the workspace\");\n";
    }
    for (const gpu::HostLaunch &launch : table.launches)
      for (auto [k, map] : enumerate(launch.parameters.maps))
        if (!table.findTemporary(map.array))
          printMap(launch, k, "m", place(signature.parameters[map.array]));
    os << "  return MOA_OK;\n}\n\n";
  }
  static std::string blocksOf(const gpu::HostLaunch &launch) {
    return "c->moa_blocks[" + std::to_string(launch.number) + "]";
  }
  /// Returns the condition under which a call needs a launch, or an empty text.
  std::string needOf(const gpu::HostLaunch &launch) const {
    std::string entry = !signature.hasInputDependentTolerance() ? "" : launch.isReportOnly ? "moa_reads" : "!moa_reads";
    std::string more = launch.conditionNumber ? "moa_is_needed_" + std::to_string(*launch.conditionNumber) : "";
    return entry + (entry.empty() || more.empty() ? "" : " && ") + more;
  }
  /// Prints the description of a tensor map of an array.
  void printMap(const gpu::HostLaunch &launch, unsigned number, const char *message, const std::string &array) {
    const gpu::TensorMap &map = launch.parameters.maps[number];
    std::string call = formatv("{0}({1}, &c->moa_maps[{2}], {3}, {4}, {5}",
                               map.hasSteps() ? "moa_describe_steps" : "moa_describe_tiles", message,
                               launch.firstMap + number, array, map.rowAxis, map.rows);
    if (map.hasSteps())
      call += ", " + quote(getReadable(map.step.str())) + ", " + expression(map.step);
    check(needOf(launch).empty() ? call + ")" : blocksOf(launch) + ".value ? " + call + ") : MOA_OK");
  }

  //===--------------------------------------------------------------------===//
  // Launches
  //===--------------------------------------------------------------------===//

  /// Begins an entry point: its variables, then uses of the scalars.
  void begin(const char *result, const std::string &suffix, std::vector<std::string> more, const char *message,
             const std::string &variables = "") {
    std::vector<std::string> list = parameters();
    append_range(list, more);
    printHead(result, signature.name + suffix, list);
    os << "  " << structName() << " call, *c = &call;\n  moa_message m = " << message << ";\n" << variables;
    for (const Parameter *scalar : signature.getScalars())
      os << "  (void)" << names.of(*scalar) << ";\n";
  }
  std::string declareKernels() const {
    return "  int moa_latest = -1; /* launch of this call */\n" +
           (table.launches.empty() ? ""
                                   : formatv("  CUkernel moa_kernels[{0}] = {{NULL};\n", table.launches.size()).str());
  }
  /// Checks the workspace. Prints what the launches of NAME or of NAME_shown need before the first of
  /// them starts: maps of the workspace, and kernels with their shared memory. Then it prints the
  /// launches.
  void printLaunches(bool forReport) {
    if (!table.workspace.empty())
      check(formatv("moa_check_workspace((moa_array *const[]){{{0}}, {1}, &m, workspace, bytes, {2})", arrayList(),
                    arrays.size(), size()));
    auto chosen = make_filter_range(table.launches,
                                    [=](const gpu::HostLaunch &launch) { return launch.isReportOnly == forReport; });
    std::set<unsigned> placed;
    for (const gpu::HostLaunch &launch : chosen)
      for (auto [k, map] : enumerate(launch.parameters.maps))
        if (const gpu::WorkspaceArray *array = table.findTemporary(map.array)) {
          if (placed.insert(map.array).second)
            printPlaced(*array);
          printMap(launch, k, "&m", "&moa_placed_" + std::to_string(map.array));
        }
    for (const gpu::HostLaunch &launch : chosen)
      check(formatv("{0}.value ? moa_open_kernel(&m, &moa_kernels[{1}], {2}, {3}) : MOA_OK", blocksOf(launch),
                    launch.number, quote(launch.name), launch.sharedBytes));
    for (const gpu::HostLaunch &launch : chosen)
      printLaunch(launch);
    if (chosen.empty())
      os << "  (void)moa_latest;\n";
  }
  /// Prints variables for the parameters of a launch. Returns their addresses.
  std::vector<std::string> printParameters(const gpu::HostLaunch &launch) {
    std::vector<std::string> pointers;
    for (unsigned number : launch.parameters.arrays) {
      const gpu::WorkspaceArray *array = table.findTemporary(number);
      pointers.push_back(array ? "&" + printPlace(*array) : place(signature.parameters[number]) + ".begin");
    }
    for (size_t k = 0; k != launch.parameters.maps.size(); ++k)
      pointers.push_back(formatv("&c->moa_maps[{0}]", launch.firstMap + k));
    for (unsigned number : launch.parameters.scalars) {
      const Parameter &scalar = signature.parameters[number];
      std::string name = names.of(scalar);
      if (scalar.type == ElementType::BF16 || scalar.type == ElementType::F16) {
        std::string rounded = "moa_scalar_" + std::to_string(number);
        os << formatv("    uint16_t {0} = moa_to_{1}({2});\n", rounded, getName(scalar.type), name);
        name = rounded;
      }
      pointers.push_back("&" + name);
    }
    for (const std::string &symbol : launch.parameters.symbols)
      pointers.push_back("&" + field(symbol));
    return pointers;
  }
  void printLaunch(const gpu::HostLaunch &launch) {
    os << "  if (" << blocksOf(launch) << ".value) { /* " << launch.name << " */\n";
    std::vector<std::string> pointers = printParameters(launch);
    os << "    void *moa_parameters[] = {";
    size_t width = 30;
    for (auto [k, pointer] : enumerate(pointers)) {
      if (width + pointer.size() > 100) {
        os << "\n       ";
        width = 8;
      }
      os << (k ? " " : "") << pointer << (k + 1 == pointers.size() ? "" : ",");
      width += pointer.size() + 2;
    }
    os << (pointers.empty() ? "NULL};\n" : "};\n");
    line(formatv("    code = moa_launch(&m, moa_kernels[{0}], &moa_latest, {0}, {1}, {2}, {3}, {4}, moa_parameters, "
                 "stream);",
                 launch.number, launch.getFirstOverlapped(), launch.printGrid(blocksOf(launch) + ".value"),
                 launch.threads, launch.sharedBytes));
    os << "    if (code)\n      return code;\n  }"
       << (launch.isReliedOn ? " else {\n    moa_latest = -1; /* others count on its wait */\n  }\n" : "\n");
  }

  //===--------------------------------------------------------------------===//
  // Entry points
  //===--------------------------------------------------------------------===//

  void printRun() {
    const char *unused =
        table.workspace.empty() ? "  (void)workspace, (void)bytes, (void)stream; /* none is needed */\n" : "";
    begin("int32_t", "", {"void *workspace", "size_t bytes", "void *stream"}, "{NULL, 0}",
          "  int32_t code = MOA_OK;\n" + declareKernels() + declarePlaces() + unused);
    check(callOfExamine());
    printLaunches(/*forReport=*/false);
    std::string shown;
    for (const ShownLater *never : signature.getNeverShown()) {
      const Parameter &result = signature.parameters[never->parameter];
      os << "  /* nothing shows that '" << result.name << "' is within " << never->within.str() << " */\n";
      shown += (shown.empty() ? "moa_is_empty(" : " && moa_is_empty(") + place(result) + ")";
    }
    line("  return " + (shown.empty() ? "MOA_OK" : shown + " ? MOA_OK : MOA_NOT_SHOWN") + ";");
    os << "}\n\n";
  }
  void printSize() {
    begin("int64_t", "_workspace", {}, "{NULL, 0}");
    if (table.workspace.empty()) {
      os << "  return -(int64_t)" << callOfExamine() << ";\n}\n\n";
      return;
    }
    os << "  int32_t code = MOA_OK;\n  moa_checked size;\n" << declarePlaces();
    line("  code = " + callOfExamine() + ";");
    os << "  if (code)\n    return -(int64_t)code;\n";
    line("  size = " + size() + ";");
    os << "  return size.code ? -(int64_t)size.code : size.value;\n}\n\n";
  }
  void printCheck() {
    begin("int32_t", "_check", {"char *message", "size_t n"}, "{message, n}");
    os << "  if (message && n)\n    message[0] = 0;\n  return " << callOfExamine() << ";\n}\n\n";
  }
  /// Prints NAME_shown, which compares the error bounds of a call with its tolerances.
  void printShown() {
    begin("int32_t", "_shown", {"void *workspace", "size_t bytes", "void *stream", "char *message", "size_t n"},
          "{message, message ? n : 0}",
          "  int32_t code = MOA_OK, moa_found = MOA_OK;\n" + declareKernels() + declarePlaces());
    os << "  if (message && n)\n    message[0] = 0;\n";
    check(callOfExamine(/*reads=*/true));
    printLaunches(/*forReport=*/true);
    for (const ShownLater &shown : signature.shownLater) {
      std::string result = place(signature.parameters[shown.parameter]) + ", " + quote(shown.within.str());
      if (shown.bounds.empty()) {
        line(formatv("  code = moa_not_shown(&m, {0}, {1});", result, quote(shown.why)));
      } else {
        const gpu::WorkspaceArray &bounds = gpu::getArray(table.workspace, shown.bounds);
        os << "  {\n";
        std::string place = printPlace(bounds), extents = expressions(bounds.extents, ".value");
        line("    const int64_t moa_extents[] = {" + (extents.empty() ? "1" : extents) + "};");
        line(formatv("    code = moa_check_bounds(&m, stream, {0}, {1}, {2}, {3}, moa_extents, {4});", result,
                     getNumberText(shown.within.epsilon), place, quote(bounds.getAxes()), bounds.getRank()));
        os << "  }\n  if (code == MOA_LAUNCH)\n    return code;\n";
      }
      os << "  moa_found = code ? code : moa_found;\n";
    }
    os << "  return moa_found;\n}\n\n";
  }
  void printPrepare() {
    printHead("int32_t", signature.name + "_prepare", {"int32_t device"});
    std::string kernels, bytes;
    for (const gpu::HostLaunch &launch : table.launches) {
      kernels += (kernels.empty() ? "" : ", ") + quote(launch.name);
      bytes += (bytes.empty() ? "" : ", ") + std::to_string(launch.sharedBytes);
    }
    os << "  static const char *const kernels[] = {" << (kernels.empty() ? "NULL" : kernels)
       << "};\n  static const int shared_bytes[] = {" << (bytes.empty() ? "0" : bytes)
       << "};\n  return moa_prepare(device, kernels, shared_bytes, " << table.launches.size() << ");\n}\n";
  }

  const gpu::HostTable &table;
  const KernelSignature &signature;
  const std::vector<const Parameter *> arrays;
  HostNames names;
  std::string text;
  raw_string_ostream os;
  std::vector<std::string> heads;
};

std::string comment(StringRef notes) {
  std::string text;
  SmallVector<StringRef> lines;
  notes.rtrim().split(lines, '\n');
  for (StringRef line : lines)
    text += line.empty() ? " *\n" : (" * " + line + "\n").str();
  // Break comment marks and trigraphs in the notes.
  for (StringRef mark : {"*/", "/*", "??"})
    for (size_t at = text.find(mark.str()); at != std::string::npos; at = text.find(mark.str(), at + 2))
      text.insert(at + 1, " ");
  return text;
}

/// Returns the PTX as a C string, line by line.
std::string printText(StringRef ptx) {
  std::string text = "static const char moa_ptx[] =";
  SmallVector<StringRef> lines;
  ptx.rtrim().split(lines, '\n');
  for (StringRef line : lines) {
    text += "\n    \"";
    for (char letter : line)
      if (letter == '"' || letter == '\\')
        text += {'\\', letter};
      else if (letter == '\t')
        text += "\\t";
      else
        text += letter;
    text += "\\n\"";
  }
  return text + ";\n";
}

/// Returns parts of Host/Launcher.c, one after another.
std::string getParts(std::initializer_list<const char *> names) {
  std::string text;
  for (const char *name : names)
    text += getLauncherPart(name);
  return text;
}

} // namespace

Expected<std::string> printLauncher(ArrayRef<gpu::HostTable> programs, StringRef notes, StringRef ptx,
                                    Binding binding) {
  std::string opening, prototypes, hosts;
  std::vector<KernelSignature> bound;
  for (const gpu::HostTable &program : programs) {
    if (StringRef(program.signature.name).starts_with_insensitive("moa"))
      return createStringError("a kernel cannot be called '" + program.signature.name +
                               "' in PTX: the launcher reserves names that start with 'moa'; "
                               "rename it");
    opening += opening.empty() ? comment(notes) : " *\n";
    ProgramPrinter printer(program);
    hosts += "\n" + printer.print();
    prototypes += printer.printPrototypes();
    bound.push_back(program.signature);
  }
  return "/*\n" + opening +
         " *\n * Written by a compiler; this file carries no licence obligation. It holds the PTX "
         "and\n"
         " * launches it through the driver of CUDA 12.7 or later; compile it as C and link "
         "-lcuda.\n"
         " */\n" +
         getParts({"INCLUDES"}) + getEntryDeclarations().str() + "\n/* Entry points. */\n" + prototypes + "\n" +
         getParts({"CHECKS", "DEVICE", "MEMORY"}) + "\n" +
         "/*--- Kernels "
         "--------------------------------------------------------------------------------*/\n\n" +
         printText(ptx) + "\n" + getParts({"TILES"}) +
         (StringRef(hosts).contains("moa_describe_steps") ? getParts({"STEPS"}) : "") +
         getParts({"ROUND", "LOAD", "LAUNCH", "PREPARE"}) +
         (StringRef(hosts).contains("moa_check_bounds") ? getParts({"BOUNDS"}) : "") + hosts +
         (binding == Binding::TVMFFI ? "\n" + printBinding(bound) : "");
}

} // namespace moa::ptx
