"""Generates text with a small GPT, by PyTorch's attention and by each form of attention of moa.torch:

    PYTHONPATH=build/python python3 examples/pytorch/gpt.py

The model first learns the text below, in some seconds. Then every form of attention continues the beginning of the
text, greedily, with a cache of keys and values. It prints the tokens per second of each, and ends with status 1 if
logits or tokens differ, or if a kernel is compiled for a new length.
"""
import argparse
import math
import sys
import time

import moa
import torch
from torch import nn
from torch.nn import functional as F

import moa.torch

TEXT = """Attention compares every query with every key. The products are scores, and a softmax makes weights of them.
Each result is the sum of the values, with these weights. Written as three steps, the scores and the weights are
matrices, and their size is the square of the length. So long texts need much memory, and most of the time is spent on
moving numbers to the memory and back. One pass over the keys is enough: it keeps the largest score so far, the sum of
the weights and the sum of the weighted values. When a larger score appears, both sums are multiplied by a factor, and
the pass goes on. No matrix is stored, and each key is read once for many queries. A generating model adds one token in
each step. The new query sees the keys of all tokens before it, which a cache keeps. Therefore the length grows by one
in each step, while the width of a head, the number of heads and the type of the numbers stay as they are. A kernel
that takes the length when it is called serves all of these steps, and nothing needs to be compiled again."""

