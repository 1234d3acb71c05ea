// Two kernels with a workspace between them, and lists of indices: y is the larger indices, then
// the smaller ones, counted from 3. Each run changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=200 -o y=%t.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); e = np.arange(3, 203); w = 100; assert (y == np.concatenate([e[e > w], e[e <= w]])).all(), y"

// RUN: sed 's/members<300>/members<199>/g' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=ROOM
// ROOM: asks for the indices from 3 to 203, but a list has room for 199
// RUN: sed 's/minui %%place, %%c299/addi %%place, %%c299/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=PLACE
// PLACE: asks for place {{[0-9]+}} of a list with room for 300
// RUN: sed 's/load %%w\[%%c0\]/load %%w[%%c1]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: element [1] of 'w' in the workspace has not been written
// RUN: sed 's/members<300>/members<65000>/g' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: needs 260128 bytes of shared memory with all earlier declarations, but a block has 232448

device.program @lists attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"],
    result_types = [!moa.array<[N], i64>], workspace_names = ["w"], workspace_types = [!moa.array<[2], i64>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], i64>, %w: !moa.array<[2], i64>):
  device.kernel @lists_0 blocks "1" threads 32 {
    %c0 = arith.constant 0 : index
    %thread = device.thread
    %first = arith.cmpi eq, %thread, %c0 : index
    %v = arith.constant 100 : i64
    scf.if %first {
      device.store %v, %w[%c0] : i64, !moa.array<[2], i64>
    }
  }
  device.kernel @lists_1 blocks "1" threads 64 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %c299 = arith.constant 299 : index
    %n = device.symbol "N"
    %end = device.symbol "N + 3"
    %stride = device.symbol "y.s0"
    %bits = device.load %w[%c0] : !moa.array<[2], i64> -> i64
    %bound = arith.index_cast %bits : i64 to index
    %lists:2, %counts:2 = device.collect %c3 to %end : (!device.members<300>, !device.members<300>), (index, index) {
    ^bb0(%t: index):
      %more = arith.cmpi sgt, %t, %bound : index
      %less = arith.cmpi sle, %t, %bound : index
      device.yield %more, %less : i1, i1
    }
    %thread = device.thread
    scf.for %i = %thread to %n step %c64 {
      %isFirst = arith.cmpi slt, %i, %counts#0 : index
      %rest = arith.subi %i, %counts#0 : index
      %place = arith.maxsi %rest, %c0 : index
      %near = arith.minui %place, %c299 : index
      %a = device.member %lists#0[%i] : !device.members<300>
      %b = device.member %lists#1[%near] : !device.members<300>
      %t = arith.select %isFirst, %a, %b : index
      %value = arith.index_cast %t : index to i64
      %at = arith.muli %i, %stride : index
      device.store %value, %y[%at] : i64, !moa.array<[N], i64>
    }
  }
}
