/* Compiles and calls attention by the C interface. The arguments are examples/sdpa.moa and a
 * directory that the compiler fills. */
#include "check.h"
#include <math.h>
#include <stdlib.h>

enum { B = 1, H = 2, N = 3, M = 5, D = 8 };

static float q[B * H * N * D], k[B * H * M * D], v[B * H * M * D], o[B * H * N * D];
static int64_t queries[] = {B, H, N, D}, keys[] = {B, H, M, D};

/* A row-major array of f32 in memory of this CPU. */
static DLTensor describe(float *data, int64_t *shape) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = 1; /* kDLCPU */
  tensor.ndim = 4;
  tensor.dtype.code = 2; /* kDLFloat */
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static void fill(void) {
  for (int i = 0; i < B * H * N * D; ++i)
    q[i] = (float)sin(0.7 * i), o[i] = -7;
  for (int i = 0; i < B * H * M * D; ++i)
    k[i] = (float)cos(0.3 * i), v[i] = (float)sin(1.1 * i + 2);
}

/* Softmax of scaled products, times V, in double. Returns the largest difference from o. */
static double compare(double scale) {
  double largest = 0;
  for (int h = 0; h < B * H; ++h)
    for (int i = 0; i < N; ++i) {
      double weights[M], sum = 0;
      for (int j = 0; j < M; ++j) {
        double score = 0;
        for (int d = 0; d < D; ++d)
          score += (double)q[(h * N + i) * D + d] * k[(h * M + j) * D + d];
        sum += weights[j] = exp(score * scale);
      }
      for (int d = 0; d < D; ++d) {
        double expected = 0;
        for (int j = 0; j < M; ++j)
          expected += weights[j] / sum * v[(h * M + j) * D + d];
        largest = fmax(largest, fabs(expected - o[(h * N + i) * D + d]));
      }
    }
  return largest;
}

static void checkInterface(const moa_kernel_info *info) {
  CHECK_TEXT(moa_kernel_info_name(info), "sdpa");
  CHECK_PART(moa_kernel_info_text(info), "sdpa(Q : f32[B, H, N, 8]");
  CHECK(moa_kernel_info_symbol_count(info) == 4);
  CHECK_TEXT(moa_kernel_info_symbol(info, 0), "B");
  CHECK_TEXT(moa_kernel_info_symbol(info, 3), "M");
  CHECK(!moa_kernel_info_symbol(info, 4));
  CHECK(moa_kernel_info_constraint_count(info) == 0);
  CHECK(moa_kernel_info_parameter_count(info) == 5);
  CHECK(moa_kernel_info_array_count(info) == 4);
  CHECK(moa_kernel_info_scalar_count(info) == 1);
  static const char *const names[] = {"Q", "K", "V", "scale", "O"};
  for (size_t p = 0; p < 5; ++p) {
    const moa_parameter *parameter = moa_kernel_info_parameter(info, p);
    CHECK_TEXT(moa_parameter_name(parameter), names[p]);
    CHECK_TEXT(moa_parameter_element_type(parameter), "f32");
    CHECK(moa_parameter_is_scalar(parameter) == (p == 3));
    CHECK(moa_parameter_is_output(parameter) == (p == 4));
    CHECK(moa_parameter_extent_count(parameter) == (p == 3 ? 0 : 4));
    CHECK_TEXT(moa_parameter_range(parameter), "");
    CHECK_TEXT(moa_parameter_decision_of(parameter), "");
    CHECK(!moa_parameter_tolerance(parameter, NULL));
  }
  const moa_parameter *K = moa_kernel_info_parameter(info, 1);
  CHECK_TEXT(moa_parameter_extent(K, 2), "M");
  CHECK_TEXT(moa_parameter_constant(K, 2), "");
  CHECK_TEXT(moa_parameter_extent(K, 3), "8");
  CHECK_TEXT(moa_parameter_constant(K, 3), "D");
  CHECK(!moa_parameter_extent(K, 4) && !moa_parameter_constant(K, 4));
  CHECK(!moa_kernel_info_parameter(info, 5));
}

