//===- Inputs.cpp - sizes and values for a random specification -----------===//
#include "Inputs.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringSwitch.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

using namespace moa;
using namespace moa::random;

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// A few seconds of interpretation with all its repetitions.
static constexpr double kMostCost = 2e7;

static std::optional<int64_t> evaluate(const SymExpr &expr, const Sizes &sizes) {
  return expr.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = sizes.find(name.str());
    return found == sizes.end() ? std::nullopt : std::optional<int64_t>(found->second);
  });
}

/// What the elements of all outputs cost at these sizes, in elements that are read or
/// computed, where every use computes its operand again, as normal forms without
/// intermediate arrays may. Calls count as one reduction of their arguments.
static double costOf(const Program &program, const std::vector<NodeId> &nodes, const Sizes &sizes) {
  std::map<NodeId, double> counts, costs; // elements, and the cost of one
  for (NodeId id : nodes) {               // operands first
    const Node &node = program.nodes[id];
    double &count = counts[id] = 1, &cost = costs[id] = 1;
    for (const SymExpr &extent : node.shape)
      count *= evaluate(extent, sizes).value_or(1);
    double operands = 0, most = 0;
    for (NodeId operand : node.operands) {
      operands += costs[operand];
      most = std::max(most, counts[operand]);
    }
    llvm::StringRef op = node.op;
    double terms = 1;
    if (op.contains('.') || op.starts_with("inner")) {
      const Shape &left = program.nodes[node.operands[0]].shape;
      terms = left.empty() ? 1 : double(evaluate(left.back(), sizes).value_or(1));
    } else if (op.ends_with("/") || op.starts_with("reduce ") || op == "mean" || op == "logsumexp") {
      terms = std::max(1.0, most / std::max(count, 1.0));
    } else if (op == "softmax" || node.callee) {
      // What a row shares is shared by its elements only where they are asked for by rows.
      for (NodeId operand : node.operands)
        if (const Shape &shape = program.nodes[operand].shape; !shape.empty())
          terms = std::max(terms, double(evaluate(shape.back(), sizes).value_or(1)));
    }
    cost += terms * operands;
  }
  double total = 0;
  for (const Output &output : program.outputs)
    total += counts[output.node] * costs[output.node];
  return total;
}

static bool fits(const Program &program, const std::vector<Need> &needs, const std::vector<NodeId> &nodes,
                 const Sizes &sizes, double most) {
  for (const Need &need : needs) {
    auto value = evaluate(need.value, sizes);
    if (!value || *value < need.low)
      return false;
  }
  double total = 0;
  for (NodeId id : nodes) {
    const Node &node = program.nodes[id];
    if (node.home != 0)
      continue;
    double count = 1;
    for (const SymExpr &extent : node.shape) {
      auto value = evaluate(extent, sizes);
      if (!value || *value < 0)
        return false;
      count *= *value;
    }
    if (count > most)
      return false;
    total += count;
  }
  return total <= 10 * most && costOf(program, nodes, sizes) <= kMostCost;
}

