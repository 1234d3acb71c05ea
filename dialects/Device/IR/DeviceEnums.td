//===- DeviceEnums.td - the places of a fragment's elements -*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICEENUMS_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICEENUMS_TD

include "mlir/IR/EnumAttr.td"

def Device_Place : I32EnumAttr<"Place", "part of a warpgroup", [
    I32EnumAttrCase<"warp", 0>, I32EnumAttrCase<"lane", 1>,
    I32EnumAttrCase<"register_", 2, "register">]> {
  let cppNamespace = "::moa::device";
  let genSpecializedAttr = 0;
}
#endif // MOA_DIALECTS_DEVICE_IR_DEVICEENUMS_TD
