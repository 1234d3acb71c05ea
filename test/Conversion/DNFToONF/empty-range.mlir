// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// Over a static range of nothing a fold is the identity of its monoid.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK: onf.fold "k" in "0" : f32, f32, !moa.array<[4], f32> {
// CHECK: onf.acc add
// CHECK: onf.acc max
// CHECK: onf.acc add {{.*}} carries
moa.kernel @empty attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "v"],
    result_names = ["s", "m", "p"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, 0], f32>, %v: !moa.array<[0, 4], f32>):
  %v1 = moa.reduce add %x axis 1 : !moa.array<[N, 0], f32> -> !moa.array<[N], f32>
  %v2 = moa.reduce max %x axis 1 : !moa.array<[N, 0], f32> -> !moa.array<[N], f32>
  %v3 = moa.inner add of mul %x, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, 0], f32>, !moa.array<[0, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v1, %v2, %v3 : !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N, 4], f32>
}
