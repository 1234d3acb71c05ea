// RUN: not moa-opt %s -convert-dnf-to-onf="disable=R9" 2>&1 | FileCheck %s

// CHECK: error: unknown rule 'R9'; there are R0 to R7
module {
}
