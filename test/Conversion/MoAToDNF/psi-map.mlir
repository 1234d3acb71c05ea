// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-map" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ f(A, B) = (i[axes A] ψ A) f (i[axes B] ψ B): axes an operand lacks are
// broadcast, scalars to all.

// OFF: no law reduces ψ of 'moa.map'; is 'psi-map' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]]]
// CHECK-NEXT: %[[Y:.*]] = dnf.psi %y[%[[M]]]
// CHECK-NEXT: %[[XY:.*]] = arith.subf %[[X]], %[[Y]] : f32
// CHECK-NEXT: %[[S:.*]] = dnf.psi %s[]
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[XY]], %[[S]] : f32
// CHECK-NEXT: %[[E:.*]] = math.exp %[[P]] : f32
// CHECK-NEXT: dnf.yield %[[E]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y", "s"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[M], f32>, %s: !moa.array<[], f32>):
  %d = moa.map sub(%x, %y) axes [array<i64: 0, 1>, array<i64: 1>] : (!moa.array<[N, M], f32>, !moa.array<[M], f32>) -> !moa.array<[N, M], f32>
  %p = moa.map mul(%d, %s) axes [array<i64: 0, 1>, array<i64>] : (!moa.array<[N, M], f32>, !moa.array<[], f32>) -> !moa.array<[N, M], f32>
  %e = moa.map exp(%p) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  moa.return %e : !moa.array<[N, M], f32>
}
