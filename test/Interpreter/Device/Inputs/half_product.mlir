// y = x · w in f16 by mma.sync m16n8k8 from fragments of global memory: two warps along
// the rows by two along the columns, three tiles of columns and of k each. No instruction
// is newer than sm_80.

#a = #device.layout<[warp: 2 by 2, register: 2 by 2, lane: 8 by 4], [register: 3 by 4, lane: 4 by 1, register: 2 by 1] replicas [warp: 2 by 1]>
#b = #device.layout<[register: 3 by 2, lane: 4 by 1, register: 2 by 1], [warp: 2 by 1, register: 3 by 6, lane: 8 by 4] replicas [warp: 2 by 2]>
#c = #device.layout<[warp: 2 by 2, register: 2 by 2, lane: 8 by 4], [warp: 2 by 1, register: 3 by 4, lane: 4 by 1, register: 2 by 1]>
!a = !device.fragment<[32, 24], f16, #a>
!wide_a = !device.fragment<[32, 24], f32, #a>
!b = !device.fragment<[24, 48], f16, #b>
!wide_b = !device.fragment<[24, 48], f32, #b>
!c = !device.fragment<[32, 48], f32, #c>
!x = !moa.array<[32, 24], f16>
!w = !moa.array<[24, 48], f16>
!y = !moa.array<[32, 48], f32>

device.program @half_product attributes {symbols = [], requires = [], arg_names = ["x", "w"],
    result_names = ["y"], result_types = [!moa.array<[32, 48], f32>]} {
^bb0(%x: !x, %w: !w, %y: !y):
  device.kernel @half_product_0 blocks "1" threads 128 {
    %wide_a = device.map() over #a : () -> !wide_a {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "x.s0"
      %s1 = device.symbol "x.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %x[%at] : !x -> f16
      %f = arith.extf %e : f16 to f32
      device.yield %f : f32
    }
    %a = device.map(%wide_a) over #a : (!wide_a) -> !a {
    ^bb0(%e: f32, %i: index, %j: index):
      %f = arith.truncf %e : f32 to f16
      device.yield %f : f16
    }
    %wide_b = device.map() over #b : () -> !wide_b {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "w.s0"
      %s1 = device.symbol "w.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %w[%at] : !w -> f16
      %f = arith.extf %e : f16 to f32
      device.yield %f : f32
    }
    %b = device.map(%wide_b) over #b : (!wide_b) -> !b {
    ^bb0(%e: f32, %i: index, %j: index):
      %f = arith.truncf %e : f32 to f16
      device.yield %f : f16
    }
    %c = device.contract_fragments %a by %b : !a, !b -> !c
    device.map(%c) over #c : (!c) -> () {
    ^bb0(%e: f32, %i: index, %j: index):
      %s0 = device.symbol "y.s0"
      %s1 = device.symbol "y.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      device.store %e, %y[%at] : f32, !y
      device.yield
    }
  }
}
