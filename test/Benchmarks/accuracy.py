# RUN: %python %s
"""The input families, formats and references of benchmarks/accuracy: what they promise, against known values."""
import contextlib
import io
import math
import os
import sys
import tempfile
import unittest

import numpy as np

import moa_testing as mt

sys.path.insert(0, os.path.join(mt.SOURCE_ROOT, "benchmarks", "accuracy"))
import earlier_rules  # noqa: E402
import estimate  # noqa: E402
import families  # noqa: E402
import formats  # noqa: E402
import reference  # noqa: E402
import sampled  # noqa: E402


def weights_of(head):
    q, k, _ = head.arrays()
    scores = head.scale * q.astype(float) @ k.T.astype(float)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


class Generator(unittest.TestCase):
    def test_shapes_and_types(self):
        for name in families.FAMILIES:
            for n, m, d in ((300, 513, 64), (1, 1, 16), (70, 5, 128)):
                q, k, v = families.make(name, n, m, d).arrays()
                self.assertEqual([x.shape for x in (q, k, v)], [(n, d), (m, d), (m, d)], name)
                for x in (q, k, v):
                    self.assertEqual(x.dtype, np.float32, name)
                    self.assertTrue(np.isfinite(x).all(), name)

    def test_rows_do_not_depend_on_the_range(self):
        for name in families.FAMILIES:
            head = families.make(name, 600, 700, 32, seed=5)
            again = families.make(name, 600, 700, 32, seed=5)
            for method, size in (("queries", 600), ("keys", 700), ("values", 700)):
                whole = getattr(head, method)(0, size)
                for lo, hi in ((0, 1), (255, 257), (100, 600), (size - 1, size), (7, 7)):
                    part = getattr(again, method)(lo, hi)
                    # Products with a matrix are rounded as BLAS likes for each shape.
                    np.testing.assert_allclose(part, whole[lo:hi], rtol=1e-5, atol=1e-5, err_msg=f"{name} {method}")

    def test_seeds(self):
        for name in families.FAMILIES:
            first = families.make(name, 64, 64, 32, seed=1).arrays()
            self.assertTrue(all(map(np.array_equal, first, families.make(name, 64, 64, 32, seed=1).arrays())), name)
            for other in (dict(seed=2), dict(seed=1, head=1), dict(seed=1, batch=1)):
                made = families.make(name, 64, 64, 32, **other).arrays()
                self.assertFalse(np.array_equal(first[2], made[2]), (name, other))

    def test_long_range(self):
        """The end of 262144 rows, without those before it."""
        for name in families.FAMILIES:
            head = families.make(name, 262144, d=64)
            self.assertEqual(head.queries(262140, 262144).shape, (4, 64), name)
            self.assertTrue(np.isfinite(head.keys(262000, 262144)).all(), name)

    def test_every_family_says_what_it_is_for(self):
        for name, family in families.FAMILIES.items():
            for word in ("For:", "Expected:"):
                self.assertIn(word, family.__doc__, name)
            self.assertEqual(set(family.expects), {"eight_bits", "low_rank", "dense"}, name)
            for parameter in family.parameters:
                self.assertIn(f"`{parameter}`", family.__doc__, name)

    def test_unknown_names(self):
        with self.assertRaisesRegex(ValueError, "no family 'nosuch'; there are: normal"):
            families.make("nosuch", 4)
        with self.assertRaisesRegex(ValueError, "'sinks' has no parameter 'gain'; it has: share, quiet"):
            families.make("sinks", 4, gain=2)

    def test_mixed_heads(self):
        names = list(families.FAMILIES)
        heads = families.Heads(names, 2, len(names), 40, 50, 32, seed=9)
        q, k, v = heads.arrays()
        self.assertEqual((q.shape, k.shape), ((2, len(names), 40, 32), (2, len(names), 50, 32)))
        for h, name in enumerate(names):
            alone = families.make(name, 40, 50, 32, seed=9, batch=1, head=h).arrays()
            for whole, part in zip((q, k, v), alone):
                np.testing.assert_array_equal(whole[1, h], part, name)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(families.main(["sinks", "diagonal", "--B", "2", "--H", "3", "--N", "20", "--M", "30", "--D", "16",
                                            "--seed", "4", "--out", folder]), 0)
            heads = families.Heads(["sinks", "diagonal"], 2, 3, 20, 30, 16, 4)
            self.assertEqual(heads.names, ["sinks", "diagonal", "sinks"])
            for which, array in zip("QKV", heads.arrays()):
                np.testing.assert_array_equal(np.load(os.path.join(folder, which + ".npy")), array)


