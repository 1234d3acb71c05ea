// RUN: moa-opt %s -device-overlap-kernels -device-verify | FileCheck %s

// The second one reads what the first one writes. The third one needs neither: it may run beside the second one, which
// has waited for the first. The fourth one needs what the third one writes and waits for all. The fifth one needs
// what the fourth one writes.
// CHECK-LABEL: device.program @f
// CHECK: device.kernel @a blocks "N" threads 128 {
// CHECK: device.kernel @b blocks "N" threads 128 {
// CHECK: device.kernel @c blocks "N" threads 256 attributes {moa.beside} {
// CHECK: device.kernel @d blocks "N" threads 128 {
// CHECK: device.kernel @e blocks "N" threads 256 {
device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t", "w", "z"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %t: !moa.array<[N], f32>, %w: !moa.array<[N], f32>, %z: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "N" threads 256 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @d blocks "N" threads 128 {
    %i = device.block
    %e = device.load %w[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %z[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @e blocks "N" threads 256 {
    %i = device.block
    %e = device.load %z[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// A chain: the third one may not run beside the second one, since the first one, beside which the second one may run,
// may run still. Kernels without blocks are not launched, so that nothing runs beside them.
// CHECK-LABEL: device.program @chain
// CHECK: device.kernel @a blocks "N" threads 128 {
// CHECK: device.kernel @b blocks "N" threads 256 attributes {moa.beside} {
// CHECK: device.kernel @c blocks "N" threads 512 {
// CHECK: device.kernel @d blocks "0" threads 128 {
device.program @chain attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u", "v", "y"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 256 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "N" threads 512 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @d blocks "0" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// Two ways to store an output, of which one array chooses one for each element, may run beside each other; what they
// read of each other they wait for as all others do.
// CHECK-LABEL: device.program @chosen
// CHECK: device.kernel @k blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 0 : i64}} {
// CHECK: device.kernel @l blocks "N" threads 256 attributes {moa.beside, moa.chosen = {by = "c", is = 1 : i64}} {
device.program @chosen attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 0 : i64}} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @l blocks "N" threads 256 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}
