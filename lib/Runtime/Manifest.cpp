//===- Manifest.cpp - reads a manifest ------------------------------------===//
#include "lib/Runtime/Program.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace moa::runtime {

namespace {

using Json = nlohmann::json;

constexpr int kVersion = 3;

const ElementType kElements[] = {
    {"f64", 64, 2, 'd'}, {"f32", 32, 2, 'f'}, {"bf16", 16, 4, 's'}, {"f16", 16, 2, 's'}, {"bool", 8, 6, 'b'},
    {"i8", 8, 0, 'i'},   {"i16", 16, 0, 'i'}, {"i32", 32, 0, 'i'},  {"i64", 64, 0, 'i'}, {"u8", 8, 1, 'u'},
    {"u16", 16, 1, 'u'}, {"u32", 32, 1, 'u'}, {"i1", 8, 6, 0},      {"f8", 8, 10, 0},    {"f8E4M3FN", 8, 10, 0},
};

/// What is wrong with a manifest. It does not leave this file.
struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string &why) { throw Wrong("the manifest " + why); }

const ElementType *typeOf(const Json &object) {
  const std::string &name = object.at("type").get_ref<const std::string &>();
  const ElementType *type = findElementType(name);
  if (!type)
    fail("has the unknown type '" + name + "'");
  return type;
}

int64_t integer(const Json &value, int64_t low, int64_t high) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)) ||
      value.get<int64_t>() < low || value.get<int64_t>() > high)
    fail("has " + value.dump() + " in place of an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return value.get<int64_t>();
}

/// "12.7" as 12070.
int parseDriver(const std::string &text) {
  int major = 0, minor = 0;
  char end = 0;
  if (std::sscanf(text.c_str(), "%d.%d%c", &major, &minor, &end) != 2 || major < 0 || major > 1000 || minor < 0 ||
      minor > 99)
    fail("has the driver '" + text + "', which is no version");
  return major * 1000 + minor * 10;
}

/// Reads `sm_90a`.
void parseTarget(const std::string &target, cuda::Requirements &needed) {
  int capability = 0;
  char suffix = 0, end = 0;
  int found = std::sscanf(target.c_str(), "sm_%d%c%c", &capability, &suffix, &end);
  if (found < 1 || found > 2 || capability < 10)
    fail("is for '" + target + "', which is no architecture of a GPU");
  needed.major = capability / 10;
  needed.minor = capability % 10;
  needed.isExact = found == 2;
}

/// Reads one program of a manifest.
class Reader {
public:
  Reader(Function &function, const Json &program) : f(function), json(program) {}

  void readSignature() {
    f.name = json.at("name").get<std::string>();
    for (const Json &symbol : json.at("symbols"))
      f.symbols.push_back(symbol.get<std::string>());
    if (f.symbols.size() > 4096)
      fail("has too many symbols");
    for (const Json &argument : json.at("arguments"))
      readParameter(argument);
    for (size_t k = 0; k < f.arrays.size(); ++k) {
      Parameter &array = f.parameters[f.arrays[k]];
      bool isOutput = array.role == MOA_OUTPUT;
      if (!isOutput && f.numInputs != k)
        fail("has an input of '" + f.name + "' behind an output");
      f.numInputs += !isOutput;
      for (const Json &extent : argumentOf(f.arrays[k]).at("shape"))
        array.extents.push_back(compile(extent, /*ofSymbols=*/true));
    }
    for (const Json &binding : json.at("bindings"))
      f.bindings.push_back(bind(binding.at("symbol").get<std::string>(), compile(binding.at("value"))));
    static const char *const relations[] = {"==", "!=", "<", "<=", ">", ">="};
    for (const Json &entry : json.at("constraints")) {
      Constraint constraint{entry.at("text").get<std::string>(), compile(entry.at("left"), /*ofSymbols=*/true),
                            compile(entry.at("right"), /*ofSymbols=*/true)};
      const std::string relation = entry.at("relation").get<std::string>();
      while (constraint.relation < 6 && relation != relations[constraint.relation])
        ++constraint.relation;
      if (constraint.relation == 6)
        fail("has the unknown relation '" + relation + "'");
      f.constraints.push_back(std::move(constraint));
    }
    solveFromInputs();
  }

