// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Those of runs: device.load_run and device.store_run.

func.func @load_run_c1(%x: !moa.array<[4], f32>, %i: index, %run: memref<8xf32>) {
  // expected-error @below {{'device.load_run' op expects a parameter of the program (C1)}}
  device.load_run %x[%i] stride %i count %i to %run[] : !moa.array<[4], f32>, memref<8xf32>
  return
}

// -----

device.program @load_run_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects an input or an array of the workspace (C2), but got argument 1}}
    device.load_run %y[%c1] stride %c1 count %c1 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
  }
}

// -----

device.program @load_run_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xf32>
    // expected-error @below {{expects the array's element type 'bf16' (C3), but got 'f32'}}
    device.load_run %x[%c1] stride %c1 count %c1 to %run[] : !moa.array<[N, 64], bf16>, memref<8xf32>
  }
}

// -----

device.program @load_run_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], i1>]} {
^bb0(%x: !moa.array<[N, 64], i1>, %y: !moa.array<[N, 64], i1>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xi1>
    // expected-error @below {{expects elements of 8 to 64 bits (C4), but got 'i1'}}
    device.load_run %x[%c1] stride %c1 count %c1 to %run[] : !moa.array<[N, 64], i1>, memref<8xi1>
  }
}

// -----

device.program @load_run_c5 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects constant extents, one more than indices (C5), but got 1 for }}
    device.load_run %x[%c1] stride %c1 count %c1 to %run[%c1] : !moa.array<[N, 64], bf16>, memref<8xbf16>
  }
}

// -----

device.program @load_run_c6 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<6xbf16>
    // expected-error @below {{expects rows of 4 to 64 bytes, a power of two (C6), but got 12}}
    device.load_run %x[%c1] stride %c1 count %c1 to %run[] : !moa.array<[N, 64], bf16>, memref<6xbf16>
  }
}

// -----

device.program @load_run_c7 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<2x8xbf16>
    // expected-error @below {{expects a step of a multiple of 8 elements (C7), but got 12}}
    device.load_run %x[%c1] stride %c1 count %c1 step 12 to %run[] : !moa.array<[N, 64], bf16>, memref<2x8xbf16>
  }
}

// -----

device.program @load_run_c8 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects an aligned run in the workspace or in an array with tiles (C8)}}
    device.load_run %x[%c1] stride %c1 count %c1 aligned to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
  }
}

// -----

func.func @store_run_c1(%x: !moa.array<[4], f32>, %i: index, %run: memref<8xf32>) {
  // expected-error @below {{'device.store_run' op expects a parameter of the program (C1)}}
  device.store_run %run[] to %x[%i] stride %i count %i : memref<8xf32>, !moa.array<[4], f32>
  return
}

// -----

device.program @store_run_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects an output or an array of the workspace (C2), but got argument 0}}
    device.store_run %run[] to %x[%c1] stride %c1 count %c1 : memref<8xbf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

device.program @store_run_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xf32>
    // expected-error @below {{expects the array's element type 'bf16' (C3), but got 'f32'}}
    device.store_run %run[] to %y[%c1] stride %c1 count %c1 : memref<8xf32>, !moa.array<[N, 64], bf16>
  }
}

// -----

device.program @store_run_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], i1>]} {
^bb0(%x: !moa.array<[N, 64], i1>, %y: !moa.array<[N, 64], i1>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xi1>
    // expected-error @below {{expects elements of 8 to 64 bits (C4), but got 'i1'}}
    device.store_run %run[] to %y[%c1] stride %c1 count %c1 : memref<8xi1>, !moa.array<[N, 64], i1>
  }
}

// -----

device.program @store_run_c5 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects constant extents, one more than indices (C5), but got 1 for }}
    device.store_run %run[%c1] to %y[%c1] stride %c1 count %c1 : memref<8xbf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

device.program @store_run_c6 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<6xbf16>
    // expected-error @below {{expects rows of 4 to 64 bytes, a power of two (C6), but got 12}}
    device.store_run %run[] to %y[%c1] stride %c1 count %c1 : memref<6xbf16>, !moa.array<[N, 64], bf16>
  }
}

// -----

device.program @store_run_c8 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 64], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %y: !moa.array<[N, 64], bf16>):
  device.kernel @k blocks "N" threads 32 {
    %c1 = arith.constant 1 : index
    %run = memref.alloca() : memref<8xbf16>
    // expected-error @below {{expects an aligned run in the workspace or in an array with tiles (C8)}}
    device.store_run %run[] to %y[%c1] stride %c1 count %c1 aligned : memref<8xbf16>, !moa.array<[N, 64], bf16>
  }
}
