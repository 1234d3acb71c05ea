//===- Emitter.h - scalars of an onf kernel as vector code ------*- C++ -*-===//
//
// A nest is vectorized over rows: the lanes of a vector are consecutive indices of one loop, the
// *lane index*, which is normally the last axis of the nest. A scalar of the onf program that does
// not depend on a lane index is *uniform* and stays a scalar. All others are *row* values: vectors
// with one element per lane. Row data crosses lanes only in transposes (Transpose.cpp).
//
// Code is emitted on demand. A stack of scopes, one per open loop, binds loop indices. `eval` emits
// an expression in the outermost scope that binds all of its operands and caches the result there
// (loop-invariant code motion).
//
// Operands that are needed only under a condition are evaluated in a *context*: the conjunction of
// the enclosing conditions. A load that may leave its array stays below these conditions and is
// masked by them. Values computed from it are cached for this context and its refinements only.
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

/// Terms of a long sum that are added directly before they enter the compensated sum.
inline constexpr int64_t kSumBlock = 256;

/// Storage of a state. In a tile's buffer, element e (flat over the carried axes) of row vector v
/// is at ((v / panel) · padded + e) · panel·L + (v mod panel) · L. In other buffers it is at e · L,
/// or at e if the state is uniform.
struct StateBuffer {
  /// Returns the layout of a state with its carried extents, without memory.
  static StateBuffer of(onf::AccOp acc);
  mlir::Value pointer;
  mlir::Type element;
  bool row = true, tiled = false;
  int64_t panel = 1, padded = 1;
  llvm::SmallVector<int64_t> extents;
};

/// The values bound inside one loop or branch.
struct Scope {
  mlir::OpBuilder *builder; ///< at the end of the open block
  llvm::DenseMap<mlir::Value, mlir::Value> values;
  llvm::DenseMap<mlir::Value, mlir::Value> splats;
  /// The lane indices. The lanes of one are consecutive if the condition is true or null. Otherwise
  /// the excess lanes repeat the last index.
  llvm::MapVector<mlir::Value, mlir::Value> lanes;
  llvm::DenseMap<mlir::Value, StateBuffer> states;
  /// The same in contexts other than the empty one.
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> conditional;
  llvm::DenseMap<std::pair<mlir::Value, unsigned>, StateBuffer> conditionalStates;
  /// In the scope of one vector of rows: the number of the vector in its tile, its first and last
  /// row.
  mlir::Value vectorNumber, firstRow, lastRow;
  /// In the scope of a guarded body: a load that depends on an index bound at this depth or deeper
  /// must stay inside. `present` is the mask of the rows for which the guard holds.
  int guardedFrom = -1;
  mlir::Value present;
};

/// An emitted value, the depth of its scope, and the context in which it is valid.
struct Emitted {
  mlir::Value value;
  unsigned depth = 0;
  unsigned context = 0;
};

/// The rescaling of a state t: factor ⊗ t + Σ coefficient · other.
struct Correction {
  mlir::Value factor;
  struct Added {
    mlir::Value coefficient, other;
  };
  llvm::SmallVector<Added, 2> added;
};

/// A context: the conditions of its parent and one more.
struct Context {
  unsigned parent = 0;
  Emitted condition;
  bool holds = true; // whether the condition or its negation is assumed
};

/// The rows of one task: [base, base + rows), in `vectors` vectors.
struct Tile {
  mlir::Value base, rows, lastRow, extent, vectors;
};

/// Returns the factor of `index` in an index expression, or nothing if it is not linear.
std::optional<int64_t> factorOf(mlir::Value term, mlir::Value index, Dependence &deps);
/// Returns whether the load moves by one element with `index` along the last axis of its array,
/// which is usually contiguous.
bool runsAlong(onf::LoadOp load, mlir::Value index, Dependence &deps);

/// Transposes a square of L vectors with L lanes each.
llvm::SmallVector<mlir::Value> transpose(Build b, llvm::SmallVector<mlir::Value> rows);

class Emitter {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  using LoopBody = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;

  Emitter(onf::KernelOp kernel, const ArgumentBlock &block, Dependence &deps, int64_t lanes)
      : kernel(kernel), block(block), deps(deps), onDemand(kernel), lanes(lanes) {}

