// RUN: moa-opt %s -convert-moa-to-dnf -dnf-verify | FileCheck %s
// RUN: not moa-opt %s -convert-moa-to-dnf="disable=absent-output" -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OFF

// A4: an output element `a where p` is a if p, else 0.

// OFF: no law moves an absent element out of 'dnf.output'; is 'absent-output' disabled?

// CHECK: dnf.output 0
// CHECK: %[[X:.*]] = dnf.psi %x
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : f32
// CHECK-NEXT: %[[P:.*]] = arith.cmpi sle
// CHECK-NEXT: dnf.yield %[[E]] if %[[P]] : f32
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %p = moa.map le(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %a = moa.mask %p, %x axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %z = moa.map exp(%a) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  moa.return %z : !moa.array<[N, M], f32>
}
