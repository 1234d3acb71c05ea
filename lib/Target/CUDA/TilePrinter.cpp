//===- TilePrinter.cpp - the work of warpgroups as CUDA C++ ---------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include "lib/Target/CUDA/TileHelpers.h"
#include "dialects/MoA/IR/Monoid.h"

using namespace mlir;

namespace moa::cuda {

using device::FragmentType;
using device::LayoutAttr;
using device::Place;
using device::RingType;

void KernelPrinter::printTile(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<device::SharedOp, device::BarriersOp>([&](auto) { printShared(op); })
      .Case<device::SpecializeOp>([&](auto roles) { printSpecialize(roles); })
      .Case<device::WarpgroupOp>([&](auto) { values[op->getResult(0)] = Expr{"warpgroup"}; })
      .Case<device::CopyOp>([&](auto copy) { printCopy(copy); })
      .Case<device::WaitOp>([&](auto wait) {
        helpers.insert("wait");
        write("wait(" + slot(wait.getBarriers(), wait.getSlot()) + ", " +
              value(wait.getParity()).text + ");");
      })
      .Case<device::ArriveOp>([&](auto arrive) {
        helpers.insert("arrive");
        write("arrive(" + slot(arrive.getBarriers(), arrive.getSlot()) + ");");
      })
      .Case<device::FillOp>([&](auto fill) { printFill(fill); })
      .Case<device::ContractOp>([&](auto contract) { printContract(contract); })
      .Case<device::StoreTileOp>([&](auto store) { printStoreTile(store); })
      .Case<device::ClearUnseenOp>([&](auto clear) { printClear(clear); })
      .Case<device::AwaitOp>([&](auto await) { printAwait(await); })
      .Case<device::MapOp>([&](auto map) { printMap(map); })
      .Case<device::AnyOp>([&](auto any) { printAny(any); })
      .Case<device::IfAnyOp>([&](auto branch) { printIfAny(branch); })
      .Case<device::ReduceOp>([&](auto reduce) { printReduce(reduce); });
}

std::string KernelPrinter::slot(Value barriers, Value index) {
  return "&" + value(barriers).text + "[" + value(index).text + "]";
}

//===----------------------------------------------------------------------===//
// Shared memory and roles
//===----------------------------------------------------------------------===//

void KernelPrinter::printShared(Operation *op) {
  Value result = op->getResult(0);
  if (barriers.empty() && sharedBytes == 0)
    write("extern __shared__ __align__(1024) unsigned char shared[];");
  if (auto ring = dyn_cast<RingType>(result.getType())) {
    // The 128-byte swizzle repeats every 1024 bytes.
    sharedBytes = llvm::alignTo(sharedBytes, 1024);
    std::string name = fresh(op->getLoc(), "ring");
    write("unsigned char *const " + name + " = shared + " + std::to_string(sharedBytes) + "; // " +
          std::to_string(ring.getStages()) + " x " + std::to_string(ring.getRows()) + " x " +
          std::to_string(ring.getColumns()));
    sharedBytes += ring.getStages() * ring.getStageBytes();
    values[result] = {name};
    return;
  }
  auto type = cast<device::BarriersType>(result.getType());
  std::string name = fresh(op->getLoc(), "barriers");
  barriers.emplace_back(name, type);
  write("uint64_t *const " + name + " = (uint64_t *)(shared + " + std::to_string(sharedBytes) +
        ");");
  sharedBytes += 8 * type.getStages();
  values[result] = {name};
}

/// Initialises the barriers and splits the block.
void KernelPrinter::printSpecialize(device::SpecializeOp op) {
  helpers.insert({"init_barriers", "registers"});
  write("if (threadIdx.x == 0) {");
  for (const auto &[name, type] : barriers)
    write("  init_barriers(" + name + ", " + std::to_string(type.getStages()) + ", " +
          std::to_string(type.getArrivals()) + ");");
  write("  publish_barriers();");
  write("}");
  write("__syncthreads();");
  // The same in all lanes, so that addresses made from it are not per thread.
  write("const int64_t warpgroup = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);");
  write("if (warpgroup == " + std::to_string(op.getWarpgroups()) + ") {");
  ++depth;
  write("release_registers<" + std::to_string(op.getProducerRegisters()) + ">();");
  write("if (threadIdx.x % 128 == 0) {");
  ++depth;
  printBlock(op.getProducer().front());
  --depth;
  write("}");
  --depth;
  write("} else {");
  ++depth;
  write("acquire_registers<" + std::to_string(op.getConsumerRegisters()) + ">();");
  write("[[maybe_unused]] const int64_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;");
  printBlock(op.getConsumer().front());
  --depth;
  write("}");
}

std::string KernelPrinter::requestMap(Value array, unsigned rowAxis, int64_t rows) {
  unsigned number = cast<BlockArgument>(array).getArgNumber();
  for (const TensorMap &known : maps)
    if (known.array == number && known.rowAxis == rowAxis && known.rows == rows)
      return known.name;
  std::string wish = names.of(number) + "_tiles";
  std::string name = fresh(NameLoc::get(StringAttr::get(array.getContext(), wish)), "tiles");
  maps.push_back({name, number, rowAxis, rows});
  return name;
}

void KernelPrinter::printStoreTile(device::StoreTileOp op) {
  RingType ring = op.getRing().getType();
  std::string map = requestMap(op.getArray(), op.getRowAxis(), 64);
  unsigned rank = op.getArray().getType().getRank();
  std::string helper = "store_tile_" + std::to_string(rank) + "d";
  helpers.insert({helper, "put_fragment"});
  std::string coordinates;
  for (Value coordinate : op.getCoordinates())
    coordinates += ", " + value(coordinate).text;
  std::string sizes = "<" + std::to_string(ring.getRows()) + ", " +
                      std::to_string(op.getFragment().getType().getShape()[1]) + ">(";
  std::string tile = fresh(op.getLoc(), "staged");
  write("unsigned char *const " + tile + " = " + value(op.getRing()).text + " + " +
        value(op.getStage()).at(Expr::product) + " * " + std::to_string(ring.getStageBytes()) +
        " + " + value(op.getRow()).at(Expr::product) + " * 128;");
  write("put_fragment" + sizes + tile + ", " + value(op.getFragment()).text + ");");
  write(helper + sizes + tile + ", &" + map + coordinates + ");");
}

void KernelPrinter::printCopy(device::CopyOp op) {
  RingType ring = op.getRing().getType();
  std::string map = requestMap(op.getArray(), op.getRowAxis(), ring.getRows());
  unsigned rank = op.getArray().getType().getRank();
  std::string helper = "copy_tile_" + std::to_string(rank) + "d";
  helpers.insert(helper);
  std::string coordinates;
  for (Value coordinate : op.getCoordinates())
    coordinates += ", " + value(coordinate).text;
  write(helper + "<" + std::to_string(ring.getRows()) + ", " + std::to_string(ring.getColumns()) +
        ">(" + value(op.getRing()).text + " + " + value(op.getStage()).at(Expr::product) + " * " +
        std::to_string(ring.getStageBytes()) + ", &" + map + ", " +
        slot(op.getBarriers(), op.getSlot()) + coordinates + ");");
}

void KernelPrinter::printClear(device::ClearUnseenOp op) {
  RingType ring = op.getRing().getType();
  if (clearWords.empty()) {
    clearWords = "(uint32_t *)(shared + " + std::to_string(llvm::alignTo(sharedBytes, 16)) + ")";
    sharedBytes = llvm::alignTo(sharedBytes, 16) + 16;
  }
  auto roles = op->getParentOfType<device::SpecializeOp>();
  helpers.insert({"clear_unseen"});
  write("clear_unseen<" + std::to_string(ring.getColumns()) + ", " +
        std::to_string(roles.getWarpgroups()) + ">(" + value(op.getRing()).text + " + " +
        value(op.getStage()).at(Expr::product) + " * " + std::to_string(ring.getStageBytes()) +
        ", " + clearWords + ", " + value(op.getSeen()).text + ");");
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Fragments of 16-bit floats are packed in pairs of neighbours.
static bool isNarrow(Value fragment) {
  Type element = cast<FragmentType>(fragment.getType()).getElementType();
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() == 16;
}

std::string KernelPrinter::declareFragment(Value fragment, Value reuse, const char *fallback) {
  auto type = cast<FragmentType>(fragment.getType());
  if (auto place = places.find(fragment); place != places.end()) {
    values[fragment] = {place->second};
    return place->second;
  }
  if (reuse) {
    values[fragment] = Expr(values[reuse]);
    return values[fragment].text;
  }
  std::string name = fresh(fragment.getLoc(), fallback);
  Type element = type.getElementType();
  int64_t registers = type.getLayout().getNumRegisters();
  bool narrow = isNarrow(fragment);
  write((narrow ? "uint32_t" : getValueType(element).str()) + " " + name + "[" +
        std::to_string(narrow ? registers / 2 : registers) + "];");
  values[fragment] = {name};
  return name;
}

void KernelPrinter::printFill(device::FillOp op) {
  std::string text = value(op.getValue()).text;
  std::string name = declareFragment(op.getResult(), Value(), "fragment");
  write("fill(" + name + ", " + text + ");");
  helpers.insert("fill");
}

/// True if the op may overwrite the value's array: nothing else reads it, and if a
/// loop carries it the op stands in the loop's own body. The registers of a sum that
/// starts at zero are the tensor cores' alone: written by anything else they would
/// have to be fenced in the next round.
static bool endsHere(Value value, Operation *op) {
  if (!value || !value.hasOneUse())
    return false;
  if (auto await = value.getDefiningOp<device::AwaitOp>())
    if (auto contract = await.getFragment().getDefiningOp<device::ContractOp>();
        contract && !contract.getC())
      return false;
  if (auto arg = dyn_cast<BlockArgument>(value))
    return isa<scf::ForOp>(arg.getOwner()->getParentOp()) && op->getBlock() == arg.getOwner();
  return value.getParentBlock() == op->getBlock();
}

/// A fragment's registers, which hold the same: those of all its elements in the warp.
static std::string vote(const std::string &name, FragmentType type) {
  std::string condition;
  for (int64_t r = 0, end = type.getLayout().getNumRegisters(); r < end; ++r)
    condition += (r ? " || " : "") + name + "[" + std::to_string(r) + "]";
  return "__any_sync(0xffffffff, " + condition + ")";
}

void KernelPrinter::printAny(device::AnyOp op) {
  std::string text = vote(value(op.getCondition()).text, op.getCondition().getType());
  std::string name = declareFragment(op.getResult(), Value(), "any");
  write("fill(" + name + ", bool(" + text + "));");
  helpers.insert("fill");
}

/// if (some lane needs it) { the results, in place of the other values }
void KernelPrinter::printIfAny(device::IfAnyOp op) {
  Block &block = op.getBody().front();
  auto yield = cast<device::YieldOp>(block.getTerminator());
  for (auto [result, other, inner] :
       llvm::zip(op.getResults(), op.getOtherwise(), yield.getValues())) {
    // Nothing but this op, here and inside, reads the other value.
    bool ends = llvm::all_of(other.getUsers(), [&](Operation *user) {
      return op->isAncestor(user);
    });
    auto arg = dyn_cast<BlockArgument>(other);
    ends &= arg ? isa<scf::ForOp>(arg.getOwner()->getParentOp()) && op->getBlock() == arg.getOwner()
                : other.getParentBlock() == op->getBlock();
    std::string from = value(other).text;
    declareFragment(result, ends ? other : Value(), "r");
    if (!ends) {
      write("copy(" + values[result].text + ", " + from + ");");
      helpers.insert("copy");
    }
    // A map of it, the only reader inside, writes there.
    Operation *map = inner.getDefiningOp();
    bool only = llvm::all_of(other.getUsers(),
                             [&](Operation *user) { return user == op || user == map; });
    if (isa_and_nonnull<device::MapOp>(map) && only && ends && inner.hasOneUse() &&
        map->getNumResults() == 1)
      places[inner] = values[result].text;
  }
  std::string name = value(op.getCondition()).text;
  bool isKnown = op.getCondition().getDefiningOp<device::AnyOp>() != nullptr;
  write("if (" + (isKnown ? name + "[0]" : vote(name, op.getCondition().getType())) + ") {");
  ++depth;
  printBlock(block);
  assign(op.getResults(), yield.getValues());
  --depth;
  write("}");
}

/// The first of the threads that hold the same element.
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

void KernelPrinter::printContract(device::ContractOp op) {
  RingType b = op.getB().getType();
  int64_t columns = op.getResult().getType().getShape()[1];
  bool isBF16 = b.getElementType().isBF16();
  Value c = op.getC();
  // What the loop carries is changed in place: its next value is this one.
  bool inPlace = endsHere(c, op);
  std::string sum = declareFragment(op.getResult(), inPlace ? c : Value(), "product");
  if (c && !inPlace) {
    write("copy(" + sum + ", " + value(c).text + ");");
    helpers.insert("copy");
  }
  std::string stage = value(op.getB()).text + " + " + value(op.getBStage()).at(Expr::product) +
                      " * " + std::to_string(b.getStageBytes());
  std::string base = fresh(op.getLoc(), "b");
  write("const uint64_t " + base + " = " +
        (op.getTransposed() ? "tile_by_rows(" : "tile_by_columns<" + std::to_string(b.getRows()) + ">(") +
        stage + ");");
  helpers.insert({"descriptors", "contract"});
  std::string step = op.getTransposed()
                         ? "row_step<" + std::to_string(b.getRows()) + ">(k)"
                         : "column_step(k)";
  std::string first = c ? "1" : "k != 0";
  if (auto a = dyn_cast<RingType>(op.getA().getType())) {
    std::string rows = fresh(op.getLoc(), "a");
    write("const uint64_t " + rows + " = tile_by_rows(" + value(op.getA()).text + " + " +
          value(op.getARow()).at(Expr::product) + " * 128);");
    write("start_products();");
    write("#pragma unroll");
    write("for (int k = 0; k < " + std::to_string(a.getColumns() / 16) + "; ++k)");
    write("  " + requestContraction(columns, isBF16, /*fromRegisters=*/false, !op.getTransposed(), helpers) +
          "(" + sum + ", " + rows + " + row_step<" + std::to_string(a.getRows()) + ">(k), " + base +
          " + " + step + ", " + first + ");");
  } else {
    int64_t inner = cast<FragmentType>(op.getA().getType()).getShape()[1];
    std::string packed = value(op.getA()).text;
    write("start_products();");
    write("#pragma unroll");
    write("for (int k = 0; k < " + std::to_string(inner / 16) + "; ++k)");
    write("  " + requestContraction(columns, isBF16, /*fromRegisters=*/true, !op.getTransposed(), helpers) +
          "(" + sum + ", &" + packed + "[4 * k], " + base + " + " + step + ", " + first + ");");
  }
  write("commit_products();");
}

void KernelPrinter::printAwait(device::AwaitOp op) {
  helpers.insert("await_products");
  declareFragment(op.getResult(), op.getFragment(), "product");
  write("await_products<" + std::to_string(op.getPending()) + ">(" +
        values[op.getResult()].text + ");");
}

namespace {
/// The loops over a thread's registers of a fragment, and an element's place.
struct RegisterLoops {
  std::vector<std::string> heads;
  std::string element;              // register of the map's layout
  std::vector<std::string> indices; // of the element, per axis
  std::vector<std::string> offsets; // the registers' part of it
  std::string row;                  // register in the layout of the rows
};
} // namespace

/// This thread's part of an index: the digits bound to warps and lanes.
static std::string threadPart(const LayoutAttr &layout, unsigned axis) {
  std::string text;
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis)) {
    if (digit.place == Place::register_)
      continue;
    std::string number = digit.place == Place::warp ? "warp" : "lane";
    int64_t count = digit.place == Place::warp ? 4 : 32;
    std::string term = number;
    if (digit.stride != 1)
      term += " / " + std::to_string(digit.stride);
    if (digit.stride * digit.size != count)
      term += " % " + std::to_string(digit.size);
    if (digit.weight != 1)
      term = (term.find(' ') != std::string::npos ? "(" + term + ")" : term) + " * " +
             std::to_string(digit.weight);
    text += (text.empty() ? "" : " + ") + term;
  }
  return text.empty() ? "0" : text;
}

