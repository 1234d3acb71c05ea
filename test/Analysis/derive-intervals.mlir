// RUN: moa-opt %s --onf-derive-intervals --split-input-file --verify-diagnostics | FileCheck %s
// RUN: moa-opt %s --onf-derive-intervals --split-input-file --verify-diagnostics | moa-opt --split-input-file --verify-roundtrip

// Each kernel counts the present indices j of every row (b, i); what differs is
// the guard. The pieces are checked against the guard, index by index, in the
// unit tests and by the interpreter.

// j ≤ i.
// CHECK-LABEL: @causal
// CHECK: onf.fold
// CHECK-SAME: visit (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (s0, d1 + 1)
// CHECK-SAME: full true (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (s0, d0 + 1)
onf.kernel @causal attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %p = arith.cmpi sle, %j, %i : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// j ≤ i + (M − N): the products of the polynomial are symbols of their own, which
// shows that the bound stays below M.
// CHECK-LABEL: @bottom_right
// CHECK: %[[M:.*]] = onf.extent "M"
// CHECK: %[[N:.*]] = onf.extent "N"
// CHECK: onf.fold "j" in "M"
// CHECK-SAME: visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d1 + s0 - s1 + 1)
// CHECK-SAME: full true (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s0, d0 + s0 - s1 + 1)
// CHECK-SAME: of(%[[M]], %[[N]])
onf.kernel @bottom_right attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %c = onf.extent "M - N"
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %l = arith.addi %i, %c : index
      %p = arith.cmpi sle, %j, %l : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// i − w < j ≤ i with a width known at run time only: the load moves before the
