// RUN: moa-opt %s -convert-onf-to-vector | FileCheck %s
// RUN: moa-opt %s -convert-onf-to-vector="blocks=false" | FileCheck %s --check-prefix=OFF

// A weighted sum whose weights are an inner product of rows and keys: the inner
// fold and the state that carries an axis are register-tiled products of 8 × 3
// vectors; there is a version of the block for 64 keys and one for the rest.

// CHECK-LABEL: func.func @weights_nest0
// The rows' factor stands rows last, the keys' as they come.
// CHECK-COUNT-64: vector.shuffle
// CHECK: scf.if
// Scores: 8 keys by 3 vectors of rows.
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>
// CHECK-COUNT-24: math.fma
// The row operand between them.
// CHECK: math.absf %{{.*}} : vector<16xf32>
// CHECK-COUNT-24: math.fma
// CHECK: } else {
// CHECK-COUNT-24: math.fma
// CHECK: math.absf %{{.*}} : vector<16xf32>
// CHECK-COUNT-24: math.fma
// The states leave row by row.
// CHECK: onf_end

// Without blocks one vector at a time, with products added unrounded as well.
// OFF-LABEL: func.func @weights_nest0
// OFF-NOT: -> (vector<16xf32>, vector<16xf32>
// OFF: scf.for {{.*}} -> (vector<16xf32>)
// OFF: math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
// OFF-NOT: -> (vector<16xf32>, vector<16xf32>
// OFF: onf_end
onf.kernel @weights attributes {symbols = ["N", "M"], requires = [],
    arg_names = ["q", "k", "v"], result_names = ["o"], result_types = [!moa.array<[N, 32], f32>]} {
^bb0(%q: !moa.array<[N, 32], f32>, %k: !moa.array<[M, 32], f32>, %v: !moa.array<[M, 32], f32>, %o: !moa.array<[N, 32], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 0, register: 6, lane: 16>] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" lift <sequential: 0, cache: 64> : !moa.array<[32], f32> {
    ^bb0(%j: index):
      %s = onf.fold "e" in "32" : f32 {
      ^bb0(%e: index):
        %x = onf.load %q[%i, %e] : !moa.array<[N, 32], f32> -> f32
        %y = onf.load %k[%j, %e] : !moa.array<[M, 32], f32> -> f32
        %z = arith.mulf %x, %y : f32
        %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %w = math.absf %s : f32
      %t = onf.acc add "o" carries ["d"] in ["32"] refs() mul [] : () -> !moa.array<[32], f32> {
      ^bb0(%d: index):
        %y = onf.load %v[%j, %d] : !moa.array<[M, 32], f32> -> f32
        %z = arith.mulf %w, %y : f32
        onf.yield %z : f32
      } repair {}
      onf.yield %t : !moa.array<[32], f32>
    }
    onf.for ["d"] in ["32"] {
    ^bb0(%d: index):
      %y = onf.at %r[%d] : !moa.array<[32], f32> -> f32
      onf.store %y, %o[%i, %d] : f32, !moa.array<[N, 32], f32>
    }
  }
}

func.func private @onf_end()
