//===- MoA.td - the ops of the moa dialect ------------------*- tablegen -*-===//
//
// Values are whole arrays with symbolic shapes; one op per operator of the
// algebra. Numbers in brackets, [Def 3], refer to docs/Spec.md.
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
    Block arguments are the parameters in the user's order; `arg_names` holds
    their names. `symbols` are the run-time symbols in the order of
    declaration, `requires` the constraints as canonical text (`H%G == 0`).
    The terminator is `moa.return`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def MoA_ReturnOp : MoA_Op<"return", [Terminator, Pure, HasParent<"KernelOp">]> {
  let summary = "The outputs of a kernel, in order";
  let arguments = (ins Variadic<MoA_ArrayType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def MoA_ConstantOp : MoA_ArrayOp<"constant"> {
  let summary = "A scalar constant";
  let arguments = (ins TypedAttrInterface:$value);
  let assemblyFormat = "$value attr-dict `->` type($result)";
}

def MoA_ExtentOp : MoA_ArrayOp<"extent"> {
  let summary = "An integer expression over the symbols, as a scalar of type index";
  let arguments = (ins StrAttr:$expr);
  let assemblyFormat = "$expr attr-dict `->` type($result)";
}

def MoA_IotaOp : MoA_ArrayOp<"iota"> {
  let summary = "ι n: the vector 0, 1, …, n−1 of type index [Def 3]";
  let arguments = (ins StrAttr:$extent);
  let assemblyFormat = "$extent attr-dict `->` type($result)";
}

def MoA_MapOp : MoA_ArrayOp<"map"> {
  let summary = "Point-wise extension of a scalar function [Def 8]";
  let description = [{
    `axes[k]` lists, for operand k, the result axis of each operand axis, in
    increasing order; axes of the result that an operand lacks are broadcast.
    This is f Ω<c0, c1, …> with the cell ranks already resolved.
    ψ law: i ψ (map f (A, B)) = (i[axes_A] ψ A) f (i[axes_B] ψ B).
    Operand element types are equal (select: the last two), or the result of
    the implicit widening stated by `moa.cast {implicit}`.
    C1: axes[k] has as many entries as operand k has axes, strictly increasing.
    C2: the extents agree with the result's. C3: arity fits the function.
    C4: the function has a meaning on the operands' element type (booleans are
    no numbers) and the result element type is the function's.
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
    Without `implicit` it is the user's cast and rounds, in the interpreter
    too. With `implicit` it is a widening the language inserted (bf16 to f32,
    i32 to index, i1 to an integer or a float) and loses nothing.
  }];
  let arguments = (ins MoA_ArrayType:$input, UnitAttr:$implicit);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def MoA_MaskOp : MoA_ArrayOp<"mask"> {
  let summary = "mask(p, x): elements where p is false are absent [Def 9]";
  let description = [{
    `axes` places the axes of the predicate among the axes of x, increasing.
    The result has the type of x. C1: p has element type i1.
    C2: extents agree.
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
    `moa.monoid @gcd identity 0 : index { ^bb0(%x, %y): … moa.return %r }`, at
    the level of the module. Reductions with the monoid `user` name it. That the
    function is associative and commutative and has the identity is the user's
    claim; the front end tries it on values. Arguments and result are scalars:
    arrays of rank 0 on the moa level, plain values of the element type below.
    C1: two arguments, and a result, of the identity's type. C2: it stands in a module.
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
  let summary = "The value of a user's monoid on two values";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def MoA_ReduceOp : MoA_ArrayOp<"reduce", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Reduction of one axis with a monoid [Def 10]";
  let description = [{
    q ψ (⊕/ A) = ⊕ over i of the present elements at (q with i inserted at
    `axis`). Over nothing it is the identity of the monoid (max: −∞).
    Never absent. C1: the axis is below the rank. C2: the shape is the input's
    without the axis. C3: so is the element type. C5: `and` and `or` reduce
    booleans, the other monoids numbers. C6: exactly the monoid `user` names a
    `moa.monoid`, one on the element type.
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
    The operands are cells with `frame` leading frame axes each; an operand
    with `lhs_framed`/`rhs_framed` = false has none and is shared by the frame.
    The last axis of the left cell is contracted with the first of the right:
    (p ⧺ i ⧺ j) ψ (A g.f B) = g over l of (p⧺i⧺<l> ψ A) f (p⧺<l>⧺j ψ B).
    A term is present when both factors are. C1: cells have rank 1 or more.
    C2: the result is frame ⧺ left ⧺ right, and a frame has a framed operand.
    C3: frames and element types agree. C4: so do the contracted extents, and f
    has a meaning on the operands. C5: the monoid is one of f's results. C6: f
    has two operands, and the result has its element type. `operand_type` states the element
    type to which a computed operand is rounded once by a lowering; it changes
    no meaning here.
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
    `dims[k]` is the axis of x that index operand k selects on (distinct, in
    increasing order); the other axes of x pass through, in order. All index
    operands share one frame of `frame` axes, the leading axes of the result;
    `axes[k]` places the axes of index operand k in that frame.
    ψ law: (p ⧺ q) ψ (psi x I0 … Im) = r ψ x, where r[dims[k]] = p[axes_k] ψ Ik
    and the remaining entries of r are q.
    A frame axis that no index operand covers takes its extent from the result
    type.
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
  let arguments = (ins MoA_ArrayType:$input, DenseI64ArrayAttr:$perm);
  let assemblyFormat = "$input `perm` $perm attr-dict `:` type($input) `->` type($result)";
}

def MoA_ReshapeOp : MoA_ArrayOp<"reshape"> {
  let summary = "v ρ x: the same elements in row-major order under shape v [Def 5]";
  let description = [{
    The shape is the result type's. C1: both have the same number of elements,
    as polynomials in the symbols.
  }];
  let arguments = (ins MoA_ArrayType:$input);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($result)";
}

def MoA_SliceOp : MoA_ArrayOp<"slice"> {
  let summary = "take and drop on one axis [Def 6]";
  let description = [{
    `count` consecutive elements from `start` on `axis`:
    <i> ψ result = <i + start> ψ x. Take and drop, from either end, are slices
    with a start computed from the extent.
  }];
  let arguments = (ins MoA_ArrayType:$input, I64Attr:$axis, StrAttr:$start,
                       StrAttr:$count);
  let assemblyFormat = [{
    $input `axis` $axis `start` $start `count` $count attr-dict
    `:` type($input) `->` type($result)
  }];
}

def MoA_CatOp : MoA_ArrayOp<"cat"> {
  let summary = "x ⧺ y: catenation on one axis [Def 21]";
  let description = [{
    <i> ψ (x ⧺ y) = <i> ψ x for i < n, else <i − n> ψ y, where n is the extent of
    x on `axis`. An element is absent where it is in the array it comes from.
    C1: the axis is below the rank. C2: x and y agree in all other extents, and
    the result's is the sum. C3: element types are equal.
  }];
  let arguments = (ins MoA_ArrayType:$lhs, MoA_ArrayType:$rhs, I64Attr:$axis);
  let assemblyFormat = [{
    $lhs `,` $rhs `axis` $axis attr-dict `:` functional-type(operands, $result)
  }];
}

def MoA_ReverseOp : MoA_ArrayOp<"reverse"> {
  let summary = "<i> ψ (reverse x) = <n − 1 − i> ψ x on one axis [Def 6]";
  let arguments = (ins MoA_ArrayType:$input, I64Attr:$axis);
  let assemblyFormat = "$input `axis` $axis attr-dict `:` type($input) `->` type($result)";
}

def MoA_RotateOp : MoA_ArrayOp<"rotate"> {
  let summary = "<i> ψ (k rotate x) = <(i + k) mod n> ψ x on one axis [Def 6]";
  let arguments = (ins MoA_ArrayType:$input, StrAttr:$by, I64Attr:$axis);
  let assemblyFormat = "$input `by` $by `axis` $axis attr-dict `:` type($input) `->` type($result)";
}

#endif // MOA_DIALECTS_MOA_IR_MOA_TD
