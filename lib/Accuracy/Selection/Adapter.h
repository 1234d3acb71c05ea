//===- Adapter.h - mixed-precision variants of a nest -----------*- C++ -*-===//
//
// Mixed-precision variants (plans) of a nest. A head is an index of the axes before the rows. The
// kernel gets a copy of the nest for each plan. Each head runs a plan that is within the tolerance
// on a sample of its rows, or else the unmodified nest. Nests before the copies convert operands,
// pick the sample, compute it by every plan, and decide.
//
// `Chooser` has everything that does not depend on how a plan differs from the unmodified nest.
// `Adapter` has plans with operands in fewer bits; `KeyClusters` (Stages/LowRank.h) has one with
// fewer keys.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_ACCURACY_ADAPTER_H
#define MOA_ACCURACY_ADAPTER_H

#include "dialects/ONF/Transforms/SplitFolds.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Selection/Candidates.h"
#include "lib/Accuracy/Stages/KernelEditor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace moa::accuracy {

/// Largest magnitudes in f16 are scaled to [2^kTopOfF16, 2^(kTopOfF16 + 1)).
inline constexpr int kTopOfF16 = 14;

inline constexpr int64_t kSample = 64;
/// The rows of a nest fall into `count` equal parts; each part gives one row of the sample, and
/// each group of parts one more.
struct SampleParts {
  int64_t count, perGroup;
  constexpr int64_t numGroups() const { return count / perGroup; }
};
inline constexpr SampleParts kParts{56, 7};
static_assert(kParts.count + kParts.numGroups() == kSample);
/// Keys per part of a sample's fold.
inline constexpr int64_t kPartLength = 2048;

/// Fewest rows and keys for which plans are tried.
inline constexpr int64_t kFewest = 256;

/// The decision if the bound of the unmodified nest exceeds a tolerance for every input.
inline constexpr int64_t kNoCertifiedPlan = -1;

/// For each axis of a nest, the axis of an array that it runs over.
using Axes = llvm::SmallVector<std::optional<unsigned>>;

struct Options {
  bool decisions = false, check = false, sums = false, halves = false;
  bool bf16 = false; ///< one plan in bf16, instead of 8 bits for scores alone
  std::string table;
  bool isShared = false;    ///< larger numbers of the table are plans of a later pass
  int64_t fewest = kFewest; ///< fewest rows and keys; 0: where it pays
  /// Multiply-adds of a head from which a pilot comes first.
  int64_t pilot = kPilotWherePays;
  static constexpr int64_t kPilotWherePays = -1; ///< if `fewest` is 0
  /// Returns why a nest of a plan would run slowly, or an empty string. Null: plans are not tested.
  NestReason reasonSlow = {};
  /// Multiply-adds that take as long as moving one byte before the nest: for plans of 8 bits, of 16
  /// bits, and of sums of two floats.
  int64_t workPerByte8 = 470, workPerByte16 = 14, workPerByteSplit = 21;
  llvm::SmallVector<std::string> disabled = {};

  bool uses(llvm::StringRef law) const { return !llvm::is_contained(disabled, law); }
};

/// An array in fewer bits: `data` times `scale`. There is one scale per row along the contracted
/// axis, or one for all rows along the axis `across`, which tensor cores need.
/// - `largest`, with `across`: the magnitude of each row, with the axis `across` last.
/// - `beyond`, if the scale comes from some rows: 1 if an element is far above `limit`, else 0.
/// - `rest`, in 16 bits: the rounding errors of `data`.
struct RoundedArray {
  mlir::Value data, scale, largest, beyond, rest;
  mlir::Value inverse,
      limit; ///< 1 / scale, and the largest magnitude that the scale represents
  std::optional<unsigned> across;
};

struct RowReader; // Variants/RowReader.h

/// A vector near the mean of an array along `axis`.
struct Mean {
  mlir::Value array;
  unsigned axis = 0;
};

