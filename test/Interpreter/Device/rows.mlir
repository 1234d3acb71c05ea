// A kernel of threads that know nothing of one another: every row is summed into a
// private array first. Each run changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=200 -o y=%t.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter
// RUN: %python -c "import numpy as np; y = np.load('%t.npy'); assert y.shape == (200,) and (y == np.minimum(np.arange(200) + 1, 128)).all(), y"

// RUN: sed 's/scf.if %%inside/scf.if %%always/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=LOAD
// LOAD: error: {{.*}}.mlir:[[#]]:[[#]]: loads outside of its array: address [[#]] is no element of 'x' of shape [200] (block 1, thread 72)
// RUN: sed 's/"y.s0"/"1"/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=STORE
// STORE: stores outside of its array: address 1 is no element of 'y' of shape [200] (block 0, thread 1)
// RUN: sed 's/divui %%row, %%c1 /divui %%row, %%c2 /' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: element [0] of 'y' is written twice (block 0, thread 1)
// RUN: sed 's/divui %%row, %%c1 /divui %%row, %%c0 /' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=ZERO
// ZERO: division by zero (block 0)
// RUN: sed 's/%%inside = arith.cmpi slt/%%inside = arith.cmpi sgt/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=128 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: element [0] of output 'y' is never written
// RUN: sed '/start/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=PRIVATE
// PRIVATE: reads an element of a private array that was never written (block 0, thread 0)
// RUN: sed 's/load %%sums\[%%c1\]/load %%sums[%%row]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=INDEX
// INDEX: index 2 is outside of a private array of shape [2] (block 0, thread 2)
// RUN: sed 's/step %%c1/step %%c0/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: a loop's step is 0 (block 0, thread 0)
// RUN: sed 's/blocks "(N + 127)\/128"/blocks "N - 300"/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=GRID
// GRID: a grid of -100 blocks, the value of 'N - 300'
// A program of this level cannot be compared with what it was made from, nor run by
// other targets.
// RUN: not moa-run %s --target=device --random 1 N=200 --check 2>&1 | FileCheck %s --check-prefix=CHECK
// CHECK: error: --check compares with the interpreter of the specification, but {{.*}}rows.mlir is at the level device; check the specification, or compare the files of -o
// RUN: not moa-run %s --random 1 N=200 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: {{.*}}rows.mlir is at the level device; --target=device runs it
// RUN: not moa-run %s --target=reference --random 1 N=200 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not moa-codegen %s --emit=lifted 2>&1 | FileCheck %s --check-prefix=ABOVE
// ABOVE: error: the input stands below the level lifted: it is at the level device
// RUN: not moa-run %s --interleaving=3 --random 1 N=200 2>&1 | FileCheck %s --check-prefix=FLAG
// FLAG: --interleaving applies to --target=device only

device.program @ranks attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @ranks_0 blocks "(N + 127)/128" threads 128 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c128 = arith.constant 128 : index
    %always = arith.constant true
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %block = device.block
    %thread = device.thread
    %first = arith.muli %block, %c128 : index
    %row = arith.addi %first, %thread : index
    %n = device.symbol "N"
    %inside = arith.cmpi slt, %row, %n : index
    %sums = memref.alloca() : memref<2xf32>
    scf.if %inside {
      %stride = device.symbol "x.s0"
      %from = arith.muli %row, %stride : index
      %e = device.load %x[%from] : !moa.array<[N], f32> -> f32
      memref.store %zero, %sums[%c1] : memref<2xf32> // start
      // As many rounds as the row has threads before it in its block, and one: at
      // most 128 with what the first element is.
      %next = arith.addi %row, %c1 : index
      %rounds = arith.minsi %next, %c128 : index
      scf.for %i = %c0 to %rounds step %c1 {
        %old = memref.load %sums[%c1] : memref<2xf32>
        %new = arith.addf %old, %one : f32
        memref.store %new, %sums[%c1] : memref<2xf32>
      }
      %sum = memref.load %sums[%c1] : memref<2xf32>
      %same = arith.subf %e, %e : f32
      %result = arith.addf %sum, %same : f32
      %ystride = device.symbol "y.s0"
      %place = arith.divui %row, %c1 : index
      %to = arith.muli %place, %ystride : index
      device.store %result, %y[%to] : f32, !moa.array<[N], f32>
    }
  }
}
