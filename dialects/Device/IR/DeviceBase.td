//===- DeviceBase.td - the device dialect -------------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD

include "dialects/MoA/IR/MoABase.td"
include "dialects/Device/IR/DeviceEnums.td"

def Device_Dialect : Dialect {
  let name = "device";
  let summary = "Programs for a GPU: kernels, their launch, and what a thread does";
  let description = [{
    What one thread of a grid does, in operations of arith, math, scf and memref, and
    what a warpgroup does with tiles: fragments in registers, whose type says which
    warp, lane and register holds an element [Def 20], rings of tiles in shared memory,
    copies, contractions and barriers. Both texts, CUDA C++ and PTX, are written from
    this level; lib/Interpreter runs it.
  }];
  let cppNamespace = "::moa::device";
  let dependentDialects = ["::moa::MoADialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Device_Op<string mnemonic, list<Trait> traits = []>
    : Op<Device_Dialect, mnemonic, traits>;

#endif // MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
