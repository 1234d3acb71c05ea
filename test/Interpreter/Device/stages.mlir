// Stages of one launch (device.stages): each block of the interpreter's grid is one of a stage, in order. Each run changes the
// program in one place.

// RUN: %python -c "import numpy as np; np.save('%t.x.npy', np.float32([1, 2, 3, 4, 5]))"
// RUN: moa-run %s --target=device x=%t.x.npy N=5 -o y=%t.npy
// RUN: moa-run %s --target=device --interleaving=3 x=%t.x.npy N=5 -o y=%t-3.npy
// RUN: %python -c "import numpy as np; a, b = np.load('%t.npy'), np.load('%t-3.npy'); assert (a == [11, 9, 7, 5, 3]).all() and (a == b).all(), (a, b)"

// A counter that does not start at 0, or has not been set; another number of blocks.
// RUN: sed 's/arith.constant 0 : i32/arith.constant 3 : i32/' %s > %t-start.mlir
// RUN: not moa-run %t-start.mlir --target=device x=%t.x.npy N=5 2>&1 | FileCheck %s --check-prefix=START
// START: counter 32 of 'turns' starts at 3 and not at 0
// RUN: sed 's/@clear blocks "1"/@clear blocks "0"/' %s > %t-none.mlir
// RUN: not moa-run %t-none.mlir --target=device x=%t.x.npy N=5 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: counter 0 of 'turns' has not been set
// RUN: sed 's/@work blocks "2\*N"/@work blocks "N"/' %s > %t-few.mlir
// RUN: not moa-run %t-few.mlir --target=device x=%t.x.npy N=5 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: block 0 of 10 in stages, but the kernel has 5

device.program @reverse attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["w", "turns"], workspace_types = [!moa.array<[N], f32>, !moa.array<[33], i32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %w: !moa.array<[N], f32>, %turns: !moa.array<[33], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %thread = device.thread
    %c0 = arith.constant 0 : index
    %c32 = arith.constant 32 : index
    %none = arith.constant 0 : i32
    %is = arith.cmpi eq, %thread, %c0 : index
    scf.if %is {
      device.store %none, %turns[%c0] : i32, !moa.array<[33], i32>
      device.store %none, %turns[%c32] : i32, !moa.array<[33], i32>
    }
  }
  device.kernel @work blocks "2*N" threads 32 {
    %n = device.symbol "N"
    device.stages %turns residents 3 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
      %thread = device.thread
      %c0 = arith.constant 0 : index
      %two = arith.constant 2.0 : f32
      %is = arith.cmpi eq, %thread, %c0 : index
      scf.if %is {
        %s = device.symbol "x.s0"
        %at = arith.muli %b, %s : index
        %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
        %d = arith.mulf %e, %two : f32
        device.store %d, %w[%b] : f32, !moa.array<[N], f32>
      }
    }, {
    ^bb0(%b: index):
      %thread = device.thread
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %one = arith.constant 1.0 : f32
      %is = arith.cmpi eq, %thread, %c0 : index
      scf.if %is {
        %last = arith.subi %n, %c1 : index
        %from = arith.subi %last, %b : index
        %s = device.symbol "y.s0"
        %at = arith.muli %b, %s : index
        %e = device.load %w[%from] : !moa.array<[N], f32> -> f32
        %d = arith.addf %e, %one : f32
        device.store %d, %y[%at] : f32, !moa.array<[N], f32>
      }
    }
  }
}