/// Values of weighted sums in e4m3, less `mean`, times `scale` per column. Keys are adjacent and
/// padded to a multiple of 16.
struct RoundedValues {
  mlir::Value data, scale, inverse;
  Mean mean;
};

struct NestResult {
  onf::StoreOp store;
  Tolerance allowed;
  llvm::SmallVector<mlir::Attribute> names,
      extents; // of the loops around the store inside the nest
  mlir::Value sample;
  mlir::Value norm; // Σ |sample|² per row
};

struct Plan {
  bool sums = false; // also rounds weights and values of weighted sums
  /// The 16-bit types of operands of scores and of weighted sums; null: 8 bits.
  mlir::Type half, sumHalf;
  /// Each operand is a sum of two 16-bit floats, so three products replace each product.
  bool isSplit = false;
};

/// One nest of a kernel, its plans, and the choice among them.
class Chooser {
public:
  Chooser(onf::KernelOp kernel, onf::ForOp nest, const Options &options)
      : kernel(kernel), nest(nest), options(options), editor(kernel, nest), onDemand(kernel) {}
  virtual ~Chooser() = default;
  bool hasScores() const { return !scores.empty(); }
  mlir::LogicalResult readTable();
  /// Leaves the nest without plans of this pass.
  void refuse() {
    isRefused = true;
    findEarlier();
  }

protected:
  //===--- The plans -----------------------------------------------------===//
  struct Copy {
    onf::ForOp nest;
    mlir::IRMapping map;
    mlir::Value row;                                                        // the row's index
    llvm::DenseMap<mlir::Value, mlir::Value> weights;                       // from weights to scaled weights
    llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> split; // from weights to pairs of 16-bit floats
    llvm::DenseMap<unsigned, mlir::Value> totals; // by result of the fold: the sum of unscaled weights
    llvm::DenseMap<unsigned, mlir::Value> moved;  // by result of the fold: the shift of law B1
  };
  virtual unsigned numPlans() const = 0;
  virtual std::string describe(unsigned plan) = 0;
  /// Returns the laws that a plan applies, as "B1: …".
  virtual llvm::SmallVector<std::string> listLaws(unsigned plan) = 0;
  struct RowSet {
    llvm::SmallVector<mlir::Attribute> names,
        extents;                             ///< the axes of the head, and the set's own
    mlir::Value numbers;                     ///< the index of each row
    mlir::Value shares;                      ///< how many rows each represents
    llvm::SmallVector<mlir::Value> gathered; ///< the operands' rows, contiguous, by score
  };
  /// Rewrites a copy of the nest to compute a plan. In a copy for the sample, `rowIndices` are its
  /// indices; otherwise they are empty.
  virtual void rewrite(Copy &copy, unsigned plan, mlir::ValueRange rowIndices) = 0;
  /// Returns whether the choice's array has its value for the head.
  mlir::Value isTried(Code &code, const Choice &choice, mlir::ValueRange head);
  /// Returns a magnitude of a row. The sample includes the largest of each group of parts.
  virtual mlir::Value loadMagnitude(Code &at, mlir::IRMapping &map) = 0;
  /// Returns true if loadMagnitude returns a square.
  virtual bool isMagnitudeSquare() = 0;
  /// Returns whether a plan may change so few rows that no sample shows it; evaluates where
  /// `present`. Null: never.
  virtual mlir::Value isUnseen(Code &code, mlir::ValueRange head, unsigned plan, mlir::Value present) { return {}; }

  //===--- Results and tables --------------------------------------------===//
  /// Collects the results of the nest. They need sampled tolerances or, with `takesBounds`, may all
  /// have component-wise tolerances for every input.
  bool findResults(std::string &why, bool takesBounds = false);
  NestResult resultOf(onf::StoreOp store, const Tolerance &allowed);
  bool isErrorOfRow(onf::StoreOp store);
  void findHead();
  /// Returns true if the rows of the nest, or the indices of a fold, are known to be few.
  bool isKnownFew(const SymExpr &extent) {
    auto size = extent.getConstant();
    return size && *size < kFewest;
  }
  /// Returns the number of plans of earlier passes and of this one.
  unsigned numAll() const { return numEarlier + (isRefused ? 0 : numPlans()); }
  std::string base() { return kernel.getArrayName(numberOf(results[0].store)).str(); }
  static unsigned numberOf(onf::StoreOp store) {
    return llvm::cast<mlir::BlockArgument>(store.getArray()).getArgNumber();
  }
  const SymExpr &rows() { return getSymExpr(nest.getExtents().getValue().back()); }

