//===- ONF.td - the operational normal form -----------------*- tablegen -*-===//
//
// Loops, folds that carry monoid states, and flat addresses. Scalar operations
// are those of the arith and math dialects.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_ONF_TD
#define MOA_DIALECTS_ONF_IR_ONF_TD

include "dialects/MoA/IR/MoABase.td"
include "dialects/ONF/IR/ONFEnums.td"

def ONF_Dialect : Dialect {
  let name = "onf";
  let summary = "Operational normal form: loops, folds and flat addresses";
  let description = [{
    How the definitions are computed: nests of independent rows, in them folds that run
    over a range once and carry a tuple of monoid states, which repair each other
    (rule R3), loads and stores at linear forms in the loop indices, with the caller's
    strides as opaque symbols. Lifted, the same operations have their axes factored and
    bound to resources of a machine [Def 15].
  }];
  let cppNamespace = "::moa::onf";
  let dependentDialects = ["::moa::MoADialect"];
  let useDefaultAttributePrinterParser = 1;
}

class ONF_Op<string mnemonic, list<Trait> traits = []>
    : Op<ONF_Dialect, mnemonic, traits>;
class ONF_NamedOp<string mnemonic, list<Trait> traits = []>
    : ONF_Op<mnemonic, !listconcat([
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>],
        traits)>;

//===----------------------------------------------------------------------===//
// Lifting
//===----------------------------------------------------------------------===//

def ONF_ResourceAttr : EnumAttr<ONF_Dialect, ONF_Resource, "resource">;

def ONF_AxisAttr : AttrDef<ONF_Dialect, "Axis"> {
  let mnemonic = "axis";
  let summary = "One lifted axis: its factors from the outermost in";
  let description = [{
    `#onf.axis<core: 0, register: 6, lane: 16>`: i = (c·6 + r)·16 + l with
    0 ≤ r < 6 and 0 ≤ l < 16. The outermost factor has size 0 and takes
    ⌈extent / product of the others⌉; indices not below the extent are guarded.
    The map from guarded digits to indices is a bijection by mixed radix.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$resources,
                        ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    Resource getResource(unsigned k) const {
      return static_cast<Resource>(getResources()[k]);
    }
    /// Product of the sizes of all factors but the outermost.
    int64_t getTile() const;
    /// Size of the factor bound to `resource`, or 1.
    int64_t getSize(Resource resource) const;
  }];
}

