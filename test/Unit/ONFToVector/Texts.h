//===- Texts.h - onf kernels of the tests -----------------------*- C++ -*-===//
#ifndef MOA_TEST_UNIT_ONFTOVECTOR_TEXTS_H
#define MOA_TEST_UNIT_ONFTOVECTOR_TEXTS_H

#include <string>

namespace moa::test {

/// Replaces every `$KEY` by its value.
inline std::string fill(std::string text, std::initializer_list<std::pair<const char *, std::string>> values) {
  for (auto &[key, value] : values) {
    std::string mark = std::string("$") + key;
    for (size_t at; (at = text.find(mark)) != std::string::npos;)
      text.replace(at, mark.size(), value);
  }
  return text;
}

/// Q, K, V and scale to O and lse over one fused fold. $T element type, $C
/// compute type, $INF its −∞, $D head size, $GUARD and $PIECES, $LIFT, $FLIFT.
inline const char *attention = R"(
onf.kernel @attention attributes {
    symbols = ["B", "H", "G", "N", "M"], requires = [],
    arg_names = ["Q", "K", "V", "scale"], result_names = ["O", "lse"],
    result_types = [!moa.array<[B, H, N, $D], $T>, !moa.array<[B, H, N], $C>]} {
^bb0(%Q: !moa.array<[B, H, N, $D], $T>, %K: !moa.array<[B, G, M, $D], $T>,
     %V: !moa.array<[B, G, M, $D], $T>, %scale: !moa.array<[], $C>,
     %O: !moa.array<[B, H, N, $D], $T>, %L: !moa.array<[B, H, N], $C>):
  onf.for ["b", "h", "i"] in ["B", "H", "N"] $LIFT {
  ^bb0(%b: index, %h: index, %i: index):
    %c = onf.extent "M - N"
    %zero = arith.constant 0.0 : $C
    %ratio = onf.extent "H / G"
    %g = arith.floordivsi %h, %ratio : index
    %s0 = onf.load %scale[] : !moa.array<[], $C> -> $C
    %m, %l, %o, %any = onf.fold "j" in "M" $FLIFT $PIECES : $C, $C, !moa.array<[$D], $C>, i1 {
    ^bb0(%j: index):
      $GUARD
      %dot = onf.fold "k" in "$D" : $C {
      ^bb0(%k: index):
        %q = onf.load %Q[%b, %h, %i, %k] : !moa.array<[B, H, N, $D], $T> -> $T
        %kk = onf.load %K[%b, %g, %j, %k] : !moa.array<[B, G, M, $D], $T> -> $T
        $WIDENQK
        %a = onf.acc add "dot" carries [] in [] refs() mul [] : () -> $C {
          %p = arith.mulf %qw, %kw : $C
          onf.yield %p : $C
        } repair {}
        onf.yield %a : $C
      }
      %s1 = arith.mulf %dot, %s0 : $C
      $SCORE
      %am = onf.acc max "m" carries [] in [] refs() mul [] : () -> $C {
        onf.yield %s : $C
      } repair {}
      %x = arith.subf %s, %am : $C
      %e = math.exp %x : $C
      %al = onf.acc add "l" carries [] in [] refs(%am) mul [$INF : $C] : ($C) -> $C {
        onf.yield %e : $C
      } repair {
      ^bb0(%old: $C, %new: $C):
        %y = arith.subf %old, %new : $C
        %f = math.exp %y : $C
        onf.yield %f : $C
      }
      %ao = onf.acc add "o" carries ["d"] in ["$D"] $ROUNDS refs(%am) mul [$INF : $C] : ($C) -> !moa.array<[$D], $C> {
      ^bb0(%d: index):
        %v = onf.load %V[%b, %g, %j, %d] : !moa.array<[B, G, M, $D], $T> -> $T
        $WIDENV
        %p = arith.mulf %e, %vw : $C
        onf.yield %p : $C
      } repair {
      ^bb0(%old: $C, %new: $C):
        %y = arith.subf %old, %new : $C
        %f = math.exp %y : $C
        onf.yield %f : $C
      }
      %aany = onf.acc or "any" carries [] in [] refs() mul [] : () -> i1 {
        %t = arith.constant true
        onf.yield %t : i1
      } repair {}
      onf.yield %am, %al, %ao, %aany : $C, $C, !moa.array<[$D], $C>, i1
    }
    %ll = math.log %l : $C
    %sum = arith.addf %m, %ll : $C
    %minf = arith.constant $INF : $C
    %lse = arith.select %any, %sum, %minf : $C
    onf.store %lse, %L[%b, %h, %i] : $C, !moa.array<[B, H, N], $C>
    onf.for ["d"] in ["$D"] {
    ^bb0(%d: index):
      %od = onf.at %o[%d] : !moa.array<[$D], $C> -> $C
      %quot = arith.divf %od, %l : $C
      %out = arith.select %any, %quot, %zero : $C
      onf.store %out, %O[%b, %h, %i, %d] : $C, !moa.array<[B, H, N, $D], $T>
    }
  }
}
)";

