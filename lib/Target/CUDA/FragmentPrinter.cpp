//===- FragmentPrinter.cpp - operations on fragments as CUDA C++ -*- C++ -*-===//
//
// A fragment is an array of a thread's registers. A contraction is one instruction per step of 32
// bytes. A map is a loop over the registers, which adjacent maps share. A reduction is one call.
//
//===----------------------------------------------------------------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "dialects/MoA/IR/Monoid.h"
#include "lib/Target/CUDA/KernelPrinter.h"
#include "lib/Target/CUDA/TileHelpers.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace moa::cuda {

using device::FragmentType;
using device::LayoutAttr;
using device::Place;
using device::RingType;

static FragmentType typeOf(Value fragment) { return cast<FragmentType>(fragment.getType()); }

/// Returns the elements in a 32-bit register: pairs of adjacent 16-bit floats, or four 8-bit
/// floats.
static int64_t countPacked(Value fragment) {
  Type element = typeOf(fragment).getElementType();
  return isa<FloatType>(element) ? std::max<int64_t>(32 / element.getIntOrFloatBitWidth(), 1) : 1;
}
static bool isNarrow(Value fragment) { return countPacked(fragment) != 1; }

std::pair<std::string, std::string> KernelPrinter::getRegisters(Value fragment) {
  int64_t registers = typeOf(fragment).getLayout().getNumRegisters();
  bool narrow = isNarrow(fragment);
  return {narrow ? "uint32_t" : getValueType(typeOf(fragment).getElementType()).str(),
          std::to_string(registers / countPacked(fragment))};
}

void KernelPrinter::declareRegisters(Value fragment, const std::string &name) {
  auto [type, count] = getRegisters(fragment);
  declareArray(type, name + "[" + count + "]");
}

std::string KernelPrinter::declareFragment(Value fragment, const char *fallback) {
  std::string &name = fragmentArrays[storage.of(fragment)];
  if (name.empty()) {
    std::string wish = storage.nameOf(fragment);
    // In another phase of the same text, the name may denote other registers.
    auto [type, count] = getRegisters(fragment);
    do
      name = freshArray(wish.empty() ? wishFor(fragment, fallback) : wish);
    while (recording && phaseArrays.try_emplace(name, type + count).first->second != type + count);
    declareRegisters(fragment, name);
  }
  values[fragment] = {name};
  return name;
}

void KernelPrinter::copyFragment(const std::string &to, const std::string &from) {
  if (to == from)
    return;
  write("copy(" + to + ", " + from + ");");
  helpers.insert("copy");
}

bool KernelPrinter::isCopiedConstant(Value fragment) const {
  auto fill = fragment.getDefiningOp<device::FillOp>();
  return fill && storage.isCopiedConstant(fill);
}

void KernelPrinter::copyFragment(const std::string &to, Value from) {
  if (!isCopiedConstant(from))
    return copyFragment(to, value(from).text);
  writeFill(to, from.getDefiningOp<device::FillOp>());
}

void KernelPrinter::writeFill(const std::string &to, device::FillOp op) {
  std::string text = value(op.getValue()).text;
  if (isNarrow(op.getResult())) {
    auto constant = op.getValue().getDefiningOp<arith::ConstantOp>();
    bool isBF16 = typeOf(op.getResult()).getElementType().isBF16();
    if (auto number = constant ? dyn_cast<FloatAttr>(constant.getValue()) : FloatAttr()) {
      uint32_t bits = number.getValue().bitcastToAPInt().getZExtValue();
      bits = countPacked(op.getResult()) == 4 ? bits * 0x01010101u : bits << 16 | bits;
      text = bits ? "0x" + llvm::utohexstr(bits, /*LowerCase=*/true) + "u" : "0u";
    } else {
      text = countPacked(op.getResult()) == 4
                 ? text + " * 0x1010101u"
                 : (isBF16 ? "__bfloat16_as_ushort(" : "__half_as_ushort(") + text + ") * 0x10001u";
    }
  }
  write("fill(" + to + ", " + text + ");");
  helpers.insert("fill");
}

bool KernelPrinter::isNeverRead(OpOperand &use) {
  auto loop = dyn_cast<scf::ForOp>(use.getOwner());
  if (!loop || use.getOperandNumber() < loop.getNumControlOperands())
    return false;
  auto from = getConstantIntValue(loop.getLowerBound()), to = getConstantIntValue(loop.getUpperBound());
  return from && to && *from < *to && loop.getTiedLoopRegionIterArg(&use).use_empty();
}

