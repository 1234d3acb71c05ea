//===- ONFEnums.td - machine resources ----------------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_ONF_IR_ONFENUMS_TD
#define MOA_DIALECTS_ONF_IR_ONFENUMS_TD

include "mlir/IR/EnumAttr.td"

def ONF_Resource : I32EnumAttr<"Resource", "machine resource", [
    I32EnumAttrCase<"core", 0>, I32EnumAttrCase<"cache", 1>,
    I32EnumAttrCase<"register_", 2, "register">, I32EnumAttrCase<"lane", 3>,
    I32EnumAttrCase<"sequential", 4>, I32EnumAttrCase<"block", 5>,
    I32EnumAttrCase<"warpgroup", 6>, I32EnumAttrCase<"warp", 7>,
    I32EnumAttrCase<"thread", 8>, I32EnumAttrCase<"stage", 9>,
    I32EnumAttrCase<"shared", 10>]> {
  let cppNamespace = "::moa::onf";
  let genSpecializedAttr = 0;
}
#endif // MOA_DIALECTS_ONF_IR_ONFENUMS_TD
