// sizes: N=75; N=1
// tolerance: 2e-6
module {
  onf.kernel @layernorm_product attributes {arg_names = ["x", "gamma", "beta", "W", "eps"], requires = [], result_names = ["Y"], result_types = [!moa.array<[N, 128], f32>], symbols = ["N"]} {
  ^bb0(%x: !moa.array<[N, 256], f32>, %gamma: !moa.array<[256], f32>, %beta: !moa.array<[256], f32>, %W: !moa.array<[256, 128], f32>, %eps: !moa.array<[], f32>, %Y: !moa.array<[N, 128], f32>):
    onf.for ["n"] in ["N"] lift [#onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%n: index):
      %0 = onf.fold "k" in "256" lift <sequential: 0, cache: 128> : f32 {
      ^bb0(%k: index):
        %8 = onf.load %x[%n, %k] : <[N, 256], f32> -> f32
        %9 = onf.acc add "c.add" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %8 : f32
        } repair {
        }
        onf.yield %9 : f32
      }
      %cst = arith.constant 2.560000e+02 : f32
      %1 = arith.divf %0, %cst : f32
      %2 = onf.fold "k" in "256" lift <sequential: 0, cache: 128> : f32 {
      ^bb0(%k: index):
        %8 = onf.load %x[%n, %k] : <[N, 256], f32> -> f32
        %9 = arith.subf %8, %1 : f32
        %10 = arith.mulf %9, %9 : f32
        %11 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %10 : f32
        } repair {
        }
        onf.yield %11 : f32
      }
      %3 = arith.divf %2, %cst : f32
      %4 = onf.load %eps[] : <[], f32> -> f32
      %5 = arith.addf %3, %4 : f32
      %6 = math.rsqrt %5 : f32
      %7 = onf.fold "k" in "256" lift <sequential: 0, cache: 128> : !moa.array<[128], f32> {
      ^bb0(%k: index):
        %8 = onf.load %x[%n, %k] : <[N, 256], f32> -> f32
        %9 = arith.subf %8, %1 : f32
        %10 = arith.mulf %9, %6 : f32
        %11 = onf.load %gamma[%k] : <[256], f32> -> f32
        %12 = arith.mulf %10, %11 : f32
        %13 = onf.load %beta[%k] : <[256], f32> -> f32
        %14 = arith.addf %12, %13 : f32
        %15 = onf.acc add "Y" carries ["k"] in ["128"] refs() mul [] : () -> !moa.array<[128], f32> {
        ^bb0(%k_0: index):
          %16 = onf.load %W[%k, %k_0] : <[256, 128], f32> -> f32
          %17 = arith.mulf %14, %16 : f32
          onf.yield %17 : f32
        } repair {
        }
        onf.yield %15 : !moa.array<[128], f32>
      }
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %8 = onf.at %7[%k] : <[128], f32> -> f32
        onf.store %8, %Y[%n, %k] : f32, <[N, 128], f32>
      }
    }
  }
}

