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
  explicit ProgramPrinter(const Program &program)
      : signature(program.signature), launches(program.launches), workspace(program.workspace),
        hasRuntimeOffsets(gpu::hasRuntimeOffsets(workspace)), names(signature), os(text) {}
  std::string print() {
    printCall();
    if (hasRuntimeOffsets)
      printLayout();
    printExamine();
    printLaunches();
    printOtherEntries();
    return text;
  }

private:
  std::string structName() const { return "moa_call_of_" + signature.name; }
  std::string examine() const { return "moa_examine_" + signature.name; }
  /// For example, `c->N`, or `c->Q.s[2]` for a stride.
  std::string field(const std::string &symbol) const {
    for (const Parameter *array : signature.getArrays())
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        if (symbol == array->name + ".s" + std::to_string(axis))
          return "c->" + names.of(*array) + ".s[" + std::to_string(axis) + "]";
    return "c->" + names.of(symbol);
  }
  std::string symbol(const std::string &name) const {
    for (const Parameter *array : signature.getArrays())
      for (unsigned axis = 0; axis < array->getRank(); ++axis)
        if (name == getShapeSymbol(array->name, axis))
          return names.of(*array) + "->shape[" + std::to_string(axis) + "]";
    return field(name);
  }
  static std::string number(const std::string &value) { return "moa_number(" + value + ")"; }
  static std::string apply(const char *function, const std::string &x, const std::string &y) {
    return std::string("moa_") + function + "(" + x + ", " + y + ")";
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
  /// Returns the parameters of an entry point, in calling order.
  std::vector<std::string> parameters(bool withScalars = true) const {
    std::vector<std::string> list;
    for (const Parameter *parameter : signature.getCallingOrder())
      if (withScalars || !parameter->isScalar())
        list.push_back(declareParameter(*parameter, names.of(*parameter)));
    return list;
  }
  /// Returns the call that checks the arguments of an entry point; `reads` for NAME_shown.
  std::string callOfExamine(bool reads = false) const {
    std::string list = examine() + "(c, &m";
    if (signature.hasInputDependentTolerance())
      list += reads ? ", true" : ", false";
    for (const Parameter *parameter : signature.getCallingOrder())
      if (!parameter->isScalar())
        list += ", " + names.of(*parameter);
    return list + ")";
  }

  void printCall() {
    os << "/* The arguments of one call of " << signature.name << ", bound and checked. */\n"
       << "typedef struct {\n";
    for (const Parameter *array : signature.getArrays())
      os << "  moa_array " << names.of(*array) << ";\n";
    for (const std::string &symbol : signature.symbols)
      os << "  int64_t " << names.of(symbol) << ";\n";
    if (!launches.empty())
      os << "  moa_checked moa_blocks[" << launches.size() << "]; /* of every launch */\n";
    if (unsigned count = countMaps())
      os << "  CUtensorMap moa_maps[" << count << "]; /* of all launches, in order */\n";
    os << "} " << structName() << ";\n\n";
  }
  std::string arrayList() const {
    std::string list;
    for (const Parameter *array : signature.getArrays())
      list += (list.empty() ? "" : ", ") + ("&c->" + names.of(*array));
    return list;
  }
  void checkWorkspace() {
    check("moa_check_workspace((moa_array *const[]){" + arrayList() + "}, " +
          std::to_string(signature.getArrays().size()) + ", &m, workspace, bytes, " + size() + ")");
  }
  /// Prints `code = CHECK; if (code) return code;`.
  void check(const std::string &call) {
    os << wrapped("  code = " + call + ";") << "\n  if (code)\n    return code;\n";
  }
  void printHead(const std::string &result, const std::string &name, const std::vector<std::string> &list) {
    heads.push_back(printDeclaration(result + " " + name, list, "", 110));
    os << heads.back() << " {\n";
  }
  void printExamine() {
    std::vector<std::string> list = {structName() + " *c", "moa_message *m"};
    if (signature.hasInputDependentTolerance())
      list.push_back("bool moa_reads");
    append_range(list, parameters(false));
    printHead("static int32_t", examine(), list);
    os << "  int32_t code = MOA_OK;\n";
    for (const Parameter *array : signature.getArrays())
      check("moa_open_array(&c->" + names.of(*array) + ", m, " + names.of(*array) + ", " + quote(array->name) + ", " +
            quote(array->getTypeText()) + ", " + std::to_string(array->getRank()) + ", " +
            std::to_string(getDLPackCode(array->type)) + ", " + std::to_string(getBits(array->type)) + ", " +
            (array->isOutput ? "true" : "false") + ")");
    for (const SymbolBinding &binding : signature.bindings)
      check("moa_bind_symbol(&" + field(binding.name) + ", m, " + quote(binding.name) + ", " +
            quote(getReadable(binding.value.str())) + ", " + expression(binding.value) + ")");
    for (const Parameter *array : signature.getArrays())
      for (auto [axis, extent] : enumerate(array->extents))
        check("moa_check_extent(&c->" + names.of(*array) + ", m, " + std::to_string(axis) + ", " +
              quote(getReadable(extent.str())) + ", " + expression(extent) + ")");
    static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
    for (const Constraint &constraint : signature.constraints) {
      os << "  {\n"
         << wrapped("    const moa_checked lhs = " + expression(constraint.lhs) +
                    ", rhs = " + expression(constraint.rhs) + ";")
         << "\n"
         << "    code = moa_check_constraint(m, " << quote(constraint.text) << ", lhs, rhs, lhs.value "
         << relations[constraint.relation] << " rhs.value);\n    if (code)\n      return code;\n  }\n";
    }
    os << "  moa_array *const arrays[] = {" << arrayList() << "};\n";
    check("moa_check_memory(arrays, " + std::to_string(signature.getArrays().size()) + ", m)");
    std::set<unsigned> described;
    for (const gpu::Launch &launch : launches)
      for (const gpu::TensorMap &map : launch.parameters.maps)
        if (!gpu::findArray(workspace, map.array) && described.insert(map.array).second)
          check("moa_check_tiles(&c->" + names.of(signature.parameters[map.array]) + ", m)");
    printConditions();
    for (auto [k, launch] : enumerate(launches)) {
      std::string need = needOf(launch), count = expression(launch.blocks);
      os << wrapped("  " + blocksOf(k) + " = " + (need.empty() ? count : need + " ? " + count + " : " + number("0")) +
                    ";")
         << "\n";
    }
    if (!launches.empty())
      check("moa_check_grids(m, c->moa_blocks, " + std::to_string(launches.size()) + ")");
    if (!workspace.empty()) {
      if (hasRuntimeOffsets)
        os << "  int64_t moa_places[" << workspace.size() << "];\n";
      os << wrapped("  const moa_checked moa_size = " + size() + ";") << "\n";
      os << "  if (moa_size.code)\n    return moa_refuse_value(m, moa_size, \"the workspace\");\n";
    }
    printMaps(/*ofWorkspace=*/false, [](const gpu::Launch &) { return true; });
    os << "  return MOA_OK;\n}\n\n";
  }

  static std::string blocksOf(size_t launch) { return "c->moa_blocks[" + std::to_string(launch) + "]"; }
  size_t numberOf(const gpu::Launch &launch) const { return &launch - launches.data(); }
  unsigned countMaps() const {
    unsigned count = 0;
    for (const gpu::Launch &launch : launches)
      count += launch.parameters.maps.size();
    return count;
  }
  /// Returns the place of the first tensor map of a launch in `moa_maps`.
  unsigned firstMapOf(const gpu::Launch &launch) const {
    unsigned first = 0;
    for (size_t k = 0; k != numberOf(launch); ++k)
      first += launches[k].parameters.maps.size();
    return first;
  }
  /// Returns the condition under which a call needs a launch, or an empty text.
  std::string needOf(const gpu::Launch &launch) const {
    auto condition = conditions.find(conditionOf(launch));
    std::string entry = !signature.hasInputDependentTolerance() ? "" : launch.isReportOnly ? "moa_reads" : "!moa_reads";
    std::string more = condition == conditions.end() ? "" : condition->second;
    return entry + (entry.empty() || more.empty() ? "" : " && ") + more;
  }
  /// Prints the tensor maps of the workspace or of the caller's arrays, for the chosen launches:
  /// nothing is launched if one of them is refused. `m` is a pointer to the message.
  void printMaps(bool ofWorkspace, function_ref<bool(const gpu::Launch &)> isChosen) {
    std::set<unsigned> placed;
    std::string message = ofWorkspace ? "&m" : "m";
    for (const gpu::Launch &launch : launches) {
      unsigned number = firstMapOf(launch);
      for (const gpu::TensorMap &map : launch.parameters.maps) {
        unsigned place = number++;
        const gpu::WorkspaceArray *array = gpu::findArray(workspace, map.array);
        if ((array != nullptr) != ofWorkspace || !isChosen(launch))
          continue;
        if (array && placed.insert(map.array).second)
          printPlaced(*array);
        std::string call =
            (map.hasSteps() ? "moa_describe_steps(" : "moa_describe_tiles(") + message + ", &c->moa_maps[" +
            std::to_string(place) + "], &" +
            (array ? "moa_placed_" + std::to_string(map.array) : "c->" + names.of(signature.parameters[map.array])) +
            ", " + std::to_string(map.rowAxis) + ", " + std::to_string(map.rows) +
            (map.hasSteps() ? ", " + quote(getReadable(map.step.str())) + ", " + expression(map.step) : "");
        std::string count = blocksOf(numberOf(launch)) + ".value";
        check(needOf(launch).empty() ? call + ")" : count + " ? " + call + ") : MOA_OK");
      }
    }
  }
  /// Prints what the chosen launches need before the first of them starts: maps of the workspace,
  /// and kernels with their shared memory. Then it prints the launches.
  void printChosen(function_ref<bool(const gpu::Launch &)> isChosen) {
    printMaps(/*ofWorkspace=*/true, isChosen);
    for (const gpu::Launch &launch : launches)
      if (isChosen(launch))
        check(blocksOf(numberOf(launch)) + ".value ? moa_open_kernel(&m, &moa_kernels[" +
              std::to_string(numberOf(launch)) + "], " + quote(launch.name) + ", " +
              std::to_string(launch.sharedBytes) + ") : MOA_OK");
    for (const gpu::Launch &launch : launches)
      if (isChosen(launch))
        printLaunch(launch);
    if (llvm::none_of(launches, isChosen))
      os << "  (void)moa_latest;\n";
  }
  void declareKernels() {
    os << "  int moa_latest = -1; /* launch of this call */\n";
    if (!launches.empty())
      os << "  CUkernel moa_kernels[" << launches.size() << "] = {NULL};\n";
  }

  /// Prints a variable with the address of a workspace array. Returns the name of the variable.
  std::string printPlace(const gpu::WorkspaceArray &array) {
    std::string place = "moa_place_" + std::to_string(array.number);
    os << wrapped("    char *" + place + " = (char *)workspace + " + offsetOf(array) + ";") << "\n";
    return place;
  }
  /// Prints a descriptor for a workspace array, like those of the caller's arrays.
  void printPlaced(const gpu::WorkspaceArray &array) {
    std::string number = std::to_string(array.number), extents;
    for (const SymExpr &extent : array.extents)
      extents += (extents.empty() ? "" : ", ") + expression(extent) + ".value";
    os << wrapped("  int64_t moa_shape_" + number + "[] = {" + extents + "};") << "\n"
       << "  DLTensor moa_tensor_" << number << ";\n  moa_array moa_placed_" << number << ";\n"
       << wrapped("  moa_place(&moa_placed_" + number + ", &moa_tensor_" + number + ", " +
                  std::to_string(array.extents.size()) + ", " + (array.element.isBF16() ? "4" : "2") + ", " +
                  std::to_string(array.element.getIntOrFloatBitWidth() / 8) + ", (char *)workspace + " +
                  offsetOf(array) + ", moa_shape_" + number + ");")
       << "\n";
  }
  std::string offsetOf(const gpu::WorkspaceArray &array) const {
    return array.offset.getConstant() ? expression(array.offset) + ".value"
                                      : "moa_places[" + std::to_string(&array - workspace.data()) + "]";
  }

  /// Returns the pairs x, y with x > y under which the launch is needed, or an empty text.
  std::string conditionOf(const gpu::Launch &launch) const {
    std::string pairs;
    for (const auto &[x, y] : launch.condition)
      pairs += (pairs.empty() ? "" : ", ") + expression(x) + ", " + expression(y);
    return pairs;
  }
  void printConditions() {
    for (const gpu::Launch &launch : launches) {
      std::string number = std::to_string(conditions.size()), pairs = conditionOf(launch);
      if (!pairs.empty() && conditions.insert({pairs, "moa_is_needed_" + number}).second)
        os << wrapped("  const moa_checked moa_sizes_" + number + "[] = {" + pairs + "};")
           << "\n  const int moa_is_needed_" << number << " = moa_all_larger(moa_sizes_" << number << ", "
           << 2 * launch.condition.size() << ");\n";
    }
  }
  void printLaunch(const gpu::Launch &launch) {
    os << "  if (" << blocksOf(numberOf(launch)) << ".value) { /* " << launch.name << " */\n";
    std::vector<std::string> pointers;
    for (unsigned number : launch.parameters.arrays) {
      const gpu::WorkspaceArray *array = gpu::findArray(workspace, number);
      if (!array) {
        pointers.push_back("&c->" + names.of(signature.parameters[number]) + ".begin");
        continue;
      }
      pointers.push_back("&" + printPlace(*array));
    }
    for (size_t k = 0; k != launch.parameters.maps.size(); ++k)
      pointers.push_back("&c->moa_maps[" + std::to_string(firstMapOf(launch) + k) + "]");
    for (unsigned number : launch.parameters.scalars) {
      const Parameter &scalar = signature.parameters[number];
      std::string name = names.of(scalar);
      if (scalar.type == ElementType::BF16 || scalar.type == ElementType::F16) {
        std::string rounded = "moa_scalar_" + std::to_string(number);
        os << "    uint16_t " << rounded << " = moa_to_" << (scalar.type == ElementType::BF16 ? "bf16(" : "f16(")
           << name << ");\n";
        name = rounded;
      }
      pointers.push_back("&" + name);
    }
    for (const std::string &symbol : launch.parameters.symbols)
      pointers.push_back("&" + field(symbol));
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
    std::string blocks = blocksOf(numberOf(launch)) + ".value";
    if (std::optional<int64_t> most = launch.getMostBlocks())
      blocks += " < " + std::to_string(*most) + " ? " + blocks + " : " + std::to_string(*most);
    os << (pointers.empty() ? "NULL};\n" : "};\n")
       << wrapped("    code = moa_launch(&m, moa_kernels[" + std::to_string(numberOf(launch)) + "], &moa_latest, " +
                  std::to_string(launch.number) + ", " + std::to_string(launch.getFirstOverlapped()) + ", " + blocks +
                  ", " + std::to_string(launch.threads) + ", " + std::to_string(launch.sharedBytes) +
                  ", moa_parameters, stream);")
       << "\n    if (code)\n      return code;\n  }";
    os << (launch.isReliedOn ? " else {\n    moa_latest = -1; /* others count on its wait */\n  }\n" : "\n");
  }
  void begin(const char *result, const std::string &suffix, std::vector<std::string> more, const char *message) {
    std::vector<std::string> list = parameters();
    append_range(list, more);
    printHead(result, signature.name + suffix, list);
    os << "  " << structName() << " call, *c = &call;\n  moa_message m = " << message << ";\n";
  }
  void ignoreScalars() {
    for (const Parameter *scalar : signature.getScalars())
      os << "  (void)" << names.of(*scalar) << ";\n";
  }
  /// Returns an expression for the bytes of the workspace. If offsets are known only at run time,
  /// it also computes these.
  std::string size() const {
    return hasRuntimeOffsets ? "moa_layout_of_" + signature.name + "(c, moa_places)"
                             : expression(gpu::getWorkspaceBytes(workspace));
  }
  void printLayout() {
    std::string list;
    for (const gpu::WorkspaceArray &array : workspace)
      list += (list.empty() ? "" : ", ") + expression(array.bytes);
    printHead("static moa_checked", "moa_layout_of_" + signature.name,
              {"const " + structName() + " *c", "int64_t *places"});
    std::string count = std::to_string(workspace.size());
    std::string start = "size";
    if (std::string unit = "moa_number(" + std::to_string(workspace[0].unit) + ")"; workspace[0].unit != 1)
      start = "moa_multiply(" + unit + ", moa_floor_div(moa_add(size, moa_number(" +
              std::to_string(workspace[0].slack) + ")), " + unit + "))";
    os << "  /* the arrays of the workspace, in the order of their places */\n"
       << wrapped("  const moa_checked bytes_of[] = {" + list + "};") << "\n  moa_checked size = moa_number(0);\n"
       << "  int k;\n  for (k = 0; k < " << count << "; ++k) {\n    size = " << start
       << ";\n    places[k] = size.value;\n    size = moa_add(size, bytes_of[k]);\n  }\n  return "
          "size;\n}\n\n";
  }
  void declarePlaces() {
    if (hasRuntimeOffsets)
      os << "  int64_t moa_places[" << workspace.size() << "];\n";
  }
  void printLaunches() {
    begin("int32_t", "", {"void *workspace", "size_t bytes", "void *stream"}, "{NULL, 0}");
    os << "  int32_t code = MOA_OK;\n";
    declareKernels();
    declarePlaces();
    if (workspace.empty())
      os << "  (void)workspace, (void)bytes, (void)stream; /* none is needed */\n";
    ignoreScalars();
    check(callOfExamine());
    if (!workspace.empty())
      checkWorkspace();
    printChosen([](const gpu::Launch &launch) { return !launch.isReportOnly; });
    std::string shown;
    for (const ShownLater *never : signature.getNeverShown()) {
      const Parameter &result = signature.parameters[never->parameter];
      os << "  /* nothing shows that '" << result.name << "' is within " << never->within.str() << " */\n";
      shown += (shown.empty() ? "moa_is_empty(&c->" : " && moa_is_empty(&c->") + names.of(result) + ")";
    }
    os << wrapped("  return " + (shown.empty() ? "MOA_OK" : shown + " ? MOA_OK : MOA_NOT_SHOWN") + ";") << "\n}\n\n";
  }
  /// Prints NAME_shown, which compares the error bounds of a call with its tolerances.
  void printShown() {
    begin("int32_t", "_shown", {"void *workspace", "size_t bytes", "void *stream", "char *message", "size_t n"},
          "{message, message ? n : 0}");
    os << "  int32_t code = MOA_OK, moa_found = MOA_OK;\n";
    declareKernels();
    declarePlaces();
    ignoreScalars();
    os << "  if (message && n)\n    message[0] = 0;\n";
    check(callOfExamine(/*reads=*/true));
    checkWorkspace();
    printChosen([](const gpu::Launch &launch) { return launch.isReportOnly; });
    for (const ShownLater &shown : signature.shownLater) {
      std::string result =
          "&c->" + names.of(signature.parameters[shown.parameter]) + ", " + quote(shown.within.str()) + ", ";
      if (shown.bounds.empty()) {
        os << wrapped("  code = moa_not_shown(&m, " + result + quote(shown.why) + ");")
           << "\n  moa_found = code ? code : moa_found;\n";
        continue;
      }
      const gpu::WorkspaceArray &bounds = gpu::getArray(workspace, shown.bounds);
      std::string extents, axes;
      for (const SymExpr &extent : bounds.extents) {
        extents += (extents.empty() ? "" : ", ") + expression(extent) + ".value";
        axes += (axes.empty() ? "" : ", ") + getReadable(extent.str());
      }
      os << "  {\n";
      std::string place = printPlace(bounds);
      os << wrapped("    const int64_t moa_extents[] = {" + (extents.empty() ? "1" : extents) + "};") << "\n"
         << wrapped("    code = moa_check_bounds(&m, stream, " + result + getNumberText(shown.within.epsilon) + ", " +
                    place + ", " + quote(axes) + ", moa_extents, " + std::to_string(bounds.extents.size()) + ");")
         << "\n  }\n  if (code == MOA_LAUNCH)\n    return code;\n  moa_found = code ? code : "
            "moa_found;\n";
    }
    os << "  return moa_found;\n}\n\n";
  }
  void printOtherEntries() {
    begin("int64_t", "_workspace", {}, "{NULL, 0}");
    ignoreScalars();
    if (workspace.empty()) {
      os << "  return -(int64_t)" << callOfExamine() << ";\n}\n\n";
    } else {
      os << "  int32_t code = MOA_OK;\n  moa_checked size;\n";
      declarePlaces();
      os << wrapped("  code = " + callOfExamine() + ";") << "\n  if (code)\n    return -(int64_t)code;\n"
         << wrapped("  size = " + size() + ";") << "\n  return size.code ? -(int64_t)size.code : size.value;\n}\n\n";
    }
    begin("int32_t", "_check", {"char *message", "size_t n"}, "{message, n}");
    ignoreScalars();
    os << "  if (message && n)\n    message[0] = 0;\n  return " << callOfExamine() << ";\n}\n\n";
    if (signature.hasInputDependentTolerance())
      printShown();
    printHead("int32_t", signature.name + "_prepare", {"int32_t device"});
    std::string kernels, bytes;
    for (const gpu::Launch &launch : launches) {
      kernels += (kernels.empty() ? "" : ", ") + quote(launch.name);
      bytes += (bytes.empty() ? "" : ", ") + std::to_string(launch.sharedBytes);
    }
    os << "  static const char *const kernels[] = {" << (kernels.empty() ? "NULL" : kernels)
       << "};\n  static const int shared_bytes[] = {" << (bytes.empty() ? "0" : bytes)
       << "};\n  return moa_prepare(device, kernels, shared_bytes, " << launches.size() << ");\n}\n";
  }

public:
  std::string printPrototypes() const {
    std::string result;
    for (const std::string &head : heads)
      if (!StringRef(head).starts_with("static"))
        result += head + ";\n";
    return result;
  }

private:
  const KernelSignature &signature;
  const std::vector<gpu::Launch> &launches;
  std::map<std::string, std::string> conditions; // variables that hold them
  const std::vector<gpu::WorkspaceArray> &workspace;
  const bool hasRuntimeOffsets;
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

Expected<std::string> printLauncher(ArrayRef<Program> programs, StringRef ptx, Binding binding) {
  std::string notes, prototypes, hosts;
  std::vector<KernelSignature> bound;
  for (const Program &program : programs) {
    if (StringRef(program.signature.name).starts_with_insensitive("moa"))
      return createStringError("a kernel cannot be called '" + program.signature.name +
                               "' in PTX: the launcher reserves names that start with 'moa'; "
                               "rename it");
    notes += comment(program.notes);
    ProgramPrinter printer(program);
    hosts += "\n" + printer.print();
    prototypes += printer.printPrototypes();
    bound.push_back(program.signature);
  }
  return "/*\n" + notes +
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
