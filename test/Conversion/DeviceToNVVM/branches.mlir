// What a warp does only where it is needed, and values of a thread's own.

// RUN: moa-opt %s --convert-device-to-nvvm | FileCheck %s

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
#part = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [lane: 4 by 1]>
!scores = !device.fragment<[64, 16], f32, #acc>
!rows = !device.fragment<[64], f32, #row>
!flags = !device.fragment<[64], i1, #row>
!parts = !device.fragment<[64, 4], f32, #part>

// CHECK-LABEL: llvm.func @branches_0
device.program @branches attributes {symbols = ["N"], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
  device.kernel @branches_0 blocks "1" threads 256 {
    %ring = device.shared : !device.ring<1, [16, 64], bf16>
    %zero = arith.constant 0 : index
    device.specialize consumers 1 registers 240 {
      %n = device.symbol "N"
      %e = device.load %x[%zero] : !moa.array<[N], f32> -> f32
      %s = device.fill %e : f32 -> !scores

      // What each thread has of a row: two chains, no lanes.
      // CHECK-COUNT-8: arith.maximumf
      // CHECK: %[[FIRST:.*]] = arith.maximumf
      // CHECK: %[[SECOND:.*]] = arith.maximumf
      // CHECK-NOT: nvvm.shfl.sync bfly
      %p = device.reduce max %s : !scores -> !parts

      // A thread's part of a row's column: a constant per register, which reaches the
      // comparison as it is; the parts are read as rows are.
      // CHECK: arith.cmpi sgt, %{{.*}}, %c0_i64
      // CHECK: arith.select %{{.*}}, %{{.*}}, %[[FIRST]] : f32
      // CHECK: arith.cmpi sgt, %{{.*}}, %c1_i64
      // CHECK: arith.select %{{.*}}, %{{.*}}, %[[FIRST]] : f32
      // CHECK: arith.select %{{.*}}, %{{.*}}, %[[SECOND]] : f32
      // CHECK: arith.cmpi sgt, %{{.*}}, %c8_i64
      // CHECK: arith.cmpi sgt, %{{.*}}, %c9_i64
      %t = device.map(%s, %p) over #acc : (!scores, !parts) -> !scores {
      ^bb0(%v: f32, %part: f32, %i: index, %j: index):
        %offset = device.thread_offset %j
        %near = arith.cmpi slt, %offset, %n : index
        %r = arith.select %near, %v, %part : f32
        device.yield %r : f32
      }
      %m = device.reduce max %t : !scores -> !rows
      %old = device.fill %e : f32 -> !rows
      // CHECK: %[[MORE0:.*]] = arith.cmpf ogt
      // CHECK: %[[MORE1:.*]] = arith.cmpf ogt
      %more = device.map(%m, %old) over #row : (!rows, !rows) -> !flags {
      ^bb0(%a: f32, %b: f32, %i: index):
        %c = arith.cmpf ogt, %a, %b : f32
        device.yield %c : i1
      }
      // A real branch of the warp, that gives one value per register.
      // CHECK: %[[EITHER:.*]] = arith.ori %[[MORE0]], %[[MORE1]] : i1
      // CHECK: %[[ANY:.*]] = nvvm.vote.sync any %{{.*}}, %[[EITHER]] -> i1
      // CHECK: %[[NEW:.*]]:2 = scf.if %[[ANY]] -> (f32, f32) {
      // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
      // CHECK: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
      // CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"
      // CHECK: scf.yield
      // CHECK: } else {
      // CHECK-NEXT: scf.yield %[[OLD:.*]], %[[OLD]] : f32, f32
      %new = device.if_any %more else (%old) : (!flags, !rows) -> !rows {
        %q = device.map(%m) over #row : (!rows) -> !rows {
        ^bb0(%a: f32, %i: index):
          %c = device.exp2 %a : f32
          %b = device.reciprocal %c : f32
          device.yield %b : f32
        }
        device.yield %q : !rows
      }
      // A vote of its own is not repeated by the branch on it.
      // CHECK: %[[ANY2:.*]] = nvvm.vote.sync any
      // CHECK-NOT: nvvm.vote.sync
      // CHECK: scf.if %[[ANY2]] -> (f32, f32)
      %all = device.any %more : !flags
      %last = device.if_any %all else (%new) : (!flags, !rows) -> !rows {
        device.yield %m : !rows
      }
      device.map(%last) over #row : (!rows) -> () {
      ^bb0(%a: f32, %i: index):
        device.store %a, %y[%i] : f32, !moa.array<[N], f32>
        device.yield
      }
    } producer registers 24 {
    }
  }
}
