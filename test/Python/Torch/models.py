# REQUIRES: transformers
# RUN: %torch_python %s
"""Models of transformers with random weights: attn_implementation="moa" against "eager", in float32."""
import unittest

import torch
import transformers

import moa.torch.transformers

moa.torch.transformers.register()
SIZES = dict(vocab_size=97, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, max_position_embeddings=64, pad_token_id=0)


class Models(unittest.TestCase):

    def compare(self, config, bound=1e-5):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        tokens = torch.randint(1, 97, (3, 21))
        padding = torch.ones(3, 21, dtype=torch.long)
        padding[0, :5] = padding[2, :13] = 0
        for mask in (None, padding):
            found = {}
            for name in ("eager", "moa"):
                model.set_attn_implementation(name)
                with torch.no_grad():
                    logits = model(tokens, attention_mask=mask).logits
                    new = model.generate(tokens, attention_mask=padding if mask is None else mask, max_new_tokens=6,
                                         do_sample=False)
                found[name] = logits if mask is None else logits[mask.bool()], new
            error = (found["moa"][0] - found["eager"][0]).norm() / found["eager"][0].norm()
            self.assertLess(error, bound)
            self.assertTrue(torch.equal(found["moa"][1], found["eager"][1]))

    def test_llama(self):
        self.compare(transformers.LlamaConfig(**SIZES))

    def test_gradients(self):
        torch.manual_seed(0)
        model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**SIZES))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
        tokens = torch.randint(1, 97, (3, 21))
        padding = torch.ones(3, 21, dtype=torch.long)
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
        tokens = torch.randint(1, 97, (2, 9))
        found = [model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=8, do_sample=False,
                                cache_implementation=cache) for cache in (None, "static")]
        self.assertTrue(torch.equal(*found))


if __name__ == "__main__":
    unittest.main()
