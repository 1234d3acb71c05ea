// sizes: B=2 H=4 G=2 N=70 M=131
// tolerance: 2e-6
module {
  onf.kernel @gqa_causal attributes {arg_names = ["Q", "K", "V", "scale"], requires = ["H%G == 0"], result_names = ["O", "lse"], result_types = [!moa.array<[B, H, N, 40], f32>, !moa.array<[B, H, N], f32>], symbols = ["B", "H", "G", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 40], f32>, %K: !moa.array<[B, G, M, 40], f32>, %V: !moa.array<[B, G, M, 40], f32>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 40], f32>, %lse: !moa.array<[B, H, N], f32>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.extent "H/G"
      %3 = arith.floordivsi %h, %2 : index
      %4 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %5 = onf.extent "M"
      %6 = onf.extent "N"
      %7:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1) full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)>] of(%5, %6) : f32, f32, !moa.array<[40], f32>, i1 {
      ^bb0(%m: index):
        %16 = arith.cmpi sle, %m, %1 : index
        onf.guard %16
        %17 = onf.fold "k" in "40" : f32 {
        ^bb0(%k: index):
          %25 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 40], f32> -> f32
          %26 = onf.load %K[%b, %3, %m, %k] : <[B, G, M, 40], f32> -> f32
          %27 = arith.mulf %25, %26 : f32
          %28 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %27 : f32
          } repair {
          }
          onf.yield %28 : f32
        }
        %18 = arith.mulf %17, %4 : f32
        %19 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %18 : f32
        } repair {
        }
        %20 = arith.subf %18, %19 : f32
        %21 = math.exp %20 : f32
        %22 = onf.acc add "add" carries [] in [] refs(%19) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %21 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %25 = arith.subf %arg0, %arg1 : f32
          %26 = math.exp %25 : f32
          onf.yield %26 : f32
        }
        %23 = onf.acc add "O" carries ["k"] in ["40"] refs(%19) mul [0xFF800000 : f32] : (f32) -> !moa.array<[40], f32> {
        ^bb0(%k: index):
          %25 = onf.load %V[%b, %3, %m, %k] : <[B, G, M, 40], f32> -> f32
          %26 = arith.mulf %21, %25 : f32
          onf.yield %26 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %25 = arith.subf %arg0, %arg1 : f32
          %26 = math.exp %25 : f32
          onf.yield %26 : f32
        }
        %24 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %19, %22, %23, %24 : f32, f32, !moa.array<[40], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %8 = arith.cmpf oeq, %7#0, %cst : f32
      %9 = arith.andi %7#3, %8 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %10 = arith.negf %7#0 : f32
      %11 = math.exp %10 : f32
      %12 = arith.mulf %cst_0, %11 : f32
      %13 = arith.select %9, %12, %7#1 : f32
      onf.for ["k"] in ["40"] {
      ^bb0(%k: index):
        %16 = onf.at %7#2[%k] : <[40], f32> -> f32
        %17 = arith.select %9, %12, %16 : f32
        %18 = arith.divf %17, %13 : f32
        %19 = arith.select %7#3, %18, %cst_0 : f32
        onf.store %19, %O[%b, %h, %n, %k] : f32, <[B, H, N, 40], f32>
      }
      %14 = math.log %13 : f32
      %15 = arith.addf %7#0, %14 : f32
      onf.store %15, %lse[%b, %h, %n] : f32, <[B, H, N], f32>
    }
  }
}

