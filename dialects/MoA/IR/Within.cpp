//===- Within.cpp - the tolerances of results -----------------------------===//
#include "dialects/MoA/IR/MoA.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace moa;

Attribute WithinAttr::parse(AsmParser &parser, Type) {
  double epsilon = 0;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseFloat(epsilon))
    return Attribute();
  bool relative = false, sampled = false;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef word;
    loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return Attribute();
    bool isRelative = word == kRelativeWord;
    bool isNew = isRelative ? !relative && !sampled : word == kSampledWord && !sampled;
    if (!isNew)
      return parser.emitError(loc, "expects 'relative', 'sampled' or both in this order, but got '") << word << "'",
             Attribute();
    (isRelative ? relative : sampled) = true;
  }
  if (parser.parseGreater())
    return Attribute();
  return parser.getChecked<WithinAttr>(loc, parser.getContext(), llvm::APFloat(epsilon), relative, sampled);
}

void WithinAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printFloat(getEpsilon());
  if (getRelative())
    printer << ", " << kRelativeWord;
  if (getSampled())
    printer << ", " << kSampledWord;
  printer << '>';
}

LogicalResult WithinAttr::verify(function_ref<InFlightDiagnostic()> emitError, llvm::APFloat epsilon, bool relative,
                                 bool sampled) {
  if (!isEpsilon(epsilon.convertToDouble()))
    return emitError() << "expects a tolerance that is positive and finite (C1), but got " << epsilon.convertToDouble();
  if (sampled && !relative)
    return emitError() << "expects 'relative' before 'sampled' (C2), but got 'sampled' alone";
  return success();
}

WithinAttr WithinAttr::get(MLIRContext *context, const Tolerance &tolerance) {
  return get(context, llvm::APFloat(tolerance.epsilon), tolerance.isRelative, tolerance.isSampled);
}

Tolerance WithinAttr::getTolerance() const { return {getEpsilon().convertToDouble(), getRelative(), getSampled()}; }

WithinAttr moa::getWithin(Operation *kernel, unsigned result) {
  auto within = kernel->getAttrOfType<ArrayAttr>("within");
  return within && result < within.size() ? dyn_cast<WithinAttr>(within[result]) : WithinAttr();
}

LogicalResult moa::verifyWithin(Operation *kernel, StringRef rule) {
  auto within = kernel->getAttrOfType<ArrayAttr>("within");
  if (!within)
    return success();
  auto types = kernel->getAttrOfType<ArrayAttr>("result_types");
  if (within.size() != types.size())
    return kernel->emitOpError("expects one tolerance or unit per result (")
           << rule << "), but got " << within.size() << " for " << types.size();
  for (auto [entry, type] : llvm::zip(within, types.getAsValueRange<TypeAttr>())) {
    if (!isa<WithinAttr, UnitAttr>(entry))
      return kernel->emitOpError("expects #moa.within or unit as a tolerance (") << rule << "), but got " << entry;
    if (isa<WithinAttr>(entry) && !isa<FloatType>(cast<ArrayType>(type).getElementType()))
      return kernel->emitOpError("expects tolerances of floats only (") << rule << "), but got one of " << type;
  }
  return success();
}
