// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-inner" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// (p⧺i⧺j) ψ (A g.f B) = g over l of ((p⧺i⧺<l>) ψ A) f ((p⧺<l>⧺j) ψ B); an operand
// without a frame is shared by it.

// OFF: no law reduces ψ of 'moa.inner'; is 'psi-inner' disabled?

// CHECK: dnf.output 0 over ["b", "n", "m"] in ["B", "N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[B:.*]]: index, %[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[R:.*]] = dnf.reduce add over "k" in "8" rounds bf16 : f32 {
// CHECK-NEXT: ^bb0(%[[L:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[B]], %[[N]], %[[L]]]
// CHECK-NEXT: %[[Y:.*]] = dnf.psi %y[%[[B]], %[[L]], %[[M]]]
// CHECK-NEXT: %[[F:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK-NEXT: dnf.yield %[[F]] : f32
// CHECK: dnf.output 1 over ["b", "n", "k"] in ["B", "N", "3"] -> f32 {
// CHECK-NEXT: ^bb0(%[[B:.*]]: index, %[[N:.*]]: index, %[[K:.*]]: index):
// CHECK-NEXT: dnf.reduce max over "k" in "8" : f32 {
// CHECK-NEXT: ^bb0(%[[L:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[B]], %[[N]], %[[L]]]
// CHECK-NEXT: %[[W:.*]] = dnf.psi %w[%[[L]], %[[K]]]
// CHECK-NEXT: arith.addf %[[X]], %[[W]] : f32
moa.kernel @k attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["x", "y", "w"],
    result_names = ["r0", "r1"], result_types = [!moa.array<[B, N, M], f32>, !moa.array<[B, N, 3], f32>]} {
^bb0(%x: !moa.array<[B, N, 8], f32>, %y: !moa.array<[B, 8, M], f32>, %w: !moa.array<[8, 3], f32>):
  %r0 = moa.inner add of mul %x, %y {frame = 1, lhs_framed = true, rhs_framed = true, operand_type = bf16}
      : (!moa.array<[B, N, 8], f32>, !moa.array<[B, 8, M], f32>) -> !moa.array<[B, N, M], f32>
  %r1 = moa.inner max of add %x, %w {frame = 1, lhs_framed = true, rhs_framed = false}
      : (!moa.array<[B, N, 8], f32>, !moa.array<[8, 3], f32>) -> !moa.array<[B, N, 3], f32>
  moa.return %r0, %r1 : !moa.array<[B, N, M], f32>, !moa.array<[B, N, 3], f32>
}