  //===--- The result ----------------------------------------------------===//
  void recordPlans();
  std::string whyNoScores();
  bool needsEstimates() const { return !isTabled || options.check; }
  void addDecisionResults();
  void findEarlier();
  void leadAlternatives();
  void takeAlternatives();
  void addOpen(llvm::function_ref<mlir::Value(Code &, mlir::ValueRange)> also = nullptr);
  mlir::Value findDecision(llvm::StringRef of, mlir::Type element);
  mlir::Value extendDecision(mlir::Value result);
  mlir::Value takenBefore(Code &code, mlir::ValueRange head, mlir::Value plan);
  /// Adds an array over heads; the predicate holds where it is 1.
  Choice addHeadChoice(const llvm::Twine &suffix);
  /// Maps the indices of the nest to those of a head and a row.
  mlir::IRMapping mapIndices(mlir::ValueRange head, mlir::Value row);
  /// Adds the samples, their errors and the decision (or the table), then the copies of all plans.
  void addChoice();
  void addCopies();

  //===--- The nests before the copies -----------------------------------===//
  /// Adds the nest that tests whether rows and keys are at least `fewest` and, for `larger`, x > y.
  /// `also` adds code to it.
  void addCondition(int64_t fewest, std::optional<std::pair<SymExpr, SymExpr>> larger = std::nullopt,
                    llvm::function_ref<void(Code &, mlir::Value)> also = nullptr);
  void addSampleRows();
  mlir::Value addGathered(const ScoreFold &score, mlir::Value array);
  /// Adds a copy of the nest for the sample: of a plan, or of the unmodified nest for plan 0.
  llvm::SmallVector<mlir::Value> addSample(unsigned plan);
  llvm::SmallVector<mlir::Value> addSampleArrays(const llvm::Twine &suffix, llvm::ArrayRef<mlir::Attribute> rowExtents);
  Copy copySample();
  int64_t sampleLength(bool isWritten) const;
  static llvm::SmallVector<mlir::Value> indicesOf(const Copy &copy, onf::StoreOp store);
  void storeIn(Copy &copy, llvm::ArrayRef<mlir::Value> arrays);
  std::optional<onf::SplitNest> splitSample(Copy &copy, int64_t length);
  /// Returns true if a plan rounds weights to a type in which small weights lose bits or underflow,
  /// so that errors of weights depend on their pivot.
  virtual bool roundsSmallWeights(unsigned plan) { return false; }
  void findPivots();
  void addPivots(const onf::SplitNest &written);
  void takePivots(Copy &copy);
  llvm::SmallVector<mlir::Value> storeSample(Copy &copy, const llvm::Twine &suffix,
                                             llvm::ArrayRef<mlir::Attribute> rowExtents);
  void addErrors(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> samples);
  using Samples = llvm::ArrayRef<llvm::SmallVector<mlir::Value>>;
  Code::Values squaredErrorsAt(Code &at, unsigned result, mlir::ValueRange indices, Samples samples);
  Code::Values squaredErrorsOf(Code &at, unsigned result, mlir::ValueRange row, llvm::SmallVector<mlir::Value> indices,
                               Samples samples);
  struct SampleOfHead;
  Code::Values estimateNorms(const SampleOfHead &look, unsigned result);
  mlir::Value planOfTable(Code &code, mlir::ValueRange head);
  double errorLeftForPlan(const NestResult &result);
  void addDecision();
  void addTable();
  void storeDecision(Code &code, mlir::ValueRange head, mlir::Value plan);
  Copy copyNest();
  void readSampledRows(Copy &copy, const ScoreFold &score, mlir::Value gathered);

