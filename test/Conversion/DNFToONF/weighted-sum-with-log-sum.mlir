// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R1" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=R1
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R2" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=R2
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R3" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=R3

// Weighted sum and log of the sum share one loop over the keys: the state is
// (m, l, o). Without R1 or R3 there are two passes, without R2 three.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK: %[[F:.*]]:3 = onf.fold "m" in "M" : f32, f32, !moa.array<[4], f32> {
// CHECK: %[[M:.*]] = onf.acc max "m"
// CHECK: onf.acc add "l" carries [] in [] refs(%[[M]]) mul [0xFF800000 : f32]
// CHECK: onf.acc add "o" carries ["k"] in ["4"] rounds bf16 refs(%[[M]]) mul [0xFF800000 : f32]
// CHECK-NOT: onf.fold
// CHECK: onf.for ["k"] in ["4"] {
// CHECK: onf.at %[[F]]#2
// CHECK: onf.store %{{.*}}, %o[%{{.*}}, %{{.*}}]
// CHECK: math.log
// CHECK: onf.store %{{.*}}, %lse[%{{.*}}]

// R1-COUNT-2: onf.fold "m" in "M"
// R1-NOT: onf.fold

// R2-COUNT-3: onf.fold "m" in "M"
// R2-NOT: onf.fold

// R3-COUNT-2: onf.fold "m" in "M"
// R3-NOT: onf.fold
moa.kernel @attend attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "v"],
    result_names = ["o", "lse"], result_types = [!moa.array<[N, 4], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], f32>):
  %m1 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("m")
  %v2 = moa.map sub(%x, %m1) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e3 = moa.map exp(%v2) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l4 = moa.reduce add %e3 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("l")
  %v5 = moa.map div(%e3, %l4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.inner add of mul %v5, %v {frame = 0, lhs_framed = true, rhs_framed = true, operand_type = bf16}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  %v7 = moa.map log(%l4) axes [array<i64: 0>]
      : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v8 = moa.map add(%m1, %v7) axes [array<i64: 0>, array<i64: 0>]
      : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %v6, %v8 : !moa.array<[N, 4], f32>, !moa.array<[N], f32>
}
