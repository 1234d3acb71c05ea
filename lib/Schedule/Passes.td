//===- Passes.td - passes of dimension lifting --------------*- tablegen -*-===//
#ifndef MOA_SCHEDULE_PASSES_TD
#define MOA_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def LiftPass : Pass<"onf-lift"> {
  let summary = "Factor the axes of nests and folds and bind the factors to a machine";
  let description = [{
    Factors the index of every axis and binds the factors to resources of the machine (strip-mining
    and tiling). For example, with 16 lanes

        onf.for ["h", "i"] in ["H", "N"] { onf.fold "j" in "M" … }

    becomes

        onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>,
            #onf.axis<core: 0, register: 6, lane: 16>] {
          onf.fold "j" in "M" lift <sequential: 0, cache: 128> … }

    The cost model chooses the schedule for the machine, unless it is read from a file. `print`
    writes it to standard output as JSON.

    **Requires** the onf contract. **Establishes** one `#onf.axis` per index of every
    top-level nest and one on every fold directly in it. **Numerics**: reassociates
    folds (rule R4) by blocks, and by parts over cores (split-K). Their boundaries depend on the
    index alone.
    **Cost**: about a hundred evaluations of a formula per fold.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"host\"",
           "host, the name of a known machine, or the path of a description">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "Path of a schedule to use instead of the cost model's">,
    Option<"ranges", "ranges", "bool", "true",
           "Split ranges of folds over cores, rule R4; off for tests">,
    Option<"print", "print", "bool", "false", "Print the schedule as JSON">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect"];
}

def VerifyLiftingPass : Pass<"onf-verify-lifting"> {
  let summary = "Prove that lifted domains are in bijection with the original ones";
  let description = [{
    Proves for every `lift` of a top-level nest and of the folds in it:

    - The guarded mixed-radix digits and the indices correspond one to one, for every extent.
    - Every index of a lifted nest has an axis.
    - Lanes and registers are on the last axis only.
    - Every state of a fold whose range is split has an associative monoid.
    - Only the first fold of a nest is split over cores.
    - On a GPU, warpgroups have the rows of their accumulators. A nest has a pipeline if and only
      if it has warpgroups; then its last fold is staged in shared memory.

    **Requires** the onf contract. **Establishes** the above; changes nothing.
    **Numerics**: exact. **Cost**: an emptiness test of a small integer set per axis.
  }];
}

#endif // MOA_SCHEDULE_PASSES_TD
