// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Every constraint of the verifiers of dnf, named as the message names it.

// expected-error @below {{expects one name per parameter (C1), but got 2 for 1}}
dnf.kernel @kernel_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{expects one name per result (C2), but got 2 for 1}}
dnf.kernel @kernel_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @kernel_c3_twice attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  // expected-error @below {{expects each result to be defined once (C3)}}
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @kernel_c3_range attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects each result to be defined once (C3)}}
  dnf.output 1 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @kernel_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'arith.constant' op expects only dnf.let and dnf.output in a kernel (C4)}}
  %c = arith.constant 1.0 : f32
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{expects parameters and results of array type (C5)}}
dnf.kernel @kernel_c5_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [f32]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{'dnf.kernel' op expects one tolerance or unit per result (C6), but got 0 for 1}}
dnf.kernel @kernel_c6_count attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], within = []} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

// expected-error @below {{'dnf.kernel' op expects tolerances of floats only (C6), but got one of '!moa.array<[N], i32>'}}
dnf.kernel @kernel_c6_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], i32>], within = [#moa.within<0.5>]} {
^bb0(%x: !moa.array<[N], i32>):
  dnf.output 0 over ["n"] in ["N"] -> i32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], i32> -> i32
    dnf.yield %v : i32
  }
}

// -----

// expected-error @below {{expects parameters and results of array type (C5)}}
dnf.kernel @kernel_c5_parameter attributes {symbols = ["N"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %z: f32):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @let_c1_indices attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects one index and one name per extent (C1), but got 1 indices and 2 names for 2}}
  dnf.let @f over ["n", "m"] in ["N", "N"] -> f32 {
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

dnf.kernel @let_c1_names attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects one index and one name per extent (C1), but got 1 indices and 0 names for 1}}
  dnf.let @f over [] in ["N"] -> f32 {
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

dnf.kernel @let_c1_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects arguments of type index (C1), but got 'i32'}}
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: i32):
    %v = arith.constant 1.0 : f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @let_c2_end attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects dnf.yield at its end (C2)}}
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = arith.constant 1.0 : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @let_c2_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.let' op expects a yield of type 'f64' (C2), but got 'f32'}}
  dnf.let @f over ["n"] in ["N"] -> f64 {
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

dnf.kernel @output_c1_indices attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.output' op expects one index and one name per extent (C1), but got 1 indices and 2 names for 2}}
  dnf.output 0 over ["n", "m"] in ["N", "N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @output_c1_names attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.output' op expects one index and one name per extent (C1), but got 1 indices and 0 names for 1}}
  dnf.output 0 over [] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @output_c1_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.output' op expects arguments of type index (C1), but got 'i32'}}
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: i32):
    %v = arith.constant 1.0 : f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @output_c2_end attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.output' op expects dnf.yield at its end (C2)}}
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = arith.constant 1.0 : f32
  }
}

// -----

dnf.kernel @output_c2_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'dnf.output' op expects a yield of type 'f64' (C2), but got 'f32'}}
  dnf.output 0 over ["n"] in ["N"] -> f64 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @psi_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects a full index (C1), but got 0 indices for rank 1}}
    %v = dnf.psi %x[] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @psi_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects the element type (C2), but got 'f64'}}
    %w = dnf.psi %x[%n] : !moa.array<[N], f32> -> f64
    %v = arith.truncf %w : f64 to f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @psi_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %y = moa.reverse %x axis 0 : !moa.array<[N], f32> -> !moa.array<[N], f32>
    // expected-error @below {{expects an input array (C3)}}
    %v = dnf.psi %y[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @apply_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects a let (C1), but got @g}}
    %v = dnf.apply @g(%n) : f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @apply_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects one index per axis of the let (C2), but got 2 for 1}}
    %v = dnf.apply @f(%n, %n) : f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @apply_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects the type of the let (C3), but got 'f64'}}
    %w = dnf.apply @f(%n) : f64
    %v = arith.truncf %w : f64 to f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @apply_c4_order attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects a let defined above (C4), but got @f}}
    %v = dnf.apply @f(%n) : f32
    dnf.yield %v : f32
  }
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @apply_c4_itself attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.let @f over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects a let defined above (C4), but got @f}}
    %v = dnf.apply @f(%n) : f32
    dnf.yield %v : f32
  }
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects one index argument (C1)}}
    %v = dnf.reduce add over "j" in "N" : f32 {
      %w = arith.constant 1.0 : f32
      dnf.yield %w : f32
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c1_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects one index argument (C1)}}
    %v = dnf.reduce add over "j" in "N" : f32 {
    ^bb0(%j: i32):
      %w = arith.constant 1.0 : f32
      dnf.yield %w : f32
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c2_end attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects dnf.yield at its end (C2)}}
    %v = dnf.reduce add over "j" in "N" : f32 {
    ^bb0(%j: index):
      %w = arith.constant 1.0 : f32
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c2_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects a yield of the result's type (C2), but got 'f64'}}
    %v = dnf.reduce add over "j" in "N" : f32 {
    ^bb0(%j: index):
      %w = arith.constant 1.0 : f64
      dnf.yield %w : f64
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects an integer expression, but got 'N *': }}
    %v = dnf.reduce add over "j" in "N *" : f32 {
    ^bb0(%j: index):
      %w = dnf.psi %x[%j] : !moa.array<[N], f32> -> f32
      dnf.yield %w : f32
    }
    dnf.yield %v : f32
  }
}

// -----

dnf.kernel @reduce_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    // expected-error @below {{expects booleans for 'or' (C3), but got 'f32'}}
    %v = dnf.reduce or over "j" in "N" : f32 {
    ^bb0(%j: index):
      %w = dnf.psi %x[%j] : !moa.array<[N], f32> -> f32
      dnf.yield %w : f32
    }
    dnf.yield %v : f32
  }
}
