/* NULL and values out of range, for every function: an error, NULL or 0, and no crash. */
#include "check.h"

static void checkReaders(void) {
  CHECK(moa_error_code(NULL) == MOA_STATUS_OK);
  CHECK(!moa_error_message(NULL) && !moa_error_diagnostic_count(NULL) && !moa_error_diagnostic(NULL, 0));
  CHECK(moa_diagnostic_severity(NULL) == MOA_SEVERITY_ERROR);
  CHECK(!moa_diagnostic_file(NULL) && !moa_diagnostic_line(NULL) && !moa_diagnostic_column(NULL));
  CHECK(!moa_diagnostic_message(NULL) && !moa_diagnostic_note_count(NULL) && !moa_diagnostic_note(NULL, 0));
  CHECK(!moa_text_data(NULL) && !moa_text_size(NULL));
  CHECK(moa_compilation_input_level(NULL) == MOA_LEVEL_MOA);
  CHECK(!moa_compilation_diagnostic_count(NULL) && !moa_compilation_diagnostic(NULL, 0));
  CHECK(!moa_compilation_kernel_count(NULL) && !moa_compilation_kernel(NULL, 0));
  CHECK(!moa_kernel_info_name(NULL) && !moa_kernel_info_text(NULL));
  CHECK(!moa_kernel_info_symbol_count(NULL) && !moa_kernel_info_symbol(NULL, 0));
  CHECK(!moa_kernel_info_constraint_count(NULL) && !moa_kernel_info_constraint(NULL, 0));
  CHECK(!moa_kernel_info_parameter_count(NULL) && !moa_kernel_info_parameter(NULL, 0));
  CHECK(!moa_kernel_info_array_count(NULL) && !moa_kernel_info_scalar_count(NULL));
  CHECK(!moa_parameter_name(NULL) && !moa_parameter_element_type(NULL) && !moa_parameter_extent_count(NULL));
  CHECK(!moa_parameter_extent(NULL, 0) && !moa_parameter_constant(NULL, 0) && !moa_parameter_range(NULL));
  CHECK(!moa_parameter_is_output(NULL) && !moa_parameter_is_scalar(NULL));
  CHECK(!moa_parameter_tolerance(NULL, NULL) && !moa_parameter_decision_of(NULL));
  CHECK(!moa_kernel_get_info(NULL));
}

static void checkDestroyers(void) {
  moa_error_destroy(NULL);
  moa_text_destroy(NULL);
  moa_options_destroy(NULL);
  moa_compilation_destroy(NULL);
  moa_kernel_destroy(NULL);
  moa_code_destroy(NULL);
}

static void checkOptions(moa_options *options, moa_status status) {
  CHECK(moa_options_set_schedule(options, NULL, NULL) == status);
  CHECK(moa_options_set_processor(options, NULL) == status);
  CHECK(moa_options_set_architecture(options, NULL) == status);
  CHECK(moa_options_set_optimization(options, 3) == status);
  CHECK(moa_options_set_explain(options, false) == status);
  CHECK(moa_options_set_dump_directory(options, NULL) == status);
  CHECK(moa_options_set_checks_tolerances(options, true) == status);
  CHECK(moa_options_set_mixed_precision(options, false) == status);
  CHECK(moa_options_set_mixed_precision_from(options, 0) == status);
  CHECK(moa_options_set_pilot_from(options, -1) == status);
  CHECK(moa_options_set_variants_of_gpu(options, false) == status);
  CHECK(moa_options_set_low_rank_from(options, 0) == status);
  CHECK(moa_options_set_decisions(options, false) == status);
  CHECK(moa_options_set_plans(options, NULL, NULL) == status);
  CHECK(moa_options_set_checks_plans(options, false) == status);
  CHECK(moa_options_set_warns_if_unused(options, false) == status);
}

static void checkRanges(moa_options *options) {
  CHECK(moa_options_add_setting(NULL, "D=8") == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_add_setting(options, NULL) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_add_tolerance(NULL, "O=1") == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_add_tolerance(options, NULL) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_optimization(options, 4) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_mixed_precision_from(options, 255) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_mixed_precision_from(options, 256) == MOA_STATUS_OK);
  CHECK(moa_options_set_pilot_from(options, -2) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_low_rank_from(options, 255) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_low_rank_from(options, -1) == MOA_STATUS_ARGUMENT);
  CHECK(moa_options_set_low_rank_from(options, 0) == MOA_STATUS_OK);
}

