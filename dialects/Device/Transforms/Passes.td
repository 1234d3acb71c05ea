//===- Passes.td - passes on the device dialect -------------*- tablegen -*-===//
#ifndef MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
#define MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def DeviceVerify : Pass<"device-verify"> {
  let summary = "Check the contract of the device level";
  let description = [{
    **Establishes**, for every `device.program`, K1 to K3 of `moa-verify` and

    - D1: all operations are of device, arith, math, scf or memref.
    - D2: `blocks` uses the program's symbols only; `device.symbol` may also use the stride symbols
      of the program's arrays.
    - D3: memory other than the arrays is private to a thread and of constant shape.
    - D4: every output has exactly one store. Or several kernels with exclusive choices
      (`moa.chosen`) have one each: for different values of one array, or for values of an array
      that holds them only where the first array has a value that no other kernel runs for
      (`where`).
    - D5: one kernel stores an array of the workspace. Only later kernels load it, or later stages
      of the kernel (`device.stages`), or the kernel itself if its blocks send and read signals
      (`device.signal`). A flag (`device.raise`) is stored by an earlier kernel than those that
      raise it, and these do not load it.
    - D6: a kernel with `moa.beside` may overlap with the kernel before it, and with those which
      that kernel may overlap with. It is not the first kernel. None of these kernels writes an
      array that another one accesses, except outputs that D4 lets both store.
    - D7: the skip flag of a kernel (`moa.idle`) is an array of the workspace with one i32. A kernel
      after all that raise it, and before this one, waits for all earlier kernels whenever any of
      those does work. Hosts launch that kernel whenever they launch this one, or any kernel between
      them. A kernel that may overlap with this one has the same flag, or one that is raised only by
      kernels which this flag skips.

    **Requires** nothing. Changes nothing. **Numerics**: exact. **Cost**: linear.
  }];
}