class Promises(unittest.TestCase):
    def test_outlier_channels(self):
        head = families.make("outlier_channels", 512, d=64, channels=3)
        _, k, _ = head.arrays()
        size = np.sqrt(np.mean(k.astype(float) ** 2, 0))
        large = np.sort(size)[-3:]
        self.assertTrue(np.all(large > 9) and np.all(large < 55), large)
        self.assertLess(np.sort(size)[-4], 1.2)
        q, _, _ = head.arrays()
        self.assertAlmostEqual(float((head.scale * q @ k.T).std()), 2.0, delta=0.4)

    def test_offset_channels(self):
        _, k, _ = families.make("offset_channels", 1024, d=64).arrays()
        mean = np.abs(k.mean(0))
        self.assertEqual(int(np.sum(mean > 19)), 4)
        self.assertLess(float(k.std(0).max()), 1.2)

    def test_huge_key(self):
        _, k, _ = families.make("huge_key", 300, d=64).arrays()
        norms = np.sort(np.linalg.norm(k, axis=1))
        self.assertGreater(norms[-1], 25 * norms[-2])

    def test_near_ties(self):
        head = families.make("near_ties", 256, 1024, 64)
        q, k, _ = head.arrays()
        scores = np.sort(head.scale * q.astype(float) @ k.T.astype(float), axis=1)
        self.assertLess(float((scores[:, -1] - scores[:, -64]).max()), 1.001e-3)
        self.assertGreater(float((scores[:, -64] - scores[:, -65]).min()), 5)

    def test_constant_values(self):
        _, _, v = families.make("constant_values", 300, d=64).arrays()
        self.assertTrue((v == v[0]).all())

    def test_large_scores(self):
        head = families.make("large_scores", 512, d=128)
        q, k, _ = head.arrays()
        scores = head.scale * q @ k.T
        self.assertAlmostEqual(float(np.abs(scores).mean()), 80, delta=4)
        self.assertGreater(float((scores > 0).mean()), 0.4)
        self.assertGreater(float((scores < 0).mean()), 0.4)

    def test_clusters(self):
        head = families.make("clustered_keys", 512, d=64)
        _, k, _ = head.arrays()
        distance = np.linalg.norm(k - head.centres[head.member(0, 512)], axis=1)
        self.assertLess(float(distance.max()), 0.04 * math.sqrt(64))
        self.assertLessEqual(formats.effective_rank(weights_of(head), 3e-2), 16)

    def test_rank_and_decay_of_scores(self):
        head = families.make("low_rank_scores", 1024, d=64, rank=6, decay=0.4)
        q, k, _ = head.arrays()
        singular = np.linalg.svd(head.scale * q.astype(float) @ k.T.astype(float), compute_uv=False)
        self.assertLess(singular[6] / singular[0], 1e-5)
        np.testing.assert_allclose(singular[1:6] / singular[:5], 0.4, rtol=0.2)

    def test_rank_and_decay_of_weights(self):
        head = families.make("low_rank_weights", 2048, 512, 64, rank=16, decay=0.5, contrast=0.8)
        q, k, _ = head.arrays()
        singular = np.linalg.svd(np.exp(head.scale * q.astype(float) @ k.T.astype(float)), compute_uv=False)
        self.assertLess(singular[16] / singular[0], 1e-5)
        stated = head.singular_values()
        np.testing.assert_allclose(singular[:8] / singular[0], stated[:8], rtol=0.15)
        weights = weights_of(head)
        np.testing.assert_allclose(np.linalg.svd(weights, compute_uv=False)[:8] / np.linalg.norm(weights, 2), stated[:8], rtol=0.15)

    def test_weights_that_cannot_be_positive(self):
        with self.assertRaisesRegex(ValueError, "is 3.2, but weights are positive"):
            families.make("low_rank_weights", 8, d=64, rank=4, decay=1.0, contrast=3.2 / 3)

    def test_entropy(self):
        for parameters in ({}, {"zero": 1}):
            weights = weights_of(families.make("uniform", 64, 512, 64, **parameters))
            np.testing.assert_allclose(-np.sum(weights * np.log(weights), axis=1), math.log(512), rtol=1e-6)
            self.assertEqual(formats.effective_rank(weights, 1e-3), 1)

    def test_diagonal(self):
        for d in (64, 128):
            weights = weights_of(families.make("diagonal", 512, d=d))
            self.assertGreater(float(np.diag(weights).min()), 0.99)
            self.assertGreater(formats.effective_rank(weights, 3e-2), 500)

    def test_diagonal_with_more_queries(self):
        weights = weights_of(families.make("diagonal", 700, 300, 128))
        np.testing.assert_array_equal(weights.argmax(1), np.arange(700) % 300)

    def test_hidden_rows(self):
        for block in (0, 1):
            head = families.make("hidden_rows", 2048, d=64, hidden=4, block=block)
            norms = np.linalg.norm(head.arrays()[0], axis=1)
            np.testing.assert_array_equal(np.sort(np.argsort(norms)[-4:]), head.places)
            if block:
                self.assertEqual(head.places[-1] - head.places[0], 3)
        expected = math.comb(2044, 64) / math.comb(2048, 64)
        self.assertAlmostEqual(head.miss(64), expected, places=12)
        generator = np.random.default_rng(0)
        missed = np.mean([not np.isin(generator.choice(2048, 64, replace=False), head.places).any() for _ in range(2000)])
        self.assertAlmostEqual(missed, expected, delta=0.03)

    def test_hidden_aligned(self):
        head = families.make("hidden_aligned", 512, d=128)
        norms = np.linalg.norm(head.arrays()[0], axis=1)
        self.assertLess(float(norms.max() / norms.min()), 1.001)
        largest = weights_of(head).max(1)
        self.assertGreater(float(largest[head.places].min()), 0.9)
        self.assertLess(float(np.delete(largest, head.places).max()), 0.1)

    def test_hidden_keys(self):
        head = families.make("hidden_keys", 128, 1024, 64)
        share = weights_of(head)[:, head.places].sum(1)
        self.assertAlmostEqual(float(share.mean()), 0.5, delta=0.1)

    def test_realistic_heads(self):
        self.assertAlmostEqual(float(weights_of(families.make("sinks", 256, 1024, 64))[:, 0].mean()), 0.8, delta=0.05)
        band = weights_of(families.make("local_band", 512, d=128))
        distance = np.abs(np.subtract.outer(np.arange(512), np.arange(512)))
        self.assertGreater(float(band[distance <= 64].sum() / 512), 0.9)
        self.assertGreater(float(np.mean(weights_of(families.make("peaked", 256, d=128)).max(1))), 0.5)
        self.assertLess(float(weights_of(families.make("diffuse", 256, 1024, 128)).max()), 0.01)
        _, _, v = families.make("coherent_values", 1024, d=64).arrays()
        self.assertGreater(float(np.linalg.norm(v.mean(0)) / np.sqrt(np.sum(v.var(0)))), 5)
        q, k, _ = families.make("low_rank_noise", 512, d=128).arrays()
        squares = np.linalg.svd(k, compute_uv=False) ** 2
        self.assertGreater(float(squares[:16].sum() / squares.sum()), 0.9)

    def test_expectations_of_eight_bits(self):
        """e4m3 beyond what it can do, and where it must suffice, at a size a test can afford."""
        for name, low, high in (("normal", 4.5e-2, 6e-2), ("outlier_channels", 6e-2, 1), ("offset_channels", 6e-2, 1),
                                ("uniform", 2e-2, 3.5e-2), ("diagonal", 2e-2, 3.5e-2), ("coherent_values", 0, 1e-2)):
            head = formats.Head(name, 512, 128, 0)
            error, _ = head.errors(formats.BY_NAME["e4m3"])
            self.assertTrue(low <= error <= high, (name, error))