  onf::KernelOp kernel;
  onf::ForOp nest;
  const Options &options;
  KernelEditor editor;
  OnDemand onDemand;
  llvm::SmallVector<ScoreFold> scores;
  llvm::SmallVector<NestResult, 2> results;
  bool isBound = false; // tolerances are for every input: bounds decide, not a sample

  llvm::SmallVector<mlir::Attribute> headNames, headExtents;
  RowSet picked;
  /// A pivot (running maximum or minimum) of the fold, its result number, and its value over all
  /// keys, for parts of the keys that are far from it.
  struct Pivot {
    onf::AccOp acc;
    unsigned result;
    mlir::Value array;
  };
  llvm::SmallVector<Pivot> pivots;
  llvm::SmallVector<mlir::Attribute> runs; // onf::kLaunchIfAttr
  Choice tried, sampled, chosen;           // sizes suffice; a sample is taken; the plan
  Choice earlier;                          // of an earlier pass, at its unmodified nest; or null
  unsigned numEarlier = 0;                 // plans of earlier passes
  bool isRefused = false;
  bool leavesAtOnce = false; // a copy of the unmodified nest runs first for heads that are not tried
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> errors;
  llvm::SmallVector<int64_t> table; // given plans of all passes, by head; missing ones are 0
  bool isTabled = false;
  mlir::Value planArray; // results for decisions, or null
  llvm::SmallVector<mlir::Value> estimateArrays;
  llvm::SmallVector<mlir::Value> earlierEstimates; // of earlier passes, or null
};

class Adapter final : public Chooser {
public:
  using Chooser::Chooser;

  bool plan(std::string &why);
  void run();

private:
  bool findPlans(std::string &why);
  bool keepFastPlans(std::string &why);
  unsigned numPlans() const override { return plans.size(); }
  std::string describe(unsigned number) override;
  llvm::SmallVector<std::string> listLaws(unsigned number) override;
  void rewrite(Copy &copy, unsigned plan, mlir::ValueRange rowIndices) override;
  mlir::Value loadMagnitude(Code &at, mlir::IRMapping &map) override;
  bool isMagnitudeSquare() override;
  bool roundsSmallWeights(unsigned plan) override {
    const Plan &of = plans[plan - 1];
    return of.half ? of.sumHalf && of.sumHalf.isF16() : of.sums;
  }
  mlir::Value isUnseen(Code &code, mlir::ValueRange head, unsigned plan, mlir::Value present) override;

  //===--- Shared by all plans -------------------------------------------===//
  std::optional<unsigned> rowAxisOf(const ScoreFold &score);
  std::string namesOf(llvm::ArrayRef<WeightedSum> list, llvm::StringRef separator);
  std::string nameOf(const Operand &operand) { return kernel.getArrayName(operand.array().getArgNumber()).str(); }
  bool hasRowsOfNest(const Operand &operand);
  std::pair<SymExpr, SymExpr> weigh();
  /// Returns true if every tolerance is at least `epsilon`.
  bool allow(double epsilon) {
    return llvm::all_of(results, [&](const NestResult &result) { return result.allowed.epsilon >= epsilon; });
  }
  void addSizeCondition();
  /// Returns the largest of all parts, evaluated where `present` (null: always).
  static mlir::Value largestOfParts(Code &code, mlir::Value parts, mlir::ValueRange others, mlir::Value present);
  mlir::Value addPartsOf(mlir::Value largest, llvm::ArrayRef<mlir::Attribute> otherNames,
                         llvm::ArrayRef<mlir::Attribute> otherExtents, const Choice &where);

