// RUN: moa-opt %s -device-chain-kernels="residents=3 fewest=2" -device-verify | FileCheck %s
// RUN: moa-opt %s -device-chain-kernels="residents=3 fewest=2" -device-chain-kernels=fewest=2 -device-verify | FileCheck %s
// RUN: moa-opt %s -device-chain-kernels -device-verify | FileCheck %s --check-prefix=DEFAULT
// RUN: moa-opt %s -device-chain-kernels="residents=3 fewest=2" -o %t.mlir
// RUN: %python -c "import numpy as np; np.save('%t.x.npy', np.float32([-3, 1, -1, 2, 5])); np.save('%t.x2.npy', -np.ones(5, np.float32))"
// RUN: moa-run %t.mlir --target=device x=%t.x.npy N=5 -o y=%t.y.npy
// RUN: moa-run %t.mlir --target=device --interleaving=7 x=%t.x.npy N=5 -o y=%t.y7.npy
// RUN: moa-run %s --target=device x=%t.x.npy N=5 -o y=%t.y0.npy
// RUN: moa-run %t.mlir --target=device x=%t.x2.npy N=5 -o y=%t.y2.npy
// RUN: %python -c "import numpy as np; a, b, c, d = (np.load('%t.' + n + '.npy') for n in ('y', 'y7', 'y0', 'y2')); assert (a == [16, 20, 18, 21, 24]).all() and (a == b).all() and (a == c).all() and (d == -1).all(), (a, b, c, d)"

