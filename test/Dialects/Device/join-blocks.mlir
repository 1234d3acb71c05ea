// RUN: moa-opt %s -device-join-blocks -device-verify | FileCheck %s
// RUN: moa-opt %s -device-join-blocks -o %t.mlir
// RUN: %python -c "import numpy as np; r = np.random.default_rng(1); np.save('%t.x.npy', r.standard_normal((3, 8, 12), np.float32)); np.save('%t.y.npy', r.standard_normal((3, 12, 32), np.float32)); np.save('%t.c.npy', np.int32([1, 0, 1]))"
// RUN: moa-run %s --target=device x=%t.x.npy y=%t.y.npy c=%t.c.npy -o z=%t.z0.npy
// RUN: moa-run %t.mlir --target=device x=%t.x.npy y=%t.y.npy c=%t.c.npy -o z=%t.z.npy
// RUN: moa-run %t.mlir --target=device --interleaving=5 x=%t.x.npy y=%t.y.npy c=%t.c.npy -o z=%t.z5.npy
// RUN: %python -c "import numpy as np; a, b, d, x, y = (np.load('%t.' + n + '.npy') for n in ('z0', 'z', 'z5', 'x', 'y')); assert (a == b).all() and (a == d).all() and np.abs(a[[0, 2]] - (x @ y)[[0, 2]]).max() < 1e-5 and (a[1] == 0).all()"

