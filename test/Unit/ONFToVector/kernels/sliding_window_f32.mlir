// sizes: B=1 H=2 N=150 M=170
// tolerance: 2e-6
module {
  onf.kernel @sliding_window attributes {arg_names = ["Q", "K", "V", "scale", "window"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 40], f32>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 40], f32>, %K: !moa.array<[B, H, M, 40], f32>, %V: !moa.array<[B, H, M, 40], f32>, %scale: !moa.array<[], f32>, %window: !moa.array<[], i32>, %O: !moa.array<[B, H, N, 40], f32>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 3, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.load %window[] : <[], i32> -> i32
      %3 = arith.index_cast %2 : i32 to index
      %4 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %5 = arith.index_cast %2 : i32 to index
      %6 = onf.extent "M"
      %7 = onf.extent "N"
      %8:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1, s2] -> (0, d0 - s0 + s1 - s2 + 1) to (d0, d1)[s0, s1, s2] -> (s1, ((s0 - 1) floordiv 281474976710656 + 1) * 281474976710656, d1 + s1 - s2 + 1) full true (d0, d1)[s0, s1, s2] -> (0, d1 - s0 + s1 - s2 + 1) to (d0, d1)[s0, s1, s2] -> (s1, d0 + s1 - s2 + 1)>] of(%5, %6, %7) : f32, f32, !moa.array<[40], f32>, i1 {
      ^bb0(%m: index):
        %15 = arith.cmpi sle, %m, %1 : index
        %16 = arith.subi %1, %m : index
        %17 = arith.cmpi slt, %16, %3 : index
        %18 = arith.andi %15, %17 : i1
        onf.guard %18
        %19 = onf.fold "k" in "40" : f32 {
        ^bb0(%k: index):
          %27 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 40], f32> -> f32
          %28 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %29 = arith.mulf %27, %28 : f32
          %30 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %29 : f32
          } repair {
          }
          onf.yield %30 : f32
        }
        %20 = arith.mulf %19, %4 : f32
        %21 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %20 : f32
        } repair {
        }
        %22 = arith.subf %20, %21 : f32
        %23 = math.exp %22 : f32
        %24 = onf.acc add "add" carries [] in [] refs(%21) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %23 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %27 = arith.subf %arg0, %arg1 : f32
          %28 = math.exp %27 : f32
          onf.yield %28 : f32
        }
        %25 = onf.acc add "O" carries ["k"] in ["40"] refs(%21) mul [0xFF800000 : f32] : (f32) -> !moa.array<[40], f32> {
        ^bb0(%k: index):
          %27 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 40], f32> -> f32
          %28 = arith.mulf %23, %27 : f32
          onf.yield %28 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %27 = arith.subf %arg0, %arg1 : f32
          %28 = math.exp %27 : f32
          onf.yield %28 : f32
        }
        %26 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %21, %24, %25, %26 : f32, f32, !moa.array<[40], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %9 = arith.cmpf oeq, %8#0, %cst : f32
      %10 = arith.andi %8#3, %9 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %11 = arith.negf %8#0 : f32
      %12 = math.exp %11 : f32
      %13 = arith.mulf %cst_0, %12 : f32
      %14 = arith.select %10, %13, %8#1 : f32
      onf.for ["k"] in ["40"] {
      ^bb0(%k: index):
        %15 = onf.at %8#2[%k] : <[40], f32> -> f32
        %16 = arith.select %10, %13, %15 : f32
        %17 = arith.divf %16, %14 : f32
        %18 = arith.select %8#3, %17, %cst_0 : f32
        onf.store %18, %O[%b, %h, %n, %k] : f32, <[B, H, N, 40], f32>
      }
    }
  }
}

