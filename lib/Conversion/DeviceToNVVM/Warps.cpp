//===- Warps.cpp - operations of warps on their registers -----------------===//
#include "dialects/Device/IR/LayoutMaps.h"
#include "lib/Conversion/DeviceToNVVM/KernelEmitter.h"

using namespace mlir;

namespace moa::nvvm {

using device::FragmentType;
using device::LayoutAttr;
using device::Place;

/// Computes the sums of one tile after another, each with k ascending.
void KernelEmitter::emitContractFragments(device::ContractFragmentsOp op) {
  FragmentType type = op.getResult().getType(), left = op.getA().getType();
  std::string why;
  auto plan = *device::getTileContraction(left, op.getB().getType(), type, why);
  Type element = type.getElementType();
  Values rows = registers(Value(op.getA())), columns = registers(Value(op.getB())), sum;
  if (op.getC()) {
    sum = registers(Value(op.getC()));
  } else {
    Value zero = to.constant(b.getFloatAttr(element, 0));
    sum.assign(type.getLayout().getNumRegisters(), zero);
  }
  int64_t each = isNarrow(left) ? 2 : 1; // elements of a register
  auto pick = [](const Values &from, ArrayRef<int64_t> numbers, int64_t each) {
    Values values;
    for (size_t i = 0; i < numbers.size(); i += each)
      values.push_back(from[numbers[i] / each]);
    return values;
  };
  for (size_t m = 0; m != plan.c.rowStarts.size(); ++m)
    for (size_t n = 0; n != plan.c.columnStarts.size(); ++n) {
      ArrayRef<int64_t> numbers = plan.c.registers[m][n];
      Values tile = pick(sum, numbers, 1);
      for (size_t k = 0; k != plan.b.rowStarts.size(); ++k)
        tile = to.multiply(*plan.instruction, left.getElementType(), tile, pick(rows, plan.a.registers[m][k], each),
                           pick(columns, plan.b.registers[k][n], each));
      for (auto [number, value] : llvm::zip(numbers, tile))
        sum[number] = value;
    }
  fragments[op.getResult()] = sum;
}

/// Returns a warp's part of an index.
Value KernelEmitter::warpPart(LayoutAttr layout, unsigned axis) {
  Value sum = to.i32(0);
  for (const LayoutAttr::Digit &digit : layout.getDigits(axis))
    if (digit.place == Place::warp)
      sum = to.add(sum, to.mul(to.rem(to.div(warp, digit.stride), digit.size), digit.weight));
  return sum;
}

void KernelEmitter::emitLoadFragment(device::LoadFragmentOp op) {
  device::RingType ring = op.getRing().getType();
  FragmentType type = op.getResult().getType();
  bool transposed = op.getTransposed();
  auto plan = *device::getMatrixLoads(type.getLayout(), transposed);
  Value tile = stage(op.getRing(), op.getStage());
  // Lane l has the address of row l mod 8 of matrix l / 8.
  Value inMatrix = to.rem(lane, 8);
  auto start = [&](Value first, unsigned axis) {
    Value ofWarp = warpPart(type.getLayout(), transposed ^ axis);
    Value sum = to.add(to.narrow(value(first)), ofWarp);
    for (unsigned bit = 0; bit != 2; ++bit)
      if (int64_t step = plan.steps[bit][axis])
        sum = to.add(sum, to.mul(to.rem(to.div(lane, 8 << bit), 2), step));
    return sum;
  };
  Value row = to.add(start(op.getRow(), 0), inMatrix);
  Value unit = to.div(start(op.getColumn(), 1), 8);
  Values words(countRegisters(type));
  for (const auto &load : plan.loads) {
    Value u = to.add(unit, load.column / 8);
    Value inPiece = to.add(row, load.row), line = to.add(to.mul(to.div(u, 8), ring.getRows()), inPiece);
    Value swizzled = to.make<arith::XOrIOp>(to.rem(u, 8), inMatrix);
    Value inLine = to.mul(swizzled, 16), address = to.add(to.add(tile, to.mul(line, 128)), inLine);
    Values read = to.loadMatrices(address, plan.count, plan.isTransposed);
    for (auto [number, word] : llvm::zip(load.pairs, read))
      words[number] = word;
  }
  fragments[op.getResult()] = words;
}

void KernelEmitter::emitConvertLayout(device::ConvertLayoutOp op) {
  FragmentType type = op.getResult().getType();
  LayoutAttr from = op.getFragment().getType().getLayout(), layout = type.getLayout();
  bool packed = isNarrow(type);
  std::string why;
  auto plan = *device::getConversion(from, layout, packed, why);
  if (packed && (layout.getNumRegisters() % 2 || from.getNumRegisters() % 2))
    return fail(op, "16-bit registers that do not form pairs");
  Values starts;
  for (unsigned axis = 0; axis != layout.getRank(); ++axis)
    starts.push_back(threadPart(layout, axis));
  std::vector<RegisterPlace> places = getPlaces(layout);
  Values x = registers(Value(op.getFragment())), moved;
  bool isHalf = packed && plan.width == 1; // halves of words move separately
  for (size_t unit = 0; unit != plan.sources.size(); ++unit) {
    // The position of this thread's element, digit by digit.
    const RegisterPlace &registerPlace = places[unit * plan.width];
    auto numberOf = [&](Place which) {
      Value sum = to.i32(0);
      for (unsigned axis = 0; axis <= layout.getRank(); ++axis)
        for (const LayoutAttr::Digit &digit : from.getDigits(axis)) {
          if (digit.place != which || (axis == layout.getRank() && which == Place::register_))
            continue;
          Value number = axis == layout.getRank()
                             ? to.div(lane, digit.stride)
                             : to.div(to.add(starts[axis], registerPlace.indices[axis]), digit.weight);
          sum = to.add(sum, to.mul(to.rem(number, digit.size), digit.stride));
        }
      return sum;
    };
    Value source = plan.movesLanes ? numberOf(Place::lane) : Value(), chosen, result;
    for (int64_t candidate : plan.sources[unit]) {
      Value word = x[isHalf ? candidate / 2 : candidate];
      if (source)
        word = to.shuffleFrom(word, source);
      if (isHalf && candidate % 2)
        word = to.make<arith::ShRUIOp>(word, to.i32(16));
      if (result) {
        if (!chosen)
          chosen = numberOf(Place::register_);
        word = to.make<arith::SelectOp>(to.equals(chosen, candidate * plan.width), word, result);
      }
      result = word;
    }
    moved.push_back(result);
  }
  if (isHalf) {
    Values words;
    for (size_t k = 0; k != moved.size(); k += 2) {
      Value low = to.make<arith::AndIOp>(moved[k], to.i32(0xffff));
      Value high = to.make<arith::ShLIOp>(moved[k + 1], to.i32(16));
      words.push_back(to.make<arith::OrIOp>(low, high));
    }
    moved = words;
  }
  fragments[op.getResult()] = moved;
}

} // namespace moa::nvvm
