// RUN: moa-opt %s -split-input-file -verify-diagnostics

func.func @next_c1(%c: !moa.array<[1], i32>) {
  %zero = arith.constant 0 : index
  // expected-error @below {{'device.next_block' op expects a parameter of the program (C1)}}
  %b = device.next_block %c[%zero] below %zero residents 2 : !moa.array<[1], i32>
  return
}

// -----

device.program @next_c2 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i32>]} {
^bb0(%y: !moa.array<[N], i32>):
  device.kernel @k blocks "N" threads 256 {
    %zero = arith.constant 0 : index
    // expected-error @below {{'device.next_block' op expects an array of the workspace (C2)}}
    %b = device.next_block %y[%zero] below %zero residents 2 : !moa.array<[N], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      device.await_consumers
    }
  }
}

// -----

device.program @next_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i64>]} {
^bb0(%w: !moa.array<[1], i64>):
  device.kernel @k blocks "1" threads 256 {
    %zero = arith.constant 0 : index
    // expected-error @below {{'device.next_block' op expects the array's element type 'i64' (C3), but got 'i32'}}
    %b = device.next_block %w[%zero] below %zero residents 2 : !moa.array<[1], i64>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      device.await_consumers
    }
  }
}

// -----

device.program @next_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%w: !moa.array<[1], i32>):
  device.kernel @k blocks "1" threads 256 {
    %zero = arith.constant 0 : index
    // expected-error @below {{'device.next_block' op expects to be the only one of a kernel, in its own block, before roles whose producer awaits consumers (C4)}}
    %b = device.next_block %w[%zero] below %zero residents 2 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
    }
  }
}

// -----

device.program @next_c5 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%w: !moa.array<[1], i32>):
  device.kernel @k blocks "1" threads 256 {
    %zero = arith.constant 0 : index
    // expected-error @below {{'device.next_block' op expects at least one block in the grid (C5), but got 0}}
    %b = device.next_block %w[%zero] below %zero residents 0 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      device.await_consumers
    }
  }
}

// -----

device.program @next_c6 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%w: !moa.array<[1], i32>):
  device.kernel @k blocks "1" threads 256 {
    %zero = arith.constant 0 : index
    // expected-note @below {{this is the operation}}
    %t = device.thread
    // expected-error @below {{'device.next_block' op expects no stores, lists, exchanges, or numbers of threads and blocks before the roles (C6)}}
    %b = device.next_block %w[%zero] below %t residents 2 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      device.await_consumers
    }
  }
}

// -----

device.program @await_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 256 {
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      // expected-error @below {{'device.await_consumers' op expects to stand once in the producer's own block, of a kernel with device.next_block (C1)}}
      device.await_consumers
    }
  }
}

// -----

device.program @await_c2 attributes {symbols = ["N"], requires = [], arg_names = ["q"], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%q: !moa.array<[N, 64], bf16>, %w: !moa.array<[1], i32>):
  device.kernel @k blocks "1" threads 256 {
    %zero = arith.constant 0 : index
    %rows = device.shared : !device.ring<1, [64, 64], bf16>
    %full = device.barriers odd : !device.barriers<1, 1>
    %b = device.next_block %w[%zero] below %zero residents 2 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      // expected-note @below {{this is the operation}}
      device.copy %q[%zero] rows 0 to %rows[%zero] signals %full[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
      // expected-error @below {{'device.await_consumers' op expects no copy before it that completes odd barriers (C2)}}
      device.await_consumers
    }
  }
}

// -----

device.program @kernel_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%w: !moa.array<[1], i32>):
  // expected-error @below {{expects no cluster in a kernel with device.next_block (C3)}}
  device.kernel @k blocks "2" threads 256 cluster 2 {
    %zero = arith.constant 0 : index
    %b = device.next_block %w[%zero] below %zero residents 2 : !moa.array<[1], i32>
    device.specialize consumers 1 registers 240 {
    } producer registers 24 {
      device.await_consumers
    }
  }
}

// -----

device.program @specialize_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["w"], workspace_types = [!moa.array<[1], i32>]} {
^bb0(%w: !moa.array<[1], i32>):
  device.kernel @k blocks "2" threads 256 {
    %zero = arith.constant 0 : index
    %b = device.next_block %w[%zero] below %zero residents 2 : !moa.array<[1], i32>
    // expected-error @below {{expects a producer of one thread in a kernel with device.next_block (C2)}}
    device.specialize consumers 1 registers 240 {
    } producer together registers 24 {
      device.await_consumers
    }
  }
}
