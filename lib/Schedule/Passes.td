//===- Passes.td - passes of dimension lifting --------------*- tablegen -*-===//
#ifndef MOA_SCHEDULE_PASSES_TD
#define MOA_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def LiftPass : Pass<"onf-lift"> {
  let summary = "Tile the axes of nests and folds and bind the factors to a machine";
  let description = [{
    Dimension lifting: every axis is factored (tiled), and its factors are bound to cores,
    registers, lanes and caches. The schedule is the cost model's choice for the machine, or is read
    from a file. With `print` it goes to standard output as JSON. For 16 lanes,

        onf.for ["h", "i"] in ["H", "N"] { onf.fold "j" in "M" … }

    becomes

        onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>,
            #onf.axis<core: 0, register: 6, lane: 16>] {
          onf.fold "j" in "M" lift <sequential: 0, cache: 128> … }

    **Requires** the onf contract. **Establishes** one `#onf.axis` per index of every top-level nest
    and one on every fold directly in it. **Numerics**: reassociates folds (rule R4) by blocks, and
    by parts over cores, whose boundaries depend on the index alone. **Cost**: some hundred
    evaluations of a formula per fold.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"host\"",
           "host, the name of a known machine, or a description's path">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "Path of a schedule to use instead of the cost model's">,
    Option<"ranges", "ranges", "bool", "true",
           "Split ranges of folds over cores, rule R4; off for tests">,
    Option<"print", "print", "bool", "false", "Print the schedule as JSON">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect"];
}

def VerifyLiftingPass : Pass<"onf-verify-lifting"> {
  let summary = "Prove that lifted domains correspond one to one to the original ones";
  let description = [{
    Proves, over the integers and for every extent, that the guarded mixed-radix digits of every
    `lift` correspond one to one to the indices: of a top-level nest, and of the folds in it. Also
    checks that

    - every index of a lifted nest has an axis;
    - lanes and registers are factors of the last axis only;
    - every state of a fold whose range is split has an associative monoid;
    - only the first fold of a nest is split over cores;
    - on a GPU, warpgroups have the rows of their accumulators, a pipeline and a staged fold.

    For example, `#onf.axis<core: 0, lane: 16>` on N indices gives i = 16·c + l with i < N.

    **Requires** the onf contract. **Establishes** these facts; changes nothing. **Numerics**:
    exact. **Cost**: an emptiness test of a small integer set per axis.
  }];
}

#endif // MOA_SCHEDULE_PASSES_TD
