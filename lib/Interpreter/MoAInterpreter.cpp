//===- MoAInterpreter.cpp - whole arrays, operator by operator ------------===//
//
// Executes every operator by its definition in docs/Spec.md. An element is present, absent (masked)
// or undefined. An index outside its array, or an integer division by zero, makes an element
// undefined. This is an error only if a present value needs the element, as in the compiled code,
// which evaluates elements on demand.
//
//===----------------------------------------------------------------------===//
#include "lib/Interpreter/Kernel.h"
#include "lib/Interpreter/Scalar.h"
#include "lib/Interpreter/UserMonoid.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"
#include <memory>

using namespace mlir;
using namespace moa;
using namespace moa::interp;
using llvm::Error;
using llvm::Expected;

namespace {

enum State : uint8_t { Present, Absent, Undefined };

struct Whole {
  Type element;
  std::vector<int64_t> shape;
  std::vector<Cell> data;
  /// Empty if every element is present. The cell of an undefined element holds the number of its
  /// fault.
  std::vector<uint8_t> states;

  State state(int64_t k) const { return states.empty() ? Present : static_cast<State>(states[k]); }
  void set(int64_t k, State state, Cell cell) {
    data[k] = cell;
    if (state == Present && states.empty())
      return;
    if (states.empty())
      states.assign(data.size(), Present);
    states[k] = state;
  }
};
using WholePtr = std::shared_ptr<Whole>;

std::vector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * shape[k];
  return strides;
}

ArrayRef<int64_t> axesOf(ArrayAttr axes, unsigned k) { return cast<DenseI64ArrayAttr>(axes[k]).asArrayRef(); }

class MoAInterpreter {
public:
  MoAInterpreter(const Kernel &kernel, const Symbols &symbols, const InterpretOptions &options)
      : kernel(kernel), symbols(symbols), options(options) {}

  Expected<std::vector<Array>> run(KernelOp op, const KernelInputs &inputs);

private:
  Error execute(Operation *op);
  Error apply(ConstantOp op, Whole &out);
  Error apply(ExtentOp op, Whole &out);
  Error apply(IotaOp op, Whole &out);
  Error apply(MapOp op, Whole &out);
  Error apply(CastOp op, Whole &out);
  Error apply(MaskOp op, Whole &out);
  Error apply(ReduceOp op, Whole &out);
  Error apply(InnerOp op, Whole &out);
  Error apply(PsiOp op, Whole &out);
  Error apply(TransposeOp op, Whole &out);
  Error apply(ReshapeOp op, Whole &out);
  Error apply(SliceOp op, Whole &out);
  Error apply(CatOp op, Whole &out);
  Error apply(ReverseOp op, Whole &out);
  Error apply(RotateOp op, Whole &out);

  const Whole &at(Value value) { return *values.find(value)->second; }
  Cell fault(Operation *op, const Twine &what);
  /// Returns the strides of an operand whose axes are at `axes` of the result.
  static std::vector<int64_t> spread(const Whole &in, ArrayRef<int64_t> axes, size_t rank);
  /// Computes out[i] = in[f(i)], where f writes an index of `in`.
  void view(Operation *op, const Whole &in, Whole &out,
            llvm::function_ref<void(ArrayRef<int64_t>, MutableArrayRef<int64_t>)> f);
  Expected<Array> output(const Whole &value, unsigned number);

  const Kernel &kernel;
  const Symbols &symbols;
  const InterpretOptions &options;
  llvm::DenseMap<Value, WholePtr> values;
  std::vector<std::string> faults;
  llvm::DenseMap<Operation *, int64_t> faultOf;
};

//===----------------------------------------------------------------------===//
// Helpers
//===----------------------------------------------------------------------===//

/// Records a fault; only the first of each operation is kept.
Cell MoAInterpreter::fault(Operation *op, const Twine &what) {
  auto [it, inserted] = faultOf.try_emplace(op, faults.size());
  if (inserted)
    faults.push_back(locationText(op->getLoc()) + what.str());
  return ofInt(it->second);
}

std::vector<int64_t> MoAInterpreter::spread(const Whole &in, ArrayRef<int64_t> axes, size_t rank) {
  std::vector<int64_t> own = stridesOf(in.shape), strides(rank, 0);
  for (auto [k, axis] : llvm::enumerate(axes))
    strides[axis] = own[k];
  return strides;
}

