//===- Passes.td - passes on the onf dialect ----------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ONFVerify : Pass<"onf-verify"> {
  let summary = "Check the contract of the operational normal form";
  let description = [{
    **Establishes**, for every `onf.kernel`, K1 to K3 of `moa-verify` and

    - O1: all operations are of onf, arith or math; array values are the parameters and the states
      of folds.
    - O2: extents and the indices of loads and stores use declared symbols only.
    - O3: loads read inputs and temporaries, stores write outputs and temporaries, and only
      top-level nests have choices, by temporaries.
    - O4: every output and every temporary has exactly one store. The index along each axis is that
      of one enclosing loop of the axis' extent, or 0 on an axis of extent 1. No other loop of more than one iteration encloses it. So every element is written exactly once.
    - O5: `onf.at` reads a state after its fold.
    - O6: a lift is on all top-level nests or on none.
    - O7: a temporary is loaded, and chooses, only in nests after the one that stores it.

    Exceptions to O4 for choices:

    - An output may have several such stores, in nests that are chosen by one temporary, along the
      same axes of the output, each for a different value. The temporary holds only these values: a
      nest without a choice stores constants, or selections among constants.
    - Or these nests are chosen by that temporary and by a second one that refines it, `(p[i] = 1 ?
      … : -1)`. Where the first has a further value, the second selects among values that nests are
      chosen for. Elsewhere it is a constant that no nest is chosen for.
    - The one store of a temporary may be in a nest with a choice. Its elements are then loaded only
      where the nest ran.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

def ONFSplitFolds : Pass<"onf-split-folds"> {
  let summary = "Split the ranges of long folds over few rows into parts (split-K)";
  let description = [{
    Rule R4 of docs/Spec.md, section 6. One nest folds each part of the range and stores its states;
    a later nest merges them. For attention this is known as flash decoding. With L the length of a
    part,

        onf.for ["b", "n"] in ["B", "1"] {
          %m, %t = onf.fold "j" in "M" { … }
          onf.store f(%m, %t), %y[%b, %n] …
        }

    becomes

        onf.for ["b", "part", "n"] in ["B", "(M + L - 1)/L", "1"] {
          %m, %t = onf.fold "j" in "M" { onf.guard(L·part <= j < L·(part + 1)) … }
          onf.store %m, %m_parts[%b, %part, %n] …
          onf.store %t, %t_parts[%b, %part, %n] …
        }
        onf.for ["b", "n"] in ["B", "1"] {
          %m = onf.fold "part" in "(M + L - 1)/L" { m ← m ⊕ m_parts[b, part, n] }
          %t = onf.fold "part" in "(M + L - 1)/L" { t ← t ⊕ (c(m_parts, %m) ⊗ t_parts)[b, part, n] }
          onf.store f(%m, %t), %y[%b, %n] …
        }

    A nest is split if all of these hold:

    - It has one fold, over a range that is unknown or longer than a part.
    - Its rows are known to be few. Rows are the last axis, and the axes along which some element
      that the fold reads is the same for all indices; together they have at most `rows` indices.
      For example, queries are rows, but heads with their own keys are not.
    - It stores no temporary, and no fold over parts reads one.
    - States are f32, f64, 64-bit integers or booleans, with known axes.
    - After the fold there are only stores, loads, and loops over these axes.

    **Merging.** A part's state is rescaled by the repair c of the fold. A part whose references are
    still singular adds nothing. If references of other states have references themselves, one fold
    merges all states, and also rescales the state merged so far. With a guard, parts may be empty.
    If no singular value shows this, as for a mean, a state that tells whether there were elements
    masks such parts. A nest without such a state is not split. Results over an axis of a state
    become nests over the rows and that axis, with one scalar state per element.

    **Requires** the onf contract; no lift and no pieces on the nests that are split.
    **Establishes** the onf contract; temporaries hold one value per row, part and element of a
    state. **Numerics**: reassociates; the boundaries of parts are functions of the fold's index
    alone. **Cost**: linear; the folds over parts have M / L indices.
  }];
  let options = [
    Option<"length", "length", "int64_t", "512", "Indices of a part">,
    Option<"rows", "rows", "int64_t", "64", "Most rows, indices of the last axis, of a nest that is split">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ONFPackRows : Pass<"onf-pack-rows"> {
  let summary = "Compute few rows of many heads with one tile, and split their keys";
  let description = [{
    Heads of a group read the same keys. With H heads in G groups of R = H/G, h = R·g + r. The pass
    adds a version of the nest in which the heads r of a group are the rows, and the old rows n are
    an outer axis. It then splits the keys into parts (`onf-split-folds`). With this, decoding
    (N = 1) reads keys once per group and fills the device.

        onf.for ["b", "h", "n"] in ["B", "H", "N"] {
          … onf.fold "m" in "M" { … %K[%b, ⌊%h / R⌋, %m, %k] … } … onf.store …, %O[%b, %h, %n]
        }

    becomes

        onf.for ["b", "h", "n"] in ["B", "H", "N"] where ["N" > "c"] { … }
        onf.for ["b", "h_group", "n", "part", "h_in_group"] in ["B", "G", "N", …, "H/G"]
            where ["c + 1" > "N"] { … %K[%b, %h_group, %m, %k] … }
        onf.for … where ["c + 1" > "N"] { … onf.store …, %O[%b, R·%h_group + %h_in_group, %n] }

    The new version reads keys once per row n, the old one once per head of a group, and it stores
    the states of all rows. Hence it runs for N ≤ c = 1 + ⌈w·(R − 1) / (R + w − 1)⌉, where w is
    `most`: at most R, and at most w + 1. For example, c is 1, 4, 7 and 12 for R = 1, 4, 8 and 16.
    The number of rows decides, not the batch, so that a row has the same bits alone and in a batch.
    Entries of a batch that share keys are rows, too.

    A nest gets a version if all of these hold:

    - It has one fold, which contracts floats of at most 16 bits, and R4 applies to it. It stores
      outputs only.
    - The keys are those operands that are read along the fold's index and along a contraction or an
      axis of a state. They depend on h only through ⌊h / R⌋, or not at all (R = H). The other
      operands of contractions, the rows, depend on h itself.
    - The number of heads is a multiple of R, by a requirement of the kernel or as an expression.
    - h is the last axis, or keys do not depend on the last axis. The innermost such h is taken.

    The rows n are all axes but h that keys do not depend on. If there are none, or if sizes are
    known, there is only one version.

    A part of M keys has u·(1 + ⌊(l/u)·M / (M + s)⌋) keys, where u is `unit`, l `longest` and s
    `half`. For example, it has 256 keys of 1,024, and 2,048 of 131,072.

    **Requires** the onf contract; no lift on the nest. **Establishes** the onf contract.
    **Numerics**: reassociates; boundaries of parts are functions of M and of the fold's index
    alone. **Cost**: linear.
  }];
  let options = [
    Option<"unit", "unit", "int64_t", "128", "Least number of indices of a part">,
    Option<"longest", "longest", "int64_t", "2048", "Limit of the indices of a part, as the range grows">,
    Option<"half", "half", "int64_t", "8192", "Range at which a part has half as many">,
    Option<"most", "most", "int64_t", "32", "Limit of the rows n for groups of many heads, less 1">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ONFFuseFolds : Pass<"onf-fuse-folds"> {
  let summary = "Fuse the folds of a nest that run over one range";
  let description = [{
    Loop fusion of folds, also called tupling: (⊕/f, ⊗/g) = (⊕×⊗)/⟨f, g⟩ (the banana-split law:
    Meijer, Fokkinga, Paterson, "Functional programming with bananas, lenses, envelopes and barbed
    wire", 1991).

        %s = onf.fold "j" in "M" { … }
        %t = onf.fold "j" in "M" { … }

    becomes

        %s, %t = onf.fold "j" in "M" { … }

    Both folds share their reads, and the loads of both overlap. Two folds are fused if all of these
    hold:

    - Neither reads the other's result.
    - The operands of the second can be computed before the first.
    - No fold of the nest contains a fold (a contraction; tensor cores take them one at a time).
    - A guard, if there is one, is one value for all indices of both.
    - It is not the case that each reads along an axis of the nest that the other does not. Fused,
      such folds would be taken for a matrix product.

    The pass also removes common subexpressions and repeated loads in such nests and their folds,
    also in nests with at most one fold.

    **Requires** the onf contract; lifted nests and folds with pieces stay unchanged.
    **Establishes** the onf contract. **Numerics**: exact; each state takes the same elements in the
    same order. **Cost**: linear in operations; the reads of each two folds of a nest are compared.
  }];
}

#endif // MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
