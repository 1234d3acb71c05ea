//===- ONFOps.cpp - verifiers of the onf ops ------------------------------===//
#include "dialects/MoA/IR/Monoid.h"
#include "dialects/ONF/IR/ONF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <algorithm>
#include <cmath>

using namespace mlir;

namespace moa::onf {
// The indices of loads and stores, in Access.cpp.
ParseResult parseSubscripts(OpAsmParser &parser, SubscriptsAttr &subscripts,
                            ArrayRef<OpAsmParser::UnresolvedOperand> terms);
void printSubscripts(OpAsmPrinter &printer, Operation *op, SubscriptsAttr subscripts, OperandRange terms);
LogicalResult verifyAccess(AccessOpInterface op);
} // namespace moa::onf

#define GET_OP_CLASSES
#include "dialects/ONF/IR/ONFOps.cpp.inc"

namespace moa::onf {

static void nameArguments(Region &region, ArrayAttr names, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  for (auto [arg, name] : llvm::zip(region.getArguments(), names))
    setName(arg, cast<StringAttr>(name).getValue());
}

static LogicalResult verifyIndices(Operation *op, Region &region, size_t n) {
  if (region.getNumArguments() != n || !llvm::all_of(region.getArgumentTypes(), [](Type t) { return t.isIndex(); }))
    return op->emitOpError("expects one index argument per extent (C1), but got ")
           << region.getNumArguments() << " for " << n;
  return success();
}

StringRef KernelOp::getArrayName(unsigned array) {
  for (ArrayAttr names : {getArgNamesAttr(), getResultNamesAttr(), getTemporaryNamesAttr()}) {
    if (!names)
      break;
    if (array < names.size())
      return cast<StringAttr>(names[array]).getValue();
    array -= names.size();
  }
  llvm_unreachable("no array of this number");
}

SymExpr getStride(StringRef array, unsigned axis) { return SymExpr::symbol((array + ".s" + Twine(axis)).str()); }

std::optional<unsigned> KernelOp::findArray(StringRef name) {
  for (unsigned k = 0; k < getBody().getNumArguments(); ++k)
    if (getArrayName(k) == name)
      return k;
  return std::nullopt;
}

SymExpr KernelOp::getStride(unsigned temporary, unsigned axis) {
  auto type = cast<ArrayType>(getBody().getArgument(temporary).getType());
  SymExpr stride(1);
  for (ExprAttr extent : type.getShape().drop_front(axis + 1))
    stride = stride * extent.getValue();
  return stride;
}

SymExpr KernelOp::withoutTemporaryStrides(const SymExpr &expr) {
  if (!getTemporaryNames())
    return expr;
  return expr.substitute([&](StringRef symbol) -> std::optional<SymExpr> {
    auto [name, text] = symbol.rsplit(".s");
    unsigned axis = 0;
    std::optional<unsigned> array = text.getAsInteger(10, axis) ? std::nullopt : findArray(name);
    if (!array || !isTemporary(*array))
      return std::nullopt;
    return getStride(*array, axis);
  });
}

StoreOp KernelOp::getStore(unsigned array) {
  for (Operation *user : getBody().getArgument(array).getUsers())
    if (auto store = dyn_cast<StoreOp>(user))
      return store;
  return {};
}

SmallVector<std::pair<SymExpr, SymExpr>> getEquations(KernelOp kernel) {
  SmallVector<std::pair<SymExpr, SymExpr>> equations;
  for (StringRef text : kernel.getRequires().getAsValueRange<StringAttr>()) {
    auto [left, right] = text.split("==");
    auto x = SymExpr::parse(left), y = SymExpr::parse(right);
    if (x && y)
      equations.append({{*x, *y}, {*y, *x}});
  }
  return equations;
}

bool isProduct(KernelOp kernel, const SymExpr &extent, const SymExpr &groups, const SymExpr &members) {
  SymExpr product = groups * members;
  auto tells = [&](const std::pair<SymExpr, SymExpr> &equation) {
    auto divides = [&](const SymExpr &divisor) {
      return equation.second.isZero() && equation.first == SymExpr::mod(extent, divisor);
    };
    return (equation.first == extent && equation.second == product) ||
           (members == SymExpr::floorDiv(extent, groups) && divides(groups)) ||
           (groups == SymExpr::floorDiv(extent, members) && divides(members));
  };
  return product == extent || llvm::any_of(getEquations(kernel), tells);
}

std::optional<Refinement> getRefinement(StoreOp store) {
  auto select = store.getValue().getDefiningOp<arith::SelectOp>();
  auto compare = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return std::nullopt;
  auto load = compare.getLhs().getDefiningOp<LoadOp>();
  APInt value, outside;
  if (!load || !matchPattern(compare.getRhs(), m_ConstantInt(&value)) ||
      !matchPattern(select.getFalseValue(), m_ConstantInt(&outside)))
    return std::nullopt;
  ArrayType type = load.getArray().getType(), own = store.getArray().getType();
  if (load.getTerms() != store.getTerms() || load.getSubscripts() != store.getSubscripts() ||
      type.getShape() != own.getShape())
    return std::nullopt;
  return Refinement{load.getArray(), value.getSExtValue(), select.getTrueValue(), outside.getSExtValue()};
}

void KernelOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  size_t named = getNumInputs() + getResultNames().size() + getNumTemporaries();
  for (BlockArgument arg : region.getArguments().take_front(named))
    setName(arg, getArrayName(arg.getArgNumber()));
}

