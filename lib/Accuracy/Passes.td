//===- Passes.td - passes that spend accuracy ---------------*- tablegen -*-===//
#ifndef MOA_ACCURACY_PASSES_TD
#define MOA_ACCURACY_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintErrorsPass : Pass<"dnf-print-errors"> {
  let summary = "Print a bound on the rounding errors of every result";
  let description = [{
    Writes to standard output, for every kernel of the dnf level:

    - the operands of its contractions with their formats;
    - for every result O, bounds E and absolute with |δO| ≤ E·(|P|·|V|) + absolute, where P·V is its
      outermost contraction. They are formulas over statistics of the inputs. If there are none, the
      reason is written instead (docs/Accuracy/Bounds.md).

    For example:

        O: E = expm1(0.0156 + …)

    `formats` assigns formats to operands. For example, `S.lhs:int8,O.lhs:e4m3`. The formats are
    f64, f32, tf32x3, tf32, bf16, fp16, fp16p (with a power of 2), int8 (a scale per row) and e4m3
    (a scale per row). The default is the format that every lowering uses.

    **Requires** the dnf contract. **Establishes** nothing; changes nothing. **Numerics**: exact.
    **Cost**: linear in the number of operations, once for each relation between an element and an
    extreme that does not hold everywhere.
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
    A kernel of the dnf level gets the attribute `moa.bounds` if a result has a component-wise
    tolerance for every input (`within ε`, without `relative` and `sampled`). It holds, as JSON and
    for each result, the bound of dnf-print-errors for these formats:

    | key | operands of contractions |
    |---|---|
    | `written` | the kernel's own formats |
    | `halves` | of two inputs: fp16p (f16 times a power of 2); others: bf16 |
    | `split` | the same as sums of two floats |
    | `bf16`, `bf16x2` | all in bf16, or in sums of two bf16 |

    `halves` and `split` are missing if an input is an operand of both kinds of contractions, or if
    both operands of a contraction are computed.

    `onf-adapt-precision` and `onf-check-bounds` read the attribute.

    **Requires** the dnf contract. **Establishes** the attribute; kernels in f64 have none.
    **Numerics**: exact. **Cost**: as dnf-print-errors.
  }];
}

