//===- Passes.td - passes on the dnf dialect ----------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DNF_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_DNF_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DNFVerify : Pass<"dnf-verify"> {
  let summary = "Check the contract of the denotational normal form";
  let description = [{
    **Establishes**, for every `dnf.kernel`, K1 to K3 of `moa-verify` and

    - D1: all operations are of dnf, arith or math, and none results in an array: only inputs are
      indexed.
    - D2: there is no `dnf.where`, `dnf.join` or `dnf.otherwise`: absence restricts only reductions
      and outputs.
    - D3: a let is present everywhere; its yield has no condition.
    - D4: extents use declared symbols only.
    - D5: every result is defined, over the extents of its type.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

#endif // MOA_DIALECTS_DNF_TRANSFORMS_PASSES_TD