/// A row-wise scaled 2-norm m·√Σ(x/m)², two folds.
inline const char *rowNorm = R"(
onf.kernel @norm attributes {
    symbols = ["N", "M"], requires = [], arg_names = ["X"], result_names = ["R"],
    result_types = [!moa.array<[N], $C>]} {
^bb0(%X: !moa.array<[N, M], $C>, %R: !moa.array<[N], $C>):
  onf.for ["i"] in ["N"] {
  ^bb0(%i: index):
    %m = onf.fold "j" in "M" : $C {
    ^bb0(%j: index):
      %x = onf.load %X[%i, %j] : !moa.array<[N, M], $C> -> $C
      %ax = math.absf %x : $C
      %a = onf.acc max "m" carries [] in [] refs() mul [] : () -> $C { onf.yield %ax : $C } repair {}
      onf.yield %a : $C
    }
    %t = onf.fold "j" in "M" : $C {
    ^bb0(%j: index):
      %x = onf.load %X[%i, %j] : !moa.array<[N, M], $C> -> $C
      %y = arith.divf %x, %m : $C
      %z = arith.mulf %y, %y : $C
      %a = onf.acc add "t" carries [] in [] refs() mul [] : () -> $C { onf.yield %z : $C } repair {}
      onf.yield %a : $C
    }
    %root = math.sqrt %t : $C
    %r = arith.mulf %m, %root : $C
    onf.store %r, %R[%i] : $C, !moa.array<[N], $C>
  }
}
)";

/// C = A B, rows are B's columns: nothing is carried.
inline const char *product = R"(
onf.kernel @product attributes {
    symbols = ["N", "M", "P"], requires = [], arg_names = ["A", "B"], result_names = ["C"],
    result_types = [!moa.array<[N, P], $C>]} {
^bb0(%A: !moa.array<[N, M], $C>, %B: !moa.array<[M, P], $C>, %C: !moa.array<[N, P], $C>):
  onf.for ["i", "p"] in ["N", "P"] {
  ^bb0(%i: index, %p: index):
    %s = onf.fold "k" in "M" : $C {
    ^bb0(%k: index):
      %x = onf.load %A[%i, %k] : !moa.array<[N, M], $C> -> $C
      %y = onf.load %B[%k, %p] : !moa.array<[M, P], $C> -> $C
      %z = arith.mulf %x, %y : $C
      %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> $C { onf.yield %z : $C } repair {}
      onf.yield %a : $C
    }
    onf.store %s, %C[%i, %p] : $C, !moa.array<[N, P], $C>
  }
}
)";

/// All elements to one number: a nest of rank 0.
inline const char *total = R"(
onf.kernel @total attributes {
    symbols = ["N"], requires = [], arg_names = ["X"], result_names = ["R"],
    result_types = [!moa.array<[], $C>]} {
^bb0(%X: !moa.array<[N], $C>, %R: !moa.array<[], $C>):
  onf.for [] in [] {
    %s = onf.fold "k" in "N" : $C {
    ^bb0(%k: index):
      %x = onf.load %X[%k] : !moa.array<[N], $C> -> $C
      %a = onf.acc add "s" carries [] in [] refs() mul [] : () -> $C { onf.yield %x : $C } repair {}
      onf.yield %a : $C
    }
    onf.store %s, %R[] : $C, !moa.array<[], $C>
  }
}
)";

} // namespace moa::test

#endif // MOA_TEST_UNIT_ONFTOVECTOR_TEXTS_H
