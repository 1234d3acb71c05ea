//===- Decision.cpp - which plan is near enough ---------------------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Precision/Adapter.h"
#include "lib/Precision/Bounds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include <cfloat>

using namespace mlir;

namespace moa::precision {

/// A sum of squares of results below which nothing is estimated of plans: f32 holds the squares of
/// errors of 10⁻⁶ of larger ones.
static constexpr double kLeastNorm = 0x1p-40;
/// Deviations of the estimate that are added to it: 95 % of Student's distribution with the parts
/// less 1 degrees of freedom.
static constexpr double kDeviations = 1.6730;
static_assert(kPartsOfNorm.count == 56);
/// What stands for no plan, nor for the nest as it is written.
static constexpr int64_t kLeft = -1;

/// Of an element of the sample |x|², with a relative tolerance, and |x̂ − x|² of plans; or, of a
/// component-wise one, |x̂ − x| relative to what it is measured by.
Code::Values Chooser::errorsAt(Code &at, unsigned number, ValueRange indices, Samples samples) {
  const Result &result = results[number];
  Code::Values values;
  Value x = at.load(result.sample, indices);
  auto typed = [&](double value) {
    return at.make<arith::ConstantOp>(at.b.getFloatAttr(x.getType(), value));
  };
  auto compare = [&](arith::CmpFPredicate is, Value a, Value b) {
    return at.make<arith::CmpFOp>(is, a, b);
  };
  // What is infinite has no norm, and must be the same.
  if (!result.measure) {
    Value isInfinite =
        compare(arith::CmpFPredicate::OEQ, at.make<math::AbsFOp>(x), typed(INFINITY));
    Value finite = at.make<arith::SelectOp>(isInfinite, typed(0), x);
    values.push_back(at.make<arith::MulFOp>(finite, finite));
  }
  for (const auto &sample : samples) {
    Value y = at.load(sample[number], indices);
    Value same = compare(arith::CmpFPredicate::OEQ, x, y);
    Value off = at.make<arith::SelectOp>(same, typed(0), at.make<arith::SubFOp>(y, x));
    if (!result.measure) {
      values.push_back(at.make<arith::MulFOp>(off, off));
      continue;
    }
    Value size = at.make<math::AbsFOp>(off),
          part = at.make<arith::DivFOp>(size, at.load(result.measure, indices));
    Value isSmall = compare(arith::CmpFPredicate::OLE, size, typed(kUnderflow));
    values.push_back(at.make<arith::SelectOp>(isSmall, typed(0), part));
  }
  return values;
}

/// The same of a row from an element's indices on: sums, or the largest.
Code::Values Chooser::errorsOf(Code &at, unsigned number, ValueRange row,
                               SmallVector<Value> indices, Samples samples) {
  const Result &result = results[number];
  unsigned axis = indices.size() - row.size();
  if (axis == result.extents.size())
    return errorsAt(at, number, indices, samples);
  StringRef name = cast<StringAttr>(result.names[axis]).getValue();
  SymExpr extent = *SymExpr::parse(cast<StringAttr>(result.extents[axis]).getValue());
  return at.fold(name, extent, [&](Code &in, Value index, Value &) {
    SmallVector<Value> more(indices);
    more.push_back(index);
    SmallVector<Code::Term> terms;
    for (Value value : errorsOf(in, number, row, more, samples))
      terms.push_back(result.measure ? Code::Term{Monoid::max, "most", value}
                                     : Code::Term{Monoid::add, "sum", value});
    return terms;
  });
}

/// Per row of the sample and result Σ |x|² of the nest as written, and Σ |x̂ − x|² of plans, or the
/// largest |x̂ − x| relative to what it is measured by.
void Chooser::addErrors(Samples samples) {
  Builder b(kernel.getContext());
  errors.resize(numPlans());
  for (Result &result : results) {
    std::string name = kernel.getArrayName(numberOf(result.store)).str();
    if (!result.measure)
      result.norm = editor.addTemporary(name + "_norm", picked.extents, b.getF32Type());
    for (unsigned p = 0; p < numPlans(); ++p)
      errors[p].push_back(
          editor.addTemporary(name + "_error" + Twine(p + 1), picked.extents, b.getF32Type()));
  }
  editor.addShortNest(picked.names, picked.extents, &sampled, [&](Code &code, ValueRange row) {
    for (auto [o, result] : llvm::enumerate(results)) {
      Code::Values values = errorsOf(code, o, row, SmallVector<Value>(row), samples);
      if (result.norm)
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
  return code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, is, code.integer(choice.value));
}

/// The plans of a table, by the indices in front of the rows in row-major order.
Value Chooser::tabled(Code &code, ValueRange head) {
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

/// The sample of one index in front of the rows: the last are the largest of a group of parts,
/// which are all there are of their kind; the others stand for the rest of a part, each for as many
/// as 1 over its probability to be picked.
struct Chooser::Look {
  Code &code;
  SmallVector<Value> head;
  Value runs, count; // whether there is a sample; all rows
  Value shares;      // Chooser::RowSet::shares
  Parts parts;

  SmallVector<Value> at(Value r) const {
    SmallVector<Value> row(head);
    row.push_back(r);
    return row;
  }
  /// Whether the row stands for itself alone: the largest of its group, or, where there are no more
  /// rows than a check takes, any.
  Value isAlone(Code &in, Value r) const {
    Value isLast = in.make<arith::CmpIOp>(arith::CmpIPredicate::sge, r, in.index(parts.count));
    return shares ? isLast : Value(in.make<arith::OrIOp>(isLast, isAll(in)));
  }
  Value isAll(Code &in) const {
    return in.make<arith::CmpIOp>(arith::CmpIPredicate::sle, count, in.index(kSample));
  }
  /// The rows that one stands for.
  Value weigh(Code &in, Value r) const {
    if (shares)
      return in.load(shares, at(r));
    Value others = countOthers(in, r, count, parts).second;
    Value isThere = in.make<arith::CmpIOp>(arith::CmpIPredicate::slt, r, count);
    Value itself = in.make<arith::SelectOp>(isThere, in.real(1),
                                            in.real(0)); // of more than 64 rows all r are there
    return in.make<arith::SelectOp>(isAlone(in, r), itself, in.toReal(others));
  }
  /// What is behind a comparison that fails with NaN, which stands where nothing was estimated; ∞
  /// is there where the sample says nothing.
  Value orInfinity(Value estimate) const {
    Value isNaN = code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, estimate, estimate);
    return code.make<arith::SelectOp>(isNaN, code.real(INFINITY), estimate);
  }
};

/// Where a check's part of the rows starts, and its rows but for the last one of the last part of a
/// group.
std::pair<Value, Value> Chooser::countOthers(Code &in, Value part, Value count,
                                             const Parts &parts) {
  auto bound = [&](Value p) {
    return in.make<arith::FloorDivSIOp>(in.make<arith::MulIOp>(p, count), in.index(parts.count));
  };
  Value start = bound(part), end = bound(in.make<arith::AddIOp>(part, in.index(1)));
  Value place = in.make<arith::RemSIOp>(part, in.index(parts.perGroup));
  Value isLast =
      in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, place, in.index(parts.perGroup - 1));
  Value last = in.make<arith::SelectOp>(isLast, in.index(1), in.index(0));
  return {start, in.make<arith::SubIOp>(in.make<arith::SubIOp>(end, start), last)};
}

/// Of each plan the ratio Σ w·e / Σ w·n over the sample, with w the rows that one stands for, and a
/// margin for what was not seen; its root. Squared errors are skewed, for which N. J. Johnson has a
/// term (Modified t tests and confidence intervals for asymmetrical populations, JASA 73, 1978).
Code::Values Chooser::estimateNorms(const Look &look, unsigned o) {
  Code &code = look.code;
  const Result &result = results[o];
  Code::Values totals = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
    present = look.runs;
    Value w = look.weigh(in, r);
    SmallVector<Code::Term> terms{
        {Monoid::add, "norm", in.make<arith::MulFOp>(w, in.load(result.norm, look.at(r)))}};
    for (auto &error : errors)
      terms.push_back(
          {Monoid::add, "error", in.make<arith::MulFOp>(w, in.load(error[o], look.at(r)))});
    return terms;
  });
  Value norm = totals[0], zero = code.real(0);
  // Squares of what is much smaller than 1 are not what they stand for.
  Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, norm,
                                          code.real(isCheck ? FLT_MIN : kLeastNorm));
  // What is not seen is relative to the whole error, so that its squares and cubes are there
  // whatever the scale.
  SmallVector<Value> ratios, inverses;
  for (Value error : llvm::drop_begin(totals)) {
    ratios.push_back(
        code.make<arith::SelectOp>(isZero, zero, code.make<arith::DivFOp>(error, norm)));
    Value isNone = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, error, code.real(FLT_MIN));
    inverses.push_back(
        code.make<arith::SelectOp>(isNone, zero, code.make<arith::DivFOp>(code.real(1), error)));
  }
  Code::Values squares = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
    present = look.runs; // of the row alone, so that nothing is read where no sample was taken
    Value w = look.weigh(in, r), norm = in.load(result.norm, look.at(r));
    SmallVector<Code::Term> terms;
    for (auto [ratio, inverse, error] : llvm::zip_equal(ratios, inverses, errors)) {
      Value off = in.make<arith::SubFOp>(in.load(error[o], look.at(r)),
                                         in.make<arith::MulFOp>(ratio, norm));
      off = in.make<arith::MulFOp>(in.make<arith::MulFOp>(w, off), inverse);
      off = in.make<arith::SelectOp>(look.isAlone(in, r), in.real(0), off);
      Value square = in.make<arith::MulFOp>(off, off);
      terms.push_back({Monoid::add, "square", square});
      terms.push_back({Monoid::add, "cube", in.make<arith::MulFOp>(square, off)});
    }
    return terms;
  });
  Code::Values estimates;
  for (unsigned p = 0; p < numPlans(); ++p) {
    // With n parts, q and c the sums of squares and of cubes, σ = √(n/(n − 1)·q) and a skewness of
    // √n·c/q^(3/2): (t + skewness·(1 + 2·t²)/(6·√n))·σ.
    double scale = std::sqrt(double(parts().count) / (parts().count - 1));
    Value square = squares[2 * p], cube = code.make<arith::MaximumFOp>(squares[2 * p + 1], zero);
    Value deviation = code.make<math::SqrtOp>(square);
    Value skewed =
        code.make<arith::DivFOp>(cube, code.make<arith::MaximumFOp>(square, code.real(FLT_MIN)));
    skewed = code.make<arith::MulFOp>(skewed,
                                      code.real(scale * (1 + 2 * kDeviations * kDeviations) / 6));
    Value margin = code.make<arith::AddFOp>(
        code.make<arith::MulFOp>(deviation, code.real(scale * kDeviations)), skewed);
    Value upper =
        code.make<arith::MulFOp>(totals[p + 1], code.make<arith::AddFOp>(code.real(1), margin));
    Value ofNothing = code.real(INFINITY);
    if (isCheck) {
      Value isExact = code.make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, totals[p + 1], zero);
      ofNothing = code.make<arith::SelectOp>(isExact, zero, ofNothing);
    }
    Value ratio =
        code.make<arith::SelectOp>(isZero, ofNothing, code.make<arith::DivFOp>(upper, norm));
    estimates.push_back(look.orInfinity(code.make<math::SqrtOp>(ratio)));
  }
  return estimates;
}