  //===--- Extremes of parts of an axis (Extremes.cpp) ----------------------===//
  /// The largest and the smallest element per column and part, [others…, part, column].
  struct Extremes {
    /// A part has `steps` times `atOnce` indices; the loads of one step overlap.
    struct Part {
      int64_t count, atOnce;
      SymExpr steps;
      std::function<mlir::Value(Code &, mlir::Value part, mlir::Value step, int64_t k)> place;
    };
    mlir::Value high, low;
    int64_t parts = 0;
    /// Returns the largest |x − mean| (or |x|) of a column over `count` parts from `first` on, or
    /// from the first part on.
    mlir::Value largestOf(Code &code, mlir::ValueRange others, mlir::Value first, int64_t count, mlir::Value column,
                          mlir::Value mean) const;
  };
  Extremes addExtremes(mlir::BlockArgument array, unsigned along, unsigned column, const Extremes::Part &part,
                       llvm::function_ref<Choice(const Axes &)> where);

  //===--- Where operands are read (Earlier.cpp) ---------------------------===//
  Choice whereRead(mlir::Value array, const Axes &axes);
  Choice whereReadFew(mlir::Value array, const Axes &axes);
  mlir::Value isNeeded(Code &code, const Choice &where, mlir::ValueRange indices);
  struct Need {
    llvm::SmallVector<unsigned> axes;     // axes of an array that indices of the head address
    llvm::SmallVector<mlir::Value> terms; // their index expressions
    llvm::SmallVector<mlir::Attribute> extents;
    mlir::Value array; // 1 if some head that reads it is tried
  };
  Need findNeed(mlir::Value array);
  mlir::Value addNeed(const Need &need);
  bool isSwitch(mlir::Value array) const;
  llvm::SmallVector<onf::ForOp> switchedNests();

  //===--- 8 bits (Operands.cpp, Copies.cpp, WeightedSums.cpp) ------------------===//
  bool addBytesPlan(std::string &why);
  void addBytes();
  /// Returns true if all keys, and all rows of a head, share one scale, as tensor cores need.
  bool hasCommonScales(const ScoreFold &score) { return options.sums && score.keyAxis && rowAxisOf(score); }
  RoundedArray rounded(const Operand &operand) { return roundedArrays[{operand.array(), operand.axis}]; }
  const Mean *findMean(const ScoreFold &score);
  Mean addMean(mlir::BlockArgument keys, unsigned axis, bool ifLarge = false);
  RoundedValues addRoundedValues(const WeightedSum &weighted);
  struct ValueReader;
  bool areScalesOfPart(const WeightedSum &weighted);
  RoundedValues addValueScales(const WeightedSum &weighted);
  bool asksScores(const Plan &plan);
  mlir::Value addReach(const ScoreFold &score, bool ofSample);
  llvm::SmallVector<mlir::Value> addFactorsOfKeys(const ScoreFold &score);
  /// The standard deviation of score errors from which weights change strongly.
  static constexpr double kMuch = 0.2;
  struct ScoreErrors {
    llvm::SmallVector<mlir::Value> squares;
    mlir::Value beyond;
  };
  ScoreErrors measureScores(Code &code, mlir::ValueRange head, unsigned plan, mlir::Value present);
  static mlir::Value isOffBy(Code &code, const ScoreErrors &errors, double much);
  static mlir::Value either(Code &code, mlir::Value a, mlir::Value b);
  mlir::Value addShiftArray(const ScoreFold &score);
  void storeShift(Code &code, const ScoreFold &score, const Mean &mean, mlir::Value array, mlir::ValueRange indices);
  void roundScore(Copy &copy, const ScoreFold &score, const RoundedArray &row, mlir::ValueRange rowIndices,
                  const RoundedArray &key);
  void roundWeightedSum(Copy &copy, const WeightedSum &weighted);
  mlir::Value multiplyWeight(Copy &copy, const WeightedSum &weighted, double by,
                             std::optional<double> exponent = std::nullopt);
  RowReader readRows(mlir::Value array, unsigned axis, const Mean *mean, std::optional<unsigned> across);
  RoundedArray addScaleOfPart(const RowReader &rows);
  void addScaleOfAll(const RowReader &rows, RoundedArray &result);
  void addScales();
  void takeScales(const Adapter &whole);
  RoundedArray addRounded(mlir::Value array, unsigned axis, const Mean *mean = nullptr,
                          std::optional<unsigned> across = std::nullopt,
                          llvm::function_ref<void(Code &, mlir::ValueRange)> also = nullptr);

