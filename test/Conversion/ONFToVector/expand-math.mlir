// RUN: moa-opt %s -moa-expand-math | FileCheck %s

// On 512-bit vectors 2^n is one instruction; elsewhere a product with two powers. Results are 0 where they would be
// subnormal, for x < -87.3365402 = log 2^-126.
// CHECK-LABEL: func.func @exp(
// CHECK-SAME: %[[X:[a-z0-9]+]]: vector<16xf32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<-87.3365402> : vector<16xf32>
// CHECK: math.roundeven
// CHECK-COUNT-7: math.fma
// CHECK: %[[POWER:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]], %[[LOW]]
// CHECK: %[[RESULT:.*]] = arith.select %[[BELOW]], %[[ZERO]], %[[POWER]]
// CHECK: return %[[RESULT]]
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @exp_narrow
// CHECK-NOT: scalef
// CHECK: arith.shli
// CHECK: arith.shli
// CHECK: arith.mulf
func.func @exp_narrow(%x: vector<8xf32>) -> vector<8xf32> {
  %y = math.exp %x : vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @exp2
// CHECK-COUNT-12: math.fma
// CHECK-NOT: math.exp2
func.func @exp2(%x: f64) -> f64 {
  %y = math.exp2 %x : f64
  return %y : f64
}

// CHECK-LABEL: func.func @tanh
// CHECK-NOT: math.tanh
// CHECK: math.copysign
func.func @tanh(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.tanh %x : vector<16xf32>
  return %y : vector<16xf32>
}

// 2^y by lines is y's number of 64ths, as the bits of a float.
// CHECK-LABEL: func.func @lines
// CHECK: %[[Y:.*]] = math.fma
// CHECK: %[[NUMBER:.*]] = math.roundeven
// CHECK: %[[BITS:.*]] = arith.fptosi %[[NUMBER]] : vector<8xf32> to vector<8xi32>
// CHECK: arith.shli %[[BITS]]
// CHECK: arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-NOT: piecewise_exp2
// CHECK: return
func.func @lines(%x: vector<8xf32>) -> vector<8xf32> {
  %y = onf.piecewise_exp2 %x times 1.5 plus 2.0 : vector<8xf32>
  return %y : vector<8xf32>
}

// Functions without an expansion here stay: the C library computes them.
// CHECK-LABEL: func.func @erf
// CHECK: math.erf
func.func @erf(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.erf %x : vector<16xf32>
  return %y : vector<16xf32>
}

// Subnormal arguments are scaled by 2^23 = 8388608.
// CHECK-LABEL: func.func @log2_of_subnormals
// CHECK-DAG: arith.constant dense<1.17549435E-38>
// CHECK-DAG: arith.constant dense<0x4B000000>
// CHECK-DAG: arith.constant dense<2.300000e+01>
// CHECK: arith.cmpf olt
// CHECK-NOT: math.log2
func.func @log2_of_subnormals(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.log2 %x : vector<16xf32>
  return %y : vector<16xf32>
}
