// sizes: B=1 H=2 N=150 M=170
// tolerance: 3e-3
module {
  onf.kernel @sliding_window attributes {arg_names = ["Q", "K", "V", "scale", "window"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %scale: !moa.array<[], f32>, %window: !moa.array<[], i32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
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
      %8:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1, s2] -> (0, d0 - s0 + s1 - s2 + 1) to (d0, d1)[s0, s1, s2] -> (s1, ((s0 - 1) floordiv 281474976710656 + 1) * 281474976710656, d1 + s1 - s2 + 1) full true (d0, d1)[s0, s1, s2] -> (0, d1 - s0 + s1 - s2 + 1) to (d0, d1)[s0, s1, s2] -> (s1, d0 + s1 - s2 + 1)>] of(%5, %6, %7) : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %12 = arith.cmpi sle, %m, %1 : index
        %13 = arith.subi %1, %m : index
        %14 = arith.cmpi slt, %13, %3 : index
        %15 = arith.andi %12, %14 : i1
        onf.guard %15
        %16 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %24 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %25 = arith.extf %24 : bf16 to f32
          %26 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %27 = arith.extf %26 : bf16 to f32
          %28 = arith.mulf %25, %27 : f32
          %29 = onf.acc add "P.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %28 : f32
          } repair {
          }
          onf.yield %29 : f32
        }
        %17 = arith.mulf %16, %4 : f32
        %18 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %17 : f32
        } repair {
        }
        %19 = arith.subf %17, %18 : f32
        %20 = math.exp %19 : f32
        %21 = onf.acc add "add" carries [] in [] refs(%18) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %20 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %24 = arith.subf %arg0, %arg1 : f32
          %25 = math.exp %24 : f32
          onf.yield %25 : f32
        }
        %22 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%18) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %24 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %25 = arith.extf %24 : bf16 to f32
          %26 = arith.mulf %20, %25 : f32
          onf.yield %26 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %24 = arith.subf %arg0, %arg1 : f32
          %25 = math.exp %24 : f32
          onf.yield %25 : f32
        }
        %23 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %18, %21, %22, %23 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %9 = arith.cmpf oeq, %8#0, %cst : f32
      %10 = arith.andi %8#3, %9 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %11 = arith.select %10, %cst_0, %8#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %12 = onf.at %8#2[%k] : <[128], f32> -> f32
        %13 = arith.select %10, %cst_0, %12 : f32
        %14 = arith.divf %13, %11 : f32
        %15 = arith.select %8#3, %14, %cst_1 : f32
        onf.store %15, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

