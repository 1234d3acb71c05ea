//===- Decision.cpp - which plan is near enough ---------------------------===//
#include "lib/Precision/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace moa::precision {

/// A sum of squares of results below which nothing is estimated: f32 holds the squares of the squares
/// of errors of 10⁻² of larger ones.
static constexpr double kLeastNorm = 0x1p-40;
/// An estimate is compared with so much of what is allowed: the results are rounded too.
static constexpr double kShare = 0.95;
/// Deviations of the estimate that are added to it: 95 % of a normal distribution.
static constexpr double kDeviations = 1.645;

/// Per row of the sample and result Σ |x|² of the nest as written, and Σ |x̂ − x|² of plans.
void Chooser::addErrors(ArrayRef<SmallVector<Value>> samples) {
  Builder b(kernel.getContext());
  errors.resize(numPlans());
  for (Result &result : results) {
    std::string name = kernel.getArrayName(numberOf(result.store)).str();
    result.norm = editor.addTemporary(name + "_norm", sampleExtents, b.getF32Type());
    for (unsigned p = 0; p < numPlans(); ++p)
      errors[p].push_back(editor.addTemporary(name + "_error" + Twine(p + 1), sampleExtents, b.getF32Type()));
  }
  auto write = [&](Code &code, ValueRange row) {
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
          for (unsigned p = 0; p < numPlans(); ++p) {
            Value y = at.load(samples[p][o], indices);
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
      for (unsigned p = 0; p < numPlans(); ++p)
        code.store(values[1 + p], errors[p][o], row);
    }
  };
  editor.addShortNest(sampleNames, sampleExtents, &sampled, [&](Code &code, ValueRange row) { write(code, row); });
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

/// Of each plan and result the ratio Σ w·e / Σ w·n over the sample, with w the rows that one
/// stands for, and a margin for what was not seen; then the first plan that is near enough.
void Chooser::addDecision() {
  SymExpr count = rows();
  editor.addShortNest(headNames, headExtents, nullptr, [&](Code &code, ValueRange head) {
    Value runs = isTried(code, sampled, head), n = code.extent(count);
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
    SmallVector<Value> allowed(numPlans()); // whether every result allows the plan
    SmallVector<Value> unseen(numPlans());
    for (unsigned p = 0; p < numPlans(); ++p)
      unseen[p] = isUnseen(code, head, p + 1, runs);
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
      // Squares of what is much smaller than 1 are not what they stand for.
      Value isZero = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLT, norm, code.real(kLeastNorm));
      SmallVector<Value> ratios;
      for (Value error : llvm::drop_begin(totals))
        ratios.push_back(code.make<arith::SelectOp>(isZero, zero, code.make<arith::DivFOp>(error, norm)));
      // The rows of largest elements are all there are of their kind; the others vary.
      Code::Values squares = code.fold("r", SymExpr(kSample), [&](Code &in, Value r, Value &present) {
        present = runs; // of the row alone, so that nothing is read where no sample was taken
        Value w = weight(in, r), norm = in.load(result.norm, at(r));
        SmallVector<Code::Term> terms;
        for (auto [ratio, error] : llvm::zip_equal(ratios, errors)) {
          Value off = in.make<arith::SubFOp>(in.load(error[o], at(r)), in.make<arith::MulFOp>(ratio, norm));
          off = in.make<arith::MulFOp>(w, off);
          Value square = in.make<arith::SelectOp>(isLargest(in, r), in.real(0), in.make<arith::MulFOp>(off, off));
          terms.push_back({Monoid::add, "square", square});
        }
        return terms;
      });
      Value limit = code.real(kShare * result.allowed.epsilon);
      estimates.emplace_back();
      for (unsigned p = 0; p < numPlans(); ++p) {
        double scale = kDeviations * std::sqrt(double(kParts) / (kParts - 1));
        Value margin = code.make<arith::MulFOp>(code.make<math::SqrtOp>(squares[p]), code.real(scale));
        Value upper = code.make<arith::AddFOp>(totals[p + 1], margin);
        Value ratio = code.make<arith::SelectOp>(isZero, code.real(INFINITY), code.make<arith::DivFOp>(upper, norm));
        // NaN is what stands where nothing was estimated; ∞ where the sample says nothing.
        Value root = code.make<math::SqrtOp>(ratio);
        Value isNaN = code.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, root, root);
        if (unseen[p])
          isNaN = code.make<arith::OrIOp>(isNaN, unseen[p]);
        Value estimate = code.make<arith::SelectOp>(isNaN, code.real(INFINITY), root);
        estimates.back().push_back(estimate);
        Value fits = code.make<arith::CmpFOp>(arith::CmpFPredicate::OLE, estimate, limit);
        allowed[p] = allowed[p] ? code.make<arith::AndIOp>(allowed[p], fits) : fits;
      }
    }
    Value first = isTabled ? tabled(code, head) : Value();
    Value plan = code.index(0);
    for (unsigned p = numPlans(); p-- > 0;) {
      Value number = code.index(numEarlier + p + 1), takes = code.make<arith::AndIOp>(runs, allowed[p]);
      if (first) {
        Value isLater = code.make<arith::CmpIOp>(arith::CmpIPredicate::sge, number, first);
        Value isAny = code.make<arith::CmpIOp>(arith::CmpIPredicate::sgt, first, code.index(0));
        takes = code.make<arith::AndIOp>(takes, code.make<arith::AndIOp>(isLater, isAny));
      }
      plan = code.make<arith::SelectOp>(takes, number, plan);
    }
    storeDecision(code, head, plan);
    for (auto [o, array] : llvm::enumerate(estimateArrays)) {
      Attribute size = editor.text(Twine(numAll()));
      code.loops({editor.text("p")}, {size}, [&](Code &in, ValueRange p) {
        auto isNumber = [&](unsigned k) { return in.make<arith::CmpIOp>(arith::CmpIPredicate::eq, p[0], in.index(k)); };
        Value value = in.real(NAN);
        for (unsigned k = 0; k < numEarlier && earlierEstimates[o]; ++k) {
          SmallVector<Value> place(head);
          place.push_back(in.index(k));
          value = in.make<arith::SelectOp>(isNumber(k), in.load(earlierEstimates[o], place), value);
        }
        for (unsigned k = 0; k < numPlans(); ++k) {
          Value here = isNumber(numEarlier + k);
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
