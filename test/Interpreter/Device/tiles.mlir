// What the interpreter of the device level refuses. The program below is right: it
// sums q·k over the keys, and (q·k)·v. Each run changes it in one place.

// RUN: moa-run %s --target=device --random 1 N=200 M=300 | FileCheck %s --check-prefix=RIGHT
// RUN: moa-run %s --target=device --random 1 N=1 M=1 --interleaving=5 | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter

// A contraction may continue the sum of one that is on its way: (q·k) + (q·k), of which the awaited one is the second.
// RUN: sed 's|%%raw = device.await %%started|%%more = device.contract %%queries rows %%offset by %%keys[%%stage] transposed plus %%started : !tile : !queries, !keys -> !tile\n        %%raw = device.await %%more|' %s > %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=200 M=300 | FileCheck %s --check-prefix=RIGHT
// RUN: sed -i 's/await %%more/await %%started/' %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=CONTINUED
// CONTINUED: 'device.contract' op expects that nothing else reads the sum of another contraction that it continues (C6)

// A result is used, and a sum, before the contraction has been awaited; an await that
// does not cover it, or none at all; and a stage that is let go too early.
// RUN: sed 's/(%%raw)/(%%started)/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=USED
// USED: error: {{.*}}.mlir:[[#]]:[[#]]: uses the result of the contraction at {{.*}}.mlir:[[#]]:[[#]]: which has not been awaited (block 0, warpgroup 0)
// RUN: sed 's|// sum:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=SUM
// SUM: uses the sum that the contraction at {{.*}} continues, before it is awaited
// RUN: sed 's/await %%started pending 0/await %%started pending 1/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=PENDING
// PENDING: leaves 1 contractions on their way, of which the awaited one, at {{.*}} is one: only 0 were started after it
// RUN: sed 's|// never:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=NEVER
// NEVER: this contraction is never awaited
// RUN: sed 's|// early:||; /late/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: the producer overwrites rows 0 to 63 of stage 0 of the ring of {{.*}} although warpgroup {{[01]}} may still read them at {{.*}} nothing orders the two
// RUN: sed 's|// twice:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: awaits a fragment that no contraction gives

// Barriers: a parity of the wrong kind on either side, arrivals that are missing,
// too many, or of too few, and a phase that overtakes a wait.
// RUN: sed 's/wait %%keys_full\[%%stage\] parity %%parity/wait %%keys_full[%%stage] parity %%other/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=COPY
// COPY: warpgroup 0 reads rows 0 to 63 of stage 0 of the ring of {{.*}} before the copy at {{.*}} is known to have completed
// RUN: sed 's/wait %%keys_empty\[%%stage\] parity %%free/wait %%keys_empty[%%stage] parity %%parity/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=DEADLOCK
// DEADLOCK: block 0 never ends: warpgroup 0 waits at {{.*}} for parity 0 of the barriers of {{.*}}[0], whose phase 0 has 0 of 1 arrivals; warpgroup 1 waits at {{.*}}; the producer waits at {{.*}} for parity 0 of the barriers of {{.*}}[0], whose phase 0 has 0 of 8 arrivals
// RUN: sed '/late/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: block 0 never ends: {{.*}}the producer waits at {{.*}} for parity 0 of {{.*}}[0], whose phase 0 has 0 of 8 arrivals
// RUN: sed 's|device.arrive %%keys_empty\[%%stage\] : !empty // late|scf.if %%is_first { device.arrive %%keys_empty[%%stage] : !empty }|' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=64 2>&1 | FileCheck %s --check-prefix=SHORT
// HALF: block 0 never ends: {{.*}}phase 0 has 4 of 8 arrivals
// SHORT: the block ends with 4 of 8 arrivals in phase 0 of the barriers of {{.*}}[0]
// RUN: sed 's|// again:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=MORE
// MORE: warpgroup {{[01]}} arrives at the barriers of {{.*}}[0], but phase 0 {{may then have|has}} more than its 8 arrivals
// RUN: sed 's|!empty = !device.barriers<2, 8>|!empty = !device.barriers<2, 4>|; s|device.arrive \(.*\) : !empty|scf.if %%is_first { device.arrive \1 : !empty }|' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=600 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=600 --interleaving=3 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: {{although warpgroup 1 may still read them at|has been overtaken|may complete before warpgroup 1 has waited for phase}}
// One warp that arrives for its warpgroup tells nothing of the part that the others have of a contraction.
// RUN: sed 's|!empty = !device.barriers<2, 8>|!empty = !device.barriers<2, 2>|; s|device.arrive \(.*\) : !empty|scf.if %%is_first_warp { device.arrive \1 : !empty }|' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=WARP
// WARP: the producer overwrites rows 0 to 63 of stage 0 of the ring of {{.*}} although warpgroup {{[01]}} may still read them at {{.*}} nothing orders the two
// RUN: sed 's|// four:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=FOUR
// FOUR: warpgroup 0 arrives at the barriers of {{.*}}[0], but phase 0 has more than its 1 arrivals: 0 and 4 more
// RUN: sed 's|// pace:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=PACE
// PACE: warpgroup {{[01]}} waits for phase 0 of the barriers of {{.*}}[0], but 2 phases have completed: the wait has been overtaken
// RUN: sed '/wait %%keys_empty/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=OVERWRITE
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 --interleaving=2 2>&1 | FileCheck %s --check-prefix=OVERWRITE
// OVERWRITE: the producer overwrites rows 0 to 63 of stage 0 of the ring of {{.*}}
// RUN: sed 's/store_tile %%rounded through %%queries\[%%c0\] from %%offset/store_tile %%rounded through %%queries[%%c0] from %%c0/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: warpgroup {{[01]}} overwrites rows 0 to 15 of stage 0 of the ring of {{.*}} although warpgroup {{[01]}} may still {{read|write}} them at
// RUN: sed 's|// idle:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=IDLE
// IDLE: the block may end before this copy into stage 0 of the ring of {{.*}}: nobody waits for it
// RUN: sed 's|// all:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=ALL
// ALL: one thread executes a copy, but 128 do (block 0, warpgroup 0)

