//===- Passes.td - passes on the device dialect -------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeviceVerify : Pass<"device-verify"> {
  let summary = "Check the contract of the device level";
  let description = [{
    **Establishes**, for every `device.program`, K1 to K3 of `moa-verify` and

    - D1: no operation but those of device, arith, math, scf and memref.
    - D2: `blocks` uses the program's symbols only, `device.symbol` those and the
        stride symbols of its arrays.
    - D3: memory beside the arrays is private to a thread and of constant shape.
    - D4: every output has exactly one store, or one in each of several kernels that say,
        in `moa.chosen`, for which values of one array they run, each for another.
    - D5: one kernel stores an array of the workspace, and only later ones load it.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
