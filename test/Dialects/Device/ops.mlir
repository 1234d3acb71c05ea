// RUN: moa-opt %s -verify-roundtrip -device-verify | FileCheck %s

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
!integers = !device.fragment<[64, 64], i32, #acc>
!scores = !device.fragment<[64, 64], f32, #acc>
!weights = !device.fragment<[64, 64], bf16, #acc>
!rows = !device.fragment<[64], f32, #row>
!flags = !device.fragment<[64], i1, #row>
#part = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [lane: 4 by 1]>
!parts = !device.fragment<[64, 4], f32, #part>

// One thread per row: coordinates, symbols, strides, an argument of rank zero, a
// load, a private array, a store.
// CHECK-LABEL: device.program @rows
// CHECK-SAME: arg_names = ["x", "scale"]
// CHECK-SAME: requires = ["N % 2 == 0"]
// CHECK-SAME: result_names = ["y"]
// CHECK-SAME: symbols = ["N"]
// CHECK-NEXT: ^bb0(%x: !moa.array<[N], bf16>, %scale: !moa.array<[], f32>, %y: !moa.array<[N], f32>):
device.program @rows attributes {symbols = ["N"], requires = ["N % 2 == 0"], arg_names = ["x", "scale"],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], bf16>, %scale: !moa.array<[], f32>, %y: !moa.array<[N], f32>):
  // CHECK-NEXT: device.kernel @rows_0 blocks "(N + 127)/128" threads 128 {
  device.kernel @rows_0 blocks "(N + 127)/128" threads 128 {
    // CHECK-NEXT: %[[BLOCK:.*]] = device.block{{$}}
    %block = device.block
    // CHECK-NEXT: %[[THREAD:.*]] = device.thread{{$}}
    %thread = device.thread
    %size = arith.constant 128 : index
    %first = arith.muli %block, %size : index
    %row = arith.addi %first, %thread : index
    // CHECK: device.symbol "N"
    %n = device.symbol "N"
    %inside = arith.cmpi slt, %row, %n : index
    scf.if %inside {
      // CHECK: device.symbol "N + 2*x.s0"
      %stride = device.symbol "2*x.s0 + N"
      %at = arith.muli %row, %stride : index
      // CHECK: device.load %x[%{{.*}}] : <[N], bf16> -> bf16
      %e = device.load %x[%at] : !moa.array<[N], bf16> -> bf16
      %wide = arith.extf %e : bf16 to f32
      // CHECK: device.scalar %scale : <[], f32> -> f32
      %s = device.scalar %scale : !moa.array<[], f32> -> f32
      %scaled = arith.mulf %wide, %s : f32
      // CHECK: device.exp2 %{{.*}} : f32
      %p = device.exp2 %scaled : f32
      // CHECK: device.half_from_bits %{{.*}}{{$}}
      %half = device.half_from_bits %scaled
      // CHECK: memref.alloca() : memref<4xf32>
      %private = memref.alloca() : memref<4xf32>
      %zero = arith.constant 0 : index
      memref.store %p, %private[%zero] : memref<4xf32>
      %q = memref.load %private[%zero] : memref<4xf32>
      // CHECK: device.store %{{.*}}, %y[%{{.*}}] : f32, <[N], f32>
      device.store %q, %y[%row] : f32, !moa.array<[N], f32>
    }
  }
}

// Lanes that share a row: runs of adjacent elements, and what lanes exchange.
// CHECK-LABEL: device.program @lanes
device.program @lanes attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @lanes_0 blocks "N" threads 32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %row = device.block
    %row_stride = device.symbol "x.s0"
    %at = arith.muli %row, %row_stride : index
    %kept = memref.alloca() : memref<2x8xbf16>
    // CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %{{.*}} to %{{.*}}[%{{.*}}] : <[N, 64], bf16>, memref<2x8xbf16>
    device.load_run %x[%at] stride %c1 count %c8 to %kept[%c0] : !moa.array<[N, 64], bf16>, memref<2x8xbf16>
    %e = memref.load %kept[%c0, %c1] : memref<2x8xbf16>
    %wide = arith.extf %e : bf16 to f32
    // CHECK: device.exchange %{{.*}} mask 4 : f32
    %other = device.exchange %wide mask 4 : f32
    // CHECK: device.exchange %{{.*}} mask 2 group 8 : f32
    %near = device.exchange %wide mask 2 group 8 : f32
    %rows = memref.alloca() : memref<2x8xbf16>
    // CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %{{.*}} step 32 to %{{.*}}[] : <[N, 64], bf16>, memref<2x8xbf16>
    device.load_run %x[%at] stride %c1 count %c8 step 32 to %rows[] : !moa.array<[N, 64], bf16>, memref<2x8xbf16>
    %rounded = arith.truncf %other : f32 to bf16
    %run = memref.alloca() : memref<8xbf16>
    memref.store %rounded, %run[%c0] : memref<8xbf16>
    // CHECK: device.store_run %{{.*}}[] to %y[%{{.*}}] stride %{{.*}} count %{{.*}} : memref<8xbf16>, <[N, 64], bf16>
    device.store_run %run[] to %y[%at] stride %c1 count %c1 : memref<8xbf16>, !moa.array<[N, 64], bf16>
  }
}

