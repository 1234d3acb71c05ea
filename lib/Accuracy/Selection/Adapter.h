//===- Adapter.h - one nest in several precisions ---------------*- C++ -*-===//
//
// A nest that contracts rows of inputs is written once more for each plan, and each copy
// runs at those indices of the axes in front of the rows where a sample says that its
// results are near enough to those of the nest as it was written. In front of them stand
// the nests that make what copies read, pick the sample, compute it by every copy, and decide.
//
// `Chooser` is what does not depend on how plans differ from the nest as written: results and
// their tolerances, the sample, the errors, the decision. `Adapter` has plans with operands in
// fewer bits.
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

/// The largest magnitude of an array in f16 is made at least 2^kTopOfF16 and less than twice that,
/// by a power of 2.
inline constexpr int kTopOfF16 = 14;

/// Rows of a sample.
inline constexpr int64_t kSample = 64;
/// One of them is from each of so many equal parts of the rows, and one from each group of parts.
struct Parts {
  int64_t count, perGroup;
  constexpr int64_t numGroups() const { return count / perGroup; }
};
inline constexpr Parts kParts{56, 7};
static_assert(kParts.count + kParts.numGroups() == kSample);
/// Indices of the fold that a part of the sample runs over.
inline constexpr int64_t kPartLength = 2048;

/// With fewer rows, or a fold over fewer indices, nothing is tried.
inline constexpr int64_t kFewest = 256;

/// The decision where nothing shows that the nest as it is written keeps a tolerance that holds for
/// every input.
inline constexpr int64_t kNotShown = -1;

/// The axes of an array that those of a nest over its elements, or over what follows from them,
/// are.
using Axes = llvm::SmallVector<std::optional<unsigned>>;

/// What the pass is asked for.
struct Options {
  bool decisions = false, check = false, sums = false, halves = false;
  bool bf16 = false; ///< one plan of bf16, in place of 8 bits for scores alone
  std::string table;
  bool isShared = false;    ///< numbers of the table beyond the plans are those of a pass behind
  int64_t fewest = kFewest; ///< rows and keys; 0: where it pays
  /// Few rows and keys come first where an index in front of the rows has more multiply-adds than
  /// that.
  int64_t pilot = kPilotWherePays;
  static constexpr int64_t kPilotWherePays = -1; ///< if `fewest` is 0
  /// Why a nest that is written for a plan would run slowly; empty where it would not. Null: not
  /// asked.
  NestTeller tellsSlow = {};
  /// Multiply-adds of the nest for each byte that is moved in front of a plan, where both take the
  /// same time: of plans of 8 bits, of 16 bits, of sums of two floats.
  int64_t workPerByte8 = 470, workPerByte16 = 14, workPerByteSplit = 21;
  llvm::SmallVector<std::string> disabled = {}; ///< names of laws that are not applied

  bool uses(llvm::StringRef law) const { return !llvm::is_contained(disabled, law); }
};

/// An array in fewer bits, and what a row of it along the contraction's axis is a multiple of: one
/// for each, or for all that the axis `across` tells apart, as tensor cores want it. `largest` are
/// the magnitudes of the rows then, that axis last. Where that one scale was found from a part of
/// the rows, `beyond` is 1 if some row has an element that is much too large for it, and 0
/// otherwise. What rounding to 16 bits leaves may be a second array, `rest`, in 16 bits too.
struct Rounded {
  mlir::Value data, scale, largest, beyond, rest;
  mlir::Value inverse,
      limit; ///< 1 / scale, and the largest magnitude that a scale from a part of the rows holds
  std::optional<unsigned> across;
};

struct ArrayRows; // Halves.cpp

/// A vector near the mean of an array along one axis.
struct Mean {
  mlir::Value array;
  unsigned axis = 0;
};

/// Values of sums in e4m3, j adjacent and as many as a multiple of 16; what they are multiplied
/// with by column, and what they are smaller by.
struct RoundedValues {
  mlir::Value data, scale, inverse;
  Mean mean;
};

/// A result that the nest stores, with the tolerance it has.
struct Result {
  onf::StoreOp store;
  Tolerance allowed;
  llvm::SmallVector<mlir::Attribute> names,
      extents;        // of the loops inside of the nest around the store
  mlir::Value sample; // of the unmodified nest
  mlir::Value norm;   // Σ |sample|² of a row
};

