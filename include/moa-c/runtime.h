/*===- runtime.h - the run-time library of kernels -----------------*- C -*-===*\
 *
 * Loads kernels that moa-codegen wrote, checks arguments and launches. No
 * compiler is needed: the manifest (docs/Calling.md) is read and executed.
 *
 *   moa-codegen NAME.moa --target=ptx -o NAME.ptx
 *   moa-codegen NAME.moa --target=cpu -o NAME.o --manifest NAME.json
 *
 * Codes, messages and the order of checks are those of the emitted entry
 * points (docs/Calling.md). All checks precede the first launch.
 *
 * Messages. A function that takes `message` writes at most n bytes there, with
 * the final zero: the reason of a code, or an empty text. message may be NULL.
 *
 * Ownership. The caller owns everything that it passes. The library allocates
 * memory when a program is loaded and when a device first uses it. A call
 * allocates none. Memory of a device is never allocated, except by the driver
 * for the code of the kernels. Names and functions live as long as their
 * program.
 *
 * Threads. All functions may be called from several threads at a time, with a
 * workspace each. moa_program_destroy must be the last use of a program.
 *
 * Units. Strides count elements; sizes of memory are bytes.
 *
\*===----------------------------------------------------------------------===*/
#ifndef MOA_C_RUNTIME_H
#define MOA_C_RUNTIME_H

#include "moa/DLPack.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It grows when a function is added. */
#define MOA_RUNTIME_VERSION 2

#ifdef __GNUC__
#define MOA_API __attribute__((visibility("default")))
#else
#define MOA_API
#endif

/* Codes of this library alone; moa/DLPack.h has those of emitted entry points. */
enum {
  MOA_PROGRAM = 16 /* the manifest, image or library cannot be used */
};

typedef struct moa_program moa_program;   /* the kernels of one specification */
typedef struct moa_function moa_function; /* one kernel */

/* A scalar argument: f for f64, f32, bf16 and f16, i for integers and bool. f
 * is rounded to float first, unless the parameter is f64. An integer that does
 * not fit the parameter is refused with MOA_DTYPE. */
typedef union {
  double f;
  int64_t i;
} moa_value;

enum { MOA_INPUT = 0, MOA_SCALAR = 1, MOA_OUTPUT = 2 };

typedef struct {
  const char *name;
  const char *type;  /* f64 f32 bf16 f16 bool i8 i16 i32 i64 u8 u16 u32 */
  const char *shape; /* expressions over the symbols: "B, H, N, 128" */
  int32_t role;      /* MOA_INPUT, MOA_SCALAR or MOA_OUTPUT */
  int32_t rank;      /* number of axes */
  DLDataType dtype;  /* of arrays; the type without rounding, of scalars */
} moa_argument;

/* Returns MOA_RUNTIME_VERSION of the library that is loaded. */
MOA_API int32_t moa_runtime_version(void);

/* Loads kernels for a GPU: PTX or a cubin of `bytes` bytes, which are copied,
 * and the text of their manifest. Uses nothing of CUDA, and needs no GPU. */
MOA_API int32_t moa_program_load_gpu(const void *image, size_t bytes, const char *manifest, moa_program **program,
                                     char *message, size_t n);

/* Loads kernels for a CPU: the path of a shared library that was linked from
 * the object, and the text of its manifest. A path without a slash is searched
 * for as in dlopen. The library's code stays in the process. */
MOA_API int32_t moa_program_load_cpu(const char *library, const char *manifest, moa_program **program, char *message,
                                     size_t n);

/* Does the same for code that is in this process already. `find` returns the
 * address of an entry point, for example "sdpa_check", or NULL. It is given
 * `context`, and is not called after this function has returned. The code must
 * stay until the program is destroyed. */
typedef void *(*moa_finder)(void *context, const char *name);
MOA_API int32_t moa_program_load_functions(moa_finder find, void *context, const char *manifest, moa_program **program,
                                           char *message, size_t n);

/* Frees a program and unloads its code. No kernel of it may still run. NULL is
 * allowed. */
MOA_API void moa_program_destroy(moa_program *program);

/* The kernels of a program, from 0 to moa_program_count - 1. moa_program_name
 * and moa_program_function return NULL beyond that, and moa_program_find if no
 * kernel has the name. */
MOA_API size_t moa_program_count(const moa_program *program);
MOA_API const char *moa_program_name(const moa_program *program, size_t number);
MOA_API const moa_function *moa_program_function(const moa_program *program, size_t number);
MOA_API const moa_function *moa_program_find(const moa_program *program, const char *name);

/* The parameters: inputs in order of the specification, then outputs. Returns
 * 0, or MOA_RANK if there is no such number. */
MOA_API size_t moa_function_parameters(const moa_function *function);
MOA_API int32_t moa_function_parameter(const moa_function *function, size_t number, moa_argument *parameter);

/* `arrays` has the descriptors of all parameters but the scalars, in order;
 * `scalars` has the scalars in order. Either may be NULL if there are none.
 * Descriptors are not written, and may be freed when the function returns. */

/* Finds the shapes of the outputs from the inputs: reads rank, element type and
 * shape of the input arrays, of which `arrays` needs no more. shapes[k] points
 * to room for the extents of output k. */
MOA_API int32_t moa_function_shapes(const moa_function *function, const DLTensor *const *arrays, int64_t *const *shapes,
                                    char *message, size_t n);

/* NAME_check: the code of a call with these arguments. Launches nothing. */
MOA_API int32_t moa_function_check(const moa_function *function, const DLTensor *const *arrays,
                                   const moa_value *scalars, char *message, size_t n);

/* NAME_workspace: the bytes of workspace that a call needs, or minus a code. */
MOA_API int64_t moa_function_workspace(const moa_function *function, const DLTensor *const *arrays,
                                       const moa_value *scalars, char *message, size_t n);

/* NAME: checks the arguments, then runs (CPU) or puts the kernels into `stream`
 * and returns without waiting (GPU). stream is a cudaStream_t or CUstream of the
 * current device, ignored on a CPU. On a GPU the workspace starts at a multiple
 * of 64 bytes; it and the arrays must stay until the stream has passed. */
MOA_API int32_t moa_function_call(const moa_function *function, const DLTensor *const *arrays, const moa_value *scalars,
                                  void *workspace, size_t bytes, void *stream, char *message, size_t n);

/* NAME_shown: whether bounds of a call are within the tolerances. Waits for the
 * stream. On a CPU it follows the call. Without NAME_shown (moa_function_has_shown
 * is 0), it checks the arguments and returns what no input could change. */
MOA_API int32_t moa_function_has_shown(const moa_function *function);
MOA_API int32_t moa_function_shown(const moa_function *function, const DLTensor *const *arrays,
                                   const moa_value *scalars, void *workspace, size_t bytes, void *stream, char *message,
                                   size_t n);

/* NAME_prepare: the one-time work of the first call, for a device. Calls may be
 * captured in CUDA graphs after it. */
MOA_API int32_t moa_function_prepare(const moa_function *function, int32_t device, char *message, size_t n);

#ifdef __cplusplus
}
#endif

#endif /* MOA_C_RUNTIME_H */
