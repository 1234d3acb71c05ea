// RUN: moa-opt %s -verify-diagnostics -split-input-file

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#half = #device.layout<[register: 4 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 8, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[32, 64], bf16, #half>
    // expected-error @below {{expects extents that agree (C1), but got 64 x 64 by 32 x 64 into 64 x 64}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[32, 64], bf16, #half> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @contract_fragments_c1_rank attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64], bf16, #row>
    // expected-error @below {{expects fragments of rows and columns (C1), but got }}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64], bf16, #row> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c2_a attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects tiles of 16 by 16 in a, as mma.sync m16n8k16 has them (C2)}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #column>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c2_b attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    // expected-error @below {{expects tiles of 16 by 8 in b, as mma.sync m16n8k16 has them (C2)}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #acc> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c2_result attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects tiles of 16 by 8 in the result, as mma.sync m16n8k16 has them (C2)}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #column>
  }
}

// -----

// Neighbours must be one pair of registers.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#split = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 2]>
device.program @contract_fragments_c2_pairs attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #split>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects tiles of 16 by 16 in a, as mma.sync m16n8k16 has them (C2)}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #split>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#other = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 2]>
device.program @contract_fragments_c2_c attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    %c = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #other>
    // expected-error @below {{expects c of the result's type (C2), but got}}
    %r = device.contract_fragments %a by %b plus %c : !device.fragment<[64, 64], f32, #other> : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects f16 or bf16 into f32, or f64 into f64 (C3), but got 'f32' by 'bf16' into 'f32'}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], f32, #acc>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @contract_fragments_c3_result attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects f16 or bf16 into f32, or f64 into f64 (C3), but got 'bf16' by 'bf16' into 'bf16'}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], bf16, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#apart = #device.layout<[warp: 2 by 2, register: 2 by 16, register: 2 by 2, lane: 8 by 4], [warp: 2 by 1, register: 4 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_fragments_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects every warp's parts of a, b and the result to agree (C4), but warp 1 holds rows from 16 of a, and in the result from 0}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #apart>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#depth = #device.layout<[register: 4 by 8, register: 2 by 2, lane: 8 by 4], [warp: 4 by 1, register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#same = #device.layout<[register: 4 by 32, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1] replicas [warp: 4 by 1]>
device.program @contract_fragments_c4_k attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #depth>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #column>
    // expected-error @below {{expects every warp's parts of a, b and the result to agree (C4), but warp 1 holds k from 16 only}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #depth>, !device.fragment<[64, 64], bf16, #column> -> !device.fragment<[64, 64], f32, #same>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#spread = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 2 by 16, warp: 4 by 1, lane: 8 by 4]>
device.program @contract_fragments_c4_columns attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    %b = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #spread>
    // expected-error @below {{expects every warp's parts of a, b and the result to agree (C4), but warp 1 holds columns from 8 of b, and in the result from 0}}
    %r = device.contract_fragments %a by %b : !device.fragment<[64, 64], bf16, #acc>, !device.fragment<[64, 64], bf16, #spread> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @load_fragment_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    // expected-error @below {{expects the ring's element type 'bf16' (C1), but got 'f16'}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 : !device.ring<1, [64, 64], bf16> -> !device.fragment<[64, 64], f16, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @load_fragment_c1_integers attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], i16>
    // expected-error @below {{expects floats (C1), but got 'i16'}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 : !device.ring<1, [64, 64], i16> -> !device.fragment<[64, 64], i16, #acc>
  }
}

// -----

#long = #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 32 by 1]>
device.program @load_fragment_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    // expected-error @below {{expects lanes that hold two neighbours each of every 8 x 8 elements (C2), but got}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 : !device.ring<1, [64, 64], bf16> -> !device.fragment<[64, 64], bf16, #long>
  }
}

// -----

