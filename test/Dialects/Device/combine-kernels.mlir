// RUN: moa-opt %s -device-combine-kernels -device-verify | FileCheck %s

// The first and the third one need nothing of each other: blocks of both in one grid, in this order, with numbers of
// 32 bits. The second one reads what the first one writes, the fourth has other threads, and the fifth, which a host
// launches in other cases, stays too.
// CHECK: device.kernel @a blocks "M + N" threads 128 {
// CHECK: %[[B:.*]] = device.block
// CHECK-NEXT: %[[N:.*]] = device.symbol "N"
// CHECK-NEXT: %[[OWN:.*]] = arith.cmpi slt, %[[B]], %[[N]] : index
// CHECK-NEXT: scf.if %[[OWN]] {
// CHECK-NOT: device.block
// CHECK: %[[X:.*]] = device.load %x[%[[B]]]
// CHECK: device.store %[[X]], %t[%[[B]]]
// CHECK: } else {
// CHECK: %[[REST:.*]] = arith.subi %[[B]], %[[N]] : index
// CHECK: %[[LOW:.*]] = arith.index_cast %[[REST]] : index to i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[LOW]] : i32 to i64
// CHECK: %[[OTHER:.*]] = arith.index_cast %[[WIDE]] : i64 to index
// CHECK: %[[Y:.*]] = device.load %y[%[[OTHER]]]
// CHECK: device.store %[[Y]], %v[%[[OTHER]]]
// CHECK: device.kernel @b blocks "N" threads 128 {
// CHECK: device.store %{{.*}}, %u
// CHECK: device.kernel @d blocks "M" threads 256 {
// CHECK: device.kernel @e blocks "M" threads 128 attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"7">]} {
// CHECK-NOT: device.kernel
device.program @f attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y"], result_names = ["u", "v", "w", "z"], result_types = [!moa.array<[N], f32>, !moa.array<[M], f32>, !moa.array<[M], f32>, !moa.array<[M], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[M], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[M], f32>, %w: !moa.array<[M], f32>, %z: !moa.array<[M], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "M" threads 128 {
    %i = device.block
    %e = device.load %y[%i] : !moa.array<[M], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[M], f32>
  }
  device.kernel @d blocks "M" threads 256 {
    %i = device.block
    %e = device.load %y[%i] : !moa.array<[M], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[M], f32>
  }
  device.kernel @e blocks "M" threads 128 attributes {moa.runs = [#moa.expr<"M">, #moa.expr<"7">]} {
    %i = device.block
    %e = device.load %y[%i] : !moa.array<[M], f32> -> f32
    device.store %e, %z[%i] : f32, !moa.array<[M], f32>
  }
}

// Shared memory is a launch's, and kernels without blocks have no threads that could do anything.
// CHECK-LABEL: device.program @g
// CHECK: device.kernel @a blocks "N" threads 128 {
// CHECK: device.kernel @b blocks "N" threads 128 {
// CHECK: device.kernel @c blocks "0" threads 128 {
device.program @g attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u", "v", "w"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %w: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 {
    %barriers = device.barriers : <1, 1>
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "0" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
}

// Of what a host launches in fewer cases, blocks may stand beside those of more: it launches both where it launches the one. They may
// be of different choices, as they store no output.
// CHECK-LABEL: device.program @h
// CHECK: device.kernel @a blocks "2*N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">]} {
// CHECK-NOT: moa.chosen
// CHECK: device.kernel @c
device.program @h attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u"], result_types = [!moa.array<[N], f32>], workspace_names = ["s", "t"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %s: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">, #moa.expr<"N">, #moa.expr<"100">], moa.chosen = {by = "p", is = 1 : i64}} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %s[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">], moa.chosen = {by = "q", is = 1 : i64}} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "N" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
}

