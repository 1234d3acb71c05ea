//===- SharedMemory.cpp - the struct of a block's shared memory -----------===//
//
// Rings, barriers, lists and scalars of a block are fields of `struct Shared`, at the offsets that
// gpu::Launch gives and that static assertions check.
//
//===----------------------------------------------------------------------===//
#include "lib/Target/CUDA/KernelPrinter.h"
#include <cassert>

using namespace mlir;

namespace moa::cuda {

using device::RingType;

/// The most shared memory of a block of sm_90.
static constexpr int64_t kMostBytes = 227 * 1024;

std::string KernelPrinter::freshField(llvm::StringRef wish) {
  std::string base = getIdentifier(wish);
  if (isOwnName(base))
    base = appendWord(base, "tiles");
  std::string name = base;
  for (unsigned k = 2; !fieldNames.insert(name).second; ++k)
    name = getNumbered(base, k);
  return name;
}

static std::string bracket(int64_t count) { return "[" + std::to_string(count) + "]"; }

/// Returns the field of a ring, for example `K[2 * K_BYTES]`, and names the bytes of a stage.
KernelPrinter::Field KernelPrinter::getRingField(Value ring) {
  auto type = cast<RingType>(ring.getType());
  std::string wish = wishFor(ring, "tiles");
  llvm::StringRef base = wish;
  base.consume_back("_ring");
  std::string name = freshField(base), size = std::to_string(type.getStageBytes());
  std::string constant = fresh(appendWord(base, "BYTES"));
  int64_t bytes = type.getElementBytes();
  if (type.getRows() * type.getColumns() * bytes == type.getStageBytes())
    size = std::to_string(type.getRows()) + " * " + std::to_string(type.getColumns()) +
           (bytes == 1 ? "" : " * " + std::to_string(bytes));
  values[ring] = {"shared." + name};
  stageBytes.emplace_back(ring, constant);
  if (!continueLine("stages", constant + " = " + size))
    write("constexpr int64_t " + constant + " = " + size + ";");
  joinEnd = body.size();
  return {launch.getOffset(ring), type.getStages() * type.getStageBytes(), 1024, "unsigned char",
          name + "[" + (type.getStages() == 1 ? "" : std::to_string(type.getStages()) + " * ") + constant + "]"};
}

/// Returns the fields of a block's shared memory in the order of their places.
std::vector<KernelPrinter::Field> KernelPrinter::getFields() {
  std::vector<Field> fields;
  auto add = [&](int64_t place, int64_t bytes, int64_t alignment, const char *type, const std::string &declarator) {
    fields.push_back({place, bytes, alignment, type, declarator});
  };
  kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<device::SharedOp>(op))
      fields.push_back(getRingField(op->getResult(0)));
    if (auto own = dyn_cast<device::BarriersOp>(op)) {
      auto type = cast<device::BarriersType>(own.getResult().getType());
      std::string name = freshField(wishFor(own.getResult(), "barriers"));
      values[own.getResult()] = {"shared." + name};
      add(launch.getOffset(own.getResult()), 8 * type.getStages(), 8, "uint64_t", name + bracket(type.getStages()));
    }
    if (auto collect = dyn_cast<device::CollectOp>(op))
      for (auto [k, list] : llvm::enumerate(collect.getLists())) {
        auto type = cast<device::MembersType>(list.getType());
        std::string name = freshField(getListName(collect, k));
        values[list] = {"shared." + name};
        add(launch.getOffset(list), type.getBytes(), 2, "uint16_t", name + bracket(type.getBytes() / 2));
      }
  });
  if (launch.clearWords)
    add(launch.clearWords, 16, 4, "uint32_t", (clearWords = freshField("visible_keys")) + "[4]");
  if (launch.collectWords)
    add(launch.collectWords, 128, 4, "int", (collectWords = freshField("warp_counts")) + "[32]");
  for (Value number : launch.kept) {
    keptFields.push_back(freshField(wishFor(number, "number")));
    add(launch.getKeptOffset(number), 8, 8, "int64_t", keptFields.back());
  }
  if (launch.nextBlock) {
    add(launch.givenBarrier, 8, 8, "uint64_t", (givenBarrier = freshField("block_given")) + "[1]");
    add(launch.leftBarrier, 8, 8, "uint64_t", (leftBarrier = freshField("block_left")) + "[1]");
    add(launch.hasBlockOffset, 8, 8, "int64_t", (hasBlock = freshField("has_block")));
    for (std::string *name : {&givenBarrier, &leftBarrier, &hasBlock})
      *name = "shared." + *name;
  }
  llvm::sort(fields, [](const Field &x, const Field &y) { return x.place < y.place; });
  return fields;
}

void KernelPrinter::declareShared() {
  if (std::exchange(hasShared, true))
    return;
  std::vector<Field> fields = getFields();
  write("struct Shared { // tiles start at multiples of 1024 bytes, the period of the 128-byte swizzle");
  ++depth;
  int64_t end = 0;
  for (size_t k = 0; k < fields.size();) {
    const Field &first = fields[k];
    int64_t alignment = first.alignment;
    while (int64_t(llvm::alignTo(end, alignment)) != first.place && alignment < 1024)
      alignment *= 2;
    assert(int64_t(llvm::alignTo(end, alignment)) == first.place && "fields overlap");
    std::string line = alignment == first.alignment && alignment <= 8
                           ? first.type + " "
                           : "alignas(" + std::to_string(alignment) + ") " + first.type + " ";
    line += first.declarator;
    end = first.place + first.bytes;
    size_t next = k + 1;
    // Adjacent fields of one type share a line.
    for (; next < fields.size() && alignment <= 8 && fields[next].type == first.type && fields[next].place == end;
         ++next) {
      line += ", " + fields[next].declarator;
      end += fields[next].bytes;
    }
    write(line + ";");
    k = next;
  }
  --depth;
  write("};");
  std::string last = llvm::StringRef(fields.back().declarator).take_until([](char c) { return c == '['; }).str();
  write("static_assert(offsetof(Shared, " + last + ") == " + std::to_string(fields.back().place) +
        " && sizeof(Shared) <= " + std::to_string(kMostBytes) + ");");
  write("extern __shared__ __align__(1024) unsigned char shared_bytes[];");
  write("Shared &shared = *reinterpret_cast<Shared *>(shared_bytes);");
  // ptxas orders code by where addresses are computed first.
  kernel.walk([&](device::CollectOp collect) {
    for (auto [k, list] : llvm::enumerate(collect.getLists())) {
      std::string name = fresh(getListName(collect, k));
      write("uint16_t *const " + name + " = " + value(list).text + ";");
      values[list] = {name};
    }
  });
}

} // namespace moa::cuda
