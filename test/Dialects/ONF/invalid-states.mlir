// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Every constraint of the verifiers of states and addresses of onf,
// named as the message names it.

onf.kernel @acc_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : !moa.array<[4], f32> {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{'onf.acc' op expects one index argument per extent (C1), but got 0 for 1}}
      %a = onf.acc add "a" carries ["d"] in ["4"] refs() mul [] : () -> !moa.array<[4], f32> {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : !moa.array<[4], f32>
    }
  }
}

// -----

onf.kernel @acc_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects one name per carried axis (C2), but got 1 for 0}}
      %a = onf.acc add "a" carries ["d"] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c3_shape attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : !moa.array<[8], f32> {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects the carried extents as result shape (C3), but got '!moa.array<[8], f32>'}}
      %a = onf.acc add "a" carries ["d"] in ["4"] refs() mul [] : () -> !moa.array<[8], f32> {
        ^bb0(%d: index):
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : !moa.array<[8], f32>
    }
  }
}

// -----

onf.kernel @acc_c3_scalar attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects an array result exactly for carried axes (C3), but got 'f32'}}
      %a = onf.acc add "a" carries ["d"] in ["4"] refs() mul [] : () -> f32 {
        ^bb0(%d: index):
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
  }
}

// -----

onf.kernel @acc_c3_array attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : !moa.array<[], f32> {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects an array result exactly for carried axes (C3), but got '!moa.array<[], f32>'}}
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> !moa.array<[], f32> {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : !moa.array<[], f32>
    }
  }
}

// -----

onf.kernel @acc_c4 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects a value of type 'f32' (C4)}}
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        %z = arith.constant 0.0 : f64
        onf.yield %z : f64
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c4_count attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects a value of type 'f32' (C4)}}
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e, %e : f32, f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c4_empty attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects a value of type 'f32' (C4)}}
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
      ^bb0:
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c5_value attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects refs to be scalar states of the same fold (C5)}}
      %a = onf.acc add "a" carries [] in [] refs(%e) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new : f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c5_outer attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %q = onf.fold "k" in "M" : f32 {
    ^bb0(%k: index):
      %e0 = onf.load %x[%i, %k] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e0 : f32
      } repair {
      }
      %w = onf.fold "j" in "M" : f32 {
      ^bb0(%j: index):
        %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
        // expected-error @below {{expects refs to be scalar states of the same fold (C5)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new : f32
      }
        onf.yield %a : f32
      }
      onf.yield %m : f32
    }
  }
}

// -----

onf.kernel @acc_c6_count attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects one singular value, a float, per ref (C6), but got [] for 1}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new : f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c6_kind attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects one singular value, a float, per ref (C6), but got [0] for 1}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new : f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_missing attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects a repair exactly where there are refs (C7)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_idle attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects a repair exactly where there are refs (C7)}}
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0:
        onf.yield %e : f32
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_arguments attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects a repair of an old and a new value per ref (C7)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%new: f32):
        onf.yield %new : f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_types attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects a repair of an old and a new value per ref (C7)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f64, %new: f64):
        onf.yield %e : f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_value attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects a repair of an old and a new value per ref (C7)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) mul [0.0 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c8 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects mul, add or select as the repair's operation (C8)}}
      %a = onf.acc add "a" carries [] in [] refs() sub [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c9 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      // expected-error @below {{expects booleans for 'or' (C9), but got 'f32'}}
      %a = onf.acc or "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @load_c1_count attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects one index per axis (C1), but got 1 for rank 2}}
      %e = onf.load %x[%i] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c1_linear attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{expects a form that is linear in the terms $0, $1, … (C1), but got '$1*$0'}}
      %e = onf.load %x[%i, %j] at ["$0", "$1*$0"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c1_constant attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{expects a form that is linear in the terms $0, $1, … (C1), but got '$1 + *'}}
      %e = onf.load %x[%i, %j] at ["$0", "$1 + *"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c1_quotient attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{expects a form that is linear in the terms $0, $1, … (C1), but got '$1/2'}}
      %e = onf.load %x[%i, %j] at ["$0", "$1/2"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c1_term attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects indices over its 2 terms (C1), but got $2}}
      %e = onf.load %x[%i, %j] at ["$0", "$1 + $2"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c1_unused attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects every term in an index (C1), but $1 is not used}}
      %e = onf.load %x[%i, %j] at ["$0", "0"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @load_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects the element type (C2), but got 'f64'}}
      %l = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f64
      %e = arith.truncf %l : f64 to f32
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

onf.kernel @store_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{'onf.store' op expects one index per axis (C1), but got 0 for rank 1}}
    onf.store %r, %y[%i] at [] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @store_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    %k = arith.fptosi %r : f32 to i32
    // expected-error @below {{'onf.store' op expects a value of the kind of the elements (C2), but got 'i32' for 'f32'}}
    onf.store %k, %y[%i] : i32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @at_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %q = onf.fold "j" in "M" : !moa.array<[4], f32> {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries ["d"] in ["4"] refs() mul [] : () -> !moa.array<[4], f32> {
        ^bb0(%d: index):
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : !moa.array<[4], f32>
    }
    // expected-error @below {{'onf.at' op expects a full index (C1), but got 0 for rank 1}}
    %r = onf.at %q[] : !moa.array<[4], f32> -> f32
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @at_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %q = onf.fold "j" in "M" : !moa.array<[4], f32> {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries ["d"] in ["4"] refs() mul [] : () -> !moa.array<[4], f32> {
        ^bb0(%d: index):
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : !moa.array<[4], f32>
    }
    // expected-error @below {{'onf.at' op expects the element type (C2), but got 'f64'}}
    %s = onf.at %q[%i] : !moa.array<[4], f32> -> f64
    %r = arith.truncf %s : f64 to f32
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c10 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:2 = onf.fold "j" in "M" : f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects others to be scalar sums of the same fold and type, and a repair by a factor (C10)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) others(%m : f32) mul [0x7FC00000 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new, %old : f32, f32
      }
      onf.yield %m, %a : f32, f32
    }
    onf.store %r#1, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @acc_c7_others attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r:3 = onf.fold "j" in "M" : f32, f32, f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %m = onf.acc max "m" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      %s = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      // expected-error @below {{expects a repair of an old and a new value per ref that yields a factor and a value per other (C7)}}
      %a = onf.acc add "a" carries [] in [] refs(%m) others(%s : f32) mul [0x7FC00000 : f32] : (f32) -> f32 {
        onf.yield %e : f32
      } repair {
      ^bb0(%old: f32, %new: f32):
        onf.yield %new : f32
      }
      onf.yield %m, %s, %a : f32, f32, f32
    }
    onf.store %r#2, %y[%i] : f32, !moa.array<[N], f32>
  }
}