def ONF_PipelineAttr : AttrDef<ONF_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "How the warpgroups of a block work together, and in which order blocks run";
  let description = [{
    `consumer` and `producer` are registers per thread of a warpgroup that computes
    and of the one that copies. `overlap`: the products of one tile are in flight
    while the states of the next one are computed; else they follow its own states. `descending`: blocks of the last
    rows come first. `group`: indices of the other axes go through the blocks of rows
    together, as many as have what they read per index of the fold in so many bytes;
    0: one after the other. `lazy`: a reference may fall behind by a factor of 2^lazy
    before the states are repaired; 0: they always are. `held`: a consumer reads its
    rows once and keeps them in registers. `turns`: a consumer starts the scores of a tile
    when the one before it has finished those of its own, so that one computes states
    while products of the other run. `shares`: of a grid of more blocks than so many, those of the last
    round, which does not fill them, are done in two parts, the former in front of all other blocks;
    0: none are. Only `lazy` may change roundings.
  }];
  let parameters = (ins "int64_t":$consumer, "int64_t":$producer, "bool":$overlap,
                        "bool":$descending, "int64_t":$group, "int64_t":$lazy,
                        DefaultValuedParameter<"bool", "false">:$held,
                        DefaultValuedParameter<"bool", "false">:$turns,
                        DefaultValuedParameter<"int64_t", "0">:$shares);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def ONF_PieceAttr : AttrDef<ONF_Dialect, "Piece"> {
  let mnemonic = "piece";
  let summary = "One convex piece of a fold's domain, projected to index bounds";
  let description = [{
    For a tile of the lane axis with first index d0 and last index d1 (both
    inclusive, d1 below the extent), and the fold's bound operands s0, s1, …:
    the piece has elements of the tile only at reduction indices in
    [max visitLower, min visitUpper), and every index in
    [max fullLower, min fullUpper) is present for every lane of the tile.
    `full` is false when no index is known to be so.
    Pieces may overlap and their order is only a hint: a lowering visits their
    union once. An interval whose lower end is not below its upper end is empty.
  }];
  let parameters = (ins "::mlir::AffineMap":$visitLower, "::mlir::AffineMap":$visitUpper,
                        "::mlir::AffineMap":$fullLower, "::mlir::AffineMap":$fullUpper,
                        "bool":$full);
  let assemblyFormat = [{
    `<` `visit` $visitLower `to` $visitUpper `full` $full $fullLower `to` $fullUpper `>`
  }];
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

def ONF_KernelOp : ONF_NamedOp<"kernel",
    [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "A kernel: a sequence of parallel loop nests";
  let description = [{
    Block arguments: the inputs, then the outputs, then the temporaries, all `!moa.array`.
    Attributes as for `moa.kernel`; `result_types` and `temporary_types` are the types of the
    trailing arguments. A temporary is an array of the workspace, row-major without gaps and
    with arbitrary contents at first: one nest stores every element of it once, and nests behind
    that one load them. Stride symbols are named `<array>.s<axis>` and count elements. The nests
    run in order.

        onf.kernel @rows attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
            result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
        ^bb0(%x: !moa.array<[N, M], f32>, %s: !moa.array<[N], f32>):
          onf.for ["n"] in ["N"] { … }
        }

    Constraints: one argument per input, output and temporary (C1); they are arrays of the
    declared types (C2); the body holds `onf.for` only (C3); one tolerance or unit per result, and
    tolerances of floats only (C4). The contract, O1 to O7, is that of `onf-verify`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types,
                       OptionalAttr<StrArrayAttr>:$temporary_names,
                       OptionalAttr<TypeArrayAttr>:$temporary_types,
                       OptionalAttr<ArrayAttr>:$within);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    unsigned getNumInputs() { return getArgNames().size(); }
    unsigned getNumOutputs() { return getResultTypes().size(); }
    unsigned getNumTemporaries() { return getTemporaryNames() ? getTemporaryNames()->size() : 0; }
    bool isInput(unsigned array) { return array < getNumInputs(); }
    bool isTemporary(unsigned array) { return array >= getNumInputs() + getNumOutputs(); }
    /// The name of an array by the number of its argument.
    ::llvm::StringRef getArrayName(unsigned array);
    /// The number of the array of this name, if there is one.
    std::optional<unsigned> findArray(::llvm::StringRef name);
    /// The distance of neighbours on an axis of a temporary, in elements.
    SymExpr getStride(unsigned temporary, unsigned axis);
    /// The expression with the strides of temporaries as products of extents.
    SymExpr withoutTemporaryStrides(const SymExpr &expr);
    /// Where an array is stored; there is one such place in a verified kernel, but for an
    /// output that nests with choices store.
    StoreOp getStore(unsigned array);
  }];
}

def ONF_ForOp : ONF_NamedOp<"for", [SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "A nest of independent loops";
  let description = [{
    Block arguments are the indices; index k runs over 0 ≤ i < extents[k]. The iterations
    are independent. At the top level of a kernel it is a row nest; inside one it runs over
    the axes that accumulators carry. `lift`, one `#onf.axis` per index, binds the factors of
    each axis to resources [Def 15]; `pipeline` says how the warpgroups of a block share the
    work, where there are any.

        onf.for ["h", "n"] in ["H", "N"] lift [#onf.axis<core: 0>,
            #onf.axis<core: 0, register: 6, lane: 16>] {
        ^bb0(%h: index, %n: index):
          …
        }

    A nest with a *choice* runs where an element of an array has one value and nowhere else:
    `chosen by %p [0] is 1` takes p[h] = 1, h being the index of axis 0. Several nests may
    then store one output, each for other values (O4); the array is a temporary of `i32` that
    a nest before has stored, at the indices of the named axes in the order of its own.

        onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> { … }

    Constraints: one index argument (C1) and one name (C2) per extent; one `#onf.axis` per
    index where there is a lift (C3); a lift beside a pipeline (C4); a choice names increasing
    axes before the last one, one per axis of an array of i32 with these extents (C5).
  }];
  let arguments = (ins StrArrayAttr:$names, StrArrayAttr:$extents,
                       Optional<MoA_ArrayType>:$choices,
                       OptionalAttr<DenseI64ArrayAttr>:$choice_axes,
                       OptionalAttr<I64Attr>:$choice,
                       OptionalAttr<ArrayAttr>:$lift,
                       OptionalAttr<ONF_PipelineAttr>:$pipeline);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $names `in` $extents
    (`chosen` `by` $choices^ $choice_axes `is` $choice `:` type($choices))?
    (`lift` $lift^)? (`pipeline` $pipeline^)? attr-dict-with-keyword $body
  }];
  let builders = [
    OpBuilder<(ins "::mlir::ArrayAttr":$names, "::mlir::ArrayAttr":$extents)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The indices of the axes that a choice names.
    ::llvm::SmallVector<::mlir::Value> getChoiceIndices();
    /// Writes whether the nest is chosen to the front of its body; null where it always is.
    ::mlir::Value buildChoice();
  }];
}

