// RUN: moa-opt %s -verify-diagnostics -split-input-file

// Every constraint of the verifiers of moa, named as the message names it.

//===----------------------------------------------------------------------===//
// !moa.array
//===----------------------------------------------------------------------===//

moa.kernel @extent_syntax attributes {symbols = [], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
// expected-error @below {{expects an integer expression, but got 'N +': }}
^bb0(%x: !moa.array<["N +"], f32>):
}

// -----

moa.kernel @array_c2 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
// expected-error @below {{expects extents that are not negative (C2), but got -3}}
^bb0(%x: !moa.array<["1 - 4"], f32>):
}

// -----

moa.kernel @array_c3 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = [], result_types = []} {
// expected-error @below {{expects a float, integer or index element type (C3), but got 'complex<f32>'}}
^bb0(%x: !moa.array<[4], complex<f32>>):
}

// -----

//===----------------------------------------------------------------------===//
// moa.kernel, moa.return
//===----------------------------------------------------------------------===//

// expected-error @below {{expects one name per parameter (C1), but got 1 for 2}}
moa.kernel @kernel_c1 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>, %z: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects one name per result (C2), but got 2 for 1}}
moa.kernel @kernel_c2 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y", "z"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects results of array type (C3), but got 'f32'}}
moa.kernel @kernel_c3_result attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [f32]} {
^bb0(%x: !moa.array<[], f32>):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects parameters of array type (C3), but got 'f32'}}
moa.kernel @kernel_c3_parameter attributes {symbols = [], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>, %y: f32):
  moa.return %x : !moa.array<[], f32>
}

// -----

// expected-error @below {{expects moa.return at its end (C4)}}
moa.kernel @kernel_c4 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>):
  %y = moa.map exp(%x) axes [array<i64>] : (!moa.array<[], f32>) -> !moa.array<[], f32>
}

// -----

// expected-error @below {{expects a non-empty block}}
moa.kernel @kernel_empty attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>):
}

// -----

moa.kernel @return_c1 attributes {symbols = [], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[], f32>):
  // expected-error @below {{expects one value per result (C1), but got 2 for 1}}
  moa.return %x, %x : !moa.array<[], f32>, !moa.array<[], f32>
}

// -----

moa.kernel @return_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 4], f32>]} {
^bb0(%x: !moa.array<[4, N], f32>):
  // expected-error @below {{expects the shape of the declared result (C2), but got '!moa.array<[4, N], f32>' for '!moa.array<[N, 4], f32>'}}
  moa.return %x : !moa.array<[4, N], f32>
}

// -----

//===----------------------------------------------------------------------===//
// Generators
//===----------------------------------------------------------------------===//

// expected-error @below {{'moa.constant' op expects a scalar result (C1), but got rank 1}}
%c = moa.constant 1.0 : f32 -> !moa.array<[4], f32>

// -----

// expected-error @below {{expects the result's element type (C2), but got 'f32' for 'f64'}}
%c = moa.constant 1.0 : f32 -> !moa.array<[], f64>

// -----

// expected-error @below {{expects an integer expression, but got 'N +': }}
%e = moa.extent "N +" -> !moa.array<[], index>

// -----

// expected-error @below {{'moa.extent' op expects a scalar result of type index (C1), but got '!moa.array<[], f32>'}}
%e = moa.extent "N" -> !moa.array<[], f32>

// -----

// expected-error @below {{'moa.iota' op expects a vector of the given extent and type index (C1), but got '!moa.array<[M], index>'}}
%i = moa.iota "N" -> !moa.array<[M], index>

// -----

// expected-error @below {{expects a vector of the given extent and type index (C1)}}
%i = moa.iota "N" -> !moa.array<[N], i32>

// -----

//===----------------------------------------------------------------------===//
// moa.map
//===----------------------------------------------------------------------===//

moa.kernel @map_c1_list attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects one list of axes per operand (C1), but got 1 for 2}}
  %y = moa.map add(%x, %x) axes [array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c1_kind attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects one list of axes per operand (C1)}}
  %y = moa.map exp(%x) axes [0] : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c1_count attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects one axis per axis of operand 0 (C1), but got 0 for rank 1}}
  %y = moa.map exp(%x) axes [array<i64>] : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c1_order attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, N], f32>]} {
^bb0(%x: !moa.array<[N, N], f32>):
  // expected-error @below {{expects increasing axes of the result for operand 0 (C1), but got 0}}
  %y = moa.map exp(%x) axes [array<i64: 1, 0>] : (!moa.array<[N, N], f32>) -> !moa.array<[N, N], f32>
  moa.return %y : !moa.array<[N, N], f32>
}

