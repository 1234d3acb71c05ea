//===- WarpPrinter.cpp - operations of warps on registers as CUDA C++ -*- C++ -*-===//
//
// Products by mma.sync, tile loads by ldmatrix, and layout conversions. Each is a function whose
// text follows from the layouts.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "lib/Target/CUDA/KernelPrinter.h"

using namespace mlir;

namespace moa::cuda {

using device::FragmentType;
using device::LayoutAttr;
using device::Place;

static std::string number(int64_t value) { return std::to_string(value); }

static bool isPacked(FragmentType type) {
  return isa<FloatType>(type.getElementType()) && type.getElementType().getIntOrFloatBitWidth() == 16;
}

/// Joins texts of the items as `{0, 1, 2}`.
template <class List, class Text> static std::string braces(const List &list, Text text) {
  std::string inner;
  for (const auto &item : list)
    inner += (inner.empty() ? "" : ", ") + text(item);
  return "{" + inner + "}";
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

namespace {
/// The registers of one operand's tiles as text: a formula if it is linear in the position of the
/// tile, else a table.
class RegisterTable {
public:
  RegisterTable(const device::TileRegisters &tiles, int64_t each, const char *name, const char *row, const char *column)
      : name(name), row(row), column(column) {
    for (const auto &line : tiles.registers) {
      auto &to = table.emplace_back();
      for (const auto &list : line) {
        auto &numbers = to.emplace_back();
        for (size_t i = 0; i < list.size(); i += each)
          numbers.push_back(list[i] / each);
      }
    }
    rowStep = table.size() > 1 ? table[1][0][0] - table[0][0][0] : 0;
    columnStep = table[0].size() > 1 ? table[0][1][0] - table[0][0][0] : 0;
    for (size_t r = 0; r != table.size(); ++r)
      for (size_t c = 0; c != table[r].size(); ++c)
        for (size_t i = 0; i != table[r][c].size(); ++i)
          isLinear &= table[r][c][i] == table[0][0][i] + int64_t(r) * rowStep + int64_t(c) * columnStep;
  }

  size_t count() const { return table[0][0].size(); }
  bool isFormula() const { return isLinear; }
  std::string declaration() const {
    if (isLinear)
      return "";
    std::string extents = "[" + number(table.size()) + "][" + number(table[0].size()) + "][" + number(count()) + "]";
    return "  constexpr short " + std::string(name) + extents + " = " +
           braces(
               table,
               [](const auto &line) { return braces(line, [](const auto &list) { return braces(list, number); }); }) +
           ";\n";
  }
  /// Returns `array[…]` for each register of the tile.
  std::string registers(const char *array) const {
    std::string text;
    for (size_t i = 0; i != count(); ++i)
      text += (i ? ", " : "") + std::string(array) + "[" + at(i) + "]";
    return text;
  }

private:
  std::string at(size_t i) const {
    if (!isLinear)
      return std::string(name) + "[" + row + "][" + column + "][" + number(i) + "]";
    std::string text;
    for (auto [step, index] : {std::pair(rowStep, row), {columnStep, column}})
      if (step)
        text += (text.empty() ? "" : " + ") + (step == 1 ? "" : number(step) + " * ") + index;
    if (int64_t first = table[0][0][i]; first || text.empty())
      text += (text.empty() ? "" : " + ") + number(first);
    return text;
  }

  const char *name, *row, *column;
  std::vector<std::vector<SmallVector<int64_t>>> table;
  int64_t rowStep = 0, columnStep = 0;
  bool isLinear = true;
};
} // namespace

/// Requests the function for one mma.sync, which adds to its first operands.
static std::string requestProduct(const device::TileInstruction &tile, Type element, Helpers &helpers) {
  std::string type = element.isF64() ? "f64" : element.isF16() ? "f16" : "bf16";
  std::string sum = element.isF64() ? "f64" : "f32";
  std::string shape = "m" + number(tile.m) + "n" + number(tile.n) + "k" + number(tile.k);
  return helpers.request("mma_" + shape + "_" + type, [&](const std::string &name) {
    int64_t each = element.isF64() ? 1 : 2, next = 0;
    std::string parameters, places, operands[3], lists[3];
    auto add = [&](unsigned list, const char *letter, int64_t count, const std::string &cpp, const char *constraint) {
      for (int64_t i = 0; i != count; ++i) {
        std::string own = letter + number(i);
        parameters += (next ? ", " : "") + cpp + own;
        lists[list] += (i ? ", %" : "%") + number(next++);
        operands[list] += (i ? ", \"" : "\"") + std::string(constraint) + "\"(" + own + ")";
      }
    };
    const char *value = element.isF64() ? "double " : "uint32_t ", *in = element.isF64() ? "d" : "r";
    add(0, "s", tile.c.elements, element.isF64() ? "double &" : "float &", element.isF64() ? "+d" : "+f");
    add(1, "a", tile.a.elements / each, value, in);
    add(2, "b", tile.b.elements / each, value, in);
    return "// Adds the product of one tile, which the warp holds: " + number(tile.m) + " x " + number(tile.k) +
           " by " + number(tile.k) + " x " + number(tile.n) + ".\n" +
           wrapLine("DEVICE void " + name + "(" + parameters + ") {", 4) + "\n  asm volatile(\"mma.sync.aligned." +
           shape + ".row.col." + sum + "." + type + "." + type + "." + sum + " \"\n" + "               \"{" + lists[0] +
           "}, {" + lists[1] + "}, {" + lists[2] + "}, {" + lists[0] + "};\"\n" +
           wrapLine("               : " + operands[0] + " : " + operands[1] + ", " + operands[2] + ");", 19) + "\n}\n";
  });
}

void KernelPrinter::printContractFragments(device::ContractFragmentsOp op) {
  FragmentType left = op.getA().getType(), type = op.getResult().getType();
  std::string why, from = op.getC() ? value(op.getC()).text : "";
  auto plan = *device::getTileContraction(left, op.getB().getType(), type, why);
  std::string sum = declareFragment(op.getResult(), "product");
  if (op.getC()) {
    copyFragment(sum, from);
  } else {
    write("fill(" + sum + ", " + printConstant(FloatAttr::get(type.getElementType(), 0)) + ");");
    helpers.insert("fill");
  }
  std::string product = requestProduct(*plan.instruction, left.getElementType(), helpers);
  int64_t each = isPacked(left) ? 2 : 1;
  RegisterTable a(plan.a, each, "A", "m", "k"), b(plan.b, each, "B", "k", "n"), c(plan.c, 1, "C", "m", "n");
  auto array = [&](const char *qualifier, const char *name, FragmentType of) {
    int64_t count = of.getLayout().getNumRegisters();
    return std::string(qualifier) + (isPacked(of) ? "uint32_t" : getValueType(of.getElementType()).str()) + " (&" +
           name + ")[" + number(isPacked(of) ? count / 2 : count) + "]";
  };
  std::string contract = helpers.request("contract_fragments", [&](const std::string &name) {
    auto loop = [&](const char *index, size_t count) -> std::string {
      if (count == 1 && a.isFormula() && b.isFormula() && c.isFormula())
        return "";
      return "  UNROLL for (int " + std::string(index) + " = 0; " + index + " < " + number(count) + "; ++" + index +
             ")\n";
    };
    return "// Adds the products of the tiles that a warp holds, over k in order.\nDEVICE void " + name + "(" +
           array("", "sum", type) + ", " + array("const ", "a", left) + ", " +
           array("const ", "b", op.getB().getType()) + ") {\n" + wrapLine(a.declaration(), 6) +
           wrapLine(b.declaration(), 6) + wrapLine(c.declaration(), 6) + loop("m", plan.c.rowStarts.size()) +
           loop("n", plan.c.columnStarts.size()) + loop("k", plan.b.rowStarts.size()) +
           wrapLine("    " + product + "(" + c.registers("sum") + ", " + a.registers("a") + ", " + b.registers("b") +
                        ");",
                    8) +
           "\n}\n";
  });
  write(contract + "(" + sum + ", " + value(op.getA()).text + ", " + value(op.getB()).text + ");");
}

//===----------------------------------------------------------------------===//
// Digits
//===----------------------------------------------------------------------===//

/// Returns an index along an axis as a sum of digits of warp, lane and register `e`.
static std::string indexText(LayoutAttr layout, unsigned axis, ArrayRef<Place> places) {
  std::string text;
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
    if (digit.size == 1 || !llvm::is_contained(places, digit.place))
      continue;
    const char *name = digit.place == Place::warp ? "warp" : digit.place == Place::lane ? "lane" : "e";
    int64_t count = digit.place == Place::warp   ? device::kWarps
                    : digit.place == Place::lane ? device::kLanes
                                                 : layout.getNumRegisters();
    text += (text.empty() ? "" : " + ") + printDigit(name, count, digit.stride, digit.size, digit.weight);
  }
  return text;
}

/// Returns where a layout has the element with indices i0, i1, …: its lane, in the replica of this
/// lane, or its register.
static std::string placeText(LayoutAttr layout, Place place) {
  std::string text;
  for (unsigned axis = 0; axis <= layout.getRank(); ++axis) {
    bool isReplica = axis == layout.getRank();
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
      if (digit.place != place || digit.size == 1 || (isReplica && place == Place::register_))
        continue;
      std::string term =
          isReplica ? printDigit("lane", device::kLanes, digit.stride, digit.size, digit.stride)
                    : printDigit("i" + number(axis), layout.getExtent(axis), digit.weight, digit.size, digit.stride);
      text += (text.empty() ? "" : " + ") + term;
    }
  }
  return text.empty() ? "0" : text;
}

