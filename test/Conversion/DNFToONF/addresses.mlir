// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// An index is constant + Σ factor · term: sums, differences and multiples of indices are
// taken apart, a gathered index is a term.

// CHECK: onf.for ["n", "m"] in ["N", "M - 2"] {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK: onf.load %x[%[[N]], %[[M]]] at ["$0", "$1 + 2"]
// CHECK: onf.for ["n", "m"] in ["N", "M"] {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK: onf.load %x[%[[N]], %[[M]]] at ["$0", "M - $1 - 1"]
// CHECK: %[[T:.*]] = onf.load %t[%[[N]]]
// CHECK: %[[I:.*]] = arith.index_cast %[[T]] : i32 to index
// CHECK: onf.load %x[%[[I]], %[[M]]]
moa.kernel @addresses attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "t"],
    result_names = ["a", "b", "c"], result_types = [!moa.array<[N, "M - 2"], f32>, !moa.array<[N, M], f32>, !moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %t: !moa.array<[N], i32>):
  %v1 = moa.slice %x axis 1 start "2" count "M - 2" : !moa.array<[N, M], f32> -> !moa.array<[N, "M - 2"], f32>
  %v2 = moa.reverse %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N, M], f32>
  %v3 = moa.cast %t {implicit} : !moa.array<[N], i32> -> !moa.array<[N], index>
  %v4 = moa.psi %x[%v3] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[N, M], f32>, !moa.array<[N], index>) -> !moa.array<[N, M], f32>
  moa.return %v1, %v2, %v4 : !moa.array<[N, "M - 2"], f32>, !moa.array<[N, M], f32>, !moa.array<[N, M], f32>
}
