// Scalar code and control flow of functions in llvm.

// RUN: moa-opt %s --convert-gpu-functions-to-llvm -verify-roundtrip | FileCheck %s
// RUN: moa-opt %s --convert-gpu-functions-to-llvm | FileCheck %s --check-prefix=ALONE
// ALONE-NOT: {{(^| )(scf|arith|math|cf)\.}}
// ALONE-NOT: unrealized_conversion_cast

// One op each; comparisons keep their predicates.
// CHECK-LABEL: llvm.func @scalars(
// CHECK-SAME: %[[X:.*]]: f32, %[[Y:.*]]: f32, %[[I:.*]]: i64, %[[J:.*]]: i64)
llvm.func @scalars(%x: f32, %y: f32, %i: i64, %j: i64) -> i64 {
  // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
  %two = arith.constant 2 : i64
  // CHECK: %[[SUM:.*]] = llvm.fadd %[[X]], %[[Y]] : f32
  %sum = arith.addf %x, %y : f32
  // A flag that allows more than one rounding is dropped.
  // CHECK: %[[PRODUCT:.*]] = llvm.fmul %[[SUM]], %[[Y]] : f32
  %product = arith.mulf %sum, %y fastmath<contract> : f32
  // CHECK: %[[FUSED:.*]] = llvm.intr.fma(%[[PRODUCT]], %[[X]], %[[Y]]) : (f32, f32, f32) -> f32
  %fused = math.fma %product, %x, %y : f32
  // CHECK: %[[MOST:.*]] = llvm.intr.maximum(%[[FUSED]], %[[X]]) : (f32, f32) -> f32
  %most = arith.maximumf %fused, %x : f32
  // CHECK: %[[LEAST:.*]] = llvm.intr.minnum(%[[MOST]], %[[X]])
  %least = arith.minnumf %most, %x : f32
  // CHECK: llvm.fcmp "une" %[[LEAST]], %[[X]] : f32
  %differs = arith.cmpf une, %least, %x : f32
  // CHECK: llvm.fcmp "ord" %[[LEAST]], %[[X]] : f32
  %ordered = arith.cmpf ord, %least, %x : f32
  // CHECK: llvm.icmp "ult" %[[I]], %[[J]] : i64
  %below = arith.cmpi ult, %i, %j : i64
  // CHECK: llvm.icmp "sge" %[[I]], %[[J]] : i64
  %above = arith.cmpi sge, %i, %j : i64
  // CHECK: llvm.and
  // CHECK: llvm.xor
  // CHECK: %[[ALL:.*]] = llvm.or
  %a = arith.andi %differs, %ordered : i1
  %b = arith.xori %below, %above : i1
  %all = arith.ori %a, %b : i1
  // CHECK: %[[SHIFTED:.*]] = llvm.ashr %[[I]], %[[TWO]] : i64
  %shifted = arith.shrsi %i, %two : i64
  // CHECK: llvm.select %[[ALL]], %[[SHIFTED]], %[[J]] : i1, i64
  %r = arith.select %all, %shifted, %j : i64
  // CHECK: llvm.trunc {{.*}} : i64 to i32
  // CHECK: llvm.sext {{.*}} : i32 to i64
  %narrow = arith.trunci %r : i64 to i32
  %wide = arith.extsi %narrow : i32 to i64
  // CHECK: llvm.fptrunc %[[X]] : f32 to bf16
  // CHECK: llvm.fpext {{.*}} : bf16 to f64
  // CHECK: llvm.fptosi {{.*}} : f64 to i64
  %short = arith.truncf %x : f32 to bf16
  %long = arith.extf %short : bf16 to f64
  %whole = arith.fptosi %long : f64 to i64
  %back = arith.addi %whole, %wide : i64
  llvm.return %back : i64
}