// -----

moa.kernel @map_c1_range attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects increasing axes of the result for operand 0 (C1), but got -1}}
  %y = moa.map exp(%x) axes [array<i64: -1>] : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[M], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects equal extents (C2), but got N for axis 0 of operand 0 and M for axis 0 of the result}}
  %y = moa.map exp(%x) axes [array<i64: 0>] : (!moa.array<[N], f32>) -> !moa.array<[M], f32>
  moa.return %y : !moa.array<[M], f32>
}

// -----

moa.kernel @map_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects 2 operands for 'add' (C3), but got 1}}
  %y = moa.map add(%x) axes [array<i64: 0>] : (!moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c4_operands attributes {symbols = ["N"], requires = [], arg_names = ["x", "z"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %z: !moa.array<[N], bf16>):
  // expected-error @below {{expects equal element types (C4), but got 'f32' and 'bf16'}}
  %y = moa.map add(%x, %z) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], bf16>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c4_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a result of element type 'i1' (C4), but got 'f32'}}
  %y = moa.map lt(%x, %x) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c4_condition attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a condition of type i1 (C4), but got 'f32'}}
  %y = moa.map select(%x, %x, %x) axes [array<i64: 0>, array<i64: 0>, array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c4_float attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], index>]} {
^bb0(%x: !moa.array<[N], index>):
  // expected-error @below {{expects a float operand for 'exp' (C4), but got 'index'}}
  %y = moa.map exp(%x) axes [array<i64: 0>] : (!moa.array<[N], index>) -> !moa.array<[N], index>
  moa.return %y : !moa.array<[N], index>
}

// -----

moa.kernel @map_c4_power attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], index>]} {
^bb0(%x: !moa.array<[N], index>):
  // expected-error @below {{expects a float operand for 'pow' (C4), but got 'index'}}
  %y = moa.map pow(%x, %x) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], index>, !moa.array<[N], index>) -> !moa.array<[N], index>
  moa.return %y : !moa.array<[N], index>
}

// -----

moa.kernel @map_c4_bits attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a boolean or integer operand for 'xor' (C4), but got 'f32'}}
  %y = moa.map xor(%x, %x) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @map_c4_number attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], i1>]} {
^bb0(%x: !moa.array<[N], i1>):
  // expected-error @below {{expects a number operand for 'lt' (C4), but got 'i1'}}
  %y = moa.map lt(%x, %x) axes [array<i64: 0>, array<i64: 0>] : (!moa.array<[N], i1>, !moa.array<[N], i1>) -> !moa.array<[N], i1>
  moa.return %y : !moa.array<[N], i1>
}

// -----

//===----------------------------------------------------------------------===//
// moa.cast, moa.mask
//===----------------------------------------------------------------------===//

moa.kernel @cast_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 1], f32>]} {
^bb0(%x: !moa.array<[N], bf16>):
  // expected-error @below {{'moa.cast' op expects a result of shape <N> (C2), but got '!moa.array<[N, 1], f32>'}}
  %y = moa.cast %x : !moa.array<[N], bf16> -> !moa.array<[N, 1], f32>
  moa.return %y : !moa.array<[N, 1], f32>
}

// -----

