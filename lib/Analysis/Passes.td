//===- Passes.td - passes of the analyses -------------------*- tablegen -*-===//
#ifndef MOA_ANALYSIS_PASSES_TD
#define MOA_ANALYSIS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeriveIntervalsPass : Pass<"onf-derive-intervals"> {
  let summary = "Project the guard of each fold to index intervals per tile of rows";
  let description = [{
    Computes the intervals of fold indices that a tile of rows needs (visit), and those that
    all rows of the tile need (full). The pass applies to every fold with an `onf.guard` directly
    in a top-level nest. It reads the guard as a predicate on the nest's last index and the fold's
    index. For example, the guard of a causal mask

        onf.fold "j" in "M" { onf.guard %p … }             // p: j ≤ i + (M − N)

    becomes

        onf.fold "j" in "M" pieces [#onf.piece<visit … to (d1 + s1 − s2 + 1, …)
          full true … to (d0 + s1 − s2 + 1, …)>] of (…) { onf.guard %p … }

    **Requires** the onf contract. **Establishes** pieces whose union covers every
    index that is not masked out, with full parts in which nothing is masked out. The guard stays:
    only blocks inside a full part may drop it. Pieces may overlap, so a lowering
    visits the union once. A remark names a fold whose guard bounds nothing.
    **Numerics**: exact. **Cost**: below a millisecond per fold.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::moa::onf::ONFDialect"];
}

def RemarkRecomputationPass : Pass<"onf-remark-recomputation"> {
  let summary = "Report reductions that are computed more than once";
  let description = [{
    Emits a remark for every state whose elements are computed more than once: it is invariant in
    a loop around its fold, or two passes or nests need it. The remark names the user's
    definition, the number of evaluations as a polynomial, and the loops. For example:

        remark: 'KV' is recomputed: each element N times, for every n < N

    The remark becomes a warning with a remedy if a reduction is computed at least 16 times, and
    takes at least 16 times the work of all reductions computed once each. An unknown size counts
    as 4,096.

    **Requires** the onf contract. **Establishes** nothing; changes nothing.
    **Numerics**: exact. **Cost**: linear in the number of operations per state.
  }];
}

def PrintErrorsPass : Pass<"dnf-print-errors"> {
  let summary = "Print a bound on the rounding errors of every result";
  let description = [{
    Prints a forward error analysis of every kernel of the dnf level (docs/Errors.md):

    - the operands of its contractions with their formats;
    - for every result O with the outermost contraction P·V, a bound
      |δO| ≤ E·(|P|·|V|) + absolute. E and absolute are formulas over statistics of the inputs.
      If there is no bound, the reason is printed.

    For example:

        O: E = expm1(0.0156 + …)

    `formats` assigns formats to operands, for example `S.lhs:int8,O.lhs:e4m3`. The formats are
    f64, f32, tf32x3, tf32, bf16, fp16, fp16p and fp16x2 (scaled by a power of 2), bf16x2, int8 and
    e4m3 (a scale per row). An operand without an assignment has the format of every lowering.

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
  let summary = "Attach bounds on rounding errors to kernels with tolerances";
  let description = [{
    Sets the attribute `moa.bounds` on kernels of the dnf level with a result that has a
    component-wise tolerance for every input (`within ε`, without `relative` and `sampled`). The
    attribute is JSON with the bounds of dnf-print-errors for each such result:

    - with the kernel's own formats;
    - with products of inputs in fp16p (f16 times a power of 2) and weighted sums in bf16;
    - likewise with sums of two floats, in fp16x2 and bf16x2;
    - with all contractions in bf16, and in bf16x2.

    onf-adapt-precision reads the attribute.

    **Requires** the dnf contract. **Establishes** the attribute; kernels in f64 have none.
    **Numerics**: exact. **Cost**: as dnf-print-errors.
  }];
}

#endif // MOA_ANALYSIS_PASSES_TD
