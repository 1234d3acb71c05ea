// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -verify-diagnostics \
// RUN:   | FileCheck %s

// Σ|x − mean| has no repair; the remark names the subterm that blocks it.

// CHECK-COUNT-2: onf.fold "m" in "M"
// CHECK-NOT: onf.fold

moa.kernel @mean_deviation attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  %v1 = moa.extent "M" -> !moa.array<[], index>
  %v2 = moa.cast %v1 {implicit} : !moa.array<[], index> -> !moa.array<[], f32>
  %sum3 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("sum")
  %v4 = moa.map div(%sum3, %v2) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32>
  %v5 = moa.map sub(%x, %v4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v6 = moa.map abs(%v5) axes [array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  // expected-remark @below {{'r' takes another pass over 'M': it does not separate the index from earlier results, blocked by abs(x[n, m] − (Σ{k1<M} x[n, k1])/M)}}
  %v7 = moa.reduce add %v6 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %v7 : !moa.array<[N], f32>
}
