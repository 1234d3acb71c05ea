// RUN: moa-opt %s -onf-verify -verify-diagnostics -split-input-file

// The contract of the operational normal form, one violation per clause.

onf.kernel @sound attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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

// expected-error @below {{expects distinct names (K1), but 'y' is declared twice}}
onf.kernel @k1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["y"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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

// expected-error @below {{expects declared symbols (K2), but got 'N' in 'N'}}
onf.kernel @k2 attributes {symbols = ["M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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

onf.kernel @o1_op attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{'moa.iota' op expects loops, folds and scalar operations (O1)}}
    %z = moa.iota "N" -> !moa.array<[N], index>
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o1_array attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant true
    // expected-error @below {{'arith.select' op expects no array but parameters and states (O1)}}
    %z = arith.select %c, %x, %x : !moa.array<[N], f32>
    %r = onf.load %z[%i] : !moa.array<[N], f32> -> f32
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o2_nest attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  // expected-error @below {{'onf.for' op expects declared symbols (O2), but got 'K' in 'K'}}
  onf.for ["i"] in ["K"] {
  ^bb0(%i: index):
    %r = arith.constant 0.0 : f32
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o2_fold attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{'onf.fold' op expects declared symbols (O2), but got 'K' in 'K'}}
    %r = onf.fold "j" in "K" : f32 {
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

onf.kernel @o2_extent attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{'onf.extent' op expects declared symbols (O2), but got 'K' in 'K'}}
    %k = onf.extent "K"
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

onf.kernel @o2_factor attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects declared symbols (O2), but got 'K' in 'K'}}
      %e = onf.load %x[%i, %j] at ["$0", "K*$1"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @o2_constant attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      // expected-error @below {{'onf.load' op expects declared symbols (O2), but got 'x.s1' in 'x.s1 + 1'}}
      %e = onf.load %x[%i, %j] at ["$0", "$1 + x.s1 + 1"] : !moa.array<[N, M], f32> -> f32
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

onf.kernel @o3_load attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{'onf.load' op expects an input of the kernel or a temporary (O3)}}
    %z = onf.load %y[%i] : !moa.array<[N], f32> -> f32
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

onf.kernel @o3_store attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{'onf.store' op expects an output of the kernel or a temporary (O3)}}
    onf.store %r, %x[%i, %i] : f32, !moa.array<[N, M], f32>
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects one store to output y (O4), but got 0}}
onf.kernel @o4_missing attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
  }
}

// -----

// expected-error @below {{expects one store to output y (O4), but got 2}}
onf.kernel @o4_twice attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_constant attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{expects the index of a loop over N on axis 0 (O4), but got '$0 + 1'}}
    onf.store %r, %y[%i] at ["$0 + 1"] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_factor attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{expects the index of a loop over N on axis 0 (O4), but got '2*$0'}}
    onf.store %r, %y[%i] at ["2*$0"] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_index attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant 0 : index
    %r = onf.fold "j" in "M" : f32 {
    ^bb0(%j: index):
      %e = onf.load %x[%i, %j] : !moa.array<[N, M], f32> -> f32
      %a = onf.acc add "a" carries [] in [] refs() mul [] : () -> f32 {
        onf.yield %e : f32
      } repair {
      }
      onf.yield %a : f32
    }
    // expected-error @below {{expects the index of a loop over N on axis 0 (O4)}}
    onf.store %r, %y[%c] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_extent attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i"] in ["M"] {
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
    // expected-error @below {{expects the index of a loop over N on axis 0 (O4)}}
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_axis attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
    // expected-error @below {{expects the index of a loop over N on axis 0 (O4), but got '0'}}
    onf.store %r, %y[] at ["0"] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_loop attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>):
  onf.for ["i", "k"] in ["N", "M"] {
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
    // expected-error @below {{expects every enclosing loop's index on an axis (O4), but "k" is not used}}
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o5 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
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
      %c = arith.constant 0 : index
      // expected-error @below {{'onf.at' op expects the final state of a fold (O5)}}
      %z = onf.at %a[%c] : !moa.array<[4], f32> -> f32
      onf.yield %a : !moa.array<[4], f32>
    }
    %r = arith.constant 0.0 : f32
    onf.store %r, %y[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// expected-error @below {{expects a lift on every nest or on none (O6)}}
onf.kernel @o6 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] lift [#onf.axis<core: 0>] {
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
    onf.store %r, %z[%i] : f32, !moa.array<[N], f32>
  }
}

