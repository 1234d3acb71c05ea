//===- Derivation.h - plans of row nests and folds --------------*- C++ -*-===//
#ifndef MOA_CONVERSION_DNFTOONF_DERIVATION_H
#define MOA_CONVERSION_DNFTOONF_DERIVATION_H

#include "dialects/ONF/IR/ONF.h"
#include "lib/Conversion/DNFToONF/FoldRules.h"
#include "lib/Conversion/DNFToONF/InsideReads.h"
#include "lib/Support/Nominal.h"
#include "llvm/ADT/StringSet.h"

namespace moa {

/// An array that one nest stores and later ones load.
struct Temporary {
  std::string name;
  ArrayType type;
  Expr value;  // at the row indices
  Expr source; // the same before anything in it is stored
  Expr loaded; // `source` with loads of stored values, before its range is split
};

/// The axes of a domain: the user's names of the indices and their extents.
struct DomainAxis {
  std::string name;
  ExprAttr extent;
};
using Domain = llvm::SmallVector<DomainAxis>;
/// Free indices and their extents, from the outermost in.
using IndexExtents = llvm::SmallVector<std::pair<int64_t, SymExpr>>;

/// Returns whether one count is less than another, with unknown sizes taken as 4,096.
bool isLess(const SymExpr &x, const SymExpr &y);
bool isFloatSum(Expr e);
/// Returns an extent, or that of a reduction's range, if it is a number.
std::optional<int64_t> knownExtent(ExprAttr extent);
std::optional<int64_t> knownExtent(Expr reduce);
/// Returns the indices of `all` that a value depends on, in the order of the axes of its array. The
/// index `last`, the last axis of the result, comes last if it is given.
IndexExtents indicesOf(Expr value, const IndexExtents &all, int64_t last = -1);
/// Returns whether selections outside of reductions decide which operands of a value are needed.
bool hasConditions(Expr value);

/// One output of a nest: its value at the row indices and, if any, the axis that is carried inside
/// the row, with its index. Temporaries are numbered after the kernel's results.
struct OutputPlan {
  uint64_t result;
  Expr value;
  std::optional<int64_t> carried;
  size_t carriedAxis = 0;
  mlir::Location loc;
};

/// One state of a fold.
struct AccPlan {
  Expr reduce;
  std::string name;
  Expr body, present; // at the fold's index
  std::optional<int64_t> carried;
  unsigned pass = 0;
  llvm::SmallVector<Expr> deps; // reductions of the row that body or present read
  StateSet states;              // those in the same fold
  RescaleRule rescale;
};

/// One pass over a range.
struct FoldPlan {
  unsigned pass;
  ExprAttr extent;
  Expr present;
  int64_t index;
  llvm::SmallVector<AccPlan *> accs;
};

/// A nest over rows, and the values that each row computes.
struct NestPlan {
  NestPlan() = default;
  NestPlan(NestPlan &&) = default;
  NestPlan &operator=(NestPlan &&) = default;
  llvm::SmallVector<mlir::Attribute> extents; // ExprAttr
  llvm::SmallVector<std::string> names;
  llvm::SmallVector<int64_t> rows;
  llvm::SmallVector<OutputPlan> outputs;
  std::vector<std::unique_ptr<AccPlan>> accs;
  std::vector<FoldPlan> folds;
  IndexExtents rowExtents() const {
    IndexExtents result;
    for (auto [id, extent] : llvm::zip_equal(rows, extents))
      result.push_back({id, getSymExpr(extent)});
    return result;
  }
  /// Returns the state that a reduction is, or null.
  AccPlan *find(Expr reduce) const {
    auto acc = llvm::find_if(accs, [&](auto &each) { return each->reduce == reduce; });
    return acc == accs.end() ? nullptr : acc->get();
  }
  /// The free index of every fold over an extent.
  llvm::DenseMap<ExprAttr, int64_t> foldIndex;
  /// Extents of carried indices.
  std::map<int64_t, ExprAttr> carriedExtents;
  /// Carried indices that no output has: reductions over them read states that carry them.
  llvm::SmallVector<int64_t> innerAxes;
  /// Temporaries are stored in nests of their own.
  bool storesTemporary = false;
};

class FoldObserver;

class Derivation {
public:
  Derivation(ExprContext &exprs, dnf::KernelOp kernel, const llvm::StringSet<> &disabled,
             FoldObserver *observer = nullptr)
      : exprs(exprs), rules(exprs), openings(exprs), kernel(kernel), reads(exprs, kernel), disabled(disabled),
        observer(observer) {}

