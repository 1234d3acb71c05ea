//===- Decision.cpp - error estimates and the decision --------------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cfloat>

using namespace mlir;

namespace moa::accuracy {

/// Smallest squared norm for which errors are estimated: f32 holds the squares of relative errors
/// of 10⁻⁶ from there on.
static constexpr double kLeastNorm = 0x1p-40;
/// Standard deviations that are added to an estimate: 95 % of Student's distribution with 55
/// degrees of freedom.
static constexpr double kDeviations = 1.6730;
static_assert(kParts.count == 56);
/// Runs neither a plan nor the unmodified nest.
static constexpr int64_t kLeft = -1;

/// Returns |x|² of an element of the sample, and |x̂ − x|² for each plan.
Code::Values Chooser::squaredErrorsAt(Code &at, unsigned number, ValueRange indices, Samples samples) {
  const NestResult &result = results[number];
  Code::Values values;
  Value x = at.load(result.sample, indices);
  auto typed = [&](double value) { return at.make<arith::ConstantOp>(at.b.getFloatAttr(x.getType(), value)); };
  // Infinities must be equal, and are left out of the norm.
  Value infinity = typed(INFINITY);
  Value isInfinite = at.compare(arith::CmpFPredicate::OEQ, at.absolute(x), infinity);
  Value finite = at.select(isInfinite, typed(0), x);
  values.push_back(at.mul(finite, finite));
  for (const auto &sample : samples) {
    Value y = at.load(sample[number], indices);
    Value same = at.compare(arith::CmpFPredicate::OEQ, x, y);
    Value difference = at.sub(y, x);
    Value off = at.select(same, typed(0), difference);
    values.push_back(at.mul(off, off));
  }
  return values;
}

/// Sums squaredErrorsAt over the elements of a row, from an element's indices on.
Code::Values Chooser::squaredErrorsOf(Code &at, unsigned number, ValueRange row, SmallVector<Value> indices,
                                      Samples samples) {
  const NestResult &result = results[number];
  unsigned axis = indices.size() - row.size();
  if (axis == result.extents.size())
    return squaredErrorsAt(at, number, indices, samples);
  StringRef name = cast<StringAttr>(result.names[axis]).getValue();
  const SymExpr &extent = getSymExpr(result.extents[axis]);
  return at.fold(name, extent, [&](Code &in, Value index, Value &) {
    SmallVector<Code::State> terms;
    for (Value value : squaredErrorsOf(in, number, row, placed(indices, {index}), samples))
      terms.push_back({Monoid::add, "sum", value});
    return terms;
  });
}

/// Stores Σ |x|² and, for each plan, Σ |x̂ − x|² per row of the sample.
void Chooser::addErrors(Samples samples) {
  errors.resize(numPlans());
  for (NestResult &result : results) {
    std::string name = editor.nameOf(result.store.getArray()).str();
    result.norm = editor.addTemporary(name + "_norm", picked.extents, editor.f32());
    for (unsigned p = 0; p < numPlans(); ++p)
      errors[p].push_back(editor.addTemporary(name + "_error" + Twine(p + 1), picked.extents, editor.f32()));
  }
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange row) {
    for (auto [o, result] : llvm::enumerate(results)) {
      Code::Values values = squaredErrorsOf(code, o, row, SmallVector<Value>(row), samples);
      code.store(values.front(), result.norm, row);
      for (unsigned p = 0; p < numPlans(); ++p)
        code.store(values[values.size() - numPlans() + p], errors[p][o], row);
    }
  });
}

Value Chooser::isTried(Code &code, const Choice &choice, ValueRange head) {
  SmallVector<Value> indices;
  for (int64_t axis : choice.axes)
    indices.push_back(head[axis]);
  Value is = code.load(choice.array, indices);
  return code.compare(arith::CmpIPredicate::eq, is, code.integer(choice.value));
}

/// Returns the plan of a head from the table, which is in row-major order.
Value Chooser::planOfTable(Code &code, ValueRange head) {
  Value number = code.index(0), plan = code.index(0);
  for (auto [index, extent] : llvm::zip_equal(head, headExtents)) {
    Value size = code.extent(getSymExpr(extent));
    number = code.add(code.mul(number, size), index);
  }
  for (auto [k, entry] : llvm::enumerate(table)) {
    Value is = code.compare(arith::CmpIPredicate::eq, number, code.index(k));
    plan = code.select(is, code.index(entry), plan);
  }
  return plan;
}