void KernelPrinter::printFill(device::FillOp op) {
  std::string name = declareFragment(op.getResult(), "constant");
  if (!llvm::all_of(op->getUses(), isNeverRead))
    writeFill(name, op);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Returns the type of a contraction's operands as in instruction names.
static const char *nameOfOperands(Type element) {
  return element.isBF16() ? "BF16" : element.isF16() ? "F16" : isa<IntegerType>(element) ? "S8" : "E4M3";
}

/// Requests the function that issues the products of one tile, one instruction per step of 32
/// bytes.
std::string KernelPrinter::requestProducts(device::ContractOp op) {
  RingType b = op.getB().getType();
  auto a = dyn_cast<RingType>(op.getA().getType());
  int64_t columns = op.getResult().getType().getShape()[1];
  std::string instruction = requestContraction(columns, nameOfOperands(b.getElementType()), helpers.names);
  helpers.insert("descriptors");
  bool byRows = op.getTransposed(), sums = bool(op.getC()), isInteger = isa<IntegerType>(b.getElementType());
  auto place = [&](int64_t k) { return "%" + std::to_string(columns / 2 + 2 + k); };
  bool isByte = b.getElementBytes() == 1;
  std::string wish = std::string(sums ? "add_products" : "start_products") +
                     (isInteger ? "_of_integers"
                      : isByte  ? "_of_bytes"
                                : "") +
                     (byRows ? "" : "_by_columns");
  return helpers.request(wish, [&](const std::string &name) {
    // Floats have sign operands; 16-bit floats also have transpositions.
    std::string last = isInteger ? "" : isByte ? "\"1, 1\", " : byRows ? "0\", " : "1\", ";
    std::string left = a ? "\"" + place(0) + (isByte ? "\", " : "\", \"1, 1, 0, ")
                         : "\"{" + place(0) + ", " + place(1) + ", " + place(2) + ", " + place(3) +
                               (isByte ? "}\", " : "}\", \"1, 1, ");
    std::string operands = a ? "\"l\"(from + row_step<A_ROWS>(k))"
                             : "\"r\"(a[4 * k]), \"r\"(a[4 * k + 1]), \"r\"(a[4 * k + 2]), \"r\"(a[4 * k + 3])";
    return "template <int STEPS" + std::string(a ? ", int A_ROWS" : "") + ", int B_ROWS>\nDEVICE void " + name + "(" +
           (isInteger ? "int32_t" : "float") + " (&sum)[" + std::to_string(columns / 2) + "], " +
           (a ? "const void *a" : "const uint32_t *a") + ", const void *b) {\n  const uint64_t " +
           (a ? "from = tile_by_rows(a), " : "") +
           "by = " + (byRows ? "tile_by_rows(b)" : "tile_by_columns<B_ROWS>(b)") + ";\n" +
           "  asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");\n"
           "  UNROLL for (int k = 0; k < STEPS; ++k)\n" +
           wrapLine("    " + instruction + "(sum, by + " + (byRows ? "row_step<B_ROWS>(k)" : "k * 128") + ", " +
                        (sums ? "1" : "int(k != 0)") + ", " + left + last + operands + ");",
                    8) +
           "\n  asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\");\n}\n";
  });
}

/// Returns whether reductions run between the first product that is added to an accumulator and its
/// wait.
static bool overlapsWithStates(device::ContractOp op) {
  if (!op.getC() || op.getC().getDefiningOp<device::ContractOp>())
    return false;
  for (Operation *next = op->getNextNode(); next; next = next->getNextNode()) {
    auto await = dyn_cast<device::AwaitOp>(next);
    if (await && await.getFragment() == op.getResult())
      return false;
    if (isa<device::ReduceOp>(next))
      return true;
  }
  return false;
}

void KernelPrinter::printContract(device::ContractOp op) {
  Value c = op.getC();
  std::string from = c ? value(c).text : "";
  std::string sum = declareFragment(op.getResult(), "product");
  if (c)
    copyFragment(sum, from);
  if (overlapsWithStates(op))
    writeComment("In flight while the states of this tile are computed:");
  std::string products = requestProducts(op), rows, left;
  if (auto a = dyn_cast<RingType>(op.getA().getType())) {
    rows = std::to_string(a.getRows()) + ", ";
    left = value(op.getA()).text + " + " + value(op.getARow()).at(Expr::product) + " * 128";
  } else {
    left = value(op.getA()).text;
  }
  write(products + "<" + std::to_string(op.getSteps()) + ", " + rows + std::to_string(op.getB().getType().getRows()) +
        ">(" + sum + ", " + left + ", " + stage(op.getB(), op.getBStage()) + ");");
}

