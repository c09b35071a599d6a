"""Forward keeps the scores with the maximum and sum of each row; backward forms the weights from them, tile by tile."""
import math

import torch
import triton
import triton.language as tl


@triton.jit
def _tile(ptr, rows, d, R, D, sr, sd):
    keep = (rows[:, None] < R) & (d[None, :] < D)
    return tl.load(ptr + rows[:, None] * sr + d[None, :] * sd, mask=keep, other=0.0)


@triton.jit
def _weights(s_ptr, top_ptr, sum_ptr, batch, rows, cols, M, N):
    keep = (rows[:, None] < M) & (cols[None, :] < N)
    s = tl.load(s_ptr + (batch * M + rows[:, None]) * N + cols[None, :], mask=keep, other=-float("inf"))
    top = tl.load(top_ptr + batch * M + rows, mask=rows < M, other=0.0)
    total = tl.load(sum_ptr + batch * M + rows, mask=rows < M, other=1.0)
    return tl.exp(s - top[:, None]) / total[:, None]


@triton.jit
def _forward(q_ptr, k_ptr, v_ptr, o_ptr, s_ptr, top_ptr, sum_ptr, M, N, D, scale, sqb, sqm, sqd, skb, skn, skd, svb, svn,
             svd, T: tl.constexpr, BD: tl.constexpr):
    tiles = tl.cdiv(M, T)
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // tiles
    rows = (pid % tiles) * T + tl.arange(0, T)
    d = tl.arange(0, BD).to(tl.int64)
    q = _tile(q_ptr + batch * sqb, rows, d, M, D, sqm, sqd)
    top = tl.full((T,), -float("inf"), tl.float32)
    total = tl.zeros((T,), tl.float32)
    acc = tl.zeros((T, BD), tl.float32)
    for start in range(0, N, T):
        cols = start + tl.arange(0, T).to(tl.int64)
        k = _tile(k_ptr + batch * skb, cols, d, N, D, skn, skd)
        v = _tile(v_ptr + batch * svb, cols, d, N, D, svn, svd)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = (rows[:, None] < M) & (cols[None, :] < N)
        tl.store(s_ptr + (batch * M + rows[:, None]) * N + cols[None, :], s, mask=seen)
        s = tl.where(cols[None, :] < N, s, -float("inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1))
        p = tl.exp(s - new_top[:, None])
        fade = tl.exp(top - new_top)
        total = total * fade + tl.sum(p, axis=1)
        acc = acc * fade[:, None] + tl.dot(p, v, input_precision="ieee")
        top = new_top
    out = o_ptr + (batch * M + rows[:, None]) * D + d[None, :]
    tl.store(out, acc / total[:, None], mask=(rows[:, None] < M) & (d[None, :] < D))
    tl.store(top_ptr + batch * M + rows, top, mask=rows < M)
    tl.store(sum_ptr + batch * M + rows, total, mask=rows < M)


@triton.jit
def _grad_queries(k_ptr, v_ptr, do_ptr, s_ptr, top_ptr, sum_ptr, delta_ptr, dq_ptr, M, N, D, scale, skb, skn, skd, svb,
                  svn, svd, sdb, sdm, sdd, T: tl.constexpr, BD: tl.constexpr):
    tiles = tl.cdiv(M, T)
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // tiles
    rows = (pid % tiles) * T + tl.arange(0, T)
    d = tl.arange(0, BD).to(tl.int64)
    do = _tile(do_ptr + batch * sdb, rows, d, M, D, sdm, sdd)
    delta = tl.zeros((T,), tl.float32)
    for start in range(0, N, T):
        cols = start + tl.arange(0, T).to(tl.int64)
        v = _tile(v_ptr + batch * svb, cols, d, N, D, svn, svd)
        p = _weights(s_ptr, top_ptr, sum_ptr, batch, rows, cols, M, N)
        delta += tl.sum(p * tl.dot(do, tl.trans(v), input_precision="ieee"), axis=1)
    tl.store(delta_ptr + batch * M + rows, delta, mask=rows < M)
    dq = tl.zeros((T, BD), tl.float32)
    for start in range(0, N, T):
        cols = start + tl.arange(0, T).to(tl.int64)
        k = _tile(k_ptr + batch * skb, cols, d, N, D, skn, skd)
        v = _tile(v_ptr + batch * svb, cols, d, N, D, svn, svd)
        p = _weights(s_ptr, top_ptr, sum_ptr, batch, rows, cols, M, N)
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        dq += tl.dot(ds, k, input_precision="ieee") * scale
    tl.store(dq_ptr + (batch * M + rows[:, None]) * D + d[None, :], dq, mask=(rows[:, None] < M) & (d[None, :] < D))


@triton.jit
def _grad_keys(q_ptr, v_ptr, do_ptr, s_ptr, top_ptr, sum_ptr, delta_ptr, dk_ptr, dv_ptr, M, N, D, scale, sqb, sqm, sqd,
               svb, svn, svd, sdb, sdm, sdd, T: tl.constexpr, BD: tl.constexpr):
    tiles = tl.cdiv(N, T)
    pid = tl.program_id(0).to(tl.int64)
    batch = pid // tiles
    cols = (pid % tiles) * T + tl.arange(0, T)
    d = tl.arange(0, BD).to(tl.int64)
    v = _tile(v_ptr + batch * svb, cols, d, N, D, svn, svd)
    dk = tl.zeros((T, BD), tl.float32)
    dv = tl.zeros((T, BD), tl.float32)
    for start in range(0, M, T):
        rows = start + tl.arange(0, T).to(tl.int64)
        q = _tile(q_ptr + batch * sqb, rows, d, M, D, sqm, sqd)
        do = _tile(do_ptr + batch * sdb, rows, d, M, D, sdm, sdd)
        delta = tl.load(delta_ptr + batch * M + rows, mask=rows < M, other=0.0)
        p = _weights(s_ptr, top_ptr, sum_ptr, batch, rows, cols, M, N)
        dv += tl.dot(tl.trans(p), do, input_precision="ieee")
        ds = p * (tl.dot(do, tl.trans(v), input_precision="ieee") - delta[:, None])
        dk += tl.dot(tl.trans(ds), q, input_precision="ieee") * scale
    at = (batch * N + cols[:, None]) * D + d[None, :]
    keep = (cols[:, None] < N) & (d[None, :] < D)
    tl.store(dk_ptr + at, dk, mask=keep)
    tl.store(dv_ptr + at, dv, mask=keep)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        B, M, D = q.shape
        N = k.shape[1]
        o = torch.empty((B, M, D), dtype=q.dtype, device=q.device)
        scores = torch.empty((B, M, N), dtype=torch.float32, device=q.device)
        top = torch.empty((B, M), dtype=torch.float32, device=q.device)
        total = torch.empty_like(top)
        block_d = max(16, triton.next_power_of_2(D))
        _forward[(B * triton.cdiv(M, 16),)](q, k, v, o, scores, top, total, M, N, D, 1.0 / math.sqrt(D), *q.stride(),
                                            *k.stride(), *v.stride(), T=16, BD=block_d)
        ctx.save_for_backward(q, k, v, scores, top, total)
        return o

    @staticmethod
    def backward(ctx, do):
        q, k, v, scores, top, total = ctx.saved_tensors
        B, M, D = q.shape
        N = k.shape[1]
        block_d = max(16, triton.next_power_of_2(D))
        scale = 1.0 / math.sqrt(D)
        delta = torch.empty_like(top)
        dq = torch.empty((B, M, D), dtype=q.dtype, device=q.device)
        dk = torch.empty((B, N, D), dtype=q.dtype, device=q.device)
        dv = torch.empty_like(dk)
        _grad_queries[(B * triton.cdiv(M, 16),)](k, v, do, scores, top, total, delta, dq, M, N, D, scale, *k.stride(),
                                                 *v.stride(), *do.stride(), T=16, BD=block_d)
        _grad_keys[(B * triton.cdiv(N, 16),)](q, v, do, scores, top, total, delta, dk, dv, M, N, D, scale, *q.stride(),
                                              *v.stride(), *do.stride(), T=16, BD=block_d)
        return dq, dk, dv


def kernel(q, k, v):
    return _Attention.apply(q, k, v)
