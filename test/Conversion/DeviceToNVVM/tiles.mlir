// The work of warpgroups, op by op.

// RUN: moa-opt %s --convert-device-to-nvvm | FileCheck %s

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
!scores = !device.fragment<[64, 16], f32, #acc>
!weights = !device.fragment<[64, 16], bf16, #acc>
!sums = !device.fragment<[64, 64], f32, #wide>
!rounded = !device.fragment<[64, 64], bf16, #wide>
!seen = !device.fragment<[64, 16], i1, #acc>
!rows = !device.fragment<[64], f32, #row>

// Shared memory is declared once; a launch with shared memory has one block per
// multiprocessor; descriptors are constants of the grid.
// CHECK: llvm.mlir.global external @moa_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK: llvm.func @tiles_0(%[[LSE:arg[0-9]+]]: !llvm.ptr<1> {llvm.noalias},
// CHECK-SAME: %[[Q:arg[0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant},
// CHECK-SAME: %[[O:arg[0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 384, 1, 1>, nvvm.minctasm = 1 : i32
// Constants stand at the start, each once.
// CHECK: %[[IDENTITY:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NOT: arith.constant 0.000000e+00
device.program @tiles attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["q", "k"],
    result_names = ["o", "lse"], result_types = [!moa.array<[B, N, 64], bf16>, !moa.array<[N], f32>]} {
^bb0(%q: !moa.array<[B, N, 64], bf16>, %k: !moa.array<[B, M, 64], bf16>, %o: !moa.array<[B, N, 64], bf16>, %lse: !moa.array<[N], f32>):
  device.kernel @tiles_0 blocks "B" threads 384 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    // Rings at multiples of 1024 bytes, barriers behind them.
    // CHECK: %[[ROWS:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
    %rows = device.shared : !device.ring<1, [128, 64], bf16>
    // CHECK: %[[FULL:.*]] = arith.addi %{{.*}}, %c16384_i32 : i32
    %full = device.barriers : !device.barriers<2, 1>
    // CHECK: %[[KEYS:.*]] = arith.addi %{{.*}}, %c17408_i32 : i32
    %keys = device.shared : !device.ring<2, [16, 64], bf16>
    // CHECK: %[[EMPTY:.*]] = arith.addi %{{.*}}, %c21504_i32 : i32
    %empty = device.barriers : !device.barriers<2, 8>
    %block = device.block

    // One thread initialises every barrier, then all wait.
    // CHECK: scf.if
    // CHECK-COUNT-4: "mbarrier.init.shared::cta.b64 [$0], $1;"
    // CHECK-NOT: mbarrier.init
    // CHECK: nvvm.fence.mbarrier.init
    // CHECK: nvvm.barrier0
    // The warpgroup's number comes from lane 0.
    // CHECK: %[[TID128:.*]] = arith.divui %{{.*}}, %c128_i32
    // CHECK: %[[GROUP:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[TID128]],
    // CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c32
    // CHECK: scf.if
    // CHECK-NEXT: nvvm.setmaxregister decrease 24
    // CHECK: scf.if
    // The producer: the bytes are announced, then the boxes copied.
    // CHECK: "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 16384;", "r,~{memory}" %[[FULL]]
    // CHECK: "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5}], [$2];"
    // CHECK-SAME: %[[ROWS]], %[[Q]], %[[FULL]]
    // CHECK: } else {
    // CHECK-NEXT: nvvm.setmaxregister increase 240
    device.specialize consumers 2 registers 240 {
      %w = device.warpgroup
      %size = arith.constant 64 : index
      %first = arith.muli %w, %size : index
      // CHECK: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;{{.*}}@!done bra
      // CHECK-SAME: %[[FULL]], %{{.*}} : (i32, i32)
      device.wait %full[%zero] parity %zero : !device.barriers<2, 1>

      // Products from shared memory: no sum yet, four steps of 16 along 64 columns, 32
      // bytes apart, between a fence and a commit in one piece.
      // CHECK: %[[S0:.*]] = llvm.inline_asm has_side_effects "{
      // CHECK-SAME: setp.ne.b32 adds, 0, 0;\0A\09setp.ne.b32 always, 1, 0;\0A\09wgmma.fence.sync.aligned;
      // CHECK-SAME: add.s64 b, $17, 0;\0A\09add.s64 a, $16, 0;
      // CHECK-SAME: wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, adds, 1, 1, 0, 0;
      // CHECK-SAME: add.s64 b, $17, 2;\0A\09add.s64 a, $16, 2;\0A\09wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, a, b, always, 1, 1, 0, 0;
      // CHECK-SAME: add.s64 b, $17, 6;
      // CHECK-SAME: wgmma.commit_group.sync.aligned;
      // CHECK-SAME: "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,l,l,~{memory}"
      %s0 = device.contract %rows rows %first by %keys[%one] transposed : !device.ring<1, [128, 64], bf16>, !device.ring<2, [16, 64], bf16> -> !scores
      // The registers of the sum pass through the wait.
      // CHECK: %[[S:.*]] = llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,~{memory}"
      // CHECK: %[[S_0:.*]] = llvm.extractvalue %[[S]][0]
      // CHECK: %[[S_1:.*]] = llvm.extractvalue %[[S]][1]
      // CHECK: %[[S_4:.*]] = llvm.extractvalue %[[S]][4]
      // CHECK: %[[S_5:.*]] = llvm.extractvalue %[[S]][5]
      %s = device.await %s0 pending 0 : !scores
      // One arrival per warp.
      // CHECK: @first mbarrier.arrive.shared::cta.b64 _, [$0];{{.*}} %{{.*}}, %[[LANE]]
      device.arrive %empty[%zero] : !device.barriers<2, 8>

      // Two chains per row: registers 0 4 and 1 5 of the first, 2 6 and 3 7 of the second.
      // CHECK: %[[EVEN0:.*]] = arith.addf %[[IDENTITY]], %[[S_0]]
      // CHECK: %[[ODD0:.*]] = arith.addf %[[IDENTITY]], %[[S_1]]
      // CHECK: %[[EVEN:.*]] = arith.addf %[[EVEN0]], %[[S_4]]
      // CHECK: %[[ODD:.*]] = arith.addf %[[ODD0]], %[[S_5]]
      // CHECK: %[[BOTH:.*]] = arith.addf %[[EVEN]], %[[ODD]]
      // CHECK: %[[NEAR:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[BOTH]], %c1_i32
      // CHECK: %[[TWO:.*]] = arith.addf %[[BOTH]], %[[NEAR]]
      // CHECK: %[[FAR:.*]] = nvvm.shfl.sync bfly %{{.*}}, %[[TWO]], %c2_i32
      // CHECK: %[[TOTAL:.*]] = arith.addf %[[TWO]], %[[FAR]]
      %m = device.reduce add %s : !scores -> !rows

      // Row values are those of register row; what does not depend on the column is
      // computed once per row.
      // CHECK: %[[MINUS:.*]] = arith.negf %[[TOTAL]]
      // CHECK: arith.addf %[[S_0]], %[[MINUS]]
      // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
      // CHECK: arith.addf %[[S_1]], %[[MINUS]]
      %e = device.map(%s, %m) over #acc : (!scores, !rows) -> !scores {
      ^bb0(%x: f32, %top: f32, %i: index, %j: index):
        %minus = arith.negf %top : f32
        %d = arith.addf %x, %minus : f32
        %p = device.exp2 %d : f32
        device.yield %p : f32
      }
      // Rounding packs neighbours, by assembly that stays behind the wait.
      // CHECK-COUNT-4: llvm.inline_asm has_side_effects "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"
      // CHECK-NOT: cvt.rn.bf16x2
      %p = device.map(%e) over #acc : (!scores) -> !weights {
      ^bb0(%x: f32, %i: index, %j: index):
        %narrow = arith.truncf %x : f32 to bf16
        device.yield %narrow : bf16
      }

      // Products from registers, b by columns, onto a sum.
      // CHECK: llvm.inline_asm has_side_effects "{
      // CHECK-SAME: setp.ne.b32 adds, 1, 0;
      // CHECK-SAME: m64n64k16.f32.bf16.bf16 {$0, {{[^}]*}}, $31}, {$64, $65, $66, $67}, b, adds, 1, 1, 1;
      // CHECK-SAME: r,r,r,r,l,~{memory}"
      %none = arith.constant 0.0 : f32
      %sum = device.fill %none : f32 -> !sums
      %o0 = device.contract %p by %keys[%zero] plus %sum : !sums : !weights, !device.ring<2, [16, 64], bf16> -> !sums
      // CHECK: "wgmma.wait_group.sync.aligned 1;"
      %o1 = device.await %o0 pending 1 : !sums

      // Columns from registers and lanes.
      // CHECK: %[[QUAD:.*]] = arith.remui %[[LANE]], %c4
      // CHECK: %[[COLUMN:.*]] = arith.muli %[[QUAD]], %c2
      // CHECK: %[[PART:.*]] = llvm.inline_asm has_side_effects "", "=r,0" %[[COLUMN]] : (i32) -> i32
  // CHECK: %[[J:.*]] = arith.extui %[[PART]] : i32 to i64
      // CHECK: arith.cmpi slt, %[[J]],
      %seen = device.map() over #acc : () -> !seen {
      ^bb0(%i: index, %j: index):
        %near = arith.cmpi slt, %j, %first : index
        device.yield %near : i1
      }
      // Bits of eight rows per quad are collected over the warp and the block.
      // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c4_i32
      // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c8_i32
      // CHECK: nvvm.shfl.sync bfly %{{.*}}, %{{.*}}, %c16_i32
      // CHECK: arith.addi %{{.*}}, %c21520_i32
      // CHECK: llvm.store volatile
      // CHECK: "bar.sync $0, 256;"
      // CHECK: llvm.atomicrmw _or
      // CHECK: "bar.sync $0, 256;"
      // CHECK-COUNT-8: "st.shared.v4.b32 [$0], {$1, $1, $1, $1};"
      // CHECK: "fence.proxy.async.shared::cta;"
      // CHECK: "bar.sync $0, 256;"
      device.clear_unseen %keys[%zero] unless %seen : !device.ring<2, [16, 64], bf16>, !seen

      // A map without results stores once per row: by the first of four lanes.
      // CHECK: %[[FIRST:.*]] = arith.cmpi eq
      // CHECK: scf.if
      // CHECK-COUNT-2: llvm.store %{{.*}} : f32, !llvm.ptr<1>
      device.map(%m) over #row : (!rows) -> () {
      ^bb0(%x: f32, %i: index):
        device.store %x, %lse[%i] : f32, !moa.array<[N], f32>
        device.yield
      }
      // A tile goes out through shared memory, with the swizzle.
      // CHECK-COUNT-16: cvt.rn.bf16x2.f32
      %r = device.map(%o1) over #wide : (!sums) -> !rounded {
      ^bb0(%x: f32, %i: index, %j: index):
        %narrow = arith.truncf %x : f32 to bf16
        device.yield %narrow : bf16
      }
      // CHECK: arith.xori
      // CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
      // CHECK: "fence.proxy.async.shared::cta;"
      // CHECK: "bar.sync $0, 128;"
      // CHECK: scf.if
      // CHECK: "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [$0, {$2, $3, $4}], [$1];"
      // CHECK-SAME: %[[O]],
      // CHECK: cp.async.bulk.commit_group;{{.*}}cp.async.bulk.wait_group.read 0;
      device.store_tile %r through %rows[%zero] from %first to %o[%block, %first] rows 1 : !rounded, !device.ring<1, [128, 64], bf16>, !moa.array<[B, N, 64], bf16>
      device.await_stores
    } producer registers 24 {
      device.copy %q[%block, %zero] rows 1 to %rows[%zero] signals %full[%zero] : !moa.array<[B, N, 64], bf16>, !device.ring<1, [128, 64], bf16>, !device.barriers<2, 1>
    }
  }
}
