// sizes: B=1 H=2 N=40 M=129
// tolerance: 2e-6
module {
  onf.kernel @softcapped attributes {arg_names = ["Q", "K", "V", "scale", "cap"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 40], f32>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 40], f32>, %K: !moa.array<[B, H, M, 40], f32>, %V: !moa.array<[B, H, M, 40], f32>, %scale: !moa.array<[], f32>, %cap: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 40], f32>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.load %cap[] : <[], f32> -> f32
      %1 = onf.load %scale[] : <[], f32> -> f32
      %2:3 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> : f32, f32, !moa.array<[40], f32> {
      ^bb0(%m: index):
        %11 = onf.fold "k" in "40" : f32 {
        ^bb0(%k: index):
          %21 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 40], f32> -> f32
          %22 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %23 = arith.mulf %21, %22 : f32
          %24 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %23 : f32
          } repair {
          }
          onf.yield %24 : f32
        }
        %12 = arith.mulf %11, %1 : f32
        %13 = arith.divf %12, %0 : f32
        %14 = math.tanh %13 : f32
        %15 = arith.mulf %0, %14 : f32
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
          %21 = arith.subf %arg0, %arg1 : f32
          %22 = math.exp %21 : f32
          onf.yield %22 : f32
        }
        %20 = onf.acc add "O" carries ["k"] in ["40"] refs(%16) mul [0xFF800000 : f32] : (f32) -> !moa.array<[40], f32> {
        ^bb0(%k: index):
          %21 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %22 = arith.mulf %18, %21 : f32
          onf.yield %22 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %21 = arith.subf %arg0, %arg1 : f32
          %22 = math.exp %21 : f32
          onf.yield %22 : f32
        }
        onf.yield %16, %19, %20 : f32, f32, !moa.array<[40], f32>
      }
      %cst = arith.constant 0xFF800000 : f32
      %3 = arith.cmpf oeq, %2#0, %cst : f32
      %4 = onf.extent "M"
      %c0 = arith.constant 0 : index
      %5 = arith.cmpi sgt, %4, %c0 : index
      %6 = arith.andi %5, %3 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %7 = arith.negf %2#0 : f32
      %8 = math.exp %7 : f32
      %9 = arith.mulf %cst_0, %8 : f32
      %10 = arith.select %6, %9, %2#1 : f32
      onf.for ["k"] in ["40"] {
      ^bb0(%k: index):
        %11 = onf.at %2#2[%k] : <[40], f32> -> f32
        %12 = arith.select %6, %9, %11 : f32
        %13 = arith.divf %12, %10 : f32
        %14 = arith.select %5, %13, %cst_0 : f32
        onf.store %14, %O[%b, %h, %n, %k] : f32, <[B, H, N, 40], f32>
      }
    }
  }
}