def AdaptPrecisionPass : Pass<"onf-adapt-precision", "::mlir::ModuleOp"> {
  let summary = "Add mixed-precision variants of nests, chosen per head within a tolerance";
  let description = [{
    Adds variants of a nest with fewer bits (*plans*), and code that chooses one per head when the
    kernel runs. A head is one index of the axes before the rows; the rows are the last axis of the
    nest. All results of the nest need a tolerance [Def 25] of one kind: relative and sampled, or
    component-wise for every input.

    Before:

        onf.for ["h", "i"] in ["H", "N"] { … }

    After, with one plan:

        … nests that round operands, compute a sample of rows and store %O_choice …
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 1 { …
          onf.fold "k" in "64" : index { … q_i8 · k_i8 … } … }
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 0 { … unmodified … }

    **Plans.** A score is s(i, j) = Σ_k q(i, k)·v(j, k) of elements of inputs, with at most 256
    terms. A weighted sum adds computed weights times elements of an input. A head takes the first
    plan of this table that keeps the tolerance. Laws are those of docs/Accuracy/Bounds.md.

    | plan | option | inputs | laws | smallest tolerance |
    |---|---|---|---|---|
    | scores in integers of 8 bits, a scale per row | | f32, f16, bf16 | B1, B2 | 2^-9; 2^-20 of inputs of 16 bits and without `halves` |
    | one scale for all rows of a head; softmax-weighted sums in e4m3 | `sums` | f32, f16, bf16 | B1 to B3, B7 | the same |
    | scores and weighted sums in f16 times a power of 2 per head | `halves` | f32 | B4 | 2^-12; 2^-7 for every input if in bf16 |
    | operands as sums of two such floats, three products for one | `halves` | f32 | B6 | 2^-20; 2^-16 if in bf16 |
    | scores and weighted sums in bf16; the only plan | `bf16` | f32, or f32 and bf16 | | 2^-12 |

    bf16 replaces f16 if weights are no shares of a softmax, or if rows have no axis of their own.
    `bf16` is for CPUs with fast dot products of bf16; if that plan does not fit a nest, the nest
    gets the plan of 8 bits.

    **Sampled tolerances.** Nests before the copies

    1. round operands: the step is the largest magnitude / 127. With `sums` and a sample it is found
       from 512 rows, with some room, and a head with an element far beyond does not take the plan;
    2. pick 64 rows per head, and compute them by the unmodified nest and by each plan, split along
       the fold;
    3. compare the results, and store the number of the plan in `O_choice`.

    They run from `fewest` rows and keys on; a key is an index of the fold. With fewer, results are
    those of the unmodified nest, and a GPU launches only the nest that compares sizes (hint `moa.runs`).
    Nests over the same indices that do not depend on each other are fused.

    **Pilot** (`pilot`). 128 rows and 1,024 keys at equal distances are computed first by the
    unmodified nest and by the plan. A head is neither rounded nor sampled if its error there
    exceeds 1.1 ε. The limit is 0.5 ε if the error of its scores exceeds ε.
    Such heads are computed at once, by a copy of the unmodified nest before the sample (value 0 of
    `O_open`). The decision depends on the head alone. The pilot needs one plan of 8 bits,
    keys whose index is used only in loads, and no decisions or table.

    **Slow plans.** In the pipeline of a GPU a plan is left out, with a remark, if

    - its nests would run without tensor cores;
    - rows see only few keys, however many there are;
    - `fewest` is 0, and its tiles take more than nine tenths of the time of the unmodified nest or
      of a later plan.

    With `decisions` or a `table` all plans stay, because their numbers must not depend on a target.

    **After onf-low-rank.** A nest that is the unmodified one of an earlier choice (value 0, with
    `moa.spent`) gets further plans, numbered after the earlier ones. One array then chooses among
    all copies. The nests before the new plans run for heads that the earlier pass has left
    (`O_open`); nests that round an array of several heads run if one of these is left
    (`O_needed`). Results for decisions and estimates cover all plans.

    **Tolerances for every input.** Nothing is sampled. A head takes the first plan of `halves`
    whose bound, an expression of dnf-bound-errors evaluated over magnitudes of the inputs, is at
    most ε (law B5). The decision is −1 if even the bound of the unmodified nest exceeds ε; that
    nest runs then.

    Nests get no plan, with a remark, if their form has none or if results jump where a sum passes
    a number (Def 31).

    **Requires** the onf contract and no lifted nests. **Establishes** the onf contract; `moa.spent`
    (the plans of each result), `moa.laws`, and `moa.decisions` (which results are decisions,
    estimates or bounds); removes `moa.bounds` and `moa.stored`. Sums with factors of bf16 get
    `moa.alone`, whether a sum is computed only once in the kernel before the pass, so that copies
    of a sum add up as the original does. **Numerics**: within the tolerances, with the confidence
    of Def 31 or for every input. **Cost**: linear in the size of a nest times the number of plans;
    with one plan the result has four copies of the nest.
  }];
  let options = [
    Option<"decisions", "decisions", "bool", "false",
           "Add two results per nest: the plan of each head, and the estimated errors">,
    Option<"check", "check", "bool", "false",
           "Estimate the plans of the table too, and replace those that exceed the tolerance">,
    Option<"sums", "sums", "bool", "false",
           "With 8 bits, weights and values of sums in e4m3 too">,
    Option<"halves", "halves", "bool", "false",
           "For inputs of f32, add plans of 16-bit floats and of sums of two 16-bit floats">,
    Option<"bf16", "bf16", "bool", "false",
           "For inputs of f32, one plan in bf16 instead of 8 bits for scores alone">,
    Option<"table", "table", "std::string", "\"\"",
           "Given plans, `f.O=1,0;f.P=2`: for the nest that stores O in kernel f, by head in row-major order">,
    Option<"fewest", "fewest", "int64_t", "256",
           "Fewest rows and keys for which plans are tried; 0: where rounding and the sample cost less than half of the possible saving">,
    Option<"pilot", "pilot", "int64_t", "-1",
           "Try few rows and keys first if a head has more multiply-adds; -1: if `fewest` is 0 and the pilot is cheap">,
    Option<"warns", "warns", "bool", "false",
           "If no nest changes, emit the first reason as a warning">,
    Option<"workPerByte8", "work-per-byte-8", "int64_t", "470",
           "For 8 bits on a GPU, multiply-adds that take as long as moving one byte before the nest; used if `fewest` is 0">,
    Option<"workPerByte16", "work-per-byte-16", "int64_t", "14", "The same for 16 bits">,
    Option<"workPerByteSplit", "work-per-byte-split", "int64_t", "21", "The same for sums of two floats">,
    ListOption<"disable", "disable", "std::string",
               "Laws of docs/Accuracy/Bounds.md, B1 to B7, not to apply. Without B1, B3, B4 or B7, plans do without means of keys, means of values, powers of 2 or lines for exponentials. Without B2, B5 or B6, plans of 8 bits, bounds or two floats are left out">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def LowRankPass : Pass<"onf-low-rank", "::mlir::ModuleOp"> {
  let summary = "Fold over clusters of keys instead of keys, within a tolerance";
  let description = [{
    Adds a variant (*plan*) of a nest whose fold over keys j runs over clusters c of similar keys,
    and code that decides per head whether to take it. A head is one index of the axes before the
    rows. Laws are those of docs/Accuracy/LowRank.md.

    Before:

        onf.for ["h", "i"] in ["H", "N"] { … onf.fold "j" in "M" { … } … }

    After:

        … nests that find clusters, compute a sample of rows and store %O_choice …
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 1 { …
          onf.fold "j" in "M/16 + M/32 + 64" { onf.guard j < %O_all[h] … } … }
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 0 { … unmodified … }

    In the plan (laws F2 and F9)

    - one key κ_c per cluster replaces the keys;
    - the number of members n_c is a factor of the weights of all sums;
    - means over the members replace the elements of arrays along j;
    - extremes are those over the κ_c.

    Keys far from all clusters (outliers) come after the clusters, each as a cluster of its own.

    The nests before the copies run from `fewest` rows and keys on, and for a head only while it is
    promising. They

    1. compare 4,096 keys with 128, which gives the number of clusters; the head stays unmodified if
       it is too large;
    2. choose the κ_c: a third by a hash, the others with a probability that grows with the fourth
       power of the distance to these, up to a limit;
    3. divide each key among the clusters near it, list the outliers, and sum up; the head stays
       unmodified if there are too many outliers;
    4. compute a sample of 64 rows both ways, and compare.

    onf-adapt-precision may follow; it gives the unmodified nest further plans.

    **Requires** the onf contract, no lifted nests, and that

    - all results of the nest have a tolerance that is relative and sampled [Def 25];
    - the nest has one fold, without a mask, and one score Σ_k q(i, k)·v(j, k);
    - terms are functions of the score, perhaps times elements of inputs along j (so no bias);
    - no result jumps where a score passes a number (Def 31).

    A remark gives the reason for each other nest. **Establishes** the onf contract; `moa.spent`,
    `moa.laws` and `moa.decisions` as onf-adapt-precision, and `moa.stored`, the number of
    temporaries before the pass. **Numerics**: within the tolerances, with the confidence of Def 31.
    **Cost**: linear in the size of a nest; the result has four copies of it.
  }];
  let options = [
    Option<"decisions", "decisions", "bool", "false",
           "Add two results per nest: the plan of each head, and the estimated errors">,
    Option<"check", "check", "bool", "false",
           "Estimate the plans of the table too, and replace those that exceed the tolerance">,
    Option<"table", "table", "std::string", "\"\"",
           "Given plans, `f.O=1,0;f.P=2`: for the nest that stores O in kernel f, by head in row-major order">,
    Option<"fewest", "fewest", "int64_t", "32768", "Fewest rows and keys for which clusters are tried">,
    Option<"shared", "shared", "bool", "false",
           "Larger numbers of the table are plans of a later onf-adapt-precision, which checks them">,
    Option<"warns", "warns", "bool", "false",
           "If no nest changes, emit the first reason as a warning">,
    ListOption<"disable", "disable", "std::string",
               "Laws of docs/Accuracy/LowRank.md not to apply: F2 or F9; without either there is no plan">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def CheckBoundsPass : Pass<"onf-check-bounds", "::mlir::ModuleOp"> {
  let summary = "Evaluate error bounds for tolerances that hold for every input";
  let description = [{
    Adds nests that compute a bound on the errors of each result whose tolerance holds for every
    input [Def 25]. They come before all others: some find magnitudes of the inputs, and one
    evaluates the expressions of dnf-bound-errors for the unmodified kernel, rounding up (law B5 of
    docs/Accuracy/Bounds.md). The bound has one element per head. The axes of a head are the leading
    axes that all nests which store the result share:

        onf.for ["h0"] in ["H"] { … onf.store %bound, %O_shown[%h0] {strides = ["O_shown.s0"]} … }

    The bound is a temporary, which `moa.shown` on the kernel names. An entry point on a CPU
    compares it with the tolerance; on a GPU `NAME_shown` does, which also launches these nests.

    The bound is ∞ if a condition fails, or if a magnitude is infinite or NaN. It is always ∞, with
    a warning, if no bound is known or the tolerance is relative; with `only-known` such results get
    the reason and no bound.

    **Requires** the onf contract, no lifted nests, and `moa.bounds`, which the pass removes.
    **Establishes** the onf contract. A plan of onf-adapt-precision is taken for such results only
    if its own bound, which is at least that of the unmodified nest, keeps the tolerance.
    **Numerics**: results do not change. **Cost**: one pass over each input that the bound depends
    on.
  }];
  let options = [
    Option<"onlyKnown", "only-known", "bool", "false",
           "Compute no bound for results that never have one; entry points on a GPU report these at once">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // MOA_ACCURACY_PASSES_TD
