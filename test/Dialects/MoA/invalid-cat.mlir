// RUN: moa-opt %s -split-input-file -verify-diagnostics

moa.kernel @axis attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<["2*N"], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an axis below the rank (C1), but got 1}}
  %z = moa.cat %x, %x axis 1 : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<["2*N"], f32>
  moa.return %z : !moa.array<["2*N"], f32>
}

// -----

moa.kernel @extents attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<["2*N", 3], f32>]} {
^bb0(%x: !moa.array<[N, 3], f32>, %y: !moa.array<[N, 4], f32>):
  // expected-error @below {{expects equal extents on all axes but axis 0 (C2), but got}}
  %z = moa.cat %x, %y axis 0 : (!moa.array<[N, 3], f32>, !moa.array<[N, 4], f32>) -> !moa.array<["2*N", 3], f32>
  moa.return %z : !moa.array<["2*N", 3], f32>
}

// -----

moa.kernel @ranks attributes {symbols = ["N"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<["2*N", 3], f32>]} {
^bb0(%x: !moa.array<[N, 3], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects equal extents on all axes but axis 0 (C2), but got}}
  %z = moa.cat %x, %y axis 0 : (!moa.array<[N, 3], f32>, !moa.array<[N], f32>) -> !moa.array<["2*N", 3], f32>
  moa.return %z : !moa.array<["2*N", 3], f32>
}

// -----

moa.kernel @sum attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[M], f32>):
  // expected-error @below {{expects a result of shape <M + N> (C2), but got}}
  %z = moa.cat %x, %y axis 0 : (!moa.array<[N], f32>, !moa.array<[M], f32>) -> !moa.array<[N], f32>
  moa.return %z : !moa.array<[N], f32>
}

// -----

moa.kernel @elements attributes {symbols = ["N"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<["2*N"], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], bf16>):
  // expected-error @below {{(C3)}}
  %z = moa.cat %x, %y axis 0 : (!moa.array<[N], f32>, !moa.array<[N], bf16>) -> !moa.array<["2*N"], f32>
  moa.return %z : !moa.array<["2*N"], f32>
}
