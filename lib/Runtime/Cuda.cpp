//===- Cuda.cpp - the CUDA driver, opened at run time ---------------------===//
#include "lib/Runtime/Cuda.h"
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

namespace moa::runtime::cuda {

namespace {
constexpr int kDevices = 64; ///< devices whose facts are kept

struct State {
  std::mutex mutex;
  std::atomic<const Driver *> opened{nullptr};
  Driver driver = {};
  void *file = nullptr;
  std::atomic<CUcontext> primary[kDevices] = {};
  std::atomic<int> capability[kDevices] = {}; ///< 10 * major + minor; 0: not known
};
} // namespace

static State &getState() {
  static State *state = new State; // never freed: the driver may be used until the process ends
  return *state;
}

template <typename Function> static bool find(void *file, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(file, name));
  return function != nullptr;
}

static const char *findAll(void *file, Driver &d) {
#define MOA_FIND(function, name, ...)                                                                                  \
  if (!find(file, name, d.function))                                                                                   \
    return name;
  MOA_DRIVER_FUNCTIONS(MOA_FIND)
#undef MOA_FIND
  return nullptr;
}

static void refuseVersion(Message m, int found, int needed) {
  moa_refuse(
      &m, MOA_DEVICE,
      "the CUDA driver is one of CUDA %d.%d, but these kernels need one of CUDA %d.%d or later; update the NVIDIA "
      "driver",
      found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10);
}

const Driver *getDriver() { return getState().opened.load(std::memory_order_acquire); }

const Driver *openDriver(Message m, const Requirements &needed) {
  State &state = getState();
  const Driver *opened = state.opened.load(std::memory_order_acquire);
  if (!opened) {
    std::lock_guard<std::mutex> lock(state.mutex);
    opened = state.opened.load(std::memory_order_acquire);
    if (!opened) {
      const char *given = secure_getenv("MOA_LIBCUDA");
      if (!state.file)
        state.file = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
      if (!state.file) {
        const char *why = dlerror();
        moa_refuse(&m, MOA_DEVICE, "there is no CUDA driver (%s); install the NVIDIA driver, which has libcuda.so.1",
                   why ? why : "libcuda.so.1");
        return nullptr;
      }
      Driver driver = {};
      if (!find(state.file, "cuDriverGetVersion", driver.cuDriverGetVersion) ||
          driver.cuDriverGetVersion(&driver.version) != CUDA_SUCCESS) {
        moa_refuse(&m, MOA_DEVICE, "libcuda.so.1 has no version; install the NVIDIA driver again");
        return nullptr;
      }
      if (driver.version < needed.driver) {
        refuseVersion(m, driver.version, needed.driver);
        return nullptr;
      }
      if (const char *missing = findAll(state.file, driver)) {
        moa_refuse(&m, MOA_DEVICE, "the CUDA driver has no %s; update the NVIDIA driver", missing);
        return nullptr;
      }
      if (CUresult result = driver.cuInit(0)) {
        moa_refuse(&m, MOA_DEVICE,
                   "there is no CUDA device: cuInit returns %d; nvidia-smi lists the devices of this machine", result);
        return nullptr;
      }
      state.driver = driver;
      opened = &state.driver;
      state.opened.store(opened, std::memory_order_release);
    }
  }
  if (opened->version < needed.driver) {
    refuseVersion(m, opened->version, needed.driver);
    return nullptr;
  }
  return opened;
}

CUcontext getPrimaryContext(const Driver &driver, CUdevice device) {
  State &state = getState();
  CUcontext context = nullptr;
  if (device < 0 || device >= kDevices)
    return driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS ? context : nullptr;
  context = state.primary[device].load(std::memory_order_acquire);
  if (context)
    return context;
  std::lock_guard<std::mutex> lock(state.mutex);
  context = state.primary[device].load(std::memory_order_acquire);
  if (!context && driver.cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS)
    state.primary[device].store(context, std::memory_order_release);
  return context;
}

int32_t checkArchitecture(Message m, const Requirements &needed, const Driver &driver, CUdevice device) {
  State &state = getState();
  bool isKept = device >= 0 && device < kDevices;
  int capability = isKept ? state.capability[device].load(std::memory_order_relaxed) : 0;
  if (!capability) {
    int major = 0, minor = 0;
    if (driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
      return moa_refuse(&m, MOA_DEVICE, "CUDA does not tell the compute capability of device %d", device);
    capability = 10 * major + minor;
    if (isKept)
      state.capability[device].store(capability, std::memory_order_relaxed);
  }
  int least = 10 * needed.major + needed.minor;
  if (needed.isExact ? capability != least : capability < least)
    return moa_refuse(&m, MOA_DEVICE,
                      "device %d has compute capability %d.%d, but these kernels are for %s; use a device of compute "
                      "capability %d.%d%s",
                      device, capability / 10, capability % 10, needed.target, needed.major, needed.minor,
                      needed.isExact ? "" : " or later");
  return MOA_OK;
}

static thread_local CUdevice latestDevice = 0;

int32_t moa_find_device(int *device) {
  *device = latestDevice;
  return MOA_OK;
}

int32_t findDevice(Message m, const Requirements &needed, const Driver *&driver, CUdevice &device) {
  driver = openDriver(m, needed);
  if (!driver)
    return MOA_DEVICE;
  CUcontext context = nullptr;
  CUdevice current = 0;
  auto fail = [&] {
    return moa_refuse(&m, MOA_DEVICE, "there is no CUDA device: nvidia-smi lists the devices of this machine");
  };
  if (driver->cuCtxGetCurrent(&context) != CUDA_SUCCESS)
    return fail();
  if (!context) {
    if (driver->cuDeviceGet(&current, 0) != CUDA_SUCCESS)
      return fail();
    context = getPrimaryContext(*driver, current);
    if (!context || driver->cuCtxSetCurrent(context) != CUDA_SUCCESS)
      return fail();
  }
  if (driver->cuCtxGetDevice(&current) != CUDA_SUCCESS)
    return fail();
  device = latestDevice = current;
  return checkArchitecture(m, needed, *driver, current);
}

} // namespace moa::runtime::cuda
