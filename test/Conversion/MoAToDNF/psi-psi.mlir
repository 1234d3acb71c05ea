// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-psi" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// (p⧺q) ψ (psi A I) = r ψ A: r has p ψ I on the selected axes, q on the others.
// The selection of a shared head and a gather are the same law.

// OFF: no law reduces ψ of 'moa.psi'; is 'psi-psi' disabled?

// CHECK: dnf.output 0 over ["h", "n"] in ["H", "N"] -> f32 {
// CHECK-NEXT: ^bb0(%[[H:.*]]: index, %[[N:.*]]: index):
// CHECK-NEXT: %[[R:.*]] = dnf.extent "H/G"
// CHECK-NEXT: %[[Q:.*]] = arith.floordivsi %[[H]], %[[R]] : index
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[Q]], %[[N]]]
// CHECK-NEXT: dnf.yield %[[X]] : f32
// CHECK: dnf.output 1 over ["p", "g"] in ["P", "G"] -> f32 {
// CHECK-NEXT: ^bb0(%[[P:.*]]: index, %[[G:.*]]: index):
// CHECK-NEXT: %[[T:.*]] = dnf.psi %t[%[[P]]] : <[P], i32> -> i32
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[T]] : i32 to index
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[G]], %[[I]]]
moa.kernel @k attributes {symbols = ["H", "G", "N", "P"], requires = [], arg_names = ["x", "t"],
    result_names = ["r0", "r1"], result_types = [!moa.array<[H, N], f32>, !moa.array<[P, G], f32>]} {
^bb0(%x: !moa.array<[G, N], f32>, %t: !moa.array<[P], i32>):
  %h = moa.iota "H" -> !moa.array<[H], index>
  %s = moa.extent "H/G" -> !moa.array<[], index>
  %g = moa.map div(%h, %s) axes [array<i64: 0>, array<i64>] : (!moa.array<[H], index>, !moa.array<[], index>) -> !moa.array<[H], index>
  %r0 = moa.psi %x[%g] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[G, N], f32>, !moa.array<[H], index>) -> !moa.array<[H, N], f32>
  %i = moa.cast %t {implicit} : !moa.array<[P], i32> -> !moa.array<[P], index>
  %r1 = moa.psi %x[%i] dims [1] axes [array<i64: 0>] frame 1 : (!moa.array<[G, N], f32>, !moa.array<[P], index>) -> !moa.array<[P, G], f32>
  moa.return %r0, %r1 : !moa.array<[H, N], f32>, !moa.array<[P, G], f32>
}
