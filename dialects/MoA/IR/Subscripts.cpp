//===- Subscripts.cpp - source text of subscripts and reductions ----------===//
#include "dialects/MoA/IR/Subscripts.h"

using namespace mlir;
using namespace moa;

/// Returns the metadata [indices, names] of a location, or null.
static ArrayAttr entriesOf(Location place) {
  if (auto named = dyn_cast<NameLoc>(place))
    return entriesOf(named.getChildLoc());
  auto fused = dyn_cast<FusedLoc>(place);
  auto entries = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  return entries && entries.size() == 2 && isa<ArrayAttr>(entries[0]) && isa<ArrayAttr>(entries[1]) ? entries
                                                                                                    : ArrayAttr();
}

Location moa::withoutSubscripts(Location place) {
  if (!entriesOf(place))
    return place;
  if (auto named = dyn_cast<NameLoc>(place))
    return NameLoc::get(named.getName(), withoutSubscripts(named.getChildLoc()));
  return cast<FusedLoc>(place).getLocations().front();
}

Location moa::getBarePlace(Location place) {
  Location bare = withoutSubscripts(place);
  auto named = dyn_cast<NameLoc>(bare);
  return named ? named.getChildLoc() : bare;
}

Location moa::withSubscripts(Location place, ArrayRef<LocationAttr> subscripts, ArrayRef<StringRef> names) {
  if (auto named = dyn_cast<NameLoc>(place))
    return NameLoc::get(named.getName(), withSubscripts(named.getChildLoc(), subscripts, names));
  MLIRContext *context = place->getContext();
  SmallVector<Attribute> indices, axes;
  for (LocationAttr subscript : subscripts)
    indices.push_back(subscript ? Attribute(subscript) : UnitAttr::get(context));
  for (StringRef name : names)
    axes.push_back(StringAttr::get(context, name));
  auto entries = ArrayAttr::get(context, {ArrayAttr::get(context, indices), ArrayAttr::get(context, axes)});
  return FusedLoc::get({withoutSubscripts(place)}, entries, context);
}

SmallVector<LocationAttr> moa::getSubscripts(Location place) {
  SmallVector<LocationAttr> result;
  if (ArrayAttr entries = entriesOf(place))
    for (Attribute entry : cast<ArrayAttr>(entries[0]))
      result.push_back(dyn_cast<LocationAttr>(entry));
  return result;
}

SmallVector<StringRef> moa::getAxisNames(Location place) {
  SmallVector<StringRef> result;
  if (ArrayAttr entries = entriesOf(place))
    for (Attribute entry : cast<ArrayAttr>(entries[1]))
      result.push_back(isa<StringAttr>(entry) ? cast<StringAttr>(entry).getValue() : "");
  return result;
}

Location moa::withText(Location place, StringRef text) {
  MLIRContext *context = place->getContext();
  return FusedLoc::get({place}, StringAttr::get(context, text), context);
}

StringRef moa::getText(Location place) {
  auto fused = dyn_cast<FusedLoc>(place);
  auto text = fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : StringAttr();
  return text ? text.getValue() : "";
}

LocationAttr moa::makeSourceIndex(MLIRContext *context, StringRef text, Location place) {
  return NameLoc::get(StringAttr::get(context, text), place);
}

LocationAttr moa::reachedFrom(LocationAttr written, LocationAttr from) {
  SourceIndex here = readSourceIndex(written), there = readSourceIndex(from);
  // Keeps one step only: longer chains would grow with the program.
  Location caller = makeSourceIndex(written.getContext(), there.text, there.place);
  return makeSourceIndex(written.getContext(), here.text, CallSiteLoc::get(here.place, caller));
}

SourceIndex moa::readSourceIndex(LocationAttr written) {
  StringRef text;
  Location place = written;
  if (auto named = dyn_cast<NameLoc>(written))
    text = named.getName(), place = named.getChildLoc();
  if (auto step = dyn_cast<CallSiteLoc>(place))
    return {text, step.getCallee(), step.getCaller()};
  return {text, place, {}};
}