/// One way to compute the nest: the scores whose operands are rounded.
struct Plan {
  llvm::SmallVector<unsigned> scores;
  bool sums = false; // and what sums with an axis add up
  /// The floats of 16 bits that operands of scores, and of sums, are; otherwise they have 8.
  mlir::Type half, sumHalf;
  /// Whether each operand is a sum of two such floats, and a product that of three.
  bool isSplit = false;
};

/// One nest of a kernel, the plans that compute it, and the choice between them.
class Chooser {
public:
  Chooser(onf::KernelOp kernel, onf::ForOp nest, const Options &options)
      : kernel(kernel), nest(nest), options(options), editor(kernel, nest), onDemand(kernel) {}
  virtual ~Chooser() = default;
  bool hasScores() const { return !scores.empty(); }
  mlir::LogicalResult readTable();
  /// The plans of this pass are none of the nest's.
  void refuse() {
    isRefused = true;
    findEarlier();
  }

protected:
  //===--- What plans differ in -------------------------------------------===//
  struct Copy {
    onf::ForOp nest;
    mlir::IRMapping map;
    mlir::Value row;                                                        // the number of the row
    llvm::DenseMap<mlir::Value, mlir::Value> weights;                       // as they are, and multiplied
    llvm::DenseMap<mlir::Value, std::pair<mlir::Value, mlir::Value>> split; // weights, and two floats of 16 bits
    llvm::DenseMap<unsigned, mlir::Value> totals;                           // results of the fold, divided again
    llvm::DenseMap<unsigned, mlir::Value> moved; // what results of the fold are smaller by inside of it
  };
  virtual unsigned numPlans() const = 0;
  virtual std::string describe(unsigned plan) = 0;
  /// What a plan applies: "B1: …", one text for each law of docs/Accuracy/Bounds.md or
  /// docs/Accuracy/LowRank.md.
  virtual llvm::SmallVector<std::string> listLaws(unsigned plan) = 0;
  /// Some rows, for which copies of the nest are computed.
  struct RowSet {
    llvm::SmallVector<mlir::Attribute> names,
        extents;                             ///< the axes in front of the rows, and theirs
    mlir::Value numbers;                     ///< of the rows of the nest
    mlir::Value shares;                      ///< how many rows each stands for
    llvm::SmallVector<mlir::Value> gathered; ///< their elements one behind the other, by score
  };
  /// Makes a copy of the nest one of a plan; `rowIndices` are those of the sample, if it is of
  /// that.
  virtual void rewrite(Copy &copy, unsigned plan, mlir::ValueRange rowIndices) = 0;
  /// Whether a choice is made at an index of the axes in front of the rows.
  mlir::Value isTried(Code &code, const Choice &choice, mlir::ValueRange head);
  /// A measure of a row, of which the sample has the largest of each group of parts.
  virtual mlir::Value loadMagnitude(Code &at, mlir::IRMapping &map) = 0;
  /// Whether that is the square of a size.
  virtual bool isMagnitudeSquare() = 0;
  /// Whether what a plan changes may stand in so few rows that no sample shows it, where `present`;
  /// null: never.
  virtual mlir::Value isUnseen(Code &code, mlir::ValueRange head, unsigned plan, mlir::Value present) { return {}; }

  //===--- What there is --------------------------------------------------===//
  /// Finds results with tolerances that a sample keeps, or with `takesBounds` with tolerances that
  /// hold for every input; all of a nest are of one kind.
  bool findResults(std::string &why, bool takesBounds = false);
  Result resultOf(onf::StoreOp store, const Tolerance &allowed);
  bool isErrorOfRow(onf::StoreOp store);
  void findHead();
  /// Plans of passes before and of this one: the numbers of the former come first.
  unsigned numAll() const { return numEarlier + (isRefused ? 0 : numPlans()); }
  std::string base() { return kernel.getArrayName(numberOf(results[0].store)).str(); }
  static unsigned numberOf(onf::StoreOp store) {
    return llvm::cast<mlir::BlockArgument>(store.getArray()).getArgNumber();
  }
  SymExpr rows() {
    return *SymExpr::parse(llvm::cast<mlir::StringAttr>(nest.getExtents().getValue().back()).getValue());
  }

