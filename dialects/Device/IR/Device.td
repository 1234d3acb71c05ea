//===- Device.td - programs for a GPU -----------------------*- tablegen -*-===//
//
// What one thread of a grid does. Scalar operations are those of arith and math,
// control flow that of scf, per-thread arrays are memrefs in the private memory
// space; this dialect adds what those do not have: kernels with their launch,
// the caller's arrays, the coordinates of a thread, and the work of a warpgroup on
// tiles: fragments in registers, rings in shared memory, their copies and barriers.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICE_TD

include "dialects/Device/IR/DeviceTypes.td"

def Device_ProgramOp : Device_Op<"program",
    [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One entry point: kernels that are launched one after the other";
  let description = [{
    Attributes and block arguments as for `onf.kernel`: the inputs, then the outputs. Behind
    them may stand arrays of the workspace, `workspace_types`, row-major without gaps and with
    arbitrary contents at first: what one kernel stores there a later one loads. The body
    holds `device.kernel`s only, in the order of their launches; each starts when the one
    before has finished.

        device.program @sdpa attributes {symbols = ["N"], …} {
        ^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
          device.kernel @sdpa_0 blocks "(N + 127)/128" threads 128 { … }
        }

    Constraints: one argument per input, output and array of the workspace (C1), arrays of the
    declared types (C2); kernels only (C3); an array of the workspace has elements of i64,
    i8 or a float, and a name (C4).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$symbols,
                       StrArrayAttr:$requires, StrArrayAttr:$arg_names,
                       StrArrayAttr:$result_names, TypeArrayAttr:$result_types,
                       OptionalAttr<StrArrayAttr>:$workspace_names,
                       OptionalAttr<TypeArrayAttr>:$workspace_types);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The names of the inputs, the outputs and the arrays of the workspace.
    ::llvm::SmallVector<::llvm::StringRef> getAllNames();
    bool isInput(::mlir::Value array);
    bool isWorkspace(::mlir::Value array);
    /// Whether a kernel copies tiles of an input or to an output. Hosts check first that its elements begin at whole 16
    /// bytes, are adjacent along the last axis, and whole 16 bytes apart along others.
    bool hasTiles(::mlir::Value array);
    /// Appends an array to the workspace.
    ::mlir::Value addWorkspace(::llvm::StringRef name, ArrayType type);
  }];
}

