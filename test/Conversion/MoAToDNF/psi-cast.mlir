// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-cast" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// i ψ cast(A) = cast(i ψ A). A cast the user wrote rounds, at every level; a
// widening does not.

// OFF: no law reduces ψ of 'moa.cast'; is 'psi-cast' disabled?

// CHECK: dnf.output 0
// CHECK: %[[X:.*]] = dnf.psi %x
// CHECK-NEXT: %[[F:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-NEXT: dnf.yield %[[F]] : f32
// CHECK: dnf.output 1
// CHECK: %[[Y:.*]] = dnf.psi %x
// CHECK: %[[H:.*]] = arith.truncf %{{.*}} {moa.round} : f32 to f16
// CHECK-NEXT: dnf.yield %[[H]] : f16
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r0", "r1"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f16>]} {
^bb0(%x: !moa.array<[N], bf16>):
  %f = moa.cast %x {implicit} : !moa.array<[N], bf16> -> !moa.array<[N], f32>
  %h = moa.cast %x : !moa.array<[N], bf16> -> !moa.array<[N], f16>
  moa.return %f, %h : !moa.array<[N], f32>, !moa.array<[N], f16>
}
