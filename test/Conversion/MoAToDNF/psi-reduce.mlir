// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-reduce" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// q ψ (⊕/ A) = ⊕ over j of (q with j at the axis) ψ A

// OFF: no law reduces ψ of 'moa.reduce'; is 'psi-reduce' disabled?

// CHECK: dnf.output 0 over ["n", "k"] in ["N", "4"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[K:.*]]: index):
// CHECK-NEXT: %[[R:.*]] = dnf.reduce max over "m" in "M" : f32 {
// CHECK-NEXT: ^bb0(%[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]], %[[K]]]
// CHECK-NEXT: dnf.yield %[[X]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: dnf.yield %[[R]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M, 4], f32>):
  %y = moa.reduce max %x axis 1 : !moa.array<[N, M, 4], f32> -> !moa.array<[N, 4], f32>
  moa.return %y : !moa.array<[N, 4], f32>
}
