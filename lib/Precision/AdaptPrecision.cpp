//===- AdaptPrecision.cpp - fewer bits where an error is allowed ----------===//
//
// A nest that contracts rows of inputs is written once more for each candidate, and each
// copy runs at those indices of the axes in front of the rows where a sample says that its
// results are near enough to those of the nest as it was written. In front of them stand
// the nests that round operands, pick the sample, compute it by every copy, and decide.
//
//===----------------------------------------------------------------------===//
#include "lib/Precision/Candidates.h"
#include "lib/Precision/KernelEditor.h"
#include "lib/Precision/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {
#define GEN_PASS_DEF_ADAPTPRECISIONPASS
#include "lib/Precision/PrecisionPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::precision;

/// Rows of a sample: two from each of so many equal parts of the rows.
static constexpr int64_t kParts = 32, kSample = 2 * kParts;
/// With fewer rows, or a fold over fewer indices, nothing is tried.
static constexpr int64_t kFewest = 256;
/// Terms of a sum of products of 8-bit integers, which f32 holds exactly.
static constexpr int64_t kMostTerms = 256;
/// The largest magnitude of a rounded element, in steps.
static constexpr double kSteps = 127;
/// An estimate is compared with so much of what is allowed: the results are rounded too.
static constexpr double kShare = 0.95;
/// Deviations of the estimate that are added to it: 95 % of a normal distribution.
static constexpr double kDeviations = 1.645;

namespace {
/// An array in 8 bits, and what a row of it along the contraction's axis is a multiple of.
struct Rounded {
  Value data, scale;
};

/// A vector near the mean of an array along one axis.
struct Mean {
  Value array;
  unsigned axis = 0;
};

/// A result that the nest stores, with the tolerance it has.
struct Result {
  onf::StoreOp store;
  Tolerance allowed;
  SmallVector<Attribute> names, extents; // of the loops inside of the nest around the store
  Value sample;                          // of the nest as it is written
  Value norm;                            // Σ |sample|² of a row
};

/// One way to compute the nest: the scores whose operands are rounded.
struct Plan {
  SmallVector<unsigned> scores;
};

/// Adapts one nest of a kernel.
class Adapter {
public:
  Adapter(onf::KernelOp kernel, onf::ForOp nest, const AdaptPrecisionPassOptions &options)
      : kernel(kernel), nest(nest), options(options), editor(kernel, nest), onDemand(kernel) {
  }

  /// Whether there is anything to adapt; `why` says why not.
  bool plan(std::string &why);
  LogicalResult readTable();
  void run();
  void note();

private:
  //===--- What there is --------------------------------------------------===//
  bool findResults(std::string &why);
  std::string base() { return kernel.getArrayName(numberOf(results[0].store)).str(); }
  static unsigned numberOf(onf::StoreOp store) {
    return cast<BlockArgument>(store.getArray()).getArgNumber();
  }
  SymExpr rows() { return *SymExpr::parse(cast<StringAttr>(nest.getExtents().getValue().back()).getValue()); }

  //===--- The nests in front ---------------------------------------------===//
  void addCondition();
  Rounded addRounded(Value array, unsigned axis, const Mean *mean = nullptr);
  Rounded rounded(const Operand &operand) { return roundedArrays[{operand.array(), operand.axis}]; }
  Mean addMean(const Score &score);
  Value addShift(const Score &score, const Mean &mean);
  void addSampleRows();
  Value addGathered(const Score &score);
  SmallVector<Value> addSample(const Plan *plan, unsigned number);
  void addErrors(ArrayRef<SmallVector<Value>> samples);
  Value tabled(Code &code, ValueRange head);
  void addDecision();
  void addTable();
  void storeDecision(Code &code, ValueRange head, Value plan);

  //===--- Copies of the nest ---------------------------------------------===//
  struct Copy {
    onf::ForOp nest;
    IRMapping map;
    Value row; // the number of the row
  };
  Copy copyNest();
  void roundScore(Copy &copy, const Score &score, const Rounded &row, ValueRange rowIndices,
                  const Rounded &key);
  void readSampledRows(Copy &copy, const Score &score, Value gathered);

  onf::KernelOp kernel;
  onf::ForOp nest;
  const AdaptPrecisionPassOptions &options;
  KernelEditor editor;
  OnDemand onDemand;
  SmallVector<Score> scores;
  SmallVector<Result, 2> results;
  SmallVector<Plan, 2> plans;