  void readLaunches() {
    for (const Json &array : json.at("workspace"))
      readWorkspace(array);
    // Otherwise the size follows from the arrays; as an expression it is long.
    if (!f.hasRuntimeOffsets)
      f.workspaceBytes = compile(json.at("workspace_bytes"));
    for (const Json &launch : json.at("launches"))
      readLaunch(launch);
    if (auto shown = json.find("shown"); shown != json.end())
      for (const Json &entry : *shown)
        readShown(entry);
  }

private:
  const Json &argumentOf(unsigned parameter) const { return json.at("arguments").at(parameter); }

  void readParameter(const Json &argument) {
    Parameter p;
    p.name = argument.at("name").get<std::string>();
    p.type = typeOf(argument);
    const std::string role = argument.at("role").get<std::string>();
    p.role = role == "output" ? MOA_OUTPUT : role == "scalar" ? MOA_SCALAR : MOA_INPUT;
    if (p.role == MOA_INPUT && role != "input")
      fail("has the unknown role '" + role + "'");
    if (p.role == MOA_SCALAR && !p.type->scalar)
      fail("has the scalar '" + p.name + "' of a type that no scalar has");
    const Json &shape = argument.at("shape");
    if (shape.size() > size_t(kMaxRank))
      fail("has '" + p.name + "' of more than " + std::to_string(kMaxRank) + " axes");
    std::string axes;
    for (const Json &extent : shape) {
      const std::string text = extent.get<std::string>();
      p.shape += (p.shape.empty() ? "" : ", ") + text;
      std::optional<Polynomial> parsed = Polynomial::parse(text);
      axes += (axes.empty() ? "" : ", ") + (parsed ? parsed->str() : text);
    }
    p.typeText = p.type->name + (axes.empty() ? "" : "[" + axes + "]");
    (p.role == MOA_SCALAR ? f.scalars : f.arrays).push_back(f.parameters.size());
    f.parameters.push_back(std::move(p));
  }

  /// Finds the place of `N`, `Q.shape[1]` or `Q.s1`.
  std::optional<Place> resolve(const std::string &name) const {
    for (size_t k = 0; k < f.symbols.size(); ++k)
      if (f.symbols[k] == name)
        return Place{Place::Symbol, 0, uint16_t(k)};
    for (size_t k = 0; k < f.arrays.size(); ++k) {
      const Parameter &array = f.parameters[f.arrays[k]];
      if (name.compare(0, array.name.size() + 1, array.name + ".") != 0)
        continue;
      const std::string rest = name.substr(array.name.size() + 1);
      for (size_t axis = 0; axis < argumentOf(f.arrays[k]).at("shape").size(); ++axis) {
        if (rest == "shape[" + std::to_string(axis) + "]")
          return Place{Place::Extent, uint8_t(axis), uint16_t(k)};
        if (rest == "s" + std::to_string(axis))
          return Place{Place::Stride, uint8_t(axis), uint16_t(k)};
      }
    }
    return std::nullopt;
  }
  Expression::Resolver resolver() const {
    return [this](const std::string &name) { return resolve(name); };
  }
  /// Compiles a text or a number; `ofSymbols` if no extent or stride of an array may occur.
  Expression compile(const Json &value, bool ofSymbols = false) const {
    const std::string text = value.is_number_integer() ? value.dump() : value.get<std::string>();
    Expression expression;
    auto resolveSymbol = [this](const std::string &name) {
      std::optional<Place> place = resolve(name);
      return place && place->kind == Place::Symbol ? place : std::nullopt;
    };
    if (std::string why = expression.compile(text, ofSymbols ? Expression::Resolver(resolveSymbol) : resolver());
        !why.empty())
      fail("has the expression '" + text + "', which " + why);
    return expression;
  }
  Binding bind(const std::string &symbol, Expression value) const {
    std::optional<Place> place = resolve(symbol);
    if (!place || place->kind != Place::Symbol)
      fail("binds the unknown symbol '" + symbol + "'");
    return {symbol, *place, std::move(value)};
  }