/* Refused calls: each leaves the output as it was. */
static void checkRefusals(const moa_kernel *kernel) {
  DLTensor Q = describe(q, queries), K = describe(k, keys), V = describe(v, keys), O = describe(o, queries);
  const DLTensor *arrays[] = {&Q, &K, &V, &O};
  moa_scalar scale = moa_scalar_real(0.5);
  char text[300];
  o[0] = -7;

  CHECK(moa_kernel_call(kernel, arrays, 3, &scale, 1, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "expects 4 arrays, but got 3");
  CHECK(moa_kernel_check(kernel, arrays, 4, &scale, 2, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "expects 1 scalars, but got 2");
  CHECK(moa_kernel_workspace(kernel, arrays, 5, &scale, 1, text, sizeof text) == -MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "expects 4 arrays, but got 5");
  CHECK(moa_kernel_run(kernel, arrays, 4, NULL, 0, NULL, 0, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "expects 1 scalars, but got 0");
  CHECK(moa_kernel_shown(kernel, NULL, 0, &scale, 1, NULL, 0, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "expects 4 arrays, but got 0");
  CHECK(moa_kernel_call(NULL, arrays, 4, &scale, 1, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "the kernel is NULL");
  CHECK(moa_kernel_call(kernel, NULL, 4, &scale, 1, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "the list of arrays is NULL");
  CHECK(moa_kernel_call(kernel, arrays, 4, NULL, 1, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "the list of scalars is NULL");
  moa_scalar odd = scale;
  odd.kind = 7;
  CHECK(moa_kernel_call(kernel, arrays, 4, &odd, 1, text, sizeof text) == MOA_DTYPE);
  CHECK_TEXT(text, "scalar 0 has the unknown kind 7");

  arrays[2] = NULL;
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_NULL_DESCRIPTOR);
  CHECK_TEXT(text, "V: the descriptor is NULL");
  arrays[2] = &V;
  V.dtype.bits = 64;
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_DTYPE);
  CHECK_PART(text, "V: ");
  CHECK(moa_kernel_workspace(kernel, arrays, 4, &scale, 1, text, sizeof text) == -MOA_DTYPE);
  CHECK_PART(text, "V: ");
  CHECK(moa_kernel_run(kernel, arrays, 4, &scale, 1, NULL, 0, text, sizeof text) == MOA_DTYPE);
  CHECK_PART(text, "V: ");
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, NULL, 0) == MOA_DTYPE);
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, NULL, 300) == MOA_DTYPE);
  memset(text, '#', sizeof text);
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, 4) == MOA_DTYPE);
  CHECK(!memcmp(text, "V: \0#", 5));
  V.dtype.bits = 32;
  int64_t fewer[] = {B, H, M - 1, D};
  V.shape = fewer;
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_SHAPE);
  CHECK_PART(text, "V: ");
  CHECK(o[0] == -7);
}

static void checkCalls(const moa_kernel *kernel) {
  DLTensor Q = describe(q, queries), K = describe(k, keys), V = describe(v, keys), O = describe(o, queries);
  const DLTensor *arrays[] = {&Q, &K, &V, &O};
  moa_scalar scale = moa_scalar_real(0.5);
  char text[300] = "old";
  fill();
  CHECK(compare(0.5) > 1); /* the reference sees a wrong result */
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_OK);
  CHECK_TEXT(text, "");
  CHECK(compare(0.5) < 1e-5);
  CHECK(compare(0.25) > 1e-3);

  /* An integer is converted to the type of the parameter. */
  moa_scalar one = moa_scalar_integer(1);
  CHECK(moa_kernel_call(kernel, arrays, 4, &one, 1, text, sizeof text) == MOA_OK);
  CHECK(compare(1) < 1e-5);

  fill();
  int64_t bytes = moa_kernel_workspace(kernel, arrays, 4, &scale, 1, text, sizeof text);
  CHECK(bytes >= 0);
  void *workspace = malloc((size_t)bytes + 1);
  CHECK(moa_kernel_check(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_OK);
  CHECK(moa_kernel_run(kernel, arrays, 4, &scale, 1, workspace, (size_t)bytes, text, sizeof text) == MOA_OK);
  CHECK(moa_kernel_shown(kernel, arrays, 4, &scale, 1, workspace, (size_t)bytes, text, sizeof text) == MOA_OK);
  free(workspace);
  CHECK(compare(0.5) < 1e-5);
}

