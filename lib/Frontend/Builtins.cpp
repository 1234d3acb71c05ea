//===- Builtins.cpp - functions that the language defines itself ----------===//
#include "lib/Frontend/Builtins.h"
#include "lib/Frontend/Reporter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace moa;
using namespace moa::frontend;

static constexpr Builtin builtins[] = {
    {"exp", Builtin::Pointwise, ScalarFn::exp, 1, 1, -1, "exp(x)"},
    {"exp2", Builtin::Pointwise, ScalarFn::exp2, 1, 1, -1, "exp2(x)"},
    {"log", Builtin::Pointwise, ScalarFn::log, 1, 1, -1, "log(x)"},
    {"log2", Builtin::Pointwise, ScalarFn::log2, 1, 1, -1, "log2(x)"},
    {"sqrt", Builtin::Pointwise, ScalarFn::sqrt, 1, 1, -1, "sqrt(x)"},
    {"rsqrt", Builtin::Pointwise, ScalarFn::rsqrt, 1, 1, -1, "rsqrt(x)"},
    {"tanh", Builtin::Pointwise, ScalarFn::tanh, 1, 1, -1, "tanh(x)"},
    {"sin", Builtin::Pointwise, ScalarFn::sin, 1, 1, -1, "sin(x)"},
    {"cos", Builtin::Pointwise, ScalarFn::cos, 1, 1, -1, "cos(x)"},
    {"erf", Builtin::Pointwise, ScalarFn::erf, 1, 1, -1, "erf(x)"},
    {"abs", Builtin::Pointwise, ScalarFn::abs, 1, 1, -1, "abs(x)"},
    {"floor", Builtin::Pointwise, ScalarFn::floor, 1, 1, -1, "floor(x)"},
    {"ceil", Builtin::Pointwise, ScalarFn::ceil, 1, 1, -1, "ceil(x)"},
    {"min", Builtin::Pointwise, ScalarFn::min, 2, 2, -1, "min(x, y)"},
    {"max", Builtin::Pointwise, ScalarFn::max, 2, 2, -1, "max(x, y)"},
    {"pow", Builtin::Pointwise, ScalarFn::pow, 2, 2, -1, "pow(x, y)"},
    {"fmod", Builtin::Pointwise, ScalarFn::fmod, 2, 2, -1, "fmod(x, y)"},
    {"atan2", Builtin::Pointwise, ScalarFn::atan2, 2, 2, -1, "atan2(y, x)"},
    {"select", Builtin::Pointwise, ScalarFn::select, 3, 3, -1, "select(p, a, b)"},
    {"otherwise", Builtin::Pointwise, ScalarFn::otherwise, 2, 2, -1, "otherwise(x, v)"},
    {"mask", Builtin::Mask, ScalarFn::id, 2, 2, -1, "mask(p, x)"},
    {"transpose", Builtin::Transpose, ScalarFn::id, 1, 2, 1, "transpose(x) or transpose(x, [1, 0])"},
    {"take", Builtin::Take, ScalarFn::id, 2, 3, 1, "take(x, count) or take(x, count, axis)"},
    {"drop", Builtin::Drop, ScalarFn::id, 2, 3, 1, "drop(x, count) or drop(x, count, axis)"},
    {"reverse", Builtin::Reverse, ScalarFn::id, 1, 2, -1, "reverse(x) or reverse(x, axis)"},
    {"rotate", Builtin::Rotate, ScalarFn::id, 2, 3, -1, "rotate(x, by) or rotate(x, by, axis)"},
    {"cat", Builtin::Cat, ScalarFn::id, 2, 3, -1, "cat(x, y) or cat(x, y, axis)"},
    {"reshape", Builtin::Reshape, ScalarFn::id, 2, 2, 1, "reshape(x, [m, n])"},
    {"rav", Builtin::Ravel, ScalarFn::id, 1, 1, -1, "rav(x)"},
    {"iota", Builtin::Iota, ScalarFn::id, 1, 1, -1, "iota(n)"},
    {"psi", Builtin::Psi, ScalarFn::id, 2, 2, 0, "psi([i, j], x)"},
    {"outer", Builtin::Outer, ScalarFn::id, 3, 3, -1, "outer(*, x, y)"},
    {"inner", Builtin::Inner, ScalarFn::id, 4, 4, -1, "inner(+, *, x, y)"},
    {"reduce", Builtin::Reduce, ScalarFn::id, 3, 3, -1, "reduce(+, x, axis)"},
};

