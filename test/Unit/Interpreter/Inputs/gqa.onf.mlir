#tile = #onf.axis<core: 0>
#rows = #onf.axis<core: 0, register: 2, lane: 3>
#keys = #onf.axis<sequential: 0, cache: 5>
#causal = #onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1) full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)>
onf.kernel @gqa attributes {symbols = ["B", "H", "G", "N", "M", "D"], requires = ["H%G == 0"], arg_names = ["Q", "K", "V", "scale"], result_names = ["O", "lse"], result_types = [!moa.array<[B, H, N, D], bf16>, !moa.array<[B, H, N], f32>]} {
^bb0(%Q: !moa.array<[B, H, N, D], bf16>, %K: !moa.array<[B, G, M, D], bf16>, %V: !moa.array<[B, G, M, D], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, D], bf16>, %lse: !moa.array<[B, H, N], f32>):
  onf.for ["b", "h", "i"] in ["B", "H", "N"] lift [#tile, #tile, #rows] {
  ^bb0(%b: index, %h: index, %i: index):
    %0 = onf.extent "M - N"
    %limit = arith.addi %i, %0 : index
    %1 = onf.extent "H/G"
    %g = arith.floordivsi %h, %1 : index
    %scale0 = onf.load %scale[] : !moa.array<[], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %true = arith.constant true
    %M = onf.extent "M"
    %N = onf.extent "N"
    %r:4 = onf.fold "j" in "M" lift #keys pieces [#causal] of(%M, %N) : f32, f32, !moa.array<[D], f32>, i1 {
    ^bb0(%j: index):
      %p = arith.cmpi sle, %j, %limit : index
      onf.guard %p
      %dot = onf.fold "k" in "D" : f32 {
      ^bb0(%k: index):
        %q = onf.load %Q[%b, %h, %i, %k] : !moa.array<[B, H, N, D], bf16> -> bf16
        %qe = arith.extf %q : bf16 to f32
        %kk = onf.load %K[%b, %g, %j, %k] : !moa.array<[B, G, M, D], bf16> -> bf16
        %ke = arith.extf %kk : bf16 to f32
        %product = arith.mulf %qe, %ke : f32
        %a = onf.acc add "dot" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %product : f32
        } repair {
        }
        onf.yield %a : f32
      }
      %s = arith.mulf %dot, %scale0 : f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %s : f32
      } repair {
      }
      %shifted = arith.subf %s, %m : f32
      %e = math.exp %shifted : f32
      %l = onf.acc add "l" carries [] in [] refs(%m) mul [0xFF800000 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        %difference = arith.subf %old, %new : f32
        %c = math.exp %difference : f32
        onf.yield %c : f32
      }
      %o = onf.acc add "o" carries ["d"] in ["D"] rounds bf16 refs(%m) mul [0xFF800000 : f32] : (f32) -> !moa.array<[D], f32> {
      ^bb0(%d: index):
        %v = onf.load %V[%b, %g, %j, %d] : !moa.array<[B, G, M, D], bf16> -> bf16
        %ve = arith.extf %v : bf16 to f32
        %weighted = arith.mulf %e, %ve : f32
        onf.yield %weighted : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        %difference = arith.subf %old, %new : f32
        %c = math.exp %difference : f32
        onf.yield %c : f32
      }
      %any = onf.acc or "any" carries [] in [] refs() mul [] : () -> i1 {
        onf.yield %true : i1
      } repair {
      }
      onf.yield %m, %l, %o, %any : f32, f32, !moa.array<[D], f32>, i1
    }
    %infinity = arith.constant 0xFF800000 : f32
    %singular = arith.cmpf oeq, %r#0, %infinity : f32
    %lost = arith.andi %r#3, %singular : i1
    %nan = arith.constant 0x7FC00000 : f32
    %sum = arith.select %lost, %nan, %r#1 : f32
    onf.for ["d"] in ["D"] {
    ^bb0(%d: index):
      %x = onf.at %r#2[%d] : !moa.array<[D], f32> -> f32
      %y = arith.divf %x, %sum : f32
      %z = arith.select %r#3, %y, %zero : f32
      onf.store %z, %O[%b, %h, %i, %d] : f32, !moa.array<[B, H, N, D], bf16>
    }
    %log = math.log %sum : f32
    %out = arith.addf %r#0, %log : f32
    onf.store %out, %lse[%b, %h, %i] : f32, !moa.array<[B, H, N], f32>
  }
}