void KernelPrinter::printAwait(device::AwaitOp op) {
  std::string helper =
      isa<IntegerType>(typeOf(op.getResult()).getElementType()) ? "await_integer_products" : "await_products";
  helpers.insert(helper);
  std::string name = declareFragment(op.getResult(), "product");
  write(helper + "<" + std::to_string(op.getPending()) + ">(" + name + ");");
}

//===----------------------------------------------------------------------===//
// Index arithmetic of a thread's registers
//===----------------------------------------------------------------------===//

/// Returns the part of an index given by the digits bound to warps and lanes.
static std::string threadPart(LayoutAttr layout, unsigned axis) {
  std::string text;
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
    if (digit.place == Place::register_)
      continue;
    bool isWarp = digit.place == Place::warp;
    text += (text.empty() ? "" : " + ") + printDigit(isWarp ? "warp" : "lane", isWarp ? device::kWarps : device::kLanes,
                                                     digit.stride, digit.size, digit.weight);
  }
  return text;
}

/// Returns the part of an index that the register `e` determines. Without `weights`, returns the
/// register number in a slice along the axis.
static std::string registerPart(LayoutAttr layout, unsigned axis, bool weights = true) {
  std::string text;
  int64_t slice = 1, count = layout.getNumRegisters();
  llvm::SmallVector<LayoutAttr::Digit> digits;
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
    if (digit.place == Place::register_ && digit.size > 1)
      digits.push_back(digit);
  for (const LayoutAttr::Digit &digit : llvm::reverse(digits)) {
    std::string term = printDigit("e", count, digit.stride, digit.size, weights ? digit.weight : slice);
    slice *= digit.size;
    text = text.empty() ? term : term + " + " + text;
  }
  return text;
}

/// Returns an `int` expression of a register's number; calls a function unless it is short.
std::string KernelPrinter::requestRegisterFunction(const char *wish, const std::string &part, const std::string &e) {
  if (part.empty())
    return "";
  auto substituted = [&] {
    std::string text = part;
    for (size_t at = text.find('e'); at != std::string::npos; at = text.find('e', at + e.size()))
      text.replace(at, 1, e);
    return text;
  };
  if (llvm::StringRef(part).count(' ') <= 2)
    return substituted();
  return helpers.request(wish,
                         [&](const std::string &name) {
                           return "constexpr DEVICE int " + name + "(int e) { return " + part + "; }\n";
                         }) +
         "(" + e + ")";
}

/// Returns whether more of an index is used than the part given by the register.
static bool isUsedWhole(Value index) {
  return llvm::any_of(index.getUsers(), [](Operation *user) { return !isa<device::ThreadOffsetOp>(user); });
}

/// Returns the name for the part of an index given by warp and lane.
static const char *threadWish(unsigned axis, llvm::StringRef part) {
  return axis == 0 ? "lane_row" : part.contains('*') ? "lane_column" : "lane_in_row";
}

/// Prints the thread's constant parts of element indices.
void KernelPrinter::printThreadPlaces(Region &consumer) {
  std::vector<std::pair<std::string, unsigned>> parts; // of axes
  std::string all;
  consumer.walk([&](device::MapOp map) {
    auto indices = map.getBody().getArguments().drop_front(map.getInputs().size());
    for (auto [axis, index] : llvm::enumerate(indices)) {
      std::string part = threadPart(map.getLayout(), axis);
      if (!isUsedWhole(index) || part.empty() || !threadPlaces.try_emplace(part).second)
        continue;
      parts.emplace_back(part, axis);
      all += part;
    }
  });
  const std::string warp = "warp = threadIdx.x / 32 % 4", lane = "lane = threadIdx.x % 32";
  if (llvm::StringRef(all).contains("warp") && llvm::StringRef(all).contains("lane")) {
    writeConstant("int64_t", warp);
    writeConstant("int64_t", lane);
  } else {
    write("[[maybe_unused]] const int64_t " + warp + ", " + lane + ";");
  }
  for (const auto &[part, axis] : parts) {
    std::string &name = threadPlaces[part] = fresh(threadWish(axis, part));
    writeConstant("int64_t", name + " = " + part);
  }
}

//===----------------------------------------------------------------------===//
// Maps
//===----------------------------------------------------------------------===//