class Formats(unittest.TestCase):
    def test_e4m3_table(self):
        """The 256 codes, some by hand, and each is its own rounding."""
        table = reference.e4m3_values()
        for code, value in ((0x00, 0.0), (0x01, 2.0 ** -9), (0x07, 7 * 2.0 ** -9), (0x08, 2.0 ** -6), (0x38, 1.0),
                            (0x39, 1.125), (0x40, 2.0), (0x77, 240.0), (0x78, 256.0), (0x7E, 448.0), (0xB8, -1.0), (0xFE, -448.0)):
            self.assertEqual(table[code], value, hex(code))
        self.assertEqual(int(np.isnan(table).sum()), 2)
        numbers = table[~np.isnan(table)].astype(np.float32)
        np.testing.assert_array_equal(reference.round_e4m3(numbers), numbers)
        self.assertTrue(np.isnan(reference.round_e4m3(np.float32([np.nan]))[0]))

    def test_e4m3_rounds_to_nearest_even(self):
        """Against a search in the table: between neighbours, at the midpoints and beside them."""
        table = reference.e4m3_values()
        codes = np.arange(0, 0x7F)
        values = table[codes]
        middle = (values[1:] + values[:-1]) / 2
        even = np.where(codes[1:] % 2 == 0, values[1:], values[:-1])
        for sign in (1, -1):
            np.testing.assert_array_equal(reference.round_e4m3(sign * middle), sign * even)
            np.testing.assert_array_equal(reference.round_e4m3(sign * middle * (1 + 1e-6)), sign * values[1:])
            np.testing.assert_array_equal(reference.round_e4m3(sign * middle * (1 - 1e-6)), sign * values[:-1])
        np.testing.assert_array_equal(reference.round_e4m3([449, 1e9, -np.inf]), [448, 448, -448])

    def test_f16(self):
        """Every value of float16, and random numbers, against NumPy's conversion."""
        every = np.arange(65536, dtype=np.uint16).view(np.float16)
        every = every[np.isfinite(every)].astype(np.float32)
        np.testing.assert_array_equal(reference.round_f16(every), every)
        generator = np.random.default_rng(1)
        x = (generator.standard_normal(100000) * np.exp2(generator.uniform(-28, 17, 100000))).astype(np.float32)
        middle = ((every[:-1].astype(float) + every[1:]) / 2).astype(np.float32)
        for values in (x, middle, np.float32([65519.9, 65520, -65520, 1e-8, 0, -0.0, np.inf])):
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(reference.round_f16(values), values.astype(np.float16).astype(np.float32))

    def test_bf16(self):
        bits = np.arange(65536, dtype=np.uint16)
        every = mt.from_bf16(bits)
        every = every[np.isfinite(every)]
        np.testing.assert_array_equal(reference.round_bf16(every), every)
        for x, rounded in ((1 + 2.0 ** -8, 1.0), (1 + 3 * 2.0 ** -8, 1 + 2.0 ** -6), (1 + 2.0 ** -8 + 2.0 ** -20, 1 + 2.0 ** -7),
                           (-1 - 2.0 ** -8, -1.0), (3.4e38, np.inf)):
            self.assertEqual(float(reference.round_bf16(np.float32([x]))[0]), rounded, x)

    def test_int8(self):
        ties = np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, 127.5, 1e9, -128])
        np.testing.assert_array_equal(reference.round_int8(ties), [0, 2, 2, 0, -2, -2, 126, 127, 127, -127])

    def test_scales(self):
        x = np.float32([[1, -2], [3, 0.5], [0, 0]])
        np.testing.assert_allclose(reference.scales(x, "int8", "row")[:, 0], [2 / 127, 3 / 127, 1], rtol=1e-6)
        np.testing.assert_allclose(reference.scales(x, "int8", "channel")[0], [3 / 127, 2 / 127], rtol=1e-6)
        np.testing.assert_allclose(reference.scales(x, "e4m3", "head"), [[3 / 448]], rtol=1e-6)
        np.testing.assert_allclose(reference.scales(x, "e4m3", "head", pow2=True), [[2.0 ** -7]])
        tall = np.ones((130, 2), np.float32)
        tall[64] = 5
        tiles = reference.scales(tall, "int8", "tile")[:, 0] * 127
        np.testing.assert_allclose(tiles[[0, 63, 64, 127, 128, 129]], [1, 1, 5, 5, 1, 1], rtol=1e-6)
        np.testing.assert_array_equal(reference.power_of_two_above(np.float32([0.5, 0.51, 1, 3, 2.0 ** -20])), [0.5, 1, 1, 4, 2.0 ** -20])
        for kind in ("int8", "e4m3"):
            for per in ("row", "tile", "channel", "head"):
                for pow2 in (False, True):
                    y = np.random.default_rng(2).standard_normal((100, 8)).astype(np.float32)
                    error = np.abs(reference.quantise(y, kind, per, pow2) - y)
                    self.assertLess(float((error / reference.scales(y, kind, per, pow2)).max()), 0.501 if kind == "int8" else 16.1)


