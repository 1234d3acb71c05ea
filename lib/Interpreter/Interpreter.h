//===- Interpreter.h - the meaning of moa, dnf and onf in float64 -*- C++ -*-===//
//
// Executes a `moa.kernel`, `dnf.kernel` or `onf.kernel` on real arrays. All floats are float64,
// integers are exact, and only the user's explicit casts round. The interpreter is the oracle for
// tests of the lowerings. It therefore uses the dialects, the monoids' values and symbolic
// expressions, but no code of any lowering.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_INTERPRETER_INTERPRETER_H
#define MOA_INTERPRETER_INTERPRETER_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace moa {

/// An array in row-major order. Booleans are 0 and 1. Integers are float64 too: values of i64
/// beyond 2^53 are rounded on input and output. A scalar has an empty shape and one element.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

struct KernelInputs {
  /// Values of symbols that no argument's shape determines. Other symbols may be given too, and
  /// must then agree with the shapes.
  std::map<std::string, int64_t> symbols;
  /// One array per parameter in the user's order, scalars included.
  std::vector<Array> arrays;
};

/// Checks and recordings of a run.
struct InterpretOptions {
  /// onf: check the intervals claimed by `pieces` against the guard.
  bool checkPieces = true;
  /// Largest number of elements of an array at the moa level; a larger one is an error.
  int64_t maxElements = int64_t(1) << 27;
  /// dnf, onf: simulates rounding (Monte Carlo arithmetic, D. S. Parker 1997). Every float that an
  /// operation, or a step of a sum or product, computes moves by this relative amount. A hash of
  /// its place and value decides the direction. The outputs then show how the problem, evaluated in
  /// this way, amplifies rounding errors.
  double roundoff = 0;
  /// Seed of the directions of roundoff.
  uint64_t roundoffSeed = 0;
  /// onf: rounds the computed operands of an acc to its operand type, as compiled folds do. A
  /// `roundoffSeed` of 0 rounds to nearest. Other seeds round stochastically: to one of the two
  /// neighbours, with a higher probability for the nearer one.
  bool roundsOperands = false;
  /// dnf, onf: gives computed floats the range of f32. Larger values become infinite, smaller ones
  /// than its least normal number become 0.
  bool hasSingleRange = false;
  /// dnf: if set, receives for every element of every input whether it was read.
  std::vector<std::vector<bool>> *reads = nullptr;
};

/// Returns all outputs of the kernel in order. An absent element is 0. Errors are inputs that do
/// not fit, an index outside an array, and an operation that is not supported here. An onf kernel
/// that breaks its contract is an error too: an element written twice or never, an address outside
/// its array, intervals that miss an index.
llvm::Expected<std::vector<Array>> interpret(mlir::Operation *kernel, const KernelInputs &inputs,
                                             const InterpretOptions &options = {});

/// Returns chosen elements of one output, in the order of `indices`. On dnf this evaluates only the
/// values that the elements need, and on onf only the rows that hold them. Single rows of large
/// problems are therefore cheap. On moa everything is evaluated.
llvm::Expected<std::vector<double>> interpretElements(mlir::Operation *kernel, const KernelInputs &inputs,
                                                      unsigned output, llvm::ArrayRef<std::vector<int64_t>> indices,
                                                      const InterpretOptions &options = {});

/// Solves the kernel's symbols from the shapes of its arguments (one per parameter) and the values
/// `given`. Checks every extent and constraint. An extent that is linear in one unknown symbol
/// determines it.
llvm::Expected<std::map<std::string, int64_t>> bindSymbols(mlir::Operation *kernel,
                                                           llvm::ArrayRef<std::vector<int64_t>> shapes,
                                                           const std::map<std::string, int64_t> &given = {});

llvm::Expected<std::vector<std::vector<int64_t>>> outputShapes(mlir::Operation *kernel,
                                                               const std::map<std::string, int64_t> &symbols);

/// Rounds `value` to a float type, to nearest even. Overflow gives an infinity. f64 and types that
/// are no floats leave it unchanged.
double roundTo(double value, mlir::Type type);

/// Rounds `value` stochastically to one of its two neighbours in a float type narrower than f64.
/// `hash` decides; the nearer neighbour is more likely.
double roundAtRandom(double value, mlir::FloatType type, uint64_t hash);

} // namespace moa

#endif // MOA_INTERPRETER_INTERPRETER_H
