// sizes: A=3 B=2 C=50; A=0 B=2 C=5; A=9 B=1 C=1
// tolerance: 2e-6
// No fold at all; two nests; an outer axis with a factor inside the task.
onf.kernel @pointwise attributes {arg_names = ["x", "y", "t"], requires = [], result_names = ["o", "p"], result_types = [!moa.array<[A, B, C], f32>, !moa.array<[B], f64>], symbols = ["A", "B", "C"]} {
^bb0(%x: !moa.array<[A, C], f32>, %y: !moa.array<[B], f64>, %t: !moa.array<[], f32>, %o: !moa.array<[A, B, C], f32>, %p: !moa.array<[B], f64>):
  onf.for ["a", "b", "c"] in ["A", "B", "C"] lift [#onf.axis<core: 0, register: 2>, #onf.axis<core: 0>, #onf.axis<core: 0, register: 2, lane: 8>] {
  ^bb0(%a: index, %b: index, %c: index):
    %v = onf.load %x[%a, %c] : !moa.array<[A, C], f32> -> f32
    %w = onf.load %y[%b] : !moa.array<[B], f64> -> f64
    %s = onf.load %t[] : !moa.array<[], f32> -> f32
    %wf = arith.truncf %w : f64 to f32
    %e = math.erf %v : f32
    %sn = math.sin %e : f32
    %cs = math.cos %sn : f32
    %pw = math.powf %s, %cs : f32
    %e2 = math.exp2 %pw : f32
    %n = arith.mulf %e2, %wf : f32
    %c3 = arith.constant 3 : index
    %cm = arith.remsi %c, %c3 : index
    %cd = arith.floordivsi %c, %c3 : index
    %mix = arith.addi %cm, %cd : index
    %mi = arith.index_cast %mix : index to i64
    %mf = arith.sitofp %mi : i64 to f32
    %r = arith.addf %n, %mf : f32
    onf.store %r, %o[%a, %b, %c] : f32, !moa.array<[A, B, C], f32>
  }
  onf.for ["b"] in ["B"] {
  ^bb0(%b: index):
    %w = onf.load %y[%b] : !moa.array<[B], f64> -> f64
    %e = math.exp %w : f64
    %l = math.log %e : f64
    %t1 = math.tanh %l : f64
    onf.store %t1, %p[%b] : f64, !moa.array<[B], f64>
  }
}
