// RUN: moa-opt %s -split-input-file -device-join-blocks | FileCheck %s

// Loops that share reads inside of others that do are read by runs first.
// CHECK-LABEL: device.program @nested
// CHECK: device.kernel @multiply blocks "2*B"
// CHECK-COUNT-4: device.load_run %x
// CHECK: scf.for
// CHECK: scf.for
// CHECK: device.load_run %y
device.program @nested attributes {symbols = ["B"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[B], f32>], workspace_names = ["w", "a"], workspace_types = [!moa.array<[B, 8, 32], f32>, !moa.array<[B, 8, 12], f32>]} {
^bb0(%x: !moa.array<[B, 8, 12], f32>, %y: !moa.array<[B, 12, 32], f32>, %z: !moa.array<[B], f32>, %w: !moa.array<[B, 8, 32], f32>, %a: !moa.array<[B, 8, 12], f32>):
  device.kernel @multiply blocks "8*B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %c96 = arith.constant 96 : index
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %j = device.thread
    %i = arith.remui %block, %c8 : index
    %b = arith.divui %block, %c8 : index
    %xb = arith.muli %b, %c96 : index
    %xi = arith.muli %i, %c12 : index
    %xAt = arith.addi %xb, %xi : index
    %wb = arith.muli %block, %c32 : index
    %wAt = arith.addi %wb, %j : index
    %sum = scf.for %k = %c0 to %c12 step %c1 iter_args(%s = %zero) -> (f32) {
        %xPlace = arith.addi %xAt, %k : index
        %e = device.load %x[%xPlace] : !moa.array<[B, 8, 12], f32> -> f32
        %yk = arith.muli %k, %c32 : index
        %yPlace = arith.addi %yk, %j : index
        %f = device.load %y[%yPlace] : !moa.array<[B, 12, 32], f32> -> f32
        %next = math.fma %e, %f, %s : f32
        %in = scf.for %m = %c0 to %c8 step %c1 iter_args(%t = %next) -> (f32) {
          %ym = arith.addi %yPlace, %m : index
          %g = device.load %y[%ym] : !moa.array<[B, 12, 32], f32> -> f32
          %u = arith.addf %t, %g : f32
          scf.yield %u : f32
        }
        scf.yield %in : f32
    }
    device.store %sum, %w[%wAt] : f32, !moa.array<[B, 8, 32], f32>
  }
}

// -----

// A block's number where only some of the four rows come is that of one block.
// CHECK-LABEL: device.program @number
// CHECK: device.kernel @multiply blocks "8*B"
device.program @number attributes {symbols = ["B"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[B, 8, 32], f32>], workspace_names = ["w"], workspace_types = [!moa.array<[B, 8, 32], f32>]} {
^bb0(%x: !moa.array<[B, 8, 12], f32>, %y: !moa.array<[B, 12, 32], f32>, %z: !moa.array<[B, 8, 32], f32>, %w: !moa.array<[B, 8, 32], f32>):
  device.kernel @multiply blocks "8*B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %j = device.thread
    %i = arith.remui %block, %c8 : index
    %sum = scf.for %k = %c0 to %c12 step %c1 iter_args(%s = %zero) -> (f32) {
        %yk = arith.muli %k, %c32 : index
        %y1 = device.symbol "y.s1"
        %y2 = device.symbol "y.s2"
        %yk1 = arith.muli %k, %y1 : index
        %yj = arith.muli %j, %y2 : index
        %yPlace = arith.addi %yk1, %yj : index
        %f = device.load %y[%yPlace] : !moa.array<[B, 12, 32], f32> -> f32
        %next = arith.addf %f, %s : f32
        scf.yield %next : f32
    }
    %is = arith.cmpi sge, %i, %c0 : index
    scf.if %is {
      %block2 = device.block
      %wb = arith.muli %block2, %c32 : index
      %wAt = arith.addi %wb, %j : index
      device.store %sum, %w[%wAt] : f32, !moa.array<[B, 8, 32], f32>
    }
  }
  device.kernel @out blocks "8*B" threads 32 {
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %block = device.block
    %j = device.thread
    %wb = arith.muli %block, %c32 : index
    %wAt = arith.addi %wb, %j : index
    %e = device.load %w[%wAt] : !moa.array<[B, 8, 32], f32> -> f32
    %z0 = device.symbol "z.s0"
    %z1 = device.symbol "z.s1"
    %z2 = device.symbol "z.s2"
    %b = arith.divui %block, %c8 : index
    %i = arith.remui %block, %c8 : index
    %p0 = arith.muli %b, %z0 : index
    %p1 = arith.muli %i, %z1 : index
    %p2 = arith.muli %j, %z2 : index
    %p3 = arith.addi %p0, %p1 : index
    %p4 = arith.addi %p3, %p2 : index
    device.store %e, %z[%p4] : f32, !moa.array<[B, 8, 32], f32>
  }
}