LogicalResult KernelOp::verify() {
  Block &block = getBody().front();
  size_t inputs = getNumInputs(), outputs = getNumOutputs(), temporaries = getNumTemporaries();
  SmallVector<Attribute> declared(getResultTypes().begin(), getResultTypes().end());
  if (auto types = getTemporaryTypes())
    llvm::append_range(declared, *types);
  if (block.getNumArguments() != inputs + outputs + temporaries || getResultNames().size() != outputs ||
      declared.size() != outputs + temporaries)
    return emitOpError("expects one argument per input, output and temporary (C1), but got ")
           << block.getNumArguments() << " for " << inputs << ", " << outputs << " and " << temporaries;
  for (auto [arg, type] : llvm::zip(block.getArguments().drop_front(inputs), declared))
    if (arg.getType() != cast<TypeAttr>(type).getValue())
      return emitOpError("expects outputs and temporaries of the declared types (C2), but got ") << arg.getType();
  if (!llvm::all_of(block.getArgumentTypes(), llvm::IsaPred<ArrayType>))
    return emitOpError("expects arguments of array type (C2)");
  for (Operation &op : block)
    if (!isa<ForOp>(op))
      return op.emitOpError("expects only onf.for at the top of a kernel (C3)");
  return verifyWithin(*this, "C4");
}

void ForOp::build(OpBuilder &, OperationState &state, ArrayAttr names, ArrayAttr extents) {
  Properties &properties = state.getOrAddProperties<Properties>();
  properties.names = names;
  properties.extents = extents;
  state.addRegion();
}

SmallVector<Value> ForOp::getChoiceIndices() {
  SmallVector<Value> indices;
  for (int64_t axis : getChoiceAxes().value_or(ArrayRef<int64_t>()))
    indices.push_back(getBody().getArgument(axis));
  return indices;
}

Value ForOp::buildChoice() {
  if (!getChoices())
    return {};
  OpBuilder b = OpBuilder::atBlockBegin(&getBody().front());
  Value taken = LoadOp::create(b, getLoc(), getChoices(), getChoiceIndices());
  Value value = arith::ConstantIntOp::create(b, getLoc(), b.getI32Type(), *getChoice());
  return arith::CmpIOp::create(b, getLoc(), arith::CmpIPredicate::eq, taken, value);
}

/// C5: a choice names increasing axes before the last one, and an array over them.
static LogicalResult verifyChoice(ForOp op) {
  bool isWhole = op.getChoiceAxes() && op.getChoice();
  if (!op.getChoices())
    return success();
  auto array = isWhole ? op.getChoices().getType() : ArrayType();
  ArrayRef<int64_t> axes = op.getChoiceAxes().value_or(ArrayRef<int64_t>());
  int64_t last = -1, rank = op.getExtents().size();
  bool fits = array && array.getElementType().isInteger(32) && static_cast<int64_t>(axes.size()) == array.getRank();
  for (unsigned k = 0; fits && k < axes.size(); ++k) {
    fits = axes[k] > last && axes[k] + 1 < rank && op.getExtents()[axes[k]] == array.getShape()[k];
    last = axes[k];
  }
  if (!fits)
    return op.emitOpError("expects increasing axes before the last one and a choice of i32 over "
                          "their extents (C5), but got ")
           << op.getChoices().getType();
  return success();
}

void ForOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  nameArguments(region, getNames(), setName);
}

LogicalResult ForOp::verify() {
  if (getNames().size() != getExtents().size())
    return emitOpError("expects one name per extent (C2), but got ")
           << getNames().size() << " for " << getExtents().size();
  if (auto lift = getLift(); lift && (lift->size() != getExtents().size() ||
                                      !llvm::all_of(*lift, [](Attribute a) { return isa<AxisAttr>(a); })))
    return emitOpError("expects one #onf.axis per index (C3), but got ")
           << lift->size() << " for " << getExtents().size();
  if (getPipeline() && !getLift())
    return emitOpError("expects a lift if it has a pipeline (C4)");
  if (auto where = getWhere(); where && (where->size() % 2 != 0 || !isa<KernelOp>((*this)->getParentOp())))
    return emitOpError("expects pairs of expressions in 'where', on a nest at the top of a kernel (C6)");
  if (failed(verifyChoice(*this)))
    return failure();
  return verifyIndices(*this, getBody(), getExtents().size());
}

void FoldOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (!region.empty() && region.getNumArguments() == 1)
    setName(region.getArgument(0), getName());
}

LogicalResult FoldOp::verify() {
  if (failed(verifyIndices(*this, getBody(), 1)))
    return failure();
  Block &block = getBody().front();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return emitOpError("expects onf.yield at its end (C2)");
  SmallVector<Value> states;
  unsigned guards = 0;
  for (Operation &op : block) {
    if (auto acc = dyn_cast<AccOp>(op))
      states.push_back(acc.getResult());
    guards += isa<GuardOp>(op);
  }
  if (guards > 1)
    return emitOpError("expects at most one onf.guard (C3), but got ") << guards;
  if (SmallVector<Value>(yield.getValues()) != states)
    return yield.emitOpError("expects every state of the fold, in order (C4)");
  if (yield.getValues().getTypes() != getResultTypes())
    return emitOpError("expects results of the states' types (C5)");
  if (auto pieces = getPieces())
    for (Attribute attr : *pieces) {
      auto piece = dyn_cast<PieceAttr>(attr);
      if (!piece)
        return emitOpError("expects #onf.piece attributes (C6), but got ") << attr;
      for (AffineMap map : {piece.getVisitLower(), piece.getVisitUpper(), piece.getFullLower(), piece.getFullUpper()})
        if (map.getNumDims() != 2 || map.getNumSymbols() != getBounds().size())
          return emitOpError("expects bounds over two tile indices and ")
                 << getBounds().size() << " operands (C7), but got " << AffineMapAttr::get(map);
    }
  return success();
}

void AccOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.getRegionNumber() == 0)
    nameArguments(region, getNames(), setName);
}

static Type elementOf(Type type) {
  auto array = dyn_cast<ArrayType>(type);
  return array ? array.getElementType() : type;
}

LogicalResult AccOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyMonoidUse(*this, getMonoid(), getFunctionAttr(), elementOf(getResult().getType()), "C9", symbols);
}

