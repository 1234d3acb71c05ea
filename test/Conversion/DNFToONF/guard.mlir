// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// A mask is a guard of the fold, evaluated before the scores; the scores are a fold
// of their own inside. Emptiness decides the 0, not a zero sum: a boolean is folded
// along, and a state that ends at m = −∞ over something is 0·∞.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index):
// CHECK: %[[C:.*]] = onf.extent "M - N"
// CHECK: %[[LIM:.*]] = arith.addi %[[N]], %[[C]] : index
// CHECK: %[[F:.*]]:4 = onf.fold "m" in "M" : f32, f32, !moa.array<[4], f32>, i1 {
// CHECK-NEXT: ^bb0(%[[M:.*]]: index):
// CHECK-NEXT: %[[P:.*]] = arith.cmpi sle, %[[M]], %[[LIM]] : index
// CHECK-NEXT: onf.guard %[[P]]
// CHECK: onf.fold "k" in "8" : f32 {
// CHECK: onf.load %q
// CHECK: onf.load %y
// CHECK: onf.acc max "m"
// CHECK: onf.acc add "l"
// CHECK: onf.acc add "o"
// CHECK: onf.acc or
// CHECK-NEXT: onf.yield %true : i1
// CHECK: %[[AT:.*]] = arith.cmpf oeq, %[[F]]#0
// CHECK: %[[END:.*]] = arith.andi %[[F]]#3, %[[AT]] : i1
// CHECK: arith.select %[[END]]
// CHECK: onf.for ["k"] in ["4"] {
// CHECK: %[[O:.*]] = arith.select %[[F]]#3, %{{.*}}, %{{.*}} : f32
// CHECK-NEXT: onf.store %[[O]], %o
moa.kernel @causal attributes {symbols = ["N", "M"], requires = [], arg_names = ["q", "y", "v"],
    result_names = ["o", "lse"], result_types = [!moa.array<[N, 4], f32>, !moa.array<[N], f32>]} {
^bb0(%q: !moa.array<[N, 8], f32>, %y: !moa.array<[M, 8], f32>, %v: !moa.array<[M, 4], f32>):
  %v1 = moa.transpose %y perm [1, 0] : !moa.array<[M, 8], f32> -> !moa.array<[8, M], f32>
  %v2 = moa.inner add of mul %q, %v1 {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, 8], f32>, !moa.array<[8, M], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.extent "M - N" -> !moa.array<[], index>
  %v4 = moa.iota "M" -> !moa.array<[M], index>
  %v5 = moa.iota "N" -> !moa.array<[N], index>
  %v6 = moa.map add(%v5, %v3) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], index>, !moa.array<[], index>) -> !moa.array<[N], index>
  %v7 = moa.map le(%v4, %v6) axes [array<i64: 1>, array<i64: 0>]
      : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %s8 = moa.mask %v7, %v2 axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("S")
  %m9 = moa.reduce max %s8 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v10 = moa.map sub(%s8, %m9) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e11 = moa.map exp(%v10) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l12 = moa.reduce add %e11 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v13 = moa.map div(%e11, %l12) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v14 = moa.map log(%l12) axes [array<i64: 0>]
      : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v15 = moa.map add(%m9, %v14) axes [array<i64: 0>, array<i64: 0>]
      : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v16 = moa.inner add of mul %v13, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v16, %v15 : !moa.array<[N, 4], f32>, !moa.array<[N], f32>
}
