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
    for each result, the bound of dnf-print-errors in three variants:

    - the kernel's own formats;
    - products of inputs in fp16p (f16 times a power of 2), and weighted sums in bf16;
    - all contractions in bf16.

    `onf-adapt-precision` reads the attribute.

    **Requires** the dnf contract. **Establishes** the attribute; kernels in f64 have none.
    **Numerics**: exact. **Cost**: as dnf-print-errors.
  }];
}

def AdaptPrecisionPass : Pass<"onf-adapt-precision", "::mlir::ModuleOp"> {
  let summary = "Compute contractions in fewer bits where a result allows an error and it is met";
  let description = [{
    In a nest whose results all have a tolerance that is relative and sampled [Def 25], over
    axes of which the rows, its last axis, are one: the sums s(i, j) = Σ_k q(i, k)·v(j, k) of
    elements of inputs, at most 256 of them, may be computed in integers of 8 bits, and with the
    option `sums` what weighs elements of inputs by a softmax of them in e4m3. With `halves` there
    are further plans for inputs of f32: scores and sums multiply f16, inputs times a power of 2 for
    each head (law B4), or bf16 where weights are no shares or rows have no axis of their own; and behind it one
    whose operands are sums of two such floats each, with three products in place of one (law B6).
    Plans that a tolerance is too small for are not written: 8 bits below 2^-9 (2^-20 of inputs of 16 bits, and without `halves`), 16 below 2^-12, and sums of two
    below 2^-20, of bf16 2^-16. Of tolerances that hold for every input those of bf16 below 2^-7.
    In the pipeline of a GPU plans are left out whose nests, written into a copy of the kernel, would run without tensor
    cores, and, with `fewest` 0, whose tiles take more than nine tenths of the time of those of the nest as it is
    written, or of a plan behind it, or whose rows see few indices of a fold, however many there are; not with `decisions` or a `table`, which number them.
    The nest is written once more,

        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 1 { …
          onf.fold "k" in "64" : index { … q_i8 · k_i8 … } … }
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 0 { … as it was … }

    and each index of the axes in front of the rows takes the first plan whose results are
    near enough to those of the nest as it was, on 64 rows. In front of both stand the nests that
    round operands (integers with the largest magnitude / 127 as the step, of one row, or with `sums` of all
    rows that share the other indices where rows are an axis of their own; keys less a vector near
    their mean; values, where it is large, less theirs: laws B1 to B3 of docs/Accuracy/Bounds.md; with `sums` and a sample
    the largest magnitude is that of some rows, with room for others, and an index with an element that is far beyond
    it does not take the plan), pick the
    rows of the sample, compute it by every plan in parts of 2,048 indices of the fold, compare, and decide; those that run over
    the same and do not need one another are one. They run where there are `fewest` rows and
    indices of the fold or more; elsewhere the results are those of the nest as it was, and on a GPU nothing
    else is launched but what says so (the hint `moa.runs` on nests).

    Of a long nest a pilot comes first (`pilot`): 128 rows and 1,024 keys at equal distances, as it is written and by
    the plan, with its means and scales. An index of the axes in front of the rows that is not within 1.1 times the tolerance there, or
    within half of it where scores are off by more than the tolerance, is not rounded or
    sampled; the nest stands once more in front of all that, for these (value 0 of `O_open`), so that they wait for nothing else. Each decides for itself, and what sizes say is of one index, so that results do not depend on what
    stands beside it. Only of nests with one plan, relative tolerances, and keys whose index stands in loads alone, and not with decisions.

    A nest that a pass before has left as it is written where none of its own plans is taken (value 0 of a choice over the axes in
    front of the rows, with `moa.spent`) gets these plans too, numbered behind the earlier ones. All copies are then chosen by one
    array, which has the earlier decision where that is not 0; the nests in front of the new plans run at the indices that are left
    (`O_open`), those that round an array which several of them share where one of these is (`O_needed`); results for decisions and
    estimates become those of all plans. The pass says nothing of nests that passes before have added.

    With `bf16`, which is for CPUs that sum up products of bf16 at twice the speed of f32's or more, nests whose inputs are of f32, or of f32 and
    bf16, have one plan alone: scores and sums multiply bf16. Nests that it does not fit have that of 8 bits, if they can.

    Where all results of a nest have a component-wise tolerance that holds for every input, nothing is
    sampled. With `halves` there are a plan of f16 or bf16 and one of sums of two of them, and an index takes the first
    one of which a bound on its errors is small enough: nests find magnitudes of the inputs, and one evaluates the expressions of
    dnf-bound-errors, never below their value (law B5). The decision is −1 where the bound of the nest as
    it was is not, which then runs: nothing shows that its results are near enough.

    **Requires** the onf contract and that nothing is lifted. **Establishes** it; `moa.spent`
    on the kernel says per result what may be computed how, and `moa.decisions` which
    results are decisions and estimates, or bounds. Sums with factors of bf16 have `moa.alone`, which says whether anything
    computed them again before there were copies, so that copies are added up as the nest is. Kernels without a tolerance do not change, nor do
    nests of which a remark says why not: of which a sample says little, as their results jump where a sum passes a
    number (Def 31), or whose form no plan has. **Numerics**: within the tolerances, with
    the confidence of Def 31 of docs/Accuracy/Bounds.md or for every input. **Cost**: linear in the size of a nest, times
    the plans; the code of a nest is in the result four times for one plan.
  }];
  let options = [
    Option<"decisions", "decisions", "bool", "false",
           "Two further results: the plan of each index, and what was estimated of it">,
    Option<"check", "check", "bool", "false",
           "Estimate the plans of the table too, and fall back from those that are too far off">,
    Option<"sums", "sums", "bool", "false",
           "Weights and values of sums in e4m3 too, in the same plan">,
    Option<"halves", "halves", "bool", "false",
           "Of inputs in f32 further plans, whose contractions multiply floats of 16 bits, or sums of two such">,
    Option<"bf16", "bf16", "bool", "false",
           "Of inputs in f32 one plan, whose contractions multiply bf16, in place of 8 bits for scores alone">,
    Option<"table", "table", "std::string", "\"\"",
           "Plans instead of estimates, `f.O=1,0;f.P=2`: of the nest that stores O of the kernel f, by index in row-major order">,
    Option<"fewest", "fewest", "int64_t", "256",
           "With fewer rows or keys nothing is tried; 0: where rounding and the sample take less than half of what may be saved, on a GPU or, without `sums` or with `bf16`, on a CPU">,
    Option<"pilot", "pilot", "int64_t", "-1",
           "Few rows and keys are tried first where an index in front of the rows has more multiply-adds; -1: where `fewest` is 0 and that takes a sixtieth of the time of 16 such">,
    Option<"warns", "warns", "bool", "false",
           "Where no nest is changed the first remark that says why is a warning">,
    Option<"workPerByte8", "work-per-byte-8", "int64_t", "470",
           "Of plans of 8 bits on a GPU, multiply-adds of the nest that take as long as moving a byte in front of it; where `fewest` is 0">,
    Option<"workPerByte16", "work-per-byte-16", "int64_t", "14", "The same of plans of 16 bits">,
    Option<"workPerByteSplit", "work-per-byte-split", "int64_t", "21", "The same of sums of two floats">,
    ListOption<"disable", "disable", "std::string",
               "Laws of docs/Accuracy/Bounds.md, B1 to B7, that are not applied: plans do without the mean of keys (B1), that of values (B3), powers of 2 (B4) and lines for exponentials (B7), and those of 8-bit integers (B2), of bounds (B5) and of two floats (B6) are left out">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def LowRankPass : Pass<"onf-low-rank", "::mlir::ModuleOp"> {
  let summary = "Let few keys stand for many where a result allows an error and it is met";
  let description = [{
    In a nest whose results all have a tolerance that is relative and sampled [Def 25], and whose
    one fold over keys j has terms g(i, Σ_k q(i, k)·v(j, k)), or the products of such with elements of inputs along j,
    the fold may run over classes c of keys that are near each other: with a key κ_c of each in place of the keys,
    the number of its members n_c as a factor of the weights in all sums, and the means of what stands along j
    in place of that (laws F2 and F9 of docs/Accuracy/LowRank.md). Extremes are those over the κ_c. The nest is written
    once more,

        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 1 { …
          onf.fold "j" in "M/16 + M/32 + 64" { onf.guard j < %O_all[h] … } … }
        onf.for ["h", "i"] in ["H", "N"] chosen by %O_choice [0] is 0 { … as it was … }

    and each index of the axes in front of the rows takes it if the sample of 64 rows says that its
    results are near enough to those of the nest as it was. In front of both stand the nests that
    compare 4,096 keys with 128, which says how many classes there are; where that is few enough, they choose
    the κ_c (a third of them by a hash, the others with a probability that grows with the fourth power of the distance to
    those, up to a distance), share keys out among the near ones, sum up, and compute the sample. Keys far from all
    classes stand behind these, each as its own. All of it runs where rows and
    keys are `fewest` or more, and at an index only as long as it is promising: enough classes, few keys far from all of them.

    onf-adapt-precision may follow, and gives the nest as it was plans of its own.

    **Requires** the onf contract and that nothing is lifted. **Establishes** it, with `moa.spent` and
    `moa.decisions` as onf-adapt-precision, and `moa.stored`, the number of temporaries before, which that removes. Masks and biases tell keys apart by more than their
    products: such nests do not change, nor do those whose results jump where a score passes a number (Def 31) nor kernels
    without a tolerance; a remark says why. **Numerics**: within the tolerances, with the confidence of Def 31 of docs/Accuracy/Bounds.md. **Cost**: linear in
    the size of a nest; its code is in the result four times.
  }];
  let options = [
    Option<"decisions", "decisions", "bool", "false",
           "Two further results: the plan of each index, and what was estimated of it">,
    Option<"check", "check", "bool", "false",
           "Estimate the plans of the table too, and fall back from those that are too far off">,
    Option<"table", "table", "std::string", "\"\"",
           "Plans instead of estimates, `f.O=1,0;f.P=2`: of the nest that stores O of the kernel f, by index in row-major order">,
    Option<"fewest", "fewest", "int64_t", "32768", "With fewer rows or keys nothing is tried">,
    Option<"shared", "shared", "bool", "false",
           "Numbers of the table beyond the plan of this pass are those of onf-adapt-precision behind it, which checks them">,
    Option<"warns", "warns", "bool", "false",
           "Where no nest is changed the first remark that says why is a warning">,
    ListOption<"disable", "disable", "std::string",
               "Laws of docs/Accuracy/LowRank.md that are not applied: classes and shares of them, F2 and F9, without either of which there is no plan">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def CheckBoundsPass : Pass<"onf-check-bounds", "::mlir::ModuleOp"> {
  let summary = "Evaluate the bounds that tolerances for every input ask for";
  let description = [{
    For each result with a tolerance that holds for every input [Def 25], nests in front of all others find the magnitudes of the
    inputs that the bound on its errors needs, and one evaluates the expressions of dnf-bound-errors for the kernel as it is
    written, never below their value (law B5 of docs/Accuracy/Bounds.md), at each index of those axes of the result that every nest
    which stores it has in front of its rows:

        onf.for ["h0"] in ["H"] { … onf.store %bound, %O_shown[%h0] {strides = ["O_shown.s0"]} … }

    The bound is a temporary, and `moa.shown` on the kernel says which: an entry point on a CPU compares it with the
    tolerance, and so does `NAME_shown` on a GPU, where what only finds it is launched by that. It is ∞ where a condition fails, or a magnitude is infinite or NaN; and always, with a warning that says why, where
    nothing is known of the errors or the tolerance is relative (with `only-known` they have the reason, and no bound).

    **Requires** the onf contract, that nothing is lifted, and `moa.bounds`, which it removes. **Establishes** the contract. A plan of
    onf-adapt-precision is taken for such results where its bound, which is no less, is small enough. **Numerics**: exact.
    **Cost**: one pass over each input that the bound depends on.
  }];
  let options = [
    Option<"onlyKnown", "only-known", "bool", "false",
           "No bounds of results of which nothing is shown whatever inputs are: of these an entry point on a GPU says so at once">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

#endif // MOA_ACCURACY_PASSES_TD