static RegisterLoops makeLoops(const LayoutAttr &layout,
                               llvm::function_ref<std::string(const char *)> name) {
  struct Loop {
    LayoutAttr::Digit digit;
    unsigned axis;
    std::string variable;
  };
  std::vector<Loop> loops;
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
      if (digit.place == Place::register_ && digit.size > 1)
        loops.push_back({digit, axis, ""});
  llvm::sort(loops, [](const Loop &x, const Loop &y) { return x.digit.stride > y.digit.stride; });
  RegisterLoops result;
  result.indices.resize(layout.getRank());
  result.offsets.resize(layout.getRank());
  for (unsigned axis = 0; axis < layout.getRank(); ++axis)
    result.indices[axis] = threadPart(layout, axis);
  auto term = [](const std::string &variable, int64_t factor) {
    return factor == 1 ? variable : std::to_string(factor) + " * " + variable;
  };
  auto add = [](std::string &sum, const std::string &text) {
    sum += (sum.empty() ? "" : " + ") + text;
  };
  int64_t rowStride = 1;
  for (Loop &loop : llvm::reverse(loops)) {
    loop.variable = name(loop.axis == 0 ? "r" : "c");
    if (loop.axis == 0) {
      add(result.row, term(loop.variable, rowStride));
      rowStride *= loop.digit.size;
    }
  }
  for (Loop &loop : loops) {
    result.heads.push_back("for (int " + loop.variable + " = 0; " + loop.variable + " < " +
                           std::to_string(loop.digit.size) + "; ++" + loop.variable + ")");
    add(result.element, term(loop.variable, loop.digit.stride));
    add(result.indices[loop.axis], term(loop.variable, loop.digit.weight));
    add(result.offsets[loop.axis], term(loop.variable, loop.digit.weight));
  }
  for (std::string &offset : result.offsets)
    if (offset.empty())
      offset = "0";
  if (result.element.empty())
    result.element = "0";
  if (result.row.empty())
    result.row = "0";
  return result;
}

