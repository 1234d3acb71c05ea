// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-extent" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <> ψ e = e, an integer expression over the symbols.

// OFF: no law reduces ψ of 'moa.extent'; is 'psi-extent' disabled?

// CHECK: dnf.output 0 over [] in [] -> index {
// CHECK-NEXT: %[[E:.*]] = dnf.extent "M - N"
// CHECK-NEXT: dnf.yield %[[E]] : index
// A number stays one.
// CHECK: dnf.output 1
// CHECK-NEXT: %[[C:.*]] = arith.constant 12 : index
// CHECK-NEXT: dnf.yield %[[C]] : index
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = [],
    result_names = ["r0", "r1"], result_types = [!moa.array<[], index>, !moa.array<[], index>]} {
  %e = moa.extent "M - N" -> !moa.array<[], index>
  %f = moa.extent "3*4" -> !moa.array<[], index>
  moa.return %e, %f : !moa.array<[], index>, !moa.array<[], index>
}