// A flag: cleared, raised by whoever may, and blocks that end where nobody has.
// CHECK-LABEL: device.program @flags
device.program @flags attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["any"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%y: !moa.array<[N], f32>, %any: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %any[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @raise blocks "N" threads 32 {
    // CHECK: device.raise %any : <[1], i32>
    device.raise %any : !moa.array<[1], i32>
  }
  device.kernel @read blocks "N" threads 32 {
    %first = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %flag = device.load %any[%first] : !moa.array<[1], i32> -> i32
    %none = arith.cmpi eq, %flag, %zero : i32
    // CHECK: device.exit_if %{{.*}}{{$}}
    device.exit_if %none
    %i = device.block
    %e = arith.constant 1.0 : f32
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// Warpgroups: rings, barriers, both roles, contractions of both kinds.
// CHECK-LABEL: device.program @tiles
device.program @tiles attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["q", "k", "v"],
    result_names = ["o"], result_types = [!moa.array<[B, N, 64], f32>]} {
^bb0(%q: !moa.array<[B, N, 64], bf16>, %k: !moa.array<[B, M, 64], bf16>, %v: !moa.array<[B, M, 64], bf16>, %o: !moa.array<[B, N, 64], f32>):
  // CHECK: device.kernel @tiles_0 blocks "B" threads 384
  device.kernel @tiles_0 blocks "B" threads 384 {
    %zero = arith.constant 0 : index
    // CHECK: %[[ROWS:.*]] = device.shared : <1, [128, 64], bf16>
    %rows = device.shared : !device.ring<1, [128, 64], bf16>
    // CHECK: %[[KEYS:.*]] = device.shared : <2, [64, 64], bf16>
    %keys = device.shared : !device.ring<2, [64, 64], bf16>
    // CHECK: device.shared : <1, [64, 128], i8>
    %bytes = device.shared : !device.ring<1, [64, 128], i8>
    // CHECK: %[[FULL:.*]] = device.barriers : <2, 1>
    %full = device.barriers : !device.barriers<2, 1>
    // CHECK: %[[EMPTY:.*]] = device.barriers : <2, 8>
    %empty = device.barriers : !device.barriers<2, 8>
    %block = device.block
    // CHECK: device.specialize consumers 2 registers 240 {
    device.specialize consumers 2 registers 240 {
      // CHECK: device.warpgroup{{$}}
      %w = device.warpgroup
      // CHECK: device.warpgroup again
      %w2 = device.warpgroup again
      // CHECK: device.await_stores{{$}}
      device.await_stores
      // CHECK-NEXT: device.sync_warpgroup{{$}}
      device.sync_warpgroup
      // CHECK: device.kept %{{.*}}
      %k0 = device.kept %block
      %size = arith.constant 64 : index
      %first = arith.muli %w, %size : index
      // CHECK: device.wait %[[FULL]][%{{.*}}] parity %{{.*}} : <2, 1>
      device.wait %full[%zero] parity %zero : !device.barriers<2, 1>
      %none = arith.constant 0.0 : f32
      %no = arith.constant false
      // CHECK: device.fill %{{.*}} : f32 -> <[64, 64], f32, <[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>>
      %sum = device.fill %none : f32 -> !scores
      // CHECK: device.fill %{{.*}} : i1 -> <[64], i1, <[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>>
      %started = device.fill %no : i1 -> !flags
      // CHECK: %[[S:.*]] = device.contract %[[ROWS]] rows %{{.*}} by %[[KEYS]][%{{.*}}] transposed : !device.ring<1, [128, 64], bf16>, <2, [64, 64], bf16> -> <[64, 64], f32
      %s0 = device.contract %rows rows %first by %keys[%zero] transposed : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], bf16> -> !scores
      // CHECK: %[[T:.*]] = device.await %[[S]] pending 0 : <[64, 64], f32
      %s = device.await %s0 pending 0 : !scores
      // CHECK: %[[MAX:.*]] = device.reduce max %[[T]] : <[64, 64], f32, {{.*}}> -> <[64], f32, <{{.*}} replicas [lane: 4 by 1]>>
      %m = device.reduce max %s : !scores -> !rows
      // CHECK: %[[P:.*]]:2 = device.map(%[[T]], %[[MAX]]) over <[warp: {{.*}}> : ({{.*}}) -> ({{.*}}) {
      // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: index, %{{.*}}: index):
      %p:2 = device.map(%s, %m) over #acc : (!scores, !rows) -> (!weights, !scores) {
      ^bb0(%x: f32, %top: f32, %i: index, %j: index):
        %d = arith.subf %x, %top : f32
        %e = device.exp2 %d : f32
        %narrow = arith.truncf %e : f32 to bf16
        // CHECK: device.yield %{{.*}}, %{{.*}} : bf16, f32
        device.yield %narrow, %e : bf16, f32
      }
      // CHECK: %[[N:.*]] = device.contract %[[BYTES:.*]] rows %{{.*}} by %[[BYTES]][%{{.*}}] transposed : !device.ring<1, [64, 128], i8>, <1, [64, 128], i8> -> <[64, 64], i32,
      %n0 = device.contract %bytes rows %zero by %bytes[%zero] transposed : !device.ring<1, [64, 128], i8>, !device.ring<1, [64, 128], i8> -> !integers
      %n1 = device.await %n0 pending 0 : !integers
      %n2 = device.map(%n1) over #acc : (!integers) -> !scores {
      ^bb0(%x: i32, %i: index, %j: index):
        %y = arith.sitofp %x : i32 to f32
        device.yield %y : f32
      }
      // CHECK: device.contract %[[P]]#0 by %[[KEYS]][%{{.*}}] plus %{{.*}} : !device.fragment<[64, 64], f32, {{.*}}> : !device.fragment<[64, 64], bf16, {{.*}}>, <2, [64, 64], bf16> -> <[64, 64], f32
      %o0 = device.contract %p#0 by %keys[%zero] plus %sum : !scores : !weights, !device.ring<2, [64, 64], bf16> -> !scores
      // CHECK: device.await %{{.*}} pending 1
      %o1 = device.await %o0 pending 1 : !scores
      // CHECK: device.arrive %[[EMPTY]][%{{.*}}] : <2, 8>
      device.arrive %empty[%zero] : !device.barriers<2, 8>
      // What every thread has of a row, and what a warp does where it must.
      // CHECK: device.reduce max %{{.*}} : <[64, 64], f32, {{.*}}> -> <[64, 4], f32, <[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [lane: 4 by 1]>>
      %parts = device.reduce max %o1 : !scores -> !parts
      // Pairs of f16 that a thread adds up, and their f32.
      // CHECK: device.reduce add %{{.*}} : <[64, 64], f16, {{.*}}> -> <[64, 4], f32,
      %halves = device.map(%o1) over #acc : (!scores) -> !device.fragment<[64, 64], f16, #acc> {
      ^bb0(%x: f32, %i: index, %j: index):
        %h = device.half_from_bits %x
        device.yield %h : f16
      }
      %ofPairs = device.reduce add %halves : !device.fragment<[64, 64], f16, #acc> -> !parts
      // CHECK: device.any %{{.*}} : <[64], i1,
      %any = device.any %started : !flags
      // CHECK: device.if_any %{{.*}} else(%{{.*}}, %{{.*}}) : {{.*}} {
      %moved:2 = device.if_any %any else(%o1, %parts) : (!flags, !scores, !parts) -> (!scores, !parts) {
        %twice = device.map(%o1, %parts) over #acc : (!scores, !parts) -> !scores {
        ^bb0(%x: f32, %y: f32, %i: index, %j: index):
          // CHECK: device.thread_offset %{{.*}}
          %offset = device.thread_offset %j
          %near = arith.cmpi slt, %offset, %i : index
          %chosen = arith.select %near, %x, %y : f32
          // CHECK: device.reciprocal %{{.*}} : f32
          %z = device.reciprocal %chosen : f32
          device.yield %z : f32
        }
        // CHECK: device.yield %{{.*}}, %{{.*}} : !device.fragment<[64, 64]
        device.yield %twice, %parts : !scores, !parts
      }
      // A map over rows, and one without results.
      // CHECK: device.map(%{{.*}}) over <[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
      // CHECK-NEXT: ^bb0(%{{.*}}: i1, %{{.*}}: index):
      %again = device.map(%started) over #row : (!flags) -> !flags {
      ^bb0(%f: i1, %i: index):
        device.yield %f : i1
      }
      // CHECK: device.map(%{{.*}}) over {{.*}} -> () {
      device.map(%o1) over #acc : (!scores) -> () {
      ^bb0(%x: f32, %i: index, %j: index):
        device.store %x, %o[%i] : f32, !moa.array<[B, N, 64], f32>
        // CHECK: device.yield
        device.yield
      }
    // CHECK: } producer registers 24 {
    } producer registers 24 {
      // CHECK: device.copy %q[%{{.*}}, %{{.*}}] rows 1 to %[[ROWS]][%{{.*}}] signals %[[FULL]][%{{.*}}] : <[B, N, 64], bf16>, <1, [128, 64], bf16>, <2, 1>
      device.copy %q[%block, %zero] rows 1 to %rows[%zero] signals %full[%zero] : !moa.array<[B, N, 64], bf16>, !device.ring<1, [128, 64], bf16>, !device.barriers<2, 1>
      // CHECK: device.copy %q[%{{.*}}, %{{.*}}] rows 1 step "N/128" to %[[ROWS]]
      device.copy %q[%block, %zero] rows 1 step "N/128" to %rows[%zero] signals %full[%zero] : !moa.array<[B, N, 64], bf16>, !device.ring<1, [128, 64], bf16>, !device.barriers<2, 1>
    }
  }
}