  //===--- The whole ------------------------------------------------------===//
  void note();
  /// Why no scores were found.
  std::string whyNoScores();
  bool needsEstimates() const { return !isTabled || options.check; }
  void addDecisionResults();
  /// Where the nest is what passes before have left as it is written (Earlier.cpp).
  void findEarlier();
  void leadAlternatives();
  void takeAlternatives();
  void addOpen(llvm::function_ref<mlir::Value(Code &, mlir::ValueRange)> also = nullptr);
  mlir::Value findDecision(llvm::StringRef of, mlir::Type element);
  mlir::Value extendDecision(mlir::Value result);
  mlir::Value takenBefore(Code &code, mlir::ValueRange head, mlir::Value plan);
  /// Samples, their errors and the decision, or the table; then the copies of all plans.
  void addChoice();
  void addCopies();

  //===--- The nests in front ---------------------------------------------===//
  /// Rows and keys are `fewest` or more, and x > y for sizes that are not negative, if that is
  /// given.
  void addCondition(int64_t fewest, std::optional<std::pair<SymExpr, SymExpr>> larger = std::nullopt,
                    llvm::function_ref<void(Code &, mlir::Value)> beside = nullptr);
  void addSampleRows();
  mlir::Value addGathered(const Score &score, mlir::Value array);
  /// The sample as a plan computes it or, for plan 0, as the nest is written.
  llvm::SmallVector<mlir::Value> addSample(unsigned plan);
  /// Arrays for what copies of the nest store, of its results' types or of another one.
  llvm::SmallVector<mlir::Value> addSampleArrays(const llvm::Twine &suffix, llvm::ArrayRef<mlir::Attribute> rowExtents);
  Copy copySample(const Choice &where);
  int64_t sampleLength(bool isWritten) const;
  /// The indices of the nest and of the loops around a store of a copy.
  static llvm::SmallVector<mlir::Value> indicesOf(const Copy &copy, onf::StoreOp store);
  void storeIn(Copy &copy, llvm::ArrayRef<mlir::Value> arrays);
  std::optional<onf::SplitNest> splitSample(Copy &copy, int64_t length);
  /// Whether a plan rounds weights to floats that have fewer bits, or none, for small ones, so that
  /// their errors depend on the extreme that they are relative to.
  virtual bool roundsSmallWeights(unsigned plan) { return false; }
  void findReferences();
  void addReferences(const onf::SplitNest &written);
  void takeReferences(Copy &copy);
  llvm::SmallVector<mlir::Value> storeSample(Copy &copy, const llvm::Twine &suffix,
                                             llvm::ArrayRef<mlir::Attribute> rowExtents);
  void addErrors(llvm::ArrayRef<llvm::SmallVector<mlir::Value>> samples);
  using Samples = llvm::ArrayRef<llvm::SmallVector<mlir::Value>>;
  Code::Values errorsAt(Code &at, unsigned result, mlir::ValueRange indices, Samples samples);
  Code::Values errorsOf(Code &at, unsigned result, mlir::ValueRange row, llvm::SmallVector<mlir::Value> indices,
                        Samples samples);
  struct Look;
  Code::Values estimateNorms(const Look &look, unsigned result);
  mlir::Value tabled(Code &code, mlir::ValueRange head);
  double leftOf(const Result &result);
  void addDecision();
  void addTable();
  void storeDecision(Code &code, mlir::ValueRange head, mlir::Value plan);
  Copy copyNest();
  void readSampledRows(Copy &copy, const Score &score, mlir::Value gathered);

  /// Where an array is read that has the axis of rows or keys among these.
  virtual Choice whereRead(mlir::Value array, const Axes &axes) { return tried; }

  onf::KernelOp kernel;
  onf::ForOp nest;
  const Options &options;
  KernelEditor editor;
  OnDemand onDemand;
  llvm::SmallVector<Score> scores;
  llvm::SmallVector<Result, 2> results;
  bool isBound = false; // plans are taken where a bound on their errors allows it, not a sample

