// Pairs of neighbours that a warpgroup stores at once: each begins at an even offset, and its second element stands next to it.
// RUN: moa-run %s --target=device --random 1 -o y=%t.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: in the interpreter
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.shape == (64, 64) and (y == 3).all(), y"
// From the right to the left.
// RUN: sed 's/addi %%first, %%j /addi %%first, %%mirrored /' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 2>&1 | FileCheck %s --check-prefix=MIRRORED
// MIRRORED: stores no pair: two columns have the offsets 63 and 62
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @f attributes {symbols = [], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[64, 64], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[64, 64], f32>]} {
^bb0(%y: !moa.array<[64, 64], f32>, %t: !moa.array<[64, 64], f32>):
  device.kernel @f_0 blocks "1" threads 128 {
    %w = arith.constant 3.0 : f32
    %c64 = arith.constant 64 : index
    %c63 = arith.constant 63 : index
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    device.map(%a) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      %mirrored = arith.subi %c63, %j : index
      %first = arith.muli %i, %c64 : index
      %at = arith.addi %first, %j : index
      device.store %x, %t[%at] pairs : f32, !moa.array<[64, 64], f32>
      device.yield
    }
  }
  device.kernel @f_1 blocks "64" threads 64 {
    %c64 = arith.constant 64 : index
    %block = device.block
    %thread = device.thread
    %first = arith.muli %block, %c64 : index
    %at = arith.addi %first, %thread : index
    %x = device.load %t[%at] : !moa.array<[64, 64], f32> -> f32
    %s0 = device.symbol "y.s0"
    %s1 = device.symbol "y.s1"
    %row = arith.muli %block, %s0 : index
    %column = arith.muli %thread, %s1 : index
    %to = arith.addi %row, %column : index
    device.store %x, %y[%to] : f32, !moa.array<[64, 64], f32>
  }
}
