//===- DeviceTiles.td - tiles, barriers and fragments -------*- tablegen -*-===//
//
// Ops of tiles in shared memory, of barriers and warpgroups, and of fragments in registers.
// Device.td includes this file at its end.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICETILES_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICETILES_TD

include "dialects/Device/IR/DeviceTypes.td"

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Device_SharedOp : Device_Op<"shared"> {
  let summary = "Shared memory for the stages of a ring";
  let description = [{
    One array per operation and block. It holds the stages in order, each with the swizzle of its
    type. Its contents are arbitrary at first.

        %keys = device.shared : !device.ring<2, [128, 64], bf16>
  }];
  let results = (outs Device_RingType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Device_BarriersOp : Device_Op<"barriers"> {
  let summary = "Mbarriers of a block, initialised before any thread uses them";
  let description = [{
    One mbarrier per stage. The arrivals of the type and the announced bytes complete a phase. The
    first phase has parity 0.

    In a kernel with `device.next_block` every block completes an even number of phases of each
    barrier, or an odd number if the barriers are `odd`. Parities in the IR are those of a single
    block. For `odd` barriers, targets wait for the other parity in every second block.

        %full = device.barriers : !device.barriers<2, 1>
        %rows = device.barriers odd : !device.barriers<1, 1>
  }];
  let arguments = (ins UnitAttr:$odd);
  let results = (outs Device_BarriersType:$result);
  let assemblyFormat = "(`odd` $odd^)? attr-dict `:` type($result)";
}

def Device_SpecializeOp : Device_Op<"specialize", [NoRegionArguments, NoTerminator, SingleBlock]> {
  let summary = "Warp specialisation: a producer warpgroup and consumer warpgroups";
  let description = [{
    The first `warpgroups` warpgroups of the block run `consumer`; the last one runs `producer`,
    with one active thread. With `together` all of its 128 threads are active, and its values are
    the same for all of them outside of `device.copy_rows`. Each role has its own number of
    registers per thread. If `condition` is false, the block ends before any setup. The condition is
    the same for all threads of a block.

    Only one thread of a producer that works `together` executes a `device.copy`. So before a copy it
    needs `device.sync_warpgroup`, or a later phase may overtake the wait of another warp.

        device.specialize if %chosen consumers 2 registers 240 { … } producer registers 24 { … }
        device.specialize consumers 1 registers 208 { … } producer together registers 40 { … }

    Constraints: the block has 128·(warpgroups + 1) threads (C1); a kernel with `device.next_block`
    has a producer of one thread (C2).
  }];
  let arguments = (ins I64Attr:$warpgroups, I64Attr:$consumer_registers,
                       I64Attr:$producer_registers, Optional<I1>:$condition, UnitAttr:$together);
  let regions = (region SizedRegion<1>:$consumer, SizedRegion<1>:$producer);
  let assemblyFormat = [{
    (`if` $condition^)? `consumers` $warpgroups `registers` $consumer_registers $consumer
    `producer` (`together` $together^)? `registers` $producer_registers $producer attr-dict
  }];
  let hasVerifier = 1;
}

def Device_AwaitConsumersOp : Device_Op<"await_consumers"> {
  let summary = "Waits until the consumers have finished the previous block";
  let description = [{
    In a kernel with `device.next_block` the producer may be ahead of the consumers. This op waits
    until all consumer warps have reached the end of the previous block, and then passes them the
    numbers of the next one. Copies before it go into stages whose barriers the producer has waited
    for. Copies after it may overwrite everything that consumers read of the previous block.

        device.await_consumers

    Constraints: it occurs once, in the producer's own block, in a kernel with `device.next_block`
    (C1); no copy before it completes `odd` barriers, because the producer does not wait until those
    stages are free (C2).
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Device_WarpgroupOp : Device_Op<"warpgroup", [Pure]> {
  let summary = "This warpgroup's number in its block";
  let description = [{
    The number is 0 for threads 0 to 127, and so on. `again` recomputes it here, so that values
    derived from it occupy no register before this operation.

        %w = device.warpgroup again
  }];
  let arguments = (ins UnitAttr:$again);
  let results = (outs Index:$result);
  let assemblyFormat = "(`again` $again^)? attr-dict";
}

def Device_KeptOp : Device_Op<"kept", [SameOperandsAndResultType,
                                       MemoryEffects<[MemRead]>]> {
  let summary = "A block-uniform number, kept in shared memory";
  let description = [{
    A role reads a number that was computed before the roles. One thread has written it to shared
    memory when barriers were initialised, so it occupies no register until this operation.

        %again = device.kept %tile

    Constraints: the operand is defined in the kernel's own block, before `device.specialize` (C1);
    this operation is in a role (C2).
  }];
  let arguments = (ins Index:$operand);
  let results = (outs Index:$result);
  let assemblyFormat = "$operand attr-dict";
  let hasVerifier = 1;
}

def Device_CollectOp : Device_Op<"collect", [SingleBlock, AttrSizedResultSegments,
                                             RecursiveMemoryEffects]> {
  let summary = "Builds lists of the indices at which conditions hold, in shared memory";
  let description = [{
    The threads of the block divide the indices lower ≤ t < upper among them and evaluate the body
    at each. The body yields one boolean per list. A list holds the indices at which its boolean is
    true, ascending; `counts` are the lengths. `upper` − `lower` is at most the lists' capacity.
    When the op returns, all threads see the lists.

    For example, tiles that a mask leaves partly or wholly present:

        %partial, %full, %partials, %fulls = device.collect %lower to %upper
          : (!device.members<2048>, !device.members<2048>), (index, index) {
        ^bb0(%t: index):
          …
          device.yield %some, %all : i1, i1
        }

    Constraints:

    - C1: It is in the kernel's own block, before `device.specialize`.
    - C2: The body takes one index.
    - C3: The body yields one boolean per list, and each list has one count.
    - C4: All lists have the same capacity.
  }];
  let arguments = (ins Index:$lower, Index:$upper);
  let results = (outs Variadic<Device_MembersType>:$lists, Variadic<Index>:$counts);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $lower `to` $upper attr-dict `:` `(` type($lists) `)` `,` `(` type($counts) `)` $body
  }];
  let hasVerifier = 1;
}

def Device_MemberOp : Device_Op<"member", [Pure]> {
  let summary = "An index in a list";
  let description = [{
    0 ≤ `place` < the list's capacity. An entry after the last member is arbitrary.

        %t = device.member %full[%k] : <2048>

    Constraint: the list is a result of a `device.collect` of the same kernel (C1).
  }];
  let arguments = (ins Device_MembersType:$list, Index:$place);
  let results = (outs Index:$result);
  let assemblyFormat = "$list `[` $place `]` attr-dict `:` type($list)";
  let hasVerifier = 1;
}

def Device_CopyOp : Device_Op<"copy", [AttrSizedOperandSegments]> {
  let summary = "Asynchronous copy of a tile from global memory into a stage of a ring (TMA)";
  let description = [{
    `coordinates` are indices of all axes but the last. The tile starts there. It spans the last
    axis, from its start or from `column`, and the axis `row_axis`. Elements outside the array are
    filled with zeros. The copy arrives on the barrier once and announces its bytes, which complete
    the phase when they have landed. One thread of the role does this. A workspace array was stored
    by an earlier kernel.

    With `first` and `count`, the copy fills only `count` rows of the stage, from row `first` on. A
    stage may consist of several such parts, for example of pages. Both are multiples of 8.

    With `step` s, an expression over the symbols (1 by default), rows are every s-th index of their
    axis, and the coordinate counts these rows. So row r of the tile at coordinate c is the index (c
    + r)·s. The value of s is at least 1.

        device.copy %K[%b, %h, %row] rows 2 to %keys[%stage] signals %full[%stage]
          : <[B, H, M, 64], bf16>, <2, [128, 64], bf16>, <2, 1>
        device.copy %K[%b, %h, %row] rows 2 step "M/1024" to %keys[%stage] signals %full[%stage]
          : <[B, H, M, 64], bf16>, <2, [128, 64], bf16>, <2, 1>
        device.copy %K[%page, %zero] rows 1 to %keys[%stage] first %r count 16 signals %full[%stage]
          : <[P, 16, 64], bf16>, <2, [128, 64], bf16>, <2, 8>

    Constraints:

    - C1: The array is an input or of the workspace, and has the ring's element type.
    - C2: All axes but the last have coordinates, and `row_axis` is one of them.
    - C3: A step is at least 1 if it is constant.
    - C4: `first` and `count` come together. The count is a multiple of 8 that divides the ring's rows.
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array,
                       Variadic<Index>:$coordinates, Optional<Index>:$column, I64Attr:$row_axis,
                       MoA_ExprAttr:$step, Arg<Device_RingType, "", [MemWrite]>:$ring, Index:$stage,
                       Device_BarriersType:$barriers, Index:$slot, Optional<Index>:$first,
                       OptionalAttr<I64Attr>:$count);
  let builders = [
    OpBuilder<(ins "::mlir::Value":$array, "::mlir::ValueRange":$coordinates, "::mlir::Value":$column,
                   "::mlir::IntegerAttr":$rowAxis, "::moa::ExprAttr":$step, "::mlir::Value":$ring,
                   "::mlir::Value":$stage, "::mlir::Value":$barriers, "::mlir::Value":$slot), [{
      build($_builder, $_state, array, coordinates, column, rowAxis, step, ring, stage, barriers, slot,
            ::mlir::Value(), ::mlir::IntegerAttr());
    }]>];
  let assemblyFormat = [{
    $array `[` $coordinates `]` (`columns` $column^)? `rows` $row_axis `` custom<Step>($step) `to` $ring `[` $stage `]`
    (`first` $first^ `count` $count)? `signals` $barriers `[` $slot `]` attr-dict
    `:` type($array) `,` type($ring) `,` type($barriers)
  }];
  let extraClassDeclaration = [{
    /// Returns the number of rows that the copy fills.
    int64_t getTileRows() { return getCount().value_or(getRing().getType().getRows()); }
    int64_t getBytes() {
      RingType ring = getRing().getType();
      return getTileRows() * ring.getColumns() * ring.getElementBytes();
    }
  }];
  let hasVerifier = 1;
}

def Device_CopyRowsOp : Device_Op<"copy_rows", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Asynchronous copy of a tile whose rows have addresses of their own (cp.async)";
  let description = [{
    The body computes, for each row r of the stage, the offset of the row's first element and
    whether the row is present. The first `columns` elements of a present row are copied from there.
    All other elements of the stage become zero. Offsets count elements and are multiples of 16
    bytes.

    The threads of a producer that works `together` share the rows in units of 16 bytes. Each arrives
    on the barrier when its copies have landed, so a phase takes 128 arrivals. A wait for this barrier
    also orders the rows before contractions that read them.

        device.copy_rows %K columns 64 to %keys[%stage] signals %full[%stage]
          : <[P, H, 64], bf16>, <2, [128, 64], bf16>, <2, 128> {
        ^bb0(%r: index):
          …
          device.yield %offset, %present : index, i1
        }

    Constraints:

    - C1: The array is an input or of the workspace, and has the ring's element type.
    - C2: The body takes one index and yields an index and a boolean.
    - C3: `columns` is a multiple of 16 bytes, at most the ring's columns.
    - C4: It is in a producer that works `together`.
    - C5: The barriers take 128 arrivals.
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array, I64Attr:$columns,
                       Arg<Device_RingType, "", [MemWrite]>:$ring, Index:$stage,
                       Device_BarriersType:$barriers, Index:$slot);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $array `columns` $columns `to` $ring `[` $stage `]` `signals` $barriers `[` $slot `]` attr-dict
    `:` type($array) `,` type($ring) `,` type($barriers) $body
  }];
  let extraClassDeclaration = [{
    /// Returns the threads that share the rows, which is also the number of arrivals.
    static constexpr int64_t kThreads = 128;
    YieldOp getYield();
  }];
  let hasVerifier = 1;
}

def Device_WaitOp : Device_Op<"wait"> {
  let summary = "Waits until a barrier has completed a phase";
  let description = [{
    Returns when the phase of the given parity is complete. Then everything written before the
    arrivals, and copied into the stage, is visible. A wait for a completed phase returns at once,
    so a barrier may be at most one phase ahead.

        device.wait %full[%stage] parity %parity : <2, 1>
  }];
  let arguments = (ins Device_BarriersType:$barriers, Index:$slot, Index:$parity);
  let assemblyFormat = "$barriers `[` $slot `]` `parity` $parity attr-dict `:` type($barriers)";
}

def Device_ArriveOp : Device_Op<"arrive"> {
  let summary = "One arrival per warp on a barrier";
  let description = [{
    One lane of every warp that executes this arrives on the barrier. The phase is complete when the
    type's number of arrivals has come.

        device.arrive %empty[%stage] : <2, 8>
  }];
  let arguments = (ins Device_BarriersType:$barriers, Index:$slot);
  let assemblyFormat = "$barriers `[` $slot `]` attr-dict `:` type($barriers)";
}

def Device_FillOp : Device_Op<"fill", [Pure]> {
  let summary = "A fragment of one value";
  let description = [{
    Every element that a thread holds is that thread's `value`. The first value of a state names it
    as `state`, so that equal fills of two states are not merged into one.

        %z = device.fill %zero {state = "O"} : f32 -> !device.fragment<…>

    Constraint: the value has the fragment's element type (C1).
  }];
  let arguments = (ins AnyType:$value, OptionalAttr<StrAttr>:$state);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Device_ContractOp : Device_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "Starts c + a · b on the tensor cores, for a warpgroup (wgmma)";
  let description = [{
    c[i, j] + Σ_k a[i, k] · b[k, j].

    - `a` is a fragment of floats in the accumulator's layout, or 64 rows of a ring's stage from row
      `a_row`.
    - `b` is a stage of a ring. k runs along its rows, or along its columns with `transposed`. With
      `depth`, k runs over only the first `depth` columns.
    - `c` is the accumulator. Without it the sum starts at zero.

    The contraction is asynchronous. The result, and `c`, may be used only after `device.await`,
    except by a contraction that continues the sum: contractions of a warpgroup run in order.

    Products of floats of 16 and 8 bits are exact. Products of 16-bit floats are added in f32, in an
    order of the hardware's; those of 8-bit floats are added with fewer bits than f32 has. Integers
    of 8 bits are multiplied and added in i32, which wraps.

    The accumulator holds pairs of neighbours, but an operand of 8 bits holds groups of four. So a
    fragment `a` of 8 bits needs an *interleaved* `b`: its column k is stored at π(k), which
    permutes the bits of k mod 16 from b₃ b₂ b₁ b₀ to b₂ b₁ b₃ b₀ (`getInterleaved`).

        %s = device.contract %queries[…] rows %row by %keys[%stage] transposed
          : !device.ring<1, [64, 64], bf16>, <2, [128, 64], bf16> -> !device.fragment<…>

    Constraints:

    - C1: Extents agree.
    - C2: `c`, the result and a fragment `a` have the accumulator's layout.
    - C3: `a` and `b` have one element type: a 16-bit float or f8E4M3FN with a result of f32, or i8
      with a result of i32.
    - C4: `b` of 8 bits is transposed. A fragment `a` of 8 bits has floats and a multiple of 32
      columns.
    - C5: A `depth` needs `a` in a ring and `transposed`. It is a multiple of 32 bytes, and at most
      the extent of k.
    - C6: A `c` that is the result of a contraction has no other use.
  }];
  let arguments = (ins AnyType:$a, Optional<Index>:$a_row, Device_RingType:$b,
                       Index:$b_stage, Optional<Device_FragmentType>:$c,
                       UnitAttr:$transposed, OptionalAttr<I64Attr>:$depth);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = [{
    $a (`rows` $a_row^)? `by` $b `[` $b_stage `]` (`transposed` $transposed^)?
    (`depth` $depth^)? (`plus` $c^ `:` type($c))? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the number of instructions. Each takes 32 bytes of the rows of `a`.
    int64_t getSteps();
    /// Returns π(k), the position of column k of an interleaved `b`.
    static int64_t getInterleaved(int64_t k) {
      return (k & ~15) | (k << 1 & 12) | (k >> 2 & 2) | (k & 1);
    }
    bool isInterleaved() { return !getARow() && getB().getType().getElementBytes() == 1; }
  }];
}

def Device_ContractFragmentsOp : Device_Op<"contract_fragments", [Pure]> {
  let summary = "c + a · b of fragments, warp by warp on the tensor cores (mma.sync)";
  let description = [{
    c[i, j] + Σ_k a[i, k] · b[k, j]. All operands are in registers and the op is synchronous: every
    warp contracts the elements that it holds, by mma.sync over the tiles of the layouts. Without
    `c` the sum starts at zero. Products of 16-bit floats are exact and added in f32 in an order of
    the hardware's. Products of f64 are fused into the sum in order of k.

    The layouts are those of the instruction. A warp's registers may hold any number of tiles along
    every axis (PTX ISA 8.6, 9.7.14.5). With g = lane / 4 and t = lane mod 4, element i of a lane is

    | elements, tile      | a                             | b                      | c                    |
    |---------------------|-------------------------------|------------------------|----------------------|
    | f16, bf16 16×8×16   | g + 8·(i/2 mod 2), 2t + i mod 2 + 8·(i/4) | 2t + i mod 2 + 8·(i/2), g | g + 8·(i/2), 2t + i mod 2 |
    | f16, bf16 16×8×8    | g + 8·(i/2), 2t + i mod 2     | 2t + i mod 2, g        | g + 8·(i/2), 2t + i mod 2 |
    | f64 8×8×4           | g, t                          | t, g                   | g, 2t + i            |

    The rows of `a` and the result, and the columns of `b` and the result, may be distributed over
    warps. An operand that is not distributed is replicated in every warp.

        %s = device.contract_fragments %q by %k plus %c : !a, !b -> !sums

    Constraints:

    - C1: Extents agree.
    - C2: The layouts of `a`, `b` and the result are tiles of one instruction.
    - C3: `a` and `b` have one element type: f16 or bf16 with a result of f32, or f64 with a result
      of f64.
    - C4: Every warp holds all k of `a` and `b`, and of their rows and columns those that it holds
      of the result.
  }];
  let arguments = (ins Device_FragmentType:$a, Device_FragmentType:$b,
                       Optional<Device_FragmentType>:$c);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = [{
    $a `by` $b (`plus` $c^ `:` type($c))? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Device_LoadFragmentOp : Device_Op<"load_fragment"> {
  let summary = "Reads a fragment from a tile in shared memory (ldmatrix)";
  let description = [{
    Element [i, j] is element [row + i, column + j] of the stage. With `transposed` it is [row + j,
    column + i]. Every warp reads the elements that it holds, 8 × 8 at a time (ldmatrix, PTX ISA
    8.6, 9.7.14.5.15), with the tile's swizzle. The op is synchronous. In the layout of wgmma's
    accumulator the result is an operand `a` of `device.contract`; in a layout of mma.sync it is an
    operand of `device.contract_fragments`.

        %q = device.load_fragment %queries[%stage] at %row, %zero : !device.ring<…> -> !a

    Constraints:

    - C1: The elements are floats of the ring's type.
    - C2: Of every 8 × 8 elements a lane holds two neighbours: index lane / 4 along one axis,
      2·(lane mod 4) and the next one along the other.
    - C3: The fragment has at most as many rows and columns as the tile.

    `row` and `column` are multiples of 8.
  }];
  let arguments = (ins Arg<Device_RingType, "", [MemRead]>:$ring, Index:$stage, Index:$row,
                       Index:$column, UnitAttr:$transposed);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = [{
    $ring `[` $stage `]` `at` $row `,` $column (`transposed` $transposed^)? attr-dict
    `:` type($ring) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Device_ConvertLayoutOp : Device_Op<"convert_layout", [Pure]> {
  let summary = "The same fragment in another layout";
  let description = [{
    Each place of the result gets its element from a place that holds it: the same thread if
    possible, else another lane of the warp. The source places follow from the digits of the two
    layouts. A register that stays in its thread is only renamed. A register that moves between
    lanes takes one shuffle per source register.

        %y = device.convert_layout %x : !device.fragment<…> -> !device.fragment<…>

    Constraints: shapes and element types agree (C1); every warp holds in `fragment` the elements
    that it holds in the result (C2). Elements that move between warps go through memory: an output,
    or a kernel whose layouts agree on the warps' digits.
  }];
  let arguments = (ins Device_FragmentType:$fragment);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Device_AwaitOp : Device_Op<"await", [AllTypesMatch<["fragment", "result"]>]> {
  let summary = "Waits for a contraction, with at most `pending` later ones in flight";
  let description = [{
    When this returns, the fragment is complete. At most `pending` contractions that were started
    after it may still run (wgmma.wait_group).

        %done = device.await %s pending 1 : !device.fragment<…>
  }];
  let arguments = (ins Device_FragmentType:$fragment, I64Attr:$pending);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$fragment `pending` $pending attr-dict `:` type($result)";
}

def Device_ClearUnseenOp : Device_Op<"clear_unseen"> {
  let summary = "Zeroes the rows of a stage that are masked out for all consumers";
  let description = [{
    Every consumer warpgroup executes this with a fragment of booleans `seen`, 64 by the stage's
    rows. Row j of the stage is overwritten with zeros unless seen[i, j] holds for some i of some
    warpgroup. Afterwards all consumers see the result. This is needed because a weight of 0 does
    not mask a row that holds NaN. With `interleaved`, columns are zeroed: column j is the one
    stored at π(j) (see `device.contract`).

        device.clear_unseen %values[%stage] unless %seen : <2, [128, 64], bf16>, !device.fragment<…>

    Constraint: `seen` has one column per row of the ring, at most 128. With `interleaved` it has
    one per column, and the ring has 128 columns of 8 bits (C1).
  }];
  let arguments = (ins Device_RingType:$ring, Index:$stage, Device_FragmentType:$seen,
                       UnitAttr:$interleaved);
  let assemblyFormat = [{
    $ring `[` $stage `]` (`interleaved` $interleaved^)? `unless` $seen attr-dict `:` type($ring) `,` type($seen)
  }];
  let hasVerifier = 1;
}

def Device_StoreTileOp : Device_Op<"store_tile"> {
  let summary = "Stores a fragment to an output through shared memory (bulk store)";
  let description = [{
    1. The warpgroup writes its fragment into 64 rows of a ring's stage, from row `row`.
    2. Its first thread starts a bulk store of these rows to the output, which runs asynchronously.

    `coordinates` are indices of all axes of the output but the last. Rows lie along `row_axis`,
    columns along the last axis from its start. Elements outside the output are not written. The
    rows in shared memory may be overwritten only after `device.await_stores`. The kernel does not
    read the stored elements again, so the store may end with the kernel.

        device.store_tile %o through %ring[%zero] from %row to %O[%b, %h, %n] rows 2
          : !device.fragment<…>, <1, [128, 64], bf16>, <[B, H, N, 64], bf16>

    Constraints:

    - C1: The fragment has 64 rows, and elements of 16 bits of the output's and the ring's type.
    - C2: The fragment has at most as many columns as the ring.
    - C3: All axes but the last have coordinates.
  }];
  let arguments = (ins Device_FragmentType:$fragment, Device_RingType:$ring,
                       Index:$stage, Index:$row,
                       Arg<MoA_ArrayType, "", [MemWrite]>:$array,
                       Variadic<Index>:$coordinates, I64Attr:$row_axis);
  let assemblyFormat = [{
    $fragment `through` $ring `[` $stage `]` `from` $row
    `to` $array `[` $coordinates `]` `rows` $row_axis attr-dict
    `:` type($fragment) `,` type($ring) `,` type($array)
  }];
  let hasVerifier = 1;
}

def Device_AwaitStoresOp : Device_Op<"await_stores"> {
  let summary = "Waits until this warpgroup's bulk stores have read shared memory";
  let description = [{
    The thread that started the stores (`device.store_tile`) waits until all of them have read their
    rows. Then only its warp knows this. Before other warps overwrite the rows they need
    `device.sync_warpgroup`, or a barrier on which the first warp arrives.

        device.await_stores
  }];
  let assemblyFormat = "attr-dict";
}

def Device_PublishOp : Device_Op<"publish"> {
  let summary = "Stores a fragment in shared memory for the other blocks of the cluster";
  let description = [{
    Every consumer warpgroup stores its fragment in the memory of a ring, from byte `at` on. The
    stages of the ring hold no tiles afterwards. All contractions that read them must be awaited, and
    no copy into them may follow. Other blocks read the fragment by `device.load_peer`, after
    `device.sync_cluster`.

        %p = device.publish %sums in %keys at 1024 : !device.fragment<…>, <2, [128, 64], bf16>

    Constraints:

    - C1: It is in a consumer of a kernel with clusters.
    - C2: The elements are f32 or i32.
    - C3: `at` is a multiple of 16, and the ring has room for all registers of the consumers.
    - C4: No other fragment is published at the same place.
  }];
  let arguments = (ins Device_FragmentType:$fragment, Arg<Device_RingType, "", [MemWrite]>:$ring, I64Attr:$at);
  let results = (outs Device_PublishedType:$result);
  let assemblyFormat = "$fragment `in` $ring `at` $at attr-dict `:` type($fragment) `,` type($ring)";
  let extraClassDeclaration = [{
    /// Returns the bytes of the registers of all consumers.
    int64_t getBytes();
  }];
  let hasVerifier = 1;
}

def Device_SyncClusterOp : Device_Op<"sync_cluster"> {
  let summary = "A barrier of the consumers of all blocks of a cluster";
  let description = [{
    Each warp continues when all consumers of the cluster have arrived, and then sees the fragments
    that they published. A second barrier after the last `device.load_peer` keeps the shared memory
    of each block alive until others have read it.

        device.sync_cluster

    Constraint: it is in a consumer of a kernel with clusters (C1).
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Device_LoadPeerOp : Device_Op<"load_peer", [MemoryEffects<[MemRead]>]> {
  let summary = "Reads a fragment that a block of the cluster has published";
  let description = [{
    The result is the fragment that the same warpgroup of the block with this rank has published. Only
    the block of rank 0 reads, so that a cluster combines its fragments in order of ranks.

        %x = device.load_peer %p of %rank : !device.fragment<…>

    Constraints: it is in a consumer of a kernel with clusters (C1); the operand is the result of a
    `device.publish` of a fragment of this type (C2).
  }];
  let arguments = (ins Device_PublishedType:$published, Index:$rank);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$published `of` $rank attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Device_SyncWarpgroupOp : Device_Op<"sync_warpgroup"> {
  let summary = "A barrier of the four warps of a warpgroup";
  let description = [{
    Each warp continues when all four have arrived, and then sees the writes of all of them. For
    example, rows that a bulk store has read may be overwritten after

        device.await_stores
        device.sync_warpgroup
  }];
  let assemblyFormat = "attr-dict";
}

def Device_MapOp : Device_Op<"map", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "Applies a scalar function to every element of fragments";
  let description = [{
    r[i, j] = f(x[i, j], …, i, j). The body's arguments are one scalar per input, then the element's
    index on each axis. It yields one scalar per result. An input of rank 1 gives all elements of a
    row the row's value. An input in the layout of per-thread partials gives every element the value
    of its row and lane.

        %e = device.map(%s, %m) over #device.layout<…> : (!s, !m) -> !s {
        ^bb0(%x: f32, %max: f32, %i: index, %j: index):
          %0 = arith.subf %x, %max : f32
          %1 = device.exp2 %0 : f32
          device.yield %1 : f32
        }

    Constraints:

    - C1: Inputs have `layout`, its slice of axis 0, or its per-thread partials of axis 1. Results
      have `layout`.
    - C2: The body takes a scalar of each input's element type, then one index per axis.
    - C3: The body yields one scalar of each result's element type.
  }];
  let arguments = (ins Variadic<Device_FragmentType>:$inputs, Device_LayoutAttr:$layout);
  let results = (outs Variadic<Device_FragmentType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `over` $layout attr-dict `:` functional-type($inputs, $results) $body
  }];
  let hasVerifier = 1;
}

def Device_ThreadOffsetOp : Device_Op<"thread_offset", [Pure]> {
  let summary = "The distance of a map's index from that of the thread's first element";
  let description = [{
    Along one axis, the elements of a thread differ in the digits bound to registers. The result is
    the contribution of these digits to the index. It is a constant once the loop over the registers
    is unrolled, so a comparison with a per-thread value needs no register for the index.

        %d = device.thread_offset %j

    Constraint: the operand is an index argument of the enclosing map (C1).
  }];
  let arguments = (ins Index:$index);
  let results = (outs Index:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}

def Device_ReduceOp : Device_Op<"reduce", [Pure]> {
  let summary = "⊕ over the columns of a fragment";
  let description = [{
    r[i] = ⊕ over j of x[i, j], in two steps:

    1. Every thread combines its registers of a row in order of the columns: those with even and odd
       numbers separately, then both partials.
    2. The lanes that share the row combine their partials pairwise, nearest lanes first.

    A result in the layout of per-thread partials (`LayoutAttr::getThreadPart`) omits step 2: its
    column l is the partial of the row's l-th lane.

    Sums of f16 may have a result of f32. A thread then adds its pairs of neighbours in f16
    (add.rn.f16x2), those with even and odd numbers separately, then both partials. It adds the two
    halves in f32.

        %m = device.reduce max %s : !device.fragment<[64, 128], f32, …> -> !device.fragment<[64], f32, …>

    Constraints:

    - C1: The result has the layout of the fragment's rows, or of their per-thread partials.
    - C2: The result has the fragment's element type. It may be f32 for per-thread partials of f16
      sums whose neighbouring columns are in two registers of a thread.
    - C3: The fragment has rows and columns.
    - C4: The monoid is a named one.
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, Device_FragmentType:$fragment);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "`` $monoid $fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
}

def Device_AnyOp : Device_Op<"any", [Pure, AllTypesMatch<["condition", "result"]>]> {
  let summary = "True in a warp if a condition holds for any of its elements (a vote)";
  let description = [{
    Every element of the result is the disjunction of the elements of `condition` that the same warp
    holds.

        %some = device.any %moved : !device.fragment<[64], i1, …>

    Constraint: `condition` is a fragment of booleans (C1).
  }];
  let arguments = (ins Device_FragmentType:$condition);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$condition attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Device_OpaqueOp : Device_Op<"opaque", [SameOperandsAndResultType,
                                            MemoryEffects<[MemWrite]>]> {
  let summary = "The same scalar, hidden from the compiler (an optimization barrier)";
  let description = [{
    Values computed from the result cannot be computed before this operation, and the compiler does
    not see how the operand was computed. This keeps it from hoisting many values out of a loop,
    which would fill registers. For example, the addresses of a tile's elements follow from a few
    strides, and its masks from the bits of one word.

        %s = device.opaque %stride : index
  }];
  let arguments = (ins AnyTypeOf<[Index, I32, I64, F32]>:$operand);
  let results = (outs AnyTypeOf<[Index, I32, I64, F32]>:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Device_ReciprocalOp : Device_Op<"reciprocal", [Pure, SameOperandsAndResultType]> {
  let summary = "1/x, by the hardware's approximation";
  let description = [{
    The error is at most one unit in the last place. Subnormal arguments and results are flushed to
    zero (rcp.approx.ftz.f32, PTX ISA 9.7.3.13). With `subnormals` they are not (rcp.approx.f32),
    for a few more instructions.

        %y = device.reciprocal %x subnormals : f32
  }];
  let arguments = (ins F32:$operand, UnitAttr:$subnormals);
  let results = (outs F32:$result);
  let assemblyFormat = "$operand (`subnormals` $subnormals^)? attr-dict `:` type($result)";
}

def Device_IfAnyOp : Device_Op<"if_any", [SingleBlock, NoRegionArguments,
                                          RecursiveMemoryEffects]> {
  let summary = "Computes fragments only in the warps that need them";
  let description = [{
    A warp runs the body if `condition` holds for any of its elements. Its part of the results is
    then the body's yield. Other warps skip the body, and their part is `otherwise`. The body reads
    fragments of the same warpgroup only. For example, accumulators are rescaled only if a running
    maximum grew:

        %x = device.if_any %needed else (%old) : … {
          …
          device.yield %new : …
        }

    Constraints: `condition` is of booleans (C1); results, `otherwise` and yields have the same
    types (C2).
  }];
  let arguments = (ins Device_FragmentType:$condition,
                       Variadic<Device_FragmentType>:$otherwise);
  let results = (outs Variadic<Device_FragmentType>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $condition `else` `(` $otherwise `)` attr-dict
    `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
}

def Device_YieldOp : Device_Op<"yield", [Terminator, Pure,
                                        ParentOneOf<["MapOp", "IfAnyOp", "CollectOp", "CopyRowsOp"]>]> {
  let summary = "Ends the body of a map, a conditional, a collection or a copy of rows";
  let description = [{
    In a map it yields one scalar per result, in a conditional the fragments of the results, in a
    collection one boolean per list, in a copy of rows an offset and a boolean.

        device.yield %1 : f32
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
}

#endif // MOA_DIALECTS_DEVICE_IR_DEVICETILES_TD
