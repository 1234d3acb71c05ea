//===- Cuda.h - CUDA C++ text of a device program ---------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_CUDA_H
#define MOA_TARGET_CUDA_CUDA_H

#include "dialects/Device/IR/Device.h"
#include "lib/Target/GPU/Launch.h"
#include "lib/Target/Signature.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace moa::cuda {

/// A kernel as text, and how the host launches it.
struct KernelText {
  gpu::Launch launch;
  std::string text;
};

/// The C names of one program's arguments, symbols and strides: the user's,
/// apart from each other and from the words of C++.
class Names {
public:
  explicit Names(device::ProgramOp program);
  const std::string &of(unsigned argument) const { return arguments[argument]; }
  const std::string &of(const std::string &symbol) const { return symbols.at(symbol); }
  /// Whether the name is one of these.
  bool isTaken(llvm::StringRef name) const { return taken.count(name.str()); }
  /// `M - N + 1` as C++, division and remainder floored.
  std::string expression(const SymExpr &expr) const;
  /// The same with other names of the symbols.
  static std::string expression(const SymExpr &expr,
                                llvm::function_ref<std::string(const std::string &)> name);

private:
  std::string choose(llvm::StringRef wish);
  std::vector<std::string> arguments;
  std::map<std::string, std::string> symbols;
  std::set<std::string> taken;
};

/// True if the emitted file uses the name for something of its own.
bool isOwnName(llvm::StringRef name);
/// A C++ identifier near `wish`; letters outside of ASCII become `_`.
std::string getIdentifier(llvm::StringRef wish);
/// `name_2`; C++ keeps names with two underscores in a row.
std::string getNumbered(llvm::StringRef name, unsigned number);
/// The element type of an array in memory: `__nv_bfloat16`.
llvm::StringRef getStorageType(mlir::Type element);
/// The type of a value in a thread: `float`, `int64_t`, `bool`.
llvm::StringRef getValueType(mlir::Type type);

/// The device functions that the kernels of a file call.
struct Helpers {
  /// Those that are always the same text (see Helpers.cpp, TileHelpers.cpp).
  std::set<std::string> names;
  /// Those that depend on a layout or a type: a definition with its own name. One
  /// that is there already is taken; another with the same name gets a number.
  std::string request(const std::string &wish,
                      llvm::function_ref<std::string(const std::string &)> define);
  std::string own; ///< the definitions of these, in order

  void insert(const std::string &name) { names.insert(name); }
  void insert(std::initializer_list<const char *> list) { names.insert(list.begin(), list.end()); }
};

/// The kernels of a program in order; `helpers` receives what they call.
llvm::Expected<std::vector<KernelText>> printKernels(device::ProgramOp program, const Names &names,
                                                     Helpers &helpers);
/// The definitions of those functions.
std::string printHelpers(const Helpers &helpers);

/// A line of C++ in pieces of at most 120 columns, broken after commas and before
/// operators of the outermost parentheses that allow it.
std::string wrapLine(const std::string &line, size_t indent);
/// Adds one line of a comment; a long one is broken at blanks.
void addComment(std::string &text, llvm::StringRef line);

/// The checks and the entry points around the kernels.
std::string printHost(const KernelSignature &signature, const Names &names,
                      const std::vector<KernelText> &kernels,
                      const std::vector<gpu::WorkspaceArray> &workspace);

/// One program and what is written above it.
struct ProgramText {
  device::ProgramOp program;
  KernelSignature signature;
  std::string notes; ///< lines of the opening comment
};

/// A whole file: comment, declarations, kernels, entry points.
llvm::Expected<std::string> printFile(llvm::ArrayRef<ProgramText> programs);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_CUDA_H
