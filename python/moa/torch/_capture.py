"""flex_attention under torch.compile: Dynamo traces the functions, and makes the tensors that they capture inputs.

Dynamo does so for the higher-order operator `flex_attention` of PyTorch, which it knows by name. The operator here has
this name for Dynamo. Whatever runs Dynamo's graph, it calls the operator with graphs in place of the functions. The
graphs become a specification, and moa::flex_attention is all that remains.

Earlier versions of Dynamo assume the results of PyTorch's operator, so IS_KNOWN is false for them.
"""
import torch
from torch._ops import HigherOrderOperator

IS_KNOWN = torch.__version__ >= (2, 11)


class Captured(HigherOrderOperator):

    def __init__(self):
        super().__init__("moa_flex_attention")
        self.__name__ = "flex_attention"    # Dynamo chooses by it how it traces a call
        self.__module__ = __name__          # generated code then takes this object, not that of torch.ops

    def __call__(self, query, key, value, score_mod, block_mask, scale, options, score_captured=(), mask_captured=()):
        from . import _flex
        mask_mod = block_mask[-1]
        return tuple(_flex.compute(
            query, key, value, lambda *values: score_mod(*values, *score_captured),
            (lambda *indices: mask_mod(*indices, *mask_captured)) if options["mask"] else None,
            scale, [name for name in ("lse", "top") if options[name]]))


captured = Captured()


def same(score, b, h, i, j):
    return score


def everything(b, h, i, j):
    return b == b


def compute(query, key, value, score_mod, mask_mod, scale, results):
    """Replaces _flex.compute while Dynamo traces."""
    options = {"mask": mask_mod is not None, "lse": "lse" in results, "top": "top" in results}
    score_mod, mask_mod = same if score_mod is None else score_mod, everything if mask_mod is None else mask_mod
    return captured(query, key, value, score_mod, (mask_mod,), scale, options)
