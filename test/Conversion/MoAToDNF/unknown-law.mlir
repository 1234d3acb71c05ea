// RUN: not moa-opt %s -convert-moa-to-dnf="disable=psi-moon" 2>&1 | FileCheck %s

// CHECK: error: unknown law 'psi-moon'
module {
}