// Clearing: by all consumers, of one stage.
// RUN: sed 's|device.clear_unseen \(.*\)$|scf.if %%is_first { device.clear_unseen \1 }|' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=CLEAR
// CLEAR: block 0 never ends: warpgroup 0 waits at {{.*}} for the other consumers: 1 of 2 are there;
// RUN: sed 's/clear_unseen %%values\[%%stage\]/clear_unseen %%values[%%w]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES: the consumers clear different stages: here stage 1 of the ring of {{.*}}, but another does stage 0 at
// Without the wait the rows that are cleared may still be on their way.
// RUN: sed '/wait %%values_full/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=UNCOPIED
// UNCOPIED: overwrites rows 0 to 63 of stage 0 of the ring of {{.*}} before the copy at {{.*}} is known to have completed

// A copy of every so many-th row, which must be at least every one.
// RUN: sed 's/%%k\[%%first_key\] rows 0 to/%%k[%%first_key] rows 0 step "N\/200" to/' %s > %t.mlir
// RUN: moa-run %t.mlir --target=device --random 1 N=200 M=300 | FileCheck %s --check-prefix=RIGHT
// RUN: not moa-run %t.mlir --target=device --random 1 N=100 M=300 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: a step of rows is at least 1, but got 0 (block 0, the producer)

// Memory: stages nobody fills, stages and rows that do not exist, too much of it.
// RUN: sed '/queries_full\[%%c0\]/d' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: warpgroup 0 reads element [0, 0] of stage 0 of the ring of {{.*}}, which nothing has written
// RUN: sed 's/by %%keys\[%%stage\]/by %%keys[%%c2]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=STAGE
// STAGE: the ring of {{.*}} has no stage 2, only 2
// RUN: sed 's/%%queries rows %%offset/%%queries rows %%row_base/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=ROW
// ROW: reads rows 128 to 191 of the ring of {{.*}}, which has 128 (block 1, warpgroup 0)
// RUN: sed 's/!keys = !device.ring<2/!keys = !device.ring<30/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=SHARED
// SHARED: needs [[#]] bytes of shared memory with all earlier declarations, but a block has 232448