/// Of each plan the largest error of the sample, or what the largest of all rows is with a
/// probability of 95 % if the fourth root of a row's largest error has Gumbel's distribution: mean
/// + β·(log n − γ − log(−log 0.95)), with β = √6/π deviations (Def 31). Rows with few keys of
/// weight have errors many times those of others, so that of errors themselves the limit is too
/// low.
Code::Values Chooser::estimateComponents(const Look &look, unsigned o) {
  Code &code = look.code;
  auto over = [&](Monoid monoid, llvm::function_ref<Code::Values(Code &, Value)> body) {
    return code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
      present = look.runs;
      SmallVector<Code::Term> terms;
      for (Value value : body(in, r))
        terms.push_back({monoid, "of_sample", value});
      return terms;
    });
  };
  Code::Values most = over(Monoid::max, [&](Code &in, Value r) {
    Code::Values values;
    for (auto &error : errors)
      values.push_back(in.load(error[o], look.at(r)));
    return values;
  });
  auto rootOf = [&](Code &in, SmallVector<Value> &error, Value r) -> Value {
    return in.make<math::SqrtOp>(in.make<math::SqrtOp>(in.load(error[o], look.at(r))));
  };
  // Rows that are picked count alike, so that those that are picked because they are large count
  // for more than there are of them: the largest error is more often one of theirs.
  auto weightOf = [&](Code &in, Value r) {
    return in.make<arith::SelectOp>(look.isAlone(in, r), in.real(0), in.real(1));
  };
  Code::Values means = over(Monoid::add, [&](Code &in, Value r) {
    Code::Values values{weightOf(in, r)};
    for (auto &error : errors)
      values.push_back(in.make<arith::MulFOp>(values.front(), rootOf(in, error, r)));
    return values;
  });
  Value whole = code.make<arith::DivFOp>(code.real(1),
                                         code.make<arith::MaximumFOp>(means.front(), code.real(1)));
  means.erase(means.begin());
  for (Value &mean : means)
    mean = code.make<arith::MulFOp>(mean, whole);
  Code::Values squares = over(Monoid::add, [&](Code &in, Value r) {
    Code::Values values;
    Value part = in.make<arith::MulFOp>(weightOf(in, r), whole);
    for (auto [average, error] : llvm::zip_equal(means, errors)) {
      Value off = in.make<arith::SubFOp>(rootOf(in, error, r), average);
      values.push_back(in.make<arith::MulFOp>(part, in.make<arith::MulFOp>(off, off)));
    }
    return values;
  });
  Value logarithm = code.make<math::LogOp>(code.toReal(look.count));
  constexpr double kScale = 0.77970, kShift = 2.39294; // √6/π; −γ − log(−log 0.95)
  Value deviations = code.make<arith::MulFOp>(
      code.make<arith::AddFOp>(logarithm, code.real(kShift)), code.real(kScale));
  Code::Values estimates;
  for (unsigned p = 0; p < numPlans(); ++p) {
    Value variance = code.make<arith::MulFOp>(
        squares[p], code.real(double(parts().count) / (parts().count - 1)));
    Value further = code.make<arith::MulFOp>(code.make<math::SqrtOp>(variance), deviations);
    Value root = code.make<arith::AddFOp>(means[p], further),
          square = code.make<arith::MulFOp>(root, root);
    Value extreme = code.make<arith::MulFOp>(square, square);
    estimates.push_back(look.orInfinity(code.make<arith::MaximumFOp>(most[p], extreme)));
  }
  return estimates;
}

