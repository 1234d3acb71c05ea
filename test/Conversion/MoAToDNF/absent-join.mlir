// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf="seed=3" -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-join" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A6: join(c, a where p, b) = select(c, a, b) where select(c, p, true): what is absent in the
// first part says nothing about the second.

// OFF: no law makes a selection of a catenation; is 'absent-join' disabled?

// CHECK: dnf.reduce add over "m" in "M + P"
// CHECK: %[[C:.*]] = arith.cmpi slt, %[[J:.*]], %{{.*}} : index
// CHECK: %[[V:.*]] = arith.select %[[C]], %{{.*}}, %{{.*}} : f32
// CHECK: %[[P:.*]] = dnf.psi %p[%[[J]]]
// CHECK: %[[Q:.*]] = arith.select %[[C]], %[[P]], %true : i1
// CHECK: dnf.yield %[[V]] if %[[Q]] : f32
moa.kernel @k attributes {symbols = ["P", "M"], requires = [], arg_names = ["p", "x", "y"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%p: !moa.array<[P], i1>, %x: !moa.array<[P], f32>, %y: !moa.array<[M], f32>):
  %a = moa.mask %p, %x axes [0] : (!moa.array<[P], i1>, !moa.array<[P], f32>) -> !moa.array<[P], f32>
  %z = moa.cat %a, %y axis 0 : (!moa.array<[P], f32>, !moa.array<[M], f32>) -> !moa.array<["M + P"], f32>
  %s = moa.reduce add %z axis 0 : !moa.array<["M + P"], f32> -> !moa.array<[], f32>
  moa.return %s : !moa.array<[], f32>
}
