// RUN: moa-opt %s -device-align-runs -device-verify | FileCheck %s
// RUN: moa-opt %s -device-align-runs -o %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=3 -o y=%t.npy
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.shape == (3, 128) and np.isfinite(y).all() and (y != 0).any(), y"
// What says so and is not is found where it runs.
// RUN: sed 's/arith.muli %%lane, %%c4/arith.muli %%lane, %%c3/; s/to %%w\[%%from\] stride %%c1 count %%c4/& aligned/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=3 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: a run that is said to be aligned has stride 1 and begins at element 3 (block 0, thread 1)

// Rows of 128 elements, of which a thread has 4: 16 bytes. Inputs and outputs may begin anywhere, rows of N elements too.
// CHECK-LABEL: device.program @f
// CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %{{[a-z0-9]*}} to
// CHECK: device.store_run %{{.*}}[] to %w[%{{.*}}] stride %{{.*}} count %{{.*}} aligned :
// CHECK: device.store_run %{{.*}}[] to %v[%{{.*}}] stride %{{.*}} count %{{[a-z0-9]*}} :
// CHECK: device.load_run %w[%{{.*}}] stride %{{.*}} count %{{.*}} aligned to
// CHECK: device.store_run %{{.*}}[] to %y[%{{.*}}] stride %{{.*}} count %{{[a-z0-9]*}} :
device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 128], f32>], workspace_names = ["w", "v"], workspace_types = [!moa.array<[N, 128], f32>, !moa.array<[64, N], f32>]} {
^bb0(%x: !moa.array<[N, 128], f32>, %y: !moa.array<[N, 128], f32>, %w: !moa.array<[N, 128], f32>, %v: !moa.array<[64, N], f32>):
  device.kernel @a blocks "N" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c128 = arith.constant 128 : index
    %row = device.block
    %lane = device.thread
    %n = device.symbol "N"
    %s0 = device.symbol "x.s0"
    %s1 = device.symbol "x.s1"
    %place = arith.muli %lane, %c4 : index
    %start = arith.muli %row, %s0 : index
    %column = arith.muli %place, %s1 : index
    %at = arith.addi %start, %column : index
    %run = memref.alloca() : memref<4xf32>
    device.load_run %x[%at] stride %s1 count %c4 to %run[] : !moa.array<[N, 128], f32>, memref<4xf32>
    %row_start = arith.muli %row, %c128 : index
    %from = arith.addi %row_start, %place : index
    device.store_run %run[] to %w[%from] stride %c1 count %c4 : memref<4xf32>, !moa.array<[N, 128], f32>
    %is = arith.cmpi slt, %lane, %c0 : index
    scf.if %is {
      %other = arith.muli %row, %n : index
      device.store_run %run[] to %v[%other] stride %c1 count %c1 : memref<4xf32>, !moa.array<[64, N], f32>
    }
  }
  device.kernel @b blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c128 = arith.constant 128 : index
    %row = device.block
    %lane = device.thread
    %s0 = device.symbol "y.s0"
    %s1 = device.symbol "y.s1"
    %place = arith.muli %lane, %c4 : index
    %row_start = arith.muli %row, %c128 : index
    %from = arith.addi %row_start, %place : index
    %run = memref.alloca() : memref<4xf32>
    device.load_run %w[%from] stride %c1 count %c4 to %run[] : !moa.array<[N, 128], f32>, memref<4xf32>
    %start = arith.muli %row, %s0 : index
    %column = arith.muli %place, %s1 : index
    %at = arith.addi %start, %column : index
    device.store_run %run[] to %y[%at] stride %s1 count %c4 : memref<4xf32>, !moa.array<[N, 128], f32>
  }
}
