// RUN: moa-opt %s --onf-lift=machine=zen4 --onf-verify-lifting | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: moa-opt %s --onf-lift=machine=avx2 --onf-verify-lifting | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: moa-opt %s --onf-lift=machine=zen4 | moa-opt --verify-roundtrip | FileCheck %s --check-prefixes=CHECK,WIDE

// The schedule as data: printed, edited, fed back.
// RUN: moa-opt %s --onf-lift="machine=zen4 print=true" -o %t.mlir > %t.json
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// RUN: moa-opt %s --onf-lift="machine=zen4 ranges=false" | FileCheck %s --check-prefix=WHOLE
// RUN: sed -e 's/"register": 18/"register": 2/' -e 's/"core": 0, "sequential": 22, "cache": 96/"sequential": 0, "cache": 32/' %t.json > %t2.json
// RUN: moa-opt %s --onf-lift="machine=zen4 schedule=%t2.json" | FileCheck %s --check-prefix=EDITED

// JSON: "kernel": "weighted"
// JSON-NEXT: "machine": "zen4"
// JSON: { "name": "h", "core": 0 },
// JSON-NEXT: { "name": "i", "core": 0, "register": 18, "lane": 16 }
// JSON: { "name": "j", "core": 0, "sequential": 22, "cache": 96 }

// CHECK-LABEL: @weighted
// WIDE: onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 18, lane: 16>]
// WIDE: onf.fold "j" in "M" lift <core: 0, sequential: 22, cache: 96>
// WHOLE: onf.fold "j" in "M" lift <sequential: 0, cache: 96>
// NARROW: lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: {{[0-9]+}}, lane: 8>]
// EDITED: lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 2, lane: 16>]
// EDITED: onf.fold "j" in "M" lift <sequential: 0, cache: 32>
// CHECK: onf.fold "k" in "128" : f32
// CHECK: onf.for ["d"] in ["128"] {
// The second nest has no fold and three rows: the tile shrinks.
// WIDE: onf.for ["r"] in ["3"] lift [#onf.axis<core: 0, register: 1, lane: 4>]
// The third has no index.
// CHECK: onf.for [] in [] lift []
onf.kernel @weighted attributes {symbols = ["H", "N", "M"], requires = [], arg_names = ["Q", "V"],
    result_names = ["O", "T", "U"],
    result_types = [!moa.array<[H, N, 128], f32>, !moa.array<[3], f32>, !moa.array<[], f32>]} {
^bb0(%Q: !moa.array<[H, N, 128], f32>, %V: !moa.array<[M, 128], f32>,
     %O: !moa.array<[H, N, 128], f32>, %T: !moa.array<[3], f32>, %U: !moa.array<[], f32>):
  onf.for ["h", "i"] in ["H", "N"] {
  ^bb0(%h: index, %i: index):
    %o = onf.fold "j" in "M" : !moa.array<[128], f32> {
    ^bb0(%j: index):
      %s = onf.fold "k" in "128" : f32 {
      ^bb0(%k: index):
        %q = onf.load %Q[%h, %i, %k] : !moa.array<[H, N, 128], f32> -> f32
        %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %q : f32
        } repair {
        }
        onf.yield %a : f32
      }
      %a = onf.acc add "o" carries ["d"] in ["128"] refs() mul [] : () -> !moa.array<[128], f32> {
      ^bb0(%d: index):
        %v = onf.load %V[%j, %d] : !moa.array<[M, 128], f32> -> f32
        %p = arith.mulf %s, %v : f32
        onf.yield %p : f32
      } repair {
      }
      onf.yield %a : !moa.array<[128], f32>
    }
    onf.for ["d"] in ["128"] {
    ^bb0(%d: index):
      %x = onf.at %o[%d] : !moa.array<[128], f32> -> f32
      onf.store %x, %O[%h, %i, %d] : f32, !moa.array<[H, N, 128], f32>
    }
  }
  onf.for ["r"] in ["3"] {
  ^bb0(%r: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %T[%r] : f32, !moa.array<[3], f32>
  }
  onf.for [] in [] {
    %c = arith.constant 1.0 : f32
    onf.store %c, %U[] : f32, !moa.array<[], f32>
  }
}
