"""Keys split into four ranges; each leaves its maximum, sum and unnormalised output; a second kernel merges them."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _partial(q_ptr, k_ptr, v_ptr, acc_ptr, top_ptr, sum_ptr, H, R, M, N, D, scale, splits, chunk, sqb, sqh, sqm, sqd,
             skb, skh, skn, skd, svb, svh, svn, svd, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
             BD: tl.constexpr):
    tiles = tl.cdiv(M, BM)
    pid = tl.program_id(0).to(tl.int64)
    split = pid % splits
    tile = (pid // splits) % tiles
    head = (pid // splits // tiles) % H
    batch = pid // splits // tiles // H
    rows = (tile * BM + tl.arange(0, BM))[:, None]
    d = tl.arange(0, BD).to(tl.int64)
    q = tl.load(q_ptr + batch * sqb + head * sqh + rows * sqm + d[None, :] * sqd, mask=(rows < M) & (d[None, :] < D),
                other=0.0)
    top = tl.full((BM, 1), -float("inf"), tl.float32)
    total = tl.zeros((BM, 1), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for turn in range(0, chunk, BN):
        cols = split * chunk + turn + tl.arange(0, BN)
        k = tl.load(k_ptr + batch * skb + (head // R) * skh + d[:, None] * skd + cols[None, :] * skn,
                    mask=(d[:, None] < D) & (cols[None, :] < N), other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale
        seen = cols[None, :] < N
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows)
        s = tl.where(seen, s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1)[:, None])
        shift = tl.where(new_top == -float("inf"), 0.0, new_top)
        p = tl.exp(s - shift)
        fade = tl.exp(top - shift)
        v = tl.load(v_ptr + batch * svb + (head // R) * svh + cols[:, None] * svn + d[None, :] * svd,
                    mask=(cols[:, None] < N) & (d[None, :] < D), other=0.0)
        total = total * fade + tl.sum(p, axis=1)[:, None]
        acc = acc * fade + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new_top
    at = ((batch * H + head) * M + rows) * splits + split
    tl.store(top_ptr + at, top, mask=rows < M)
    tl.store(sum_ptr + at, total, mask=rows < M)
    tl.store(acc_ptr + at * D + d[None, :], acc, mask=(rows < M) & (d[None, :] < D))


@triton.jit
def _merge(acc_ptr, top_ptr, sum_ptr, o_ptr, D, splits, SPLITS: tl.constexpr, BD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, SPLITS)
    d = tl.arange(0, BD)
    live = parts < splits
    tops = tl.load(top_ptr + row * splits + parts, mask=live, other=-float("inf"))
    sums = tl.load(sum_ptr + row * splits + parts, mask=live, other=0.0)
    weight = tl.exp(tops - tl.max(tops, axis=0))
    acc = tl.load(acc_ptr + (row * splits + parts)[:, None] * D + d[None, :], mask=live[:, None] & (d[None, :] < D),
                  other=0.0)
    o = tl.sum(acc * weight[:, None], axis=0) / tl.sum(sums * weight, axis=0)
    tl.store(o_ptr + row * D + d, o, mask=d < D)


def kernel(q, k, v, causal):
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    block_d = max(16, triton.next_power_of_2(D))
    chunk = 32 * triton.cdiv(triton.cdiv(N, 32), 4)
    splits = triton.cdiv(N, chunk)
    acc = torch.empty((B, H, M, splits, D), dtype=torch.float32, device=q.device)
    tops = torch.empty((B, H, M, splits), dtype=torch.float32, device=q.device)
    sums = torch.empty_like(tops)
    _partial[(B * H * triton.cdiv(M, 16) * splits,)](q, k, v, acc, tops, sums, H, H // k.shape[1], M, N, D,
                                                     1.0 / math.sqrt(D), splits, chunk, *q.stride(), *k.stride(),
                                                     *v.stride(), CAUSAL=causal, BM=16, BN=32, BD=block_d)
    _merge[(B * H * M,)](acc, tops, sums, o, D, splits, SPLITS=triton.next_power_of_2(splits), BD=block_d)
    return o
