// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-constant" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <> ψ c = c

// OFF: no law reduces ψ of 'moa.constant'; is 'psi-constant' disabled?

// CHECK: dnf.output 0 over [] in [] -> f32 {
// CHECK-NEXT: %[[C:.*]] = arith.constant 2.500000e+00 : f32
// CHECK-NEXT: dnf.yield %[[C]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = [],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
  %c = moa.constant 2.5 : f32 -> !moa.array<[], f32>
  moa.return %c : !moa.array<[], f32>
}