def ONF_FoldOp : ONF_NamedOp<"fold", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "One pass over an index range that carries monoid states";
  let description = [{
    The block argument is the index j, 0 ≤ j < `extent`, ascending [Def 14]. The body
    computes scalars of j, restricts the range by at most one `onf.guard`, and holds one
    `onf.acc` per state; `onf.yield` returns the accs in order, and the fold's results are
    their final values. `lift` splits the range (associativity of every acc, rule R4);
    `pieces` and their operands `bounds` say which indices a tile of the enclosing nest's
    last axis needs [Def 16]; no `pieces` means all.

        %s = onf.fold "m" in "M" : f32 {
        ^bb0(%m: index):
          %0 = onf.load %x[%n, %m] times ["x.s0", "x.s1"] plus "0" : <[N, M], f32> -> f32
          %1 = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %0 : f32 } repair { }
          onf.yield %1 : f32
        }

    Constraints: one index argument (C1); the body ends with `onf.yield` (C2) of every state,
    in order (C4); at most one guard (C3); results have the states' types (C5); pieces are
    `#onf.piece` (C6) whose maps take the tile's two rows and the bounds (C7).
  }];
  let arguments = (ins StrAttr:$name, StrAttr:$extent,
                       OptionalAttr<ONF_AxisAttr>:$lift,
                       OptionalAttr<ArrayAttr>:$pieces,
                       Variadic<Index>:$bounds);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $name `in` $extent (`lift` $lift^)? (`pieces` $pieces^ `of` `(` $bounds `)`)?
    attr-dict-with-keyword `:` type($results) $body
  }];
}

def ONF_GuardOp : ONF_Op<"guard", [HasParent<"FoldOp">]> {
  let summary = "Indices where the condition is false are absent from every acc of the fold";
  let description = [{
    Restricts the range of the fold around it: an index j at which the condition is false
    changes no state. It is the presence of the reductions that the fold computes (law A3).

        onf.guard %p
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}

// Not free of effects: a fold yields each of its states, so that equal states
// may not be merged nor unused ones removed behind its back.
def ONF_AccOp : ONF_NamedOp<"acc",
    [HasParent<"FoldOp">, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One state of a fold: t ← c(d, d') ⊗ t ⊕ F(j, d')";
  let description = [{
    `value` has one block argument per entry of `extents` (the axes the state
    carries, none for a scalar state) and yields F. The result, readable after
    the acc in the same fold body, is the state including index j; for carried
    axes it is an `!moa.array` and only the fold's final result may be read.

    `refs` are results of earlier accs d of the same fold on which F depends
    through the current value d'. `repair` has the block arguments
    (old₀, new₀, old₁, new₁, …), one pair per ref, and yields the factor
    c(d, d'), applied with ⊗ = `combine` (mul or add) when any ref changed and
    the state is not the identity; c(d, d) = id. With ⊗ = select the factor is a
    boolean: the state stays where it holds and is the identity again elsewhere.
    `function` names the `moa.monoid` of the monoid `user`.

    `others` are results u of earlier accs of the same fold without axes, sums of the type of this
    one, which is a sum without axes. The repair then yields one more value cₖ for each: it is linear,
    t ← c·t + Σ cₖ·uₖ, with the uₖ as they were before this index, as it takes to measure powers
    of x − d from a new d.

    `singular[k]` is a float: while d'ₖ equals it, the state stays the identity
    (NaN: never). The caller decides what a state that is still singular at the
    end means. `operand_type` as for `dnf.reduce`.

    Semantics per present index j, in order of the accs:
      if some d'ₖ = singularₖ: t unchanged
      else: t ← (t is identity-since-start or no ref changed ? t : c ⊗ t + Σ cₖ·uₖ) ⊕ F
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, StrAttr:$name, StrArrayAttr:$names,
                       StrArrayAttr:$extents, Variadic<AnyType>:$refs,
                       Variadic<AnyType>:$others, MoA_ScalarFnAttr:$combine, ArrayAttr:$singular,
                       OptionalAttr<TypeAttr>:$operand_type,
                       OptionalAttr<FlatSymbolRefAttr>:$function);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$value, AnyRegion:$repair);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `` $monoid ($function^)? $name `carries` $names `in` $extents
    (`rounds` $operand_type^)?
    `refs` `(` $refs `)` (`others` `(` $others^ `:` type($others) `)`)? `` $combine $singular
    attr-dict-with-keyword `:` functional-type($refs, $result) $value `repair` $repair
  }];
}

def ONF_LoadOp : ONF_Op<"load", [Pure]> {
  let summary = "An element of an input at base + constant + Σ coefficient · term";
  let description = [{
    `coefficients[k]` and `constant` are polynomials in the stride symbols and the kernel's
    symbols, in elements; `terms` are loop indices or opaque index values. The address is that
    of γ [Def 4] with the caller's strides; it lies inside the array.

        %0 = onf.load %K[%g, %m] times ["K.s0", "K.s1"] plus "0" : <[G, M], bf16> -> bf16

    Constraints: one coefficient per term, a polynomial, as the constant is (C1); the result
    has the element type (C2).
  }];
  let arguments = (ins MoA_ArrayType:$array, Variadic<Index>:$terms,
                       StrArrayAttr:$coefficients, StrAttr:$constant);
  let results = (outs AnyType:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $array `[` $terms `]` `times` $coefficients `plus` $constant attr-dict
    `:` type($array) `->` type($result)
  }];
}

