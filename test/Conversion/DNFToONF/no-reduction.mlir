// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify \
// RUN:   | FileCheck %s

// A nest without a fold is a copy with swapped strides.

// CHECK-LABEL: onf.kernel @views
// CHECK: onf.for ["m", "n"] in ["M", "N"] {
// CHECK-NEXT: ^bb0(%[[M:.*]]: index, %[[N:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = onf.load %x[%[[N]], %[[M]]]
// CHECK-NEXT: onf.store %[[X]], %y[%[[M]], %[[N]]]
// CHECK-NEXT: }
moa.kernel @views attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[M, N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %v1 = moa.transpose %x perm [1, 0] : !moa.array<[N, M], f32> -> !moa.array<[M, N], f32>
  moa.return %v1 : !moa.array<[M, N], f32>
}
