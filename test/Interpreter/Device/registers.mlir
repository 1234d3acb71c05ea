// Registers of contractions in a kernel without roles: one warpgroup, whose first
// thread asks for the copy. Every run changes the program in one place.

// RUN: moa-run %s --target=device --random 1 N=64 | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter

// Nothing is awaited: the next round changes the sum of the one before, or makes the
// operand in registers anew.
// RUN: sed 's/yield %%done/yield %%start/; /early/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=64 2>&1 | FileCheck %s --check-prefix=CHANGED
// CHANGED: overwrites registers that the contraction at {{.*}} still writes: it is not awaited (block 0)
// RUN: sed 's/yield %%done/yield %%start/; s/ plus %%o : !tile//; /early/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=64 2>&1 | FileCheck %s --check-prefix=OPERAND
// OPERAND: error: {{.*}}.mlir:[[#]]:[[#]]: overwrites registers that the contraction at {{.*}}.mlir:[[#]]:[[#]]: still reads: it is not awaited (block 0)
// A sum that the loop carries is given its next value before the await.
// RUN: sed 's/yield %%done/yield %%sum/; /early/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=64 2>&1 | FileCheck %s --check-prefix=CARRIED
// CARRIED: uses the result of the contraction at {{.*}} which has not been awaited
// Only some threads of a warpgroup, and two warpgroups at once.
// RUN: sed 's/scf.if %%all {/scf.if %%first {/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=64 2>&1 | FileCheck %s --check-prefix=SOME
// SOME: 'device.contract' needs all threads, but 1 of 128 are here (block 0)
// RUN: sed 's/threads 128/threads 256/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=64 2>&1 | FileCheck %s --check-prefix=WIDE
// WIDE: 'device.fill' needs the 128 threads of a warpgroup, but 256 run it (block 0)

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!tile = !device.fragment<[64, 64], f32, #acc>
!narrow = !device.fragment<[64, 64], bf16, #acc>
!ring = !device.ring<1, [64, 64], bf16>
!wide = !moa.array<[N, 64], bf16>

device.program @sums attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !wide, %y: !wide):
  device.kernel @sums_0 blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : bf16
    %thread = device.thread
    %first = arith.cmpi eq, %thread, %c0 : index
    %all = arith.cmpi sge, %thread, %c0 : index
    %ring = device.shared : !ring
    %staged = device.shared : !ring
    %full = device.barriers : !device.barriers<1, 1>
    scf.if %first {
      device.copy %x[%c0] rows 0 to %ring[%c0] signals %full[%c0] : !wide, !ring, !device.barriers<1, 1>
    }
    device.wait %full[%c0] parity %c0 : !device.barriers<1, 1>
    %start = device.fill %zero : f32 -> !tile
    %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%o = %start) -> (!tile) {
      %ones = device.fill %one : bf16 -> !narrow
      scf.if %all {
        %sum0 = device.contract %ones by %ring[%c0] : !narrow, !ring -> !tile
        %done0 = device.await %sum0 pending 0 : !tile // early
      }
      %sum = device.contract %ones by %ring[%c0] plus %o : !tile : !narrow, !ring -> !tile
      %done = device.await %sum pending 0 : !tile // early
      scf.yield %done : !tile
    }
    %rounded = device.map(%last) over #acc : (!tile) -> !narrow {
    ^bb0(%a: f32, %i: index, %j: index):
      %b = arith.truncf %a : f32 to bf16
      device.yield %b : bf16
    }
    device.store_tile %rounded through %staged[%c0] from %c0 to %y[%c0] rows 0 : !narrow, !ring, !wide
    device.await_stores
  }
}
