// RUN: moa-opt %s -verify-roundtrip | FileCheck %s

// An expression is an attribute in canonical form. Ops and types print only its text.

// CHECK: moa.kernel @forms attributes {arg_names = ["x"], lengths = [#moa.expr<"M - N">, #moa.expr<"2*N">],
// CHECK: ^bb0(%x: !moa.array<[N, "M + N", 128], f32>):
moa.kernel @forms attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["a", "b"],
    result_types = [!moa.array<[], index>, !moa.array<[N, 2, 128], f32>],
    lengths = [#moa.expr<"-N + M">, #moa.expr<"N + (N)">]} {
^bb0(%x: !moa.array<[N, "N + M", "128"], f32>):
  // CHECK-NEXT: moa.extent "M - N" ->
  %a = moa.extent "-N + M" -> <[], index>
  // CHECK-NEXT: moa.slice %x axis 1 start "N/2" count "2" :
  %b = moa.slice %x axis 1 start "(N)/2" count "3 - 1" : <[N, "M + N", 128], f32> -> <[N, 2, 128], f32>
  moa.return %a, %b : !moa.array<[], index>, !moa.array<[N, 2, 128], f32>
}
