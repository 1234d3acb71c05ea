// Folds of a nest over one range are one (tupling), where neither needs the other's result: what both read is read once.
// RUN: moa-opt --onf-fuse-folds --onf-verify --split-input-file %s | FileCheck %s

// Three folds over m and one over k; the third one needs the first one's result, so that it stays behind it.
// CHECK-LABEL: onf.kernel @some
module {
  onf.kernel @some attributes {arg_names = ["x", "w"], requires = [], result_names = ["y", "z", "v", "u"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>], symbols = ["N", "M"]} {
  ^bb0(%x: !moa.array<[N, M], f32>, %w: !moa.array<[N, 8], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %u: !moa.array<[N], f32>):
    onf.for ["n"] in ["N"] {
    ^bb0(%n: index):
      // CHECK: onf.extent "M/2"
      // CHECK-NEXT: %[[BOTH:.*]]:2 = onf.fold "m" in "M" : f32, f32 {
      // CHECK-NEXT: ^bb0(%[[M:.*]]: index):
      // CHECK-NEXT: %[[X:.*]] = onf.load %x[%n, %[[M]]]
      // CHECK: onf.acc add "sum"
      // CHECK-NEXT: onf.yield %[[X]]
      // CHECK-NOT: onf.load
      // CHECK: %[[SIZE:.*]] = math.absf %[[X]]
      // CHECK: onf.acc max "most"
      // CHECK-NEXT: onf.yield %{{.*}} : f32
      // CHECK: onf.yield %{{.*}}, %{{.*}} : f32, f32
      %0 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc add "sum" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      // CHECK: onf.store %[[BOTH]]#0, %y[%n]
      onf.store %0, %y[%n] : f32, <[N], f32>
      %half = onf.extent "M/2"
      %3 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %size = math.absf %1 : f32
        %lower = arith.cmpi slt, %m, %half : index
        %zero = arith.constant 0.0 : f32
        %chosen = arith.select %lower, %size, %zero : f32
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %chosen : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      // CHECK: onf.store %[[BOTH]]#1, %z[%n]
      onf.store %3, %z[%n] : f32, <[N], f32>
      // CHECK: %[[THIRD:.*]] = onf.fold "m" in "M" : f32 {
      // CHECK: arith.subf %{{.*}}, %[[BOTH]]#0
      %4 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %d = arith.subf %1, %0 : f32
        %2 = onf.acc add "rest" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %d : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %4, %v[%n] : f32, <[N], f32>
      // CHECK: %[[FOURTH:.*]] = onf.fold "k" in "8" : f32 {
      // CHECK: onf.store %[[FOURTH]], %u[%n]
      %5 = onf.fold "k" in "8" : f32 {
      ^bb0(%k: index):
        %1 = onf.load %w[%n, %k] : <[N, 8], f32> -> f32
        %2 = onf.acc add "other" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %5, %u[%n] : f32, <[N], f32>
    }
  }
}

// -----
// Neither contractions, which have folds of their own, nor folds with a guard of their own.
// CHECK-LABEL: onf.kernel @others
// CHECK-COUNT-4: = onf.fold "m" in "M" : f32 {
// CHECK-NOT: f32, f32 {
module {
  onf.kernel @others attributes {arg_names = ["x", "w"], requires = [], result_names = ["y", "z", "v", "u"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>], symbols = ["N", "M"]} {
  ^bb0(%x: !moa.array<[N, M], f32>, %w: !moa.array<[M, 8], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %u: !moa.array<[N], f32>):
    onf.for ["n"] in ["N"] {
    ^bb0(%n: index):
      %0 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.fold "k" in "8" : f32 {
        ^bb0(%k: index):
          %2 = onf.load %w[%m, %k] : <[M, 8], f32> -> f32
          %3 = onf.acc add "inner" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %2 : f32
          } repair {
          }
          onf.yield %3 : f32
        }
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %0, %y[%n] : f32, <[N], f32>
      %4 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.fold "k" in "8" : f32 {
        ^bb0(%k: index):
          %2 = onf.load %w[%m, %k] : <[M, 8], f32> -> f32
          %3 = onf.acc max "inner" carries [] in [] refs() mul [] : () -> f32 {
            onf.yield %2 : f32
          } repair {
          }
          onf.yield %3 : f32
        }
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %4, %z[%n] : f32, <[N], f32>
      %5 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %seen = arith.cmpi sle, %m, %n : index
        onf.guard %seen
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc add "sum" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %5, %v[%n] : f32, <[N], f32>
      %6 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %6, %u[%n] : f32, <[N], f32>
    }
  }
}

