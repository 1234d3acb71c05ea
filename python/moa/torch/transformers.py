"""Attention of Hugging Face transformers, for attn_implementation="moa"."""
import torch

from . import flex_attention, scaled_dot_product_attention


def attention(module, query, key, value, attention_mask, scaling=None, dropout=0.0, is_causal=None, softcap=None,
              s_aux=None, position_bias=None, **_):
    """The function that transformers calls: (output [batch, length, heads, width], None).

    Windows and padding arrive in the mask. `softcap` bounds scores, `s_aux` has one sink per head, which is neither
    scaled nor masked, and `position_bias` is added to scores.
    """
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    # Without a mask the first query stands at the first key, also in a cache with room for more.
    causal = bool(is_causal) and attention_mask is None and query.shape[2] > 1
    if attention_mask is not None:
        attention_mask = attention_mask[..., :key.shape[2]]
    if dropout or softcap is None and s_aux is None and position_bias is None:
        out = scaled_dot_product_attention(query, key, value, attention_mask, dropout, causal, scaling, enable_gqa=True)
        return out.transpose(1, 2).contiguous(), None
    full = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    mask = None if attention_mask is None else attention_mask.expand(full)
    bias = None if position_bias is None else position_bias.expand(full)

    def score_mod(score, b, h, i, j):
        if softcap is not None:
            score = softcap * torch.tanh(score / softcap)
        if bias is not None:
            score = score + bias[b, h, i, j]
        if mask is not None and mask.dtype != torch.bool:
            score = score + mask[b, h, i, j]
        return score

    def mask_mod(b, h, i, j):
        return mask[b, h, i, j] if mask is not None and mask.dtype == torch.bool else j <= i

    masked = causal or mask is not None and mask.dtype == torch.bool
    out, lse = flex_attention(query, key, value, score_mod, scale=scaling, enable_gqa=True, return_lse=True,
                              mask_mod=mask_mod if masked else None)
    if s_aux is not None:
        # The sink adds its exponential to the sum of each row: it leaves the share exp(lse) / (exp(lse) + exp(sink)).
        share = torch.sigmoid(lse - s_aux.to(lse.dtype)[:, None])
        out = (out * share[..., None]).to(out.dtype)
    return out.transpose(1, 2).contiguous(), None


def register(name="moa"):
    """Registers the attention and its masks, so that models take attn_implementation=name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, sdpa_mask)
