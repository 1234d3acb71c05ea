// Tiles whose rows are found through arrays, of one block per 64 rows:
//   s[i, j] = Σ_d x[row[i], d] · y[page[j / 16], j mod 16, d]
// Rows of x are copied by threads, 40 of 64 columns; a row number below 0 gives zeros. Pages of y are
// copied by TMA, eight per tile. A page number outside of the array gives zeros.

#acc = #device.layout<[warp: 4 by 1, register: 2 by 2, lane: 8 by 4], [register: 16 by 4, lane: 4 by 1, register: 2 by 1]>
!sums = !device.fragment<[64, 128], f32, #acc>
!rows = !device.ring<1, [64, 64], bf16>
!keys = !device.ring<2, [128, 64], bf16>
!rows_full = !device.barriers<1, 128>
!keys_full = !device.barriers<2, 8>
!keys_empty = !device.barriers<2, 4>
!x = !moa.array<[R, 40], bf16>
!y = !moa.array<[P, 16, 64], bf16>
!s = !moa.array<[N, "16*L"], f32>

device.program @gathered_tiles attributes {symbols = ["N", "R", "P", "L"], requires = [],
    arg_names = ["x", "y", "row", "page"], result_names = ["s"], result_types = [!s]} {
^bb0(%x: !x, %y: !y, %row: !moa.array<[N], i32>, %page: !moa.array<[L], i32>, %s: !s):
  device.kernel @gathered_tiles_0 blocks "(N + 63)/64" threads 256 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %n = device.symbol "N"
    %keys = device.symbol "16*L"
    %tiles = device.symbol "(L + 7)/8"
    %last_page = device.symbol "L - 1"
    %rows = device.shared : !rows
    %rows_full = device.barriers : !rows_full
    %tile = device.shared : !keys
    %full = device.barriers : !keys_full
    %empty = device.barriers : !keys_empty
    %block = device.block
    %first_row = arith.muli %block, %c64 : index
    device.specialize consumers 1 registers 208 {
      device.wait %rows_full[%c0] parity %c0 : !rows_full
      scf.for %t = %c0 to %tiles step %c1 {
        %stage = arith.remui %t, %c2 : index
        %round = arith.divui %t, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %first_key = arith.muli %t, %c128 : index
        device.wait %full[%stage] parity %parity : !keys_full
        %started = device.contract %rows rows %c0 by %tile[%stage] transposed : !rows, !keys -> !sums
        %done = device.await %started pending 0 : !sums
        device.arrive %empty[%stage] : !keys_empty
        device.map(%done) over #acc : (!sums) -> () {
        ^bb0(%e: f32, %i: index, %j: index):
          %at_row = arith.addi %first_row, %i : index
          %at_key = arith.addi %first_key, %j : index
          %in_rows = arith.cmpi slt, %at_row, %n : index
          %in_keys = arith.cmpi slt, %at_key, %keys : index
          %inside = arith.andi %in_rows, %in_keys : i1
          scf.if %inside {
            %s0 = device.symbol "s.s0"
            %s1 = device.symbol "s.s1"
            %a = arith.muli %at_row, %s0 : index
            %b = arith.muli %at_key, %s1 : index
            %at = arith.addi %a, %b : index
            device.store %e, %s[%at] : f32, !s
          }
          device.yield
        }
      }
    } producer together registers 40 {
      device.copy_rows %x columns 40 to %rows[%c0] signals %rows_full[%c0] : !x, !rows, !rows_full {
      ^bb0(%r: index):
        %last = device.symbol "N - 1"
        %i = arith.addi %first_row, %r : index
        %clamped = arith.minsi %i, %last : index
        %row_stride = device.symbol "row.s0"
        %at = arith.muli %clamped, %row_stride : index
        %number32 = device.load %row[%at] : !moa.array<[N], i32> -> i32
        %number = arith.index_cast %number32 : i32 to index
        %stride = device.symbol "x.s0"
        %offset = arith.muli %number, %stride : index
        %present = arith.cmpi sge, %number, %c0 : index
        device.yield %offset, %present : index, i1
      }
      scf.for %t = %c0 to %tiles step %c1 {
        %stage = arith.remui %t, %c2 : index
        %round = arith.divui %t, %c2 : index
        %parity = arith.remui %round, %c2 : index
        %free = arith.subi %c1, %parity : index
        %first_page = arith.muli %t, %c8 : index
        device.wait %empty[%stage] parity %free : !keys_empty
        device.sync_warpgroup // all warps have waited before the first one copies
        scf.for %part = %c0 to %c8 step %c1 {
          %which = arith.addi %first_page, %part : index
          %clamped = arith.minsi %which, %last_page : index
          %page_stride = device.symbol "page.s0"
          %at = arith.muli %clamped, %page_stride : index
          %number32 = device.load %page[%at] : !moa.array<[L], i32> -> i32
          %number = arith.index_cast %number32 : i32 to index
          %first = arith.muli %part, %c16 : index
          device.copy %y[%number, %c0] rows 1 to %tile[%stage] first %first count 16 signals %full[%stage] : !y, !keys, !keys_full
        }
      }
    }
  }
}
