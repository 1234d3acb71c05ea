// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-pointwise" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A1: f(a where p, b where q) = f(a, b) where p ∧ q

// OFF: no law moves an absent element out of 'dnf.output'; is 'absent-pointwise' disabled?

// CHECK: dnf.output 0
// CHECK: %[[X:.*]] = dnf.psi %x
// CHECK-NEXT: %[[Y:.*]] = dnf.psi %y
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[X]], %[[Y]] : f32
// CHECK-DAG: %[[P:.*]] = dnf.psi %p
// CHECK-DAG: %[[Q:.*]] = dnf.psi %q
// CHECK: %[[B:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK-NEXT: dnf.yield %[[S]] if %[[B]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["p", "q", "x", "y"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%p: !moa.array<[N], i1>, %q: !moa.array<[N], i1>, %x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  %a = moa.mask %p, %x axes [0] : (!moa.array<[N], i1>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  %b = moa.mask %q, %y axes [0] : (!moa.array<[N], i1>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  %z = moa.map add(%a, %b) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %z : !moa.array<[N], f32>
}
