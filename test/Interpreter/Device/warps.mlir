// Single warps, and threads' parts of a row: row i of y is i, or 1004 + i in the warps
// whose rows hold a row that is asked for; part l of a row is what its l-th lane adds.

// RUN: %python -c "import numpy as np; a = np.zeros(64, np.float32); a[20] = 1; np.save('%t.npy', a)"
// RUN: moa-run %s --target=device x=%t.npy -o y=%t-y.npy -o parts=%t-parts.npy -o offsets=%t-o.npy | FileCheck %s --check-prefix=RIGHT
// RIGHT: run {{.*}} in the interpreter
// RUN: %python -c "import numpy as np; y = np.load('%t-y.npy'); i = np.arange(64); assert (y == np.where(i // 16 == 1, 1004 + i, i)).all(), y"
// RUN: %python -c "import numpy as np; p = np.load('%t-parts.npy'); l = np.arange(4); assert (p == sum(8 * c + 2 * l + e for c in range(2) for e in range(2))).all(), p"
// RUN: %python -c "import numpy as np; o = np.load('%t-o.npy'); j = np.arange(16); assert (o == j - j % 8 // 2 * 2).all(), o"

// What all warps do together does not stand where some are not.
// RUN: sed 's|// together:||' %s > %t.mlir
// RUN: not moa-run %t.mlir --target=device x=%t.npy 2>&1 | FileCheck %s --check-prefix=TOGETHER
// TOGETHER: error: {{.*}}.mlir:[[#]]:[[#]]: 'device.wait' needs all warps, but some may skip the device.if_any around it (block 0)

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#part = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [lane: 4 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
!tile = !device.fragment<[64, 16], f32, #acc>
!parts = !device.fragment<[64, 4], f32, #part>
!rows = !device.fragment<[64], f32, #row>
!flags = !device.fragment<[64], i1, #row>
!x = !moa.array<[64], f32>
!lanes = !moa.array<[64, 4], f32>
!columns = !moa.array<[64, 16], f32>

device.program @warps attributes {symbols = [], requires = [], arg_names = ["x"],
    result_names = ["y", "parts", "offsets"],
    result_types = [!moa.array<[64], f32>, !moa.array<[64, 4], f32>, !moa.array<[64, 16], f32>]} {
^bb0(%x: !x, %y: !x, %parts_out: !lanes, %offsets: !columns):
  device.kernel @warps_0 blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %far = arith.constant 1000.0 : f32
    %quarter = arith.constant 0.25 : f32
    %barriers = device.barriers : !device.barriers<1, 4>
    %blank = device.fill %zero : f32 -> !rows
    %asked = device.map(%blank) over #row : (!rows) -> !flags {
    ^bb0(%e: f32, %i: index):
      %stride = device.symbol "x.s0"
      %at = arith.muli %i, %stride : index
      %v = device.load %x[%at] : !x -> f32
      %is = arith.cmpf one, %v, %zero : f32
      device.yield %is : i1
    }
    %numbers = device.map(%blank) over #row : (!rows) -> !rows {
    ^bb0(%e: f32, %i: index):
      %i32 = arith.index_cast %i : index to i32
      %number = arith.sitofp %i32 : i32 to f32
      device.yield %number : f32
    }
    // A vote, and with it the same as by the branch's own: the
    // reciprocal of a quarter is 4.
    %voted = device.any %asked : !flags
    %result = device.if_any %asked else (%numbers) : (!flags, !rows) -> !rows {
      // together: device.wait %barriers[%c0] parity %c0 : !device.barriers<1, 4>
      %moved = device.map(%numbers) over #row : (!rows) -> !rows {
      ^bb0(%e: f32, %i: index):
        %f = arith.addf %e, %far : f32
        device.yield %f : f32
      }
      device.yield %moved : !rows
    }
    device.map(%result, %voted) over #row : (!rows, !flags) -> () {
    ^bb0(%moved: f32, %vote: i1, %i: index):
      %four = device.reciprocal %quarter : f32
      %more = arith.select %vote, %four, %zero : f32
      %e = arith.addf %moved, %more : f32
      %stride = device.symbol "y.s0"
      %at = arith.muli %i, %stride : index
      device.store %e, %y[%at] : f32, !x
      device.yield
    }
    %flat = device.fill %zero : f32 -> !tile
    %columns = device.map(%flat) over #acc : (!tile) -> !tile {
    ^bb0(%e: f32, %i: index, %j: index):
      %j32 = arith.index_cast %j : index to i32
      %number = arith.sitofp %j32 : i32 to f32
      device.yield %number : f32
    }
    %parts = device.reduce add %columns : !tile -> !parts
    device.map(%parts) over #part : (!parts) -> () {
    ^bb0(%e: f32, %i: index, %l: index):
      %s0 = device.symbol "parts.s0"
      %s1 = device.symbol "parts.s1"
      %a = arith.muli %i, %s0 : index
      %b = arith.muli %l, %s1 : index
      %at = arith.addi %a, %b : index
      device.store %e, %parts_out[%at] : f32, !lanes
      device.yield
    }
    // A map gives every element its lane's part; the lanes' parts of a row add up to
    // what a reduction over all of them gives.
    %whole = device.reduce add %parts : !parts -> !rows
    %same = device.reduce add %columns : !tile -> !rows
    device.map(%parts, %whole, %same) over #acc : (!parts, !rows, !rows) -> () {
    ^bb0(%part: f32, %a: f32, %b: f32, %i: index, %j: index):
      %difference = arith.subf %a, %b : f32
      %offset = device.thread_offset %j
      %o32 = arith.index_cast %offset : index to i32
      %number = arith.sitofp %o32 : i32 to f32
      %value = arith.addf %number, %difference : f32
      %s0 = device.symbol "offsets.s0"
      %s1 = device.symbol "offsets.s1"
      %p = arith.muli %i, %s0 : index
      %q = arith.muli %j, %s1 : index
      %at = arith.addi %p, %q : index
      device.store %value, %offsets[%at] : f32, !columns
      device.yield
    }
  }
}
