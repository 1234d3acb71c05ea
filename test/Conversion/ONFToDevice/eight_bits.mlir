// Values and weights of 8 bits: a temporary whose keys are adjacent, and interleaved in memory.

// RUN: moa-opt %s -onf-verify -o /dev/null
// RUN: moa-codegen %s --target=cuda --schedule=print | FileCheck %s --check-prefix=SCHEDULE
// RUN: moa-codegen %s --target=cuda --emit=device -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: moa-codegen %s --target=cuda -o - | FileCheck %s --check-prefix=CUDA
// RUN: moa-codegen %s --target=ptx -o %t.ptx --header %t.h
// RUN: FileCheck %s --check-prefix=PTX < %t.ptx
// RUN: FileCheck %s --check-prefix=LAUNCHER < %t.c
// RUN: moa-run %s --target=cpu --random 3 B=1 H=2 N=70 M=150 scale=0.0001 -o O=%t-cpu.npy
// RUN: moa-run %s --target=device --random 3 B=1 H=2 N=70 M=150 scale=0.0001 -o O=%t-device.npy
// RUN: %python %S/../../Integration/Support/near.py %t-cpu.npy %t-device.npy 3e-2

// A lane has 16 keys of two columns, 32 apart, its neighbours the next columns: what is read is adjacent along these, what
// is written along the keys. Where all keys exist nothing is asked of any; the last of them tells.
// SCHEDULE: { "name": "d", "block": 0, "sequential": 2, "lane": 32 }
// The weights are at most 2^5, so that what they refer to may lag by 2^3 below 448.
// SCHEDULE: "lazy": 3, "turns": true
// CHECK: device.kernel @integers_0 blocks "2*((16*((M + 15)/16) + 63)/64)*B*H" threads 128 {
// CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c32
// CHECK: %[[TILE:.*]] = arith.muli %{{.*}}, %c64
// CHECK: %[[D:.*]] = arith.addi %[[TILE]], %[[LANE]]
// CHECK: %[[LAST:.*]] = arith.addi %[[FIRST:.*]], %c15 : index
// CHECK: %[[PLAIN:.*]] = arith.cmpi sgt, %{{.*}}, %[[LAST]] : index
// CHECK: scf.for %[[STEP:.*]] = %c0 to %c2
// CHECK: %[[OFFSET:.*]] = arith.muli %[[STEP]], %c32
// CHECK: arith.addi %[[D]], %[[OFFSET]]
// CHECK: %[[BUFFER:.*]] = memref.alloca() : memref<16xf8E4M3FN>
// CHECK: scf.if %[[PLAIN]] {
// A place of the run has the key that stands there: bits 3 and 2 are those of twice as much, bit 1 that of 8.
// CHECK: scf.for %[[E:.*]] = %c0 to %c16
// CHECK: %[[ODD:.*]] = arith.remui %[[E]], %c2
// CHECK: %[[UPPER:.*]] = arith.divui %[[E]], %c4
// CHECK: %[[FOURS:.*]] = arith.remui %[[UPPER]], %c4
// CHECK: %[[EVEN:.*]] = arith.muli %[[FOURS]], %c2
// CHECK: arith.muli %{{.*}}, %c8
// CHECK: arith.addi %[[ODD]], %[[EVEN]]
// CHECK-NOT: scf.if
// CHECK: memref.store %{{.*}}, %[[BUFFER]][%[[E]]]
// CHECK: } else {
// CHECK: scf.for
// CHECK: scf.if
// CHECK: memref.store %{{.*}}, %[[BUFFER]]
// CHECK: device.store_run %[[BUFFER]][] to %V_8[%{{.*}}] stride %c1 count %c16
// CHECK-DAG: device.copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] columns %{{.*}} rows 2 to
// CHECK-DAG: device.clear_unseen %{{.*}}[%{{.*}}] interleaved unless
// What a tile adds is a sum apart, as tensor cores cut off what they add to large sums of 8-bit floats.
// CHECK-DAG: device.contract %{{.*}} by %{{.*}} transposed : !device.fragment<[64, 128], f8E4M3FN,
// RUN: FileCheck %s --check-prefix=WHOLE < %t.mlir
// WHOLE-NOT: transposed plus

// 2^5 is part of the exponent; an operand in registers has fours of bytes.
// CUDA-DAG: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {
// CUDA-DAG: cvt.rn.satfinite.e4m3x2.f32 low
// CUDA-DAG: to_e4m3(
// A warpgroup's turn passes when its scores are there.
// CUDA-DAG: arrive(&shared.K_empty[stage]);
// CUDA-DAG: arrive(&shared.turns[next_warpgroup]);
// CUDA-DAG: start_products_of_bytes<4, 128>(part, probabilities, shared.V_8
// CUDA-DAG: clear_masked_columns<128, 2>(
// CUDA-DAG: const Array V_8 = in_workspace("V_8", 4, 2, 1, (char *)
// CUDA-DAG: describe_tiles(m, &V_8_tiles, V_8, 2, 128)
// CUDA-DAG: negated[r] = 5.0f - 
// PTX: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3
// LAUNCHER: moa_place(&moa_placed_{{[0-9]+}}, &moa_tensor_{{[0-9]+}}, 4, 2, 1,

