// RUN: moa-opt %s -device-skip-unchosen -device-verify | FileCheck %s
// RUN: moa-opt %s -device-skip-unchosen -device-skip-unchosen -device-verify | FileCheck %s
// RUN: moa-opt %s -device-skip-unchosen -o %t.mlir
// RUN: %python -c "import numpy as np; np.save('%t.x.npy', -np.ones(3, np.float32)); np.save('%t.x2.npy', np.float32([-1, 1, -1]))"
// RUN: moa-run %t.mlir --target=device x=%t.x.npy N=3 -o y=%t.y.npy
// RUN: moa-run %t.mlir --target=device x=%t.x2.npy N=3 -o y=%t.y2.npy
// RUN: %python -c "import numpy as np; a = np.load('%t.y.npy'); b = np.load('%t.y2.npy'); assert (a == -1).all() and (b[[0, 2]] == -1).all() and (b[1] == 2).all(), (a, b)"

// Choices of two steps: %o says where the second array is asked, which is -1 elsewhere. Where %o is 1 nowhere, all that stands
// behind the kernel that has waited for it has nothing to do: what is chosen for a value of %p, what is chosen for %o, and
// what writes for these alone, as @decide; not what waits first, and not what an output is made of. @other waits for @decide, so that @left ends by a value of
// %p, which none has where @decide has nothing to do; not @plan, as @left, which may run beside it, would not have waited.
// CHECK-LABEL: device.program @f
// CHECK-SAME: workspace_names = ["t", "o", "w", "p", "u", "o_any1", "p_any0", "o_any0", "p_any1"]
// CHECK: device.kernel @first
// CHECK-NOT: moa.idle
// CHECK: device.kernel @at_once blocks "N*N" threads 128 attributes {moa.chosen = {by = "o", is = 0 : i64}} {
// CHECK: device.load %o_any0
// CHECK: device.exit_if
// CHECK: device.kernel @rows blocks "N" threads 128 attributes {moa.beside, moa.chosen = {by = "o", is = 1 : i64}, moa.idle = "o_any1"}
// CHECK-NOT: device.exit_if
// CHECK: device.kernel @decide blocks "N" threads 128 attributes {moa.idle = "o_any1"}
// CHECK: device.kernel @other
// CHECK-NOT: moa.idle
// CHECK: device.kernel @plan blocks "N*N" threads 128 attributes {moa.chosen = {by = "p", is = 1 : i64, where = {by = "o", is = 1 : i64}}, moa.idle = "o_any1"}
// CHECK: device.load %p_any1
// CHECK: device.exit_if
// CHECK: device.kernel @left blocks "N*N" threads 128 attributes {moa.beside, moa.chosen = {by = "p", is = 0 : i64, where = {by = "o", is = 1 : i64}}, moa.idle = "p_any0"}
device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N, N], f32>, !moa.array<[N], f32>], workspace_names = ["t", "o", "w", "p", "u"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], i32>, !moa.array<[N], f32>, !moa.array<[N], i32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N, N], f32>, %z: !moa.array<[N], f32>, %t: !moa.array<[N], f32>, %o: !moa.array<[N], i32>, %w: !moa.array<[N], f32>, %p: !moa.array<[N], i32>, %u: !moa.array<[N], f32>):
  device.kernel @first blocks "1" threads 128 {
    %i = device.thread
    %n = device.symbol "N"
    %is = arith.cmpi slt, %i, %n : index
    %e = arith.constant 0.5 : f32
    scf.if %is {
      device.store %e, %t[%i] : f32, !moa.array<[N], f32>
    }
  }
  device.kernel @open blocks "N" threads 128 {
    %b = device.block
    %i = device.thread
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %is = arith.cmpi eq, %i, %c0 : index
    scf.if %is {
      %s = device.symbol "x.s0"
      %at = arith.muli %b, %s : index
      %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
      %more = arith.cmpf ogt, %e, %zero : f32
      %choice = arith.extui %more : i1 to i32
      device.store %choice, %o[%b] : i32, !moa.array<[N], i32>
    }
  }
  device.kernel @at_once blocks "N*N" threads 128 attributes {moa.chosen = {by = "o", is = 0 : i64}} {
    %i = device.block
    %lane = device.thread
    %n = device.symbol "N"
    %b = arith.divui %i, %n : index
    %k = arith.remui %i, %n : index
    %s0 = device.symbol "y.s0"
    %s1 = device.symbol "y.s1"
    %row = arith.muli %b, %s0 : index
    %column = arith.muli %k, %s1 : index
    %place = arith.addi %row, %column : index
    %c0 = arith.constant 0 : index
    %v = arith.constant 0 : i32
    %choice = device.load %o[%b] : !moa.array<[N], i32> -> i32
    %is = arith.cmpi eq, %choice, %v : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    %both = arith.andi %is, %one : i1
    scf.if %both {
      %e = arith.constant -1.0 : f32
      device.store %e, %y[%place] : f32, !moa.array<[N, N], f32>
    }
  }
  device.kernel @rows blocks "N" threads 128 attributes {moa.beside, moa.chosen = {by = "o", is = 1 : i64}} {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %v = arith.constant 1 : i32
    %choice = device.load %o[%b] : !moa.array<[N], i32> -> i32
    %is = arith.cmpi eq, %choice, %v : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    %both = arith.andi %is, %one : i1
    scf.if %both {
      %e = arith.constant 2.0 : f32
      device.store %e, %w[%b] : f32, !moa.array<[N], f32>
    }
  }
  device.kernel @decide blocks "N" threads 128 {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %v = arith.constant 1 : i32
    %left = arith.constant -1 : i32
    %choice = device.load %o[%b] : !moa.array<[N], i32> -> i32
    %is = arith.cmpi eq, %choice, %v : i32
    %plan = arith.select %is, %v, %left : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      device.store %plan, %p[%b] : i32, !moa.array<[N], i32>
    }
  }
  device.kernel @other blocks "N" threads 128 {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %e = device.load %t[%b] : !moa.array<[N], f32> -> f32
      %s = device.symbol "z.s0"
      %at = arith.muli %b, %s : index
      device.store %e, %z[%at] : f32, !moa.array<[N], f32>
    }
  }
  device.kernel @plan blocks "N*N" threads 128 attributes {moa.chosen = {by = "p", is = 1 : i64, where = {by = "o", is = 1 : i64}}} {
    %i = device.block
    %lane = device.thread
    %n = device.symbol "N"
    %b = arith.divui %i, %n : index
    %k = arith.remui %i, %n : index
    %s0 = device.symbol "y.s0"
    %s1 = device.symbol "y.s1"
    %row = arith.muli %b, %s0 : index
    %column = arith.muli %k, %s1 : index
    %place = arith.addi %row, %column : index
    %c0 = arith.constant 0 : index
    %v = arith.constant 1 : i32
    %choice = device.load %p[%b] : !moa.array<[N], i32> -> i32
    %is = arith.cmpi eq, %choice, %v : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    %both = arith.andi %is, %one : i1
    scf.if %both {
      %e = device.load %w[%b] : !moa.array<[N], f32> -> f32
      device.store %e, %y[%place] : f32, !moa.array<[N, N], f32>
    }
  }
  device.kernel @left blocks "N*N" threads 128 attributes {moa.beside, moa.chosen = {by = "p", is = 0 : i64, where = {by = "o", is = 1 : i64}}} {
    %i = device.block
    %lane = device.thread
    %n = device.symbol "N"
    %b = arith.divui %i, %n : index
    %k = arith.remui %i, %n : index
    %s0 = device.symbol "y.s0"
    %s1 = device.symbol "y.s1"
    %row = arith.muli %b, %s0 : index
    %column = arith.muli %k, %s1 : index
    %place = arith.addi %row, %column : index
    %c0 = arith.constant 0 : index
    %v = arith.constant 0 : i32
    %choice = device.load %p[%b] : !moa.array<[N], i32> -> i32
    %is = arith.cmpi eq, %choice, %v : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    %both = arith.andi %is, %one : i1
    scf.if %both {
      %s = device.symbol "x.s0"
      %at = arith.muli %b, %s : index
      %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
      device.store %e, %y[%place] : f32, !moa.array<[N, N], f32>
    }
  }
}