// fold, and a width below 1 empties the piece.
// CHECK-LABEL: @window
// CHECK: %[[W:.*]] = onf.load %w
// CHECK: %[[X:.*]] = arith.index_cast %[[W]]
// CHECK: %[[M:.*]] = onf.extent "M"
// CHECK: onf.fold
// CHECK-SAME: visit (d0, d1)[s0, s1] -> (0, d0 - s0 + 1) to (d0, d1)[s0, s1] -> (s1, ((s0 - 1) floordiv 281474976710656 + 1) * 281474976710656, d1 + 1)
// CHECK-SAME: full true (d0, d1)[s0, s1] -> (0, d1 - s0 + 1) to (d0, d1)[s0, s1] -> (s1, d0 + 1)
// CHECK-SAME: of(%[[X]], %[[M]])
onf.kernel @window attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["w"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%w: !moa.array<[], i32>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %w32 = onf.load %w[] : !moa.array<[], i32> -> i32
      %wi = arith.index_cast %w32 : i32 to index
      %d = arith.subi %i, %j : index
      %q = arith.cmpi slt, %d, %wi : index
      %r = arith.cmpi sle, %j, %i : index
      %p = arith.andi %q, %r : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A 64-bit value is clamped, so that no bound wraps around.
// CHECK-LABEL: @wide_window
// CHECK: %[[W:.*]] = onf.load %w
// CHECK: %[[LOW:.*]] = arith.constant -72057594037927936 : index
// CHECK: %[[HIGH:.*]] = arith.constant 72057594037927936 : index
// CHECK: %[[MAX:.*]] = arith.maxsi %{{.*}}, %[[LOW]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[MAX]], %[[HIGH]]
// CHECK: onf.fold
// CHECK-SAME: of(%[[MIN]], %{{.*}})
onf.kernel @wide_window attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["w"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%w: !moa.array<[], i64>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %w64 = onf.load %w[] : !moa.array<[], i64> -> i64
    %wi = arith.index_cast %w64 : i64 to index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %d = arith.subi %j, %i : index
      %p = arith.cmpi sle, %d, %wi : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// ⌊i/16⌋ = ⌊j/16⌋: exact through the quotients.
// CHECK-LABEL: @block_diagonal
// CHECK: onf.fold
// CHECK-SAME: visit (d0, d1)[s0] -> (0, (d0 floordiv 16) * 16) to (d0, d1)[s0] -> (s0, (d1 floordiv 16) * 16 + 16)
// CHECK-SAME: full true (d0, d1)[s0] -> (0, (d1 floordiv 16) * 16) to (d0, d1)[s0] -> (s0, (d0 floordiv 16) * 16 + 16)
onf.kernel @block_diagonal attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %k = arith.constant 16 : index
    %bi = arith.floordivsi %i, %k : index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %bj = arith.floordivsi %j, %k : index
      %p = arith.cmpi eq, %bi, %bj : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// j < P[b] ∨ j ≤ i: two pieces, and an element that does not depend on the row is
// a symbol.
// CHECK-LABEL: @prefix
// CHECK: onf.fold
// CHECK-SAME: pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s1, s0) full true
// CHECK-SAME: #onf.piece<visit (d0, d1)[s0, s1] -> (0) to (d0, d1)[s0, s1] -> (s1, d1 + 1) full true
// CHECK-SAME: of(%{{.*}}, %{{.*}})
onf.kernel @prefix attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["P"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%P: !moa.array<[B], i32>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %p32 = onf.load %P[%b] : !moa.array<[B], i32> -> i32
    %px = arith.index_cast %p32 : i32 to index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %u = arith.cmpi slt, %j, %px : index
      %v = arith.cmpi sle, %j, %i : index
      %p = arith.ori %u, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A boolean array is no arithmetic of the indices: it bounds nothing and keeps the
// piece from being full.
// CHECK-LABEL: @mask_and_causal
// CHECK: onf.fold
// CHECK-SAME: visit (d0, d1)[s0] -> (0) to (d0, d1)[s0] -> (s0, d1 + 1) full false
onf.kernel @mask_and_causal attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["X"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%X: !moa.array<[N, M], i1>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %x = onf.load %X[%i, %j] : !moa.array<[N, M], i1> -> i1
      %v = arith.cmpi sle, %j, %i : index
      %p = arith.andi %x, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A guard that bounds nothing gives no pieces, and a remark.
// CHECK-LABEL: @mask
// CHECK: onf.fold "j" in "M" : index
onf.kernel @mask attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["X"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%X: !moa.array<[N, M], i1>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    // expected-remark @+1 {{visits every index of 'j': no part of the predicate bounds it by an affine expression of indices and sizes; elements of arrays are not affine}}
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %p = onf.load %X[%i, %j] : !moa.array<[N, M], i1> -> i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A width per row depends on the lane: unknown, but the causal half remains.
// CHECK-LABEL: @row_window
// CHECK: onf.fold
// CHECK-SAME: to (d0, d1)[s0] -> (s0, d1 + 1) full false
onf.kernel @row_window attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["W"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%W: !moa.array<[N], index>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %wi = onf.load %W[%i] : !moa.array<[N], index> -> index
      %d = arith.subi %i, %j : index
      %u = arith.cmpi sle, %d, %wi : index
      %v = arith.cmpi sle, %j, %i : index
      %p = arith.andi %u, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// Causal, and j < g or within the window: two pieces.
// CHECK-LABEL: @global_or_window
// CHECK: onf.fold
// CHECK-SAME: pieces [#onf.piece<visit
// CHECK-SAME: , #onf.piece<visit
// CHECK-SAME: ] of(
onf.kernel @global_or_window attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["g"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%g: !moa.array<[], i32>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %g32 = onf.load %g[] : !moa.array<[], i32> -> i32
    %gi = arith.index_cast %g32 : i32 to index
    %k = arith.constant 64 : index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %d = arith.subi %i, %j : index
      %w = arith.cmpi slt, %d, %k : index
      %u = arith.cmpi slt, %j, %gi : index
      %o = arith.ori %w, %u : i1
      %v = arith.cmpi sle, %j, %i : index
      %p = arith.andi %o, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A truth value that is the same for all rows is a symbol in {0, 1}; not is xor
// with true.
// CHECK-LABEL: @flag
// CHECK: %[[F:.*]] = onf.load %f
// CHECK: %[[S:.*]] = arith.select %[[F]], %{{.*}}, %{{.*}} : index
// CHECK: onf.fold
// CHECK-SAME: pieces [#onf.piece
// CHECK-SAME: , #onf.piece
// CHECK-SAME: of(%[[S]], %{{.*}})
onf.kernel @flag attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["f"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%f: !moa.array<[], i1>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %t = arith.constant true
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %f1 = onf.load %f[] : !moa.array<[], i1> -> i1
      %v = arith.cmpi sgt, %j, %i : index
      %nf = arith.xori %f1, %t : i1
      %nv = arith.xori %v, %t : i1
      %p = arith.ori %nf, %nv : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A contradiction: one piece that is never entered.
// CHECK-LABEL: @never
// CHECK: onf.fold
// CHECK-SAME: pieces [#onf.piece<visit (d0, d1) -> (0) to (d0, d1) -> (0) full false
onf.kernel @never attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %u = arith.cmpi slt, %j, %i : index
      %v = arith.cmpi slt, %i, %j : index
      %p = arith.andi %u, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// |j − min(max(i, 3), 60)| ≤ 3, by cases.
// CHECK-LABEL: @clamped_centre
// CHECK: onf.fold
// CHECK-SAME: pieces [
onf.kernel @clamped_centre attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %three = arith.constant 3 : index
    %sixty = arith.constant 60 : index
    %low = arith.maxsi %i, %three : index
    %c = arith.minsi %low, %sixty : index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %d = arith.subi %j, %c : index
      %e = arith.subi %c, %j : index
      %u = arith.cmpi sle, %d, %three : index
      %v = arith.cmpi sle, %e, %three : index
      %p = arith.andi %u, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// (i − j) mod 4 = 0 ∧ j ≤ i: the stride bounds nothing, the piece is never full.
// CHECK-LABEL: @dilated
// CHECK: onf.fold
// CHECK-SAME: to (d0, d1)[s0] -> (s0, d1 + 1) full false
onf.kernel @dilated attributes {symbols = ["B", "N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %four = arith.constant 4 : index
    %zero = arith.constant 0 : index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %d = arith.subi %i, %j : index
      %r = arith.remsi %d, %four : index
      %u = arith.cmpi eq, %r, %zero : index
      %v = arith.cmpi sle, %j, %i : index
      %p = arith.andi %u, %v : i1
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// A load from an array that may have no elements stays where it is.
// CHECK-LABEL: @may_be_empty
// CHECK-NOT: onf.load
// CHECK: onf.fold "j" in "M" : index
onf.kernel @may_be_empty attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["X"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%X: !moa.array<[M], index>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    // expected-remark @+1 {{visits every index of 'j'}}
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %zero = arith.constant 0 : index
      %x = onf.load %X[%zero] : !moa.array<[M], index> -> index
      %p = arith.cmpi slt, %j, %x : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}

// -----

// Without a row axis only symbols bound the fold.
// CHECK-LABEL: @no_rows
// CHECK: onf.fold
// CHECK-SAME: visit (d0, d1)[s0, s1] -> (0, s0) to (d0, d1)[s0, s1] -> (s1) full true (d0, d1)[s0, s1] -> (0, s0) to (d0, d1)[s0, s1] -> (s1)
onf.kernel @no_rows attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["w"],
    result_names = ["O"], result_types = [!moa.array<[], index>]} {
^bb0(%w: !moa.array<[], i32>, %O: !moa.array<[], index>):
  onf.for [] in [] {
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %w32 = onf.load %w[] : !moa.array<[], i32> -> i32
      %wi = arith.extsi %w32 : i32 to i64
      %wx = arith.index_cast %wi : i64 to index
      %p = arith.cmpi sge, %j, %wx : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[] : index, !moa.array<[], index>
  }
}

// -----

// |i − j| ≤ w is one piece: a maximum under ≤ is a conjunction.
// CHECK-LABEL: @absolute
// CHECK: onf.fold
// CHECK-SAME: pieces [#onf.piece<visit (d0, d1)[s0, s1] -> (0, d0 - s0) to (d0, d1)[s0, s1] -> (s1, (s0 floordiv 281474976710656 + 1) * 281474976710656, d1 + s0 + 1) full true (d0, d1)[s0, s1] -> (0, d1 - s0) to (d0, d1)[s0, s1] -> (s1, d0 + s0 + 1)>] of
onf.kernel @absolute attributes {symbols = ["B", "N", "M"], requires = [], arg_names = ["w"],
    result_names = ["O"], result_types = [!moa.array<[B, N], index>]} {
^bb0(%w: !moa.array<[], i32>, %O: !moa.array<[B, N], index>):
  onf.for ["b", "i"] in ["B", "N"] {
  ^bb0(%b: index, %i: index):
    %zero = arith.constant 0 : index
    %n = onf.fold "j" in "M" : index {
    ^bb0(%j: index):
      %w32 = onf.load %w[] : !moa.array<[], i32> -> i32
      %wi = arith.index_cast %w32 : i32 to index
      %d = arith.subi %i, %j : index
      %e = arith.subi %zero, %d : index
      %m = arith.maxsi %d, %e : index
      %p = arith.cmpi sle, %m, %wi : index
      onf.guard %p
      %one = arith.constant 1 : index
      %a = onf.acc add "n" carries [] in [] refs() mul [] : () -> index {
        onf.yield %one : index
      } repair {
      }
      onf.yield %a : index
    }
    onf.store %n, %O[%b, %i] : index, !moa.array<[B, N], index>
  }
}
