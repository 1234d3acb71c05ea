// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-cat" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <i> ψ (A ⧺ B) = <i> ψ A if i < n, else <i − n> ψ B: the domain splits, nothing is copied.

// OFF: no law reduces ψ of 'moa.cat'; is 'psi-cat' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M + P"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[J:.*]]: index):
// CHECK-DAG: %[[P:.*]] = dnf.extent "P"
// CHECK-DAG: %[[C:.*]] = arith.cmpi slt, %[[J]], %[[P]] : index
// CHECK-DAG: %[[A:.*]] = dnf.psi %x[%[[N]], %[[J]]]
// CHECK-DAG: %[[K:.*]] = arith.subi %[[J]], %[[P]] : index
// CHECK-DAG: %[[B:.*]] = dnf.psi %y[%[[N]], %[[K]]]
// CHECK: %[[R:.*]] = arith.select %[[C]], %[[A]], %[[B]] : f32
// CHECK-NEXT: dnf.yield %[[R]] : f32
moa.kernel @k attributes {symbols = ["N", "P", "M"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<[N, "M + P"], f32>]} {
^bb0(%x: !moa.array<[N, P], f32>, %y: !moa.array<[N, M], f32>):
  %z = moa.cat %x, %y axis 1 : (!moa.array<[N, P], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, "M + P"], f32>
  moa.return %z : !moa.array<[N, "M + P"], f32>
}
