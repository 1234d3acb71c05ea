// Kernels of scalar code: parameters, memory, private arrays, loops, branches, and
// operations that LLVM leaves undefined for some operands.

// RUN: moa-opt %s --convert-device-to-nvvm | FileCheck %s
// RUN: moa-opt %s --device-to-llvm-pipeline | FileCheck %s --check-prefix=LLVM

// LLVM-NOT: {{device|scf|arith|math|cf|unrealized_conversion_cast}}{{\.|_}}
// LLVM: llvm.func @rows_0
// LLVM-NOT: {{(^| )(device|scf|arith|math|cf)\.}}

// Functions of CUDA's library, declared once.
// CHECK-DAG: llvm.func @__nv_expf(f32) -> f32
// CHECK-DAG: llvm.func @__nv_tanh(f64) -> f64
// CHECK-DAG: llvm.func @__nv_frsqrt_rn(f32) -> f32

// Parameters: pointers to global memory (inputs are read only), scalars (a boolean is a
// byte), symbols and strides by name.
// CHECK: llvm.func @rows_0(%[[X:arg[0-9]+]]: !llvm.ptr<1> {llvm.noalias, llvm.readonly},
// CHECK-SAME: %[[KEEP:arg[0-9]+]]: !llvm.ptr<1> {llvm.noalias, llvm.readonly},
// CHECK-SAME: %[[Y:arg[0-9]+]]: !llvm.ptr<1> {llvm.noalias},
// CHECK-SAME: %[[SCALE:arg[0-9]+]]: bf16, %[[FLAG:arg[0-9]+]]: i8, %[[N:arg[0-9]+]]: i64, %[[S0:arg[0-9]+]]: i64)
// CHECK-SAME: nvvm.kernel, nvvm.maxntid = array<i32: 128, 1, 1>}
// CHECK-NOT: nvvm.minctasm
device.program @rows attributes {symbols = ["N"], requires = [], arg_names = ["x", "keep", "scale", "flag"],
    result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], bf16>, %keep: !moa.array<[N], i1>, %scale: !moa.array<[], bf16>,
     %flag: !moa.array<[], i1>, %y: !moa.array<[N], f32>):
  device.kernel @rows_0 blocks "(N + 127)/128" threads 128 {
    // CHECK: %[[PRIVATE:.*]] = llvm.alloca %{{.*}} x f32
    // CHECK: %[[CTA:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
    // CHECK: %[[BLOCK:.*]] = arith.extui %[[CTA]] : i32 to i64
    %block = device.block
    // CHECK: nvvm.read.ptx.sreg.tid.x : i32
    %thread = device.thread
    %size = arith.constant 128 : index
    // CHECK: arith.muli %[[BLOCK]], %{{.*}} : i64
    %first = arith.muli %block, %size : index
    %row = arith.addi %first, %thread : index
    %n = device.symbol "N"
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %none = arith.constant 0.0 : f32
    // CHECK: arith.cmpi slt, %{{.*}}, %[[N]] : i64
    %inside = arith.cmpi slt, %row, %n : index
    // CHECK: scf.if
    scf.if %inside {
      // CHECK: %[[TWICE:.*]] = arith.muli %[[S0]], %{{.*}} : i64
      // CHECK: arith.addi %[[N]], %[[TWICE]] : i64
      %stride = device.symbol "2*x.s0 + N"
      %at = arith.muli %row, %stride : index
      // CHECK: %[[WHERE:.*]] = llvm.getelementptr %[[X]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, bf16
      // CHECK: %[[E:.*]] = llvm.load %[[WHERE]] invariant : !llvm.ptr<1> -> bf16
      %e = device.load %x[%at] : !moa.array<[N], bf16> -> bf16
      // CHECK: arith.extf %[[E]] : bf16 to f32
      %wide = arith.extf %e : bf16 to f32
      // CHECK: arith.extf %[[SCALE]] : bf16 to f32
      %s = device.scalar %scale : !moa.array<[], bf16> -> bf16
      %ws = arith.extf %s : bf16 to f32
      // A boolean is a byte in memory and as a parameter.
      // CHECK: llvm.load %{{.*}} invariant : !llvm.ptr<1> -> i8
      // CHECK: %[[B:.*]] = arith.cmpi ne, %{{.*}}, %{{.*}} : i8
      %b = device.load %keep[%row] : !moa.array<[N], i1> -> i1
      // CHECK: %[[F:.*]] = arith.cmpi ne, %[[FLAG]], %{{.*}} : i8
      %f = device.scalar %flag : !moa.array<[], i1> -> i1
      // CHECK: arith.andi %[[B]], %[[F]] : i1
      %both = arith.andi %b, %f : i1
      // CHECK: %[[PRODUCT:.*]] = arith.mulf
      %scaled = arith.mulf %wide, %ws : f32
      // CHECK: %[[P:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%[[PRODUCT]]) : (f32) -> f32
      %p = device.exp2 %scaled : f32
      // CHECK: llvm.call @__nv_expf
      %exp = math.exp %p : f32
      // CHECK: llvm.call @__nv_expf
      %again = math.exp %exp : f32
      // CHECK: llvm.call @__nv_frsqrt_rn
      %root = math.rsqrt %again : f32
      // CHECK: math.fma
      %fused = math.fma %root, %exp, %p : f32
      %private = memref.alloca() : memref<4xf32>
      // Private arrays become registers if the loops over them are unrolled.
      // CHECK: scf.for
      // CHECK: llvm.getelementptr %[[PRIVATE]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      // CHECK: llvm.store
      // CHECK: } {loop_annotation = #{{.*}}}
      scf.for %k = %zero to %four step %one {
        memref.store %fused, %private[%k] : memref<4xf32>
      }
      // CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (f32)
      // CHECK: arith.addf %[[SUM]]
      // CHECK: scf.yield
      %total = scf.for %k = %zero to %n step %one iter_args(%sum = %none) -> f32 {
        %q = memref.load %private[%zero] : memref<4xf32>
        %next = arith.addf %sum, %q : f32
        scf.yield %next : f32
      }
      // CHECK: %[[R:.*]] = scf.if
      %r = scf.if %both -> f32 {
        scf.yield %total : f32
      } else {
        scf.yield %none : f32
      }
      // CHECK: llvm.store %[[R]], %{{.*}} : f32, !llvm.ptr<1>
      device.store %r, %y[%row] : f32, !moa.array<[N], f32>
    }
    // CHECK: llvm.return
  }
}

