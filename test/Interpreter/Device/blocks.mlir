// Blocks that take the numbers of others (device.next_block): the interpreter runs each by itself, and checks that phases of
// barriers are what the next one expects, and that numbers are handed out from 0. Each run changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=200 -o y=%t.npy
// RUN: moa-run %s --target=device --random 1 N=200 --interleaving=7 -o y=%t-7.npy
// RUN: sed 's/device.next_block %%count\[%%c0\] below %%blocks residents 2 :.*/device.block/; /await_consumers/d' %s > %t-grid.mlir
// RUN: moa-run %t-grid.mlir --target=device --random 1 N=200 -o y=%t-grid.npy
// RUN: %python -c "import numpy as np; a, b, c = (np.load('%t' + x + '.npy') for x in ('', '-7', '-grid')); assert a.shape == (200, 64) and a.any(1).all() and (a == b).all() and (a == c).all()"

// A phase less or more than the next block expects.
// RUN: sed 's/device.barriers odd/device.barriers/' %s > %t-even.mlir
// RUN: not moa-run %t-even.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=EVEN
// EVEN: the block ends after 1 phases of the barriers of {{.*}}[0], and the next one expects an even number
// RUN: sed 's|// more:||' %s > %t-odd.mlir
// RUN: not moa-run %t-odd.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: the block ends after 0 phases of the barriers of {{.*}}[0], and the next one expects an odd number
// A counter that does not start at 0, or has not been set; another number of blocks.
// RUN: sed 's/arith.constant 0 : i32/arith.constant 3 : i32/' %s > %t-start.mlir
// RUN: not moa-run %t-start.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=START
// START: counter 0 of 'count' starts at 3 and not at 0
// RUN: sed 's/@clear blocks "1"/@clear blocks "0"/' %s > %t-none.mlir
// RUN: not moa-run %t-none.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: counter 0 of 'count' has not been set
// RUN: sed 's|device.symbol "(N + 63)/64"|device.symbol "N/64"|' %s > %t-few.mlir
// RUN: not moa-run %t-few.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=FEW
// FEW: hands out 3 blocks, but the kernel has 4

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!narrow = !device.fragment<[64, 64], bf16, #acc>

device.program @copy attributes {symbols = ["N"], requires = [], arg_names = ["q"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>], workspace_names = ["count"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%q: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>, %count: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %thread = device.thread
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %isFirst = arith.cmpi eq, %thread, %c0 : index
    scf.if %isFirst {
      device.store %none, %count[%c0] : i32, !moa.array<[1], i32>
    }
  }
  device.kernel @copy_0 blocks "(N + 63)/64" threads 256 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %n = device.symbol "N"
    %stride = device.symbol "y.s0"
    %step = device.symbol "y.s1"
    %blocks = device.symbol "(N + 63)/64"
    %rows = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers odd : !device.barriers<1, 1>
    // more: %other = device.barriers odd : !device.barriers<1, 1>
    %block = device.next_block %count[%c0] below %blocks residents 2 : !moa.array<[1], i32>
    %first = arith.muli %block, %c64 : index
    %all = arith.cmpi sge, %block, %c0 : index
    device.specialize if %all consumers 1 registers 240 {
      device.wait %full[%c0] parity %c0 : !device.barriers<1, 1>
      %tile = device.load_fragment %rows[%c0] at %c0, %c0 : !device.ring<1, [64, 64], bf16> -> !narrow
      device.map(%tile) over #acc : (!narrow) -> () {
      ^bb0(%x: bf16, %i: index, %j: index):
        %row = arith.addi %first, %i : index
        %inside = arith.cmpi slt, %row, %n : index
        scf.if %inside {
          %wide = arith.extf %x : bf16 to f32
          %start = arith.muli %row, %stride : index
          %column = arith.muli %j, %step : index
          %at = arith.addi %start, %column : index
          device.store %wide, %y[%at] : f32, !moa.array<[N, 64], f32>
        }
        device.yield
      }
    } producer registers 24 {
      device.await_consumers
      device.copy %q[%first] rows 0 to %rows[%c0] signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
    }
  }
}
