/*===- moa.h - the compiler from C ---------------------------------*- C -*-===*\
 *
 * The compiler as a shared library with a C99 interface, which other languages can call:
 *
 *   moa_error *error = NULL;
 *   moa_compilation *unit = moa_compile_file(NULL, "sdpa.moa", &error);
 *   moa_kernel *kernel = unit ? moa_load(unit, "sdpa", &error) : NULL;
 *   if (kernel)
 *     code = moa_kernel_call(kernel, arrays, 4, &scale, 1, message, sizeof message);
 *
 * moa/Compiler.h is the same interface in C++.
 *
 * Ownership. A function that returns a moa_options, moa_compilation, moa_kernel, moa_text or
 * moa_error gives it to the caller, who destroys it. NULL may be destroyed. Every other pointer
 * that is returned is borrowed from the argument, and is valid until the argument is destroyed,
 * unless its function says otherwise. Arguments are copied, and none is kept.
 *
 * Strings. All strings are UTF-8 with a final zero. Numbers of bytes leave the final zero out.
 *
 * Errors. A function with a last parameter `moa_error **error` returns NULL after an error. It then
 * stores an error object there, else NULL. An error object that is already there is not destroyed.
 * `error` may be NULL, which drops the object. There are two kinds of errors of a compilation:
 *
 * - MOA_STATUS_COMPILATION: an error in the specification, the options or a pass. Every later query
 *   of the compilation fails too.
 * - MOA_STATUS_QUERY: an error of this query alone. The compilation stays usable.
 *
 * An argument that is NULL or out of range is an error, never a crash. A function without a status
 * or an error object then returns NULL or 0. A pointer to a destroyed object is not detected.
 *
 * No C++ exception leaves a function. Memory that runs out inside of LLVM may end the process.
 *
 * Threads. One thread at a time may use a compilation, or change options. Different compilations
 * are independent. Kernels, texts and errors may be read by several threads, and a kernel may be
 * called by several threads with a workspace each.
 *
\*===----------------------------------------------------------------------===*/
#ifndef MOA_C_MOA_H
#define MOA_C_MOA_H

#include "moa/DLPack.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MOA_API __attribute__((visibility("default")))
#else
#define MOA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The number of this interface. It grows with each addition.
#define MOA_API_VERSION 2

/// Returns the MOA_API_VERSION of the library that is loaded.
MOA_API int32_t moa_api_version(void);
/// Returns the version of the compiler, for example "0.1.0", for as long as the process lives.
MOA_API const char *moa_version_text(void);

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

typedef struct moa_options moa_options;         ///< options of compilations
typedef struct moa_compilation moa_compilation; ///< one compiled specification
typedef struct moa_kernel moa_kernel;           ///< compiled code of one kernel in this process
typedef struct moa_code moa_code;               ///< the code of an object in this process
typedef struct moa_text moa_text;               ///< a text or bytes
typedef struct moa_error moa_error;             ///< the reasons why a call failed
typedef struct moa_diagnostic moa_diagnostic;   ///< one message about the input
typedef struct moa_kernel_info moa_kernel_info; ///< the interface of a kernel
typedef struct moa_parameter moa_parameter;     ///< one parameter of a kernel

/// The outcome of a function.
typedef enum {
  MOA_STATUS_OK = 0,
  MOA_STATUS_ARGUMENT = 1,    ///< an argument is NULL or out of range
  MOA_STATUS_COMPILATION = 2, ///< the specification, the options or a pass failed
  MOA_STATUS_QUERY = 3,       ///< this query failed; the compilation stays usable
  MOA_STATUS_MEMORY = 4,      ///< memory ran out; the compilation may be unusable from then on
  MOA_STATUS_INTERNAL = 5     ///< a fault of the compiler, or the compilation is unusable
} moa_status;

