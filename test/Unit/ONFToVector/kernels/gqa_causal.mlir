// sizes: B=2 H=4 G=2 N=70 M=131
// tolerance: 3e-3
module {
  onf.kernel @gqa_causal attributes {arg_names = ["Q", "K", "V", "scale"], requires = ["H%G == 0"], result_names = ["O", "lse"], result_types = [!moa.array<[B, H, N, 128], bf16>, !moa.array<[B, H, N], f32>], symbols = ["B", "H", "G", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, G, M, 128], bf16>, %V: !moa.array<[B, G, M, 128], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>, %lse: !moa.array<[B, H, N], f32>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.extent "H/G"
      %3 = arith.floordivsi %h, %2 : index
      %4 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %5 = onf.extent "M"
      %6 = onf.extent "N"
      %7:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1) full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)>] of(%5, %6) : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %13 = arith.cmpi sle, %m, %1 : index
        onf.guard %13
        %14 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %22 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %23 = arith.extf %22 : bf16 to f32
          %24 = onf.load %K[%b, %3, %m, %k] : <[B, G, M, 128], bf16> -> bf16
          %25 = arith.extf %24 : bf16 to f32
          %26 = arith.mulf %23, %25 : f32
          %27 = onf.acc add "S.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %26 : f32
          } repair {
          }
          onf.yield %27 : f32
        }
        %15 = arith.mulf %14, %4 : f32
        %16 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %15 : f32
        } repair {
        }
        %17 = arith.subf %15, %16 : f32
        %18 = math.exp %17 : f32
        %19 = onf.acc add "add" carries [] in [] refs(%16) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %18 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %22 = arith.subf %arg0, %arg1 : f32
          %23 = math.exp %22 : f32
          onf.yield %23 : f32
        }
        %20 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%16) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %22 = onf.load %V[%b, %3, %m, %k] : <[B, G, M, 128], bf16> -> bf16
          %23 = arith.extf %22 : bf16 to f32
          %24 = arith.mulf %18, %23 : f32
          onf.yield %24 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %22 = arith.subf %arg0, %arg1 : f32
          %23 = math.exp %22 : f32
          onf.yield %23 : f32
        }
        %21 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %16, %19, %20, %21 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %8 = arith.cmpf oeq, %7#0, %cst : f32
      %9 = arith.andi %7#3, %8 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %10 = arith.select %9, %cst_0, %7#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %13 = onf.at %7#2[%k] : <[128], f32> -> f32
        %14 = arith.select %9, %cst_0, %13 : f32
        %15 = arith.divf %14, %10 : f32
        %16 = arith.select %7#3, %15, %cst_1 : f32
        onf.store %16, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
      %11 = math.log %10 : f32
      %12 = arith.addf %7#0, %11 : f32
      onf.store %12, %lse[%b, %h, %n] : f32, <[B, H, N], f32>
    }
  }
}

