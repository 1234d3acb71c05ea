//===- Arrays.cpp - the checks of arguments -------------------------------===//
//
// Codes, messages and order are those of emitted launchers (lib/Target/PTX/LauncherText.h).
//
//===----------------------------------------------------------------------===//
#include "lib/Runtime/Program.h"
#include <alloca.h>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace moa::runtime {

int32_t refuse(Message m, int32_t code, const char *format, ...) {
  if (m.text && m.size) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(m.text, m.size, format, arguments);
    va_end(arguments);
  }
  return code;
}

int32_t refuseValue(Message m, Checked v, const char *text) {
  return v.code == MOA_OVERFLOW ? refuse(m, v.code, "%s exceeds 64 bits", text)
                                : refuse(m, v.code, "%s divides by zero", text);
}

bool isEmpty(const DLTensor &tensor) {
  for (int axis = 0; axis < tensor.ndim; ++axis)
    if (tensor.shape[axis] == 0)
      return true;
  return false;
}

int32_t openArray(Array &a, Message m, const DLTensor *t, const Parameter &facts) {
  const char *name = facts.name.c_str(), *type = facts.typeText.c_str();
  int rank = int(facts.extents.size()), code = facts.type->code, bits = facts.type->bits;
  std::memset(&a, 0, sizeof a);
  a.tensor = t;
  a.name = name;
  a.type = type;
  a.isOutput = facts.role == MOA_OUTPUT;
  a.bytes = bits / 8;
  if (!t)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the descriptor is NULL", name);
  if (t->ndim != rank)
    return refuse(m, MOA_RANK, "%s: expects %s, rank %d, but got rank %d", name, type, rank, int(t->ndim));
  bool same = t->dtype.code == code || (code == 6 && t->dtype.code == 1);
  if (!same || t->dtype.bits != bits || t->dtype.lanes != 1)
    return refuse(m, MOA_DTYPE, "%s: expects %s, but got DLPack type code %d of %d bits, %d lanes", name, type,
                  t->dtype.code, t->dtype.bits, t->dtype.lanes);
  if (rank && !t->shape)
    return refuse(m, MOA_NULL_DESCRIPTOR, "%s: the shape is NULL", name);
  for (int axis = 0; axis < rank; ++axis)
    if (t->shape[axis] < 0)
      return refuse(m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", name,
                    static_cast<long long>(t->shape[axis]), axis);
  return MOA_OK;
}

int32_t bindSymbols(Frame &frame, const std::vector<Binding> &bindings, Message m) {
  for (const Binding &binding : bindings) {
    Checked value = binding.value.evaluate(frame);
    frame.symbols[binding.place.number] = value.value;
    if (value.code)
      return refuseValue(m, value, binding.value.text());
    if (value.value < 0)
      return refuse(m, MOA_SHAPE, "%s = %s = %lld is negative", binding.name.c_str(), binding.value.text(),
                    static_cast<long long>(value.value));
  }
  return MOA_OK;
}

int32_t checkExtents(const Frame &frame, size_t count, Message m) {
  const Function &f = *frame.function;
  for (size_t k = 0; k < count; ++k) {
    const Array &a = frame.arrays[k];
    const std::vector<Expression> &extents = f.parameters[f.arrays[k]].extents;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      Checked expected = extents[axis].evaluate(frame);
      if (expected.code)
        return refuseValue(m, expected, extents[axis].text());
      if (a.tensor->shape[axis] != expected.value)
        return refuse(m, MOA_SHAPE, "%s: expects %s, so %s = %lld on axis %d, but got %lld", a.name, a.type,
                      extents[axis].text(), static_cast<long long>(expected.value), int(axis),
                      static_cast<long long>(a.tensor->shape[axis]));
    }
  }
  return MOA_OK;
}

static bool compare(int64_t a, int relation, int64_t b) {
  switch (relation) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a < b;
  case 3:
    return a <= b;
  case 4:
    return a > b;
  default:
    return a >= b;
  }
}

