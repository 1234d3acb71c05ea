// RUN: moa-opt %s -device-verify -verify-diagnostics -split-input-file

// The contract of the device level, one violation per clause.

device.program @sound attributes {symbols = ["N"], requires = ["N % 4 == 0"], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N/4" threads 128 {
    %i = device.block
    %s = device.symbol "x.s0 + y.s0*N"
    %at = arith.muli %i, %s : index
    %e = device.load %x[%at] : !moa.array<[N], f32> -> f32
    %p = math.exp %e : f32
    %private = memref.alloca() : memref<4xf32>
    %zero = arith.constant 0 : index
    memref.store %p, %private[%zero] : memref<4xf32>
    %inside = arith.cmpi slt, %i, %s : index
    scf.if %inside {
      %q = memref.load %private[%zero] : memref<4xf32>
      device.store %q, %y[%i] : f32, !moa.array<[N], f32>
    }
  }
}

// -----

// expected-error @below {{expects distinct names (K1), but 'y' is declared twice}}
device.program @k1 attributes {symbols = ["N"], requires = [], arg_names = ["y"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects declared symbols (K2), but got 'N' in 'N'}}
device.program @k2 attributes {symbols = ["M"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "M" threads 128 {
    %i = device.block
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d1 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{'onf.extent' op expects operations of device, arith, math, scf and memref only (D1)}}
    %n = onf.extent "N"
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d2_blocks attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  // Strides are known to the kernel, not to its launch.
  // expected-error @below {{expects declared symbols (D2), but got 'x.s0' in 'x.s0'}}
  device.kernel @k blocks "x.s0" threads 128 {
    %i = device.block
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d2_symbol attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{expects declared symbols (D2), but got 'x.s1' in 'N + x.s1'}}
    %s = device.symbol "x.s1 + N"
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d3 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{expects private arrays only (D3)}}
    %heap = memref.alloc() : memref<4xf32>
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d3_shape attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{expects a constant shape (D3), but got 'memref<?xf32>'}}
    %private = memref.alloca(%i) : memref<?xf32>
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects one store of output 'y' (D4), but got 0}}
device.program @d4 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
  }
}

// -----

// expected-error @below {{expects one store of output 'z' (D4), but got 2}}
device.program @d4_twice attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1.0 : f32
    device.store %v, %y[%i] : f32, !moa.array<[N], f32>
    device.store %v, %z[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @l blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1.0 : f32
    device.store %v, %z[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d5_writers attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i64>, %w: !moa.array<[N], i64>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
  }
  device.kernel @l blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %y[%i] : i64, !moa.array<[N], i64>
    // expected-error @below {{expects one kernel to store array 'w' of the workspace (D5), but 'k' does too}}
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

device.program @d5_order attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i64>, %w: !moa.array<[N], i64>):
  device.kernel @l blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{expects an earlier kernel to store array 'w' of the workspace (D5)}}
    %v = device.load %w[%i] : !moa.array<[N], i64> -> i64
    device.store %v, %y[%i] : i64, !moa.array<[N], i64>
  }
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

