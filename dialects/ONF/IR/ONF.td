//===- ONF.td - the operational normal form -----------------*- tablegen -*-===//
//
// Loops, folds that carry monoid states, and linear indices. Scalar operations are those of the
// arith and math dialects.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_ONF_IR_ONF_TD
#define MOA_DIALECTS_ONF_IR_ONF_TD

include "dialects/ONF/IR/ONFBase.td"

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
  let summary = "The tiling of one axis: its factors from the outermost in";
  let description = [{
    Each factor has a resource and a size. For example,

        #onf.axis<core: 0, register: 6, lane: 16>

    means i = (c·6 + r)·16 + l with 0 ≤ r < 6 and 0 ≤ l < 16. The outermost factor has size 0, which
    stands for ⌈extent / product of the others⌉; indices at or above the extent are guarded. By
    mixed radix, the guarded digits correspond one to one to the indices.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$resources,
                        ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    Resource getResource(unsigned k) const {
      return static_cast<Resource>(getResources()[k]);
    }
    /// Returns the product of the sizes of all factors but the outermost.
    int64_t getTile() const;
    /// Returns the size of the factor bound to `resource`, or 1.
    int64_t getSize(Resource resource) const;
  }];
}

def ONF_PipelineAttr : AttrDef<ONF_Dialect, "Pipeline"> {
  let mnemonic = "pipeline";
  let summary = "The cooperation of the warpgroups of a block, and the order of blocks";
  let description = [{
    The parameters of a warp-specialised kernel. Only `lazy` may change roundings.

    - `consumer`, `producer`: registers per thread of a warpgroup that computes, and of the one that
      copies.
    - `overlap`: the products of one tile are in flight while the states of the next one are
      computed. Without it they follow the states of their own tile.
    - `descending`: the blocks of the last rows come first.
    - `group`: grouping for the L2 cache. Heads whose data in the fold's range is at most this many
      bytes together go through the row blocks together. 0: one head after the other.
    - `lazy`: conditional rescale. States are rescaled only if a correction factor is outside
      [2^-lazy, 2^lazy]. 0: they are rescaled whenever the running maximum changes.
    - `held`: a consumer reads its rows once and keeps them in registers.
    - `turns`: ping-pong between consumer warpgroups. A warpgroup starts the scores of a tile when
      the one before it has finished its own, so one computes states while products of the other
      run.
    - `shares`: stream-K split. In a grid of more than this number of blocks, the blocks of a
      partial last round are done in two parts, the first part before all other blocks. 0: no split.

    For example:

        #onf.pipeline<consumer = 240, producer = 24, overlap = true, descending = false, group = 0,
                      lazy = 8>
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
  let summary = "Index bounds of one convex piece of a fold's domain";
  let description = [{
    A piece gives intervals of reduction indices for a tile of the enclosing nest's last axis. Its
    maps take the tile's first index d0 and last index d1 (both inclusive, d1 below the extent), and
    the fold's operands `bounds`, s0, s1, ….

    - `visit`: the piece has elements of the tile only at indices in [max visitLower, min
      visitUpper).
    - `full`: if the flag is true, every index in [max fullLower, min fullUpper) is present for
      every row of the tile, so the mask may be omitted there.

    Pieces may overlap, and their order is only a hint: a lowering visits their union once. An
    interval whose lower end is not below its upper end is empty. For example, a causal mask:

        #onf.piece<visit (d0, d1) -> (0) to (d0, d1) -> (d1 + 1)
                   full true (d0, d1) -> (0) to (d0, d1) -> (d0 + 1)>
  }];
  let parameters = (ins "::mlir::AffineMap":$visitLower, "::mlir::AffineMap":$visitUpper,
                        "::mlir::AffineMap":$fullLower, "::mlir::AffineMap":$fullUpper,
                        "bool":$full);
  let assemblyFormat = [{
    `<` `visit` $visitLower `to` $visitUpper `full` $full $fullLower `to` $fullUpper `>`
  }];
}

//===----------------------------------------------------------------------===//
// Loads and stores
//===----------------------------------------------------------------------===//

def ONF_SubscriptsAttr : AttrDef<ONF_Dialect, "Subscripts"> {
  let mnemonic = "subscripts";
  let summary = "The index of an element along each axis of its array";
  let description = [{
    One linear form per axis, in the terms $0, $1, … of a load or store. For example,

        #onf.subscripts<["$0", "2*$1 + M - N"]>

    No symbol of a kernel begins with `$`.
  }];
  let parameters = (ins AttrParameter<"std::vector<::moa::onf::Subscript>", "one form per axis",
                                      "::llvm::ArrayRef<::moa::onf::Subscript>">:$axes);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Returns the subscripts of an element whose index along axis k is term k.
    static SubscriptsAttr getIdentity(::mlir::MLIRContext *context, unsigned rank);
    /// Returns the subscripts of these indices over `terms`, to which new values are added.
    static SubscriptsAttr get(::mlir::MLIRContext *context, ::llvm::ArrayRef<::moa::LinearIndex> indices,
                              ::llvm::SmallVectorImpl<::mlir::Value> &terms);
    bool isIdentity() const;
    /// Returns the axis whose index has the term with factor 1, if no other axis has the term.
    std::optional<unsigned> findAxis(unsigned term) const;
  }];
}

