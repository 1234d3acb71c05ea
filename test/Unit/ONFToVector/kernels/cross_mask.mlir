// sizes: B=2 H=2 N=37 M=141
// tolerance: 3e-3
module {
  onf.kernel @cross_mask attributes {arg_names = ["Q", "K", "V", "keep", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %keep: !moa.array<[B, N, M], i1>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %1:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %5 = onf.load %keep[%b, %n, %m] : <[B, N, M], i1> -> i1
        onf.guard %5
        %6 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %14 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %15 = arith.extf %14 : bf16 to f32
          %16 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %17 = arith.extf %16 : bf16 to f32
          %18 = arith.mulf %15, %17 : f32
          %19 = onf.acc add "P.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %18 : f32
          } repair {
          }
          onf.yield %19 : f32
        }
        %7 = arith.mulf %6, %0 : f32
        %8 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %7 : f32
        } repair {
        }
        %9 = arith.subf %7, %8 : f32
        %10 = math.exp %9 : f32
        %11 = onf.acc add "add" carries [] in [] refs(%8) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %10 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %14 = arith.subf %arg0, %arg1 : f32
          %15 = math.exp %14 : f32
          onf.yield %15 : f32
        }
        %12 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%8) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %14 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %15 = arith.extf %14 : bf16 to f32
          %16 = arith.mulf %10, %15 : f32
          onf.yield %16 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %14 = arith.subf %arg0, %arg1 : f32
          %15 = math.exp %14 : f32
          onf.yield %15 : f32
        }
        %13 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %8, %11, %12, %13 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %2 = arith.cmpf oeq, %1#0, %cst : f32
      %3 = arith.andi %1#3, %2 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %4 = arith.select %3, %cst_0, %1#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %5 = onf.at %1#2[%k] : <[128], f32> -> f32
        %6 = arith.select %3, %cst_0, %5 : f32
        %7 = arith.divf %6, %4 : f32
        %8 = arith.select %1#3, %7, %cst_1 : f32
        onf.store %8, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

