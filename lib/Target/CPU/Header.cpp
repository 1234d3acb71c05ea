//===- Header.cpp - the C header of kernels for CPUs ----------------------===//

#include "lib/Target/Header.h"
#include "lib/Target/CPU/EntryPoints.h"
#include "llvm/Support/raw_ostream.h"

namespace moa::cpu {

static const char *const kNotes =
    R"( *
 * NAME            runs the kernel on the threads of OpenMP. It allocates no
 *                 memory and may be called from several threads with different
 *                 workspaces; `stream` is ignored on a CPU, pass NULL.
 * NAME_workspace  the bytes `workspace` must have for these arguments and the
 *                 current omp_get_max_threads(), or minus a code. The workspace
 *                 may have any address; its contents do not matter.
 * NAME_check      why a call with these arguments would be refused: a code, and
 *                 the reason with its values in message (at most n bytes, NULL
 *                 to leave it out).
 * NAME_prepare    starts the threads ahead of the first call; device is 0.
 *
 * Strides count elements and may be any that are not negative; an output's
 * elements must not overlap. NULL strides mean row-major, NULL data is allowed
 * for empty arrays, byte_offset is honoured. Booleans are bytes (DLPack's bool
 * or 8-bit uint), 0 or not 0. Results do not depend on the number of threads.
)";

/// Prints the processor and its extensions in lines of at most 80 columns.
static void printProcessor(llvm::raw_ostream &os, const Processor &processor) {
  os << " *\n * Compiled for the processor " << processor.name;
  if (processor.features.empty()) {
    os << ".\n";
    return;
  }
  os << ". On one that lacks any of these,\n * the code of every entry point is "
        "MOA_PROCESSOR:";
  size_t column = 80;
  for (const Feature &feature : processor.features) {
    llvm::StringRef name = feature.name;
    if (column + 1 + name.size() > 80) {
      os << "\n *  ";
      column = 4;
    }
    os << " " << name;
    column += 1 + name.size();
  }
  os << "\n";
}

std::string printHeader(const std::vector<KernelSignature> &kernels, llvm::StringRef guard, const Processor &processor,
                        Binding binding) {
  std::string notes;
  llvm::raw_string_ostream os(notes);
  os << kNotes;
  printProcessor(os, processor);
  return moa::printHeader(kernels, guard, "CPUs", notes, binding);
}

} // namespace moa::cpu
