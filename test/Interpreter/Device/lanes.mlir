// Lanes that share a row: each takes runs of 8 elements, their sums are exchanged. Each run
// changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=5 -o y=%t.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.shape == (5, 60) and (y == 4 * 8).all(), y"

// RUN: sed 's/count %%left to %%run/count %%c8 to %%run/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=5 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: a run reaches outside of its array: address [[#]] is no element of 'x' of shape [5, 60] (block 0, thread 7)
// RUN: sed 's/to %%run\[%%c1\]/to %%run[%%c8]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=5 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: row 8 is outside of a private array of shape [2, 8] (block 0, thread 0)
// RUN: sed '/memref.store/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=5 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: stores an element of a private array that was never written (block 0, thread 0)
// RUN: sed 's/%%place = arith.muli %%lane, %%c8/%%place = arith.muli %%lane, %%c0/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=5 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: element [0, 0] of 'y' is written twice (block 0, thread 1)
// RUN: sed 's/^    scf.if %%always/    scf.if %%first/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=5 2>&1 | FileCheck %s --check-prefix=THERE
// THERE: lanes exchange values, but this one is not there (block 0, thread 4)

device.program @sums attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[N, 60], f32>]} {
^bb0(%x: !moa.array<[N, 60], f32>, %y: !moa.array<[N, 60], f32>):
  device.kernel @sums_0 blocks "N" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c60 = arith.constant 60 : index
    %always = arith.constant true
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %row = device.block
    %lane = device.thread
    %first = arith.cmpi slt, %lane, %c4 : index
    %place = arith.muli %lane, %c8 : index
    %left = arith.subi %c60, %place : index
    %s0 = device.symbol "x.s0"
    %s1 = device.symbol "x.s1"
    %start = arith.muli %row, %s0 : index
    %column = arith.muli %place, %s1 : index
    %from = arith.addi %start, %column : index
    %run = memref.alloca() : memref<2x8xf32>
    device.load_run %x[%from] stride %s1 count %left to %run[%c1] : !moa.array<[N, 60], f32>, memref<2x8xf32>
    // Ones in place of the elements, added up over four lanes.
    %sums = memref.alloca() : memref<8xf32>
    %own = scf.for %e = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> (f32) {
      %next = arith.addf %sum, %one : f32
      scf.yield %next : f32
    }
    scf.if %always {
      %near = device.exchange %own mask 1 : f32
      %pair = arith.addf %own, %near : f32
      %far = device.exchange %pair mask 2 : f32
      %all = arith.addf %pair, %far : f32
      scf.for %e = %c0 to %c8 step %c1 {
        memref.store %all, %sums[%e] : memref<8xf32>
      }
    }
    %t0 = device.symbol "y.s0"
    %t1 = device.symbol "y.s1"
    %begin = arith.muli %row, %t0 : index
    %shift = arith.muli %place, %t1 : index
    %to = arith.addi %begin, %shift : index
    device.store_run %sums[] to %y[%to] stride %t1 count %left : memref<8xf32>, !moa.array<[N, 60], f32>
  }
}
