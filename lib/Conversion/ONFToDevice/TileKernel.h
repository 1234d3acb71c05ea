//===- TileKernel.h - emits a warp-specialized tile kernel ------*- C++ -*-===//
//
// A producer warpgroup copies tiles of the key operands by TMA into rings of stages. Each consumer
// warpgroup computes, for its 64 rows and each tile of keys,
//
//   scores        S = rows · keysᵀ                              contract
//   passes        states without axes: ⊕ over the tile's keys   map, reduce
//   accumulators  O = c · O + P · G                             map, contract
//
// The states of a tile are merged into the running ones with correction factors c. For softmax this
// gives the online softmax. The code for a tile exists twice: without a mask, for tiles that all
// rows of the block see in full, and with the guard evaluated per element.
//
// A state is kept as partials, one per lane of a row, which are reduced once after the last tile. A
// state that others refer to is a *reference* or pivot; in softmax it is the running maximum. It
// also has a value per row, which the other states use. (d, t) and (d', c(d, d') ⊗ t) are the same
// state, so this value need not be up to date. Hence rescaling is conditional. The value is updated
// and the states that use it are rescaled only if a factor c leaves a bound, and once more after
// the last tile.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H
#define MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H

#include "dialects/MoA/IR/Monoid.h"
#include "lib/Analysis/TilePredicate.h"
#include "lib/Conversion/ONFToDevice/Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace moa::tiles {

using rows::Accumulator;
using rows::Score;
using Values = ScalarCode::Values;
using device::BarriersType;
using device::FragmentType;
using device::LayoutAttr;
using device::RingType;

/// Rounds columns up to whole pieces of 128 bytes, as in rings. Accumulators use the default of 2
/// bytes.
inline int64_t padded(int64_t columns, int64_t bytes = 2) { return paddedColumns(columns, bytes); }

/// A ring of stages, with the barriers for full and for empty stages.
struct Ring {
  mlir::Value tiles, full, empty;
};

/// Returns ⌈extent / size⌉.
SymExpr tilesOf(const SymExpr &extent, int64_t size);
/// Returns the axes of a nest, except the last, that any of the values depends on.
llvm::SmallVector<unsigned> axesOf(llvm::ArrayRef<mlir::Value> values, onf::ForOp nest);

class TileKernel {
public:
  TileKernel(const TilePlan &plan, device::ProgramOp program, unsigned number)
      : plan(plan), program(program), kernelNumber(number), b(program.getContext()) {}
  llvm::LogicalResult run();

private:
  //===--- The block ------------------------------------------------------===//
  std::string tiles();
  bool isSameForBlock(onf::LoadOp load);
  llvm::StringRef extent(unsigned axis) {
    return llvm::cast<mlir::StringAttr>(plan.nest.getExtents()[axis]).getValue();
  }
  Ring makeRing(ScalarCode &code, llvm::StringRef name, int64_t stages, int64_t rows, int64_t columns,
                mlir::Type element, bool withEmpty, bool isOdd = false);
  void bindBlock(ScalarCode &code);
  void recallBlock(ScalarCode &code);
  mlir::Value fromLast(ScalarCode &code, mlir::Value number);
  std::pair<mlir::Value, mlir::Value> interval(ScalarCode &code, mlir::AffineMap lower, mlir::AffineMap upper);
  void findRange(ScalarCode &code);
  void findFullRange(ScalarCode &code);
  mlir::Value tileAt(ScalarCode &code, mlir::Value position, std::optional<bool> masked);
  mlir::Value firstKeyAt(ScalarCode &code, mlir::Value position, std::optional<bool> masked);
  mlir::Value hasAllRows(ScalarCode &code);
  void copy(ScalarCode &code, const TileOperand &operand, mlir::Value first, const Ring &ring, mlir::Value stage);
  void copyAt(ScalarCode &code, const TileOperand &operand, mlir::Value first, mlir::Value column, const Ring &ring,
              mlir::Value stage);
  std::pair<mlir::Value, mlir::Value> stageOf(ScalarCode &code, mlir::Value n, llvm::StringRef name = "stage");
  void makeProductRings(ScalarCode &code);
  void produce(ScalarCode &code);

