// RUN: moa-opt %s --onf-adapt-precision --onf-verify -o %t.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=SAME

// What is stored for other nests is not measured by any tolerance.
// CHECK: remark: computes nothing in fewer bits: 't' is no result, but an array that later nests read
// SAME-NOT: chosen by
onf.kernel @between attributes {symbols = ["H", "N", "M"], requires = [], arg_names = ["q", "k"], result_names = ["y"],
    result_types = [!moa.array<[H, N], f32>], temporary_names = ["t"], temporary_types = [!moa.array<[H, N], f32>], within = [#moa.within<0.01, relative, sampled>]} {
^bb0(%q: !moa.array<[H, N, 32], f32>, %k: !moa.array<[H, M, 32], f32>, %y: !moa.array<[H, N], f32>, %tmp: !moa.array<[H, N], f32>):
  onf.for ["h", "n"] in ["H", "N"] {
  ^bb0(%h: index, %n: index):
    %r = onf.fold "m" in "M" : f32 {
    ^bb0(%m: index):
      %s = onf.fold "d" in "32" : f32 {
      ^bb0(%d: index):
        %a = onf.load %q[%h, %n, %d] : <[H, N, 32], f32> -> f32
        %b = onf.load %k[%h, %m, %d] : <[H, M, 32], f32> -> f32
        %p = arith.mulf %a, %b : f32
        %t = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %p : f32
        } repair {
        }
        onf.yield %t : f32
      }
      %x = onf.acc max "x" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %s : f32
      } repair {
      }
      onf.yield %x : f32
    }
    onf.store %r, %tmp[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] {
  ^bb0(%h: index, %n: index):
    %e = onf.load %tmp[%h, %n] : <[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// Whatever is not known to be continuous.
// CHECK: remark: computes nothing in fewer bits: 'y' is discontinuous in sums of products, by an operation that may not be continuous in the fold over 'm',
onf.kernel @signs attributes {symbols = ["H", "N", "M"], requires = [], arg_names = ["q", "k"], result_names = ["y"],
    result_types = [!moa.array<[H, N], f32>], within = [#moa.within<0.01, relative, sampled>]} {
^bb0(%q: !moa.array<[H, N, 32], f32>, %k: !moa.array<[H, M, 32], f32>, %y: !moa.array<[H, N], f32>):
  onf.for ["h", "n"] in ["H", "N"] {
  ^bb0(%h: index, %n: index):
    %r = onf.fold "m" in "M" : f32 {
    ^bb0(%m: index):
      %s = onf.fold "d" in "32" : f32 {
      ^bb0(%d: index):
        %a = onf.load %q[%h, %n, %d] : <[H, N, 32], f32> -> f32
        %b = onf.load %k[%h, %m, %d] : <[H, M, 32], f32> -> f32
        %p = arith.mulf %a, %b : f32
        %t = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %p : f32
        } repair {
        }
        onf.yield %t : f32
      }
      %one = arith.constant 1.0 : f32
      %sign = math.copysign %one, %s : f32
      %x = onf.acc add "x" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %sign : f32
      } repair {
      }
      onf.yield %x : f32
    }
    onf.store %r, %y[%h, %n] : f32, <[H, N], f32>
  }
}
