//===- File.cpp - a whole CUDA C++ file -----------------------------------===//
#include "lib/Target/CUDA/Cuda.h"
#include "lib/Target/CUDA/HostText.h"
#include "lib/Target/CUDA/TileHelpers.h"
#include "llvm/ADT/StringExtras.h"

namespace moa::cuda {

static std::string comment(llvm::StringRef notes) {
  std::string text;
  llvm::SmallVector<llvm::StringRef> lines;
  notes.rtrim().split(lines, '\n');
  for (llvm::StringRef line : lines)
    text += line.empty() ? "//\n" : ("// " + line + "\n").str();
  // No trigraphs.
  for (size_t at = text.find("??"); at != std::string::npos; at = text.find("??", at))
    text.insert(at + 1, " ");
  return text;
}

llvm::Expected<std::string> printFile(llvm::ArrayRef<ProgramText> programs) {
  std::set<std::string> helpers;
  std::string notes, kernelTexts, hostTexts;
  for (const ProgramText &entry : programs) {
    if (isOwnName(entry.signature.name))
      return llvm::createStringError("a kernel cannot be called '" + entry.signature.name +
                                     "' in CUDA C++: the emitted file uses this name; rename it");
    Names names(entry.program);
    auto kernels = printKernels(entry.program, names, helpers);
    if (!kernels)
      return kernels.takeError();
    notes += comment(entry.notes) + "//\n";
    for (const KernelText &kernel : *kernels)
      kernelTexts += "\n" + kernel.text;
    hostTexts += "\n" + printHost(entry.signature, names, *kernels);
  }
  std::string text = notes;
  text += "// Written by a compiler; this file carries no licence obligation. Compile with\n"
          "//   nvcc -gencode arch=compute_90a,code=sm_90a\n\n"
          "#include <cmath>\n#include <cstdarg>\n#include <cstddef>\n#include <cstdint>\n"
          "#include <cstdio>\n#include <cstring>\n#include <cuda.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
          "#include <cuda_runtime.h>\n#include <cudaTypedefs.h>\n\n";
  text += kDeclarations;
  if (!helpers.empty())
    text += "\n" + printHelpers(helpers) + "\n" + printTileHelpers(helpers);
  return text + kernelTexts + "\n" + kHostFunctions + hostTexts;
}

} // namespace moa::cuda
