//===- EntryNames.cpp - valid C names of kernels --------------------------===//

#include "lib/Compiler/CompilationImpl.h"
#include "lib/Target/CPU/EntryPoints.h"
#include "lib/Target/CText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

namespace moa {

/// Returns true for names declared by the headers that the emitted header includes or replaces.
static bool isDeclared(llvm::StringRef name) {
  static const llvm::StringSet<> names = {"DLDataType", "DLDevice",  "DLTensor",  "NULL",     "int16_t",
                                          "int32_t",    "int64_t",   "int8_t",    "intmax_t", "intptr_t",
                                          "offsetof",   "ptrdiff_t", "size_t",    "uint16_t", "uint32_t",
                                          "uint64_t",   "uint8_t",   "uintmax_t", "uintptr_t"};
  return names.contains(name) || name.starts_with("MOA_");
}

/// Returns true for functions that compiled kernels or C programs may call: those of the C library
/// known to LLVM, and OpenMP's.
static bool isLibraryFunction(llvm::StringRef name) {
  static const llvm::TargetLibraryInfoImpl library{llvm::Triple(llvm::sys::getDefaultTargetTriple())};
  llvm::LibFunc function;
  return library.getLibFunc(name, function) || name.starts_with("omp_");
}

/// Returns true for names that C reserves for its implementation.
static bool isImplementationName(llvm::StringRef name) {
  return name.size() > 1 && name[0] == '_' && (name[1] == '_' || llvm::isUpper(name[1]));
}

bool Compilation::Impl::checkEntryName(unsigned kernel) {
  llvm::StringRef name = signatures[kernel].name;
  const char *why = isReservedWord(name)         ? "it is a word of C or C++"
                    : isDeclared(name)           ? "the header declares this name"
                    : isLibraryFunction(name)    ? "it is a function of a C library"
                    : isImplementationName(name) ? "C reserves such names"
                                                 : nullptr;
  if (why)
    kernelAt(*modules[entry], kernel)->emitError()
        << "a kernel cannot be called '" << name << "' in C: " << why << "; give it another name";
  return !why;
}

} // namespace moa
