// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-rotate" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <i> ψ (k rotate A) = <(i + k) mod n> ψ A; mod has the sign of the divisor.

// OFF: no law reduces ψ of 'moa.rotate'; is 'psi-rotate' disabled?

// CHECK: dnf.output 0 over ["n"] in ["N"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index):
// CHECK-NEXT: %[[K:.*]] = arith.constant -1 : index
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[N]], %[[K]] : index
// CHECK-NEXT: %[[E:.*]] = dnf.extent "N"
// CHECK-NEXT: %[[Q:.*]] = arith.floordivsi %[[S]], %[[E]] : index
// CHECK-NEXT: %[[W:.*]] = arith.muli %[[E]], %[[Q]] : index
// CHECK-NEXT: %[[I:.*]] = arith.subi %[[S]], %[[W]] : index
// CHECK-NEXT: dnf.psi %x[%[[I]]]
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  %y = moa.rotate %x by "-1" axis 0 : !moa.array<[N], f32> -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}
