// sizes: B=1 H=2 N=150 M=150; B=1 H=1 N=200 M=60
// tolerance: 3e-3
module {
  onf.kernel @causal attributes {arg_names = ["Q", "K", "V", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %3 = onf.extent "M"
      %4 = onf.extent "N"
      %5:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1) full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)>] of(%3, %4) : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %9 = arith.cmpi sle, %m, %1 : index
        onf.guard %9
        %10 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %18 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %19 = arith.extf %18 : bf16 to f32
          %20 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %21 = arith.extf %20 : bf16 to f32
          %22 = arith.mulf %19, %21 : f32
          %23 = onf.acc add "P.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %22 : f32
          } repair {
          }
          onf.yield %23 : f32
        }
        %11 = arith.mulf %10, %2 : f32
        %12 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %11 : f32
        } repair {
        }
        %13 = arith.subf %11, %12 : f32
        %14 = math.exp %13 : f32
        %15 = onf.acc add "add" carries [] in [] refs(%12) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %14 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %18 = arith.subf %arg0, %arg1 : f32
          %19 = math.exp %18 : f32
          onf.yield %19 : f32
        }
        %16 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%12) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %18 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %19 = arith.extf %18 : bf16 to f32
          %20 = arith.mulf %14, %19 : f32
          onf.yield %20 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %18 = arith.subf %arg0, %arg1 : f32
          %19 = math.exp %18 : f32
          onf.yield %19 : f32
        }
        %17 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %12, %15, %16, %17 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %6 = arith.cmpf oeq, %5#0, %cst : f32
      %7 = arith.andi %5#3, %6 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %8 = arith.select %7, %cst_0, %5#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %9 = onf.at %5#2[%k] : <[128], f32> -> f32
        %10 = arith.select %7, %cst_0, %9 : f32
        %11 = arith.divf %10, %8 : f32
        %12 = arith.select %5#3, %11, %cst_1 : f32
        onf.store %12, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