// The first one is needed by none in front of the last one, so that its launch is saved: it waits for the one of the third. That is
// not in front of the second, whose shared memory keeps it apart.
// CHECK-LABEL: device.program @later
// CHECK: device.kernel @b blocks "N" threads 128
// CHECK: device.kernel @c blocks "2*N" threads 128
// CHECK-NOT: device.kernel
device.program @later attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 {
    %barriers = device.barriers : <1, 1>
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "N" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// Of two with many blocks the second may wait, and hides the third, which has few.
// CHECK-LABEL: device.program @long
// CHECK: device.kernel @a blocks "64*H*N" threads 128
// CHECK: device.kernel @c blocks "64*H*N + H" threads 128
// CHECK-NOT: device.kernel
device.program @long attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["u", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["t"], workspace_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "H" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// Conditions and choices are compared with those of each kernel of a launch: the third asks for what the second does not.
// CHECK-LABEL: device.program @each
// CHECK: device.kernel @a blocks "2*N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">]} {
// CHECK: device.kernel @c blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"100">]} {
device.program @each attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["u"], result_types = [!moa.array<[N], f32>], workspace_names = ["r", "s"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %r: !moa.array<[N], f32>, %s: !moa.array<[N], f32>):
  device.kernel @a blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">, #moa.expr<"N">, #moa.expr<"100">]} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %r[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"7">]} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %s[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "N" threads 128 attributes {moa.runs = [#moa.expr<"N">, #moa.expr<"100">]} {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
}

// The second one may wait though the fourth needs it, which has few blocks and waits for the fifth.
// CHECK-LABEL: device.program @pushed
// CHECK: device.kernel @a blocks "64*H*N" threads 128
// CHECK: device.kernel @c blocks "64*H*N + H" threads 128
// CHECK: device.store %{{.*}}, %r
// CHECK: device.store %{{.*}}, %s
// CHECK: device.kernel @e blocks "2*H" threads 128
// CHECK: device.store %{{.*}}, %v
// CHECK: device.store %{{.*}}, %u
// CHECK-NOT: device.kernel
device.program @pushed attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["u", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["r", "s", "t"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %r: !moa.array<[N], f32>, %s: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %s[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "H" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %r[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @d blocks "H" threads 128 {
    %i = device.block
    %e = device.load %s[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @e blocks "H" threads 128 {
    %i = device.block
    %e = device.load %r[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// Each of two hides one launch, and what needs the third kernel waits together with what needs that, as late as may be.
// CHECK-LABEL: device.program @pushed_on
// CHECK: device.kernel @a blocks "64*H*N" threads 128
// CHECK: device.kernel @{{.*}} blocks "64*H*N + H" threads 128
// CHECK: device.store %{{.*}}, %r
// CHECK: device.store %{{.*}}, %w
// CHECK: device.kernel @{{.*}} blocks "64*H*N + H" threads 128
// CHECK: device.store %{{.*}}, %q
// CHECK: device.store %{{.*}}, %s
// CHECK: device.kernel @{{.*}} blocks "2*H" threads 128
// CHECK: device.store %{{.*}}, %o
// CHECK: device.store %{{.*}}, %p
// CHECK: device.kernel @{{.*}} blocks "2*H" threads 128
// CHECK: device.store %{{.*}}, %v
// CHECK: device.store %{{.*}}, %u
// CHECK-NOT: device.kernel
device.program @pushed_on attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["u", "v", "w"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["o", "p", "q", "r", "s", "t"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %w: !moa.array<[N], f32>, %o: !moa.array<[N], f32>, %p: !moa.array<[N], f32>, %q: !moa.array<[N], f32>, %r: !moa.array<[N], f32>, %s: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %s[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @k blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %w[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "H" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %r[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @d blocks "H" threads 128 {
    %i = device.block
    %e = device.load %s[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %p[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @e blocks "H" threads 128 {
    %i = device.block
    %e = device.load %r[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %q[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @f blocks "H" threads 128 {
    %i = device.block
    %e = device.load %p[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @g blocks "H" threads 128 {
    %i = device.block
    %e = device.load %q[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %o[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @h blocks "H" threads 128 {
    %i = device.block
    %e = device.load %o[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}

// The second one stays, as what needs it stands in front of one with shared memory.
// CHECK-LABEL: device.program @kept
// CHECK: device.kernel @a blocks "128*H*N" threads 128
// CHECK: device.kernel @c blocks "2*H" threads 128
// CHECK: device.kernel @k blocks "H" threads 128
// CHECK: device.kernel @e blocks "H" threads 128
// CHECK-NOT: device.kernel
device.program @kept attributes {symbols = ["H", "N"], requires = [], arg_names = ["x"], result_names = ["u", "v"], result_types = [!moa.array<[N], f32>, !moa.array<[N], f32>], workspace_names = ["p", "r", "s", "t"], workspace_types = [!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %u: !moa.array<[N], f32>, %v: !moa.array<[N], f32>, %p: !moa.array<[N], f32>, %r: !moa.array<[N], f32>, %s: !moa.array<[N], f32>, %t: !moa.array<[N], f32>):
  device.kernel @a blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %t[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @b blocks "64*H*N" threads 128 {
    %i = device.block
    %e = device.load %x[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %s[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @c blocks "H" threads 128 {
    %i = device.block
    %e = device.load %t[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %r[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @d blocks "H" threads 128 {
    %i = device.block
    %e = device.load %s[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %p[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @k blocks "H" threads 128 {
    %barriers = device.barriers : <1, 1>
    %i = device.block
    %e = device.load %p[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %u[%i] : f32, !moa.array<[N], f32>
  }
  device.kernel @e blocks "H" threads 128 {
    %i = device.block
    %e = device.load %r[%i] : !moa.array<[N], f32> -> f32
    device.store %e, %v[%i] : f32, !moa.array<[N], f32>
  }
}
