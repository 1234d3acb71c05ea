//===- Arrays.cpp - the checks of arguments -------------------------------===//
#include "lib/Runtime/Launcher.h"
#include "lib/Runtime/Program.h"
#include <alloca.h>

namespace moa::runtime {

int32_t openArrays(Frame &frame, size_t count, Message m, const DLTensor *const *given) {
  if (!given && count)
    return moa_refuse(&m, MOA_NULL_DESCRIPTOR, "the list of arrays is NULL");
  for (size_t k = 0; k < count; ++k) {
    const Parameter &facts = frame.function->parameters[frame.function->arrays[k]];
    if (int32_t code =
            moa_open_array(&frame.arrays[k], &m, given[k], facts.name.c_str(), facts.typeText.c_str(),
                           int(facts.extents.size()), facts.type->code, facts.type->bits, facts.role == MOA_OUTPUT))
      return code;
  }
  return MOA_OK;
}

int32_t bindSymbols(Frame &frame, const std::vector<Binding> &bindings, Message m) {
  for (const Binding &binding : bindings)
    if (int32_t code = moa_bind_symbol(&frame.symbols[binding.place.number], &m, binding.name.c_str(),
                                       binding.value.text(), binding.value.evaluate(frame)))
      return code;
  return MOA_OK;
}

int32_t checkExtents(const Frame &frame, size_t count, Message m) {
  const Function &f = *frame.function;
  for (size_t k = 0; k < count; ++k) {
    const std::vector<Expression> &extents = f.parameters[f.arrays[k]].extents;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (int32_t code =
              moa_check_extent(&frame.arrays[k], &m, int(axis), extents[axis].text(), extents[axis].evaluate(frame)))
        return code;
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
    if (int32_t code = moa_check_constraint(&m, constraint.text.c_str(), left, right,
                                            compare(left.value, constraint.relation, right.value)))
      return code;
  }
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

int32_t readScalars(const Function &function, uint64_t *bits, Message m, const moa_value *scalars) {
  if (!scalars && !function.scalars.empty())
    return moa_refuse(&m, MOA_NULL_DESCRIPTOR, "the scalars are NULL");
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
      bits[k] = type.scalar == 'f' || keepsFloat ? bitCast<uint64_t>(x)
                : type.code == 4                 ? cuda::moa_to_bf16(x)
                                                 : cuda::moa_to_f16(x);
    } else if (type.scalar == 'b') {
      bits[k] = i != 0;
    } else {
      int64_t low = type.scalar == 'u' ? 0 : INT64_MIN >> (64 - type.bits);
      int64_t high = type.scalar == 'u' ? (int64_t(1) << type.bits) - 1 : INT64_MAX >> (64 - type.bits);
      if (i < low || i > high)
        return moa_refuse(&m, MOA_DTYPE, "%s: expects %s, but got %lld", parameter.name.c_str(), type.name,
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
  frame.maps = layout.take<cuda::CUtensorMap>(f.numMaps);
  frame.arrays = layout.take<Array>(f.arrays.size());
  frame.arrayList = layout.take<Array *>(f.arrays.size());
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
  return layout.used + alignof(cuda::CUtensorMap);
}

Frame placeFrame(const Function &function, char *memory) {
  constexpr uintptr_t unit = alignof(cuda::CUtensorMap);
  Layout layout{memory + (unit - reinterpret_cast<uintptr_t>(memory) % unit) % unit};
  Frame frame = layOut(function, layout);
  for (size_t k = 0; k < function.symbols.size(); ++k)
    frame.symbols[k] = 0;
  for (size_t k = 0; k < function.arrays.size(); ++k)
    frame.arrayList[k] = &frame.arrays[k];
  return frame;
}

int32_t findShapes(const Function &function, Message m, const DLTensor *const *arrays, int64_t *const *shapes) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  if (int32_t code = openArrays(frame, function.numInputs, m, arrays))
    return code;
  if (!function.notFromInputs.empty())
    return moa_refuse(&m, MOA_SHAPE, "the value of '%s' does not follow from the shapes of the inputs",
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
        return moa_refuse_value(&m, extent, output.extents[axis].text());
      if (extent.value < 0)
        return moa_refuse(&m, MOA_SHAPE, "%s: extent %lld on axis %d is negative", output.name.c_str(),
                          static_cast<long long>(extent.value), int(axis));
      shapes[k - function.numInputs][axis] = extent.value;
    }
  }
  return MOA_OK;
}

} // namespace moa::runtime
