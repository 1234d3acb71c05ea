# REQUIRES: transformers
# RUN: %torch_python %s
"""Models of transformers with random weights: attn_implementation="moa" against "eager", in float32 and bfloat16.

On a machine with a GPU of sm_90a the models run there. Each comparison prints its errors.
"""
import copy
import unittest

import torch
import transformers

import moa.torch.transformers

moa.torch.transformers.register()
DEVICE = "cuda" if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0) else "cpu"
SIZES = dict(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=64 if DEVICE == "cuda" else 8, max_position_embeddings=64, pad_token_id=0)


def error(found, expected):
    return ((found.float() - expected.float()).norm() / expected.float().norm()).item()


def logits(model, implementation, tokens, mask):
    model.set_attn_implementation(implementation)
    with torch.no_grad():
        found = model(tokens, attention_mask=mask).logits
    return found if mask is None else found[mask.bool()]


class Models(unittest.TestCase):

    def compare(self, config, bound=1e-5):
        """Compares logits and greedy tokens in float32. In bfloat16, MoA's logits must be as near as eager ones to those
        of float32."""
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        model = model.to(DEVICE)
        short = copy.deepcopy(model).to(torch.bfloat16)
        rounded = copy.deepcopy(short).float()
        tokens = torch.randint(1, 97, (3, 21)).to(DEVICE)
        padding = torch.ones(3, 21, dtype=torch.long, device=DEVICE)
        padding[0, :5] = padding[2, :13] = 0
        for mask in (None, padding):
            found = {}
            for name in ("eager", "moa"):
                found[name] = logits(model, name, tokens, mask)
                with torch.no_grad():
                    found[name + " tokens"] = model.generate(tokens, attention_mask=padding if mask is None else mask,
                                                             max_new_tokens=6, do_sample=False)
            exact = logits(rounded, "eager", tokens, mask)
            errors = {name: error(logits(short, name, tokens, mask), exact) for name in ("eager", "moa")}
            print(f"{config.model_type:8} {DEVICE}, {'no mask' if mask is None else 'padding'}: f32 "
                  f"{error(found['moa'], found['eager']):.1e}; bf16 {errors['moa']:.1e}, eager {errors['eager']:.1e}")
            self.assertLess(error(found["moa"], found["eager"]), bound)
            self.assertTrue(torch.equal(found["moa tokens"], found["eager tokens"]))
            self.assertLess(errors["moa"], 1.5 * errors["eager"])

    def test_llama(self):
        self.compare(transformers.LlamaConfig(**SIZES))

    def test_gradients(self):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**SIZES)).to(DEVICE)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        tokens = torch.randint(1, 97, (3, 21)).to(DEVICE)
        padding = torch.ones(3, 21, dtype=torch.long, device=DEVICE)
        padding[0, 15:] = 0
        for mask in (None, padding):
            found = []
            for name in ("eager", "moa"):
                model.set_attn_implementation(name)
                model.zero_grad()
                labels = tokens if mask is None else tokens.masked_fill(mask == 0, -100)
                model(tokens, attention_mask=mask, labels=labels).loss.backward()
                found.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
            self.assertLess((found[1] - found[0]).norm() / found[0].norm(), 1e-5)

    def test_qwen3(self):  # norms of queries and keys
        self.compare(transformers.Qwen3Config(**SIZES))

    def test_gemma2(self):  # softcaps and windows
        self.compare(transformers.Gemma2Config(**SIZES, sliding_window=7, attn_logit_softcapping=5.0,
                                               query_pre_attn_scalar=8, layer_types=["sliding_attention", "full_attention"]))

    def test_gpt_oss(self):  # sinks and windows
        self.compare(transformers.GptOssConfig(**SIZES, sliding_window=7, num_local_experts=2, num_experts_per_tok=1,
                                               layer_types=["sliding_attention", "full_attention"]))

    def test_static_cache(self):
        config = transformers.LlamaConfig(**SIZES)
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="moa").eval()
        model = model.to(DEVICE)
        tokens = torch.randint(1, 97, (2, 9)).to(DEVICE)
        found = [model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False,
                                cache_implementation=cache) for cache in (None, "static")]
        self.assertTrue(torch.equal(*found))


if __name__ == "__main__":
    unittest.main()