class Reference(unittest.TestCase):
    def test_blocks(self):
        head = families.make("large_scores", 40, 300, 32)
        q, k, v = head.arrays()
        whole = reference.exact_rows(q, k, v, head.scale)
        for made in (reference.exact_rows(q, k, v, head.scale, block=7), reference.exact_sample(head, range(40), block=64)):
            for a, b in zip(made, whole):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)

    def test_measures(self):
        exact, magnitude = np.array([[3.0, 4.0]]), np.array([[3.0, 8.0]])
        self.assertAlmostEqual(reference.relative_l2([[3.0, 4.5]], exact), 0.1)
        self.assertAlmostEqual(reference.componentwise([[3.3, 4.4]], exact, magnitude), 0.1)
        self.assertEqual(reference.componentwise([[0.0]], np.array([[0.0]]), np.array([[0.0]])), 0)
        self.assertTrue(math.isinf(reference.componentwise([[1.0]], np.array([[0.0]]), np.array([[0.0]]))))

    def test_laws_change_nothing_in_exact_arithmetic(self):
        head = families.make("offset_channels", 100, 200, 96)
        q, k, v = head.arrays()
        output, _, _ = reference.exact_rows(q, k, v, head.scale)
        exact = reference.Choice("f32", "f32", "f32", "f32")
        for laws in formats.LAW_SETS:
            made = reference.simulate(q, k, v, head.scale, exact, laws, np.float64)
            self.assertLess(reference.relative_l2(made, output), 1e-5, laws)
        for width in (1, 40, 96, 128):
            turn = reference.rotation(width).astype(float)
            np.testing.assert_allclose(turn @ turn.T, np.eye(width), atol=1e-6)

    def test_laws_that_help(self):
        """Each law on the family that it is for."""
        for name, law, choice, factor in (("offset_channels", "kmean", "e4m3", 1.5), ("constant_values", "vmean", "e4m3", 1000),
                                          ("small_signal", "rotate", "int8 row QK", 2), ("outlier_channels", "rotate", "e4m3", 1.5)):
            head = formats.Head(name, 512, 128, 0)
            plain, _ = head.errors(formats.BY_NAME[choice])
            helped, _ = head.errors(formats.BY_NAME[choice], (law,))
            self.assertGreater(plain, factor * helped, name)

    def test_against_the_interpreter(self):
        """moa-run in float64 on the files of three heads, each of another family."""
        with tempfile.TemporaryDirectory() as folder:
            heads = families.Heads(["sinks", "near_ties", "large_scores"], 1, 3, 24, 40, 32, seed=3)
            heads.save(folder)
            scale = heads.heads[0][0].scale
            made = mt.tool("moa-run", mt.example("sdpa"), "--target=reference", "--set", "T=f32", "--set", "D=32",
                           *(f"{w}={folder}/{w}.npy" for w in "QKV"), f"scale={scale!r}", "-o", f"O={folder}/O.npy")
            self.assertEqual(made.returncode, 0, made.stderr)
            output = np.load(os.path.join(folder, "O.npy"))
        for h, head in enumerate(heads.heads[0]):
            exact, magnitude, _ = reference.exact_rows(*head.arrays(), np.float32(scale))
            self.assertLess(reference.componentwise(output[0, h], exact, magnitude), 1e-6, heads.names[h])