// Of a product blocks of four rows read each element of y once, and rows of a, which x is copied to, by runs. Twice as many numbers, as their loop has two,
// and a choice that all rows share. Of @tiles, with
// three blocks per row, rows follow each other three blocks apart; of @partly the last rows may be fewer. Of @copy nothing is read twice, of @odd there may be five blocks, and lanes of @lanes exchange.
// CHECK-LABEL: device.program @product
// CHECK: device.kernel @multiply blocks "2*B" threads 32 attributes {moa.kept = "yes"} {
// CHECK: %[[FIRST:.*]] = arith.muli %{{.*}}, %c4{{.*}} : index
// CHECK: %[[I0:.*]] = arith.remui %[[FIRST]], %c8{{.*}} : index
// CHECK: %[[I1:.*]] = arith.addi %[[I0]], %{{.*}} : index
// CHECK: %[[B:.*]] = arith.divui %[[FIRST]], %c8{{.*}} : index
// CHECK-NOT: arith.divui
// CHECK: device.load %c
// CHECK-NOT: device.load
// CHECK: scf.if %{{.*}} {
// CHECK: %[[SUMS:.*]]:8 = scf.for %[[T:.*]] = %c0{{.*}} to %c3{{.*}} step
// CHECK-COUNT-4: device.load_run %a
// CHECK: scf.for %{{.*}} = %c0{{.*}} to %c4{{.*}} step
// CHECK-COUNT-4: memref.load
// CHECK: device.load %y
// CHECK-NOT: device.load
// CHECK-COUNT-4: math.fma
// CHECK: scf.yield
// CHECK-COUNT-4: device.store
// CHECK-NOT: device.store
// CHECK: device.kernel @tiles blocks "6*B" threads 32 {
// CHECK: %[[BLOCK:.*]] = device.block
// CHECK: %[[ROW:.*]] = arith.divui %[[BLOCK]], %[[THREE:.*]] : index
// CHECK: %[[TILE:.*]] = arith.remui %[[BLOCK]], %[[THREE]] : index
// CHECK: %[[OFFSET:.*]] = arith.muli %[[ROW]], %{{.*}} : index
// CHECK: arith.muli %[[TILE]],
// CHECK: arith.remui %[[OFFSET]], %c8{{.*}} : index
// CHECK: device.load_run %a
// CHECK-NOT: device.load_run
// CHECK-COUNT-4: arith.addf
// CHECK: device.kernel @partly blocks "8*B" threads 32
// CHECK-NOT: device.load_run
// CHECK: device.kernel @copy blocks "8*B"
// CHECK: device.kernel @odd blocks "B"
// CHECK: device.kernel @lanes blocks "8*B"
device.program @product attributes {symbols = ["B"], requires = [], arg_names = ["x", "y", "c"], result_names = ["z"], result_types = [!moa.array<[B, 8, 32], f32>], workspace_names = ["w", "v", "u", "a", "s", "q"], workspace_types = [!moa.array<[B, 8, 32], f32>, !moa.array<[B, 32], f32>, !moa.array<[B, 8, 32], f32>, !moa.array<[B, 8, 12], f32>, !moa.array<[B, 8, 96], f32>, !moa.array<[B, 4, 96], f32>]} {
^bb0(%x: !moa.array<[B, 8, 12], f32>, %y: !moa.array<[B, 12, 32], f32>, %c: !moa.array<[B], i32>, %z: !moa.array<[B, 8, 32], f32>, %w: !moa.array<[B, 8, 32], f32>, %v: !moa.array<[B, 32], f32>, %u: !moa.array<[B, 8, 32], f32>, %a: !moa.array<[B, 8, 12], f32>, %s: !moa.array<[B, 8, 96], f32>, %q: !moa.array<[B, 4, 96], f32>):
  device.kernel @stage blocks "8*B" threads 32 {
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %block = device.block
    %k = device.thread
    %is = arith.cmpi slt, %k, %c12 : index
    scf.if %is {
      %i = arith.remui %block, %c8 : index
      %b = arith.divui %block, %c8 : index
      %x0 = device.symbol "x.s0"
      %x1 = device.symbol "x.s1"
      %x2 = device.symbol "x.s2"
      %xb = arith.muli %b, %x0 : index
      %xi = arith.muli %i, %x1 : index
      %xk = arith.muli %k, %x2 : index
      %xAt = arith.addi %xb, %xi : index
      %xPlace = arith.addi %xAt, %xk : index
      %e = device.load %x[%xPlace] : !moa.array<[B, 8, 12], f32> -> f32
      %at = arith.muli %block, %c12 : index
      %place = arith.addi %at, %k : index
      device.store %e, %a[%place] : f32, !moa.array<[B, 8, 12], f32>
    }
  }
  device.kernel @multiply blocks "8*B" threads 32 attributes {moa.kept = "yes"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %one = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %j = device.thread
    %i = arith.remui %block, %c8 : index
    %b = arith.divui %block, %c8 : index
    %x0 = arith.constant 96 : index
    %x1 = arith.constant 12 : index
    %y0 = device.symbol "y.s0"
    %y1 = device.symbol "y.s1"
    %y2 = device.symbol "y.s2"
    %yj = arith.muli %j, %y2 : index
    %c0s = device.symbol "c.s0"
    %z0 = arith.constant 256 : index
    %z1 = arith.constant 32 : index
    %cAt = arith.muli %b, %c0s : index
    %choice = device.load %c[%cAt] : !moa.array<[B], i32> -> i32
    %is = arith.cmpi eq, %choice, %one : i32
    %xb = arith.muli %b, %x0 : index
    %xi = arith.muli %i, %x1 : index
    %xAt = arith.addi %xb, %xi : index
    %yb = arith.muli %b, %y0 : index
    %zb = arith.muli %b, %z0 : index
    %zi = arith.muli %i, %z1 : index
    %zAt = arith.addi %zb, %zi : index
    %zPlace = arith.addi %zAt, %j : index
    %sum = scf.if %is -> (f32) {
      %sums:2 = scf.for %k = %c0 to %c12 step %c1 iter_args(%s0 = %zero, %n = %zero) -> (f32, f32) {
        %xPlace = arith.addi %xAt, %k : index
        %e = device.load %a[%xPlace] : !moa.array<[B, 8, 12], f32> -> f32
        %yk = arith.muli %k, %y1 : index
        %yRow = arith.addi %yb, %yk : index
        %yPlace = arith.addi %yRow, %yj : index
        %f = device.load %y[%yPlace] : !moa.array<[B, 12, 32], f32> -> f32
        %next = math.fma %e, %f, %s0 : f32
        %count = arith.addf %n, %e : f32
        scf.yield %next, %count : f32, f32
      }
      scf.yield %sums#0 : f32
    } else {
      scf.yield %zero : f32
    }
    device.store %sum, %w[%zPlace] : f32, !moa.array<[B, 8, 32], f32>
  }
  device.kernel @tiles blocks "24*B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %rows = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %c96 = arith.constant 96 : index
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %lane = device.thread
    %row = arith.divui %block, %c3 : index
    %tile = arith.remui %block, %c3 : index
    %column = arith.muli %tile, %c32 : index
    %j = arith.addi %column, %lane : index
    %i = arith.remui %row, %rows : index
    %b = arith.divui %row, %rows : index
    %bRows = arith.muli %b, %c96 : index
    %sum = scf.for %k = %c0 to %c12 step %c1 iter_args(%s0 = %zero) -> (f32) {
      %place = arith.addi %bRows, %k : index
      %e = device.load %a[%place] : !moa.array<[B, 8, 12], f32> -> f32
      %ii = arith.index_cast %i : index to i64
      %f = arith.sitofp %ii : i64 to f32
      %g = arith.mulf %e, %f : f32
      %next = arith.addf %s0, %g : f32
      scf.yield %next : f32
    }
    %at = arith.muli %row, %c96 : index
    %to = arith.addi %at, %j : index
    device.store %sum, %s[%to] : f32, !moa.array<[B, 8, 96], f32>
  }
  device.kernel @partly blocks "8*B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %rows = arith.constant 4 : index
    %c12 = arith.constant 12 : index
    %c32 = arith.constant 32 : index
    %c96 = arith.constant 96 : index
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %lane = device.thread
    %row = arith.divui %block, %c3 : index
    %tile = arith.remui %block, %c3 : index
    %column = arith.muli %tile, %c32 : index
    %j = arith.addi %column, %lane : index
    %i = arith.remui %row, %rows : index
    %b = arith.divui %row, %rows : index
    %bRows = arith.muli %b, %c96 : index
    %sum = scf.for %k = %c0 to %c12 step %c1 iter_args(%s0 = %zero) -> (f32) {
      %place = arith.addi %bRows, %k : index
      %e = device.load %a[%place] : !moa.array<[B, 8, 12], f32> -> f32
      %ii = arith.index_cast %i : index to i64
      %f = arith.sitofp %ii : i64 to f32
      %g = arith.mulf %e, %f : f32
      %next = arith.addf %s0, %g : f32
      scf.yield %next : f32
    }
    %at = arith.muli %row, %c96 : index
    %to = arith.addi %at, %j : index
    device.store %sum, %q[%to] : f32, !moa.array<[B, 4, 96], f32>
  }
  device.kernel @copy blocks "8*B" threads 32 {
    %c32 = arith.constant 32 : index
    %block = device.block
    %j = device.thread
    %c8 = arith.constant 8 : index
    %at = arith.muli %block, %c32 : index
    %place = arith.addi %at, %j : index
    %i = arith.remui %block, %c8 : index
    %b = arith.divui %block, %c8 : index
    %z0 = device.symbol "z.s0"
    %z1 = device.symbol "z.s1"
    %zb = arith.muli %b, %z0 : index
    %zi = arith.muli %i, %z1 : index
    %zAt = arith.addi %zb, %zi : index
    %z2 = device.symbol "z.s2"
    %zj = arith.muli %j, %z2 : index
    %zPlace = arith.addi %zAt, %zj : index
    %e0 = device.load %w[%place] : !moa.array<[B, 8, 32], f32> -> f32
    %c96 = arith.constant 96 : index
    %sAt = arith.muli %block, %c96 : index
    %c64 = arith.constant 64 : index
    %sPlace0 = arith.addi %sAt, %j : index
    %sPlace = arith.addi %sPlace0, %c64 : index
    %es = device.load %s[%sPlace] : !moa.array<[B, 8, 96], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %es0 = arith.mulf %es, %zero : f32
    %e = arith.addf %e0, %es0 : f32
    device.store %e, %z[%zPlace] : f32, !moa.array<[B, 8, 32], f32>
  }
  device.kernel @odd blocks "B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %b = device.block
    %j = device.thread
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s0 = %zero) -> (f32) {
      %at = arith.muli %k, %c32 : index
      %place = arith.addi %at, %j : index
      %e = device.load %w[%place] : !moa.array<[B, 8, 32], f32> -> f32
      %next = arith.addf %s0, %e : f32
      scf.yield %next : f32
    }
    %at = arith.muli %b, %c32 : index
    %place = arith.addi %at, %j : index
    device.store %sum, %v[%place] : f32, !moa.array<[B, 32], f32>
  }
  device.kernel @lanes blocks "8*B" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %block = device.block
    %j = device.thread
    %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%s0 = %zero) -> (f32) {
      %at = arith.muli %k, %c32 : index
      %place = arith.addi %at, %j : index
      %e = device.load %w[%place] : !moa.array<[B, 8, 32], f32> -> f32
      %next = arith.addf %s0, %e : f32
      scf.yield %next : f32
    }
    %other = device.exchange %sum mask 1 : f32
    %at = arith.muli %block, %c32 : index
    %place = arith.addi %at, %j : index
    device.store %other, %u[%place] : f32, !moa.array<[B, 8, 32], f32>
  }
}
