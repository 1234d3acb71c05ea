"""What a sampled estimate promises, and how a test may ask for it.

The promise (Def 31 of docs/Accuracy/Bounds.md): of many heads at most 5 % are off by more than is estimated. One head may
be, on a processor that rounds in another order as on any. So a test draws many heads and counts those above.

Let each of n heads be above with a probability of at most p, independently. More than k of them are above with a
probability of at most P(Bin(n, p) > k) = Σ over i > k of C(n, i)·pⁱ·(1 − p)ⁿ⁻ⁱ. `most_above` is the least k for which
that is at most one in a million: 7 of 16 heads, 11 of 40, 24 of 160, 50 of 480. A correct program fails once in a
million runs, and an estimate that is too small by more than its spread is above in nearly all heads.
"""
import math

SHARE, CHANCE = 0.05, 1e-6


def tail(draws, share, k):
    """P(Bin(draws, share) > k)."""
    return math.fsum(math.comb(draws, i) * share ** i * (1 - share) ** (draws - i) for i in range(k + 1, draws + 1))


def most_above(draws, share=SHARE, chance=CHANCE):
    """How many of so many heads may be above their estimates."""
    return next(k for k in range(draws + 1) if tail(draws, share, k) <= chance)


def check(test, ratios, what=""):
    """Ratios of errors to estimates, of heads whose inputs are their own. What f32 rounds, half a percent, counts for neither."""
    ratios = list(ratios)
    above, most = sum(r > 1.005 for r in ratios), most_above(len(ratios))
    print(f"{what}: {above} of {len(ratios)} above the estimate, {most} allowed, at most {max(ratios, default=0):.2f} times")
    # Of fewer heads even all could be above.
    test.assertLess(most, len(ratios), "too few heads to test a share")
    test.assertLessEqual(above, most, what)
