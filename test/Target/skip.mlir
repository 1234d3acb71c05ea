// A flag that any thread may raise, and blocks that end where none has: the first thing that a kernel does behind its wait
// or, where another one has waited for the flag, in front of it.

// RUN: moa-opt %s -device-skip-unchosen -device-verify -o %t.mlir
// RUN: moa-codegen %t.mlir --target=cuda -o %t.cu
// RUN: FileCheck %s --check-prefix=CUDA --input-file=%t.cu
// CUDA: DEVICE bool is_skipped(const int32_t *flag) {
// CUDA: if (blockIdx.x + 1 == gridDim.x) {
// CUDA-NEXT: let_next_launch_start();
// CUDA-NEXT: await_earlier_launches();
// CUDA: // Sets a flag to 1. Any number of threads may do so, in any order.
// CUDA-NEXT: DEVICE void raise_flag(int32_t *flag) {
// CUDA: first({{.*}}int32_t *__restrict__ c_any1)
// CUDA: threadIdx.x) == 0) c_any1[0] = 0;
// CUDA: choose(
// CUDA-NEXT: int32_t *__restrict__ c_any1)
// CUDA: c[block] = [[CHOICE:.*]];
// CUDA-NEXT: if ([[CHOICE]] == 1) raise_flag(c_any1);
// CUDA: roles(
// CUDA-NEXT: const int32_t *c_any1,
// CUDA-NEXT: await_earlier_launches();
// CUDA-NEXT: if (read_awaited(c_any1, 0) == 0) return;
// CUDA: plain(
// CUDA-NEXT: const int32_t *c_any1,
// CUDA-NEXT: if (is_skipped(c_any1)) return;
// CUDA-NEXT: await_earlier_launches();
// CUDA: launch_kernel_in_order(m, roles, latest, 2, 0, blocks[2].value,
// Without blocks it is not launched and waits for nothing: then the next launch does not overlap.
// CUDA: } else latest = -1;
// CUDA: launch_kernel_in_order(m, plain, latest, 3, 2, blocks[3].value,
// CUDA-NOT: latest = -1;

// What is read without waiting shares no line of 128 bytes with what is written meanwhile, at whatever multiple of 64 the
// workspace starts.
// RUN: FileCheck %s --check-prefix=LINES --input-file=%t.cu
// LINES: const Checked place = 128 * floor_div(size + 191, 128);

// RUN: moa-codegen %t.mlir --target=ptx -o - | FileCheck %s --check-prefix=PTX
// PTX: .entry first(
// PTX: st.global.{{[bu]}}32
// PTX: .entry choose(
// PTX: st.relaxed.gpu.global.s32 [%{{.*}}], 1;
// PTX: .entry roles(
// PTX: griddepcontrol.wait
// PTX: ld.global{{.*}}32 %[[ANY:.*]], [
// PTX-NEXT: setp.{{eq|ne}}.{{[bs]}}32 %[[NONE:.*]], %[[ANY]], 0;
// PTX-NEXT: @{{!?}}%[[NONE]] bra
// PTX: mbarrier.init
// PTX: .entry plain(
// PTX-NOT: griddepcontrol.wait
// PTX: ld.global.nc.b32 %[[IDLE:.*]], [
// PTX: setp.{{eq|ne}}.{{[bs]}}32 %{{.*}}, %[[IDLE]], 0;
// PTX-DAG: @last griddepcontrol.launch_dependents; @last griddepcontrol.wait;}
// PTX-DAG: {{^}}{{[[:space:]]*}}griddepcontrol.wait;
// RUN: moa-codegen %t.mlir --target=ptx -o %t.ptx
// RUN: FileCheck %s --check-prefix=C --input-file=%t.c
// C: moa_multiply(moa_number(128), moa_floor_div(moa_add(size, moa_number(191)), moa_number(128)))
// C: moa_launch(&m, moa_kernels[2],
// C: } else {
// C-NEXT: moa_latest = -1;
// C: moa_launch(&m, moa_kernels[3],
// C-NOT: moa_latest = -1;
// RUN: FileCheck %s --check-prefix=JSON --input-file=%t.json
// JSON: "kernel": "roles",
// JSON: "kernel": "plain",
// JSON-NEXT: "overlaps_behind": 2,

device.program @f attributes {symbols = ["B", "N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[B, N], f32>], workspace_names = ["c", "t"], workspace_types = [!moa.array<[B], i32>, !moa.array<[B, N], f32>]} {
^bb0(%x: !moa.array<[B], f32>, %y: !moa.array<[B, N], f32>, %c: !moa.array<[B], i32>, %t: !moa.array<[B, N], f32>):
  device.kernel @first blocks "1" threads 128 {
  }
  device.kernel @choose blocks "B" threads 128 {
    %b = device.block
    %i = device.thread
    %zero = arith.constant 0 : index
    %zero_f32 = arith.constant 0.0 : f32
    %isFirst = arith.cmpi eq, %i, %zero : index
    scf.if %isFirst {
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      %more = arith.cmpf ogt, %e, %zero_f32 : f32
      %choice = arith.extui %more : i1 to i32
      device.store %choice, %c[%b] : i32, !moa.array<[B], i32>
    }
  }
  device.kernel @roles blocks "B*N" threads 256 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %n = device.symbol "N"
    %b = arith.divsi %i, %n : index
    %one = arith.constant 1 : i32
    %choice = device.load %c[%b] : !moa.array<[B], i32> -> i32
    %is = arith.cmpi eq, %choice, %one : i32
    %full = device.barriers : !device.barriers<1, 1>
    device.specialize if %is consumers 1 registers 240 {
      %zero = arith.constant 0 : index
      device.wait %full[%zero] parity %zero : !device.barriers<1, 1>
    } producer registers 24 {
      %zero = arith.constant 0 : index
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      device.arrive %full[%zero] : !device.barriers<1, 1>
      device.store %e, %y[%i] : f32, !moa.array<[B, N], f32>
    }
  }
  device.kernel @plain blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 1 : i64}} {
    %i = device.block
    %n = device.symbol "N"
    %b = arith.divsi %i, %n : index
    %one = arith.constant 1 : i32
    %choice = device.load %c[%b] : !moa.array<[B], i32> -> i32
    %is = arith.cmpi eq, %choice, %one : i32
    scf.if %is {
      %e = device.load %x[%b] : !moa.array<[B], f32> -> f32
      device.store %e, %t[%i] : f32, !moa.array<[B, N], f32>
    }
  }
}