/// The levels of the compiler, in order of lowering up to ONF. From ONF, the levels Lifted, Vector
/// and LLVM lead to a CPU, and Device leads to a GPU.
typedef enum {
  MOA_LEVEL_MOA = 0,
  MOA_LEVEL_DNF = 1,
  MOA_LEVEL_ONF = 2,
  MOA_LEVEL_LIFTED = 3,
  MOA_LEVEL_VECTOR = 4,
  MOA_LEVEL_LLVM = 5,
  MOA_LEVEL_DEVICE = 6
} moa_level;

typedef enum {
  MOA_SEVERITY_ERROR = 0,
  MOA_SEVERITY_WARNING = 1,
  MOA_SEVERITY_REMARK = 2,
  MOA_SEVERITY_NOTE = 3
} moa_severity;

typedef enum { MOA_REPORT_TEXT = 0, MOA_REPORT_JSON = 1 } moa_report_format;

/// The parts of PTX: the kernels for sm_90a, C that holds and launches them by the driver API, and
/// JSON with the facts of every launch.
typedef enum { MOA_PTX_TEXT = 0, MOA_PTX_LAUNCHER = 1, MOA_PTX_MANIFEST = 2 } moa_ptx_part;

typedef enum { MOA_SCALAR_REAL = 0, MOA_SCALAR_INTEGER = 1 } moa_scalar_kind;

/// A scalar argument, converted to the type of its parameter. Floats round to nearest. For an
/// integer parameter, a real is truncated (to 64 bits; NaN is 0), and an integer wraps at the
/// parameter's width. For a bool, any number other than 0 is true.
typedef struct {
  int32_t kind; ///< a moa_scalar_kind
  union {
    double real;
    int64_t integer;
  } value;
} moa_scalar;

/// The error that a result may have, as in `within 3e-2 relative sampled`.
typedef struct {
  double epsilon;
  bool is_relative; ///< of the norm of the result, otherwise of each element
  bool is_sampled;  ///< estimated on a random sample, otherwise bounded for every input
} moa_tolerance;

/// Codes of calls are those of emitted headers (moa/DLPack.h, docs/Calling.md). MOA_NULL_DESCRIPTOR is
/// also that of a wrong number of arguments, and MOA_WORKSPACE of too little memory for a workspace.

//===----------------------------------------------------------------------===//
// Errors and diagnostics
//===----------------------------------------------------------------------===//

/// Returns the kind of the error; MOA_STATUS_OK for NULL.
MOA_API moa_status moa_error_code(const moa_error *error);
/// Returns the error as text. For each diagnostic it has file, line, column, the source line and a
/// caret.
MOA_API const char *moa_error_message(const moa_error *error);
/// Returns the number of diagnostics of the call that failed, which are errors and warnings. There
/// are none if an argument was wrong or memory ran out.
MOA_API size_t moa_error_diagnostic_count(const moa_error *error);
/// Returns the diagnostic with a number from 0, or NULL.
MOA_API const moa_diagnostic *moa_error_diagnostic(const moa_error *error, size_t index);
MOA_API void moa_error_destroy(moa_error *error);

/// Returns the severity; MOA_SEVERITY_ERROR for NULL.
MOA_API moa_severity moa_diagnostic_severity(const moa_diagnostic *diagnostic);
/// Returns the name of the file, or "" if the message has no place.
MOA_API const char *moa_diagnostic_file(const moa_diagnostic *diagnostic);
/// Returns the line, counted from 1, or 0 if the message has no place.
MOA_API uint32_t moa_diagnostic_line(const moa_diagnostic *diagnostic);
/// Returns the column in bytes, counted from 1, or 0 if the message has no place.
MOA_API uint32_t moa_diagnostic_column(const moa_diagnostic *diagnostic);
MOA_API const char *moa_diagnostic_message(const moa_diagnostic *diagnostic);
/// Returns the number of notes that belong to the diagnostic.
MOA_API size_t moa_diagnostic_note_count(const moa_diagnostic *diagnostic);
/// Returns the note with a number from 0, or NULL.
MOA_API const moa_diagnostic *moa_diagnostic_note(const moa_diagnostic *diagnostic, size_t index);

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// Returns the bytes of the text. A zero follows them.
MOA_API const char *moa_text_data(const moa_text *text);
/// Returns the number of bytes, without the final zero.
MOA_API size_t moa_text_size(const moa_text *text);
MOA_API void moa_text_destroy(moa_text *text);

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//
//
// A setter returns MOA_STATUS_OK, MOA_STATUS_ARGUMENT or MOA_STATUS_MEMORY. After an error the
// options are unchanged. A text that is NULL is the default, the empty text, if nothing else is
// said. The compiler checks the contents of texts, when it uses the options.

