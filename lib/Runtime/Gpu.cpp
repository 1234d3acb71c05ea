//===- Gpu.cpp - calls of kernels on a GPU --------------------------------===//
//
// Does what an emitted launcher does, in the same order (lib/Target/PTX/Launcher.cpp), with its functions.
//
//===----------------------------------------------------------------------===//
#include "lib/Runtime/Launcher.h"
#include "lib/Runtime/Program.h"
#include <alloca.h>

namespace moa::runtime::gpu {

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Encodes a tensor map of an array.
static int32_t describeMap(const Frame &frame, Message m, cuda::CUtensorMap &map, const TensorMap &facts,
                           const Array &a) {
  int axis = int(facts.rowAxis);
  return facts.hasStep
             ? cuda::moa_describe_steps(&m, &map, &a, axis, facts.rows, facts.step.text(), facts.step.evaluate(frame))
             : cuda::moa_describe_tiles(&m, &map, &a, axis, facts.rows);
}

/// Encodes a map of an array of the workspace.
static int32_t describePlaced(const Frame &frame, Message m, cuda::CUtensorMap &map, const TensorMap &facts) {
  const Workspace &placed = frame.function->workspace[facts.array];
  int64_t shape[kMaxMapRank];
  DLTensor tensor;
  Array a;
  for (unsigned axis = 0; axis < facts.rank; ++axis)
    shape[axis] = placed.extents[axis].evaluate(frame).value;
  cuda::moa_place(&a, &tensor, int(facts.rank), placed.type->code, placed.type->bits / 8, frame.places[facts.array],
                  shape);
  a.name = placed.name.c_str();
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
      cuda::CUtensorMap &map = frame.maps[launch->firstMap + k];
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
  Checked size = moa_number(0);
  for (size_t k = 0; k < f.workspace.size(); ++k) {
    const Workspace &array = f.workspace[k];
    Checked bytes = array.bytes.evaluate(frame);
    Checked place = size;
    if (array.unit != 1)
      place = moa_multiply({array.unit, 0}, moa_floor_div(moa_add(size, {array.slack, 0}), {array.unit, 0}));
    frame.offsets[k] = place.value;
    size = moa_add(bytes.value != 0 ? place : size, bytes);
  }
  return size;
}

static int32_t checkWorkspace(const Frame &frame, Message m, const Arguments &given) {
  return cuda::moa_check_workspace(frame.arrayList, int(frame.function->arrays.size()), &m, given.workspace,
                                   given.bytes, layOutWorkspace(frame));
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
  int32_t code = openArrays(frame, f.arrays.size(), m, given.arrays);
  if (!code)
    code = bindSymbols(frame, f.bindings, m);
  if (!code)
    code = checkExtents(frame, f.arrays.size(), m);
  if (!code)
    code = checkConstraints(frame, m);
  if (!code)
    code = cuda::findDevice(m, f.program->needed, frame.driver, frame.device);
  if (!code)
    code = cuda::moa_check_memory(frame.arrayList, int(f.arrays.size()), &m);
  if (code)
    return code;
  for (unsigned array : f.tiled)
    if ((code = cuda::moa_check_tiles(&frame.arrays[array], &m)))
      return code;
  for (size_t k = 0; k < f.conditions.size(); ++k)
    frame.holds[k] = holds(frame, f.conditions[k]);
  for (const auto &launch : f.launches) {
    bool isNeeded = !f.hasShown || launch->isForShown == reads;
    isNeeded &= launch->condition < 0 || frame.holds[launch->condition];
    frame.blocks[launch->number] = isNeeded ? launch->blocks.evaluate(frame) : moa_number(0);
  }
  for (size_t k = 0; k < f.launches.size(); ++k)
    if (frame.blocks[k].code || frame.blocks[k].value > INT32_MAX)
      return moa_refuse(&m, MOA_OVERFLOW, "a grid has more than 2^31 - 1 blocks");
  if (!f.workspace.empty())
    if (Checked size = layOutWorkspace(frame); size.code)
      return moa_refuse_value(&m, size, "the workspace");
  return describeMaps(frame, m, /*ofWorkspace=*/false, [](const Launch &) { return true; });
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Loads the code once for all devices.
static cuda::CUlibrary openLibrary(const Program &program, const cuda::Driver &driver) {
  cuda::CUlibrary library = program.library.load(std::memory_order_acquire);
  if (library)
    return library;
  std::lock_guard<std::mutex> lock(program.mutex);
  library = program.library.load(std::memory_order_acquire);
  if (!library && driver.cuLibraryLoadData(&library, program.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                      cuda::CUDA_SUCCESS)
    program.library.store(library, std::memory_order_release);
  return program.library.load(std::memory_order_relaxed);
}

/// Finds a kernel and allows it its shared memory, once for a device.
static int32_t openKernel(const Program &program, const cuda::Driver &driver, cuda::CUdevice device, Message m,
                          const Launch &launch) {
  uint64_t bit = device >= 0 && device < 64 ? uint64_t(1) << device : 0;
  if (launch.ready.load(std::memory_order_acquire) & bit)
    return MOA_OK;
  cuda::CUkernel kernel = launch.handle.load(std::memory_order_acquire);
  if (!kernel) {
    cuda::CUlibrary library = openLibrary(program, driver);
    if (!library || driver.cuLibraryGetKernel(&kernel, library, launch.kernel.c_str()) != cuda::CUDA_SUCCESS)
      return moa_refuse(&m, MOA_LAUNCH, "CUDA refused to load %s", launch.kernel.c_str());
    launch.handle.store(kernel, std::memory_order_release);
  }
  if (launch.sharedBytes && driver.cuKernelSetAttribute(cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                        launch.sharedBytes, kernel, device) != cuda::CUDA_SUCCESS)
    return moa_refuse(&m, MOA_LAUNCH, "CUDA refused %d bytes of shared memory", launch.sharedBytes);
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

static int32_t launchKernel(const Frame &frame, Message m, const Launch &launch, int &latest, void *stream) {
  for (size_t k = 0; k < launch.parameters.size(); ++k)
    frame.pointers[k] = pointerTo(frame, launch.parameters[k]);
  int64_t blocks = frame.blocks[launch.number].value;
  if (launch.mostBlocks && blocks > launch.mostBlocks)
    blocks = launch.mostBlocks;
  return cuda::moa_launch(&m, launch.handle.load(std::memory_order_relaxed), &latest, launch.number,
                          launch.firstOverlapped, blocks, launch.threads, launch.sharedBytes, frame.pointers, stream);
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
  clear(m);
  return examine(frame, m, /*reads=*/false, given);
}

int64_t workspace(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  clear(m);
  if (int32_t code = examine(frame, m, /*reads=*/false, given))
    return -int64_t(code);
  return function.workspace.empty() ? 0 : layOutWorkspace(frame).value;
}

int32_t call(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  clear(m);
  int32_t code = examine(frame, m, /*reads=*/false, given);
  if (!code && !function.workspace.empty())
    code = checkWorkspace(frame, m, given);
  if (!code)
    code = launchChosen(frame, m, /*forShown=*/false, given);
  if (code)
    return code;
  for (const Shown &shown : function.shown)
    if (!shown.never.empty() && !moa_is_empty(&frame.arrays[shown.array]))
      return MOA_NOT_SHOWN;
  return MOA_OK;
}

//===----------------------------------------------------------------------===//
// NAME_shown
//===----------------------------------------------------------------------===//

/// Compares the bounds on a result's errors with its tolerance.
static int32_t checkBounds(const Frame &frame, Message m, void *stream, const Shown &shown) {
  int64_t extents[kMaxRank];
  for (size_t axis = 0; axis < shown.extents.size(); ++axis)
    extents[axis] = shown.extents[axis].evaluate(frame).value;
  return cuda::moa_check_bounds(&m, stream, &frame.arrays[shown.array], shown.tolerance.c_str(), shown.within,
                                frame.places[shown.workspace], shown.axes.c_str(), extents, int(shown.extents.size()));
}

int32_t shown(const Function &function, Message m, const Arguments &given) {
  Frame frame = placeFrame(function, static_cast<char *>(alloca(function.frameBytes)));
  clear(m);
  int32_t code = examine(frame, m, /*reads=*/true, given), found = MOA_OK;
  if (!code && function.hasShown)
    code = checkWorkspace(frame, m, given);
  if (!code && function.hasShown)
    code = launchChosen(frame, m, /*forShown=*/true, given);
  if (code)
    return code;
  for (const Shown &shown : function.shown) {
    code = shown.never.empty()
               ? checkBounds(frame, m, given.stream, shown)
               : cuda::moa_not_shown(&m, &frame.arrays[shown.array], shown.tolerance.c_str(), shown.never.c_str());
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
  clear(m);
  const Program &program = *function.program;
  const cuda::Driver *driver = cuda::openDriver(m, program.needed);
  if (!driver)
    return MOA_DEVICE;
  cuda::CUdevice chosen = 0;
  if (driver->cuDeviceGet(&chosen, device) != cuda::CUDA_SUCCESS)
    return moa_refuse(&m, MOA_DEVICE, "there is no CUDA device %d; nvidia-smi lists the devices of this machine",
                      device);
  if (int32_t code = cuda::checkArchitecture(m, program.needed, *driver, chosen))
    return code;
  cuda::CUcontext context = cuda::getPrimaryContext(*driver, chosen);
  if (!context || driver->cuCtxPushCurrent(context) != cuda::CUDA_SUCCESS)
    return moa_refuse(&m, MOA_DEVICE, "CUDA gives no context of device %d", device);
  int32_t code = MOA_OK;
  for (size_t k = 0; k < function.launches.size() && !code; ++k) {
    const Launch &launch = *function.launches[k];
    code = openKernel(program, *driver, chosen, m, launch);
    void *loaded = nullptr;
    if (!code &&
        driver->cuKernelGetFunction(&loaded, launch.handle.load(std::memory_order_relaxed)) != cuda::CUDA_SUCCESS)
      code = moa_refuse(&m, MOA_LAUNCH, "CUDA refused to load %s", launch.kernel.c_str());
  }
  if (driver->cuCtxPopCurrent(&context) != cuda::CUDA_SUCCESS)
    return moa_refuse(&m, MOA_DEVICE, "CUDA gives no context of device %d", device);
  return code;
}

void unload(Program &program) {
  const cuda::Driver *driver = cuda::getDriver();
  if (cuda::CUlibrary library = program.library.exchange(nullptr); library && driver)
    driver->cuLibraryUnload(library);
}

} // namespace moa::runtime::gpu
