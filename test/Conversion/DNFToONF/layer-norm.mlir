// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf -onf-verify 2>&1 \
// RUN:   | FileCheck %s
// RUN: moa-opt %s -convert-moa-to-dnf -convert-dnf-to-onf="disable=R1,R6" -onf-verify 2>&1 \
// RUN:   | FileCheck %s --check-prefix=R1

// Layer normalisation and a product: the variance shares the pass of the mean by R6.
// The product does not: expanding it would take another product for each element. 1/σ
// leaves it by R1. Without both the mean, the variance and the product are three passes.

// CHECK: remark: 'o' takes another pass over 'M': it does not separate the index from earlier results, blocked by x[n, m] − c.add/M{{$}}
// CHECK-COUNT-2: onf.fold "m" in "M"
// CHECK-NOT: onf.fold

// R1: remark: {{.*}} it does not separate the index from earlier results
// R1: remark: 'o' takes another pass over 'M': its ratio is not known to stay within 1, blocked by 1/sqrt(
// R1-COUNT-3: onf.fold "m" in "M"
// R1-NOT: onf.fold
moa.kernel @layer_norm attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "w"],
    result_names = ["o"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %w: !moa.array<[M, 4], f32>):
  %v1 = moa.extent "M" -> !moa.array<[], index>
  %v2 = moa.cast %v1 {implicit} : !moa.array<[], index> -> !moa.array<[], f32>
  %sum3 = moa.reduce add %x axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("sum")
  %mean4 = moa.map div(%sum3, %v2) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32> loc("mean")
  %c5 = moa.map sub(%x, %mean4) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32> loc("c")
  %v6 = moa.map mul(%c5, %c5) axes [array<i64: 0, 1>, array<i64: 0, 1>]
      : (!moa.array<[N, M], f32>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  %squares7 = moa.reduce add %v6 axis 1 : !moa.array<[N, M], f32> -> !moa.array<[N], f32> loc("squares")
  %v8 = moa.map div(%squares7, %v2) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32>
  %v9 = moa.constant 1.0e-5 : f32 -> !moa.array<[], f32>
  %v10 = moa.map add(%v8, %v9) axes [array<i64: 0>, array<i64>]
      : (!moa.array<[N], f32>, !moa.array<[], f32>) -> !moa.array<[N], f32>
  %v11 = moa.map sqrt(%v10) axes [array<i64: 0>]
      : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  %v12 = moa.map div(%c5, %v11) axes [array<i64: 0, 1>, array<i64: 0>]
      : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>
  %v13 = moa.inner add of mul %v12, %w {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N, M], f32>, !moa.array<[M, 4], f32>) -> !moa.array<[N, 4], f32>
  moa.return %v13 : !moa.array<[N, 4], f32>
}