  //===--- Stream-K split and persistent kernels (TileStreamK.cpp) --------===//
  /// The part of the fold that this block does in a stream-K split. Without `states`, it does all
  /// of it.
  struct FoldPart {
    mlir::Value states, storedWarps; // of the workspace, by slot: states in f32, counters
    int64_t elements = 0;            // per slot
    mlir::Value others;              // multiprocessors without a first part
    mlir::Value isFirst, isSecond, slot;
    mlir::Value begin, end; // positions of tiles
    mlir::Value handsOver;  // 1 if the block hands over its states
  };
  /// Returns whether the kernel is persistent: few blocks take the numbers of all from a counter.
  bool isPersistent() const;
  int64_t launchRegisters() const;
  std::pair<int64_t, int64_t> registersOfRoles() const;
  void completeRings(ScalarCode &code, mlir::Value start, bool isProducer);
  SymExpr countBlocks();
  SymExpr countSplitBlocks();
  void makePartArrays();
  void emitClear(const mlir::IRMapping &arrays);
  mlir::Value findBlock(ScalarCode &code);
  void findPart(ScalarCode &code);
  mlir::Value beginOfPart(ScalarCode &code);

  //===--- Lists of tiles (TileLists.cpp) ---------------------------------===//
  /// The ranges of one term of the guard: an array of the workspace over these axes of the nest and
  /// the tiles.
  struct RangeArray {
    mlir::Value array;
    llvm::SmallVector<unsigned> axes;
    SymExpr tiles;
  };
  void findPredicate();
  std::string freshName(llvm::StringRef wish);
  void makeRanges();
  mlir::Value flatPlace(ScalarCode &code, const RangeArray &range, mlir::Value tile);
  mlir::Value rangePlace(ScalarCode &code, const RangeArray &range, mlir::Value tile);
  TileRange loadRange(ScalarCode &code, const RangeArray &range, mlir::Value tile);
  void writeRanges(ScalarCode &code, bool ofRow, mlir::Value tile);
  void emitIfChosen(ScalarCode &code, mlir::Value condition, llvm::function_ref<void()> body);
  void bindAxes(ScalarCode &code, llvm::ArrayRef<unsigned> axes, mlir::Value number);
  void emitRanges(const mlir::IRMapping &arrays);
  void clampLoads(ScalarCode &code);
  int64_t findListRoom();
  void collectTiles(ScalarCode &code);
  mlir::Value listedTile(ScalarCode &code, mlir::Value position, std::optional<bool> masked);

  //===--- The table of tiles, from pairs (TileTable.cpp) -----------------===//
  SymExpr tilesPerColumn();
  void makeTable();
  mlir::Value tablePlace(ScalarCode &code, mlir::Value strip);
  TileTruth readTable(ScalarCode &code, mlir::Value tile);
  Values evaluatePairs(ScalarCode &code, mlir::Value first);
  Values joinSeen(ScalarCode &code, mlir::ValueRange x, mlir::ValueRange y);
  Values addPairs(ScalarCode &code, mlir::Value first, mlir::ValueRange olds);
  Values addTile(ScalarCode &code, mlir::Value tile, mlir::ValueRange olds);
  void storeSeen(ScalarCode &code, Values seen, mlir::Value column);
  void emitTable(const mlir::IRMapping &arrays);

