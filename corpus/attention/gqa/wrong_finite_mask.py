"""Hidden keys get the finite score -1e6: where all visible scores are lower, the weights go to the hidden keys."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attention(q_ptr, k_ptr, v_ptr, o_ptr, H, R, M, N, D, scale, sqb, sqh, sqm, sqd, skb, skh, skn, skd, svb, svh, svn,
               svd, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    tiles = tl.cdiv(M, BM)
    pid = tl.program_id(0).to(tl.int64)
    tile = pid % tiles
    head = (pid // tiles) % H
    batch = pid // tiles // H
    rows = (tile * BM + tl.arange(0, BM))[:, None]
    d = tl.arange(0, BD).to(tl.int64)
    q = tl.load(q_ptr + batch * sqb + head * sqh + rows * sqm + d[None, :] * sqd, mask=(rows < M) & (d[None, :] < D),
                other=0.0)
    k_base = k_ptr + batch * skb + (head // R) * skh
    v_base = v_ptr + batch * svb + (head // R) * svh
    top = tl.full((BM, 1), -float("inf"), tl.float32)
    total = tl.zeros((BM, 1), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    end = N
    if CAUSAL:
        end = min(N, ((tile + 1) * BM).to(tl.int32))
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        k = tl.load(k_base + d[:, None] * skd + cols[None, :] * skn, mask=(d[:, None] < D) & (cols[None, :] < N),
                    other=0.0)
        s = tl.dot(q, k, input_precision="ieee") * scale
        seen = cols[None, :] < N
        if CAUSAL:
            seen = seen & (cols[None, :] <= rows)
        s = tl.where(seen, s, -1.0e6)
        new_top = tl.maximum(top, tl.max(s, axis=1)[:, None])
        p = tl.exp(s - new_top)
        fade = tl.exp(top - new_top)
        v = tl.load(v_base + cols[:, None] * svn + d[None, :] * svd, mask=(cols[:, None] < N) & (d[None, :] < D),
                    other=0.0)
        total = total * fade + tl.sum(p, axis=1)[:, None]
        acc = acc * fade + tl.dot(p.to(v.dtype), v, input_precision="ieee")
        top = new_top
    o_base = o_ptr + (batch * H + head) * M * D
    tl.store(o_base + rows * D + d[None, :], acc / total, mask=(rows < M) & (d[None, :] < D))


def kernel(q, k, v, causal):
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    block_d = max(16, triton.next_power_of_2(D))
    _attention[(B * H * triton.cdiv(M, 16),)](q, k, v, o, H, H // k.shape[1], M, N, D, 1.0 / math.sqrt(D), *q.stride(),
                                              *k.stride(), *v.stride(), CAUSAL=causal, BM=16, BN=32, BD=block_d)
    return o