/// Returns options with the defaults, or NULL if memory runs out.
MOA_API moa_options *moa_options_create(void);
MOA_API void moa_options_destroy(moa_options *options);

/// Adds the value of a compile-time parameter, for example "D=64" or "T=f16"; not NULL.
MOA_API moa_status moa_options_add_setting(moa_options *options, const char *setting);
/// Sets the schedule, a text as moa_compilation_schedule returns it. By default the cost model
/// chooses. `file` is the name of its file in errors.
MOA_API moa_status moa_options_set_schedule(moa_options *options, const char *text, const char *file);
/// Sets the LLVM name of the processor of moa_compilation_object, by default this machine's.
MOA_API moa_status moa_options_set_processor(moa_options *options, const char *processor);
/// Sets the architecture of the GPU that the level Lifted, the schedule and the header are for, for
/// example "sm_90a". By default they are for a CPU, and the level Device is for sm_90a.
MOA_API moa_status moa_options_set_architecture(moa_options *options, const char *architecture);
/// Sets LLVM's optimisation level for CPU code, 0 to 3, by default 1. All yield the same results.
MOA_API moa_status moa_options_set_optimization(moa_options *options, uint32_t level);
/// Records the derivation for moa_compilation_explain; by default false.
MOA_API moa_status moa_options_set_explain(moa_options *options, bool explain);
/// Sets the directory to which every level is written when it is reached, by default none.
MOA_API moa_status moa_options_set_dump_directory(moa_options *options, const char *directory);

// Tolerances, and the variants that may be computed within them (docs/Accuracy/Guide.md). Without
// these setters, kernels are unmodified, and calls check the tolerances of the specification that
// hold for every input.

/// Adds the tolerance of a result, in place of that of the specification, for example
/// "O=3e-2,relative,sampled"; not NULL.
MOA_API moa_status moa_options_add_tolerance(moa_options *options, const char *tolerance);
/// Evaluates in each call the bounds of tolerances that hold for every input; by default true. A
/// call returns MOA_NOT_SHOWN if a bound exceeds its tolerance.
MOA_API moa_status moa_options_set_checks_tolerances(moa_options *options, bool checks);
/// Adds mixed-precision variants; by default false. They are also there if decisions are asked for
/// or given.
MOA_API moa_status moa_options_set_mixed_precision(moa_options *options, bool mixed);
/// Sets the number of rows and keys from which mixed-precision variants are tried, at least 256 and
/// by default 256; 0: from where they pay by the cost models.
MOA_API moa_status moa_options_set_mixed_precision_from(moa_options *options, int64_t count);
/// Sets the number of multiply-adds of a head from which a pilot is run on a GPU; −1, the default:
/// where the number of moa_options_set_mixed_precision_from is 0 and it pays.
MOA_API moa_status moa_options_set_pilot_from(moa_options *options, int64_t operations);
/// Uses the variants of a GPU, whatever the target; by default false.
MOA_API moa_status moa_options_set_variants_of_gpu(moa_options *options, bool uses);
/// Sets the number of rows and keys from which few keys may stand for many near them, at least 256;
/// 0, the default: never. On a GPU it pays from 32,768.
MOA_API moa_status moa_options_set_low_rank_from(moa_options *options, int64_t count);
/// Returns the decisions, and the estimates they follow from, as further results of a kernel; by
/// default false.
MOA_API moa_status moa_options_set_decisions(moa_options *options, bool decisions);
/// Sets decisions taken beforehand, the text of a file that `moa-run --calibrate` writes. By
/// default they are taken when a kernel runs. `file` is the name of the file in errors.
MOA_API moa_status moa_options_set_plans(moa_options *options, const char *text, const char *file);
/// Estimates the error of given decisions too, and replaces those that exceed the tolerance; by
/// default false.
MOA_API moa_status moa_options_set_checks_plans(moa_options *options, bool checks);
/// Warns, with the reason, if no variant can be used for any input size; by default false.
MOA_API moa_status moa_options_set_warns_if_unused(moa_options *options, bool warns);

