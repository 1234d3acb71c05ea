// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// The weights themselves are an N×M output: one pass for (m, l), then a loop over
// the axis that recomputes the exponentials. Nothing of size M is stored.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK: onf.fold "m" in "M" : f32, f32 {
// CHECK-NOT: onf.fold
// CHECK: onf.for ["m"] in ["M"] {
// CHECK: onf.load %x
// CHECK: math.exp
// CHECK: arith.divf
// CHECK: onf.store %{{.*}}, %w[%{{.*}}, %{{.*}}]

// OFF-COUNT-2: onf.fold "m" in "M"
// OFF-NOT: onf.fold
moa.kernel @weights attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["w"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %m1 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%x, %m1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l4 = moa.reduce add %e3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v5 = moa.map div(%e3, %l4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  moa.return %v5 : !moa.array<[N, M], f32>
}
