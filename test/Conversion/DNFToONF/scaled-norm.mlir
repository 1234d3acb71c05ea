// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// m·√Σ(x/m)² with m = max |x|: the repair is (m/m')², singular at m = 0, where
// every term so far was 0.

// CHECK: %[[F:.*]]:2 = onf.fold "m" in "M" : f32, f32 {
// CHECK: %[[M:.*]] = onf.acc max "m"
// CHECK: onf.acc add {{.*}} refs(%[[M]]) mul [0.000000e+00 : f32]
// CHECK: } repair {
// CHECK-NEXT: ^bb0(%[[OLD:.*]]: f32, %[[NEW:.*]]: f32):
// CHECK-NEXT: %[[R:.*]] = arith.divf %[[NEW]], %[[OLD]] : f32
// CHECK-NEXT: %[[I:.*]] = arith.divf %{{.*}}, %[[R]] : f32
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[I]], %[[I]] : f32
// CHECK-NEXT: onf.yield %[[C]] : f32
// CHECK-NOT: onf.fold
// CHECK: math.sqrt

// OFF-COUNT-2: onf.fold "m" in "M"
// OFF-NOT: onf.fold
moa.kernel @norm attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %v1 = moa.map abs(%x) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %m2 = moa.reduce max %v1 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v3 = moa.map div(%x, %m2) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v4 = moa.map mul(%v3, %v3) axes [array<i64: 0, 1>, array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %s5 = moa.reduce add %v4 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("s")
  %v6 = moa.map sqrt(%s5) axes [array<i64: 0>]
      : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v7 = moa.map mul(%m2, %v6) axes [array<i64: 0>, array<i64: 0>]
      : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %v7 : !moa.array<[N], f32>
}