class Studies(unittest.TestCase):
    def test_estimate(self):
        for name in ("normal", "diffuse", "sinks", "offset_channels", "clustered_keys"):
            head = formats.Head(name, 512, 128, 3)
            for key in ("e4m3", "int8 row QK"):
                found = estimate.estimate(head.q, head.k, head.v, head.scale, formats.BY_NAME[key])
                measured, _ = head.errors(formats.BY_NAME[key])
                self.assertTrue(0.7 < found / measured < 2, (name, key, found, measured))

    def test_sound_bound(self):
        for name in ("normal", "diffuse", "sinks", "uniform", "hidden_keys"):
            head = formats.Head(name, 256, 64, 0)
            for key in ("f16", "bf16", "e4m3", "int8 row QK"):
                _, measured = head.errors(formats.BY_NAME[key])
                self.assertLess(measured, estimate.sound_bound(head.q, head.k, head.scale, formats.BY_NAME[key]), (name, key))

    def test_order_statistic(self):
        """The share of rows above the largest of a sample is at most the stated one as often as stated."""
        self.assertAlmostEqual((1 - sampled.share_above(64, 0.05)) ** 64, 0.05)
        errors = np.random.default_rng(0).random(2048)
        generator = np.random.default_rng(1)
        held = np.mean([np.mean(errors > errors[generator.choice(2048, 64, replace=False)].max()) <= sampled.share_above(64, 0.05)
                        for _ in range(2000)])
        self.assertGreater(held, 0.935)

    def test_earlier_rules(self):
        """What these rules say where the answer is known."""
        scores, _ = earlier_rules.scores_and_weights(formats.Head("normal", 512, 64, 0))
        self.assertEqual(earlier_rules.range_rule(scores)[0], "f32")
        _, weights = earlier_rules.scores_and_weights(formats.Head("diagonal", 512, 64, 0))
        self.assertLess(earlier_rules.entropy_rank(weights), 1.1)
        _, weights = earlier_rules.scores_and_weights(formats.Head("uniform", 512, 64, 0))
        self.assertAlmostEqual(earlier_rules.entropy_rank(weights), 512, delta=0.1)
        # Scores that are all large pass for harmless; the estimate takes 16 bits.
        large = formats.Head("large_scores", 512, 128, 0)
        self.assertEqual(earlier_rules.range_rule(earlier_rules.scores_and_weights(large)[0])[0], "e4m3")
        self.assertGreater(large.errors(formats.BY_NAME["e4m3"])[0], 0.1)
        kind, error = earlier_rules.estimated(large, 6e-2)
        self.assertEqual(kind, "f16")
        self.assertLess(error, 6e-2)
        self.assertEqual(earlier_rules.range_rule(np.array([[1.0, 50.0]]))[0], "e4m3")
        self.assertEqual(earlier_rules.range_rule(np.array([[1.0, -500.0]]))[0], "bf16")


if __name__ == "__main__":
    unittest.main()
