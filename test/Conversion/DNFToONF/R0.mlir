// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R0" -onf-verify 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// R0, linearity: Σ (F1 − F2) v = Σ F1 v − Σ F2 v. Each part reads its own maximum
// and has its own repair; together they have none.

// CHECK-NOT: remark
// CHECK: onf.fold "m" in "M" : f32, f32, f32, f32, !moa.array<[4], f32>, !moa.array<[4], f32> {
// CHECK: %[[M1:.*]] = onf.acc max "m1"
// CHECK: onf.acc add "l1" carries [] in [] refs(%[[M1]])
// CHECK: %[[M2:.*]] = onf.acc max "m2"
// CHECK: onf.acc add "l2" carries [] in [] refs(%[[M2]])
// CHECK: onf.acc add "o" carries ["k"] in ["4"] refs(%[[M1]])
// CHECK: onf.acc add "o" carries ["k"] in ["4"] refs(%[[M2]])
// CHECK-NOT: onf.fold
// CHECK: arith.subf
// CHECK: onf.store

// OFF: remark: 'o' takes another pass over 'M': it does not separate the index from earlier results, blocked by exp(x[n, m] − m1)/l1 − exp(y[n, m] − m2)/l2·lam{{$}}
// OFF: onf.fold "m" in "M" : f32, f32, f32, f32 {
// OFF: onf.fold "m" in "M" : !moa.array<[4], f32> {
// OFF-NOT: onf.fold
moa.kernel @difference attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y", "v", "lam"],
    result_names = ["o"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], f32>, %lam: !moa.array<[], f32>):
  %m11 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m1")
  %v2 = moa.map sub(%x, %m11) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e13 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E1")
  %l14 = moa.reduce add %e13 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l1")
  %v5 = moa.map div(%e13, %l14) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %m26 = moa.reduce max %y axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m2")
  %v7 = moa.map sub(%y, %m26) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e28 = moa.map exp(%v7) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E2")
  %l29 = moa.reduce add %e28 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l2")
  %v10 = moa.map div(%e28, %l29) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v11 = moa.map mul(%v10, %lam) axes [array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v12 = moa.map sub(%v5, %v11) axes [array<i64: 0, 1>, array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v13 = moa.inner add of mul %v12, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v13 : !moa.array<[N, 4], f32>
}
