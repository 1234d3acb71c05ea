//===- Passes.td - passes of the validation ----------------*- tablegen -*-===//
#ifndef MOA_VALIDATION_PASSES_TD
#define MOA_VALIDATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ValidatePass : Pass<"moa-validate"> {
  let summary = "Prove the facts about kernels that one level alone can show";
  let description = [{
    Proves the following facts (docs/Spec.md, section 10). A fact that cannot be proved is an error
    at its location.

    - Of every `dnf.kernel`: each index of each access lies inside its axis (V2).
    - Of every `onf.kernel`: each address is a multi-index of its array and lies inside it (V2);
      each element of an output is stored once (V4); the digits of lifted axes correspond one to one
      to the indices (V5).

    With `print` every fact goes to standard output:

        bounds of k: 0 <= h/(H/G) < G on axis 0: by lemma (Lemma 12, Lemma 2)

    Every compilation proves these facts, and also compares each level with the one above it, which
    needs both levels (V1, V3). This pass is for modules that were written or changed by hand.

    **Requires** the contract of the level. **Establishes** these facts; changes nothing.
    **Numerics**: exact. **Cost**: about a millisecond per kernel.
  }];
  let options = [Option<"print", "print", "bool", "false", "Print the facts">];
}

#endif // MOA_VALIDATION_PASSES_TD
