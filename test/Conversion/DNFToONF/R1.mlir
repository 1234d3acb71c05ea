// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R1" -onf-verify 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// R1: a factor that does not depend on the reduced index leaves a sum. This moves
// 1/l out, and what is left has a repair with respect to m alone.

// CHECK-LABEL: onf.kernel @weighted
// CHECK: %[[F:.*]]:3 = onf.fold "m" in "M" : f32, f32, !moa.array<[4], f32> {
// CHECK-NOT: arith.divf
// CHECK-NOT: onf.fold
// An empty range has the sum 0, whatever the factor is: the quotient is guarded.
// CHECK: %[[ANY:.*]] = arith.cmpi sgt
// CHECK: %[[Q:.*]] = arith.divf
// CHECK-NEXT: %[[S:.*]] = arith.select %[[ANY]], %[[Q]], %{{.*}} : f32
// CHECK-NEXT: onf.store %[[S]], %o

// OFF: remark: 'o' takes another pass over 'M': terms do not vanish where it is singular, blocked by exp(−m)/l{{$}}
// OFF-LABEL: onf.kernel @weighted
// OFF: onf.fold "m" in "M" : f32, f32 {
// OFF: onf.fold "m" in "M" : !moa.array<[4], f32> {
// OFF: arith.divf
// OFF: onf.for ["k"]
moa.kernel @weighted attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "v"],
    result_names = ["o"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], f32>):
  %m1 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%x, %m1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l4 = moa.reduce add %e3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v5 = moa.map div(%e3, %l4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.inner add of mul %v5, %v {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v6 : !moa.array<[N, 4], f32>
}

// Where the range is restricted, whether it holds anything is folded along.
// CHECK-LABEL: onf.kernel @scaled
// CHECK: %[[R:.*]]:2 = onf.fold "m" in "M" : f32, i1 {
// CHECK: onf.guard
// CHECK: onf.acc add "y"
// CHECK-NEXT: onf.yield %{{.*}} : f32
// CHECK: onf.acc or
// CHECK: onf.yield
// CHECK: %[[P:.*]] = arith.mulf %[[R]]#0
// CHECK: %[[Q:.*]] = arith.divf %[[P]]
// CHECK: %[[S:.*]] = arith.select %[[R]]#1, %[[Q]], %{{.*}} : f32
// CHECK: onf.store %[[S]], %y

// OFF-LABEL: onf.kernel @scaled
// OFF: onf.fold "m" in "M" : f32 {
// OFF: arith.divf
// OFF: arith.mulf
// OFF: onf.acc add
// OFF-NOT: arith.select
// OFF: onf.store
moa.kernel @scaled attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "f", "g", "p"],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %f: !moa.array<[N], f32>, %g: !moa.array<[], f32>, %p: !moa.array<[N, M], i1>):
  %v1 = moa.map div(%x, %f) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v2 = moa.map mul(%v1, %g) axes [array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.mask %p, %v2 axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v4 = moa.reduce add %v3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v4 : !moa.array<[N], f32>
}

// A constant, and any factor of a range that is known to hold something, leaves
// without a guard. Nothing leaves a maximum.
// CHECK-LABEL: onf.kernel @constants
// CHECK-NOT: arith.select
// CHECK: onf.store %{{.*}}, %y
// CHECK: %[[U:.*]] = arith.mulf
// CHECK-NEXT: onf.store %[[U]], %u
// CHECK: onf.store %{{.*}}, %w
moa.kernel @constants attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "z"],
    result_names = ["y", "u", "w"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %z: !moa.array<[N, 8], f32>):
  %v1 = moa.constant 3.0 : f32 -> !moa.array<[], f32>
  %v2 = moa.map mul(%x, %v1) axes [array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.reduce add %v2 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v4 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v5 = moa.map mul(%z, %v4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, 8], f32>, !moa.array<[N], f32>) -> !moa.array<[N, 8], f32>
  %v6 = moa.reduce add %v5 axis 1 : !moa.array<[N, 8], f32> -> !moa.array<[N], f32>
  %v7 = moa.reduce min %z axis 1 : !moa.array<[N, 8], f32> -> !moa.array<[N], f32>
  %v8 = moa.map mul(%x, %v7) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v9 = moa.reduce max %v8 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v3, %v6, %v9 : !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>
}

// Quotients by maxima stay: x·y may leave the range of the type where (x/m)·(y/k)
// does not. R3 repairs the sum. The scalar leaves, the rest is as it was written.
// A quotient by a maximum that has either sign has no repair; it leaves.
// CHECK-LABEL: onf.kernel @units
// CHECK: %[[F:.*]]:5 = onf.fold "m" in "M" : f32, f32, f32, f32, f32 {
// CHECK: %[[A:.*]] = onf.load %a
// CHECK: %[[M:.*]] = onf.acc max
// CHECK: %[[B:.*]] = onf.load %b
// CHECK: %[[K:.*]] = onf.acc max
// CHECK: %[[X:.*]] = arith.divf %[[A]], %[[M]]
// CHECK-NEXT: %[[Y:.*]] = arith.divf %[[B]], %[[K]]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[X]], %[[Y]]
// CHECK-NEXT: onf.acc add "y" carries [] in [] refs(%[[M]], %[[K]])
// CHECK-NEXT: onf.yield %[[P]]
// CHECK: onf.acc add "z" carries [] in [] refs()
// CHECK-NEXT: onf.yield %[[A]]
// CHECK-NOT: onf.fold
// CHECK: %[[G:.*]] = onf.load %g
// CHECK: arith.mulf %{{.*}}, %[[G]]
// CHECK: onf.store %{{.*}}, %y
// CHECK: arith.divf %[[F]]#4, %[[F]]#3
// CHECK: onf.store %{{.*}}, %z
moa.kernel @units attributes {symbols = ["N", "M"], requires = [], arg_names = ["a", "b", "g"],
    result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%a: !moa.array<[N, M], f32>, %b: !moa.array<[N, M], f32>, %g: !moa.array<[], f32>):
  %v1 = moa.map abs(%a) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v2 = moa.reduce max %v1 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v3 = moa.map div(%a, %v2) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v4 = moa.map abs(%b) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v5 = moa.reduce max %v4 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v6 = moa.map div(%b, %v5) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v7 = moa.map mul(%v6, %g) axes [array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v8 = moa.map mul(%v3, %v7) axes [array<i64: 0, 1>, array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v9 = moa.reduce add %v8 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %u1 = moa.reduce max %a axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %u2 = moa.map div(%a, %u1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %u3 = moa.reduce add %u2 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v9, %u3 : !moa.array<[N], f32>, !moa.array<[N], f32>
}