int32_t checkConstraints(const Frame &frame, Message m) {
  for (const Constraint &constraint : frame.function->constraints) {
    Checked left = constraint.left.evaluate(frame), right = constraint.right.evaluate(frame);
    if (left.code || right.code)
      return refuseValue(m, left.code ? left : right, constraint.text.c_str());
    if (!compare(left.value, constraint.relation, right.value))
      return refuse(m, MOA_CONSTRAINT, "requires %s, but the left side is %lld and the right side %lld",
                    constraint.text.c_str(), static_cast<long long>(left.value), static_cast<long long>(right.value));
  }
  return MOA_OK;
}

/// Finds strides (row-major by default, 0 on axes of one index) and the address range; checks
/// alignment and device.
static int32_t resolve(Array &a, Message m, int device) {
  const DLTensor *t = a.tensor;
  if (isEmpty(*t))
    return MOA_OK;
  Checked next{1}, last{0};
  for (int axis = t->ndim - 1; axis >= 0; --axis) {
    int64_t extent = t->shape[axis];
    a.s[axis] = extent == 1 ? 0 : t->strides ? t->strides[axis] : next.value;
    if (a.s[axis] < 0)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is negative", a.name, static_cast<long long>(a.s[axis]),
                    axis);
    next = multiply(next, {extent});
    last = add(last, multiply({a.s[axis]}, {extent - 1}));
  }
  Checked span = multiply(add(last, {1}), {a.bytes});
  if (span.code || next.code)
    return refuse(m, MOA_OVERFLOW, "%s: the array exceeds 64 bits", a.name);
  if (!t->data)
    return refuse(m, MOA_NULL_DATA, "%s: data is NULL, but the array is not empty", a.name);
  // dlpack.h declares the type of a device as an enumeration.
  int type = int(t->device.device_type);
  if (type != 2 && type != 13)
    return refuse(m, MOA_DEVICE, "%s: expects memory of a CUDA device (type 2), but got type %d", a.name, type);
  if (type == 2 && t->device.device_id != device)
    return refuse(m, MOA_DEVICE, "%s: is on device %d, but device %d is current", a.name, int(t->device.device_id),
                  device);
  a.begin = static_cast<char *>(t->data) + t->byte_offset;
  a.span = uint64_t(span.value);
  if (reinterpret_cast<uintptr_t>(a.begin) % uintptr_t(a.bytes))
    return refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of the element size %lld", a.name,
                  static_cast<void *>(a.begin), static_cast<long long>(a.bytes));
  return MOA_OK;
}

/// Distinct indices of an output need distinct addresses: each stride exceeds the reach of all
/// smaller ones.
static int32_t checkOutput(const Array &a, Message m) {
  bool done[kMaxRank] = {false};
  int64_t reach = 0;
  for (int round = 0; round < a.tensor->ndim && a.span; ++round) {
    int best = -1;
    for (int axis = 0; axis < a.tensor->ndim; ++axis)
      if (!done[axis] && (best < 0 || a.s[axis] < a.s[best]))
        best = axis;
    done[best] = true;
    if (a.tensor->shape[best] < 2)
      continue;
    if (a.s[best] <= reach)
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d makes elements of the output overlap", a.name,
                    static_cast<long long>(a.s[best]), best);
    reach += a.s[best] * (a.tensor->shape[best] - 1);
  }
  return MOA_OK;
}

int32_t checkMemory(Frame &frame, Message m) {
  size_t count = frame.function->arrays.size();
  if (int32_t code = cuda::findDevice(m, frame.function->program->needed, frame.driver, frame.device))
    return code;
  for (size_t k = 0; k < count; ++k) {
    int32_t code = resolve(frame.arrays[k], m, frame.device);
    if (!code && frame.arrays[k].isOutput)
      code = checkOutput(frame.arrays[k], m);
    if (code)
      return code;
  }
  for (size_t b = 0; b < count; ++b)
    for (size_t a = 0; a < count && frame.arrays[b].isOutput; ++a) {
      const Array &x = frame.arrays[a], &y = frame.arrays[b];
      bool later = a < b || !x.isOutput;
      if (a != b && later && x.span && y.span && x.begin < y.begin + y.span && y.begin < x.begin + x.span)
        return refuse(m, MOA_OVERLAP, "output %s (%llu bytes at %p) overlaps %s (%llu bytes at %p)", y.name,
                      static_cast<unsigned long long>(y.span), static_cast<void *>(y.begin), x.name,
                      static_cast<unsigned long long>(x.span), static_cast<void *>(x.begin));
    }
  return MOA_OK;
}