  SmallVector<Attribute> headNames, headExtents;   // the axes in front of the rows
  SmallVector<Attribute> sampleNames, sampleExtents; // and those of the sample
  Choice tried, chosen;
  Value sampledRows; // the number of each row of the sample
  llvm::MapVector<std::pair<Value, unsigned>, Rounded> roundedArrays;
  llvm::DenseMap<const Score *, Value> shifts; // what scores are smaller by
  SmallVector<Value> gathered;        // by score
  SmallVector<Rounded> gatheredRounded;
  SmallVector<SmallVector<Value>> errors; // by plan and result
  SmallVector<int64_t> table;             // plans that are given, or none
  Value planArray;                        // results for the decisions, if there are such
  SmallVector<Value> estimateArrays;
};
} // namespace

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// The results of the nest. Each may have an error, measured over rows: on a sample of
/// them, in the norm over axes that the rows are one of.
bool Adapter::findResults(std::string &why) {
  bool fits = true;
  Value row = nest.getBody().front().getArguments().back();
  nest.walk([&](onf::StoreOp store) {
    StringRef name = kernel.getArrayName(numberOf(store));
    auto refuse = [&](const Twine &reason) {
      if (fits)
        why = ("'" + name + "' " + reason).str();
      fits = false;
    };
    if (kernel.isTemporary(numberOf(store)))
      return refuse("is read by other nests");
    WithinAttr within = getWithin(kernel, numberOf(store) - kernel.getNumInputs());
    if (!within)
      return refuse("may have no error");
    Result result{store, within.getTolerance(), {}, {}, {}, {}};
    if (!result.allowed.isSampled || !result.allowed.isRelative)
      return refuse("has a tolerance that is not relative and sampled");
    for (auto [term, text] : llvm::zip_equal(
             store.getTerms(), store.getCoefficients().getAsValueRange<StringAttr>())) {
      int64_t rank = store.getArray().getType().getRank(), axis;
      if (term == row && !text.rsplit(".s").second.getAsInteger(10, axis) && axis + 2 < rank)
        return refuse("has an error per row, of which a sample says nothing");
    }
    for (auto loop = store->getParentOfType<onf::ForOp>(); loop != nest;
         loop = loop->getParentOfType<onf::ForOp>()) {
      result.names.insert(result.names.begin(), loop.getNames().begin(), loop.getNames().end());
      result.extents.insert(result.extents.begin(), loop.getExtents().begin(), loop.getExtents().end());
    }
    results.push_back(result);
  });
  return fits && !results.empty();
}

