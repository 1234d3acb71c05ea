//===- AbsenceLaws.td - the law of absence that is a rewrite of trees -----===//
//
// Both sides of A2 are trees of operations over variables, so that it is declared. The
// other laws are written in C++: their right sides have as many operations as an
// operator has operands or axes, have regions, or ask what is shared.
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

/// A2: a condition that is absent is absence
def AbsentCondition : Pat<
  (DNF_WhereOp (DNF_WhereOp $q, $p), $a),
  (DNF_WhereOp (Conjunction $q, $p), $a), [], [], (addBenefit 1)>;

#endif // MOA_CONVERSION_MOATODNF_ABSENCELAWS
