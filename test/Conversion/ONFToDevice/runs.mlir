// RUN: moa-opt %s --onf-find-forms --onf-lift-gpu --convert-onf-to-device --device-verify | FileCheck %s
// Hosts launch a kernel where its nest says that it is of use, whether an array chooses it or not.
// CHECK: device.kernel @copy_0 blocks "{{.*}}" threads {{[0-9]+}} attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
// CHECK-NOT: moa.chosen
module {
  onf.kernel @copy attributes {arg_names = ["S"], requires = [], result_names = ["O"], result_types = [!moa.array<[M, 64], f32>], symbols = ["M"], temporary_names = [], temporary_types = []} {
  ^bb0(%S: !moa.array<[M, 64], f32>, %O: !moa.array<[M, 64], f32>):
    onf.for ["i"] in ["M"] attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%i: index):
      onf.for ["k"] in ["64"] {
      ^bb0(%k: index):
        %0 = onf.load %S[%i, %k] : <[M, 64], f32> -> f32
        onf.store %0, %O[%i, %k] : f32, <[M, 64], f32>
      }
    }
  }
}
