//===- CheckBounds.cpp - bounds of results, evaluated by a kernel ---------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Bounds/RoundingErrorBounds.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"

namespace moa {
#define GEN_PASS_DEF_CHECKBOUNDSPASS
#include "lib/Accuracy/AccuracyPasses.h.inc"
} // namespace moa

using namespace mlir;
using namespace moa;
using namespace moa::accuracy;

namespace {
class BoundChecks {
public:
  BoundChecks(onf::KernelOp kernel, bool onlyKnown)
      : kernel(kernel), onlyKnown(onlyKnown), editor(kernel, *kernel.getBody().getOps<onf::ForOp>().begin()),
        bounds(Bounds::read(kernel)) {}
  void run();

private:
  SmallVector<unsigned> findAxes(unsigned number);
  void add(unsigned number, const Tolerance &allowed);

  onf::KernelOp kernel;
  bool onlyKnown;
  KernelEditor editor;
  std::optional<Bounds> bounds;
  SmallVector<Attribute> shown;
  SmallVector<onf::ForOp> nests;
};
} // namespace

namespace {
/// The states that an array depends on inside a nest.
class StatesOf {
public:
  StatesOf(onf::ForOp nest, Value result) : nest(nest) { visitArray(result); }
  SmallVector<onf::AccOp> accs;

private:
  void visitArray(Value array) {
    if (!arrays.insert(array).second)
      return;
    nest.walk([&](onf::StoreOp store) {
      if (store.getArray() == array)
        visit(store.getValue());
    });
  }
  void visit(Value value) {
    Operation *op = value.getDefiningOp();
    if (auto fold = dyn_cast_or_null<onf::FoldOp>(op))
      return visit(fold.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
    if (!op || !seen.insert(op).second)
      return;
    op->walk([&](Operation *inner) {
      if (auto acc = dyn_cast<onf::AccOp>(inner))
        accs.push_back(acc);
      if (auto load = dyn_cast<onf::LoadOp>(inner))
        visitArray(load.getArray());
      for (Value operand : inner->getOperands())
        visit(operand);
    });
  }

  onf::ForOp nest;
  llvm::SmallPtrSet<Operation *, 32> seen;
  llvm::SmallPtrSet<Value, 8> arrays;
};
} // namespace

static double roundoffOf(Type rounded) {
  auto type = dyn_cast_or_null<FloatType>(rounded);
  return type && type.getWidth() < 32 ? std::ldexp(1.0, -int(type.getFPMantissaWidth())) : 0;
}

/// Returns true if rounding changes the sum's operands.
static bool isRounded(onf::AccOp acc) {
  Type narrow = acc.getOperandType().value_or(Type());
  Operation *term = getTerm(acc).getDefiningOp();
  if (roundoffOf(narrow) == 0 || !isa_and_nonnull<arith::MulFOp, arith::DivFOp>(term))
    return false;
  auto isElement = [&](Value factor) {
    onf::LoadOp load = getElement(factor);
    auto array = load ? dyn_cast<BlockArgument>(load.getArray()) : BlockArgument();
    return array && load.getType() == narrow && acc->getParentOfType<onf::KernelOp>().isInput(array.getArgNumber());
  };
  return isa<arith::DivFOp>(term) || !llvm::all_of(term->getOperands(), isElement);
}

double moa::accuracy::errorOfTypes(onf::ForOp nest, Value result) {
  // Mean error in units of roundoff; errors of sums in f32 and in f64.
  constexpr double kInMean = 0.43, kSingles = 0x1p-20, kDoubles = 0x1p-49;
  Type element = cast<ArrayType>(result.getType()).getElementType();
  double ofOperands = 0;
  for (onf::AccOp acc : StatesOf(nest, result).accs)
    if (isRounded(acc))
      ofOperands = std::max(ofOperands, roundoffOf(*acc.getOperandType()));
  return std::max(element.isF64() ? kDoubles : kSingles, kInMean * std::hypot(roundoffOf(element), ofOperands));
}

/// Returns why a result with this tolerance never has a bound, from kBoundsAttr; nullopt if inputs
/// decide. `number` is that of its array.
static std::optional<std::string> whyNeverShown(onf::KernelOp kernel, unsigned number, const Tolerance &allowed) {
  StringRef name = kernel.getArrayName(number);
  auto type = cast<ArrayType>(kernel.getBody().getArgument(number).getType());
  if (allowed.isRelative)
    return (kNoRelativeBound +
            Twine("; leave 'relative' out for a bound on each element, or add 'sampled' to ask for none"))
        .str();
  auto bounds = Bounds::read(kernel);
  if (!bounds || !bounds->hasBound(name, "written"))
    return whyNoBounds(kernel);
  return bounds->whyInfinite(name, "written", getLeast(type.getElementType()));
}

/// Returns the entry of kShownAttr for a result with a bound in the array, or without one and why.
static DictionaryAttr makeEntry(KernelEditor &editor, unsigned number, Value bound, std::optional<StringRef> why) {
  onf::KernelOp kernel = editor.kernel;
  NamedAttrList entry;
  entry.append("result", editor.text(kernel.getArrayName(number)));
  entry.append("within", getWithin(kernel, number - kernel.getNumInputs()));
  if (bound)
    entry.append("bound", editor.text(editor.nameOf(bound)));
  if (why)
    entry.append("why", editor.text(*why));
  return entry.getDictionary(kernel.getContext());
}

static void warnOfNeverShown(onf::KernelOp kernel, unsigned number, const Tolerance &allowed, StringRef why) {
  kernel.emitWarning("no bound shows that '")
      << kernel.getArrayName(number) << "' is within " << allowed.str() << ", so that each call reports it: " << why
      << (StringRef(why).contains("sampled'") ? "" : "; 'relative sampled' asks for no bound");
}

/// Returns the axes of a result that every nest which stores it has before its rows.
SmallVector<unsigned> BoundChecks::findAxes(unsigned number) {
  SmallVector<unsigned> axes;
  for (unsigned axis = 0; axis < cast<ArrayType>(kernel.getBody().getArgument(number).getType()).getRank(); ++axis)
    axes.push_back(axis);
  for (auto nest : kernel.getBody().getOps<onf::ForOp>())
    nest.walk([&](onf::StoreOp store) {
      if (store.getArray() != kernel.getBody().getArgument(number))
        return;
      auto head = findHeadAxes(nest, store);
      llvm::erase_if(axes, [&](unsigned axis) { return !head[axis]; });
    });
  return axes;
}

/// Adds the bound of the unmodified kernel; it also covers plans, which are taken only if their
/// own, larger bound is small enough.
void BoundChecks::add(unsigned number, const Tolerance &allowed) {
  std::string name = kernel.getArrayName(number).str();
  auto type = cast<ArrayType>(kernel.getBody().getArgument(number).getType());
  if (auto unknown = whyNeverShown(kernel, number, allowed)) {
    warnOfNeverShown(kernel, number, allowed, *unknown);
    Value array; // of ∞, to compare
    if (!onlyKnown) {
      array = editor.addTemporary(name + "_shown", {}, editor.f32());
      editor.addShortNest({}, {}, nullptr, [&](Code &code, ValueRange) { code.store(code.real(INFINITY), array, {}); });
    }
    shown.push_back(makeEntry(editor, number, array, StringRef(*unknown)));
    return;
  }
  SmallVector<std::optional<unsigned>> axes(type.getRank());
  SmallVector<Attribute> names, extents;
  for (unsigned axis : findAxes(number)) {
    axes[axis] = extents.size();
    names.push_back(editor.text("h" + Twine(axis)));
    extents.push_back(type.getShape()[axis]);
  }
  BoundNests of(editor, *bounds, name, axes, extents);
  of.addStatistics("written");
  llvm::append_range(nests, of.nests);
  Value array = editor.addTemporary(name + "_shown", extents, editor.f32());
  editor.addShortNest(names, extents, nullptr,
                      [&](Code &code, ValueRange head) { code.store(of.write(code, head, "written"), array, head); });
  shown.push_back(makeEntry(editor, number, array, std::nullopt));
}

void BoundChecks::run() {
  for (unsigned k = 0; k < kernel.getNumOutputs(); ++k)
    if (WithinAttr within = getWithin(kernel, k); within && !within.getTolerance().isSampled)
      add(kernel.getNumInputs() + k, within.getTolerance());
  fuseNests(nests);
  if (!shown.empty())
    kernel->setAttr(onf::kShownAttr, ArrayAttr::get(kernel.getContext(), shown));
  kernel->removeAttr(kBoundsAttr);
}

namespace {
struct CheckBounds final : moa::impl::CheckBoundsPassBase<CheckBounds> {
  using Base::Base;

  void runOnOperation() final {
    for (auto kernel : getOperation().getOps<onf::KernelOp>())
      BoundChecks(kernel, onlyKnown).run();
  }
};
} // namespace