moa.kernel @mask_c1_type attributes {symbols = ["N"], requires = [], arg_names = ["p", "x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%p: !moa.array<[N], i8>, %x: !moa.array<[N], f32>):
  // expected-error @below {{expects a predicate of element type i1 (C1), but got 'i8'}}
  %y = moa.mask %p, %x axes [0] : (!moa.array<[N], i8>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @mask_c1_axes attributes {symbols = ["N"], requires = [], arg_names = ["p", "x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%p: !moa.array<[N], i1>, %x: !moa.array<[N], f32>):
  // expected-error @below {{expects increasing axes of the result for the predicate (C1), but got 1}}
  %y = moa.mask %p, %x axes [1] : (!moa.array<[N], i1>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @mask_c2_result attributes {symbols = ["N"], requires = [], arg_names = ["p", "x"], result_names = ["y"], result_types = [!moa.array<[N], f64>]} {
^bb0(%p: !moa.array<[N], i1>, %x: !moa.array<[N], f32>):
  // expected-error @below {{expects the result to have the type of the input (C2), but got '!moa.array<[N], f64>'}}
  %y = moa.mask %p, %x axes [0] : (!moa.array<[N], i1>, !moa.array<[N], f32>) -> !moa.array<[N], f64>
  moa.return %y : !moa.array<[N], f64>
}

// -----

moa.kernel @mask_c2_extent attributes {symbols = ["N", "M"], requires = [], arg_names = ["p", "x"], result_names = ["y"], result_types = [!moa.array<[N, M], f32>]} {
^bb0(%p: !moa.array<[N], i1>, %x: !moa.array<[N, M], f32>):
  // expected-error @below {{expects equal extents (C2), but got N for axis 0 of the predicate and M for axis 1 of the result}}
  %y = moa.mask %p, %x axes [1] : (!moa.array<[N], i1>, !moa.array<[N, M], f32>) -> !moa.array<[N, M], f32>
  moa.return %y : !moa.array<[N, M], f32>
}

// -----

//===----------------------------------------------------------------------===//
// moa.reduce
//===----------------------------------------------------------------------===//

moa.kernel @reduce_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an axis below the rank (C1), but got 1 for rank 1}}
  %y = moa.reduce add %x axis 1 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %y : !moa.array<[], f32>
}

// -----

moa.kernel @reduce_c1_negative attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an axis below the rank (C1), but got -1 for rank 1}}
  %y = moa.reduce add %x axis -1 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %y : !moa.array<[], f32>
}

// -----

moa.kernel @reduce_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  // expected-error @below {{'moa.reduce' op expects a result of shape <M> (C2), but got '!moa.array<[N], f32>'}}
  %y = moa.reduce add %x axis 0 : !moa.array<[N, M], f32> -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @reduce_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f64>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects equal element types (C3), but got 'f32' and 'f64'}}
  %y = moa.reduce add %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f64>
  moa.return %y : !moa.array<[], f64>
}

// -----

moa.kernel @reduce_c5_number attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], i1>]} {
^bb0(%x: !moa.array<[N], i1>):
  // expected-error @below {{expects numbers for 'add' (C5), but got 'i1'}}
  %y = moa.reduce add %x axis 0 : !moa.array<[N], i1> -> !moa.array<[], i1>
  moa.return %y : !moa.array<[], i1>
}

// -----

moa.kernel @reduce_c5_boolean attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects booleans for 'and' (C5), but got 'f32'}}
  %y = moa.reduce and %x axis 0 : !moa.array<[N], f32> -> !moa.array<[], f32>
  moa.return %y : !moa.array<[], f32>
}

// -----

//===----------------------------------------------------------------------===//
// moa.inner
//===----------------------------------------------------------------------===//

moa.kernel @inner_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects cells of rank 1 or more (C1), but got ranks 1 and 1 with frame 1}}
  %y = moa.inner add of mul %x, %x {frame = 1, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @inner_c1_negative attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects cells of rank 1 or more (C1), but got ranks 1 and 1 with frame -1}}
  %y = moa.inner add of mul %x, %x {frame = -1, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[], f32>
  moa.return %y : !moa.array<[], f32>
}

// -----

moa.kernel @inner_c2_frame attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a framed operand where there is a frame (C2)}}
  %y = moa.inner add of mul %x, %x {frame = 1, lhs_framed = false, rhs_framed = false} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @inner_c2_shape attributes {symbols = ["N", "M", "K"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[M, N], f32>]} {
^bb0(%x: !moa.array<[N, K], f32>, %y: !moa.array<[K, M], f32>):
  // expected-error @below {{'moa.inner' op expects a result of shape <N, M> (C2), but got '!moa.array<[M, N], f32>'}}
  %z = moa.inner add of mul %x, %y {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N, K], f32>, !moa.array<[K, M], f32>) -> !moa.array<[M, N], f32>
  moa.return %z : !moa.array<[M, N], f32>
}

// -----

