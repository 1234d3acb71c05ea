// RUN: moa-opt %s -device-align-runs | FileCheck %s

// Of %x a kernel copies tiles, so that hosts have seen that its rows are adjacent elements, whole 16 bytes apart: its runs of 8
// elements are aligned, those of 8 from the fourth on are not, and its last stride is no factor. Nobody has seen anything
// of %z, and nobody says how far apart the elements of %v are, which has one on the last axis.
// CHECK-LABEL: device.program @f
// CHECK: device.copy %x
// CHECK: device.kernel @runs
// CHECK: %[[S:.*]] = device.symbol "x.s0"
// CHECK-NOT: "x.s1"
// CHECK: %[[EIGHT:.*]] = arith.muli %{{.*}}, %c8
// CHECK-NEXT: %[[START:.*]] = arith.muli %{{.*}}, %[[S]]
// CHECK-NEXT: %[[AT:.*]] = arith.addi %[[START]], %[[EIGHT]] : index
// CHECK: device.load_run %x[%[[AT]]] stride %{{.*}} count %{{.*}} aligned to
// CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %c8 to
// CHECK: device.load_run %z[%{{.*}}] stride %{{.*}} count %c8 to
// CHECK: arith.divui
// CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %c8 aligned to
// CHECK: arith.divui
// CHECK: device.load_run %x[%{{.*}}] stride %{{.*}} count %c8 to
// CHECK: device.symbol "v.s1"
// CHECK: device.load_run %v[%{{.*}}] stride %{{.*}} count %c8 to
device.program @f attributes {symbols = ["N"], requires = [], arg_names = ["x", "z", "v"], result_names = ["y"], result_types = [!moa.array<[N], bf16>]} {
^bb0(%x: !moa.array<[N, 64], bf16>, %z: !moa.array<[N, 64], bf16>, %v: !moa.array<[N, 1], bf16>, %y: !moa.array<[N], bf16>):
  device.kernel @tiles blocks "1" threads 128 {
    %zero = arith.constant 0 : index
    %r = device.shared : !device.ring<1, [64, 64], bf16>
    %b = device.barriers : !device.barriers<1, 1>
    device.copy %x[%zero] rows 0 to %r[%zero] signals %b[%zero] : !moa.array<[N, 64], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
    device.copy %v[%zero] rows 0 to %r[%zero] signals %b[%zero] : !moa.array<[N, 1], bf16>, !device.ring<1, [64, 64], bf16>, !device.barriers<1, 1>
  }
  device.kernel @runs blocks "N" threads 32 {
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %block = device.block
    %thread = device.thread
    %s0 = device.symbol "x.s0"
    %s1 = device.symbol "x.s1"
    %place = arith.muli %thread, %c8 : index
    %column = arith.muli %place, %s1 : index
    %start = arith.muli %block, %s0 : index
    %at = arith.addi %start, %column : index
    %run = memref.alloca() : memref<8xbf16>
    device.load_run %x[%at] stride %s1 count %c8 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
    %between = arith.addi %at, %c4 : index
    device.load_run %x[%between] stride %s1 count %c8 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
    %z0 = device.symbol "z.s0"
    %z1 = device.symbol "z.s1"
    %other = arith.muli %block, %z0 : index
    device.load_run %z[%other] stride %z1 count %c8 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
    // Places of a run of 8 in an order of 16: bits that the first element's number has not, and quotients of 0.
    %c2 = arith.constant 2 : index
    %c6 = arith.constant 6 : index
    %c16 = arith.constant 16 : index
    %first = arith.muli %thread, %c16 : index
    %low = arith.andi %first, %c6 : index
    %half = arith.divui %low, %c2 : index
    %turned = arith.addi %first, %half : index
    %own = arith.addi %start, %turned : index
    device.load_run %x[%own] stride %s1 count %c8 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
    %odd = arith.andi %place, %c16 : index
    %quarter = arith.divui %odd, %c8 : index
    %unknown = arith.addi %start, %quarter : index
    device.load_run %x[%unknown] stride %s1 count %c8 to %run[] : !moa.array<[N, 64], bf16>, memref<8xbf16>
    %v1 = device.symbol "v.s1"
    device.load_run %v[%other] stride %v1 count %c8 to %run[] : !moa.array<[N, 1], bf16>, memref<8xbf16>
  }
}
