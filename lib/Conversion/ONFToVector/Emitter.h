//===- Emitter.h - scalars of an onf kernel as vector code ------*- C++ -*-===//
//
// The lowering runs a nest as one program over many rows: the lanes of a vector
// are consecutive indices of one loop, the *lane index*, normally the last axis
// of the nest. A scalar of the onf program is *uniform* if it does not depend on
// a lane index and is then a scalar of the emitted program; otherwise it is a
// *row* value, a vector of one element per lane. Nothing is shuffled across
// lanes.
//
// Code is written on demand. A stack of scopes, one per open loop, binds loop
// indices; `eval` writes an expression at the outermost scope that binds all it
// depends on and remembers the result there.
//
// Operands that are needed only where a condition holds are evaluated in a
// *context*, the conditions on the way to them. A load that may leave its array
// waits for the conditions of its context and reads only where they hold; what
// is computed from it is remembered for that context and its refinements.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_ONFTOVECTOR_EMITTER_H
#define MOA_CONVERSION_ONFTOVECTOR_EMITTER_H

#include "lib/Analysis/OnDemand.h"
#include "lib/Conversion/ONFToVector/ArgumentBlock.h"
#include "lib/Conversion/ONFToVector/Build.h"
#include "lib/Conversion/ONFToVector/Dependence.h"
#include "lib/Support/SymExpr.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace moa::rows {

/// Terms of a long sum that are added up before they go into the compensated sum.
inline constexpr int64_t kSumBlock = 256;

/// A place where ops are appended: one open block.
struct Site {
  mlir::OpBuilder builder;
};

/// Lanes of an index: `full` is true when they are consecutive, null when they
/// always are. Otherwise the last lanes repeat the last index.
struct LaneIndex {
  mlir::Value full;
};

/// Storage of a state. In a tile's buffer, element (v, e) of vector number v and
/// flat carried index e stands at ((v / panel) · padded + e) · panel·L +
/// (v mod panel) · L; otherwise element e at e · L, or at e if it is uniform.
struct StateBuffer {
  /// One of the type and the carried extents of a state, without memory.
  static StateBuffer of(onf::AccOp acc);
  mlir::Value pointer;
  mlir::Type element;
  bool row = true, tiled = false;
  int64_t panel = 1, padded = 1;
  llvm::SmallVector<int64_t> extents;
};

/// What is known inside one loop or branch.
struct Scope {
  Site *site;
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseMap<mlir::Value, mlir::Value> splats;
  llvm::MapVector<mlir::Value, LaneIndex> lanes;
  llvm::DenseMap<mlir::Value, StateBuffer> states;
  /// The same for contexts other than the empty one.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> conditional;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, StateBuffer> conditionalStates;
  /// In the scope of one vector of rows: its number in the tile and the first
  /// and last row it holds.
  mlir::Value vectorNumber, firstRow, lastRow;
  /// In the scope of a guarded body: loads that depend on an index bound at
  /// this depth or deeper stay inside. `present` are the rows that are present.
  int guardedFrom = -1;
  mlir::Value present;
};

/// An emitted value, the scope it stands in, and the context it is right in.
struct Emitted {
  mlir::Value value;
  unsigned depth = 0;
  unsigned context = 0;
};

/// What a repair makes of a state t: factor ⊗ t + Σ coefficient · other.
struct Correction {
  mlir::Value factor;
  struct Added {
    mlir::Value coefficient, other;
  };
  llvm::SmallVector<Added, 2> added;
};

/// A context: the conditions of another one, and one more.
struct Context {
  unsigned parent = 0;
  Emitted condition;
  bool holds = true; // the condition, or its negation
};

/// The rows of one task: [base, base + rows), in `vectors` vectors.
struct Tile {
  mlir::Value base, rows, lastRow, extent, vectors;
};

/// The factor of `index` in an index expression, if the expression is linear.
std::optional<int64_t> factorOf(mlir::Value term, mlir::Value index, Dependence &deps);
/// True if the load's address moves with `index` along the last axis of its
/// array, which is usually contiguous.
bool runsAlong(onf::LoadOp load, mlir::Value index, Dependence &deps);

/// Columns of a square of as many vectors as each has lanes.
llvm::SmallVector<mlir::Value> transpose(Build b, llvm::SmallVector<mlir::Value> rows);

class Emitter {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  Emitter(onf::KernelOp kernel, const ArgumentBlock &block, Dependence &deps, int64_t lanes)
      : kernel(kernel), block(block), deps(deps), onDemand(kernel), lanes(lanes) {}

