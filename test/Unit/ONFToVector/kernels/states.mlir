// sizes: B=2 N=37 M=70; B=1 N=5 M=0
// tolerance: 2e-6
// Every monoid and element type of states, a guard that is the same for all rows,
// a state that adds its repair.
onf.kernel @states attributes {arg_names = ["x", "len", "keep"], requires = [], result_names = ["sum", "prod", "most", "least", "all", "some", "count", "last", "spread"], result_types = [!moa.array<[B, N], f32>, !moa.array<[B, N], f32>, !moa.array<[B, N], f32>, !moa.array<[B, N], f32>, !moa.array<[B, N], i1>, !moa.array<[B, N], i1>, !moa.array<[B, N], i32>, !moa.array<[B, N], i32>, !moa.array<[B, N], f32>], symbols = ["B", "N", "M"]} {
^bb0(%x: !moa.array<[B, N, M], f32>, %len: !moa.array<[], i32>, %keep: !moa.array<[N, M], i1>, %o0: !moa.array<[B, N], f32>, %o1: !moa.array<[B, N], f32>, %o2: !moa.array<[B, N], f32>, %o3: !moa.array<[B, N], f32>, %o4: !moa.array<[B, N], i1>, %o5: !moa.array<[B, N], i1>, %o6: !moa.array<[B, N], i32>, %o7: !moa.array<[B, N], i32>, %o8: !moa.array<[B, N], f32>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.load %len[] : !moa.array<[], i32> -> i32
    %ni = arith.index_cast %n : i32 to index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f32
    %r:9 = onf.fold "j" in "M" : f32, f32, f32, f32, i1, i1, index, index, f32 {
    ^bb0(%j: index):
      %p = arith.cmpi slt, %j, %ni : index
      onf.guard %p
      %v = onf.load %x[%b, %i, %j] : !moa.array<[B, N, M], f32> -> f32
      %k = onf.load %keep[%i, %j] : !moa.array<[N, M], i1> -> i1
      %near = arith.divf %v, %v : f32
      %a0 = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %v : f32 } repair {}
      %a1 = onf.acc mul "p" carries [] in [] refs() mul [] : () -> f32 { onf.yield %near : f32 } repair {}
      %a2 = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 { onf.yield %v : f32 } repair {}
      %a3 = onf.acc min "n" carries [] in [] refs() mul [] : () -> f32 { onf.yield %v : f32 } repair {}
      %a4 = onf.acc and "a" carries [] in [] refs() mul [] : () -> i1 { onf.yield %k : i1 } repair {}
      %a5 = onf.acc or "o" carries [] in [] refs() mul [] : () -> i1 { onf.yield %k : i1 } repair {}
      %a6 = onf.acc add "c" carries [] in [] refs() mul [] : () -> index { onf.yield %c1 : index } repair {}
      %jk = arith.select %k, %j, %c1 : index
      %a7 = onf.acc max "l" carries [] in [] refs() mul [] : () -> index { onf.yield %jk : index } repair {}
      %d = arith.subf %a2, %v : f32
      %a8 = onf.acc max "w" carries [] in [] refs(%a2) add [0xFF800000 : f32] : (f32) -> f32 { onf.yield %d : f32 } repair {
      ^bb0(%old: f32, %new: f32):
        %diff = arith.subf %new, %old : f32
        onf.yield %diff : f32
      }
      onf.yield %a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8 : f32, f32, f32, f32, i1, i1, index, index, f32
    }
    %zero = arith.constant 0 : index
    %empty = arith.cmpi eq, %r#6, %zero : index
    %lastj = arith.select %empty, %zero, %r#7 : index
    %count = arith.index_cast %r#6 : index to i32
    %last = arith.index_cast %lastj : index to i32
    onf.store %r#0, %o0[%b, %i] : f32, !moa.array<[B, N], f32>
    onf.store %r#1, %o1[%b, %i] : f32, !moa.array<[B, N], f32>
    onf.store %r#2, %o2[%b, %i] : f32, !moa.array<[B, N], f32>
    onf.store %r#3, %o3[%b, %i] : f32, !moa.array<[B, N], f32>
    onf.store %r#4, %o4[%b, %i] : i1, !moa.array<[B, N], i1>
    onf.store %r#5, %o5[%b, %i] : i1, !moa.array<[B, N], i1>
    onf.store %count, %o6[%b, %i] : i32, !moa.array<[B, N], i32>
    onf.store %last, %o7[%b, %i] : i32, !moa.array<[B, N], i32>
    onf.store %r#8, %o8[%b, %i] : f32, !moa.array<[B, N], f32>
  }
}