  //===--- A consumer -----------------------------------------------------===//
  /// The index space of a fragment: rows, rows and lanes (partials), or rows and columns.
  struct Over {
    enum Kind { Rows, Parts, Tile } kind;
    int64_t columns = 0;
    static Over rows() { return {Rows}; }
    static Over parts() { return {Parts}; }
    static Over tile(int64_t columns) { return {Tile, columns}; }
  };
  /// A correction factor c(d, d'), which rescales states from old references to new ones. States
  /// with equal factors share it.
  struct Rescale {
    mutable onf::AccOp acc; // one of the states
    llvm::SmallVector<unsigned> refs;
    unsigned pass;     // after which the references are known
    bool needsStarted; // the references do not record whether they were regular
  };
  /// The values carried from tile to tile. Values that are not needed are null.
  struct Running {
    struct Scalar {
      mlir::Value reference; // value per row that other states use
      mlir::Value partial;   // over the keys of each lane
      mlir::Value terms;     // of the last merged tile; not carried
    };
    struct Sum {
      mlir::Value sum;
      Values weights;   // distinct ones; each product of the sum takes one
      mlir::Value part; // of a tile in flight, if added in f32; not carried
    };
    llvm::SmallVector<Scalar> scalars;
    llvm::SmallVector<mlir::Value> started; // per rescale
    llvm::SmallVector<Sum> sums;
    template <typename F> void forEach(F visit) {
      auto known = [&](mlir::Value &value) {
        if (value)
          visit(value);
      };
      for (Scalar &scalar : scalars)
        known(scalar.reference), known(scalar.partial);
      for (mlir::Value &value : started)
        known(value);
      for (Sum &sum : sums) {
        known(sum.sum);
        for (mlir::Value &weights : sum.weights)
          known(weights);
      }
    }
    Values values() {
      Values list;
      forEach([&](mlir::Value value) { list.push_back(value); });
      return list;
    }
    /// Returns the same structure with other values.
    Running with(mlir::ValueRange list) const {
      Running result = *this;
      result.forEach([&](mlir::Value &value) {
        value = list.front();
        list = list.drop_front();
      });
      return result;
    }
  };
  /// The result of one tile: the states, the correction factors, and the warps that must update
  /// their references (`mustMove`) and rescale their sums (`mustRescaleSums`); null: all warps.
  struct Step {
    Running next;
    Values factors;
    /// Per rescale: the coefficients of the `others` of its state.
    llvm::SmallVector<Values> coefficients;
    mlir::Value mustMove, mustRescaleSums;
  };
  /// A product s·u of a score s with a factor u.
  struct ScaledScore {
    mlir::Value value, factor;
  };
  /// A value per row and key that a tile holds: the fragment's element, times `rest` if that is not
  /// null.
  struct Element {
    mlir::Value value, rest, fragment; // the fragment has floats, or integers read as floats
    std::optional<double> absent;      // value of masked-out elements, if known
  };
  struct Presence;
  struct Tile {
    llvm::SmallVector<Element> elements;
    mlir::Value first;
    const Presence *presence; // null: nothing is masked
    /// Values that exponents subtract instead of a value of the row (TilePivots.cpp).
    llvm::MapVector<mlir::Value, mlir::Value> pivots{};
  };
  /// A value of the row that the exponents of some elements subtract, or that they are subtracted
  /// from.
  struct Pivot {
    mlir::Value value, reference; // onf value, and the fragment that holds it
    llvm::SmallVector<unsigned, 2> elements;
  };
  void consume(ScalarCode &code);
  int64_t storedColumns(Over over);
  llvm::SmallVector<Over> oversOf(const Running &running);
  mlir::Value placeOfState(ScalarCode &code, mlir::Value slot, mlir::Value row, int64_t before, Over over,
                           mlir::ValueRange at);
  Running loadStates(ScalarCode &code, const Running &inits, mlir::Value begin);
  void storeStates(ScalarCode &code, const Running &running);
  void contractPrologue(ScalarCode &code);
  Running iterateProduct(ScalarCode &code, mlir::Value n, const Running &olds, std::optional<bool> known);
  void planRescales();
  llvm::SmallVector<std::string> namesOf(const Running &running);
  //===--- Names by role (TileNames.cpp) ----------------------------------===//
  std::string nameOfPosition();
  std::string nameOfRow(onf::AccOp acc);
  std::string nameOfPartial(onf::AccOp acc);
  std::string nameOfReference(onf::AccOp acc);
  std::string nameInTile(onf::AccOp acc);
  std::string nameOfWeights(unsigned accumulator);
  std::string nameOfProducts(unsigned score);
  std::string nameOfScores(unsigned score);
  Running initialise(ScalarCode &code);
  Running iterate(ScalarCode &code, mlir::Value n, const Running &olds, std::optional<bool> masked, bool overlapped);
  void awaitTurn(ScalarCode &code, mlir::Value n);
  void passTurn(ScalarCode &code);
  /// Returns whether a tile's weights are multiplied right after its own states. Otherwise their
  /// products overlap with, or precede, the states of the next tile.
  bool multipliesAtOnce() const { return !plan.shape.overlap && !plan.product; }
  int64_t countProducts(llvm::ArrayRef<llvm::SmallVector<ProductTerm, 1>> terms, unsigned from);
  void packWeights(ScalarCode &code, Running &running);
  void startAccumulators(ScalarCode &code, mlir::Value n, llvm::StringRef stageName, Running &running);
  void finishAccumulators(ScalarCode &code, mlir::Value n, llvm::StringRef stageName, Running &running);
  llvm::SmallVector<unsigned> statesOf(unsigned pass, const Tile &tile);
  Step passes(ScalarCode &code, Tile &tile, const Running &olds);
  bool isReadOnce(mlir::Value value);
  rows::SplitTerm termsOf(onf::AccOp acc);
  mlir::Value seesSome(ScalarCode &code);
  /// Emits a map over rows or partials. `body` may load elements of the row, which is clamped to the
  /// last one.
  Values mapNearestRows(ScalarCode &code, llvm::StringRef name, mlir::ValueRange inputs, Over over,
                        llvm::ArrayRef<mlir::Type> elements, llvm::function_ref<Values(mlir::ValueRange)> body);
  void findBounds(ScalarCode &code);
  llvm::DenseSet<mlir::Operation *> findLoadsOfBounds();
  void findScaledScores(ScalarCode &code);
  bool isOfExponents(mlir::Value value);
  bool isOfRowAlone(mlir::Value value);
  mlir::Value pivotOf(const Element &element);
  llvm::SmallVector<Pivot> findPivots(const Tile &tile, llvm::function_ref<bool(mlir::Value)> isKnown);
  llvm::SmallVector<Pivot> findReferences(const Tile &tile, unsigned pass);
  mlir::Value isLarge(ScalarCode &code, mlir::Value value, bool finite);
  mlir::Value nearestMultiple(ScalarCode &code, mlir::Value reference, mlir::Value inverse);
  mlir::Value shiftElement(ScalarCode &code, const Element &element, mlir::Value reference);
  mlir::Value shiftReference(ScalarCode &code, const Element &element, mlir::Value reference, mlir::Value large);
  Values valuesOf(llvm::ArrayRef<Pivot> pivots, const Tile &tile);
  Values shiftLarge(ScalarCode &code, const Tile &tile, llvm::ArrayRef<Pivot> pivots);
  void takeShifted(ScalarCode &code, Tile &tile, llvm::ArrayRef<Pivot> pivots, mlir::ValueRange values);
  void shiftByRows(ScalarCode &code, Tile &tile);
  mlir::Value keepsOrder(ScalarCode &code, mlir::Value u);
  mlir::Value asFloat(ScalarCode &code, mlir::Value element);
  void addScores(ScalarCode &code, mlir::ValueRange scores, Tile &tile);
  Values fragmentsOf(const Tile &tile);
  void bindTile(ScalarCode &code, const Tile &tile, mlir::ValueRange in, mlir::ValueRange at);
  bool isNoneWhereAbsent(const Tile &tile, onf::AccOp acc, mlir::ValueRange values, double none);
  mlir::Value valuesOf(ScalarCode &code, onf::AccOp acc, mlir::ValueRange factors, mlir::ValueRange divisors,
                       mlir::TypedAttr none, const Tile &tile, const Running &news);
  void maskElement(ScalarCode &code, Element &element, mlir::FloatAttr none, const Tile &tile);
  mlir::Value reduceTerms(ScalarCode &code, onf::AccOp acc, mlir::Value term, Tile &tile, Running &news, unsigned k);
  mlir::Value reduceTile(ScalarCode &code, onf::AccOp acc, Tile &tile, Running &news, unsigned k);
  std::optional<unsigned> findTerms(onf::AccOp acc, const rows::Factors &factors, const Running &news);
  mlir::Value weights(ScalarCode &code, const Accumulator &accumulator, const rows::Factors &factors, const Tile &tile,
                      const Running &news);
  bool isNoneWhereNone(mlir::Value value, mlir::Value of);
  mlir::Value bindRescale(ScalarCode &code, const Rescale &rescale, mlir::ValueRange before, mlir::ValueRange after);
  Values factor(ScalarCode &code, unsigned number, const Running &olds, const Running &news,
                llvm::StringRef name = "correction");
  void addOthers(ScalarCode &code, onf::AccOp acc, mlir::ValueRange coefficients, const Running &olds,
                 mlir::Value &partial);
  mlir::Value isNearOne(ScalarCode &code, onf::AccOp acc);
  bool isFarFromSingular(const Rescale &rescale);
  mlir::Value mustRescale(ScalarCode &code, const Running &olds, const Running &news, llvm::ArrayRef<Pivot> pivots);
  void updateReferences(ScalarCode &code, unsigned pass, Running &news, llvm::StringRef name = "");
  void moveReferences(ScalarCode &code, unsigned pass, Running &news, Tile &tile);
  mlir::Value joinLanes(ScalarCode &code, onf::AccOp acc, mlir::Value partial, llvm::StringRef name = "");
  mlir::Value rescaled(ScalarCode &code, onf::AccOp acc, mlir::Value state, mlir::Value factor, Over over);
  mlir::Value merged(ScalarCode &code, onf::AccOp acc, mlir::Value state, mlir::Value factor, mlir::Value part);
  void rescaleWhereNeeded(ScalarCode &code, const Running &olds, Step &step, Tile &tile);
  mlir::Value withStates(ScalarCode &code, const Step &step);
  void rescaleSums(ScalarCode &code, Step &step);
  Values conclude(ScalarCode &code, const Running &running);
  void finish(ScalarCode &code, mlir::ValueRange finals);
  /// A result that is staged in a ring and written by TMA bulk stores.
  struct TileResult {
    mutable onf::ForOp loop;
    mutable onf::StoreOp store;
    llvm::SmallVector<unsigned> accumulators;
    unsigned rowAxis;
    mlir::Value ring;
    bool isReused; // an earlier result was staged in the ring
  };
  int64_t findFreeBytes();
  void planResults(ScalarCode &code);
  llvm::SmallVector<unsigned> accumulatorsOf(onf::ForOp loop);
  mlir::Value ringFor(mlir::Type element);
  std::optional<unsigned> findRowAxis(onf::StoreOp store, mlir::Value loopIndex, unsigned accumulator);
  void bindFinals(ScalarCode &code, mlir::ValueRange in, mlir::ValueRange at);
  void writeElements(ScalarCode &code, mlir::ValueRange finals, mlir::Block &block,
                     llvm::ArrayRef<unsigned> accumulators, mlir::Value loopIndex);
  Values inputsOf(mlir::ValueRange finals, llvm::ArrayRef<unsigned> accumulators);
  mlir::Value mapResult(ScalarCode &code, mlir::ValueRange finals, onf::StoreOp store,
                        llvm::ArrayRef<unsigned> accumulators, mlir::Value loopIndex);
  bool storesPairs(onf::StoreOp store, mlir::Value loopIndex, unsigned accumulator);
  mlir::Value isInside(ScalarCode &code, mlir::ValueRange at, int64_t extent);
  void writeTile(ScalarCode &code, mlir::ValueRange finals, const TileResult &result);
  /// Returns the columns of an accumulator or, for higher numbers, of a prologue contraction.
  int64_t columnsOf(unsigned number) {
    size_t accumulators = plan.folded.accumulators.size();
    return number < accumulators ? plan.folded.accumulators[number].extents[0]
                                 : plan.prologue[number - accumulators].right.columns;
  }
  void bindSum(ScalarCode &code, unsigned number, mlir::Value value);
  mlir::Value sumOf(unsigned number) {
    size_t accumulators = plan.folded.accumulators.size();
    return number < accumulators ? resultOf(plan.folded.accumulators[number].acc)
                                 : plan.prologue[number - accumulators].fold.getResult(0);
  }
  mlir::Value resultOf(onf::AccOp acc) {
    llvm::SmallVector<onf::AccOp> accs = rows::getAccs(plan.fold);
    return plan.fold.getResult(llvm::find(accs, acc) - accs.begin());
  }

