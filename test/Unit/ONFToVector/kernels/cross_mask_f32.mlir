// sizes: B=2 H=2 N=37 M=141
// tolerance: 2e-6
module {
  onf.kernel @cross_mask attributes {arg_names = ["Q", "K", "V", "keep", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 40], f32>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 40], f32>, %K: !moa.array<[B, H, M, 40], f32>, %V: !moa.array<[B, H, M, 40], f32>, %keep: !moa.array<[B, N, M], i1>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 40], f32>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %1:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> : f32, f32, !moa.array<[40], f32>, i1 {
      ^bb0(%m: index):
        %8 = onf.load %keep[%b, %n, %m] : <[B, N, M], i1> -> i1
        onf.guard %8
        %9 = onf.fold "k" in "40" : f32 {
        ^bb0(%k: index):
          %17 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 40], f32> -> f32
          %18 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %19 = arith.mulf %17, %18 : f32
          %20 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %19 : f32
          } repair {
          }
          onf.yield %20 : f32
        }
        %10 = arith.mulf %9, %0 : f32
        %11 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %10 : f32
        } repair {
        }
        %12 = arith.subf %10, %11 : f32
        %13 = math.exp %12 : f32
        %14 = onf.acc add "add" carries [] in [] refs(%11) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %13 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %17 = arith.subf %arg0, %arg1 : f32
          %18 = math.exp %17 : f32
          onf.yield %18 : f32
        }
        %15 = onf.acc add "O" carries ["k"] in ["40"] refs(%11) mul [0xFF800000 : f32] : (f32) -> !moa.array<[40], f32> {
        ^bb0(%k: index):
          %17 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %18 = arith.mulf %13, %17 : f32
          onf.yield %18 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %17 = arith.subf %arg0, %arg1 : f32
          %18 = math.exp %17 : f32
          onf.yield %18 : f32
        }
        %16 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %11, %14, %15, %16 : f32, f32, !moa.array<[40], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %2 = arith.cmpf oeq, %1#0, %cst : f32
      %3 = arith.andi %1#3, %2 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %4 = arith.negf %1#0 : f32
      %5 = math.exp %4 : f32
      %6 = arith.mulf %cst_0, %5 : f32
      %7 = arith.select %3, %6, %1#1 : f32
      onf.for ["k"] in ["40"] {
      ^bb0(%k: index):
        %8 = onf.at %1#2[%k] : <[40], f32> -> f32
        %9 = arith.select %3, %6, %8 : f32
        %10 = arith.divf %9, %7 : f32
        %11 = arith.select %1#3, %10, %cst_0 : f32
        onf.store %11, %O[%b, %h, %n, %k] : f32, <[B, H, N, 40], f32>
      }
    }
  }
}

