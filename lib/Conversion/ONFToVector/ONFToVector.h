//===- ONFToVector.h - lifted onf to vector code ----------------*- C++ -*-===//
//
// The CPU lowering: every nest of an onf.kernel becomes two functions over
// scf, arith, math, vector and llvm memory ops (NAME is the kernel's, k counts
// its nests):
//
//   func @NAME_nest<k>(%args: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64)
//   func @NAME_tasks<k>(%args: !llvm.ptr) -> i64
//
// The first runs the tasks begin ≤ t < end. `args` is the block ArgumentBlock.h
// describes; `scratch` is 64-byte aligned and holds `moa.scratch_bytes` bytes (a
// module attribute) for each concurrent call. `moa.nests` counts the nests: one that
// is split over cores (Split.cpp) is two, of which the first has a third function,
//
//   func @NAME_shared<k>(%args: !llvm.ptr) -> i64
//
// the bytes that the two share in the workspace. They run in order; those whose numbers
// `moa.telling` lists are not part of a call (dialects/ONF/Transforms/Telling.h).
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_ONFTOVECTOR_H
#define MOA_CONVERSION_ONFTOVECTOR_ONFTOVECTOR_H

#include "lib/Conversion/ONFToVector/Bf16Dots.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include <memory>

namespace moa {

/// Rows per task where the nest is not lifted: vectors per tile and the bits of
/// one vector.
struct ONFToVectorOptions {
  int64_t vectorsPerTile = 6;
  int64_t vectorBits = 512;
  /// False writes every fold index by index, without blocks of keys.
  bool blocks = true;
  /// The machine has dot products of four bytes for vectors of i32 (`vpdpbusd`).
  bool byteDots = false;
  /// What it has for products of bf16.
  Bf16Dots bf16Dots = Bf16Dots::none;
};

/// Replaces every onf.kernel of the module by its functions. What cannot be
/// lowered is reported as an error at the op.
mlir::LogicalResult convertONFToVector(mlir::ModuleOp module,
                                       const ONFToVectorOptions &options = {});

/// The pass `convert-onf-to-vector`.
std::unique_ptr<mlir::Pass> createConvertONFToVectorPass(const ONFToVectorOptions &options = {});

/// The pass `onf-order-rows`.
std::unique_ptr<mlir::Pass> createOrderRowsPass();
/// The pass `onf-block-columns`.
std::unique_ptr<mlir::Pass> createBlockColumnsPass();

/// `math.exp` and `math.exp2` of f32 and f64 and `math.tanh` of f32, as vectors
/// or scalars, by polynomials: within 1 ulp (f32 exponentials) and 2 ulp (others),
/// infinities, NaN, overflow and gradual underflow as in C.
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);
/// Extension and rounding of f8E4M3FN, as vectors or scalars, by integers and f32: to the nearest,
/// ties to even, and what is beyond 448 to 448.
void populateExpandFloat8Patterns(mlir::RewritePatternSet &patterns);
/// The pass `moa-expand-math` over these patterns.
std::unique_ptr<mlir::Pass> createExpandMathPass();

/// From the functions of this lowering to the llvm dialect. Translate with the
/// host's CPU name and features, -O3, `prefer-vector-width=512` where the CPU
/// has AVX-512 (attribute "prefer-vector-width" on every function, or the tuning
/// feature `-prefer-256-bit`).
void buildVectorToLLVMPipeline(mlir::OpPassManager &manager);

/// Registers the pipeline `moa-vector-to-llvm`.
void registerONFToVectorPipelines();

} // namespace moa

#endif // MOA_CONVERSION_ONFTOVECTOR_ONFTOVECTOR_H
