// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify 2>&1 \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R1" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=REPAIR
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R1,R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// A factor behind a selection by a predicate that is free of earlier results leaves the
// sum by R1, which is 0 where the predicate holds nowhere. Without R1 the selection splits by
// parts: the repair is (1 + d) / (1 + d'), which is at most 1 because d only grows.

// CHECK: remark: 's' takes another pass over 'M': it does not separate the index from earlier results, blocked by (y[n, m] < add.add + 1 ? y[n, m]/(add.add + 1) : 0){{$}}
// CHECK-NOT: remark
// CHECK-LABEL: onf.kernel @selected
// CHECK: onf.fold "m" in "M" : f32, f32, i1 {
// CHECK: %[[S:.*]] = arith.select %[[P:.*]], %{{.*}}, %{{.*}} : f32
// CHECK: onf.acc add "s" carries [] in [] refs() mul []
// CHECK-NEXT: onf.yield %[[S]]
// CHECK: onf.acc or {{.*}} carries
// CHECK-NEXT: onf.yield %[[P]]
// CHECK-NOT: onf.fold
// CHECK: arith.divf
// CHECK: arith.select

// REPAIR-LABEL: onf.kernel @selected
// REPAIR: onf.fold "m" in "M" : f32, f32, i1 {
// REPAIR: %[[D:.*]] = onf.acc add
// REPAIR: %[[Q:.*]] = arith.divf
// REPAIR: %[[S:.*]] = arith.select %{{.*}}, %[[Q]]
// REPAIR: onf.acc add "s" carries [] in [] refs(%[[D]]) mul [0x7FC00000 : f32]
// REPAIR-NEXT: onf.yield %[[S]]
// REPAIR-NOT: onf.fold
// REPAIR-LABEL: onf.kernel @far

// OFF-LABEL: onf.kernel @selected
// OFF: onf.fold "m" in "M" : f32, i1 {
// OFF: onf.fold "m" in "M" : f32 {
// OFF-LABEL: onf.kernel @far
moa.kernel @selected attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y", "p"],
    result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, M], f32>, %p: !moa.array<[N, M], i1>):
  %v1 = moa.map exp(%x) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %d2 = moa.reduce add %v1 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("d")
  %v3 = moa.constant 1.0 : f32 -> !moa.array<[], f32>
  %v4 = moa.map add(%d2, %v3) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32>
  %v5 = moa.constant 0.0 : f32 -> !moa.array<[], f32>
  %v6 = moa.map div(%y, %v4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v7 = moa.map select(%p, %v6, %v5) axes [array<i64: 0, 1>, array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v8 = moa.reduce add %v7 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v8 : !moa.array<[N], f32>
}

// One whose predicate reads them does not.
// CHECK-LABEL: onf.kernel @far
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK: onf.fold "m" in "M" : f32 {
moa.kernel @far attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y"],
    result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, M], f32>):
  %v1 = moa.map exp(%x) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %d2 = moa.reduce add %v1 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("d")
  %v3 = moa.constant 1.0 : f32 -> !moa.array<[], f32>
  %v4 = moa.map add(%d2, %v3) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32>
  %v5 = moa.constant 0.0 : f32 -> !moa.array<[], f32>
  %v6 = moa.map lt(%y, %v4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], i1>
  %v7 = moa.map div(%y, %v4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v8 = moa.map select(%v6, %v7, %v5) axes [array<i64: 0, 1>, array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v9 = moa.reduce add %v8 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v9 : !moa.array<[N], f32>
}

// Over a row of present −∞ the value is NaN or 0 as the predicate says. No sum that ends at
// m = −∞ can tell; a state of its own does.
// CHECK-LABEL: onf.kernel @present_infinities
// CHECK: onf.fold "m" in "M" : f32, f32, i1 {
// CHECK-NOT: onf.fold
moa.kernel @present_infinities attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "p"],
    result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %p: !moa.array<[N, M], i1>):
  %m1 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%x, %m1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v4 = moa.constant 0.0 : f32 -> !moa.array<[], f32>
  %v5 = moa.map select(%p, %v3, %v4) axes [array<i64: 0, 1>, array<i64: 0, 1>, array<i64>]
      : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.reduce add %v5 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v6 : !moa.array<[N], f32>
}