  llvm::SmallVector<mlir::Attribute> headNames, headExtents; // the axes in front of the rows
  RowSet picked;                                             // the sample
  /// An extreme of the nest's fold, the number of its result, and an array with that of all keys
  /// for the parts that are far from it.
  struct Reference {
    onf::AccOp acc;
    unsigned result;
    mlir::Value array;
  };
  llvm::SmallVector<Reference> references;
  llvm::SmallVector<mlir::Attribute> runs; // onf::kRunsAttr
  Choice tried, sampled, chosen;           // where anything is tried, where a sample is taken, what is chosen
  Choice earlier;                          // by passes before, with the value for the nest as it is written; or null
  unsigned numEarlier = 0;                 // plans of theirs
  bool isRefused = false;
  bool leavesAtOnce = false; // whether the nest stands once more in front, for what is not tried
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> errors; // by plan and result
  llvm::SmallVector<int64_t> table;                         // plans that are given, of all passes; 0 behind its end
  bool isTabled = false;                                    // whether they are given
  mlir::Value planArray;                                    // results for the decisions, if there are such
  llvm::SmallVector<mlir::Value> estimateArrays;
  llvm::SmallVector<mlir::Value> earlierEstimates; // those of passes before, or null
};

/// Adapts one nest of a kernel: plans in fewer bits.
class Adapter final : public Chooser {
public:
  using Chooser::Chooser;

  /// Whether there is anything to adapt; `why` says why not.
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

  //===--- What plans share -----------------------------------------------===//
  std::optional<unsigned> rowAxisOf(const Score &score);
  std::string nameOf(const Operand &operand) { return kernel.getArrayName(operand.array().getArgNumber()).str(); }
  bool hasRowsOfNest(const Operand &operand);
  std::pair<SymExpr, SymExpr> weigh();
  /// Whether no result has a tolerance below that.
  bool allow(double epsilon) {
    return llvm::all_of(results, [&](const Result &result) { return result.allowed.epsilon >= epsilon; });
  }
  void addSizeCondition();
  /// The largest of all parts, at indices of the other axes, where `present`; null: anywhere.
  static mlir::Value largestOfParts(Code &code, mlir::Value parts, mlir::ValueRange others, mlir::Value present);
  mlir::Value addPartsOf(mlir::Value largest, llvm::ArrayRef<mlir::Attribute> otherNames,
                         llvm::ArrayRef<mlir::Attribute> otherExtents, const Choice &where);

  //===--- Extremes of parts of an axis (Extremes.cpp) ----------------------===//
  /// The largest and the smallest elements of each column, [others…, part, column].
  struct Extremes {
    /// Which indices are of a part: `atOnce` of each step, whose loads are in flight together.
    struct Part {
      int64_t count, atOnce;
      SymExpr steps;
      std::function<mlir::Value(Code &, mlir::Value part, mlir::Value step, int64_t k)> place;
    };
    mlir::Value high, low;
    int64_t parts = 0;
    /// The largest |x − mean| of a column, or |x|, of `count` parts from `first` on, or from the
    /// first one.
    mlir::Value largestOf(Code &code, mlir::ValueRange others, mlir::Value first, int64_t count, mlir::Value column,
                          mlir::Value mean) const;
    static llvm::SmallVector<mlir::Value> placesOf(mlir::ValueRange others, mlir::Value part, mlir::Value column);
  };
  Extremes addExtremes(mlir::BlockArgument array, unsigned along, unsigned column, const Extremes::Part &part,
                       llvm::function_ref<Choice(const Axes &)> where);

  //===--- Where operands are read (Earlier.cpp) ---------------------------===//
  Choice whereRead(mlir::Value array, const Axes &axes) override;
  Choice whereReadFew(mlir::Value array, const Axes &axes);
  mlir::Value isNeeded(Code &code, const Choice &where, mlir::ValueRange indices);
  struct Need {
    llvm::SmallVector<unsigned> axes;     // of an array that are at indices in front of the rows
    llvm::SmallVector<mlir::Value> terms; // these, by axis
    llvm::SmallVector<mlir::Attribute> extents;
    mlir::Value array; // 1 where some of its readers are tried
  };
  Need findNeed(mlir::Value array);
  mlir::Value addNeed(const Need &need);
  bool isSwitch(mlir::Value array) const;
  llvm::SmallVector<onf::ForOp> switchedNests();

