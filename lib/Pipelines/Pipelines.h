//===- Pipelines.h - the arrows between the levels --------------*- C++ -*-===//
//
// One pipeline per arrow between two levels. Each ends with the contract of the level it reaches.
// All run on a module.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_PIPELINES_PIPELINES_H
#define MOA_PIPELINES_PIPELINES_H

#include "lib/Accuracy/Passes.h"
#include "lib/Conversion/ONFToVector/Bf16Dots.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace moa {

class PsiObserver;
class FoldObserver;

/// Options of the passes that trade accuracy for speed.
struct PrecisionOptions {
  /// Return two further results: the decisions, and the estimates that led to them.
  bool decisions = false;
  /// The decisions, by index in row-major order with commas, instead of estimates. With `check`
  /// they are estimated as well, and may be overridden.
  std::string table;
  bool check = false;
  /// Variants for tensor cores: 8-bit sums too, and scales for all rows. Without, those that pay on
  /// a CPU.
  bool sums = false;
  /// Operands of f32 in 16 bits, or as sums of two 16-bit floats, for tensor cores.
  bool halves = false;
  /// Operands of f32 in bf16, for a CPU with dot products of bf16.
  bool bf16 = false;
  /// Nothing is tried with fewer rows or keys; 0: decide by the cost model.
  int64_t fewest = 256;
  /// Few rows and keys are tried first if an index has more multiply-adds than this; −1: if
  /// `fewest` is 0 and it pays.
  int64_t pilot = -1;
  /// Warn, with the reason, if no nest is changed.
  bool warns = false;
  /// Laws of both passes that are not applied; for tests.
  std::vector<std::string> disabledLaws = {};
};

struct PipelineOptions {
  /// Names of laws and rules that are not applied; for tests.
  std::vector<std::string> disabledLaws;
  std::vector<std::string> disabledRules;
  /// Without key intervals every fold visits its whole range.
  bool derivesIntervals = true;
  /// Rule R4. Otherwise no range is divided among cores or blocks.
  bool splitsFolds = true;
  /// Without, nothing is computed in fewer bits (mixed precision).
  bool spends = true;
  /// With at least this many rows and keys, few keys may stand for many (low rank); 0: never.
  int64_t lowRankFrom = 0;
  PrecisionOptions precision;
  /// The CPU has dot products of four bytes.
  bool byteDots = false;
  /// The instructions of the CPU for products of bf16.
  Bf16Dots bf16Dots = Bf16Dots::none;
  /// The GPU, by name, architecture or the path of a description.
  std::string gpu = "h200";
  /// Observers of ψ-reduction and of the derivation of folds, if any.
  PsiObserver *psiObserver = nullptr;
  FoldObserver *foldObserver = nullptr;
};

/// Adds moa-verify, ψ-reduction and dnf-verify.
void buildMoAToDNF(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds the bounds of errors, the derivation of folds and addresses, the order of rows and
/// onf-verify.
void buildDNFToONF(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Returns a function that says why the nest of a plan would run without tensor cores on a GPU (a
/// name, an architecture or the path of a description). With `wherePays` it also says why the nest
/// would not save a tenth of the time, by the cost model, compared to the unmodified nest or to a
/// plan with smaller errors.
NestReason tellsSlowOn(std::string gpu, bool wherePays);
/// Returns the part of it that holds for every machine: rows see few keys, however many there are,
/// but all keys would be rounded.
NestReason tellsFewSeen();
/// Adds computation with fewer keys or in fewer bits, and onf-verify, before either of the
/// following. Plans for fewer bits are left out if `tellsSlow`, unless null, says why they would be
/// slow.
void buildAdapted(mlir::OpPassManager &pm, const PipelineOptions &options, NestReason tellsSlow = nullptr);
/// Adds blocks of columns, key intervals, dimension lifting by the cost model for this machine,
/// onf-verify-lifting and onf-verify.
void buildONFToLifted(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds the lowering to code for a CPU in func, scf, vector and memref.
void buildLiftedToVector(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds computation in fewer bits, splitting and fusion of nests and folds, key intervals,
/// dimension lifting by the cost model for a GPU, onf-verify-lifting and onf-verify.
void buildONFToLiftedGpu(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds the lowering to programs for a GPU.
void buildLiftedToDevice(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds both.
void buildONFToDevice(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Adds the lowering to the llvm dialect.
void buildVectorToLLVM(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers moa-to-dnf-pipeline, moa-to-onf-pipeline, moa-to-lifted-pipeline,
/// moa-to-vector-pipeline, moa-to-llvm-pipeline and moa-to-device-pipeline: all passes from moa to
/// the level.
void registerPipelines();

} // namespace moa

#endif // MOA_PIPELINES_PIPELINES_H
