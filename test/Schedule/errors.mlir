// What a schedule or a machine may get wrong: one error each, with the numbers.

// RUN: moa-opt %s --onf-lift="machine=zen4 print=true" -o %t.mlir > %t.json
// RUN: sed 's/"register"/"registers"/' %t.json > %t.key.json
// RUN: not moa-opt %s --onf-lift="machine=zen4 schedule=%t.key.json" 2>&1 | FileCheck %s --check-prefix=KEY
// KEY: error: schedule: unknown key 'registers' in axis 'i'; known are name, core, register, lane

// RUN: sed 's/"lane": 16/"lane": 12/' %t.json > %t.lane.json
// RUN: not moa-opt %s --onf-lift="machine=zen4 schedule=%t.lane.json" 2>&1 | FileCheck %s --check-prefix=LANE
// LANE: error: schedule: axis 'i' asks for 12 lanes of 32 bits, but machine 'zen4' has 1, 4, 8, 16

// RUN: not moa-opt %s --onf-lift="machine=avx2 schedule=%t.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: schedule: axis 'i' asks for 16 lanes of 32 bits, but machine 'avx2' has 1, 4, 8

// RUN: sed 's/"cache": [0-9]*/"cache": 0/' %t.json > %t.size.json
// RUN: not moa-opt %s --onf-lift="machine=zen4 schedule=%t.size.json" 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: schedule: expects a size from 1 to 16777216 for 'cache' in fold 'j', but got 0

// RUN: sed 's/"register": [0-9]*/"register": 9999/' %t.json > %t.big.json
// RUN: not moa-opt %s --onf-lift="machine=zen4 schedule=%t.big.json" 2>&1 | FileCheck %s --check-prefix=BIG
// BIG: error: schedule: fold 'j' of nest 0 needs {{[0-9]+}} bytes per core ({{[0-9]+}} staged, {{[0-9]+}} of one block's values, {{[0-9]+}} of states and rows), more than half of the 1048576 bytes of the second-level cache

// RUN: not moa-opt %s --onf-lift="schedule=%t.none.json" 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: error: cannot read schedule

// RUN: not moa-opt %s --onf-lift="machine=toaster" 2>&1 | FileCheck %s --check-prefix=MACHINE
// MACHINE: error: cannot read 'toaster' {{.*}} known are host, avx512, zen4, avx2, generic

onf.kernel @f attributes {symbols = ["N", "M"], requires = [], arg_names = [],
    result_names = ["O"], result_types = [!moa.array<[N, 8], f32>]} {
^bb0(%O: !moa.array<[N, 8], f32>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %o = onf.fold "j" in "M" : !moa.array<[8], f32> {
    ^bb0(%j: index):
      %c = arith.constant 1.0 : f32
      %a = onf.acc add "o" carries ["d"] in ["8"] refs() mul [] : () -> !moa.array<[8], f32> {
      ^bb0(%d: index):
        onf.yield %c : f32
      } repair {
      }
      onf.yield %a : !moa.array<[8], f32>
    }
    onf.for ["d"] in ["8"] {
    ^bb0(%d: index):
      %x = onf.at %o[%d] : !moa.array<[8], f32> -> f32
      onf.store %x, %O[%i, %d] : f32, !moa.array<[N, 8], f32>
    }
  }
}