  std::vector<NestPlan> run();
  llvm::ArrayRef<Temporary> getTemporaries() const { return temporaries; }
  FoldRules &getRules() { return rules; }
  /// Returns the condition that 0 ≤ j < extent with `present` at `index` has an element.
  Expr makeAny(ExprAttr extent, int64_t index, Expr present);
  /// Returns ⊕ of the terms, each of them 0, that the state of `acc` leaves out (RescaleRule::leftOut).
  Expr makeLeftOut(const AccPlan &acc, int64_t index);
  /// Returns whether every read in `e` is in bounds for all values of these indices. A bound that
  /// is proved under a condition may not hold if an array is computed as a whole.
  bool readsInside(Expr e, IndexExtents indices);

private:
  bool enabled(llvm::StringRef rule) const { return !disabled.contains(rule); }
  Expr normalise(Expr e);
  Expr normaliseReduce(Expr e);
  bool rescalable(Expr e, int64_t j, Expr body, Expr present);
  Expr expand(Expr e, int64_t j, Expr body, Expr present);
  Expr hoist(Expr e, int64_t j, Expr body, Expr present);
  Expr distributePowers(Expr e, int64_t j, Expr body, Expr present);
  Expr hoistFactors(Expr e, int64_t j, Expr body, Expr present);
  Expr hoistFromExtreme(Expr e, int64_t j, Expr body, Expr present);
  bool isAtMostOne(ExprAttr extent, int64_t j, Expr factor, Expr present);
  bool isModerate(Expr e);
  bool mayLeaveRange(Expr e, int64_t j, llvm::ArrayRef<FoldRules::Factor> factors, Expr present);
  std::pair<Expr, Expr> conditionInTerm(Expr e, int64_t j, Expr body, Expr present);
  std::pair<Expr, Expr> shareRange(Expr e, int64_t j, Expr body, Expr present);
  Expr distribute(Expr e, int64_t j, Expr body, Expr present);
  std::optional<size_t> chooseCarried(Expr value, llvm::ArrayRef<int64_t> indices, const Domain &domain);
  int64_t rowIndex(size_t axis, llvm::StringRef name);
  IndexExtents rowsOf(const Domain &domain);
  /// `carries`: an axis may be carried inside the row.
  void addOutput(std::vector<NestPlan> &nests, OutputPlan output, const Domain &domain, bool carries = true);
  Expr valueOf(std::vector<NestPlan> &nests, ExprImporter &importer, dnf::OutputOp op, const Domain &domain);
  /// A product in Σ_j in which rows share the factors that depend on j: ± scale · Σ_e left · (Σ_j
  /// term).
  struct SharedTerm {
    Expr body = nullptr; // the product at j
    bool isNegative = false;
    Expr inner = nullptr;                 // Σ_e left · right, a factor of it; null if rows have only `scale`
    unsigned factor = 0;                  // its number in the body
    int64_t axis = 0;                     // e
    Expr left = nullptr, right = nullptr; // at the axis
    Expr term = nullptr;                  // right · …, at j and the axis
    Expr scale = nullptr;                 // free of j; null: 1
    llvm::SmallVector<Expr, 1> weights;   // of the distance from j to the last index
  };
  /// A sum over j of such products. Rows share its range, except for the index where it ends or
  /// begins.
  struct Association {
    Expr sum = nullptr;
    int64_t j = 0;
    Expr body = nullptr, present = nullptr; // of the sum, at j
    llvm::SmallVector<SharedTerm, 0> terms;
    Expr range = nullptr;            // the condition on j that rows share
    Expr ofRow = nullptr;            // a condition that is free of j
    Expr bound = nullptr;            // the last index, or the first one, which grows with `row`
    bool isFirst = false;            // `bound` is the first index
    llvm::SmallVector<Expr, 2> ends; // the bounds that grow with the row and whose minimum is `bound`
    int64_t row = 0;
    int64_t block = 0; // indices per part
    IndexExtents rows; // axes of the result and of surrounding reductions
  };
  /// Multiply-adds of both sides of the associative law. Scores that several sums share count once.
  struct AssociationCosts {
    SymExpr before, after;
    llvm::DenseSet<Expr> scores;
  };
  std::optional<Association> findAssociation(Expr t, const IndexExtents &rows, bool isAlways);
  bool findRange(Association &a, const IndexExtents &rows);
  void remarkOnRows(const Association &a, int64_t row, const llvm::Twine &why);
  bool multiplyOut(Expr product, bool isNegative, int64_t j, llvm::SmallVectorImpl<SharedTerm> &terms);
  bool takeApart(SharedTerm &term, const Association &a, std::optional<unsigned> number);
  void takeScaleOut(SharedTerm &term, int64_t j);
  void chooseBlocks(llvm::MutableArrayRef<Association> found);
  void addCosts(const Association &a, const IndexExtents &extents, AssociationCosts &costs);
  Expr contractWithRow(const Association &a, const SharedTerm &term, Expr stored, Expr present = nullptr);
  Expr addTerm(Expr a, const SharedTerm &term, Expr b);
  Expr buildAssociated(std::vector<NestPlan> &nests, const Association &a, const IndexExtents &rows);
  Expr weighedTerm(std::vector<NestPlan> &nests, const Association &a, const SharedTerm &term, const IndexExtents &rows,
                   Expr place, Expr whole);
  Expr storePrefix(std::vector<NestPlan> &nests, const Association &a, const SharedTerm &term, const IndexExtents &rows,
                   Expr before);
  Expr buildAssociatedByParts(std::vector<NestPlan> &nests, const Association &a, const IndexExtents &rows);
  void findAssociations(Expr value, IndexExtents rows, bool isAlways, llvm::DenseSet<Expr> &seen,
                        llvm::SmallVectorImpl<Association> &found);
  Expr replaceSums(Expr value, llvm::DenseMap<Expr, Expr> &after);
  Expr associate(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows);
  mlir::TypeAttr roundingOf(Expr left, Expr inner, Expr sum);
  Expr anyOf(Expr e);
  bool isAffordable(llvm::ArrayRef<SymExpr> extents, bool isPower = false);
  double workOf(Expr value);
  std::optional<IndexExtents> orderAsRead(Expr value, const IndexExtents &all);
  Expr indexByGroup(Expr sum, IndexExtents &all, llvm::DenseMap<int64_t, Expr> &at);
  Expr storeForRows(std::vector<NestPlan> &nests, Expr sum, IndexExtents all, int64_t last, bool isOfThreads,
                    mlir::Type type);
  bool isWorthStoring(Expr sum, const IndexExtents &all, size_t rows, std::optional<size_t> carried, bool isAlways,
                      std::optional<int64_t> left = std::nullopt);
  std::pair<mlir::Location, std::string> placeAndName(Expr sum);
  std::string temporaryName(llvm::StringRef base);
  Expr store(std::vector<NestPlan> &nests, Expr value, const IndexExtents &indices, mlir::Type type,
             llvm::StringRef name, mlir::Location loc, bool carries = true, bool isWritten = false);
  Expr storeSum(std::vector<NestPlan> &nests, Expr sum, const IndexExtents &indices, mlir::Type type,
                llvm::StringRef name, mlir::Location loc);
  void storeShared(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows, std::optional<size_t> carried,
                   llvm::DenseMap<Expr, Expr> &after);
  /// A reduction over the k up to a bound or, if it descends, from the bound on.
  struct Scan {
    int64_t k = 0;
    bool descends = false;
    Expr bound = nullptr;
    Expr term = nullptr, present = nullptr,
         others = nullptr; // the term, all conditions, and those other than the bound, at k
  };
  std::optional<Scan> findScan(Expr e, const IndexExtents &all);
  Expr storeScan(std::vector<NestPlan> &nests, Expr e, const IndexExtents &all);
  Expr scanIndex(const Scan &scan, const IndexExtents &all, const SymExpr &range);
  /// Returns the number of the first temporary among the arrays of the kernel.
  size_t firstTemporary() { return kernel.getArgNames().size() + kernel.getResultTypes().size(); }
  Expr elementOf(unsigned number, Expr value, llvm::ArrayRef<Expr> at);
  Expr findStored(Expr value, const IndexExtents &indices, mlir::Type type);
  void setSource(Expr element, Expr source, Expr loaded);
  using NestOrder = llvm::SmallVector<llvm::SmallVector<size_t, 4>>;
  NestOrder sourcesOf(llvm::ArrayRef<NestPlan> nests);
  void joinNests(std::vector<NestPlan> &nests);
  void readStored(std::vector<NestPlan> &nests);
  Expr readStored(Expr value, const IndexExtents &indices, bool isInside,
                  llvm::function_ref<bool(unsigned, bool)> mayRead, std::map<std::pair<Expr, bool>, Expr> &known);
  void orderNests(std::vector<NestPlan> &nests);
  Expr findColumns(Expr sum, const IndexExtents &all, size_t rows);
  void notifyStored(Expr sum, Expr element);
  Expr storeProducts(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows);
  Expr storeProducts(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows, const IndexExtents &inside,
                     llvm::ArrayRef<Expr> own, bool isAlways);
  Expr storeParts(std::vector<NestPlan> &nests, Expr sum, const IndexExtents &indices, llvm::StringRef name,
                  mlir::Location loc);
  Expr storeInside(std::vector<NestPlan> &nests, Expr outer, IndexExtents all, size_t rows,
                   std::optional<size_t> carried, bool isAlways);
  Expr storeSums(std::vector<NestPlan> &nests, Expr value, const IndexExtents &rows);
  void planFolds(NestPlan &nest);
  void exchangeReductions(NestPlan &nest);
  Expr exchange(const NestPlan &nest, Expr t, int64_t k, Expr body, Expr present, llvm::ArrayRef<Expr> states);
  Expr exchangeFactor(Expr t, int64_t k, Expr body, Expr present, unsigned n, Expr inner, int64_t axis,
                      llvm::ArrayRef<Expr> states);
  Expr moveSumIntoCascade(Expr t);
  void separateReductions(NestPlan &nest);
  /// Another form of a sum that is a state of a row and whose term at `j` is `body`.
  struct SumForm {
    Expr sum;
    int64_t j;
    Expr body, present, value;
    llvm::SmallVector<std::pair<Expr, std::string>> names; // of the sums in it
  };
  llvm::SmallVector<SumForm, 2> formsOf(const NestPlan &nest, Expr t, bool withMeans);
  llvm::SmallVector<OutputPlan> outputsWith(llvm::ArrayRef<OutputPlan> outputs, llvm::ArrayRef<SumForm> forms);
  void applyForm(NestPlan &nest, const SumForm &form);
  Expr sumOverSets(llvm::ArrayRef<Expr> bases, llvm::ArrayRef<Expr> offsets,
                   llvm::function_ref<Expr(llvm::ArrayRef<Expr>)> sum);
  Expr aboutMeans(const NestPlan &nest, SumForm &form);
  Expr separate(const NestPlan &nest, Expr t, int64_t j, Expr body, Expr present);
  unsigned countPasses(const NestPlan &nest, llvm::ArrayRef<OutputPlan> outputs);
  llvm::SmallVector<Expr> rowReductions(const NestPlan &nest);
  void carryInside(NestPlan &nest);
  void collectReductions(NestPlan &nest);
  void addReduction(NestPlan &nest, Expr reduce);
  void assignPass(NestPlan &nest, AccPlan &acc);
  bool rescaleMoments(NestPlan &nest, AccPlan &acc);
  static bool isAssigned(const NestPlan &nest, const AccPlan &acc, const AccPlan &other);
  bool addOthers(NestPlan &nest, size_t k);
  void delayStates(NestPlan &nest);
  void remark(const AccPlan &acc);
  void remarkOnRange(const AccPlan &acc, const AccPlan &other);
  std::pair<mlir::Location, std::string> placeOf(const AccPlan &acc);

