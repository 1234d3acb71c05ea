// RUN: moa-opt %s -convert-dnf-to-onf -verify-diagnostics -split-input-file

// The derivation checks the contract that it takes for granted.

dnf.kernel @absence attributes {symbols = ["N"], requires = [], arg_names = ["x", "p"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %p: !moa.array<[N], i1>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %0 = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    %c = dnf.psi %p[%n] : !moa.array<[N], i1> -> i1
    // expected-error @below {{'dnf.where' op expects absence to be resolved (D2)}}
    %1 = dnf.where %c, %0 : f32
    dnf.yield %1 : f32
  }
}

// -----

// expected-error @below {{'dnf.kernel' op expects every result to be defined (D5), but "y" is not}}
dnf.kernel @nothing attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
}
