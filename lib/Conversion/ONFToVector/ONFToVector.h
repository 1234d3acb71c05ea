//===- ONFToVector.h - lifted onf to vector code ----------------*- C++ -*-===//
//
// The CPU lowering. Each nest of an onf.kernel becomes two functions over scf, arith, math, vector
// and llvm memory ops, where NAME is the kernel's name and k the number of the nest:
//
//   func @NAME_nest<k>(%args: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64)
//   func @NAME_tasks<k>(%args: !llvm.ptr) -> i64
//
// The first runs the tasks begin ≤ t < end; the second returns the number of tasks. `args` is
// described in ArgumentBlock.h. `scratch` is 64-byte aligned and has `moa.scratch_bytes` bytes (a
// module attribute) for each concurrent call. `moa.nests` is the number of nests, which run in
// order. A nest split over cores (Split.cpp) counts as two. The first of the two has a third
// function,
//
//   func @NAME_shared<k>(%args: !llvm.ptr) -> i64
//
// which returns the bytes of workspace that both share.
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

/// Options of the lowering. An unlifted nest has tiles of `vectorsPerTile` vectors of rows.
struct ONFToVectorOptions {
  int64_t vectorsPerTile = 6;
  int64_t vectorBits = 512;
  /// If false, all folds run index by index, without blocks of keys.
  bool blocks = true;
  /// The machine has dot products of four bytes per i32 lane (`vpdpbusd`).
  bool byteDots = false;
  /// The machine's instructions for bf16 products.
  Bf16Dots bf16Dots = Bf16Dots::none;
};

/// Replaces each onf.kernel of the module by its functions. Reports an error at an op that cannot
/// be lowered.
mlir::LogicalResult convertONFToVector(mlir::ModuleOp module, const ONFToVectorOptions &options = {});

std::unique_ptr<mlir::Pass> createConvertONFToVectorPass(const ONFToVectorOptions &options = {});

std::unique_ptr<mlir::Pass> createOrderRowsPass();
std::unique_ptr<mlir::Pass> createBlockColumnsPass();

/// Expands `math.exp` and `math.exp2` of f32 and f64, and `math.tanh` of f32, to polynomials, for
/// scalars and vectors. Errors are within 1 ulp for f32 exponentials and 2 ulp for others.
/// Infinities, NaN and overflow are as in C, but exponentials below the least normal number are 0.
void populateExpandMathPatterns(mlir::RewritePatternSet &patterns);
/// Expands extension and rounding of f8E4M3FN to integer and f32 ops, for scalars and vectors.
/// Rounds to nearest, ties to even, and saturates at 448.
void populateExpandFloat8Patterns(mlir::RewritePatternSet &patterns);
std::unique_ptr<mlir::Pass> createExpandMathPass();

/// Lowers the functions of this conversion to the llvm dialect. Translate the result with the
/// host's CPU name and features at -O3. On CPUs with AVX-512, also prefer 512-bit vectors: set the
/// function attribute "prefer-vector-width" to 512 or the tuning feature `-prefer-256-bit`.
void buildVectorToLLVMPipeline(mlir::OpPassManager &manager);

void registerONFToVectorPipelines();

} // namespace moa

#endif // MOA_CONVERSION_ONFTOVECTOR_ONFTOVECTOR_H
