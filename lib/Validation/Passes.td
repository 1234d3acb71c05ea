//===- Passes.td - passes of the validation ----------------*- tablegen -*-===//
#ifndef MOA_VALIDATION_PASSES_TD
#define MOA_VALIDATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ValidatePass : Pass<"moa-validate"> {
  let summary = "Prove the facts about a kernel that need one level only";
  let description = [{
    Of every `dnf.kernel` the pass proves that each index of each access lies inside its
    axis (V2 of docs/Spec.md, section 10). Of every `onf.kernel` it proves three facts:

    - each address is a multi-index inside its array (V2);
    - each element of an output is stored once (V4);
    - the digits of every lifted axis and fold are in bijection with its indices (V5).

    A fact that cannot be proved is an error at its place. With `print` every proved fact goes
    to standard output. For example:

        bounds of k: 0 <= h/(H/G) < G on axis 0: by lemma (Lemma 12, Lemma 2)

    Every compilation proves these facts, and also compares each level with the one above it
    (V1, V3). This pass is for modules that were written or changed by hand.

    **Requires** the contract of the level. **Establishes** the proved facts; changes nothing.
    **Numerics**: exact. **Cost**: about a millisecond per kernel.
  }];
  let options = [Option<"print", "print", "bool", "false", "Print the facts">];
}

#endif // MOA_VALIDATION_PASSES_TD
