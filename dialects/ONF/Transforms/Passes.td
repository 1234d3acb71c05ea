//===- Passes.td - passes on the onf dialect ----------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def ONFVerify : Pass<"onf-verify"> {
  let summary = "Check the contract of the operational normal form";
  let description = [{
    **Establishes**, for every `onf.kernel`, K1 to K3 of `moa-verify` and

    - O1: no operation but those of onf, arith and math; array values are the
        parameters and the states of folds.
    - O2: extents use declared symbols only; addresses also the stride symbols
        `<array>.s<axis>` of the array they address.
    - O3: loads read inputs and temporaries, stores write outputs and temporaries, and
        nests at the top are chosen by temporaries.
    - O4: every output and every temporary has exactly one store, whose address is Σ stride·index over
        all its axes, each with the index of one enclosing loop of that axis'
        extent, and no other loop of more than one iteration encloses it. So
        every element is written exactly once. An output may have several such stores, in
        nests that are chosen by one temporary along the same axes of the output, each for
        another value, where the temporary holds these values only: constants, or
        selections among them, stored by a nest without a choice. Or they are chosen by it and by another temporary that
        refines it: where it has a further value, selections of values that nests are chosen for, elsewhere a constant
        that none is chosen for, `(p[i] = 1 ? … : -1)`. The one store of a
        temporary may stand in a nest with a choice: elements have values where it ran, and
        are loaded only there.
    - O5: `onf.at` reads a state after its fold.
    - O6: a lifted kernel is lifted throughout: if one top-level nest has a `lift`
        all have.
    - O7: a temporary is loaded in nests behind that which stores it, no others, and
        chooses only such.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

def ONFSplitFolds : Pass<"onf-split-folds"> {
  let summary = "Fold ranges in parts, which a nest of their own stores, where rows are few";
  let description = [{
    Rule R4 of docs/Spec.md, section 6. With L the length of a part

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

    The repair c of a state is that of the fold; a part whose references are still singular adds
    nothing. Where states that others refer to refer to some themselves, all are merged in one fold, which repairs
    what it has so far too. Where no value says that a reference is singular, as for a mean, and the fold has a
    guard, parts without elements are left out by a state that says whether there were any; a nest that has no
    such state is not split. Results over an axis of a state become nests over the rows and that axis, so that there is
    a state without axes for each element. A nest is split whose one fold runs over a range that is not
    known, or longer than a part, where the last axis and those along which elements that the fold reads are the
    same for all indices are known and have at most `rows` indices together (queries, but not heads with keys of their own);
    where no temporary is read or stored, and the states are f32, f64, integers of 64 bits or booleans, their axes are known and what stands
    behind the fold are stores and loops over these axes.

    **Requires** the onf contract; no lift and no pieces on the nests that are split. **Establishes** the
    onf contract; temporaries hold one value per row, part and element of a state.
    **Numerics**: reassociates; the boundaries of parts are functions of the fold's index alone. **Cost**:
    linear; the folds over parts are M / L long.
  }];
  let options = [
    Option<"length", "length", "int64_t", "512", "Indices of a part">,
    Option<"rows", "rows", "int64_t", "64", "The most rows, indices of the last axis, of a nest that is split">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ONFFuseFolds : Pass<"onf-fuse-folds"> {
  let summary = "Fold once over a range that several folds of a nest run over";
  let description = [{
    Tupling, (⊕/f, ⊗/g) = (⊕×⊗)/⟨f, g⟩ (the banana-split law: Meijer, Fokkinga, Paterson, "Functional
    programming with bananas, lenses, envelopes and barbed wire", 1991):

        %s = onf.fold "j" in "M" { … }
        %t = onf.fold "j" in "M" { … }

    becomes

        %s, %t = onf.fold "j" in "M" { … }

    Both folds share their reads, and loads of one do not wait for the other. Two folds are fused if all of these hold:

    - neither reads the other's result;
    - the operands of the second can be computed before the first;
    - no fold of the nest contains a fold (a contraction, which tensor cores take one at a time);
    - a guard, if there is one, is one value for all indices of both;
    - it does not hold that each of them reads along an axis of the nest that the other does not.

    The pass also removes common subexpressions and repeated loads in such nests and their folds, also if a nest has at most one fold.

    **Requires** the onf contract; nests that are lifted and folds with pieces are left as they are. **Establishes** the onf contract.
    **Numerics**: exact; each state takes the same elements in the same order. **Cost**: linear in operations; for each two folds of a nest what they read is
    compared.
  }];
}

#endif // MOA_DIALECTS_ONF_TRANSFORMS_PASSES_TD