static const char *const kThread =
    "  [[maybe_unused]] const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;\n";

//===----------------------------------------------------------------------===//
// Tile loads
//===----------------------------------------------------------------------===//

static std::string requestMatrices(const device::MatrixLoads &plan, Helpers &helpers) {
  std::string wish = "load_matrices_" + number(plan.count) + (plan.isTransposed ? "_transposed" : "");
  return helpers.request(wish, [&](const std::string &name) {
    std::string parameters, places, operands;
    for (int64_t k = 0; k != plan.count; ++k) {
      parameters += "uint32_t &x" + number(k) + ", ";
      places += (k ? ", %" : "%") + number(k);
      operands += (k ? ", \"=r\"(x" : "\"=r\"(x") + number(k) + ")";
    }
    return "// Reads matrices of 8 x 8 elements of 16 bits, of which each lane has the address of "
           "a row.\nDEVICE void " +
           name + "(" + parameters + "uint32_t address) {\n  asm volatile(\"ldmatrix.sync.aligned.m8n8.x" +
           number(plan.count) + (plan.isTransposed ? ".trans" : "") + ".shared.b16 {" + places + "}, [%" +
           number(plan.count) + "];\"\n               : " + operands + " : \"r\"(address) : \"memory\");\n}\n";
  });
}

