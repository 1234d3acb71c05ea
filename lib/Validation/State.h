//===- State.h - state shared by the steps of one validation ----*- C++ -*-===//
#ifndef MOA_VALIDATION_STATE_H
#define MOA_VALIDATION_STATE_H

#include "lib/Validation/Accesses.h"
#include "lib/Validation/Prover.h"
#include "lib/Validation/Validation.h"

namespace moa {

struct Validator::State {
  explicit State(mlir::MLIRContext *context) : terms(context), variables(terms), prover(terms, variables) {}

  /// Reads names, constraints, ranges and assumptions, once.
  mlir::LogicalResult open(mlir::Operation *kernel, mlir::ArrayAttr argNames, mlir::ArrayAttr requires_,
                           mlir::TypeRange inputs, mlir::ArrayAttr resultTypes);
  mlir::LogicalResult open(dnf::KernelOp kernel);
  /// Returns the accesses of each output of the normal form, computed once.
  std::vector<std::vector<validation::Access>> &accessesOf(dnf::KernelOp kernel);
  /// Checks that the access is in bounds on every axis. Appends a fact for each new index.
  mlir::LogicalResult checkInside(const validation::Access &access, ArrayType type, std::vector<Fact> *shown);

  validation::TermContext terms;
  validation::Variables variables;
  validation::Prover prover;
  bool isOpen = false;
  mlir::Operation *readKernel = nullptr;
  std::vector<std::vector<validation::Access>> accesses;
  std::set<std::tuple<int64_t, unsigned, validation::Term, validation::Term>> inside;
  std::set<std::tuple<int64_t, unsigned, validation::Term>> insideAlways;
  std::map<std::vector<int64_t>, bool> bijective;
  /// Accesses that fusion rules have moved are being checked. If one is refused, the compiler is
  /// wrong and not the specification.
  bool isOfRules = false;

private:
  mlir::LogicalResult checkAxis(const validation::Access &access, unsigned axis, ArrayType type,
                                std::vector<Fact> *shown);
  /// Emits the error for an index that may leave its axis, with remedies.
  void refuse(const validation::Access &access, unsigned axis, validation::Term extent, validation::Term condition);
};

} // namespace moa

#endif // MOA_VALIDATION_STATE_H