KERNEL = """kernel attend[B, H, N, M; T : float, D = 16](Q : T[B, H, N, D], K : T[B, H, M, D], V : T[B, H, M, D],
    past : i32, scale : f32) -> O : T[B, H, N, D]
{
  S = (Q +.* transpose(K)) * scale
  O = softmax(mask([b, h, i, j] j <= i + past, S)) +.* V
}
"""


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, attend, cache=None, past=0):
        """`attend` takes queries, keys and values [batch, heads, length, width]; the queries are the last tokens.
        `cache` holds the keys and values of `past` tokens, and takes those of x."""
        weights = self.attention
        qkv = F.linear(self.before(x), weights.in_proj_weight, weights.in_proj_bias)
        q, k, v = qkv.unflatten(-1, (3, weights.num_heads, weights.head_dim)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            length = past + x.shape[1]
            cache[:, :, :, past:length] = torch.stack([k, v])
            k, v = cache[:, :, :, :length]
        x = x + weights.out_proj(attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class GPT(nn.Module):
    def __init__(self, letters, positions, width, heads, layers):
        super().__init__()
        self.letters, self.positions = nn.Embedding(letters, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.end = nn.LayerNorm(width)
        for embedding in (self.letters, self.positions):
            nn.init.normal_(embedding.weight, std=0.05)

    def forward(self, tokens, attends, caches=None, past=0):
        """Returns the logits [batch, length, letters]."""
        x = self.letters(tokens) + self.positions.weight[past:past + tokens.shape[1]]
        for k, (block, attend) in enumerate(zip(self.blocks, attends)):
            x = block(x, attend, None if caches is None else caches[k], past)
        return self.end(x) @ self.letters.weight.T


def sees_past(q):
    """Returns whether queries hide later keys: the first call has all tokens, a later one the last token alone."""
    return q.shape[2] > 1


def pytorch(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=sees_past(q))


def sdpa(q, k, v):
    return moa.torch.scaled_dot_product_attention(q, k, v, is_causal=sees_past(q))


def flex(q, k, v):
    # A captured tensor is an argument of the kernel. A captured number would be a constant in it.
    past = torch.tensor(k.shape[2] - q.shape[2], device=q.device)
    return moa.torch.flex_attention(q, k, v, mask_mod=lambda b, h, i, j: j <= i + past)


def own_kernel(dtype, device, width):
    """Returns attention by a specification that is registered as an operator."""
    kernel = moa.compile(KERNEL, device, T=dtype, D=width)
    operator = moa.torch.operator(kernel)
    return lambda q, k, v: operator(q, k, v, k.shape[2] - q.shape[2], 1 / math.sqrt(width))


def adaptive(block, **settings):
    """Returns attention by AdaptiveAttention. Its metrics of the first call are `attend.metrics`."""
    weights = block.attention.out_proj.weight
    module = moa.torch.AdaptiveAttention(block.attention.embed_dim, block.attention.num_heads, batch_first=True,
                                         device=weights.device, dtype=weights.dtype, **settings).eval()
    module.load_state_dict(block.attention.state_dict())

    def attend(q, k, v):
        out, metrics = module.attend(q, k, v, is_causal=sees_past(q))
        if sees_past(q):
            attend.metrics = metrics
        return out

    return attend


def train(model, tokens, steps, window=64):
    """Teaches the model to continue parts of the text, at all positions."""
    optimiser = torch.optim.AdamW(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 5e-3, total_steps=steps)
    window = min(window, len(model.positions.weight))
    for _ in range(steps):
        starts = torch.randint(0, len(tokens) - window, (16, 1), device=tokens.device)
        part = tokens[starts + torch.arange(window + 1, device=tokens.device)]
        past = int(torch.randint(0, len(model.positions.weight) - window + 1, ()))
        logits = model(part[:, :-1], [pytorch] * len(model.blocks), past=past)
        loss = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return loss.item()


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


@torch.no_grad()
def generate(model, attends, prompt, count):
    """Returns the tokens [count], their logits [count, letters], and the seconds of the prompt and of the rest."""
    block, weight = model.blocks[0].attention, model.letters.weight
    caches = weight.new_empty(len(model.blocks), 2, 1, block.num_heads, len(prompt) + count, block.head_dim)
    tokens, logits, past, begin = prompt[None], [], 0, wait(weight.device.type)
    for step in range(count):
        logits.append(model(tokens, attends, caches, past)[0, -1])
        past += tokens.shape[1]
        tokens = logits[-1].argmax().view(1, 1)
        if step == 0:
            first = wait(weight.device.type)
    logits = torch.stack(logits)
    end = wait(weight.device.type)
    return logits.argmax(-1), logits, first - begin, end - first


def difference(found, expected, bound):
    """Returns the relative error of the logits, and a text if they differ too much, or tokens without a near tie."""
    equal = int((found[0] == expected[0]).long().cumprod(0).sum())
    # After the first other token the inputs differ.
    ours, theirs = (logits[:equal + 1].double() for logits in (found[1], expected[1]))
    error = ((ours - theirs).norm() / theirs.norm()).item()
    if not error <= bound:
        return error, f"logits have the relative error {error:.1e}, but {bound:.0e} is allowed"
    if equal < len(found[0]):
        gap = (theirs[-1].max() - theirs[-1][found[0][equal]]).item()
        if gap > 2 * bound * theirs[-1].abs().max().item():
            return error, f"token {equal} differs, although its logit is {gap:.2g} below the largest"
    return error, None


def count_compilations():
    """Returns a list that grows by one entry with each kernel that is compiled or read from the cache."""
    made, compile_kernel = [], moa.compile

    def counted(*arguments, **options):
        made.append(arguments)
        return compile_kernel(*arguments, **options)

    moa.compile = counted
    return made


def main(arguments=None, more=()):
    """Returns 0 if all forms agree. `more` has further forms, as (name, function of q, k and v, bound)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="the type when generating")
    for name, default, text in (("tokens", 120, "tokens to generate"), ("prompt", 300, "letters given"),
                                ("layers", 2, None), ("width", 64, None), ("heads", 4, None),
                                ("steps", 250, "steps of training")):
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    parser.add_argument("--tolerance", type=float, default=1e-2, help="of AdaptiveAttention")
    given = parser.parse_args(arguments)
    length = given.prompt + given.tokens
    if length + 1 > len(TEXT) or min(given.tokens, given.prompt) < 2:
        parser.error(f"prompt and tokens must be at least 2, and together less than the {len(TEXT)} letters of the text")

    torch.manual_seed(0)
    letters = sorted(set(TEXT))
    tokens = torch.tensor([letters.index(letter) for letter in TEXT], device=given.device)
    model = GPT(len(letters), length, given.width, given.heads, given.layers).to(given.device)
    begin = time.perf_counter()
    loss = train(model, tokens, given.steps) if given.steps else math.nan
    dtype = getattr(torch, given.dtype)
    model = model.to(dtype).eval()
    print(f"trained {given.steps} steps in {time.perf_counter() - begin:.1f} s, loss {loss:.2f}")

    def for_all(attend):
        return lambda: [attend] * given.layers

    def for_each(**settings):
        return lambda: [adaptive(block, tolerance=given.tolerance, **settings) for block in model.blocks]

    rounding = 1e-4 if dtype == torch.float32 else 3e-2
    forms = [
        ("PyTorch's SDPA", for_all(pytorch), rounding),
        ("moa.torch SDPA", for_all(sdpa), rounding),
        ("flex_attention", for_all(flex), rounding),
        ("operator", lambda: for_all(own_kernel(dtype, given.device, given.width // given.heads))(), rounding),
        ("AdaptiveAttention", for_each(), rounding),
        ("  precision", for_each(enable_adaptive_precision=True), rounding + 5 * given.tolerance),
        ("  rank", for_each(enable_adaptive_rank=True), rounding + 5 * given.tolerance),
        *((name, for_all(attend), bound) for name, attend, bound in more)]
    compiled, failures, expected = count_compilations(), [], None
    print(f"{'attention':18} {'tokens/s':>9} {'prompt ms':>10} {'compile s':>10} {'kernels':>8} {'logits off by':>14}")
    for name, make, bound in forms:
        before, begin = len(compiled), time.perf_counter()
        attends = make()
        generate(model, attends, tokens[:given.prompt], 2)
        made, seconds = len(compiled) - before, time.perf_counter() - begin
        found = generate(model, attends, tokens[:given.prompt], given.tokens)
        expected = expected or found
        error, failure = difference(found, expected, bound)
        again = len(compiled) - before - made
        if again:
            failure = f"{again} kernels were compiled for new lengths"
        if failure:
            failures.append(f"{name.strip()}: {failure}")
        speed = (given.tokens - 1) / found[3]
        print(f"{name:18} {speed:9.0f} {1e3 * found[2]:10.1f} {seconds:10.1f} {made:8} {error:14.1e}")
        for k, metrics in enumerate(getattr(attend, "metrics", None) for attend in attends):
            if metrics is not None and metrics.tolerance is not None:
                print(f"    layer {k}, prompt: {metrics}")
    print("text:", repr("".join(letters[token] for token in expected[0])))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
