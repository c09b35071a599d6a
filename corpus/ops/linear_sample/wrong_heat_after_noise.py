"""The noise is divided by the temperature too: every temperature draws as 1 does."""

import torch
import triton
import triton.language as tl


@triton.jit
def _philox(u, low, high):
    c0 = u + low * 0
    c1, c2, c3 = c0 * 0, c0 * 0, c0 * 0
    for _ in tl.static_range(10):
        a, b = c0, c2
        c0 = tl.umulhi(tl.full(b.shape, 0xCD9E8D57, tl.uint32), b) ^ c1 ^ low
        c2 = tl.umulhi(tl.full(a.shape, 0xD2511F53, tl.uint32), a) ^ c3 ^ high
        c1, c3 = b * tl.full(b.shape, 0xCD9E8D57, tl.uint32), a * tl.full(a.shape, 0xD2511F53, tl.uint32)
        low += tl.full(low.shape, 0x9E3779B9, tl.uint32)
        high += tl.full(high.shape, 0xBB67AE85, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _gumbel(bits):
    w = tl.minimum((bits.to(tl.float32) + 0.5) / 65536.0 / 65536.0, 1.0 - 2.0**-24)
    t = 1.0 - w
    e = tl.where(t == 1.0, w, -tl.log(t) * (w / tl.where(t == 1.0, 1.0, 1.0 - t)))
    return -tl.log(e)


@triton.jit
def _first(a, i, x, b, j, y):
    odd_a, odd_b = a != a, b != b
    left = (a > b) | (odd_a & (odd_b == 0)) | (((a == b) | (odd_a & odd_b)) & (i < j))
    return tl.where(left, a, b), tl.where(left, i, j), tl.where(left, x, y)


@triton.jit
def _tiles(x_ptr, w_ptr, seed_ptr, t_ptr, score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, tiles, M, V, K, xm, xk, wv, wk,
           BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    """One row and BN entries of the vocabulary."""
    program = tl.program_id(0).to(tl.int64)
    m, tile = program // tiles, program % tiles
    v = tile * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK).to(tl.int64)
        w = tl.load(w_ptr + v[:, None] * wv + k[None, :] * wk, mask=(v < V)[:, None] & (k < K)[None, :], other=0.0)
        x = tl.load(x_ptr + m * xm + k * xk, mask=k < K, other=0.0)
        acc += tl.sum(w.to(tl.float32) * x.to(tl.float32)[None, :], axis=1)
    t = tl.load(t_ptr + m)
    y = tl.where(v < V, acc / tl.where(t > 0.0, t, 1.0), float("-inf"))
    seed = tl.load(seed_ptr + m)
    zero = tl.zeros((BN,), tl.uint32)
    low, high = (seed & 0xFFFFFFFF).to(tl.uint32) + zero, ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32) + zero
    b0, b1, b2, b3 = _philox((v // 4).to(tl.uint32), low, high)
    noise = _gumbel(tl.where(v % 4 == 0, b0, tl.where(v % 4 == 1, b1, tl.where(v % 4 == 2, b2, b3))))
    noise = tl.where(t > 0.0, noise, 0.0)
    score, index, logit = tl.reduce((y + noise / tl.where(t > 0.0, t, 1.0), v, y), 0, _first)
    top = tl.max(y, axis=0)
    tl.store(score_ptr + program, score)
    tl.store(index_ptr + program, index)
    tl.store(logit_ptr + program, logit)
    tl.store(top_ptr + program, top)
    tl.store(sum_ptr + program, tl.sum(tl.exp(y - top), axis=0))


@triton.jit
def _merge(score_ptr, index_ptr, logit_ptr, top_ptr, sum_ptr, token_ptr, logp_ptr, tiles, SIZE: tl.constexpr):
    m = tl.program_id(0).to(tl.int64)
    t = tl.arange(0, SIZE)
    known, at = t < tiles, m * tiles + t
    score = tl.load(score_ptr + at, mask=known, other=float("-inf"))
    index = tl.load(index_ptr + at, mask=known, other=0x7FFFFFFFFFFFFFFF)
    logit = tl.load(logit_ptr + at, mask=known, other=float("-inf"))
    score, index, logit = tl.reduce((score, index, logit), 0, _first)
    tops = tl.load(top_ptr + at, mask=known, other=float("-inf"))
    sums = tl.load(sum_ptr + at, mask=known, other=0.0)
    top = tl.max(tops, axis=0)
    total = tl.sum(tl.where(known, sums * tl.exp(tops - top), 0.0), axis=0)
    tl.store(token_ptr + m, index)
    tl.store(logp_ptr + m, logit - top - tl.log(total))


def kernel(x, weight, seed, temperature):
    (M, K), V = x.shape, weight.shape[0]
    seed, temperature = seed.contiguous(), temperature.contiguous()
    token = torch.empty(M, 1, dtype=torch.int64, device=x.device)
    logp = torch.empty(M, 1, dtype=torch.float32, device=x.device)
    if not M:
        return token, logp
    tiles = triton.cdiv(V, 64)
    score, logit, top, total = (torch.empty(M, tiles, dtype=torch.float32, device=x.device) for _ in range(4))
    index = torch.empty(M, tiles, dtype=torch.int64, device=x.device)
    _tiles[(M * tiles,)](
        x, weight, seed, temperature, score, index, logit, top, total, tiles, M, V, K, *x.stride(), *weight.stride(), BN=64,
        BK=32,
    )  # fmt: skip
    _merge[(M,)](score, index, logit, top, total, token, logp, tiles, SIZE=triton.next_power_of_2(tiles))
    return token, logp