// Blocks that take the numbers of others.
// CHECK-LABEL: device.program @blocks
device.program @blocks attributes {symbols = ["N"], requires = [], arg_names = ["q"], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%q: !moa.array<[N, 64], bf16>, %w: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %zero = arith.constant 0 : index
    %none = arith.constant 0 : i32
    device.store %none, %w[%zero] : i32, !moa.array<[1], i32>
  }
  device.kernel @blocks_0 blocks "N/64" threads 256 {
    %zero = arith.constant 0 : index
    %blocks = device.symbol "N/64"
    %rows = device.shared : !device.ring<1, [64, 64], bf16>
    // CHECK: device.barriers odd : <1, 1>
    %full = device.barriers odd : !device.barriers<1, 1>
    // CHECK: %[[NEXT:.*]] = device.next_block %w[%{{.*}}] below %{{.*}} residents 132 : <[1], i32>
    %b = device.next_block %w[%zero] below %blocks residents 132 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      // CHECK: device.await_consumers{{$}}
      device.await_consumers
      // CHECK: device.copy %q[%[[NEXT]]]
      device.copy %q[%b] rows 0 to %rows[%zero] signals %full[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
    }
  }
}

// Layouts that are no accumulator's: one axis, digits of size one, an axis of no
// digits, replicas in registers.
// CHECK-LABEL: device.program @layouts
device.program @layouts attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @layouts_0 blocks "1" threads 128 {
    %x = arith.constant 0.0 : f32
    // CHECK: device.fill %{{.*}} : f32 -> <[128], f32, <[warp: 4 by 1, lane: 32 by 1]>>
    %a = device.fill %x : f32 -> !device.fragment<[128], f32, #device.layout<[warp: 4 by 1, lane: 32 by 1]>>
    // CHECK: -> <[4, 32, 1], f32, <[warp: 4 by 1], [lane: 32 by 1], [register: 1 by 1]>>
    %b = device.fill %x : f32 -> !device.fragment<[4, 32, 1], f32, #device.layout<[warp: 4 by 1], [lane: 32 by 1], [register: 1 by 1]>>
    // CHECK: -> <[128, 1], f32, <[warp: 4 by 1, lane: 32 by 1], [] replicas [register: 2 by 1]>>
    %c = device.fill %x : f32 -> !device.fragment<[128, 1], f32, #device.layout<[warp: 4 by 1, lane: 32 by 1], [] replicas [register: 2 by 1]>>
  }
}