  //===--- Few rows and keys first (Pilot.cpp) -----------------------------===//
  bool canPilot();
  llvm::SmallVector<std::pair<SymExpr, SymExpr>> pilotConditions();
  void addPiloted(Code &code, mlir::Value isLarge);
  mlir::Value addSubset(mlir::Value array, unsigned axis, int64_t count, const Choice &where, onf::ForOp before);
  Copy addPilotNest(Adapter &small, const Choice &where);
  void addPilot();

  //===--- Errors bounded for every input (BoundPlans.cpp) -----------------===//
  bool planBound(std::string &why);
  void runBound();

  //===--- 16 bits (Halves.cpp) --------------------------------------------===//
  bool addHalvesPlan(std::string &why);
  void addHalves(const Plan &plan);
  RoundedArray addHalf(mlir::Value array, unsigned axis, unsigned across, mlir::Type element, bool hasRest);
  void fillBf16(const RowReader &rows, llvm::StringRef name, RoundedArray &result);
  void fillF16(const RowReader &rows, llvm::StringRef name, RoundedArray &result);
  RoundedArray &half(mlir::Value array, unsigned axis, unsigned across, mlir::Type element) {
    return halves[{array, axis, across, element}];
  }
  /// Return the axis of the rows or keys; without one, the first other axis, because bf16 needs no
  /// scale.
  unsigned halfRowAxis(const ScoreFold &score) { return rowAxisOf(score).value_or(score.row.axis == 0); }
  unsigned halfKeyAxis(const ScoreFold &score) { return score.keyAxis.value_or(score.key.axis == 0); }
  RoundedArray &halfOfRow(const ScoreFold &score, mlir::Type element) {
    return half(score.row.array(), score.row.axis, halfRowAxis(score), element);
  }
  RoundedArray &halfOfKey(const ScoreFold &score, mlir::Type element) {
    return half(score.key.array(), score.key.axis, halfKeyAxis(score), element);
  }
  void halveScore(Copy &copy, unsigned number, const Plan &plan, mlir::ValueRange rowIndices);
  void halveWeightedSum(Copy &copy, const WeightedSum &weighted, const Plan &plan);
  std::pair<mlir::Value, mlir::Value> splitWeight(Copy &copy, mlir::Value weight, mlir::Type element);

  Choice piloted;
  llvm::MapVector<mlir::Value, mlir::Value> origins; // from the pilot's partial arrays
  llvm::SmallVector<Need> needs;
  llvm::SmallVector<WeightedSum> weightedSums;
  llvm::SmallVector<Plan, 2> plans;
  llvm::MapVector<std::pair<mlir::Value, unsigned>, RoundedArray> roundedArrays;
  llvm::DenseMap<mlir::Value, RoundedValues> roundedValues;
  llvm::DenseMap<mlir::Value, Mean> means;
  llvm::DenseMap<const ScoreFold *, mlir::Value> shifts; // law B1: the score of the mean key
  llvm::SmallVector<RoundedArray> gatheredRounded;
  llvm::SmallVector<mlir::Value> reach; // |factor · row|² of the sampled rows, by score
  std::optional<Bounds> bounds;
  llvm::SmallVector<WeightedSum> anyWeightedSums; // weighted sums with any weights, for 16 bits
  llvm::MapVector<std::tuple<mlir::Value, unsigned, unsigned, mlir::Type>, RoundedArray> halves;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> gatheredHalves;
};

mlir::LogicalResult checkLaws(mlir::Operation *op, llvm::ArrayRef<std::string> disabled,
                              llvm::ArrayRef<const char *> known);