/// The sample of one index before the rows. The last rows are the largest of their group of parts
/// and stand for themselves alone; each other row stands for 1 over its probability to be picked.
struct Chooser::SampleOfHead {
  Code &code;
  SmallVector<Value> head;
  Value runs; // whether there is a sample
  Value shares;

  SmallVector<Value> at(Value r) const { return placed(head, {r}); }
  Value isAlone(Code &in, Value r) const { return in.compare(arith::CmpIPredicate::sge, r, in.index(kParts.count)); }
  Value weigh(Code &in, Value r) const { return in.load(shares, at(r)); }
  /// Replaces NaN, which stands where nothing was estimated, by ∞, so that comparisons fail.
  Value orInfinity(Value estimate) const {
    Value isNaN = code.compare(arith::CmpFPredicate::UNO, estimate, estimate);
    return code.select(isNaN, code.real(INFINITY), estimate);
  }
};

/// Returns, for each plan, an upper bound of √(Σ w·e / Σ w·n) over the sample, where a row
/// represents w rows. The margin includes N. J. Johnson's term for skewed distributions (Modified t
/// tests and confidence intervals for asymmetrical populations, JASA 73, 1978).
Code::Values Chooser::estimateNorms(const SampleOfHead &look, unsigned o) {
  Code &code = look.code;
  const NestResult &result = results[o];
  Code::Values totals = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
    present = look.runs;
    Value w = look.weigh(in, r);
    SmallVector<Code::State> terms{{Monoid::add, "norm", in.mul(w, in.load(result.norm, look.at(r)))}};
    for (auto &error : errors)
      terms.push_back({Monoid::add, "error", in.mul(w, in.load(error[o], look.at(r)))});
    return terms;
  });
  Value norm = totals[0], zero = code.real(0);
  Value isZero = code.compare(arith::CmpFPredicate::OLT, norm, code.real(kLeastNorm));
  // Deviations are relative to the whole error, so that squares and cubes are in range.
  SmallVector<Value> ratios, inverses;
  for (Value error : llvm::drop_begin(totals)) {
    ratios.push_back(code.select(isZero, zero, code.div(error, norm)));
    Value isNone = code.compare(arith::CmpFPredicate::OLT, error, code.real(FLT_MIN));
    inverses.push_back(code.select(isNone, zero, code.div(code.real(1), error)));
  }
  Code::Values squares = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
    present = look.runs; // does not depend on the fold, so nothing is read without a sample
    Value w = look.weigh(in, r), norm = in.load(result.norm, look.at(r));
    SmallVector<Code::State> terms;
    for (auto [ratio, inverse, error] : llvm::zip_equal(ratios, inverses, errors)) {
      Value expected = in.mul(ratio, norm);
      Value off = in.sub(in.load(error[o], look.at(r)), expected);
      off = in.mul(in.mul(w, off), inverse);
      Value none = in.real(0);
      off = in.select(look.isAlone(in, r), none, off);
      Value square = in.mul(off, off);
      terms.push_back({Monoid::add, "square", square});
      terms.push_back({Monoid::add, "cube", in.mul(square, off)});
    }
    return terms;
  });
  Code::Values estimates;
  for (unsigned p = 0; p < numPlans(); ++p) {
    // With n parts, q and c the sums of squares and of cubes, σ = √(n/(n − 1)·q) and a skewness of
    // √n·c/q^(3/2): (t + skewness·(1 + 2·t²)/(6·√n))·σ.
    double scale = std::sqrt(double(kParts.count) / (kParts.count - 1));
    Value square = squares[2 * p], cube = code.max(squares[2 * p + 1], zero);
    Value deviation = code.make<math::SqrtOp>(square);
    Value skewed = code.div(cube, code.max(square, code.real(FLT_MIN)));
    skewed = code.mul(skewed, code.real(scale * (1 + 2 * kDeviations * kDeviations) / 6));
    Value margin = code.add(code.mul(deviation, code.real(scale * kDeviations)), skewed);
    Value upper = code.mul(totals[p + 1], code.add(code.real(1), margin));
    Value relative = code.div(upper, norm);
    Value ratio = code.select(isZero, code.real(INFINITY), relative);
    estimates.push_back(look.orInfinity(code.make<math::SqrtOp>(ratio)));
  }
  return estimates;
}