moa.kernel @inner_c3_frames attributes {symbols = ["B", "C", "N"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[B], f32>]} {
^bb0(%x: !moa.array<[B, N], f32>, %y: !moa.array<[C, N], f32>):
  // expected-error @below {{expects equal frames (C3), but got '!moa.array<[B, N], f32>' and '!moa.array<[C, N], f32>'}}
  %z = moa.inner add of mul %x, %y {frame = 1, lhs_framed = true, rhs_framed = true} : (!moa.array<[B, N], f32>, !moa.array<[C, N], f32>) -> !moa.array<[B], f32>
  moa.return %z : !moa.array<[B], f32>
}

// -----

moa.kernel @inner_c3_types attributes {symbols = ["N"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], bf16>):
  // expected-error @below {{expects equal element types (C3), but got 'f32' and 'bf16'}}
  %z = moa.inner add of mul %x, %y {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], bf16>) -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

moa.kernel @inner_c4_extent attributes {symbols = ["N", "M"], requires = [], arg_names = ["x", "y"], result_names = ["z"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[M], f32>):
  // expected-error @below {{expects equal contracted extents (C4), but got N and M}}
  %z = moa.inner add of mul %x, %y {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[M], f32>) -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

moa.kernel @inner_c4_meaning attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["z"], result_types = [!moa.array<[], i1>]} {
^bb0(%x: !moa.array<[N], i1>):
  // expected-error @below {{expects a number operand for 'mul' (C4), but got 'i1'}}
  %z = moa.inner or of mul %x, %x {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], i1>, !moa.array<[N], i1>) -> !moa.array<[], i1>
  moa.return %z : !moa.array<[], i1>
}

// -----

moa.kernel @inner_c5 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["z"], result_types = [!moa.array<[], i1>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects numbers for 'add' (C5), but got 'i1'}}
  %z = moa.inner add of eq %x, %x {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[], i1>
  moa.return %z : !moa.array<[], i1>
}

// -----

moa.kernel @inner_c6_arity attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["z"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a function of two operands (C6), but got 'exp'}}
  %z = moa.inner add of exp %x, %x {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[], f32>
  moa.return %z : !moa.array<[], f32>
}

// -----

moa.kernel @inner_c6_result attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["z"], result_types = [!moa.array<[], f64>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects a result of element type 'f32' (C6), but got 'f64'}}
  %z = moa.inner add of mul %x, %x {frame = 0, lhs_framed = true, rhs_framed = true} : (!moa.array<[N], f32>, !moa.array<[N], f32>) -> !moa.array<[], f64>
  moa.return %z : !moa.array<[], f64>
}

// -----

//===----------------------------------------------------------------------===//
// moa.psi
//===----------------------------------------------------------------------===//

moa.kernel @psi_c1_dims attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{expects one selected axis per index (C1), but got 0 for 1}}
  %y = moa.psi %x[%t] dims [] axes [array<i64: 0>] frame 1 : (!moa.array<[N], f32>, !moa.array<[K], index>) -> !moa.array<[K], f32>
  moa.return %y : !moa.array<[K], f32>
}

// -----

moa.kernel @psi_c1_order attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K], f32>]} {
^bb0(%x: !moa.array<[N, N], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{expects increasing selected axes (C1), but got 1}}
  %y = moa.psi %x[%t, %t] dims [1, 1] axes [array<i64: 0>, array<i64: 0>] frame 1 : (!moa.array<[N, N], f32>, !moa.array<[K], index>, !moa.array<[K], index>) -> !moa.array<[K], f32>
  moa.return %y : !moa.array<[K], f32>
}

// -----

moa.kernel @psi_c1_axis attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{expects an axis below the rank (C1), but got 1 for rank 1}}
  %y = moa.psi %x[%t] dims [1] axes [array<i64: 0>] frame 1 : (!moa.array<[N], f32>, !moa.array<[K], index>) -> !moa.array<[K], f32>
  moa.return %y : !moa.array<[K], f32>
}

// -----

moa.kernel @psi_c2_rank attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K, N], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{expects the frame and the axes of the input that no index selects as result (C2), but got rank 2 with frame 1 and 1 of 1 axes selected}}
  %y = moa.psi %x[%t] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[N], f32>, !moa.array<[K], index>) -> !moa.array<[K, N], f32>
  moa.return %y : !moa.array<[K, N], f32>
}

