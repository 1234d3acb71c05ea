// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-let" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A5: let f(i) = a where p becomes let f(i) = a with f.present(i) = p, and every
// f(i) becomes f(i) where f.present(i). A presence without reductions is inlined;
// one with a reduction stays a function.

// OFF: no law moves an absent element out of 'dnf.let'; is 'absent-let' disabled?

// CHECK: dnf.let @S over ["n", "m"] in ["N", "M"] -> f32 {
// CHECK-NOT: dnf.yield {{.*}} if
// CHECK: dnf.reduce max
// CHECK-NEXT: ^bb0(%[[M:.*]]: index):
// CHECK-NEXT: %[[V:.*]] = dnf.apply @S(%[[N:.*]], %[[M]]) : f32
// CHECK-NEXT: %[[P:.*]] = arith.cmpi sle, %[[M]], %[[N]] : index
// CHECK-NEXT: dnf.yield %[[V]] if %[[P]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %p = moa.map le(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %e = moa.map exp(%x) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %s = moa.mask %p, %e axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32> loc("S")
  %m = moa.reduce max %s axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %z = moa.map sub(%s, %m) axes [array<i64: 0, 1>, array<i64: 0>] : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  moa.return %z : !moa.array<[N, M], f32>
}

// CHECK-LABEL: dnf.kernel @top
// CHECK: dnf.let @mask.present over ["n", "m"] in ["N", "M"] -> i1 {
// CHECK: dnf.reduce or
// CHECK: dnf.output 0
// CHECK: %[[A:.*]] = dnf.apply @mask.present(%{{.*}}, %{{.*}}) : i1
// CHECK-NEXT: dnf.yield %{{.*}} if %[[A]] : f32
moa.kernel @top attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "p"],
    result_names = ["r0", "r1"], result_types = [!moa.array<[N, M], f32>, !moa.array<[M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %p: !moa.array<[N, M, 8], i1>):
  %p1 = moa.reduce or %p axis 2 : !moa.array<[N, M, 8], i1> -> !moa.array<[N, M], i1>
  %z = moa.mask %p1, %x axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %y = moa.reduce max %z axis 0 : !moa.array<[N, M], f32> -> !moa.array<[M], f32>
  moa.return %z, %y : !moa.array<[N, M], f32>, !moa.array<[M], f32>
}