  ExprContext &exprs;
  FoldRules rules;
  Openings openings; // of normalise()
  dnf::KernelOp kernel;
  InsideReads reads;
  const llvm::StringSet<> &disabled;
  FoldObserver *observer;
  bool comparesExtremes = false; // of floats, in the kernel: their bits must be those of an element
  llvm::SmallVector<int64_t> rowIds;
  llvm::SmallVector<Temporary> temporaries;
  /// Results of storeInside(), by reduction, number of recomputations, whether it is always needed,
  /// and whether R5 may exchange it.
  std::map<std::tuple<Expr, double, bool, bool>, Expr> withStored;
  /// Index of the sum that has the next visited sum as a factor, if R5 may exchange them.
  std::optional<int64_t> exchangedWith;
  llvm::DenseMap<Expr, Expr> withProducts; // results of storeProducts()
  llvm::DenseMap<Expr, double> work;       // results of workOf()
  llvm::DenseSet<Expr> runningValues;      // scans of storeScan(), at the row indices
  llvm::DenseMap<Expr, Expr> columns;      // sums stored for the rows of a value, and their elements
  /// Sums with a remark that rows do not share them.
  llvm::DenseSet<Expr> remarked;
  /// Number of axes of the current result whose extents are unknown.
  size_t unknownOfResult = 0;
  bool isTrial = false; // no remarks while a plan is only tried
  llvm::DenseMap<Expr, Expr> normalised;
};

/// R6: rewrites Σ_j body, over a range without conditions, as Σ_r H_r · Σ_j G_r(j), with H_r free of j
/// and G_r reading no result over the range.
/// Returns null if `body` does not separate or needs no expansion.
Expr expandSum(ExprContext &exprs, FoldRules &rules, Expr sum, int64_t j, Expr body);

/// Restricts the ranges of reductions in operands of selections that may not be picked, if their
/// terms may read out of bounds. `extents` are those of the free indices of `e`, and `e` is needed
/// where `present` holds (null: always).
Expr guardSelections(ExprContext &exprs, dnf::KernelOp kernel, InsideReads &reads,
                     const std::map<int64_t, ExprAttr> &extents, Expr e, Expr present = nullptr);

/// Emits the plans as an onf.kernel before `kernel`. Returns null, with an error, if a nest takes
/// more operations than lib/Conversion/Limits.h allows with `most`.
onf::KernelOp emitONF(ExprContext &exprs, Derivation &derivation, dnf::KernelOp kernel, std::vector<NestPlan> &nests,
                      size_t most);

} // namespace moa

#endif // MOA_CONVERSION_DNFTOONF_DERIVATION_H
