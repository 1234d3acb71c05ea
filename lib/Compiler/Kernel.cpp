//===- Kernel.cpp - compiled code in this process -------------------------===//

#include "lib/Compiler/CompilationImpl.h"
#include "lib/Target/CPU/Codegen.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MemAlloc.h"

namespace moa {

/// The code of all kernels of a compilation, and the entry points of one.
struct Kernel::Impl {
  std::shared_ptr<cpu::LoadedObject> object;
  KernelInfo info;
  std::vector<ElementType> scalarTypes;
  size_t numArrays = 0;
  int32_t (*run)(const DLTensor *const *, const int64_t *, void *, size_t) = nullptr;
  int64_t (*workspace)(const DLTensor *const *, const int64_t *) = nullptr;
  int32_t (*check)(const DLTensor *const *, char *, size_t) = nullptr;
  int32_t (*shown)(const DLTensor *const *, const int64_t *, void *, size_t, char *, size_t) = nullptr;
};

/// The return code for a wrong number of arguments, the same as for a missing descriptor.
enum { kWrongCount = 1 };

Kernel::Kernel(std::shared_ptr<const Impl> impl) : impl(std::move(impl)) {}
const KernelInfo &Kernel::info() const { return impl->info; }

static int64_t roundTo16Bits(double value, const llvm::fltSemantics &type) {
  llvm::APFloat number(value);
  bool exact = false;
  number.convert(type, llvm::APFloat::rmNearestTiesToEven, &exact);
  return number.bitcastToAPInt().getZExtValue();
}

/// Returns the bits of a scalar in the argument block.
static int64_t getBits(const Scalar &scalar, ElementType type) {
  switch (type) {
  case ElementType::F64:
    return llvm::bit_cast<int64_t>(scalar.asDouble());
  case ElementType::F32:
    return llvm::bit_cast<uint32_t>(float(scalar.asDouble()));
  case ElementType::BF16:
    return roundTo16Bits(scalar.asDouble(), llvm::APFloat::BFloat());
  case ElementType::F16:
    return roundTo16Bits(scalar.asDouble(), llvm::APFloat::IEEEhalf());
  case ElementType::I1:
    return scalar.asInteger() != 0;
  case ElementType::F8E4M3: // no parameter has it
  case ElementType::I8:
    return int8_t(scalar.asInteger());
  case ElementType::I16:
    return int16_t(scalar.asInteger());
  case ElementType::I32:
    return int32_t(scalar.asInteger());
  case ElementType::I64:
    return scalar.asInteger();
  case ElementType::U8:
    return uint8_t(scalar.asInteger());
  case ElementType::U16:
    return uint16_t(scalar.asInteger());
  case ElementType::U32:
    return uint32_t(scalar.asInteger());
  }
  return 0;
}

static bool countsFit(const Kernel::Impl &impl, size_t arrays, size_t scalars) {
  return arrays == impl.numArrays && scalars == impl.scalarTypes.size();
}

static std::vector<int64_t> getBits(const Kernel::Impl &impl, const std::vector<Scalar> &scalars) {
  std::vector<int64_t> bits;
  for (size_t k = 0; k < scalars.size(); ++k)
    bits.push_back(getBits(scalars[k], impl.scalarTypes[k]));
  return bits;
}

int32_t Kernel::run(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars, void *workspace,
                    size_t bytes) const {
  if (!countsFit(*impl, arrays.size(), scalars.size()))
    return kWrongCount;
  return impl->run(arrays.data(), getBits(*impl, scalars).data(), workspace, bytes);
}

int32_t Kernel::shown(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars, void *workspace,
                      size_t bytes, std::string *message) const {
  if (!countsFit(*impl, arrays.size(), scalars.size()))
    return kWrongCount;
  char text[1024] = "";
  int32_t code = impl->shown(arrays.data(), getBits(*impl, scalars).data(), workspace, bytes, text, sizeof text);
  if (message)
    *message = text;
  return code;
}

int64_t Kernel::workspace(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars) const {
  if (!countsFit(*impl, arrays.size(), scalars.size()))
    return -kWrongCount;
  return impl->workspace(arrays.data(), getBits(*impl, scalars).data());
}

int32_t Kernel::check(const std::vector<const DLTensor *> &arrays, std::string *message) const {
  if (arrays.size() != impl->numArrays) {
    if (message)
      *message = "expects " + std::to_string(impl->numArrays) + " arrays, but got " + std::to_string(arrays.size());
    return kWrongCount;
  }
  char text[1024] = "";
  int32_t code = impl->check(arrays.data(), text, sizeof text);
  if (message)
    *message = text;
  return code;
}

int32_t Kernel::operator()(const std::vector<const DLTensor *> &arrays, const std::vector<Scalar> &scalars,
                           std::string *message) const {
  if (int32_t code = check(arrays, message))
    return code;
  if (scalars.size() != impl->scalarTypes.size()) {
    if (message)
      *message =
          "expects " + std::to_string(impl->scalarTypes.size()) + " scalars, but got " + std::to_string(scalars.size());
    return kWrongCount;
  }
  int64_t bytes = workspace(arrays, scalars);
  if (bytes <= 0) // tolerance checks need the workspace
    return bytes < 0 ? int32_t(-bytes) : run(arrays, scalars, nullptr, 0);
  void *memory = llvm::allocate_buffer(bytes, 64);
  int32_t code = run(arrays, scalars, memory, bytes);
  if (!code || code == kNotShown)
    code = shown(arrays, scalars, memory, bytes, message);
  llvm::deallocate_buffer(memory, bytes, 64);
  return code;
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

std::optional<Kernel> Compilation::load(const std::string &name) {
  std::optional<unsigned> index = impl->isOpen() ? impl->findKernel(name) : std::nullopt;
  const llvm::SmallVectorImpl<char> *bytes =
      index && impl->checkRunsHere() ? impl->getObject(/*packed=*/true) : nullptr;
  if (!bytes)
    return std::nullopt;
  auto kernel = std::make_shared<Kernel::Impl>();
  const KernelSignature &signature = impl->signatures[*index];
  kernel->info = impl->infos[*index];
  kernel->numArrays = signature.getArrays().size();
  for (const Parameter *scalar : signature.getScalars())
    kernel->scalarTypes.push_back(scalar->type);
  bool loaded = impl->timed("load", [&] {
    if (auto object = impl->take(cpu::LoadedObject::load(*bytes)))
      kernel->object = std::move(*object);
    if (!kernel->object)
      return false;
    auto find = [&](const char *suffix, auto &function) {
      auto address = impl->take(kernel->object->lookup(signature.name + suffix));
      if (address)
        function = reinterpret_cast<std::decay_t<decltype(function)>>(*address);
      return address.has_value();
    };
    return find("_packed", kernel->run) && find("_packed_workspace", kernel->workspace) &&
           find("_packed_check", kernel->check) && find("_packed_shown", kernel->shown);
  });
  if (!loaded)
    return std::nullopt;
  return Kernel(kernel);
}

} // namespace moa
