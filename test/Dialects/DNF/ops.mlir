// RUN: moa-opt %s -verify-roundtrip -dnf-verify | FileCheck %s

// CHECK-LABEL: dnf.kernel @row_norm
// CHECK-NEXT: ^bb0(%x: !moa.array<[N, M], bf16>, %eps: !moa.array<[], f32>):
dnf.kernel @row_norm attributes {symbols = ["N", "M"], requires = ["M%2 == 0"], arg_names = ["x", "eps"],
    result_names = ["y", "s"], result_types = [!moa.array<[N, M], bf16>, !moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N, M], bf16>, %eps: !moa.array<[], f32>):
  // CHECK: dnf.let @sum over ["n"] in ["N"] -> f32 {
  // CHECK-NEXT: ^bb0(%n: index):
  dnf.let @sum over ["n"] in ["N"] -> f32 {
  ^bb0(%i: index):
    // CHECK: dnf.reduce add over "m" in "M" : f32 {
    // CHECK-NEXT: ^bb0(%m: index):
    %s = dnf.reduce add over "m" in "M" : f32 {
    ^bb0(%j: index):
      // CHECK: dnf.psi %x[%n, %m] : <[N, M], bf16> -> bf16
      %v = dnf.psi %x[%i, %j] : !moa.array<[N, M], bf16> -> bf16
      %w = arith.extf %v : bf16 to f32
      // CHECK: arith.cmpi sle, %m, %n : index
      %p = arith.cmpi sle, %j, %i : index
      // CHECK: dnf.yield %{{.*}} if %{{.*}} : f32
      dnf.yield %w if %p : f32
    }
    dnf.yield %s : f32
  }
  // CHECK: dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
  dnf.output 0 over ["n", "m"] in ["N", "M"] -> f32 {
  ^bb0(%i: index, %j: index):
    %v = dnf.psi %x[%i, %j] : !moa.array<[N, M], bf16> -> bf16
    %w = arith.extf %v : bf16 to f32
    // CHECK: dnf.apply @sum(%n) : f32
    %s = dnf.apply @sum(%i) : f32
    // CHECK: dnf.psi %eps[] : <[], f32> -> f32
    %e = dnf.psi %eps[] : !moa.array<[], f32> -> f32
    %t = arith.addf %s, %e : f32
    %y = arith.divf %w, %t : f32
    // CHECK: dnf.extent "M - 1"
    %l = dnf.extent "M - 1"
    %q = arith.cmpi slt, %j, %l : index
    dnf.yield %y if %q : f32
  }
  // CHECK: dnf.output 1 over [] in [] -> f32 {
  dnf.output 1 over [] in [] -> f32 {
    // CHECK: dnf.reduce add over "k" in "4" rounds bf16 : f32 {
    %s = dnf.reduce add over "k" in "4" rounds bf16 : f32 {
    ^bb0(%k: index):
      %c = arith.constant 1.0 : f32
      dnf.yield %c : f32
    }
    dnf.yield %s : f32
  }
}

// Booleans and integers reduce too.
// CHECK-LABEL: dnf.kernel @counts
dnf.kernel @counts attributes {symbols = ["N"], requires = [], arg_names = ["p", "t"],
    result_names = ["any", "most"], result_types = [!moa.array<[], i1>, !moa.array<[], i32>]} {
^bb0(%p: !moa.array<[N], i1>, %t: !moa.array<[N], i32>):
  dnf.output 0 over [] in [] -> i1 {
    // CHECK: dnf.reduce or over "n" in "N" : i1
    %s = dnf.reduce or over "n" in "N" : i1 {
    ^bb0(%n: index):
      %v = dnf.psi %p[%n] : !moa.array<[N], i1> -> i1
      dnf.yield %v : i1
    }
    dnf.yield %s : i1
  }
  dnf.output 1 over [] in [] -> index {
    // CHECK: dnf.reduce max over "n" in "N" : index
    %s = dnf.reduce max over "n" in "N" : index {
    ^bb0(%n: index):
      %v = dnf.psi %t[%n] : !moa.array<[N], i32> -> i32
      %w = arith.index_cast %v : i32 to index
      dnf.yield %w : index
    }
    dnf.yield %s : index
  }
}

// CHECK-LABEL: dnf.kernel @tolerance
// CHECK-SAME: within = [#moa.within<1.000000e-02, relative>]
dnf.kernel @tolerance attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"],
    result_types = [!moa.array<[N], f32>], within = [#moa.within<0.01, relative>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}
