// A copy of rows at equal distances is no array of its own: what reads it reads the rows where they stand.
// RUN: moa-opt --onf-read-through-copies --onf-verify --split-input-file %s | FileCheck %s

// The copies share a nest, which goes; a reader without tiles reads an input too. Of another copy's copy the first one's
// array is read.
// CHECK-LABEL: onf.kernel @parts
// CHECK-NOT: x_part
// CHECK-NOT: x_quarter
// CHECK: onf.for ["h"] in ["H"] {
// CHECK: onf.store %{{.*}}, %p[%h]
// CHECK-NEXT: }
// CHECK-NEXT: onf.for ["h", "i"] in ["H", "16"] chosen by %p [0] is 1
// CHECK: onf.load %x[%h, %i, %{{.*}}] at ["$0", "$1*(M/64)", "$2"] : <[H, M, 8], f32> -> f32
// CHECK: onf.load %x[%h, %i, %{{.*}}] at ["$0", "4*$1*(M/64) + M/64", "$2"] : <[H, M, 8], f32> -> f32
// CHECK: onf.store %{{.*}}, %y
// CHECK-NOT: onf.for ["h", "i"]
module {
  onf.kernel @parts attributes {arg_names = ["x"], requires = [], result_names = ["y"], result_types = [!moa.array<[H, 16], f32>], symbols = ["H", "M"], temporary_names = ["p", "x_part", "x_quarter"], temporary_types = [!moa.array<[H], i32>, !moa.array<[H, 64, 8], f32>, !moa.array<[H, 16, 8], f32>]} {
  ^bb0(%x: !moa.array<[H, M, 8], f32>, %y: !moa.array<[H, 16], f32>, %p: !moa.array<[H], i32>, %x_part: !moa.array<[H, 64, 8], f32>, %x_quarter: !moa.array<[H, 16, 8], f32>):
    onf.for ["h"] in ["H"] {
    ^bb0(%h: index):
      %0 = arith.constant 1 : index
      onf.store %0, %p[%h] : index, <[H], i32>
    }
    onf.for ["h", "i"] in ["H", "64"] chosen by %p [0] is 1 : !moa.array<[H], i32> attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%h: index, %i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %0 = onf.extent "M/64"
        %1 = arith.muli %i, %0 : index
        %2 = onf.load %x[%h, %1, %k] : <[H, M, 8], f32> -> f32
        onf.store %2, %x_part[%h, %i, %k] : f32, <[H, 64, 8], f32>
      }
    }
    onf.for ["h", "i"] in ["H", "16"] chosen by %p [0] is 1 : !moa.array<[H], i32> attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">, #moa.expr<"H">, #moa.expr<"1">]} {
    ^bb0(%h: index, %i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %2 = onf.load %x_part[%h, %i, %k] at ["$0", "4*$1", "$2"] : <[H, 64, 8], f32> -> f32
        onf.store %2, %x_quarter[%h, %i, %k] : f32, <[H, 16, 8], f32>
      }
    }
    onf.for ["h", "i"] in ["H", "16"] chosen by %p [0] is 1 : !moa.array<[H], i32> attributes {moa.runs = [#moa.expr<"H">, #moa.expr<"1">, #moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%h: index, %i: index):
      %0 = onf.fold "k" in "8" : f32 {
      ^bb0(%k: index):
        %1 = onf.load %x_part[%h, %i, %k] : <[H, 64, 8], f32> -> f32
        %2 = onf.load %x_part[%h, %i, %k] at ["$0", "4*$1 + 1", "$2"] : <[H, 64, 8], f32> -> f32
        %3 = onf.load %x_quarter[%h, %i, %k] : <[H, 16, 8], f32> -> f32
        %4 = arith.mulf %1, %2 : f32
        %5 = arith.addf %4, %3 : f32
        %6 = onf.acc add "sum" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %5 : f32
        } repair {
        }
        onf.yield %6 : f32
      }
      onf.store %0, %y[%h, %i] : f32, <[H, 16], f32>
    }
  }
}

