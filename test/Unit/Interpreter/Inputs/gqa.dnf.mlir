module {
  dnf.kernel @gqa attributes {arg_names = ["Q", "K", "V", "scale"], requires = ["H%G == 0"], result_names = ["O", "lse"], result_types = [!moa.array<[B, H, N, D], bf16>, !moa.array<[B, H, N], f32>], symbols = ["B", "H", "G", "N", "M", "D"]} {
  ^bb0(%Q: !moa.array<[B, H, N, D], bf16>, %K: !moa.array<[B, G, M, D], bf16>, %V: !moa.array<[B, G, M, D], bf16>, %scale: !moa.array<[], f32>):
    dnf.let @mask over ["b", "h", "n", "m"] in ["B", "H", "N", "M"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index, %m: index):
      %0 = dnf.reduce add over "d" in "D" : f32 {
      ^bb0(%d: index):
        %3 = dnf.psi %Q[%b, %h, %n, %d] : <[B, H, N, D], bf16> -> bf16
        %4 = arith.extf %3 : bf16 to f32
        %5 = dnf.extent "H/G"
        %6 = arith.floordivsi %h, %5 : index
        %7 = dnf.psi %K[%b, %6, %m, %d] : <[B, G, M, D], bf16> -> bf16
        %8 = arith.extf %7 : bf16 to f32
        %9 = arith.mulf %4, %8 : f32
        dnf.yield %9 : f32
      }
      %1 = dnf.psi %scale[] : <[], f32> -> f32
      %2 = arith.mulf %0, %1 : f32
      dnf.yield %2 : f32
    }
    dnf.let @max over ["b", "h", "n"] in ["B", "H", "N"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = dnf.reduce max over "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = dnf.apply @mask(%b, %h, %n, %m) : f32
        %2 = dnf.extent "M - N"
        %3 = arith.addi %n, %2 : index
        %4 = arith.cmpi sle, %m, %3 : index
        dnf.yield %1 if %4 : f32
      }
      dnf.yield %0 : f32
    }
    dnf.let @exp over ["b", "h", "n", "m"] in ["B", "H", "N", "M"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index, %m: index):
      %0 = dnf.apply @mask(%b, %h, %n, %m) : f32
      %1 = dnf.apply @max(%b, %h, %n) : f32
      %2 = arith.subf %0, %1 : f32
      %3 = math.exp %2 : f32
      dnf.yield %3 : f32
    }
    dnf.let @add over ["b", "h", "n"] in ["B", "H", "N"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = dnf.reduce add over "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = dnf.apply @exp(%b, %h, %n, %m) : f32
        %2 = dnf.extent "M - N"
        %3 = arith.addi %n, %2 : index
        %4 = arith.cmpi sle, %m, %3 : index
        dnf.yield %1 if %4 : f32
      }
      dnf.yield %0 : f32
    }
    dnf.output 0 over ["b", "h", "n", "d"] in ["B", "H", "N", "D"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index, %d: index):
      %0 = dnf.reduce add over "m" in "M" rounds bf16 : f32 {
      ^bb0(%m: index):
        %1 = dnf.apply @exp(%b, %h, %n, %m) : f32
        %2 = dnf.extent "M - N"
        %3 = arith.addi %n, %2 : index
        %4 = arith.cmpi sle, %m, %3 : index
        %5 = dnf.apply @add(%b, %h, %n) : f32
        %6 = arith.divf %1, %5 : f32
        %7 = dnf.extent "H/G"
        %8 = arith.floordivsi %h, %7 : index
        %9 = dnf.psi %V[%b, %8, %m, %d] : <[B, G, M, D], bf16> -> bf16
        %10 = arith.extf %9 : bf16 to f32
        %11 = arith.mulf %6, %10 : f32
        dnf.yield %11 if %4 : f32
      }
      dnf.yield %0 : f32
    }
    dnf.output 1 over ["b", "h", "n"] in ["B", "H", "N"] -> f32 {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = dnf.apply @max(%b, %h, %n) : f32
      %1 = dnf.apply @add(%b, %h, %n) : f32
      %2 = math.log %1 : f32
      %3 = arith.addf %0, %2 : f32
      dnf.yield %3 : f32
    }
  }
}

