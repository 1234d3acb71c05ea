//===- Device.td - programs for a GPU -----------------------*- tablegen -*-===//
//
// Scalar operations are those of arith and math, control flow is scf, and per-thread arrays are
// memrefs in the private memory space. This dialect adds kernels with their launch, the caller's
// arrays, thread coordinates, and the work of a warpgroup on tiles: fragments in registers, rings
// in shared memory, copies and barriers.
//
//===----------------------------------------------------------------------===//
#ifndef MOA_DIALECTS_DEVICE_IR_DEVICE_TD
#define MOA_DIALECTS_DEVICE_IR_DEVICE_TD

include "dialects/Device/IR/DeviceTypes.td"

def Device_ProgramOp : Device_Op<"program",
    [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "One entry point: kernels that are launched in order";
  let description = [{
    Attributes and block arguments are those of `onf.kernel`: the inputs, then the outputs.
    Workspace arrays (`workspace_names`, `workspace_types`) may follow. They are row-major without
    gaps and have arbitrary contents at first: one kernel stores an array, later kernels load it.
    The body holds `device.kernel`s only, in launch order. Each kernel starts when the one before it
    has finished.

        device.program @sdpa attributes {symbols = ["N"], …} {
        ^bb0(%x: !moa.array<[N], f32>, %y: !moa.array<[N], f32>):
          device.kernel @sdpa_0 blocks "(N + 127)/128" threads 128 { … }
        }

    Constraints:

    - C1: One argument per input, output and array of the workspace.
    - C2: The arguments are arrays of the declared types.
    - C3: The body holds kernels only.
    - C4: An array of the workspace has a name, and elements of i64, i32, i8 or a float.
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
    /// Returns the names of the inputs, the outputs and the arrays of the workspace.
    ::llvm::SmallVector<::llvm::StringRef> getAllNames();
    bool isInput(::mlir::Value array);
    bool isWorkspace(::mlir::Value array);
    /// Returns true if a kernel copies tiles of this input, or to this output. Hosts then check
    /// that its elements begin at whole 16 bytes, are adjacent along the last axis, and are whole
    /// 16 bytes apart along the other axes.
    bool hasTiles(::mlir::Value array);
    ::mlir::Value addWorkspace(::llvm::StringRef name, ArrayType type);
  }];
}

