//===- Passes.td - passes of the validation ----------------*- tablegen -*-===//
#ifndef MOA_VALIDATION_PASSES_TD
#define MOA_VALIDATION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ValidatePass : Pass<"moa-validate"> {
  let summary = "Prove what one level shows of its kernels by itself";
  let description = [{
    Of every `dnf.kernel`: each index of each access lies inside of its axis (V2 of
    docs/Spec.md, section 10). Of every `onf.kernel`: each address is a multi-index of its
    array and lies inside of it (V2), each element of an output is stored once (V4), and the
    digits of what is lifted are in bijection with its indices (V5). What is not shown is an
    error at its place. With `print` every fact goes to standard output:

        bounds of k: 0 <= h/(H/G) < G on axis 0: by lemma (Lemma 12, Lemma 2)

    Every compilation does this beside comparing each level with the one above it, which
    needs both (V1, V3); the pass is for modules that were written or changed by hand.

    **Requires** the contract of the level. **Establishes** what it proves; changes nothing.
    **Numerics**: exact. **Cost**: about a millisecond per kernel.
  }];
  let options = [Option<"print", "print", "bool", "false", "Print the facts">];
}

#endif // MOA_VALIDATION_PASSES_TD
