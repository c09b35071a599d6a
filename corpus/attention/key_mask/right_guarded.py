"""Flash loop with a guarded maximum: a sequence whose keys are all masked ends with sum 0 and is written as zeros."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attention(q_ptr, k_ptr, v_ptr, mask_ptr, o_ptr, H, M, N, D, scale, sqb, sqh, sqm, sqd, skb, skh, skn, skd, svb,
               svh, svn, svd, smb, smn, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    tiles = tl.cdiv(M, BM)
    pid = tl.program_id(0).to(tl.int64)
    head = (pid // tiles) % H
    batch = pid // tiles // H
    rows = ((pid % tiles) * BM + tl.arange(0, BM))[:, None]
    d = tl.arange(0, BD).to(tl.int64)
    q = tl.load(q_ptr + batch * sqb + head * sqh + rows * sqm + d[None, :] * sqd, mask=(rows < M) & (d[None, :] < D),
                other=0.0)
    top = tl.full((BM, 1), -float("inf"), tl.float32)
    total = tl.zeros((BM, 1), tl.float32)
    acc = tl.zeros((BM, BD), tl.float32)
    for start in range(0, N, BN):
        cols = start + tl.arange(0, BN).to(tl.int64)
        k = tl.load(k_ptr + batch * skb + head * skh + d[:, None] * skd + cols[None, :] * skn,
                    mask=(d[:, None] < D) & (cols[None, :] < N), other=0.0)
        valid = tl.load(mask_ptr + batch * smb + cols * smn, mask=cols < N, other=0) != 0
        s = tl.dot(q, k, input_precision="ieee") * scale
        s = tl.where(valid[None, :], s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1)[:, None])
        shift = tl.where(new_top == -float("inf"), 0.0, new_top)
        p = tl.exp(s - shift)
        fade = tl.exp(top - shift)
        v = tl.load(v_ptr + batch * svb + head * svh + cols[:, None] * svn + d[None, :] * svd,
                    mask=(cols[:, None] < N) & (d[None, :] < D), other=0.0)
        total = total * fade + tl.sum(p, axis=1)[:, None]
        acc = acc * fade + tl.dot(p, v, input_precision="ieee")
        top = new_top
    o = tl.where(total > 0.0, acc / tl.where(total > 0.0, total, 1.0), 0.0)
    tl.store(o_ptr + (batch * H + head) * M * D + rows * D + d[None, :], o, mask=(rows < M) & (d[None, :] < D))


def kernel(q, k, v, mask):
    B, H, M, D = q.shape
    N = k.shape[2]
    o = torch.empty((B, H, M, D), dtype=q.dtype, device=q.device)
    _attention[(B * H * triton.cdiv(M, 16),)](q, k, v, mask, o, H, M, N, D, 1.0 / math.sqrt(D), *q.stride(),
                                              *k.stride(), *v.stride(), *mask.stride(), BM=16, BN=16,
                                              BD=max(16, triton.next_power_of_2(D)))
    return o
