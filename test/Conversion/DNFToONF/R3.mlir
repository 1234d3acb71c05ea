// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// R3: l = Σ e^(x − m) reads m, the running maximum; when m grows, l is repaired by
// e^(m − m'), which is at most 1. While m is −∞ the terms vanish and l stays 0.

// CHECK: %[[F:.*]]:2 = onf.fold "m" in "M" : f32, f32 {
// CHECK: %[[X:.*]] = onf.load %x
// CHECK: %[[M:.*]] = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
// CHECK-NEXT: onf.yield %[[X]] : f32
// CHECK: %[[D:.*]] = arith.subf %[[X]], %[[M]] : f32
// CHECK-NEXT: %[[E:.*]] = math.exp %[[D]] : f32
// CHECK-NEXT: %[[L:.*]] = onf.acc add "lse" carries [] in [] refs(%[[M]]) mul [0xFF800000 : f32] : (f32) -> f32 {
// CHECK-NEXT: onf.yield %[[E]] : f32
// CHECK-NEXT: } repair {
// CHECK-NEXT: ^bb0(%[[OLD:.*]]: f32, %[[NEW:.*]]: f32):
// CHECK-NEXT: %[[U:.*]] = arith.subf %[[OLD]], %[[NEW]] : f32
// CHECK-NEXT: %[[C:.*]] = math.exp %[[U]] : f32
// CHECK-NEXT: onf.yield %[[C]] : f32
// CHECK: onf.yield %[[M]], %[[L]] : f32, f32
// CHECK-NOT: onf.fold

// OFF: onf.fold "m" in "M" : f32 {
// OFF: onf.acc max "m" carries [] in [] refs()
// OFF: onf.fold "m" in "M" : f32 {
// OFF: onf.acc add "lse" carries [] in [] refs()
// OFF-NOT: onf.fold
moa.kernel @sums attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["lse"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %m1 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%x, %m1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l4 = moa.reduce add %e3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v5 = moa.map div(%e3, %l4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.map log(%l4) axes [array<i64: 0>]
      : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v7 = moa.map add(%m1, %v6) axes [array<i64: 0>, array<i64: 0>]
      : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %v7 : !moa.array<[N], f32>
}
