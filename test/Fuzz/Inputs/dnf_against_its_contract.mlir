dnf.kernel @k attributes {symbols = ["N"], requires = [], arg_names = ["x"], result_names = ["y"], result_types = [!moa.array<[N], f32>]} {
^bb0(%x: !moa.array<[N], f32>):
  dnf.output 0 over ["n"] in ["N"] -> f32 {
  ^bb0(%n: index):
    %p = arith.constant true
    %w = dnf.where %p, %x : !moa.array<[N], f32>
    %v = dnf.psi %x[%n] : !moa.array<[N], f32> -> f32
    dnf.yield %v : f32
  }
}