// Branches give their values as arguments of the block behind them.
// CHECK-LABEL: llvm.func @branches(
// CHECK-SAME: %[[C:.*]]: i1, %[[D:.*]]: i1, %[[X:.*]]: f32, %[[P:.*]]: !llvm.ptr)
llvm.func @branches(%c: i1, %d: i1, %x: f32, %p: !llvm.ptr) {
  // CHECK: llvm.cond_br %[[C]], ^[[OUTER:.*]], ^[[NO:.*]]
  // CHECK: ^[[OUTER]]:
  // CHECK-NEXT: llvm.cond_br %[[D]], ^[[INNER:.*]], ^[[REST:.*]]
  // CHECK: ^[[INNER]]:
  // CHECK-NEXT: llvm.store %[[X]], %[[P]]
  // CHECK-NEXT: llvm.br ^[[REST]]
  // CHECK: ^[[REST]]:
  // CHECK-NEXT: %[[TWICE:.*]] = llvm.fadd %[[X]], %[[X]]
  // CHECK-NEXT: llvm.br ^[[BEHIND:.*]](%[[TWICE]] : f32)
  // CHECK: ^[[NO]]:
  // CHECK-NEXT: llvm.br ^[[BEHIND]](%[[X]] : f32)
  // CHECK: ^[[BEHIND]](%[[R:.*]]: f32):
  %r = scf.if %c -> (f32) {
    scf.if %d {
      llvm.store %x, %p : f32, !llvm.ptr
    }
    %twice = arith.addf %x, %x : f32
    scf.yield %twice : f32
  } else {
    scf.yield %x : f32
  }
  // CHECK-NEXT: llvm.store %[[R]], %[[P]]
  llvm.store %r, %p : f32, !llvm.ptr
  // CHECK-NEXT: llvm.return
  llvm.return
}

// The head of a loop has its index and states; a loop that must be unrolled says so.
// CHECK-LABEL: llvm.func @loops(
// CHECK-SAME: %[[N:.*]]: i64, %[[X:.*]]: f32, %[[P:.*]]: !llvm.ptr)
llvm.func @loops(%n: i64, %x: f32, %p: !llvm.ptr) {
  // CHECK-DAG: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64) : i64
  // CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i64) : i64
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: llvm.br ^[[HEAD:.*]](%[[ZERO]], %[[X]], %[[N]] : i64, f32, i64)
  // CHECK: ^[[HEAD]](%[[K:.*]]: i64, %[[S:.*]]: f32, %[[T:.*]]: i64):
  // CHECK-NEXT: %[[MORE:.*]] = llvm.icmp "slt" %[[K]], %[[N]] : i64
  // CHECK-NEXT: llvm.cond_br %[[MORE]], ^[[BODY:.*]], ^[[END:.*]] {loop_annotation = #[[UNROLL:.*]]}
  // CHECK: ^[[BODY]]:
  // CHECK-NEXT: llvm.br ^[[INNER:.*]](%[[ZERO]] : i64)
  // CHECK: ^[[INNER]](%[[L:.*]]: i64):
  // CHECK-NEXT: %[[LESS:.*]] = llvm.icmp "slt" %[[L]], %[[K]] : i64
  // CHECK-NEXT: llvm.cond_br %[[LESS]], ^[[STORE:.*]], ^[[NEXT:.*]]{{$}}
  // CHECK: ^[[STORE]]:
  // CHECK-NEXT: llvm.store %[[S]], %[[P]]
  // CHECK: llvm.br ^[[INNER]]
  // CHECK: ^[[NEXT]]:
  // CHECK-NEXT: %[[NEW:.*]] = llvm.fadd %[[S]], %[[X]]
  // CHECK-NEXT: %[[K1:.*]] = llvm.add %[[K]], %[[ONE]] : i64
  // CHECK-NEXT: llvm.br ^[[HEAD]](%[[K1]], %[[NEW]], %[[K]] : i64, f32, i64)
  // CHECK: ^[[END]]:
  // CHECK-NEXT: llvm.store %[[S]], %[[P]]
  // CHECK-NEXT: llvm.store %[[T]], %[[P]]
  %r:2 = scf.for %k = %zero to %n step %one iter_args(%s = %x, %t = %n) -> (f32, i64) : i64 {
    scf.for %l = %zero to %k step %one : i64 {
      llvm.store %s, %p : f32, !llvm.ptr
    }
    %new = arith.addf %s, %x : f32
    scf.yield %new, %k : f32, i64
  } {loop_annotation = #llvm.loop_annotation<unroll = <disable = false>>}
  llvm.store %r#0, %p : f32, !llvm.ptr
  llvm.store %r#1, %p : i64, !llvm.ptr
  llvm.return
}

// What has no single op in llvm still gets there.
// CHECK-LABEL: llvm.func @rest(
// CHECK: llvm.intr.sqrt
// CHECK: llvm.fdiv
// CHECK: llvm.inline_asm
llvm.func @rest(%x: f32, %p: !llvm.ptr, %c: i32) {
  %r = math.rsqrt %x : f32
  llvm.store %r, %p : f32, !llvm.ptr
  nvvm.mbarrier.try_wait.parity %p, %c, %c : !llvm.ptr, i32, i32
  llvm.return
}
