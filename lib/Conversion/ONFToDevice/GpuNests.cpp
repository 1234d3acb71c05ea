//===- GpuNests.cpp - forms of nests as data of the cost model ------------===//
#include "lib/Conversion/ONFToDevice/GpuNests.h"

using namespace mlir;
using namespace moa;

static llvm::Error refuse(const Twine &why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "forms: " + why);
}

//===----------------------------------------------------------------------===//
// The data of tiles
//===----------------------------------------------------------------------===//

namespace {
/// Calls `visit` with the name and the place of every number.
template <typename Visit> void forNumbers(OperationCounts &counts, Visit visit) {
  visit("f32", counts.f32);
  visit("special", counts.special);
  visit("integer", counts.integer);
  visit("loads", counts.loads);
}

template <typename Visit> void forNumbers(TileColumns &columns, Visit visit) {
  visit("columns", columns.columns);
  visit("bytes", columns.bytes);
  visit("transposed", columns.isTransposed);
  visit("products", columns.products);
  visit("rows", columns.rowOperands);
  visit("keys", columns.keyOperands);
}

template <typename Visit> void forNumbers(TileFold &fold, Visit visit) {
  visit("fold", fold.name);
  visit("extent", fold.extent);
  visit("pieces", fold.hasPieces);
  visit("fewer_later", fold.visitsFewerLater);
  visit("depths", fold.depths);
  visit("widths", fold.widths);
  visit("rescaled", fold.rescaledColumns);
  visit("weights", fold.weights);
  visit("states", fold.states);
  visit("terms", fold.terms);
  visit("result_bytes", fold.resultBytes);
  visit("guarded", fold.guarded);
  visit("product", fold.isProduct);
  visit("prologue_bytes", fold.prologueBytes);
  visit("prologue_sums", fold.prologueSums);
  visit("visited", fold.visited);
  visit("list_bytes", fold.listBytes);
  visit("groups", fold.canGroup);
  visit("shares", fold.canShare);
  visit("part", fold.isPart);
  visit("page", fold.page);
  visit("workspace", fold.hasWorkspace);
  visit("most_lazy", fold.mostRescaleBound);
  visit("lazy", fold.rescaleBound);
  visit("counts", fold.counts);
  visit("guard_counts", fold.guardCounts);
}

class NumberWriter {
public:
  explicit NumberWriter(MLIRContext *context) : b(context) {}
  template <typename T> DictionaryAttr write(T &numbers) {
    NamedAttrList list;
    forNumbers(numbers, [&](StringRef name, auto &number) {
      if (Attribute attribute = write(number))
        list.set(name, attribute);
    });
    return list.getDictionary(b.getContext());
  }

private:
  Attribute write(int64_t &number) { return b.getI64IntegerAttr(number); }
  Attribute write(bool &flag) { return b.getBoolAttr(flag); }
  Attribute write(std::string &text) { return b.getStringAttr(text); }
  Attribute write(std::optional<int64_t> &number) { return number ? write(*number) : Attribute(); }
  Attribute write(SmallVector<TileColumns, 2> &list) {
    SmallVector<Attribute> attributes;
    for (TileColumns &columns : list)
      attributes.push_back(write<TileColumns>(columns));
    return b.getArrayAttr(attributes);
  }

  Builder b;
};

class NumberReader {
public:
  /// Returns false if a number is missing or has another type; `wrong` is its name then.
  template <typename T> bool read(Attribute data, T &numbers) {
    auto list = dyn_cast_or_null<DictionaryAttr>(data);
    if (!list)
      return false;
    bool isRead = true;
    forNumbers(numbers, [&](StringRef name, auto &number) {
      if (!isRead || read(list.get(name), number))
        return;
      isRead = false;
      wrong = wrong.empty() ? name : wrong;
    });
    return isRead;
  }
  StringRef wrong;

private:
  bool read(Attribute data, int64_t &number) {
    auto attribute = dyn_cast_or_null<IntegerAttr>(data);
    bool isRight = attribute && attribute.getType().isInteger(64);
    number = isRight ? attribute.getInt() : 0;
    return isRight;
  }
  bool read(Attribute data, bool &flag) {
    auto attribute = dyn_cast_or_null<BoolAttr>(data);
    flag = attribute && attribute.getValue();
    return bool(attribute);
  }
  bool read(Attribute data, std::string &text) {
    auto attribute = dyn_cast_or_null<StringAttr>(data);
    text = attribute ? attribute.getValue().str() : "";
    return bool(attribute);
  }
  bool read(Attribute data, std::optional<int64_t> &number) { return !data || read(data, number.emplace()); }
  bool read(Attribute data, SmallVector<TileColumns, 2> &list) {
    auto attributes = dyn_cast_or_null<ArrayAttr>(data);
    return attributes && llvm::all_of(attributes, [&](Attribute columns) {
             return read<TileColumns>(columns, list.emplace_back(/*columns=*/0));
           });
  }
};
} // namespace

DictionaryAttr moa::writeFold(MLIRContext *context, TileFold fold) { return NumberWriter(context).write(fold); }

