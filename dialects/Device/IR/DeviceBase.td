//===- DeviceBase.td - the device dialect -------------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD

include "dialects/MoA/IR/MoABase.td"
include "dialects/Device/IR/DeviceEnums.td"

def Device_Dialect : Dialect {
  let name = "device";
  let summary = "Programs for a GPU: kernels, their launch, and what a thread does";
  let cppNamespace = "::moa::device";
  let dependentDialects = ["::moa::MoADialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Device_Op<string mnemonic, list<Trait> traits = []>
    : Op<Device_Dialect, mnemonic, traits>;

#endif // MOA_DIALECTS_DEVICE_IR_DEVICEBASE_TD
