// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// Weights e^(m − x) with m the minimum: e^m does not grow while m falls, and +∞ is
// the value at which nothing has been seen.

// CHECK: onf.fold "m" in "M" : f32, f32, !moa.array<[4], f32> {
// CHECK: %[[M:.*]] = onf.acc min "m"
// CHECK: onf.acc add "l" carries [] in [] refs(%[[M]]) mul [0x7F800000 : f32]
// CHECK: ^bb0(%[[OLD:.*]]: f32, %[[NEW:.*]]: f32):
// CHECK-NEXT: %[[D:.*]] = arith.subf %[[NEW]], %[[OLD]] : f32
// CHECK-NEXT: math.exp %[[D]]
// CHECK: onf.acc add "o" carries ["k"] in ["4"] refs(%[[M]]) mul [0x7F800000 : f32]
// CHECK-NOT: onf.fold

// OFF-COUNT-2: onf.fold "m" in "M"
// OFF-NOT: onf.fold
moa.kernel @by_minimum attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "v"],
    result_names = ["o"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], f32>):
  %m1 = moa.reduce min %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%m1, %x) axes [array<i64: 0>, array<i64: 0, 1>]
      : (!moa.array<[N], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %l4 = moa.reduce add %v3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v5 = moa.map div(%v3, %l4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.inner add of mul %v5, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v6 : !moa.array<[N, 4], f32>
}
