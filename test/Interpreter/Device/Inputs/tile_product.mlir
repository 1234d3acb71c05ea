// One block of one warpgroup: tiles come by the copy engine, operands by ldmatrix.
//   s = bf16(q · kᵀ) · v + q · kᵀ     by mma.sync, stored in a layout of half rows
//   t = q · kᵀ                        by wgmma, a the same fragment

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 8 by 4, lane: 4 by 1, register: 2 by 1]>
#wide = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
#column = #device.layout<[register: 8 by 2, lane: 4 by 1, register: 2 by 1], [register: 8 by 16, lane: 8 by 4] replicas [warp: 4 by 1]>
#half_rows = #device.layout<[warp: 4 by 1, lane: 16 by 2], [lane: 2 by 1, register: 32 by 1]>
!sums = !device.fragment<[64, 64], f32, #acc>
!all = !device.fragment<[64, 128], f32, #wide>
!rows = !device.fragment<[64, 64], bf16, #acc>
!columns = !device.fragment<[64, 64], bf16, #column>
!half_rows = !device.fragment<[64, 64], f32, #half_rows>
!ring = !device.ring<1, [64, 64], bf16>
!keys = !device.ring<1, [128, 64], bf16>
!once = !device.barriers<1, 3>
!tile = !moa.array<[64, 64], bf16>
!more = !moa.array<[128, 64], bf16>
!out = !moa.array<[64, 64], f32>

device.program @tile_product attributes {symbols = [], requires = [], arg_names = ["q", "k", "v"],
    result_names = ["s", "t"], result_types = [!moa.array<[64, 64], f32>, !moa.array<[64, 128], f32>]} {
^bb0(%q: !tile, %k: !more, %v: !tile, %s: !out, %t: !moa.array<[64, 128], f32>):
  device.kernel @tile_product_0 blocks "1" threads 128 {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %queries = device.shared : !ring
    %keys = device.shared : !keys
    %values = device.shared : !ring
    %full = device.barriers : !once
    %thread = device.thread
    %first = arith.cmpi eq, %thread, %c0 : index
    scf.if %first {
      device.copy %q[%c0] rows 0 to %queries[%c0] signals %full[%c0] : !tile, !ring, !once
      device.copy %k[%c0] rows 0 to %keys[%c0] signals %full[%c0] : !more, !keys, !once
      device.copy %v[%c0] rows 0 to %values[%c0] signals %full[%c0] : !tile, !ring, !once
    }
    device.wait %full[%c0] parity %c0 : !once
    %a = device.load_fragment %queries[%c0] at %c0, %c0 : !ring -> !rows
    %all = device.contract %a by %keys[%c0] transposed : !rows, !keys -> !all
    %kt = device.load_fragment %keys[%c0] at %c64, %c0 transposed : !keys -> !columns
    %qk = device.contract_fragments %a by %kt : !rows, !columns -> !sums
    %p = device.map(%qk) over #acc : (!sums) -> !rows {
    ^bb0(%x: f32, %i: index, %j: index):
      %y = arith.truncf %x : f32 to bf16
      device.yield %y : bf16
    }
    %vs = device.load_fragment %values[%c0] at %c0, %c0 : !ring -> !columns
    %pv = device.contract_fragments %p by %vs plus %qk : !sums : !rows, !columns -> !sums
    %long = device.convert_layout %pv : !sums -> !half_rows
    device.map(%long) over #half_rows : (!half_rows) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      %s0 = device.symbol "s.s0"
      %s1 = device.symbol "s.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      device.store %x, %s[%at] : f32, !out
      device.yield
    }
    %done = device.await %all pending 0 : !all
    device.map(%done) over #wide : (!all) -> () {
    ^bb0(%x: f32, %i: index, %j: index):
      %s0 = device.symbol "t.s0"
      %s1 = device.symbol "t.s1"
      %row = arith.muli %i, %s0 : index
      %column = arith.muli %j, %s1 : index
      %at = arith.addi %row, %column : index
      device.store %x, %t[%at] : f32, !moa.array<[64, 128], f32>
      device.yield
    }
  }
}
