# REQUIRES: attn-gym
# RUN: %torch_python %s
"""Every score and mask function of attention-gym, against FlexAttention without compiling, in float64 and float32.

With --table the results are printed as the table of docs/PyTorch.md.
"""
import sys
import unittest

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import and_masks, or_masks

import moa.torch
import reference
from moa.torch import _flex

from attn_gym import masks, mods
from attn_gym.masks import (batchify, block_diffusion, causal, dilated_sliding_window, document_mask, flamingo,
                            global_sliding_window, jetspec, natten, prefix_lm, shared_prefix, sliding_window, sta, svg, vsa)
from attn_gym.mods import activation, alibi, graphormer, latent_attention, sandwich, softcapping

B, H = 2, 4
generator = torch.Generator().manual_seed(3)


def random(*shape):
    return torch.randn(*shape, generator=generator)


def integers(low, high, *shape):
    return torch.randint(low, high, shape, generator=generator)


OFFSETS = torch.tensor([0, 5, 6, 20, 43])
TREE = jetspec.build_tree_ancestor_matrix(torch.tensor([-1, 0, 0, 1, 1, 2, 4, 4, 3]), device="cpu")
TILES = torch.stack([torch.randperm(8, generator=generator)[:3] for _ in range(B * H * 8)]).reshape(B, H, 8, 3)

# name, function, (queries, keys). Sizes that a function fixes are as small as it allows.
MASKS = [
    ("causal_mask", causal.causal_mask, (37, 53)),
    ("generate_sliding_window", sliding_window.generate_sliding_window(7), (41, 41)),
    ("generate_dilated_sliding_window", dilated_sliding_window.generate_dilated_sliding_window(12, 3), (45, 38)),
    ("generate_prefix_lm_mask", prefix_lm.generate_prefix_lm_mask(9), (33, 40)),
    ("generate_doc_mask_mod", document_mask.generate_doc_mask_mod(sliding_window.generate_sliding_window(4), OFFSETS),
     (43, 43)),
    ("generate_packed_causal_doc_mask_mod", document_mask.generate_packed_causal_doc_mask_mod(OFFSETS), (43, 43)),
    ("generate_shared_prefix_mask_mod",
     shared_prefix.generate_shared_prefix_mask_mod(OFFSETS, torch.tensor([0, 0, 0, 2])), (43, 43)),
    ("generate_vision_cross_attention_mask_mod",
     flamingo.generate_vision_cross_attention_mask_mod(torch.tensor([[0, 7], [7, 20], [3, 25]]), 6), (25, 18)),
    ("generate_global_sliding_window",
     global_sliding_window.generate_global_sliding_window(5, integers(0, 6, 40) == 0), (40, 40)),
    ("generate_jetspec_tree_causal_mask_mod", jetspec.generate_jetspec_tree_causal_mask_mod(20, TREE), (9, 35)),
    ("generate_jetspec_training_mask_mod", jetspec.generate_jetspec_training_mask_mod(17, 5), (30, 47)),
    ("generate_natten", natten.generate_natten(6, 7, 3, 5), (42, 42)),
    ("generate_tiled_natten", natten.generate_tiled_natten(8, 6, 3, 5, 4, 2), (48, 48)),
    ("generate_morton_natten", natten.generate_morton_natten(8, 8, 3, 5), (64, 64)),
    ("generate_sta_mask_mod_2d", sta.generate_sta_mask_mod_2d((8, 12), (4, 6), (2, 3), 5), (101, 101)),
    ("generate_sta_mask_mod_3d", sta.generate_sta_mask_mod_3d((4, 4, 6), (2, 4, 3), (2, 2, 3), 7), (103, 103)),
    ("generate_spatial_head_mask_mod", svg.generate_spatial_head_mask_mod(5, 3, 12, 1, True, 4), (41, 41)),
    ("generate_temporal_head_mask_mod", svg.generate_temporal_head_mask_mod(5, 3, 12, 1), (41, 41)),
    ("generate_vsa_mask_mod", vsa.generate_vsa_mask_mod(TILES, 4, integers(1, 5, 8)), (32, 32)),
    ("generate_vsa_padding_mask_mod", vsa.generate_vsa_padding_mask_mod(integers(0, 5, 8), 4), (30, 32)),
    ("batchify_mask_mod", batchify.batchify_mask_mod(natten.generate_natten(4, 5, 3, 3), 20), (40, 40)),
    ("generate_block_diffusion_mask", block_diffusion.generate_block_diffusion_mask(18, 4), (36, 36)),
    ("and_masks, or_masks (PyTorch)",
     and_masks(or_masks(causal.causal_mask, prefix_lm.generate_prefix_lm_mask(3)), lambda b, h, i, j: (i + j) % 5 != b),
     (31, 29)),
]
NODES = 26
SCORES = [
    ("generate_activation_score_mod (gelu)", activation.generate_activation_score_mod(F.gelu), (35, 44)),
    ("generate_activation_score_mod (relu)", activation.generate_activation_score_mod(F.relu, 0.5), (35, 44)),
    ("generate_activation_score_mod (sigmoid)", activation.generate_activation_score_mod(torch.sigmoid), (35, 44)),
    ("generate_activation_score_mod (silu)", activation.generate_activation_score_mod(F.silu), (35, 44)),
    ("generate_activation_score_mod (softplus)", activation.generate_activation_score_mod(F.softplus), (35, 44)),
    ("generate_activation_score_mod (elu)", activation.generate_activation_score_mod(F.elu, 1.5), (35, 44)),
    ("generate_alibi_bias", alibi.generate_alibi_bias(H), (35, 44)),
    ("generate_graphormer_spatial_bias",
     graphormer.generate_graphormer_spatial_bias(random(H, 6), integers(0, 6, B, NODES, NODES)), (NODES, NODES)),
    ("generate_graphormer_edge_bias",
     graphormer.generate_graphormer_edge_bias(random(H, 4, 7), integers(0, 7, B, NODES, NODES, 4),
                                              integers(0, 5, B, NODES, NODES)), (NODES, NODES)),
    ("generate_mla_rope_score_mod",
     latent_attention.generate_mla_rope_score_mod(random(B, H, 30, 8), random(B, 1, 40, 8), H, 0.3), (30, 40)),
    ("generate_sandwich_bias", sandwich.generate_sandwich_bias(H, 50), (35, 44)),
    ("generate_tanh_softcap", softcapping.generate_tanh_softcap(3), (35, 44)),
]
# Functions that compute in float32, whatever the type of the query.
SINGLE = {"generate_alibi_bias", "generate_mla_rope_score_mod", "generate_sandwich_bias",
          "generate_graphormer_edge_bias"}