// Registers of warps: a fragment of a tile, products of fragments, another layout.
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#long = #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 32 by 1]>
// CHECK-LABEL: device.program @warps
device.program @warps attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @warps_0 blocks "1" threads 128 {
    %zero = arith.constant 0 : index
    // CHECK: %[[RING:.*]] = device.shared
    %ring = device.shared : !device.ring<2, [64, 64], bf16>
    // CHECK: %[[A:.*]] = device.load_fragment %[[RING]][%{{.*}}] at %{{.*}}, %{{.*}} : <2, [64, 64], bf16> -> <[64, 64], bf16, <[warp: 4 by 1,
    %a = device.load_fragment %ring[%zero] at %zero, %zero : !device.ring<2, [64, 64], bf16> -> !weights
    // CHECK: %[[B:.*]] = device.load_fragment %[[RING]][%{{.*}}] at %{{.*}}, %{{.*}} transposed : <2, [64, 64], bf16> -> <[64, 64], bf16, <[register: 8 by 2,
    %b = device.load_fragment %ring[%zero] at %zero, %zero transposed : !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], bf16, #column>
    // CHECK: %[[C:.*]] = device.contract_fragments %[[A]] by %[[B]] : <[64, 64], bf16, {{.*}}>, <[64, 64], bf16, {{.*}}> -> <[64, 64], f32,
    %c = device.contract_fragments %a by %b : !weights, !device.fragment<[64, 64], bf16, #column> -> !scores
    // CHECK: %[[D:.*]] = device.contract_fragments %[[A]] by %[[B]] plus %[[C]] : !device.fragment<[64, 64], f32, {{.*}}> : <[64, 64], bf16,
    %d = device.contract_fragments %a by %b plus %c : !scores : !weights, !device.fragment<[64, 64], bf16, #column> -> !scores
    // CHECK: device.convert_layout %[[D]] : <[64, 64], f32, {{.*}}> -> <[64, 64], f32, <[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 32 by 1]>>
    %e = device.convert_layout %d : !scores -> !device.fragment<[64, 64], f32, #long>
  }
}