int64_t dot(ArrayRef<int64_t> index, ArrayRef<int64_t> strides) {
  int64_t sum = 0;
  for (size_t k = 0; k < index.size(); ++k)
    sum += index[k] * strides[k];
  return sum;
}

/// Calls f(k, index) for every element in row-major order.
template <typename F> void forEach(const std::vector<int64_t> &shape, F f) {
  if (countOf(shape) == 0)
    return;
  std::vector<int64_t> index(shape.size(), 0);
  int64_t k = 0;
  do
    f(k++, ArrayRef<int64_t>(index));
  while (nextIndex(index, shape));
}

void MoAInterpreter::view(Operation *op, const Whole &in, Whole &out,
                          llvm::function_ref<void(ArrayRef<int64_t>, MutableArrayRef<int64_t>)> f) {
  std::vector<int64_t> strides = stridesOf(in.shape), source(in.shape.size());
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    f(index, source);
    for (size_t axis = 0; axis < source.size(); ++axis)
      if (source[axis] < 0 || source[axis] >= in.shape[axis]) {
        out.set(k, Undefined,
                fault(op, "index " + indexText(source) + " is outside an array of shape " + indexText(in.shape) +
                              ", for element " + indexText(index)));
        return;
      }
    int64_t offset = dot(source, strides);
    out.set(k, in.state(offset), in.data[offset]);
  });
}

//===----------------------------------------------------------------------===//
// Scalars and generators
//===----------------------------------------------------------------------===//

Error MoAInterpreter::apply(ConstantOp op, Whole &out) {
  auto cell = ofAttribute(op.getValue());
  if (!cell)
    return makeError(locationText(op.getLoc()) + "a constant without a value");
  out.data[0] = *cell;
  return Error::success();
}

Error MoAInterpreter::apply(ExtentOp op, Whole &out) {
  auto value = evaluate(op.getExpr(), symbols);
  if (value)
    out.data[0] = ofInt(*value);
  else // an error only if a present value needs it
    out.set(0, Undefined, fault(op, llvm::toString(value.takeError())));
  return Error::success();
}

Error MoAInterpreter::apply(IotaOp op, Whole &out) {
  for (size_t k = 0; k < out.data.size(); ++k)
    out.data[k] = ofInt(k);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Point-wise operators and masks
//===----------------------------------------------------------------------===//

/// Returns true if the left operand of `and` or `or` on booleans decides the result.
static bool decides(MapOp op, const Whole &left, int64_t offset) {
  if (!left.element.isInteger(1) || left.state(offset) != Present)
    return false;
  bool value = left.data[offset].i != 0;
  return op.getFn() == ScalarFn::and_ ? !value : op.getFn() == ScalarFn::or_ && value;
}

/// Select gives the selected operand, otherwise the first present one. Any other function is absent
/// if an operand is. Else `and` and `or` give a deciding left operand. Else the result is undefined
/// if an operand is.
Error MoAInterpreter::apply(MapOp op, Whole &out) {
  SmallVector<const Whole *, 3> inputs;
  SmallVector<std::vector<int64_t>, 3> strides;
  for (auto [k, input] : llvm::enumerate(op.getInputs())) {
    inputs.push_back(&at(input));
    strides.push_back(spread(*inputs.back(), axesOf(op.getAxes(), k), out.shape.size()));
  }
  bool selects = op.getFn() == ScalarFn::select;
  bool fills = op.getFn() == ScalarFn::otherwise;
  auto instr = instrOf(op.getFn(), inputs[0]->element);
  if (!instr && !selects && !fills)
    return makeError(locationText(op.getLoc()) + "'" + stringifyScalarFn(op.getFn()) +
                     "' has no meaning on this element type");
  size_t n = inputs.size();
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    int64_t offsets[3];
    bool absent = false;
    int undefined = -1;
    if (selects) {
      int64_t condition = dot(index, strides[0]);
      if (inputs[0]->state(condition) != Present)
        return out.set(k, inputs[0]->state(condition), inputs[0]->data[condition]);
      size_t chosen = inputs[0]->data[condition].i ? 1 : 2;
      int64_t offset = dot(index, strides[chosen]);
      return out.set(k, inputs[chosen]->state(offset), inputs[chosen]->data[offset]);
    }
    if (fills) {
      int64_t offset = dot(index, strides[0]);
      size_t chosen = inputs[0]->state(offset) == Absent ? 1 : 0;
      offset = dot(index, strides[chosen]);
      return out.set(k, inputs[chosen]->state(offset), inputs[chosen]->data[offset]);
    }
    for (size_t a = 0; a < n; ++a) {
      offsets[a] = dot(index, strides[a]);
      State state = inputs[a]->state(offsets[a]);
      absent |= state == Absent;
      if (state == Undefined && undefined < 0)
        undefined = a;
    }
    if (absent)
      return out.set(k, Absent, ofInt(0));
    if (decides(op, *inputs[0], offsets[0]))
      return out.set(k, Present, inputs[0]->data[offsets[0]]);
    if (undefined >= 0)
      return out.set(k, Undefined, inputs[undefined]->data[offsets[undefined]]);
    Cell operands[3], result = ofInt(0);
    for (size_t a = 0; a < n; ++a)
      operands[a] = inputs[a]->data[offsets[a]];
    if (const char *why = perform(*instr, operands, result))
      return out.set(k, Undefined, fault(op, Twine(why) + ", for element " + indexText(index)));
    out.set(k, Present, result);
  });
  return Error::success();
}

