//===- ONFForms.td - the forms of GPU nests -----------------*- tablegen -*-===//
//
// An attribute of its own file, because few sources need it.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_ONFFORMS_TD
#define MOA_DIALECTS_ONF_IR_ONFFORMS_TD

include "dialects/ONF/IR/ONFBase.td"

def ONF_FormAttr : AttrDef<ONF_Dialect, "Form"> {
  let mnemonic = "form";
  let summary = "A way to run a nest on a GPU: its data, or the reason why the nest has no such form";
  let description = [{
    `onf-find-forms` writes a list of them, `moa.forms`, on every nest at the top level of a kernel,
    in order of preference. A form that applies has the data that a schedule needs. Another form has
    a reason.

        #onf.form<tiles, "the nest has 0 folds, where tiles take one">
        #onf.form<lanes, {axes = [#onf.axis<block: 0, warp: 4, lane: 4>],
                          folds = [#onf.axis<sequential: 0, lane: 8, register: 8>],
                          text = "8 lanes per row, runs of 8"}>

    A form whose factors the nest alone determines has these keys:

    - `axes`, `folds`: the factors of the nest's axes and folds.
    - `text`: the same in words.
    - `slow`: the distribution of a row in words, if tensor cores would be faster.

    The data of `tiles` are the numbers that the cost model reads (`TileFold` of
    lib/Schedule/GpuSchedule.h), and the name of the fold whose tiles the kernel contracts. `rows`
    has no data.

    Constraints: a form has a name (C1), and a dictionary or a reason (C2); `axes` and `folds` stand
    together and hold `#onf.axis` (C3).
  }];
  let parameters = (ins StringRefParameter<>:$name, "::mlir::Attribute":$content);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the data; null if the form does not apply.
    ::mlir::DictionaryAttr getData() const;
    /// Returns why the form does not apply; empty if it does.
    ::llvm::StringRef getReason() const;
  }];
}

#endif // MOA_DIALECTS_ONF_IR_ONFFORMS_TD