bool Adapter::plan(std::string &why) {
  scores = findScores(nest, onDemand, kMostTerms);
  if (scores.empty()) {
    why = "no fold sums up products of rows of two inputs";
    return false;
  }
  if (!findResults(why))
    return false;
  Plan all;
  for (unsigned k = 0; k < scores.size(); ++k)
    all.scores.push_back(k);
  plans.push_back(all);
  headNames.assign(nest.getNames().begin(), nest.getNames().end());
  headExtents.assign(nest.getExtents().begin(), nest.getExtents().end());
  headNames.pop_back();
  headExtents.pop_back();
  sampleNames = headNames;
  sampleExtents = headExtents;
  sampleNames.push_back(editor.text("r"));
  sampleExtents.push_back(editor.text(SymExpr(kSample)));
  return true;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The value that `map` has for this one, or a copy of what computes it.
static Value copyOf(Code &at, Value value, IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (!op)
    return value;
  for (Value operand : op->getOperands())
    copyOf(at, operand, map);
  return at.b.clone(*op, map)->getResult(cast<OpResult>(value).getResultNumber());
}

/// Loads what the operand loads from an array of its shape, at index k of the contraction, or
/// from one that lacks the contraction's axis, where k is null, and perhaps one more, of an
/// index of its own.
static Value loadAs(Code &at, const Operand &operand, Value array, Value k, IRMapping &map,
                    std::optional<unsigned> without = std::nullopt) {
  onf::LoadOp load = operand.load;
  auto dropped = [&](unsigned axis) { return (!k && axis == operand.axis) || axis == without; };
  std::string from = at.kernel.getArrayName(operand.array().getArgNumber()).str();
  StringRef to = at.kernel.getArrayName(cast<BlockArgument>(array).getArgNumber());
  auto renamed = [&](StringRef text) {
    SymExpr expr = SymExpr::parse(text)->substitute([&](StringRef symbol) -> std::optional<SymExpr> {
      auto [name, number] = symbol.rsplit(".s");
      unsigned axis;
      if (name != from || number.getAsInteger(10, axis))
        return std::nullopt;
      unsigned place = 0;
      for (unsigned before = 0; before < axis; ++before)
        place += !dropped(before);
      return SymExpr::symbol((to + ".s" + Twine(place)).str());
    });
    return at.b.getStringAttr(expr.str());
  };
  SmallVector<Value> terms;
  SmallVector<Attribute> coefficients;
  Value index = load->getParentOfType<onf::FoldOp>().getBody().getArgument(0);
  for (auto [term, text] :
       llvm::zip_equal(load.getTerms(), load.getCoefficients().getAsValueRange<StringAttr>())) {
    if ((term == index && !k) || (without && text == (from + ".s" + Twine(*without)).str()))
      continue;
    terms.push_back(term == index ? k : copyOf(at, term, map));
    coefficients.push_back(renamed(text));
  }
  return at.make<onf::LoadOp>(cast<ArrayType>(array.getType()).getElementType(), array, terms,
                              at.b.getArrayAttr(coefficients), renamed(load.getConstant()));
}

Adapter::Copy Adapter::copyNest() {
  Copy copy;
  OpBuilder b(nest);
  copy.nest = cast<onf::ForOp>(b.clone(*nest, copy.map));
  copy.row = copy.nest.getBody().getArguments().back();
  return copy;
}

/// Σ row · key becomes f32(Σ row8 · key8) · (scale of the key) · (scale of the row). The row's
/// operand is at these indices, or where the score reads it.
void Adapter::roundScore(Copy &copy, const Score &score, const Rounded &row, ValueRange rowIndices,
                         const Rounded &key) {
  auto old = cast<onf::FoldOp>(copy.map.lookup(score.fold.getOperation()));
  auto outer = cast<onf::FoldOp>(old->getParentOp());
  // Behind the factor, which may stand behind the sum.
  Operation *scaled = score.scaled ? copy.map.lookup(score.scaled.getOperation()) : nullptr;
  Code code(kernel, OpBuilder(scaled ? scaled : old), old.getLoc());
  Value sum = code.fold(old.getName(), *SymExpr::parse(old.getExtent()), [&](Code &at, Value k, Value &) {
    SmallVector<Value> indices(rowIndices);
    indices.push_back(k);
    Value x = rowIndices.empty() ? loadAs(at, score.row, row.data, k, copy.map)
                                 : at.load(row.data, indices);
    Value y = loadAs(at, score.key, key.data, k, copy.map);
    Value product = at.make<arith::MulIOp>(at.toIndex(x), at.toIndex(y));
    return SmallVector<Code::Term>{{Monoid::add, "add", product}};
  })[0];
  Value keyScale = loadAs(code, score.key, key.scale, Value(), copy.map);
  Value product = code.make<arith::MulFOp>(code.toReal(sum), keyScale);
  // What belongs to the row alone is multiplied once, in front of the fold.
  Value index = score.fold.getBody().getArgument(0);
  bool isFree = llvm::all_of(score.row.load.getTerms(), [&](Value term) {
    Operation *op = copy.map.lookupOrDefault(term).getDefiningOp();
    return term == index || !op || !outer->isAncestor(op);
  });
  Code front(kernel, isFree ? OpBuilder(outer) : code.b, old.getLoc());
  Value scale = rowIndices.empty() ? loadAs(front, score.row, row.scale, Value(), copy.map)
                                   : front.load(row.scale, rowIndices);
  Value factor = score.factor ? copy.map.lookupOrDefault(score.factor) : Value();
  if (factor)
    scale = front.make<arith::MulFOp>(scale, factor);
  if (!isFree)
    code.b = front.b;
  Value value = code.make<arith::MulFOp>(product, scale);
  if (Value shift = shifts.lookup(&score)) {
    // Of the rows' own indices, which a sample has by number.
    SmallVector<Value> indices(copy.nest.getBody().getArguments());
    Code first(kernel, OpBuilder(outer), old.getLoc());
    indices.back() = copy.row;
    Value moved = first.load(shift, indices);
    if (factor)
      moved = first.make<arith::MulFOp>(moved, factor);
    if (score.moved) {
      first.b.setInsertionPointAfter(outer);
      for (unsigned number : *score.moved) {
        Value result = outer.getResult(number);
        Value sum = first.make<arith::AddFOp>(result, moved);
        result.replaceAllUsesExcept(sum, sum.getDefiningOp());
      }
    } else {
      value = code.make<arith::AddFOp>(value, moved);
    }
  }
  copy.map.lookup(score.value).replaceAllUsesWith(value);
  if (score.scaled)
    copy.map.lookup(score.scaled.getOperation())->erase();
  old.erase();
}

/// The rows of the operand come from the array they were gathered in.
void Adapter::readSampledRows(Copy &copy, const Score &score, Value gathered) {
  auto load = cast<onf::LoadOp>(copy.map.lookup(score.row.load.getOperation()));
  auto fold = cast<onf::FoldOp>(load->getParentOp());
  Code code(kernel, OpBuilder(load), load.getLoc());
  SmallVector<Value> indices(copy.nest.getBody().getArguments());
  indices.push_back(fold.getBody().getArgument(0));
  load.getResult().replaceAllUsesWith(code.load(gathered, indices));
  load.erase();
}

//===----------------------------------------------------------------------===//
// Operands in 8 bits
//===----------------------------------------------------------------------===//

/// Whether there are rows and indices enough for a sample to be worth its time.
void Adapter::addCondition() {
  tried = {editor.addTemporary(base() + "_tried", {}, Builder(kernel.getContext()).getI32Type()), {}, 1};
  editor.addNest({}, {}, nullptr, [&](Code &code, ValueRange) {
    Value enough;
    auto require = [&](const SymExpr &extent) {
      Value is = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, code.extent(extent),
                                          code.index(kFewest));
      enough = enough ? code.make<arith::AndIOp>(enough, is) : is;
    };
    require(rows());
    std::set<std::string> known;
    for (Score &score : scores)
      if (known.insert(score.outer.getExtent().str()).second)
        require(*SymExpr::parse(score.outer.getExtent()));
    code.store(code.make<arith::SelectOp>(enough, code.index(1), code.index(0)), tried.array, {});
  });
}

/// The mean of the keys over a part of them: any vector is as exact (law B1), and the mean of
/// all is no better where keys are alike.
Mean Adapter::addMean(const Score &score) {
  BlockArgument keys = score.key.array();
  auto type = cast<ArrayType>(keys.getType());
  SmallVector<Attribute> names, extents;
  for (auto [k, extent] : llvm::enumerate(type.getShape()))
    if (k != *score.keyAxis) {
      names.push_back(editor.text("i" + Twine(k)));
      extents.push_back(extent);
    }
  std::string name = kernel.getArrayName(keys.getArgNumber()).str() + "_mean";
  Mean mean{editor.addTemporary(name, extents, Builder(kernel.getContext()).getF32Type()), *score.keyAxis};
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange others) {
    Value count = code.extent(type.getExtent(mean.axis));
    Value sum = code.fold("p", SymExpr(kSample), [&](Code &at, Value p, Value &) {
      SmallVector<Value> indices(others);
      Value place = at.make<arith::MulIOp>(p, count);
      indices.insert(indices.begin() + mean.axis, at.make<arith::FloorDivSIOp>(place, at.index(kSample)));
      return SmallVector<Code::Term>{{Monoid::add, "sum", at.loadFloat(keys, indices)}};
    })[0];
    code.store(code.make<arith::MulFOp>(sum, code.real(1.0 / kSample)), mean.array, others);
  });
  return mean;
}

