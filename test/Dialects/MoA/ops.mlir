// RUN: moa-opt %s -verify-roundtrip -moa-verify | FileCheck %s

// Every operator of the algebra, printed and parsed back.

// CHECK-LABEL: moa.kernel @views
// CHECK-SAME: symbols = ["B", "N", "K"]
// CHECK-NEXT: ^bb0(%x: !moa.array<[B, N, 4], f32>, %t: !moa.array<[K], index>):
moa.kernel @views attributes {symbols = ["B", "N", "K"], requires = ["N%2 == 0", "K <= N"],
    arg_names = ["x", "t"], result_names = ["a", "b", "c", "d", "e", "f"],
    result_types = [!moa.array<[K, B, 4], bf16>, !moa.array<[4, N, B], f32>,
                    !moa.array<["4*B*N"], f32>, !moa.array<[B, "N - 1", 4], f32>,
                    !moa.array<[B, N, 4], f32>, !moa.array<[B, N, 4], f32>]} {
^bb0(%x: !moa.array<[B, N, 4], f32>, %t: !moa.array<[K], index>):
  // CHECK: moa.psi %x[%t] dims [1] axes [array<i64: 0>] frame 1 : (!moa.array<[B, N, 4], f32>, !moa.array<[K], index>) -> !moa.array<[K, B, 4], f32>
  %a = moa.psi %x[%t] dims [1] axes [array<i64: 0>] frame 1
     : (!moa.array<[B, N, 4], f32>, !moa.array<[K], index>) -> !moa.array<[K, B, 4], f32>
  // CHECK: moa.transpose %x perm [2, 1, 0] : <[B, N, 4], f32> -> <[4, N, B], f32>
  %b = moa.transpose %x perm [2, 1, 0] : !moa.array<[B, N, 4], f32> -> !moa.array<[4, N, B], f32>
  // CHECK: moa.reshape %x : <[B, N, 4], f32> -> <["4*B*N"], f32>
  %c = moa.reshape %x : !moa.array<[B, N, 4], f32> -> !moa.array<["N*4*B"], f32>
  // CHECK: moa.slice %x axis 1 start "1" count "N - 1" : <[B, N, 4], f32> -> <[B, "N - 1", 4], f32>
  %d = moa.slice %x axis 1 start "1" count "N - 1" : !moa.array<[B, N, 4], f32> -> !moa.array<[B, "N - 1", 4], f32>
  // CHECK: moa.reverse %x axis 1 : <[B, N, 4], f32> -> <[B, N, 4], f32>
  %e = moa.reverse %x axis 1 : !moa.array<[B, N, 4], f32> -> !moa.array<[B, N, 4], f32>
  // CHECK: moa.rotate %x by "N/2" axis 1 : <[B, N, 4], f32> -> <[B, N, 4], f32>
  %f = moa.rotate %x by "N/2" axis 1 : !moa.array<[B, N, 4], f32> -> !moa.array<[B, N, 4], f32>
  // CHECK: moa.return
  moa.return %a, %b, %c, %d, %e, %f : !moa.array<[K, B, 4], f32>, !moa.array<[4, N, B], f32>,
    !moa.array<["4*B*N"], f32>, !moa.array<[B, "N - 1", 4], f32>, !moa.array<[B, N, 4], f32>, !moa.array<[B, N, 4], f32>
}

// CHECK-LABEL: moa.kernel @contractions
moa.kernel @contractions attributes {symbols = ["B", "N", "M"], requires = [],
    arg_names = ["a", "b", "w"], result_names = ["y", "z", "s"],
    result_types = [!moa.array<[B, N, M], f32>, !moa.array<[B, N, 3], f32>, !moa.array<[], f32>]} {
^bb0(%a: !moa.array<[B, N, 8], f32>, %b: !moa.array<[B, 8, M], f32>, %w: !moa.array<[8, 3], f32>):
  // CHECK: moa.inner add of mul %a, %b {frame = 1 : i64, lhs_framed = true, operand_type = bf16, rhs_framed = true}
  %y = moa.inner add of mul %a, %b {frame = 1, lhs_framed = true, rhs_framed = true, operand_type = bf16}
     : (!moa.array<[B, N, 8], f32>, !moa.array<[B, 8, M], f32>) -> !moa.array<[B, N, M], f32>
  // CHECK: moa.inner max of add %a, %w {frame = 1 : i64, lhs_framed = true, rhs_framed = false}
  %z = moa.inner max of add %a, %w {frame = 1, lhs_framed = true, rhs_framed = false}
     : (!moa.array<[B, N, 8], f32>, !moa.array<[8, 3], f32>) -> !moa.array<[B, N, 3], f32>
  // CHECK: moa.reduce add %w axis 0 : <[8, 3], f32> -> <[3], f32>
  %r = moa.reduce add %w axis 0 : !moa.array<[8, 3], f32> -> !moa.array<[3], f32>
  // CHECK: moa.reduce mul
  %s = moa.reduce mul %r axis 0 : !moa.array<[3], f32> -> !moa.array<[], f32>
  moa.return %y, %z, %s : !moa.array<[B, N, M], f32>, !moa.array<[B, N, 3], f32>, !moa.array<[], f32>
}