  //===--- Scopes, loops and branches (Emitter.cpp) -----------------------===//
  Build at(unsigned depth) { return {stack[depth]->site->builder, loc}; }
  Build here() { return at(stack.size() - 1); }
  Scope &top() { return *stack.back(); }
  unsigned depth() const { return stack.size() - 1; }
  /// Runs `body` with a further scope that appends to the current block.
  void scoped(llvm::function_ref<void(Scope &)> body);
  /// for (iv = lower; iv < upper; iv += step) carrying `inits`.
  Values loop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange inits,
              LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  /// if (condition); both branches yield values of the same types.
  Values branch(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void when(mlir::Value condition, llvm::function_ref<void()> yes,
            llvm::function_ref<void()> no = nullptr);

  //===--- Values (Scalars.cpp, Memory.cpp) -------------------------------===//
  Emitted eval(mlir::Value value);
  mlir::Value value(mlir::Value v) { return eval(v).value; }
  /// The identity of a state's monoid in a type, scalar or vector.
  mlir::Value identityOf(onf::AccOp acc, mlir::Type type);
  /// state ⊕ term.
  mlir::Value combine(onf::AccOp acc, mlir::Value state, mlir::Value term);
  /// The repair of a state whose references go from `olds` to `news`, with the `others` as
  /// they were before; of rows where `rows` is set.
  Correction correctionOf(onf::AccOp acc, llvm::ArrayRef<mlir::Value> olds,
                          llvm::ArrayRef<mlir::Value> news, llvm::ArrayRef<mlir::Value> others,
                          bool rows);
  /// The state corrected where `apply`, else as it is.
  mlir::Value repaired(onf::AccOp acc, mlir::Value state, const Correction &correction,
                       mlir::Value apply);
  /// The value as a vector.
  mlir::Value rowValue(mlir::Value v) { return splat(eval(v)); }
  mlir::Value splat(Emitted emitted);
  /// True if the value depends on an index that is bound to lanes now.
  bool isRow(mlir::Value value);
  /// True if every index the value depends on is bound to a number now.
  bool isUniform(mlir::Value value);
  mlir::Value extent(const SymExpr &expr);
  mlir::Value extent(llvm::StringRef text);
  /// Binds an index to the lanes base, base + 1, …, clamped to `last`; `full`
  /// as in LaneIndex, computed here unless `exact`.
  void bindLanes(Scope &scope, mlir::Value index, mlir::Value base, mlir::Value last,
                 bool exact = false);
  void emitStore(onf::StoreOp store, mlir::Value laneMask);
  mlir::Value convert(Build b, mlir::Value value, mlir::Type element);
  /// Loads and stores of states in scratch; booleans are bytes there. Offsets of
  /// each lane are gathered.
  mlir::Value loadState(Build b, mlir::Type element, bool row, mlir::Value pointer,
                        mlir::Value offset);
  void storeState(Build b, mlir::Value value, mlir::Value pointer, mlir::Value offset);
  mlir::Type rowType(mlir::Type element) { return mlir::VectorType::get({lanes}, element); }
  mlir::Type typeOf(mlir::Type element, bool row) { return row ? rowType(element) : element; }
  /// `bytes` of this thread's scratch memory, 64-byte aligned.
  mlir::Value scratch(int64_t bytes);
  mlir::Value scratchFor(mlir::Type element, int64_t count) {
    return scratch(count * storageBytes(element));
  }

  //===--- Contiguous rows (Transpose.cpp) --------------------------------===//
  /// Copies the load's elements for index = first … first + count - 1 and the
  /// rows of the current scope to buffer[s · stride + lane], as memory holds them.
  void stageLoad(onf::LoadOp load, mlir::Value index, mlir::Value first, mlir::Value count,
                 mlir::Value buffer, int64_t stride);
  /// Where the load's elements for outer = first … and inner = 0 … stand, if the
  /// address is linear in both indices and depends on no lane.
  struct Strided {
    mlir::Value pointer, outer, inner; // distances in elements
  };
  std::optional<Strided> strided(onf::LoadOp load, mlir::Value outer, mlir::Value first,
                                 mlir::Value inner);
  /// Runs the stores of an inner loop for all `size` values of its last index;
  /// `body` writes them for one value.
  void storeAlong(onf::ForOp inner, mlir::Value index, mlir::Value size, mlir::Value laneMask,
                  llvm::function_ref<void()> body);

  //===--- Folds (Fold.cpp) -----------------------------------------------===//
  /// Writes a fold at the current place, index by index; the final values of
  /// its states, null for those that carry axes, which stand in `buffers`.
  Values emitFold(onf::FoldOp fold, llvm::ArrayRef<StateBuffer> buffers);
  /// What an index adds to a state, computed operands rounded as the state says.
  mlir::Value evalTerm(onf::AccOp acc);
  /// The value rounded to a narrower float type and widened again.
  mlir::Value round(Build b, mlir::Value value, mlir::Type narrow);
  /// Storage for each state of the fold that carries axes, at scratch memory.
  llvm::SmallVector<StateBuffer> allocateStates(onf::FoldOp fold);
  /// The hull of the pieces of a fold for the rows first … last, or the range.
  std::pair<mlir::Value, mlir::Value> hull(onf::FoldOp fold, mlir::Value first, mlir::Value last);
  /// The largest lower and the least upper bound, for a piece's pair of maps.
  std::pair<mlir::Value, mlir::Value> interval(onf::FoldOp fold, mlir::AffineMap lower,
                                               mlir::AffineMap upper, mlir::Value first,
                                               mlir::Value last);

  void fail(mlir::Operation *op, const llvm::Twine &message) {
    if (!failed)
      op->emitError(message);
    failed = true;
  }

  onf::KernelOp kernel;
  const ArgumentBlock &block;
  Dependence &deps;
  OnDemand onDemand;
  const int64_t lanes;
  mlir::Location loc = mlir::UnknownLoc::get(kernel.getContext());
  std::vector<Scope *> stack;
  mlir::Value arguments, scratchPointer;
  int64_t scratchBytes = 0;
  Tile tile;
  /// Columns of this block that the nest has, if it runs in blocks of columns.
  mlir::Value columns;
  /// The part of a fold's range that is being written; a null fold if none is.
  struct Part {
    onf::FoldOp fold;
    mlir::Value lower, upper;
  };
  Part part;
  bool failed = false;

  /// The value of a slot of the argument block.
  mlir::Value slot(unsigned number, mlir::Type element);

private:
  Emitted evalElementwise(mlir::Operation *op);
  Emitted evalLoad(onf::LoadOp load);
  Emitted evalAt(onf::AtOp at);
  Emitted evalFold(onf::FoldOp fold, mlir::Value result);
  Emitted evalExtent(onf::ExtentOp op);
  Emitted remember(mlir::Value key, mlir::Value value, unsigned depth, unsigned context = 0);
  /// Evaluates an operand that is needed only where `condition` is `holds`.
  Emitted evalWhere(mlir::Value value, Emitted condition, bool holds);
  Emitted evalOperand(mlir::Operation *op, unsigned number, llvm::ArrayRef<Emitted> before);
  /// The context, its parent, …, but not the empty one.
  llvm::SmallVector<unsigned> openContexts() const;
  /// The rows that are present in the scopes down to `depth` and, for a load that
  /// may fault, for which the context holds; null if all.
  mlir::Value neededRows(unsigned depth, bool mayFault);
  /// What is known of a fold's state, its depth and its context.
  StateBuffer *findState(mlir::Value state, Emitted &where);
  /// Evaluates what a region uses from outside; the depth of the deepest.
  unsigned depthOfCaptures(mlir::Operation *op);
  std::optional<unsigned> rowDepth() const;
  mlir::Value emitTerm(const SymExpr::Monomial &monomial, int64_t coefficient);
  mlir::Value emitAtom(const SymExpr::Atom &atom);

  /// An address: the sum of a uniform offset and of one offset per lane.
  struct Address {
    Emitted uniform;
    Emitted perLane;    // null value if no term depends on the lane
    mlir::Value stride; // the lanes' distance, null if irregular
    mlir::Value full;   // null if the lanes are always consecutive
    unsigned depth = 0, context = 0;
  };
  Address address(mlir::OperandRange terms, mlir::ArrayAttr coefficients, llvm::StringRef constant);
  /// The factor of the lane index in an index expression, if it is linear.
  std::optional<int64_t> laneFactor(mlir::Value term, mlir::Value &full);
  mlir::Value strideAlong(mlir::OperandRange terms, mlir::ArrayAttr coefficients,
                          mlir::Value index);
  Values laneAddresses(mlir::Type storage, mlir::Value array, const Address &where);
  void storeSquare(onf::StoreOp store, mlir::Value index, mlir::Value first, mlir::Value square);
  mlir::Value nonEmpty(mlir::Operation *op, unsigned depth);
  std::optional<Emitted> findBound(mlir::Value value);
  mlir::Value pointerOf(mlir::Value array);
  unsigned depthOfLoad(unsigned depth, bool mayFault) const;
  mlir::Value loadUniform(Build b, mlir::Type element, mlir::Value pointer);
  mlir::Value loadLanes(unsigned depth, mlir::Type element, mlir::Value pointer,
                        const Address &address, mlir::Value allowed, bool mayFault);
  mlir::Value consecutive(Build b, const Address &address, mlir::Value allowed);
  /// Runs `body` with only the scopes down to `depth` open.
  void outside(unsigned depth, llvm::function_ref<void()> body);

  std::vector<Context> contexts{Context()};
  unsigned context = 0;
  llvm::StringMap<mlir::Value> extents;
  llvm::DenseMap<unsigned, mlir::Value> slots;
};

} // namespace moa::rows

#endif // MOA_CONVERSION_ONFTOVECTOR_EMITTER_H