  //===--- Maps -----------------------------------------------------------===//
  mlir::Type elementOf(mlir::Value fragment) { return llvm::cast<FragmentType>(fragment.getType()).getElementType(); }
  FragmentType typeOver(Over over, mlir::Type element) {
    int64_t columns = over.kind == Over::Tile ? over.columns : 64;
    LayoutAttr tile = LayoutAttr::getAccumulator(b.getContext(), columns);
    if (over.kind == Over::Rows)
      return FragmentType::get(b.getContext(), {64}, element, tile.getSlice(0));
    if (over.kind == Over::Tile)
      return FragmentType::get(b.getContext(), {64, columns}, element, tile);
    LayoutAttr parts = tile.getThreadPart(1);
    return FragmentType::get(b.getContext(), {64, parts.getExtent(1)}, element, parts);
  }
  /// Emits a map with a name for readers. The body gets the inputs' elements and the element's
  /// indices.
  Values map(ScalarCode &code, llvm::StringRef name, mlir::ValueRange inputs, Over over,
             llvm::ArrayRef<mlir::Type> elements, llvm::function_ref<Values(mlir::ValueRange, mlir::ValueRange)> body);
  void hideStrides(ScalarCode &code, device::MapOp op);
  void hideConditions(ScalarCode &code, device::MapOp op);
  void splitBranches(device::MapOp op);
  void moveToRows(ScalarCode &code, device::MapOp op);
  Values ifAny(ScalarCode &code, mlir::Value condition, mlir::ValueRange otherwise, llvm::function_ref<Values()> body);
  void bindElement(ScalarCode &code, mlir::ValueRange at, mlir::Value first);
  /// The mask of a tile. A row sees the positions from the second of `bounds`, if there is one, to
  /// before the first, where `rest` holds; positions count from the thread's first element. If
  /// `isWord`, `bounds` is instead one word per thread and row, with a bit per element.
  struct Presence {
    Values bounds; // fragments over partials
    Values rest;
    bool isWord = false;
  };
  mlir::Value seesAtAll(ScalarCode &code, llvm::ArrayRef<mlir::Value> conditions);
  Presence findPresence(ScalarCode &code, mlir::Value first, mlir::ValueRange scores = {});
  llvm::SmallVector<unsigned> findScoresRead(llvm::ArrayRef<mlir::Value> conditions);
  bool canClamp(mlir::Value condition);
  llvm::DenseMap<mlir::Operation *, bool> clampable; // results of `canClamp`
  int64_t columnsAtOnce(const Presence &presence);
  void bindNearest(ScalarCode &code, mlir::ValueRange at, mlir::Value first, mlir::Value start);
  Presence readPresence(ScalarCode &code, const Presence &presence, mlir::Value first, mlir::ValueRange scores);
  mlir::Value numberInThread(ScalarCode &code, mlir::Value column);
  int64_t laneStride();
  mlir::Value isPresent(ScalarCode &code, const Presence &presence, mlir::ValueRange bounds, mlir::Value column,
                        mlir::Value start = mlir::Value());
  mlir::Value guarded(ScalarCode &code, mlir::Value present, mlir::Value keep, mlir::Value none, mlir::ValueRange reads,
                      llvm::function_ref<mlir::Value()> value);
  mlir::Value maskOf(ScalarCode &code, const Presence &presence, mlir::Value first);
  bool hasRowsBeyond();
  llvm::SmallVector<std::pair<mlir::Value, bool>> ringsOfValues();
  void clearUnseen(ScalarCode &code, const Presence &presence, mlir::Value first, mlir::Value stage,
                   llvm::ArrayRef<std::pair<mlir::Value, bool>> rings);
  unsigned numberOf(mlir::Value ref) {
    for (auto [k, scalar] : llvm::enumerate(plan.folded.scalars))
      if (scalar.acc == ref.getDefiningOp())
        return k;
    llvm_unreachable("references are states without axes of the same fold");
  }
  mlir::Value regular(ScalarCode &code, onf::AccOp acc, llvm::ArrayRef<mlir::Value> refs);
  mlir::Value hasElements(ScalarCode &code, onf::AccOp reference, mlir::Value value);
  mlir::Value bindReferences(ScalarCode &code, onf::AccOp acc, llvm::ArrayRef<mlir::Value> refs,
                             llvm::ArrayRef<mlir::Value> factors);
  mlir::Value identity(ScalarCode &code, Monoid monoid, mlir::Type type) {
    return code.constant(llvm::cast<mlir::TypedAttr>(getIdentity(monoid, type)));
  }