def ONF_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let description = [{
    A load or store of one element of an array: its terms, its indices over them, and the address
    that follows from the indices.
  }];
  let cppNamespace = "::moa::onf";
  let methods = [
    InterfaceMethod<"Returns the array.", "::mlir::TypedValue<::moa::ArrayType>", "getArray">,
    InterfaceMethod<"Returns the terms of the indices.", "::mlir::OperandRange", "getTerms">,
    InterfaceMethod<"Returns the indices over the numbers of terms.", "::moa::onf::SubscriptsAttr",
                    "getSubscripts">];
  let extraClassDeclaration = [{
    /// Returns the index along an axis.
    ::moa::LinearIndex getIndex(unsigned axis);
    /// Returns the address of the element.
    FlatAddress getAddress();
  }];
  let extraTraitClassDeclaration = [{
    /// Returns the index along an axis.
    ::moa::LinearIndex getIndex(unsigned axis) { return AccessOpInterface($_op).getIndex(axis); }
    /// Returns the address of the element.
    FlatAddress getAddress() { return AccessOpInterface($_op).getAddress(); }
  }];
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

def ONF_KernelOp : ONF_NamedOp<"kernel",
    [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "A kernel: a sequence of loop nests";
  let description = [{
    The block arguments are the inputs, the outputs and the temporaries, all `!moa.array`.
    Attributes are those of `moa.kernel`. `result_types` and `temporary_types` are the types of the
    trailing arguments. The nests run in order.

    A temporary is an array of the workspace, row-major without gaps, with arbitrary contents at
    first. One nest stores every element of it once, and later nests load it. Stride symbols are
    named `<array>.s<axis>` and count elements.

        onf.kernel @rows attributes {symbols = ["N", "M"], requires = [], arg_names = ["x"],
            result_names = ["s"], result_types = [!moa.array<[N], f32>]} {
        ^bb0(%x: !moa.array<[N, M], f32>, %s: !moa.array<[N], f32>):
          onf.for ["n"] in ["N"] { … }
        }

    Constraints:

    - C1: One argument per input, output and temporary.
    - C2: The arguments are arrays of the declared types.
    - C3: The body holds `onf.for` only.
    - C4: `within` has one entry per result: `#moa.within` for floats only, or `unit` for none.

    The contract, O1 to O7, is that of `onf-verify`.
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
    ::llvm::StringRef getArrayName(unsigned array);
    std::optional<unsigned> findArray(::llvm::StringRef name);
    /// Returns the stride of a temporary on an axis, in elements.
    SymExpr getStride(unsigned temporary, unsigned axis);
    /// Replaces the strides of temporaries by products of extents.
    SymExpr withoutTemporaryStrides(const SymExpr &expr);
    /// Returns a store of the array. A verified kernel has one per array, except for an output that
    /// nests with choices store.
    StoreOp getStore(unsigned array);
  }];
}