// CHECK-LABEL: llvm.func @undefined_0
device.program @undefined attributes {symbols = ["N", "G"], requires = [], arg_names = ["a", "d"],
    result_names = ["q", "z"], result_types = [!moa.array<[N], i32>, !moa.array<[N], f64>]} {
^bb0(%a: !moa.array<[N], i32>, %d: !moa.array<[N], f64>, %q: !moa.array<[N], i32>, %z: !moa.array<[N], f64>):
  device.kernel @undefined_0 blocks "1" threads 32 {
    %t = device.thread
    %x = device.load %a[%t] : !moa.array<[N], i32> -> i32
    // A quotient by 0 is 0, by -1 wraps.
    // CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %[[Y:.*]], %{{.*}} : i32
    // CHECK: %[[IS_MINUS:.*]] = arith.cmpi eq, %[[Y]], %{{.*}} : i32
    // CHECK: %[[SPECIAL:.*]] = arith.ori %[[IS_ZERO]], %[[IS_MINUS]]
    // CHECK: %[[SAFE:.*]] = arith.select %[[SPECIAL]], %{{.*}}, %[[Y]] : i32
    // CHECK: %[[Q:.*]] = arith.divsi %{{.*}}, %[[SAFE]] : i32
    // CHECK: %[[MINUS:.*]] = arith.subi
    // CHECK: %[[ELSE:.*]] = arith.select %[[IS_MINUS]], %[[MINUS]], %[[Q]]
    // CHECK: arith.select %[[IS_ZERO]], %{{.*}}, %[[ELSE]]
    %trunc = arith.divsi %x, %x : i32
    // CHECK: arith.divsi
    // CHECK: arith.muli
    // CHECK: arith.cmpi ne
    %floor = arith.floordivsi %x, %trunc : i32
    // CHECK: %[[REST:.*]] = arith.remsi
    // CHECK: arith.select %{{.*}}, %{{.*}}, %[[REST]]
    %rest = arith.remsi %x, %floor : i32
    // Shifts count modulo 64 to the left, and stop at the width to the right.
    // CHECK: %[[AMOUNT:.*]] = arith.andi %{{.*}}, %{{.*}} : i64
    // CHECK: arith.shli %{{.*}}, %[[AMOUNT]] : i64
    // CHECK: arith.trunci
    %left = arith.shli %rest, %x : i32
    // CHECK: %[[LEAST:.*]] = arith.minui
    // CHECK: arith.shrsi %{{.*}}, %[[LEAST]] : i32
    %right = arith.shrsi %left, %x : i32
    %y = device.load %d[%t] : !moa.array<[N], f64> -> f64
    // CHECK: llvm.call @__nv_tanh
    %h = math.tanh %y : f64
    // The larger one, NaN if one is NaN, has no instruction for f64.
    // CHECK: %[[MORE:.*]] = arith.cmpf ogt
    // CHECK: %[[NAN:.*]] = arith.cmpf une
    // CHECK: %[[FIRST:.*]] = arith.ori %[[MORE]], %[[NAN]]
    // CHECK: %[[MAX:.*]] = arith.select %[[FIRST]]
    %m = arith.maximumf %y, %h : f64
    // Out of range goes to the nearest, NaN to 0.
    // CHECK: %[[CUT:.*]] = arith.fptosi %[[MAX]] : f64 to i32
    // CHECK: %[[LOW:.*]] = arith.cmpf olt
    // CHECK: arith.select %[[LOW]], %{{.*}}, %[[CUT]]
    // CHECK: arith.cmpf oge
    // CHECK: arith.cmpf une
    %cut = arith.fptosi %m : f64 to i32
    %sum = arith.addi %cut, %right : i32
    device.store %sum, %q[%t] : i32, !moa.array<[N], i32>
    // H / G of symbols rounds down, for negative values too.
    // CHECK: arith.divsi %{{.*}}, %{{.*}} : i64
    %g = device.symbol "(N - 7)/G"
    %place = arith.addi %g, %t : index
    device.store %m, %z[%place] : f64, !moa.array<[N], f64>
  }
}