// Outputs: every element once, by one of the threads that hold it, inside.
// RUN: sed 's/blocks "(N + 127)\/128"/blocks "N\/128"/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=UNSTORED
// UNSTORED: element [128, 0] of output 'o' is never written
// RUN: sed 's|// store again:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: element {{\[(0|64), 0\]}} of 'o' is written twice (block 0, warpgroup {{[01]}})
// RUN: sed 's/slt, %%row, %%n : index \/\/ inside/slt, %%row, %%row_end : index/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: stores outside of its array: address [[#]] is no element of 'total' of shape [200] (block 1, warpgroup {{[01]}}, thread {{[0-9]+}})
// RUN: sed 's/device.map(%%r#1) over #row : (!rows) -> ()/%%unused = device.map(%%r#1) over #row : (!rows) -> !rows/; s/device.yield \/\/ stored/device.yield %%x : f32/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=REPLICAS
// REPLICAS: element [0] of the fragments is stored by threads {{(0 and 1|128 and 129)}}, which both hold it

// Threads that must agree do not.
// RUN: sed 's/= device.fill %%zero : f32 -> !rows/= device.fill %%mine : f32 -> !rows/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=DISAGREE
// DISAGREE: the threads that hold element [0] disagree: thread 0 has 0.000000, thread 1 has 1.000000
// RUN: sed 's/wait %%queries_full\[%%c0\]/wait %%queries_full[%%thread]/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=INDEX
// INDEX: needs one index for all threads, but got 0 and 1
// RUN: sed 's/scf.if %%once {/scf.if %%thread_is_first {/' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device --random 1 N=200 M=300 2>&1 | FileCheck %s --check-prefix=PART
// PART: 'device.wait' needs all threads, but 1 of 128 are here

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
!tile = !device.fragment<[64, 64], f32, #acc>
!narrow = !device.fragment<[64, 64], bf16, #acc>
!flags = !device.fragment<[64, 64], i1, #acc>
!rows = !device.fragment<[64], f32, #row>
!queries = !device.ring<1, [128, 64], bf16>
!keys = !device.ring<2, [64, 64], bf16>
!values = !device.ring<2, [64, 64], bf16>
!once = !device.barriers<1, 1>
!full = !device.barriers<2, 1>
!empty = !device.barriers<2, 8>
!wide = !moa.array<[N, 64], bf16>
!long = !moa.array<[M, 64], bf16>

