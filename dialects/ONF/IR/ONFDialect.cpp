//===- ONFDialect.cpp - the onf dialect and its attributes ----------------===//
#include "dialects/ONF/IR/ONFForms.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace moa::onf;

#include "dialects/ONF/IR/ONFDialect.cpp.inc"

namespace {
/// Keeps constants that folding creates inside a nest: a kernel's body may not hold any.
struct KeepConstantsInside : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;
  bool shouldMaterializeInto(Region *region) const final { return isa<moa::onf::ForOp>(region->getParentOp()); }
};
} // namespace
#include "dialects/ONF/IR/ONFEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/ONF/IR/ONFAttrs.cpp.inc"

void ONFDialect::initialize() {
  addInterfaces<KeepConstantsInside>();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/ONF/IR/ONFAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/ONF/IR/ONFOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// #onf.axis
//===----------------------------------------------------------------------===//

Attribute AxisAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> resources, sizes;
  auto factor = [&]() -> ParseResult {
    std::string keyword;
    int64_t size = 0;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&keyword) || parser.parseColon() || parser.parseInteger(size))
      return failure();
    auto resource = symbolizeResource(keyword);
    if (!resource)
      return parser.emitError(loc) << "unknown resource '" << keyword << "'";
    resources.push_back(static_cast<int64_t>(*resource));
    sizes.push_back(size);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, factor))
    return Attribute();
  return parser.getChecked<AxisAttr>(parser.getContext(), resources, sizes);
}

void AxisAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(llvm::zip(getResources(), getSizes()), printer, [&](auto factor) {
    auto [resource, size] = factor;
    printer << stringifyResource(static_cast<Resource>(resource)) << ": " << size;
  });
  printer << '>';
}

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> resources,
                               ArrayRef<int64_t> sizes) {
  if (resources.empty() || resources.size() != sizes.size())
    return emitError() << "expects one size per factor, and a factor (C1)";
  if (sizes.front() != 0)
    return emitError() << "expects size 0, the rest, for the outermost factor "
                          "(C2), but got "
                       << sizes.front();
  for (int64_t size : sizes.drop_front())
    if (size < 1)
      return emitError() << "expects positive sizes for the inner factors (C3), "
                            "but got "
                         << size;
  return success();
}

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t consumer, int64_t producer,
                                   bool, bool, int64_t group, int64_t lazy, bool, bool, int64_t shares) {
  if (consumer < 1 || producer < 1)
    return emitError() << "expects registers per thread of at least 1 (C1), but got " << consumer << " and "
                       << producer;
  if (group < 0)
    return emitError() << "expects a group of at least 0 bytes (C2), but got " << group;
  if (lazy < 0)
    return emitError() << "expects a bound of repairs of at least 0 (C3), but got " << lazy;
  if (shares < 0)
    return emitError() << "expects shares among at least 0 multiprocessors (C4), but got " << shares;
  return success();
}

int64_t AxisAttr::getTile() const {
  int64_t tile = 1;
  for (int64_t size : getSizes().drop_front())
    tile *= size;
  return tile;
}

int64_t AxisAttr::getSize(Resource resource) const {
  int64_t size = 1;
  for (auto [r, s] : llvm::zip(getResources().drop_front(), getSizes().drop_front()))
    if (static_cast<Resource>(r) == resource)
      size *= s;
  return size;
}

//===----------------------------------------------------------------------===//
// #onf.form
//===----------------------------------------------------------------------===//

Attribute FormAttr::parse(AsmParser &parser, Type) {
  std::string form;
  Attribute content;
  if (parser.parseLess() || parser.parseKeywordOrString(&form) || parser.parseComma() ||
      parser.parseAttribute(content) || parser.parseGreater())
    return Attribute();
  return parser.getChecked<FormAttr>(parser.getContext(), form, content);
}

void FormAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printKeywordOrString(getName());
  printer << ", " << getContent() << '>';
}

LogicalResult FormAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef form, Attribute content) {
  if (form.empty())
    return emitError() << "expects the name of a form (C1)";
  auto reason = dyn_cast<StringAttr>(content);
  auto data = dyn_cast<DictionaryAttr>(content);
  if (!data && !(reason && !reason.empty()))
    return emitError() << "expects data or a reason for form '" << form << "' (C2), but got " << content;
  Attribute axes = data ? data.get("axes") : Attribute(), folds = data ? data.get("folds") : Attribute();
  auto areAxes = [](Attribute list) {
    auto array = dyn_cast<ArrayAttr>(list);
    return array && llvm::all_of(array, llvm::IsaPred<AxisAttr>);
  };
  if ((axes || folds) && !(axes && folds && areAxes(axes) && areAxes(folds)))
    return emitError() << "expects 'axes' and 'folds' of #onf.axis in form '" << form << "' (C3)";
  return success();
}

DictionaryAttr FormAttr::getData() const { return dyn_cast<DictionaryAttr>(getContent()); }

StringRef FormAttr::getReason() const {
  auto reason = dyn_cast<StringAttr>(getContent());
  return reason ? reason.getValue() : StringRef();
}
