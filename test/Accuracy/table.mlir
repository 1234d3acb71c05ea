// RUN: moa-opt %s --onf-adapt-precision=table='k.y=1,0,1' --onf-verify | FileCheck %s
// RUN: moa-opt %s --onf-adapt-precision=table='k.y=' --onf-verify | FileCheck %s --check-prefix=ZERO
// RUN: moa-opt %s --onf-adapt-precision='table=k.y=1 check=1' --onf-verify | FileCheck %s --check-prefix=BOTH
// RUN: not moa-opt %s --onf-adapt-precision=table='k.y=0,2' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: moa-opt %s --onf-adapt-precision=table='other.y=7' --onf-verify | FileCheck %s --check-prefix=OTHER

// Plans that are given: no sample is taken, and indices behind the end of the table have plan 0.
// CHECK-NOT: _sample
// CHECK: onf.for ["h"] in ["H"] attributes {moa.short} {
// CHECK-COUNT-3: arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: onf.store %{{.*}}, %y_choice[%h]

// Nor with an empty list: all have plan 0.
// ZERO-NOT: _sample
// ZERO: onf.store %{{.*}}, %y_choice[%h]

// With a check the sample decides, from the plan of the table on.
// BOTH: %y_sample1
// BOTH: arith.cmpi sge, %{{.*}}, %{{.*}} : index
// BOTH: onf.store %{{.*}}, %y_choice[%h]

// NONE: error: there is no plan '2' for 'y'; there are 0 to 1
// A table for another kernel says nothing of this one.
// OTHER: %y_sample1
onf.kernel @k attributes {symbols = ["H", "N", "M"], requires = [], arg_names = ["q", "k"], result_names = ["y"],
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
      %x = onf.acc max "x" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %s : f32
      } repair {
      }
      onf.yield %x : f32
    }
    onf.store %r, %y[%h, %n] : f32, <[H, N], f32>
  }
}
