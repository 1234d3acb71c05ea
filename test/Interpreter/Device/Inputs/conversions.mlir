// Changes of layout of every kind.
//   y = x         32-bit elements between lanes, and registers renamed on the way back
//   z = x₁ · x₁   x₁ the first 16 by 16 of x in bf16: pairs move to other lanes and back,
//                 halves of pairs part, and what every warp holds is shared out

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1]>
#renamed = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4], [register: 2 by 2, lane: 4 by 1, register: 2 by 4]>
#long = #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 8 by 1]>
#all = #device.layout<[register: 2 by 2, lane: 8 by 4], [register: 2 by 4, lane: 4 by 1, register: 2 by 1] replicas [warp: 4 by 1]>
#other = #device.layout<[register: 2 by 2, lane: 8 by 1], [register: 2 by 4, lane: 4 by 8, register: 2 by 1] replicas [warp: 4 by 1]>
#column = #device.layout<[register: 2 by 2, lane: 4 by 1, register: 2 by 1], [register: 2 by 4, lane: 8 by 4] replicas [warp: 4 by 1]>
#shared_out = #device.layout<[warp: 4 by 1, lane: 4 by 8], [lane: 8 by 1, register: 2 by 1]>
!acc = !device.fragment<[64, 16], f32, #acc>
!renamed = !device.fragment<[64, 16], f32, #renamed>
!long = !device.fragment<[64, 16], f32, #long>
!wide = !device.fragment<[16, 16], f32, #all>
!all = !device.fragment<[16, 16], bf16, #all>
!other = !device.fragment<[16, 16], bf16, #other>
!column = !device.fragment<[16, 16], bf16, #column>
!shared_out = !device.fragment<[16, 16], f32, #shared_out>
!x = !moa.array<[64, 16], f32>
!z = !moa.array<[16, 16], f32>

device.program @conversions attributes {symbols = [], requires = [], arg_names = ["x"],
    result_names = ["y", "z"], result_types = [!moa.array<[64, 16], f32>, !moa.array<[16, 16], f32>]} {
^bb0(%x: !x, %y: !x, %z: !z):
  device.kernel @conversions_0 blocks "1" threads 128 {
    %given = device.map() over #acc : () -> !acc {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "x.s0"
      %s1 = device.symbol "x.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %x[%at] : !x -> f32
      device.yield %e : f32
    }
    %renamed = device.convert_layout %given : !acc -> !renamed
    %long = device.convert_layout %renamed : !renamed -> !long
    device.map(%long) over #long : (!long) -> () {
    ^bb0(%e: f32, %i: index, %j: index):
      %s0 = device.symbol "y.s0"
      %s1 = device.symbol "y.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      device.store %e, %y[%at] : f32, !x
      device.yield
    }
    %wide = device.map() over #all : () -> !wide {
    ^bb0(%i: index, %j: index):
      %s0 = device.symbol "x.s0"
      %s1 = device.symbol "x.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      %e = device.load %x[%at] : !x -> f32
      device.yield %e : f32
    }
    %all = device.map(%wide) over #all : (!wide) -> !all {
    ^bb0(%e: f32, %i: index, %j: index):
      %f = arith.truncf %e : f32 to bf16
      device.yield %f : bf16
    }
    %other = device.convert_layout %all : !all -> !other
    %back = device.convert_layout %other : !other -> !all
    %column = device.convert_layout %all : !all -> !column
    %square = device.contract_fragments %back by %column : !all, !column -> !wide
    %mine = device.convert_layout %square : !wide -> !shared_out
    device.map(%mine) over #shared_out : (!shared_out) -> () {
    ^bb0(%e: f32, %i: index, %j: index):
      %s0 = device.symbol "z.s0"
      %s1 = device.symbol "z.s1"
      %row = arith.muli %i, %s0 : index
      %column_at = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column_at : index
      device.store %e, %z[%at] : f32, !z
      device.yield
    }
  }
}
