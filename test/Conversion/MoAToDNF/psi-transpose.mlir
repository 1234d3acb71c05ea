// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-transpose" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ (transpose A) = i' ψ A with i'[perm k] = i[k]: no copy, an index swap.

// OFF: no law reduces ψ of 'moa.transpose'; is 'psi-transpose' disabled?

// CHECK: dnf.output 0 over ["k", "n", "m"] in ["4", "N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[K:.*]]: index, %[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]], %[[K]]]
// CHECK-NEXT: dnf.yield %[[X]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[4, N, M], f32>]} {
^bb0(%x: !moa.array<[N, M, 4], f32>):
  %y = moa.transpose %x perm [2, 0, 1] : !moa.array<[N, M, 4], f32> -> !moa.array<[4, N, M], f32>
  moa.return %y : !moa.array<[4, N, M], f32>
}
