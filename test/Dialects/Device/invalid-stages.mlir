// RUN: moa-opt %s -split-input-file -verify-diagnostics

func.func @stages_c1(%t: !moa.array<[33], i32>, %n: index) {
  // expected-error @below {{'device.stages' op expects a parameter of the program (C1)}}
  device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
  ^bb0(%b: index):
  }, {
  ^bb0(%b: index):
  }
  return
}

// -----

device.program @stages_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = ["t"], result_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects an array of the workspace (C2)}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
  }
}

// -----

device.program @stages_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i64>]} {
^bb0(%t: !moa.array<[33], i64>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects the array's element type 'i64' (C3), but got 'i32'}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i64> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
  }
}

// -----

device.program @stages_c4 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[2], i32>]} {
^bb0(%t: !moa.array<[2], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects an array of 33 elements (C4), but got '!moa.array<[2], i32>'}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[2], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
  }
}

// -----

device.program @stages_c5 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects two stages or more, as many counts, and an index of each (C5), but got 2 stages and 1 counts}}
    device.stages %t residents 2 counts %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
  }
}

// -----

device.program @stages_c5_number attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects two stages or more, as many counts, and an index of each (C5), but got 2 stages and 2 counts}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: i32):
    }
  }
}

// -----

device.program @stages_c6 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects at least one block in the grid (C6), but got 0}}
    device.stages %t residents 0 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
  }
}

// -----

device.program @stages_c7 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects to stand in a kernel's own block, as the last operation (C7)}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
    }
    %thread = device.thread
  }
}

// -----

device.program @stages_c8 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = [], workspace_names = ["t"], workspace_types = [!moa.array<[33], i32>]} {
^bb0(%t: !moa.array<[33], i32>):
  device.kernel @k blocks "2" threads 32 {
    %n = arith.constant 1 : index
    // expected-error @below {{'device.stages' op expects neither shared memory and roles nor numbers of blocks inside (C8)}}
    device.stages %t residents 2 counts %n, %n : !moa.array<[33], i32> {
    ^bb0(%b: index):
    }, {
    ^bb0(%b: index):
      // expected-note @below {{this is the operation}}
      %own = device.block
    }
  }
}
