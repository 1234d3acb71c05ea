// RUN: moa-opt %s --onf-verify-lifting --split-input-file --verify-diagnostics

// A right lifting, with three factors on the lane axis.
onf.kernel @good attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 3, register: 2, lane: 16>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] times ["O.s0", "O.s1"] plus "0" : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @tile_elsewhere attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  // expected-error @+1 {{expects tiles on the last axis only (C3), but axis 'h' has a tile of 4}}
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0, register: 4>, #onf.axis<core: 0, lane: 16>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] times ["O.s0", "O.s1"] plus "0" : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @not_a_core attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  // expected-error @+1 {{expects the factor core outermost on axis 'i', or block (C2)}}
  onf.for ["i"] in ["N"] lift [#onf.axis<sequential: 0, lane: 16>] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%i] times ["O.s0"] plus "0" : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_not_sequential attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @+1 {{expects the factor sequential outermost (C2)}}
    %o = onf.fold "j" in "N" lift <core: 0, cache: 8> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] times ["O.s0"] plus "0" : f32, !moa.array<[N], f32>
  }
}