// A workspace between two kernels, and lists of the indices where conditions hold.
// CHECK-LABEL: device.program @lists
// CHECK-SAME: workspace_names = ["w"], workspace_types = [!moa.array<[N, 2], i64>]
// CHECK-NEXT: ^bb0(%x: !moa.array<[N], i64>, %y: !moa.array<[N], i64>, %w: !moa.array<[N, 2], i64>):
device.program @lists attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"],
    result_types = [!moa.array<[N], i64>], workspace_names = ["w"], workspace_types = [!moa.array<[N, 2], i64>]} {
^bb0(%x: !moa.array<[N], i64>, %y: !moa.array<[N], i64>, %w: !moa.array<[N, 2], i64>):
  device.kernel @lists_0 blocks "N" threads 32 {
    %block = device.block
    %v = device.load %x[%block] : !moa.array<[N], i64> -> i64
    // CHECK: device.store %{{.*}}, %w[%{{.*}}] : i64, <[N, 2], i64>
    device.store %v, %w[%block] : i64, !moa.array<[N, 2], i64>
  }
  device.kernel @lists_1 blocks "1" threads 64 {
    %zero = arith.constant 0 : index
    %n = device.symbol "N"
    // CHECK: %[[L:.*]]:2, %[[C:.*]]:2 = device.collect %{{.*}} to %{{.*}} : (!device.members<128>, !device.members<128>), (index, index) {
    %lists:2, %counts:2 = device.collect %zero to %n : (!device.members<128>, !device.members<128>), (index, index) {
    ^bb0(%t: index):
      // CHECK: device.load %w[%{{.*}}] : <[N, 2], i64> -> i64
      %bound = device.load %w[%t] : !moa.array<[N, 2], i64> -> i64
      %at = arith.index_cast %bound : i64 to index
      %below = arith.cmpi slt, %t, %at : index
      %above = arith.cmpi sgt, %t, %at : index
      // CHECK: device.yield %{{.*}}, %{{.*}} : i1, i1
      device.yield %below, %above : i1, i1
    }
    // CHECK: device.member %[[L]]#1[%{{.*}}] : <128>
    %member = device.member %lists#1[%zero] : !device.members<128>
    %value = arith.index_cast %member : index to i64
    device.store %value, %y[%zero] : i64, !moa.array<[N], i64>
  }
}
