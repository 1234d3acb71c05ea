// RUN: moa-opt %s -verify-roundtrip -moa-verify | FileCheck %s

// Tolerances of results, in each measure and mode, printed and parsed back.

// CHECK: moa.kernel @tolerances
// CHECK-SAME: within = [#moa.within<3.000000e-02, relative, sampled>, #moa.within<1.000000e-03>,
// CHECK-SAME: unit, #moa.within<5.000000e-01, relative>, #moa.within<1.000000e-300, relative, sampled>]
moa.kernel @tolerances attributes {symbols = ["N"], requires = [], arg_names = ["x", "t"],
    result_names = ["a", "b", "c", "d", "e"],
    result_types = [!moa.array<[N], bf16>, !moa.array<[N], f32>, !moa.array<[N], i32>,
                    !moa.array<[N], f16>, !moa.array<[], f64>],
    within = [#moa.within<0.03, relative, sampled>, #moa.within<1.0e-3>, unit,
              #moa.within<0.5, relative>, #moa.within<1.0e-300, relative, sampled>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[N], i32>):
  %s = moa.reduce add %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %x, %x, %t, %x, %s : !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], i32>,
    !moa.array<[N], f32>, !moa.array<[], f32>
}
