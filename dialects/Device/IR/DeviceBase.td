//===- DeviceBase.td - the device dialect -------------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD

include "dialects/MoA/IR/MoABase.td"
include "dialects/Device/IR/DeviceEnums.td"

def Device_Dialect : Dialect {
  let name = "device";
  let summary = "GPU programs: kernels, their launches, and the work of threads and warpgroups";
  let description = [{
    A thread's scalar work is in operations of arith, math, scf and memref. This dialect adds the
    work of a warpgroup on tiles:

    - fragments in registers, whose type maps each element to a warp, lane and register [Def 20];
    - rings of tiles in shared memory, one tile per stage of a software pipeline;
    - asynchronous copies, contractions on tensor cores, and mbarriers.

    Both outputs, CUDA C++ and PTX, are emitted from this level. lib/Interpreter executes it.
  }];
  let cppNamespace = "::moa::device";
  let dependentDialects = ["::moa::MoADialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Device_Op<string mnemonic, list<Trait> traits = []>
    : Op<Device_Dialect, mnemonic, traits>;

#endif // MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
