//===- Interpreter.h - the meaning of moa, dnf and onf in float64 -*- C++ -*-===//
//
// Executes a `moa.kernel`, `dnf.kernel` or `onf.kernel` on real arrays. Floats
// of every type are float64, integers are exact, and only the user's explicit
// casts round. The interpreter uses the dialects, the monoids' values and
// symbolic expressions, and no code of any lowering: it is the oracle the
// lowerings are tested against.
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

/// An array in row-major order. Booleans are 0 and 1. Integers are float64 here
/// too: those of i64 beyond 2^53 are rounded where they enter and leave. A
/// scalar has an empty shape and one element.
struct Array {
  std::vector<int64_t> shape;
  std::vector<double> data;
};

/// The arguments of one call.
struct KernelInputs {
  /// Values of symbols no argument's shape determines; may name the others too
  /// and must then agree.
  std::map<std::string, int64_t> symbols;
  /// One array per parameter in the user's order, scalars included.
  std::vector<Array> arrays;
};

/// What a run may check and record.
struct InterpretOptions {
  /// onf: check the intervals claimed by `pieces` against the guard.
  bool checkPieces = true;
  /// An array of the moa level with more elements than this is refused.
  int64_t maxElements = int64_t(1) << 27;
  /// dnf, onf: every float that an operation or a step of a sum or product computes
  /// is moved by this relative amount, up or down as a hash of where and what it is
  /// decides (Monte Carlo arithmetic, D. S. Parker 1997): how far the outputs
  /// move shows how the problem, evaluated in this way, amplifies rounding.
  double roundoff = 0;
  /// Another value gives other directions.
  uint64_t roundoffSeed = 0;
  /// onf: the computed operands of an acc that rounds them are rounded to its type as
  /// compiled folds do it: to nearest for a `roundoffSeed` of 0, else to one of the two
  /// neighbours, the more likely the nearer it is.
  bool roundsOperands = false;
  /// dnf, onf: computed floats have the range of f32: what is beyond is infinite, and what
  /// is below its least number is 0.
  bool hasSingleRange = false;
  /// dnf: where set, receives per input and element whether it was read.
  std::vector<std::vector<bool>> *reads = nullptr;
};

/// All outputs of the kernel in order. An absent element is 0. Errors: inputs
/// that do not fit, an index outside an array, an operation without a meaning
/// here, an onf kernel that breaks its contract (an element written twice or
/// never, an address outside its array, intervals that miss an index).
llvm::Expected<std::vector<Array>> interpret(mlir::Operation *kernel, const KernelInputs &inputs,
                                             const InterpretOptions &options = {});

/// Chosen elements of one output, in the order of `indices`. On dnf only what
/// the elements need is evaluated, on onf only the rows that hold them, so
/// single rows of large problems are cheap; moa evaluates everything.
llvm::Expected<std::vector<double>> interpretElements(mlir::Operation *kernel,
                                                      const KernelInputs &inputs, unsigned output,
                                                      llvm::ArrayRef<std::vector<int64_t>> indices,
                                                      const InterpretOptions &options = {});

/// Solves the kernel's symbols from the shapes of its arguments (one per
/// parameter) and the values `given`, and checks every extent and constraint.
/// An extent that is linear in one unknown symbol determines it.
llvm::Expected<std::map<std::string, int64_t>>
bindSymbols(mlir::Operation *kernel, llvm::ArrayRef<std::vector<int64_t>> shapes,
            const std::map<std::string, int64_t> &given = {});

/// The shapes of the outputs under values of the symbols.
llvm::Expected<std::vector<std::vector<int64_t>>>
outputShapes(mlir::Operation *kernel, const std::map<std::string, int64_t> &symbols);

/// `value` rounded to a float type, to nearest with ties to even; overflow
/// gives an infinity. f64 and types that are no floats leave it unchanged.
double roundTo(double value, mlir::Type type);

/// `value` rounded to one of its two neighbours in a float type that is narrower than
/// f64, the nearer ones more often, as `hash` decides.
double roundAtRandom(double value, mlir::FloatType type, uint64_t hash);

} // namespace moa

#endif // MOA_INTERPRETER_INTERPRETER_H
