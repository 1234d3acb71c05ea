// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R2" -onf-verify \
// RUN:   | FileCheck %s --check-prefix=OFF

// R2: reductions over the same range are one reduction of a tuple.

// CHECK-LABEL: onf.kernel @moments
// CHECK: onf.fold "m" in "M" : f32, f32, f32, f32 {
// CHECK: onf.load %x
// CHECK-NOT: onf.load
// CHECK: onf.acc add "s"
// CHECK: onf.acc add "q"
// CHECK: onf.acc max "h"
// CHECK: onf.acc min "l"
// CHECK-NOT: onf.fold

// OFF-LABEL: onf.kernel @moments
// OFF-COUNT-4: onf.fold "m" in "M" : f32 {
// OFF-NOT: onf.fold
// OFF: onf.kernel @ranges
moa.kernel @moments attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["s", "q", "h", "l"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %v1 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v2 = moa.map mul(%x, %x) axes [array<i64: 0, 1>, array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v3 = moa.reduce add %v2 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v4 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v5 = moa.reduce min %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v1, %v3, %v4, %v5 : !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>
}

// Ranges that differ in extent or condition are different passes.
// CHECK-LABEL: onf.kernel @ranges
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK-NOT: onf.guard
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK: onf.guard
// CHECK: onf.fold "l" in "L" : f32 {
// CHECK-NOT: onf.fold
moa.kernel @ranges attributes {symbols = ["N", "M", "L"], requires = [], arg_names = ["x", "y"],
    result_names = ["s", "m", "l"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, L], f32>):
  %v1 = moa.iota "N" -> !moa.array<[N], index>
  %v2 = moa.iota "M" -> !moa.array<[M], index>
  %v3 = moa.map le(%v2, %v1) axes [array<i64: 1>, array<i64: 0>]
      : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %v4 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v5 = moa.mask %v3, %x axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.reduce add %v5 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v7 = moa.reduce add %y axis 1 : !moa.array<[N, L], f32> -> !moa.array<[N], f32>
  moa.return %v4, %v6, %v7 : !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>
}
