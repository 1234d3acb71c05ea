// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-reduce" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A3: ⊕ over j of (a where p) = ⊕ over {j : p} of a. The range is restricted, no
// number stands in for what is absent.

// OFF: no law moves an absent element out of 'dnf.reduce'; is 'absent-reduce' disabled?

// CHECK: dnf.output 0 over ["n"] in ["N"] -> f32 {
// CHECK-NEXT: ^bb0(%[[N:.*]]: index):
// CHECK-NEXT: %[[R:.*]] = dnf.reduce max over "m" in "M" : f32 {
// CHECK-NEXT: ^bb0(%[[M:.*]]: index):
// CHECK-NEXT: %[[X:.*]] = dnf.psi %x[%[[N]], %[[M]]]
// CHECK-NEXT: %[[P:.*]] = arith.cmpi sle, %[[M]], %[[N]] : index
// CHECK-NEXT: dnf.yield %[[X]] if %[[P]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: dnf.yield %[[R]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %p = moa.map le(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %a = moa.mask %p, %x axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %z = moa.reduce max %a axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %z : !moa.array<[N], f32>
}