  /// Finds every symbol that an extent of an input gives, alone or with a constant factor.
  void solveFromInputs() {
    std::vector<bool> known(f.symbols.size());
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t k = 0; k < f.symbols.size(); ++k)
        if (!known[k] && solve(f.symbols[k], known))
          progress = known[k] = true;
    }
    for (size_t k = 0; k < f.symbols.size() && f.notFromInputs.empty(); ++k)
      if (!known[k])
        f.notFromInputs = f.symbols[k];
  }
  bool solve(const std::string &symbol, const std::vector<bool> &known) {
    for (unsigned k = 0; k < f.numInputs; ++k) {
      const Parameter &input = f.parameters[f.arrays[k]];
      for (size_t axis = 0; axis < input.extents.size(); ++axis) {
        std::optional<Polynomial> extent = Polynomial::parse(input.extents[axis].text());
        if (!extent)
          continue;
        std::string shape = input.name + ".shape[" + std::to_string(axis) + "]";
        std::optional<Polynomial> value = extent->solve(symbol, Polynomial::symbol(shape));
        bool isKnown = value.has_value();
        for (size_t other = 0; isKnown && other < f.symbols.size(); ++other)
          isKnown = known[other] || !value->mentions(f.symbols[other]);
        Expression code;
        if (isKnown && code.compile(*value, resolver()).empty()) {
          f.fromInputs.push_back(bind(symbol, std::move(code)));
          return true;
        }
      }
    }
    return false;
  }

  void readWorkspace(const Json &entry) {
    Workspace array;
    array.name = entry.at("name").get<std::string>();
    array.type = typeOf(entry);
    for (const Json &extent : entry.at("shape"))
      array.extents.push_back(compile(extent));
    array.bytes = compile(entry.at("bytes"));
    array.unit = integer(entry.at("unit"), 1, INT64_MAX);
    array.slack = integer(entry.at("slack"), 0, INT64_MAX);
    const std::string offset = entry.at("offset").get<std::string>();
    if (offset.find_first_not_of("0123456789") == std::string::npos)
      array.offset = compile(Json(offset)).constant().value_or(0);
    else
      f.hasRuntimeOffsets = true;
    f.workspace.push_back(std::move(array));
  }

  unsigned findArray(const std::string &name) const {
    for (size_t k = 0; k < f.arrays.size(); ++k)
      if (f.parameters[f.arrays[k]].name == name)
        return k;
    fail("names the unknown array '" + name + "'");
  }
  unsigned findWorkspace(const std::string &name) const {
    for (size_t k = 0; k < f.workspace.size(); ++k)
      if (f.workspace[k].name == name)
        return k;
    fail("names the unknown array '" + name + "' of the workspace");
  }

  TensorMap readMap(const Json &entry) {
    static const std::pair<const char *, const char *> fixed[] = {
        {"interleave", "none"}, {"swizzle", "128B"}, {"l2_promotion", "256B"}, {"out_of_bounds", "zeros"}};
    for (auto [field, value] : fixed)
      if (entry.at(field) != value)
        fail("has a tensor map with the unknown " + std::string(field) + " " + entry.at(field).dump());
    TensorMap map;
    map.isOfWorkspace = entry.contains("workspace");
    if (map.isOfWorkspace) {
      map.array = findWorkspace(entry.at("workspace").get<std::string>());
      map.rank = f.workspace[map.array].extents.size();
    } else {
      map.array = findArray(entry.at("array").get<std::string>());
      map.rank = f.parameters[f.arrays[map.array]].extents.size();
      bool isNew = true;
      for (unsigned other : f.tiled)
        isNew &= other != map.array;
      if (isNew)
        f.tiled.push_back(map.array);
    }
    const Json &box = entry.at("box");
    if (map.rank < 1 || map.rank > unsigned(kMaxMapRank) || box.size() != map.rank)
      fail("has a tensor map of " + std::to_string(map.rank) + " axes and a box of " + std::to_string(box.size()));
    map.rowAxis = unsigned(integer(entry.at("row_axis"), 0, map.rank - 1));
    const ElementType *type = typeOf(entry);
    if (type->bits > 16)
      fail("has tiles of " + std::string(type->name));
    // Innermost first: 128 bytes, the rows, and one index of each other axis.
    for (unsigned k = 0; k < map.rank; ++k) {
      bool isRows = k && k == map.rank - 1 - map.rowAxis;
      int64_t size = k ? 1 : 1024 / type->bits;
      int64_t given = integer(box.at(k), isRows ? 1 : size, isRows ? INT32_MAX : size);
      map.rows = isRows ? int(given) : map.rows;
    }
    if (auto step = entry.find("row_step"); step != entry.end()) {
      map.hasStep = true;
      map.step = compile(*step);
    }
    return map;
  }

  LaunchParameter readLaunchParameter(const Json &entry, Launch &launch) {
    const std::string kind = entry.at("kind").get<std::string>();
    if (kind == "pointer")
      return {LaunchParameter::Pointer, 0, uint16_t(findArray(entry.at("array").get<std::string>()))};
    if (kind == "workspace")
      return {LaunchParameter::Workspace, 0, uint16_t(findWorkspace(entry.at("name").get<std::string>()))};
    if (kind == "tensor_map") {
      launch.maps.push_back(readMap(entry));
      return {LaunchParameter::Map, 0, uint16_t(f.numMaps++)};
    }
    const std::string name = entry.at("name").get<std::string>();
    if (kind == "scalar")
      for (size_t k = 0; k < f.scalars.size(); ++k)
        if (f.parameters[f.scalars[k]].name == name)
          return {LaunchParameter::Scalar, 0, uint16_t(k)};
    std::optional<Place> place = kind == "symbol" ? resolve(name) : std::nullopt;
    if (!place || place->kind == Place::Extent)
      fail("has an unknown parameter of a kernel: " + entry.dump());
    return {place->kind == Place::Symbol ? LaunchParameter::Symbol : LaunchParameter::Stride, place->axis,
            place->number};
  }

  /// Reads `min(expression, number)` or an expression.
  void readGrid(const Json &grid, Launch &launch) {
    std::string text = grid.get<std::string>();
    if (text.compare(0, 4, "min(") == 0 && text.back() == ')') {
      size_t comma = text.rfind(", ");
      char *end = nullptr;
      launch.mostBlocks = comma == std::string::npos ? 0 : std::strtoll(text.c_str() + comma + 2, &end, 10);
      if (launch.mostBlocks < 1 || launch.mostBlocks > INT32_MAX || std::strcmp(end, ")") != 0)
        fail("has the grid '" + text + "'");
      text = text.substr(4, comma - 4);
    }
    launch.blocks = compile(Json(text));
  }

  int readConditions(const Json &texts) {
    Condition condition;
    std::string all;
    for (const Json &entry : texts) {
      const std::string text = entry.get<std::string>();
      size_t at = text.find(" > ");
      if (at == std::string::npos)
        fail("has the condition '" + text + "'");
      condition.larger.emplace_back(compile(Json(text.substr(0, at))), compile(Json(text.substr(at + 3))));
      all += text + ";";
    }
    for (size_t k = 0; k < conditionTexts.size(); ++k)
      if (conditionTexts[k] == all)
        return int(k);
    conditionTexts.push_back(all);
    f.conditions.push_back(std::move(condition));
    return int(conditionTexts.size()) - 1;
  }

  void readLaunch(const Json &entry) {
    auto launch = std::make_unique<Launch>();
    launch->kernel = entry.at("kernel").get<std::string>();
    readGrid(entry.at("grid"), *launch);
    launch->threads = int(integer(entry.at("block"), 1, 1024));
    launch->sharedBytes = int(integer(entry.at("shared_bytes"), 0, INT32_MAX));
    launch->number = int(f.launches.size());
    launch->isForShown = entry.value("for_shown", false);
    launch->isReliedOn = entry.value("relied_on", false);
    if (entry.value("beside", false) && launch->number)
      launch->firstOverlapped = launch->number - 1;
    if (auto behind = entry.find("overlaps_behind"); behind != entry.end())
      launch->firstOverlapped = std::max(launch->firstOverlapped, int(integer(*behind, 0, 1 << 20)));
    if (auto needed = entry.find("needed_where"); needed != entry.end() && !needed->empty())
      launch->condition = readConditions(*needed);
    launch->firstMap = f.numMaps;
    for (const Json &parameter : entry.at("parameters"))
      launch->parameters.push_back(readLaunchParameter(parameter, *launch));
    f.mostParameters = std::max(f.mostParameters, unsigned(launch->parameters.size()));
    f.launches.push_back(std::move(launch));
  }

  void readShown(const Json &entry) {
    Shown shown;
    shown.name = entry.at("result").get<std::string>();
    shown.array = findArray(shown.name);
    shown.tolerance = entry.at("tolerance").get<std::string>();
    shown.within = entry.at("within").get<double>();
    if (auto never = entry.find("never"); never != entry.end()) {
      shown.never = never->get<std::string>();
    } else {
      f.hasShown = true;
      shown.workspace = findWorkspace(entry.at("workspace").get<std::string>());
      for (const Json &extent : entry.at("shape")) {
        shown.extents.push_back(compile(extent));
        shown.axes += (shown.axes.empty() ? "" : ", ") + extent.get<std::string>();
      }
    }
    f.shown.push_back(std::move(shown));
  }

  Function &f;
  const Json &json;
  std::vector<std::string> conditionTexts; ///< of the conditions so far
};

