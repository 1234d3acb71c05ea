//===- ONFBase.td - the onf dialect -------------------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_ONF_IR_ONFBASE_TD
#define MOA_DIALECTS_ONF_IR_ONFBASE_TD

include "dialects/MoA/IR/MoABase.td"
include "dialects/ONF/IR/ONFEnums.td"

def ONF_Dialect : Dialect {
  let name = "onf";
  let summary = "Operational normal form: loops, folds and linear indices";
  let description = [{
    The loops that compute the definitions.

    - Nests of independent rows (`onf.for`).
    - Folds that run over a range once and carry a tuple of monoid states (`onf.fold`, `onf.acc`). A
      state may be rescaled when another one changes (rule R3). This gives the online softmax, for
      example.
    - Loads and stores at linear forms in the loop indices, one per axis. Their addresses have the
      caller's strides as opaque symbols.

    In lifted form the same operations have their axes factored (tiled), and the factors bound to
    resources of a machine [Def 15].
  }];
  let cppNamespace = "::moa::onf";
  let dependentDialects = ["::moa::MoADialect"];
  let useDefaultAttributePrinterParser = 1;
}

#endif // MOA_DIALECTS_ONF_IR_ONFBASE_TD