/// A map that only rounds to 16 bits.
bool KernelPrinter::printRounding(device::MapOp op) {
  Block &block = op.getBody().front();
  if (op.getNumResults() != 1 || op.getInputs().size() != 1 || !isNarrow(op.getResult(0)))
    return false;
  auto yield = cast<device::YieldOp>(block.getTerminator());
  auto rounded = yield.getValues()[0].getDefiningOp<arith::TruncFOp>();
  if (!rounded || rounded.getIn() != block.getArgument(0) || !rounded.getIn().getType().isF32())
    return false;
  bool isBF16 = yield.getValues()[0].getType().isBF16();
  std::string name = declareFragment(op.getResult(0), Value(), "packed");
  helpers.insert(isBF16 ? "pack_bf16" : "pack_f16");
  write(std::string(isBF16 ? "pack_bf16(" : "pack_f16(") + name + ", " +
        value(op.getInputs()[0]).text + ");");
  return true;
}

void KernelPrinter::printMap(device::MapOp op) {
  if (printRounding(op))
    return;
  for (Value fragment : llvm::concat<Value>(SmallVector<Value>(op.getInputs()),
                                            SmallVector<Value>(op.getResults())))
    if (isNarrow(fragment) && error.empty())
      error = "a map of 16-bit fragments that does more than round them";
  LayoutAttr layout = op.getLayout();
  Block &block = op.getBody().front();
  auto yield = cast<device::YieldOp>(block.getTerminator());
  // An input that nothing else reads may be overwritten by a result like it.
  std::set<void *> taken;
  for (Value result : op.getResults()) {
    Value reuse;
    for (Value input : op.getInputs())
      if (!reuse && input.getType() == result.getType() && endsHere(input, op) &&
          op.getNumResults() == 1 && taken.insert(input.getAsOpaquePointer()).second)
        reuse = input;
    declareFragment(result, reuse, "fragment");
  }
  auto variable = [&](const char *wish) {
    return fresh(NameLoc::get(StringAttr::get(op.getContext(), wish)), wish);
  };
  RegisterLoops loops = makeLoops(layout, variable);
  for (const std::string &head : loops.heads) {
    write("#pragma unroll");
    write(head + " {");
    ++depth;
  }
  if (loops.heads.empty()) {
    write("{");
    ++depth;
  }
  for (auto [input, arg] : llvm::zip(op.getInputs(), block.getArguments())) {
    auto type = cast<FragmentType>(input.getType());
    bool isRow = type.getLayout() != layout;
    std::string text = value(input).text + "[" + (isRow ? loops.row : loops.element) + "]";
    values[arg] = {text};
  }
  for (auto [axis, arg] : llvm::enumerate(
           block.getArguments().drop_front(op.getInputs().size()))) {
    bool whole = false;
    for (Operation *user : arg.getUsers())
      if (auto offset = dyn_cast<device::ThreadOffsetOp>(user))
        values[offset.getResult()] = {loops.offsets[axis], Expr::sum};
      else
        whole = true;
    if (!whole)
      continue;
    std::string name = variable(axis == 0 ? "i" : "j");
    write("const int64_t " + name + " = " + loops.indices[axis] + ";");
    values[arg] = {name};
  }
  // What has no results acts, once per element.
  bool once = op.getNumResults() == 0 && layout.getRank() == 1;
  if (once) {
    write("if (" + replicaCondition(layout) + ") {");
    ++depth;
  }
  printBlock(block);
  std::vector<std::string> texts;
  for (Value source : yield.getValues())
    texts.push_back(value(source).text);
  for (auto [result, text] : llvm::zip(op.getResults(), texts))
    write(values[result].text + "[" +
          (cast<FragmentType>(result.getType()).getLayout() == layout ? loops.element : loops.row) +
          "] = " + text + ";");
  if (once) {
    --depth;
    write("}");
  }
  for (size_t k = 0; k < std::max<size_t>(loops.heads.size(), 1); ++k) {
    --depth;
    write("}");
  }
}

