// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-reverse" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <i> ψ (reverse A) = <n − 1 − i> ψ A

// OFF: no law reduces ψ of 'moa.reverse'; is 'psi-reverse' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[L:.*]] = dnf.extent "N - 1"
// CHECK-NEXT: %[[I:.*]] = arith.subi %[[L]], %[[N]] : index
// CHECK-NEXT: dnf.psi %x[%[[I]], %[[M]]]
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %y = moa.reverse %x axis 0 : !moa.array<[N, M], f32> -> !moa.array<[N, M], f32>
  moa.return %y : !moa.array<[N, M], f32>
}