def ONF_ForOp : ONF_NamedOp<"for", [SingleBlock, NoTerminator, RecursiveMemoryEffects]> {
  let summary = "A nest of independent loops";
  let description = [{
    The block arguments are the indices; index k runs over 0 ≤ i < extents[k]. The iterations are
    independent. At the top level of a kernel it is a nest of rows. Inside a nest it runs over the
    axes of accumulators. `lift`, one `#onf.axis` per index, tiles each axis and binds the factors
    to resources [Def 15]. `pipeline` describes the warpgroups of a block, if any.

        onf.for ["h", "n"] in ["H", "N"] lift [#onf.axis<core: 0>,
            #onf.axis<core: 0, register: 6, lane: 16>] {
        ^bb0(%h: index, %n: index):
          …
        }

    **Choices.** A predicated (versioned) nest runs only where an element of an array has a given
    value. `chosen by %p [0] is 1` means p[h] = 1, where h is the index of axis 0. The array is a
    temporary of `i32` that an earlier nest has stored, with the named axes in order. Several nests
    may store one output for different values (O4).

        onf.for ["h", "n"] in ["H", "N"] chosen by %p [0] is 1 : !moa.array<[H], i32> { … }

    **Versions.** `where` has pairs of expressions x > y over the symbols. The nest runs only if each
    pair holds, so a host need not launch it otherwise. Two nests may store one output if they are
    complementary: one runs where x > y, the other where y + 1 > x (O4).

        onf.for ["h", "n"] in ["H", "N"] where ["N" > "64"] { … }

    Constraints:

    - C1: One index argument per extent.
    - C2: One name per extent.
    - C3: A lift has one `#onf.axis` per index.
    - C4: A pipeline needs a lift.
    - C5: A choice names increasing axes before the last one. Its array is of i32 and has their
      extents.
    - C6: `where` has pairs, and its nest is at the top of a kernel.
  }];
  let arguments = (ins StrArrayAttr:$names, MoA_ExprArrayAttr:$extents,
                       OptionalAttr<MoA_ExprArrayAttr>:$where,
                       Optional<MoA_ArrayType>:$choices,
                       OptionalAttr<DenseI64ArrayAttr>:$choice_axes,
                       OptionalAttr<I64Attr>:$choice,
                       OptionalAttr<ArrayAttr>:$lift,
                       OptionalAttr<ONF_PipelineAttr>:$pipeline);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $names `in` custom<Exprs>($extents) (`where` custom<Pairs>($where)^)?
    (`chosen` `by` $choices^ $choice_axes `is` $choice `:` type($choices))?
    (`lift` $lift^)? (`pipeline` $pipeline^)? attr-dict-with-keyword $body
  }];
  let builders = [
    OpBuilder<(ins "::mlir::ArrayAttr":$names, "::mlir::ArrayAttr":$extents)>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::Value> getChoiceIndices();
    /// Emits, at the start of the body, the condition that the nest is chosen. Returns null for a
    /// nest without a choice.
    ::mlir::Value buildChoice();
  }];
}

def ONF_FoldOp : ONF_NamedOp<"fold", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "One pass over an index range that carries monoid states";
  let description = [{
    The block argument is the index j, 0 ≤ j < `extent`, ascending [Def 14]. The body computes
    scalars of j, restricts the range by at most one `onf.guard`, and holds one `onf.acc` per state.
    `onf.yield` returns the accs in order. The fold's results are their final values.

    `lift` splits the range into blocks (rule R4: every acc is associative). `pieces`, with their
    operands `bounds`, say which indices a tile of the enclosing nest's last axis needs [Def 16];
    without `pieces` it needs all.

        %s = onf.fold "m" in "M" : f32 {
        ^bb0(%m: index):
          %0 = onf.load %x[%n, %m] : <[N, M], f32> -> f32
          %1 = onf.acc add "s" carries [] in [] refs() mul [] : () -> f32 { onf.yield %0 : f32 } repair { }
          onf.yield %1 : f32
        }

    Constraints:

    - C1: The body has one index argument.
    - C2: The body ends with an `onf.yield`.
    - C3: There is at most one guard.
    - C4: The yield has every state, in order.
    - C5: Results have the states' types.
    - C6: Pieces are `#onf.piece`.
    - C7: The maps of pieces take the tile's two indices and the bounds.
  }];
  let arguments = (ins StrAttr:$name, MoA_ExprAttr:$extent,
                       OptionalAttr<ONF_AxisAttr>:$lift,
                       OptionalAttr<ArrayAttr>:$pieces,
                       Variadic<Index>:$bounds);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $name `in` custom<Expr>($extent) (`lift` $lift^)? (`pieces` $pieces^ `of` `(` $bounds `)`)?
    attr-dict-with-keyword `:` type($results) $body
  }];
}