void KernelPrinter::printReduce(device::ReduceOp op) {
  LayoutAttr layout = op.getFragment().getType().getLayout();
  Type type = op.getFragment().getType().getElementType();
  std::string from = value(op.getFragment()).text;
  std::string name = declareFragment(op.getResult(), Value(), "reduced");
  auto variable = [&](const char *wish) {
    return fresh(NameLoc::get(StringAttr::get(op.getContext(), wish)), wish);
  };
  auto combined = [&](const std::string &x, const std::string &y) -> std::string {
    switch (op.getMonoid()) {
    case Monoid::add:
    case Monoid::mul: {
      bool isSum = op.getMonoid() == Monoid::add;
      if (!isa<FloatType>(type))
        return x + (isSum ? " + " : " * ") + y;
      return std::string(type.isF64() ? "__d" : "__f") + (isSum ? "add" : "mul") + "_rn(" + x +
             ", " + y + ")";
    }
    case Monoid::and_: return x + " & " + y;
    case Monoid::or_: return x + " | " + y;
    default: break;
    }
    bool isMax = op.getMonoid() == Monoid::max;
    bool isFloat = isa<FloatType>(type);
    std::string helper = std::string(isMax ? "max" : "min") + (isFloat ? "_nan" : "_int");
    helpers.insert(helper);
    return helper + (isFloat ? "" : "<" + getValueType(type).str() + ">") + "(" + x + ", " + y + ")";
  };
  std::string identity = printConstant(getIdentity(op.getMonoid(), type));
  int64_t rows = op.getResult().getType().getLayout().getNumRegisters();
  bool joins = op.getResult().getType().getLayout() == layout.getSlice(0);
  // Two chains of half the length: neighbours apart.
  std::string other = fresh(NameLoc::get(StringAttr::get(op.getContext(), name + "_odd")), "odd");
  write(getValueType(type).str() + " " + other + "[" + std::to_string(rows) + "];");
  write("fill(" + name + ", " + identity + ");");
  write("fill(" + other + ", " + identity + ");");
  helpers.insert("fill");
  RegisterLoops loops = makeLoops(layout, variable);
  bool isPaired = loops.heads.size() > 1 && layout.getNumRegisters() > rows;
  for (const std::string &head : ArrayRef(loops.heads).drop_back(isPaired)) {
    write("#pragma unroll");
    write(head + " {");
    ++depth;
  }
  auto step = [&](const std::string &to, const std::string &which) {
    std::string target = to + "[" + loops.row + "]";
    write(target + " = " + combined(target, from + "[" + which + "]") + ";");
  };
  if (isPaired) {
    size_t end = loops.element.rfind(" + ");
    std::string even = loops.element.substr(0, end);
    step(name, even);
    step(other, even + " + 1");
  } else {
    step(name, loops.element);
  }
  for (size_t k = isPaired; k < loops.heads.size(); ++k) {
    --depth;
    write("}");
  }
  std::string r = variable("r");
  write("#pragma unroll");
  write("for (int " + r + " = 0; " + r + " < " + std::to_string(rows) + "; ++" + r + ") {");
  ++depth;
  std::string target = name + "[" + r + "]";
  if (isPaired)
    write(target + " = " + combined(target, other + "[" + r + "]") + ";");
  for (unsigned axis = 1; axis < layout.getRank(); ++axis) {
    SmallVector<LayoutAttr::Digit> digits = layout.getDigits(axis);
    for (const LayoutAttr::Digit &digit : llvm::reverse(digits))
      for (int64_t bit = 1; joins && digit.place == Place::lane && bit < digit.size; bit *= 2)
        write(target + " = " +
              combined(target, "__shfl_xor_sync(0xffffffff, " + target + ", " +
                                   std::to_string(bit * digit.stride) + ")") +
              ";");
  }
  --depth;
  write("}");
}

} // namespace moa::cuda
