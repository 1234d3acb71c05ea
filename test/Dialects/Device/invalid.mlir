// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Every constraint of the verifiers of ops, layouts and types of device, named as
// the message names it.

// expected-error @below {{expects one argument per input, output and array of the workspace (C1), but got 1 for 1, 1 and 0}}
device.program @program_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
  }
}

// -----

// expected-error @below {{expects one argument per input, output and array of the workspace (C1)}}
device.program @program_c1_names attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
  }
}

// -----

// expected-error @below {{expects arguments of array type (C2)}}
device.program @program_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: f32, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
  }
}

// -----

// expected-error @below {{expects outputs and a workspace of the declared types (C2), but got '!moa.array<[N], f32>'}}
device.program @program_c2_output attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], bf16>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
  }
}

// -----

device.program @program_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{'arith.constant' op expects only device.kernel in a program (C3)}}
  %c = arith.constant 1 : index
}

// -----

device.program @kernel_c1_more attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{expects a multiple of 32 up to 1024 as the threads of a block (C1), but got 2048}}
  device.kernel @k blocks "N" threads 2048 {
  }
}

// -----

device.program @kernel_c1_none attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{expects a multiple of 32 up to 1024 as the threads of a block (C1), but got 0}}
  device.kernel @k blocks "N" threads 0 {
  }
}

// -----

device.program @kernel_c1_odd attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{expects a multiple of 32 up to 1024 as the threads of a block (C1), but got 100}}
  device.kernel @k blocks "N" threads 100 {
  }
}

// -----

device.program @kernel_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{expects an integer expression, but got 'N +': }}
  device.kernel @k blocks "N +" threads 128 {
  }
}

// -----

device.program @kernel_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  // expected-error @below {{expects no arguments of its own (C2), but got 1}}
  device.kernel @k blocks "N" threads 128 {
  ^bb0(%i: index):
  }
}

// -----

device.program @symbol_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    // expected-error @below {{expects an integer expression, but got '2*': }}
    %s = device.symbol "2*"
  }
}

// -----

device.program @scalar_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%y: !moa.array<[], f32>):
  device.kernel @k blocks "1" threads 128 {
    // expected-error @below {{'device.scalar' op expects an input (C2), but got argument 0}}
    %s = device.scalar %y : !moa.array<[], f32> -> f32
  }
}

// -----

device.program @scalar_c3 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
^bb0(%x: !moa.array<[], bf16>):
  device.kernel @k blocks "1" threads 128 {
    // expected-error @below {{expects the array's element type 'bf16' (C3), but got 'f32'}}
    %s = device.scalar %x : !moa.array<[], bf16> -> f32
  }
}

// -----

device.program @scalar_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    // expected-error @below {{expects an array of rank 0 (C4), but got rank 2}}
    %s = device.scalar %x : !moa.array<[N, 64], bf16> -> bf16
  }
}

// -----

func.func @load_c1(%x: !moa.array<[4], f32>, %i: index) {
  // expected-error @below {{'device.load' op expects a parameter of the program (C1)}}
  %e = device.load %x[%i] : !moa.array<[4], f32> -> f32
  return
}

// -----

device.program @load_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    // expected-error @below {{'device.load' op expects an input or an array of the workspace (C2), but got argument 1}}
    %e = device.load %y[%zero] : !moa.array<[N, 64], f32> -> f32
  }
}

// -----

device.program @load_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    // expected-error @below {{expects the array's element type 'bf16' (C3), but got 'f32'}}
    %e = device.load %x[%zero] : !moa.array<[N, 64], bf16> -> f32
  }
}

// -----

func.func @store_c1(%x: !moa.array<[4], f32>, %i: index, %v: f32) {
  // expected-error @below {{'device.store' op expects a parameter of the program (C1)}}
  device.store %v, %x[%i] : f32, !moa.array<[4], f32>
  return
}

// -----

device.program @store_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    // expected-error @below {{'device.store' op expects an output or an array of the workspace (C2), but got argument 0}}
    device.store %v, %x[%zero] : bf16, !moa.array<[N, 64], bf16>
  }
}

// -----

device.program @store_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    // expected-error @below {{expects the array's element type 'f32' (C3), but got 'bf16'}}
    device.store %v, %y[%zero] : bf16, !moa.array<[N, 64], f32>
  }
}

// -----

device.program @specialize_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 256 {
    // expected-error @below {{expects a block of 384 threads, one warpgroup per consumer and one more (C1)}}
    device.specialize consumers 2 registers 240 {
    } producer registers 24 {
    }
  }
}

// -----

device.program @kept_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 256 {
    device.specialize consumers 1 registers 240 {
      %w = device.warpgroup
      // expected-error @below {{expects a number that is computed before the block's roles (C1)}}
      %n = device.kept %w
    } producer registers 24 {
    }
  }
}

