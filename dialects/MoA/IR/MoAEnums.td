//===- MoAEnums.td - scalar functions and monoids -----------*- tablegen -*-===//
#ifndef MOA_DIALECTS_MOA_IR_MOAENUMS_TD
#define MOA_DIALECTS_MOA_IR_MOAENUMS_TD

include "mlir/IR/EnumAttr.td"

class MoA_Fn<string name, int value> : I32EnumAttrCase<name, value, name>;

/// Scalar functions that extend point-wise. The comments give the operands.
def MoA_ScalarFn : I32EnumAttr<"ScalarFn", "scalar function", [
    // one operand, any type
    MoA_Fn<"id", 0>, MoA_Fn<"neg", 1>, MoA_Fn<"abs", 2>,
    // one operand, float
    MoA_Fn<"exp", 3>, MoA_Fn<"exp2", 4>, MoA_Fn<"log", 5>, MoA_Fn<"log2", 6>,
    MoA_Fn<"sqrt", 7>, MoA_Fn<"rsqrt", 8>, MoA_Fn<"tanh", 9>,
    MoA_Fn<"sin", 10>, MoA_Fn<"cos", 11>, MoA_Fn<"erf", 12>,
    MoA_Fn<"floor", 13>, MoA_Fn<"ceil", 14>,
    // one operand, boolean or integer
    I32EnumAttrCase<"not_", 15, "not">,
    // two operands, numbers
    MoA_Fn<"add", 16>, MoA_Fn<"sub", 17>, MoA_Fn<"mul", 18>,
    MoA_Fn<"div", 19>, MoA_Fn<"mod", 20>,
    MoA_Fn<"min", 21>, MoA_Fn<"max", 22>, MoA_Fn<"pow", 23>,
    // two operands, numbers, boolean result
    MoA_Fn<"eq", 24>, MoA_Fn<"ne", 25>, MoA_Fn<"lt", 26>, MoA_Fn<"le", 27>,
    MoA_Fn<"gt", 28>, MoA_Fn<"ge", 29>,
    // two operands, boolean or integer
    I32EnumAttrCase<"and_", 30, "and">, I32EnumAttrCase<"or_", 31, "or">,
    I32EnumAttrCase<"xor_", 32, "xor">,
    MoA_Fn<"shl", 33>, MoA_Fn<"shr", 34>,
    // select(p, a, b)
    MoA_Fn<"select", 35>,
    // otherwise(a, b), two operands of any type
    MoA_Fn<"otherwise", 36>,
    // two operands, float
    MoA_Fn<"fmod", 37>, MoA_Fn<"atan2", 38>]> {
  let cppNamespace = "::moa";
  let genSpecializedAttr = 0;
}

/// Named monoids; identities and laws are in dialects/MoA/IR/Monoid.h. `user` is a monoid of the
/// specification, named by a symbol attribute of the op.
def MoA_Monoid : I32EnumAttr<"Monoid", "named monoid", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"mul", 1>,
    I32EnumAttrCase<"max", 2>, I32EnumAttrCase<"min", 3>,
    I32EnumAttrCase<"and_", 4, "and">, I32EnumAttrCase<"or_", 5, "or">,
    I32EnumAttrCase<"user", 6>]> {
  let cppNamespace = "::moa";
  let genSpecializedAttr = 0;
}

#endif // MOA_DIALECTS_MOA_IR_MOAENUMS_TD
