// sizes: B=1 H=2 N=40 M=129
// tolerance: 3e-3
module {
  onf.kernel @softcapped attributes {arg_names = ["Q", "K", "V", "scale", "cap"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %scale: !moa.array<[], f32>, %cap: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.load %cap[] : <[], f32> -> f32
      %1 = onf.load %scale[] : <[], f32> -> f32
      %2:3 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> : f32, f32, !moa.array<[128], f32> {
      ^bb0(%m: index):
        %8 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %18 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %19 = arith.extf %18 : bf16 to f32
          %20 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %21 = arith.extf %20 : bf16 to f32
          %22 = arith.mulf %19, %21 : f32
          %23 = onf.acc add "S.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %22 : f32
          } repair {
          }
          onf.yield %23 : f32
        }
        %9 = arith.mulf %8, %1 : f32
        %10 = arith.divf %9, %0 : f32
        %11 = math.tanh %10 : f32
        %12 = arith.mulf %0, %11 : f32
        %13 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %12 : f32
        } repair {
        }
        %14 = arith.subf %12, %13 : f32
        %15 = math.exp %14 : f32
        %16 = onf.acc add "add" carries [] in [] refs(%13) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %15 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %18 = arith.subf %arg0, %arg1 : f32
          %19 = math.exp %18 : f32
          onf.yield %19 : f32
        }
        %17 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%13) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %18 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %19 = arith.extf %18 : bf16 to f32
          %20 = arith.mulf %15, %19 : f32
          onf.yield %20 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %18 = arith.subf %arg0, %arg1 : f32
          %19 = math.exp %18 : f32
          onf.yield %19 : f32
        }
        onf.yield %13, %16, %17 : f32, f32, !moa.array<[128], f32>
      }
      %cst = arith.constant 0xFF800000 : f32
      %3 = arith.cmpf oeq, %2#0, %cst : f32
      %4 = onf.extent "M"
      %c0 = arith.constant 0 : index
      %5 = arith.cmpi sgt, %4, %c0 : index
      %6 = arith.andi %5, %3 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %7 = arith.select %6, %cst_0, %2#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %8 = onf.at %2#2[%k] : <[128], f32> -> f32
        %9 = arith.select %6, %cst_0, %8 : f32
        %10 = arith.divf %9, %7 : f32
        %11 = arith.select %5, %10, %cst_1 : f32
        onf.store %11, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

