/* Threads with a compilation each, which call one kernel together. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, LENGTH = 1000, CALLS = 50 };

static moa_kernel *shared;

static moa_kernel *load(const char *text) {
  moa_compilation *unit = moa_compile_text(NULL, text, "threads.moa", NULL);
  moa_kernel *kernel = moa_load(unit, NULL, NULL);
  moa_compilation_destroy(unit);
  return kernel;
}

/* Adds the number of the thread, by the shared kernel and by one of its own. Returns the number of
 * wrong elements. */
static size_t callBoth(double number) {
  char text[200];
  snprintf(text, sizeof text, "kernel own[N](x : f64[N]) -> y : f64[N] { y = x + %.1f }", number);
  moa_kernel *own = load(text);
  double x[LENGTH], y[LENGTH], z[LENGTH];
  int64_t shape[] = {LENGTH};
  for (int i = 0; i < LENGTH; ++i)
    x[i] = i, y[i] = z[i] = -1;
  DLTensor in = {x, {1, 0}, 1, {2, 64, 1}, NULL, NULL, 0}, first = in, second = in;
  in.shape = first.shape = second.shape = shape;
  first.data = y;
  second.data = z;
  const DLTensor *ownArrays[] = {&in, &first}, *sharedArrays[] = {&in, &second};
  moa_scalar scalar = moa_scalar_real(number);
  size_t wrong = 0;
  for (int call = 0; call < CALLS; ++call)
    wrong += moa_kernel_call(own, ownArrays, 2, NULL, 0, NULL, 0) != MOA_OK ||
             moa_kernel_call(shared, sharedArrays, 2, &scalar, 1, NULL, 0) != MOA_OK;
  for (int i = 0; i < LENGTH; ++i)
    wrong += y[i] != i + number || z[i] != i + number;
  moa_kernel_destroy(own);
  return wrong;
}

static size_t wrong[THREADS];

static void *start(void *number) {
  wrong[*(int *)number] = callBoth(*(int *)number + 0.5);
  return NULL;
}

int main(void) {
  shared = load("kernel add[N](x : f64[N], c : f64) -> y : f64[N] { y = x + c }");
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int t = 0; t < THREADS; ++t) {
    numbers[t] = t;
    wrong[t] = 1;
    CHECK(!pthread_create(&threads[t], NULL, start, &numbers[t]));
  }
  for (int t = 0; t < THREADS; ++t) {
    CHECK(!pthread_join(threads[t], NULL));
    CHECK(wrong[t] == 0);
  }
  moa_kernel_destroy(shared);
  printf("%d checks failed\n", failures);
  return failures != 0;
}