std::unique_ptr<Program> readAll(const char *text, bool isCpu) {
  Json json = Json::parse(text);
  int64_t version = integer(json.at("version"), 0, INT32_MAX);
  if (version != kVersion)
    fail("has version " + std::to_string(version) + ", but this library reads version " + std::to_string(kVersion) +
         "; use moa-codegen and libmoa-runtime of one release");
  auto program = std::make_unique<Program>();
  program->isCpu = isCpu;
  program->target = json.at("target").get<std::string>();
  if ((program->target == "cpu") != isCpu)
    fail("is for " + program->target +
         (isCpu ? "; load it with moa_program_load_gpu" : "; load it with moa_program_load_cpu"));
  if (!isCpu) {
    parseTarget(program->target, program->needed);
    program->needed.target = program->target.c_str();
    program->needed.driver = parseDriver(json.at("driver").get<std::string>());
  }
  for (const Json &entry : json.at("programs")) {
    auto function = std::make_unique<Function>();
    function->program = program.get();
    Reader reader(*function, entry);
    reader.readSignature();
    if (!isCpu)
      reader.readLaunches();
    function->frameBytes = measureFrame(*function);
    if (function->frameBytes > (size_t(1) << 18))
      fail("has too many arrays, launches or tensor maps in '" + function->name + "'");
    program->functions.push_back(std::move(function));
  }
  return program;
}

} // namespace

const ElementType *findElementType(const std::string &name) {
  for (const ElementType &type : kElements)
    if (name == type.name)
      return &type;
  return nullptr;
}

std::unique_ptr<Program> readManifest(const char *text, bool isCpu, std::string &why) {
  try {
    return readAll(text, isCpu);
  } catch (const Wrong &wrong) {
    why = wrong.what();
  } catch (const Json::exception &wrong) {
    why = "the manifest cannot be read: " + std::string(wrong.what());
  } catch (const std::bad_alloc &) {
    why = "there is too little memory";
  }
  return nullptr;
}

} // namespace moa::runtime
