//===- Header.cpp - the C header of kernels for GPUs ----------------------===//

#include "lib/Target/GPU/Header.h"
#include "lib/Target/Header.h"

namespace moa::gpu {

static const char *const kNotes =
    R"( *
 * NAME            checks the arguments, puts the kernels into `stream` (a
 *                 cudaStream_t or CUstream of the current device; NULL is the
 *                 default stream) and returns without waiting for them. It
 *                 allocates no memory and may be called from several threads.
 *                 Descriptors may go when it returns; the arrays stay until the
 *                 stream has passed the kernels, and so does the workspace:
 *                 memory of the device at a multiple of 64 bytes, or NULL and 0
 *                 where none is needed.
 * NAME_workspace  the bytes `workspace` must have for these arguments, often 0,
 *                 or minus a code.
 * NAME_check      why a call with these arguments would be refused: a code, and
 *                 the reason with its values in message (at most n bytes, NULL
 *                 to leave it out). It launches nothing.
 * NAME_prepare    makes the device ready ahead of the first call. Calls may be
 *                 captured in graphs after it.
 *
 * Strides count elements and may be any that are not negative; an output's
 * elements must not overlap. Arrays that a kernel copies by tiles have adjacent
 * elements on their last axis, and addresses and other strides of whole 16
 * bytes. NULL strides mean row-major, NULL data is allowed for empty arrays,
 * byte_offset is honoured. Booleans are bytes (DLPack's bool or 8-bit uint), 0
 * or not 0. Link the output of --target=cuda or --target=ptx.
)";

std::string printHeader(llvm::ArrayRef<KernelSignature> kernels, llvm::StringRef guard, Binding binding) {
  return moa::printHeader(kernels, guard, "GPUs (sm_90a)", kNotes, binding);
}

} // namespace moa::gpu
