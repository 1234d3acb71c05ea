// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf="seed=3" -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-otherwise" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A7: otherwise(a where p, b) = join(p, a, b), which A6 makes a selection; it is present where
// b is present everywhere. Of an a that is present everywhere it is a.

// OFF: no law makes a join of 'otherwise'; is 'absent-otherwise' disabled?

// CHECK: dnf.output 0
// CHECK-DAG: %[[P:.*]] = dnf.psi %p
// CHECK-DAG: %[[X:.*]] = dnf.psi %x
// CHECK-DAG: %[[Y:.*]] = dnf.psi %y
// CHECK: %[[V:.*]] = arith.select %[[P]], %[[X]], %[[Y]] : f32
// CHECK-NEXT: dnf.yield %[[V]] : f32
// CHECK: dnf.output 1
// CHECK: %[[W:.*]] = dnf.psi %x
// CHECK-NEXT: dnf.yield %[[W]] : f32
moa.kernel @k attributes {symbols = ["N"], requires = [], arg_names = ["p", "x", "y"],
    result_names = ["r", "s"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%p: !moa.array<[N], i1>, %x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  %a = moa.mask %p, %x axes [0] : (!moa.array<[N], i1>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  %r = moa.map otherwise(%a, %y) axes [array<i64: 0>, array<i64: 0>]
     : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  %s = moa.map otherwise(%x, %y) axes [array<i64: 0>, array<i64: 0>]
     : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %r, %s : !moa.array<[N], f32>, !moa.array<[N], f32>
}
