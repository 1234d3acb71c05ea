// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-share" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ x = f(i) for an array used more than once, with let f(i) = i ψ x: a
// function of its indices, never storage, named after the definition.
// OFF: no law reduces ψ of 'moa.{{map|reduce}}'; is 'psi-share' disabled?

// CHECK: dnf.let @E over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : f32
// CHECK-NEXT: dnf.yield %[[E]] : f32
// A reduction that is spread over its axis again is shared by the axis.
// CHECK: dnf.let @add over ["n"] in ["N"] -> f32 {
// CHECK: dnf.reduce add over "m" in "M" : f32 {
// CHECK: dnf.apply @E(%{{.*}}, %{{.*}}) : f32
// CHECK: dnf.output 0 over ["m", "n"] in ["M", "N"] -> f32 {
// CHECK-NEXT: ^bb0(%[[M:.*]]: index, %[[N:.*]]: index):
// CHECK-NEXT: %[[E:.*]] = dnf.apply @E(%[[N]], %[[M]]) : f32
// CHECK-NEXT: %[[L:.*]] = dnf.apply @add(%[[N]]) : f32
// CHECK-NEXT: %[[Q:.*]] = arith.divf %[[E]], %[[L]] : f32
// CHECK-NEXT: dnf.yield %[[Q]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[M, N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %e = moa.map exp(%x) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("E")
  %l = moa.reduce add %e axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %q = moa.map div(%e, %l) axes [array<i64: 0, 1>, array<i64: 0>] : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %y = moa.transpose %q perm [1, 0] : !moa.array<[N, M], f32> -> !moa.array<[M, N], f32>
  moa.return %y : !moa.array<[M, N], f32>
}
