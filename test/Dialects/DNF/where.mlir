// RUN: moa-opt %s -verify-roundtrip | FileCheck %s

// dnf.where is transient, but it prints and parses.
dnf.kernel @absent attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    %p = arith.cmpi eq, %n, %n : index
    // CHECK: dnf.where %{{.*}}, %{{.*}} : f32
    %w = dnf.where %p, %v : f32
    dnf.yield %w : f32
  }
}