// @double, @shift and @sum have nothing to do by one flag, and each reads what the one before stores: one launch of three stages, of
// as many threads as the largest has. @beside does not need the last of them but the first, so that it waits. @open raises the flag,
// @waits has none, and @many has as many blocks as any kernel.
// Three launches are too few where nothing else is asked for.
// DEFAULT-NOT: device.stages
// CHECK-LABEL: device.program @f
// CHECK-SAME: workspace_names = ["c", "t", "u", "v", "c_any1", "w", "double_turns"]
// CHECK-SAME: !moa.array<[33], i32>]
// CHECK: device.kernel @first
// CHECK: device.store %{{.*}}, %double_turns[%{{.*}}] : i32, <[33], i32>
// CHECK: device.store %{{.*}}, %double_turns[%{{.*}}] : i32, <[33], i32>
// CHECK: device.kernel @open
// CHECK: device.kernel @waits
// CHECK-NOT: device.stages
// CHECK: device.kernel @double blocks "3*N + 1" threads 64 attributes {moa.idle = "c_any1"} {
// CHECK: %[[N0:.*]] = device.symbol "N"
// CHECK: %[[N1:.*]] = device.symbol "1"
// CHECK: %[[N2:.*]] = device.symbol "2*N"
// CHECK: device.stages %double_turns residents 3 counts %[[N0]], %[[N1]], %[[N2]] : <[33], i32> {
// CHECK-NEXT: ^bb0(%[[B0:.*]]: index):
// CHECK-NOT: device.block
// CHECK: device.store %{{.*}}, %t[%[[B0]]]
// CHECK: }, {
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK: device.load %t
// CHECK: }, {
// CHECK-NEXT: ^bb0(%{{.*}}: index):
// CHECK: %[[FEW:.*]] = arith.constant 32 : index
// CHECK: arith.cmpi slt, %{{.*}}, %[[FEW]] : index
// CHECK: scf.if
// CHECK: device.load %u
// CHECK: device.kernel @beside blocks "N*N" threads 64 attributes {moa.idle = "c_any1"} {
// CHECK: device.kernel @many
// CHECK-NOT: device.stages
device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["c", "t", "u", "v", "c_any1", "w"], workspace_types = [!moa.array<[N], i32>, !moa.array<[N], f32>, !moa.array<[1], f32>, !moa.array<[N], f32>, !moa.array<[1], i32>, !moa.array<[N, N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %c: !moa.array<[N], i32>, %t: !moa.array<[N], f32>, %u: !moa.array<[1], f32>, %v: !moa.array<[N], f32>, %any: !moa.array<[1], i32>, %w: !moa.array<[N, N], f32>):
  device.kernel @first blocks "1" threads 32 {
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      device.store %zero, %any[%c0] : i32, !moa.array<[1], i32>
    }
  }
  device.kernel @open blocks "N" threads 32 {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %s = device.symbol "x.s0"
      %at = arith.muli %b, %s : index
      %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
      %more = arith.cmpf ogt, %e, %zero : f32
      %choice = arith.extui %more : i1 to i32
      device.store %choice, %c[%b] : i32, !moa.array<[N], i32>
      scf.if %more {
        device.raise %any : !moa.array<[1], i32>
      }
    }
  }
  device.kernel @waits blocks "N" threads 32 {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %e = device.load %c[%b] : !moa.array<[N], i32> -> i32
    }
  }
  device.kernel @double blocks "N" threads 64 attributes {moa.idle = "c_any1"} {
    %b = device.block
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %two = arith.constant 2.0 : f32
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %s = device.symbol "x.s0"
      %at = arith.muli %b, %s : index
      %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
      %d = arith.mulf %e, %two : f32
      device.store %d, %t[%b] : f32, !moa.array<[N], f32>
    }
  }
  device.kernel @sum blocks "1" threads 64 attributes {moa.idle = "c_any1"} {
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = device.symbol "N"
    %zero = arith.constant 0.0 : f32
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %all = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero) -> (f32) {
        %e = device.load %t[%k] : !moa.array<[N], f32> -> f32
        %next = arith.addf %sum, %e : f32
        scf.yield %next : f32
      }
      device.store %all, %u[%c0] : f32, !moa.array<[1], f32>
    }
  }
  device.kernel @shift blocks "2*N" threads 32 attributes {moa.idle = "c_any1"} {
    %b = device.block
    %lane = device.thread
    %n = device.symbol "N"
    %c0 = arith.constant 0 : index
    %one = arith.cmpi eq, %lane, %c0 : index
    %is = arith.cmpi slt, %b, %n : index
    %both = arith.andi %one, %is : i1
    scf.if %both {
      %e = device.load %t[%b] : !moa.array<[N], f32> -> f32
      %all = device.load %u[%c0] : !moa.array<[1], f32> -> f32
      %half = arith.constant 0.5 : f32
      %x0 = arith.mulf %e, %half : f32
      %two = arith.constant 11.0 : f32
      %a = arith.addf %x0, %all : f32
      %r = arith.addf %a, %two : f32
      device.store %r, %v[%b] : f32, !moa.array<[N], f32>
    }
  }
  device.kernel @beside blocks "N*N" threads 64 attributes {moa.idle = "c_any1", moa.beside} {
    %b = device.block
    %n = device.symbol "N"
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %one = arith.cmpi eq, %lane, %c0 : index
    scf.if %one {
      %i = arith.divui %b, %n : index
      %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
      device.store %e, %w[%b] : f32, !moa.array<[N, N], f32>
    }
  }
  device.kernel @many blocks "N*N" threads 64 {
    %b = device.block
    %n = device.symbol "N"
    %lane = device.thread
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %one = arith.cmpi eq, %lane, %c0 : index
    %is = arith.cmpi slt, %b, %n : index
    %both = arith.andi %one, %is : i1
    scf.if %both {
      %s = device.symbol "y.s0"
      %at = arith.muli %b, %s : index
      %flag = device.load %any[%c0] : !moa.array<[1], i32> -> i32
      %nobody = arith.cmpi eq, %flag, %none : i32
      %e = scf.if %nobody -> (f32) {
        %left = arith.constant -1.0 : f32
        scf.yield %left : f32
      } else {
        %r = device.load %v[%b] : !moa.array<[N], f32> -> f32
        scf.yield %r : f32
      }
      device.store %e, %y[%at] : f32, !moa.array<[N], f32>
    }
  }
}