// -----
// A guard that is one value for all indices is asked once.
// CHECK-LABEL: onf.kernel @guarded
// CHECK: %[[IS:.*]] = arith.cmpi slt
// CHECK: onf.fold "m" in "M" : f32, f32 {
// CHECK: onf.guard %[[IS]]
// CHECK-NOT: onf.guard
// CHECK: onf.yield %{{.*}}, %{{.*}} : f32, f32
// CHECK: onf.fold "m" in "M" : f32 {
// CHECK-NOT: onf.guard
module {
  onf.kernel @guarded attributes {arg_names = ["x"], requires = [], result_names = ["y", "z", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>], symbols = ["N", "M"]} {
  ^bb0(%x: !moa.array<[N, M], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>, %v: !moa.array<[N], f32>):
    onf.for ["n"] in ["N"] {
    ^bb0(%n: index):
      %half = onf.extent "N/2"
      %is = arith.cmpi slt, %n, %half : index
      %0 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        onf.guard %is
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc add "sum" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %0, %y[%n] : f32, <[N], f32>
      %3 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        onf.guard %is
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %3, %z[%n] : f32, <[N], f32>
      %4 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc min "least" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %4, %v[%n] : f32, <[N], f32>
    }
  }
}

// -----
// Of which one reads along h and the other along n: together they would look like a product of matrices.
// CHECK-LABEL: onf.kernel @across
// CHECK-COUNT-2: = onf.fold "m" in "M" : f32 {
module {
  onf.kernel @across attributes {arg_names = ["x", "w"], requires = [], result_names = ["y", "z"], result_types = [!moa.array<[H, N], f32>, !moa.array<[H, N], f32>], symbols = ["H", "N", "M"]} {
  ^bb0(%x: !moa.array<[H, M], f32>, %w: !moa.array<[N, M], f32>, %y: !moa.array<[H, N], f32>, %z: !moa.array<[H, N], f32>):
    onf.for ["h", "n"] in ["H", "N"] {
    ^bb0(%h: index, %n: index):
      %0 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %x[%h, %m] : <[H, M], f32> -> f32
        %2 = onf.acc add "sum" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %0, %y[%h, %n] : f32, <[H, N], f32>
      %3 = onf.fold "m" in "M" : f32 {
      ^bb0(%m: index):
        %1 = onf.load %w[%n, %m] : <[N, M], f32> -> f32
        %2 = onf.acc max "most" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %1 : f32
        } repair {
        }
        onf.yield %2 : f32
      }
      onf.store %3, %z[%h, %n] : f32, <[H, N], f32>
    }
  }
}

// -----
// Equal values are one in a nest without folds too.
// CHECK-LABEL: onf.kernel @plain
// CHECK: %[[X:.*]] = onf.load %x[%n]
// CHECK-NOT: onf.load
// CHECK: onf.store %[[X]], %y[%n]
// CHECK: onf.store %[[X]], %z[%n]
module {
  onf.kernel @plain attributes {arg_names = ["x"], requires = [], result_names = ["y", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], symbols = ["N"]} {
  ^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>, %z: !moa.array<[N], f32>):
    onf.for ["n"] in ["N"] {
    ^bb0(%n: index):
      %0 = onf.load %x[%n] : <[N], f32> -> f32
      onf.store %0, %y[%n] : f32, <[N], f32>
      %1 = onf.load %x[%n] : <[N], f32> -> f32
      onf.store %1, %z[%n] : f32, <[N], f32>
    }
  }
}