def ONF_StoreOp : ONF_Op<"store"> {
  let summary = "Writes one element of an output, rounding once to its element type";
  let description = [{
    Operands and attributes as for `onf.load`. Every element of an output is written exactly
    once (contract O4).

        onf.store %v, %O[%n] times ["O.s0"] plus "0" : f32, <[N], bf16>

    Constraints: one coefficient per term, a polynomial, as the constant is (C1); the value is
    a float, an integer or a boolean as the elements are (C2).
  }];
  let arguments = (ins AnyType:$value, MoA_ArrayType:$array, Variadic<Index>:$terms,
                       StrArrayAttr:$coefficients, StrAttr:$constant);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $value `,` $array `[` $terms `]` `times` $coefficients `plus` $constant attr-dict
    `:` type($value) `,` type($array)
  }];
}

def ONF_AtOp : ONF_Op<"at", [Pure]> {
  let summary = "One element of a state that carries axes, after its fold";
  let description = [{
    The result of a fold whose acc carries axes is a small array; this reads one element.

        %0 = onf.at %o[%k] : <[128], f32> -> f32

    Constraints: one index per axis (C1); the result has the element type (C2).
  }];
  let arguments = (ins MoA_ArrayType:$state, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$state `[` $indices `]` attr-dict `:` type($state) `->` type($result)";
  let hasVerifier = 1;
}

def ONF_ExtentOp : ONF_Op<"extent", [Pure]> {
  let summary = "An integer expression over the symbols";
  let description = [{
    The value of an expression over the kernel's symbols.

        %0 = onf.extent "M - N"
  }];
  let arguments = (ins StrAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "$expr attr-dict";
}

def ONF_PiecewiseExp2Op : ONF_Op<"piecewise_exp2", [Pure, SameOperandsAndResultType] # ElementwiseMappable.traits> {
  let summary = "2^y by straight lines between powers of two, in the range of f16";
  let description = [{
    With y = `times`·x + `plus`, rounded to a multiple of 2⁻⁶ (ties to even), the result is
    2^⌊y⌋·(1 + y − ⌊y⌋), which f16 holds: an exponential as J. N. Mitchell reads an antilogarithm
    (Computer multiplication and division using binary logarithms, IRE Trans. EC-11, 1962). It is
    2^y·r(y − ⌊y⌋) with r(f) = (1 + f)·2⁻ᶠ in 1 … 1.0615, of mean 1/(2·ln² 2) = 1.0407 over a period, which is also
    r(3/4) but for 2·10⁻⁴; the rounding of y changes it by a factor within 2^±2⁻⁷. Below y = −14 it is 2⁻¹⁴·(y + 15), and 0 from
    −15 on. NaN where y is; y must be less than 16 − 2⁻⁷. Of vectors it is that of each element.

        %w = onf.piecewise_exp2 %x times 1.44269504 plus 5.75 : f32
  }];
  let arguments = (ins AnyTypeOf<[F32, VectorOfNonZeroRankOf<[F32]>]>:$operand, F64Attr:$times, F64Attr:$plus);
  let results = (outs AnyTypeOf<[F32, VectorOfNonZeroRankOf<[F32]>]>:$result);
  let assemblyFormat = "$operand `times` $times `plus` $plus attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// 2^y so, of a y that is not rounded yet.
    static double evaluate(double y);
  }];
}

def ONF_YieldOp : ONF_Op<"yield", [Terminator, Pure, ParentOneOf<["FoldOp", "AccOp"]>]> {
  let summary = "Ends a fold (its states), a value region or a repair region";
  let description = [{
    In a fold: the results of its accs, in order. In the value of an acc: the term F, or one
    element of it where axes are carried. In a repair: the factor c(d, d') and what others of
    the fold are multiplied with.

        onf.yield %m, %l : f32, f32
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
}

#endif // MOA_DIALECTS_ONF_IR_ONF_TD
