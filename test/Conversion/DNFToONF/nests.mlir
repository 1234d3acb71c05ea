// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// Outputs over the same rows share a nest; others have their own, a scalar a nest of
// rank 0. Every output is stored once.

// CHECK: onf.for ["n"] in ["N"] {
// CHECK: onf.fold "m" in "M" : f32, f32 {
// CHECK: onf.store %{{.*}}, %a[
// CHECK: onf.store %{{.*}}, %c[
// CHECK: onf.for ["l"] in ["L"] {
// CHECK: onf.store %{{.*}}, %b[
// CHECK: onf.for [] in [] {
// CHECK: onf.fold "n" in "N" : f32 {
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK: onf.store %{{.*}}, %d[] times [] plus "0"
// CHECK-NOT: onf.store
moa.kernel @nests attributes {symbols = ["N", "M", "L"], requires = [], arg_names = ["x", "y"],
    result_names = ["a", "b", "c", "d"], result_types = [!moa.array<[N], f32>, !moa.array<[L], f32>, !moa.array<[N], f32>, !moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[L, M], f32>):
  %v1 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v2 = moa.reduce max %y axis 1 : !moa.array<[L, M], f32> -> !moa.array<[L], f32>
  %v3 = moa.reduce max %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %v4 = moa.reduce max %v1 axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %v1, %v2, %v3, %v4 : !moa.array<[N], f32>, !moa.array<[L], f32>, !moa.array<[N], f32>, !moa.array<[], f32>
}
