// The laws are confluent: whatever the order in which they are tried, the
// normal form is the same text.
// RUN: moa-opt %s -convert-moa-to-dnf > %t.0
// RUN: moa-opt %s -convert-moa-to-dnf="seed=1" > %t.1
// RUN: moa-opt %s -convert-moa-to-dnf="seed=2" > %t.2
// RUN: moa-opt %s -convert-moa-to-dnf="seed=3" > %t.3
// RUN: moa-opt %s -convert-moa-to-dnf="seed=4" > %t.4
// RUN: moa-opt %s -convert-moa-to-dnf="seed=77" > %t.77
// RUN: diff %t.0 %t.1
// RUN: diff %t.0 %t.2
// RUN: diff %t.0 %t.3
// RUN: diff %t.0 %t.4
// RUN: diff %t.0 %t.77
// RUN: FileCheck %s < %t.0

// CHECK: dnf.kernel @k
// CHECK: dnf.yield {{.*}} if
moa.kernel @k attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "q", "v"],
    result_names = ["y", "s", "w"], result_types = [!moa.array<[N, 4], f32>, !moa.array<[N], f32>, !moa.array<[M, N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %q: !moa.array<[M], i1>, %v: !moa.array<[M, 4], f32>):
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %p = moa.map le(%j, %i) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %a = moa.mask %p, %x axes [0, 1] : (!moa.array<[N, M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %b = moa.mask %q, %a axes [1] : (!moa.array<[M], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %m = moa.reduce max %b axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %d = moa.map sub(%b, %m) axes [array<i64: 0, 1>, array<i64: 0>] : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %e = moa.map exp(%d) axes [array<i64: 0, 1>] : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %l = moa.reduce add %e axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  %w = moa.map div(%e, %l) axes [array<i64: 0, 1>, array<i64: 0>] : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %u = moa.map add(%w, %a) axes [array<i64: 0, 1>, array<i64: 0, 1>] : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %y = moa.inner add of mul %w, %v {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  %t = moa.transpose %u perm [1, 0] : !moa.array<[N, M], f32> -> !moa.array<[M, N], f32>
  moa.return %y, %l, %t : !moa.array<[N, 4], f32>, !moa.array<[N], f32>, !moa.array<[M, N], f32>
}