std::optional<Sizes> moa::random::chooseSizes(const Program &program, unsigned round) {
  std::mt19937_64 engine(program.seed * 31 + round);
  std::vector<Need> needs = program.needs();
  std::vector<NodeId> nodes = program.reachable();
  std::vector<std::string> symbols = program.symbols();
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    Sizes sizes;
    for (const std::string &name : symbols) {
      int64_t most = round == 0 ? 9 - int64_t(attempt / 15) : round == 1 ? 2 : 40 - attempt / 3;
      int64_t least = round == 0 && attempt % 4 ? 1 : 0;
      sizes[name] = least + int64_t(engine() % (most - least + 1));
    }
    if (fits(program, needs, nodes, sizes, 1500))
      return sizes;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

double moa::random::roundToType(double value, const std::string &type) {
  const llvm::fltSemantics *semantics = llvm::StringSwitch<const llvm::fltSemantics *>(type)
                                            .Case("f32", &llvm::APFloat::IEEEsingle())
                                            .Case("f16", &llvm::APFloat::IEEEhalf())
                                            .Case("bf16", &llvm::APFloat::BFloat())
                                            .Default(nullptr);
  if (!semantics)
    return value;
  llvm::APFloat number(value);
  bool loses = false;
  number.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return number.convertToDouble();
}

std::vector<ReferenceArray> moa::random::chooseInputs(const Program &program, const KernelInfo &info,
                                                      const std::vector<std::vector<int64_t>> &shapes,
                                                      const Sizes &sizes, unsigned round) {
  std::vector<ReferenceArray> inputs;
  for (size_t k = 0; k < info.parameters.size() && !info.parameters[k].isOutput; ++k) {
    const ParameterInfo &entry = info.parameters[k];
    const Parameter *parameter = nullptr;
    for (const Parameter &p : program.parameters)
      if (p.name == entry.name)
        parameter = &p;
    uint64_t seed = program.seed * 1000003 + round;
    for (char c : entry.name)
      seed = seed * 31 + c;
    std::mt19937_64 engine(seed);
    auto pick = [&](uint64_t n) { return int64_t(engine() % n); };
    ReferenceArray array;
    array.shape = shapes[k];
    size_t count = 1;
    for (int64_t extent : array.shape)
      count *= extent;
    for (size_t i = 0; i < count; ++i) {
      double value = 1;
      if (entry.elementType == "bool") {
        value = pick(8) < int64_t(parameter ? parameter->density : 4);
      } else if (parameter && parameter->isIndex) {
        auto bound = evaluate(parameter->bound, sizes);
        value = bound && *bound > 0 ? pick(*bound) : 0;
      } else if (parameter) {
        int64_t most = parameter->magnitude;
        bool whole = parameter->integral || entry.elementType[0] == 'i' || entry.elementType[0] == 'u';
        value = whole ? pick(2 * most + 1) - most
                      : roundToType((double(pick(2000001)) / 1e6 - 1) * parameter->magnitude, entry.elementType);
      }
      array.data.push_back(value);
    }
    inputs.push_back(std::move(array));
  }
  return inputs;
}

//===----------------------------------------------------------------------===//
// Arguments in memory
//===----------------------------------------------------------------------===//

static constexpr unsigned char kUntouched = 0xA5;

Memory::Memory(const std::vector<int64_t> &dims, const std::string &type, unsigned gap, Placement placement)
    : type(type), shape(dims), strides(dims.size()) {
  struct Row {
    const char *name;
    unsigned code, bits;
  };
  static const Row rows[] = {{"f64", 2, 64}, {"f32", 2, 32}, {"bf16", 4, 16}, {"f16", 2, 16},
                             {"i64", 0, 64}, {"i32", 0, 32}, {"i16", 0, 16},  {"i8", 0, 8},
                             {"u32", 1, 32}, {"u16", 1, 16}, {"u8", 1, 8},    {"bool", 6, 8}};
  const Row *row = std::find_if(std::begin(rows), std::end(rows) - 1, [&](const Row &row) { return type == row.name; });
  width = row->bits / 8;
  int64_t size = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    strides[k] = size;
    size *= shape[k] + (gap ? (k * 7 + shape[k]) % (gap + 1) : 0);
  }
  // The last element is the last one of memory, whatever gap there is after it.
  size_t elements = size > 0 ? 1 : 0;
  for (size_t k = 0; k < shape.size(); ++k)
    elements = shape[k] == 0 ? 0 : elements ? elements + (shape[k] - 1) * strides[k] : 0;
  pages = std::make_unique<ProtectedPages>(elements * width, placement, kUntouched);
  data = pages->getData();
  descriptor.data = data;
  descriptor.device = {/*CPU*/ 1, 0};
  descriptor.ndim = shape.size();
  descriptor.shape = shape.data();
  descriptor.strides = gap ? strides.data() : nullptr;
  descriptor.dtype.code = row->code;
  descriptor.dtype.bits = row->bits;
  descriptor.dtype.lanes = 1;
}

/// Calls f with the address of each element, in row-major order.
template <typename F> void Memory::forEach(F f) const {
  for (int64_t extent : shape)
    if (extent == 0)
      return;
  std::vector<int64_t> index(shape.size(), 0);
  for (;;) {
    size_t offset = 0;
    for (size_t k = 0; k < shape.size(); ++k)
      offset += index[k] * strides[k];
    f(data + offset * width);
    size_t k = shape.size();
    while (k > 0 && ++index[k - 1] == shape[k - 1])
      index[--k] = 0;
    if (k == 0)
      return;
  }
}

static const llvm::fltSemantics &semanticsOf(const std::string &type) {
  return type == "bf16" ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf();
}

void Memory::fill(const std::vector<double> &values) {
  size_t k = 0;
  forEach([&](unsigned char *at) {
    double value = values[k++];
    float narrow = float(value);
    int64_t integer = value;
    if (type == "f64") {
      std::memcpy(at, &value, 8);
    } else if (type == "f32") {
      std::memcpy(at, &narrow, 4);
    } else if (width == 2 && type != "i16" && type != "u16") {
      llvm::APFloat number(value);
      bool loses = false;
      number.convert(semanticsOf(type), llvm::APFloat::rmNearestTiesToEven, &loses);
      uint16_t bits = number.bitcastToAPInt().getZExtValue();
      std::memcpy(at, &bits, 2);
    } else {
      std::memcpy(at, &integer, width);
    }
  });
}

std::vector<double> Memory::read() const {
  std::vector<double> values;
  forEach([&](const unsigned char *at) {
    double value = 0;
    float narrow = 0;
    int64_t integer = 0;
    if (type == "f64") {
      std::memcpy(&value, at, 8);
    } else if (type == "f32") {
      std::memcpy(&narrow, at, 4);
      value = narrow;
    } else if (width == 2 && type != "i16" && type != "u16") {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      llvm::APFloat number(semanticsOf(type), llvm::APInt(16, bits));
      bool loses = false;
      number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
      value = number.convertToDouble();
    } else {
      std::memcpy(&integer, at, width);
      unsigned unused = 64 - 8 * width;
      value = type[0] == 'u' ? double(integer) : double(int64_t(uint64_t(integer) << unused) >> unused);
    }
    values.push_back(value);
  });
  return values;
}

bool Memory::isIntact() const {
  std::vector<bool> isElement(pages->end() - pages->begin());
  forEach([&](const unsigned char *at) {
    for (unsigned k = 0; k < width; ++k)
      isElement[at - pages->begin() + k] = true;
  });
  for (size_t k = 0; k < isElement.size(); ++k)
    if (!isElement[k] && pages->begin()[k] != kUntouched)
      return false;
  return true;
}
