//===- MonoidClaims.cpp - tests of user-defined monoids -------------------===//
#include "lib/Interpreter/MonoidClaims.h"
#include "lib/Interpreter/UserMonoid.h"
#include "lib/Support/MathTerm.h"
#include <cmath>

using namespace mlir;
using namespace moa;
using namespace moa::interp;

namespace {

class Claims {
public:
  Claims(MonoidOp op, const UserMonoid &monoid) : name(op.getSymName().str()), monoid(monoid), form(monoid.getForm()) {}

  /// Returns a counterexample among these values, or "".
  std::string refute(ArrayRef<Cell> values) const {
    Cell e = monoid.getIdentity();
    for (Cell x : values)
      for (bool left : {true, false}) {
        Cell got = left ? of(e, x) : of(x, e);
        if (!same(got, x))
          return "does not have the identity " + text(e) + ": " +
                 (left ? call(text(e), text(x)) : call(text(x), text(e))) + " is " + text(got);
      }
    for (Cell x : values)
      for (Cell y : values)
        if (!same(of(x, y), of(y, x)))
          return "does not commute: " + call(text(x), text(y)) + " is " + text(of(x, y)) + ", but " +
                 call(text(y), text(x)) + " is " + text(of(y, x));
    for (Cell x : values)
      for (Cell y : values)
        for (Cell z : values) {
          Cell left = of(of(x, y), z), right = of(x, of(y, z));
          if (!same(left, right))
            return "is not associative: " + call(call(text(x), text(y)), text(z)) + " is " + text(left) + ", but " +
                   call(text(x), call(text(y), text(z))) + " is " + text(right);
        }
    return "";
  }

private:
  Cell of(Cell x, Cell y) const {
    Cell result = ofInt(0);
    if (monoid.apply(x, y, result) && form.isFloat())
      return ofFloat(std::nan(""));
    return result;
  }
  bool same(Cell x, Cell y) const {
    if (!form.isFloat())
      return x.i == y.i;
    if (std::isnan(x.f) || std::isnan(y.f))
      return std::isnan(x.f) == std::isnan(y.f);
    if (!std::isfinite(x.f) || !std::isfinite(y.f))
      return x.f == y.f;
    return std::abs(x.f - y.f) <= 1e-6 * std::max({1.0, std::abs(x.f), std::abs(y.f)});
  }
  std::string text(Cell x) const {
    if (form.isFloat())
      return formatNumber(x.f);
    return form.width == 1 ? (x.i ? "true" : "false") : std::to_string(x.i);
  }
  std::string call(const std::string &x, const std::string &y) const { return name + "(" + x + ", " + y + ")"; }

  std::string name;
  const UserMonoid &monoid;
  Form form;
};

} // namespace

static LogicalResult check(MonoidOp op) {
  std::string why;
  auto monoid = UserMonoid::make(op, why);
  if (!monoid)
    return op.emitError(why);
  Form form = monoid->getForm();
  SmallVector<Cell> values, negative;
  if (form.isFloat()) {
    for (double x : {0.0, 1.0, 0.5, 2.0, 3.25, 7.0})
      values.push_back(ofFloat(x));
    for (double x : {-1.0, -0.75, -4.5})
      negative.push_back(ofFloat(x));
  } else if (form.width == 1) {
    values = {ofInt(0), ofInt(1)};
  } else {
    for (int64_t x : {0, 1, 2, 3, 6, 12, 35})
      values.push_back(ofInt(x));
    for (int64_t x : {-1, -2, -15})
      negative.push_back(ofInt(x));
  }
  Claims claims(op, *monoid);
  std::string found = claims.refute(values);
  if (!found.empty())
    return op.emitError("monoid '") << op.getSymName() << "' " << found;
  negative.append(values);
  found = claims.refute(negative);
  if (!found.empty())
    op.emitWarning("monoid '") << op.getSymName() << "' " << found
                               << "; it is one on values that are not negative only";
  return success();
}

LogicalResult moa::checkMonoidClaims(ModuleOp module) {
  for (MonoidOp op : module.getOps<MonoidOp>())
    if (failed(check(op)))
      return failure();
  return success();
}