def DeviceCombineKernels : Pass<"device-combine-kernels"> {
  let summary = "Launch independent kernels together";
  let description = [{
    Horizontal fusion of launches. Kernels without conflicts (none writes an array that another one
    accesses) become one kernel, which saves a launch and the wait for its last blocks. The first
    blocks do the work of the first kernel, and so on.

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 128 { B }

    becomes

        device.kernel @f_0 blocks "M + N" threads 128 {
          %b = device.block
          scf.if %b < N { A } else { B for the block %b - N }
        }

    Kernels are combined if all of these hold:

    - They have neither shared memory nor roles.
    - They have equally many threads, and blocks.
    - Hosts launch one whenever they launch the other. The result has the launch conditions of both.
    - If they store outputs, they have the same choice (`moa.chosen`).

    A kernel moves to the earliest launch possible. The launch keeps the name of its first kernel.
    From there a kernel moves to a later launch in two cases:

    - It is alone, so a launch is saved.
    - It is the last of several, its blocks grow with as many sizes as those of any kernel, and the
      later launch has few blocks, which it hides. Kernels with few blocks that depend on it, or
      that must not run after it, then move to the latest launches possible.

    **Requires** D1 to D5. **Establishes** that no two consecutive kernels could be one launch with
    the same conditions. **Numerics**: exact. **Cost**: cubic in kernels.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceOverlapKernels : Pass<"device-overlap-kernels"> {
  let summary = "Mark kernels that need not wait for the kernel before them";
  let description = [{
    A kernel may overlap with the one before it if neither writes an array that the other one
    accesses. It gets the attribute `moa.beside`. If the kernel before it has the attribute too, the
    same must hold for the kernel before that, and so on to one that waits. Kernels that store an
    output for different values of one array (`moa.chosen`) do not write the same elements.

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 512 { B }

    becomes

        device.kernel @f_0 blocks "N" threads 128 { A }
        device.kernel @f_1 blocks "M" threads 512 attributes {moa.beside} { B }

    Targets start the blocks of such a kernel when all blocks of the kernel before it have started
    (programmatic dependent launch). The last block ends only when the kernel before it has ended,
    so a wait for one is a wait for both.

    **Requires** D1 to D5. **Establishes** D6. **Numerics**: exact. **Cost**: quadratic in kernels.
  }];
}

def DeviceSkipUnchosen : Pass<"device-skip-unchosen"> {
  let summary = "End blocks early if no element of an array chooses their kernel";
  let description = [{
    Blocks of a kernel with a choice (`moa.chosen`) work only if an array has a certain value. If no
    element has it, all blocks should end at once. So a flag in the workspace summarises the array:
    the first kernel of the program sets it to 0, and the kernel that stores the array raises it
    when it stores the value.

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

    - The array is in the workspace, and one kernel stores it. If it stores a run, each element is
      tested.
    - The storing kernel is launched whenever the kernel with the choice is.
    - The first kernel of the program is another one, has a block, is launched for all sizes, and
      has ended when the storing kernel starts.
    - The blocks grow with as many sizes as those of any kernel, and no kernel has more than 16
      times as many for large sizes.
    - The kernel does not overlap with the one before it (`moa.beside`). Overlap hides its blocks
      already, and a block with work would wait for the load.

    **Skip flags.** Some kernel waits for the storing kernel. After it the flag is final, so later
    kernels read it without waiting. They get `moa.idle`, and all but one of their blocks end while
    the last blocks of the waiting kernel run. Two further kinds of kernels get the flag: those
    whose value occurs only where the first kernel's value does (`where` in `moa.chosen`), and those
    that store only workspace arrays which no other kernels read.

        device.kernel @f_2 blocks "B*N" threads 128 attributes {moa.chosen = {by = "c", is = 0}} { C }
        device.kernel @f_3 blocks "B" threads 128 attributes {moa.chosen = {by = "c", is = 1}} { … device.store %e, %w[%b] … }
        device.kernel @f_4 blocks "B" threads 128 { … device.load %w[%b] … device.store %q, %p[%b] … }
        device.kernel @f_5 blocks "B*N" threads 128 attributes {moa.chosen = {by = "p", is = 1, where = {by = "c", is = 1}}} { E }

    becomes, with @f_1 as before and @f_2 ending early by a flag of its own,

        device.kernel @f_3 … attributes {moa.chosen = {by = "c", is = 1}, moa.idle = "c_any1"} { … }
        device.kernel @f_4 … attributes {moa.idle = "c_any1"} { … }
        device.kernel @f_5 … attributes {…, moa.idle = "c_any1"} { … }

    If a kernel that stores choices is itself skipped (@f_4), its array's flag stays 0 and the
    chosen kernels are skipped too. A kernel with the same skip flag as the storing kernel waits
    whenever that kernel does work. So kernels after it may use the flag of the later array, which
    skips more.

    **Requires** D1 to D6, and that blocks with a choice do nothing if it is not taken.
    **Establishes** D7. **Numerics**: exact. **Cost**: linear, per choice.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceJoinBlocks : Pass<"device-join-blocks"> {
  let summary = "Let one block do the work of four neighbours that read the same elements";
  let description = [{
    Thread coarsening (register tiling). Each block does the work of four neighbours, and their
    common work once: values that depend on the block's number only by a quotient that they share,
    and loads at such values. This pays for a matrix product Σ_k a_ik·b_kj with blocks of one row i
    each: b_kj is read once for four rows. Elements that a loop reads at adjacent offsets, such as
    a_ik, are read by runs of four (`device.load_run`).

    A kernel is changed if all of these hold:

    - Its number of blocks is a multiple of 4 for all sizes.
    - Its threads only compute, read, and store to the workspace.
    - Some loop reads something once for all four blocks.

    For example:

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

    **Requires** D1 to D5. **Establishes** nothing more. **Numerics**: exact, in the same order.
    **Cost**: linear.
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::memref::MemRefDialect", "mlir::scf::SCFDialect"];
}

def DeviceChainKernels : Pass<"device-chain-kernels"> {
  let summary = "Launch dependent kernels together if they may have no work";
  let description = [{
    A launch without work costs as much as any small launch, because each waits for the one before
    it. So consecutive kernels that one flag skips become the stages of one launch
    (`device.stages`): the blocks of a stage start when those of all earlier stages have ended.

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

    Kernels are combined if all of these hold:

    - There are at least `fewest`: a stage with work costs more than a launch with work.
    - They have the same skip flag (`moa.idle`) and the same launch conditions.
    - Their blocks grow with fewer sizes than those of some kernel.
    - Their threads use only registers and arrays, store only to the workspace, and raise no flag.
    - The first kernel of the program is another one, has a block, is launched for all sizes, and
      has ended when the first stage starts. It sets the counters to 0.

    A kernel that may overlap with the last of them (`moa.beside`) waits if it depends on another
    one.

    **Requires** D1 to D7. **Establishes** nothing more. **Numerics**: exact. **Cost**: quadratic in
    kernels.
  }];
  let options = [
    Option<"residents", "residents", "int64_t", /*default=*/"1056", "Most blocks of a grid, as many as a device holds at once">,
    Option<"fewest", "fewest", "int64_t", /*default=*/"4", "Fewest launches that become one">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::scf::SCFDialect"];
}

def DeviceAlignRuns : Pass<"device-align-runs"> {
  let summary = "Mark runs that are aligned for wide accesses";
  let description = [{
    A run (`device.load_run`, `device.store_run`) gets `aligned` if its stride is 1 and its offset
    is a multiple of one access for all sizes. Its alignment is then not tested at run time, and the
    code for unaligned runs is omitted. A run is marked in these arrays:

    - arrays of the workspace;
    - inputs and outputs whose tiles a kernel copies (`device.copy`, `device.store_tile`). Hosts
      reject such an array unless it begins at whole 16 bytes, has stride 1 along a last axis of at
      least two indices, and strides of whole 16 bytes along the others. The stride of the last axis
      becomes the constant 1.

    A power of two that divides the offset follows from the operands: the divisors of a product
    multiply; a sum has the smaller one, a bitwise and the larger one. A quotient by a power of two
    divides it, and a symbol's expression has the smallest divisor of its coefficients.

        device.load_run %w[%o] stride %c1 count %c8 to %buffer[] : <[N, 128], f32>, memref<8xf32>   // %o = 128·%i + 8·%lane

    becomes

        device.load_run %w[%o] stride %c1 count %c8 aligned to %buffer[] : <[N, 128], f32>, memref<8xf32>

    **Requires** nothing. **Establishes** nothing but these marks. **Numerics**: exact. **Cost**:
    linear.
  }];
}

#endif // MOA_DIALECTS_DEVICE_TRANSFORMS_PASSES_TD