//===----------------------------------------------------------------------===//
// Compilations
//===----------------------------------------------------------------------===//

/// Compiles a specification. `options` may be NULL, for the defaults, and may change later. `name`
/// is the file in diagnostics; NULL is "input.moa". If it ends in `.mlir`, the text is IR of a
/// level up to Lifted, or of Device.
MOA_API moa_compilation *moa_compile_text(const moa_options *options, const char *text, const char *name,
                                          moa_error **error);
/// Does the same for a file; "-" is standard input.
MOA_API moa_compilation *moa_compile_file(const moa_options *options, const char *path, moa_error **error);
/// Destroys a compilation. Its kernels, texts and errors stay valid.
MOA_API void moa_compilation_destroy(moa_compilation *compilation);

/// Returns the level of the input; MOA_LEVEL_MOA for a specification and for NULL.
MOA_API moa_level moa_compilation_input_level(const moa_compilation *compilation);
/// Returns the number of diagnostics so far, with warnings, remarks and errors of queries.
MOA_API size_t moa_compilation_diagnostic_count(const moa_compilation *compilation);
/// Returns the diagnostic with a number from 0, or NULL. It is valid until the next call with the
/// compilation.
MOA_API const moa_diagnostic *moa_compilation_diagnostic(const moa_compilation *compilation, size_t index);
/// Returns all diagnostics as one text, each with its source line and a caret. Remarks are
/// optional.
MOA_API moa_text *moa_compilation_diagnostics(const moa_compilation *compilation, bool remarks, moa_error **error);

// Work is done on demand and cached: printing a level runs the passes up to it once. Texts belong
// to the caller.

/// Prints a level, a moa_level, as text that moa-opt reads back (LLVM: LLVM IR).
MOA_API moa_text *moa_compilation_print(moa_compilation *compilation, int32_t level, moa_error **error);
/// Prints the normal forms dnf and onf of every kernel as readable mathematics.
MOA_API moa_text *moa_compilation_mathematics(moa_compilation *compilation, moa_error **error);
/// Explains how the kernels were derived. Requires moa_options_set_explain.
MOA_API moa_text *moa_compilation_explain(moa_compilation *compilation, moa_error **error);
/// Returns CUDA C++ of all kernels, as one self-contained file.
MOA_API moa_text *moa_compilation_cuda(moa_compilation *compilation, moa_error **error);
/// Returns one part, a moa_ptx_part, of the PTX of all kernels. The other parts are kept for later
/// calls.
MOA_API moa_text *moa_compilation_ptx(moa_compilation *compilation, int32_t part, moa_error **error);
/// Returns all kernels as machine code for sm_90a. Needs the ptxas of a CUDA toolkit at run time.
MOA_API moa_text *moa_compilation_cubin(moa_compilation *compilation, moa_error **error);
/// Returns object code for the processor of the options.
MOA_API moa_text *moa_compilation_object(moa_compilation *compilation, moa_error **error);
/// Returns the C header of the entry points: those of the object or, if the options name a GPU
/// architecture, those of the CUDA C++ and of the PTX launcher.
MOA_API moa_text *moa_compilation_header(moa_compilation *compilation, moa_error **error);
/// Returns the manifest, a JSON description of the same entry points (docs/Calling.md).
MOA_API moa_text *moa_compilation_manifest(moa_compilation *compilation, moa_error **error);
/// Returns the schedule of the lifted level, which can be edited and read back.
MOA_API moa_text *moa_compilation_schedule(moa_compilation *compilation, moa_error **error);
/// Reports data movement, workspace, schedule and findings of the derivation, in a
/// moa_report_format. `names` and `values` are `count` symbols with their values; `count` may be 0.
/// With all symbols, every polynomial is followed by its value. Values of only some symbols are an
/// error.
MOA_API moa_text *moa_compilation_report(moa_compilation *compilation, int32_t format, const char *const *names,
                                         const int64_t *values, size_t count, moa_error **error);

