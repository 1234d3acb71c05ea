//===- DNF.td - the denotational normal form ----------------*- tablegen -*-===//
//
// Scalar definitions over index domains. Scalar operations are those of the arith and math
// dialects. Arrays occur only as inputs, indexed by dnf.psi.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DNF_IR_DNF_TD
#define MOA_DIALECTS_DNF_IR_DNF_TD

include "dialects/MoA/IR/MoABase.td"

def DNF_Dialect : Dialect {
  let name = "dnf";
  let summary = "Denotational normal form: scalar definitions over index domains";
  let description = [{
    The result of ψ-reduction: an ordered list of definitions. Each is a scalar expression over its
    indices, in operations of arith and math.

    - Arrays occur only as inputs under a full index (`dnf.psi`).
    - An intermediate array is either eliminated or a let: a function of its indices, without
      storage.
    - Absence is the range of a reduction or the condition of an output.

    For example, an output that is a matrix product of a let and an input:

        dnf.output 0 over ["n", "k"] in ["N", "128"] -> f32 {
        ^bb0(%n: index, %k: index):
          %0 = dnf.reduce add over "m" in "M" : f32 {
          ^bb0(%m: index):
            %1 = dnf.apply @P(%n, %m) : f32
            %2 = dnf.psi %V[%m, %k] : <[M, 128], f32> -> f32
            %3 = arith.mulf %1, %2 : f32
            dnf.yield %3 : f32
          }
          dnf.yield %0 : f32
        }
  }];
  let cppNamespace = "::moa::dnf";
  let dependentDialects = ["::moa::MoADialect"];
}

class DNF_Op<string mnemonic, list<Trait> traits = []>
    : Op<DNF_Dialect, mnemonic, traits>;

/// Block arguments have the names that the user gave.
class DNF_NamedOp<string mnemonic, list<Trait> traits = []>
    : DNF_Op<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>],
        traits)>;

