// y = x · w in f64 by mma.sync m8n8k4, a warp for every 8 rows; the sum starts at x · w.

#a = #device.layout<[warp: 4 by 1, lane: 8 by 4], [register: 2 by 1, lane: 4 by 1]>
#b = #device.layout<[register: 2 by 1, lane: 4 by 1], [register: 2 by 2, lane: 8 by 4] replicas [warp: 4 by 1]>
#c = #device.layout<[warp: 4 by 1, lane: 8 by 4], [register: 2 by 2, lane: 4 by 1, register: 2 by 1]>
!a = !device.fragment<[32, 8], f64, #a>
!b = !device.fragment<[8, 16], f64, #b>
!c = !device.fragment<[32, 16], f64, #c>
!x = !moa.array<[32, 8], f64>
!w = !moa.array<[8, 16], f64>
!y = !moa.array<[32, 16], f64>

device.program @double_product attributes {symbols = [], requires = [], arg_names = ["x", "w"],
    result_names = ["y"], result_types = [!moa.array<[32, 16], f64>]} {
^bb0(%x: !x, %w: !w, %y: !y):
  device.kernel @double_product_0 blocks "1" threads 128 {
    %a = device.map() over #a : () -> !a {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "x.s0"
      %s1 = device.symbol "x.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %x[%at] : !x -> f64
      device.yield %e : f64
    }
    %b = device.map() over #b : () -> !b {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "w.s0"
      %s1 = device.symbol "w.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %w[%at] : !w -> f64
      device.yield %e : f64
    }
    %once = device.contract_fragments %a by %b : !a, !b -> !c
    %twice = device.contract_fragments %a by %b plus %once : !c : !a, !b -> !c
    device.map(%twice) over #c : (!c) -> () {
    ^bb0(%e: f64, %i: index, %j: index):
      %s0 = device.symbol "y.s0"
      %s1 = device.symbol "y.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      device.store %e, %y[%at] : f64, !y
      device.yield
    }
  }
}
