//===- AbsenceLaws.td - the law of absence that is a rewrite of trees -----===//
//
// Both sides of A2 are trees of operations over variables, so it is declarative. The other laws are
// written in C++: their right sides have one operation per operand or axis, have regions, or depend
// on sharing.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_CONVERSION_MOATODNF_ABSENCELAWS
#define MOA_CONVERSION_MOATODNF_ABSENCELAWS

include "dialects/DNF/IR/DNF.td"
include "mlir/IR/PatternBase.td"

def Conjunction : NativeCodeCall<"conjunction($_builder, $_loc, $0, $1)">;

/// A2: (a where q) where p = a where p ∧ q
def AbsentValue : Pat<
  (DNF_WhereOp $p, (DNF_WhereOp $q, $a)),
  (DNF_WhereOp (Conjunction $p, $q), $a), [], [], (addBenefit 1)>;

/// A2: an absent condition is absence
def AbsentCondition : Pat<
  (DNF_WhereOp (DNF_WhereOp $q, $p), $a),
  (DNF_WhereOp (Conjunction $q, $p), $a), [], [], (addBenefit 1)>;

#endif // MOA_CONVERSION_MOATODNF_ABSENCELAWS
