//===- ForeignNames.cpp - functions of other systems ----------------------===//
#include "lib/Frontend/ForeignNames.h"

using namespace llvm;

namespace {
struct ForeignName {
  StringLiteral name, own;
};
} // namespace

static constexpr ForeignName table[] = {
    // Reductions.
    {"sum", "'+/ x' along the last axis, 'reduce(+, x, n)' along axis n"},
    {"prod", "'*/ x' along the last axis"},
    {"product", "'*/ x' along the last axis"},
    {"amax", "'max/ x' along the last axis, 'max(x, y)' of two"},
    {"maximum", "'max/ x' along the last axis, 'max(x, y)' of two"},
    {"amin", "'min/ x' along the last axis, 'min(x, y)' of two"},
    {"minimum", "'min/ x' along the last axis, 'min(x, y)' of two"},
    {"average", "'mean(x)' along the last axis"},
    {"all", "'and/ p' along the last axis"},
    {"any", "'or/ p' along the last axis"},
    {"var", "'c = x - mean(x)' and 'mean(c * c)' in a 'def' on cells [n]"},
    {"std", "'c = x - mean(x)' and 'sqrt(mean(c * c))' in a 'def' on cells [n]"},
    {"norm", "'sqrt(+/ (x * x))' along the last axis"},
    {"count_nonzero", "'+/ select(x != 0, 1, 0)' along the last axis"},
    {"argmax", "'def argmax(x : [n]) { return min/ mask(x == (max/ x), iota(n)) }', the "
               "first place of the largest along the last axis"},
    {"argmin", "'def argmin(x : [n]) { return min/ mask(x == (min/ x), iota(n)) }', the "
               "first place of the smallest along the last axis"},
    {"cumsum", "'def cumsum(x : [n]) { return +/ mask([i, j < n] j <= i, [i < n, j] "
               "x[j]) }', which sums along the last axis"},
    // Products.
    {"dot", "'a +.* b'"},
    {"matmul", "'a +.* b'"},
    {"mm", "'a +.* b'"},
    {"bmm", "'a +.* b', which lifts over leading axes"},
    {"einsum", "'a +.* b'"},
    {"tensordot", "'inner(+, *, a, b)'"},
    {"scaled_dot_product_attention", "'softmax((Q +.* transpose(K)) * scale) +.* V'"},
    // Choices and masks.
    {"where", "'select(p, x, y)'"},
    {"masked_fill", "'select(p, v, x)', or 'mask(not p, x)' to mask elements out"},
    {"tril", "'mask([i, j] j <= i, x)' for a mask, '[i, j] select(j <= i, x[i, j], 0)' "
             "for zeros"},
    {"triu", "'mask([i, j] j >= i, x)' for a mask, '[i, j] select(j >= i, x[i, j], 0)' "
             "for zeros"},
    {"causal", "'mask([i, j] j <= i, S)'"},
    {"causal_mask", "'mask([i, j] j <= i, S)'"},
    {"dropout", "'select(keep, x / (1 - p), 0)' with 'keep' an array of bool, or a hash of "
                "indices and a seed"},
    {"nan_to_num", "'select(x == x, x, 0)', which keeps infinities"},
    {"clip", "'min(max(x, low), high)'"},
    {"clamp", "'min(max(x, low), high)'"},
    {"isnan", "'x != x'"},
    {"isinf", "'abs(x) == inf'"},
    {"logical_and", "'p and q'"},
    {"logical_or", "'p or q'"},
    {"logical_not", "'not p'"},
    // Functions.
    {"power", "'pow(x, y)'"},
    {"square", "'x * x'"},
    {"remainder", "'x % y'"},
    {"log_softmax", "'x -@(1,0) logsumexp(x)'"},
    {"rms_norm", "'x * rsqrt(mean(x * x) + eps)' in a 'def' on cells [n]"},
    {"layer_norm", "'c = x - mean(x)' and 'c * rsqrt(mean(c * c) + eps)' in a 'def' on cells [n]"},
    // Shapes and selections.
    {"arange", "'iota(n)'"},
    {"range", "'iota(n)'"},
    {"zeros", "'[i < N, j < M] 0'"},
    {"ones", "'[i < N, j < M] 1'"},
    {"full", "'[i < N, j < M] v'"},
    {"eye", "'[i < N, j < N] select(i == j, 1, 0)'"},
    {"concat", "'cat(x, y, axis)'"},
    {"concatenate", "'cat(x, y, axis)'"},
    {"flip", "'reverse(x, axis)'"},
    {"roll", "'rotate(x, -n, axis)'"},
    {"permute", "'transpose(x, [2, 0, 1])'"},
    {"view", "'reshape(x, [m, n])'"},
    {"flatten", "'rav(x)'"},
    {"gather", "'[i, j] x[i, index[i, j]]'"},
    {"take_along_axis", "'[i, j] x[i, index[i, j]]'"},
    {"index_select", "'x[index]'"},
    {"expand", "'[_, j] x[j]': '_' is an axis that the elements do not depend on"},
    {"broadcast_to", "'[_, j] x[j]': '_' is an axis that the elements do not depend on"},
    {"unsqueeze", "'[_, j] x[j]': '_' is an axis that the elements do not depend on"},
    {"repeat_interleave", "'[h < H] x[h / (H/G)]', which copies nothing"},
    {"one_hot", "'[i, c < C] select(x[i] == c, 1, 0)'"},
};

StringRef moa::frontend::getOwnSpelling(StringRef name) {
  for (const ForeignName &entry : table)
    if (entry.name == name)
      return entry.own;
  return "";
}
