// RUN: moa-opt %s -verify-diagnostics -split-input-file -allow-unregistered-dialect

// What moves tiles between registers, shared memory and arrays, one violation each.

device.program @scalar_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %own = "test.array"() : () -> !moa.array<[], f32>
    // expected-error @below {{'device.scalar' op expects a parameter of the program (C1)}}
    %s = device.scalar %own : !moa.array<[], f32> -> f32
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @clear_unseen_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %seen = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error-re @below {{expects booleans for up to 128 rows of the ring, or 128 interleaved columns of 8 bits (C1), but got {{.*}}f32{{.*}} for 64 rows}}
    device.clear_unseen %ring[%c0] unless %seen : !device.ring<1, [64, 64], bf16>, !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c1 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects 64 rows of the output's and the ring's type (C1), but got '!device.fragment<[64, 64], f32, <}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0] rows 0 : !device.fragment<[64, 64], f32, #acc>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c2 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 128], bf16>]} {
^bb0(%y: !moa.array<[N, 128], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : bf16 -> !device.fragment<[64, 128], bf16, #wide>
    // expected-error @below {{expects no more columns than the ring has (C2), but got 128 and 64}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0] rows 0 : !device.fragment<[64, 128], bf16, #wide>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 128], bf16>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @store_tile_c3 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %f = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
    // expected-error @below {{expects coordinates of all axes but the last (C3), but got 2 for rank 2}}
    device.store_tile %f through %ring[%c0] from %c0 to %y[%c0, %c0] rows 0 : !device.fragment<[64, 64], bf16, #acc>, !device.ring<1, [64, 64], bf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @any_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects a fragment of booleans (C1), but got '!device.fragment<[64, 64], f32, <}}
    %p = device.any %f : !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @reduce_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects a named monoid (C4)}}
    %r = device.reduce user %f : !device.fragment<[64, 64], f32, #acc> -> !device.fragment<[64], f32, #row>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c3_of_integers attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [64, 128], i8>
    %b = device.shared : !device.ring<1, [64, 128], i8>
    // expected-error @below {{expects a and b of one type and a result of i32 (C3), but got 'i8' by 'i8' into 'f32'}}
    %s = device.contract %a rows %c0 by %b[%c0] transposed : !device.ring<1, [64, 128], i8>, !device.ring<1, [64, 128], i8> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c4_by_rows attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [64, 128], i8>
    %b = device.shared : !device.ring<1, [128, 128], i8>
    // expected-error @below {{expects b of 8 bits transposed, and a fragment a of floats with a multiple of 32 columns (C4), but got '!device.ring<1, [64, 128], i8>' by rows of b}}
    %s = device.contract %a rows %c0 by %b[%c0] : !device.ring<1, [64, 128], i8>, !device.ring<1, [128, 128], i8> -> !device.fragment<[64, 128], i32, #wide>
  }
}

// -----

#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c4_of_registers attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %v = arith.constant 1 : i8
    %a = device.fill %v : i8 -> !device.fragment<[64, 128], i8, #wide>
    %b = device.shared : !device.ring<1, [128, 128], i8>
    // expected-error @below {{expects b of 8 bits transposed, and a fragment a of floats with a multiple of 32 columns (C4), but got '!device.fragment<[64, 128], i8,}}
    %s = device.contract %a by %b[%c0] transposed : !device.fragment<[64, 128], i8, #wide>, !device.ring<1, [128, 128], i8> -> !device.fragment<[64, 128], i32, #wide>
  }
}

// -----

#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c5 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [64, 128], i8>
    %b = device.shared : !device.ring<1, [128, 128], i8>
    // expected-error @below {{expects a depth in rings of a multiple of 32 up to 128 (C5), but got 48}}
    %s = device.contract %a rows %c0 by %b[%c0] transposed depth 48 : !device.ring<1, [64, 128], i8>, !device.ring<1, [128, 128], i8> -> !device.fragment<[64, 128], i32, #wide>
  }
}

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
!acc = !device.fragment<[64, 64], f32, #acc>
device.program @contract_c6 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.shared : !device.ring<1, [64, 64], bf16>
    %s = device.contract %a rows %c0 by %b[%c0] transposed : !device.ring<1, [64, 64], bf16>, !device.ring<1, [64, 64], bf16> -> !acc
    // expected-error @below {{expects that nothing else reads the sum of another contraction that it continues (C6)}}
    %t = device.contract %a rows %c0 by %b[%c0] transposed plus %s : !acc : !device.ring<1, [64, 64], bf16>, !device.ring<1, [64, 64], bf16> -> !acc
    %u = device.await %s pending 1 : !acc
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @clear_interleaved attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 256 {
    device.specialize consumers 1 registers 240 {
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %seen = device.fill %true : i1 -> !device.fragment<[64, 64], i1, #acc>
      %b = device.shared : !device.ring<1, [64, 64], bf16>
      // expected-error-re @below {{expects booleans for up to 128 rows of the ring, or 128 interleaved columns of 8 bits (C1), but got {{.*}} for 64 columns}}
      device.clear_unseen %b[%c0] interleaved unless %seen : !device.ring<1, [64, 64], bf16>, !device.fragment<[64, 64], i1, #acc>
    } producer registers 24 {
    }
  }
}

// -----