// Blocks that signal pass on to others of the same kernel what they have stored.
device.program @d5_signals attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>], workspace_names = ["w", "c"], workspace_types = [!moa.array<[N], i64>, !moa.array<[1], i32>]} {
^bb0(%y: !moa.array<[N], i64>, %w: !moa.array<[N], i64>, %c: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %c[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @k blocks "N" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : index
    %v = arith.constant 1 : i64
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
    device.signal %c[%zero] : !moa.array<[1], i32>
    %n = device.signals %c[%zero] : !moa.array<[1], i32>
    %u = device.load %w[%n] : !moa.array<[N], i64> -> i64
    device.store %u, %y[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

device.program @d5_no_signals attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>], workspace_names = ["w", "c"], workspace_types = [!moa.array<[N], i64>, !moa.array<[1], i32>]} {
^bb0(%y: !moa.array<[N], i64>, %w: !moa.array<[N], i64>, %c: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %c[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @k blocks "N" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : index
    %v = arith.constant 1 : i64
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
    device.signal %c[%zero] : !moa.array<[1], i32>
    // expected-error @below {{expects an earlier kernel to store array 'w' of the workspace (D5)}}
    %u = device.load %w[%i] : !moa.array<[N], i64> -> i64
    device.store %u, %y[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

device.program @d5_stage attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>], workspace_names = ["w", "t"], workspace_types = [!moa.array<[N], i64>, !moa.array<[33], i32>]} {
^bb0(%y: !moa.array<[N], i64>, %w: !moa.array<[N], i64>, %t: !moa.array<[33], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.thread
    %zero = arith.constant 0 : i32
    device.store %zero, %t[%i] : i32, !moa.array<[33], i32>
  }
  device.kernel @k blocks "2*N" threads 32 {
    %n = device.symbol "N"
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%i: index):
      // expected-error @below {{expects an earlier kernel to store array 'w' of the workspace (D5)}}
      %u = device.load %w[%i] : !moa.array<[N], i64> -> i64
      device.store %u, %y[%i] : i64, !moa.array<[N], i64>
    }, {
    ^bb0(%i: index):
      %v = arith.constant 1 : i64
      device.store %v, %w[%i] : i64, !moa.array<[N], i64>
    }
  }
}

// -----

device.program @d5_not_cleared attributes {symbols = ["N"], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["c"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%c: !moa.array<[1], i32>):
  device.kernel @k blocks "N" threads 32 {
    // expected-error @below {{expects an earlier kernel to store array 'c' of the workspace (D5)}}
    device.raise %c : !moa.array<[1], i32>
  }
}

// -----

device.program @d5_raiser attributes {symbols = ["N"], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["c"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%c: !moa.array<[1], i32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %c[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @k blocks "N" threads 32 {
    %i = arith.constant 0 : index
    // expected-error @below {{expects another kernel than this to raise flag 'c' (D5)}}
    %n = device.load %c[%i] : !moa.array<[1], i32> -> i32
    device.raise %c : !moa.array<[1], i32>
  }
}

// -----

// @w does not wait where f is 0, while @r1 may raise g.
device.program @d7_raisers attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["f", "g"], workspace_types = [!moa.array<[1], i32>, !moa.array<[1], i32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %f: !moa.array<[1], i32>, %g: !moa.array<[1], i32>):
  device.kernel @first blocks "1" threads 32 {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i32
    device.store %z, %f[%c0] : i32, !moa.array<[1], i32>
    device.store %z, %g[%c0] : i32, !moa.array<[1], i32>
  }
  device.kernel @rf blocks "1" threads 32 {
    device.raise %f : !moa.array<[1], i32>
  }
  device.kernel @wf blocks "1" threads 32 {
  }
  device.kernel @r1 blocks "N" threads 32 {
    device.raise %g : !moa.array<[1], i32>
  }
  device.kernel @r2 blocks "1" threads 32 attributes {moa.idle = "f"} {
    device.raise %g : !moa.array<[1], i32>
  }
  device.kernel @w blocks "1" threads 32 attributes {moa.idle = "f"} {
  }
  // expected-error @below {{expects a kernel that waits between those that raise flag 'g' and this one (D7)}}
  device.kernel @k blocks "N" threads 32 attributes {moa.idle = "g"} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1.0 : f32
    %b = device.block
    %s = device.symbol "y.s0"
    %at = arith.muli %b, %s : index
    device.store %c1, %y[%at] : f32, !moa.array<[N], f32>
  }
}

// -----

// @w is not launched for all sizes, and @between, which is, need not have waited.
device.program @d7_launched attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["g"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %g: !moa.array<[1], i32>):
  device.kernel @first blocks "1" threads 32 {
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i32
    device.store %z, %g[%c0] : i32, !moa.array<[1], i32>
  }
  device.kernel @r blocks "N" threads 32 {
    device.raise %g : !moa.array<[1], i32>
  }
  device.kernel @w blocks "1" threads 32 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"4095">]} {
  }
  device.kernel @between blocks "1" threads 32 attributes {moa.beside} {
  }
  // expected-error @below {{expects a kernel that waits between those that raise flag 'g' and this one (D7)}}
  device.kernel @k blocks "N" threads 32 attributes {moa.idle = "g"} {
    %c1 = arith.constant 1.0 : f32
    %b = device.block
    %s = device.symbol "y.s0"
    %at = arith.muli %b, %s : index
    device.store %c1, %y[%at] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d6_first attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i64>):
  // expected-error @below {{expects a kernel before one that overlaps with another (D6)}}
  device.kernel @k blocks "N" threads 128 attributes {moa.beside} {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %y[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

device.program @d6_order attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y", "z"], result_types = [!moa.array<[N], i64>, !moa.array<[N], i64>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i64>, %z: !moa.array<[N], i64>, %w: !moa.array<[N], i64>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %w[%i] : i64, !moa.array<[N], i64>
  }
  device.kernel @l blocks "N" threads 128 attributes {moa.beside} {
    %i = device.block
    %v = arith.constant 1 : i64
    device.store %v, %z[%i] : i64, !moa.array<[N], i64>
  }
  // expected-error @below {{expects no conflict with 'k', which it may overlap with (D6), but one writes an array that the other accesses}}
  device.kernel @m blocks "N" threads 128 attributes {moa.beside} {
    %i = device.block
    %v = device.load %w[%i] : !moa.array<[N], i64> -> i64
    device.store %v, %y[%i] : i64, !moa.array<[N], i64>
  }
}

