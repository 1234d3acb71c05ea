//===- Cuda.h - CUDA C++ text of a device program ---------------*- C++ -*-===//
#ifndef MOA_TARGET_CUDA_CUDA_H
#define MOA_TARGET_CUDA_CUDA_H

#include "dialects/Device/IR/Device.h"
#include "lib/Target/Binding.h"
#include "lib/Target/Host/HostTable.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace moa::cuda {

struct KernelText {
  gpu::Launch launch;
  std::string text;
};

/// The C++ names of a program's arguments, symbols and strides: the user's names, changed where
/// they collide with each other or with reserved words.
class Names {
public:
  explicit Names(device::ProgramOp program);
  const std::string &of(unsigned argument) const { return arguments[argument]; }
  const std::string &of(mlir::Value argument) const {
    return of(mlir::cast<mlir::BlockArgument>(argument).getArgNumber());
  }
  const std::string &of(const std::string &symbol) const { return symbols.at(symbol); }
  bool isTaken(llvm::StringRef name) const { return taken.count(name.str()); }
  /// Prints an expression such as `M - N + 1`, with floored division and remainder.
  std::string expression(const SymExpr &expr) const;
  /// The same with names of the symbols given by `name`.
  static std::string expression(const SymExpr &expr, llvm::function_ref<std::string(const std::string &)> name);

private:
  std::string choose(llvm::StringRef wish);
  std::vector<std::string> arguments;
  std::map<std::string, std::string> symbols;
  std::set<std::string> taken;
};

/// Returns whether the emitted file uses the name itself.
bool isOwnName(llvm::StringRef name);
/// Returns a C++ identifier close to `wish`, with `_` for letters outside of ASCII.
std::string getIdentifier(llvm::StringRef wish);
/// Returns `name_word`, without a second underscore where `name` ends in one: C++ reserves `__`.
std::string appendWord(llvm::StringRef name, llvm::StringRef word);
/// Returns `name_2`, with one underscore like appendWord.
std::string getNumbered(llvm::StringRef name, unsigned number);
/// Returns the type of an array's elements in memory, for example `__nv_bfloat16`.
llvm::StringRef getStorageType(mlir::Type element);
/// Returns the type of a value in a thread, for example `float`, `int64_t` or `bool`.
llvm::StringRef getValueType(mlir::Type type);

/// The device functions that the kernels of a file call.
struct Helpers {
  /// Functions with a fixed text (see Helpers.cpp, TileHelpers.cpp).
  std::set<std::string> names;
  /// Returns the name of a function that depends on a layout or a type. Reuses an equal definition,
  /// and numbers a different one with the same name.
  std::string request(const std::string &wish, llvm::function_ref<std::string(const std::string &)> define);
  /// Returns the name of a float constant. Reuses an equal one, and numbers a different one with the same name.
  std::string requestConstant(const std::string &wish, const std::string &number);
  std::string own;                                            ///< the definitions of these functions, in order
  std::vector<std::pair<std::string, std::string>> constants; ///< names and values, in order

  void insert(const std::string &name) { names.insert(name); }
  void insert(std::initializer_list<const char *> list) { names.insert(list.begin(), list.end()); }
};

/// Prints the kernels of a program in order. Adds the functions they call to `helpers`.
llvm::Expected<std::vector<KernelText>> printKernels(device::ProgramOp program, const Names &names, Helpers &helpers);
std::string printHelpers(const Helpers &helpers);

/// Breaks a line of C++ at 120 columns, after commas and before operators, at the least possible
/// depth of parentheses.
std::string wrapLine(const std::string &line, size_t indent);
/// Adds a line of a comment, broken at blanks if it has more than so many columns.
void addComment(std::string &text, llvm::StringRef line, size_t columns = 117);

/// Prints the checks and the entry points of a program.
std::string printHost(const gpu::HostTable &table, const Names &names);

/// One program and the comment above it.
struct ProgramText {
  device::ProgramOp program;
  KernelSignature signature;
  std::string notes; ///< lines of the opening comment
};

/// Prints a whole file: comment, declarations, kernels, entry points.
llvm::Expected<std::string> printFile(llvm::ArrayRef<ProgramText> programs, Binding binding = Binding::None);

} // namespace moa::cuda

#endif // MOA_TARGET_CUDA_CUDA_H