static void checkQueries(void) {
  moa_error *error = NULL;
  static const char isNull[] = "the compilation is NULL";
  CHECK(!moa_compile_text(NULL, NULL, NULL, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the text of the specification is NULL");
  CHECK(!moa_compile_file(NULL, NULL, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the path of the specification is NULL");
  CHECK(!moa_compile_file(NULL, NULL, NULL));
#define CHECK_NULL(call) (CHECK(!(call)), CHECK_ERROR(MOA_STATUS_ARGUMENT, isNull))
  CHECK_NULL(moa_compilation_diagnostics(NULL, true, &error));
  CHECK_NULL(moa_compilation_print(NULL, MOA_LEVEL_MOA, &error));
  CHECK_NULL(moa_compilation_mathematics(NULL, &error));
  CHECK_NULL(moa_compilation_explain(NULL, &error));
  CHECK_NULL(moa_compilation_cuda(NULL, &error));
  CHECK_NULL(moa_compilation_ptx(NULL, MOA_PTX_TEXT, &error));
  CHECK_NULL(moa_compilation_cubin(NULL, &error));
  CHECK_NULL(moa_compilation_object(NULL, &error));
  CHECK_NULL(moa_compilation_header(NULL, &error));
  CHECK_NULL(moa_compilation_schedule(NULL, &error));
  CHECK_NULL(moa_compilation_manifest(NULL, &error));
  CHECK_NULL(moa_compilation_report(NULL, MOA_REPORT_TEXT, NULL, NULL, 0, &error));
  CHECK_NULL(moa_load(NULL, NULL, &error));
  CHECK(!moa_load(NULL, NULL, NULL));
  CHECK(!moa_load_object(NULL, 1, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the object is NULL");
  CHECK(!moa_load_object("", 0, &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the object is empty");
  CHECK(!moa_code_function(NULL, "f", &error));
  CHECK_ERROR(MOA_STATUS_ARGUMENT, "the code is NULL");
  CHECK(!moa_code_function(NULL, "f", NULL));
  CHECK(moa_kernel_call(NULL, NULL, 0, NULL, 0, NULL, 0) == MOA_NULL_DESCRIPTOR);
  CHECK(moa_kernel_check(NULL, NULL, 0, NULL, 0, NULL, 0) == MOA_NULL_DESCRIPTOR);
  CHECK(moa_kernel_workspace(NULL, NULL, 0, NULL, 0, NULL, 0) == -MOA_NULL_DESCRIPTOR);
  CHECK(moa_kernel_run(NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0) == MOA_NULL_DESCRIPTOR);
  CHECK(moa_kernel_shown(NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0) == MOA_NULL_DESCRIPTOR);
}

/* The defaults of all parameters: a kernel without scalars, and options that are reset. */
static void checkDefaults(const moa_options *options) {
  moa_error *error = NULL;
  static const char text[] = "kernel norm[N](x : f32[N]) -> y : f32[N] require N % 2 == 0 { y = softmax(x) }\n";
  moa_compilation *unit = moa_compile_text(options, text, NULL, &error);
  CHECK(unit && !error);
  CHECK(moa_kernel_info_constraint_count(moa_compilation_kernel(unit, 0)) == 1);
  CHECK_TEXT(moa_kernel_info_constraint(moa_compilation_kernel(unit, 0), 0), "N % 2 == 0");
  CHECK(!moa_compilation_explain(unit, &error));
  CHECK_ERROR(MOA_STATUS_QUERY, "error: ");
  moa_kernel *kernel = moa_load(unit, "", &error);
  CHECK(kernel && !error);
  CHECK(!moa_compile_text(options, "kernel", NULL, &error));
  CHECK_ERROR(MOA_STATUS_COMPILATION, "input.moa:1:");
  moa_kernel_destroy(kernel);
  moa_compilation_destroy(unit);
}

int main(void) {
  checkReaders();
  checkDestroyers();
  checkOptions(NULL, MOA_STATUS_ARGUMENT);
  moa_options *options = moa_options_create();
  checkOptions(options, MOA_STATUS_OK);
  checkRanges(options);
  checkQueries();
  checkDefaults(options);
  checkDefaults(NULL);
  moa_options_destroy(options);
  printf("%d checks failed\n", failures);
  return failures != 0;
}