  //===--- 8 bits (Operands.cpp, Copies.cpp, Carriers.cpp) ------------------===//
  bool addBytesPlan(std::string &why);
  void addBytes();
  /// Whether one scale is that of all keys, and of all rows, as tensor cores want them.
  bool hasCommonScales(const Score &score) { return options.sums && score.keyAxis && rowAxisOf(score); }
  Rounded rounded(const Operand &operand) { return roundedArrays[{operand.array(), operand.axis}]; }
  const Mean *findMean(const Score &score);
  Mean addMean(mlir::BlockArgument keys, unsigned axis, bool ifLarge = false);
  RoundedValues addRoundedValues(const Carrier &carrier);
  struct ValueReader;
  bool areScalesOfPart(const Carrier &carrier);
  RoundedValues addValueScales(const Carrier &carrier);
  bool asksScores(const Plan &plan);
  mlir::Value addReach(const Score &score, bool ofSample);
  llvm::SmallVector<mlir::Value> addFactorsOfKeys(const Score &score);
  /// Standard deviation of the error of a score that changes weights by much.
  static constexpr double kMuch = 0.2;
  struct ScoreErrors {
    llvm::SmallVector<mlir::Value> squares;
    mlir::Value beyond; // or null
  };
  ScoreErrors measureScores(Code &code, mlir::ValueRange head, unsigned plan, mlir::Value present);
  static mlir::Value isOffBy(Code &code, const ScoreErrors &errors, double much);
  static mlir::Value either(Code &code, mlir::Value a, mlir::Value b);
  mlir::Value addShiftArray(const Score &score);
  void storeShift(Code &code, const Score &score, const Mean &mean, mlir::Value array, mlir::ValueRange indices);
  void roundScore(Copy &copy, const Score &score, const Rounded &row, mlir::ValueRange rowIndices, const Rounded &key);
  void roundCarrier(Copy &copy, const Carrier &carrier);
  mlir::Value multiplyWeight(Copy &copy, const Carrier &carrier, double by,
                             std::optional<double> exponent = std::nullopt);
  struct RowReader;
  RowReader readRows(mlir::Value array, unsigned axis, const Mean *mean, std::optional<unsigned> across);
  Rounded addScaleOfPart(const RowReader &rows);
  void addScaleOfAll(const RowReader &rows, Rounded &result);
  void addScales();
  void takeScales(const Adapter &whole);
  Rounded addRounded(mlir::Value array, unsigned axis, const Mean *mean = nullptr,
                     std::optional<unsigned> across = std::nullopt,
                     llvm::function_ref<void(Code &, mlir::ValueRange)> beside = nullptr);

  //===--- Few rows and keys first (Pilot.cpp) -----------------------------===//
  bool canPilot();
  llvm::SmallVector<std::pair<SymExpr, SymExpr>> pilotConditions();
  void addPiloted(Code &code, mlir::Value isLarge);
  mlir::Value addPart(mlir::Value array, unsigned axis, int64_t count, const Choice &where, onf::ForOp before);
  Copy addPilotNest(Adapter &small, const Choice &where);
  void addPilot();

  //===--- Errors bounded for every input (BoundPlans.cpp) -----------------===//
  bool planBound(std::string &why);
  void runBound();

  //===--- 16 bits (Halves.cpp) --------------------------------------------===//
  bool addHalvesPlan(std::string &why);
  void addHalves(const Plan &plan);
  Rounded addHalf(mlir::Value array, unsigned axis, unsigned across, mlir::Type element, bool hasRest);
  void fillBf16(const ArrayRows &rows, llvm::StringRef name, Rounded &result);
  void fillF16(const ArrayRows &rows, llvm::StringRef name, unsigned across, Rounded &result);
  Rounded &half(mlir::Value array, unsigned axis, unsigned across, mlir::Type element) {
    return halves[{array, axis, across, element}];
  }
  unsigned halfRowAxis(const Score &score);
  void halveScore(Copy &copy, unsigned number, const Plan &plan, mlir::ValueRange rowIndices);
  void halveCarrier(Copy &copy, const Carrier &carrier, const Plan &plan);
  std::pair<mlir::Value, mlir::Value> splitWeight(Copy &copy, mlir::Value weight, mlir::Type element);