def Device_KernelOp : Device_Op<"kernel",
    [HasParent<"ProgramOp">, SingleBlock, NoTerminator, AutomaticAllocationScope]> {
  let summary = "What every thread of one launch does";
  let description = [{
    A grid of `blocks` blocks of `threads` threads; nothing is launched when there are none.

        device.kernel @name blocks "B*H*((N + 127)/128)" threads 128 { … }

    Constraints: `threads` is a multiple of 32 and at most 1024 (C1); `blocks` is an expression
    over the program's symbols (C2); the body has no arguments (C3).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$blocks, I64Attr:$threads);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `blocks` $blocks `threads` $threads attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Device_BlockOp : Device_Op<"block", [Pure]> {
  let summary = "This block's number in the grid";
  let description = [{
    0 ≤ block < `blocks` of the kernel, the same for all threads of a block.

        %b = device.block
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Device_NextBlockOp : Device_Op<"next_block"> {
  let summary = "The number of the next of the blocks that this one stands for";
  let description = [{
    A grid of at most `residents` blocks does the work of all `blocks` of the kernel, which are numbered as by `device.block`:
    each begins with its own number and, when it has done that block, goes on with the least number that none has yet, by a
    counter that starts at 0. What stands in front of the roles and depends on this number the producer finds out alone, and
    gives consumers the numbers of it that they read (see `device.await_consumers`). Barriers are initialised once, so that phases go on from block to block (see `device.barriers`).
    Results are those of a grid of all blocks, whose order is any.

        %block = device.next_block %fetched[%slot] below %blocks residents 132 : <[133], i32>

    Constraints: those of `device.signal` for the counter (C1 to C3); it stands in a kernel's own block, in front of
    `device.specialize`, whose producer has a `device.await_consumers`, and alone of its kind (C4); `residents` is at least 1
    (C5); in front of roles is neither what is stored, signalled or listed nor what is of one thread or of the grid (C6).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Index:$offset, Index:$blocks,
                       I64Attr:$residents);
  let results = (outs Index:$result);
  let assemblyFormat = [{
    $array `[` $offset `]` `below` $blocks `residents` $residents attr-dict `:` type($array)
  }];
  let hasVerifier = 1;
}

def Device_ThreadOp : Device_Op<"thread", [Pure]> {
  let summary = "This thread's number in its block";
  let description = [{
    0 ≤ thread < `threads` of the kernel.

        %t = device.thread
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Device_SymbolOp : Device_Op<"symbol", [Pure]> {
  let summary = "An integer expression over the program's symbols and strides";
  let description = [{
    Stride symbols are named `<array>.s<axis>` and count elements. The value is the same for
    all threads.

        %0 = device.symbol "2*Q.s1 + N"

    Constraint: `expr` is an integer expression (C1).
  }];
  let arguments = (ins StrAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "$expr attr-dict";
  let hasVerifier = 1;
}

def Device_ScalarOp : Device_Op<"scalar", [Pure]> {
  let summary = "The value of an argument of rank zero, passed with the launch";
  let description = [{
    Passed by value, so that no memory is read.

        %scale = device.scalar %s : <[], f32> -> f32

    Constraints: the array is a parameter of the program (C1), an input (C2), of the result's
    element type (C3) and of rank 0 (C4).
  }];
  let arguments = (ins MoA_ArrayType:$array);
  let results = (outs AnyType:$result);
  let assemblyFormat = "$array attr-dict `:` type($array) `->` type($result)";
  let hasVerifier = 1;
}

def Device_Exp2Op : Device_Op<"exp2", [Pure, SameOperandsAndResultType]> {
  let summary = "2^x by the hardware's approximation";
  let description = [{
    Relative error at most 2^-22, subnormal results flushed to zero (ex2.approx.ftz.f32, PTX
    ISA 9.7.3.20).

        %y = device.exp2 %x : f32
  }];
  let arguments = (ins F32:$operand);
  let results = (outs F32:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Device_HalfFromBitsOp : Device_Op<"half_from_bits", [Pure]> {
  let summary = "The f16 whose bits are 16·x, of x·2⁻²⁴";
  let description = [{
    The operand is x·2⁻²⁴ with x < 2048. x is rounded to the nearest integer, ties to even, one
    below 0 to 0; the result is the f16 with the bits of 16 times that, NaN of NaN. What is scaled so rounds to a subnormal
    f16, or one of twice their range, whose bits are the integer (cvt.rn.relu.f16x2.f32 of the PTX ISA).
    With x = 64·(y + 15) that is 2^y by lines between powers of two (`onf.piecewise_exp2`).

        %w = device.half_from_bits %x
  }];
  let arguments = (ins F32:$operand);
  let results = (outs F16:$result);
  let assemblyFormat = "$operand attr-dict";
}

def Device_LoadOp : Device_Op<"load"> {
  let summary = "One element of an input, or of the workspace, in global memory";
  let description = [{
    `offset` counts elements from the array's first one. The address lies inside the array.
    Inputs do not change during a program, and of the workspace an element is read that an
    earlier kernel has stored, or another block in front of a signal that this one has seen
    (`device.signal`).

        %0 = device.load %x[%i] : <[N], bf16> -> bf16

    Constraints: the array is a parameter of the program (C1), an input or of the workspace
    (C2), of the result's element type (C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array, Index:$offset);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $array `[` $offset `]` attr-dict `:` type($array) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Device_StoreOp : Device_Op<"store"> {
  let summary = "Writes one element of an output, which has its element type";
  let description = [{
    `offset` counts elements from the array's first one. Every element is written once, by one
    thread of one launch.

        device.store %v, %y[%i] : bf16, <[N], bf16>

    In a map over rows and columns it may be one of `pairs`: the element of each even column has an even offset, and that
    of the next column the next one, so that a thread that has both may write them at once.

        device.store %x, %y[%i] pairs : f32, <[N, 128], f32>

    Constraints: the array is a parameter of the program (C1), an output or of the workspace
    (C2), of the value's type (C3); pairs are of the workspace, the value is what the map takes of a fragment of f32 whose
    neighbours are in two registers of a thread, and the map has no results and no other stores (C4).
  }];
  let arguments = (ins AnyType:$value, Arg<MoA_ArrayType, "", [MemWrite]>:$array,
                       Index:$offset, UnitAttr:$pairs);
  let assemblyFormat = [{
    $value `,` $array `[` $offset `]` (`pairs` $pairs^)? attr-dict `:` type($value) `,` type($array)
  }];
  let hasVerifier = 1;
}

def Device_SignalOp : Device_Op<"signal"> {
  let summary = "Adds one to a counter, behind everything that this warp has stored";
  let description = [{
    Once per warp, all of whose threads execute this together. Whoever reads the counter by `device.signals` and
    finds this addition in it sees what the warp has stored before.

        device.signal %done[%slot] : <[132], i32>

    Constraints: the array is a parameter of the program (C1), of the workspace (C2), and of i32 (C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Index:$offset);
  let assemblyFormat = "$array `[` $offset `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_SignalsOp : Device_Op<"signals"> {
  let summary = "How many warps have signalled so far";
  let description = [{
    The counter may change between two reads of it, also by different threads: `device.kept` gives all of a block the
    same.

        %n = device.signals %done[%slot] : <[132], i32>

    Constraints: those of `device.signal` (C1 to C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Index:$offset);
  let results = (outs Index:$result);
  let assemblyFormat = "$array `[` $offset `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_StagesOp : Device_Op<"stages", [NoTerminator, SingleBlock]> {
  let summary = "Blocks of several stages in one launch, each stage behind those before it";
  let description = [{
    Region k is what each of `counts[k]` blocks does, whose number in its stage is the argument; the kernel's `blocks` are as many as
    those of all stages. A block of a stage begins when all blocks of stages in front of it have ended, and sees what they have
    stored.

    A grid of at most `residents` blocks does the work of all of them. A stage has as many shares as it has blocks, and at most
    `residents`, with every `residents`-th block each. Shares are numbered stage by stage, and each block takes the least number
    that none has yet, the first one too, until there is none left. Whoever has a number knows therefore that those below it have
    begun, and may wait for them however few blocks a device has place for. The first element of the array counts the numbers that
    are taken, the last one the shares that are done; both start at 0. They are 128 bytes apart, as many blocks at once add to the
    one and read the other.

        device.stages %turns residents 1056 counts %n0, %n1 : <[33], i32> {
        ^bb0(%block: index):
          device.store %x, %w[%block] : f32, <[N], f32>
        }, {
        ^bb0(%block: index):
          %y = device.load %w[%from] : <[N], f32> -> f32
          …
        }

    Constraints: those of `device.signal` for the array (C1 to C3), which has 33 elements (C4); there are as many counts as regions, two
    or more, and each region has one argument, an index (C5); `residents` is at least 1 (C6); it stands in a kernel's own block
    as the last operation (C7); inside stand neither shared memory and roles nor numbers of blocks but those of the regions (C8).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Variadic<Index>:$counts, I64Attr:$residents);
  let regions = (region VariadicRegion<SizedRegion<1>>:$stages);
  let assemblyFormat = [{
    $array `residents` $residents `counts` $counts attr-dict `:` type($array) $stages
  }];
  let hasVerifier = 1;
}

def Device_RaiseOp : Device_Op<"raise"> {
  let summary = "Sets a flag to 1";
  let description = [{
    A flag is an array of one element, which an earlier kernel has stored 0 in. Any number of threads of any blocks may raise
    it, in any order: it is 1 then. Later kernels load it; the kernel that raises it does not.

        device.raise %any : <[1], i32>

    Constraints: those of `device.signal` (C1 to C3); the array has one element (C4).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemWrite]>:$array);
  let assemblyFormat = "$array attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_ExitIfOp : Device_Op<"exit_if"> {
  let summary = "Ends this block where it has nothing to do";
  let description = [{
    Where the condition holds, which is the same for all threads of a block, none of them executes what stands behind.

        %any = device.load %flag[%zero] : <[1], i32> -> i32
        %none = arith.cmpi eq, %any, %zero_i32 : i32
        device.exit_if %none

    Constraints: it stands in a kernel's own block (C1), behind nothing but loads and what has no effect (C2): no thread waits
    for another one that has ended, and what a block stores it stores whole.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
}

def Device_LoadRunOp : Device_Op<"load_run"> {
  let summary = "Adjacent elements of an array, as many as a private array has in a row";
  let description = [{
    Element e of the buffer's row `at` becomes the element at offset + e·stride, for e < `count`; what the
    others hold afterwards is not said. By accesses of up to 16 bytes where `stride` is 1, all elements of the row
    are loaded and the first one is aligned to them, else one by one: the same bits.

        device.load_run %x[%i] stride %s count %n to %buffer[%c]
          : <[N, 128], bf16>, memref<2x8xbf16>

    With a `step` the buffer has a further axis in front of the last one: element e of row r is that at
    offset + (r·step + e)·stride, for r·step + e < `count`. Whether the first one is aligned is asked once.

        device.load_run %x[%i] stride %s count %n step 32 to %buffer[] : <[N, 128], f32>, memref<4x8xf32>

    Where it says `aligned`, the stride is 1 and the offset a multiple of as many elements as one access has, which
    nobody asks then.

        device.load_run %w[%i] stride %c1 count %n aligned to %buffer[] : <[N, 128], f32>, memref<8xf32>

    Constraints: the array is a parameter of the program (C1), an input or of the workspace (C2), of the
    buffer's elements (C3), which are floats or integers of 8 to 64 bits (C4); the buffer has constant
    extents, one more than there are indices `at`, two with a `step` (C5), the last of them with 4 to 64 bytes,
    a power of two (C6); a step is a multiple of as many elements as the last extent (C7); what is aligned is of
    the workspace or of an array with tiles (`device.copy`, `device.store_tile`), which hosts check (C8).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array, Index:$offset, Index:$stride, Index:$count,
                       Arg<AnyMemRef, "", [MemWrite]>:$buffer, Variadic<Index>:$at, OptionalAttr<I64Attr>:$step,
                       UnitAttr:$aligned);
  let assemblyFormat = [{
    $array `[` $offset `]` `stride` $stride `count` $count (`step` $step^)? (`aligned` $aligned^)? `to` $buffer `[` $at `]` attr-dict
    `:` type($array) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def Device_StoreRunOp : Device_Op<"store_run"> {
  let summary = "Writes adjacent elements of an output from a private array";
  let description = [{
    The element at offset + e·stride becomes element e of the buffer's row `at`, for e < `count`. Accesses
    are those of `device.load_run`, `aligned` ones too; every element is written once, as by `device.store`.

        device.store_run %buffer[] to %y[%i] stride %s count %n : memref<8xbf16>, <[N, 128], bf16>

    Constraints: the array is a parameter of the program (C1), an output or of the workspace (C2), of the
    buffer's elements (C3), which are floats or integers of 8 to 64 bits (C4); the buffer has constant
    extents, one more than there are indices `at` (C5), the last of them with 4 to 64 bytes, a power of
    two (C6); what is aligned is of the workspace (C8).
  }];
  let arguments = (ins Arg<AnyMemRef, "", [MemRead]>:$buffer, Variadic<Index>:$at,
                       Arg<MoA_ArrayType, "", [MemWrite]>:$array, Index:$offset, Index:$stride, Index:$count,
                       UnitAttr:$aligned);
  let assemblyFormat = [{
    $buffer `[` $at `]` `to` $array `[` $offset `]` `stride` $stride `count` $count (`aligned` $aligned^)? attr-dict
    `:` type($buffer) `,` type($array)
  }];
  let hasVerifier = 1;
}

def Device_ExchangeOp : Device_Op<"exchange", [AllTypesMatch<["operand", "result"]>]> {
  let summary = "The value of the lane whose number differs by some bits";
  let description = [{
    Lane l of a warp gets the operand of lane l xor `mask`. All lanes of the warp execute this together, or those of
    each group of adjacent lanes, where it has a `group`: others may be elsewhere.

        %y = device.exchange %x mask 4 : f32
        %z = device.exchange %x mask 2 group 4 : f32

    Constraint: 1 ≤ mask ≤ 31; a group is a power of two above the mask, 16 at most (C1).
  }];
  let arguments = (ins AnyTypeOf<[Index, I32, I64, F32, F64]>:$operand, I64Attr:$mask, OptionalAttr<I64Attr>:$group);
  let results = (outs AnyTypeOf<[Index, I32, I64, F32, F64]>:$result);
  let assemblyFormat = "$operand `mask` $mask (`group` $group^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

def Device_SharedOp : Device_Op<"shared"> {
  let summary = "Shared memory of a block for the stages of a ring";
  let description = [{
    One array per operation and block; it holds the stages one behind the other, each with its
    swizzle (see the type), and has arbitrary contents at first.

        %keys = device.shared : !device.ring<2, [128, 64], bf16>
  }];
  let results = (outs Device_RingType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Device_BarriersOp : Device_Op<"barriers"> {
  let summary = "Barriers of a block, initialised before any thread uses them";
  let description = [{
    One mbarrier per stage, each completed by the arrivals of its type and the bytes announced
    to it. The phase of a fresh barrier has parity 0. In a kernel with `device.next_block` every block completes an even
    number of phases of each, or, if they are `odd`, an odd one. Parities are those of a block by itself; of odd barriers
    targets wait for the other one in every second block.

        %full = device.barriers : !device.barriers<2, 1>
        %rows = device.barriers odd : !device.barriers<1, 1>
  }];
  let arguments = (ins UnitAttr:$odd);
  let results = (outs Device_BarriersType:$result);
  let assemblyFormat = "(`odd` $odd^)? attr-dict `:` type($result)";
}

def Device_SpecializeOp : Device_Op<"specialize", [NoRegionArguments, NoTerminator, SingleBlock]> {
  let summary = "A producer warpgroup beside consumer warpgroups";
  let description = [{
    The first `warpgroups` warpgroups of the block run `consumer`, the last one runs `producer`;
    each role gets its number of registers per thread. Inside `producer` one thread of the
    warpgroup is active. A block whose `condition` does not hold, which is the same in all of its threads,
    ends before it has set up anything.

        device.specialize if %chosen consumers 2 registers 240 { … } producer registers 24 { … }

    Constraint: the block has 128·(warpgroups + 1) threads (C1).
  }];
  let arguments = (ins I64Attr:$warpgroups, I64Attr:$consumer_registers,
                       I64Attr:$producer_registers, Optional<I1>:$condition);
  let regions = (region SizedRegion<1>:$consumer, SizedRegion<1>:$producer);
  let assemblyFormat = [{
    (`if` $condition^)? `consumers` $warpgroups `registers` $consumer_registers $consumer
    `producer` `registers` $producer_registers $producer attr-dict
  }];
  let hasVerifier = 1;
}

def Device_AwaitConsumersOp : Device_Op<"await_consumers"> {
  let summary = "Waits until the consumers have left the block before this one";
  let description = [{
    In a kernel with `device.next_block`, where the producer may be ahead of the consumers: here it waits until all of their
    warps have come to the end of the block before, and then gives them the numbers of this one. In front of it stand copies
    into stages that it has waited for by their barriers; behind it what consumers still read of the block before may be
    overwritten.

        device.await_consumers

    Constraints: it stands in the producer's own block, of a kernel with `device.next_block`, once (C1); no copy in front of
    it completes barriers that are `odd`, which nobody waits for to be free (C2).
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Device_WarpgroupOp : Device_Op<"warpgroup", [Pure]> {
  let summary = "This warpgroup's number in its block";
  let description = [{
    0 for threads 0 to 127, and so on. With `again` the number is found again, so that what is
    computed from it takes no register in front of this operation.

        %w = device.warpgroup again
  }];
  let arguments = (ins UnitAttr:$again);
  let results = (outs Index:$result);
  let assemblyFormat = "(`again` $again^)? attr-dict";
}

def Device_KeptOp : Device_Op<"kept", [SameOperandsAndResultType,
                                       MemoryEffects<[MemRead]>]> {
  let summary = "The same number of the whole block, kept in shared memory";
  let description = [{
    A role of a specialised block reads here what stands in front of the roles. One thread has
    written the number when barriers were initialised, so that it takes no register from there
    to here.

        %again = device.kept %tile

    Constraints: the operand is defined in the kernel's own block, in front of
    `device.specialize` (C1), and this operation stands in one of its roles (C2).
  }];
  let arguments = (ins Index:$operand);
  let results = (outs Index:$result);
  let assemblyFormat = "$operand attr-dict";
  let hasVerifier = 1;
}

def Device_CollectOp : Device_Op<"collect", [SingleBlock, AttrSizedResultSegments,
                                             RecursiveMemoryEffects]> {
  let summary = "Lists of the indices where conditions hold, in shared memory";
  let description = [{
    The threads of the block share the indices lower ≤ t < upper, at most as many as the lists
    have room for, and evaluate the body at them; it yields a boolean per list. A list holds the
    indices where its boolean holds, ascending; `counts` are their numbers. All threads have the
    lists when this returns.

        %partial, %full, %partials, %fulls = device.collect %lower to %upper
          : (!device.members<2048>, !device.members<2048>), (index, index) {
        ^bb0(%t: index):
          …
          device.yield %some, %all : i1, i1
        }

    Constraints: it stands in the kernel's own block, in front of `device.specialize` (C1); the
    body takes one index (C2) and yields one boolean per list, which has one count (C3); the
    lists have room for equally many (C4). `upper` − `lower` is no more than that.
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
  let summary = "The index at a place of a list";
  let description = [{
    0 ≤ `place` < the list's room; behind its last member stands no index in particular.

        %t = device.member %full[%k] : <2048>

    Constraint: the list is a result of a `device.collect` of the same kernel (C1).
  }];
  let arguments = (ins Device_MembersType:$list, Index:$place);
  let results = (outs Index:$result);
  let assemblyFormat = "$list `[` $place `]` attr-dict `:` type($list)";
  let hasVerifier = 1;
}

def Device_CopyOp : Device_Op<"copy", [AttrSizedOperandSegments]> {
  let summary = "Asynchronous copy of one tile of an input into a stage of a ring";
  let description = [{
    `coordinates` are indices of the array's first axes; the tile starts there and spans the
    last axis, from its start or from `column`, and the axis `row_axis`. What lies outside of the
    array is filled with zeros. The bytes of the stage are announced to the barrier, which the copy
    completes. One thread executes this. An array of the workspace is one that an earlier kernel
    has stored. With `step` s, an expression over the symbols, which is at least 1 where this is executed, rows are every
    s-th index of their axis, from the first on, and their coordinate counts these: row r of the tile at the coordinate c is
    the index (c + r)·s.

        device.copy %K[%b, %h, %row] rows 2 to %keys[%stage] signals %full[%stage]
          : <[B, H, M, 64], bf16>, <2, [128, 64], bf16>, <2, 1>
        device.copy %K[%b, %h, %row] rows 2 step "M/1024" to %keys[%stage] signals %full[%stage]
          : <[B, H, M, 64], bf16>, <2, [128, 64], bf16>, <2, 1>

    Constraints: the array, an input of the program or of its workspace, has the ring's element type
    (C1); there are coordinates of all axes but the last, and `row_axis` is one of these (C2); a step is an
    expression, no number below 1 (C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array,
                       Variadic<Index>:$coordinates, Optional<Index>:$column, I64Attr:$row_axis,
                       OptionalAttr<StrAttr>:$step, Arg<Device_RingType, "", [MemWrite]>:$ring, Index:$stage,
                       Device_BarriersType:$barriers, Index:$slot);
  let assemblyFormat = [{
    $array `[` $coordinates `]` (`columns` $column^)? `rows` $row_axis (`step` $step^)? `to` $ring `[` $stage `]`
    `signals` $barriers `[` $slot `]` attr-dict
    `:` type($array) `,` type($ring) `,` type($barriers)
  }];
  let extraClassDeclaration = [{
    /// The distance of rows along their axis, in indices.
    SymExpr getRowStep() { return getStep() ? *SymExpr::parse(*getStep()) : SymExpr(1); }
  }];
  let hasVerifier = 1;
}

def Device_WaitOp : Device_Op<"wait"> {
  let summary = "Waits until a barrier has completed the phase of a parity";
  let description = [{
    Returns once the phase of that parity is complete; what was written before the arrivals and
    copied into the stage is visible then. A wait for a phase that is complete returns at once,
    so that a slot may be at most one phase ahead.

        device.wait %full[%stage] parity %parity : <2, 1>
  }];
  let arguments = (ins Device_BarriersType:$barriers, Index:$slot, Index:$parity);
  let assemblyFormat = "$barriers `[` $slot `]` `parity` $parity attr-dict `:` type($barriers)";
}

def Device_ArriveOp : Device_Op<"arrive"> {
  let summary = "One arrival per warp on a barrier";
  let description = [{
    One lane of every warp that executes this arrives on the slot; the phase is complete when all
    arrivals of the type have come.

        device.arrive %empty[%stage] : <2, 8>
  }];
  let arguments = (ins Device_BarriersType:$barriers, Index:$slot);
  let assemblyFormat = "$barriers `[` $slot `]` attr-dict `:` type($barriers)";
}

def Device_FillOp : Device_Op<"fill", [Pure]> {
  let summary = "A fragment of one value";
  let description = [{
    Every element that a thread holds is that thread's value.

        %z = device.fill %zero : f32 -> !device.fragment<…>

    Constraint: the value has the fragment's element type (C1).
  }];
  let arguments = (ins AnyType:$value);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Device_ContractOp : Device_Op<"contract", [AttrSizedOperandSegments]> {
  let summary = "Starts c + a · b on the tensor cores";
  let description = [{
    c[i, j] + Σ_k a[i, k] · b[k, j] (wgmma). Products of floats of 16 and 8 bits are exact; those of 16
    are added in f32 in an order of the hardware's, those of 8 with fewer bits than f32 has; integers
    of 8 bits are multiplied and added in i32, which wraps. `a` is a fragment of floats in the layout of
    the accumulator, or 64 rows of a ring's stage from row `a_row`; `b` is a stage of a ring, k along its
    rows, or along its columns with `transposed`; with `depth` k runs over so many first ones only.
    Without `c` the sum starts at zero. The result, and `c`, may be used after `device.await` only, but by a
    contraction that continues the sum: those of a warpgroup run in order.

    The accumulator holds pairs of neighbours where an operand of 8 bits holds fours, so that a fragment
    `a` of 8 bits meets an *interleaved* `b`: its column k stands at π(k), which moves the bits of k mod 16
    from b₃ b₂ b₁ b₀ to b₂ b₁ b₃ b₀ (`getInterleaved`).

        %s = device.contract %queries[…] rows %row by %keys[%stage] transposed
          : !device.ring<1, [64, 64], bf16>, <2, [128, 64], bf16> -> !device.fragment<…>

    Constraints: extents agree (C1); `c` and the result have the accumulator's layout, as a
    fragment `a` has (C2); `a` and `b` have one element type, a float of 16 bits or f8E4M3FN with a result
    of f32, or i8 with one of i32 (C3); `b` of 8 bits is transposed, and a fragment `a` of 8 bits has floats
    and a multiple of 32 columns (C4); a `depth` is a multiple of 32 bytes of operands in rings, and not longer than these (C5);
    nothing else reads a `c` that a contraction gives (C6).
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
    /// Instructions, of which each takes 32 bytes of the rows of a.
    int64_t getSteps();
    /// π(k), where column k of `b` stands if it is interleaved.
    static int64_t getInterleaved(int64_t k) {
      return (k & ~15) | (k << 1 & 12) | (k >> 2 & 2) | (k & 1);
    }
    bool isInterleaved() { return !getARow() && getB().getType().getElementBytes() == 1; }
  }];
}

def Device_ContractFragmentsOp : Device_Op<"contract_fragments", [Pure]> {
  let summary = "c + a · b of fragments, by single warps on the tensor cores";
  let description = [{
    c[i, j] + Σ_k a[i, k] · b[k, j], all in registers, and done when it returns: every
    warp contracts what it holds, by mma.sync over the tiles of the layouts. Products
    of 16-bit floats are exact and added in f32 in an order of the hardware's, those
    of f64 are fused into the sum in order of k. Without `c` the sum starts at zero.

    The layouts are those of the instruction, of which a warp's registers may hold any
    number of tiles along every axis (PTX ISA 8.6, 9.7.14.5); with g = lane / 4 and
    t = lane mod 4 element i of a lane is

    | elements, tile      | a                             | b                      | c                    |
    |---------------------|-------------------------------|------------------------|----------------------|
    | f16, bf16 16×8×16   | g + 8·(i/2 mod 2), 2t + i mod 2 + 8·(i/4) | 2t + i mod 2 + 8·(i/2), g | g + 8·(i/2), 2t + i mod 2 |
    | f16, bf16 16×8×8    | g + 8·(i/2), 2t + i mod 2     | 2t + i mod 2, g        | g + 8·(i/2), 2t + i mod 2 |
    | f64 8×8×4           | g, t                          | t, g                   | g, 2t + i            |

    The rows of `a` and the result, and the columns of `b` and the result, may be
    spread over warps; what is not is held by every warp, in replicas.

        %s = device.contract_fragments %q by %k plus %c : !a, !b -> !sums

    Constraints: extents agree (C1); the layouts of `a`, `b` and the result are tiles
    of one instruction (C2); `a` and `b` have one element type, f16 or bf16 with a
    result of f32, or f64 with one of f64 (C3); every warp holds all k of `a` and `b`,
    and of them the rows and columns that it holds of the result (C4).
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
  let summary = "A fragment of a tile in shared memory";
  let description = [{
    Element [i, j] is element [row + i, column + j] of the stage or, with `transposed`,
    [row + j, column + i]. Every warp reads what it holds, 8 × 8 elements at a time
    (ldmatrix, PTX ISA 8.6, 9.7.14.5.15), with the tile's swizzle; the result is there
    when it returns. In the layout of wgmma's accumulator it is an operand `a` of
    `device.contract`; in those of mma.sync one of `device.contract_fragments`.

        %q = device.load_fragment %queries[%stage] at %row, %zero : !device.ring<…> -> !a

    Constraints: the elements are those of the ring (C1); of every 8 × 8 elements a
    lane holds two neighbours, lane / 4 along one axis and 2·(lane mod 4) and the next
    along the other (C2); the fragment has no more rows and columns than the tile
    (C3). `row` and `column` are multiples of 8.
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
    Every place of the result takes its element from a place that holds it: the same
    thread where it does, else another lane of the warp. Which, follows from the
    digits of the two layouts. Registers of a thread are only renamed; a register that
    lanes exchange is one shuffle per register that some lane is asked for.

        %y = device.convert_layout %x : !device.fragment<…> -> !device.fragment<…>

    Constraints: shapes and element types agree (C1); every warp holds in `fragment`
    the elements that it holds in the result (C2). What moves between warps goes
    through memory: an output, or a kernel whose layouts agree on the warps' digits.
  }];
  let arguments = (ins Device_FragmentType:$fragment);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Device_AwaitOp : Device_Op<"await", [AllTypesMatch<["fragment", "result"]>]> {
  let summary = "Waits until at most `pending` later contractions are in flight";
  let description = [{
    The fragment is there when this returns; contractions that were started after it may still
    run, `pending` of them.

        %done = device.await %s pending 1 : !device.fragment<…>
  }];
  let arguments = (ins Device_FragmentType:$fragment, I64Attr:$pending);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "$fragment `pending` $pending attr-dict `:` type($result)";
}

def Device_ClearUnseenOp : Device_Op<"clear_unseen"> {
  let summary = "Zeroes the rows of a stage that no consumer marks";
  let description = [{
    Every consumer warpgroup executes this with a fragment of booleans `seen`, 64 by the stage's
    rows; row j of the stage is overwritten with zeros unless seen[i, j] holds for some i of some
    warpgroup. Afterwards all consumers see the result. A factor 0 is not enough to keep such a
    row out of a contraction: it may hold NaN. With `interleaved` it is columns that are zeroed, column j
    being the one at π(j) of `device.contract`.

        device.clear_unseen %values[%stage] unless %seen : <2, [128, 64], bf16>, !device.fragment<…>

    Constraint: `seen` has a column per row of the ring, at most 128, or per column of one of 128 columns of
    8 bits with `interleaved` (C1).
  }];
  let arguments = (ins Device_RingType:$ring, Index:$stage, Device_FragmentType:$seen,
                       UnitAttr:$interleaved);
  let assemblyFormat = [{
    $ring `[` $stage `]` (`interleaved` $interleaved^)? `unless` $seen attr-dict `:` type($ring) `,` type($seen)
  }];
  let hasVerifier = 1;
}

def Device_StoreTileOp : Device_Op<"store_tile"> {
  let summary = "Writes a fragment to an output by way of shared memory";
  let description = [{
    A warpgroup writes its fragment into 64 rows of a ring's stage, from row `row`. Its first thread
    then starts a bulk store of these rows to the output, which runs on its own.
    The rows must not be overwritten until `device.await_stores` says that the store has read them.
    `coordinates` are indices of the output's first axes; rows lie along `row_axis`, columns
    along the last axis from its start. What lies outside of the output is not written.
    The kernel does not read these elements again: the store may end with the kernel.

        device.store_tile %o through %ring[%zero] from %row to %O[%b, %h, %n] rows 2
          : !device.fragment<…>, <1, [128, 64], bf16>, <[B, H, N, 64], bf16>

    Constraints: the fragment has 64 rows and 16-bit elements of the output's and the ring's type
    (C1) and no more columns than the ring (C2); coordinates are those of all axes but the last
    (C3).
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
    The thread that has started them (`device.store_tile`) waits until all of them have read their
    rows. Only its warp knows that then. The other warps need `device.sync_warpgroup`, or a barrier
    on which the first warp arrives, before they overwrite the rows.

        device.await_stores
  }];
  let assemblyFormat = "attr-dict";
}

def Device_SyncWarpgroupOp : Device_Op<"sync_warpgroup"> {
  let summary = "A barrier of the four warps of a warpgroup";
  let description = [{
    Each warp goes on when all four are here, and knows then what each of them knew.
    For example, rows that a bulk store has read may be overwritten after

        device.await_stores
        device.sync_warpgroup
  }];
  let assemblyFormat = "attr-dict";
}

def Device_MapOp : Device_Op<"map", [SingleBlock, RecursiveMemoryEffects]> {
  let summary = "A scalar function of every element of fragments";
  let description = [{
    r[i, j] = f(x[i, j], …, i, j). The body's arguments are one scalar per input and the element's
    indices in `shape`; it yields one scalar per result. An input of rank 1 gives every element of
    a row the row's value; one in the layout of the threads' parts gives every element the value at
    its row and lane.

        %e = device.map(%s, %m) over #device.layout<…> : (!s, !m) -> !s {
        ^bb0(%x: f32, %max: f32, %i: index, %j: index):
          %0 = arith.subf %x, %max : f32
          %1 = device.exp2 %0 : f32
          device.yield %1 : f32
        }

    Constraints: inputs have `layout`, its slice of axis 0, or the threads' parts of axis 1,
    results `layout` (C1); the body takes a scalar of each input's element type, then an index per
    axis (C2), and yields one of each result's element type (C3).
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
  let summary = "How far a map's index lies behind that of the thread's first element";
  let description = [{
    Along one axis a thread's elements differ in the digits bound to registers; the result is what
    these contribute to the index. It is a constant where the loop over the registers is unrolled,
    so that a comparison with a value per thread needs neither the index nor a register for it.

        %d = device.thread_offset %j

    Constraint: the operand is an index argument of the map around it (C1).
  }];
  let arguments = (ins Index:$index);
  let results = (outs Index:$result);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 1;
}

def Device_ReduceOp : Device_Op<"reduce", [Pure]> {
  let summary = "⊕ over the columns of a fragment";
  let description = [{
    r[i] = ⊕ over j of x[i, j]. Every thread combines its registers of a row in order of the
    columns, those of even and of odd number apart, and these two; then the lanes that share the
    row combine theirs pairwise, nearest first. A result with the layout of the threads' parts
    (`LayoutAttr::getThreadPart`) leaves the second step out: its column l is what the l-th lane of
    a row has combined.

    Sums of f16 may have a result of f32: a thread adds its pairs of neighbours in f16 (add.rn.f16x2), those of even and of odd
    number apart, then these two, then both neighbours in f32.

        %m = device.reduce max %s : !device.fragment<[64, 128], f32, …> -> !device.fragment<[64], f32, …>

    Constraints: the result has the layout of the fragment's rows, or that of the threads' parts of
    them (C1), and the fragment's element type, or f32 for sums of f16 whose neighbours are in two registers of a thread, and of
    threads' parts (C2); the fragment has rows and columns (C3).
  }];
  let arguments = (ins MoA_MonoidAttr:$monoid, Device_FragmentType:$fragment);
  let results = (outs Device_FragmentType:$result);
  let assemblyFormat = "`` $monoid $fragment attr-dict `:` type($fragment) `->` type($result)";
  let hasVerifier = 1;
}

def Device_AnyOp : Device_Op<"any", [Pure, AllTypesMatch<["condition", "result"]>]> {
  let summary = "Whether a condition holds for some element in a warp";
  let description = [{
    Every element of the result is the disjunction of the elements that the same warp holds of
    `condition`.

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
  let summary = "The same scalar, of which a compiler knows nothing";
  let description = [{
    What is computed from the result is computed behind this operation, and the result is not seen
    to be what the operand was computed from. So registers are not filled before a loop with many
    values that follow from few, as the addresses of a tile's elements from strides or its
    conditions from the bits of a word.

        %s = device.opaque %stride : index
  }];
  let arguments = (ins AnyTypeOf<[Index, I32, I64, F32]>:$operand);
  let results = (outs AnyTypeOf<[Index, I32, I64, F32]>:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Device_ReciprocalOp : Device_Op<"reciprocal", [Pure, SameOperandsAndResultType]> {
  let summary = "1/x by the hardware's approximation";
  let description = [{
    Off by at most one unit in the last place. Subnormal arguments and results are flushed to zero
    (rcp.approx.ftz.f32, PTX ISA 9.7.3.13), but not with `subnormals` (rcp.approx.f32), which takes
    a few instructions more and no call.

        %y = device.reciprocal %x subnormals : f32
  }];
  let arguments = (ins F32:$operand, UnitAttr:$subnormals);
  let results = (outs F32:$result);
  let assemblyFormat = "$operand (`subnormals` $subnormals^)? attr-dict `:` type($result)";
}

def Device_IfAnyOp : Device_Op<"if_any", [SingleBlock, NoRegionArguments,
                                          RecursiveMemoryEffects]> {
  let summary = "Fragments that are computed by the warps that need it";
  let description = [{
    A warp in which `condition` holds for some element runs the body, and its part of
    the results is what the body yields; the others skip it, and theirs is `otherwise`.
    The body reads fragments of the same warpgroup only.

        %x = device.if_any %needed else (%old) : … {
          …
          device.yield %new : …
        }

    Constraints: `condition` is of booleans (C1); results, other values and yields
    have the same types (C2).
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
                                        ParentOneOf<["MapOp", "IfAnyOp", "CollectOp"]>]> {
  let summary = "Ends a map, a conditional or the body of a collection";
  let description = [{
    In a map: one scalar per result. In a conditional: the fragments of the results. In a
    collection: one boolean per list.

        device.yield %1 : f32
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict (`:` type($values)^)?";
}

#endif // MOA_DIALECTS_DEVICE_IR_DEVICE_TD
