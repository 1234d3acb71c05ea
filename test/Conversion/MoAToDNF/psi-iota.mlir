// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-iota" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// <i> ψ ι n = i

// OFF: no law reduces ψ of 'moa.iota'; is 'psi-iota' disabled?

// CHECK: dnf.output 0 over ["n"] in ["N"] -> index {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index):
// CHECK-NEXT: dnf.yield %[[N]] : index
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = [],
    result_names = ["r"], result_types = [!moa.array<[N], index>]} {
  %i = moa.iota "N" -> !moa.array<[N], index>
  moa.return %i : !moa.array<[N], index>
}
