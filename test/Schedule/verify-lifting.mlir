// RUN: moa-opt %s --onf-verify-lifting --split-input-file --verify-diagnostics

// A right lifting, with three factors on the lane axis.
onf.kernel @good attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>, #onf.axis<core: 0, register: 3, register: 2, lane: 16>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
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
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
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
    onf.store %c, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// Parts of the first fold are made before anything else of the row; a second one has none.
onf.kernel @second_fold_over_cores attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %p = onf.fold "j" in "N" lift <core: 0, sequential: 4, cache: 8> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "p" carries [] in [] refs() mul [] : () -> f32 { onf.yield %c : f32 } repair {}
      onf.yield %a : f32
    }
    // expected-error @+1 {{expects parts over cores in the first fold of a nest for a CPU only (C7)}}
    %o = onf.fold "j" in "N" lift <core: 0, sequential: 4, cache: 8> : f32 {
    ^bb0(%j: index):
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 { onf.yield %p : f32 } repair {}
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_not_sequential attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @+1 {{expects the factor sequential outermost, or core (C2)}}
    %o = onf.fold "j" in "N" lift <cache: 0, sequential: 8> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// Bound to a GPU.
onf.kernel @threads attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>, #onf.axis<block: 0, thread: 128>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @half_a_warp attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  // expected-error @+1 {{expects threads, or warpgroups of warp: 4, register: 2, lane: 8 in a block (C5), but got #onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 4>}}
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>, #onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 4>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
  }
}

// -----

// Only lanes process rows in sequence.
onf.kernel @rows_in_sequence attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  // expected-error @+1 {{expects threads, or warpgroups of warp: 4, register: 2, lane: 8 in a block (C5), but got #onf.axis<block: 0, sequential: 2>}}
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, sequential: 2>] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @two_machines attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  // expected-error @+1 {{expects the same outermost factor on every axis (C2), but axis 'i' has #onf.axis<block: 0, thread: 128>}}
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<core: 0>, #onf.axis<block: 0, thread: 128>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @no_pipeline attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  // expected-error @+1 {{expects a pipeline if and only if the nest has warpgroups (C6)}}
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>, #onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>] {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @only_a_pipeline attributes {symbols = ["H", "N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%O: !moa.array<[H, N], f32>):
  // expected-error @+1 {{expects a pipeline if and only if the nest has warpgroups (C6)}}
  onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>, #onf.axis<block: 0, thread: 64>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%h: index, %i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %O[%h, %i] : f32, !moa.array<[H, N], f32>
  }
}

// -----

onf.kernel @staged attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%i: index):
    %o = onf.fold "j" in "N" lift <sequential: 0, stage: 2, shared: 128> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @not_staged attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%i: index):
    // expected-error @+1 {{expects tiles in shared memory where the nest has a pipeline and nowhere else (C6)}}
    %o = onf.fold "j" in "N" lift <sequential: 0> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @staged_threads attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N], f32>]} {
^bb0(%O: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0, thread: 128>] {
  ^bb0(%i: index):
    // expected-error @+1 {{expects tiles in shared memory where the nest has a pipeline and nowhere else (C6)}}
    %o = onf.fold "j" in "N" lift <sequential: 0, stage: 2, shared: 128> : f32 {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %o, %O[%i] : f32, !moa.array<[N], f32>
  }
}