def ONF_GuardOp : ONF_Op<"guard", [HasParent<"FoldOp">]> {
  let summary = "The mask of a fold";
  let description = [{
    Restricts the range of the enclosing fold: an index j at which the condition is false changes no
    state. It is the presence of the reductions that the fold computes (law A3).

        onf.guard %p
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
}

// Not pure: a fold yields each of its states, so CSE must not merge equal states, and DCE must not
// remove unused ones.
def ONF_AccOp : ONF_NamedOp<"acc",
    [HasParent<"FoldOp">, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One state of a fold, an accumulator: t ← c(d, d') ⊗ t ⊕ F(j, d')";
  let description = [{
    The accumulator t of the monoid ⊕. `value` yields the term F; it has one block argument per
    entry of `extents`, the axes that the state carries (none for a scalar state). The result is the
    state including index j, and may be read after the acc in the same fold body. With carried axes
    it is an `!moa.array`, and only the fold's final result may be read. `operand_type` is as for
    `dnf.reduce`. `function` names the `moa.monoid` of the monoid `user`.

    **Rescaling.** `refs` are the results d of earlier accs of the fold, if F depends on their
    current values d' (for example a running maximum). When any of them has changed and t is not the
    identity, t is rescaled by the correction factor c(d, d'). `repair` yields the factor. Its block
    arguments are an old and a new value per ref (old₀, new₀, old₁, new₁, …), and c(d, d) = id. ⊗ is
    `combine`: mul, add or select. With select the factor is a boolean: t is kept if it is true, and
    reset to the identity otherwise.

    **Linear rescaling.** `others` are results u of earlier accs of the fold: scalar sums of the
    same type as t, which is a scalar sum too. `repair` then yields one more value cₖ for each, and
    t ← c·t + Σ cₖ·uₖ with the uₖ before this index. For example, this moves powers of x − d to a
    new d.

    **Singular values.** `singular[k]` is a float. While d'ₖ equals it, t stays the identity (NaN:
    never). The reader decides the meaning of a state that is still singular at the end.

    For each present index j, in order of the accs:

    1. If some d'ₖ = singularₖ, t is unchanged.
    2. Otherwise t ← s ⊕ F. Here s = t if t is still the identity or no ref changed, and else s = c
       ⊗ t + Σ cₖ·uₖ.

    For example, the sum of an online softmax, with the running maximum %m:

        %l = onf.acc add "l" carries [] in [] refs(%m) mul [0xFF800000 : f32] : (f32) -> f32 {
          … onf.yield %e : f32              // exp(s − m)
        } repair {
        ^bb0(%old: f32, %new: f32):
          … onf.yield %c : f32              // exp(old − new)
        }

    Constraints:

    - C1: The value has one index argument per extent.
    - C2: One name per extent.
    - C3: The result is an array of the carried extents, or a scalar if there are none.
    - C4: The value yields the element type.
    - C5: Refs are scalar states of the same fold.
    - C6: One singular value, a float, per ref.
    - C7: There is a repair exactly if there are refs. It takes two values per ref, and yields a factor
      and one value per entry of `others`.
    - C8: `combine` is mul, add or select.
    - C9: The monoid is defined on the element type. Exactly the monoid `user` names a `moa.monoid`.
    - C10: `others` are scalar sums of the same fold and type, and the state is rescaled by a factor.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, StrAttr:$name, StrArrayAttr:$names,
                       MoA_ExprArrayAttr:$extents, Variadic<AnyType>:$refs,
                       Variadic<AnyType>:$others, MoA_ScalarFnAttr:$combine, ArrayAttr:$singular,
                       OptionalAttr<TypeAttr>:$operand_type,
                       OptionalAttr<FlatSymbolRefAttr>:$function);
  let results = (outs AnyType:$result);
  let regions = (region SizedRegion<1>:$value, AnyRegion:$repair);
  let hasVerifier = 1;
  let assemblyFormat = [{
    `` $monoid ($function^)? $name `carries` $names `in` custom<Exprs>($extents)
    (`rounds` $operand_type^)?
    `refs` `(` $refs `)` (`others` `(` $others^ `:` type($others) `)`)? `` $combine $singular
    attr-dict-with-keyword `:` functional-type($refs, $result) $value `repair` $repair
  }];
}

def ONF_LoadOp : ONF_Op<"load", [Pure, ONF_AccessOpInterface]> {
  let summary = "An element of an input or temporary, at one index per axis";
  let description = [{
    `terms` are loop indices or opaque index values. `subscripts` has the index along each axis: a
    linear form in the terms $0, $1, …, whose constant and factors are expressions over the kernel's
    symbols. The element lies inside the array. Its address is that of γ [Def 4] with the caller's
    strides: constant + Σ coefficient · term in the order of the terms (`getAddress`).

        %0 = onf.load %K[%g, %m] : <[G, M], bf16> -> bf16                 // K[g, m]
        %1 = onf.load %K[%g, %i] at ["$0", "$1 + M - N"] : <[G, M], bf16> -> bf16

    Without `at`, the index along axis k is term k.

    Constraints: one index per axis, over the terms, with every term in one of them (C1); the result
    has the element type (C2).
  }];
  let arguments = (ins MoA_ArrayType:$array, Variadic<Index>:$terms,
                       ONF_SubscriptsAttr:$subscripts);
  let results = (outs AnyType:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$array, "::mlir::ValueRange":$indices)>];
  let hasVerifier = 1;
  let assemblyFormat = [{
    $array `[` $terms `]` `` custom<Subscripts>($subscripts, ref($terms)) attr-dict
    `:` type($array) `->` type($result)
  }];
}

def ONF_StoreOp : ONF_Op<"store", [ONF_AccessOpInterface]> {
  let summary = "Writes one element of an output or temporary, rounding once to its element type";
  let description = [{
    Operands and attributes are those of `onf.load`. Every element is written exactly once (O4).

        onf.store %v, %O[%n] : f32, <[N], bf16>

    Constraints: one index per axis, over the terms, with every term in one of them (C1); the value
    is a float, an integer or a boolean, as the elements are (C2).
  }];
  let arguments = (ins AnyType:$value, MoA_ArrayType:$array, Variadic<Index>:$terms,
                       ONF_SubscriptsAttr:$subscripts);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$array, "::mlir::ValueRange":$indices)>];
  let hasVerifier = 1;
  let assemblyFormat = [{
    $value `,` $array `[` $terms `]` `` custom<Subscripts>($subscripts, ref($terms)) attr-dict
    `:` type($value) `,` type($array)
  }];
}

