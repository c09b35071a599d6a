"""The doubly stochastic matrix ``diag(a) exp(x) diag(b)`` itself: Newton's method on the dual, one matrix a thread.

With columns normalised, the dual in the row potentials ``f`` has gradient ``rows - 1`` and as its second derivative the
Laplacian of ``p @ p.T``, whose elements are sums of products: solved by elimination without a subtraction (Grassmann and
others, 1985), so that weak couplings keep their digits. A step is one row of Sinkhorn's, then Newton's, cut to the one of
four lengths that lowers the dual most. Inputs that span more than ``START`` are first solved at 2**-L of their size, then at
twice that, and so on (Schmitzer, Stabilized sparse scaling algorithms, 2019). How many steps a matrix gets depends on its
own span alone. The gradient is that of the solution: one more elimination, no iteration.
"""

import torch
import triton
import triton.language as tl

INNER, OUTER, START = 3, 14, 8.0


@triton.jit
def _place(N, count, P: tl.constexpr, BLOCK: tl.constexpr):
    """Row, column, matrix of each element, and which elements are there."""
    i = tl.arange(0, P)[:, None, None]
    j = tl.arange(0, P)[None, :, None]
    m = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, None, :]
    return i, j, m, (i < N) & (j < N) & (m < count)


@triton.jit
def _log_sum(y, inside, AXIS: tl.constexpr):
    y = tl.where(inside, y, float("-inf"))
    top = tl.max(y, axis=AXIS, keep_dims=True)
    top = tl.where(top == float("-inf"), 0.0, top)
    return top + tl.log(tl.sum(tl.where(inside, tl.exp(y - top), 0.0), axis=AXIS, keep_dims=True))


@triton.jit
def _columns(y, inside):
    """Columns of ``exp(y)`` made to sum to one."""
    return tl.where(inside, y - tl.where(inside, _log_sum(y, inside, 0), 0.0), 0.0)


@triton.jit
def _total(a):
    return tl.sum(tl.sum(a, axis=1, keep_dims=True), axis=0, keep_dims=True)


@triton.jit
def _coupling(p, i, j, P: tl.constexpr):
    """``p @ p.T`` of each matrix."""
    turned = tl.permute(p, (1, 0, 2))
    g = p * 0.0
    for k in tl.static_range(P):
        g += tl.sum(tl.where(j == k, p, 0.0), axis=1, keep_dims=True) * tl.sum(
            tl.where(i == k, turned, 0.0), axis=0, keep_dims=True
        )
    return g


@triton.jit
def _solve(g, y, i, j, P: tl.constexpr):
    """``Laplacian(g) f = y`` for ``f`` (rows), which is 0 in the first row and in what nothing couples to it."""
    shares = y * 0.0
    for t in tl.static_range(1, P):
        a = tl.where(i < P - t, tl.sum(tl.where(j == P - t, g, 0.0), axis=1, keep_dims=True), 0.0)
        across = tl.where(j < P - t, tl.sum(tl.where(i == P - t, g, 0.0), axis=0, keep_dims=True), 0.0)
        d = tl.sum(a, axis=0, keep_dims=True)
        share = tl.where(d > 1e-30, 1.0 / tl.where(d > 1e-30, d, 1.0), 0.0)
        y += a * share * tl.sum(tl.where(i == P - t, y, 0.0), axis=0, keep_dims=True)
        g += a * share * across
        shares = tl.where(i == P - t, share, shares)
    f = y * 0.0
    for k in tl.static_range(1, P):
        a = tl.where(i < k, tl.sum(tl.where(j == k, g, 0.0), axis=1, keep_dims=True), 0.0)
        here = tl.sum(a * f, axis=0, keep_dims=True) + tl.sum(tl.where(i == k, y, 0.0), axis=0, keep_dims=True)
        f = tl.where(i == k, here * shares, f)
    return f


@triton.jit
def _dual(z, f, i, j, N, inside):
    """The dual at potentials ``f`` of the rows."""
    tops = tl.where(j < N, _log_sum(z + f, inside, 0), 0.0)
    return tl.sum(tops, axis=1, keep_dims=True) - tl.sum(tl.where(i < N, f, 0.0), axis=0, keep_dims=True)


@triton.jit
def _step(y, i, j, N, inside, P: tl.constexpr):
    """What to add to the rows of ``y``."""
    z = _columns(y, inside)
    rows = tl.where(i < N, -_log_sum(z, inside, 1), 0.0)
    z = _columns(tl.where(inside, z + rows, 0.0), inside)
    p = tl.where(inside, tl.exp(z), 0.0)
    f = _solve(_coupling(p, i, j, P), tl.where(i < N, 1.0 - tl.sum(p, axis=1, keep_dims=True), 0.0), i, j, P)
    f = tl.where(i < N, f, 0.0)
    top = tl.max(tl.where(i < N, f, float("-inf")), axis=0, keep_dims=True)
    low = tl.min(tl.where(i < N, f, float("inf")), axis=0, keep_dims=True)
    f = tl.where(i < N, f - (top + low) * 0.5, 0.0)
    most = (top - low) * 0.5
    best = f * (1.0 / tl.maximum(most, 1.0))
    lowest = _dual(z, best, i, j, N, inside)
    for t in tl.static_range(1, 4):
        other = f * (4.0**t / tl.maximum(most, 4.0**t))
        dual = _dual(z, other, i, j, N, inside)
        best = tl.where(dual < lowest, other, best)
        lowest = tl.minimum(dual, lowest)
    return rows + best