// -----

moa.kernel @psi_c2_frame attributes {symbols = ["N"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[], f32>]} {
^bb0(%x: !moa.array<[N, N], f32>, %t: !moa.array<[], index>):
  // expected-error @below {{(C2), but got rank 0 with frame -1 and 1 of 2 axes selected}}
  %y = moa.psi %x[%t] dims [0] axes [array<i64>] frame -1 : (!moa.array<[N, N], f32>, !moa.array<[], index>) -> !moa.array<[], f32>
  moa.return %y : !moa.array<[], f32>
}

// -----

moa.kernel @psi_c2_shape attributes {symbols = ["N", "M", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K, N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{'moa.psi' op expects a result of shape <K, M> (C2), but got '!moa.array<[K, N], f32>'}}
  %y = moa.psi %x[%t] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[N, M], f32>, !moa.array<[K], index>) -> !moa.array<[K, N], f32>
  moa.return %y : !moa.array<[K, N], f32>
}

// -----

moa.kernel @psi_c3_index attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K], f32>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[K], i32>):
  // expected-error @below {{expects indices of type index (C3), but got 'i32'}}
  %y = moa.psi %x[%t] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[N], f32>, !moa.array<[K], i32>) -> !moa.array<[K], f32>
  moa.return %y : !moa.array<[K], f32>
}

// -----

moa.kernel @psi_c3_type attributes {symbols = ["N", "K"], requires = [], arg_names = ["x", "t"], result_names = ["y"], result_types = [!moa.array<[K], f64>]} {
^bb0(%x: !moa.array<[N], f32>, %t: !moa.array<[K], index>):
  // expected-error @below {{expects equal element types (C3), but got 'f32' and 'f64'}}
  %y = moa.psi %x[%t] dims [0] axes [array<i64: 0>] frame 1 : (!moa.array<[N], f32>, !moa.array<[K], index>) -> !moa.array<[K], f64>
  moa.return %y : !moa.array<[K], f64>
}

// -----

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

moa.kernel @transpose_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 2], f32>]} {
^bb0(%x: !moa.array<[N, 2], f32>):
  // expected-error @below {{expects an axis below the rank (C1), but got 2 for rank 2}}
  %y = moa.transpose %x perm [0, 2] : !moa.array<[N, 2], f32> -> !moa.array<[N, 2], f32>
  moa.return %y : !moa.array<[N, 2], f32>
}

// -----

moa.kernel @transpose_c2_twice attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, N], f32>]} {
^bb0(%x: !moa.array<[N, 2], f32>):
  // expected-error @below {{expects a permutation (C2), but got axis 0 twice}}
  %y = moa.transpose %x perm [0, 0] : !moa.array<[N, 2], f32> -> !moa.array<[N, N], f32>
  moa.return %y : !moa.array<[N, N], f32>
}

// -----

moa.kernel @transpose_c2_count attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2], f32>]} {
^bb0(%x: !moa.array<[N, 2], f32>):
  // expected-error @below {{expects a permutation of 2 axes (C2), but got 1}}
  %y = moa.transpose %x perm [1] : !moa.array<[N, 2], f32> -> !moa.array<[2], f32>
  moa.return %y : !moa.array<[2], f32>
}

// -----

moa.kernel @transpose_c2_shape attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, 2], f32>]} {
^bb0(%x: !moa.array<[N, 2], f32>):
  // expected-error @below {{'moa.transpose' op expects a result of shape <2, N> (C2), but got '!moa.array<[N, 2], f32>'}}
  %y = moa.transpose %x perm [1, 0] : !moa.array<[N, 2], f32> -> !moa.array<[N, 2], f32>
  moa.return %y : !moa.array<[N, 2], f32>
}

// -----

moa.kernel @reshape_c1 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N, N], f32>]} {
^bb0(%x: !moa.array<[N, M], f32>):
  // expected-error @below {{expects as many elements as the input (C1), but got N*N for M*N}}
  %y = moa.reshape %x : !moa.array<[N, M], f32> -> !moa.array<[N, N], f32>
  moa.return %y : !moa.array<[N, N], f32>
}

// -----