void Chooser::tellEstimates() {
  Builder b(kernel.getContext());
  SmallVector<Value> arrays;
  SmallVector<Attribute> shown;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(onf::kShownAttr))
    shown.assign(known.begin(), known.end());
  for (Result &result : results) {
    unsigned number = numberOf(result.store);
    Value array = arrays.emplace_back(
        editor.addTemporary(kernel.getArrayName(number) + "_shown", headExtents, b.getF32Type()));
    shown.push_back(tellOfBound(editor, number, array));
  }
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, sampled, head);
    Look look{code, SmallVector<Value>(head), runs, code.extent(rows()), picked.shares, parts()};
    for (auto [o, array] : llvm::enumerate(arrays)) {
      const Result &result = results[o];
      Value estimate =
          (result.measure ? estimateComponents(look, o) : estimateNorms(look, o)).front();
      if (result.measure) // beside what the types say of all that is rounded to them
        estimate = code.make<arith::AddFOp>(
            estimate,
            code.real(
                errorAsWritten(nest, onf::StoreOp(result.store).getArray(), result.allowed).size));
      code.store(code.make<arith::SelectOp>(runs, estimate, code.real(0)), array, head);
    }
  });
  kernel->setAttr(onf::kShownAttr, b.getArrayAttr(shown));
}

