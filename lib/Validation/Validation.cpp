//===- Validation.cpp - facts, and lifting --------------------------------===//
#include "lib/Validation/Validation.h"
#include "dialects/ONF/IR/ONFForms.h"
#include "lib/Interpreter/Kernel.h"
#include "lib/Schedule/Lifting.h"
#include "lib/Validation/State.h"
#include "lib/Validation/Trial.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace moa;

StringRef moa::getName(Fact::Kind kind) {
  switch (kind) {
  case Fact::Uses:
    return "uses";
  case Fact::Bounds:
    return "bounds";
  case Fact::Addresses:
    return "addresses";
  case Fact::Writes:
    return "writes";
  case Fact::Lifting:
    return "lifting";
  case Fact::Values:
    return "values";
  }
  llvm_unreachable("unknown kind");
}

StringRef moa::getName(Fact::Status status) {
  switch (status) {
  case Fact::Proved:
    return "proved";
  case Fact::ByLemma:
    return "by lemma";
  case Fact::Assumed:
    return "assumed";
  case Fact::Checked:
    return "checked at run time";
  case Fact::Tried:
    return "tried";
  case Fact::Untried:
    return "not tried";
  }
  llvm_unreachable("unknown status");
}

Validator::Validator(MLIRContext *context) : state(std::make_unique<State>(context)) {}
Validator::~Validator() = default;

//===----------------------------------------------------------------------===//
// Lifting
//===----------------------------------------------------------------------===//

/// Returns the operations that decide the computed values and their places. All others, such as
/// bounds of pieces, only serve these.
static SmallVector<Operation *> stepsOf(onf::KernelOp kernel) {
  SmallVector<Operation *> steps;
  kernel.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<onf::ForOp, onf::FoldOp, onf::GuardOp, onf::AccOp, onf::LoadOp, onf::StoreOp, onf::AtOp>(op))
      steps.push_back(op);
  });
  return steps;
}

/// Compares two operations except for the attributes that lifting adds.
static bool isSameStep(Operation *a, Operation *b) {
  if (a->getName() != b->getName() || a->getNumResults() != b->getNumResults())
    return false;
  auto rest = [](Operation *op) {
    NamedAttrList attributes(op->getDiscardableAttrDictionary());
    if (auto properties = op->getPropertiesAsAttribute())
      for (NamedAttribute entry : cast<DictionaryAttr>(properties))
        attributes.set(entry.getName(), entry.getValue());
    for (StringRef name : {"lift", "pieces", "pipeline", "operandSegmentSizes", onf::kFormAttr.data()})
      attributes.erase(name);
    return attributes.getDictionary(op->getContext());
  };
  return rest(a) == rest(b);
}

static LogicalResult checkBijection(std::map<std::vector<int64_t>, bool> &known, Operation *op, onf::AxisAttr axis,
                                    const Twine &what) {
  ArrayRef<int64_t> factors = axis.getSizes().drop_front();
  std::vector<int64_t> sizes(factors.begin(), factors.end());
  llvm::erase(sizes, 1); // a digit of size 1 is always 0
  auto [it, isNew] = known.try_emplace(sizes, true);
  if (isNew)
    if (llvm::Error error = verifyBijection(axis)) {
      it->second = false;
      llvm::consumeError(std::move(error));
    }
  if (it->second)
    return success();
  return op->emitError("the digits of ") << what << " are in no bijection with its indices";
}

LogicalResult Validator::checkLifting(onf::KernelOp onf, onf::KernelOp lifted) {
  SmallVector<Operation *> before = stepsOf(onf), after = stepsOf(lifted);
  for (size_t k = 0; k < std::max(before.size(), after.size()); ++k)
    if (k >= before.size() || k >= after.size() || !isSameStep(before[k], after[k])) {
      Operation *place = k < after.size() ? after[k] : lifted.getOperation();
      return place->emitError("lifting has changed more than the order of '")
             << onf.getSymName() << "': step " << k << " of " << before.size() << " is another one";
    }
  auto add = [&](Operation *op, onf::AxisAttr axis, StringRef name, const SymExpr &expr) {
    std::string extent = expr.str();
    if (failed(checkBijection(state->bijective, op, axis, "'" + name + "' < " + extent)))
      return failure();
    std::string digits;
    for (int64_t size : axis.getSizes().drop_front())
      digits += " x " + std::to_string(size);
    Fact fact{
        Fact::Lifting,
        Fact::Proved,
        name.str(),
        (name + " < " + extent + " is in bijection with the guarded digits of ⌈" + extent + " / tile⌉" + digits).str(),
        {},
        op->getLoc()};
    facts.push_back(std::move(fact));
    return success();
  };
  for (Operation *op : after) {
    if (auto nest = dyn_cast<onf::ForOp>(op); nest && nest.getLift())
      for (auto [axis, name, extent] :
           llvm::zip_equal(nest.getLift()->getAsRange<onf::AxisAttr>(), nest.getNames().getAsValueRange<StringAttr>(),
                           nest.getExtents().getAsValueRange<ExprAttr>()))
        if (failed(add(op, axis, name, extent)))
          return failure();
    if (auto fold = dyn_cast<onf::FoldOp>(op); fold && fold.getLift())
      if (failed(add(op, *fold.getLift(), fold.getName(), fold.getExtent())))
        return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static std::string print(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.10g", value);
  return text;
}

LogicalResult Validator::compareValues(Operation *above, onf::KernelOp onf, onf::KernelOp lifted) {
  validation::Trial trial(above, onf);
  std::vector<std::string> names;
  for (StringRef name : lifted.getResultNames().getAsValueRange<StringAttr>())
    names.push_back(name.str());
  std::string sizes = trial.getSizes();
  if (auto difference = trial.compare(lifted)) {
    bool isOfFolds = above != onf.getOperation() && trial.compare(onf);
    std::string with = difference->sizes.empty() ? "" : " with " + difference->sizes;
    auto error = lifted.emitError("the ") << (isOfFolds ? "folds" : "lifted loops") << " of '" << lifted.getSymName()
                                          << "' do not compute the specified values: ";
    if (!difference->error.empty())
      error << names[difference->output] << with << " has no value: " << difference->error;
    else
      error << names[difference->output] << interp::indexText(difference->index) << with << " is "
            << print(difference->expected) << ", but they give " << print(difference->found);
    return error << "; this is an error of the compiler, not of the specification";
  }
  Fact fact{
      Fact::Values, Fact::Tried,    llvm::join(names, ", "), "the lifted loops give the values of the normal form",
      {},           lifted.getLoc()};
  if (!trial.getPoint()) {
    fact.status = Fact::Untried;
    fact.because.push_back(trial.getReason());
  } else if (!sizes.empty()) {
    fact.statement += " at " + sizes;
    if (size_t count = trial.countEdges())
      fact.statement += " and at " + std::to_string(count) + " sizes around the numbers of the kernel";
  }
  facts.push_back(std::move(fact));
  return success();
}