@triton.jit
def _levels(x, inside, START: tl.constexpr):
    """How often the span of each matrix must be halved to lie below ``START``; and which matrices are finite."""
    top = tl.max(tl.max(tl.where(inside, x, float("-inf")), axis=1, keep_dims=True), axis=0, keep_dims=True)
    low = tl.min(tl.min(tl.where(inside, x, float("inf")), axis=1, keep_dims=True), axis=0, keep_dims=True)
    odd = _total(tl.where(inside & ((x != x) | (tl.abs(x) == float("inf"))), 1.0, 0.0)) > 0.0
    span = tl.where(odd | (top < low), 0.0, top * (1.0 / START) - low * (1.0 / START))
    return tl.ceil(tl.log2(tl.maximum(span, 1.0))), odd


@triton.jit(do_not_specialize=["xi", "xj"])
def _converged(x_ptr, y_ptr, p_ptr, N, count, xm, xi, xj, P: tl.constexpr, BLOCK: tl.constexpr, INNER: tl.constexpr,
               OUTER: tl.constexpr, START: tl.constexpr):  # fmt: skip
    i, j, m, inside = _place(N, count, P, BLOCK)
    x = tl.load(x_ptr + m * xm + i * xi + j * xj, mask=inside, other=0.0).to(tl.float32)
    levels, odd = _levels(x, inside, START)
    x = tl.where(odd, 0.0, x)
    y = x
    f = tl.sum(x, axis=1, keep_dims=True) * 0.0
    most = tl.max(tl.max(tl.max(levels, axis=2), axis=1), axis=0).to(tl.int32)
    for t in range(INNER * most + OUTER):
        below = t < INNER * levels
        scale = tl.exp2(tl.minimum(t // INNER - levels, 0.0))
        y = tl.where(t <= INNER * levels, x * scale + f, y)
        f_step = _step(y, i, j, N, inside, P)
        alive = t < INNER * levels + OUTER
        f = tl.where(alive, f + f_step, f)
        y = tl.where(alive, _columns(tl.where(inside, y + f_step, 0.0), inside), y)
        f = tl.where(below & (t % INNER == INNER - 1), 2.0 * f, f)
    p = tl.where(odd, float("nan"), tl.exp(y))
    at = m * (N * N) + i * N + j
    tl.store(y_ptr + at, p.to(y_ptr.dtype.element_ty), mask=inside)
    tl.store(p_ptr + at, p, mask=inside)


@triton.jit(do_not_specialize=["di", "dj"])
def _implicit(p_ptr, d_ptr, g_ptr, N, count, dm, di, dj, P: tl.constexpr, BLOCK: tl.constexpr):
    i, j, m, inside = _place(N, count, P, BLOCK)
    p = tl.load(p_ptr + m * (N * N) + i * N + j, mask=inside, other=0.0)
    d = tl.load(d_ptr + m * dm + i * di + j * dj, mask=inside, other=0.0).to(tl.float32)
    rest = d - tl.sum(p * d, axis=0, keep_dims=True)
    f = _solve(_coupling(p, i, j, P), tl.sum(p * rest, axis=1, keep_dims=True), i, j, P)
    # A sum of p[k, j] (f[k] - f[i]), not a difference of sums: where little couples two rows, f is large there.
    for k in tl.static_range(P):
        here = tl.sum(tl.where(i == k, f, 0.0), axis=0, keep_dims=True)
        rest += (here - f) * tl.sum(tl.where(i == k, p, 0.0), axis=0, keep_dims=True)
    g = p * rest
    tl.store(g_ptr + m * (N * N) + i * N + j, g.to(g_ptr.dtype.element_ty), mask=inside)


def tile(n):
    """Matrices of a program: one a thread."""
    return {"P": triton.next_power_of_2(n), "BLOCK": 128, "num_warps": 4}


def converged(x):
    """``x`` of shape (count, n, n), any strides: the result in its dtype and in float32, both contiguous."""
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    p = torch.empty(x.shape, dtype=torch.float32, device=x.device)
    count, n, t = x.shape[0], x.shape[-1], tile(x.shape[-1])
    if count:
        _converged[(triton.cdiv(count, t["BLOCK"]),)](
            x, y, p, n, count, *x.stride(), **t, INNER=INNER, OUTER=OUTER, START=START
        )
    return y, p


def converged_backward(dy, p, dtype):
    """Gradient of ``x``, contiguous, from the result in float32."""
    g = torch.empty(p.shape, dtype=dtype, device=p.device)
    count, n, t = p.shape[0], p.shape[-1], tile(p.shape[-1])
    if count:
        _implicit[(triton.cdiv(count, t["BLOCK"]),)](p, dy, g, n, count, *dy.stride(), **t)
    return g


class _Converged(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y, p = converged(x)
        ctx.save_for_backward(p)
        ctx.dtype = x.dtype
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (p,) = ctx.saved_tensors
        return converged_backward(dy, p, ctx.dtype)


def converged_kernel(x):
    return _Converged.apply(x)
