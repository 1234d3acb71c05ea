// Memory that runs out inside of the library: the allocation with a given number fails.
#include "check.h"
#include <cstdlib>
#include <new>

static long allocationsLeft = -1; // -1: any number

void *operator new(std::size_t size) {
  if (allocationsLeft == 0)
    throw std::bad_alloc();
  if (allocationsLeft > 0)
    --allocationsLeft;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
// The workspace of a call.
void *operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t &) noexcept {
  std::size_t unit = static_cast<std::size_t>(alignment);
  return allocationsLeft < 0 ? std::aligned_alloc(unit, (size + unit - 1) / unit * unit) : nullptr;
}
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }

static const char kLong[] = "a text that is longer than the one that a string holds in itself";

/// Calls `work` with 0, 1, … allocations until it succeeds. Returns how often it failed.
template <typename Function> static int countFailures(Function work) {
  for (int count = 0; count < 100; ++count) {
    allocationsLeft = count;
    moa_status status = work();
    allocationsLeft = -1;
    if (status != MOA_STATUS_MEMORY) {
      CHECK(status == MOA_STATUS_OK || status == MOA_STATUS_ARGUMENT);
      return count;
    }
  }
  return -1;
}

/// Calls a kernel with a workspace, and asks its compilation for more, without memory.
static void checkKernel() {
  moa_error *error = nullptr;
  moa_compilation *unit = moa_compile_text(
      nullptr, "kernel weights[N](x : f32[N]) -> y : f32[N] within 1e-3 { y = softmax(x) }", nullptr, &error);
  moa_kernel *kernel = moa_load(unit, nullptr, &error);
  CHECK(kernel && !error);
  float x[] = {0, 1}, y[] = {0, 0};
  int64_t shape[] = {2};
  DLTensor in = {x, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0}, out = {y, {1, 0}, 1, {2, 32, 1}, shape, nullptr, 0};
  const DLTensor *arrays[] = {&in, &out};
  char text[200];
  CHECK(moa_kernel_workspace(kernel, arrays, 2, nullptr, 0, text, sizeof text) > 0);
  allocationsLeft = 0;
  CHECK(moa_kernel_call(kernel, arrays, 2, nullptr, 0, text, sizeof text) == MOA_WORKSPACE);
  allocationsLeft = 100;
  CHECK_TEXT(text, "memory ran out");
  CHECK(moa_kernel_call(kernel, arrays, 2, nullptr, 0, text, sizeof text) == MOA_WORKSPACE);
  allocationsLeft = -1;
  CHECK_PART(text, "there is no memory for a workspace of ");
  CHECK(y[0] == 0);
  CHECK(moa_kernel_call(kernel, arrays, 2, nullptr, 0, text, sizeof text) == MOA_OK);
  CHECK(y[1] > y[0] && y[0] > 0);

  allocationsLeft = 0;
  CHECK(!moa_load(unit, kLong, &error));
  CHECK(!moa_load(unit, kLong, nullptr)); // fails later, in the query
  allocationsLeft = -1;
  CHECK_ERROR(MOA_STATUS_MEMORY, "memory ran out");
  CHECK(!moa_compilation_cuda(unit, &error));
  CHECK_ERROR(MOA_STATUS_INTERNAL, "the compilation is not usable: an earlier call ran out of memory or failed");
  moa_kernel_destroy(kernel);
  moa_compilation_destroy(unit);
}

int main() {
  checkKernel();
  CHECK(countFailures([] {
          moa_options *options = moa_options_create();
          moa_options_destroy(options);
          return options ? MOA_STATUS_OK : MOA_STATUS_MEMORY;
        }) > 0);
  moa_options *options = moa_options_create();
  CHECK(countFailures([&] { return moa_options_add_setting(options, kLong); }) > 0);
  CHECK(countFailures([&] { return moa_options_set_schedule(options, kLong, kLong); }) > 0);
  CHECK(countFailures([&] { return moa_options_set_processor(options, kLong); }) > 0);
  CHECK(countFailures([&] { return moa_options_add_tolerance(options, kLong); }) > 0);
  CHECK(countFailures([&] { return moa_options_set_plans(options, kLong, kLong); }) > 0);

  // An error without memory for it is one too. It can be destroyed like any other.
  auto fail = [](auto call) {
    return [call] {
      moa_error *error = nullptr;
      CHECK(!call(&error));
      moa_status status = moa_error_code(error);
      CHECK(status != MOA_STATUS_MEMORY || !strcmp(moa_error_message(error), "memory ran out"));
      moa_error_destroy(error);
      return status;
    };
  };
  CHECK(countFailures(fail([](moa_error **error) { return moa_compile_text(nullptr, nullptr, nullptr, error); })) > 0);
  CHECK(countFailures(fail([](moa_error **error) { return moa_compilation_cuda(nullptr, error); })) > 0);

  // The first allocations of a compilation copy the text and the options.
  for (int count = 0; count < 3; ++count) {
    moa_error *error = nullptr;
    allocationsLeft = count;
    moa_compilation *unit = moa_compile_text(options, kLong, kLong, &error);
    allocationsLeft = -1;
    CHECK(!unit && moa_error_code(error) == MOA_STATUS_MEMORY);
    moa_error_destroy(error);
  }
  moa_options_destroy(options);
  printf("%d checks failed\n", failures);
  return failures != 0;
}
