// RUN: moa-opt %s -verify-roundtrip -onf-verify | FileCheck %s

// A fold with a maximum, a repaired sum, a repaired state that carries an
// axis and a guard; the final states are read after it.
// CHECK-LABEL: onf.kernel @cascade
// CHECK-NEXT: ^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], bf16>, %y: !moa.array<[N, 4], bf16>, %s: !moa.array<[N], f32>):
onf.kernel @cascade attributes {symbols = ["N", "M"], requires = ["N <= M"], arg_names = ["x", "v"],
    result_names = ["y", "s"], result_types = [!moa.array<[N, 4], bf16>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %v: !moa.array<[M, 4], bf16>, %y: !moa.array<[N, 4], bf16>, %s: !moa.array<[N], f32>):
  // CHECK: onf.for ["i"] in ["N"] {
  // CHECK-NEXT: ^bb0(%i: index):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // CHECK: onf.extent "M - N"
    %c = onf.extent "M - N"
    %lim = arith.addi %i, %c : index
    // CHECK: onf.fold "j" in "M" : f32, f32, !moa.array<[4], f32> {
    // CHECK-NEXT: ^bb0(%j: index):
    %r:3 = onf.fold "j" in "M" : f32, f32, !moa.array<[4], f32> {
    ^bb0(%j: index):
      %p = arith.cmpi sle, %j, %lim : index
      // CHECK: onf.guard %{{.*}}
      onf.guard %p
      // CHECK: onf.load %x[%i, %j] : <[N, M], f32> -> f32
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // CHECK: onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      %d = arith.subf %e, %m : f32
      %w = math.exp %d : f32
      // CHECK: onf.piecewise_exp2 %{{.*}} times 5.000000e-01 plus -3.000000e+00 : f32
      %lines = onf.piecewise_exp2 %d times 0.5 plus -3.0 : f32
      // CHECK: onf.acc add "l" carries [] in [] refs(%{{.*}}) mul [0xFF800000 : f32] : (f32) -> f32 {
      %l = onf.acc add "l" carries [] in [] refs(%m) mul [0xFF800000 : f32] : (f32) -> f32 {
        onf.yield %w : f32
      // CHECK: repair {
      // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32):
      } repair {
      ^bb0(%old: f32, %new: f32):
        %q = arith.subf %old, %new : f32
        %z = math.exp %q : f32
        onf.yield %z : f32
      }
      // CHECK: onf.acc add "o" carries ["d"] in ["4"] rounds bf16 refs(%{{.*}}) mul [0xFF800000 : f32] : (f32) -> !moa.array<[4], f32> {
      // CHECK-NEXT: ^bb0(%d: index):
      %o = onf.acc add "o" carries ["d"] in ["4"] rounds bf16 refs(%m) mul [0xFF800000 : f32] : (f32) -> !moa.array<[4], f32> {
      ^bb0(%k: index):
        %a = onf.load %v[%j, %k] : !moa.array<[M, 4], bf16> -> bf16
        %b = arith.extf %a : bf16 to f32
        %t = arith.mulf %w, %b : f32
        onf.yield %t : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        %q = arith.subf %old, %new : f32
        %z = math.exp %q : f32
        onf.yield %z : f32
      }
      onf.yield %m, %l, %o : f32, f32, !moa.array<[4], f32>
    }
    onf.for ["d"] in ["4"] {
    ^bb0(%k: index):
      // CHECK: onf.at %{{.*}}#2[%d] : <[4], f32> -> f32
      %o = onf.at %r#2[%k] : !moa.array<[4], f32> -> f32
      %q = arith.divf %o, %r#1 : f32
      // CHECK: onf.store %{{.*}}, %y[%i, %d] : f32, <[N, 4], bf16>
      onf.store %q, %y[%i, %k] : f32, !moa.array<[N, 4], bf16>
    }
    onf.store %r#0, %s[%i] : f32, !moa.array<[N], f32>
  }
}

