//===- Passes.td - passes on the moa dialect ----------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_MOA_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_MOA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def MoAVerify : Pass<"moa-verify"> {
  let summary = "Check the contract of the moa level";
  let description = [{
    **Establishes**, for every `moa.kernel`:

    - K1: names of symbols, parameters and results are distinct.
    - K2: the extents of parameters and results use declared symbols only.
    - K3: every constraint compares two expressions over declared symbols.
    - M1: the body holds only operators of the algebra.
    - M2: the extents of every value, and the expressions of `moa.extent`, `moa.iota`, `moa.slice`
      and `moa.rotate`, use declared symbols only.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

#endif // MOA_DIALECTS_MOA_TRANSFORMS_PASSES_TD
