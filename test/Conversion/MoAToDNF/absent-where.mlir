// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-where" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A2: (a where q) where p = a where p ∧ q; conditions on indices come first.

// OFF: no law moves an absent element out of 'dnf.output'; is 'absent-where' disabled?

// CHECK: dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index, %[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x
// CHECK-NEXT: %[[P:.*]] = arith.cmpi sle, %[[M]], %[[N]] : index
// CHECK-NEXT: %[[Q:.*]] = dnf.psi %q[%[[M]]]
// CHECK-NEXT: %[[B:.*]] = arith.andi %[[P]], %[[Q]] : i1
// CHECK-NEXT: dnf.yield %[[X]] if %[[B]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["q", "x"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%q: !moa.array<[M], i1>, %x: !moa.array<[N, M], f32>):
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %p = moa.map le(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %a = moa.mask %q, %x axes [1] : (!moa.array<[M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %z = moa.mask %p, %a axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  moa.return %z : !moa.array<[N, M], f32>
}