// -----

// What else a nest of a copy stores stays.
// CHECK-LABEL: onf.kernel @beside
// CHECK-SAME: temporary_names = ["sum"]
// CHECK: onf.for ["i"] in ["64"] {
// CHECK: onf.load %x[%i] at ["$0", "0"]
// CHECK-NEXT: onf.store %{{.*}}, %sum[%i]
// CHECK-NEXT: }
// CHECK: onf.load %x[%i, %{{.*}}] at ["2*$0", "$1"]
module {
  onf.kernel @beside attributes {arg_names = ["x"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["sum", "part"], temporary_types = [!moa.array<[64], f32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %y: !moa.array<[64, 8], f32>, %sum: !moa.array<[64], f32>, %part: !moa.array<[64, 8], f32>):
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      %0 = onf.load %x[%i] at ["$0", "0"] : <[M, 8], f32> -> f32
      onf.store %0, %sum[%i] : f32, <[64], f32>
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["2*$0", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      %0 = onf.load %sum[%i] : <[64], f32> -> f32
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %0, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// Rows of a sample, whose numbers are read.
// CHECK-LABEL: onf.kernel @sample
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @sample attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      %e = onf.load %at[%i] : <[64], i32> -> i32
      %0 = arith.index_cast %e : i32 to index
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%0, %k] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// Rows from another one on.
// CHECK-LABEL: onf.kernel @shifted
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @shifted attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0 + 1", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// Every second column.
// CHECK-LABEL: onf.kernel @columns
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @columns attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[64, 16], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["$0", "2*$1"] : <[64, 16], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// The last axis is another one.
// CHECK-LABEL: onf.kernel @turned
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @turned attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[8, 64], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%k, %i] : <[8, 64], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// The first rows of more: behind them a tile of the copy has zeros.
// CHECK-LABEL: onf.kernel @first
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @first attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// What is computed is no copy.
// CHECK-LABEL: onf.kernel @computed
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @computed attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 8], f32> -> f32
        %2 = arith.mulf %1, %1 : f32
        onf.store %2, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// A reader that runs where the copy does not.
// CHECK-LABEL: onf.kernel @anywhere
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @anywhere attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// One that is chosen by another array.
// CHECK-LABEL: onf.kernel @otherwise
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @otherwise attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] chosen by %q [] is 1 : !moa.array<[], i32> {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// One that is launched for fewer sizes of more.
// CHECK-LABEL: onf.kernel @weaker
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @weaker attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"62">]} {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// One that is launched for any sizes.
// CHECK-LABEL: onf.kernel @launched
// CHECK: onf.store %{{.*}}, %part[
// CHECK: onf.load %part[
module {
  onf.kernel @launched attributes {arg_names = ["x", "at"], requires = [], result_names = ["y"], result_types = [!moa.array<[64, 8], f32>], symbols = ["M"], temporary_names = ["p", "q", "part"], temporary_types = [!moa.array<[], i32>, !moa.array<[], i32>, !moa.array<[64, 8], f32>]} {
  ^bb0(%x: !moa.array<[M, 8], f32>, %at: !moa.array<[64], i32>, %y: !moa.array<[64, 8], f32>, %p: !moa.array<[], i32>, %q: !moa.array<[], i32>, %part: !moa.array<[64, 8], f32>):
    onf.for [] in [] {
      %0 = arith.constant 1 : index
      onf.store %0, %p[] : index, <[], i32>
      onf.store %0, %q[] : index, <[], i32>
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %x[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 8], f32> -> f32
        onf.store %1, %part[%i, %k] : f32, <[64, 8], f32>
      }
    }
    onf.for ["i"] in ["64"] chosen by %p [] is 1 : !moa.array<[], i32> {
    ^bb0(%i: index):
      onf.for ["k"] in ["8"] {
      ^bb0(%k: index):
        %1 = onf.load %part[%i, %k] : <[64, 8], f32> -> f32
        %2 = arith.addf %1, %1 : f32
        onf.store %2, %y[%i, %k] : f32, <[64, 8], f32>
      }
    }
  }
}

