//===- Header.cpp - the C header of emitted kernels -----------------------===//

#include "lib/Target/CNames.h"
#include "lib/Target/CPU/EntryPoints.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace moa::cpu {

static const char *const kPreamble =
    R"(#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DLPack's descriptor (https://dmlc.github.io/dlpack). Include dlpack.h before
 * this file to use the original declarations. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_
typedef struct {
  int32_t device_type; /* 1: CPU */
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: row-major */
  uint64_t byte_offset;
} DLTensor;
#endif

/* What an entry point returns. Any other code than MOA_OK: nothing was
 * written. */
#ifndef MOA_CODES
#define MOA_CODES
enum {
  MOA_OK = 0,
  MOA_NULL_DESCRIPTOR = 1, /* a descriptor or its shape is NULL */
  MOA_RANK = 2,            /* wrong number of axes */
  MOA_DTYPE = 3,           /* wrong element type */
  MOA_SHAPE = 4,           /* extents disagree with each other */
  MOA_CONSTRAINT = 5,      /* a `require` of the specification is false */
  MOA_STRIDES = 6,         /* negative, or an output overlaps itself */
  MOA_ALIGNMENT = 7,       /* data is not aligned to the element size */
  MOA_DEVICE = 8,          /* not memory of this CPU */
  MOA_NULL_DATA = 9,       /* data is NULL, but the array is not empty */
  MOA_OVERLAP = 10,        /* an output overlaps another array */
  MOA_WORKSPACE = 11,      /* NULL, too small, or not aligned to 64 bytes */
  MOA_OVERFLOW = 12,       /* a size exceeds 64 bits */
  MOA_PROCESSOR = 13       /* it lacks instructions that the code uses */
};
#endif
)";

static const char *const kNotes =
    R"( *
 * NAME            runs the kernel on the threads of OpenMP. It allocates no
 *                 memory and may be called from several threads with different
 *                 workspaces; `stream` is ignored on a CPU, pass NULL.
 * NAME_workspace  the bytes `workspace` must have for these arguments and the
 *                 current omp_get_max_threads(), or minus a code. The workspace
 *                 is aligned to 64 bytes; its contents do not matter.
 * NAME_check      why a call with these arguments would be refused: a code, and
 *                 the reason with its values in message (at most n bytes, NULL
 *                 to leave it out).
 * NAME_prepare    starts the threads ahead of the first call; device is 0.
 *
 * Strides count elements and may be any that are not negative; an output's
 * elements must not overlap. NULL strides mean row-major, NULL data is allowed
 * for empty arrays, byte_offset is honoured. Booleans are bytes (DLPack's bool
 * or 8-bit uint), 0 or not 0. Results do not depend on the number of threads.
 *
 * This file and the object it describes were written by a compiler; they carry
 * no licence obligation.
)";

/// A parameter's name as C and C++ allow it, apart from ours.
static std::string getCName(llvm::StringRef name) {
  static const llvm::StringSet<> ours = {"bytes", "device", "message",
                                         "n",     "stream", "workspace"};
  bool taken = isReservedWord(name) || ours.contains(name);
  return taken ? (name + "_").str() : name.str();
}

/// The kernel's own parameters as C declares them, in calling order.
static std::vector<std::string> getCParameters(const KernelSignature &kernel) {
  std::vector<std::string> inputs, scalars, outputs;
  for (const Parameter &parameter : kernel.parameters) {
    std::string name = getCName(parameter.name);
    if (parameter.isScalar())
      scalars.push_back((getScalarCType(parameter.type) + " " + name).str());
    else
      (parameter.isOutput ? outputs : inputs)
          .push_back("const DLTensor *" + name);
  }
  inputs.insert(inputs.end(), scalars.begin(), scalars.end());
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  return inputs;
}

/// One declaration, broken into lines of at most 80 columns.
static void printDeclaration(llvm::raw_ostream &os, llvm::StringRef result,
                             const std::string &name,
                             std::vector<std::string> parameters,
                             std::vector<std::string> more) {
  parameters.insert(parameters.end(), more.begin(), more.end());
  std::string line = (result + " " + name + "(").str();
  size_t indent = line.size();
  for (auto [k, parameter] : llvm::enumerate(parameters)) {
    bool last = k + 1 == parameters.size();
    std::string item = parameter + (last ? ");" : ",");
    if (line.size() + item.size() + 1 > 80 && line.size() > indent) {
      os << line << "\n";
      line = std::string(indent, ' ');
    } else if (line.size() > indent) {
      line += " ";
    }
    line += item;
  }
  os << line << "\n";
}

/// The processor and its extensions in lines of at most 80 columns.
static void printProcessor(llvm::raw_ostream &os, const Processor &processor) {
  os << " *\n * Compiled for the processor " << processor.name;
  if (processor.features.empty()) {
    os << ".\n";
    return;
  }
  os << ". On one that lacks any of these,\n * every entry point returns "
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

std::string printHeader(const std::vector<KernelSignature> &kernels,
                        llvm::StringRef guard, const Processor &processor) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* Kernels compiled from a specification by MoA for CPUs.\n *\n";
  for (const KernelSignature &kernel : kernels)
    os << " *   kernel " << kernel.getText() << "\n";
  os << kNotes;
  printProcessor(os, processor);
  os << " */\n";
  os << "#ifndef " << guard << "\n#define " << guard << "\n\n" << kPreamble;
  os << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
  for (const KernelSignature &kernel : kernels) {
    std::vector<std::string> own = getCParameters(kernel);
    os << "\n/* kernel " << kernel.name << "\n";
    for (const Parameter &parameter : kernel.parameters)
      os << " *   " << (parameter.isOutput ? "out " : "in  ") << parameter.name
         << " : " << parameter.getTypeText() << "\n";
    for (const Constraint &constraint : kernel.constraints)
      os << " *   require " << constraint.text << "\n";
    os << " */\n";
    printDeclaration(os, "int32_t", kernel.name, own,
                     {"void *workspace", "size_t bytes", "void *stream"});
    printDeclaration(os, "int64_t", kernel.name + "_workspace", own, {});
    printDeclaration(os, "int32_t", kernel.name + "_check", own,
                     {"char *message", "size_t n"});
    printDeclaration(os, "int32_t", kernel.name + "_prepare", {},
                     {"int32_t device"});
  }
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return text;
}

} // namespace moa::cpu
