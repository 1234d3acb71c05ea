// sizes: B=53 N=210; B=3 N=0
// tolerance: 2e-6
module {
  onf.kernel @scaled_norm attributes {arg_names = ["x"], requires = [], result_names = ["norm"], result_types = [!moa.array<[B], f32>], symbols = ["B", "N"]} {
  ^bb0(%x: !moa.array<[B, N], f32>, %norm: !moa.array<[B], f32>):
    onf.for ["b"] in ["B"] lift [#onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%b: index):
      %cst = arith.constant 1.000000e+00 : f32
      %0:2 = onf.fold "n" in "N" lift <sequential: 0, cache: 128> : f32, f32 {
      ^bb0(%n: index):
        %8 = onf.load %x[%b, %n] : <[B, N], f32> -> f32
        %9 = math.absf %8 : f32
        %10 = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %9 : f32
        } repair {
        }
        %11 = arith.divf %8, %10 : f32
        %12 = arith.mulf %11, %11 : f32
        %13 = onf.acc add "norm" carries [] in [] refs(%10) mul [0.000000e+00 : f32] : (f32) -> f32 {
          onf.yield %12 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %14 = arith.divf %arg1, %arg0 : f32
          %15 = arith.divf %cst, %14 : f32
          %16 = arith.mulf %15, %15 : f32
          onf.yield %16 : f32
        }
        onf.yield %10, %13 : f32, f32
      }
      %cst_0 = arith.constant 0.000000e+00 : f32
      %1 = arith.cmpf oeq, %0#0, %cst_0 : f32
      %2 = onf.extent "N"
      %c0 = arith.constant 0 : index
      %3 = arith.cmpi sgt, %2, %c0 : index
      %4 = arith.andi %3, %1 : i1
      %cst_1 = arith.constant 0x7FC00000 : f32
      %5 = arith.select %4, %cst_1, %0#1 : f32
      %6 = math.sqrt %5 : f32
      %7 = arith.mulf %0#0, %6 : f32
      onf.store %7, %norm[%b] : f32, <[B], f32>
    }
  }
}