//===----------------------------------------------------------------------===//
// Interfaces of kernels
//===----------------------------------------------------------------------===//

/// Returns the number of kernels of the specification.
MOA_API size_t moa_compilation_kernel_count(const moa_compilation *compilation);
/// Returns the kernel with a number from 0, in the order of the specification, or NULL.
MOA_API const moa_kernel_info *moa_compilation_kernel(const moa_compilation *compilation, size_t index);

MOA_API const char *moa_kernel_info_name(const moa_kernel_info *info);
/// Returns the interface as one line in the syntax of the specification.
MOA_API const char *moa_kernel_info_text(const moa_kernel_info *info);
/// Returns the number of symbols, the sizes that follow from the shapes of a call.
MOA_API size_t moa_kernel_info_symbol_count(const moa_kernel_info *info);
/// Returns the name of the symbol with a number from 0, or NULL.
MOA_API const char *moa_kernel_info_symbol(const moa_kernel_info *info, size_t index);
MOA_API size_t moa_kernel_info_constraint_count(const moa_kernel_info *info);
/// Returns the constraint on the symbols with a number from 0, or NULL.
MOA_API const char *moa_kernel_info_constraint(const moa_kernel_info *info, size_t index);
/// Returns the number of parameters, inputs and outputs.
MOA_API size_t moa_kernel_info_parameter_count(const moa_kernel_info *info);
/// Returns the parameter with a number from 0, inputs then outputs, or NULL.
MOA_API const moa_parameter *moa_kernel_info_parameter(const moa_kernel_info *info, size_t index);
/// Returns the number of arrays that a call takes, inputs and outputs.
MOA_API size_t moa_kernel_info_array_count(const moa_kernel_info *info);
/// Returns the number of scalars that a call takes.
MOA_API size_t moa_kernel_info_scalar_count(const moa_kernel_info *info);

MOA_API const char *moa_parameter_name(const moa_parameter *parameter);
/// Returns "f64", "f32", "bf16", "f16", "bool", "i8" … "i64" or "u8" … "u32".
MOA_API const char *moa_parameter_element_type(const moa_parameter *parameter);
/// Returns the number of axes.
MOA_API size_t moa_parameter_extent_count(const moa_parameter *parameter);
/// Returns the extent of an axis, counted from 0, as an expression over the symbols, or NULL.
MOA_API const char *moa_parameter_extent(const moa_parameter *parameter, size_t axis);
/// Returns the name of the extent of an axis if it is a compile-time constant with a name, else "";
/// NULL if there is no such axis.
MOA_API const char *moa_parameter_constant(const moa_parameter *parameter, size_t axis);
/// Returns the declared range of the elements, `low..high`, or "".
MOA_API const char *moa_parameter_range(const moa_parameter *parameter);
MOA_API bool moa_parameter_is_output(const moa_parameter *parameter);
/// Returns true for an input without axes, which a call takes as a moa_scalar.
MOA_API bool moa_parameter_is_scalar(const moa_parameter *parameter);
/// Returns true if an output has a tolerance, and stores it; `tolerance` may be NULL.
MOA_API bool moa_parameter_tolerance(const moa_parameter *parameter, moa_tolerance *tolerance);
/// Returns the result that an output with decisions is about, or "".
MOA_API const char *moa_parameter_decision_of(const moa_parameter *parameter);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//
//
// `arrays` are the descriptors of the array parameters, inputs then outputs. `scalars` are the
// scalar parameters in order. Both may be NULL if their number is 0. Arrays are memory of this CPU.
//
// The functions return a code of MOA_CODES. The reason for a code other than MOA_OK is written into
// `message`, of `size` bytes with the final zero, and is cut to fit. Otherwise it is empty. It may
// be NULL. A NULL kernel and a wrong number of arguments have the code MOA_NULL_DESCRIPTOR.