def ONF_AtOp : ONF_Op<"at", [Pure]> {
  let summary = "One element of a final state with axes";
  let description = [{
    Reads an element of a fold's result. The result of an acc with carried axes is a small array.

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
  let arguments = (ins MoA_ExprAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "custom<Expr>($expr) attr-dict";
}

def ONF_PiecewiseExp2Op : ONF_Op<"piecewise_exp2", [Pure, SameOperandsAndResultType] # ElementwiseMappable.traits> {
  let summary = "2^y, linear between powers of two, in the range of f16";
  let description = [{
    With y = `times`·x + `plus`, rounded to a multiple of 2⁻⁶ (ties to even), the result is 2^⌊y⌋·(1
    + y − ⌊y⌋), which is an f16. This is J. N. Mitchell's antilogarithm (Computer multiplication and
    division using binary logarithms, IRE Trans. EC-11, 1962). The result of a vector is
    element-wise.

    - Below y = −14 it is 2⁻¹⁴·(y + 15), and 0 from −15 on. NaN gives NaN. y must be less than 16 −
      2⁻⁷.
    - It is 2^y·r(y − ⌊y⌋) with r(f) = (1 + f)·2⁻ᶠ in 1 … 1.0615. The mean of r over a period is
      1/(2·ln² 2) = 1.0407, which is r(3/4) up to 2·10⁻⁴.
    - The rounding of y changes the result by a factor within 2^±2⁻⁷.

    For example:

        %w = onf.piecewise_exp2 %x times 1.44269504 plus 5.75 : f32
  }];
  let arguments = (ins AnyTypeOf<[F32, VectorOfNonZeroRankOf<[F32]>]>:$operand, F64Attr:$times, F64Attr:$plus);
  let results = (outs AnyTypeOf<[F32, VectorOfNonZeroRankOf<[F32]>]>:$result);
  let assemblyFormat = "$operand `times` $times `plus` $plus attr-dict `:` type($result)";
  let extraClassDeclaration = [{
    /// Returns 2^y in this approximation, for a y that is not rounded yet.
    static double evaluate(double y);
  }];
}

def ONF_YieldOp : ONF_Op<"yield", [Terminator, Pure, ParentOneOf<["FoldOp", "AccOp"]>]> {
  let summary = "Ends a fold, or a value or repair region of an acc";
  let description = [{
    A fold yields the results of its accs, in order. A value region yields the term F (one element
    of it if axes are carried). A repair yields the factor c(d, d'), then one coefficient cₖ per
    entry of `others`.

        onf.yield %m, %l : f32, f32
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
}

#endif // MOA_DIALECTS_ONF_IR_ONF_TD
