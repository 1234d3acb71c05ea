// RUN: moa-opt %s -verify-diagnostics -split-input-file

// The constraints of a workspace, of lists of indices and of their type.

// expected-error @below {{expects a name for every array of the workspace (C4), but got 0 for 1}}
device.program @workspace_c4_names attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_types = [!moa.array<[N, 2], i64>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %w: !moa.array<[N, 2], i64>):
}

// -----

// expected-error @below {{expects elements of i64, i32, i8 or a float in the workspace (C4), but got '!moa.array<[N], i1>'}}
device.program @workspace_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i1>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %w: !moa.array<[N], i1>):
}

// -----

// expected-error @below {{expects outputs and a workspace of the declared types (C2), but got '!moa.array<[N], i64>'}}
device.program @workspace_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], workspace_names = ["w"], workspace_types = [!moa.array<[N, 2], i64>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %w: !moa.array<[N], i64>):
}

// -----

device.program @collect_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %n = device.symbol "N"
    %some = arith.cmpi slt, %zero, %n : index
    scf.if %some {
      // expected-error @below {{expects to stand in a kernel's own block, before its roles (C1)}}
      %list, %count = device.collect %zero to %n : (!device.members<64>), (index) {
      ^bb0(%t: index):
        %in = arith.cmpi slt, %t, %n : index
        device.yield %in : i1
      }
    }
  }
}

// -----

device.program @collect_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %n = device.symbol "N"
    // expected-error @below {{expects one index as the argument of its body (C2)}}
    %list, %count = device.collect %zero to %n : (!device.members<64>), (index) {
    ^bb0(%t: index, %u: index):
      %in = arith.cmpi slt, %t, %n : index
      device.yield %in : i1
    }
  }
}

// -----

device.program @collect_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %n = device.symbol "N"
    // expected-error @below {{expects one boolean and one count per list (C3), but got 2 and 1 for 1}}
    %list, %count = device.collect %zero to %n : (!device.members<64>), (index) {
    ^bb0(%t: index):
      %in = arith.cmpi slt, %t, %n : index
      device.yield %in, %in : i1, i1
    }
  }
}

// -----

device.program @collect_c4 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %zero = arith.constant 0 : index
    %n = device.symbol "N"
    // expected-error @below {{expects lists of one capacity (C4), but got '!device.members<64>', '!device.members<32>'}}
    %r:4 = device.collect %zero to %n : (!device.members<64>, !device.members<32>), (index, index) {
    ^bb0(%t: index):
      %in = arith.cmpi slt, %t, %n : index
      device.yield %in, %in : i1, i1
    }
  }
}

// -----

device.program @member_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @j blocks "N" threads 128 {
    %other = builtin.unrealized_conversion_cast to !device.members<64>
    %zero = arith.constant 0 : index
    // expected-error @below {{expects a list that the same kernel collects (C1)}}
    %t = device.member %other[%zero] : <64>
  }
}

// -----

// expected-error @below {{expects room for 1 to 65536 indices (C1), but got 0}}
func.func private @members_none(!device.members<0>)

// -----

// expected-error @below {{expects room for 1 to 65536 indices (C1), but got 65537}}
func.func private @members_many(!device.members<65537>)

// -----

device.program @signal_c2 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i32>]} {
^bb0(%y: !moa.array<[N], i32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{'device.signal' op expects an array of the workspace (C2)}}
    device.signal %y[%i] : !moa.array<[N], i32>
  }
}

// -----

device.program @signals_c3 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i32>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i32>, %w: !moa.array<[N], i64>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{'device.signals' op expects the array's element type 'i64' (C3), but got 'i32'}}
    %n = device.signals %w[%i] : !moa.array<[N], i64>
  }
}

// -----

func.func @signal_c1(%c: !moa.array<[4], i32>, %i: index) {
  // expected-error @below {{'device.signal' op expects a parameter of the program (C1)}}
  device.signal %c[%i] : !moa.array<[4], i32>
  return
}

// -----

func.func @signals_c1(%c: !moa.array<[4], i32>, %i: index) {
  // expected-error @below {{'device.signals' op expects a parameter of the program (C1)}}
  %n = device.signals %c[%i] : !moa.array<[4], i32>
  return
}

// -----

device.program @signals_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], i32>]} {
^bb0(%x: !moa.array<[N], i32>, %y: !moa.array<[N], i32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{'device.signals' op expects an array of the workspace (C2)}}
    %n = device.signals %x[%i] : !moa.array<[N], i32>
  }
}

// -----

device.program @signal_c3 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], i32>], workspace_names = ["w"], workspace_types = [!moa.array<[N], i64>]} {
^bb0(%y: !moa.array<[N], i32>, %w: !moa.array<[N], i64>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    // expected-error @below {{'device.signal' op expects the array's element type 'i64' (C3), but got 'i32'}}
    device.signal %w[%i] : !moa.array<[N], i64>
  }
}

// -----

func.func @raise_c1(%c: !moa.array<[1], i32>) {
  // expected-error @below {{'device.raise' op expects a parameter of the program (C1)}}
  device.raise %c : !moa.array<[1], i32>
  return
}

// -----

device.program @raise_c3 attributes {symbols = [], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[1], i32>], workspace_names = ["w"], workspace_types = [!moa.array<[1], i64>]} {
^bb0(%y: !moa.array<[1], i32>, %w: !moa.array<[1], i64>):
  device.kernel @k blocks "1" threads 128 {
    // expected-error @below {{'device.raise' op expects the array's element type 'i64' (C3), but got 'i32'}}
    device.raise %w : !moa.array<[1], i64>
  }
}

// -----

device.program @raise_c2 attributes {symbols = [], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[1], i32>]} {
^bb0(%y: !moa.array<[1], i32>):
  device.kernel @k blocks "1" threads 128 {
    // expected-error @below {{'device.raise' op expects an array of the workspace (C2)}}
    device.raise %y : !moa.array<[1], i32>
  }
}

// -----

device.program @raise_c4 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[1], i32>], workspace_names = ["w"], workspace_types = [!moa.array<[1, N], i32>]} {
^bb0(%y: !moa.array<[1], i32>, %w: !moa.array<[1, N], i32>):
  device.kernel @k blocks "1" threads 128 {
    // expected-error @below {{'device.raise' op expects an array of one element (C4), but got '!moa.array<[1, N], i32>'}}
    device.raise %w : !moa.array<[1, N], i32>
  }
}

// -----

device.program @exit_c1 attributes {symbols = [], requires = [], arg_names = [], result_names = [], result_types = []} {
  device.kernel @k blocks "1" threads 128 {
    %yes = arith.constant true
    scf.if %yes {
      // expected-error @below {{'device.exit_if' op expects to stand in a kernel's own block (C1)}}
      device.exit_if %yes
    }
  }
}

// -----

device.program @exit_c2 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  device.kernel @k blocks "N" threads 128 {
    %i = device.block
    %yes = arith.constant true
    %e = arith.constant 1.0 : f32
    // expected-note @below {{this operation is before it}}
    device.store %e, %y[%i] : f32, !moa.array<[N], f32>
    // expected-error @below {{'device.exit_if' op expects only loads and operations without effects before it (C2)}}
    device.exit_if %yes
  }
}
