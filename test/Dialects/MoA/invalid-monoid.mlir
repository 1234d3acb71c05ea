// RUN: moa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// expected-error @below {{expects two arguments and a result that are scalars of type 'f32' (C1)}}
moa.monoid @arguments identity 0.0 : f32 {
^bb0(%x: f32):
  moa.combined %x : f32
}

// -----

// expected-error @below {{expects two arguments and a result that are scalars of type 'f32' (C1)}}
moa.monoid @types identity 0.0 : f32 {
^bb0(%x: f64, %y: f64):
  moa.combined %x : f64
}

// -----

// expected-error @below {{expects two arguments and a result that are scalars of type 'f32' (C1)}}
moa.monoid @rank identity 0.0 : f32 {
^bb0(%x: !moa.array<[4], f32>, %y: !moa.array<[4], f32>):
  moa.combined %x : !moa.array<[4], f32>
}

// -----

moa.monoid @sum identity 0.0 : f32 {
^bb0(%x: f32, %y: f32):
  %z = arith.addf %x, %y : f32
  moa.combined %z : f32
}
moa.kernel @named attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a function exactly for the monoid 'user' (C6), but got 'add' with one}}
  %z = moa.reduce add @sum %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

moa.kernel @nameless attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a function exactly for the monoid 'user' (C6), but got 'user' without one}}
  %z = moa.reduce user %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

moa.kernel @unknown attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a moa.monoid (C6), but got @gone}}
  %z = moa.reduce user @gone %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

// expected-note @below {{the monoid is this one}}
moa.monoid @sum identity 0.0 : f64 {
^bb0(%x: f64, %y: f64):
  %z = arith.addf %x, %y : f64
  moa.combined %z : f64
}
moa.kernel @element attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a monoid on 'f32' (C6), but got @sum on 'f64'}}
  %z = moa.reduce user @sum %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

dnf.kernel @dnf attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over [] in [] -> f32 {
    // expected-error @below {{expects a moa.monoid (C4), but got @gone}}
    %s = dnf.reduce user @gone over "n" in "N" : f32 {
    ^bb0(%n: index):
      %e = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
      dnf.yield %e : f32
    }
    dnf.yield %s : f32
  }
}

// -----

dnf.kernel @otherwise attributes {symbols = ["N"], requires = [], arg_names = ["x", "p"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %p: !moa.array<[N], i1>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %e = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    %c = dnf.psi %p[%n] : !moa.array<[N], i1> -> i1
    // expected-error @below {{'dnf.otherwise' op failed to verify that all of {first, second, result} have same type}}
    %j = "dnf.otherwise"(%e, %c) : (f32, i1) -> f32
    dnf.yield %j : f32
  }
}

// -----

dnf.kernel @join attributes {symbols = ["N"], requires = [], arg_names = ["x", "p"],
    result_names = ["r"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %p: !moa.array<[N], i1>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %e = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    %c = dnf.psi %p[%n] : !moa.array<[N], i1> -> i1
    // expected-error @below {{'dnf.join' op failed to verify that all of {first, second, result} have same type}}
    %j = "dnf.join"(%c, %e, %c) : (i1, f32, i1) -> f32
    dnf.yield %j : f32
  }
}

// -----

module {
  "test.region"() ({
    // expected-error @below {{'moa.monoid' op expects to stand in a module (C2)}}
    moa.monoid @inside identity 0.0 : f32 {
    ^bb0(%x: f32, %y: f32):
      moa.combined %x : f32
    }
  }) : () -> ()
}

// -----

// expected-error @below {{'moa.monoid' op expects moa.combined at its end (C1)}}
moa.monoid @open identity 0.0 : f32 {
^bb0(%x: f32, %y: f32):
  "test.end"(%x) : (f32) -> ()
}

// -----

moa.kernel @inner attributes {symbols = ["N"], requires = [], arg_names = ["x", "y"],
    result_names = ["r"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{'moa.inner' op expects a named monoid (C5)}}
  %z = moa.inner user of mul %x, %y {frame = 0, lhs_framed = true, rhs_framed = true}
      : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}