  const TilePlan &plan;
  device::ProgramOp program;
  unsigned kernelNumber;
  mlir::OpBuilder b;
  llvm::SmallVector<Ring> rowRings, keyRings, valueRings, prologueRings;
  Ring weightRing; // of `plan.product`
  Values prologueSums;
  mlir::Value resultRing; // for outputs of a type that no row ring has
  llvm::SmallVector<TileResult> tileResults;
  mlir::Value choice;                          // onf predicate of a versioned nest; null: it always runs
  mlir::Value chosen;                          // the predicate's value in the block
  mlir::Value turns;                           // ping-pong: one barrier per warpgroup, to start the next scores
  Values heldRows;                             // row operands in registers, if the schedule keeps them there
  llvm::SmallVector<ScaledScore> scaledScores; // per score; null: none
  // Per state with a bound: its start, which is the bound for rows that see a key; null: the
  // identity.
  Values starts;
  // Per state: the bound to combine each tile's terms with, as rows may see no key; null: none.
  Values termBounds;
  llvm::SmallVector<Rescale> rescales;
  llvm::SmallVector<int> rescaleOfScalar, rescaleOfAccumulator; // -1: none
  llvm::SmallVector<bool> isReference;                          // per scalar
  bool lazy = false;                                            // rescaling is conditional
  bool readsMemory = false;                                     // the states or the guard load more than the operands
  bool statesRead = false;                                      // the states do
  llvm::SmallVector<device::KeptOp> recalled;                   // by the epilogue
  llvm::SmallVector<onf::LoadOp> readOnce;                      // loads with one address per block
  mlir::Value firstRow, lastRow,
      rowBase;                                        // of the block, clamped; of the warpgroup
  mlir::Value firstTile, endTile, firstFull, endFull; // tiles of keys
  mlir::Value numTiles, numMasked, warpgroup;
  FoldPart foldPart;
  // For kernels with tile lists.
  std::optional<TilePredicate> predicate;
  std::vector<RangeArray> ranges; // per term of the predicate
  llvm::SmallVector<unsigned> rangeAxes;
  bool hasFewValues = false; // the kernel being emitted has registers for addresses
  RangeArray table;          // flags per 16 rows and column; no array: no table
  mlir::Value partialTiles, fullTiles, numListed, listedEnd;
  int64_t listRoom = 0; // capacity of each list
};

} // namespace moa::tiles

#endif // MOA_CONVERSION_ONFTODEVICE_TILEKERNEL_H