/// What a plan may be off by from the nest as it is written, of a tolerance. Errors of both are
/// independent, so that their squares add up in a norm; the largest of elements may be one of both.
double Chooser::leftOf(const Result &result) {
  double allowed = result.allowed.epsilon;
  double error = errorAsWritten(nest, onf::StoreOp(result.store).getArray(), result.allowed).size;
  return !result.allowed.isRelative ? allowed - error
                                    : std::sqrt(std::max(allowed * allowed - error * error, 0.0));
}

/// The first plan whose estimates are small enough for every result.
void Chooser::addDecision() {
  SymExpr count = rows();
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, sampled, head);
    Look look{code, SmallVector<Value>(head), runs, code.extent(count), picked.shares, parts()};
    SmallVector<Value> allowed(numPlans()); // whether every result allows the plan
    SmallVector<Value> unseen(numPlans());
    for (unsigned p = 0; p < numPlans(); ++p)
      unseen[p] = isUnseen(code, head, p + 1, runs);
    SmallVector<Code::Values> estimates;
    for (auto [o, result] : llvm::enumerate(results)) {
      Code::Values &list = estimates.emplace_back(result.measure ? estimateComponents(look, o)
                                                                 : estimateNorms(look, o));
      Value limit = tighten(code, head, code.real(leftOf(result)));
      for (unsigned p = 0; p < numPlans(); ++p) {
        if (unseen[p])
          list[p] = code.make<arith::SelectOp>(unseen[p], code.real(INFINITY), list[p]);
        Value fits = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLE, list[p], limit);
        allowed[p] = allowed[p] ? code.make<arith::AndIOp>(allowed[p], fits) : fits;
      }
    }
    Value first = isTabled ? tabled(code, head) : Value();
    Value plan = code.index(0);
    for (unsigned p = numPlans(); p-- > 0;) {
      Value number = code.index(numEarlier + p + 1),
            takes = code.make<arith::AndIOp>(runs, allowed[p]);
      if (first) {
        Value isLater = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, number, first);
        Value isAny = code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, first, code.index(0));
        takes = code.make<arith::AndIOp>(takes, code.make<arith::AndIOp>(isLater, isAny));
      }
      plan = code.make<arith::SelectOp>(takes, number, plan);
    }
    // That has been computed by then.
    if (leavesAtOnce)
      plan = code.make<arith::SelectOp>(runs, plan, code.index(kLeft));
    storeDecision(code, head, plan);
    for (auto [o, array] : llvm::enumerate(estimateArrays)) {
      Attribute size = editor.text(Twine(numAll()));
      code.loops({editor.text("p")}, {size}, [&](Code &in, ValueRange p) {
        auto isNumber = [&](unsigned k) {
          return in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, p[0], in.index(k));
        };
        Value value = in.real(NAN);
        for (unsigned k = 0; k < numEarlier && earlierEstimates[o]; ++k) {
          SmallVector<Value> place(head);
          place.push_back(in.index(k));
          value = in.make<arith::SelectOp>(isNumber(k), in.load(earlierEstimates[o], place), value);
        }
        for (unsigned k = 0; k < numPlans(); ++k) {
          Value here = isNumber(numEarlier + k);
          value =
              in.make<arith::SelectOp>(in.make<arith::AndIOp>(here, runs), estimates[o][k], value);
        }
        SmallVector<Value> indices(head);
        indices.push_back(p[0]);
        in.store(value, array, indices);
      });
    }
  });
}

/// The plans of the table, wherever anything was rounded.
void Chooser::addTable() {
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value entry = tabled(code, head), plan = code.index(0);
    Value runs = isTried(code, sampled, head);
    for (unsigned p = 1; p <= numPlans(); ++p) {
      Value number = code.index(numEarlier + p);
      Value taken = code.make<arith::CmpIOp>(arith::CmpIPredicate::eq, entry, number);
      plan = code.make<arith::SelectOp>(code.make<arith::AndIOp>(runs, taken), number, plan);
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

} // namespace moa::precision