Error MoAInterpreter::apply(CastOp op, Whole &out) {
  const Whole &in = at(op.getInput());
  Instr instr = castOf(in.element, out.element, op.getImplicit());
  for (size_t k = 0; k < in.data.size(); ++k) {
    Cell result = in.data[k];
    if (in.state(k) == Present)
      perform(instr, &in.data[k], result);
    out.set(k, in.state(k), result);
  }
  return Error::success();
}

Error MoAInterpreter::apply(MaskOp op, Whole &out) {
  const Whole &p = at(op.getPredicate()), &in = at(op.getInput());
  auto strides = spread(p, op.getAxes(), out.shape.size());
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    int64_t offset = dot(index, strides);
    if (in.state(k) == Absent || p.state(offset) == Absent)
      return out.set(k, Absent, ofInt(0));
    if (p.state(offset) == Undefined)
      return out.set(k, Undefined, p.data[offset]);
    if (!p.data[offset].i)
      return out.set(k, Absent, ofInt(0));
    out.set(k, in.state(k), in.data[k]);
  });
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Error MoAInterpreter::apply(ReduceOp op, Whole &out) {
  const Whole &in = at(op.getInput());
  std::vector<int64_t> strides = stridesOf(in.shape);
  int64_t axis = op.getAxis(), extent = in.shape[axis], step = strides[axis];
  strides.erase(strides.begin() + axis);
  auto user = getUserMonoid(op);
  if (!user)
    return user.takeError();
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    int64_t offset = dot(index, strides);
    Accumulator sum(op.getMonoid(), out.element, user->get());
    for (int64_t j = 0; j < extent; ++j, offset += step) {
      State state = in.state(offset);
      if (state == Undefined)
        return out.set(k, Undefined, in.data[offset]);
      if (state == Present)
        sum.add(in.data[offset]);
    }
    if (const char *why = sum.getFault())
      return out.set(k, Undefined, fault(op, Twine(why) + ", for element " + indexText(index)));
    out.set(k, Present, sum.get());
  });
  return Error::success();
}

Error MoAInterpreter::apply(InnerOp op, Whole &out) {
  const Whole &lhs = at(op.getLhs()), &rhs = at(op.getRhs());
  size_t rank = out.shape.size(), frame = op.getFrame();
  size_t lf = op.getLhsFramed() ? frame : 0, rf = op.getRhsFramed() ? frame : 0;
  std::vector<int64_t> ls = stridesOf(lhs.shape), rs = stridesOf(rhs.shape);
  std::vector<int64_t> left(rank, 0), right(rank, 0);
  std::copy(ls.begin(), ls.begin() + lf, left.begin());
  std::copy(rs.begin(), rs.begin() + rf, right.begin());
  std::copy(ls.begin() + lf, ls.end() - 1, left.begin() + frame);
  std::copy(rs.begin() + rf + 1, rs.end(), right.end() - (rs.size() - rf - 1));
  int64_t extent = lhs.shape.back(), lstep = ls.back(), rstep = rs[rf];
  auto instr = instrOf(op.getFn(), lhs.element);
  if (!instr)
    return makeError(locationText(op.getLoc()) + "'" + stringifyScalarFn(op.getFn()) +
                     "' has no meaning on this element type");
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    int64_t a = dot(index, left), b = dot(index, right);
    Accumulator sum(op.getMonoid(), out.element);
    for (int64_t l = 0; l < extent; ++l, a += lstep, b += rstep) {
      State x = lhs.state(a), y = rhs.state(b);
      if (x == Absent || y == Absent)
        continue;
      if (x == Undefined || y == Undefined)
        return out.set(k, Undefined, x == Undefined ? lhs.data[a] : rhs.data[b]);
      Cell operands[2] = {lhs.data[a], rhs.data[b]}, term = ofInt(0);
      if (const char *why = perform(*instr, operands, term))
        return out.set(k, Undefined, fault(op, Twine(why) + ", for element " + indexText(index)));
      sum.add(term);
    }
    out.set(k, Present, sum.get());
  });
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Data movement
//===----------------------------------------------------------------------===//