// -----

// What runs by tiles goes on to: it takes rows at a distance of 1 at least. So is this one where it is launched;
// CHECK-LABEL: onf.kernel @tiled
// CHECK-NOT: K_part
// CHECK: onf.load %S[%{{.*}}, %{{.*}}] at ["$0*(M/64)", "$1"]
module {
  onf.kernel @tiled attributes {arg_names = ["Q", "V", "S", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[N, 64], f32>], symbols = ["N", "M"], temporary_names = ["K_part"], temporary_types = [!moa.array<[64, 64], bf16>]} {
  ^bb0(%Q: !moa.array<[N, 64], bf16>, %V: !moa.array<[64, 64], bf16>, %S: !moa.array<[M, 64], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[N, 64], f32>, %K_part: !moa.array<[64, 64], bf16>):
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["64"] {
      ^bb0(%k: index):
        %0 = onf.load %S[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 64], bf16> -> bf16
        onf.store %0, %K_part[%i, %k] : bf16, <[64, 64], bf16>
      }
    }
    onf.for ["n"] in ["N"] attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"63">]} {
    ^bb0(%n: index):
      %0 = onf.load %scale[] : <[], f32> -> f32
      %1:3 = onf.fold "k" in "64" : f32, f32, !moa.array<[64], f32> {
      ^bb0(%k: index):
        %8 = onf.fold "k" in "64" : f32 {
        ^bb0(%k_1: index):
          %15 = onf.load %Q[%n, %k_1] : <[N, 64], bf16> -> bf16
          %16 = arith.extf %15 : bf16 to f32
          %17 = onf.load %K_part[%k, %k_1] : <[64, 64], bf16> -> bf16
          %18 = arith.extf %17 : bf16 to f32
          %19 = arith.mulf %16, %18 : f32
          %20 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %19 : f32
          } repair {
          }
          onf.yield %20 : f32
        }
        %9 = arith.mulf %8, %0 : f32
        %10 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %9 : f32
        } repair {
        }
        %11 = arith.subf %9, %10 : f32
        %12 = math.exp %11 : f32
        %13 = onf.acc add "add" carries [] in [] refs(%10) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %12 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %15 = arith.subf %arg0, %arg1 : f32
          %16 = math.exp %15 : f32
          onf.yield %16 : f32
        }
        %14 = onf.acc add "O" carries ["k"] in ["64"] rounds bf16 refs(%10) mul [0xFF800000 : f32] : (f32) -> !moa.array<[64], f32> {
        ^bb0(%k_1: index):
          %15 = onf.load %V[%k, %k_1] : <[64, 64], bf16> -> bf16
          %16 = arith.extf %15 : bf16 to f32
          %17 = arith.mulf %12, %16 : f32
          onf.yield %17 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %15 = arith.subf %arg0, %arg1 : f32
          %16 = math.exp %15 : f32
          onf.yield %16 : f32
        }
        onf.yield %10, %13, %14 : f32, f32, !moa.array<[64], f32>
      }
      %cst = arith.constant 0xFF800000 : f32
      %2 = arith.cmpf oeq, %1#0, %cst : f32
      %true = arith.constant true
      %3 = arith.andi %true, %2 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %4 = arith.negf %1#0 : f32
      %5 = math.exp %4 : f32
      %6 = arith.mulf %cst_0, %5 : f32
      %7 = arith.select %3, %6, %1#1 : f32
      onf.for ["k"] in ["64"] {
      ^bb0(%k: index):
        %8 = onf.at %1#2[%k] : <[64], f32> -> f32
        %9 = arith.select %3, %6, %8 : f32
        %10 = arith.divf %9, %7 : f32
        onf.store %10, %O[%n, %k] : f32, <[N, 64], f32>
      }
    }
  }
}

