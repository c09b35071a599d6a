"""Backward turns on instead of back: the sine is not negated. Forward is right."""

import torch
import triton
import triton.language as tl


@triton.jit
def _halves(ptr, base, out_ptr, out_base, heads, first, inside, s_head, s_dim, o_head, o_dim, cos, sin, HALF,
            HEADS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Pairs ``(i, i + HALF)``."""
    head = (first + tl.arange(0, HEADS)).to(tl.int64)[None, :, None]
    i = tl.arange(0, BLOCK).to(tl.int64)[None, None, :]
    mask = inside[:, None, None] & (head < heads) & (i < HALF)
    at = ptr + base[:, None, None] + head * s_head + i * s_dim
    to = out_ptr + out_base[:, None, None] + head * o_head + i * o_dim
    a = tl.load(at, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(at + HALF * s_dim, mask=mask, other=0.0).to(tl.float32)
    tl.store(to, a * cos - b * sin, mask=mask)
    tl.store(to + HALF * o_dim, b * cos + a * sin, mask=mask)


@triton.jit
def _pairs(ptr, base, out_ptr, out_base, heads, first, inside, s_head, s_dim, o_head, o_dim, cos, sin, HALF,
           TOKENS: tl.constexpr, HEADS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Pairs ``(2 i, 2 i + 1)``."""
    head = (first + tl.arange(0, HEADS)).to(tl.int64)[None, :, None]
    i = tl.arange(0, 2 * BLOCK).to(tl.int64)[None, None, :]
    mask = inside[:, None, None] & (head < heads) & (i < 2 * HALF)
    x = tl.load(ptr + base[:, None, None] + head * s_head + i * s_dim, mask=mask, other=0.0).to(tl.float32)
    a, b = tl.split(tl.reshape(x, (TOKENS, HEADS, BLOCK, 2)))
    y = tl.reshape(tl.join(a * cos - b * sin, b * cos + a * sin), (TOKENS, HEADS, 2 * BLOCK))
    tl.store(out_ptr + out_base[:, None, None] + head * o_head + i * o_dim, y, mask=mask)


@triton.jit
def _rest(ptr, base, out_ptr, out_base, heads, first, inside, s_head, s_dim, o_head, o_dim, start, dims,
          HEADS: tl.constexpr, TAIL: tl.constexpr):  # fmt: skip
    """Dims beyond the rotary ones are copied."""
    head = (first + tl.arange(0, HEADS)).to(tl.int64)[None, :, None]
    i = (start + tl.arange(0, TAIL)).to(tl.int64)[None, None, :]
    mask = inside[:, None, None] & (head < heads) & (i < dims)
    x = tl.load(ptr + base[:, None, None] + head * s_head + i * s_dim, mask=mask)
    tl.store(out_ptr + out_base[:, None, None] + head * o_head + i * o_dim, x, mask=mask)


@triton.jit
def _turn(x_ptr, y_ptr, heads, inside, b, s, cos, sin, half, dims, xb, xh, xs, xd, yb, yh, ys, yd, TOKENS: tl.constexpr,
          HEADS: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr, PAIRS: tl.constexpr):  # fmt: skip
    """All heads of the tokens of a program."""
    base, out = b * xb + s * xs, b * yb + s * ys
    for first in range(0, heads, HEADS):
        if PAIRS:
            _pairs(x_ptr, base, y_ptr, out, heads, first, inside, xh, xd, yh, yd, cos, sin, half, TOKENS, HEADS, BLOCK)
        else:
            _halves(x_ptr, base, y_ptr, out, heads, first, inside, xh, xd, yh, yd, cos, sin, half, HEADS, BLOCK)
        if TAIL:
            _rest(x_ptr, base, y_ptr, out, heads, first, inside, xh, xd, yh, yd, 2 * half, dims, HEADS, TAIL)


@triton.jit
def _rope(q_ptr, k_ptr, p_ptr, r_ptr, cos_ptr, sin_ptr, at_ptr, tokens, length, q_heads, k_heads, half, dims, table, sign,
          qb, qh, qs, qd, kb, kh, ks, kd, pb, ph, ps, pd, rb, rh, rs, rd, cb, cs, cd, nb, ns, nd, ab, as_,
          TOKENS: tl.constexpr, Q_HEADS: tl.constexpr, K_HEADS: tl.constexpr, BLOCK: tl.constexpr, TAIL: tl.constexpr,
          PAIRS: tl.constexpr, POSITIONS: tl.constexpr):  # fmt: skip
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)
    inside = token < tokens
    b, s = token // length, token % length
    at = s
    if POSITIONS:
        at = tl.load(at_ptr + b * ab + s * as_, mask=inside, other=0).to(tl.int64)
    i = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    # A position outside of the table gives NaN, loudly; nothing is read for it.
    known = inside & (at >= 0) & (at < table)
    angle = known[:, None] & (i < half)
    cos = tl.load(cos_ptr + b[:, None] * cb + at[:, None] * cs + i * cd, mask=angle, other=float("nan")).to(tl.float32)
    sin = tl.load(sin_ptr + b[:, None] * nb + at[:, None] * ns + i * nd, mask=angle, other=float("nan")).to(tl.float32)
    cos, sin = cos[:, None, :], sign * sin[:, None, :]
    _turn(q_ptr, p_ptr, q_heads, inside, b, s, cos, sin, half, dims, qb, qh, qs, qd, pb, ph, ps, pd, TOKENS, Q_HEADS,
          BLOCK, TAIL, PAIRS)  # fmt: skip
    _turn(k_ptr, r_ptr, k_heads, inside, b, s, cos, sin, half, dims, kb, kh, ks, kd, rb, rh, rs, rd, TOKENS, K_HEADS,
          BLOCK, TAIL, PAIRS)  # fmt: skip


