// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Every constraint of the verifiers of kernels, nests, folds and lifts of onf,
// named as the message names it.

// expected-error @below {{expects one argument per input, output and temporary (C1), but got 2 for 2, 1 and 0}}
onf.kernel @kernel_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects one argument per input, output and temporary (C1)}}
onf.kernel @kernel_c1_names attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects outputs and temporaries of the declared types (C2), but got '!moa.array<[N], f32>'}}
onf.kernel @kernel_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], bf16>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects arguments of array type (C2)}}
onf.kernel @kernel_c2_scalar attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %z: f32, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{'onf.kernel' op expects one tolerance or unit per result (C4), but got 2 for 1}}
onf.kernel @kernel_c4_count attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], within = [unit, unit]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %e = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    onf.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{'onf.kernel' op expects tolerances of floats only (C4), but got one of '!moa.array<[N], i8>'}}
onf.kernel @kernel_c4_type attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], i8>], within = [#moa.within<0.5>]} {
^bb0(%x: !moa.array<[N], i8>, %y: !moa.array<[N], i8>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %e = onf.load %x[%i] : !moa.array<[N], i8> -> i8
    onf.store %e, %y[%i] : i8, !moa.array<[N], i8>
  }
}

// -----

onf.kernel @kernel_c3 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{'onf.extent' op expects only onf.for at the top of a kernel (C3)}}
  %n = onf.extent "N"
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @for_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{'onf.for' op expects one index argument per extent (C1), but got 2 for 1}}
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index, %k: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @for_c1_type attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{'onf.for' op expects one index argument per extent (C1)}}
  onf.for ["i"] in ["N"] {
  ^bb0(%i: i32):
    %r = arith.constant 0.0 : f32
  }
}

// -----

onf.kernel @for_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects one name per extent (C2), but got 2 for 1}}
  onf.for ["i", "k"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @for_c3_count attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects one #onf.axis per index (C3), but got 0 for 1}}
  onf.for ["i"] in ["N"] lift [] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @for_c3_kind attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects one #onf.axis per index (C3)}}
  onf.for ["i"] in ["N"] lift [64] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @axis_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects one size per factor, and a factor (C1)}}
  onf.for ["i"] in ["N"] lift [#onf.axis<>] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @axis_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects size 0, the rest, for the outermost factor (C2), but got 4}}
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 4>] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @axis_c3 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects positive sizes for the inner factors (C3), but got 0}}
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 0, lane: 0>] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @axis_resource attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{unknown resource 'moon'}}
  onf.for ["i"] in ["N"] lift [#onf.axis<moon: 0>] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{'onf.fold' op expects one index argument per extent (C1), but got 2 for 1}}
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index, %k: index):
      %a = arith.constant 0.0 : f32
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects onf.yield at its end (C2)}}
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c3 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects at most one onf.guard (C3), but got 2}}
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %t = arith.constant true
      onf.guard %t
      onf.guard %t
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c4 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects every state of the fold, in order (C4)}}
      onf.yield %e : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c4_order attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r, %s = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      %b = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects every state of the fold, in order (C4)}}
      onf.yield %b, %a : f32, f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c5 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects results of the states' types (C5)}}
    %s = onf.fold "j" in "M" : f64 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
  }
}

// -----

onf.kernel @fold_c6 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects #onf.piece attributes (C6), but got 1 : i64}}
    %r = onf.fold "j" in "M" pieces [1] of () : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c7 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects bounds over two tile indices and 0 operands (C7), but got affine_map<(d0) -> (0)>}}
    %r = onf.fold "j" in "M" pieces [#onf.piece<visit (d0) -> (0) to (d0, d1) -> (d1) full false (d0, d1) -> (0) to (d0, d1) -> (0)>] of () : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @fold_c7_bounds attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = onf.extent "M"
    // expected-error @below {{expects bounds over two tile indices and 1 operands (C7)}}
    %r = onf.fold "j" in "M" pieces [#onf.piece<visit (d0, d1) -> (0) to (d0, d1) -> (d1) full false (d0, d1) -> (0) to (d0, d1) -> (0)>] of (%c) : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @guard_parent attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %t = arith.constant true
    // expected-error @below {{'onf.guard' op expects parent op 'onf.fold'}}
    onf.guard %t
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_parent attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    %e = arith.constant 0.0 : f32
    // expected-error @below {{'onf.acc' op expects parent op 'onf.fold'}}
    %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @pipeline_without_registers attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects registers per thread of at least 1 (C1), but got 240 and 0}}
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0>] pipeline <consumer = 240, producer = 0, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @pipeline_without_group attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects a group of at least 0 bytes (C2), but got -1}}
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = -1, lazy = 0> {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @pipeline_without_bound attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects a bound of repairs of at least 0 (C3), but got -1}}
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = -1> {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @pipeline_shares attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects shares among at least 0 multiprocessors (C4), but got -1}}
  onf.for ["i"] in ["N"] lift [#onf.axis<block: 0>] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 1, shares = -1> {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @pipeline_without_lift attributes {symbols = ["N"], requires = [], arg_names = [],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%y: !moa.array<[N], f32>):
  // expected-error @+1 {{expects a lift if it has a pipeline (C4)}}
  onf.for ["i"] in ["N"] pipeline <consumer = 240, producer = 24, overlap = true, descending = false, group = 1, lazy = 0> {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @+1 {{expects the name of a form (C1)}}
module attributes {moa.forms = [#onf.form<"", {}>]} {}

// -----

// expected-error @+1 {{expects data or a reason for form 'tiles' (C2), but got ""}}
module attributes {moa.forms = [#onf.form<tiles, "">]} {}

// -----

// expected-error @+1 {{expects data or a reason for form 'tiles' (C2), but got 1 : i64}}
module attributes {moa.forms = [#onf.form<tiles, 1>]} {}

// -----

// expected-error @+1 {{expects 'axes' and 'folds' of #onf.axis in form 'lanes' (C3)}}
module attributes {moa.forms = [#onf.form<lanes, {axes = [#onf.axis<block: 0>]}>]} {}

// -----

// expected-error @+1 {{expects 'axes' and 'folds' of #onf.axis in form 'lanes' (C3)}}
module attributes {moa.forms = [#onf.form<lanes, {axes = [0], folds = []}>]} {}

// -----

onf.kernel @for_c6_pairs attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{expects pairs of expressions in 'where', on a nest at the top of a kernel (C6)}}
  "onf.for"() <{names = ["i"], extents = [#moa.expr<"N">], where = [#moa.expr<"N">]}> ({
  ^bb0(%i: index):
    %e = onf.load %x[%i] : !moa.array<[N], f32> -> f32
    onf.store %e, %y[%i] : f32, !moa.array<[N], f32>
  }) : () -> ()
}

// -----

onf.kernel @for_c6_inner attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N, M], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{expects pairs of expressions in 'where', on a nest at the top of a kernel (C6)}}
    onf.for ["j"] in ["M"] where ["N" > "M"] {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      onf.store %e, %y[%i, %j] : f32, !moa.array<[N, M], f32>
    }
  }
}
