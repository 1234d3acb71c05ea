// s = q · kᵀ over 256 columns: each block of a cluster of 4 contracts 64 of them, and the first block adds
// the sums of the others in order. The mean of each row of the product is combined in the same way.

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
#row = #device.layout<[warp: 4 by 1, register: 2 by 1, lane: 8 by 4] replicas [lane: 4 by 1]>
!sums = !device.fragment<[64, 128], f32, #acc>
!totals = !device.fragment<[64], f32, #row>
!rows = !device.ring<1, [64, 64], bf16>
!keys = !device.ring<2, [128, 64], bf16>
!once = !device.barriers<1, 2>
!q = !moa.array<["64*T", 256], bf16>
!k = !moa.array<[128, 256], bf16>
!s = !moa.array<["64*T", 128], f32>
!t = !moa.array<["64*T"], f32>

device.program @cluster_product attributes {symbols = ["T"], requires = [], arg_names = ["q", "k"],
    result_names = ["s", "t"], result_types = [!s, !t]} {
^bb0(%q: !q, %k: !k, %s: !s, %t: !t):
  device.kernel @cluster_product_0 blocks "4*T" threads 256 cluster 4 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %rows = device.shared : !rows
    %keys = device.shared : !keys
    %full = device.barriers : !once
    %block = device.block
    %rank = arith.remui %block, %c4 : index
    %tile = arith.divui %block, %c4 : index
    %first_row = arith.muli %tile, %c64 : index
    %column = arith.muli %rank, %c64 : index
    %is_first = arith.cmpi eq, %rank, %c0 : index
    device.specialize consumers 1 registers 208 {
      device.wait %full[%c0] parity %c0 : !once
      %started = device.contract %rows rows %c0 by %keys[%c0] transposed : !rows, !keys -> !sums
      %own = device.await %started pending 0 : !sums
      %own_total = device.reduce add %own : !sums -> !totals
      device.sync_warpgroup // all warps have read the keys
      %p = device.publish %own in %keys at 0 : !sums, !keys
      %p_total = device.publish %own_total in %rows at 1024 : !totals, !rows
      device.sync_cluster // published
      scf.if %is_first {
        %all:2 = scf.for %k_rank = %c1 to %c4 step %c1 iter_args(%sum = %own, %total = %own_total) -> (!sums, !totals) {
          %x = device.load_peer %p of %k_rank : !sums
          %y = device.load_peer %p_total of %k_rank : !totals
          %next = device.map(%sum, %x) over #acc : (!sums, !sums) -> !sums {
          ^bb0(%a: f32, %b: f32, %i: index, %j: index):
            %c = arith.addf %a, %b : f32
            device.yield %c : f32
          }
          %next_total = device.map(%total, %y) over #row : (!totals, !totals) -> !totals {
          ^bb0(%a: f32, %b: f32, %i: index):
            %c = arith.addf %a, %b : f32
            device.yield %c : f32
          }
          scf.yield %next, %next_total : !sums, !totals
        }
        device.map(%all#0) over #acc : (!sums) -> () {
        ^bb0(%e: f32, %i: index, %j: index):
          %row = arith.addi %first_row, %i : index
          %s0 = device.symbol "s.s0"
          %s1 = device.symbol "s.s1"
          %a = arith.muli %row, %s0 : index
          %b = arith.muli %j, %s1 : index
          %at = arith.addi %a, %b : index
          device.store %e, %s[%at] : f32, !s
          device.yield
        }
        device.map(%all#1) over #row : (!totals) -> () {
        ^bb0(%e: f32, %i: index):
          %row = arith.addi %first_row, %i : index
          %t0 = device.symbol "t.s0"
          %at = arith.muli %row, %t0 : index
          device.store %e, %t[%at] : f32, !t
          device.yield
        }
      }
      device.sync_cluster // read
    } producer registers 40 {
      device.copy %q[%first_row] columns %column rows 0 to %rows[%c0] signals %full[%c0] : !q, !rows, !once
      device.copy %k[%c0] columns %column rows 0 to %keys[%c0] signals %full[%c0] : !k, !keys, !once
    }
  }
}