/// Returns the error that a tolerance leaves for a plan. The errors of the plan and of the
/// unmodified nest are independent, so that their squares add up in a norm.
double Chooser::errorLeftForPlan(const NestResult &result) {
  double allowed = result.allowed.epsilon;
  double error = errorOfTypes(nest, onf::StoreOp(result.store).getArray());
  return std::sqrt(std::max(allowed * allowed - error * error, 0.0));
}

/// Adds the decision: the first plan whose estimates are within the tolerance for every result.
void Chooser::addDecision() {
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value isSampled = isTried(code, sampled, head);
    SampleOfHead look{code, SmallVector<Value>(head), isSampled, picked.shares};
    SmallVector<Value> allowed(numPlans());
    SmallVector<Value> unseen(numPlans());
    for (unsigned p = 0; p < numPlans(); ++p)
      unseen[p] = isUnseen(code, head, p + 1, isSampled);
    SmallVector<Code::Values> estimates;
    for (auto [o, result] : llvm::enumerate(results)) {
      Code::Values &list = estimates.emplace_back(estimateNorms(look, o));
      Value limit = code.real(errorLeftForPlan(result));
      for (unsigned p = 0; p < numPlans(); ++p) {
        if (unseen[p])
          list[p] = code.select(unseen[p], code.real(INFINITY), list[p]);
        Value fits = code.compare(arith::CmpFPredicate::OLE, list[p], limit);
        allowed[p] = allowed[p] ? code.both(allowed[p], fits) : fits;
      }
    }
    Value first = isTabled ? planOfTable(code, head) : Value();
    Value plan = code.index(0);
    for (unsigned p = numPlans(); p-- > 0;) {
      Value number = code.index(numEarlier + p + 1), takes = code.both(isSampled, allowed[p]);
      if (first) {
        Value isLater = code.compare(arith::CmpIPredicate::sge, number, first);
        Value isAny = code.compare(arith::CmpIPredicate::sgt, first, code.index(0));
        takes = code.both(takes, code.both(isLater, isAny));
      }
      plan = code.select(takes, number, plan);
    }
    // Heads that are not tried were computed before.
    if (leavesAtOnce)
      plan = code.select(isSampled, plan, code.index(kLeft));
    storeDecision(code, head, plan);
    for (auto [o, array] : llvm::enumerate(estimateArrays)) {
      Attribute size = editor.expr(numAll());
      code.loops({editor.text("p")}, {size}, [&](Code &in, ValueRange p) {
        auto isNumber = [&](unsigned k) { return in.compare(arith::CmpIPredicate::eq, p[0], in.index(k)); };
        Value value = in.real(NAN);
        for (unsigned k = 0; k < numEarlier && earlierEstimates[o]; ++k) {
          Value estimate = in.load(earlierEstimates[o], placed(head, {in.index(k)}));
          value = in.select(isNumber(k), estimate, value);
        }
        for (unsigned k = 0; k < numPlans(); ++k) {
          Value here = isNumber(numEarlier + k);
          value = in.select(in.both(here, isSampled), estimates[o][k], value);
        }
        in.store(value, array, placed(head, {p[0]}));
      });
    }
  });
}

/// Adds the decision from the table, for heads whose operands were rounded.
void Chooser::addTable() {
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value entry = planOfTable(code, head), plan = code.index(0);
    Value isSampled = isTried(code, sampled, head);
    for (unsigned p = 1; p <= numPlans(); ++p) {
      Value number = code.index(numEarlier + p);
      Value taken = code.compare(arith::CmpIPredicate::eq, entry, number);
      plan = code.select(code.both(isSampled, taken), number, plan);
    }
    storeDecision(code, head, plan);
  });
}

void Chooser::storeDecision(Code &code, ValueRange head, Value plan) {
  plan = takenBefore(code, head, plan);
  code.store(plan, chosen.array, head);
  if (planArray)
    code.store(plan, planArray, head);
}

} // namespace moa::accuracy