module {
  onf.kernel @integers attributes {arg_names = ["Q", "K", "V", "scale"], requires = [], result_names = ["O"], result_types = [!moa.array<[B, H, N, 128], bf16>], symbols = ["B", "H", "N", "M"], temporary_names = ["V_8"], temporary_types = [!moa.array<[B, H, 128, "16*((M + 15)/16)"], f8E4M3FN>]} {
  ^bb0(%Q: !moa.array<[B, H, N, 128], i8>, %K: !moa.array<[B, H, M, 128], i8>, %V: !moa.array<[B, H, M, 128], bf16>, %scale: !moa.array<[], f32>, %O: !moa.array<[B, H, N, 128], bf16>, %V_8: !moa.array<[B, H, 128, "16*((M + 15)/16)"], f8E4M3FN>):
    onf.for ["b", "h", "d", "m"] in ["B", "H", "128", "16*((M + 15)/16)"] {
    ^bb0(%b: index, %h: index, %d: index, %m: index):
      %0 = onf.extent "M"
      %1 = arith.cmpi sgt, %0, %m : index
      %2 = onf.load %V[%b, %h, %m, %d] : <[B, H, M, 128], bf16> -> bf16
      %3 = arith.extf %2 : bf16 to f32
      %c = arith.constant 0.000000e+00 : f32
      %4 = arith.select %1, %3, %c : f32
      onf.store %4, %V_8[%b, %h, %d, %m] : f32, <[B, H, 128, "16*((M + 15)/16)"], f8E4M3FN>
    }
    onf.for ["b", "h", "n"] in ["B", "H", "N"] {
    ^bb0(%b: index, %h: index, %n: index):
      %0 = onf.extent "M - N"
      %1 = arith.addi %n, %0 : index
      %2 = onf.load %scale[] : <[], f32> -> f32
      %true = arith.constant true
      %3:4 = onf.fold "m" in "M" : f32, f32, !moa.array<[128], f32>, i1 {
      ^bb0(%m: index):
        %10 = arith.cmpi sle, %m, %1 : index
        onf.guard %10
        %11 = onf.fold "k" in "128" : index {
        ^bb0(%k: index):
          %21 = onf.load %Q[%b, %h, %n, %k] : <[B, H, N, 128], i8> -> i8
          %22 = arith.index_cast %21 : i8 to index
          %23 = onf.load %K[%b, %h, %m, %k] : <[B, H, M, 128], i8> -> i8
          %24 = arith.index_cast %23 : i8 to index
          %25 = arith.muli %22, %24 : index
          %26 = onf.acc add "add" carries [] in [] refs() mul [] : () -> index {
            onf.yield %25 : index
          } repair {
          }
          onf.yield %26 : index
        }
        %12 = arith.index_cast %11 : index to i64
        %13 = arith.sitofp %12 {moa.round} : i64 to f32
        %14 = arith.mulf %13, %2 : f32
        %15 = onf.acc max "max" carries [] in [] refs() mul [] : () -> f32 {
          onf.yield %14 : f32
        } repair {
        }
        %16 = arith.subf %14, %15 : f32
        %17 = math.exp %16 : f32
        %s32 = arith.constant 3.200000e+01 : f32
        %w = arith.mulf %17, %s32 : f32
        %18 = onf.acc add "add" carries [] in [] refs(%15) mul [0xFF800000 : f32] : (f32) -> f32 {
          onf.yield %w : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %21 = arith.subf %arg0, %arg1 : f32
          %22 = math.exp %21 : f32
          onf.yield %22 : f32
        }
        %19 = onf.acc add "O" carries ["k"] in ["128"] rounds f8E4M3FN refs(%15) mul [0xFF800000 : f32] : (f32) -> !moa.array<[128], f32> {
        ^bb0(%k: index):
          %21 = onf.load %V_8[%b, %h, %k, %m] : <[B, H, 128, "16*((M + 15)/16)"], f8E4M3FN> -> f8E4M3FN
          %22 = arith.extf %21 : f8E4M3FN to f32
          %23 = arith.mulf %w, %22 : f32
          onf.yield %23 : f32
        } repair {
        ^bb0(%arg0: f32, %arg1: f32):
          %21 = arith.subf %arg0, %arg1 : f32
          %22 = math.exp %21 : f32
          onf.yield %22 : f32
        }
        %20 = onf.acc or "or" carries [] in [] refs() mul [] : () -> i1 {
          onf.yield %true : i1
        } repair {
        }
        onf.yield %15, %18, %19, %20 : f32, f32, !moa.array<[128], f32>, i1
      }
      %cst = arith.constant 0xFF800000 : f32
      %4 = arith.cmpf oeq, %3#0, %cst : f32
      %5 = arith.andi %3#3, %4 : i1
      %cst_0 = arith.constant 0.000000e+00 : f32
      %6 = arith.negf %3#0 : f32
      %7 = math.exp %6 : f32
      %8 = arith.mulf %cst_0, %7 : f32
      %9 = arith.select %5, %8, %3#1 : f32
      onf.for ["k"] in ["128"] {
      ^bb0(%k: index):
        %10 = onf.at %3#2[%k] : <[128], f32> -> f32
        %11 = arith.select %5, %8, %10 : f32
        %12 = arith.divf %11, %9 : f32
        %13 = arith.select %3#3, %12, %cst_0 : f32
        onf.store %13, %O[%b, %h, %n, %k] : f32, <[B, H, N, 128], bf16>
      }
    }
  }
}

