// sizes: N=21 M=30; N=1 M=1; N=17 M=0
// tolerance: 2e-6
// A fold with references inside a fold's body, and one inside a carried state.
onf.kernel @nested attributes {arg_names = ["x", "y"], requires = [], result_names = ["o", "c"], result_types = [!moa.array<[N], f32>, !moa.array<[N, 5], f32>], symbols = ["N", "M"]} {
^bb0(%x: !moa.array<[N, 9], f32>, %y: !moa.array<[M, 9], f32>, %o: !moa.array<[N], f32>, %c: !moa.array<[N, 5], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, !moa.array<[5], f32> {
    ^bb0(%j: index):
      %in:2 = onf.fold "k" in "9" : f32, f32 {
      ^bb0(%k: index):
        %a = onf.load %x[%i, %k] : !moa.array<[N, 9], f32> -> f32
        %b = onf.load %y[%j, %k] : !moa.array<[M, 9], f32> -> f32
        %d = arith.subf %a, %b : f32
        %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 { onf.yield %d : f32 } repair {}
        %z = arith.subf %d, %m : f32
        %e = math.exp %z : f32
        %l = onf.acc add "l" carries [] in [] refs(%m) mul [0xFF800000 : f32] : (f32) -> f32 { onf.yield %e : f32 } repair {
        ^bb0(%old: f32, %new: f32):
          %w = arith.subf %old, %new : f32
          %f = math.exp %w : f32
          onf.yield %f : f32
        }
        onf.yield %m, %l : f32, f32
      }
      %log = math.log %in#1 : f32
      %lse = arith.addf %in#0, %log : f32
      %s = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %lse : f32 } repair {}
      %t = onf.acc add "t" carries ["d"] in ["5"] refs() mul [] : () -> !moa.array<[5], f32> {
      ^bb0(%d: index):
        %u = onf.fold "k" in "9" : f32 {
        ^bb0(%k: index):
          %a = onf.load %x[%i, %k] : !moa.array<[N, 9], f32> -> f32
          %b = onf.load %y[%j, %d] at ["$0", "$1 + 1"] : !moa.array<[M, 9], f32> -> f32
          %p = arith.subf %a, %b : f32
          %q = math.tanh %p : f32
          %acc = onf.acc max "u" carries [] in [] refs() mul [] : () -> f32 { onf.yield %q : f32 } repair {}
          onf.yield %acc : f32
        }
        onf.yield %u : f32
      } repair {}
      onf.yield %s, %t : f32, !moa.array<[5], f32>
    }
    onf.store %r#0, %o[%i] : f32, !moa.array<[N], f32>
    onf.for ["d"] in ["5"] {
    ^bb0(%d: index):
      %v = onf.at %r#1[%d] : !moa.array<[5], f32> -> f32
      onf.store %v, %c[%i, %d] : f32, !moa.array<[N, 5], f32>
    }
  }
}
