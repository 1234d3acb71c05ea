// RUN: moa-opt %s -convert-onf-to-vector | FileCheck %s

// A range in parts of 4 · 64 indices (R4): the first nest has a task per tile, or per
// tile and part where the rows are one tile of 96, and says what the states of parts
// take; the second merges them and stores.

// CHECK: module attributes {moa.nests = 2 : i64, moa.scratch_bytes = {{[0-9]+}} : i64
// 96 rows of a maximum and a sum.
// CHECK-SAME: moa.shared = ["768*((M + 255)/256)*B bytes where N <= 96 and M > 256"]
// CHECK-LABEL: func.func @weights_tasks0
// CHECK: arith.select
// CHECK-LABEL: func.func @weights_shared0(%{{.*}}: !llvm.ptr) -> i64
// CHECK: %[[BYTES:.*]] = arith.constant 768 : index
// CHECK: arith.muli %{{.*}}, %[[BYTES]]
// CHECK-LABEL: func.func @weights_nest0
// The part of a task, or all parts of its rows.
// CHECK: arith.remui
// CHECK: %[[FROM:.*]] = arith.select %[[FEW:[0-9]+]], %{{.*}}, %{{.*}} : index
// CHECK: %[[TO:.*]] = arith.select %[[FEW]], %{{.*}}, %{{.*}} : index
// CHECK: arith.select %[[FEW]], %{{.*}}, %{{.*}} : !llvm.ptr
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]]
// The merge follows the maximum on both sides.
// CHECK: arith.maximumf
// CHECK-COUNT-2: math.exp {{.*}} : vector<16xf32>
// CHECK: scf.if %[[FEW]]
// CHECK-LABEL: func.func @weights_tasks1
// CHECK-LABEL: func.func @weights_nest1
// CHECK-NOT: llvm.load {{.*}} !moa
// CHECK-COUNT-2: math.exp {{.*}} : vector<16xf32>
// CHECK-NOT: math.exp
onf.kernel @weights attributes {symbols = ["B", "N", "M"], requires = [],
    arg_names = ["x"], result_names = ["o"], result_types = [!moa.array<[B, N], f32>]} {
^bb0(%x: !moa.array<[B, N, M], f32>, %o: !moa.array<[B, N], f32>):
  onf.for ["b", "i"] in ["B", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
  ^bb0(%b: index, %i: index):
    %r:2 = onf.fold "j" in "M" lift <core: 0, sequential: 4, cache: 64> : f32, f32 {
    ^bb0(%j: index):
      %y = onf.load %x[%b, %i, %j] : !moa.array<[B, N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 { onf.yield %y : f32 } repair {}
      %d = arith.subf %y, %m : f32
      %e = math.exp %d : f32
      %l = onf.acc add "l" carries [] in [] refs(%m) mul [0xFF800000 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        %0 = arith.subf %old, %new : f32
        %1 = math.exp %0 : f32
        onf.yield %1 : f32
      }
      onf.yield %m, %l : f32, f32
    }
    onf.store %r#1, %o[%b, %i] : f32, !moa.array<[B, N], f32>
  }
}
