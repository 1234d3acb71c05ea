//===- Passes.td - passes on the onf dialect ----------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ONFVerify : Pass<"onf-verify"> {
  let summary = "Check the contract of the operational normal form";
  let description = [{
    **Establishes**, for every `onf.kernel`, K1 to K3 of `moa-verify` and

    - O1: no operation but those of onf, arith and math; array values are the
        parameters and the states of folds.
    - O2: extents use declared symbols only; addresses also the stride symbols
        `<array>.s<axis>` of the array they address.
    - O3: loads read inputs and temporaries, stores write outputs and temporaries, and
        nests at the top are chosen by temporaries.
    - O4: every output and every temporary has exactly one store, whose address is Σ stride·index over
        all its axes, each with the index of one enclosing loop of that axis'
        extent, and no other loop of more than one iteration encloses it. So
        every element is written exactly once. An output may have several such stores, in
        nests that are chosen by one temporary along the same axes of the output, each for
        another value, where the temporary holds these values only: constants, or
        selections among them, stored by a nest without a choice. The one store of a
        temporary may stand in a nest with a choice: elements have values where it ran, and
        are loaded only there.
    - O5: `onf.at` reads a state after its fold.
    - O6: a lifted kernel is lifted throughout: if one top-level nest has a `lift`
        all have.
    - O7: a temporary is loaded in nests behind that which stores it, no others, and
        chooses only such.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

#endif // MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