def rotate(q, k, p, r, cos, sin, positions, interleaved, sign):
    """Turn ``q`` and ``k``, (batch, heads, length, dims), into ``p`` and ``r``, which may be ``q`` and ``k`` themselves.

    ``cos`` and ``sin`` are (table, half) or (batch or 1, table, half): ``2 * half`` dims are rotary, the rest is copied.
    ``positions``, (batch or 1, length): which line of the table belongs to a token; None: its place in the sequence.
    """
    B, H, S, D = q.shape
    half, table = cos.shape[-1], cos.shape[-2]
    block = triton.next_power_of_2(max(half, 1))
    rest = 0 if p is q else D - 2 * half
    tail = triton.next_power_of_2(rest) if rest else 0
    heads = [min(triton.next_power_of_2(max(n, 1)), max(1, 2048 // block)) for n in (H, k.shape[1])]
    tokens = max(1, min(16, 1024 // (block * heads[0])))
    cos, sin = (t.expand(B, table, half) for t in (cos, sin))
    places = cos if positions is None else positions.expand(B, S)
    if B * S * D == 0 or H + k.shape[1] == 0:
        return
    strides = [n for t in (q, k, p, r, cos, sin) for n in t.stride()]
    _rope[(triton.cdiv(B * S, tokens),)](
        q, k, p, r, cos, sin, places, B * S, S, H, k.shape[1], half, D, table, float(sign), *strides,
        *places.stride()[:2], TOKENS=tokens, Q_HEADS=heads[0], K_HEADS=heads[1], BLOCK=block, TAIL=tail,
        PAIRS=interleaved, POSITIONS=positions is not None, num_warps=4,
    )  # fmt: skip


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, cos, sin, positions, interleaved):
        p, r = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k))
        rotate(q, k, p, r, cos, sin, positions, interleaved, 1.0)
        ctx.save_for_backward(cos, sin, positions)
        ctx.interleaved = interleaved
        return p, r

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dp, dr):
        dq, dk = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (dp, dr))
        rotate(dp, dr, dq, dk, *ctx.saved_tensors, ctx.interleaved, 1.0)
        return dq, dk, None, None, None, None


def kernel(q, k, cos, sin, positions, interleaved):
    return _Rope.apply(q, k, cos, sin, positions, interleaved)


def tables(q, k, cos, sin, interleaved):
    return _Rope.apply(q, k, cos, sin, None, interleaved)


def in_place(q, k, cos, sin, positions, interleaved):
    rotate(q, k, q, k, cos, sin, positions, interleaved, 1.0)
    return q, k