/// An absent or undefined index makes the element absent or undefined.
Error MoAInterpreter::apply(PsiOp op, Whole &out) {
  const Whole &in = at(op.getInput());
  size_t frame = op.getFrame(), n = op.getIndices().size();
  SmallVector<const Whole *> indices;
  SmallVector<std::vector<int64_t>> strides;
  for (auto [k, index] : llvm::enumerate(op.getIndices())) {
    indices.push_back(&at(index));
    strides.push_back(spread(*indices.back(), axesOf(op.getAxes(), k), frame));
  }
  std::vector<int64_t> own = stridesOf(in.shape), source(in.shape.size());
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    std::fill(source.begin(), source.end(), -1);
    State state = Present;
    Cell why = ofInt(0);
    for (size_t a = 0; a < n; ++a) {
      int64_t offset = dot(index.take_front(frame), strides[a]);
      State s = indices[a]->state(offset);
      if (s != Present && state != Absent) {
        state = s;
        why = indices[a]->data[offset];
      }
      source[op.getDims()[a]] = indices[a]->data[offset].i;
    }
    if (state != Present)
      return out.set(k, state, why);
    size_t next = frame, selected = 0;
    for (size_t axis = 0; axis < source.size(); ++axis) {
      bool isSelected = selected < n && op.getDims()[selected] == int64_t(axis);
      if (isSelected)
        ++selected;
      else
        source[axis] = index[next++];
      if (source[axis] < 0 || source[axis] >= in.shape[axis])
        state = Undefined;
    }
    if (state == Undefined)
      return out.set(k, state,
                     fault(op, "index " + indexText(source) + " is outside an array of shape " + indexText(in.shape) +
                                   ", for element " + indexText(index)));
    int64_t offset = dot(source, own);
    out.set(k, in.state(offset), in.data[offset]);
  });
  return Error::success();
}

Error MoAInterpreter::apply(TransposeOp op, Whole &out) {
  view(op, at(op.getInput()), out, [&](ArrayRef<int64_t> i, MutableArrayRef<int64_t> j) {
    for (auto [k, axis] : llvm::enumerate(op.getPerm()))
      j[axis] = i[k];
  });
  return Error::success();
}

Error MoAInterpreter::apply(ReshapeOp op, Whole &out) {
  const Whole &in = at(op.getInput());
  if (in.data.size() != out.data.size())
    return makeError(locationText(op.getLoc()) + "cannot reshape " + indexText(in.shape) + " to " +
                     indexText(out.shape));
  out.data = in.data;
  out.states = in.states;
  return Error::success();
}

Error MoAInterpreter::apply(SliceOp op, Whole &out) {
  auto start = evaluate(op.getStart(), symbols);
  if (!start)
    return start.takeError();
  view(op, at(op.getInput()), out, [&](ArrayRef<int64_t> i, MutableArrayRef<int64_t> j) {
    llvm::copy(i, j.begin());
    j[op.getAxis()] += *start;
  });
  return Error::success();
}

Error MoAInterpreter::apply(CatOp op, Whole &out) {
  const Whole *parts[2] = {&at(op.getLhs()), &at(op.getRhs())};
  std::vector<int64_t> strides[2] = {stridesOf(parts[0]->shape), stridesOf(parts[1]->shape)};
  int64_t axis = op.getAxis(), first = parts[0]->shape[axis];
  forEach(out.shape, [&](int64_t k, ArrayRef<int64_t> index) {
    std::vector<int64_t> i(index.begin(), index.end());
    bool second = i[axis] >= first;
    if (second)
      i[axis] -= first;
    int64_t offset = dot(i, strides[second]);
    out.set(k, parts[second]->state(offset), parts[second]->data[offset]);
  });
  return Error::success();
}

Error MoAInterpreter::apply(ReverseOp op, Whole &out) {
  int64_t axis = op.getAxis();
  view(op, at(op.getInput()), out, [&](ArrayRef<int64_t> i, MutableArrayRef<int64_t> j) {
    llvm::copy(i, j.begin());
    j[axis] = out.shape[axis] - 1 - i[axis];
  });
  return Error::success();
}

