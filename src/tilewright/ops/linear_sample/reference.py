"""Sampling from the softmax of a linear layer in PyTorch, with logits in float32 or wider and the kernel's own noise.

Noise of a vocabulary entry depends on the row's seed, the entry and the number of the sample alone: Philox4x32-10 (Salmon,
Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011) with the seed as key and (entry // 4, sample, 0, 0) as
counter gives the words of four entries.
"""

import torch

WORD = 0xFFFFFFFF


def _times(a, b):
    """High and low word of the product of a constant and words (in int64)."""
    low, high = b & 0xFFFF, b >> 16
    return (a * high + (a * low >> 16)) >> 16, a * b & WORD


def philox(seed, u, s):
    """Four words for each counter ``(u, s, 0, 0)`` under the 64 bits of ``seed``; int64 tensors that broadcast."""
    k0, k1 = seed & WORD, seed >> 32 & WORD
    c0, c1 = torch.broadcast_tensors(u & WORD, s & WORD)
    c0, c1 = torch.broadcast_tensors(c0, c1 + 0 * k0)
    c2 = c3 = torch.zeros_like(c0)
    for _ in range(10):
        high_a, low_a = _times(0xD2511F53, c0)
        high_b, low_b = _times(0xCD9E8D57, c2)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def gumbel(seed, first, count, samples, dtype):
    """Standard Gumbel noise (rows, samples, count) for the entries from ``first`` on, a multiple of 4."""
    u = torch.arange((count + 3) // 4, device=seed.device) + first // 4
    s = torch.arange(samples, device=seed.device)
    words = torch.stack(philox(seed[:, None, None], u[None, None, :], s[None, :, None]), -1)
    bits = words.flatten(-2)[..., :count]
    w = ((bits.to(dtype) + 0.5) / 65536 / 65536).clamp(max=1 - 2.0**-24)
    return -torch.log(-torch.log1p(-w))


def logits_of(x, weight, bias, counts, repetition, frequency, presence, allowed, temperature):
    """Logits (rows, vocabulary), after penalties, mask and temperature; float32 or wider."""
    wide = torch.promote_types(x.dtype, torch.float32)
    with torch.autocast(x.device.type, enabled=False):
        y = x.to(wide) @ weight.to(wide).t()
    y = y if bias is None else y + bias.to(wide)
    if counts is not None:
        seen = counts > 0
        if repetition is not None:
            r = repetition[:, None].to(wide)
            y = torch.where(seen, torch.where(y > 0, y / r, y * r), y)
        if frequency is not None:
            y = torch.where(seen, y - frequency[:, None].to(wide) * counts.to(wide), y)
        if presence is not None:
            y = torch.where(seen, y - presence[:, None].to(wide), y)
    if temperature is not None:
        t = temperature[:, None].to(wide)
        y = y / torch.where(t > 0, t, torch.ones_like(t))
    return y if allowed is None else torch.where(allowed, y, torch.full_like(y, float("-inf")))


def kept_of(y, top_k, top_p, min_p):
    """Which entries the filters keep: all that are at least as large as one threshold a row, so equals stay together. Where
    the largest one is no number or infinite, it alone."""
    order = torch.where(y.isnan(), torch.full_like(y, float("inf")), y)
    ranked = order.sort(-1, descending=True).values
    top = ranked[:, :1]
    keep = torch.ones_like(y, dtype=torch.bool)
    mass = torch.where(ranked == top, torch.ones_like(ranked), torch.exp(ranked - top))
    if top_k is not None:
        k = torch.where(top_k > 0, top_k, y.shape[-1]).clamp(max=y.shape[-1])[:, None]
        least = ranked.gather(-1, k - 1)
        keep = keep & (order >= least)
        mass = torch.where(ranked >= least, mass, torch.zeros_like(mass))
    if top_p is not None:
        p = top_p[:, None].to(y.dtype)
        above = mass.double().cumsum(-1)
        place = (above < p * above[:, -1:]).sum(-1, keepdim=True).clamp(max=y.shape[-1] - 1)
        keep = keep & ((order >= ranked.gather(-1, place)) | ~(p < 1))
    if min_p is not None:
        p = min_p[:, None].to(y.dtype)
        keep = keep & ((order >= top + torch.log(p)) | ~(p > 0))
    nan = y.isnan().any(-1, keepdim=True)
    only = torch.where(nan, y.isnan(), y == top)
    return torch.where(torch.isfinite(top) & ~nan, keep, only) & (order > float("-inf"))


def linear_sample_shard(
    x, weight, seed, bias=None, temperature=None, top_k=None, top_p=None, min_p=None, counts=None, repetition=None,
    frequency=None, presence=None, allowed=None, samples=1, first=0,
):  # fmt: skip
    """Index, log-probability and score of each sample, and the logarithm of the sum of the exponentials of each row."""
    y = logits_of(x, weight, bias, counts, repetition, frequency, presence, allowed, temperature)
    if top_k is not None or top_p is not None or min_p is not None:
        y = torch.where(kept_of(y, top_k, top_p, min_p), y, torch.full_like(y, float("-inf")))
    noise = gumbel(seed, first, y.shape[-1], samples, y.dtype)
    if temperature is not None:
        noise = torch.where(temperature[:, None, None] > 0, noise, torch.zeros_like(noise))
    scores = y[:, None, :] + noise
    token = scores.argmax(-1)
    score = scores.gather(-1, token[..., None]).squeeze(-1)
    top = y.amax(-1, keepdim=True)
    total = (top + torch.log(torch.exp(y - top).sum(-1, keepdim=True))).squeeze(-1)
    logp = y.gather(-1, token) - total[:, None]
    none = (y == float("-inf")).all(-1)
    lost = torch.full_like(total, float("-inf"))
    token = torch.where(none[:, None], torch.full_like(token, -1), token + first)
    logp = torch.where(none[:, None], lost[:, None], logp)
    return token, logp, score, torch.where(none, lost, total)


def linear_sample(*arguments, **named):
    """Index and log-probability of each sample."""
    return linear_sample_shard(*arguments, **named)[:2]