int32_t checkWorkspace(const Frame &frame, Message m, const void *workspace, size_t bytes, Checked needed) {
  if (needed.code)
    return refuseValue(m, needed, "the workspace");
  if (bytes < size_t(needed.value))
    return refuse(m, MOA_WORKSPACE, "the workspace has %zu bytes, but %lld are needed", bytes,
                  static_cast<long long>(needed.value));
  if (needed.value && (!workspace || reinterpret_cast<uintptr_t>(workspace) % 64))
    return refuse(m, MOA_WORKSPACE, "the workspace at %p is NULL or not a multiple of 64", workspace);
  const char *begin = static_cast<const char *>(workspace);
  for (size_t k = 0; k < frame.function->arrays.size(); ++k) {
    const Array &a = frame.arrays[k];
    if (needed.value && a.span && a.begin < begin + needed.value && begin < a.begin + a.span)
      return refuse(m, MOA_OVERLAP, "the workspace overlaps %s", a.name);
  }
  return MOA_OK;
}

int32_t checkTiles(const Array &a, Message m) {
  if (isEmpty(*a.tensor))
    return MOA_OK;
  const int64_t *shape = a.tensor->shape;
  int last = a.tensor->ndim - 1;
  if (shape[last] > 1 && a.s[last] != 1)
    return refuse(m, MOA_STRIDES, "%s: expects adjacent elements on axis %d, but got stride %lld", a.name, last,
                  static_cast<long long>(a.s[last]));
  if (reinterpret_cast<uintptr_t>(a.begin) % 16)
    return refuse(m, MOA_ALIGNMENT, "%s: address %p is not a multiple of 16", a.name, static_cast<void *>(a.begin));
  for (int axis = 0; axis < last; ++axis)
    if (shape[axis] > 1 && (a.s[axis] * a.bytes % 16 || a.s[axis] == 0))
      return refuse(m, MOA_STRIDES, "%s: stride %lld on axis %d is not a positive multiple of 16 bytes", a.name,
                    static_cast<long long>(a.s[axis]), axis);
  for (int axis = 0; axis <= last; ++axis)
    if (shape[axis] > INT32_MAX)
      return refuse(m, MOA_OVERFLOW, "%s: extent %lld on axis %d exceeds 31 bits", a.name,
                    static_cast<long long>(shape[axis]), axis);
  return MOA_OK;
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

template <typename To, typename From> static To bitCast(From from) {
  To to = 0;
  static_assert(sizeof to >= sizeof from);
  std::memcpy(&to, &from, sizeof from);
  return to;
}

/// Rounds to nearest.
static uint16_t toBF16(float x) {
  uint32_t bits = bitCast<uint32_t>(x);
  if (x != x)
    return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t toF16(float x) {
  uint32_t bits = bitCast<uint32_t>(x);
  uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  if (x != x)
    return 0x7fff;
  if (size >= 0x477ff000) // rounds to 2^16 or beyond
    return uint16_t(sign | 0x7c00);
  if (size < 0x38800000) { // subnormal: whole multiples of 2^-24
    float magnitude = x < 0 ? -x : x;
    float shifted = magnitude + 0.5f; // 2^-24 is the last bit of [0.5, 1)
    return uint16_t(sign | (bitCast<uint32_t>(shifted) - 0x3f000000));
  }
  return uint16_t(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
}

int32_t readScalars(const Function &function, uint64_t *bits, Message m, const moa_value *scalars) {
  if (!scalars && !function.scalars.empty())
    return refuse(m, MOA_NULL_DESCRIPTOR, "the scalars are NULL");
  // A kernel on a CPU takes 16-bit floats as float.
  bool keepsFloat = function.program->isCpu;
  for (size_t k = 0; k < function.scalars.size(); ++k) {
    const Parameter &parameter = function.parameters[function.scalars[k]];
    const ElementType &type = *parameter.type;
    int64_t i = scalars[k].i;
    if (type.scalar == 'd') {
      bits[k] = bitCast<uint64_t>(scalars[k].f);
    } else if (type.scalar == 'f' || type.scalar == 's') {
      float x = float(scalars[k].f);
      bits[k] = type.scalar == 'f' || keepsFloat ? bitCast<uint64_t>(x) : type.code == 4 ? toBF16(x) : toF16(x);
    } else if (type.scalar == 'b') {
      bits[k] = i != 0;
    } else {
      int64_t low = type.scalar == 'u' ? 0 : INT64_MIN >> (64 - type.bits);
      int64_t high = type.scalar == 'u' ? (int64_t(1) << type.bits) - 1 : INT64_MAX >> (64 - type.bits);
      if (i < low || i > high)
        return refuse(m, MOA_DTYPE, "%s: expects %s, but got %lld", parameter.name.c_str(), type.name,
                      static_cast<long long>(i));
      bits[k] = uint64_t(i);
    }
  }
  return MOA_OK;
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

namespace {
/// Places arrays one after another; the memory may be null to measure.
struct Layout {
  char *memory;
  size_t used = 0;
  template <typename T> T *take(size_t count) {
    used = (used + alignof(T) - 1) / alignof(T) * alignof(T);
    T *place = memory ? reinterpret_cast<T *>(memory + used) : nullptr;
    used += count * sizeof(T);
    return place;
  }
};
} // namespace

static Frame layOut(const Function &f, Layout &layout) {
  Frame frame = {};
  frame.function = &f;
  frame.maps = layout.take<cuda::TensorMap>(f.numMaps);
  frame.arrays = layout.take<Array>(f.arrays.size());
  frame.symbols = layout.take<int64_t>(f.symbols.size());
  frame.scalars = layout.take<uint64_t>(f.scalars.size());
  frame.blocks = layout.take<Checked>(f.launches.size());
  frame.offsets = layout.take<int64_t>(f.workspace.size());
  frame.places = layout.take<char *>(f.workspace.size());
  frame.pointers = layout.take<void *>(f.mostParameters);
  frame.holds = layout.take<bool>(f.conditions.size());
  return frame;
}

size_t measureFrame(const Function &function) {
  Layout layout{nullptr};
  layOut(function, layout);
  return layout.used + alignof(cuda::TensorMap);
}

Frame placeFrame(const Function &function, char *memory) {
  constexpr uintptr_t unit = alignof(cuda::TensorMap);
  Layout layout{memory + (unit - reinterpret_cast<uintptr_t>(memory) % unit) % unit};
  Frame frame = layOut(function, layout);
  for (size_t k = 0; k < function.symbols.size(); ++k)
    frame.symbols[k] = 0;
  return frame;
}

int32_t findShapes(const Function &function, Message m, const DLTensor *const *arrays, int64_t *const *shapes) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  if (!arrays && function.numInputs)
    return refuse(m, MOA_NULL_DESCRIPTOR, "the list of arrays is NULL");
  for (unsigned k = 0; k < function.numInputs; ++k)
    if (int32_t code = openArray(frame.arrays[k], m, arrays[k], function.parameters[function.arrays[k]]))
      return code;
  if (!function.notFromInputs.empty())
    return refuse(m, MOA_SHAPE, "the value of '%s' does not follow from the shapes of the inputs",
                  function.notFromInputs.c_str());
  int32_t code = bindSymbols(frame, function.fromInputs, m);
  if (!code)
    code = checkExtents(frame, function.numInputs, m);
  if (!code)
    code = checkConstraints(frame, m);
  if (code)
    return code;
  for (size_t k = function.numInputs; k < function.arrays.size(); ++k) {
    const Parameter &output = function.parameters[function.arrays[k]];
    for (size_t axis = 0; axis < output.extents.size(); ++axis) {
      Checked extent = output.extents[axis].evaluate(frame);
      if (extent.code)
        return refuseValue(m, extent, output.extents[axis].text());
      if (extent.value < 0)
        return refuse(m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", output.name.c_str(),
                      static_cast<long long>(extent.value), int(axis));
      shapes[k - function.numInputs][axis] = extent.value;
    }
  }
  return MOA_OK;
}

} // namespace moa::runtime