// Lifted: factors of the axes, and the pieces of a guarded range.
// CHECK-LABEL: onf.kernel @lifted
onf.kernel @lifted attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[B, N], f64>]} {
^bb0(%x: !moa.array<[B, N, M], f64>, %y: !moa.array<[B, N], f64>):
  // CHECK: onf.for ["b", "i"] in ["B", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
  onf.for ["b", "i"] in ["B", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
  ^bb0(%b: index, %i: index):
    %c = onf.extent "M - N"
    // CHECK: onf.fold "j" in "M" lift <sequential: 0, cache: 64> pieces [#onf.piece<visit (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (d1 + s0 + 1) full true (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (d0 + s0 + 1)>] of(%{{.*}}) : f64 {
    %r = onf.fold "j" in "M" lift <sequential: 0, cache: 64>
      pieces [#onf.piece<visit (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (d1 + s0 + 1)
                         full true (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (d0 + s0 + 1)>] of (%c) : f64 {
    ^bb0(%j: index):
      %lim = arith.addi %i, %c : index
      %p = arith.cmpi sle, %j, %lim : index
      onf.guard %p
      // A shifted address: the constant counts elements.
      // CHECK: onf.load %x[%b, %i, %j] at ["$0", "$1", "M - $2 - 1"]
      %e = onf.load %x[%b, %i, %j] at ["$0", "$1", "M - $2 - 1"] : !moa.array<[B, N, M], f64> -> f64
      %a = onf.acc min "a" carries [] in [] refs() add [] : () -> f64 {
        onf.yield %e : f64
      } repair {
      }
      onf.yield %a : f64
    }
    onf.store %r, %y[%b, %i] : f64, !moa.array<[B, N], f64>
  }
}

// A nest of rank 0 and a boolean state.
// CHECK-LABEL: onf.kernel @scalar
onf.kernel @scalar attributes {symbols = ["N"], requires = [], arg_names = ["p"], result_names = ["y"], result_types = [!moa.array<[], i1>]} {
^bb0(%p: !moa.array<[N], i1>, %y: !moa.array<[], i1>):
  // CHECK: onf.for [] in [] {
  onf.for [] in [] {
    %r = onf.fold "j" in "N" : i1 {
    ^bb0(%j: index):
      %e = onf.load %p[%j] : !moa.array<[N], i1> -> i1
      %a = onf.acc and "all" carries [] in [] refs() mul [] : () -> i1 {
        onf.yield %e : i1
      } repair {
      }
      onf.yield %a : i1
    }
    // CHECK: onf.store %{{.*}}, %y[] : i1, <[], i1>
    onf.store %r, %y[] : i1, !moa.array<[], i1>
  }
}

// Bound to a GPU: rows of warpgroups and their pipeline; keys in stages.
// CHECK-LABEL: onf.kernel @lifted_gpu
onf.kernel @lifted_gpu attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // CHECK: onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 8> {
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>]
      pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 8> {
  ^bb0(%i: index):
    // CHECK: onf.fold "j" in "N" lift <sequential: 0, stage: 2, shared: 128> : f32 {
    %r = onf.fold "j" in "N" lift <sequential: 0, stage: 2, shared: 128> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// CHECK-LABEL: onf.kernel @tolerance
// CHECK-SAME: within = [#moa.within<1.000000e-02, relative, sampled>]
onf.kernel @tolerance attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"],
    result_types = [!moa.array<[N], f32>], within = [#moa.within<0.01, relative, sampled>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %e = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    onf.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// A nest with its forms.
// CHECK-LABEL: onf.kernel @forms
onf.kernel @forms attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"],
    result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // CHECK: attributes {moa.forms = [#onf.form<tiles, "the nest has 0 folds">, #onf.form<"of two words", {axes = [#onf.axis<block: 0, lane: 32>], folds = []}>, #onf.form<rows, {}>]}
  onf.for ["i"] in ["N"] attributes {moa.forms = [
      #onf.form<tiles, "the nest has 0 folds">,
      #onf.form<"of two words", {axes = [#onf.axis<block: 0, lane: 32>], folds = []}>,
      #onf.form<rows, {}>]} {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}
