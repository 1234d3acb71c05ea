// RUN: moa-opt %s -moa-verify -verify-diagnostics -split-input-file

// The contract of the moa level, one violation per clause.

// expected-error @below {{expects distinct names (K1), but 'N' is declared twice}}
moa.kernel @k1 attributes {symbols = ["N"], requires = [], arg_names = ["N"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  moa.return %x : !moa.array<[N], f32>
}

// -----

// expected-error @below {{expects declared symbols (K2), but got 'M' in 'M + N'}}
moa.kernel @k2_parameter attributes {symbols = ["N"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %z: !moa.array<["N + M"], f32>):
  moa.return %x : !moa.array<[N], f32>
}

// -----

// expected-error @below {{expects declared symbols (K2), but got 'M' in 'M'}}
moa.kernel @k2_result attributes {symbols = [], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[M], index>]} {
  %i = moa.iota "M" -> !moa.array<[M], index>
  moa.return %i : !moa.array<[M], index>
}

// -----

// expected-error @below {{expects comparisons as constraints (K3), but got 'N'}}
moa.kernel @k3_form attributes {symbols = ["N"], requires = ["N"], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  moa.return %x : !moa.array<[N], f32>
}

// -----

// expected-error @below {{expects declared symbols (K3), but got 'M' in 'M'}}
moa.kernel @k3_symbols attributes {symbols = ["N"], requires = ["N <= M"], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  moa.return %x : !moa.array<[N], f32>
}

// -----

// expected-error @below {{expects an integer expression (K3), but got 'N +'}}
moa.kernel @k3_text attributes {symbols = ["N"], requires = ["N + == 2"], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  moa.return %x : !moa.array<[N], f32>
}

// -----

moa.kernel @m1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects operators of the algebra only (M1)}}
  %c = arith.constant 1.0 : f32
  moa.return %x : !moa.array<[N], f32>
}

// -----

moa.kernel @m2_value attributes {symbols = ["N"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[], index>):
  // expected-error @below {{expects declared symbols (M2), but got 'K' in 'K'}}
  %z = moa.psi %x[%t] dims [0] axes [array<i64>] frame 1 : (!moa.array<[N], f32>, !moa.array<[], index>) -> !moa.array<[K], f32>
  moa.return %x : !moa.array<[N], f32>
}

// -----

moa.kernel @m2_extent attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects declared symbols (M2), but got 'K' in 'K - 1'}}
  %z = moa.rotate %x by "K - 1" axis 0 : !moa.array<[N], f32> -> !moa.array<[N], f32>
  moa.return %z : !moa.array<[N], f32>
}
