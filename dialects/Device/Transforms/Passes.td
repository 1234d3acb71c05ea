//===- Passes.td - passes on the device dialect -------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeviceVerify : Pass<"device-verify"> {
  let summary = "Check the contract of the device level";
  let description = [{
    **Establishes**, for every `device.program`, K1 to K3 of `moa-verify` and

    - D1: no operation but those of device, arith, math, scf and memref.
    - D2: `blocks` uses the program's symbols only, `device.symbol` those and the
        stride symbols of its arrays.
    - D3: memory beside the arrays is private to a thread and of constant shape.
    - D4: every output has exactly one store, or one in each of several kernels that say,
        in `moa.chosen`, for which values of one array they run, each for another, or where another array has a value for
        which none of the others runs (`where`).
    - D5: one kernel stores an array of the workspace, and only later ones load it, or the same one where its blocks
      signal (`device.signal`) and read signals, or in a later stage (`device.stages`). What a kernel raises (`device.raise`) an earlier one stores, and
      that kernel does not load it.
    - D6: a kernel that may run beside the one in front of it (`moa.beside`), and beside all that this one may run
      beside, is not the first one, and of these kernels none reads or writes what another one writes; an output that
      D4 lets both store is none such.
    - D7: what a kernel may have nothing to do for (`moa.idle`) is a flag, an array of the workspace of one i32; behind
      those that raise it and in front of this kernel stands one that waits for all before it wherever any of those has
      anything to do, and that hosts launch wherever they launch this kernel, or any kernel between them; a kernel that may run beside this one has the same flag, or one that only kernels raise which have
      nothing to do by it.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

def DeviceCombineKernels : Pass<"device-combine-kernels"> {
  let summary = "Launch kernels that do not need each other together";
  let description = [{
    Kernels of which none reads or writes what another one writes become one, whose first blocks do what the
    first one's do, and so on: a launch and the wait for its last blocks are saved for each. Only kernels
    without shared memory and roles, with as many threads, and of which a host launches one wherever it launches the
    other: both are launched where both ask for it. Those that store outputs have one choice (`moa.chosen`).

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 128 { B }

    becomes

        device.kernel @f_0 blocks "M + N" threads 128 {
          %b = device.block
          scf.if %b < N { A } else { B for the block %b - N }
        }

    A kernel moves to the first launch that it may be in, which keeps the name of its first kernel. From there it moves
    to a later one where it is alone, which saves a launch, and where it is the last of several whose blocks grow with
    as many sizes as any kernel's, if that launch has few blocks, which it hides: kernels of few blocks that need it, or
    that it must not stand behind, move to the latest launches that they may be in. Kernels without blocks stay by
    themselves.

    **Requires** D1 to D5. **Establishes** that no two plain kernels that could be one launch of the same
    conditions follow each other. **Numerics**: exact. **Cost**: cubic in kernels.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceOverlapKernels : Pass<"device-overlap-kernels"> {
  let summary = "Say which kernels need not wait for the one in front of them";
  let description = [{
    A kernel that neither reads nor writes what the one in front of it writes, nor writes what that one reads, may start
    while that one runs: `moa.beside`. If that one has the attribute too, the same must hold of the one in front of it,
    and so on to one that waits. Kernels that store an output for different values of one array (`moa.chosen`) do
    not write the same elements.

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 512 { B }

    becomes

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 512 attributes {moa.beside} { B }

    Targets let the blocks of such a kernel start when all blocks of the one in front of it have, and let its last
    block end when that one has ended, so that whoever waits for the one waits for both.

    **Requires** D1 to D5. **Establishes** D6. **Numerics**: exact. **Cost**: quadratic in kernels.
  }];
}

def DeviceSkipUnchosen : Pass<"device-skip-unchosen"> {
  let summary = "End blocks at once where an array chooses none of a kernel's";
  let description = [{
    A kernel with a choice (`moa.chosen`) has blocks that do something only where an array has a value. Where no element
    of it has, the first thing that a block does is to end: a flag of the workspace says so, which the first kernel of the
    program stores 0 in and the kernel that stores the array raises where it stores the value.

        device.kernel @f_0 blocks "1" threads 128 { A }
        device.kernel @f_1 blocks "B" threads 128 { … device.store %p, %c[%b] … }
        device.kernel @f_2 blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 1}} { C }

    becomes

        device.kernel @f_0 blocks "1" threads 128 { c_any1[0] ← 0 by the first thread; A }
        device.kernel @f_1 blocks "B" threads 128 {
          … device.store %p, %c[%b]; scf.if %p == 1 { device.raise %c_any1 } …
        }
        device.kernel @f_2 blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 1}} {
          %any = device.load %c_any1[0]
          device.exit_if %any == 0
          C
        }

    A kernel with a choice is changed if all of these hold:

    - The array is in the workspace, and one kernel stores it. If it stores a run, it tests each element.
    - The storing kernel is launched whenever the kernel with the choice is.
    - The first kernel of the program is another one, has a block, is launched for all sizes, and has ended when the storing
      kernel starts.
    - The blocks grow with as many sizes as any kernel's, and no kernel has 16 times as many for large sizes.
    - The kernel does not overlap the one before it (`moa.beside`): that hides its blocks already, and a block with work would
      wait for the load.

    One kernel waits for the storing kernel. After it the flag no longer changes, so later kernels read it without waiting. They
    get `moa.idle`, and all but one of their blocks end next to the last blocks of the kernel that waited. The same holds for two
    other kinds of kernels: those whose value occurs only where the first kernel's value does (`where` in `moa.chosen`), and those
    that store only workspace arrays which no other kernels read.

        device.kernel @f_2 blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 0}} { C }
        device.kernel @f_3 blocks "B" threads 128 attributes {moa.chosen = {by = "c", is = 1}} { … device.store %e, %w[%b] … }
        device.kernel @f_4 blocks "B" threads 128 { … device.load %w[%b] … device.store %q, %p[%b] … }
        device.kernel @f_5 blocks "B*N" threads 128 attributes {moa.chosen = {by = "p", is = 1, where = {by = "c", is = 1}}} { E }

    becomes, with @f_1 as before and @f_2 ending early by a flag of its own,

        device.kernel @f_3 … attributes {moa.chosen = {by = "c", is = 1}, moa.idle = "c_any1"} { … }
        device.kernel @f_4 … attributes {moa.idle = "c_any1"} { … }
        device.kernel @f_5 … attributes {…, moa.idle = "c_any1"} { … }

    Where a kernel that stores an array has nothing to do itself (@f_4), neither has what the array chooses: its flag stays
    0. A kernel that ends by the same flag as that one waits wherever that one does something, so that those behind it may
    end by a flag of the later array, which says more.

    **Requires** D1 to D6, and that blocks with a choice do nothing where it is not taken. **Establishes** D7. **Numerics**: exact. **Cost**: linear, per choice.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceJoinBlocks : Pass<"device-join-blocks"> {
  let summary = "Let blocks do the work of four, where these read the same";
  let description = [{
    In a kernel whose number of blocks is a multiple of 4 whatever the sizes are, and whose threads compute, read and store in the workspace, each
    block does what four neighbours do. What these have in common is done once: what depends on the block's number by a quotient
    that they share, and what is read there. Only where in some loop something is read once for all four, as b_kj of the matrix
    product Σ_k a_ik·b_kj in blocks of one row i each. What such a loop reads at adjacent places, as a_ik, it reads by runs of four
    (`device.load_run`).

        device.kernel @f blocks "128*B" threads 128 {
          %i = arith.remui %block, 128; %b = arith.divui %block, 128
          %sum = scf.for %k = 0 to 128 iter_args(%s = 0) {
            %s + device.load %x[%at_bi + %k] * device.load %y[%at_bk + %thread]
          }
          device.store %sum, %z[…]
        }

    becomes

        device.kernel @f blocks "32*B" threads 128 {
          %i = arith.remui 4·%block, 128; %b = arith.divui 4·%block, 128
          %sum:4 = scf.for %t = 0 to 32 iter_args(…) {
            device.load_run %x[%at_bi + 4·%t] …; … of %i + 3
            scf.for %e = 0 to 4 iter_args(…) {
              %y_k = device.load %y[%at_bk + %thread]
              …
            }
          }
          device.store %sum#0, %z[…]; …
        }

    **Requires** D1 to D5. **Establishes** nothing more. **Numerics**: exact, in the same order. **Cost**: linear.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect"];
}

def DeviceChainKernels : Pass<"device-chain-kernels"> {
  let summary = "Launch kernels that need each other but may have nothing to do together";
  let description = [{
    Kernels one behind the other that have nothing to do by one flag (`moa.idle`), that hosts launch for the same sizes, whose
    blocks grow with fewer sizes than those of some kernel, and whose threads use nothing but registers and arrays of the workspace,
    become one launch if they are four or more: each is a stage of it, whose blocks begin when those of all stages in front of it have
    ended (`device.stages`). A launch with nothing to do costs as much as any small one, some 2 µs, as each waits for the one before;
    a stage with work costs up to 4 µs more than a launch, so that few are left as they are.

        device.kernel @f_3 blocks "64*B" threads 128 attributes {moa.idle = "c_any1"} { … device.store %x, %w[%b] … }
        device.kernel @f_4 blocks "B" threads 64 attributes {moa.idle = "c_any1"} { … device.load %w[%b] … }

    becomes

        device.kernel @f_3 blocks "65*B" threads 128 attributes {moa.idle = "c_any1"} {
          device.stages %f_3_turns residents 1056 counts "64*B", "B" : <[33], i32> {
          ^bb0(%b: index):
            … device.store %x, %w[%b] …
          }, {
          ^bb0(%b: index):
            scf.if %thread < 64 { … device.load %w[%b] … }
          }
        }

    The first kernel of the program stores 0 in the counters, so that it is another one, has a block, is launched whatever the sizes
    are, and has ended when this one starts. What may run beside the last of the kernels (`moa.beside`) waits where it needs
    another of them. None of them raises a flag.

    **Requires** D1 to D7. **Establishes** nothing more. **Numerics**: exact. **Cost**: quadratic in kernels.
  }];
  let options = [
    Option<"residents", "residents", "int64_t", /*default=*/"1056", "the most blocks of a grid: those a device has place for">,
    Option<"fewest", "fewest", "int64_t", /*default=*/"4", "launches that become one, or more">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceAlignRuns : Pass<"device-align-runs"> {
  let summary = "Say which runs begin where wide accesses may";
  let description = [{
    Runs (`device.load_run`, `device.store_run`) in arrays of the workspace, of stride 1, whose offset is a multiple of as
    many elements as one access has, whatever sizes are, get `aligned`: nobody asks it of them when they run, and the code
    for others is left out. What a number is a multiple of follows from its operands: of a product from both, of a sum from
    what both are multiples of, of bits that two numbers have from the bits that one lacks, of a quotient by a power of two from
    the dividend, of a symbol's expression from its coefficients. So do runs in inputs and outputs of whose
    tiles a kernel of the program has copies (`device.copy`, `device.store_tile`): hosts refuse those that do not begin at
    whole 16 bytes, or whose strides are not 1 along the last axis, of two indices or more, and whole 16 bytes along others.
    Of these the stride along the last axis becomes the constant 1.

        device.load_run %w[%o] stride %c1 count %c8 to %buffer[] : <[N, 128], f32>, memref<8xf32>   // %o = 128·%i + 8·%lane

    becomes

        device.load_run %w[%o] stride %c1 count %c8 aligned to %buffer[] : <[N, 128], f32>, memref<8xf32>

    **Requires** nothing. **Establishes** nothing but these marks. **Numerics**: exact. **Cost**: linear.
  }];
}

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
