// RUN: moa-opt %s -convert-onf-to-vector -split-input-file -verify-diagnostics

onf.kernel @runtime_state attributes {symbols = ["N", "M", "D"], requires = [],
    arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, D], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, D], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %s = onf.fold "j" in "M" : !moa.array<[D], f32> {
    ^bb0(%j: index):
      %v = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @+1 {{carries an axis whose extent, "D", is known at run time only; scratch memory is static on a CPU: give the extent at compile time}}
      %a = onf.acc add "s" carries ["d"] in ["D"] refs() mul [] : () -> !moa.array<[D], f32> {
      ^bb0(%d: index):
        onf.yield %v : f32
      } repair {}
      onf.yield %a : !moa.array<[D], f32>
    }
  }
}

// -----

onf.kernel @unknown_symbol attributes {symbols = ["N"], requires = [],
    arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @+1 {{expects the kernel's symbols, but got 'Q'}}
    %v = onf.load %x[%i] at ["$0 + Q"] : !moa.array<[N], f32> -> f32
    onf.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @lanes attributes {symbols = ["N"], requires = [],
    arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects 1, 2, 4, … 64 lanes on its last axis, but got 12}}
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 0, lane: 12>] {
  ^bb0(%i: index):
    %v = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    onf.store %v, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @store_into_input attributes {symbols = ["N"], requires = [],
    arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %v = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    // expected-error @+1 {{expects an output}}
    onf.store %v, %x[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @no_vector_code attributes {symbols = ["N"], requires = [],
    arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %v = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    // expected-error @+1 {{cannot be lowered to vector code}}
    %w = scf.execute_region -> f32 {
      scf.yield %v : f32
    }
    onf.store %w, %y[%i] : f32, !moa.array<[N], f32>
  }
}