const Builtin *frontend::lookupBuiltin(StringRef name) {
  for (const Builtin &builtin : builtins)
    if (builtin.name == name)
      return &builtin;
  return nullptr;
}

std::vector<std::string> frontend::getBuiltinNames() {
  std::vector<std::string> names;
  for (const Builtin &builtin : builtins)
    names.push_back(builtin.name.str());
  return names;
}

Type frontend::getElementType(MLIRContext *context, StringRef name) {
  Builder builder(context);
  unsigned width = llvm::StringSwitch<unsigned>(name)
                       .Case("bool", 1)
                       .Case("i8", 8)
                       .Case("i16", 16)
                       .Case("i32", 32)
                       .Case("i64", 64)
                       .Default(0);
  if (width)
    return builder.getIntegerType(width);
  width = llvm::StringSwitch<unsigned>(name).Case("u8", 8).Case("u16", 16).Case("u32", 32).Default(0);
  if (width)
    return builder.getIntegerType(width, /*isSigned=*/false);
  if (name == "index")
    return builder.getIndexType();
  if (name == "f64")
    return builder.getF64Type();
  if (name == "f32")
    return builder.getF32Type();
  if (name == "bf16")
    return builder.getBF16Type();
  if (name == "f16")
    return builder.getF16Type();
  return Type();
}

/// Returns the language's name of a type of other languages, or "".
static StringRef getOwnType(StringRef name) {
  return llvm::StringSwitch<StringRef>(name.trim('_'))
      .Cases({"double", "float64", "fp64", "F64"}, "f64")
      .Cases({"single", "float32", "fp32", "F32"}, "f32")
      .Cases({"half", "float16", "fp16", "F16"}, "f16")
      .Cases({"bfloat", "bfloat16", "BF16"}, "bf16")
      .Cases({"boolean", "i1", "int1"}, "bool")
      .Cases({"byte", "uchar", "uint8", "uint8_t"}, "u8")
      .Cases({"ushort", "uint16", "uint16_t"}, "u16")
      .Cases({"uint", "unsigned", "uint32", "uint32_t"}, "u32")
      .Cases({"char", "int8", "int8_t", "s8"}, "i8")
      .Cases({"short", "int16", "int16_t", "s16"}, "i16")
      .Cases({"integer", "int32", "int32_t", "s32"}, "i32")
      .Cases({"long", "int64", "int64_t", "s64"}, "i64")
      .Default("");
}

bool frontend::isForeignType(StringRef name) {
  if (!getOwnType(name).empty())
    return true;
  static const llvm::Regex pattern("^(f|fp|bf|float|tf|i|int|s|u|uint)[0-9]+(_?e[0-9]+m[0-9]+[a-z]*|_t)?$");
  return pattern.match(name);
}

std::string frontend::getTypeHint(StringRef name, ArrayRef<std::string> parameters) {
  if (StringRef own = getOwnType(name); !own.empty())
    return ("; write '" + own + "'").str();
  std::vector<std::string> types = {"f64", "f32", "bf16", "f16", "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32"};
  types.insert(types.end(), parameters.begin(), parameters.end());
  // A type of another width is no misspelling.
  std::string text = isForeignType(name) ? "" : didYouMean(name, types);
  return text + "; the types are " + llvm::join(types, ", ");
}

std::string frontend::getTypeText(Type type) {
  if (type.isInteger(1))
    return "bool";
  if (type.isUnsignedInteger())
    return "u" + std::to_string(type.getIntOrFloatBitWidth());
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}
