//===- Passes.td - passes between the levels ----------------*- tablegen -*-===//
#ifndef MOA_CONVERSION_PASSES_TD
#define MOA_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertMoAToDNF : Pass<"convert-moa-to-dnf", "::mlir::ModuleOp"> {
  let summary = "ψ-reduction: push indexing inward until it stands on inputs only";
  let description = [{
    Every `moa.kernel` becomes a `dnf.kernel` with one definition per output: its element at an
    index is ψ of the returned array there. The laws P1, P2, … of docs/Spec.md, one per operator,
    push ψ inward until it stands on inputs. The laws A1 to A7 move absent elements to the ranges of
    reductions and to outputs.

        %1 = moa.transpose %0 perm [1, 0]        // i ψ transpose(A) = i' ψ A (P10)
        moa.return %1

    becomes

        dnf.output 0 over ["i", "j"] in ["N", "M"] -> f32 {
        ^bb0(%i: index, %j: index):
          %0 = dnf.psi %A[%j, %i] : <[M, N], f32> -> f32
          dnf.yield %0 : f32
        }

    Arrays that are used more than once, or reduced and then broadcast, become lets (P15), so that
    sharing is kept. A let is a function of its indices, never storage.

    **Requires** the contract of `moa-verify`. **Establishes** that of `dnf-verify`; the text does
    not depend on the order in which laws are tried. **Numerics**: exact. **Cost**: at every ψ one
    law applies and removes one operator; linear in the number of operators per use.
  }];
  let options = [
    ListOption<"disable", "disable", "std::string",
               "Laws not to apply, for tests; an operator that such a law would have removed is an error">,
    Option<"seed", "seed", "unsigned", "0",
           "Shuffle the order of the laws, for the test of confluence">
  ];
  let dependentDialects = ["::moa::dnf::DNFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def ConvertDNFToONF : Pass<"convert-dnf-to-onf", "::mlir::ModuleOp"> {
  let summary = "Fuse reductions into folds by the rules R0-R7, and make loads of ψ";
  let description = [{
    Every `dnf.kernel` becomes an `onf.kernel`. Outputs over the same extents share a nest of rows.
    The reductions that a row needs become states (accumulators) of folds, in as few passes over a
    range as the rules of docs/Spec.md, section 6, allow. ψ on an input becomes a load at
    linear indices. For example, the maximum and the sum of a softmax take one pass (online
    softmax):

        m(n)   = max{k<M} S(n, k)
        l[n]   = Σ{k<M} exp(S(n, k) − m(n))

    becomes

        for n < N:
          fold k < M:
            m ← max(m, S)
            l ← l·exp(m⁻ − m) + exp(S − m)       // R2 pairs them, R3 rescales l
          l@(n·l.s0) = l

    R6 expands a sum of products that mix an element with results over the range, measured from the
    row's first element. R5 reads a sum of sums from a state that carries the inner axis, after the
    fold of this state. A reduction that cannot share a pass takes another one, and a remark names
    the subterm that prevents it.

    R7 stores a reduction inside another one in a nest of its own if rows share it. For example, Σᵢ
    exp(sᵢⱼ − mᵢ) reads the stored mᵢ = maxⱼ sᵢⱼ. A product of three matrices is reassociated first
    if that takes fewer multiply-adds (R5). A long sum is stored in parts of its range (R4).

    **Requires** the contract of `dnf-verify`. **Establishes** that of `onf-verify`. **Numerics**:
    reassociating. R3 rescales partial sums by factors within 1. The parts of an operand that R0
    takes apart are not rounded to its type. R1 moves factors out of sums, and assumes that the rest
    neither overflows nor underflows where the unmodified sum would not. It moves constants,
    run-time scalars, elements of inputs, results of sums and products, and those maxima and minima
    over the same range that R3 cannot rescale inside. Other factors made of maxima and minima stay,
    and so does every earlier result next to a factor that occurs twice. **Cost**: quadratic in the
    number of reductions of a row, linear in the size of their terms. The code of a chain of
    cascades may grow exponentially with its length. A nest that takes more than `most-ops`
    operations, and more than eight per operation of dnf, is refused at the reduction that is
    repeated most often.
  }];
  let options = [
    ListOption<"disable", "disable", "std::string",
               "Rules (R0 to R7) not to apply, for tests; more passes, the same result">,
    Option<"mostOps", "most-ops", "uint64_t", "10000",
           "Operations that the loops of a result may take">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def OrderRows : Pass<"onf-order-rows", "::mlir::ModuleOp"> {
  let summary = "Put the axis of a nest last whose rows share the operands of contractions";
  let description = [{
    Every target uses the last axis of a nest as the rows of a tile. In each nest that is not
    lifted, the axis whose rows share most operands of contractions comes last.

        onf.for ["n", "h"] in ["N", "H"] { … K@(h·K.s1 + m·K.s2 + …) … }

    becomes

        onf.for ["h", "n"] in ["H", "N"] { … }        // rows n share the keys of a head

    **Requires** the onf contract. **Establishes** nothing more; nests with a `lift` stay.
    **Numerics**: exact, the iterations of a nest are independent. **Cost**: linear in the
    loads times the axes.
  }];
}

def BlockColumns : Pass<"onf-block-columns", "::mlir::ModuleOp"> {
  let summary = "Order the axes of nests whose sums run in blocks of columns on a CPU";
  let description = [{
    A row carries the sums of its columns if their number is known and small. In other nests whose
    sums are products of an element of the row and one of the column, this pass puts the axis of the
    columns second to last and that of the rows last:

        onf.for ["i", "c"] in ["N", "M"] { … A@(i·A.s0 + k·A.s1) · B@(k·B.s0 + c·B.s1) … }

    becomes

        onf.for ["c", "i"] in ["M", "N"] attributes {moa.columns = 128} { … }

    The lowering then factors c = c₀ + d with d < 128, and lets the row carry d like a short axis.
    Every element of a block is read once for all rows of a tile. The last block has fewer columns.
    For example, `C = A +.* B` with a run-time number of columns becomes a blocked matrix product.

    **Requires** the onf contract, nests without `lift`. **Establishes** the hint `moa.columns`.
    **Numerics**: exact, the iterations of a nest are independent; long sums are compensated like
    those of one column. **Cost**: plans each fold of a nest once per axis.
  }];
}

def OrderProducts : Pass<"onf-order-products", "::mlir::ModuleOp"> {
  let summary = "Put the axes of a nest last that are columns and rows of a product of warps";
  let description = [{
    A nest runs on the tensor cores of single warps if its one fold sums products x(i, k) · y(c, k)
    of 16-bit operands for its last two axes. In other nests one axis moves last, if the nest then
    has this form:

        onf.for ["i", "h", "c"] in ["N", "H", "M"] { … Q@(i·Q.s0 + h·Q.s1 + k) · K@(h·K.s0 + c·K.s1 + k) … }

    becomes

        onf.for ["h", "c", "i"] in ["H", "M", "N"] { … }

    **Requires** the onf contract. **Establishes** nothing more; nests with a `lift` stay.
    **Numerics**: exact, the iterations of a nest are independent. **Cost**: linear in the size of
    the nest times its axes.
  }];
}

def ConvertONFToVector : Pass<"convert-onf-to-vector", "::mlir::ModuleOp"> {
  let summary = "Lower onf kernels to vector code over their rows";
  let description = [{
    Every nest becomes two functions over scf, arith, math, vector and llvm memory
    operations (NAME is the kernel's, k counts its nests):

        onf.for ["h", "n"] in ["H", "N"] lift […] { onf.fold "m" in "M" … }

    becomes

        func @NAME_nest<k>(%args: !llvm.ptr, %scratch: !llvm.ptr, %begin: i64, %end: i64)
        func @NAME_tasks<k>(%args: !llvm.ptr) -> i64

    The first runs the tasks begin ≤ t < end. Lanes are rows, so that a state of several rows is one
    vector. `scratch` is aligned to 64 bytes and holds `moa.scratch_bytes` bytes (an attribute of
    the module) for each concurrent call. `moa.nests` counts nests.

    If the first fold of a nest is split over cores (rule R4), the nest becomes two. In the first,
    whose rows are one tile, a task is one part of the range and leaves its states in the workspace.
    `NAME_shared<k>` gives their bytes, and `moa.shared` lists these as polynomials. The second nest
    merges the states and stores the results.

    Sums Σ_k x(i, k)·y(j, k) of elements of i8 are contractions like those of floats, exact as
    integers. With `byte-dots` a lane holds four consecutive elements of a row, and the key's four
    are broadcast, 128 larger, because `vpdpbusd` takes unsigned bytes. Sums then start at −128·Σ_k
    x(i, k) and have up to 131,071 terms. Without `byte-dots` these sums are of f32, with up to
    1,024 terms, the most that f32 holds exactly. Other sums of integers are added one by one.

    f32 sums of products may use `bf16-dots` if their factors are bf16 or are rounded to it.

    - `pairs`: a lane holds two consecutive elements of a row, and the key's two are broadcast.
      `vdpbf16ps` adds both products.
    - `tiles` (512-bit vectors): `tdpbf16ps` multiplies 16 keys by 16 rows over 32 indices, in two
      by two tiles of sums.

    Operands of a sum over keys are packed in pairs of keys. Subnormal operands, products and sums
    count as 0.

    A sum must have the same bits wherever it is recomputed. These sums therefore use multiply-adds
    if a fold elsewhere may also compute them from the same arrays. So do sums that the guard of a
    fold may also compute, because guards are evaluated separately. The attribute `moa.alone` of an
    `onf.acc` overrides this test, on copies too. Mixed-precision passes set it for the unmodified
    nest. A sum that a plan rounds to bf16 counts as alone.

    **Requires** the onf contract, lifted or not. **Establishes** the functions above; no operation
    of onf is left. **Numerics**: sums are reassociated by blocks of the reduced index, 256 or the
    cache tile. Sums of blocks are compensated, except those of states with axes in blocked folds. A
    sum of terms of one sign thus has at most the relative error of one block, or of one block and n
    / block additions. Everything else is evaluated as written. **Cost**: linear in the kernel times
    the registers of a tile.
  }];
  let options = [
    Option<"vectorsPerTile", "vectors-per-tile", "int64_t", "6",
           "Vectors of rows per task if a nest is not lifted">,
    Option<"vectorBits", "vector-bits", "int64_t", "512",
           "Bits of a vector if a nest is not lifted">,
    Option<"blocks", "blocks", "bool", "true",
           "Run folds in blocks if their form allows it">,
    Option<"byteDots", "byte-dots", "bool", "false",
           "Sum up products of i8 by dot products of four bytes, which AVX512-VNNI and AVX-VNNI have">,
    Option<"bf16Dots", "bf16-dots", "::moa::Bf16Dots", "::moa::Bf16Dots::none",
           "Sum up products of bf16 by instructions for them",
           [{::llvm::cl::values(
             clEnumValN(::moa::Bf16Dots::none, "none", "widen them to f32"),
             clEnumValN(::moa::Bf16Dots::pairs, "pairs", "two at a time, which AVX512-BF16 has"),
             clEnumValN(::moa::Bf16Dots::tiles, "tiles", "tiles of 16 by 32, which AMX-BF16 has"))}]>
  ];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::affine::AffineDialect"];
}

def ExpandMath : Pass<"moa-expand-math"> {
  let summary = "Expand exponentials and other elementary functions";
  let description = [{
    Exponentials and tanh of f32 and f64, as scalars or vectors, become polynomials. MLIR's own
    expansions follow: those within 2 ulp (logarithms of f32), functions of 16-bit floats in f32,
    floored divisions, and bfloat16 conversions as integer operations. Not every x86 has
    instructions for them, and library calls may not be linked.

        %y = math.exp %x : vector<16xf32>

    becomes

        2^k · p(r), with k = round(x · log2 e) and r = x − k · ln 2 in two parts

    **Requires** nothing. **Establishes** that the named functions are gone. **Numerics**:
    approximate, within 1 ulp (f32 exponentials) and 2 ulp (others); infinities, NaN,
    overflow and gradual underflow as in C. **Cost**: linear.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"];
}

def SeparateColumns : Pass<"onf-separate-columns", "::mlir::ModuleOp"> {
  let summary = "Make a nest of a loop over columns whose sums of products tensor cores take";
  let description = [{
    A nest of rows may sum products for each column of a result whose number of columns is only
    known at run time. If this loop becomes a nest of its own, the rest of the row runs by tiles,
    and the products run on tensor cores:

        onf.for ["n"] in ["N"] {
          %m = onf.fold "j" in "M" … max …
          onf.for ["k"] in ["M"] { %s = onf.fold "d" in "64" { Q[n, d] · K[k, d] }, P[n, k] = exp(%s − %m) }
        }

    becomes

        onf.for ["n"] in ["N"] { %m = onf.fold …, T[n] = %m }
        onf.for ["n", "k"] in ["N", "M"] { %s = …, P[n, k] = exp(%s − T[n]) }

    A loop that compares its sums stays, because sums of two nests may differ in their last bits.

    **Requires** the onf contract. **Establishes** nothing more. **Numerics**: exact, temporaries
    hold values in their own type. **Cost**: a temporary for each value computed from a fold that
    the loop reads.
  }];
}

def SeparateFolds : Pass<"onf-separate-folds", "::mlir::ModuleOp"> {
  let summary = "Move other folds, and computed operands, out of nests that tensor cores take";
  let description = [{
    Tensor cores take a nest with one fold over keys, whose operands are in arrays. This pass moves
    the rest to other nests:

    - Folds that do not read the fold over keys move to a nest before. For example, the norm of a
      row.
    - If all other folds read the fold over keys, that fold moves itself. Temporaries hold the
      states that are read later.
    - A fold that gives a value per key, which every row would recompute, is stored.
    - An operand that is computed and rounded is stored. For example, `bf16(K·e)`.

    This is the law of ψ from right to left: an element of an array equals its definition.

        for b < B, n < N:
          fold k < 128: q ← q + Q²
          fold m < M:
            fold k < 128: s ← s + bf16(Q/√q·g)·bf16(K·e)
            …
          O[b, n, d] = o[d]/l

    becomes

        for b < B, n < N:
          fold k < 128: q ← q + Q²
          q_of_row[b, n] = q
        for b < B, n < N:
          for k < 128: Q_rounded[b, n, k] = bf16(Q/√q_of_row[b, n]·g)
        for b < B, m < M:
          for k < 128: K_rounded[b, m, k] = bf16(K·e)
        for b < B, n < N:
          fold m < M:
            fold k < 128: s ← s + Q_rounded·K_rounded
            …
          O[b, n, d] = o[d]/l

    Without `tiles`, only folds that read no sum of products move. An operand is stored only if the
    nest then runs by tiles. With `tiles`, the other folds move too, if all nests with sums of
    products then run by tiles. Otherwise the same sum, computed both by tiles and without, would
    differ in its last bits, which a comparison may see.

    In nests that run by tiles, or may do so in fewer bits (`plans`), folds that give a value per
    key are stored too. So are reciprocals of divisors that depend on the row or the key alone. A
    quotient becomes a product with the reciprocal. It stays if another nest reads a value computed
    from it, or if such a value may jump: comparisons with finite numbers, integers and user monoids
    jump.

    An array has the axes that its value depends on. If a value depends on an index only by a
    quotient, the quotient is the axis. For example, heads that share keys have one axis of groups.
    If all readers first compute the same value from a state and array elements, that value is
    stored instead of the state. For example, a[i, d] + o[d]. A value is stored only if all its
    reads are in bounds at all indices, whatever conditions surround it.

    The pass keeps predicated nests (with a choice) and nests that run by tiles already, except for
    values per key. It also keeps folds with a state that no temporary holds or that is not read
    element by element.

    **Requires** the onf contract, no lifts. **Establishes** nothing further. **Numerics**: exact
    without `tiles`, because a stored value has the type in which it is used. With `tiles`, such
    quotients are off by less than two units of the last place if divisors and their reciprocals are
    normal numbers (the reciprocal of a divisor below 2⁻¹²⁸ is infinite). **Cost**: copies of the
    kernel, a launch per nest, and memory for the stored values. They are written and read once,
    even for few rows.
  }];
  let options = [Option<"forTiles", "tiles", "bool", "false", "For a GPU whose tensor cores take tiles">,
                 Option<"forPlans", "plans", "bool", "false", "Kernels with tolerances may run by tiles in fewer bits">];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect"];
}

def FuseNests : Pass<"onf-fuse-nests", "::mlir::ModuleOp"> {
  let summary = "Recompute a contraction in the row instead of loading it from a temporary";
  let description = [{
    **Prologue fusion.** If a kernel of tiles reads a temporary that an earlier nest computed for
    the same rows, it recomputes that contraction in its prologue, before its loop over tiles. The
    temporary must have one load, and the kernel must still run by tiles (docs/Architecture.md). For
    example:

        for b < B, block < (N + 63)/64, n < 64:
          fold k < 64 where N > block·64 + n:
            t[d<64] ← t + Q·T[⌊block/2⌋]
          T_rows[block, n, d] = t[d]
        for b < B, n < N:
          fold m < M where m ≥ ⌊n/128⌋·128 and m ≤ n: o[d<64] ← o + (Σ Q·K)·V
          O[n, d] = T_rows[⌊n/64⌋, n - ⌊n/64⌋·64, d] + o[d]

    becomes

        for b < B, n < N:
          fold k < 64: t[d<64] ← t + Q·T[⌊n/128⌋]
          fold m < M where m ≥ ⌊n/128⌋·128 and m ≤ n: o[d<64] ← o + (Σ Q·K)·V
          O[n, d] = t[d] + o[d]

    **Requires** the onf contract, no lifts. **Establishes** nothing further; other kernels are
    unmodified. **Numerics**: exact, because the temporary has the type in which it is used.
    **Cost**: a copy of the kernel for each temporary.
  }];
  let dependentDialects = ["::moa::onf::ONFDialect", "::mlir::arith::ArithDialect"];
}

def ReadThroughCopies : Pass<"onf-read-through-copies", "::mlir::ModuleOp"> {
  let summary = "Read an array itself instead of a copy of some of its rows";
  let description = [{
    Index composition, the ψ-reduction of the Mathematics of Arrays (L. Mullin, A Mathematics of
    Arrays, 1988): if T[i] = A[f(i)], then T[e] = A[f(e)]. With f an index, or a multiple of one,
    along each axis,

        for h < H, i < 1024:
          for d < 64: T[h, i, d] = A[h, ⌊M/1024⌋·i, d]
        for h < H, n < N:
          fold m < 1024: … T[h, m, d] …

    becomes

        for h < H, n < N:
          fold m < 1024: … A[h, ⌊M/1024⌋·m, d] …

    under these conditions:

    - A is an input, or another temporary, of the same type.
    - The last axis is read whole.
    - Every nest that reads T runs only if the nest that stores T runs (`moa.runs`). Otherwise A may
      have no such element.
    - Every nest that runs by tiles still does.

    Copies at other indices are kept, for example those of a sample's rows. So are copies of the
    first indices of a longer axis, because a tile has zeros after them. The copy engine must be
    able to copy A as it copied T.

    **Requires** the onf contract, no lifts. **Establishes** the onf contract; the workspace has no
    such array. **Numerics**: exact. **Cost**: a copy of the kernel for each such temporary;
    elements that are read several times are read at the caller's strides.
  }];
  let dependentDialects = ["::moa::onf::ONFDialect"];
}

def FindForms : Pass<"onf-find-forms", "::mlir::ModuleOp"> {
  let summary = "Find the forms in which each nest can run on a GPU";
  let description = [{
    Matches the forms of lib/Conversion/ONFToDevice/Forms.def on each nest, and stores the list of
    `#onf.form` in the attribute `moa.forms`. A form that applies has data for the cost model,
    another one the reason. For example, for a sum of a row's elements:

        onf.for ["n"] in ["N"] attributes {moa.forms = [
            #onf.form<tiles, "the fold over 'm' holds no contraction; …">,
            #onf.form<warps, "its fold is no sum of products …">,
            #onf.form<columns, "it does not store along its last axis …">,
            #onf.form<lanes, {axes = [#onf.axis<block: 0, warp: 4>], …}>, #onf.form<rows, {}>]} { … }

    The order is that of preference. One thread per row applies to every nest. Lanes along rows are
    for nests to which no form before them applies. A nest whose fold is a scan along an axis has one
    thread per row.

    **Requires** the onf contract; nests are as they will be lowered. **Establishes** `moa.forms` on
    every nest. **Numerics**: exact. **Cost**: one match of each form per nest.
  }];
  let dependentDialects = ["::moa::onf::ONFDialect"];
}

def LiftGpu : Pass<"onf-lift-gpu", "::mlir::ModuleOp"> {
  let summary = "Factor the axes of nests and folds and bind the factors to a GPU";
  let description = [{
    The schedule chooses one of the forms in `moa.forms`, by preference and by the cost model. The
    axes are bound

    - to blocks, warpgroups, warps, registers, lanes and stages for tiles;
    - to blocks and threads for one thread per row;
    - as the data of the form say for other forms.

    `moa.form`, the name of the chosen form, replaces the list. Without tiles, a remark, or a warning
    for products of 16-bit operands, gives the reason.

        onf.for ["h", "i"] in ["H", "N"] attributes {moa.forms = [#onf.form<tiles, {fold = "j", …}>, …]} {
          onf.fold "j" in "M" … }

    becomes

        onf.for ["h", "i"] in ["H", "N"] lift [#onf.axis<block: 0>,
            #onf.axis<block: 0, warpgroup: 2, warp: 4, register: 2, lane: 8>]
            pipeline <consumer = 240, producer = 24, …> attributes {moa.form = "tiles"} {
          onf.fold "j" in "M" lift <sequential: 0, stage: 2, shared: 128> … }

    **Requires** the onf contract, and the forms of `onf-find-forms`. **Establishes** a lift and a form
    on every nest, and a lift on the folds in it.
    **Numerics**: reassociates folds (rule R4) by tiles whose boundaries depend on the index alone.
    **Cost**: a hundred evaluations of a formula per nest.
  }];
  let options = [
    Option<"machine", "machine", "std::string", "\"h200\"",
           "A known GPU, its architecture, or the path of a description">,
    Option<"schedule", "schedule", "std::string", "\"\"",
           "Path of a schedule to use instead of the cost model's">,
    Option<"rank", "rank", "bool", "false", "Print the cost model's estimate of every shape">,
    Option<"print", "print", "bool", "false", "Print the schedule as JSON">
  ];
  let dependentDialects = ["::moa::onf::ONFDialect"];
}

def ConvertONFToDevice : Pass<"convert-onf-to-device", "::mlir::ModuleOp"> {
  let summary = "Lower lifted loops to GPU programs";
  let description = [{
    Every `onf.kernel` becomes a `device.program` with one `device.kernel` per nest.

        onf.for ["n"] in ["N"] lift [#onf.axis<block: 0, thread: 128>] { … }

    becomes

        device.kernel @NAME blocks "(N + 127)/128" threads 128 {
          %block = device.block   %thread = device.thread   … }

    The form `moa.form` lowers the nest. A nest bound to threads runs one row per thread. A nest
    bound to warpgroups becomes a producer that copies tiles and consumers that contract them
    (docs/Architecture.md).

    **Requires** the onf contract, bound to a GPU by `onf-lift-gpu`, with the intervals of
    `onf-derive-intervals` if there are any, and constant extents of carried axes. **Establishes**
    the contract of `device-verify`. **Numerics**: the values of onf in the types it names. Sums are
    in ascending order, and a product is added to a sum in one rounding. In kernels of tiles,
    exponentials, hyperbolic tangents and integer powers of f32 are the hardware's approximations.
    **Cost**: linear in the kernel.
  }];
  let dependentDialects = ["::moa::device::DeviceDialect", "::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ConvertDeviceToNVVM : Pass<"convert-device-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Lower GPU programs to functions in nvvm, llvm, scf and arith";
  let description = [{
    Every `device.kernel` becomes an `llvm.func` that is an nvvm kernel; its program disappears. A
    fragment becomes its registers, one value each, those of 16-bit floats in pairs. Rings and
    barriers become addresses in shared memory. Instructions without an op in NVVM are inline
    assembly.

        device.arrive %empty[%s] : <2, 8>

    becomes

        llvm.inline_asm "…@p mbarrier.arrive.shared::cta.b64 _, [$1];…" %lane, %address

    **Requires** the contract of `device-verify`. **Establishes** functions in arith, math,
    scf, nvvm and llvm whose parameters are those of moa::gpu::Launch, in its order.
    **Numerics**: exact; every operation has the rounding of the device level, and
    reductions its order. Elementary functions are calls of CUDA's libdevice. **Cost**:
    linear in the registers of the fragments.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def ConvertGPUFunctionsToLLVM : Pass<"convert-gpu-functions-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Lower scalar code and control flow of GPU functions to llvm";
  let description = [{
    An operation of arith or math becomes one of llvm; a branch or a loop becomes its blocks.

        %r = scf.if %c -> (f32) { scf.yield %x : f32 } else { scf.yield %y : f32 }
        %s = arith.addf %r, %z : f32

    becomes

        llvm.cond_br %c, ^1, ^2   ^1: llvm.br ^3(%x)   ^2: llvm.br ^3(%y)
        ^3(%r: f32): %s = llvm.fadd %r, %z : f32

    **Requires** the result of `convert-device-to-nvvm`. **Establishes** functions in llvm and nvvm
    alone. **Numerics**: exact. **Cost**: one walk; operations without an equal in llvm go through
    MLIR's conversions, which take several times as long.
  }];
  let dependentDialects = ["::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // MOA_CONVERSION_PASSES_TD