// -----

device.program @d2_step attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects declared symbols (D2), but got 'x.s0' in 'x.s0'}}
    device.copy %x[%zero] rows 0 step "x.s0" to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @d7_flag attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = [], workspace_names = ["f", "w", "v"], workspace_types = [!moa.array<[N], i32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %f: !moa.array<[N], i32>, %w: !moa.array<[N], f32>, %v: !moa.array<[N], f32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %f[%i] : i32, !moa.array<[N], i32>
  }
  device.kernel @waits blocks "N" threads 32 {
  }
  // expected-error @below {{expects a flag of the workspace (D7), but got "f"}}
  device.kernel @idle blocks "N" threads 32 attributes {moa.idle = "f"} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d7_waits attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = [], workspace_names = ["f", "w", "v"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %f: !moa.array<[1], i32>, %w: !moa.array<[N], f32>, %v: !moa.array<[N], f32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %f[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @raise blocks "N" threads 32 {
    device.raise %f : !moa.array<[1], i32>
  }
  // expected-error @below {{expects a kernel that waits between those that raise flag 'f' and this one (D7)}}
  device.kernel @idle blocks "N" threads 32 attributes {moa.idle = "f"} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d7_beside attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = [], workspace_names = ["f", "w", "v"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %f: !moa.array<[1], i32>, %w: !moa.array<[N], f32>, %v: !moa.array<[N], f32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %f[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @raise blocks "N" threads 32 {
    device.raise %f : !moa.array<[1], i32>
  }
  device.kernel @waits blocks "N" threads 32 {
  }
  device.kernel @idle blocks "N" threads 32 attributes {moa.idle = "f"} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
  // expected-error @below {{expects flag 'f' of 'idle', which it may overlap with (D7)}}
  device.kernel @beside blocks "N" threads 32 attributes {moa.beside} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

device.program @d7 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = [], result_types = [], workspace_names = ["f", "w", "v"], workspace_types = [!moa.array<[1], i32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %f: !moa.array<[1], i32>, %w: !moa.array<[N], f32>, %v: !moa.array<[N], f32>):
  device.kernel @clear blocks "1" threads 32 {
    %i = device.block
    %zero = arith.constant 0 : i32
    device.store %zero, %f[%i] : i32, !moa.array<[1], i32>
  }
  device.kernel @raise blocks "N" threads 32 {
    device.raise %f : !moa.array<[1], i32>
  }
  device.kernel @waits blocks "N" threads 32 {
  }
  device.kernel @idle blocks "N" threads 32 attributes {moa.idle = "f"} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
}
