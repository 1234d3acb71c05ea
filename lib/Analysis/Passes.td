//===- Passes.td - passes of the analyses -------------------*- tablegen -*-===//
#ifndef MOA_ANALYSIS_PASSES_TD
#define MOA_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeriveIntervalsPass : Pass<"onf-derive-intervals"> {
  let summary = "Derive from the mask of each fold the index intervals that a tile needs";
  let description = [{
    Reads the `onf.guard` of every fold directly in a top-level nest as a predicate on the nest's
    last index and the fold's index. Writes the intervals of fold indices that a tile of rows needs
    (visit), and those that are present for all its rows (full). For a causal mask, for example,
    tiles above the diagonal are skipped and tiles below it need no mask.

        onf.fold "j" in "M" { onf.guard %p … }             // p: j ≤ i + (M − N)

    becomes

        onf.fold "j" in "M" pieces [#onf.piece<visit … to (d1 + s1 − s2 + 1, …)
          full true … to (d0 + s1 − s2 + 1, …)>] of (…) { onf.guard %p … }

    The guard stays: only blocks inside a full part may drop it. Pieces may overlap, so a lowering
    visits their union once. A remark names a fold whose guard bounds nothing.

    **Requires** the onf contract. **Establishes** pieces whose union covers every present index,
    and whose full part is present for every row. **Numerics**: exact. **Cost**: below a millisecond
    per fold.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::moa::onf::ONFDialect"];
}

def RemarkRecomputationPass : Pass<"onf-remark-recomputation"> {
  let summary = "Report reductions that the loops compute again, and how often";
  let description = [{
    Emits a remark for every state whose elements are computed more than once: because a loop around
    its fold does not change it, or because two passes or nests need it. The remark names the user's
    definition, the number of times as a polynomial, and the place.

        remark: 'KV' is recomputed: each element N times, for every n < N

    The remark becomes a warning with a remedy if a reduction is computed at least 16 times, and
    takes at least 16 times the work of all reductions computed once each. An unknown size counts as
    4,096.

    **Requires** the onf contract. **Establishes** nothing; changes nothing. **Numerics**: exact.
    **Cost**: linear in the number of operations per state.
  }];
}

#endif // MOA_ANALYSIS_PASSES_TD
