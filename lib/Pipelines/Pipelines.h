//===- Pipelines.h - the arrows between the levels --------------*- C++ -*-===//
//
// One pipeline per arrow; each ends with the contract of the level it reaches.
// All run on a module.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_PIPELINES_PIPELINES_H
#define MOA_PIPELINES_PIPELINES_H

#include "lib/Conversion/ONFToVector/Bf16Dots.h"
#include "lib/Precision/Passes.h"
#include <string>
#include <vector>

namespace mlir {
class OpPassManager;
} // namespace mlir

namespace moa {

class PsiObserver;
class FoldObserver;

/// What is said of the choices that spend accuracy.
struct PrecisionOptions {
  /// Two further results: the decisions, and the estimates behind them.
  bool decisions = false;
  /// The decisions, by index in row-major order with commas, instead of estimates; with
  /// `check` the estimates still may take others.
  std::string table;
  bool check = false;
  /// Sums of 8 bits too, and scales for all rows: what tensor cores take. Without, what pays on a
  /// CPU.
  bool sums = false;
  /// Operands of f32 in 16 bits, or as sums of two such, for tensor cores.
  bool halves = false;
  /// Operands of f32 in bf16, for a CPU that has dot products of these.
  bool bf16 = false;
  /// With fewer rows and keys nothing is tried; 0: where it pays.
  int64_t fewest = 256;
  /// Few rows and keys come first where an index has more multiply-adds; −1: where `fewest` is 0
  /// and it pays.
  int64_t pilot = -1;
  /// Where it changes no nest a warning says why.
  bool warns = false;
  /// Laws that are not applied, of both passes; for tests.
  std::vector<std::string> disabledLaws = {};
};

struct PipelineOptions {
  /// Names of laws and rules that are not applied; for tests.
  std::vector<std::string> disabledLaws;
  std::vector<std::string> disabledRules;
  /// Without key intervals every fold visits its whole range.
  bool intervals = true;
  /// Without ranges in parts no fold is split over cores (rule R4).
  bool ranges = true;
  /// Without, nothing is computed in fewer bits.
  bool spends = true;
  /// With so many rows and keys or more, few keys may stand for many; 0: never.
  int64_t lowRankFrom = 0;
  PrecisionOptions precision;
  /// The CPU has dot products of four bytes.
  bool byteDots = false;
  /// What it has for products of bf16.
  Bf16Dots bf16Dots = Bf16Dots::none;
  /// The GPU, by name, architecture or the path of a description.
  std::string gpu = "h200";
  /// Who hears of the steps of ψ-reduction and of the derivation of folds, if anyone.
  PsiObserver *psiObserver = nullptr;
  FoldObserver *foldObserver = nullptr;
};

/// moa-verify, ψ-reduction, dnf-verify.
void buildMoAToDNF(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Derivation of folds and addresses, onf-verify; remarks on what is computed
/// again.
void buildDNFToONF(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Why a nest that is written for a plan would run without tensor cores on a GPU, by name,
/// architecture or the path of a description; with `wherePays` also why it would not be a tenth
/// faster than as it is written, or than a plan behind it, by the cost model.
NestTeller tellsSlowOn(std::string gpu, bool wherePays);
/// That part of it which holds for every machine: rows that see few keys, however many there are,
/// all of which would be rounded.
NestTeller tellsFewSeen();
/// What is computed of fewer keys or in fewer bits, onf-verify: in front of either of the
/// following. What is written for fewer bits is left out where `tellsSlow`, if it is not null, says
/// why it would run slowly.
void buildAdapted(mlir::OpPassManager &pm, const PipelineOptions &options,
                  NestTeller tellsSlow = nullptr);
/// Key intervals, dimension lifting by the cost model for this machine,
/// onf-verify-lifting, onf-verify.
void buildONFToLifted(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Code for a CPU in func, scf, vector and memref.
void buildLiftedToVector(mlir::OpPassManager &pm, const PipelineOptions &options);
/// What is computed in fewer bits, key intervals, dimension lifting by the cost model for a GPU,
/// onf-verify-lifting, onf-verify.
void buildONFToLiftedGpu(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Programs for a GPU.
void buildLiftedToDevice(mlir::OpPassManager &pm, const PipelineOptions &options);
/// Both.
void buildONFToDevice(mlir::OpPassManager &pm, const PipelineOptions &options);
/// The llvm dialect.
void buildVectorToLLVM(mlir::OpPassManager &pm, const PipelineOptions &options);

/// Registers moa-to-dnf-pipeline, moa-to-onf-pipeline, moa-to-lifted-pipeline,
/// moa-to-vector-pipeline, moa-to-llvm-pipeline and moa-to-device-pipeline:
/// everything from moa up to the level.
void registerPipelines();

} // namespace moa

#endif // MOA_PIPELINES_PIPELINES_H
