//===- PackRows.cpp - rows of one tile that share keys --------------------===//
#include "dialects/ONF/Transforms/Passes.h"
#include "dialects/ONF/Transforms/SplitFolds.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace moa::onf {

#define GEN_PASS_DEF_ONFPACKROWS
#include "dialects/ONF/Transforms/ONFPasses.h.inc"

//===----------------------------------------------------------------------===//
// Which indices share keys
//===----------------------------------------------------------------------===//

namespace {

/// How values use an index h: not at all, only through ⌊h / size⌋, or in another way.
struct Use {
  enum Kind { None, Quotient, Other } kind = None;
  SymExpr size;
  bool operator==(const Use &other) const { return kind == other.kind && size == other.size; }
  /// Returns the use by two values.
  Use with(const Use &other) const {
    if (kind == None || other.kind == None)
      return kind == None ? other : *this;
    return *this == other ? *this : Use{Other, {}};
  }
};

/// A plan for a nest: the axis h, and the parts of its index, h = members · group + member.
struct Packing {
  unsigned axis = 0;
  std::optional<SymExpr> groups; // nothing: every h has the same keys, and members are all of them
  SymExpr members;
  SymExpr rows = SymExpr(1); ///< indices of the other axes that share keys
};

} // namespace

/// Returns a number of sizes alone.
static std::optional<SymExpr> getSize(Value value) {
  if (auto extent = value.getDefiningOp<ExtentOp>())
    return extent.getExpr();
  APInt constant;
  return matchPattern(value, m_ConstantInt(&constant)) ? std::optional(SymExpr(constant.getSExtValue())) : std::nullopt;
}

static Use useOf(Value value, Value index) {
  if (value == index)
    return {Use::Other, {}};
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  if (auto quotient = dyn_cast<arith::FloorDivSIOp>(op); quotient && quotient.getLhs() == index)
    if (auto size = getSize(quotient.getRhs()))
      return {Use::Quotient, *size};
  Use use;
  for (Value operand : op->getOperands())
    use = use.with(useOf(operand, index));
  return use;
}

static Use useOf(ArrayRef<LoadOp> loads, Value index) {
  Use use;
  for (LoadOp load : loads)
    for (Value term : load.getTerms())
      use = use.with(useOf(term, index));
  return use;
}

/// Returns the loads of a fold that read a row of a matrix: with an index of an inner fold, or of an
/// axis of a state. `ofIndex` chooses those with the fold's index, the keys, or those without.
static SmallVector<LoadOp> findRowLoads(FoldOp fold, bool ofIndex) {
  SmallVector<LoadOp> loads;
  fold.getBody().walk([&](LoadOp load) {
    bool isOn = false, hasInner = false;
    for (Value term : load.getTerms()) {
      isOn |= useOf(term, fold.getBody().getArgument(0)).kind != Use::None;
      auto argument = dyn_cast<BlockArgument>(term);
      hasInner |= argument && fold->isProperAncestor(argument.getOwner()->getParentOp());
    }
    if (hasInner && isOn == ofIndex)
      loads.push_back(load);
  });
  return loads;
}

/// Returns whether tensor cores contract elements of this type.
static bool isNarrow(LoadOp load) {
  Type type = load.getResult().getType();
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 16;
}

/// Returns the number of groups of `size` indices in the whole axis.
static std::optional<SymExpr> countGroups(KernelOp kernel, const SymExpr &extent, const SymExpr &size) {
  SymExpr quotient = SymExpr::floorDiv(extent, size);
  if (isProduct(kernel, extent, quotient, size))
    return quotient;
  // H = 3·G, and groups of 3.
  for (const auto &[x, y] : getEquations(kernel))
    if (x == extent && isProduct(kernel, extent, SymExpr::floorDiv(y, size), size))
      return SymExpr::floorDiv(y, size);
  // The size is a quotient itself: H/G, and G groups.
  if (size.getTerms().size() != 1 || size.getTerms().begin()->first.size() != 1)
    return std::nullopt;
  const SymExpr::Atom &atom = *size.getTerms().begin()->first.front().first;
  if (atom.kind != SymExpr::Atom::Kind::FloorDiv || atom.lhs != extent || !isProduct(kernel, extent, atom.rhs, size))
    return std::nullopt;
  return atom.rhs;
}