LogicalResult AccOp::verify() {
  if (failed(verifyIndices(*this, getValue(), getExtents().size())))
    return failure();
  if (getNames().size() != getExtents().size())
    return emitOpError("expects one name per carried axis (C2), but got ")
           << getNames().size() << " for " << getExtents().size();
  Type type = getResult().getType(), element = type;
  if (auto array = dyn_cast<ArrayType>(type)) {
    element = array.getElementType();
    if (ArrayAttr::get(getContext(), SmallVector<Attribute>(array.getShape().begin(), array.getShape().end())) !=
        getExtents())
      return emitOpError("expects the carried extents as result shape (C3), but got ") << type;
  }
  if (isa<ArrayType>(type) != !getExtents().empty())
    return emitOpError("expects an array result exactly for carried axes (C3), but got ") << type;
  auto yieldsElement = [](Region &region, Type element, size_t count = 1) {
    if (!region.hasOneBlock() || region.front().empty())
      return false;
    auto yield = dyn_cast<YieldOp>(region.front().back());
    return yield && yield.getValues().size() == count &&
           llvm::all_of(yield.getValues().getTypes(), [&](Type type) { return type == element; });
  };
  if (!yieldsElement(getValue(), element))
    return emitOpError("expects a value of type ") << element << " (C4)";
  if (!isDefinedOn(getMonoid(), element))
    return emitOpError("expects ") << (isLogical(getMonoid()) ? "booleans" : "numbers") << " for '"
                                   << stringifyMonoid(getMonoid()) << "' (C9), but got " << element;
  auto isScalarState = [&](Value value) {
    auto acc = value.getDefiningOp<AccOp>();
    return acc && acc->getParentOp() == (*this)->getParentOp() && acc.getExtents().empty();
  };
  if (!llvm::all_of(getRefs(), isScalarState))
    return emitOpError("expects refs to be scalar states of the same fold (C5)");
  bool isSum = getMonoid() == Monoid::add && isa<FloatType>(element) && getExtents().empty() &&
               getCombine() == ScalarFn::mul && !getRefs().empty();
  for (Value other : getOthers())
    if (!isSum || !isScalarState(other) || other.getType() != element ||
        other.getDefiningOp<AccOp>().getMonoid() != Monoid::add)
      return emitOpError("expects others to be scalar sums of the same fold and type, and a repair "
                         "by a factor (C10)");
  if (getSingular().size() != getRefs().size() || !llvm::all_of(getSingular(), llvm::IsaPred<FloatAttr>))
    return emitOpError("expects one singular value, a float, per ref (C6), but got ")
           << getSingular() << " for " << getRefs().size();
  if (getRefs().empty() != getRepair().empty())
    return emitOpError("expects a repair exactly where there are refs (C7)");
  bool keeps = getCombine() == ScalarFn::select;
  Type truth = IntegerType::get(getContext(), 1);
  SmallVector<Type> pairs;
  for (Type refType : getRefs().getTypes())
    pairs.append(2, refType);
  if (!getRepair().empty() && (getRepair().getArgumentTypes() != TypeRange(pairs) ||
                               !yieldsElement(getRepair(), keeps ? truth : element, 1 + getOthers().size())))
    return emitOpError("expects a repair of an old and a new value per ref")
           << (getOthers().empty() ? "" : " that yields a factor and a value per other") << " (C7)";
  if (getCombine() != ScalarFn::mul && getCombine() != ScalarFn::add && !keeps)
    return emitOpError("expects mul, add or select as the repair's operation (C8)");
  return success();
}

void LoadOp::build(OpBuilder &b, OperationState &state, Value array, ValueRange indices) {
  build(b, state, cast<ArrayType>(array.getType()).getElementType(), array, indices,
        SubscriptsAttr::getIdentity(b.getContext(), indices.size()));
}

void StoreOp::build(OpBuilder &b, OperationState &state, Value value, Value array, ValueRange indices) {
  build(b, state, value, array, indices, SubscriptsAttr::getIdentity(b.getContext(), indices.size()));
}

LogicalResult LoadOp::verify() {
  if (getResult().getType() != getArray().getType().getElementType())
    return emitOpError("expects the element type (C2), but got ") << getResult().getType();
  return verifyAccess(*this);
}

LogicalResult StoreOp::verify() {
  Type from = getValue().getType(), to = getArray().getType().getElementType();
  if (isa<FloatType>(from) != isa<FloatType>(to) || from.isInteger(1) != to.isInteger(1))
    return emitOpError("expects a value of the kind of the elements (C2), but got ") << from << " for " << to;
  return verifyAccess(*this);
}

LogicalResult AtOp::verify() {
  if (getIndices().size() != getState().getType().getRank())
    return emitOpError("expects a full index (C1), but got ")
           << getIndices().size() << " for rank " << getState().getType().getRank();
  if (getResult().getType() != getState().getType().getElementType())
    return emitOpError("expects the element type (C2), but got ") << getResult().getType();
  return success();
}

/// The bits of an f16 are a piecewise linear logarithm of its value. So the result has the bits
/// 1024·(y + 15), rounded to a multiple of 16.
double PiecewiseExp2Op::evaluate(double y) {
  if (std::isnan(y))
    return y;
  double bits = 16 * std::nearbyint(std::clamp(64 * (y + 15), 0.0, 31.0 * 64));
  return llvm::APFloat(llvm::APFloat::IEEEhalf(), llvm::APInt(16, static_cast<uint64_t>(bits))).convertToDouble();
}

} // namespace moa::onf