// -----

device.program @kept_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 256 {
    %b = device.block
    // expected-error @below {{expects to stand in a role of a specialized block (C2)}}
    %n = device.kept %b
  }
}

// -----

func.func @specialize_c1_outside() {
  // expected-error @below {{expects a block of 256 threads}}
  device.specialize consumers 1 registers 240 {
  } producer registers 24 {
  }
  return
}

// -----

device.program @copy_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], f16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects the ring's element type 'f16' (C1), but got 'bf16'}}
    device.copy %x[%zero] rows 0 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], f16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects coordinates of all axes but the last (C2), but got 2 for rank 2}}
    device.copy %x[%zero, %zero] rows 0 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_c2_last attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects an axis with a coordinate as the rows (C2), but got 1}}
    device.copy %x[%zero] rows 1 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_c2_negative attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects an axis with a coordinate as the rows (C2), but got -1}}
    device.copy %x[%zero] rows -1 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects an expression, at least 1, as the step of rows (C3), but got '0'}}
    device.copy %x[%zero] rows 0 step "0" to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_c3_text attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{expects an integer expression, but got 'N /': }}
    device.copy %x[%zero] rows 0 step "N /" to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

device.program @copy_output attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    // expected-error @below {{'device.copy' op expects an input or an array of the workspace (C2), but got argument 0}}
    device.copy %y[%zero] rows 0 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
}

// -----

#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @fill_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : bf16
    // expected-error @below {{expects a value of the element type 'f32' (C1), but got 'bf16'}}
    %f = device.fill %v : bf16 -> !device.fragment<[64], f32, #row>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 128], bf16>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects extents that agree (C1), but got 64 x 128 by 64 x 64}}
    %c = device.contract %a rows %zero by %b[%zero] : !device.ring<1, [128, 128], bf16>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c1_transposed attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [128, 64], bf16>
    // expected-error @below {{expects extents that agree (C1), but got 64 x 64 by 64 x 128}}
    %c = device.contract %a rows %zero by %b[%zero] transposed : !device.ring<1, [128, 64], bf16>, !device.ring<2, [128, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c1_rows attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects the first of the 64 rows of a (C1)}}
    %c = device.contract %a by %b[%zero] : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c1_kind attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = arith.constant 1.0 : bf16
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects extents that agree (C1), but got 0 x 0 by 64 x 64}}
    %c = device.contract %a by %b[%zero] : bf16, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#other = #device.layout<[warp: 4 by 1, lane: 8 by 4, register: 2 by 2], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c2_a attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %a = device.fill %v : bf16 -> !device.fragment<[64, 64], bf16, #other>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects operand a in the accumulator's layout (C2)}}
    %c = device.contract %a by %b[%zero] : !device.fragment<[64, 64], bf16, #other>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#flat = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @contract_c2_rank attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %a = device.fill %v : bf16 -> !device.fragment<[64], bf16, #flat>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects operand a in the accumulator's layout (C2)}}
    %c = device.contract %a by %b[%zero] : !device.fragment<[64], bf16, #flat>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#narrow = #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1]>
