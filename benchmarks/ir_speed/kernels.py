"""Four kernels as people write them, for the timing of the evaluator."""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * n + cols, mask=mask, other=float("-inf")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + cols, v / tl.sum(v, axis=0), mask=mask)


@triton.jit
def layer_norm(x, w, b, y, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    v = tl.load(x + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    centred = tl.where(mask, v - mean, 0.0)
    out = centred * tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    out = out * tl.load(w + cols, mask=mask, other=0.0) + tl.load(b + cols, mask=mask, other=0.0)
    tl.store(y + row * n + cols, out, mask=mask)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        keep_a, keep_b = (rm[:, None] < M) & (rk[None, :] + k < K), (rk[:, None] + k < K) & (rn[None, :] < N)
        ta = tl.load(a + rm[:, None] * K + rk[None, :] + k, mask=keep_a, other=0.0)
        tb = tl.load(b + (rk[:, None] + k) * N + rn[None, :], mask=keep_b, other=0.0)
        acc = tl.dot(ta, tb, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def attention(q, k, v, o, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * BM
    head = tl.program_id(1) * N * D
    rm = start + tl.arange(0, BM)
    rd = tl.arange(0, D)
    tq = tl.load(q + head + rm[:, None] * D + rd[None, :], mask=rm[:, None] < N, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    high = tl.minimum(start + BM, N) if CAUSAL else N
    for first in range(0, high, BN):
        rn = first + tl.arange(0, BN)
        tk = tl.load(k + head + rn[:, None] * D + rd[None, :], mask=rn[:, None] < N, other=0.0)
        tv = tl.load(v + head + rn[:, None] * D + rd[None, :], mask=rn[:, None] < N, other=0.0)
        s = tl.dot(tq, tl.trans(tk)) * (scale * 1.4426950408889634)
        keep = rn[None, :] < N
        if CAUSAL:
            keep = keep & (rn[None, :] <= rm[:, None])
        s = tl.where(keep, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        rescale = tl.exp2(m - m_new)
        total = total * rescale + tl.sum(p, 1)
        acc = tl.dot(p.to(tv.dtype), tv, acc * rescale[:, None])
        m = m_new
    out = (acc / total[:, None]).to(o.dtype.element_ty)
    tl.store(o + head + rm[:, None] * D + rd[None, :], out, mask=rm[:, None] < N)
