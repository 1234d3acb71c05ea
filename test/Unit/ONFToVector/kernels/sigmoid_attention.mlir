// sizes: B=1 H=2 N=33 M=130
// tolerance: 3e-3
module {
  onf.kernel @sigmoid_attention attributes {arg_names = ["Q", "K", "V", "scale", "bias"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %scale: !moa.array<[], f32>, %bias: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.load %scale[] : <[], f32> -> f32
      %1 = onf.load %bias[] : <[], f32> -> f32
      %cst = arith.constant 1.000000e+00 : f32
      %2 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> : !moa.array<[128], f32> {
      ^bb0(%m: index):
        %3 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %10 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %11 = arith.extf %10 : bf16 to f32
          %12 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %13 = arith.extf %12 : bf16 to f32
          %14 = arith.mulf %11, %13 : f32
          %15 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %14 : f32
          } repair {
          }
          onf.yield %15 : f32
        }
        %4 = arith.mulf %3, %0 : f32
        %5 = arith.addf %4, %1 : f32
        %6 = arith.negf %5 : f32
        %7 = math.exp %6 : f32
        %8 = arith.addf %7, %cst : f32
        %9 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs() mul [] : () -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %10 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %11 = arith.extf %10 : bf16 to f32
          %12 = arith.divf %11, %8 : f32
          onf.yield %12 : f32
        } repair {
        }
        onf.yield %9 : !moa.array<[128], f32>
      }
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %3 = onf.at %2[%k] : <[128], f32> -> f32
        onf.store %3, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