// CHECK-LABEL: moa.kernel @pointwise
moa.kernel @pointwise attributes {symbols = ["N"], requires = [], arg_names = ["x", "n"], result_names = ["y", "any"],
    result_types = [!moa.array<[N, N], f32>, !moa.array<[], i1>]} {
^bb0(%x: !moa.array<[N], bf16>, %n: !moa.array<[], i32>):
  // CHECK: moa.constant 2.500000e+00 : f32 -> <[], f32>
  %c = moa.constant 2.5 : f32 -> !moa.array<[], f32>
  // CHECK: moa.extent "N - 1" -> <[], index>
  %l = moa.extent "N - 1" -> !moa.array<[], index>
  // CHECK: moa.iota "N" -> <[N], index>
  %i = moa.iota "N" -> !moa.array<[N], index>
  // CHECK: moa.cast %x {implicit} : <[N], bf16> -> <[N], f32>
  %xf = moa.cast %x {implicit} : !moa.array<[N], bf16> -> !moa.array<[N], f32>
  // CHECK: moa.cast %{{.*}} : <[N], f32> -> <[N], f16>
  %xh = moa.cast %xf : !moa.array<[N], f32> -> !moa.array<[N], f16>
  %xg = moa.cast %xh {implicit} : !moa.array<[N], f16> -> !moa.array<[N], f32>
  %k = moa.cast %n {implicit} : !moa.array<[], i32> -> !moa.array<[], index>
  // CHECK: moa.map mul(%{{.*}}, %{{.*}}) axes [array<i64: 0>, array<i64: 1>]
  %o = moa.map mul(%xf, %xg) axes [array<i64: 0>, array<i64: 1>]
     : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N, N], f32>
  // CHECK: moa.map lt(%{{.*}}, %{{.*}}) axes [array<i64: 0>, array<i64>]
  %p = moa.map lt(%i, %k) axes [array<i64: 0>, array<i64>]
     : (!moa.array<[N], index>, !moa.array<[], index>) -> !moa.array<[N], i1>
  %q = moa.map not(%p) axes [array<i64: 0>] : (!moa.array<[N], i1>) -> !moa.array<[N], i1>
  // CHECK: moa.map select(%{{.*}}, %{{.*}}, %{{.*}}) axes [array<i64: 1>, array<i64: 0, 1>, array<i64>]
  %s = moa.map select(%q, %o, %c) axes [array<i64: 1>, array<i64: 0, 1>, array<i64>]
     : (!moa.array<[N], i1>, !moa.array<[N, N], f32>, !moa.array<[], f32>) -> !moa.array<[N, N], f32>
  // CHECK: moa.mask %{{.*}}, %{{.*}} axes [0] :
  %m = moa.mask %p, %s axes [0] : (!moa.array<[N], i1>, !moa.array<[N, N], f32>) -> !moa.array<[N, N], f32>
  // CHECK: moa.reduce or
  %any = moa.reduce or %p axis 0 : !moa.array<[N], i1> -> !moa.array<[], i1>
  moa.return %m, %any : !moa.array<[N, N], f32>, !moa.array<[], i1>
}

// Extents are brought to canonical form where they are read.
// CHECK-LABEL: moa.kernel @extents
// CHECK: ^bb0(%x: !moa.array<["M + N", "H/G", 3, "N%4"], f64>):
moa.kernel @extents attributes {symbols = ["N", "M", "H", "G"], requires = [], arg_names = ["x"], result_names = ["y"],
    result_types = [!moa.array<["M + N", "H/G", 3, "N%4"], f64>]} {
^bb0(%x: !moa.array<["N + M", "H / G", "1 + 2", "N % 4"], f64>):
  moa.return %x : !moa.array<["M + N", "H/G", 3, "N%4"], f64>
}
