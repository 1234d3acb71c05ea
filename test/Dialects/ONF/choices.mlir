// RUN: moa-opt %s -onf-verify -verify-diagnostics -split-input-file

// Nests that run where an element of an array has one value: constraint C5 and what the contract says.

// -----

onf.kernel @sound attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

// A nest with two axes chosen by an array without any.
onf.kernel @whole attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p", "q", "t"], temporary_types = [!moa.array<[H], i32>, !moa.array<[], i32>, !moa.array<[H, N], f32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>, %q: !moa.array<[], i32>, %t: !moa.array<[H, N], f32>):
  onf.for [] in [] {
    %c1 = arith.constant 1 : i32
    onf.store %c1, %q[] : i32, <[], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %q [] is 1 : !moa.array<[], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %t[%h, %n] : f32, <[H, N], f32>
  }

  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @c5_axes attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  // expected-error @below {{expects increasing axes before the last one and a choice of i32 over their extents (C5), but got}}
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [1] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o3_input attributes {symbols = ["H", "N"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %z: !moa.array<[H], i32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  // expected-error @below {{expects a choice of a nest at the top, by a temporary (O3)}}
  onf.for ["h", "n"] in ["H", "N"] chosen by %z [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_always attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    // expected-error @below {{expects the stores of an output in nests chosen by one array along the same axes, for different values (O4)}}
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_equal attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    // expected-error @below {{expects the stores of an output in nests chosen by one array along the same axes, for different values (O4)}}
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_values attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 2 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    // expected-error @below {{expects a selection among the values that nests are chosen for (O4)}}
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_computed attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.addi %c1, %c0 : index
    // expected-error @below {{expects a selection among the values that nests are chosen for (O4)}}
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_chosen attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p", "q"], temporary_types = [!moa.array<[H], i32>, !moa.array<[], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>, %q: !moa.array<[], i32>):
  onf.for [] in [] {
    %c1 = arith.constant 1 : i32
    onf.store %c1, %q[] : i32, <[], i32>
  }

  onf.for ["h"] in ["H"] chosen by %q [] is 1 : !moa.array<[], i32> {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    // expected-error @below {{expects a nest without a choice to store the array that nests of an output are chosen by (O4)}}
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o7_early attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  // expected-error @below {{expects a nest after the one that stores the temporary p (O7)}}
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

// expected-error @below {{expects one store to temporary p (O4), but got 0}}
onf.kernel @unstored attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["p"], temporary_types = [!moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %p: !moa.array<[H], i32>):
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_refined attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["o", "p"], temporary_types = [!moa.array<[H], i32>, !moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %o: !moa.array<[H], i32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %o[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %o [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %most = arith.constant 2.0 : f32
    %left = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %is = arith.cmpf ogt, %e, %most : f32
    %c = arith.select %is, %c1, %c0 : index
    %o_h = onf.load %o[%h] : <[H], i32> -> i32
    %open = arith.cmpi eq, %o_h, %one : i32
    %choice = arith.select %open, %c, %left : index
    onf.store %choice, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = arith.negf %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_refined_taken attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["o", "p"], temporary_types = [!moa.array<[H], i32>, !moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %o: !moa.array<[H], i32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %o[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %o [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %most = arith.constant 2.0 : f32
    %left = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 0 : i32
    %is = arith.cmpf ogt, %e, %most : f32
    %c = arith.select %is, %c1, %c0 : index
    %o_h = onf.load %o[%h] : <[H], i32> -> i32
    %open = arith.cmpi eq, %o_h, %one : i32
    %choice = arith.select %open, %c, %left : index
    onf.store %choice, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = arith.negf %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    // expected-error @below {{expects the stores of an output in nests chosen by one array, or by it and one that refines it (O4)}}
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_refined_outside attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["o", "p"], temporary_types = [!moa.array<[H], i32>, !moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %o: !moa.array<[H], i32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %o[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %o [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %most = arith.constant 2.0 : f32
    %left = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %is = arith.cmpf ogt, %e, %most : f32
    %c = arith.select %is, %c1, %c0 : index
    %o_h = onf.load %o[%h] : <[H], i32> -> i32
    %open = arith.cmpi eq, %o_h, %one : i32
    %choice = arith.select %open, %c, %left : index
    onf.store %choice, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = arith.negf %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is -1 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    // expected-error @below {{expects the stores of an output in nests chosen by one array, or by it and one that refines it (O4)}}
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}

// -----

onf.kernel @o4_refined_values attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[H, N], f32>], temporary_names = ["o", "p"], temporary_types = [!moa.array<[H], i32>, !moa.array<[H], i32>]} {
^bb0(%x: !moa.array<[H, N], f32>, %y: !moa.array<[H, N], f32>, %o: !moa.array<[H], i32>, %p: !moa.array<[H], i32>):
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %is = arith.cmpf ogt, %e, %zero : f32
    %c = arith.select %is, %c1, %c0 : index
    onf.store %c, %o[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %o [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    onf.store %e, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h"] in ["H"] {
  ^bb0(%h: index):
    %e = onf.load %x[%h] at ["$0", "0"] : <[H, N], f32> -> f32
    %most = arith.constant 2.0 : f32
    %left = arith.constant -1 : index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i32
    %is = arith.cmpf ogt, %e, %most : f32
    %c = arith.select %is, %c1, %c0 : index
    %o_h = onf.load %o[%h] : <[H], i32> -> i32
    %open = arith.cmpi eq, %o_h, %one : i32
    %choice = arith.select %open, %c, %left : index
    // expected-error @below {{expects a selection among the values that nests are chosen for (O4)}}
    onf.store %choice, %p[%h] : index, <[H], i32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 0 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = arith.negf %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
  onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 2 : !moa.array<[H], i32> {
  ^bb0(%h: index, %n: index):
    %e = onf.load %x[%h, %n] : <[H, N], f32> -> f32
    %v = math.exp %e : f32
    onf.store %v, %y[%h, %n] : f32, <[H, N], f32>
  }
}
