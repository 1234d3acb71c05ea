// RUN: moa-opt %s -device-skip-unchosen -device-verify | FileCheck %s
// RUN: moa-opt %s -device-skip-unchosen -device-skip-unchosen -device-verify | FileCheck %s

// The first kernel stores 0, the one that stores the choices raises a flag for each value that is asked for, and kernels
// that read it end where nobody has: one of plain threads and one of roles, each in front of all else. Not the one that
// runs beside another, nor one with few blocks, by sizes or by their number.
// CHECK-LABEL: device.program @f
// CHECK-SAME: workspace_names = ["c", "t", "c_any1", "c_any1_", "c_any0"]
// CHECK-SAME: workspace_types = [!moa.array<[B], i32>, !moa.array<[B, N], f32>, !moa.array<[B], f32>, !moa.array<[1], i32>, !moa.array<[1], i32>]
// CHECK: device.kernel @first blocks "1" threads 128 {
// CHECK: %[[BLOCK:.*]] = device.block
// CHECK: arith.cmpi eq, %[[BLOCK]], %{{.*}} : index
// CHECK: %[[THREAD:.*]] = device.thread
// CHECK: arith.cmpi eq, %[[THREAD]], %{{.*}} : index
// CHECK: %[[ONE:.*]] = arith.andi
// CHECK: scf.if %[[ONE]] {
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK: device.store %[[ZERO]], %c_any1_[%{{.*}}] : i32, <[1], i32>
// CHECK-NOT: scf.if
// CHECK: device.store %{{.*}}, %c_any0[%{{.*}}] : i32, <[1], i32>
// CHECK: device.kernel @choose
// CHECK: device.store %[[CHOICE:.*]], %c[%{{.*}}] : i32, <[B], i32>
// CHECK-NEXT: %[[NONE:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[IS_NONE:.*]] = arith.cmpi eq, %[[CHOICE]], %[[NONE]] : i32
// CHECK-NEXT: scf.if %[[IS_NONE]] {
// CHECK-NEXT: device.raise %c_any0 : <[1], i32>
// CHECK: arith.cmpi eq, %[[CHOICE]], %{{.*}} : i32
// CHECK-NEXT: scf.if
// CHECK-NEXT: device.raise %c_any1_ : <[1], i32>
// CHECK: device.kernel @plain
// CHECK-NEXT: arith.constant 0 : index
// CHECK-NEXT: %[[ANY:.*]] = device.load %c_any1_[%{{.*}}] : <[1], i32> -> i32
// CHECK-NEXT: arith.constant 0 : i32
// CHECK-NEXT: %[[NOBODY:.*]] = arith.cmpi eq, %[[ANY]], %{{.*}} : i32
// CHECK-NEXT: device.exit_if %[[NOBODY]]
// CHECK-NEXT: device.block
// CHECK: device.kernel @roles
// CHECK: device.load %c_any0
// CHECK: device.exit_if
// CHECK-NOT: device.exit_if
// CHECK: device.specialize
// CHECK-NOT: device.exit_if
// CHECK-NOT: device.raise
// CHECK-LABEL: device.program @last
device.program @f attributes {symbols = ["B", "N"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[B, N], f32>, !moa.array<[B, N], f32>], workspace_names = ["c", "t", "c_any1"], workspace_types = [!moa.array<[B], i32>, !moa.array<[B, N], f32>, !moa.array<[B], f32>]} {
^bb0(%x: !moa.array<[B], f32>, %y: !moa.array<[B, N], f32>, %z: !moa.array<[B, N], f32>, %c: !moa.array<[B], i32>, %t: !moa.array<[B, N], f32>, %u: !moa.array<[B], f32>):
  device.kernel @first blocks "1" threads 128 {
    %b = device.block
    %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
    device.store %e, %u[%b] : f32, !moa.array<[B], f32>
  }
  device.kernel @choose blocks "B" threads 128 {
    %b = device.block
    %i = device.thread
    %zero = arith.constant 0 : index
    %zero_f32 = arith.constant 0.0 : f32
    %isFirst = arith.cmpi eq, %i, %zero : index
    scf.if %isFirst {
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      %more = arith.cmpf ogt, %e, %zero_f32 : f32
      %choice = arith.extui %more : i1 to i32
      device.store %choice, %c[%b] : i32, !moa.array<[B], i32>
    }
  }
  device.kernel @plain blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %n = device.symbol "N"
    %b = arith.divsi %i, %n : index
    %one = arith.constant 1 : i32
    %choice = device.load %c[%b] : !moa.array<[B], i32> -> i32
    %is = arith.cmpi eq, %choice, %one : i32
    scf.if %is {
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      device.store %e, %t[%i] : f32, !moa.array<[B, N], f32>
    }
  }
  device.kernel @roles blocks "B*N" threads 256 attributes {moa.chosen = {by = "c", is = 0 : i64}} {
    %i = device.block
    %n = device.symbol "N"
    %b = arith.divsi %i, %n : index
    %none = arith.constant 0 : i32
    %choice = device.load %c[%b] : !moa.array<[B], i32> -> i32
    %is = arith.cmpi eq, %choice, %none : i32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 1>
    device.specialize if %is consumers 1 registers 240 {
    } producer registers 24 {
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      device.store %e, %y[%i] : f32, !moa.array<[B, N], f32>
    }
  }
  device.kernel @beside blocks "B*N" threads 128 attributes {moa.beside, moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[B, N], f32> -> f32
    device.store %e, %y[%i] : f32, !moa.array<[B, N], f32>
  }
  device.kernel @few blocks "64*B" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[B, N], f32> -> f32
    device.store %e, %z[%i] : f32, !moa.array<[B, N], f32>
  }
  device.kernel @parts blocks "B*((N + 63)/64)" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[B, N], f32> -> f32
  }
}

