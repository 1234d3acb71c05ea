// RUN: moa-opt %s -verify-roundtrip | FileCheck %s
// RUN: not moa-opt %s -dnf-verify 2>&1 | FileCheck %s --check-prefix=CONTRACT

// Monoids of the specification at each level, catenation and joins.

// CHECK: moa.monoid @bits identity 0 : index {
// CHECK: moa.combined %{{.*}} : index
moa.monoid @bits identity 0 : index {
^bb0(%x: index, %y: index):
  %z = arith.ori %x, %y : index
  moa.combined %z : index
}

// CHECK: moa.kernel @whole
// CHECK: moa.cat %{{.*}}, %{{.*}} axis 0 :
// CHECK: moa.reduce user @bits %{{.*}} axis 0 :
moa.kernel @whole attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["r"], result_types = [!moa.array<[], index>]} {
^bb0(%x: !moa.array<[N], index>):
  %z = moa.cat %x, %x axis 0 : (!moa.array<[N], index>, !moa.array<[N], index>) -> !moa.array<["2*N"], index>
  %r = moa.reduce user @bits %z axis 0 : !moa.array<["2*N"], index> -> !moa.array<[], index>
  moa.return %r : !moa.array<[], index>
}

// CHECK: dnf.kernel @scalar
// CHECK: dnf.reduce user @bits over "n" in "N" : index
// CHECK: dnf.join %{{.*}}, %{{.*}}, %{{.*}} : index
// CHECK: dnf.otherwise %{{.*}}, %{{.*}} : index
// CONTRACT: error: 'dnf.join' op expects absence to be resolved (D2)
dnf.kernel @scalar attributes {symbols = ["N"], requires = [], arg_names = ["x", "p"],
    result_names = ["r"], result_types = [!moa.array<[], index>]} {
^bb0(%x: !moa.array<[N], index>, %p: !moa.array<[N], i1>):
  dnf.output 0 over [] in [] -> index {
    %s = dnf.reduce user @bits over "n" in "N" : index {
    ^bb0(%n: index):
      %e = dnf.psi %x[%n] : !moa.array<[N], index> -> index
      %c = dnf.psi %p[%n] : !moa.array<[N], i1> -> i1
      %j = dnf.join %c, %e, %n : index
      %o = dnf.otherwise %j, %n : index
      dnf.yield %o : index
    }
    dnf.yield %s : index
  }
}

// CHECK: onf.kernel @folds
// CHECK: onf.acc user @bits "s" carries
// CHECK: onf.acc min "at" carries [] in [] refs(%{{.*}}) select
onf.kernel @folds attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "k"],
    result_names = ["r", "s"], result_types = [!moa.array<[N], index>, !moa.array<[N], index>]} {
^bb0(%x: !moa.array<[N, M], f32>, %k: !moa.array<[N, M], index>, %r: !moa.array<[N], index>, %s: !moa.array<[N], index>):
  onf.for ["n"] in ["N"] {
  ^bb0(%n: index):
    %f:3 = onf.fold "m" in "M" : index, f32, index {
    ^bb0(%m: index):
      %e = onf.load %x[%n, %m] : !moa.array<[N, M], f32> -> f32
      %i = onf.load %k[%n, %m] : !moa.array<[N, M], index> -> index
      %a = onf.acc user @bits "s" carries [] in [] refs() mul [] : () -> index {
        onf.yield %i : index
      } repair {
      }
      %d = onf.acc max "d" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      %top = arith.cmpf oeq, %e, %d : f32
      %none = arith.constant 9223372036854775807 : index
      %term = arith.select %top, %m, %none : index
      %at = onf.acc min "at" carries [] in [] refs(%d) select [0x7FC00000 : f32] : (f32) -> index {
        onf.yield %term : index
      } repair {
      ^bb0(%old: f32, %new: f32):
        %same = arith.cmpf oeq, %old, %new : f32
        onf.yield %same : i1
      }
      onf.yield %a, %d, %at : index, f32, index
    }
    onf.store %f#2, %r[%n] : index, !moa.array<[N], index>
    onf.store %f#0, %s[%n] : index, !moa.array<[N], index>
  }
}