static llvm::Expected<TileFold> readFold(onf::FoldOp op, DictionaryAttr data) {
  TileFold fold;
  NumberReader reader;
  if (!reader.read(data, fold))
    return refuse("expects the number '" + reader.wrong + "' in the form 'tiles'");
  if (fold.name != op.getName())
    return refuse("expects tiles of the last fold, '" + op.getName() + "', but got '" + fold.name + "'");
  return fold;
}

//===----------------------------------------------------------------------===//
// The data of other forms
//===----------------------------------------------------------------------===//

static std::vector<std::string> namesOf(onf::ForOp nest) {
  std::vector<std::string> names;
  for (StringRef name : nest.getNames().getAsValueRange<StringAttr>())
    names.push_back(name.str());
  return names;
}

static std::vector<std::string> foldsOf(onf::ForOp nest) {
  std::vector<std::string> names;
  for (auto fold : nest.getBody().getOps<onf::FoldOp>())
    names.push_back(fold.getName().str());
  return names;
}

NestSchedule moa::outerFactors(onf::ForOp nest) { return outerFactors(namesOf(nest), foldsOf(nest)); }

DictionaryAttr moa::writeSchedule(MLIRContext *context, const NestSchedule &schedule, const Twine &text,
                                  StringRef slow) {
  Builder b(context);
  auto write = [&](ArrayRef<AxisSchedule> axes) {
    return b.getArrayAttr(
        llvm::map_to_vector(axes, [&](const AxisSchedule &axis) -> Attribute { return axisAttr(context, axis); }));
  };
  NamedAttrList data;
  data.set("axes", write(schedule.axes));
  data.set("folds", write(schedule.folds));
  data.set("text", b.getStringAttr(text));
  if (!slow.empty())
    data.set("slow", b.getStringAttr(slow));
  return data.getDictionary(context);
}

static llvm::Expected<std::vector<AxisSchedule>> readAxes(ArrayRef<std::string> names, Attribute axes) {
  auto list = dyn_cast_or_null<ArrayAttr>(axes);
  if (!list || list.size() != names.size())
    return refuse("expects the factors of " + Twine(names.size()) + " axes or folds");
  std::vector<AxisSchedule> schedules;
  for (auto [name, axis] : llvm::zip_equal(names, list.getAsRange<onf::AxisAttr>())) {
    AxisSchedule &schedule = schedules.emplace_back(AxisSchedule{name, {}});
    for (auto [k, size] : llvm::enumerate(axis.getSizes()))
      schedule.factors.emplace_back(axis.getResource(k), size);
  }
  return schedules;
}

static llvm::Expected<FixedForm> readFixed(const GpuNest &nest, onf::FormAttr form) {
  FixedForm fixed{form.getName().str(), std::nullopt, form.getReason().str(), "", ""};
  DictionaryAttr data = form.getData();
  if (!data)
    return fixed;
  auto axes = readAxes(nest.axes, data.get("axes")), folds = readAxes(nest.folds, data.get("folds"));
  if (!axes || !folds)
    return llvm::joinErrors(axes.takeError(), folds.takeError());
  fixed.schedule = NestSchedule{std::move(*axes), std::move(*folds), std::nullopt};
  auto text = [&](StringRef key) {
    auto attribute = data.getAs<StringAttr>(key);
    return attribute ? attribute.getValue().str() : std::string();
  };
  fixed.text = text("text");
  fixed.slow = text("slow");
  return fixed;
}

llvm::Expected<GpuNest> moa::readNest(onf::ForOp op, ArrayAttr forms) {
  GpuNest nest;
  nest.axes = namesOf(op);
  nest.folds = foldsOf(op);
  for (const SymExpr &extent : op.getExtents().getAsValueRange<ExprAttr>())
    nest.extents.push_back(extent.getConstant());
  for (auto form : forms.getAsRange<onf::FormAttr>()) {
    if (form.getName() == kTilesForm && form.getData()) {
      auto folds = llvm::to_vector(op.getBody().getOps<onf::FoldOp>());
      if (folds.empty())
        return refuse("expects a fold for the form 'tiles'");
      auto fold = readFold(folds.back(), form.getData());
      if (!fold)
        return fold.takeError();
      nest.fold = std::move(*fold);
    } else if (form.getName() == kTilesForm) {
      nest.why = form.getReason().str();
    } else if (form.getName() != kRowsForm) {
      auto fixed = readFixed(nest, form);
      if (!fixed)
        return fixed.takeError();
      nest.others.push_back(std::move(*fixed));
    }
  }
  return nest;
}

llvm::Expected<std::vector<GpuNest>> moa::readNests(onf::KernelOp kernel) {
  std::vector<GpuNest> nests;
  for (auto op : kernel.getBody().getOps<onf::ForOp>()) {
    auto forms = op->getAttrOfType<ArrayAttr>(onf::kFormsAttr);
    if (!forms || !llvm::all_of(forms, llvm::IsaPred<onf::FormAttr>))
      return refuse("expects a list of them on each nest; run onf-find-forms first");
    auto nest = readNest(op, forms);
    if (!nest)
      return nest.takeError();
    nests.push_back(std::move(*nest));
  }
  return nests;
}
