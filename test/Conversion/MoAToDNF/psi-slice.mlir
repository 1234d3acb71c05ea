// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-slice" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <i> ψ (take or drop A) = <i + start> ψ A

// OFF: no law reduces ψ of 'moa.slice'; is 'psi-slice' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M - 1"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[I:.*]]: index):
// CHECK-NEXT: %[[S:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[S]] : index
// CHECK-NEXT: dnf.psi %x[%[[N]], %[[J]]]
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N, "M - 1"], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %y = moa.slice %x axis 1 start "1" count "M - 1" : !moa.array<[N, M], f32> -> !moa.array<[N, "M - 1"], f32>
  moa.return %y : !moa.array<[N, "M - 1"], f32>
}