Error MoAInterpreter::apply(RotateOp op, Whole &out) {
  auto by = evaluate(op.getBy(), symbols);
  if (!by)
    return by.takeError();
  int64_t axis = op.getAxis(), n = out.shape[axis];
  view(op, at(op.getInput()), out, [&](ArrayRef<int64_t> i, MutableArrayRef<int64_t> j) {
    llvm::copy(i, j.begin());
    j[axis] = ((i[axis] + *by % n) % n + n) % n;
  });
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

Error MoAInterpreter::execute(Operation *op) {
  auto type = op->getNumResults() == 1 ? dyn_cast<ArrayType>(op->getResult(0).getType()) : ArrayType();
  if (!type)
    return makeError(locationText(op->getLoc()) + "no meaning for '" + op->getName().getStringRef() +
                     "' at the moa level");
  auto shape = evaluateShape(type, symbols);
  if (!shape)
    return shape.takeError();
  double size = 1;
  for (int64_t extent : *shape)
    size *= extent;
  if (size > options.maxElements)
    return makeError(locationText(op->getLoc()) + "an array of shape " + indexText(*shape) +
                     " is too large to interpret whole");
  auto out = std::make_shared<Whole>();
  out->element = type.getElementType();
  out->data.assign(countOf(*shape), ofInt(0));
  out->shape = std::move(*shape);
  Error error =
      llvm::TypeSwitch<Operation *, Error>(op)
          .Case<ConstantOp, ExtentOp, IotaOp, MapOp, CastOp, MaskOp, ReduceOp, InnerOp, PsiOp, TransposeOp, ReshapeOp,
                SliceOp, CatOp, ReverseOp, RotateOp>([&](auto concrete) { return apply(concrete, *out); })
          .Default([](Operation *unknown) {
            return makeError(locationText(unknown->getLoc()) + "no meaning for '" + unknown->getName().getStringRef() +
                             "' at the moa level");
          });
  if (error)
    return error;
  values[op->getResult(0)] = std::move(out);
  return Error::success();
}

Expected<Array> MoAInterpreter::output(const Whole &value, unsigned number) {
  Array array;
  array.shape = value.shape;
  array.data.resize(value.data.size());
  Form form = Form::of(value.element);
  Form stored = Form::of(kernel.resultTypes[number].getElementType());
  for (size_t k = 0; k < value.data.size(); ++k) {
    State state = value.state(k);
    if (state == Undefined)
      return makeError(faults[value.data[k].i] + " (needed by output '" + kernel.resultNames[number] + "')");
    array.data[k] = state == Absent ? 0 : toStored(value.data[k], form, stored);
  }
  return array;
}

Expected<std::vector<Array>> MoAInterpreter::run(KernelOp op, const KernelInputs &inputs) {
  Block &block = op.getBody().front();
  for (auto [k, array] : llvm::enumerate(inputs.arrays)) {
    auto whole = std::make_shared<Whole>();
    whole->element = kernel.argTypes[k].getElementType();
    whole->shape = array.shape;
    Form form = Form::of(whole->element);
    whole->data.reserve(array.data.size());
    for (double value : array.data)
      whole->data.push_back(fromDouble(value, form));
    values[block.getArgument(k)] = std::move(whole);
  }
  llvm::DenseMap<Value, Operation *> lastUse;
  for (Operation &inner : block)
    for (Value operand : inner.getOperands())
      lastUse[operand] = &inner;
  for (Operation &inner : block.without_terminator()) {
    if (Error error = execute(&inner))
      return error;
    for (Value operand : inner.getOperands())
      if (lastUse[operand] == &inner)
        values.erase(operand);
  }
  std::vector<Array> outputs;
  auto result = cast<ReturnOp>(block.getTerminator());
  for (auto [k, value] : llvm::enumerate(result.getValues())) {
    auto array = output(at(value), k);
    if (!array)
      return array.takeError();
    outputs.push_back(std::move(*array));
  }
  return outputs;
}

} // namespace

Expected<std::vector<Array>> moa::interp::interpretMoA(Operation *op, const Kernel &kernel, const Symbols &symbols,
                                                       const KernelInputs &inputs, const InterpretOptions &options) {
  return MoAInterpreter(kernel, symbols, options).run(cast<KernelOp>(op), inputs);
}