/// c(i) = Σ_k row(i, k) · mean(k), at every index of the nest.
Value Adapter::addShift(const Score &score, const Mean &mean) {
  SmallVector<Attribute> names(nest.getNames().begin(), nest.getNames().end());
  SmallVector<Attribute> extents(nest.getExtents().begin(), nest.getExtents().end());
  std::string name = kernel.getArrayName(score.row.array().getArgNumber()).str() + "_shift";
  Value array = editor.addTemporary(name, extents, Builder(kernel.getContext()).getF32Type());
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange indices) {
    IRMapping map;
    map.map(nest.getBody().getArguments(), indices);
    SymExpr extent = *SymExpr::parse(score.fold.getExtent());
    // The mean has no axis for j.
    Value sum = code.fold("k", extent, [&](Code &at, Value k, Value &) {
      Value x = at.widen(loadAs(at, score.row, score.row.array(), k, map));
      Value y = loadAs(at, score.key, mean.array, k, map, mean.axis);
      return SmallVector<Code::Term>{{Monoid::add, "shift", at.make<arith::MulFOp>(x, y)}};
    })[0];
    code.store(sum, array, indices);
  });
  return array;
}

/// x = scale · x̂ with |x̂| ≤ 127, the scale of a row its largest magnitude / 127, or 1; x less
/// its mean where there is one.
Rounded Adapter::addRounded(Value array, unsigned axis, const Mean *mean) {
  auto type = cast<ArrayType>(array.getType());
  StringRef name = kernel.getArrayName(cast<BlockArgument>(array).getArgNumber());
  Builder b(kernel.getContext());
  SmallVector<Attribute> names, extents, all(type.getShape().begin(), type.getShape().end());
  for (auto [k, extent] : llvm::enumerate(all))
    if (k != axis) {
      names.push_back(editor.text("i" + Twine(k)));
      extents.push_back(extent);
    }
  std::string data = (name + "_i8").str(), scale = (name + "_scale").str();
  Rounded result{editor.addTemporary(data, all, b.getI8Type()),
                 editor.addTemporary(scale, extents, b.getF32Type())};
  editor.addNest(names, extents, &tried, [&](Code &code, ValueRange rowIndices) {
    auto element = [&](Code &at, Value k) {
      SmallVector<Value> indices(rowIndices);
      indices.insert(indices.begin() + axis, k);
      return indices;
    };
    auto read = [&](Code &at, Value k) {
      SmallVector<Value> indices = element(at, k);
      Value x = at.loadFloat(array, indices);
      if (!mean)
        return x;
      indices.erase(indices.begin() + mean->axis);
      return at.make<arith::SubFOp>(x, at.load(mean->array, indices));
    };
    Value largest = code.fold("k", type.getExtent(axis), [&](Code &at, Value k, Value &) {
      Value x = read(at, k);
      return SmallVector<Code::Term>{{Monoid::max, "largest", at.make<math::AbsFOp>(x)}};
    })[0];
    // A NaN remains one.
    Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, largest, code.real(0));
    Value steps = code.real(kSteps), one = code.real(1);
    Value step = code.make<arith::SelectOp>(isZero, one, code.make<arith::DivFOp>(largest, steps));
    Value inverse = code.make<arith::SelectOp>(isZero, one, code.make<arith::DivFOp>(steps, largest));
    code.store(step, result.scale, rowIndices);
    code.loops({editor.text("k")}, {all[axis]}, [&](Code &at, ValueRange k) {
      Value x = read(at, k[0]);
      Value scaled = at.make<arith::MulFOp>(x, inverse);
      Value nearest = at.make<math::FloorOp>(at.make<arith::AddFOp>(scaled, at.real(0.5)));
      nearest = at.make<arith::MaximumFOp>(at.make<arith::MinimumFOp>(nearest, at.real(kSteps)), at.real(-kSteps));
      auto whole = arith::FPToSIOp::create(at.b, at.loc, at.b.getI8Type(), nearest);
      whole->setAttr("moa.round", at.b.getUnitAttr());
      at.store(at.toIndex(whole), result.data, element(at, k[0]));
    });
  });
  return result;
}

//===----------------------------------------------------------------------===//
// The sample
//===----------------------------------------------------------------------===//