/// Returns whether all stores of a nest are of outputs.
static bool storesOutputs(ForOp nest) {
  auto kernel = nest->getParentOfType<KernelOp>();
  return !nest.walk([&](StoreOp store) {
                bool isOutput = !kernel.isTemporary(cast<BlockArgument>(store.getArray()).getArgNumber());
                return isOutput ? WalkResult::advance() : WalkResult::interrupt();
              })
              .wasInterrupted();
}

/// Finds the axis to pack: the last one, if keys depend on it, or else the innermost one that
/// members of a group share.
static std::optional<Packing> findPacking(ForOp nest) {
  auto folds = llvm::to_vector(nest.getBody().getOps<FoldOp>());
  if (folds.size() != 1 || folds[0].getBody().getOps<FoldOp>().empty() || nest.getWhere() || nest.getChoices() ||
      nest.getExtents().size() < 2 || !storesOutputs(nest))
    return std::nullopt;
  SmallVector<LoadOp> keys = findRowLoads(folds[0], true), rows = findRowLoads(folds[0], false);
  if (keys.empty() || rows.empty() || !llvm::all_of(keys, isNarrow))
    return std::nullopt;
  auto kernel = nest->getParentOfType<KernelOp>();
  auto indices = nest.getBody().getArguments();
  auto extentOf = [&](unsigned axis) { return getSymExpr(nest.getExtents()[axis]); };
  unsigned last = indices.size() - 1;
  std::optional<Packing> found;
  for (unsigned axis = indices.size(); axis-- > 0 && !found;) {
    Use use = useOf(keys, indices[axis]);
    bool isLast = axis == last, isOfRows = useOf(rows, indices[axis]).kind == Use::Other;
    if (use.kind != Use::Other && isOfRows && extentOf(axis) != SymExpr(1)) {
      if (use.kind == Use::None && !isLast)
        found = Packing{axis, std::nullopt, extentOf(axis)};
      else if (auto groups = use.kind == Use::Quotient ? countGroups(kernel, extentOf(axis), use.size) : std::nullopt)
        found = Packing{axis, *groups, use.size};
    }
    if (!found && isLast && use.kind != Use::None)
      return std::nullopt;
  }
  for (unsigned axis = 0; found && axis < indices.size(); ++axis)
    if (axis != found->axis && useOf(keys, indices[axis]).kind == Use::None)
      found->rows = found->rows * extentOf(axis);
  return found;
}

//===----------------------------------------------------------------------===//
// The packed nest
//===----------------------------------------------------------------------===//

/// Writes an index `whole` in subscripts as size · group + member.
static void splitTerms(Operation *op, Value whole, const IndexParts &parts) {
  auto access = cast<AccessOpInterface>(op);
  if (!llvm::is_contained(access.getTerms(), whole))
    return;
  SmallVector<LinearIndex> indices;
  for (unsigned axis = 0; axis < access.getArray().getType().getRank(); ++axis) {
    LinearIndex index = access.getIndex(axis), split{index.constant, {}};
    for (const auto &[term, factor] : index.terms) {
      split.add(term == whole ? parts.group : term, term == whole ? factor * parts.size : factor);
      if (term == whole)
        split.add(parts.member, factor);
    }
    indices.push_back(std::move(split));
  }
  SmallVector<Value> terms;
  auto subscripts = SubscriptsAttr::get(op->getContext(), indices, terms);
  if (auto load = dyn_cast<LoadOp>(op)) {
    load.getTermsMutable().assign(terms);
    load.setSubscriptsAttr(subscripts);
  } else {
    cast<StoreOp>(op).getTermsMutable().assign(terms);
    cast<StoreOp>(op).setSubscriptsAttr(subscripts);
  }
}

/// Returns a name that no axis of the nest has.
static StringAttr makeName(ForOp nest, const Twine &wish) {
  Builder b(nest.getContext());
  StringAttr name = b.getStringAttr(wish);
  for (unsigned k = 2; llvm::is_contained(nest.getNames(), name); ++k)
    name = b.getStringAttr(wish + Twine(k));
  return name;
}