/* The texts of all levels and targets. */
static void checkTexts(moa_compilation *unit) {
  moa_error *error = NULL;
  static const char *const parts[] = {"moa.", "dnf.", "onf.", "onf.", "vector", "define", "device."};
  for (int level = MOA_LEVEL_MOA; level <= MOA_LEVEL_DEVICE; ++level) {
    moa_text *text = moa_compilation_print(unit, level, &error);
    CHECK_PART(moa_text_data(text), parts[level]);
    CHECK(text && moa_text_size(text) == strlen(moa_text_data(text)));
    CHECK(!error);
    moa_text_destroy(text);
  }
  struct {
    moa_text *text;
    const char *part;
  } texts[] = {
      {moa_compilation_mathematics(unit, &error), "kernel sdpa("},
      {moa_compilation_explain(unit, &error), "sdpa"},
      {moa_compilation_cuda(unit, &error), "__global__"},
      {moa_compilation_header(unit, &error), "int32_t sdpa("},
      {moa_compilation_schedule(unit, &error), "\"axes\""},
      {moa_compilation_manifest(unit, &error), "\"programs\""},
      {moa_compilation_report(unit, MOA_REPORT_TEXT, NULL, NULL, 0, &error), "sdpa"},
      {moa_compilation_object(unit, &error), "ELF"},
      {moa_compilation_diagnostics(unit, true, &error), ""},
  };
  for (size_t t = 0; t < sizeof texts / sizeof *texts; ++t) {
    CHECK_PART(moa_text_data(texts[t].text), texts[t].part);
    moa_text_destroy(texts[t].text);
  }
  static const char *const names[] = {"B", "H", "N", "M"};
  static const int64_t values[] = {B, H, N, M};
  moa_text *json = moa_compilation_report(unit, MOA_REPORT_JSON, names, values, 4, &error);
  CHECK(json && moa_text_data(json)[0] == '{');
  moa_text_destroy(json);
  CHECK(!error);
}