device.program @chain attributes {symbols = ["N", "M"], requires = [], arg_names = ["q", "k", "v"],
    result_names = ["o", "total"], result_types = [!moa.array<[N, 64], bf16>, !moa.array<[N], f32>]} {
^bb0(%q: !wide, %k: !long, %v: !long, %o_out: !wide, %total: !moa.array<[N], f32>):
  device.kernel @chain_0 blocks "(N + 127)/128" threads 384 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %zero = arith.constant 0.0 : f32
    %n = device.symbol "N"
    %m = device.symbol "M"
    %tiles = device.symbol "(M + 63)/64"
    %queries = device.shared : !queries
    %queries_full = device.barriers : !once
    %keys = device.shared : !keys
    %keys_full = device.barriers : !full
    %keys_empty = device.barriers : !empty
    %values = device.shared : !values
    %values_full = device.barriers : !full
    %values_empty = device.barriers : !empty
    %spare = device.shared : !values
    %spare_full = device.barriers : !once
    %block = device.block
    %first_row = arith.muli %block, %c128 : index
    device.specialize consumers 2 registers 240 {
      %w = device.warpgroup
      %thread = device.thread
      %thread32 = arith.index_cast %thread : index to i32
      %mine = arith.sitofp %thread32 : i32 to f32
      %thread_is_first = arith.cmpi eq, %thread, %c0 : index
      %is_first = arith.cmpi eq, %w, %c0 : index
      %own_thread = arith.remui %thread, %c128 : index
      %c32 = arith.constant 32 : index
      %is_first_warp = arith.cmpi slt, %own_thread, %c32 : index
      %once = arith.cmpi eq, %c0, %c0 : index
      %offset = arith.muli %w, %c64 : index
      %row_base = arith.addi %first_row, %offset : index
      %row_end = arith.addi %row_base, %c64 : index
      scf.if %once {
        device.wait %queries_full[%c0] parity %c0 : !once
      }
      %o_first = device.fill %zero : f32 -> !tile
      %sums_first = device.fill %zero : f32 -> !rows
      // four: device.arrive %spare_full[%c0] : !once
      // pace: device.wait %spare_full[%c0] parity %c0 : !once
      // all: device.copy %q[%first_row] rows 0 to %queries[%c0] signals %spare_full[%c0] : !wide, !queries, !once
      %r:2 = scf.for %t = %c0 to %tiles step %c1 iter_args(%o = %o_first, %sums = %sums_first) -> (!tile, !rows) {
        %stage = arith.remui %t, %c2 : index
        %round = arith.divui %t, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %other = arith.subi %c1, %parity : index
        device.wait %keys_full[%stage] parity %parity : !full
        %started = device.contract %queries rows %offset by %keys[%stage] transposed : !queries, !keys -> !tile
        // early: device.arrive %keys_empty[%stage] : !empty
        %raw = device.await %started pending 0 : !tile
        // twice: %raw_twice = device.await %raw pending 0 : !tile
        device.arrive %keys_empty[%stage] : !empty // late
        // again: device.arrive %keys_empty[%stage] : !empty
        %first_key = arith.muli %t, %c64 : index
        %scores = device.map(%raw) over #acc : (!tile) -> !tile {
        ^bb0(%x: f32, %i: index, %j: index):
          %key = arith.addi %first_key, %j : index
          %present = arith.cmpi slt, %key, %m : index
          %y = arith.select %present, %x, %zero : f32
          device.yield %y : f32
        }
        %seen = device.map() over #acc : () -> !flags {
        ^bb0(%i: index, %j: index):
          %key = arith.addi %first_key, %j : index
          %present = arith.cmpi slt, %key, %m : index
          device.yield %present : i1
        }
        device.wait %values_full[%stage] parity %parity : !full
        device.clear_unseen %values[%stage] unless %seen : !values, !flags
        %weights = device.map(%scores) over #acc : (!tile) -> !narrow {
        ^bb0(%x: f32, %i: index, %j: index):
          %y = arith.truncf %x : f32 to bf16
          device.yield %y : bf16
        }
        %part = device.reduce add %scores : !tile -> !rows
        %o0 = device.contract %weights by %values[%stage] plus %o : !tile : !narrow, !values -> !tile
        // sum: %peek = device.reduce add %o : !tile -> !rows
        %sums_next = device.map(%sums, %part) over #row : (!rows, !rows) -> !rows {
        ^bb0(%a: f32, %b: f32, %i: index):
          %c = arith.addf %a, %b : f32
          device.yield %c : f32
        }
        %o1 = device.await %o0 pending 0 : !tile
        device.arrive %values_empty[%stage] : !empty
        scf.yield %o1, %sums_next : !tile, !rows
      }
      %rounded = device.map(%r#0) over #acc : (!tile) -> !narrow {
      ^bb0(%x: f32, %i: index, %j: index):
        %y = arith.truncf %x : f32 to bf16
        device.yield %y : bf16
      }
      // never: %never = device.contract %rounded by %values[%c0] : !narrow, !values -> !tile
      // store again: scf.for %again = %c0 to %c2 step %c1 {
      device.store_tile %rounded through %queries[%c0] from %offset to %o_out[%row_base] rows 0 : !narrow, !queries, !wide
      device.await_stores
      device.sync_warpgroup
      // store again: }
      device.map(%r#1) over #row : (!rows) -> () {
      ^bb0(%x: f32, %i: index):
        %row = arith.addi %row_base, %i : index
        %inside = arith.cmpi slt, %row, %n : index // inside
        scf.if %inside {
          %stride = device.symbol "total.s0"
          %at = arith.muli %row, %stride : index
          device.store %x, %total[%at] : f32, !moa.array<[N], f32>
        }
        device.yield // stored
      }
    } producer registers 24 {
      device.copy %q[%first_row] rows 0 to %queries[%c0] signals %queries_full[%c0] : !wide, !queries, !once
      // pace: device.arrive %spare_full[%c0] : !once
      // pace: device.wait %spare_full[%c0] parity %c0 : !once
      // pace: device.arrive %spare_full[%c0] : !once
      // idle: device.copy %k[%c0] rows 0 to %spare[%c0] signals %spare_full[%c0] : !long, !values, !once
      scf.for %t = %c0 to %tiles step %c1 {
        %stage = arith.remui %t, %c2 : index
        %round = arith.divui %t, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %free = arith.subi %c1, %parity : index
        %first_key = arith.muli %t, %c64 : index
        device.wait %keys_empty[%stage] parity %free : !empty
        device.copy %k[%first_key] rows 0 to %keys[%stage] signals %keys_full[%stage] : !long, !keys, !full
        device.wait %values_empty[%stage] parity %free : !empty
        device.copy %v[%first_key] rows 0 to %values[%stage] signals %values_full[%stage] : !long, !values, !full
      }
    }
  }
}