#split = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 2]>
device.program @load_fragment_c2_pairs attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    // expected-error @below {{expects lanes that hold two neighbours each of every 8 x 8 elements (C2), but got}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 : !device.ring<1, [64, 64], bf16> -> !device.fragment<[64, 64], bf16, #split>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @load_fragment_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [32, 64], bf16>
    // expected-error @below {{expects no more rows and columns than the tile has (C3), but got 64 x 64 of 32 x 64}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 : !device.ring<1, [32, 64], bf16> -> !device.fragment<[64, 64], bf16, #acc>
  }
}

// -----

#tall = #device.layout<[register: 16 by 2, lane: 4 by 1, register: 2 by 1], [register: 4 by 32, lane: 8 by 4] replicas [warp: 4 by 1]>
device.program @load_fragment_c3_transposed attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    // expected-error @below {{expects no more rows and columns than the tile has (C3), but got 32 x 128 of 64 x 64}}
    %f = device.load_fragment %ring[%c0] at %c0, %c0 transposed : !device.ring<1, [64, 64], bf16> -> !device.fragment<[128, 32], bf16, #tall>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @convert_layout_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    // expected-error @below {{expects one shape and element type (C1), but got}}
    %r = device.convert_layout %a : !device.fragment<[64, 64], bf16, #acc> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#same = #device.layout<[register: 4 by 32, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1] replicas [warp: 4 by 1]>
device.program @convert_layout_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects every warp to keep its elements (C2), but element [16, 0] of warp 0 stands in warp 1; bind the same digits to warps in both layouts}}
    %r = device.convert_layout %a : !device.fragment<[64, 64], f32, #acc> -> !device.fragment<[64, 64], f32, #same>
  }
}

// -----

// Pairs are of what a map takes, not of what it computes.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_c4_value attributes {symbols = ["N"], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[N, 64], f32>]} {
^bb0(%t: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "1" threads 128 {
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    device.map(%a) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      %y = arith.addf %x, %x : f32
      // expected-error @below {{expects pairs in the workspace, of an f32 fragment with neighbours in two registers of a thread, in a map that only stores pairs (C4)}}
      device.store %y, %t[%j] pairs : f32, !moa.array<[N, 64], f32>
      device.yield
    }
  }
}

// -----

// Of a layout with neighbours in two lanes, pairs are in no thread.
#lanes = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, register: 2 by 1, lane: 4 by 1]>
device.program @store_c4_layout attributes {symbols = ["N"], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[N, 64], f32>]} {
^bb0(%t: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "1" threads 128 {
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #lanes>
    device.map(%a) over #lanes : (!device.fragment<[64, 64], f32, #lanes>) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      // expected-error @below {{expects pairs in the workspace, of an f32 fragment with neighbours in two registers of a thread, in a map that only stores pairs (C4)}}
      device.store %x, %t[%j] pairs : f32, !moa.array<[N, 64], f32>
      device.yield
    }
  }
}

// -----

// An output may begin anywhere.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_c4_output attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "1" threads 128 {
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    device.map(%a) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      // expected-error @below {{expects pairs in the workspace, of an f32 fragment with neighbours in two registers of a thread, in a map that only stores pairs (C4)}}
      device.store %x, %y[%j] pairs : f32, !moa.array<[N, 64], f32>
      device.yield
    }
  }
}

// -----

// A target goes over the map in steps of two registers, so that it has nothing else to do.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_c4_others attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[N, 64], f32>]} {
^bb0(%y: !moa.array<[N, 64], f32>, %t: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "1" threads 128 {
    %w = arith.constant 1.0 : f32
    %a = device.fill %w : f32 -> !device.fragment<[64, 64], f32, #acc>
    device.map(%a) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      // expected-error @below {{in a map that only stores pairs (C4)}}
      device.store %x, %t[%j] pairs : f32, !moa.array<[N, 64], f32>
      device.store %x, %y[%j] : f32, !moa.array<[N, 64], f32>
      device.yield
    }
  }
}
