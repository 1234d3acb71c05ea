// RUN: moa-opt %s -verify-diagnostics -split-input-file

// What a tolerance may not be, and results that can have none.

// expected-error @below {{'moa.kernel' op expects one tolerance or unit per result (C5), but got 2 for 1}}
moa.kernel @kernel_c5_count attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.5>, unit]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects #moa.within or unit as a tolerance (C5), but got 5.000000e-01}}
moa.kernel @kernel_c5_kind attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [0.5]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects tolerances of floats only (C5), but got one of '!moa.array<[], i32>'}}
moa.kernel @kernel_c5_type attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], i32>], within = [#moa.within<0.5>]} {
^bb0(%x: !moa.array<[], i32>):
  moa.return %x : !moa.array<[], i32>
}

// -----

// expected-error @below {{expects a tolerance that is positive and finite (C1), but got 0.000000e+00}}
moa.kernel @within_c1_zero attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.0>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects a tolerance that is positive and finite (C1), but got -5.000000e-01}}
moa.kernel @within_c1_sign attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<-0.5>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects a tolerance that is positive and finite (C1), but got INF}}
moa.kernel @within_c1_infinite attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0x7FF0000000000000>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects 'relative', 'sampled' or both in this order, but got 'exact'}}
moa.kernel @within_word attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.5, exact>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects 'relative', 'sampled' or both in this order, but got 'relative'}}
moa.kernel @within_order attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.5, sampled, relative>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects 'relative', 'sampled' or both in this order, but got 'sampled'}}
moa.kernel @within_twice attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.5, sampled, sampled>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects 'relative' before 'sampled' (C2), but got 'sampled' alone}}
moa.kernel @within_c2 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>], within = [#moa.within<0.5, sampled>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}
