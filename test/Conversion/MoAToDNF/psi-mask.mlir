// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-mask" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ mask(p, A) = (i ψ A) where (i[axes p] ψ p)

// OFF: no law reduces ψ of 'moa.mask'; is 'psi-mask' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]]]
// CHECK-NEXT: %[[P:.*]] = dnf.psi %p[%[[M]]]
// CHECK-NEXT: dnf.yield %[[X]] if %[[P]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["p", "x"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%p: !moa.array<[M], i1>, %x: !moa.array<[N, M], f32>):
  %y = moa.mask %p, %x axes [1] : (!moa.array<[M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  moa.return %y : !moa.array<[N, M], f32>
}
