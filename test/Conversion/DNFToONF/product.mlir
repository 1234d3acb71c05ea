// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// A plain product carries its short static axis: each x is loaded once per row. An
// axis of unknown length is a row axis.

// CHECK-LABEL: onf.kernel @product
// CHECK: onf.for ["n"] in ["N"] {
// CHECK: onf.fold "m" in "M" : !moa.array<[4], f32> {
// CHECK: %[[X:.*]] = onf.load %x
// CHECK: onf.acc add "y" carries ["k"] in ["4"] refs() mul [] : () -> !moa.array<[4], f32> {
// CHECK-NEXT: ^bb0(%[[K:.*]]: index):
// CHECK-NEXT: %[[V:.*]] = onf.load %v[%{{.*}}, %[[K]]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[V]] : f32
// CHECK-NEXT: onf.yield %[[P]] : f32
// CHECK: onf.for ["k"] in ["4"] {
// CHECK: onf.at
// CHECK: onf.store
moa.kernel @product attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "v"],
    result_names = ["y"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], f32>):
  %v1 = moa.inner add of mul %x, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v1 : !moa.array<[N, 4], f32>
}

// CHECK-LABEL: onf.kernel @long
// CHECK: onf.for ["n", "d"] in ["N", "D"] {
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK: carries [] in []
// CHECK: onf.store %{{.*}}, %y[%{{.*}}, %{{.*}}]
moa.kernel @long attributes {symbols = ["N", "M", "D"], requires = [], arg_names = ["x", "v"],
    result_names = ["y"], result_types = [!moa.array<[N, D], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, D], f32>):
  %v1 = moa.inner add of mul %x, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, D], f32>) -> !moa.array<[N, D], f32>
  moa.return %v1 : !moa.array<[N, D], f32>
}
