// RUN: moa-opt %s -convert-onf-to-vector | FileCheck %s

// Where a nest does not run nothing has written the row that it reads: the element of that row is loaded behind what asks whether
// the nest runs, though it is the same for all n. The row itself stands in its array and may be read in front.
// CHECK: func.func @f_nest2(
// CHECK: %[[CHOICE:.*]] = llvm.load %{{.*}} -> i32
// CHECK: %[[RUNS:.*]] = arith.cmpi eq, %[[CHOICE]], %{{.*}} : i32
// CHECK-NOT: -> f32
// CHECK: scf.if %[[RUNS]] {
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> f32
onf.kernel @f attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p", "row"], temporary_types = [!moa.array<[], i32>, !moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[], i32>, %row: !moa.array<[H], i32>):
  onf.for [] in [] {
    %n = onf.extent "N"
    %c = arith.constant 100 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpi sgt, %n, %c : index
    %v = arith.select %is, %c1, %c0 : index
    onf.store %v, %p[] : index, <[], i32>
  }
  onf.for ["h"] in ["H"] chosen by %p [] is 1 : !moa.array<[], i32> {
  ^bb0(%h: index):
    onf.store %h, %row[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [] is 1 : !moa.array<[], i32> {
  ^bb0(%h: index, %n: index):
    %r = onf.load %row[%h] : <[H], i32> -> i32
    %i = arith.index_cast %r : i32 to index
    %e = onf.load %x[%i] : <[H], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [] is 0 : !moa.array<[], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h] : <[H], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
}
