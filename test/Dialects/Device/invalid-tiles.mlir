// RUN: moa-opt %s -verify-diagnostics -split-input-file -allow-unregistered-dialect

// What moves tiles between registers, shared memory and arrays, one violation each.

device.program @scalar_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %own = "test.array"() : () -> !moa.array<[], f32>
    // expected-error @below {{'device.scalar' op expects a parameter of the program (C1)}}
    %s = device.scalar %own : !moa.array<[], f32> -> f32
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @clear_unseen_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %seen = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error-re @below {{expects booleans for up to 128 rows of the ring (C1), but got {{.*}}f32{{.*}} for 64 rows}}
    device.clear_unseen %ring[%c0] unless %seen : !device.ring<1, [64, 64], bf16>, !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c1 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects 64 rows of the output's and the ring's type (C1), but got '!device.fragment<[64, 64], f32, <}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0] rows 0 : !device.fragment<[64, 64], f32, #acc>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c2 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 128], bf16>]} {
^bb0(%y: !moa.array<[N, 128], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : bf16 -> !device.fragment<[64, 128], bf16, #wide>
    // expected-error @below {{expects no more columns than the ring has (C2), but got 128 and 64}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0] rows 0 : !device.fragment<[64, 128], bf16, #wide>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 128], bf16>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c3 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    // expected-error @below {{expects coordinates of all axes but the last (C3), but got 2 for rank 2}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0, %c0] rows 0 : !device.fragment<[64, 64], bf16, #acc>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @any_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects a fragment of booleans (C1), but got '!device.fragment<[64, 64], f32, <}}
    %p = device.any %f : !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @reduce_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects a named monoid (C4)}}
    %r = device.reduce user %f : !device.fragment<[64, 64], f32, #acc> -> !device.fragment<[64], f32, #row>
  }
}