/// The rows fall into parts of equal length. Of each, the sample has the row whose operand has
/// the largest element, of odd number, and one that a hash of the indices picks.
void Adapter::addSampleRows() {
  Builder builder(kernel.getContext());
  sampledRows = editor.addTemporary(base() + "_row", sampleExtents, builder.getI32Type());
  SymExpr count = rows();
  const Score &first = scores[plans[0].scores[0]];
  Rounded operand = rounded(first.row);
  editor.addNest(sampleNames, sampleExtents, &tried, [&](Code &code, ValueRange indices) {
    auto add = [](Code &at, Value x, Value y) { return at.make<arith::AddIOp>(x, y); };
    auto times = [](Code &at, Value x, int64_t y) { return at.make<arith::MulIOp>(x, at.index(y)); };
    auto divided = [](Code &at, Value x, int64_t y) { return at.make<arith::FloorDivSIOp>(x, at.index(y)); };
    auto modulo = [](Code &at, Value x, int64_t y) { return at.make<arith::RemSIOp>(x, at.index(y)); };
    Value r = indices.back(), part = divided(code, r, 2), n = code.extent(count);
    auto bound = [&](Value p) { return divided(code, code.make<arith::MulIOp>(p, n), kParts); };
    Value start = bound(part), end = bound(add(code, part, code.index(1)));
    Value length = code.make<arith::SubIOp>(end, start);
    // A hash: two rounds of squares modulo a prime.
    constexpr int64_t prime = 1048573;
    Value hash = times(code, part, 7919);
    for (Value index : indices.drop_back())
      hash = modulo(code, add(code, times(code, modulo(code, hash, prime), 104729), index), prime);
    for (int64_t shift : {12345, 54321}) {
      Value moved = modulo(code, add(code, hash, code.index(shift)), prime);
      hash = divided(code, modulo(code, code.make<arith::MulIOp>(moved, moved), prime * 1024), 32);
    }
    Value picked = add(code, start, code.make<arith::RemSIOp>(hash, length));
    // The scale of a row of the part.
    Value last = code.make<arith::SubIOp>(n, code.index(1));
    auto scaleAt = [&](Code &at, Value t) {
      Value row = at.make<arith::MinSIOp>(add(at, start, t), last);
      IRMapping map;
      SmallVector<Value> rowIndices(indices.drop_back());
      rowIndices.push_back(row);
      map.map(nest.getBody().getArguments(), rowIndices);
      return loadAs(at, first.row, operand.scale, Value(), map);
    };
    auto isInside = [&](Code &at, Value t) {
      return at.make<arith::CmpIOp>(arith::CmpIPredicate::slt, t, length);
    };
    SymExpr longest = SymExpr::floorDiv(count, SymExpr(kParts)) + SymExpr(1);
    Value most = code.fold("t", longest, [&](Code &at, Value t, Value &present) {
      present = isInside(at, t);
      return SmallVector<Code::Term>{{Monoid::max, "most", scaleAt(at, t)}};
    })[0];
    Value where = code.fold("t", longest, [&](Code &at, Value t, Value &present) {
      Value is = at.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, scaleAt(at, t), most);
      present = at.make<arith::AndIOp>(isInside(at, t), is);
      return SmallVector<Code::Term>{{Monoid::max, "where", t}};
    })[0];
    // Of NaN no row has the largest.
    where = code.make<arith::MaxSIOp>(where, code.index(0));
    Value isOdd = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, modulo(code, r, 2), code.index(1));
    Value row = code.make<arith::SelectOp>(isOdd, add(code, start, where), picked);
    code.store(row, sampledRows, indices);
  });
}

/// The rows of the sample, one behind the other.
Value Adapter::addGathered(const Score &score) {
  onf::LoadOp load = score.row.load;
  auto type = load.getArray().getType();
  SmallVector<Attribute> extents(sampleExtents);
  extents.push_back(type.getShape()[score.row.axis]);
  std::string name = kernel.getArrayName(score.row.array().getArgNumber()).str() + "_rows";
  Value array = editor.addTemporary(name, extents, type.getElementType());
  editor.addNest(sampleNames, sampleExtents, &tried, [&](Code &code, ValueRange indices) {
    IRMapping map;
    SmallVector<Value> rowIndices(indices.drop_back());
    rowIndices.push_back(code.toIndex(code.load(sampledRows, indices)));
    map.map(nest.getBody().getArguments(), rowIndices);
    code.loops({editor.text("k")}, {extents.back()}, [&](Code &at, ValueRange k) {
      SmallVector<Value> element(indices);
      element.push_back(k[0]);
      at.store(loadAs(at, score.row, score.row.array(), k[0], map), array, element);
    });
  });
  return array;
}