// -----

// not here.
// CHECK-LABEL: onf.kernel @kept
// CHECK: onf.store %{{.*}}, %K_part[
// CHECK: onf.load %K_part[
module {
  onf.kernel @kept attributes {arg_names = ["Q", "V", "S", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[N, 64], f32>], symbols = ["N", "M"], temporary_names = ["K_part"], temporary_types = [!moa.array<[64, 64], bf16>]} {
  ^bb0(%Q: !moa.array<[N, 64], bf16>, %V: !moa.array<[64, 64], bf16>, %S: !moa.array<[M, 64], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[N, 64], f32>, %K_part: !moa.array<[64, 64], bf16>):
    onf.for ["i"] in ["64"] {
    ^bb0(%i: index):
      onf.for ["k"] in ["64"] {
      ^bb0(%k: index):
        %0 = onf.load %S[%i, %k] at ["(M/64)*$0", "$1"] : <[M, 64], bf16> -> bf16
        onf.store %0, %K_part[%i, %k] : bf16, <[64, 64], bf16>
      }
    }
    onf.for ["n"] in ["N"] {
    ^bb0(%n: index):
      %0 = onf.load %scale[] : <[], f32> -> f32
      %1:3 = onf.fold "k" in "64" : f32, f32, !moa.array<[64], f32> {
      ^bb0(%k: index):
        %8 = onf.fold "k" in "64" : f32 {
        ^bb0(%k_1: index):
          %15 = onf.load %Q[%n, %k_1] : <[N, 64], bf16> -> bf16
          %16 = arith.extf %15 : bf16 to f32
          %17 = onf.load %K_part[%k, %k_1] : <[64, 64], bf16> -> bf16
          %18 = arith.extf %17 : bf16 to f32
          %19 = arith.mulf %16, %18 : f32
          %20 = onf.acc add "add" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %19 : f32
          } repair {
          }
          onf.yield %20 : f32
        }
        %9 = arith.mulf %8, %0 : f32
        %10 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %9 : f32
        } repair {
        }
        %11 = arith.subf %9, %10 : f32
        %12 = math.exp %11 : f32
        %13 = onf.acc add "add" carries [] in [] refs(%10) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %12 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %15 = arith.subf %arg0, %arg1 : f32
          %16 = math.exp %15 : f32
          onf.yield %16 : f32
        }
        %14 = onf.acc add "O" carries ["k"] in ["64"] rounds bf16 refs(%10) mul [0xFF800000 : f32] : (f32) -> !moa.array<[64], f32> {
        ^bb0(%k_1: index):
          %15 = onf.load %V[%k, %k_1] : <[64, 64], bf16> -> bf16
          %16 = arith.extf %15 : bf16 to f32
          %17 = arith.mulf %12, %16 : f32
          onf.yield %17 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %15 = arith.subf %arg0, %arg1 : f32
          %16 = math.exp %15 : f32
          onf.yield %16 : f32
        }
        onf.yield %10, %13, %14 : f32, f32, !moa.array<[64], f32>
      }
      %cst = arith.constant 0xFF800000 : f32
      %2 = arith.cmpf oeq, %1#0, %cst : f32
      %true = arith.constant true
      %3 = arith.andi %true, %2 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %4 = arith.negf %1#0 : f32
      %5 = math.exp %4 : f32
      %6 = arith.mulf %cst_0, %5 : f32
      %7 = arith.select %3, %6, %1#1 : f32
      onf.for ["k"] in ["64"] {
      ^bb0(%k: index):
        %8 = onf.at %1#2[%k] : <[64], f32> -> f32
        %9 = arith.select %3, %6, %8 : f32
        %10 = arith.divf %9, %7 : f32
        onf.store %10, %O[%n, %k] : f32, <[N, 64], f32>
      }
    }
  }
}
