!q = !moa.array<[B, H, N, D], bf16>
!k = !moa.array<[B, G, M, D], bf16>
!qf = !moa.array<[B, H, N, D], f32>
!kf = !moa.array<[B, G, M, D], f32>
!kh = !moa.array<[B, H, M, D], f32>
!kt = !moa.array<[B, H, D, M], f32>
!s = !moa.array<[B, H, N, M], f32>
!r = !moa.array<[B, H, N], f32>
!x = !moa.array<[], f32>
!z = !moa.array<[], index>
moa.kernel @gqa attributes {symbols = ["B", "H", "G", "N", "M", "D"], requires = ["H%G == 0"], arg_names = ["Q", "K", "V", "scale"], result_names = ["O", "lse"], result_types = [!q, !r]} {
^bb0(%Q: !q, %K: !k, %V: !k, %scale: !x):
  %Qf = moa.cast %Q {implicit} : !q -> !qf
  %Kf = moa.cast %K {implicit} : !k -> !kf
  %Vf = moa.cast %V {implicit} : !k -> !kf
  %b = moa.iota "B" -> !moa.array<[B], index>
  %h = moa.iota "H" -> !moa.array<[H], index>
  %g = moa.extent "H/G" -> !z
  %hg = moa.map div(%h, %g) axes [array<i64: 0>, array<i64>] : (!moa.array<[H], index>, !z) -> !moa.array<[H], index>
  %Kh = moa.psi %Kf[%b, %hg] dims [0, 1] axes [array<i64: 0>, array<i64: 1>] frame 2 : (!kf, !moa.array<[B], index>, !moa.array<[H], index>) -> !kh
  %Vh = moa.psi %Vf[%b, %hg] dims [0, 1] axes [array<i64: 0>, array<i64: 1>] frame 2 : (!kf, !moa.array<[B], index>, !moa.array<[H], index>) -> !kh
  %Kt = moa.transpose %Kh perm [0, 1, 3, 2] : !kh -> !kt
  %S0 = moa.inner add of mul %Qf, %Kt {frame = 2 : i64, lhs_framed = true, rhs_framed = true} : (!qf, !kt) -> !s
  %S1 = moa.map mul(%S0, %scale) axes [array<i64: 0, 1, 2, 3>, array<i64>] : (!s, !x) -> !s
  %i = moa.iota "N" -> !moa.array<[N], index>
  %j = moa.iota "M" -> !moa.array<[M], index>
  %d = moa.extent "M - N" -> !z
  %lim = moa.map add(%i, %d) axes [array<i64: 0>, array<i64>] : (!moa.array<[N], index>, !z) -> !moa.array<[N], index>
  %p = moa.map le(%j, %lim) axes [array<i64: 1>, array<i64: 0>] : (!moa.array<[M], index>, !moa.array<[N], index>) -> !moa.array<[N, M], i1>
  %S = moa.mask %p, %S1 axes [2, 3] : (!moa.array<[N, M], i1>, !s) -> !s
  %m = moa.reduce max %S axis 3 : !s -> !r
  %c = moa.map sub(%S, %m) axes [array<i64: 0, 1, 2, 3>, array<i64: 0, 1, 2>] : (!s, !r) -> !s
  %e = moa.map exp(%c) axes [array<i64: 0, 1, 2, 3>] : (!s) -> !s
  %l = moa.reduce add %e axis 3 : !s -> !r
  %w = moa.map div(%e, %l) axes [array<i64: 0, 1, 2, 3>, array<i64: 0, 1, 2>] : (!s, !r) -> !s
  %O = moa.inner add of mul %w, %Vh {frame = 2 : i64, lhs_framed = true, rhs_framed = true, operand_type = bf16} : (!s, !kh) -> !qf
  %ll = moa.map log(%l) axes [array<i64: 0, 1, 2>] : (!r) -> !r
  %lse = moa.map add(%m, %ll) axes [array<i64: 0, 1, 2>, array<i64: 0, 1, 2>] : (!r, !r) -> !r
  moa.return %O, %lse : !qf, !r
}
