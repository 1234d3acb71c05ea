// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// Outputs over the same rows share a nest, with what another one reads of the rows; others have their own, a scalar a nest of
// rank 0. Every output is stored once.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK: onf.fold "m" in "M" : f32, f32 {
// CHECK: onf.store %{{.*}}, %a[
// CHECK: onf.store %{{.*}}, %c[
// CHECK: onf.for ["l"] in ["L"] {
// CHECK: onf.store %{{.*}}, %b[
// CHECK: onf.for [] in [] {
// CHECK: onf.fold "n" in "N" : f32 {
// CHECK: onf.load %sum[%n]
// CHECK: onf.store %{{.*}}, %d[]
// CHECK-NOT: onf.store
moa.kernel @nests attributes {symbols = ["N", "M", "L"], requires = [], arg_names = ["x", "y"],
    result_names = ["a", "b", "c", "d"], result_types = [!moa.array<[N], f32>, !moa.array<[L], f32>, !moa.array<[N], f32>, !moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[L, M], f32>):
  %v1 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v2 = moa.reduce max %y axis 1 : !moa.array<[L, M], f32> -> !moa.array<[L], f32>
  %v3 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v4 = moa.reduce max %v1 axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %v1, %v2, %v3, %v4 : !moa.array<[N], f32>, !moa.array<[L], f32>, !moa.array<[N], f32>, !moa.array<[], f32>
}

// A reduction of the first axis, or of one in the middle, is not computed again
// along it: that axis is carried. The outputs share their rows.
// CHECK-LABEL: onf.kernel @columns
// CHECK: onf.for ["n", "m"] in ["N", "M"] {
// CHECK-NEXT: ^bb0(%[[I:.*]]: index, %[[K:.*]]: index):
// CHECK: onf.fold "l" in "L" : f32 {
// CHECK-NEXT: ^bb0(%[[J:.*]]: index):
// CHECK: onf.load %x[%[[I]], %[[J]], %[[K]]]
// CHECK-NOT: onf.fold
// CHECK: onf.for [{{.*}}] in ["L"] {
// CHECK-NEXT: ^bb0(%[[C:.*]]: index):
// CHECK: onf.load %x[%[[I]], %[[C]], %[[K]]]
// CHECK: onf.store %{{.*}}, %a[%[[I]], %[[C]], %[[K]]]
// CHECK: onf.store %{{.*}}, %b[%[[I]], %[[K]]]
moa.kernel @columns attributes {symbols = ["N", "M", "L"], requires = [], arg_names = ["x"],
    result_names = ["a", "b"], result_types = [!moa.array<[N, L, M], f32>, !moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, L, M], f32>):
  %v1 = moa.reduce add %x axis 1 : !moa.array<[N, L, M], f32> -> !moa.array<[N, M], f32>
  %v2 = moa.map sub(%x, %v1) axes [array<i64: 0, 1, 2>, array<i64: 0, 2>]
      : (!moa.array<[N, L, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, L, M], f32>
  moa.return %v2, %v1 : !moa.array<[N, L, M], f32>, !moa.array<[N, M], f32>
}