device.program @contract_c2_narrow attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : bf16
    %a = device.fill %v : bf16 -> !device.fragment<[64, 2], bf16, #narrow>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects operand a in the accumulator's layout (C2)}}
    %c = device.contract %a by %b[%zero] : !device.fragment<[64, 2], bf16, #narrow>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#other = #device.layout<[warp: 4 by 1, lane: 8 by 4, register: 2 by 2], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c2_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects c and the result in the accumulator's layout (C2)}}
    %c = device.contract %a rows %zero by %b[%zero] : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #other>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#other = #device.layout<[warp: 4 by 1, lane: 8 by 4, register: 2 by 2], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c2_c attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %s = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #other>
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects c and the result in the accumulator's layout (C2)}}
    %c = device.contract %a rows %zero by %b[%zero] plus %s : !device.fragment<[64, 64], f32, #other> : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %v = arith.constant 1.0 : f32
    %a = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects a and b of one type and a result of f32 (C3), but got 'f32' by 'bf16' into 'f32'}}
    %c = device.contract %a by %b[%zero] : !device.fragment<[64, 64], f32, #acc>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c3_rings attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [64, 64], f16>
    // expected-error @below {{expects a and b of one type and a result of f32 (C3), but got 'bf16' by 'f16' into 'f32'}}
    %c = device.contract %a rows %zero by %b[%zero] : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], f16> -> !device.fragment<[64, 64], f32, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @contract_c3_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %a = device.shared : !device.ring<1, [128, 64], bf16>
    %b = device.shared : !device.ring<2, [64, 64], bf16>
    // expected-error @below {{expects a and b of one type and a result of f32 (C3), but got 'bf16' by 'bf16' into 'bf16'}}
    %c = device.contract %a rows %zero by %b[%zero] : !device.ring<1, [128, 64], bf16>, !device.ring<2, [64, 64], bf16> -> !device.fragment<[64, 64], bf16, #acc>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#other = #device.layout<[warp: 4 by 1, lane: 8 by 4, register: 2 by 2], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects inputs in its layout, its rows' or its threads' parts, and results in its layout (C1)}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #other> {
    ^bb0(%e: f32, %i: index, %j: index):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @map_c1_input attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects inputs in its layout, its rows' or its threads' parts, and results in its layout (C1)}}
    %m = device.map(%f) over #row : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64], f32, #row> {
    ^bb0(%e: f32, %i: index):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects one argument per input and axis (C2), but got 2}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
    ^bb0(%e: f32, %i: index):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c2_element attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects arguments of the inputs' element types (C2), but got 'bf16' for 'f32'}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], bf16, #acc> {
    ^bb0(%e: bf16, %i: index, %j: index):
      device.yield %e : bf16
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c2_index attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects indices after the elements (C2), but got 'i32'}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
    ^bb0(%e: f32, %i: index, %j: i32):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects one value per result (C3)}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
    ^bb0(%e: f32, %i: index, %j: index):
      device.yield
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c3_end attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects one value per result (C3)}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
    ^bb0(%e: f32, %i: index, %j: index):
      %z = arith.constant 1.0 : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
device.program @map_c3_element attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects values of the results' element types (C3), but got 'f32' for 'bf16'}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], bf16, #acc> {
    ^bb0(%e: f32, %i: index, %j: index):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#replicated = #device.layout<[warp: 4 by 1, lane: 16 by 2] replicas [lane: 2 by 1]>
device.program @reduce_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects the layout of the fragment's rows, or of the threads' parts of them (C1)}}
    %r = device.reduce add %f : !device.fragment<[64, 64], f32, #acc> -> !device.fragment<[64], f32, #replicated>
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @reduce_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    // expected-error @below {{expects the fragment's element type 'f32', or f32 for a thread's sums of pairs of f16 (C2), but got 'bf16'}}
    %r = device.reduce add %f : !device.fragment<[64, 64], f32, #acc> -> !device.fragment<[64], bf16, #row>
  }
}

// -----

// Lanes would add f16 and f32: what a thread has first.
#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @reduce_c2_halves attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f16
    %f = device.fill %v : f16 -> !device.fragment<[64, 64], f16, #acc>
    // expected-error @below {{expects the fragment's element type 'f16', or f32 for a thread's sums of pairs of f16 (C2), but got 'f32'}}
    %r = device.reduce add %f : !device.fragment<[64, 64], f16, #acc> -> !device.fragment<[64], f32, #row>
  }
}

// -----

#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @reduce_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64], f32, #row>
    // expected-error @below {{expects a fragment of rows and columns (C3), but got rank 1}}
    %r = device.reduce add %f : !device.fragment<[64], f32, #row> -> !device.fragment<[64], f32, #row>
  }
}

// -----

func.func @yield_parent() {
  // expected-error @below {{expects parent op to be one of 'device.map, device.if_any, device.collect, device.copy_rows'}}
  device.yield
}

// -----

// expected-error @below {{'device.kernel' op expects parent op 'device.program'}}
device.kernel @kernel_parent blocks "1" threads 128 {
}

// -----

// expected-error @below {{expects the digits of register to count without a gap (C1), but got stride 2 where 1 numbers stand below it}}
#layout = #device.layout<[warp: 4 by 1, register: 2 by 2], [lane: 32 by 1]>

// -----

// expected-error @below {{expects the digits of lane to count without a gap (C1), but got stride 8 where 4 numbers stand below it}}
#layout = #device.layout<[warp: 4 by 1], [lane: 8 by 8, lane: 4 by 1]>

// -----

// expected-error @below {{expects the digits of lane to count without a gap (C1), but got stride 2 where 4 numbers stand below it}}
#layout = #device.layout<[warp: 4 by 1], [lane: 8 by 2, lane: 4 by 1]>

// -----

// expected-error @below {{expects the digits of register to count without a gap (C1), but got stride 1 where 1 numbers stand below it}}
#layout = #device.layout<[warp: 4 by 1], [lane: 32 by 1], [register: 0 by 1]>

// -----

// expected-error @below {{expects 32 values of lane (C2), but got 16}}
#layout = #device.layout<[warp: 4 by 1], [lane: 16 by 1]>

// -----

