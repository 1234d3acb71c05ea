// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-reshape" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ (v ρ A) = γ'(γ(i; v); ρA) ψ A, row-major.

// OFF: no law reduces ψ of 'moa.reshape'; is 'psi-reshape' disabled?

// CHECK: dnf.output 0 over ["k"] in ["3*N"] -> f32 {
// CHECK-NEXT: ^bb0(%[[I:.*]]: index):
// CHECK-NEXT: %[[T:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[Q:.*]] = arith.floordivsi %[[I]], %[[T]] : index
// CHECK-NEXT: %[[W:.*]] = arith.muli %[[Q]], %[[T]] : index
// CHECK-NEXT: %[[R:.*]] = arith.subi %[[I]], %[[W]] : index
// CHECK-NEXT: dnf.psi %x[%[[Q]], %[[R]]]
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<["3*N"], f32>]} {
^bb0(%x: !moa.array<[N, 3], f32>):
  %y = moa.reshape %x : !moa.array<[N, 3], f32> -> !moa.array<["3*N"], f32>
  moa.return %y : !moa.array<["3*N"], f32>
}