  Choice piloted;                                    // where the pilot is computed
  llvm::MapVector<mlir::Value, mlir::Value> origins; // of its copies, by these
  llvm::SmallVector<Need> needs;
  llvm::SmallVector<Carrier> carriers;
  llvm::SmallVector<Plan, 2> plans;
  llvm::MapVector<std::pair<mlir::Value, unsigned>, Rounded> roundedArrays;
  llvm::DenseMap<mlir::Value, RoundedValues> roundedValues;
  llvm::DenseMap<mlir::Value, Mean> means;           // of keys
  llvm::DenseMap<const Score *, mlir::Value> shifts; // what scores are smaller by
  llvm::SmallVector<Rounded> gatheredRounded;
  llvm::SmallVector<mlir::Value> reach; // |factor · row|² of the rows of the sample, by score
  std::optional<Bounds> bounds;
  llvm::SmallVector<Carrier> anyCarriers; // those of any weights, which 16 bits take
  llvm::MapVector<std::tuple<mlir::Value, unsigned, unsigned, mlir::Type>, Rounded> halves;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> gatheredHalves; // by array and score
};

/// An error at the operation where a law is to be left out that is none of these.
mlir::LogicalResult checkLaws(mlir::Operation *op, llvm::ArrayRef<std::string> disabled,
                              llvm::ArrayRef<const char *> known);
/// Whether a nest stores to a result of its kernel, and not to temporaries alone.
bool storesResult(onf::ForOp nest);
/// Whether a nest is what a pass before has left as it is written, beside copies of it that are
/// chosen elsewhere.
bool isLeftAsWritten(onf::KernelOp kernel, onf::ForOp nest);
/// Whether a pass has added the nest, so that it stores no result of the specification.
bool isAdded(onf::KernelOp kernel, onf::ForOp nest);

/// Gives every nest of a module that may have an error, and is neither lifted nor chosen, its
/// plans; with `takesLeft` those too that passes before have left as they are written. `make` gives
/// the chooser of a nest of a kernel. A remark that begins so says why one has none; with `warns`
/// the first of a nest that stores a result is a warning, where no kernel has a plan.
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
  // The reason of one nest is a warning: of one with sums of products, or of one that stores a
  // result.
  auto warned = llvm::find_if(refused, [](const Refused &each) { return each.hasScores; });
  if (warned == refused.end())
    warned = llvm::find_if(refused, [](const Refused &each) { return storesResult(each.nest); });
  for (Refused &each : refused)
    warns && &each == warned ? each.nest.emitWarning(each.text) : each.nest.emitRemark(each.text);
  return mlir::success();
}

/// Makes one nest of those that run over the same and do not need one another, where contractions
/// are apart: fewer are launched.
void fuseNests(llvm::SmallVector<onf::ForOp> nests);

/// The value that `map` has for this one, or a copy of what computes it.
mlir::Value copyOf(Code &at, mlir::Value value, mlir::IRMapping &map);

/// Where each axis of an array stands in another one; nothing for one that it lacks, which has
/// an index of its own.
using Places = llvm::SmallVector<std::optional<unsigned>>;
/// The places in an array that lacks these axes.
Places placesWithout(unsigned rank, llvm::ArrayRef<unsigned> axes);
/// The axes of an array but these, in order, as those of a nest; and the same with one more behind
/// them that is none.
Axes axesWithout(unsigned rank, llvm::ArrayRef<unsigned> axes);
Axes partsOf(Axes axes);
/// Loads from `array` what the load reads, with its axes at these places and indices by `map`.
mlir::Value loadAs(Code &at, onf::LoadOp load, mlir::Value array, const Places &places, mlir::IRMapping &map);
/// What a score's operand reads at index k of the contraction, from an array of its shape.
mlir::Value loadAt(Code &at, const Operand &operand, mlir::Value array, mlir::Value k, mlir::IRMapping &map);
/// The scale of the row that it reads, and the row's largest magnitude.
mlir::Value loadScale(Code &at, const Operand &operand, const Rounded &rounded, mlir::IRMapping &map);
mlir::Value loadLargest(Code &at, const Operand &operand, const Rounded &rounded, mlir::IRMapping &map);
/// Whether a row of those with that scale has an element beyond it, as 0 or 1.
mlir::Value loadBeyond(Code &at, const Operand &operand, const Rounded &rounded, mlir::IRMapping &map);

} // namespace moa::accuracy

#endif // MOA_ACCURACY_ADAPTER_H