  //===--- Scopes, loops and branches (Emitter.cpp) -----------------------===//
  Build at(unsigned depth) { return {*stack[depth]->builder, loc}; }
  Build here() { return at(stack.size() - 1); }
  Scope &top() { return *stack.back(); }
  unsigned depth() const { return stack.size() - 1; }
  /// Runs `body` in a new scope that appends to the current block.
  void scoped(llvm::function_ref<void(Scope &)> body);
  /// Emits for (iv = lower; iv < upper; iv += step) with the loop-carried values `inits`.
  Values loop(mlir::Value lower, mlir::Value upper, int64_t step, mlir::ValueRange inits, LoopBody body);
  void loop(mlir::Value lower, mlir::Value upper, int64_t step, llvm::function_ref<void(mlir::Value)> body);
  /// Emits a conditional. Both branches must yield values of the same types.
  Values branch(mlir::Value condition, mlir::TypeRange types, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);
  void when(mlir::Value condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no = nullptr);

  //===--- Values (Scalars.cpp, Memory.cpp) -------------------------------===//
  Emitted eval(mlir::Value value);
  mlir::Value value(mlir::Value v) { return eval(v).value; }
  /// Returns the identity of a state's monoid in a scalar or vector type.
  mlir::Value identityOf(onf::AccOp acc, mlir::Type type);
  /// Emits state ⊕ term.
  mlir::Value combine(onf::AccOp acc, mlir::Value state, mlir::Value term);
  /// Evaluates the rescale (`repair` region) of a state for references that change from `olds` to
  /// `news`. `others` are the values that its coefficients multiply, before the change. `rows`: as
  /// row vectors.
  Correction correctionOf(onf::AccOp acc, llvm::ArrayRef<mlir::Value> olds, llvm::ArrayRef<mlir::Value> news,
                          llvm::ArrayRef<mlir::Value> others, bool rows);
  /// Emits the corrected state where `apply` holds, and the unchanged state elsewhere.
  mlir::Value rescaled(onf::AccOp acc, mlir::Value state, const Correction &correction, mlir::Value apply);
  mlir::Value rowValue(mlir::Value v) { return splat(eval(v)); }
  mlir::Value splat(Emitted emitted);
  /// Returns whether the value depends on an index that is currently bound to lanes.
  bool isRow(mlir::Value value);
  /// Returns whether every index that the value depends on is currently bound to a scalar.
  bool isUniform(mlir::Value value);
  mlir::Value extent(const SymExpr &expr);
  mlir::Value extent(llvm::StringRef text);
  /// Binds an index to the lanes base, base + 1, …, clamped to `last`. Computes the condition of
  /// Scope::lanes unless the lanes are known to be `exact`.
  void bindLanes(Scope &scope, mlir::Value index, mlir::Value base, mlir::Value last, bool exact = false);
  void emitStore(onf::StoreOp store, mlir::Value laneMask);
  mlir::Value convert(Build b, mlir::Value value, mlir::Type element);
  /// Load and store states in scratch memory, where booleans take a byte. A vector of offsets
  /// gathers.
  mlir::Value loadState(Build b, mlir::Type element, bool row, mlir::Value pointer, mlir::Value offset);
  void storeState(Build b, mlir::Value value, mlir::Value pointer, mlir::Value offset);
  mlir::Type rowType(mlir::Type element) { return mlir::VectorType::get({lanes}, element); }
  mlir::Type typeOf(mlir::Type element, bool row) { return row ? rowType(element) : element; }
  /// Allocates `bytes` of this thread's scratch memory, 64-byte aligned.
  mlir::Value scratch(int64_t bytes);
  mlir::Value scratchFor(mlir::Type element, int64_t count) { return scratch(count * storageBytes(element)); }

  //===--- Contiguous rows (Transpose.cpp) --------------------------------===//
  /// Copies the elements of the load, unconverted, for index = first … first + count - 1 and the
  /// rows of the current scope to buffer[s · stride + lane].
  void stageLoad(onf::LoadOp load, mlir::Value index, mlir::Value first, mlir::Value count, mlir::Value buffer,
                 int64_t stride);
  /// Returns the address of the load at outer = first, inner = 0 and its two strides. Returns
  /// nothing unless the address is linear in both indices and equal in all lanes.
  struct Strided {
    mlir::Value pointer, outer, inner; // strides in elements
  };
  std::optional<Strided> strided(onf::LoadOp load, mlir::Value outer, mlir::Value first, mlir::Value inner);
  /// Emits the stores of an inner loop for all `size` values of its last index. `body` emits them
  /// for one value.
  void storeAlong(onf::ForOp inner, mlir::Value index, mlir::Value size, mlir::Value laneMask,
                  llvm::function_ref<void()> body);