/// The nest for the rows of the sample, as a plan computes it or, without one, as it is
/// written: arrays of what it would store.
SmallVector<Value> Adapter::addSample(const Plan *plan, unsigned number) {
  SmallVector<Value> samples;
  for (Result &result : results) {
    SmallVector<Attribute> extents(sampleExtents);
    llvm::append_range(extents, result.extents);
    samples.push_back(editor.addTemporary(
        kernel.getArrayName(numberOf(result.store)) + "_sample" + Twine(number), extents,
        result.store.getValue().getType()));
  }
  Copy copy = copyNest();
  Builder b(kernel.getContext());
  copy.nest.setNamesAttr(b.getArrayAttr(sampleNames));
  copy.nest.setExtentsAttr(b.getArrayAttr(sampleExtents));
  setChoice(copy.nest, tried);
  // The row's number takes the place of its index, but where rows were gathered.
  Block &body = copy.nest.getBody().front();
  Code code(kernel, OpBuilder::atBlockBegin(&body), nest.getLoc());
  Value place = body.getArguments().back();
  Value row = code.toIndex(code.load(sampledRows, body.getArguments()));
  Operation *read = row.getDefiningOp()->getOperand(0).getDefiningOp();
  place.replaceUsesWithIf(row, [&](OpOperand &use) { return use.getOwner() != read; });
  copy.row = row;
  for (auto [k, score] : llvm::enumerate(scores)) {
    if (plan && llvm::is_contained(plan->scores, k))
      roundScore(copy, score, gatheredRounded[k], body.getArguments(), rounded(score.key));
    else
      readSampledRows(copy, score, gathered[k]);
  }
  for (auto [result, sample] : llvm::zip_equal(results, samples)) {
    auto store = cast<onf::StoreOp>(copy.map.lookup(result.store.getOperation()));
    SmallVector<Value> inner, indices(body.getArguments());
    for (auto loop = store->getParentOfType<onf::ForOp>(); loop != copy.nest;
         loop = loop->getParentOfType<onf::ForOp>())
      inner.insert(inner.begin(), loop.getBody().args_begin(), loop.getBody().args_end());
    llvm::append_range(indices, inner);
    Code at(kernel, OpBuilder(store), store.getLoc());
    at.store(store.getValue(), sample, indices);
    store.erase();
  }
  return samples;
}

//===----------------------------------------------------------------------===//
// Estimates
//===----------------------------------------------------------------------===//

/// Per row of the sample and result Σ |x|² of the nest as written, and Σ |x̂ − x|² of plans.
void Adapter::addErrors(ArrayRef<SmallVector<Value>> samples) {
  Builder b(kernel.getContext());
  errors.resize(plans.size());
  for (Result &result : results) {
    std::string name = kernel.getArrayName(numberOf(result.store)).str();
    result.norm = editor.addTemporary(name + "_norm", sampleExtents, b.getF32Type());
    for (unsigned p = 0; p < plans.size(); ++p)
      errors[p].push_back(editor.addTemporary(name + "_error" + Twine(p + 1), sampleExtents, b.getF32Type()));
  }
  editor.addNest(sampleNames, sampleExtents, &tried, [&](Code &code, ValueRange row) {
    for (auto [o, result] : llvm::enumerate(results)) {
      std::function<Code::Values(Code &, SmallVector<Value>)> sums = [&](Code &at, SmallVector<Value> indices) {
        Code::Values values;
        unsigned axis = indices.size() - row.size();
        if (axis == result.extents.size()) {
          // What is infinite has no norm, and must be the same.
          Value x = at.load(result.sample, indices);
          auto typed = [&](double value) {
            return at.make<arith::ConstantOp>(at.b.getFloatAttr(x.getType(), value));
          };
          Value isInfinite = at.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, at.make<math::AbsFOp>(x), typed(INFINITY));
          Value finite = at.make<arith::SelectOp>(isInfinite, typed(0), x);
          values.push_back(at.make<arith::MulFOp>(finite, finite));
          for (const SmallVector<Value> &sample : samples) {
            Value y = at.load(sample[o], indices);
            Value same = at.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, y);
            Value off = at.make<arith::SelectOp>(same, typed(0), at.make<arith::SubFOp>(y, x));
            values.push_back(at.make<arith::MulFOp>(off, off));
          }
          return values;
        }
        StringRef name = cast<StringAttr>(result.names[axis]).getValue();
        SymExpr extent = *SymExpr::parse(cast<StringAttr>(result.extents[axis]).getValue());
        return at.fold(name, extent, [&](Code &in, Value index, Value &) {
          SmallVector<Value> more(indices);
          more.push_back(index);
          SmallVector<Code::Term> terms;
          for (Value value : sums(in, more))
            terms.push_back({Monoid::add, "sum", value});
          return terms;
        });
      };
      Code::Values values = sums(code, SmallVector<Value>(row));
      code.store(values[0], result.norm, row);
      for (unsigned p = 0; p < plans.size(); ++p)
        code.store(values[p + 1], errors[p][o], row);
    }
  });
}

/// The plans of a table, by the indices in front of the rows in row-major order.
Value Adapter::tabled(Code &code, ValueRange head) {
  Value number = code.index(0), plan = code.index(0);
  for (auto [index, extent] : llvm::zip_equal(head, headExtents)) {
    Value size = code.extent(*SymExpr::parse(cast<StringAttr>(extent).getValue()));
    number = code.make<arith::AddIOp>(code.make<arith::MulIOp>(number, size), index);
  }
  for (auto [k, entry] : llvm::enumerate(table)) {
    Value is = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, number, code.index(k));
    plan = code.make<arith::SelectOp>(is, code.index(entry), plan);
  }
  return plan;
}