/// Emits a copy of the nest whose last axis has the members of a group.
static ForOp pack(ForOp nest, const Packing &packing) {
  OpBuilder b(nest);
  Location loc = nest.getLoc();
  StringRef name = cast<StringAttr>(nest.getNames()[packing.axis]).getValue();
  SmallVector<Attribute> names, extents;
  for (auto [axis, axisName, extent] : llvm::enumerate(nest.getNames(), nest.getExtents())) {
    if (axis != packing.axis) {
      names.push_back(axisName);
      extents.push_back(extent);
    } else if (packing.groups) {
      names.push_back(makeName(nest, name + "_group"));
      extents.push_back(ExprAttr::get(b.getContext(), *packing.groups));
    }
  }
  names.push_back(packing.groups ? makeName(nest, name + "_in_group") : b.getStringAttr(name));
  extents.push_back(ExprAttr::get(b.getContext(), packing.members));
  auto made = ForOp::create(b, loc, b.getArrayAttr(names), b.getArrayAttr(extents));
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&made.getBody(), {}, SmallVector<Type>(extents.size(), b.getIndexType()),
                              SmallVector<Location>(extents.size(), loc));
  IRMapping map;
  Value member = body->getArguments().back(), group, whole = member;
  unsigned next = 0;
  for (auto [axis, argument] : llvm::enumerate(nest.getBody().getArguments())) {
    if (axis != packing.axis)
      map.map(argument, body->getArgument(next++));
    else if (packing.groups)
      group = body->getArgument(next++);
  }
  if (group) {
    Value size = ExtentOp::create(b, loc, b.getIndexType(), ExprAttr::get(b.getContext(), packing.members));
    whole = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, group, size), member);
  }
  map.map(nest.getBody().getArgument(packing.axis), whole);
  for (Operation &op : nest.getBody().front())
    b.clone(op, map);
  if (!group)
    return made;
  IndexParts parts{group, member, packing.members};
  made.walk([&](Operation *op) {
    if (isa<LoadOp, StoreOp>(op))
      splitTerms(op, whole, parts);
    auto quotient = dyn_cast<arith::FloorDivSIOp>(op);
    if (quotient && quotient.getLhs() == whole && getSize(quotient.getRhs()) == packing.members)
      quotient.replaceAllUsesWith(group);
  });
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(made.getBody().front())))
    if (isPure(&op) && op.use_empty() && op.getNumRegions() == 0)
      op.erase();
  return made;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ONFPackRows final : impl::ONFPackRowsBase<ONFPackRows> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](KernelOp kernel) {
      for (auto nest : llvm::to_vector(kernel.getBody().getOps<ForOp>()))
        if (auto packing = findPacking(nest))
          run(nest, *packing);
    });
  }

  /// Returns the indices of a part: between `unit` and `longest`, half of that at a range of `half`.
  /// Short ranges get short parts, which start more blocks. It is a function of the range alone.
  SymExpr chooseLength(ForOp packed) {
    SymExpr range = (*packed.getBody().getOps<FoldOp>().begin()).getExtent();
    SymExpr most(longest / unit);
    return SymExpr(unit) * (SymExpr(1) + SymExpr::floorDiv(most * range, range + SymExpr(half)));
  }

  void run(ForOp nest, const Packing &packing) {
    ForOp packed = pack(nest, packing);
    if (!canSplitFold(packed))
      return packed.erase();
    // The packed nest reads keys once per row, the nest once per member. It needs room for the states
    // of all rows, so that rows are at most c = 1 + ⌈w·(R − 1) / (R + w − 1)⌉ for R members: at most R,
    // and at most w + 1. Without other rows, or if the numbers are known, one of the two is enough.
    const SymExpr &members = packing.members, one(1);
    SymExpr limit(most), both = members + limit - one;
    SymExpr above = SymExpr(2) + SymExpr::floorDiv(limit * (members - one) + both - one, both);
    auto known = (packing.rows - above).getConstant();
    if (known && *known >= 0)
      return packed.erase();
    if (known || packing.rows == SymExpr(1)) {
      splitFold(packed, chooseLength(packed));
      return nest.erase();
    }
    auto pair = [&](const SymExpr &x, const SymExpr &y) {
      MLIRContext *context = &getContext();
      return ArrayAttr::get(context, {ExprAttr::get(context, x), ExprAttr::get(context, y)});
    };
    nest.setWhereAttr(pair(packing.rows, above - SymExpr(1)));
    packed.setWhereAttr(pair(above, packing.rows));
    packed->moveAfter(nest);
    splitFold(packed, chooseLength(packed));
  }
};
} // namespace

} // namespace moa::onf