  //===--- Folds (Fold.cpp) -----------------------------------------------===//
  /// Emits a fold index by index. Returns the final values of its states; null for states with
  /// axes, whose values are in `buffers`.
  Values emitFold(onf::FoldOp fold, llvm::ArrayRef<StateBuffer> buffers);
  /// Evaluates the term of a state, with computed operands rounded to the state's operand type.
  mlir::Value evalTerm(onf::AccOp acc);
  /// Rounds a value to a narrower float type and widens it again.
  mlir::Value round(Build b, mlir::Value value, mlir::Type narrow);
  /// Allocates scratch memory for each state of the fold that has axes.
  llvm::SmallVector<StateBuffer> allocateStates(onf::FoldOp fold);
  /// Returns the range of a fold for the rows first … last: the hull of its pieces if it has any.
  std::pair<mlir::Value, mlir::Value> hull(onf::FoldOp fold, mlir::Value first, mlir::Value last);
  /// Returns the largest lower and least upper bound given by a piece's pair of maps.
  std::pair<mlir::Value, mlir::Value> interval(onf::FoldOp fold, mlir::AffineMap lower, mlir::AffineMap upper,
                                               mlir::Value first, mlir::Value last);

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
  /// Number of valid columns in this block, if the nest runs in blocks of columns.
  mlir::Value columns;
  /// The part of a fold's range that is being emitted; a null fold if none is.
  struct Part {
    onf::FoldOp fold;
    mlir::Value lower, upper;
  };
  Part part;
  bool failed = false;

  mlir::Value slot(unsigned number, mlir::Type element);

private:
  Emitted evalElementwise(mlir::Operation *op);
  Emitted evalLoad(onf::LoadOp load);
  Emitted evalAt(onf::AtOp at);
  Emitted evalFold(onf::FoldOp fold, mlir::Value result);
  Emitted remember(mlir::Value key, mlir::Value value, unsigned depth, unsigned context = 0);
  /// Evaluates an operand that is needed only where `condition` equals `holds`.
  Emitted evalWhere(mlir::Value value, Emitted condition, bool holds);
  Emitted evalOperand(mlir::Operation *op, unsigned number, llvm::ArrayRef<Emitted> before);
  /// Returns the current context and its ancestors, without the empty one.
  llvm::SmallVector<unsigned> openContexts() const;
  /// Returns the mask of rows that a load at `depth` is needed for; null if all. These are the rows
  /// present in the scopes down to `depth` and, if the load may fault, where its context holds.
  mlir::Value neededRows(unsigned depth, bool mayFault);
  /// Finds the storage of a fold's state, with its depth and context.
  StateBuffer *findState(mlir::Value state, Emitted &where);
  /// Evaluates the values that a region captures. Returns the depth of the deepest.
  unsigned depthOfCaptures(mlir::Operation *op);
  std::optional<unsigned> rowDepth() const;
  mlir::Value emitTerm(const SymExpr::Monomial &monomial, int64_t coefficient);
  mlir::Value emitAtom(const SymExpr::Atom &atom);

  /// An address: a uniform offset plus one offset per lane.
  struct Address {
    Emitted uniform;
    Emitted perLane;    // null value if no term depends on the lane
    mlir::Value stride; // distance of the lanes, null if irregular
    mlir::Value full;   // null if the lanes are always consecutive
    unsigned depth = 0, context = 0;
  };
  Address address(onf::AccessOpInterface op);
  /// Returns the factor of the lane index in an index expression, or nothing if it is not linear.
  std::optional<int64_t> laneFactor(mlir::Value term, mlir::Value &full);
  mlir::Value strideAlong(onf::AccessOpInterface op, mlir::Value index);
  Values laneAddresses(mlir::Type storage, mlir::Value array, const Address &where);
  void storeSquare(onf::StoreOp store, mlir::Value index, mlir::Value first, mlir::Value square);
  mlir::Value nonEmpty(mlir::Operation *op, unsigned depth);
  std::optional<Emitted> findBound(mlir::Value value);
  mlir::Value pointerOf(mlir::Value array);
  unsigned depthOfLoad(unsigned depth, bool mayFault) const;
  mlir::Value loadUniform(Build b, mlir::Type element, mlir::Value pointer);
  mlir::Value loadLanes(unsigned depth, mlir::Type element, mlir::Value pointer, const Address &address,
                        mlir::Value allowed, bool mayFault);
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