/// Of each plan and result the ratio Σ w·e / Σ w·n over the sample, with w the rows that one
/// stands for, and a margin for what was not seen; then the first plan that is near enough.
void Adapter::addDecision() {
  SymExpr count = rows();
  editor.addNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value is = code.load(tried.array, {}), n = code.extent(count);
    Value runs = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, is, code.integer(1));
    auto at = [&](Value r) {
      SmallVector<Value> row(head);
      row.push_back(r);
      return row;
    };
    auto half = [&](Code &in, Value r) { return in.make<arith::FloorDivSIOp>(r, in.index(2)); };
    auto isLargest = [&](Code &in, Value r) {
      return in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, in.make<arith::RemSIOp>(r, in.index(2)), in.index(1));
    };
    auto weight = [&](Code &in, Value r) {
      auto bound = [&](Value part) {
        return in.make<arith::FloorDivSIOp>(in.make<arith::MulIOp>(part, n), in.index(kParts));
      };
      Value part = half(in, r), next = in.make<arith::AddIOp>(part, in.index(1));
      Value others = in.make<arith::SubIOp>(in.make<arith::SubIOp>(bound(next), bound(part)), in.index(1));
      return in.make<arith::SelectOp>(isLargest(in, r), in.real(1), in.toReal(others));
    };
    SmallVector<Value> allowed(plans.size()); // whether every result allows the plan
    SmallVector<SmallVector<Value>> estimates;
    for (auto [o, result] : llvm::enumerate(results)) {
      Code::Values totals = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
        present = runs;
        Value w = weight(in, r);
        SmallVector<Code::Term> terms{{Monoid::add, "norm", in.make<arith::MulFOp>(w, in.load(result.norm, at(r)))}};
        for (auto &error : errors)
          terms.push_back({Monoid::add, "error", in.make<arith::MulFOp>(w, in.load(error[o], at(r)))});
        return terms;
      });
      Value norm = totals[0], zero = code.real(0);
      Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, norm, zero);
      SmallVector<Value> ratios;
      for (Value error : llvm::drop_begin(totals))
        ratios.push_back(code.make<arith::SelectOp>(isZero, zero, code.make<arith::DivFOp>(error, norm)));
      // The rows of largest elements are all there are of their kind; the others vary.
      Code::Values squares = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
        present = in.make<arith::AndIOp>(runs, in.make<arith::XOrIOp>(isLargest(in, r), in.make<arith::ConstantOp>(in.b.getBoolAttr(true))));
        Value w = weight(in, r), norm = in.load(result.norm, at(r));
        SmallVector<Code::Term> terms;
        for (auto [ratio, error] : llvm::zip_equal(ratios, errors)) {
          Value off = in.make<arith::SubFOp>(in.load(error[o], at(r)), in.make<arith::MulFOp>(ratio, norm));
          off = in.make<arith::MulFOp>(w, off);
          terms.push_back({Monoid::add, "square", in.make<arith::MulFOp>(off, off)});
        }
        return terms;
      });
      Value limit = code.real(kShare * result.allowed.epsilon);
      estimates.emplace_back();
      for (unsigned p = 0; p < plans.size(); ++p) {
        double scale = kDeviations * std::sqrt(double(kParts) / (kParts - 1));
        Value margin = code.make<arith::MulFOp>(code.make<math::SqrtOp>(squares[p]), code.real(scale));
        Value upper = code.make<arith::AddFOp>(totals[p + 1], margin);
        Value none = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, upper, zero);
        Value lone = code.make<arith::SelectOp>(none, zero, code.real(INFINITY));
        Value ratio = code.make<arith::SelectOp>(isZero, lone, code.make<arith::DivFOp>(upper, norm));
        Value estimate = code.make<math::SqrtOp>(ratio);
        estimates.back().push_back(estimate);
        Value fits = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLE, estimate, limit);
        allowed[p] = allowed[p] ? code.make<arith::AndIOp>(allowed[p], fits) : fits;
      }
    }
    Value first = table.empty() ? Value() : tabled(code, head);
    Value plan = code.index(0);
    for (unsigned p = plans.size(); p-- > 0;) {
      Value takes = code.make<arith::AndIOp>(runs, allowed[p]);
      if (first) {
        Value isLater = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, code.index(p + 1), first);
        Value isAny = code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, first, code.index(0));
        takes = code.make<arith::AndIOp>(takes, code.make<arith::AndIOp>(isLater, isAny));
      }
      plan = code.make<arith::SelectOp>(takes, code.index(p + 1), plan);
    }
    storeDecision(code, head, plan);
    for (auto [o, array] : llvm::enumerate(estimateArrays)) {
      Attribute size = editor.text(Twine(plans.size()));
      code.loops({editor.text("p")}, {size}, [&](Code &in, ValueRange p) {
        Value value = in.real(NAN);
        for (unsigned k = 0; k < plans.size(); ++k) {
          Value here = in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, p[0], in.index(k));
          value = in.make<arith::SelectOp>(in.make<arith::AndIOp>(here, runs), estimates[o][k], value);
        }
        SmallVector<Value> indices(head);
        indices.push_back(p[0]);
        in.store(value, array, indices);
      });
    }
  });
}

/// The plans of the table, wherever anything was rounded.
void Adapter::addTable() {
  editor.addNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value is = code.load(tried.array, {});
    Value runs = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, is, code.integer(1));
    Value entry = tabled(code, head), plan = code.index(0);
    for (unsigned p = 1; p <= plans.size(); ++p) {
      Value taken = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, entry, code.index(p));
      plan = code.make<arith::SelectOp>(code.make<arith::AndIOp>(runs, taken), code.index(p), plan);
    }
    storeDecision(code, head, plan);
  });
}