/// Returns a condition that holds in the first of the threads with the same element.
static std::string replicaCondition(LayoutAttr layout) {
  std::string text;
  for (const LayoutAttr::Digit &digit : layout.getDigits(layout.getRank())) {
    std::string number = digit.place == Place::warp ? "warp" : "lane";
    if (digit.stride != 1)
      number += " / " + std::to_string(digit.stride);
    text += (text.empty() ? "" : " && ") + number + " % " + std::to_string(digit.size) + " == 0";
  }
  return text.empty() ? "true" : text;
}

/// Prints a map that only rounds to 16 or 8 bits, or turns bits into 16-bit floats.
bool KernelPrinter::printRounding(device::MapOp op) {
  Block &block = op.getBody().front();
  if (op.getNumResults() != 1 || op.getInputs().size() != 1 || !isNarrow(op.getResult(0)))
    return false;
  auto yield = cast<device::YieldOp>(block.getTerminator());
  Operation *rounded = yield.getValues()[0].getDefiningOp();
  if (!isa_and_nonnull<arith::TruncFOp, device::HalfFromBitsOp>(rounded) ||
      rounded->getOperand(0) != block.getArgument(0))
    return false;
  Type given = block.getArgument(0).getType(), type = yield.getValues()[0].getType();
  bool isOfHalves = given.isF16() && isa<Float8E4M3FNType>(type);
  if (!given.isF32() && !isOfHalves)
    return false;
  const char *helper = isa<device::HalfFromBitsOp>(rounded) ? "halves_from_bits"
                       : isOfHalves                         ? "pack_e4m3_of_halves"
                       : type.isBF16()                      ? "pack_bf16"
                       : type.isF16()                       ? "pack_f16"
                                                            : "pack_e4m3";
  helpers.insert(helper);
  std::string name = declareFragment(op.getResult(0), "packed");
  write(std::string(helper) + "(" + name + ", " + value(op.getInputs()[0]).text + ");");
  return true;
}

bool KernelPrinter::printConstantMap(device::MapOp op) {
  auto yield = cast<device::YieldOp>(op.getBody().front().getTerminator());
  auto constant =
      op.getNumResults() == 1 ? yield.getValues()[0].getDefiningOp<arith::ConstantOp>() : arith::ConstantOp();
  if (!constant || isNarrow(op.getResult(0)))
    return false;
  std::string name = declareFragment(op.getResult(0), "constant");
  write("fill(" + name + ", " + value(constant).text + ");");
  helpers.insert("fill");
  return true;
}

/// Returns whether two maps can share one loop over the registers.
static bool canShareLoop(device::MapOp first, device::MapOp next) {
  auto sameLayout = [&](Value fragment) { return typeOf(fragment).getLayout() == first.getLayout(); };
  return first.getLayout() == next.getLayout() && first.getNumResults() && next.getNumResults() &&
         llvm::all_of(first.getResults(), sameLayout) && llvm::all_of(next.getResults(), sameLayout);
}

Operation *KernelPrinter::printMaps(device::MapOp first) {
  if (printRounding(first) || printConstantMap(first))
    return first;
  llvm::SmallVector<device::MapOp> group = {first};
  Operation *last = first;
  for (Operation *next = getNext(first); next; next = getNext(next)) {
    auto map = dyn_cast<device::MapOp>(next);
    if (!map && isWrittenInPlace(*next, storage))
      continue;
    if (!map || findCall(next) || !canShareLoop(first, map) ||
        llvm::any_of(map.getResults(), [](Value result) { return isNarrow(result); }))
      break;
    // While several phases are merged, a separate line may be common to more phases.
    auto isOfGroup = [&](Value input) {
      return input.hasOneUse() && llvm::is_contained(group, input.getDefiningOp<device::MapOp>());
    };
    if (recording && map.getBody().front().getOperations().size() <= 3 && llvm::none_of(map.getInputs(), isOfGroup))
      break;
    group.push_back(map);
    last = map;
  }
  for (device::MapOp map : group)
    for (Value fragment :
         llvm::concat<Value>(SmallVector<Value>(map.getInputs()), SmallVector<Value>(map.getResults())))
      if (isNarrow(fragment) && error.empty())
        error = "a map of fragments of 16 or 8 bits that does more than round them";
  // Values that only maps of this loop read are scalars in the loop.
  auto isLocal = [&](Value result) {
    bool isGiven = function && outlines[*function].isOutput(result);
    return !isGiven && llvm::all_of(result.getUsers(), [&](Operation *user) {
      return llvm::is_contained(group, dyn_cast<device::MapOp>(user));
    });
  };
  for (device::MapOp map : group)
    for (Value result : map.getResults())
      if (!isLocal(result))
        declareFragment(result, "value");
  LayoutAttr layout = first.getLayout();
  int64_t registers = layout.getNumRegisters();
  pushScope();
  std::string e = fresh(layout.getRank() == 1 ? "r" : "e");
  // A map without results has side effects: run it once per element.
  bool once = first.getNumResults() == 0 && layout.getRank() == 1;
  bool inPairs = first
                     .walk([](device::StoreOp store) {
                       return store.getPairs() ? WalkResult::interrupt() : WalkResult::advance();
                     })
                     .wasInterrupted();
  std::string step = inPairs ? e + " += 2" : "++" + e;
  std::string head = (once ? "if (" + replicaCondition(layout) + ") " : "") + "UNROLL for (int " + e + " = 0; " + e +
                     " < " + std::to_string(registers) + "; " + step + ")";
  size_t mark = body.size();
  joinEnd = 0; // the next line is in another block
  ++depth;
  unsigned statements = 0;
  for (device::MapOp map : group)
    statements += printMapBody(map, e, isLocal);
  --depth;
  popScope();
  std::string text = body.substr(mark);
  body.resize(mark);
  if (text.empty()) // every result is an input in its own registers
    return last;
  bool single = statements == 1 && llvm::StringRef(text).count('\n') == 1;
  std::string only = llvm::StringRef(text).trim().str();
  if (single && 2 * depth + head.size() + 1 + only.size() <= 120) {
    write(head + " " + only);
    return last;
  }
  write(head + (single ? "" : " {"));
  body += text;
  if (!single)
    write("}");
  return last;
}