def errors(kind, function, lengths, dtype):
    q, k, v = reference.inputs(B, H, *lengths, 16, dtype=dtype, seed=len(lengths))
    score_mod, mask_mod = (function, None) if kind == "score" else (None, function)
    out, lse = moa.torch.flex_attention(q, k, v, score_mod, mask_mod=mask_mod, return_lse=True)
    expected, expected_lse = reference.eager(q.double(), k.double(), v.double(), score_mod, mask_mod)
    return max(reference.error(out, expected), reference.error(lse, expected_lse))


def program(kind, function, lengths):
    q, k, v = reference.inputs(B, H, *lengths, 64, dtype=torch.bfloat16)
    traced = _flex.Traced(q, k, *((function, None) if kind == "score" else (None, function)))
    return moa.compile(_flex.specification(traced, q, k, v, ["lse"]), "cuda", T="bf16").source("cuda")


class AttentionGym(unittest.TestCase):

    def test_functions(self):
        for kind, functions in (("mask", MASKS), ("score", SCORES)):
            for name, function, lengths in functions:
                for dtype in (torch.float64, torch.float32):
                    bound = 2e-6 if name in SINGLE or dtype == torch.float32 else 1e-13
                    with self.subTest(function=name, dtype=dtype):
                        self.assertLess(errors(kind, function, lengths, dtype), bound)

    def test_gpu_programs(self):
        # The kernels for a GPU are made, in bfloat16, and use tensor cores. They do not run here.
        for kind, functions in (("mask", MASKS), ("score", SCORES)):
            for name, function, lengths in functions:
                with self.subTest(function=name):
                    text = program(kind, function, lengths)
                    # Products of float32 rows in the score run without tensor cores.
                    self.assertEqual("wgmma" in text, name != "generate_mla_rope_score_mod")

    def test_refused(self):
        q, k, v = reference.inputs(1, 1, 8, 8, 16)
        with self.assertRaisesRegex(moa.torch.UnsupportedError, "softcapping.py"):
            moa.torch.flex_attention(q, k, v, softcapping.generate_tanh_softcap(3, approx=True))


def table():
    for kind, functions in (("mask", MASKS), ("score", SCORES)):
        for name, function, lengths in functions:
            row = []
            for dtype in (torch.float64, torch.float32):
                try:
                    row.append(f"{errors(kind, function, lengths, dtype):.1e}")
                except Exception as problem:
                    row.append(f"{type(problem).__name__}: {str(problem)[:300]}")
            print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if "--table" in sys.argv:
        table()
    else:
        unittest.main()
