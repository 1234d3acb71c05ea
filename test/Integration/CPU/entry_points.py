# RUN: %python %s
"""The C entry points: descriptors of every kind, and refusals that write nothing."""
import ctypes
import platform
import unittest

import numpy as np

import moa_testing as mt
import references

B, H, G, N, M, D = 2, 4, 2, 21, 35, 64
SCALE = D ** -0.5


class EntryPoints(mt.KernelTest):

    @classmethod
    def setUpClass(cls):
        cls.kernel = mt.Kernel(mt.example("gqa_causal"), T="f32", D=D)
        rng = np.random.default_rng(7)
        cls.q = rng.standard_normal((B, H, N, D)).astype(np.float32)
        cls.k = rng.standard_normal((B, G, M, D)).astype(np.float32)
        cls.v = rng.standard_normal((B, G, M, D)).astype(np.float32)
        cls.expected = dict(zip(("O", "lse"), references.causal(
            *(a.astype(np.float64) for a in (cls.q, cls.k, cls.v)), SCALE)))

    def setUp(self):
        self.o = np.empty((B, H, N, D), np.float32)
        self.lse = np.empty((B, H, N), np.float32)
        for array in (self.o, self.lse):
            array.view(np.uint8)[...] = 0xA5

    def values(self, **changes):
        values = {"Q": mt.describe(self.q, "f32"), "K": mt.describe(self.k, "f32"),
                  "V": mt.describe(self.v, "f32"), "scale": SCALE,
                  "O": mt.describe(self.o, "f32"),
                  "lse": mt.describe(self.lse, "f32")}
        values.update(changes)
        return values

    def accept(self, values, o=None, lse=None):
        self.assertEqual(self.kernel.check(values), (mt.OK, ""))
        self.assertEqual(self.kernel.launch(values), mt.OK)
        results = {"O": self.o if o is None else o,
                   "lse": self.lse if lse is None else lse}
        self.assert_close(results, self.expected, mt.BOUNDS["f32"], self.id())

    def refuse(self, values, code, *words, watch=()):
        """The code, the words of the message, and untouched outputs."""
        watched = [self.o, self.lse, *watch]
        before = [array.tobytes() for array in watched]
        found, message = self.kernel.check(values)
        self.assertEqual(found, code, message)
        for word in words:
            self.assertIn(word, message)
        self.assertEqual(self.kernel.workspace_bytes(values), -code)
        self.assertEqual(self.kernel.launch(values, mt.aligned(1 << 20)), code)
        self.assertEqual([array.tobytes() for array in watched], before)

    def changed(self, name, **fields):
        """The usual arguments with fields of one descriptor changed."""
        values = self.values()
        for field, value in fields.items():
            setattr(values[name], field, value)
        return values

    # What must be accepted.

    def test_plain(self):
        self.accept(self.values())

    def test_null_strides(self):
        self.accept(self.values(
            Q=mt.describe(self.q, "f32", strides=False),
            K=mt.describe(self.k, "f32", strides=False),
            O=mt.describe(self.o, "f32", strides=False)))

    def test_byte_offset(self):
        self.accept(self.values(
            Q=mt.describe(self.q, "f32", byte_offset=4096),
            O=mt.describe(self.o, "f32", byte_offset=64)))

    def test_strided_inputs(self):
        """[B, N, H, D] memory behind a [B, H, N, D] view, and padded rows."""
        q = np.ascontiguousarray(self.q.swapaxes(1, 2)).swapaxes(1, 2)
        k = np.full((B, G, M, D + 5), np.nan, np.float32)[..., 2:D + 2]
        k[...] = self.k
        v = np.ascontiguousarray(self.v.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
        self.accept(self.values(Q=mt.describe(q, "f32"), K=mt.describe(k, "f32"),
                                V=mt.describe(v, "f32")))

    def test_layouts_over_whole_blocks(self):
        """Enough keys for whole blocks, whose operands may be read in place."""
        rng = np.random.default_rng(8)
        n, m = 130, 500
        q, k, v = (rng.standard_normal((B, heads, length, D)).astype(np.float32)
                   for heads, length in ((H, n), (G, m), (G, m)))
        expected = references.causal(*(a.astype(float) for a in (q, k, v)), SCALE)

        def head_major(a):
            return np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)

        def reversed_axes(a):
            return np.ascontiguousarray(a.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)

        for of_k in (np.copy, head_major, reversed_axes):
            for of_v in (np.copy, head_major, reversed_axes):
                with self.subTest(k=of_k.__name__, v=of_v.__name__):
                    o = np.full((B, H, n, D), np.nan, np.float32)
                    lse = np.full((B, H, n), np.nan, np.float32)
                    values = self.values(Q=mt.describe(q, "f32"),
                                         K=mt.describe(of_k(k), "f32"),
                                         V=mt.describe(of_v(v), "f32"),
                                         O=mt.describe(o, "f32"),
                                         lse=mt.describe(lse, "f32"))
                    self.assertEqual(self.kernel.launch(values), mt.OK)
                    self.assert_close({"O": o, "lse": lse},
                                      dict(zip(("O", "lse"), expected)),
                                      mt.BOUNDS["f32"], self.id())

    def test_broadcast_input(self):
        """Stride 0: one key head for both groups."""
        k = np.broadcast_to(self.k[:, :1], self.k.shape)
        v = np.broadcast_to(self.v[:, :1], self.v.shape)
        expected = references.causal(self.q.astype(float), k.astype(float),
                                         v.astype(float), SCALE)
        values = self.values(K=mt.describe(k, "f32"), V=mt.describe(v, "f32"))
        self.assertEqual(self.kernel.launch(values), mt.OK)
        self.assert_close({"O": self.o}, {"O": expected[0]}, mt.BOUNDS["f32"],
                          "stride 0")

    def test_strided_output(self):
        o = np.full((B, N, H, D + 3), 7.0, np.float32)
        view = o.swapaxes(1, 2)[..., :D]
        self.accept(self.values(O=mt.describe(view, "f32")), o=view)
        self.assertTrue((o[..., D:] == 7.0).all(), "padding was written")

    def test_workspace_of_any_contents(self):
        for fill in (0x00, 0xFF, 0x7F):
            workspace = mt.aligned(self.kernel.workspace_bytes(self.values()), fill)
            self.assertEqual(self.kernel.launch(self.values(), workspace), mt.OK)
            self.assert_close({"O": self.o, "lse": self.lse}, self.expected,
                              mt.BOUNDS["f32"], f"workspace of {fill:#x}")

    def test_workspace_end_is_kept(self):
        size = self.kernel.workspace_bytes(self.values())
        workspace = mt.aligned(size + 4096)
        self.assertEqual(self.kernel.launch(self.values(), workspace, size), mt.OK)
        self.assertTrue((workspace[size:] == 0xA5).all())

    def test_empty_arrays_may_be_null(self):
        empty = np.empty((B, H, 0, D), np.float32)
        rows = np.empty((B, H, 0), np.float32)
        values = self.values(Q=mt.describe(empty, "f32"), O=mt.describe(empty, "f32"),
                             lse=mt.describe(rows, "f32"))
        for name in ("Q", "O", "lse"):
            values[name].data = None
        self.assertEqual(self.kernel.check(values), (mt.OK, ""))
        self.assertEqual(self.kernel.launch(values), mt.OK)

    def test_no_keys(self):
        keys = np.empty((B, G, 0, D), np.float32)
        values = self.values(K=mt.describe(keys, "f32"), V=mt.describe(keys, "f32"))
        values["K"].data = values["V"].data = None
        self.assertEqual(self.kernel.launch(values), mt.OK)
        self.assertTrue((self.o == 0).all())
        self.assertTrue((self.lse == -np.inf).all())

    def test_prepare(self):
        self.assertEqual(self.kernel.entry("_prepare", mt.ctypes.c_int32)(0), mt.OK)

    # What must be refused.

    def test_null_descriptor(self):
        self.refuse(self.values(K=None), mt.NULL_DESCRIPTOR, "K")
        self.refuse(self.changed("V", shape=None), mt.NULL_DESCRIPTOR, "V")

    def test_rank(self):
        self.refuse(self.values(Q=mt.describe(self.q[0], "f32")), mt.RANK, "Q", "3",
                    "4")

    def test_dtype(self):
        self.refuse(self.changed("K", bits=64), mt.DTYPE, "K", "64")
        self.refuse(self.changed("K", code=4, bits=16), mt.DTYPE, "K", "bfloat")
        self.refuse(self.changed("K", lanes=2), mt.DTYPE, "K")
        self.refuse(self.changed("O", code=0), mt.DTYPE, "O", "int")

    def test_extents(self):
        short = self.v[:, :, :-1]
        self.refuse(self.values(V=mt.describe(short, "f32")), mt.SHAPE, "V",
                    str(M - 1), str(M))
        narrow = self.q[..., :-1]
        self.refuse(self.values(Q=mt.describe(narrow, "f32")), mt.SHAPE, "Q",
                    str(D - 1))
        self.refuse(self.values(O=mt.describe(self.o[:1], "f32")), mt.SHAPE, "O")
        negative = self.changed("Q")
        negative["Q"].shape = mt.int64s([B, H, -1, D])
        self.refuse(negative, mt.SHAPE, "Q", "-1")

    def test_constraint(self):
        """H % G == 0 is required; 4 heads over 3 groups break it."""
        k = np.zeros((B, 3, M, D), np.float32)
        self.refuse(self.values(K=mt.describe(k, "f32"), V=mt.describe(k, "f32")),
                    mt.CONSTRAINT, "H % G == 0", "H = 4", "G = 3")

    def test_strides(self):
        self.refuse(self.values(Q=mt.describe(self.q[:, :, ::-1], "f32")), mt.STRIDES,
                    "Q", "negative")
        overlapping = np.lib.stride_tricks.as_strided(
            self.o, self.o.shape, (0, *self.o.strides[1:]))
        self.refuse(self.values(O=mt.describe(overlapping, "f32")), mt.STRIDES, "O")

    def test_alignment(self):
        self.refuse(self.changed("Q", byte_offset=2), mt.ALIGNMENT, "Q")

    def test_device(self):
        self.refuse(self.changed("Q", device_type=2), mt.DEVICE, "Q", "2")

    def test_null_data(self):
        self.refuse(self.changed("K", data=None), mt.NULL_DATA, "K")

    def test_overlap(self):
        self.refuse(self.values(O=mt.describe(self.q, "f32")), mt.OVERLAP, "O", "Q",
                    watch=[self.q])
        inside = self.o.reshape(-1)[3:3 + self.lse.size].reshape(self.lse.shape)
        self.refuse(self.values(lse=mt.describe(inside, "f32")), mt.OVERLAP, "lse")

    def test_overflow(self):
        values = self.changed("K")
        values["K"].strides = mt.int64s([1 << 62, 1 << 61, D, 1])
        self.refuse(values, mt.OVERFLOW, "K")

    def test_workspace(self):
        values = self.values()
        size = self.kernel.workspace_bytes(values)
        self.assertGreater(size, 0)
        before = self.o.tobytes(), self.lse.tobytes()
        workspace = mt.aligned(size + 64)
        launch = self.kernel.launch
        # 64 bytes of it are there to begin at any address.
        self.assertEqual(launch(values, workspace, size - 65), mt.WORKSPACE)
        self.assertEqual(launch(values, workspace[8:], size - 65), mt.WORKSPACE)
        self.assertEqual(launch(values, np.empty(0, np.uint8), size), mt.WORKSPACE)
        self.assertEqual((self.o.tobytes(), self.lse.tobytes()), before)
        self.assertEqual(launch(values, workspace, size), mt.OK)
        right = self.o.tobytes(), self.lse.tobytes()
        for start in (1, 8, 63):
            self.o[...] = 7
            self.assertEqual(launch(values, workspace[start:], size), mt.OK)
            self.assertEqual((self.o.tobytes(), self.lse.tobytes()), right)

    def test_processor(self):
        """Code for another processor refuses; it does not run into an instruction."""
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = file.read()
        if platform.machine() != "x86_64" or "avx512_fp16" in flags:
            self.skipTest("no processor this one is not")
        own, type(self).kernel = self.kernel, mt.Kernel(
            mt.example("gqa_causal"), processor="sapphirerapids", T="f32", D=D)
        try:
            self.assertIn("processor sapphirerapids", self.kernel.header)
            self.refuse(self.values(), mt.PROCESSOR, "sapphirerapids", "avx512fp16")
            prepare = self.kernel.entry("_prepare", ctypes.c_int32)
            self.assertEqual(prepare(0), mt.PROCESSOR)
        finally:
            type(self).kernel = own

    def test_message_is_cut_to_its_buffer(self):
        text = mt.ctypes.create_string_buffer(b"x" * 31, 32)
        entry = self.kernel.entry("_check", mt.ctypes.c_int32)
        arguments = self.kernel.arguments(self.changed("K", bits=64))
        self.assertEqual(entry(*arguments, text, mt.ctypes.c_size_t(8)), mt.DTYPE)
        self.assertEqual(text.raw[7:], b"\0" + b"x" * 23 + b"\0")
        self.assertEqual(entry(*arguments, None, mt.ctypes.c_size_t(0)), mt.DTYPE)


if __name__ == "__main__":
    unittest.main(verbosity=2)