// Programs that stay as they are. The first kernel stores the choices itself.
device.program @last attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["c"], workspace_types = [!moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %c: !moa.array<[N], i32>):
  device.kernel @choose blocks "1" threads 128 {
    %i = device.thread
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %c[%i] : i32, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @chosen
  // CHECK-NEXT: device.block
  device.kernel @chosen blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// What would store 0 is not always launched, or has no block for some sizes.
// CHECK-LABEL: device.program @sometimes
device.program @sometimes attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["t", "c"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %t: !moa.array<[1], i32>, %c: !moa.array<[N], i32>):
  // CHECK: device.kernel @first
  // CHECK-NEXT: device.block
  device.kernel @first blocks "1" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">]} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %t[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @choose blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %c[%i] : i32, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @chosen
  // CHECK-NEXT: device.block
  device.kernel @chosen blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// CHECK-LABEL: device.program @blocks
device.program @blocks attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["t", "c"], workspace_types = [!moa.array<[N], i32>, !moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], i32>, %c: !moa.array<[N], i32>):
  device.kernel @first blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %t[%i] : i32, !moa.array<[N], i32>
  }
  device.kernel @choose blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %c[%i] : i32, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @chosen
  // CHECK-NEXT: device.block
  device.kernel @chosen blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// What stores the choices may run beside what would store 0.
// CHECK-LABEL: device.program @order
device.program @order attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["t", "c"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %t: !moa.array<[1], i32>, %c: !moa.array<[N], i32>):
  device.kernel @first blocks "1" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %t[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @choose blocks "N" threads 256 attributes {moa.beside} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %c[%i] : i32, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @chosen
  // CHECK-NEXT: device.block
  device.kernel @chosen blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// A kernel that is launched where what stores the choices is not stays, one that is launched for fewer sizes ends early, and without
// waiting, as the one in front of it has waited.
// CHECK-LABEL: device.program @runs
device.program @runs attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t", "c"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>, %t: !moa.array<[1], i32>, %c: !moa.array<[N], i32>):
  device.kernel @first blocks "1" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %t[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @choose blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">]} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %c[%i] : i32, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @always
  // CHECK-NEXT: device.block
  device.kernel @always blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
  // CHECK: device.kernel @rarely blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}, moa.idle = "c_any1", moa.runs = [#moa.expr<"N">, #moa.expr<"7">, #moa.expr<"N">, #moa.expr<"100">]}
  // CHECK-NOT: device.exit_if
  device.kernel @rarely blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">, #moa.expr<"N">, #moa.expr<"100">], moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %z[%i] : f32, !moa.array<[N], f32>
  }
}

