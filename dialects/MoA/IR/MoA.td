//===- MoA.td - the ops of the moa dialect ------------------*- tablegen -*-===//
//
// Values are whole arrays with symbolic shapes. There is one op per operator of the algebra.
// Numbers in brackets, [Def 3], refer to docs/Spec.md.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_MOA_IR_MOA_TD
#define MOA_DIALECTS_MOA_IR_MOA_TD

include "dialects/MoA/IR/MoABase.td"

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

class MoA_Op<string mnemonic, list<Trait> traits = []>
    : Op<MoA_Dialect, mnemonic, traits>;

/// An operator of the algebra: pure, with one array result.
class MoA_ArrayOp<string mnemonic, list<Trait> traits = []>
    : MoA_Op<mnemonic, !listconcat([Pure], traits)> {
  let results = (outs MoA_ArrayType:$result);
  let hasVerifier = 1;
}

def MoA_KernelOp : MoA_Op<"kernel",
    [Symbol, IsolatedFromAbove, SingleBlock,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel: parameters, constraints and a body of array operators";
  let description = [{
    A kernel maps input arrays to output arrays [Def 13]. The block arguments are the parameters, in
    the user's order.

    - `symbols`: the run-time symbols, in the order of declaration.
    - `requires`: the constraints on them, as canonical text. For example, `H%G == 0`.
    - `arg_names`: the names of the parameters.
    - `result_names`, `result_types`: the outputs.
    - `within`: if any result has a tolerance, one `#moa.within` or `unit` per output.

    The body holds array operators and ends with `moa.return`:

        moa.kernel @rows attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
            result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
        ^bb0(%x: !moa.array<[N, M], f32>):
          %0 = moa.reduce add %x axis 1 : <[N, M], f32> -> <[N], f32>
          moa.return %0 : !moa.array<[N], f32>
        }

    Constraints:

    - C1: One name per parameter.
    - C2: One name per result.
    - C3: Parameters and results are arrays.
    - C4: The terminator is `moa.return`.
    - C5: One tolerance or unit per result, and tolerances only for floats.

    The contract of the level, K1 to M2, is that of `moa-verify`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types,
                       OptionalAttr<ArrayAttr>:$within);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def MoA_ReturnOp : MoA_Op<"return", [Terminator, Pure, HasParent<"KernelOp">]> {
  let summary = "The outputs of a kernel, in order";
  let description = [{
    Ends a kernel and gives its outputs. An absent element of an output is stored as 0 [Def 9]. The
    element type of a value may be wider than the declared one; elements are then rounded once, at
    the store.

        moa.return %o, %lse : !moa.array<[N, 128], f32>, !moa.array<[N], f32>

    Constraints: one value per result (C1), of the shape that the kernel declares (C2).
  }];
  let arguments = (ins Variadic<MoA_ArrayType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def MoA_ConstantOp : MoA_ArrayOp<"constant"> {
  let summary = "A scalar constant";
  let description = [{
    <> ψ c = c (law P1). The value is exact in the element type.

        %c = moa.constant 2.5 : f32 -> <[], f32>

    Constraints: the result is a scalar (C1) of the value's type (C2).
  }];
  let arguments = (ins TypedAttrInterface:$value);
  let assemblyFormat = "$value attr-dict `->` type($result)";
}

def MoA_ExtentOp : MoA_ArrayOp<"extent"> {
  let summary = "An integer expression over the symbols, as a scalar of type index";
  let description = [{
    <> ψ e = e (law P2). `expr` is canonical text over the kernel's symbols.

        %l = moa.extent "M - N" -> <[], index>

    Constraint: the result is a scalar of type index (C1).
  }];
  let arguments = (ins MoA_ExprAttr:$expr);
  let assemblyFormat = "custom<Expr>($expr) attr-dict `->` type($result)";
}

def MoA_IotaOp : MoA_ArrayOp<"iota"> {
  let summary = "ι n: the vector 0, 1, …, n−1 of type index [Def 3]";
  let description = [{
    ρ(ι n) = <n>, <i> ψ ι n = i (law P3). `extent` is the text of n.

        %i = moa.iota "N" -> <[N], index>

    Constraint: the result is a vector of that extent and of type index (C1).
  }];
  let arguments = (ins MoA_ExprAttr:$extent);
  let assemblyFormat = "custom<Expr>($extent) attr-dict `->` type($result)";
}

def MoA_MapOp : MoA_ArrayOp<"map"> {
  let summary = "Point-wise extension of a scalar function [Def 8]";
  let description = [{
    i ψ f(A, B, …) = f(i[axes A] ψ A, i[axes B] ψ B, …) (law P4). This is f Ω<c0, c1, …> with
    resolved cell ranks.

    `axes[k]` lists the result axis of each axis of operand k, in increasing order. An operand is
    broadcast along result axes that it lacks. Operands have equal element types (of a `select`: the
    last two). The language's implicit widening is explicit as `moa.cast {implicit}`.

    An element is absent if any operand is. A `select` is absent if its condition or the operand
    that it picks is absent, and `otherwise` only if both operands are.

        %d = moa.map sub(%s, %m) axes [array<i64: 0, 1>, array<i64: 0>]
           : (!moa.array<[N, M], f32>, !moa.array<[N], f32>) -> !moa.array<[N, M], f32>

    Constraints:

    - C1: `axes[k]` has one entry per axis of operand k, strictly increasing.
    - C2: The extents agree with the result's.
    - C3: The number of operands fits the function.
    - C4: The function is defined on the operands' element type (booleans are not numbers), and the
      result has the function's element type.
  }];
  let arguments = (ins MoA_ScalarFnAttr:$fn, Variadic<MoA_ArrayType>:$inputs,
                       ArrayAttr:$axes);
  let assemblyFormat = [{
    `` $fn `(` $inputs `)` `axes` $axes attr-dict `:` functional-type($inputs, $result)
  }];
}

def MoA_CastOp : MoA_ArrayOp<"cast"> {
  let summary = "Conversion of the element type";
  let description = [{
    i ψ cast(A) = cast(i ψ A) (law P5).

    - Without `implicit` it is the user's cast and rounds, also in the interpreter: to a float type
      to nearest even; to an integer type by truncation, saturating, with NaN to 0; to bool by
      comparison with 0 (docs/Spec.md, section 2).
    - With `implicit` it is a widening that the language inserted, which is exact: bf16 to f32, i32
      to index, i1 to an integer or a float.

    For example:

        %f = moa.cast %q {implicit} : <[N], bf16> -> <[N], f32>

    Constraint: the shapes are equal (C2).
  }];
  let arguments = (ins MoA_ArrayType:$input, UnitAttr:$implicit);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def MoA_MaskOp : MoA_ArrayOp<"mask"> {
  let summary = "mask(p, x): elements where p is false are absent [Def 9]";
  let description = [{
    i ψ mask(p, A) = (i ψ A) where (i[axes p] ψ p) (law P6). An element is absent if its predicate
    is false. Absence is not a number [Def 9]: reductions skip absent elements. `axes` lists the
    axis of `input` for each axis of the predicate, in increasing order. The result has the type of
    `input`.

        %m = moa.mask %p, %s axes [1, 2]
           : (!moa.array<[N, M], i1>, !moa.array<[H, N, M], f32>) -> !moa.array<[H, N, M], f32>

    Constraints: the predicate has element type i1 and one input axis per axis (C1); extents and the
    result's type agree with the input's (C2).
  }];
  let arguments = (ins MoA_ArrayType:$predicate, MoA_ArrayType:$input,
                       DenseI64ArrayAttr:$axes);
  let assemblyFormat = [{
    $predicate `,` $input `axes` $axes attr-dict `:` functional-type(operands, $result)
  }];
}

def MoA_MonoidOp : MoA_Op<"monoid", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "A monoid of the user: an identity and a function of two scalars [Def 10]";
  let description = [{
    A monoid of the specification, at module level. Reductions with the monoid `user` name it. The
    body takes two scalars and ends with `moa.combined`. Scalars are arrays of rank 0 on the moa
    level and plain values on the levels below.

    The user claims that the function is associative and commutative and that `identity` is its
    identity. The front end tests the claim on values.

        moa.monoid @gcd identity 0 : index { ^bb0(%x, %y): … moa.combined %r : … }

    Constraints: two arguments and a result of the identity's type (C1); the parent is a module
    (C2).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypedAttrInterface:$identity);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `identity` $identity attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Type getElementType() { return getIdentity().getType(); }
    /// The value that the body returns.
    ::mlir::Value getReturned();
  }];
}

def MoA_CombinedOp : MoA_Op<"combined", [Terminator, Pure, HasParent<"MonoidOp">]> {
  let summary = "Ends a user's monoid: its value on the two arguments";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def MoA_ReduceOp : MoA_ArrayOp<"reduce", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Reduction of one axis with a monoid [Def 10]";
  let description = [{
    q ψ (⊕/ A) = ⊕ over i of the present elements (q with i inserted at `axis`) ψ A. The result over
    no elements is the identity of the monoid (max: −∞), and is never absent. `function` names the
    `moa.monoid` of the monoid `user`.

        %0 = moa.reduce add %x axis 1 : <[N, M], f32> -> <[N], f32>

    Constraints:

    - C1: The axis is below the rank.
    - C2: The shape is the input's without the axis.
    - C3: The element type is the input's.
    - C5: `and` and `or` reduce booleans, the other monoids numbers.
    - C6: Exactly the monoid `user` names a `moa.monoid`, one on the element type.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, MoA_ArrayType:$input,
                       I64Attr:$axis, OptionalAttr<FlatSymbolRefAttr>:$function);
  let assemblyFormat = [{
    `` $monoid ($function^)? $input `axis` $axis attr-dict `:` type($input) `->` type($result)
  }];
}

def MoA_InnerOp : MoA_ArrayOp<"inner"> {
  let summary = "Inner product A g.f B over a common frame [Def 11]";
  let description = [{
    (p ⧺ i ⧺ j) ψ (A g.f B) = g over l of ((p ⧺ i ⧺ <l>) ψ A) f ((p ⧺ <l> ⧺ j) ψ B) (law P8). With
    `add of mul` this is a batched matrix product.

    Each operand has `frame` leading batch axes, the frame. An operand with `lhs_framed` or
    `rhs_framed` = false has none and is shared by all cells of the frame. The last axis of the left
    cell is contracted with the first axis of the right cell. A term is present if both factors are.
    `operand_type` is the element type to which lowerings round a computed operand once; the meaning
    at this level does not depend on it.

        %s = moa.inner add of mul %q, %k {frame = 1 : i64, lhs_framed = true, rhs_framed = true}
           : (!moa.array<[H, N, 64], f32>, !moa.array<[H, 64, M], f32>)
          -> !moa.array<[H, N, M], f32>

    Constraints:

    - C1: Cells have rank 1 or more.
    - C2: The result is frame ⧺ left ⧺ right, and a frame has a framed operand.
    - C3: Frames and element types agree.
    - C4: The contracted extents agree, and f is defined on the operands.
    - C5: The monoid is a named one that is defined on f's results.
    - C6: f has two operands, and the result has its element type.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, MoA_ScalarFnAttr:$fn,
                       MoA_ArrayType:$lhs, MoA_ArrayType:$rhs, I64Attr:$frame,
                       BoolAttr:$lhs_framed, BoolAttr:$rhs_framed,
                       OptionalAttr<TypeAttr>:$operand_type);
  let assemblyFormat = [{
    `` $monoid `of` `` $fn $lhs `,` $rhs attr-dict `:` functional-type(operands, $result)
  }];
}

def MoA_PsiOp : MoA_ArrayOp<"psi"> {
  let summary = "ψ: indexing, partial, full or gathered by integer arrays [Def 2]";
  let description = [{
    (p ⧺ q) ψ (psi A I₀ … Iₘ) = r ψ A, where r[dims[k]] = p[axes[k]] ψ Iₖ and the remaining entries
    of r are q (law P9). Full, partial and gathered indexing are this one operator.

    - `dims[k]` is the axis of A that index operand k selects on. The other axes of A pass through,
      in order.
    - All index operands share one frame of `frame` axes, the leading axes of the result. `axes[k]`
      lists the frame axis of each axis of index operand k.
    - A frame axis that no index operand covers has its extent in the result type.

    An index outside A is an error if its element is needed. For example, a gather along two axes:

        %kh = moa.psi %k[%b, %g] dims [0, 1] axes [array<i64: 0>, array<i64: 1>] frame 2
            : (!moa.array<[B, G, M], f32>, !moa.array<[B], index>, !moa.array<[H], index>)
           -> !moa.array<[B, H, M], f32>

    Constraints: one selected axis per index operand, in increasing order (C1); the result has the
    frame's axes, then those that pass through (C2); indices have element type index (C3).
  }];
  let arguments = (ins MoA_ArrayType:$input, Variadic<MoA_ArrayType>:$indices,
                       DenseI64ArrayAttr:$dims, ArrayAttr:$axes, I64Attr:$frame);
  let assemblyFormat = [{
    $input `[` $indices `]` `dims` $dims `axes` $axes `frame` $frame attr-dict
    `:` functional-type(operands, $result)
  }];
}

def MoA_TransposeOp : MoA_ArrayOp<"transpose"> {
  let summary = "Axis k of the result is axis perm[k] of x [Def 7]";
  let description = [{
    i ψ transpose(A) = i' ψ A with i'[perm k] = i[k] (law P10).

        %t = moa.transpose %x perm [0, 2, 1] : <[B, N, 4], f32> -> <[B, 4, N], f32>

    Constraints: axes are below the rank (C1); `perm` is a permutation of them, and the
    result has the permuted extents (C2).
  }];
  let arguments = (ins MoA_ArrayType:$input, DenseI64ArrayAttr:$perm);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
}

def MoA_ReshapeOp : MoA_ArrayOp<"reshape"> {
  let summary = "v ρ x: the same elements in row-major order under shape v [Def 5]";
  let description = [{
    i ψ (v ρ A) = γ'(γ(i; v); ρA) ψ A (law P11). The new shape v is that of the result type.

        %r = moa.reshape %x : <[B, N, 4], f32> -> <["4*B*N"], f32>

    Constraint: both have the same number of elements, as polynomials in the symbols (C1).
  }];
  let arguments = (ins MoA_ArrayType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def MoA_SliceOp : MoA_ArrayOp<"slice"> {
  let summary = "take and drop on one axis [Def 6]";
  let description = [{
    <i> ψ slice(A) = <i + start> ψ A on `axis`, 0 ≤ i < count (law P12). Take and drop, from either
    end, are slices whose start is computed from the extent. `start` and `count` are expressions
    over the symbols. The kernel has the constraint that start + count does not exceed the extent.

        %d = moa.slice %x axis 1 start "1" count "N - 1" : <[B, N], f32> -> <[B, "N - 1"], f32>

    Constraints: the axis is below the rank (C1); the
    result has the input's type except for `count` on the axis (C2).
  }];
  let arguments = (ins MoA_ArrayType:$input, I64Attr:$axis, MoA_ExprAttr:$start,
                       MoA_ExprAttr:$count);
  let assemblyFormat = [{
    $input `axis` $axis `start` custom<Expr>($start) `count` custom<Expr>($count) attr-dict
    `:` type($input) `->` type($result)
  }];
}

def MoA_CatOp : MoA_ArrayOp<"cat"> {
  let summary = "x ⧺ y: catenation on one axis [Def 21]";
  let description = [{
    <i> ψ (x ⧺ y) = <i> ψ x for i < n, else <i − n> ψ y (law P16), where n is the extent of x on
    `axis`. An element is absent if it is absent in the array that it comes from.

        %k = moa.cat %past, %new axis 0
           : (!moa.array<[P, 64], f32>, !moa.array<[N, 64], f32>) -> !moa.array<["N + P", 64], f32>

    Constraints: the axis is below the rank (C1); x and y agree in all other extents, and the
    result's extent on the axis is their sum (C2); element types are equal (C3).
  }];
  let arguments = (ins MoA_ArrayType:$lhs, MoA_ArrayType:$rhs, I64Attr:$axis);
  let assemblyFormat = [{
    $lhs `,` $rhs `axis` $axis attr-dict `:` functional-type(operands, $result)
  }];
}

def MoA_ReverseOp : MoA_ArrayOp<"reverse"> {
  let summary = "<i> ψ (reverse x) = <n − 1 − i> ψ x on one axis [Def 6]";
  let description = [{
    <i> ψ reverse(A) = <n − 1 − i> ψ A on `axis`, where n is its extent (law P13).

        %e = moa.reverse %x axis 1 : <[B, N], f32> -> <[B, N], f32>

    Constraints: the axis is below the rank (C1); the result has the type of the input (C2).
  }];
  let arguments = (ins MoA_ArrayType:$input, I64Attr:$axis);
  let assemblyFormat = "$input `axis` $axis attr-dict `:` type($input) `->` type($result)";
}

def MoA_RotateOp : MoA_ArrayOp<"rotate"> {
  let summary = "<i> ψ (k rotate x) = <(i + k) mod n> ψ x on one axis [Def 6]";
  let description = [{
    <i> ψ rotate(A) = <(i + by) mod n> ψ A on `axis`, where n is its extent (law P14). `by` is an
    integer expression over the symbols, of either sign.

        %f = moa.rotate %x by "N/2" axis 1 : <[B, N], f32> -> <[B, N], f32>

    Constraints: the axis is below the rank (C1); the result has the
    type of the input (C2).
  }];
  let arguments = (ins MoA_ArrayType:$input, MoA_ExprAttr:$by, I64Attr:$axis);
  let assemblyFormat = "$input `by` custom<Expr>($by) `axis` $axis attr-dict `:` type($input) `->` type($result)";
}

#endif // MOA_DIALECTS_MOA_IR_MOA_TD
