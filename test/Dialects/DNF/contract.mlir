// RUN: moa-opt %s -dnf-verify -verify-diagnostics -split-input-file

// The contract of the denotational normal form, one violation per clause.

// expected-error @below {{expects distinct names (K1), but 'N' is declared twice}}
dnf.kernel @k1 attributes {symbols = ["N"], requires = [], arg_names = ["N"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{expects declared symbols (K2), but got 'N' in 'N'}}
dnf.kernel @k2 attributes {symbols = ["M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d1_array attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{'moa.iota' op expects scalar operations and ψ only (D1)}}
    %i = moa.iota "N" -> !moa.array<[N], index>
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %p = arith.constant true
    %u = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    // expected-error @below {{expects absence to be resolved (D2)}}
    %v = dnf.where %p, %u : f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    %p = arith.constant true
    // expected-error @below {{expects a let that is present everywhere (D3)}}
    dnf.yield %v if %p : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d4_domain attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects declared symbols (D4), but got 'M' in 'M'}}
  dnf.let @f over ["n"] in ["M"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d4_range attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{'dnf.reduce' op expects declared symbols (D4), but got 'K' in 'K'}}
    %v = dnf.reduce add over "j" in "K" : f32 {
    ^bb0(%j: index):
      %w = dnf.psi %x[%j] : !moa.array<[N], f32> -> f32
      dnf.yield %w : f32
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d4_extent attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{'dnf.extent' op expects declared symbols (D4), but got 'K' in 'K - 1'}}
    %e = dnf.extent "K - 1"
    %v = dnf.psi %x[%e] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d5_domain attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects the extents of the result (D5), '!moa.array<[N], f32>', but got [N - 1]}}
  dnf.output 0 over ["n"] in ["N - 1"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{expects every result to be defined (D5), but "y" is not}}
dnf.kernel @d5_missing attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @d1_state attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %p = arith.constant true
    // expected-error @below {{expects no array but the inputs (D1)}}
    %w = dnf.where %p, %x : !moa.array<[N], f32>
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}
