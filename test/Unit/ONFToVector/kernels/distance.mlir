// sizes: N=41 M=150; N=3 M=5
// tolerance: 2e-6
// Values of the row alone and of the key alone inside a fold, an inner reduction
// that is no contraction, a state over two carried axes, and a second fold.
onf.kernel @distance attributes {arg_names = ["q", "k", "v", "w"], requires = [], result_names = ["near", "both", "l1"], result_types = [!moa.array<[N, 7], f32>, !moa.array<[N, 3, 20], f32>, !moa.array<[N], f32>], symbols = ["N", "M"]} {
^bb0(%q: !moa.array<[N, 19], f32>, %k: !moa.array<[M, 19], f32>, %v: !moa.array<[M, 7], f32>, %w: !moa.array<[M, 3], f32>, %near: !moa.array<[N, 7], f32>, %both: !moa.array<[N, 3, 20], f32>, %l1: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c2 = arith.constant 0.1 : f32
    %c05 = arith.constant 0.05 : f32
    %r:2 = onf.fold "j" in "M" : !moa.array<[7], f32>, f32 {
    ^bb0(%j: index):
      %dot = onf.fold "e" in "19" : f32 {
      ^bb0(%e: index):
        %x = onf.load %q[%i, %e] : !moa.array<[N, 19], f32> -> f32
        %y = onf.load %k[%j, %e] : !moa.array<[M, 19], f32> -> f32
        %sx = arith.mulf %x, %c2 : f32
        %z = arith.mulf %sx, %y : f32
        %a = onf.acc add "d" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %kk = onf.fold "e" in "19" : f32 {
      ^bb0(%e: index):
        %y = onf.load %k[%j, %e] : !moa.array<[M, 19], f32> -> f32
        %z = arith.mulf %y, %y : f32
        %a = onf.acc add "d" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %qq = onf.fold "e" in "19" : f32 {
      ^bb0(%e: index):
        %y = onf.load %q[%i, %e] : !moa.array<[N, 19], f32> -> f32
        %z = arith.mulf %y, %y : f32
        %a = onf.acc add "d" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %manhattan = onf.fold "e" in "19" : f32 {
      ^bb0(%e: index):
        %x = onf.load %q[%i, %e] : !moa.array<[N, 19], f32> -> f32
        %y = onf.load %k[%j, %e] : !moa.array<[M, 19], f32> -> f32
        %d = arith.subf %x, %y : f32
        %z = math.absf %d : f32
        %a = onf.acc add "d" carries [] in [] refs() mul [] : () -> f32 { onf.yield %z : f32 } repair {}
        onf.yield %a : f32
      }
      %sum = arith.addf %kk, %qq : f32
      %half = arith.mulf %sum, %c05 : f32
      %s = arith.subf %dot, %half : f32
      %g = math.exp %s : f32
      %near1 = onf.acc add "near" carries ["d"] in ["7"] refs() mul [] : () -> !moa.array<[7], f32> {
      ^bb0(%d: index):
        %y = onf.load %v[%j, %d] : !moa.array<[M, 7], f32> -> f32
        %z = arith.mulf %g, %y : f32
        onf.yield %z : f32
      } repair {}
      %least = onf.acc min "l1" carries [] in [] refs() mul [] : () -> f32 { onf.yield %manhattan : f32 } repair {}
      onf.yield %near1, %least : !moa.array<[7], f32>, f32
    }
    %t = onf.fold "j" in "M" : !moa.array<[3, 20], f32> {
    ^bb0(%j: index):
      %x0 = onf.load %k[%j] at ["$0", "3"] : !moa.array<[M, 19], f32> -> f32
      %x1 = onf.load %q[%i] at ["$0", "2"] : !moa.array<[N, 19], f32> -> f32
      %x2 = arith.mulf %x0, %r#1 : f32
      %both1 = onf.acc add "both" carries ["d", "e"] in ["3", "20"] refs() mul [] : () -> !moa.array<[3, 20], f32> {
      ^bb0(%d: index, %e: index):
        %y = onf.load %w[%j, %d] : !moa.array<[M, 3], f32> -> f32
        %c17 = arith.constant 17 : index
        %em = arith.minsi %e, %c17 : index
        %u = onf.load %k[%j, %em] : !moa.array<[M, 19], f32> -> f32
        %z = arith.mulf %y, %x2 : f32
        %z2 = arith.mulf %z, %u : f32
        %z3 = arith.mulf %z2, %x1 : f32
        onf.yield %z3 : f32
      } repair {}
      onf.yield %both1 : !moa.array<[3, 20], f32>
    }
    onf.store %r#1, %l1[%i] : f32, !moa.array<[N], f32>
    onf.for ["d"] in ["7"] {
    ^bb0(%d: index):
      %y = onf.at %r#0[%d] : !moa.array<[7], f32> -> f32
      onf.store %y, %near[%i, %d] : f32, !moa.array<[N, 7], f32>
    }
    onf.for ["d", "e"] in ["3", "20"] {
    ^bb0(%d: index, %e: index):
      %y = onf.at %t[%d, %e] : !moa.array<[3, 20], f32> -> f32
      onf.store %y, %both[%i, %d, %e] : f32, !moa.array<[N, 3, 20], f32>
    }
  }
}
