//===- Passes.td - passes of the analyses -------------------*- tablegen -*-===//
#ifndef MOA_ANALYSIS_PASSES_TD
#define MOA_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeriveIntervalsPass : Pass<"onf-derive-intervals"> {
  let summary = "Project the guard of each fold to index intervals per tile of rows";
  let description = [{
    For every fold that stands directly in a top-level nest and has an
    `onf.guard`: reads the condition as a predicate on the nest's last index and
    the fold's index, and writes the intervals of fold indices that a tile of
    rows needs (visit) and those that all its rows need (full).

        onf.fold "j" in "M" { onf.guard %p … }             // p: j ≤ i + (M − N)

    becomes

        onf.fold "j" in "M" pieces [#onf.piece<visit … to (d1 + s1 − s2 + 1, …)
          full true … to (d0 + s1 − s2 + 1, …)>] of (…) { onf.guard %p … }

    **Requires** the onf contract. **Establishes** pieces whose union covers every
    present index, and whose full part is present for every row. The guard stays:
    only blocks inside a full part may drop it. Pieces may overlap, so a lowering
    visits the union once. A remark names a fold whose guard bounds nothing.
    **Numerics**: exact. **Cost**: below a millisecond per fold.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::moa::onf::ONFDialect"];
}

def RemarkRecomputationPass : Pass<"onf-remark-recomputation"> {
  let summary = "Say which reductions the loops compute again, and how often";
  let description = [{
    A remark for every state whose elements are computed more than once: because
    a loop around its fold does not change it, or because it is needed in two
    passes or nests. It names the user's definition, how often as a polynomial,
    and where.

        remark: 'KV' is recomputed: each element N times, for every n < N

    The remark becomes a warning with a remedy if a reduction is computed at least 16 times, and takes at least 16 times the
    work of all reductions computed once each. An unknown size counts as 4,096.

    **Requires** the onf contract. **Establishes** nothing; changes nothing.
    **Numerics**: exact. **Cost**: linear in the number of operations per state.
  }];
}

def PrintErrorsPass : Pass<"dnf-print-errors"> {
  let summary = "Print a bound on the rounding errors of every result";
  let description = [{
    Writes to standard output, for every kernel of the dnf level, the operands of its
    contractions with their formats, and for every result O a bound E and an absolute
    one with |δO| ≤ E·(|P|·|V|) + absolute, P·V being its outermost contraction, as
    formulas over statistics of the inputs, or why there is none (docs/Accuracy/Bounds.md).

        O: E = expm1(0.0156 + …)

    `formats` assigns formats to operands, as in `S.lhs:int8,O.lhs:e4m3`; the formats are
    f64, f32, tf32x3, tf32, bf16, fp16, fp16p (with a power of 2), int8 (a scale per row) and e4m3 (a scale per row).
    Without it an operand has the format that every lowering gives it.

    **Requires** the dnf contract. **Establishes** nothing; changes nothing.
    **Numerics**: exact. **Cost**: linear in the number of operations, once for each relation
    between an element and an extreme that does not hold everywhere.
  }];
  let options = [
    Option<"formats", "formats", "std::string", /*default=*/"\"\"",
           "Formats of operands, as in S.lhs:int8,O.lhs:e4m3">,
    Option<"json", "json", "bool", /*default=*/"false", "Write JSON">,
  ];
}

def BoundErrorsPass : Pass<"dnf-bound-errors"> {
  let summary = "Write bounds on rounding errors to kernels that are to keep them";
  let description = [{
    A kernel of the dnf level with a result that has a component-wise tolerance for every input
    (`within ε`, without `relative` and `sampled`) gets the attribute `moa.bounds`: as JSON, for each
    result, the bound of dnf-print-errors with the kernel's own formats, with products of inputs in
    fp16p (f16 times a power of 2) and weighted sums in bf16, and with all contractions in bf16.
    onf-adapt-precision reads it.

    **Requires** the dnf contract. **Establishes** the attribute; kernels in f64 have none.
    **Numerics**: exact. **Cost**: as dnf-print-errors.
  }];
}

#endif // MOA_ANALYSIS_PASSES_TD
