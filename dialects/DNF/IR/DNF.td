//===- DNF.td - the denotational normal form ----------------*- tablegen -*-===//
//
// Definitions over index domains. Scalar operations are those of the arith and
// math dialects; arrays occur only as inputs, indexed by dnf.psi.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DNF_IR_DNF_TD
#define MOA_DIALECTS_DNF_IR_DNF_TD

include "dialects/MoA/IR/MoABase.td"

def DNF_Dialect : Dialect {
  let name = "dnf";
  let summary = "Denotational normal form: scalar definitions over index domains";
  let cppNamespace = "::moa::dnf";
  let dependentDialects = ["::moa::MoADialect"];
}

class DNF_Op<string mnemonic, list<Trait> traits = []>
    : Op<DNF_Dialect, mnemonic, traits>;

/// A kernel, a let and an output name their block arguments after the user's names.
class DNF_NamedOp<string mnemonic, list<Trait> traits = []>
    : DNF_Op<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>],
        traits)>;

def DNF_KernelOp : DNF_NamedOp<"kernel",
    [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "A kernel: an ordered list of definitions, outputs last";
  let description = [{
    Block arguments are the input arrays (scalars have rank zero), attributes as
    for `moa.kernel`. The body holds `dnf.let` and `dnf.output` only; a let may
    apply lets defined above it.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def DNF_LetOp : DNF_NamedOp<"let", [Symbol, HasParent<"KernelOp">, SingleBlock]> {
  let summary = "A shared function of its indices, never storage";
  let description = [{
    `dnf.let @m(%b, %i) in ["B", "N"] -> f32 { … dnf.yield %v : f32 }`. The
    block arguments are the indices, one per extent of `domain`; `names` are
    their names for printing.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$domain,
                       StrArrayAttr:$names, TypeAttr:$type);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `over` $names `in` $domain `->` $type attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def DNF_OutputOp : DNF_NamedOp<"output", [HasParent<"KernelOp">, SingleBlock]> {
  let summary = "The element of an output array at an index";
  let description = [{
    `result` is the position among the kernel's results. An element whose yield
    is not present is 0. The yielded type is the compute type; rounding to the
    output's element type happens once, at the store.
  }];
  let arguments = (ins I64Attr:$result, StrArrayAttr:$domain,
                       StrArrayAttr:$names, TypeAttr:$type);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $result `over` $names `in` $domain `->` $type attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def DNF_PsiOp : DNF_Op<"psi", [Pure]> {
  let summary = "A full index into an input array";
  let arguments = (ins MoA_ArrayType:$array, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$array `[` $indices `]` attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def DNF_ApplyOp : DNF_Op<"apply", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The value of a let at an index";
  let arguments = (ins FlatSymbolRefAttr:$let, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$let `(` $indices `)` attr-dict `:` type($result)";
}

def DNF_ReduceOp : DNF_NamedOp<"reduce",
    [RecursiveMemoryEffects, SingleBlock, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A reduction over an index range with a monoid";
  let description = [{
    ⊕ over 0 ≤ j < `extent` of the yielded value where the yield's condition
    holds; the identity of the monoid over nothing. `operand_type`: the body is
    a product whose computed operands a lowering rounds once to this type.
    `function` names the `moa.monoid` of the monoid `user`.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, StrAttr:$extent, StrAttr:$name,
                       OptionalAttr<TypeAttr>:$operand_type,
                       OptionalAttr<FlatSymbolRefAttr>:$function);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `` $monoid ($function^)? `over` $name `in` $extent (`rounds` $operand_type^)?
    attr-dict-with-keyword `:` type($result) $body
  }];
  let hasVerifier = 1;
}

def DNF_ExtentOp : DNF_Op<"extent", [Pure]> {
  let summary = "An integer expression over the symbols";
  let arguments = (ins StrAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "$expr attr-dict";
}

def DNF_WhereOp : DNF_Op<"where", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "A value that is absent unless the condition holds";
  let description = [{
    Transient: the laws of absence move it to the yield of a reduction, where
    it restricts the range, or of an output. `dnf-verify` admits none.
  }];
  let arguments = (ins I1:$condition, AnyType:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$condition `,` $value attr-dict `:` type($value)";
}

def DNF_JoinOp : DNF_Op<"join", [Pure, AllTypesMatch<["first", "second", "result"]>]> {
  let summary = "A value of one of two domains: `first` where the condition holds, else `second`";
  let description = [{
    Differs from a selection in absence alone: absent where the picked value is,
    whatever the other one is. Transient: law A6 makes a selection of it.
    `dnf-verify` admits none.
  }];
  let arguments = (ins I1:$condition, AnyType:$first, AnyType:$second);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$condition `,` $first `,` $second attr-dict `:` type($result)";
}

def DNF_YieldOp : DNF_Op<"yield", [Terminator, Pure,
    ParentOneOf<["LetOp", "OutputOp", "ReduceOp"]>]> {
  let summary = "The value of the body and, optionally, when it is present";
  let arguments = (ins AnyType:$value, Optional<I1>:$present);
  let assemblyFormat = "$value (`if` $present^)? attr-dict `:` type($value)";
}

#endif // MOA_DIALECTS_DNF_IR_DNF_TD
