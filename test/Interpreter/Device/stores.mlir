// Accesses that run on their own: bulk stores out of shared memory, copies into it, contractions. The program below is right: each
// warpgroup stores its rows of w to o and twice as much to p, through the same rows of a ring. Each run changes it in one place.

// RUN: moa-run %s --target=device --random 1 N=200 | FileCheck %s --check-prefix=RIGHT
// RUN: moa-run %s --target=device --random 1 N=1 --interleaving=5 | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter

// Only the warp that has started a bulk store, and awaited it, knows that it has read its rows: the others need a barrier
// after that wait, not one in front of it.
// RUN: sed '/barrier between/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=BARRIER
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 --interleaving=7 2>&1 | FileCheck %s --check-prefix=BARRIER
// RUN: sed '/barrier between/d; s|// early barrier:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=BARRIER
// BARRIER: error: {{.*}}.mlir:[[#SECOND:]]:7: warp 1 of warpgroup [[GROUP:[01]]] overwrites rows {{16 to 31|80 to 95}} of stage 0 of the ring of {{.*}} although the bulk store at {{.*}}.mlir:{{[0-9]+}}:7: may still read them: only warp 0 of warpgroup [[GROUP]] has awaited it, and no barrier follows
// RUN: sed '/wait between/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: warp 0 of warpgroup {{[01]}} overwrites rows {{0 to 15|64 to 79}} of stage 0 of the ring of {{.*}} while the bulk store at {{.*}} reads them and is not awaited
// RUN: sed '/wait at the end/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=END
// END: the block may end before this bulk store has read stage 0 of the ring of {{.*}}: nobody waits for it

// Another ring needs no wait in between, and a barrier on which all warps arrive tells the producer.
// RUN: sed '/ between/d; s/%%twice through %%rows/%%twice through %%spare/' %s > %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=200 | FileCheck %s --check-prefix=RIGHT
// RUN: sed 's|// next rows:||' %s > %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=200 | FileCheck %s --check-prefix=RIGHT
// RUN: sed 's|// next rows:||; /wait at the end/d; s|// wait behind:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=NEXT
// NEXT: the producer overwrites rows 0 to 127 of stage 0 of the ring of {{.*}} {{while|although}} the bulk store at {{.*}} {{reads them and is not awaited|may still read them}}

// What bulk stores write is there when the launch has ended, not before: no kernel reads an output.
// RUN: sed 's|// look:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=LOOK
// LOOK: 'device.load' {{.*}}expects an input or an array of the workspace (C2)
// Copies do not see what threads of the same launch have written: an earlier launch must have written it all.
// RUN: sed '/^  device.kernel @fill/,/^  }$/d; s|// fresh:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 2>&1 | FileCheck %s --check-prefix=FRESH
// FRESH: 'device.copy' op expects an earlier kernel to store array 'w' of the workspace (D5)

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!tile = !device.fragment<[64, 64], bf16, #acc>
!ring = !device.ring<1, [128, 64], bf16>
!once = !device.barriers<1, 1>
!left = !device.barriers<1, 8>
!array = !moa.array<[N, 64], bf16>

device.program @twice attributes {symbols = ["N"], requires = [], arg_names = ["q"], result_names = ["o", "p"],
    result_types = [!array, !array], workspace_names = ["w"], workspace_types = [!array]} {
^bb0(%q: !array, %o: !array, %p: !array, %w: !array):
  device.kernel @fill blocks "N" threads 64 {
    %c64 = arith.constant 64 : index
    %row = device.block
    %column = device.thread
    %stride = device.symbol "q.s0"
    %start = arith.muli %row, %stride : index
    %step = device.symbol "q.s1"
    %place = arith.muli %column, %step : index
    %from = arith.addi %start, %place : index
    %x = device.load %q[%from] : !array -> bf16
    %first = arith.muli %row, %c64 : index
    %to = arith.addi %first, %column : index
    device.store %x, %w[%to] : bf16, !array
  }
  device.kernel @work blocks "(N + 127)/128" threads 384 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %rows = device.shared : !ring
    %full = device.barriers : !once
    %spare = device.shared : !ring
    %left = device.barriers : !left
    %again = device.barriers : !once
    %block = device.block
    %first_row = arith.muli %block, %c128 : index
    device.specialize consumers 2 registers 240 {
      %warpgroup = device.warpgroup
      %offset = arith.muli %warpgroup, %c64 : index
      %row_base = arith.addi %first_row, %offset : index
      device.wait %full[%c0] parity %c0 : !once
      %x = device.load_fragment %rows[%c0] at %offset, %c0 : !ring -> !tile
      device.store_tile %x through %rows[%c0] from %offset to %o[%row_base] rows 0 : !tile, !ring, !array
      %twice = device.map(%x) over #acc : (!tile) -> !tile {
      ^bb0(%e: bf16, %i: index, %j: index):
        %y = arith.addf %e, %e : bf16
        device.yield %y : bf16
      }
      // early barrier: device.sync_warpgroup
      device.await_stores // wait between
      device.sync_warpgroup // barrier between
      device.store_tile %twice through %rows[%c0] from %offset to %p[%row_base] rows 0 : !tile, !ring, !array
      // look: %stride = device.symbol "o.s0"
      // look: %at = arith.muli %first_row, %stride : index
      // look: %seen = device.load %o[%at] : !array -> bf16
      device.await_stores // wait at the end
      // next rows: device.arrive %left[%c0] : !left
      // wait behind: device.await_stores
      // next rows: device.wait %again[%c0] parity %c0 : !once
      // next rows: %z = device.load_fragment %rows[%c0] at %offset, %c0 : !ring -> !tile
    } producer registers 24 {
      // fresh: %one = arith.constant 1.0 : bf16
      // fresh: device.store %one, %w[%c0] : bf16, !array
      device.copy %w[%first_row] rows 0 to %rows[%c0] signals %full[%c0] : !array, !ring, !once
      // next rows: device.wait %left[%c0] parity %c0 : !left
      // next rows: device.copy %w[%first_row] rows 0 to %rows[%c0] signals %again[%c0] : !array, !ring, !once
    }
  }
}