def Device_KernelOp : Device_Op<"kernel",
    [HasParent<"ProgramOp">, SingleBlock, NoTerminator, AutomaticAllocationScope]> {
  let summary = "One launch: the code of every thread";
  let description = [{
    A grid of `blocks` blocks of `threads` threads. The kernel is not launched if there are no
    blocks.

        device.kernel @name blocks "B*H*((N + 127)/128)" threads 128 { … }

    With `cluster` C, each C blocks with adjacent numbers form a thread block cluster: they run at the
    same time and can read each other's shared memory (`device.publish`). The rank of block b in its
    cluster is b mod C.

        device.kernel @name blocks "8*B*G" threads 256 cluster 8 { … }

    Constraints:

    - C1: `threads` is a multiple of 32 and at most 1024.
    - C2: The body has no arguments.
    - C3: `cluster` is 2, 4 or 8, and the kernel has no `device.next_block`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, MoA_ExprAttr:$blocks, I64Attr:$threads,
                       OptionalAttr<I64Attr>:$cluster);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "const SymExpr &":$blocks, "int64_t":$threads), [{
    build($_builder, $_state, name, blocks, threads, ::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $sym_name `blocks` custom<Expr>($blocks) `threads` $threads (`cluster` $cluster^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Device_BlockOp : Device_Op<"block", [Pure]> {
  let summary = "This block's number in the grid";
  let description = [{
    0 ≤ block < `blocks` of the kernel. It is the same for all threads of a block.

        %b = device.block
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Device_NextBlockOp : Device_Op<"next_block"> {
  let summary = "The number of the next block that a persistent block works on";
  let description = [{
    This op makes the kernel persistent, with dynamic tile scheduling. A grid of at most `residents`
    blocks does the work of all `blocks` blocks, which are numbered as by `device.block`. Each
    starts with its own number. When it has finished a block, it takes the least number that nobody
    has taken yet, from the counter `array[offset]`, which starts at 0. The results are those of a
    grid of all blocks, which may run in any order.

    The producer alone takes the number and computes the values before the roles that depend on it.
    It passes the numbers that consumers read to them (see `device.await_consumers`). Barriers are
    initialised once, so their phases continue from block to block (see `device.barriers`).

        %block = device.next_block %fetched[%slot] below %blocks residents 132 : <[133], i32>

    Constraints:

    - C1 to C3: Those of `device.signal`, for the counter.
    - C4: It is in a kernel's own block, before a `device.specialize` whose producer has a
      `device.await_consumers`, and the kernel has only one.
    - C5: `residents` is at least 1.
    - C6: Before the roles nothing is stored, signalled, raised, exchanged or listed
      (`device.collect`), and neither `device.thread` nor `device.block` is read.
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
    The value of an expression over the program's symbols and strides. Stride symbols are named
    `<array>.s<axis>` and count elements. The value is the same for all threads.

        %0 = device.symbol "2*Q.s1 + N"
  }];
  let arguments = (ins MoA_ExprAttr:$expr);
  let results = (outs Index:$result);
  let assemblyFormat = "custom<Expr>($expr) attr-dict";
}

def Device_ScalarOp : Device_Op<"scalar", [Pure]> {
  let summary = "The value of an argument of rank zero, passed by value";
  let description = [{
    The argument is passed with the launch, so no memory is read.

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
  let summary = "2^x, by the hardware's approximation";
  let description = [{
    The relative error is at most 2⁻²². Subnormal results are flushed to zero (ex2.approx.ftz.f32,
    PTX ISA 9.7.3.20).

        %y = device.exp2 %x : f32
  }];
  let arguments = (ins F32:$operand);
  let results = (outs F32:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Device_HalfFromBitsOp : Device_Op<"half_from_bits", [Pure]> {
  let summary = "The f16 with the bits 16·x, from the f32 x·2⁻²⁴";
  let description = [{
    The operand is x·2⁻²⁴ with x < 2048. x is rounded to the nearest integer, ties to even; a
    negative x becomes 0. The result is the f16 whose bits are 16 times that integer. NaN gives NaN.

    With this scale, rounding to f16 gives a subnormal, or a number of up to twice the subnormals'
    range, whose bits are the integer (cvt.rn.relu.f16x2.f32 of the PTX ISA). With x = 64·(y + 15)
    the result is 2^y, linear between powers of two (`onf.piecewise_exp2`).

        %w = device.half_from_bits %x
  }];
  let arguments = (ins F32:$operand);
  let results = (outs F16:$result);
  let assemblyFormat = "$operand attr-dict";
}

def Device_LoadOp : Device_Op<"load"> {
  let summary = "One element of an input or of the workspace, in global memory";
  let description = [{
    `offset` counts elements from the array's first one. The address lies inside the array. Inputs
    do not change during a program. A workspace element has been stored by an earlier kernel, or by
    another block before a signal that this block has seen (`device.signal`).

        %0 = device.load %x[%i] : <[N], bf16> -> bf16

    Constraints: the array is a parameter of the program (C1), an input or of the workspace (C2), of
    the result's element type (C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead]>:$array, Index:$offset);
  let results = (outs AnyType:$result);
  let assemblyFormat = [{
    $array `[` $offset `]` attr-dict `:` type($array) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Device_StoreOp : Device_Op<"store"> {
  let summary = "Writes one element of an output or of the workspace";
  let description = [{
    `offset` counts elements from the array's first one. The value has the array's element type.
    Every element is written once, by one thread of one launch.

        device.store %v, %y[%i] : bf16, <[N], bf16>

    `pairs` is allowed in a map over rows and columns. It states that the element of each even
    column has an even offset, and that the next column's element follows it. So a thread that has
    both may write them with one access.

        device.store %x, %y[%i] pairs : f32, <[N, 128], f32>

    Constraints:

    - C1: The array is a parameter of the program.
    - C2: The array is an output or of the workspace.
    - C3: The value has its element type.
    - C4: A store of pairs is to the workspace. Its value is an element of an f32 fragment whose
      neighbouring columns are in two registers of a thread. Its map has no results and no other
      stores.
  }];
  let arguments = (ins AnyType:$value, Arg<MoA_ArrayType, "", [MemWrite]>:$array,
                       Index:$offset, UnitAttr:$pairs);
  let assemblyFormat = [{
    $value `,` $array `[` $offset `]` (`pairs` $pairs^)? attr-dict `:` type($value) `,` type($array)
  }];
  let hasVerifier = 1;
}

def Device_SignalOp : Device_Op<"signal"> {
  let summary = "Adds one to a counter, with release semantics";
  let description = [{
    All threads of a warp execute this together; it adds one per warp. A reader that sees the
    addition through `device.signals` also sees everything that the warp stored before.

        device.signal %done[%slot] : <[132], i32>

    Constraints: the array is a parameter of the program (C1), of the workspace (C2), and of i32
    (C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Index:$offset);
  let assemblyFormat = "$array `[` $offset `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_SignalsOp : Device_Op<"signals"> {
  let summary = "The number of warps that have signalled so far";
  let description = [{
    The counter may change between two reads, also between reads of different threads. Use
    `device.kept` to give all threads of a block the same value.

        %n = device.signals %done[%slot] : <[132], i32>

    Constraints: those of `device.signal` (C1 to C3).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemRead, MemWrite]>:$array, Index:$offset);
  let results = (outs Index:$result);
  let assemblyFormat = "$array `[` $offset `]` attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_StagesOp : Device_Op<"stages", [NoTerminator, SingleBlock]> {
  let summary = "Several stages in one persistent launch, each after those before it";
  let description = [{
    Region k is executed by `counts[k]` *virtual* blocks. Its argument is the block's number in the
    stage. The kernel's `blocks` is the sum of all counts. A block of a stage starts when all blocks
    of earlier stages have finished, and sees their stores.

    At most `residents` CUDA blocks execute them (a persistent kernel), in *shares*:

    1. A stage has as many shares as blocks, but at most `residents`. A share holds every
       `residents`-th block of the stage.
    2. Shares are numbered stage by stage. Each block of the grid repeatedly takes the least number
       that nobody has taken, until none is left.
    3. A block that has a number knows that all smaller numbers have been taken. So it can wait for
       those shares without a deadlock, however few blocks a device can hold at once.

    The first element of the array counts the shares taken, the last one the shares done. Both start
    at zero. They are 128 bytes apart, because many blocks add to the one while they read the other.

        device.stages %turns residents 1056 counts %n0, %n1 : <[33], i32> {
        ^bb0(%block: index):
          device.store %x, %w[%block] : f32, <[N], f32>
        }, {
        ^bb0(%block: index):
          %y = device.load %w[%from] : <[N], f32> -> f32
          …
        }

    Constraints:

    - C1 to C3: Those of `device.signal`, for the array.
    - C4: The array has 33 elements.
    - C5: There are as many counts as regions, two or more. Each region has one index argument.
    - C6: `residents` is at least 1.
    - C7: It is the last operation of a kernel's own block.
    - C8: Regions hold no shared memory, roles, or block numbers other than their arguments.
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
    A flag is a workspace array of one element, in which an earlier kernel has stored 0. Any number
    of threads of any blocks may raise it, in any order. Later kernels load it; the kernel that
    raises it does not.

        device.raise %any : <[1], i32>

    Constraints: those of `device.signal` (C1 to C3); the array has one element (C4).
  }];
  let arguments = (ins Arg<MoA_ArrayType, "", [MemWrite]>:$array);
  let assemblyFormat = "$array attr-dict `:` type($array)";
  let hasVerifier = 1;
}

def Device_ExitIfOp : Device_Op<"exit_if"> {
  let summary = "Ends this block early if it has no work";
  let description = [{
    If the condition holds, no thread of the block executes the following operations. The condition
    is the same for all threads of a block.

        %any = device.load %flag[%zero] : <[1], i32> -> i32
        %none = arith.cmpi eq, %any, %zero_i32 : i32
        device.exit_if %none

    Constraints: it is in a kernel's own block (C1), after only loads and operations without effects
    (C2). So no thread waits for one that has ended, and a block stores everything or nothing.
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 1;
}

def Device_LoadRunOp : Device_Op<"load_run"> {
  let summary = "Reads adjacent elements of an array into a row of a private array";
  let description = [{
    Element e of the buffer's row `at` becomes the element at offset + e·stride, for e < `count`.
    The row's other elements are unspecified afterwards. Accesses have up to 16 bytes if `stride` is
    1, the run fills the row, and its first element is aligned to them. Otherwise elements are
    loaded one by one, with the same result.

        device.load_run %x[%i] stride %s count %n to %buffer[%c]
          : <[N, 128], bf16>, memref<2x8xbf16>

    With `step`, the buffer has one more axis before the last one. Element e of row r is the element
    at offset + (r·step + e)·stride, for r·step + e < `count`. The alignment is tested once for all
    rows.

        device.load_run %x[%i] stride %s count %n step 32 to %buffer[]
          : <[N, 128], f32>, memref<4x8xf32>

    `aligned` states that the stride is 1 and that the offset is a multiple of the elements of one
    access. The alignment is then not tested at run time.

        device.load_run %w[%i] stride %c1 count %n aligned to %buffer[]
          : <[N, 128], f32>, memref<8xf32>

    Constraints:

    - C1: The array is a parameter of the program.
    - C2: The array is an input or of the workspace.
    - C3: The buffer has the array's element type.
    - C4: Elements are floats or integers of 8 to 64 bits.
    - C5: The buffer has constant extents, one more than there are indices `at`, two more with
      `step`.
    - C6: The last extent has 4 to 64 bytes, a power of two.
    - C7: `step` is a multiple of the last extent.
    - C8: An `aligned` array is of the workspace or has tiles (`device.copy`, `device.store_tile`),
      whose alignment hosts check.
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
  let summary = "Writes adjacent elements of an array from a private array";
  let description = [{
    The element at offset + e·stride becomes element e of the buffer's row `at`, for e < `count`.
    Accesses and `aligned` are as for `device.load_run`. Every element is written once, as by
    `device.store`.

        device.store_run %buffer[] to %y[%i] stride %s count %n : memref<8xbf16>, <[N, 128], bf16>

    Constraints:

    - C1: The array is a parameter of the program.
    - C2: The array is an output or of the workspace.
    - C3: The buffer has the array's element type.
    - C4: Elements are floats or integers of 8 to 64 bits.
    - C5: The buffer has constant extents, one more than there are indices `at`.
    - C6: The last extent has 4 to 64 bytes, a power of two.
    - C8: An `aligned` array is of the workspace or has tiles.
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
  let summary = "A warp shuffle: the value of the lane whose number differs by a mask";
  let description = [{
    Lane l of a warp gets the operand of lane l xor `mask` (a butterfly shuffle). All lanes of the
    warp execute this together. With `group`, only the lanes of each group of that many adjacent
    lanes do.

        %y = device.exchange %x mask 4 : f32
        %z = device.exchange %x mask 2 group 4 : f32

    Constraint: 1 ≤ mask ≤ 31; a group is a power of two above the mask, at most 16 (C1).
  }];
  let arguments = (ins AnyTypeOf<[Index, I32, I64, F32, F64]>:$operand, I64Attr:$mask, OptionalAttr<I64Attr>:$group);
  let results = (outs AnyTypeOf<[Index, I32, I64, F32, F64]>:$result);
  let assemblyFormat = "$operand `mask` $mask (`group` $group^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

include "dialects/Device/IR/DeviceTiles.td"

#endif // MOA_DIALECTS_DEVICE_IR_DEVICE_TD