/// Compiles a kernel for this machine and loads it into this process. `name` may be NULL or empty
/// if there is one kernel. The kernel does not need the compilation any more.
MOA_API moa_kernel *moa_load(moa_compilation *compilation, const char *name, moa_error **error);
/// Frees the code of a kernel, which nothing may be running.
MOA_API void moa_kernel_destroy(moa_kernel *kernel);
/// Returns the interface of a kernel.
MOA_API const moa_kernel_info *moa_kernel_get_info(const moa_kernel *kernel);

MOA_API moa_scalar moa_scalar_real(double value);
MOA_API moa_scalar moa_scalar_integer(int64_t value);

/// Runs the kernel and then moa_kernel_shown, with a workspace of its own. Outputs are written only
/// for the codes MOA_OK and MOA_NOT_SHOWN.
MOA_API int32_t moa_kernel_call(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                                const moa_scalar *scalars, size_t scalar_count, char *message, size_t size);
/// Returns the code with which a call would be refused, or MOA_OK. Runs nothing.
MOA_API int32_t moa_kernel_check(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                                 const moa_scalar *scalars, size_t scalar_count, char *message, size_t size);
/// Returns the bytes of workspace for these arguments, or a negated code.
MOA_API int64_t moa_kernel_workspace(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                                     const moa_scalar *scalars, size_t scalar_count, char *message, size_t size);
/// Runs the kernel with the caller's workspace of `bytes` bytes, at any address. Makes no large
/// allocations. After MOA_NOT_SHOWN, moa_kernel_shown gives the reason.
MOA_API int32_t moa_kernel_run(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                               const moa_scalar *scalars, size_t scalar_count, void *workspace, size_t bytes,
                               char *message, size_t size);
/// Checks the tolerances of a run with the same arguments and workspace, which it may modify.
/// Returns MOA_NOT_SHOWN if a result may exceed its tolerance.
MOA_API int32_t moa_kernel_shown(const moa_kernel *kernel, const DLTensor *const *arrays, size_t array_count,
                                 const moa_scalar *scalars, size_t scalar_count, void *workspace, size_t bytes,
                                 char *message, size_t size);

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//
//
// An object of moa_compilation_object can be kept in a file, and loaded later without a compilation
// or a linker. The manifest says which functions it has. moa_program_load_functions of the run-time
// library calls them.

/// Loads an object of moa_compilation_object into this process. `object` has `bytes` bytes, which
/// are copied. The object must be for a processor with the instructions of this one or fewer.
MOA_API moa_code *moa_load_object(const void *object, size_t bytes, moa_error **error);
/// Returns the address of a function, for example "sdpa_check". It is valid until the code is
/// destroyed. The first call links the code. Several threads may call it.
MOA_API void *moa_code_function(const moa_code *code, const char *name, moa_error **error);
/// Frees the code, which nothing may be running.
MOA_API void moa_code_destroy(moa_code *code);

#ifdef __cplusplus
}
#endif

#endif /* MOA_C_MOA_H */