// -----

// A temporary is stored by one nest and loaded by a later one.
onf.kernel @passes attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], temporary_names = ["t"], temporary_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %t[%i] : f32, <[N], f32>
  }
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %z = onf.load %t[%i] : <[N], f32> -> f32
    onf.store %z, %y[%i] : f32, <[N], f32>
  }
}

// -----

onf.kernel @early attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], temporary_names = ["t"], temporary_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    // expected-error @below {{'onf.load' op expects a nest after the one that stores the temporary t (O7)}}
    %z = onf.load %t[%i] : <[N], f32> -> f32
    onf.store %z, %y[%i] : f32, <[N], f32>
  }
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %t[%i] : f32, <[N], f32>
  }
}

// -----

// expected-error @below {{'onf.kernel' op expects one store to temporary t (O4), but got 0}}
onf.kernel @unstored attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], temporary_names = ["t"], temporary_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %z = onf.load %t[%i] : <[N], f32> -> f32
    onf.store %z, %y[%i] : f32, <[N], f32>
  }
}

// -----

// expected-error @below {{'onf.kernel' op expects distinct names (K1), but 'x' is declared twice}}
onf.kernel @twice attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>], temporary_names = ["x"], temporary_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    onf.store %c, %t[%i] : f32, <[N], f32>
  }
}

// -----

onf.kernel @o4_twice attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N, N], f32>]} {
^bb0(%y: !moa.array<[N, N], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %c = arith.constant 1.0 : f32
    // expected-error @below {{expects an index of its own on axis 1 (O4)}}
    onf.store %c, %y[%i, %i] : f32, !moa.array<[N, N], f32>
  }
}

// -----

// Two versions may store one output if exactly one of them runs, and two loops may cover an axis in parts.
onf.kernel @o4_versions attributes {symbols = ["H", "G", "N"], requires = ["H%G == 0"], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>):
  onf.for ["h", "n"] in ["H", "N"] where ["N" > "4"] {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : !moa.array<[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, !moa.array<[H, N], f32>
  }
  onf.for ["g", "n", "r"] in ["G", "N", "H/G"] where ["5" > "N"] {
  ^bb0(%g: index, %n: index, %r: index):
    %e = onf.load %x[%g, %r, %n] at ["(H/G)*$0 + $1", "$2"] : !moa.array<[H, N], f32> -> f32
    onf.store %e, %y[%g, %r, %n] at ["(H/G)*$0 + $1", "$2"] : f32, !moa.array<[H, N], f32>
  }
}

// -----

// expected-error @below {{expects one store to output y (O4), but got 2}}
onf.kernel @o4_both_versions attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  onf.for ["n"] in ["N"] where ["N" > "4"] {
  ^bb0(%n: index):
    %e = onf.load %x[%n] : !moa.array<[N], f32> -> f32
    onf.store %e, %y[%n] : f32, !moa.array<[N], f32>
  }
  onf.for ["n"] in ["N"] where ["6" > "N"] {
  ^bb0(%n: index):
    %e = onf.load %x[%n] : !moa.array<[N], f32> -> f32
    onf.store %e, %y[%n] : f32, !moa.array<[N], f32>
  }
}

// -----

onf.kernel @o4_parts attributes {symbols = ["H", "G"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H], f32>]} {
^bb0(%x: !moa.array<[H], f32>, %y: !moa.array<[H], f32>):
  onf.for ["g", "r"] in ["G", "H/G"] {
  ^bb0(%g: index, %r: index):
    %e = onf.load %x[%g] : !moa.array<[H], f32> -> f32
    // G need not divide H.
    // expected-error @below {{expects the index of a loop over H on axis 0 (O4)}}
    onf.store %e, %y[%g, %r] at ["(H/G)*$0 + $1"] : f32, !moa.array<[H], f32>
  }
}
