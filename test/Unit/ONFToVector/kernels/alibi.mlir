// sizes: B=2 H=3 N=101 M=150; B=1 H=1 N=1 M=7
// tolerance: 3e-3
module {
  onf.kernel @alibi attributes {arg_names = ["Q", "K", "V", "slope", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], bf16>, %K: !moa.array<[B, H, M, 128], bf16>, %V: !moa.array<[B, H, M, 128], bf16>, %slope: !moa.array<[H], f32>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>):
    onf.for ["b", "h", "n"] in ["B", "H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.load %scale[] : <[], f32> -> f32
      %3 = onf.load %slope[%h] : <[H], f32> -> f32
      %true = arith.constant true
      %4 = onf.extent "M"
      %5 = onf.extent "N"
      %6:4 = onf.fold "m" in "M" lift <sequential: 0, cache: 128> pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1) full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)>] of(%4, %5) : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %10 = arith.cmpi sle, %m, %1 : index
        onf.guard %10
        %11 = onf.fold "k" in "128" : f32 {
        ^bb0(%k: index):
          %25 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], bf16> -> bf16
          %26 = arith.extf %25 : bf16 to f32
          %27 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %28 = arith.extf %27 : bf16 to f32
          %29 = arith.mulf %26, %28 : f32
          %30 = onf.acc add "P.add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %29 : f32
          } repair {
          }
          onf.yield %30 : f32
        }
        %12 = arith.mulf %11, %2 : f32
        %13 = arith.subi %m, %n : index
        %14 = arith.subi %13, %0 : index
        %15 = arith.index_cast %14 : index to i64
        %16 = arith.sitofp %15 : i64 to f32
        %17 = arith.mulf %3, %16 : f32
        %18 = arith.addf %12, %17 : f32
        %19 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %18 : f32
        } repair {
        }
        %20 = arith.subf %18, %19 : f32
        %21 = math.exp %20 : f32
        %22 = onf.acc add "add" carries [] in [] refs(%19) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %21 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %25 = arith.subf %arg0, %arg1 : f32
          %26 = math.exp %25 : f32
          onf.yield %26 : f32
        }
        %23 = onf.acc add "O" carries ["k"] in ["128"] rounds bf16 refs(%19) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %25 = onf.load %V[%b, %h, %m, %k] : <[B, H, M, 128], bf16> -> bf16
          %26 = arith.extf %25 : bf16 to f32
          %27 = arith.mulf %21, %26 : f32
          onf.yield %27 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %25 = arith.subf %arg0, %arg1 : f32
          %26 = math.exp %25 : f32
          onf.yield %26 : f32
        }
        %24 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %19, %22, %23, %24 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %7 = arith.cmpf oeq, %6#0, %cst : f32
      %8 = arith.andi %6#3, %7 : i1
      %cst_0 = arith.constant 0x7FC00000 : f32
      %9 = arith.select %8, %cst_0, %6#1 : f32
      %cst_1 = arith.constant 0.000000e+00 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %10 = onf.at %6#2[%k] : <[128], f32> -> f32
        %11 = arith.select %8, %cst_0, %10 : f32
        %12 = arith.divf %11, %9 : f32
        %13 = arith.select %6#3, %12, %cst_1 : f32
        onf.store %13, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

