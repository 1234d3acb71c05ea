// sizes: N=3 M=4; N=50 M=300
// tolerance: 1e-14
module {
  onf.kernel @paper attributes {arg_names = ["Q", "K", "V", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[N, 4], f64>], symbols = ["N", "M"]} {
  ^bb0(%Q: !moa.array<[N, 4], f64>, %K: !moa.array<[M, 4], f64>, %V: !moa.array<[M, 4], f64>, %scale: !moa.array<[], f64>, %O: !moa.array<[N, 4], f64>):
    onf.for ["n"] in ["N"] lift [#onf.axis<core: 0, register: 6, lane: 8>] {
    ^bb0(%n: index):
      %0 = onf.load %scale[] : <[], f64> -> f64
      %1:3 = onf.fold "m" in "M" lift <sequential: 0, cache: 64> : f64, f64, !moa.array<[4], f64> {
      ^bb0(%m: index):
        %7 = onf.fold "k" in "4" : f64 {
        ^bb0(%k: index):
          %14 = onf.load %Q[%n, %k] : <[N, 4], f64> -> f64
          %15 = onf.load %K[%m, %k] : <[M, 4], f64> -> f64
          %16 = arith.mulf %14, %15 : f64
          %17 = onf.acc add "S.add" carries [] in [] refs() mul [] : () -> f64 {
            onf.yield %16 : f64
          } repair {
          }
          onf.yield %17 : f64
        }
        %8 = arith.mulf %7, %0 : f64
        %9 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f64 {
          onf.yield %8 : f64
        } repair {
        }
        %10 = arith.subf %8, %9 : f64
        %11 = math.exp %10 : f64
        %12 = onf.acc add "add" carries [] in [] refs(%9) mul [0xFFF0000000000000 : f64] : (f64) -> f64 {
          onf.yield %11 : f64
        } repair {
        ^bb0(%arg0: f64, %arg1: f64):
          %14 = arith.subf %arg0, %arg1 : f64
          %15 = math.exp %14 : f64
          onf.yield %15 : f64
        }
        %13 = onf.acc add "O" carries ["k"] in ["4"] refs(%9) mul [0xFFF0000000000000 : f64] : (f64) -> !moa.array<[4], f64> {
        ^bb0(%k: index):
          %14 = onf.load %V[%m, %k] : <[M, 4], f64> -> f64
          %15 = arith.mulf %11, %14 : f64
          onf.yield %15 : f64
        } repair {
        ^bb0(%arg0: f64, %arg1: f64):
          %14 = arith.subf %arg0, %arg1 : f64
          %15 = math.exp %14 : f64
          onf.yield %15 : f64
        }
        onf.yield %9, %12, %13 : f64, f64, !moa.array<[4], f64>
      }
      %cst = arith.constant 0xFFF0000000000000 : f64
      %2 = arith.cmpf oeq, %1#0, %cst : f64
      %3 = onf.extent "M"
      %c0 = arith.constant 0 : index
      %4 = arith.cmpi sgt, %3, %c0 : index
      %5 = arith.andi %4, %2 : i1
      %cst_0 = arith.constant 0x7FF8000000000000 : f64
      %6 = arith.select %5, %cst_0, %1#1 : f64
      %cst_1 = arith.constant 0.000000e+00 : f64
      onf.for ["k"] in ["4"] {
      ^bb0(%k: index):
        %7 = onf.at %1#2[%k] : <[4], f64> -> f64
        %8 = arith.select %5, %cst_0, %7 : f64
        %9 = arith.divf %8, %6 : f64
        %10 = arith.select %4, %9, %cst_1 : f64
        onf.store %10, %O[%n, %k] : f64, <[N, 4], f64>
      }
    }
  }
}