/// Stores both elements of a pair. The loop over the registers is at the first.
void KernelPrinter::printPair(device::StoreOp store) {
  auto argument = cast<BlockArgument>(store.getValue());
  auto map = cast<device::MapOp>(argument.getOwner()->getParentOp());
  std::string first = value(argument).text, name = value(map.getInputs()[argument.getArgNumber()]).text;
  std::string e = llvm::StringRef(first).drop_front(name.size() + 1).drop_back().str();
  helpers.insert("store_pair");
  write("store_pair(" + names.of(store.getArray()) + " + " + value(store.getOffset()).at(Expr::sum + 1) + ", " + first +
        ", " + name + "[" + e + " + 1]);");
}

/// Returns whether a text is one operand, such as `factor[row_register(e)]`.
static bool isSimpleFactor(llvm::StringRef text) { return text.find_first_of(" ?") == llvm::StringRef::npos; }

unsigned KernelPrinter::printMapBody(device::MapOp op, const std::string &e, llvm::function_ref<bool(Value)> isLocal) {
  LayoutAttr layout = op.getLayout();
  Block &block = op.getBody().front();
  unsigned statements = 0;
  auto inputs = llvm::zip(op.getInputs(), block.getArguments());
  // The register number of a row, with a name if it is used more than once.
  unsigned rowReads = 0;
  for (auto [input, argument] : inputs)
    if (typeOf(input).getLayout() != layout)
      rowReads += llvm::range_size(argument.getUses());
  std::string row = e;
  if (layout.getRank() > 1)
    row = requestRegisterFunction("row_register", registerPart(layout, 0, /*weights=*/false), e);
  if (row.empty())
    row = "0";
  if (rowReads > 1 && row.find_first_of(" (") != std::string::npos) {
    std::string name = fresh("r");
    writeConstant("int", name + " = " + row);
    row = name;
    ++statements;
  }
  for (auto [input, argument] : inputs) {
    bool isScalar = localValues.count(input) != 0;
    bool isRow = typeOf(input).getLayout() != layout;
    values[argument] = isScalar ? Expr{localValues[input]} : Expr{value(input).text + "[" + (isRow ? row : e) + "]"};
  }
  for (auto [axis, argument] : llvm::enumerate(block.getArguments().drop_front(op.getInputs().size()))) {
    if (argument.use_empty())
      continue;
    std::string part = threadPart(layout, axis);
    std::string inner = requestRegisterFunction(axis == 0 ? "row_of" : "column_of", registerPart(layout, axis), e);
    for (Operation *user : argument.getUsers())
      if (auto offset = dyn_cast<device::ThreadOffsetOp>(user))
        values[offset.getResult()] = {inner.empty() ? "0" : inner,
                                      inner.find(' ') == std::string::npos ? Expr::primary : Expr::sum};
    if (!isUsedWhole(argument))
      continue;
    std::string text = part.empty() ? "" : threadPlace(part, threadWish(axis, part));
    if (!inner.empty())
      text += (text.empty() ? "" : " + ") + inner;
    bool isPlain = text.find_first_of("+*") == std::string::npos;
    values[argument] = {text.empty() ? "0" : text, isPlain ? Expr::primary : Expr::sum};
  }
  auto yield = cast<device::YieldOp>(block.getTerminator());
  auto targetOf = [&](Value result) {
    bool isRow = typeOf(result).getLayout() != layout;
    return values[result].text + "[" + (isRow ? row : e) + "]";
  };
  // A value that needs a name is the result itself, unless the map may read the same registers:
  // parameters of a function may be the same array.
  for (auto [result, source] : llvm::zip(op.getResults(), yield.getValues())) {
    if (function || isLocal(result) || llvm::count(yield.getValues(), source) > 1)
      continue;
    const std::string &name = values[result].text;
    auto isSame = [&](Value input) { return !localValues.count(input) && value(input).text == name; };
    if (llvm::none_of(op.getInputs(), isSame))
      resultRegisters[source] = targetOf(result);
  }
  size_t before = written;
  printBlock(block);
  statements += written - before;
  resultRegisters.clear();
  // A result may overwrite the input of another, so name all results but the last first.
  std::vector<std::string> texts;
  for (auto [result, source] : llvm::zip(op.getResults(), yield.getValues())) {
    std::string text = value(source).text;
    if (!isLocal(result) && text == targetOf(result)) {
      texts.push_back(text);
      continue;
    }
    bool isLast = result == op.getResults().back();
    bool isName = llvm::all_of(text, [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!isName && (isLocal(result) || !isLast)) {
      std::string name = fresh(wishFor(result, "value"));
      writeConstant(getValueType(source.getType()).str(), name + " = " + text);
      ++statements;
      text = name;
    }
    texts.push_back(text);
  }
  for (size_t k = texts.size(); k-- > 0;) {
    Value result = op.getResult(k);
    if (isLocal(result)) {
      localValues[result] = texts[k];
      continue;
    }
    std::string target = targetOf(result);
    if (texts[k] == target) // written
      continue;
    llvm::StringRef rest = texts[k];
    // x = x * y is x *= y.
    bool isUpdate = rest.consume_front(target + " * ") && isSimpleFactor(rest);
    write(target + (isUpdate ? " *= " + rest.str() : " = " + texts[k]) + ";");
    ++statements;
  }
  return statements;
}

/// Returns a vote: whether the condition holds in any register of any lane of the warp.
static std::string vote(const std::string &name, FragmentType type) {
  std::string condition;
  for (int64_t r = 0, end = type.getLayout().getNumRegisters(); r < end; ++r)
    condition += (r ? " || " : "") + name + "[" + std::to_string(r) + "]";
  return "__any_sync(0xffffffff, " + condition + ")";
}

/// Returns whether a vote is written in the condition of the next operation, which alone needs it.
/// A function returns a vote that some place of its calls reads later, so it computes that vote in a
/// statement.
/// That operation first writes its results, which must not be the registers that the vote reads.
/// While several phases are merged, a vote of its own may be common to more phases.
bool KernelPrinter::isVotedInCondition(device::AnyOp op) {
  if ((recording && depth == recording->depth) || (function && outlines[*function].isOutput(op.getResult())))
    return false;
  auto next = dyn_cast_or_null<device::IfAnyOp>(op->getNextNode());
  return next && getNext(op) == next && op.getResult().hasOneUse() && next.getCondition() == op.getResult() &&
         !findCall(next) && llvm::none_of(next.getResults(), [&](Value result) {
           return typeOf(result).getElementType() == op.getCondition().getType().getElementType();
         });
}

void KernelPrinter::printAny(device::AnyOp op) {
  if (isVotedInCondition(op))
    return;
  std::string text = vote(value(op.getCondition()).text, op.getCondition().getType());
  std::string name = declareFragment(op.getResult(), "any");
  if (getNameInProgram(op.getResult()) == "rescale_sums")
    writeComment("Reads the sums, so that ptxas computes them before the wait below. A NaN changes no factor.");
  write("fill(" + name + ", bool(" + text + "));");
  helpers.insert("fill");
}

/// Prints if (any lane needs it) { results } and the other values before it.
void KernelPrinter::printIfAny(device::IfAnyOp op) {
  Block &block = op.getBody().front();
  auto yield = cast<device::YieldOp>(block.getTerminator());
  for (auto [result, other] : llvm::zip(op.getResults(), op.getOtherwise())) {
    std::string from = isCopiedConstant(other) ? "" : value(other).text, to = declareFragment(result, "result");
    if (from.empty())
      copyFragment(to, other);
    else
      copyFragment(to, from);
  }
  auto any = op.getCondition().getDefiningOp<device::AnyOp>();
  bool isVoted = any && values.count(op.getCondition());
  Value voters = any && !isVoted ? Value(any.getCondition()) : Value(op.getCondition());
  std::string name = value(voters).text;
  if (getNameInProgram(op.getCondition()) == "rescale")
    writeComment("Conditional rescaling: the reference moves only if the factor would differ much from 1 in some row.");
  if (llvm::any_of(op.getOtherwise(), [](Value other) { return other.getDefiningOp<device::AwaitOp>(); }))
    writeComment("Rescaled only after its products have landed: until then, wgmma owns the accumulator's registers.");
  size_t mark = body.size();
  open("if (" + (isVoted ? name + "[0]" : vote(name, typeOf(voters))) + ") {");
  printBlock(block);
  assign(op.getResults(), yield.getValues());
  close();
  dropBraces(mark);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

std::string KernelPrinter::requestCombination(Monoid monoid, Type type) {
  static const std::pair<const char *, const char *> kFunctions[] = {{"plus", "+"}, {"times", "*"}, {"max", ""},
                                                                     {"min", ""},   {"both", "&"},  {"either", "|"}};
  auto [word, sign] = kFunctions[unsigned(monoid)];
  std::string valueType = getValueType(type).str(), name = word;
  if (monoid == Monoid::max || monoid == Monoid::min) {
    name += !isa<FloatType>(type) ? "_int" : type.isF64() ? "_nan_double" : "_nan";
    helpers.insert(isa<FloatType>(type) ? name : name + "<>");
    return isa<FloatType>(type) ? name : name + "<" + valueType + ">";
  }
  return helpers.request(name, [&](const std::string &own) {
    std::string body = std::string("a ") + sign + " b";
    if (isa<FloatType>(type)) // one rounding, never fused
      body = std::string(type.isF64() ? "__d" : "__f") + (monoid == Monoid::add ? "add" : "mul") + "_rn(a, b)";
    return "DEVICE " + valueType + " " + own + "(" + valueType + " a, " + valueType + " b) { return " + body + "; }\n";
  });
}

/// Requests the function that reduces the rows of a layout. It combines lanes only if `rows` is the
/// layout of a slice; otherwise the result is per-lane partials.
std::string KernelPrinter::requestReduction(LayoutAttr layout, LayoutAttr rows) {
  bool joinsLanes = rows == layout.getSlice(0);
  std::string count = std::to_string(rows.getNumRegisters());
  std::string row = registerPart(layout, 0, /*weights=*/false);
  row = row.empty() ? "0" : requestRegisterFunction("row_register", row, "e");
  llvm::SmallVector<int64_t> lanes;
  for (unsigned axis = 1; axis < layout.getRank(); ++axis) {
    SmallVector<LayoutAttr::Digit> digits = layout.getDigits(axis);
    for (const LayoutAttr::Digit &digit : llvm::reverse(digits))
      for (int64_t bit = 1; joinsLanes && digit.place == Place::lane && bit < digit.size; bit *= 2)
        lanes.push_back(bit * digit.stride);
  }
  // Pairs of adjacent registers form two chains of half the length.
  bool isPaired = false;
  for (unsigned axis = 1; axis < layout.getRank(); ++axis)
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
      isPaired |= digit.place == Place::register_ && digit.stride == 1 && digit.size == 2;
  // With one register per row, only lanes are combined.
  bool isOne = layout.getNumRegisters() == rows.getNumRegisters() && row == "e";
  if (!isOne)
    helpers.insert("fill");
  auto mergesState = [&](device::ReduceOp op) {
    bool isSame = op.getFragment().getType().getLayout() == layout && op.getResult().getType().getLayout() == rows;
    return isSame && findMerge(op) ? WalkResult::interrupt() : WalkResult::advance();
  };
  bool hasState = program.walk(mergesState).wasInterrupted();
  return helpers.request(joinsLanes ? "reduce_rows" : "reduce_own", [&](const std::string &name) {
    std::string text = std::string("// Combines the columns of each row") +
                       (isOne      ? ""
                        : isPaired ? ", even and odd ones separately"
                                   : " in order") +
                       (!joinsLanes ? ", within this thread"
                        : isOne     ? " over the lanes that share it"
                                    : ", then over the lanes that share the row") +
                       (hasState ? "; `state` comes first.\n" : ".\n");
    std::string size = isOne ? count : "R", part = "parts[" + row + "]" + (isPaired ? "[e % 2]" : "");
    const std::string eachRow = "  UNROLL for (int r = 0; r < " + count + "; ++r) ";
    text += "template <auto COMBINE, class T, class U" + std::string(isOne ? "" : ", int R") + ">\nDEVICE void " +
            name + "(T (&to)[" + count + "], const T (&x)[" + size + "], U identity" +
            (hasState ? ", const T *state = nullptr" : "") + ") {\n";
    if (!isOne) {
      text += "  T parts[" + count + "]" + (isPaired ? "[2]" : "") + ";\n" +
              (isPaired ? eachRow + "fill(parts[r], identity);\n" : "  fill(parts, identity);\n");
      text += wrapLine("  UNROLL for (int e = 0; e < R; ++e) " + part + " = COMBINE(" + part + ", x[e]);", 6) + "\n";
    }
    // Without a state, the result itself is the variable.
    const std::string all = hasState ? "all" : "to[r]";
    text += eachRow + "{\n    " + (hasState ? (lanes.empty() ? "const T " : "T ") : "") + all + " = " +
            (isOne      ? "COMBINE(identity, x[r])"
             : isPaired ? "COMBINE(parts[r][0], parts[r][1])"
                        : "parts[r]") +
            ";\n";
    const std::string combine = all + " = COMBINE(" + all + ", __shfl_xor_sync(0xffffffff, " + all + ", ";
    bool isDoubling = lanes.size() > 1;
    for (size_t k = 1; k < lanes.size(); ++k)
      isDoubling &= lanes[k] == 2 * lanes[k - 1];
    if (isDoubling)
      text += "    UNROLL for (int step = " + std::to_string(lanes.front()) +
              "; step <= " + std::to_string(lanes.back()) + "; step *= 2) " + combine + "step));\n";
    else
      for (int64_t mask : lanes)
        text += "    " + combine + std::to_string(mask) + "));\n";
    return text + (hasState ? "    to[r] = state ? COMBINE(state[r], all) : all;\n" : "") + "  }\n}\n";
  });
}

/// Requests the function that adds a thread's pairs of 16-bit floats in each row.
std::string KernelPrinter::requestSumOfHalves(LayoutAttr layout, LayoutAttr rows) {
  std::string row = registerPart(layout, 0, /*weights=*/false), count = std::to_string(rows.getNumRegisters());
  row = row.empty() ? "0" : requestRegisterFunction("row_register", row, "2 * k");
  helpers.insert("add_halves"), helpers.insert("halves_of");
  return helpers.request("sum_halves", [&](const std::string &name) {
    return "// Adds this thread's elements of each row: even and odd pairs separately, then both halves.\n"
           "template <int R> DEVICE void " +
           name + "(float (&to)[" + count +
           "], const uint32_t (&x)[R]) {\n"
           "  uint32_t sums[" +
           count + "][2] = {};\n  int number[" + count +
           "] = {};\n"
           "  UNROLL for (int k = 0; k < R; ++k) {\n    const int r = " +
           row +
           ";\n"
           "    uint32_t &sum = sums[r][number[r]++ % 2];\n    sum = add_halves(sum, x[k]);\n  }\n"
           "  UNROLL for (int r = 0; r < " +
           count +
           "; ++r) {\n"
           "    const float2 both = __half22float2(halves_of(add_halves(sums[r][0], "
           "sums[r][1])));\n"
           "    to[r] = __fadd_rn(both.x, both.y);\n  }\n}\n";
  });
}

Operation *KernelPrinter::printReduce(device::ReduceOp op) {
  FragmentType type = op.getFragment().getType();
  if (type.getElementType().isF16() && op.getResult().getType().getElementType().isF32()) {
    std::string sum = requestSumOfHalves(type.getLayout(), op.getResult().getType().getLayout());
    std::string from = value(op.getFragment()).text, name = declareFragment(op.getResult(), "reduced");
    write(sum + "(" + name + ", " + from + ");");
    return op;
  }
  std::string combine = requestCombination(op.getMonoid(), type.getElementType());
  std::string reduction = requestReduction(type.getLayout(), op.getResult().getType().getLayout());
  device::MapOp merge = findMerge(op);
  Value result = merge ? merge.getResult(0) : Value(op.getResult());
  std::string state = merge ? ", " + value(merge.getInputs()[0]).text : "";
  std::string name = declareFragment(result, "reduced");
  write(reduction + "<" + combine + ">(" + name + ", " + value(op.getFragment()).text + ", " +
        printConstant(getIdentity(op.getMonoid(), type.getElementType())) + state + ");");
  return merge ? merge.getOperation() : op.getOperation();
}

} // namespace moa::cuda