// expected-error @below {{expects rows and a multiple of 128 columns (C1)}}
"test.ring"() : () -> !device.ring<1, [64, 64], i8>

// -----

// expected-error @below {{expects elements of 16 bits, i8 or f8E4M3FN (C3), but got 'i32'}}
"test.ring"() : () -> !device.ring<1, [64, 64], i32>

// -----

device.program @copy_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects a count of rows that is a multiple of 8 and divides 64 (C4), but got 24}}
    device.copy %x[%c0] rows 0 to %ring[%c0] first %c0 count 24 signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_rows_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 256 {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 128>
    device.specialize consumers 1 registers 208 {
    } producer together registers 40 {
      // expected-error @below {{expects columns in multiples of 8, up to 64 (C3), but got 60}}
      device.copy_rows %x columns 60 to %ring[%c0] signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 128> {
      ^bb0(%r: index):
        device.yield %r, %true : index, i1
      }
    }
  }
}

// -----

device.program @copy_rows_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 256 {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 128>
    device.specialize consumers 1 registers 208 {
    } producer registers 40 {
      // expected-error @below {{expects a producer that works together (C4)}}
      device.copy_rows %x columns 64 to %ring[%c0] signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 128> {
      ^bb0(%r: index):
        device.yield %r, %true : index, i1
      }
    }
  }
}

// -----

device.program @copy_rows_c5 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 256 {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 1>
    device.specialize consumers 1 registers 208 {
    } producer together registers 40 {
      // expected-error @below {{expects barriers of 128 arrivals (C5), but got 1}}
      device.copy_rows %x columns 64 to %ring[%c0] signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1> {
      ^bb0(%r: index):
        device.yield %r, %true : index, i1
      }
    }
  }
}

// -----

device.program @copy_rows_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "1" threads 256 {
    %c0 = arith.constant 0 : index
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 128>
    device.specialize consumers 1 registers 208 {
    } producer together registers 40 {
      // expected-error @below {{expects a body from one index to an index and a boolean (C2)}}
      device.copy_rows %x columns 64 to %ring[%c0] signals %full[%c0] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 128> {
      ^bb0(%r: index):
        device.yield %r : index
      }
    }
  }
}

// -----

device.program @kernel_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  // expected-error @below {{expects a cluster of 2, 4 or 8 blocks (C3), but got 3}}
  device.kernel @k blocks "3" threads 128 cluster 3 {
  }
}

// -----

device.program @sync_cluster_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "2" threads 128 cluster 2 {
    // expected-error @below {{expects to stand in a consumer of a kernel with clusters (C1)}}
    device.sync_cluster
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @publish_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "2" threads 256 cluster 2 {
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    device.specialize consumers 1 registers 208 {
      %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
      // expected-error @below {{expects a place at whole 16 bytes with room in the ring's 8192 bytes (C3), but got 16384 bytes at 0}}
      %p = device.publish %f in %ring at 0 : !device.fragment<[64, 64], f32, #acc>, !device.ring<1, [64, 64], bf16>
    } producer registers 40 {
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @publish_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "2" threads 256 cluster 2 {
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<4, [64, 64], bf16>
    device.specialize consumers 1 registers 208 {
      %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
      // expected-error @below {{expects a place that no other fragment has (C4), but got 0}}
      %p = device.publish %f in %ring at 0 : !device.fragment<[64, 64], f32, #acc>, !device.ring<4, [64, 64], bf16>
      %q = device.publish %f in %ring at 64 : !device.fragment<[64, 64], f32, #acc>, !device.ring<4, [64, 64], bf16>
    } producer registers 40 {
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @load_peer_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "2" threads 256 cluster 2 {
    %c1 = arith.constant 1 : index
    %v = arith.constant 1.0 : f32
    %ring = device.shared : !device.ring<4, [64, 64], bf16>
    device.specialize consumers 1 registers 208 {
      %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
      %p = device.publish %f in %ring at 0 : !device.fragment<[64, 64], f32, #acc>, !device.ring<4, [64, 64], bf16>
      // expected-error @below {{expects the result of a device.publish and its fragment's type (C2), but got '!device.fragment<[64, 64], i32,}}
      %x = device.load_peer %p of %c1 : !device.fragment<[64, 64], i32, #acc>
    } producer registers 40 {
    }
  }
}

// -----

device.program @copy_rows_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[N, 64], f16>):
  device.kernel @k blocks "1" threads 256 {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %ring = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers : !device.barriers<1, 128>
    device.specialize consumers 1 registers 208 {
    } producer together registers 40 {
      // expected-error @below {{expects the ring's element type 'bf16' (C1), but got 'f16'}}
      device.copy_rows %x columns 64 to %ring[%c0] signals %full[%c0] : !moa.array<[N, 64], f16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 128> {
      ^bb0(%r: index):
        device.yield %r, %true : index, i1
      }
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @publish_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "2" threads 256 cluster 2 {
    %v = arith.constant 1.0 : bf16
    %ring = device.shared : !device.ring<4, [64, 64], bf16>
    device.specialize consumers 1 registers 208 {
      %f = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #acc>
      // expected-error @below {{expects elements of f32 or i32 (C2), but got 'bf16'}}
      %p = device.publish %f in %ring at 0 : !device.fragment<[64, 64], bf16, #acc>, !device.ring<4, [64, 64], bf16>
    } producer registers 40 {
    }
  }
}
