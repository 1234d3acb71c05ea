//===- Chooser.cpp - results, tables and copies of a nest -----------------===//
#include "dialects/ONF/IR/Hints.h"
#include "lib/Accuracy/Bounds/Bounds.h"
#include "lib/Accuracy/Passes.h"
#include "lib/Accuracy/Selection/Adapter.h"
#include "lib/Analysis/RepeatedSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace moa::accuracy {

//===----------------------------------------------------------------------===//
// Results and tables
//===----------------------------------------------------------------------===//

NestResult Chooser::resultOf(onf::StoreOp store, const Tolerance &allowed) {
  NestResult result{store, allowed, {}, {}, {}, {}};
  for (auto loop = store->getParentOfType<onf::ForOp>(); loop != nest; loop = loop->getParentOfType<onf::ForOp>()) {
    result.names.insert(result.names.begin(), loop.getNames().begin(), loop.getNames().end());
    result.extents.insert(result.extents.begin(), loop.getExtents().begin(), loop.getExtents().end());
  }
  return result;
}

/// Returns true if an axis other than the last comes after the rows, so that a relative error is
/// that of one row.
bool Chooser::isErrorOfRow(onf::StoreOp store) {
  Value row = nest.getBody().front().getArguments().back();
  unsigned rank = store.getArray().getType().getRank();
  return llvm::any_of(llvm::seq(rank),
                      [&](unsigned axis) { return axis + 2 < rank && store.getIndex(axis).getValue() == row; });
}

bool Chooser::findResults(std::string &why, bool takesBounds) {
  bool fits = true;
  nest.walk([&](onf::StoreOp store) {
    StringRef name = kernel.getArrayName(numberOf(store));
    auto refuse = [&](const Twine &reason) {
      if (fits)
        why = ("'" + name + "' " + reason).str();
      fits = false;
    };
    if (kernel.isTemporary(numberOf(store)))
      return refuse("is no result, but an array that later nests read");
    WithinAttr within = getWithin(kernel, numberOf(store) - kernel.getNumInputs());
    if (!within)
      return refuse("has no tolerance, unlike other results of the nest; give it one with 'within'");
    NestResult result = resultOf(store, within.getTolerance());
    bool isShown = takesBounds && !result.allowed.isSampled;
    if (isShown && result.allowed.isRelative)
      return refuse("has a relative tolerance that is not sampled: " + kNoRelativeBound);
    if (isShown && (results.empty() || isBound)) {
      isBound = true;
      return void(results.push_back(result));
    }
    if (isShown || isBound)
      return refuse("has a tolerance of another mode than other results of the nest");
    if (!result.allowed.isSampled)
      return refuse("has a tolerance that is not sampled");
    if (errorOfTypes(nest, store.getArray()) >= result.allowed.epsilon)
      return refuse("has a tolerance below the error of the unmodified nest, so that nothing is left for a plan");
    if (isErrorOfRow(store))
      return refuse("has axes between its rows and its last axis, so that a relative error is that of one row, "
                    "which no sample of rows estimates; make rows and columns the last axes, and give strides");
    results.push_back(result);
  });
  return fits && !results.empty();
}

LogicalResult checkLaws(Operation *op, ArrayRef<std::string> disabled, ArrayRef<const char *> known) {
  for (const std::string &law : disabled)
    if (!llvm::is_contained(known, law))
      return op->emitError("no law of this pass is called '") << law << "'; there are " << llvm::join(known, ", ");
  return success();
}

