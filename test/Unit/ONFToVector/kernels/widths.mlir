// sizes: N=37 M=19; N=1 M=3; N=0 M=4
// tolerance: 5e-4
// Every element type of memory, read and written; the sums of i64 need all bytes.
onf.kernel @widths attributes {arg_names = ["a", "b", "c", "d", "e", "p", "x"], requires = [], result_names = ["s8", "s16", "s32", "s64", "h", "any", "y"], result_types = [!moa.array<[N], i8>, !moa.array<[N], i16>, !moa.array<[N], i32>, !moa.array<[N], i64>, !moa.array<[N, M], f16>, !moa.array<[N], i1>, !moa.array<[N], f32>], symbols = ["N", "M"]} {
^bb0(%a: !moa.array<[N, M], i8>, %b: !moa.array<[N, M], i16>, %c: !moa.array<[N, M], i32>, %d: !moa.array<[N, M], i64>, %e: !moa.array<[N, M], f16>, %p: !moa.array<[N, M], i1>, %x: !moa.array<[N, M], f32>, %s8: !moa.array<[N], i8>, %s16: !moa.array<[N], i16>, %s32: !moa.array<[N], i32>, %s64: !moa.array<[N], i64>, %h: !moa.array<[N, M], f16>, %any: !moa.array<[N], i1>, %y: !moa.array<[N], f32>):
  onf.for ["n"] in ["N"] lift [#onf.axis<core: 0, register: 15, lane: 16>] {
  ^bb0(%n: index):
    %0:6 = onf.fold "m" in "M" lift <sequential: 0, cache: 32> : index, index, index, index, i1, f32 {
    ^bb0(%m: index):
      %2 = onf.load %a[%n, %m] : <[N, M], i8> -> i8
      %3 = arith.index_cast %2 : i8 to index
      %4 = onf.acc max "s8" carries [] in [] refs() mul [] : () -> index {
        onf.yield %3 : index
      } repair {
      }
      %5 = onf.load %b[%n, %m] : <[N, M], i16> -> i16
      %6 = arith.index_cast %5 : i16 to index
      %7 = onf.acc min "s16" carries [] in [] refs() mul [] : () -> index {
        onf.yield %6 : index
      } repair {
      }
      %8 = onf.load %c[%n, %m] : <[N, M], i32> -> i32
      %9 = arith.index_cast %8 : i32 to index
      %10 = onf.acc add "s32" carries [] in [] refs() mul [] : () -> index {
        onf.yield %9 : index
      } repair {
      }
      %11 = onf.load %d[%n, %m] : <[N, M], i64> -> i64
      %12 = arith.index_cast %11 : i64 to index
      %13 = onf.acc add "s64" carries [] in [] refs() mul [] : () -> index {
        onf.yield %12 : index
      } repair {
      }
      %14 = onf.load %p[%n, %m] : <[N, M], i1> -> i1
      %15 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
        onf.yield %14 : i1
      } repair {
      }
      %16 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
      %17 = onf.load %e[%n, %m] : <[N, M], f16> -> f16
      %18 = arith.extf %17 : f16 to f32
      %19 = arith.mulf %16, %18 : f32
      %20 = onf.acc add "y" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %19 : f32
      } repair {
      }
      onf.yield %4, %7, %10, %13, %15, %20 : index, index, index, index, i1, f32
    }
    onf.store %0#0, %s8[%n] : index, <[N], i8>
    onf.store %0#1, %s16[%n] : index, <[N], i16>
    onf.store %0#2, %s32[%n] : index, <[N], i32>
    %c100000000003 = arith.constant 100000000003 : index
    %1 = arith.muli %0#3, %c100000000003 : index
    onf.store %1, %s64[%n] : index, <[N], i64>
    onf.store %0#4, %any[%n] : i1, <[N], i1>
    onf.store %0#5, %y[%n] : f32, <[N], f32>
  }
  onf.for ["n", "m"] in ["N", "M"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 6, lane: 16>] {
  ^bb0(%n: index, %m: index):
    %0 = onf.load %e[%n, %m] : <[N, M], f16> -> f16
    %1 = arith.extf %0 : f16 to f32
    %2 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
    %3 = arith.mulf %1, %2 : f32
    onf.store %3, %h[%n, %m] : f32, <[N, M], f16>
  }
}
