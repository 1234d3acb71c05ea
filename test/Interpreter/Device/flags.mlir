// Blocks that end where nobody has raised a flag: somebody has where N is 3. What they signal is counted, which tells whether
// they have ended, as it does not where they do nothing anyway. Each run changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=2 -o y=%t.npy
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.tolist() == [2], y"
// RUN: moa-opt %s -device-skip-unchosen -device-verify -o %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=2 -o y=%t.npy
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.tolist() == [0], y"
// RUN: moa-run %t.mlir --target=device --random 1 --interleaving=3 N=3 -o y=%t.npy
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.tolist() == [3], y"

// Threads that do not agree whether their block ends.
// RUN: sed 's/^\( *\)\(%%.*\) = arith.cmpi eq, %%.*, %%c0_i32.* : i32$/\1%%some = device.thread\n\1%%zero = arith.constant 0 : index\n\1\2 = arith.cmpi eq, %%some, %%zero : index/' %t.mlir > %t-some.mlir
// RUN: not moa-run %t-some.mlir --target=device --random 1 N=3 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: needs one index for all threads, but got 1 and 0
// A flag that nobody has set to 0.
// RUN: sed 's/@first blocks "1"/@first blocks "0"/' %t.mlir > %t-none.mlir
// RUN: not moa-run %t-none.mlir --target=device --random 1 N=3 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: flag 'c_any1' has not been set to 0

device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[1], i64>], workspace_names = ["c", "count"], workspace_types = [!moa.array<[N], i32>, !moa.array<[1], i32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[1], i64>, %c: !moa.array<[N], i32>, %count: !moa.array<[1], i32>):
  device.kernel @first blocks "1" threads 32 {
    %thread = device.thread
    %first = arith.constant 0 : index
    %isFirst = arith.cmpi eq, %thread, %first : index
    %none = arith.constant 0 : i32
    scf.if %isFirst {
      device.store %none, %count[%first] : i32, !moa.array<[1], i32>
    }
  }
  device.kernel @choose blocks "N" threads 32 {
    %block = device.block
    %thread = device.thread
    %first = arith.constant 0 : index
    %two = arith.constant 2 : index
    %isFirst = arith.cmpi eq, %thread, %first : index
    %isTwo = arith.cmpi eq, %block, %two : index
    %choice = arith.extui %isTwo : i1 to i32
    scf.if %isFirst {
      device.store %choice, %c[%block] : i32, !moa.array<[N], i32>
    }
  }
  device.kernel @work blocks "N" threads 32 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %first = arith.constant 0 : index
    device.signal %count[%first] : !moa.array<[1], i32>
  }
  device.kernel @result blocks "1" threads 32 {
    %thread = device.thread
    %first = arith.constant 0 : index
    %isFirst = arith.cmpi eq, %thread, %first : index
    scf.if %isFirst {
      %n = device.signals %count[%first] : !moa.array<[1], i32>
      %number = arith.index_cast %n : index to i64
      device.store %number, %y[%first] : i64, !moa.array<[1], i64>
    }
  }
}