// Choices that a caller brings, or that are stored in runs.
// CHECK-LABEL: device.program @brought
device.program @brought attributes {symbols = ["N"], requires = [], arg_names = ["c"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t", "r"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], i32>]} {
^bb0(%c: !moa.array<[N], i32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>, %t: !moa.array<[1], i32>, %r: !moa.array<[N], i32>):
  device.kernel @first blocks "1" threads 128 {
    %i = device.block
    %e = device.load %c[%i] : !moa.array<[N], i32> -> i32
    device.store %e, %t[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @choose blocks "N" threads 128 {
    %i = device.block
    %four = arith.constant 4 : index
    %one = arith.constant 1 : index
    %run = memref.alloca() : memref<4xi32>
    device.load_run %c[%i] stride %one count %four to %run[] : !moa.array<[N], i32>, memref<4xi32>
    device.store_run %run[] to %r[%i] stride %one count %four : memref<4xi32>, !moa.array<[N], i32>
  }
  // CHECK: device.kernel @caller
  // CHECK-NEXT: device.block
  device.kernel @caller blocks "N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
  // CHECK: device.kernel @run
  // CHECK-NEXT: device.block
  device.kernel @run blocks "N" threads 128 attributes {moa.chosen = {by = "r", is = 1 : i64}} {
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %z[%i] : f32, !moa.array<[N], f32>
  }
}

// A run raises the flag for each of its elements that exist.
// CHECK-LABEL: device.program @run
// CHECK: device.store_run %[[BUFFER:.*]][] to %c
// CHECK-NEXT: %[[PLACE:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[EXISTS:.*]] = arith.cmpi slt, %[[PLACE]], %[[COUNT:.*]] : index
// CHECK-NEXT: scf.if %[[EXISTS]] {
// CHECK-NEXT: %[[ELEMENT:.*]] = memref.load %[[BUFFER]][%[[PLACE]]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[ELEMENT]],
// CHECK-NEXT: scf.if %[[IS]] {
// CHECK-NEXT: device.raise %c_any1
// CHECK: arith.cmpi slt, %{{.*}}, %[[COUNT]]
// CHECK: device.raise %c_any1
// CHECK: device.kernel @plain
// CHECK: device.load %c_any1
// CHECK: device.exit_if
device.program @run attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["t", "c"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>, %c: !moa.array<[N], i32>):
  device.kernel @first blocks "1" threads 128 {
  }
  device.kernel @choose blocks "(N + 1)/2" threads 32 {
    %b = device.block
    %n = device.symbol "N"
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %lane = device.thread
    %is = arith.cmpi eq, %lane, %c0 : index
    %at = arith.muli %b, %c2 : index
    %left = arith.subi %n, %at : index
    %count = arith.select %is, %left, %c0 : index
    %buffer = memref.alloca() : memref<2xi32>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    memref.store %zero, %buffer[%c0] : memref<2xi32>
    memref.store %one, %buffer[%c1] : memref<2xi32>
    device.store_run %buffer[] to %c[%at] stride %c1 count %count : memref<2xi32>, !moa.array<[N], i32>
  }
  device.kernel @plain blocks "N" threads 32 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %v = arith.constant 1.0 : f32
      %s = device.symbol "y.s0"
      %at = arith.muli %b, %s : index
      device.store %v, %y[%at] : f32, !moa.array<[N], f32>
    }
  }
}