// expected-error @below {{expects 4 values of warp (C2), but got 8}}
#layout = #device.layout<[warp: 2 by 1, warp: 4 by 2], [lane: 32 by 1]>

// -----

// expected-error @below {{expects 4 values of warp (C2), but got 1}}
#layout = #device.layout<[lane: 32 by 1]>

// -----

// expected-error @below {{expects the digits of lane to count without a gap (C1), but got stride 2 where 4 numbers stand below it}}
#layout = #device.layout<[warp: 4 by 1, lane: 16 by 2] replicas [lane: 4 by 1]>

// -----

// expected-error @below {{expects warp, lane or register, but got 'core'}}
#layout = #device.layout<[core: 4 by 1]>

// -----

// expected-error @below {{expects a layout of the tile's axes and extents (C1)}}
func.func private @f(!device.fragment<[64], f32, #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1]>>)

// -----

// expected-error @below {{expects a layout of the tile's axes and extents (C1)}}
func.func private @f(!device.fragment<[64, 4], f32, #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1]>>)

// -----

// expected-error @below {{expects rows and a multiple of 64 columns (C1)}}
func.func private @f(!device.ring<2, [64, 32], bf16>)

// -----

// expected-error @below {{expects rows and a multiple of 64 columns (C1)}}
func.func private @f(!device.ring<2, [64], bf16>)

// -----

// expected-error @below {{expects a multiple of 8 rows and a stage (C2), but got 12 and 2}}
func.func private @f(!device.ring<2, [12, 64], bf16>)

// -----

// expected-error @below {{expects a multiple of 8 rows and a stage (C2), but got 64 and 0}}
func.func private @f(!device.ring<0, [64, 64], bf16>)

// -----

// expected-error @below {{expects elements of 16 bits, i8 or f8E4M3FN (C3), but got 'f32'}}
func.func private @f(!device.ring<2, [64, 64], f32>)

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @map_c1_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %c = arith.constant true
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %c : i1 -> !device.fragment<[64], i1, #row>
    // expected-error @below {{expects inputs in its layout, its rows' or its threads' parts, and results in its layout (C1)}}
    %m = device.map(%f) over #acc : (!device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64], f32, #row> {
    ^bb0(%e: f32, %i: index, %j: index):
      device.yield %e : f32
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @if_any_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %c = arith.constant true
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %c : i1 -> !device.fragment<[64], i1, #row>
    // expected-error @below {{expects a fragment of booleans (C1)}}
    %r = device.if_any %f else(%f) : (!device.fragment<[64, 64], f32, #acc>, !device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
      device.yield %f : !device.fragment<[64, 64], f32, #acc>
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @if_any_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %c = arith.constant true
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %c : i1 -> !device.fragment<[64], i1, #row>
    // expected-error @below {{expects results of the types of the other values (C2)}}
    %r = device.if_any %b else(%b) : (!device.fragment<[64], i1, #row>, !device.fragment<[64], i1, #row>) -> !device.fragment<[64, 64], f32, #acc> {
      device.yield %f : !device.fragment<[64, 64], f32, #acc>
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @if_any_c2_yield attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %c = arith.constant true
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %c : i1 -> !device.fragment<[64], i1, #row>
    // expected-error @below {{expects to yield the results' types (C2)}}
    %r = device.if_any %b else(%f) : (!device.fragment<[64], i1, #row>, !device.fragment<[64, 64], f32, #acc>) -> !device.fragment<[64, 64], f32, #acc> {
      device.yield %b : !device.fragment<[64], i1, #row>
    }
  }
}

// -----

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @thread_offset_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %c = arith.constant true
    %f = device.fill %v : f32 -> !device.fragment<[64, 64], f32, #acc>
    %b = device.fill %c : i1 -> !device.fragment<[64], i1, #row>
    %i = device.block
    // expected-error @below {{expects an index of the map around it (C1)}}
    %o = device.thread_offset %i
  }
}

// -----

#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
device.program @any_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], f32>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], f32>):
  device.kernel @k blocks "N" threads 128 {
    %v = arith.constant 1.0 : f32
    %f = device.fill %v : f32 -> !device.fragment<[64], f32, #row>
    // expected-error @below {{expects a fragment of booleans (C1)}}
    %a = device.any %f : !device.fragment<[64], f32, #row>
  }
}

// -----

device.program @exchange_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %v = arith.constant 1.0 : f32
    // expected-error @below {{expects a mask of 1 to 31 (C1), but got 32}}
    %w = device.exchange %v mask 32 : f32
  }
}

// -----

device.program @exchange_group attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %v = arith.constant 1.0 : f32
    // expected-error @below {{expects a group of a power of two lanes, above the mask 4 and 16 at most (C1), but got 4}}
    %u = device.exchange %v mask 4 group 4 : f32
  }
}
