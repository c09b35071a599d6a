"""Columns are divided before rows: what comes out has rows that sum to one, and columns that nearly do."""

import torch
import triton
import triton.language as tl

SCRATCH = 32 << 20
SPAN = 30.0


@triton.jit
def _place(N, count, first, P: tl.constexpr, BLOCK: tl.constexpr):
    """Row, column, matrix of each element, and which elements are there."""
    i = tl.arange(0, P)[:, None, None]
    j = tl.arange(0, P)[None, :, None]
    local = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = (first + local)[None, None, :]
    return i, j, local, m, (i < N) & (j < N) & (local < count)[None, None, :]


@triton.jit
def _log_sum(y, inside, AXIS: tl.constexpr):
    """Logarithm of the sum of ``exp(y)`` along an axis, which stays as one of size 1; padding counts as nothing."""
    y = tl.where(inside, y, float("-inf"))
    top = tl.max(y, axis=AXIS, keep_dims=True)
    top = tl.where(top == float("-inf"), 0.0, top)
    return top + tl.log(tl.sum(tl.where(inside, tl.exp(y - top), 0.0), axis=AXIS, keep_dims=True))


@triton.jit
def _shared(a, inside):
    """The first two axes of ``a`` brought to the tile's, and the padding made harmless."""
    return tl.where(inside, a, 0.0)


@triton.jit
def _lowest(y, inside):
    """The smallest element of each matrix."""
    return tl.min(tl.min(tl.where(inside, y, 0.0), axis=1, keep_dims=True), axis=0, keep_dims=True)


@triton.jit(do_not_specialize=["xi", "xj"])
def _sinkhorn(x_ptr, y_ptr, N, count, iterations, xm, xi, xj, P: tl.constexpr, BLOCK: tl.constexpr, SPAN: tl.constexpr):
    """One iteration on logarithms. Where it leaves no entry below ``exp(-SPAN)``, none can vanish later on, and the others
    work on the entries themselves: a product and a sum each, no exponential. Which matrices do is a matter of each alone."""
    i, j, _, m, inside = _place(N, count, 0, P, BLOCK)
    y = tl.load(x_ptr + m * xm + i * xi + j * xj, mask=inside, other=0.0).to(tl.float32)
    y = _shared(y - _log_sum(y, inside, 0), inside)
    y = _shared(y - _log_sum(y, inside, 1), inside)
    plain = _lowest(y, inside) > -SPAN
    p = _shared(tl.exp(y), inside)
    for _ in range(iterations - 1):
        p = _shared(p * (1.0 / tl.sum(p, axis=0, keep_dims=True)), inside)
        p = _shared(p * (1.0 / tl.sum(p, axis=1, keep_dims=True)), inside)
    if tl.min(tl.min(tl.min(plain.to(tl.int32), axis=2), axis=1), axis=0) == 0:
        for _ in range(iterations - 1):
            y = _shared(y - _log_sum(y, inside, 0), inside)
            y = _shared(y - _log_sum(y, inside, 1), inside)
        p = tl.where(plain, p, tl.exp(y))
    at = m * (N * N) + i * N + j
    tl.store(y_ptr + at, p.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["xi", "xj", "di", "dj"])
def _sinkhorn_backward(x_ptr, d_ptr, g_ptr, s_ptr, N, count, first, width, iterations, xm, xi, xj, dm, di, dj,
                       P: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    i, j, local, m, inside = _place(N, count, first, P, BLOCK)
    b = local[None, None, :]
    live_i, live_j = (i < N) & (b < count), (j < N) & (b < count)
    y = tl.load(x_ptr + m * xm + i * xi + j * xj, mask=inside, other=0.0).to(tl.float32)
    for t in range(iterations):
        down = _log_sum(y, inside, 1)
        y = _shared(y - down, inside)
        along = _log_sum(y, inside, 0)
        y = _shared(y - along, inside)
        at = tl.cast(t, tl.int64) * 2 * N
        tl.store(s_ptr + (at + i) * width + b, down, mask=live_i)
        tl.store(s_ptr + (at + N + j) * width + b, along, mask=live_j)
    dy = tl.load(d_ptr + m * dm + i * di + j * dj, mask=inside, other=0.0).to(tl.float32)
    g = _shared(tl.exp(y) * dy, inside)
    for back in range(iterations):
        at = tl.cast(iterations - 1 - back, tl.int64) * 2 * N
        g = g - _shared(tl.exp(y), inside) * tl.sum(g, axis=0, keep_dims=True)
        y = _shared(y + tl.load(s_ptr + (at + N + j) * width + b, mask=live_j, other=0.0), inside)
        g = g - _shared(tl.exp(y), inside) * tl.sum(g, axis=1, keep_dims=True)
        y = _shared(y + tl.load(s_ptr + (at + i) * width + b, mask=live_i, other=0.0), inside)
    tl.store(g_ptr + m * (N * N) + i * N + j, g.to(g_ptr.dtype.element_ty), mask=inside)


def tile(n):
    """Matrices of a program: one a thread."""
    return {"P": triton.next_power_of_2(n), "BLOCK": 128, "num_warps": 4}


def sinkhorn(x, iterations):
    """``x`` of shape (count, n, n), any strides; contiguous result."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count, n = x.shape[0], x.shape[-1]
    if count:
        t = tile(n)
        _sinkhorn[(triton.cdiv(count, t["BLOCK"]),)](x, y, n, count, iterations, *x.stride(), **t, SPAN=SPAN)
    return y


def sinkhorn_backward(dy, x, iterations):
    """Gradient of ``x``, contiguous, in as many launches as the scratch memory asks for."""
    g = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    count, n, t = x.shape[0], x.shape[-1], tile(x.shape[-1])
    if not count:
        return g
    width = max(SCRATCH // (8 * n * max(iterations, 1)) // t["BLOCK"], 1) * t["BLOCK"]
    width = min(width, triton.cdiv(count, t["BLOCK"]) * t["BLOCK"])
    scratch = torch.empty(2 * n * max(iterations, 1) * width, dtype=torch.float32, device=x.device)
    for first in range(0, count, width):
        here = min(width, count - first)
        _sinkhorn_backward[(triton.cdiv(here, t["BLOCK"]),)](
            x, dy, g, scratch, n, here, first, width, iterations, *x.stride(), *dy.stride(), **t,
        )  # fmt: skip
    return g


class _Sinkhorn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, iterations):
        ctx.save_for_backward(x)
        ctx.iterations = iterations
        return sinkhorn(x, iterations)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        return sinkhorn_backward(dy, *ctx.saved_tensors, ctx.iterations), None


def kernel(x, iterations):
    return _Sinkhorn.apply(x, iterations)
