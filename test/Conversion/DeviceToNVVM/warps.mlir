// Registers of warps, op by op, in a kernel without roles.

// RUN: moa-opt %s --convert-device-to-nvvm | FileCheck %s

#a = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#b = #device.layout<[register: 2 by 2, lane: 4 by 1, register: 2 by 1], [lane: 8 by 4] replicas [warp: 4 by 1]>
#c = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [lane: 4 by 1, register: 2 by 1]>
#renamed = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [lane: 4 by 1, register: 2 by 2]>
#long = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 1], [lane: 2 by 16, register: 2 by 1, lane: 2 by 8]>
!a = !device.fragment<[64, 16], f16, #a>
!b = !device.fragment<[16, 8], f16, #b>
!c = !device.fragment<[64, 8], f32, #c>
!ring = !device.ring<2, [64, 64], f16>
!once = !device.barriers<1, 1>
!x = !moa.array<[64, 64], f16>
!y = !moa.array<[64, 8], f32>

// CHECK-LABEL: llvm.func @warps_0(
// CHECK: %[[NONE:.*]] = arith.constant 0.000000e+00 : f32
device.program @warps attributes {symbols = [], requires = [], arg_names = ["x"],
    result_names = ["y"], result_types = [!moa.array<[64, 8], f32>]} {
^bb0(%x: !x, %y: !y):
  device.kernel @warps_0 blocks "1" threads 128 {
    // The numbers of the warp and the lane come first, the barriers are there before
    // any thread goes on.
    // CHECK: %[[WARP:.*]] = arith.remui %{{.*}}, %c4_i32
    // CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c32_i32{{.*}} : i32
    // CHECK: %[[RING:.*]] = llvm.ptrtoint
    // CHECK: mbarrier.init.shared::cta.b64
    // CHECK: nvvm.fence.mbarrier.init
    // CHECK: nvvm.barrier0
    %zero = arith.constant 0 : index
    %eight = arith.constant 8 : index
    %one = arith.constant 1 : index
    %ring = device.shared : !ring
    %full = device.barriers : !once
    %thread = device.thread
    %first = arith.cmpi eq, %thread, %zero : index
    scf.if %first {
      device.copy %x[%zero] rows 0 to %ring[%one] signals %full[%zero] : !x, !ring, !once
    }
    device.wait %full[%zero] parity %zero : !once

    // Four matrices at once: 0 and 1 eight rows apart, 0 and 2 eight columns. Lane l has
    // the address of row l mod 8 of matrix l / 8, at its place in the swizzle.
    // CHECK: %[[ROW:.*]] = arith.remui %[[LANE]], %c8_i32
    // CHECK: arith.divui %[[LANE]], %c8_i32
    // CHECK: arith.divui %[[LANE]], %c16_i32
    // CHECK: arith.xori %{{.*}}, %[[ROW]] : i32
    // CHECK: %[[READ:.*]] = nvvm.ldmatrix %{{.*}} {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
    // CHECK: %[[A0:.*]] = llvm.extractvalue %[[READ]][0]
    // CHECK: %[[A1:.*]] = llvm.extractvalue %[[READ]][1]
    // CHECK: %[[A2:.*]] = llvm.extractvalue %[[READ]][2]
    // CHECK: %[[A3:.*]] = llvm.extractvalue %[[READ]][3]
    %a = device.load_fragment %ring[%one] at %zero, %zero : !ring -> !a
    // A fragment of k by columns, of a tile of k by columns: transposed on the way.
    // CHECK: %[[B:.*]] = nvvm.ldmatrix %{{.*}}, layout = #nvvm.mma_layout<col>, num = 2 : i32, {{.*}} -> !llvm.struct<(i32, i32)>
    // CHECK: %[[B0:.*]] = llvm.extractvalue %[[B]][0]
    // CHECK: %[[B1:.*]] = llvm.extractvalue %[[B]][1]
    %b = device.load_fragment %ring[%one] at %eight, %zero : !ring -> !b
    // The same of a tile of columns by k is not.
    // CHECK: nvvm.ldmatrix %{{.*}}, layout = #nvvm.mma_layout<row>, num = 2 : i32
    %bt = device.load_fragment %ring[%one] at %eight, %zero transposed : !ring -> !b

    // A sum starts at zero, or goes on.
    // CHECK: %[[P0:.*]] = llvm.bitcast %[[A0]] : i32 to vector<2xf16>
    // CHECK: %[[P1:.*]] = llvm.bitcast %[[A1]] : i32 to vector<2xf16>
    // CHECK: %[[P2:.*]] = llvm.bitcast %[[A2]] : i32 to vector<2xf16>
    // CHECK: %[[P3:.*]] = llvm.bitcast %[[A3]] : i32 to vector<2xf16>
    // CHECK: %[[Q0:.*]] = llvm.bitcast %[[B0]] : i32 to vector<2xf16>
    // CHECK: %[[Q1:.*]] = llvm.bitcast %[[B1]] : i32 to vector<2xf16>
    // CHECK: %[[S:.*]] = nvvm.mma.sync A[%[[P0]], %[[P1]], %[[P2]], %[[P3]]] B[%[[Q0]], %[[Q1]]] C[%[[NONE]], %[[NONE]], %[[NONE]], %[[NONE]]] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>}
    // CHECK: %[[S0:.*]] = llvm.extractvalue %[[S]][0]
    // CHECK: %[[S1:.*]] = llvm.extractvalue %[[S]][1]
    // CHECK: %[[S2:.*]] = llvm.extractvalue %[[S]][2]
    // CHECK: %[[S3:.*]] = llvm.extractvalue %[[S]][3]
    %c = device.contract_fragments %a by %b : !a, !b -> !c
    // CHECK: %[[T:.*]] = nvvm.mma.sync {{.*}} C[%[[S0]], %[[S1]], %[[S2]], %[[S3]]]
    // CHECK: %[[T0:.*]] = llvm.extractvalue %[[T]][0]
    // CHECK: %[[T1:.*]] = llvm.extractvalue %[[T]][1]
    // CHECK: %[[T2:.*]] = llvm.extractvalue %[[T]][2]
    // CHECK: %[[T3:.*]] = llvm.extractvalue %[[T]][3]
    %d = device.contract_fragments %a by %bt plus %c : !c : !a, !b -> !c

    // Renaming registers is nothing, and lanes ask others for one of two registers, those
    // renamed.
    %e = device.convert_layout %d : !c -> !device.fragment<[64, 8], f32, #renamed>
    // CHECK-NOT: nvvm.shfl
    // CHECK: %[[X:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[T0]], %[[FROM:.*]], %c31_i32
    // CHECK: %[[Y:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[T1]], %[[FROM]], %c31_i32
    // CHECK: arith.select %{{.*}}, %[[Y]], %[[X]] : f32
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T0]],
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T1]],
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T2]],
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T3]],
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T2]],
    // CHECK: nvvm.shfl.sync idx %{{.*}}, %[[T3]],
    // CHECK-NOT: nvvm.shfl
    %f = device.convert_layout %e : !device.fragment<[64, 8], f32, #renamed> -> !device.fragment<[64, 8], f32, #long>
    device.map(%f) over #long : (!device.fragment<[64, 8], f32, #long>) -> () {
    ^bb0(%v: f32, %i: index, %j: index):
      %s0 = device.symbol "y.s0"
      %row = arith.muli %i, %s0 : index
      %at = arith.addi %row, %j : index
      device.store %v, %y[%at] : f32, !y
      device.yield
    }
  }
}
