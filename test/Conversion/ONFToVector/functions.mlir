// RUN: moa-opt %s -convert-onf-to-vector | FileCheck %s

// Two nests: four functions, rows in lanes, the slots of the argument block.

// CHECK: module attributes {moa.nests = 2 : i64, moa.scratch_bytes = {{[0-9]+}} : i64}
// CHECK-LABEL: func.func @scale_tasks0(%{{.*}}: !llvm.ptr) -> i64
// A task is a tile of 2 · 16 rows: ⌈N / 32⌉ of them.
// CHECK: arith.constant 31 : index
// CHECK: arith.divui
// CHECK-LABEL: func.func @scale_nest0(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: scf.for
// CHECK: vector.step : vector<16xindex>
// Lanes beyond the last row repeat it.
// CHECK: arith.minsi %{{.*}}, %{{.*}} : vector<16xindex>
// One vector where rows are neighbours in memory, a gather elsewhere.
// CHECK: scf.if
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<16xf32>
// CHECK: } else {
// CHECK: llvm.intr.masked.gather
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<16xf32>
// CHECK: llvm.intr.masked.scatter
// CHECK-LABEL: func.func @scale_tasks1
// CHECK-LABEL: func.func @scale_nest1
onf.kernel @scale attributes {symbols = ["N"], requires = [],
    arg_names = ["x", "c"], result_names = ["y", "z"],
    result_types = [!moa.array<[N], f32>, !moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %c: !moa.array<[], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 0, register: 2, lane: 16>] {
  ^bb0(%i: index):
    %v = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    %f = onf.load %c[] : !moa.array<[], f32> -> f32
    %w = arith.mulf %v, %f : f32
    onf.store %w, %y[%i] : f32, !moa.array<[N], f32>
  }
  onf.for [] in [] {
    %f = onf.load %c[] : !moa.array<[], f32> -> f32
    onf.store %f, %z[] : f32, !moa.array<[], f32>
  }
}