moa.kernel @reshape_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f64>]} {
^bb0(%x: !moa.array<[N, 1], f32>):
  // expected-error @below {{expects equal element types (C3), but got 'f32' and 'f64'}}
  %y = moa.reshape %x : !moa.array<[N, 1], f32> -> !moa.array<[N], f64>
  moa.return %y : !moa.array<[N], f64>
}

// -----

moa.kernel @slice_c1_axis attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an axis below the rank (C1), but got 3 for rank 1}}
  %y = moa.slice %x axis 3 start "0" count "2" : !moa.array<[N], f32> -> !moa.array<[2], f32>
  moa.return %y : !moa.array<[2], f32>
}

// -----

moa.kernel @slice_c1_start attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an integer expression, but got 'N*': }}
  %y = moa.slice %x axis 0 start "N*" count "2" : !moa.array<[N], f32> -> !moa.array<[2], f32>
  moa.return %y : !moa.array<[2], f32>
}

// -----

moa.kernel @slice_c1_count attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an integer expression, but got '(2': }}
  %y = moa.slice %x axis 0 start "0" count "(2" : !moa.array<[N], f32> -> !moa.array<[2], f32>
  moa.return %y : !moa.array<[2], f32>
}

// -----

moa.kernel @slice_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[3], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'moa.slice' op expects a result of shape <2> (C2), but got '!moa.array<[3], f32>'}}
  %y = moa.slice %x axis 0 start "0" count "2" : !moa.array<[N], f32> -> !moa.array<[3], f32>
  moa.return %y : !moa.array<[3], f32>
}

// -----

moa.kernel @slice_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2], f64>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects equal element types (C3), but got 'f32' and 'f64'}}
  %y = moa.slice %x axis 0 start "0" count "2" : !moa.array<[N], f32> -> !moa.array<[2], f64>
  moa.return %y : !moa.array<[2], f64>
}

// -----

moa.kernel @reverse_c1 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'moa.reverse' op expects an axis below the rank (C1), but got 1 for rank 1}}
  %y = moa.reverse %x axis 1 : !moa.array<[N], f32> -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @reverse_c2 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f64>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'moa.reverse' op expects the type of the input (C2), but got '!moa.array<[N], f64>'}}
  %y = moa.reverse %x axis 0 : !moa.array<[N], f32> -> !moa.array<[N], f64>
  moa.return %y : !moa.array<[N], f64>
}

// -----

moa.kernel @rotate_c1_by attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{expects an integer expression, but got '': }}
  %y = moa.rotate %x by "" axis 0 : !moa.array<[N], f32> -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @rotate_c1_axis attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'moa.rotate' op expects an axis below the rank (C1), but got 4 for rank 1}}
  %y = moa.rotate %x by "1" axis 4 : !moa.array<[N], f32> -> !moa.array<[N], f32>
  moa.return %y : !moa.array<[N], f32>
}

// -----

moa.kernel @rotate_c2 attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[M], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  // expected-error @below {{'moa.rotate' op expects the type of the input (C2), but got '!moa.array<[M], f32>'}}
  %y = moa.rotate %x by "1" axis 0 : !moa.array<[N], f32> -> !moa.array<[M], f32>
  moa.return %y : !moa.array<[M], f32>
}

// -----

moa.kernel @transpose_c3 attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[2, N], f64>]} {
^bb0(%x: !moa.array<[N, 2], f32>):
  // expected-error @below {{'moa.transpose' op expects equal element types (C3), but got 'f32' and 'f64'}}
  %y = moa.transpose %x perm [1, 0] : !moa.array<[N, 2], f32> -> !moa.array<[2, N], f64>
  moa.return %y : !moa.array<[2, N], f64>
}

// -----

moa.kernel @iota_c1 attributes {symbols = ["N"], requires = [], arg_names = [], result_names = ["y"], result_types = [!moa.array<[N], index>]} {
  // expected-error @below {{expects an integer expression, but got '2*': }}
  %y = moa.iota "2*" -> !moa.array<[N], index>
  moa.return %y : !moa.array<[N], index>
}

// -----

// expected-error @below {{expects an integer expression, but got 'N/0': division by zero}}
module attributes {size = #moa.expr<"N/0">} {}

// -----

// expected-error @below {{expected string}}
module attributes {size = #moa.expr<7>} {}