bool storesResult(onf::ForOp nest) {
  auto kernel = nest->getParentOfType<onf::KernelOp>();
  return nest
      .walk([&](onf::StoreOp store) {
        unsigned number = cast<BlockArgument>(store.getArray()).getArgNumber();
        return kernel.isTemporary(number) ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

void Chooser::findHead() {
  findEarlier();
  headNames.assign(nest.getNames().begin(), nest.getNames().end());
  headExtents.assign(nest.getExtents().begin(), nest.getExtents().end());
  headNames.pop_back();
  headExtents.pop_back();
  picked.names = headNames;
  picked.extents = headExtents;
  picked.names.push_back(editor.text("r"));
  picked.extents.push_back(editor.expr(kSample));
}

std::string tellPlans(unsigned count) {
  return count ? ("there are 0 to " + Twine(count)).str() : "there is only 0, the unmodified kernel";
}

LogicalResult Chooser::readTable() {
  SmallVector<StringRef> lists, entries;
  StringRef(options.table).split(lists, ';', -1, /*KeepEmpty=*/false);
  for (StringRef list : lists) {
    auto [key, numbers] = list.split('=');
    for (NestResult &result : MutableArrayRef(results).drop_front())
      if (StringRef name = editor.nameOf(result.store.getArray()); key == (kernel.getSymName() + "." + name).str())
        return nest.emitError("'") << name << "' is computed with '" << base()
                                   << "', whose plans are its own; give them as '" << kernel.getSymName() << "."
                                   << base() << "'";
    if (key != (kernel.getSymName() + "." + base()).str())
      continue;
    isTabled = true;
    numbers.split(entries, ',', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries) {
      int64_t plan = 0;
      bool isNumber = !entry.getAsInteger(10, plan) && plan >= 0;
      if (!isNumber || (plan > int64_t(numAll()) && !options.isShared))
        return nest.emitError("there is no plan '") << entry << "' for '" << base() << "'; " << tellPlans(numAll());
      table.push_back(plan);
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The result
//===----------------------------------------------------------------------===//

std::string Chooser::whyNoScores() {
  auto isRow = [](Value value) {
    auto load = value.getDefiningOp<onf::LoadOp>();
    return load && load.getArray().getType().getRank() > 1;
  };
  auto isOfRows = [&](onf::AccOp acc) {
    auto product = acc.getMonoid() == Monoid::add ? getTerm(acc).getDefiningOp<arith::MulFOp>() : nullptr;
    return product && isRow(product.getLhs()) && isRow(product.getRhs());
  };
  std::string why = "no fold has, for each of its indices, a sum of products of rows of two inputs";
  nest.walk([&](onf::AccOp acc) {
    auto fold = acc->getParentOfType<onf::FoldOp>();
    if (!isOfRows(acc) || !isa<onf::FoldOp>(fold->getParentOp()))
      return;
    std::string over = "sums of products are over '" + fold.getName().str() + "' < " + fold.getExtent().str();
    auto length = fold.getExtent().getConstant();
    if (getTerm(acc).getType().isF64())
      why = "operands are of f64, and plans are for f32, f16 and bf16";
    else if (!length)
      why = over + ", a length that is not known here, and plans are for known ones of at most " +
            std::to_string(kMostTerms) + "; give it with --set";
    else if (*length > kMostTerms)
      why = over + ", and plans are for at most " + std::to_string(kMostTerms) + " terms";
  });
  return why;
}

/// Records the plans of the nest and their laws as attributes of the kernel.
void Chooser::recordPlans() {
  Builder b(kernel.getContext());
  SmallVector<Attribute> lists, texts;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kSpentAttr))
    lists.assign(known.begin(), known.end());
  else // the first plans: no copies yet
    RepeatedSums::note(kernel);
  lists.resize(kernel.getNumOutputs(), b.getArrayAttr({}));
  auto listOf = [&](NestResult &result) -> Attribute & {
    return lists[numberOf(result.store) - kernel.getNumInputs()];
  };
  llvm::append_range(texts, cast<ArrayAttr>(listOf(results[0])));
  for (unsigned plan = 1; plan <= numPlans(); ++plan)
    texts.push_back(b.getStringAttr("plan " + Twine(numEarlier + plan) + ": " + describe(plan)));
  for (NestResult &result : results)
    listOf(result) = b.getArrayAttr(texts);
  kernel->setAttr(kSpentAttr, b.getArrayAttr(lists));
  SmallVector<Attribute> laws;
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kLawsAttr))
    laws.assign(known.begin(), known.end());
  for (unsigned plan = 1; plan <= numPlans(); ++plan) {
    laws.push_back(b.getStringAttr(base() + ", plan " + Twine(numEarlier + plan)));
    for (const std::string &law : listLaws(plan))
      laws.push_back(b.getStringAttr("  " + law));
  }
  kernel->setAttr(kLawsAttr, b.getArrayAttr(laws));
  if (!kernel->hasAttr(kStoredAttr))
    kernel->setAttr(kStoredAttr,
                    b.getI64IntegerAttr(kernel.getTemporaryTypes() ? kernel.getTemporaryTypes()->size() : 0));
}

void Chooser::addDecisionResults() {
  if (!options.decisions)
    return;
  Builder b(kernel.getContext());
  SmallVector<Attribute> told, extents(headExtents);
  if (auto known = kernel->getAttrOfType<ArrayAttr>(kDecisionsAttr))
    told.assign(known.begin(), known.end());
  // Results of an earlier pass are extended.
  auto add = [&](StringRef of, StringRef suffix, Type element) {
    if (Value known = findDecision(of, element))
      return known;
    told.push_back(editor.text(of));
    return editor.addResult(of + suffix, extents, element);
  };
  planArray = add(base(), "_plan", editor.i32());
  if (earlier.array)
    for (Operation *user : llvm::make_early_inc_range(planArray.getUsers()))
      user->erase();
  extents.push_back(editor.expr(numAll() + isBound));
  if (needsEstimates() || isBound)
    for (NestResult &result : results) {
      Value array = add(editor.nameOf(result.store.getArray()), isBound ? "_bound" : "_estimate", editor.f32());
      estimateArrays.push_back(array);
      earlierEstimates.push_back(extendDecision(array));
    }
  kernel->setAttr(kDecisionsAttr, b.getArrayAttr(told));
}

Choice Chooser::addHeadChoice(const Twine &suffix) {
  Value array = editor.addTemporary(base() + suffix, headExtents, editor.i32());
  return {array, llvm::to_vector(llvm::seq<int64_t>(0, headExtents.size())), 1};
}

IRMapping Chooser::mapIndices(ValueRange head, Value row) {
  IRMapping map;
  map.map(nest.getBody().getArguments(), placed(head, {row}));
  return map;
}

void Chooser::addChoice() {
  if (needsEstimates()) {
    for (auto [result, sample] : llvm::zip_equal(results, addSample(0)))
      result.sample = sample;
    SmallVector<SmallVector<Value>> samples;
    for (unsigned plan = 1; plan <= numPlans(); ++plan)
      samples.push_back(addSample(plan));
    addErrors(samples);
  }
  chosen = addHeadChoice("_choice");
  needsEstimates() ? addDecision() : addTable();
  addCopies();
}

/// Adds the copy of each plan, and predicates the nest on plan 0.
void Chooser::addCopies() {
  for (unsigned plan = 1; plan <= numPlans(); ++plan) {
    Copy copy = copyNest();
    rewrite(copy, plan, {});
    chosen.value = numEarlier + plan;
    setChoice(copy.nest, chosen);
  }
  // Copies do not run if sizes are too small.
  for (auto other : kernel.getBody().getOps<onf::ForOp>())
    if (other.getChoices() && other.getChoice() != 0 && !other->hasAttr(onf::kLaunchIfAttr) &&
        other->isBeforeInBlock(nest))
      other->setAttr(onf::kLaunchIfAttr, ArrayAttr::get(kernel.getContext(), runs));
  takeAlternatives();
  chosen.value = 0;
  setChoice(nest, chosen);
  if (leavesAtOnce) // other heads were computed before
    nest->setAttr(onf::kLaunchIfAttr, ArrayAttr::get(kernel.getContext(), runs));
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

void Chooser::addCondition(int64_t fewest, std::optional<std::pair<SymExpr, SymExpr>> larger,
                           llvm::function_ref<void(Code &, Value)> also) {
  tried = {editor.addTemporary(base() + "_tried", {}, editor.i32()), {}, 1};
  editor.addShortNest({}, {}, nullptr, [&](Code &code, ValueRange) {
    Value enough;
    auto require = [&](const SymExpr &x, const SymExpr &y) {
      Value right = code.extent(y), left = code.extent(x);
      Value is = code.compare(arith::CmpIPredicate::sgt, left, right);
      enough = enough ? code.both(enough, is) : is;
      runs.append({editor.expr(x), editor.expr(y)});
    };
    require(rows(), SymExpr(fewest - 1));
    std::set<std::string> known;
    for (ScoreFold &score : scores)
      if (known.insert(score.outer.getExtent().str()).second)
        require(score.outer.getExtent(), SymExpr(fewest - 1));
    if (larger)
      require(larger->first, larger->second);
    code.store(code.toNumber(enough), tried.array, {});
    if (also)
      also(code, enough);
  });
  sampled = tried;
}

} // namespace moa::accuracy