/// Returns true if the nest stores a result of its kernel, not only temporaries.
bool storesResult(onf::ForOp nest);
/// Returns true if the nest is an earlier pass's unmodified one, which may get more plans.
bool isLeftAsWritten(onf::KernelOp kernel, onf::ForOp nest);
bool isAdded(onf::KernelOp kernel, onf::ForOp nest);

/// Adds plans to every nest of a module whose results have tolerances, unless the nest is lifted or
/// predicated; with `takesLeft` also to unmodified nests of earlier passes. `make` creates the
/// chooser of a nest. A remark that begins with `refusal` gives the reason for each other nest.
/// With `warns`, if no kernel has a plan, the first reason of a nest with scores, or of one that
/// stores a result, is a warning.
template <typename Make>
mlir::LogicalResult chooseEverywhere(mlir::ModuleOp module, llvm::StringRef refusal, bool warns, bool takesLeft,
                                     Make make) {
  struct Refused {
    onf::ForOp nest;
    std::string text;
    bool hasScores;
  };
  llvm::SmallVector<Refused> refused;
  for (auto kernel : module.getOps<onf::KernelOp>()) {
    if (!kernel.getWithin())
      continue;
    for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>())) {
      bool isLeft = takesLeft && isLeftAsWritten(kernel, nest);
      if (nest.getLift() || (nest.getChoices() && !isLeft) || isAdded(kernel, nest))
        continue;
      std::string why;
      auto chooser = make(kernel, nest);
      bool hasPlans = chooser.plan(why);
      if (!hasPlans) {
        refused.push_back({nest, refusal.str() + why, chooser.hasScores()});
        chooser.refuse();
      }
      if ((hasPlans || isLeft) && mlir::failed(chooser.readTable()))
        return mlir::failure();
      if (hasPlans)
        chooser.run();
    }
  }
  for (auto kernel : module.getOps<onf::KernelOp>())
    warns &= !kernel->hasAttr(kSpentAttr);
  auto warned = llvm::find_if(refused, [](const Refused &each) { return each.hasScores; });
  if (warned == refused.end())
    warned = llvm::find_if(refused, [](const Refused &each) { return storesResult(each.nest); });
  for (Refused &each : refused)
    warns && &each == warned ? each.nest.emitWarning(each.text) : each.nest.emitRemark(each.text);
  return mlir::success();
}

/// Fuses nests without contractions over the same indices, if neither depends on the other.
void fuseNests(llvm::SmallVector<onf::ForOp> nests);

/// Returns the value that `map` has for `value`, or clones the operations that compute it.
mlir::Value copyOf(Code &at, mlir::Value value, mlir::IRMapping &map);

/// For each axis of an array, its place in another array; none for an axis that array lacks.
using Places = llvm::SmallVector<std::optional<unsigned>>;
Places placesWithout(unsigned rank, llvm::ArrayRef<unsigned> axes);
/// Returns the axes of an array without `axes`, in order; partsOf appends an axis of parts.
Axes axesWithout(unsigned rank, llvm::ArrayRef<unsigned> axes);
Axes partsOf(Axes axes);
/// Loads the element of `load` from `array`, with axes at `places` and indices mapped by `map`.
mlir::Value loadAs(Code &at, onf::LoadOp load, mlir::Value array, const Places &places, mlir::IRMapping &map);
/// Loads an operand's element at index k of the contraction, from an array of the same shape.
mlir::Value loadAt(Code &at, const Operand &operand, mlir::Value array, mlir::Value k, mlir::IRMapping &map);
/// Load the scale and the largest magnitude of the row that an operand reads.
mlir::Value loadScale(Code &at, const Operand &operand, const RoundedArray &rounded, mlir::IRMapping &map);
mlir::Value loadLargest(Code &at, const Operand &operand, const RoundedArray &rounded, mlir::IRMapping &map);
/// Loads whether a row with that scale has an element beyond it, as 0 or 1.
mlir::Value loadBeyond(Code &at, const Operand &operand, const RoundedArray &rounded, mlir::IRMapping &map);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_ADAPTER_H