void KernelPrinter::printLoadFragment(device::LoadFragmentOp op) {
  device::RingType ring = op.getRing().getType();
  LayoutAttr layout = op.getResult().getType().getLayout();
  bool transposed = op.getTransposed();
  auto plan = *device::getMatrixLoads(layout, transposed);
  std::string tile = stage(op.getRing(), op.getStage()), at;
  for (Value start : {op.getRow(), op.getColumn()}) {
    std::string text = value(start).text;
    at += ", " + (getConstantIntValue(start) ? text : "int(" + text + ")");
  }
  std::string name = declareFragment(op.getResult(), "loaded");
  helpers.insert("shared_address");
  std::string unit = helpers.request("unit_address", [](const std::string &own) {
    return "// The address of 8 elements of a row of a tile with its swizzle.\n"
           "template <int ROWS> DEVICE uint32_t " +
           own +
           "(const void *tile, int row, int unit) {\n"
           "  return shared_address(tile) + (unit / 8 * ROWS + row) * 128 + ((unit % 8) ^ (row % "
           "8)) * 16;\n}\n";
  });
  std::string read = requestMatrices(plan, helpers);
  auto plus = [](const std::string &start, int64_t more) { return more ? start + " + " + number(more) : start; };
  std::string load = helpers.request("load_fragment", [&](const std::string &own) {
    std::string starts[2];
    for (unsigned axis = 0; axis != 2; ++axis) {
      std::string part = indexText(layout, transposed ^ axis, Place::warp);
      starts[axis] = part.empty() ? "" : " + " + part;
      for (unsigned bit = 0; bit != 2; ++bit)
        if (int64_t step = plan.steps[bit][axis])
          starts[axis] += " + " + printDigit("lane", device::kLanes, 8 << bit, 2, step);
    }
    std::string text = "template <int ROWS> DEVICE void " + own + "(uint32_t (&to)[" +
                       number(layout.getNumRegisters() / 2) + "], const void *tile, int row, int column) {\n" +
                       kThread + "  const int r = row + lane % 8" + starts[0] +
                       ", u = " + (starts[1].empty() ? "column" : "(column" + starts[1] + ")") + " / 8;\n";
    for (const auto &load : plan.loads) {
      std::string words;
      for (int64_t word : load.pairs)
        words += "to[" + number(word) + "], ";
      text += wrapLine("  " + read + "(" + words + unit + "<ROWS>(tile, " + plus("r", load.row) + ", " +
                           plus("u", load.column / 8) + "));",
                       6) +
              "\n";
    }
    return text + "}\n";
  });
  write(load + "<" + number(ring.getRows()) + ">(" + name + ", " + tile + at + ");");
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Requests the function that moves registers according to a plan.
static std::string requestConversion(const device::LayoutConversion &plan, LayoutAttr from, LayoutAttr to, bool packed,
                                     Helpers &helpers) {
  size_t most = 0, units = plan.sources.size();
  bool isEven = true;
  for (const auto &list : plan.sources) {
    isEven &= list.size() == plan.sources[0].size();
    most = std::max(most, list.size());
  }
  bool isHalf = packed && plan.width == 1, needsPlace = plan.movesLanes || most > 1;
  int64_t each = packed ? 2 : 1;
  return helpers.request(plan.movesLanes ? "convert_layout" : "reorder_registers", [&](const std::string &name) {
    // The table of sources, padded with −1.
    std::string table = braces(plan.sources, [&](const auto &list) {
      SmallVector<int64_t> padded(list.begin(), list.end());
      padded.resize(most, -1);
      return most == 1 ? number(padded[0]) : braces(padded, number);
    });
    std::string text = "// Moves every element from the register that holds it" +
                       std::string(plan.movesLanes ? ", in any lane of the warp" : "") +
                       ".\n// SOURCES lists the registers that a thread may need.\ntemplate <class T> DEVICE void " +
                       name + "(T (&to)[" + number(to.getNumRegisters() / each) + "], const T (&x)[" +
                       number(from.getNumRegisters() / each) + "]) {\n" + (needsPlace ? kThread : "") +
                       wrapLine("  constexpr short SOURCES[" + number(units) + "]" +
                                    (most == 1 ? "" : "[" + number(most) + "]") + " = " + table + ";",
                                6) +
                       "\n";
    std::string step = plan.width == 1 ? "++e" : "e += 2", u = plan.width == 1 ? "e" : "e / 2";
    text += "  UNROLL for (int e = 0; e < " + number(to.getNumRegisters()) + "; " + step + ") {\n";
    std::string indices;
    for (unsigned axis = 0; needsPlace && axis != to.getRank(); ++axis) {
      std::string index = indexText(to, axis, {Place::warp, Place::lane, Place::register_});
      indices += (axis ? ", i" : "i") + number(axis) + " = " + (index.empty() ? "0" : index);
    }
    if (needsPlace)
      text += wrapLine("    [[maybe_unused]] const int " + indices + ";", 8) + "\n";
    if (plan.movesLanes)
      text += wrapLine("    const int from = " + placeText(from, Place::lane) + ";", 8) + "\n";
    if (most > 1)
      text += wrapLine("    const int held = " + placeText(from, Place::register_) + ";", 8) + "\n";
    std::string source = "SOURCES[" + u + (most == 1 ? "]" : "][k]"),
                element = "x[" + source + (isHalf ? " / 2]" : "]");
    if (plan.movesLanes)
      element = "__shfl_sync(0xffffffff, " + element + ", from)";
    if (isHalf)
      element += " >> " + source + " % 2 * 16 & 0xffff";
    // The second of two halves joins the first.
    std::string target = isHalf ? "half" : "to[" + u + "]";
    std::string join = isHalf ? "    to[e / 2] = e % 2 ? to[e / 2] | half << 16 : half;\n" : "";
    std::string type = isHalf ? "uint32_t" : "T";
    if (most == 1)
      return text + "    " + (isHalf ? "const uint32_t " : "") + target + " = " + element + ";\n" + join + "  }\n}\n";
    if (isHalf)
      text += "    uint32_t half = 0;\n";
    text += "    UNROLL for (int k = 0; k < " + number(most) + "; ++k) {\n";
    if (!isEven)
      text += "      if (" + source + " < 0)\n        continue;\n";
    text += "      const " + type + " v = " + element + ";\n      if (k == 0 || held == " + source +
            (plan.width == 1 ? "" : " * 2") + ")\n        " + target + " = v;\n    }\n" + join;
    return text + "  }\n}\n";
  });
}

void KernelPrinter::printConvertLayout(device::ConvertLayoutOp op) {
  FragmentType from = op.getFragment().getType(), to = op.getResult().getType();
  bool packed = isPacked(to);
  if (packed && (from.getLayout().getNumRegisters() % 2 || to.getLayout().getNumRegisters() % 2)) {
    if (error.empty())
      error = "16-bit registers that do not form pairs";
    return;
  }
  std::string why, source = value(op.getFragment()).text;
  auto plan = *device::getConversion(from.getLayout(), to.getLayout(), packed, why);
  std::string name = declareFragment(op.getResult(), "converted");
  bool isSame = !plan.movesLanes && from.getLayout().getNumRegisters() == to.getLayout().getNumRegisters();
  for (auto [unit, list] : llvm::enumerate(plan.sources))
    isSame &= list.size() == 1 && list[0] == static_cast<int64_t>(unit);
  if (isSame)
    return copyFragment(name, source);
  write(requestConversion(plan, from.getLayout(), to.getLayout(), packed, helpers) + "(" + name + ", " + source + ");");
}

} // namespace moa::cuda