/* An object that is loaded without its compilation. */
static void checkObject(moa_compilation *unit) {
  moa_error *error = NULL;
  moa_text *object = moa_compilation_object(unit, &error);
  moa_code *code = moa_load_object(moa_text_data(object), moa_text_size(object), &error);
  moa_text_destroy(object);
  CHECK(code && !error);
  CHECK(!moa_code_function(code, NULL, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the name of the function is NULL");
  void *prepare = moa_code_function(code, "sdpa_prepare", &error);
  CHECK(prepare && !error);
  int32_t (*function)(int32_t) = NULL;
  if (prepare) {
    memcpy(&function, &prepare, sizeof function);
    CHECK(function(0) == MOA_OK);
  }
  CHECK(moa_code_function(code, "sdpa", NULL) && moa_code_function(code, "sdpa_check", NULL));
  CHECK(!moa_code_function(code, "spda", &error));
  CHECK_ERROR(MOA_STATUS_QUERY, "spda");
  moa_code_destroy(code);
  code = moa_load_object("no object", 9, &error);
  CHECK(!code || !moa_code_function(code, "sdpa", &error));
  CHECK_ERROR(MOA_STATUS_QUERY, "");
  moa_code_destroy(code);
}

/* Errors of queries, after which the compilation still answers. */
static void checkQueries(moa_compilation *unit) {
  moa_error *error = NULL;
  size_t before = moa_compilation_diagnostic_count(unit);
  CHECK(!moa_load(unit, "spda", &error));
  CHECK(moa_error_diagnostic_count(error) == 1);
  CHECK_PART(moa_diagnostic_message(moa_error_diagnostic(error, 0)), "'spda'");
  CHECK_ERROR(MOA_STATUS_QUERY, "error: ");
  CHECK(moa_compilation_diagnostic_count(unit) == before + 1);
  CHECK_PART(moa_diagnostic_message(moa_compilation_diagnostic(unit, before)), "'spda'");
  CHECK(!moa_compilation_diagnostic(unit, before + 1));
  static const char *const names[] = {"B", NULL};
  static const int64_t values[] = {1, 2};
  CHECK(!moa_compilation_report(unit, MOA_REPORT_TEXT, names, values, 1, &error));
  CHECK_PART(moa_error_message(error), "H");
  CHECK(!strstr(moa_error_message(error), "spda")); /* that was another call's */
  CHECK_ERROR(MOA_STATUS_QUERY, "error: ");
  CHECK(!moa_compilation_report(unit, MOA_REPORT_TEXT, names, values, 2, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the name of a symbol is NULL");
  CHECK(!moa_compilation_report(unit, MOA_REPORT_TEXT, NULL, values, 2, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the names or the values of the symbols are NULL");
  CHECK(!moa_compilation_report(unit, 2, NULL, NULL, 0, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "there is no format of a report of this number");
  CHECK(!moa_compilation_print(unit, -1, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "there is no level of this number");
  CHECK(!moa_compilation_ptx(unit, 3, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "there is no part of PTX of this number");
  CHECK(!moa_compilation_print(unit, 7, NULL));
  moa_text *text = moa_compilation_print(unit, MOA_LEVEL_ONF, &error);
  CHECK(text && !error);
  moa_text_destroy(text);
}

/* Specifications, options and schedules with mistakes. */
static void checkMistakes(const char *path) {
  static const char *const mistaken = "kernel sum[N, M](x : f32[N, M], y : f32[M, N]) -> z : f32[N, M] {\n"
                                      "  z = x + y\n"
                                      "}\n";
  moa_error *error = NULL;
  CHECK(!moa_compile_text(NULL, mistaken, "mistaken.moa", NULL));
  CHECK(!moa_compile_text(NULL, mistaken, "mistaken.moa", &error));
  CHECK(moa_error_diagnostic_count(error) == 1);
  const moa_diagnostic *diagnostic = moa_error_diagnostic(error, 0);
  CHECK(moa_diagnostic_severity(diagnostic) == MOA_SEVERITY_ERROR);
  CHECK_TEXT(moa_diagnostic_file(diagnostic), "mistaken.moa");
  CHECK(moa_diagnostic_line(diagnostic) == 2);
  CHECK(moa_diagnostic_column(diagnostic) == 9);
  CHECK_PART(moa_diagnostic_message(diagnostic), "'+' combines shapes [N, M] and [M, N]");
  CHECK(moa_diagnostic_note_count(diagnostic) == 2 && !moa_diagnostic_note(diagnostic, 2));
  CHECK(moa_diagnostic_column(moa_diagnostic_note(diagnostic, 1)) == 11);
  CHECK(moa_diagnostic_severity(moa_diagnostic_note(diagnostic, 0)) == MOA_SEVERITY_NOTE);
  CHECK(!moa_error_diagnostic(error, 1));
  CHECK_PART(moa_error_message(error), "mistaken.moa:2:9: error: '+' combines");
  CHECK_ERROR(MOA_STATUS_COMPILATION, "    z = x + y\n          ^\n");

  CHECK(!moa_compile_file(NULL, "missing.moa", &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "missing.moa: ");
  moa_options *options = moa_options_create();
  CHECK(moa_options_add_setting(options, "E=8") == MOA_STATUS_OK);
  CHECK(!moa_compile_file(options, path, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "E");
  moa_options_destroy(options);

  /* A schedule is read when it is needed; then the compilation has failed. */
  options = moa_options_create();
  CHECK(moa_options_set_schedule(options, "{]", "edited.json") == MOA_STATUS_OK);
  moa_compilation *unit = moa_compile_file(options, path, &error);
  CHECK(unit && !error);
  CHECK(!moa_compilation_schedule(unit, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "edited.json");
  CHECK(!moa_compilation_print(unit, MOA_LEVEL_DNF, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "there is no answer");
  moa_compilation_destroy(unit);
  moa_options_destroy(options);
}

/* A tolerance that no bound shows if an input is infinite. */
static void checkTolerance(const char *path) {
  moa_error *error = NULL;
  moa_options *options = moa_options_create();
  moa_options_add_setting(options, "T=f32");
  moa_options_add_setting(options, "D=8");
  CHECK(moa_options_add_tolerance(options, "O=1e-3") == MOA_STATUS_OK);
  moa_compilation *unit = moa_compile_file(options, path, &error);
  moa_kernel *kernel = moa_load(unit, NULL, &error);
  CHECK(kernel && !error);
  moa_compilation_destroy(unit);
  moa_tolerance tolerance = {0, true, true};
  const moa_parameter *result = moa_kernel_info_parameter(moa_kernel_get_info(kernel), 4);
  CHECK(moa_parameter_tolerance(result, &tolerance));
  CHECK(tolerance.epsilon == 1e-3 && !tolerance.is_relative && !tolerance.is_sampled);

  DLTensor Q = describe(q, queries), K = describe(k, keys), V = describe(v, keys), O = describe(o, queries);
  const DLTensor *arrays[] = {&Q, &K, &V, &O};
  moa_scalar scale = moa_scalar_real(0.5);
  char text[300];
  fill();
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_OK);
  CHECK(compare(0.5) < 1e-5);
  v[0] = (float)INFINITY;
  CHECK(moa_kernel_call(kernel, arrays, 4, &scale, 1, text, sizeof text) == MOA_NOT_SHOWN);
  CHECK_PART(text, "O is not shown to be within 1e-3: ");

  int64_t bytes = moa_kernel_workspace(kernel, arrays, 4, &scale, 1, text, sizeof text);
  CHECK(bytes > 0);
  void *workspace = malloc((size_t)bytes + 1);
  CHECK(moa_kernel_run(kernel, arrays, 4, &scale, 1, workspace, (size_t)bytes / 2, text, sizeof text) == MOA_WORKSPACE);
  CHECK_PART(text, "the workspace is NULL or has less than ");
  CHECK(moa_kernel_run(kernel, arrays, 4, &scale, 1, workspace, (size_t)bytes, text, sizeof text) == MOA_NOT_SHOWN);
  CHECK_TEXT(text, "a result may exceed its tolerance");
  CHECK(moa_kernel_shown(kernel, arrays, 4, &scale, 1, workspace, (size_t)bytes, text, sizeof text) == MOA_NOT_SHOWN);
  CHECK_PART(text, "O is not shown to be within 1e-3: ");
  free(workspace);
  moa_kernel_destroy(kernel);
  moa_options_destroy(options);
}

/* Options that show in the diagnostics or the interface of a compilation of sdpa. */
static void checkOptions(const char *path, const char *directory) {
  moa_error *error = NULL;
  moa_options *options = moa_options_create();
  CHECK(moa_options_set_processor(options, "abacus") == MOA_STATUS_OK);
  CHECK(!moa_compile_file(options, path, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "abacus");
  moa_options_set_processor(options, "");
  CHECK(moa_options_set_plans(options, "plans", "found.json") == MOA_STATUS_OK);
  CHECK(!moa_compile_file(options, path, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "found.json");
  moa_options_set_plans(options, NULL, NULL);

  CHECK(moa_options_set_architecture(options, "sm_90a") == MOA_STATUS_OK);
  CHECK(moa_options_set_dump_directory(options, directory) == MOA_STATUS_OK);
  CHECK(moa_options_add_tolerance(options, "O=3e-2,relative,sampled") == MOA_STATUS_OK);
  CHECK(moa_options_set_decisions(options, true) == MOA_STATUS_OK);
  moa_compilation *unit = moa_compile_file(options, path, &error);
  CHECK(unit && !error);
  const moa_kernel_info *info = moa_compilation_kernel(unit, 0);
  CHECK(moa_kernel_info_parameter_count(info) > 5);
  CHECK_TEXT(moa_parameter_decision_of(moa_kernel_info_parameter(info, 4)), "");
  CHECK_TEXT(moa_parameter_decision_of(moa_kernel_info_parameter(info, 5)), "O");
  moa_tolerance tolerance = {0, false, false};
  CHECK(moa_parameter_tolerance(moa_kernel_info_parameter(info, 4), &tolerance));
  CHECK(tolerance.epsilon == 3e-2 && tolerance.is_relative && tolerance.is_sampled);
  moa_text *schedule = moa_compilation_schedule(unit, &error);
  CHECK_PART(moa_text_data(schedule), "warpgroup");
  moa_text_destroy(schedule);
  moa_compilation_destroy(unit);
  moa_options_destroy(options);

  /* A variant that can never be used gives a warning, which is no error. */
  options = moa_options_create();
  CHECK(moa_options_set_mixed_precision(options, true) == MOA_STATUS_OK);
  CHECK(moa_options_set_warns_if_unused(options, true) == MOA_STATUS_OK);
  unit = moa_compile_file(options, path, &error);
  moa_text_destroy(moa_compilation_print(unit, MOA_LEVEL_LIFTED, &error));
  CHECK(unit && !error);
  CHECK(moa_compilation_diagnostic_count(unit) > 0);
  CHECK(moa_diagnostic_severity(moa_compilation_diagnostic(unit, 0)) == MOA_SEVERITY_WARNING);
  moa_text *warnings = moa_compilation_diagnostics(unit, false, &error);
  CHECK_PART(moa_text_data(warnings), "warning: ");
  moa_text_destroy(warnings);
  moa_compilation_destroy(unit);
  moa_options_destroy(options);
}

static void checkPtx(void) {
  static const char *const parts[] = {".target sm_90a", "cuLaunchKernel", "\"programs\""};
  moa_error *error = NULL;
  moa_compilation *unit =
      moa_compile_text(NULL, "kernel next[N](x : i32[N]) -> y : i32[N] { y = x + 1 }", NULL, &error);
  for (int part = MOA_PTX_TEXT; part <= MOA_PTX_MANIFEST; ++part) {
    moa_text *text = moa_compilation_ptx(unit, part, &error);
    CHECK_PART(moa_text_data(text), parts[part]);
    moa_text_destroy(text);
  }
  CHECK(!error);
  moa_text *cubin = moa_compilation_cubin(unit, &error); /* if there is a CUDA toolkit */
  CHECK(cubin ? !error && !memcmp(moa_text_data(cubin), "\177ELF", 4) : error != NULL);
  moa_text_destroy(cubin);
  moa_error_destroy(error);
  moa_compilation_destroy(unit);
}

int main(int count, char **words) {
  if (count != 3)
    return 2;
  CHECK(moa_api_version() == MOA_API_VERSION);
  CHECK_PART(moa_version_text(), ".");
  moa_error *error = NULL;
  moa_options *options = moa_options_create();
  CHECK(moa_options_add_setting(options, "T=f32") == MOA_STATUS_OK);
  CHECK(moa_options_add_setting(options, "D=8") == MOA_STATUS_OK);
  CHECK(moa_options_set_explain(options, true) == MOA_STATUS_OK);
  moa_compilation *unit = moa_compile_file(options, words[1], &error);
  moa_options_destroy(options);
  if (!unit) {
    printf("%s", moa_error_message(error));
    return 1;
  }
  CHECK(moa_compilation_input_level(unit) == MOA_LEVEL_MOA);
  CHECK(moa_compilation_kernel_count(unit) == 1);
  checkInterface(moa_compilation_kernel(unit, 0));
  CHECK(!moa_compilation_kernel(unit, 1));
  moa_kernel *kernel = moa_load(unit, "sdpa", &error);
  CHECK(kernel && !error);
  checkTexts(unit);
  checkObject(unit);
  checkQueries(unit);
  moa_compilation_destroy(unit);

  /* The kernel outlives its compilation. */
  checkInterface(moa_kernel_get_info(kernel));
  checkCalls(kernel);
  checkRefusals(kernel);
  moa_kernel_destroy(kernel);
  checkMistakes(words[1]);
  checkTolerance(words[1]);
  checkOptions(words[1], words[2]);
  checkPtx();
  printf("%d checks failed\n", failures);
  return failures != 0;
}
