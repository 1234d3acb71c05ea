//===- Gpu.cpp - calls of kernels on a GPU --------------------------------===//
//
// Does what an emitted launcher does, in the same order (lib/Target/PTX/Launcher.cpp).
//
//===----------------------------------------------------------------------===//
#include "lib/Runtime/Program.h"
#include <alloca.h>
#include <cstdio>
#include <cstring>

namespace moa::runtime::gpu {

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Encodes a tensor map of an array. Its axes are listed innermost first.
static int32_t describeTiles(const Frame &frame, Message m, cuda::TensorMap &map, const TensorMap &facts,
                             const Array &a) {
  std::memset(&map, 0, sizeof map);
  if (isEmpty(*a.tensor))
    return MOA_OK; // no tile is copied
  uint64_t extents[kMaxMapRank], strides[kMaxMapRank];
  uint32_t ones[kMaxMapRank];
  for (unsigned k = 0; k < facts.rank; ++k) {
    unsigned axis = facts.rank - 1 - k;
    extents[k] = uint64_t(a.tensor->shape[axis]);
    ones[k] = 1;
    if (k)
      strides[k - 1] = a.s[axis] ? uint64_t(a.s[axis] * a.bytes) : 16;
  }
  cuda::Result made = frame.driver->cuTensorMapEncodeTiled(&map, facts.dataType, facts.rank, a.begin, extents, strides,
                                                           facts.box, ones, cuda::kInterleaveNone, cuda::kSwizzle128B,
                                                           cuda::kPromotion256B, cuda::kFillZeros);
  return made == cuda::kSuccess ? int32_t(MOA_OK) : refuse(m, MOA_LAUNCH, "%s: no tiles of this array", a.name);
}

/// The same for every `step`-th index of the axis of rows, from the first on.
static int32_t describeMap(const Frame &frame, Message m, cuda::TensorMap &map, const TensorMap &facts,
                           const Array &a) {
  if (!facts.hasStep)
    return describeTiles(frame, m, map, facts, a);
  Checked step = facts.step.evaluate(frame);
  if (step.code)
    return refuseValue(m, step, facts.step.text());
  if (step.value < 1)
    return describeTiles(frame, m, map, facts, a);
  int64_t shape[kMaxMapRank];
  DLTensor tensor = *a.tensor;
  Array every = a;
  for (unsigned axis = 0; axis < facts.rank; ++axis)
    shape[axis] = a.tensor->shape[axis];
  unsigned rows = facts.rowAxis;
  if (shape[rows])
    shape[rows] = 1 + (shape[rows] - 1) / step.value;
  tensor.shape = shape;
  every.tensor = &tensor;
  every.s[rows] = shape[rows] > 1 ? a.s[rows] * step.value : 0;
  return describeTiles(frame, m, map, facts, every);
}

/// Encodes a map of an array of the workspace, row-major without gaps.
static int32_t describePlaced(const Frame &frame, Message m, cuda::TensorMap &map, const TensorMap &facts) {
  const Workspace &placed = frame.function->workspace[facts.array];
  int64_t shape[kMaxMapRank];
  DLTensor tensor;
  Array a;
  std::memset(&tensor, 0, sizeof tensor);
  std::memset(&a, 0, sizeof a);
  for (unsigned axis = 0; axis < facts.rank; ++axis)
    shape[axis] = placed.extents[axis].evaluate(frame).value;
  tensor.ndim = int32_t(facts.rank);
  tensor.shape = shape;
  a.tensor = &tensor;
  a.name = placed.name.c_str();
  a.bytes = placed.type->bits / 8;
  a.begin = frame.places[facts.array];
  int64_t size = 1;
  for (unsigned axis = facts.rank; axis-- > 0; size *= shape[axis])
    a.s[axis] = size;
  return describeMap(frame, m, map, facts, a);
}

/// Encodes the maps of the chosen launches, of the caller's arrays or of the workspace. A launch
/// that is not needed needs no map.
template <typename Chosen>
static int32_t describeMaps(const Frame &frame, Message m, bool ofWorkspace, Chosen isChosen) {
  const Function &f = *frame.function;
  for (const auto &launch : f.launches) {
    bool isOptional = launch->condition >= 0 || f.hasShown;
    if (!isChosen(*launch) || (isOptional && !frame.blocks[launch->number].value))
      continue;
    for (size_t k = 0; k < launch->maps.size(); ++k) {
      const TensorMap &facts = launch->maps[k];
      cuda::TensorMap &map = frame.maps[launch->firstMap + k];
      if (facts.isOfWorkspace != ofWorkspace)
        continue;
      int32_t code = ofWorkspace ? describePlaced(frame, m, map, facts)
                                 : describeMap(frame, m, map, facts, frame.arrays[facts.array]);
      if (code)
        return code;
    }
  }
  return MOA_OK;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Returns the bytes of the workspace and finds the offsets of its arrays.
static Checked layOutWorkspace(const Frame &frame) {
  const Function &f = *frame.function;
  for (size_t k = 0; k < f.workspace.size(); ++k)
    frame.offsets[k] = f.workspace[k].offset;
  if (!f.hasRuntimeOffsets)
    return f.workspaceBytes.evaluate(frame);
  Checked size{0};
  for (size_t k = 0; k < f.workspace.size(); ++k) {
    const Workspace &array = f.workspace[k];
    if (array.unit != 1)
      size = multiply({array.unit}, floorDiv(add(size, {array.slack}), {array.unit}));
    frame.offsets[k] = size.value;
    size = add(size, array.bytes.evaluate(frame));
  }
  return size;
}

/// Returns whether x > y for all pairs without an error.
static bool holds(const Frame &frame, const Condition &condition) {
  for (const auto &[x, y] : condition.larger) {
    Checked left = x.evaluate(frame), right = y.evaluate(frame);
    if (!left.code && !right.code && left.value <= right.value)
      return false;
  }
  return true;
}

/// Checks everything but the workspace of a call; `reads` for NAME_shown.
static int32_t examine(Frame &frame, Message m, bool reads, const Arguments &given) {
  const Function &f = *frame.function;
  if (int32_t code = readScalars(f, frame.scalars, m, given.scalars))
    return code;
  if (!given.arrays && !f.arrays.empty())
    return refuse(m, MOA_NULL_DESCRIPTOR, "the list of arrays is NULL");
  for (size_t k = 0; k < f.arrays.size(); ++k)
    if (int32_t code = openArray(frame.arrays[k], m, given.arrays[k], f.parameters[f.arrays[k]]))
      return code;
  int32_t code = bindSymbols(frame, f.bindings, m);
  if (!code)
    code = checkExtents(frame, f.arrays.size(), m);
  if (!code)
    code = checkConstraints(frame, m);
  if (!code)
    code = checkMemory(frame, m);
  if (code)
    return code;
  for (unsigned array : f.tiled)
    if ((code = checkTiles(frame.arrays[array], m)))
      return code;
  for (size_t k = 0; k < f.conditions.size(); ++k)
    frame.holds[k] = holds(frame, f.conditions[k]);
  for (const auto &launch : f.launches) {
    bool isNeeded = !f.hasShown || launch->isForShown == reads;
    isNeeded &= launch->condition < 0 || frame.holds[launch->condition];
    frame.blocks[launch->number] = isNeeded ? launch->blocks.evaluate(frame) : Checked{0};
  }
  for (size_t k = 0; k < f.launches.size(); ++k)
    if (frame.blocks[k].code || frame.blocks[k].value > INT32_MAX)
      return refuse(m, MOA_OVERFLOW, "a grid has more than 2^31 - 1 blocks");
  if (!f.workspace.empty())
    if (Checked size = layOutWorkspace(frame); size.code)
      return refuseValue(m, size, "the workspace");
  return describeMaps(frame, m, /*ofWorkspace=*/false, [](const Launch &) { return true; });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Loads the code once for all devices.
static cuda::Library openLibrary(const Program &program, const cuda::Driver &driver) {
  cuda::Library library = program.library.load(std::memory_order_acquire);
  if (library)
    return library;
  std::lock_guard<std::mutex> lock(program.mutex);
  library = program.library.load(std::memory_order_acquire);
  if (!library && driver.cuLibraryLoadData(&library, program.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                      cuda::kSuccess)
    program.library.store(library, std::memory_order_release);
  return program.library.load(std::memory_order_relaxed);
}

/// Finds a kernel and allows it its shared memory, once for a device.
static int32_t openKernel(const Program &program, const cuda::Driver &driver, cuda::Device device, Message m,
                          const Launch &launch) {
  uint64_t bit = device >= 0 && device < 64 ? uint64_t(1) << device : 0;
  if (launch.ready.load(std::memory_order_acquire) & bit)
    return MOA_OK;
  cuda::Kernel kernel = launch.handle.load(std::memory_order_acquire);
  if (!kernel) {
    cuda::Library library = openLibrary(program, driver);
    if (!library || driver.cuLibraryGetKernel(&kernel, library, launch.kernel.c_str()) != cuda::kSuccess)
      return refuse(m, MOA_LAUNCH, "CUDA refused to load %s", launch.kernel.c_str());
    launch.handle.store(kernel, std::memory_order_release);
  }
  if (launch.sharedBytes &&
      driver.cuKernelSetAttribute(cuda::kMaxDynamicSharedBytes, launch.sharedBytes, kernel, device) != cuda::kSuccess)
    return refuse(m, MOA_LAUNCH, "CUDA refused %d bytes of shared memory", launch.sharedBytes);
  launch.ready.fetch_or(bit, std::memory_order_acq_rel);
  return MOA_OK;
}

static void *pointerTo(const Frame &frame, const LaunchParameter &parameter) {
  switch (parameter.kind) {
  case LaunchParameter::Pointer:
    return &frame.arrays[parameter.number].begin;
  case LaunchParameter::Workspace:
    return &frame.places[parameter.number];
  case LaunchParameter::Map:
    return &frame.maps[parameter.number];
  case LaunchParameter::Scalar:
    return &frame.scalars[parameter.number];
  case LaunchParameter::Symbol:
    return &frame.symbols[parameter.number];
  case LaunchParameter::Stride:
    return &frame.arrays[parameter.number].s[parameter.axis];
  }
  return nullptr;
}

/// Launches a kernel. It may overlap with the latest launch of the call, and waits on the device for
/// the results that it needs (programmatic dependent launch).
static int32_t launchKernel(const Frame &frame, Message m, const Launch &launch, int &latest, void *stream) {
  for (size_t k = 0; k < launch.parameters.size(); ++k)
    frame.pointers[k] = pointerTo(frame, launch.parameters[k]);
  int64_t blocks = frame.blocks[launch.number].value;
  if (launch.mostBlocks && blocks > launch.mostBlocks)
    blocks = launch.mostBlocks;
  cuda::LaunchAttribute overlap;
  std::memset(&overlap, 0, sizeof overlap);
  overlap.id = cuda::kProgrammaticStreamSerialization;
  overlap.value.isAllowed = 1;
  cuda::LaunchConfig config;
  std::memset(&config, 0, sizeof config);
  config.gridX = unsigned(blocks), config.gridY = config.gridZ = 1;
  config.blockX = unsigned(launch.threads), config.blockY = config.blockZ = 1;
  config.sharedBytes = unsigned(launch.sharedBytes), config.stream = stream;
  config.attributes = &overlap, config.numAttributes = latest >= launch.firstOverlapped ? 1 : 0;
  cuda::Result launched =
      frame.driver->cuLaunchKernelEx(&config, launch.handle.load(std::memory_order_relaxed), frame.pointers, nullptr);
  latest = launch.number;
  return launched == cuda::kSuccess ? int32_t(MOA_OK) : refuse(m, MOA_LAUNCH, "CUDA refused launch %d", launch.number);
}

/// Launches the kernels of NAME or of NAME_shown.
static int32_t launchChosen(const Frame &frame, Message m, bool forShown, const Arguments &given) {
  const Function &f = *frame.function;
  for (size_t k = 0; k < f.workspace.size(); ++k)
    frame.places[k] = static_cast<char *>(given.workspace) + frame.offsets[k];
  auto isChosen = [&](const Launch &launch) { return launch.isForShown == forShown; };
  if (int32_t code = describeMaps(frame, m, /*ofWorkspace=*/true, isChosen))
    return code;
  for (const auto &launch : f.launches)
    if (isChosen(*launch) && frame.blocks[launch->number].value)
      if (int32_t code = openKernel(*f.program, *frame.driver, frame.device, m, *launch))
        return code;
  int latest = -1;
  for (const auto &launch : f.launches) {
    if (!isChosen(*launch))
      continue;
    if (frame.blocks[launch->number].value) {
      if (int32_t code = launchKernel(frame, m, *launch, latest, given.stream))
        return code;
    } else if (launch->isReliedOn) {
      latest = -1; // others count on its wait
    }
  }
  return MOA_OK;
}

int32_t check(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  m.clear();
  return examine(frame, m, /*reads=*/false, given);
}

int64_t workspace(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  m.clear();
  if (int32_t code = examine(frame, m, /*reads=*/false, given))
    return -int64_t(code);
  return function.workspace.empty() ? 0 : layOutWorkspace(frame).value;
}

int32_t call(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  m.clear();
  int32_t code = examine(frame, m, /*reads=*/false, given);
  if (!code && !function.workspace.empty())
    code = checkWorkspace(frame, m, given.workspace, given.bytes, layOutWorkspace(frame));
  if (!code)
    code = launchChosen(frame, m, /*forShown=*/false, given);
  if (code)
    return code;
  for (const Shown &shown : function.shown)
    if (!shown.never.empty() && !isEmpty(*frame.arrays[shown.array].tensor))
      return MOA_NOT_SHOWN;
  return MOA_OK;
}

//===----------------------------------------------------------------------===//
// NAME_shown
//===----------------------------------------------------------------------===//

/// Reports that a non-empty result is not shown to be within its tolerance.
static int32_t reportNotShown(Message m, const Array &a, const Shown &shown, const char *why) {
  if (isEmpty(*a.tensor))
    return MOA_OK;
  if (m.text && m.size) {
    size_t used = std::strlen(m.text);
    std::snprintf(m.text + used, m.size - used, "%s%s is not shown to be within %s: %s", used ? "; " : "", a.name,
                  shown.tolerance.c_str(), why);
  }
  return MOA_NOT_SHOWN;
}

/// Waits for bounds on a result's errors and reports those that exceed the tolerance or are NaN.
static int32_t checkBounds(const Frame &frame, Message m, void *stream, const Shown &shown) {
  const Array &a = frame.arrays[shown.array];
  int rank = int(shown.extents.size());
  float part[256], found = 0;
  char why[1024];
  size_t used;
  int64_t extents[kMaxRank] = {1}, count = !isEmpty(*a.tensor), first = -1, beyond = 0;
  for (int axis = 0; axis < rank; ++axis)
    count *= extents[axis] = shown.extents[axis].evaluate(frame).value;
  for (int64_t k = 0; k < count; k += 256) {
    int64_t n = count - k < 256 ? count - k : 256;
    auto from = reinterpret_cast<uintptr_t>(frame.places[shown.workspace]) + uintptr_t(k) * sizeof *part;
    if (frame.driver->cuMemcpyDtoHAsync(part, from, size_t(n) * sizeof *part, stream) != cuda::kSuccess ||
        frame.driver->cuStreamSynchronize(stream) != cuda::kSuccess)
      return refuse(m, MOA_LAUNCH, "CUDA did not copy the bounds of %s", a.name);
    for (int64_t j = 0; j < n; ++j)
      if (!(double(part[j]) <= shown.within) && !beyond++) {
        first = k + j;
        found = part[j];
      }
  }
  if (!beyond)
    return MOA_OK;
  if (found <= 3.4e38f)
    used = size_t(std::snprintf(why, sizeof why, "the bound on its errors is %.2e", double(found)));
  else
    used = size_t(std::snprintf(why, sizeof why,
                                "no bound on its errors holds for these inputs: they are too large "
                                "or too small for the types, not finite, or have sums that may cancel"));
  int64_t size = count;
  for (int axis = 0; axis < rank; ++axis, first %= size) {
    size /= extents[axis];
    used += size_t(std::snprintf(why + used, sizeof why - used, "%s%lld", axis ? ", " : " at [",
                                 static_cast<long long>(first / size)));
  }
  if (rank)
    std::snprintf(why + used, sizeof why - used, "], and too large at %lld of %lld indices of [%s]",
                  static_cast<long long>(beyond), static_cast<long long>(count), shown.axes.c_str());
  return reportNotShown(m, a, shown, why);
}

int32_t shown(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  m.clear();
  int32_t code = examine(frame, m, /*reads=*/true, given), found = MOA_OK;
  if (!code && function.hasShown)
    code = checkWorkspace(frame, m, given.workspace, given.bytes, layOutWorkspace(frame));
  if (!code && function.hasShown)
    code = launchChosen(frame, m, /*forShown=*/true, given);
  if (code)
    return code;
  for (const Shown &shown : function.shown) {
    code = shown.never.empty() ? checkBounds(frame, m, given.stream, shown)
                               : reportNotShown(m, frame.arrays[shown.array], shown, shown.never.c_str());
    if (code == MOA_LAUNCH)
      return code;
    found = code ? code : found;
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Preparation
//===----------------------------------------------------------------------===//

int32_t prepare(const Function &function, Message m, int32_t device) {
  m.clear();
  const Program &program = *function.program;
  const cuda::Driver *driver = cuda::openDriver(m, program.needed);
  if (!driver)
    return MOA_DEVICE;
  cuda::Device chosen = 0;
  if (driver->cuDeviceGet(&chosen, device) != cuda::kSuccess)
    return refuse(m, MOA_DEVICE, "there is no CUDA device %d; nvidia-smi lists the devices of this machine", device);
  if (int32_t code = cuda::checkArchitecture(m, program.needed, *driver, chosen))
    return code;
  cuda::Context context = cuda::getPrimaryContext(*driver, chosen);
  if (!context || driver->cuCtxPushCurrent(context) != cuda::kSuccess)
    return refuse(m, MOA_DEVICE, "CUDA gives no context of device %d", device);
  int32_t code = MOA_OK;
  for (size_t k = 0; k < function.launches.size() && !code; ++k) {
    const Launch &launch = *function.launches[k];
    code = openKernel(program, *driver, chosen, m, launch);
    void *loaded = nullptr;
    if (!code && driver->cuKernelGetFunction(&loaded, launch.handle.load(std::memory_order_relaxed)) != cuda::kSuccess)
      code = refuse(m, MOA_LAUNCH, "CUDA refused to load %s", launch.kernel.c_str());
  }
  if (driver->cuCtxPopCurrent(&context) != cuda::kSuccess)
    return refuse(m, MOA_DEVICE, "CUDA gives no context of device %d", device);
  return code;
}

void unload(Program &program) {
  const cuda::Driver *driver = cuda::getDriver();
  if (cuda::Library library = program.library.exchange(nullptr); library && driver)
    driver->cuLibraryUnload(library);
}

} // namespace moa::runtime::gpu