def DNF_KernelOp : DNF_NamedOp<"kernel",
    [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "A kernel: an ordered list of definitions, outputs last";
  let description = [{
    The block arguments are the input arrays; scalars have rank zero. Attributes are those of
    `moa.kernel`. The body holds `dnf.let` and `dnf.output` only. A let may apply lets defined above
    it.

        dnf.kernel @rows attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
            result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
        ^bb0(%x: !moa.array<[N, M], f32>):
          dnf.output 0 over ["n"] in ["N"] -> f32 { … }
        }

    Constraints:

    - C1: One name per parameter.
    - C2: One name per result.
    - C3: Each result is defined once.
    - C4: The body holds lets and outputs only.
    - C5: Parameters and results are arrays.
    - C6: `within` has one entry per result: `#moa.within` for floats only, or `unit` for none.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types,
                       OptionalAttr<ArrayAttr>:$within);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def DNF_LetOp : DNF_NamedOp<"let", [Symbol, HasParent<"KernelOp">, SingleBlock]> {
  let summary = "A shared function of its indices, without storage";
  let description = [{
    f(i) = the yielded value (law P15). A let represents a name of the specification, or an array
    that is used more than once. The block arguments are the indices, one per extent of `domain`.
    `names` are their names for printing.

        dnf.let @e over ["n", "m"] in ["N", "M"] -> f32 {
        ^bb0(%n: index, %m: index):
          %0 = dnf.psi %x[%n, %m] : <[N, M], f32> -> f32
          %1 = math.exp %0 : f32
          dnf.yield %1 : f32
        }

    Constraints: one index argument and one name per extent (C1); the body ends with a `dnf.yield`
    of `type` (C2).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, MoA_ExprArrayAttr:$domain,
                       StrArrayAttr:$names, TypeAttr:$type);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `over` $names `in` custom<Exprs>($domain) `->` $type attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def DNF_OutputOp : DNF_NamedOp<"output", [HasParent<"KernelOp">, SingleBlock]> {
  let summary = "The element of an output array at an index";
  let description = [{
    i ψ output = the yielded value, or 0 if the yield's condition is false (law A4). `result` is the
    position among the kernel's results. `type` is the compute type; the store rounds once to the
    output's element type.

        dnf.output 0 over ["n"] in ["N"] -> f32 {
        ^bb0(%n: index):
          %0 = dnf.apply @m(%n) : f32
          dnf.yield %0 : f32
        }

    Constraints: as for `dnf.let`, C1 and C2.
  }];
  let arguments = (ins I64Attr:$result, MoA_ExprArrayAttr:$domain,
                       StrArrayAttr:$names, TypeAttr:$type);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $result `over` $names `in` custom<Exprs>($domain) `->` $type attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def DNF_PsiOp : DNF_Op<"psi", [Pure]> {
  let summary = "A full index into an input array";
  let description = [{
    i ψ A for an input A [Def 2]. This is the only op that reads an array. The indices are scalars
    of type index, one per axis, in order. An index that is computed from array elements lies inside
    A by the user's promise.

        %0 = dnf.psi %K[%b, %g, %m] : <[B, G, M], bf16> -> bf16

    Constraints: one index per axis (C1); the result has the array's element type (C2); the array is
    an argument of the kernel (C3). During ψ-reduction the array may also be the result of a moa
    operator.
  }];
  let arguments = (ins MoA_ArrayType:$array, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$array `[` $indices `]` attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def DNF_ApplyOp : DNF_Op<"apply", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a let at an index";
  let description = [{
    f(i) for a let f: the value that f yields at these indices. It is neither a call nor a load.

        %1 = dnf.apply @m(%b, %n) : f32

    Constraints: `let` names a let of the kernel (C1); one index per axis of the let (C2); the
    result has its type (C3); the let is defined above (C4).
  }];
  let arguments = (ins FlatSymbolRefAttr:$let, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$let `(` $indices `)` attr-dict `:` type($result)";
}

def DNF_ReduceOp : DNF_NamedOp<"reduce",
    [RecursiveMemoryEffects, SingleBlock, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A reduction over an index range with a monoid";
  let description = [{
    ⊕ over 0 ≤ j < `extent` of the yielded value, restricted to indices at which the yield's
    condition holds. The result over no indices is the identity of the monoid. `operand_type` says
    that the body is a product, and that lowerings round its computed operands once to this type.
    `function` names the `moa.monoid` of the monoid `user`.

        %0 = dnf.reduce max over "m" in "M" : f32 {
        ^bb0(%m: index):
          %1 = dnf.psi %x[%n, %m] : <[N, M], f32> -> f32
          dnf.yield %1 : f32
        }

    Constraints:

    - C1: The body has one index argument.
    - C2: The body ends with a `dnf.yield` of the result's type.
    - C3: `and` and `or` reduce booleans, the other monoids numbers.
    - C4: Exactly the monoid `user` names a `moa.monoid`, one on the result's type.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, MoA_ExprAttr:$extent, StrAttr:$name,
                       OptionalAttr<TypeAttr>:$operand_type,
                       OptionalAttr<FlatSymbolRefAttr>:$function);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `` $monoid ($function^)? `over` $name `in` custom<Expr>($extent) (`rounds` $operand_type^)?
    attr-dict-with-keyword `:` type($result) $body
  }];
  let hasVerifier = 1;
}

def DNF_ExtentOp : DNF_Op<"extent", [Pure]> {
  let summary = "An integer expression over the symbols";
  let description = [{
    <> ψ e = e (law P2): the value of an expression over the kernel's symbols.

        %0 = dnf.extent "M - N"
  }];
  let arguments = (ins MoA_ExprAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "custom<Expr>($expr) attr-dict";
}

def DNF_WhereOp : DNF_Op<"where", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "A value that is absent unless the condition holds";
  let description = [{
    `a where p` is a if p holds and absent otherwise [Def 9]. It is transient: the laws A1 to A7
    move the condition to the yield of a reduction, where it restricts the range, or of an output.
    `dnf-verify` rejects it.

        %1 = dnf.where %p, %0 : f32
  }];
  let arguments = (ins I1:$condition, AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$condition `,` $value attr-dict `:` type($value)";
}

def DNF_JoinOp : DNF_Op<"join", [Pure, AllTypesMatch<["first", "second", "result"]>]> {
  let summary = "Catenation of two domains: `first` if the condition holds, else `second`";
  let description = [{
    It differs from `arith.select` only in absence: the result is absent if the picked value is,
    whether or not the other value is. It is transient: law A6 rewrites it to a selection.
    `dnf-verify` rejects it.

        %2 = dnf.join %isFirst, %0, %1 : f32
  }];
  let arguments = (ins I1:$condition, AnyType:$first, AnyType:$second);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$condition `,` $first `,` $second attr-dict `:` type($result)";
}

def DNF_OtherwiseOp : DNF_Op<"otherwise", [Pure, AllTypesMatch<["first", "second", "result"]>]> {
  let summary = "The first value if it is present, else the second";
  let description = [{
    The result is absent if both values are. It is transient: law A7 rewrites it to a join whose
    condition is the presence of the first value. `dnf-verify` rejects it.

        %1 = dnf.otherwise %0, %v : f32
  }];
  let arguments = (ins AnyType:$first, AnyType:$second);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$first `,` $second attr-dict `:` type($result)";
}

def DNF_YieldOp : DNF_Op<"yield", [Terminator, Pure,
    ParentOneOf<["LetOp", "OutputOp", "ReduceOp"]>]> {
  let summary = "The value of a body and, optionally, its condition of presence";
  let description = [{
    Ends a let, an output or a reduction. With `if`, the value is present only if the condition
    holds. In a reduction this restricts the range (law A3). In an output the element is 0 otherwise
    (law A4). A let has no condition.

        dnf.yield %1 if %2 : f32
  }];
  let arguments = (ins AnyType:$value, Optional<I1>:$present);
  let assemblyFormat = "$value (`if` $present^)? attr-dict `:` type($value)";
}

#endif // MOA_DIALECTS_DNF_IR_DNF_TD