void Adapter::storeDecision(Code &code, ValueRange head, Value plan) {
  code.store(plan, chosen.array, head);
  if (planArray)
    code.store(plan, planArray, head);
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Says on the kernel what may be computed how; there is one list per result.
void Adapter::note() {
  Builder b(kernel.getContext());
  SmallVector<Attribute> lists;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kSpentAttr))
    lists.assign(known.begin(), known.end());
  lists.resize(kernel.getNumOutputs(), b.getArrayAttr({}));
  for (Result &result : results) {
    SmallVector<Attribute> texts;
    for (auto [p, plan] : llvm::enumerate(plans)) {
      SmallVector<std::string> sums;
      for (unsigned k : plan.scores) {
        auto nameOf = [&](const Operand &operand) {
          return kernel.getArrayName(operand.array().getArgNumber()).str();
        };
        sums.push_back(nameOf(scores[k].row) + " and " + nameOf(scores[k].key));
      }
      std::string text = "plan " + std::to_string(p + 1) + ": sums of products of " +
                         llvm::join(sums, ", ") + " in 8-bit integers with a scale per row";
      texts.push_back(b.getStringAttr(text));
    }
    lists[numberOf(result.store) - kernel.getNumInputs()] = b.getArrayAttr(texts);
  }
  kernel->setAttr(kSpentAttr, b.getArrayAttr(lists));
}

/// "f.O=1,0;g.P=2": the plans that are given for this nest.
LogicalResult Adapter::readTable() {
  SmallVector<StringRef> lists, entries;
  StringRef(options.table).split(lists, ';', -1, /*KeepEmpty=*/false);
  for (StringRef list : lists) {
    auto [key, numbers] = list.split('=');
    if (key != (kernel.getSymName() + "." + base()).str())
      continue;
    numbers.split(entries, ',', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries) {
      int64_t plan = 0;
      if (entry.getAsInteger(10, plan) || plan < 0 || plan > int64_t(plans.size()))
        return nest.emitError("there is no plan '")
               << entry << "' for '" << base() << "'; there are 0 to " << plans.size();
      table.push_back(plan);
    }
  }
  return success();
}

void Adapter::run() {
  note();
  Builder b(kernel.getContext());
  std::string name = base();
  bool estimates = table.empty() || options.check;
  if (options.decisions) {
    SmallVector<Attribute> told, extents(headExtents);
    if (auto known = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr))
      told.assign(known.begin(), known.end());
    auto add = [&](StringRef of, StringRef suffix, Type element) {
      told.push_back(editor.text(of));
      return editor.addResult(of + suffix, extents, element);
    };
    planArray = add(name, "_plan", b.getI32Type());
    extents.push_back(editor.text(Twine(plans.size())));
    if (estimates)
      for (Result &result : results)
        estimateArrays.push_back(
            add(kernel.getArrayName(numberOf(result.store)), "_estimate", b.getF32Type()));
    kernel->setAttr(kDecisionsAttr, b.getArrayAttr(told));
  }
  addCondition();
  DenseMap<Value, Mean> means;
  for (Score &score : scores) {
    Rounded &key = roundedArrays[{score.key.array(), score.key.axis}];
    if (!key.data) {
      if (score.keyAxis)
        means[score.key.array()] = addMean(score);
      const Mean *mean = score.keyAxis ? &means[score.key.array()] : nullptr;
      key = addRounded(score.key.array(), score.key.axis, mean);
    }
    if (auto mean = means.find(score.key.array()); mean != means.end())
      shifts[&score] = addShift(score, mean->second);
    Rounded &row = roundedArrays[{score.row.array(), score.row.axis}];
    if (!row.data)
      row = addRounded(score.row.array(), score.row.axis);
  }
  if (estimates) {
    addSampleRows();
    for (Score &score : scores) {
      gathered.push_back(addGathered(score));
      gatheredRounded.push_back(addRounded(gathered.back(), sampleExtents.size()));
    }
    for (auto [result, sample] : llvm::zip_equal(results, addSample(nullptr, 0)))
      result.sample = sample;
    SmallVector<SmallVector<Value>> samples;
    for (auto [p, plan] : llvm::enumerate(plans))
      samples.push_back(addSample(&plan, p + 1));
    addErrors(samples);
  }
  chosen.array = editor.addTemporary(name + "_choice", headExtents, b.getI32Type());
  for (unsigned axis = 0; axis < headExtents.size(); ++axis)
    chosen.axes.push_back(axis);
  estimates ? addDecision() : addTable();
  for (auto [p, plan] : llvm::enumerate(plans)) {
    Copy copy = copyNest();
    for (unsigned k : plan.scores)
      roundScore(copy, scores[k], rounded(scores[k].row), {}, rounded(scores[k].key));
    chosen.value = p + 1;
    setChoice(copy.nest, chosen);
  }
  chosen.value = 0;
  setChoice(nest, chosen);
}

namespace {
struct AdaptPrecision final : moa::impl::AdaptPrecisionPassBase<AdaptPrecision> {
  using Base::Base;

  void runOnOperation() final {
    AdaptPrecisionPassOptions options{decisions, check, table};
    for (auto kernel : getOperation().getOps<onf::KernelOp>()) {
      if (!kernel.getWithin())
        continue;
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<onf::ForOp>())) {
        if (nest.getLift() || nest.getChoices())
          continue;
        std::string why;
        Adapter adapter(kernel, nest, options);
        if (!adapter.plan(why)) {
          nest.emitRemark("computes nothing in fewer bits: ") << why;
          continue;
        }
        if (failed(adapter.readTable()))
          return signalPassFailure();
        adapter.run();
      }
    }
  }
};
} // namespace
