// What has no PTX is an error at the op, and no function is left half written.

// RUN: moa-opt %s --convert-device-to-nvvm --split-input-file --allow-unregistered-dialect --verify-diagnostics

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!weights = !device.fragment<[64, 64], bf16, #acc>
device.program @narrow attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @narrow_0 blocks "1" threads 128 {
    %x = arith.constant 0.0 : bf16
    %a = device.fill %x : bf16 -> !weights
    // expected-error @+1 {{has no PTX: a map of fragments of 16 or 8 bits that does more than round them}}
    %b = device.map(%a) over #acc : (!weights) -> !weights {
    ^bb0(%e: bf16, %i: index, %j: index):
      device.yield %e : bf16
    }
  }
}

// -----

device.program @foreign attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @foreign_0 blocks "1" threads 128 {
    %x = arith.constant dense<0> : vector<4xi32>
    // expected-error @+1 {{has no PTX: the op is not one of the device level's}}
    "test.foreign"(%x) : (vector<4xi32>) -> ()
  }
}

// -----

// What stands behind a failure, and in a branch of it, is not asked for its registers.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!weights = !device.fragment<[64, 64], bf16, #acc>
!flags = !device.fragment<[64, 64], i1, #acc>
device.program @behind attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @behind_0 blocks "1" threads 128 {
    %x = arith.constant 0.0 : bf16
    %p = arith.constant true
    %a = device.fill %x : bf16 -> !weights
    %flags = device.fill %p : i1 -> !flags
    // expected-error @+1 {{has no PTX: a map of fragments of 16 or 8 bits that does more than round them}}
    %b = device.map(%a) over #acc : (!weights) -> !weights {
    ^bb0(%e: bf16, %i: index, %j: index):
      device.yield %e : bf16
    }
    %c = device.if_any %flags else(%b) : (!flags, !weights) -> !weights {
      device.yield %b : !weights
    }
  }
}
