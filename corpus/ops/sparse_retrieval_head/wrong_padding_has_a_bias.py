"""Padded positions count as a logit of 0, to which the bias is added."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

NOWHERE = tl.constexpr(2147483647)


@triton.jit
def _head(x_ptr, w_ptr, b_ptr, m_ptr, out_ptr, at_ptr, B, S, V, H, sxb, sxs, sxh, swv, swh, sb, smb, sms,
          POSITIONS: tl.constexpr, WORDS: tl.constexpr, BLOCK_K: tl.constexpr, BIAS: tl.constexpr, MASK: tl.constexpr,
          KEEP: tl.constexpr):  # fmt: skip
    """A tile of words of one sequence. Programs of one tile of words lie side by side: they share its weights."""
    program = tl.program_id(0).to(tl.int64)
    batch = program % B
    word = program // B * WORDS + tl.arange(0, WORDS)
    known = word < V
    k = tl.arange(0, BLOCK_K).to(tl.int64)
    best = tl.full((WORDS,), -float("inf"), tl.float32)
    at = tl.zeros((WORDS,), tl.int32)
    seen = tl.zeros((POSITIONS,), tl.int32)
    for start in range(0, S, POSITIONS):
        position = (start + tl.arange(0, POSITIONS)).to(tl.int64)
        valid = position < S
        if MASK:
            valid = valid & (tl.load(m_ptr + batch * smb + position * sms, mask=valid, other=0) != 0)
        seen += valid.to(tl.int32)
        x_at = (x_ptr + batch * sxb + position * sxs)[:, None]
        w_at = (w_ptr + word * swv)[None, :]
        logits = tl.zeros((POSITIONS, WORDS), tl.float32)
        for k_start in range(0, H, BLOCK_K):
            kk = k_start + k
            x = tl.load(x_at + kk[None, :] * sxh, mask=valid[:, None] & (kk < H)[None, :], other=0.0)
            w = tl.load(w_at + kk[:, None] * swh, mask=known[None, :] & (kk < H)[:, None], other=0.0)
            logits = tl.dot(x, w, logits, input_precision="ieee")
        gone = valid[:, None] & (logits != logits)
        broken = tl.max(gone.to(tl.int32), axis=0) != 0
        shown = tl.where(gone == 0, logits, -float("inf"))
        top = tl.where(broken, float("nan"), tl.max(shown, axis=0))
        # NaN counts as the largest, and the first one stays, as in torch.
        rises = (best == best) & ((top > best) | broken)
        if KEEP:
            hit = tl.where(broken[None, :], gone, shown == top[None, :])
            first = tl.min(tl.where(hit, position[:, None].to(tl.int32), NOWHERE), axis=0)
            at = tl.where(rises, first, at)
        best = tl.where(rises, top, best)
    seen = tl.sum(seen, axis=0)
    if BIAS:
        bias = tl.load(b_ptr + word * sb, mask=known, other=0.0).to(tl.float32)
        best = tl.where(seen > 0, best + bias, best)  # without a position the bias counts for nothing, NaN or not
    active = (best > 0.0) | (best != best)
    y = libdevice.log1p(tl.where(active, best, 0.0))
    tl.store(out_ptr + batch * V + word, y, mask=known)
    if KEEP:
        tl.store(at_ptr + batch * V + word, tl.where(active, at, -1), mask=known)


@triton.jit
def _pull(up_ptr, y_ptr, at_ptr, batch, word, live, V, sub, suv):
    """Which position a word chose, and its logit's gradient: the incoming one over 1 + logit."""
    at = tl.load(at_ptr + batch * V + word, mask=live, other=-1).to(tl.int64)
    chose = live & (at >= 0)
    y = tl.load(y_ptr + batch * V + word, mask=chose, other=0.0)
    return at, chose, tl.load(up_ptr + batch * sub + word * suv, mask=chose, other=0.0) * tl.exp(-y)


@triton.jit
def _weight_gradient(up_ptr, y_ptr, at_ptr, x_ptr, dw_ptr, db_ptr, B, S, V, H, sub, suv, sxb, sxs, sxh,
                     WORDS: tl.constexpr, BLOCK_K: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    """What a tile of words chose, over all sequences; the first tile of features adds up the bias too."""
    word = tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    k = (tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
    total = tl.zeros((WORDS, BLOCK_K), tl.float32)
    bias = tl.zeros((WORDS,), tl.float32)
    for n in range(0, B):
        batch = tl.zeros((WORDS,), tl.int64) + n
        at, chose, pull = _pull(up_ptr, y_ptr, at_ptr, batch, word, word < V, V, sub, suv)
        bias += pull
        if WEIGHT:
            row = x_ptr + batch * sxb + at * sxs
            inside = (chose & (at < S))[:, None] & (k < H)[None, :]
            total += pull[:, None] * tl.load(row[:, None] + k[None, :] * sxh, mask=inside, other=0.0).to(tl.float32)
    if WEIGHT:
        tl.store(dw_ptr + word[:, None] * H + k[None, :], total, mask=(word < V)[:, None] & (k < H)[None, :])
    if BIAS:
        tl.store(db_ptr + word, bias, mask=(word < V) & (word * 0 + tl.program_id(1) == 0))


@triton.jit
def _up_to(sorted_ptr, count, value, steps):
    """How many of ``count`` ascending integers are at most ``value``: bisection, ``steps`` halvings."""
    low = value * 0
    high = low + count
    for _ in range(0, steps):
        open_ = low < high
        middle = (low + high) // 2
        below = open_ & (tl.load(sorted_ptr + middle, mask=open_, other=0) <= value)
        high = tl.where(open_ & (below == 0), middle, high)
        low = tl.where(below, middle + 1, low)
    return low


@triton.jit
def _input_gradient(sorted_ptr, order_ptr, up_ptr, y_ptr, at_ptr, w_ptr, dx_ptr, S, V, H, steps, sub, suv, swv, swh,
                    WORDS: tl.constexpr, BLOCK_K: tl.constexpr):  # fmt: skip
    """The words that chose one position, ``WORDS`` at a time."""
    row = tl.program_id(0).to(tl.int64)
    batch, position = row // S, row % S
    k = (tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)).to(tl.int64)
    first = _up_to(sorted_ptr + batch * V, V, position - 1, steps)
    last = _up_to(sorted_ptr + batch * V, V, position, steps)
    total = tl.zeros((WORDS, BLOCK_K), tl.float32)
    for start in range(first, last, WORDS):
        place = start + tl.arange(0, WORDS)
        live = place < last
        word = tl.load(order_ptr + batch * V + place, mask=live, other=0).to(tl.int64)
        live = live & (word >= 0) & (word < V)
        _, chose, pull = _pull(up_ptr, y_ptr, at_ptr, batch, word, live, V, sub, suv)
        w = tl.load((w_ptr + word * swv)[:, None] + k[None, :] * swh, mask=chose[:, None] & (k < H)[None, :], other=0.0)
        total += pull[:, None] * w.to(tl.float32)
    tl.store(dx_ptr + row * H + k, tl.sum(total, axis=0), mask=k < H)


def tiling(x, positions):
    """Tiles of the forward kernel, by dtype and sizes alone."""
    if x.dtype == torch.float32:
        return {"POSITIONS": 64, "WORDS": 64, "BLOCK_K": 32, "num_warps": 8, "num_stages": 2}
    tall = max(16, min(128, triton.next_power_of_2(positions)))
    return {"POSITIONS": tall, "WORDS": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 4}


def forward(x, weight, bias, mask, keep):
    """(sequences, words) in float32, and with ``keep`` the chosen positions, int32, -1 where the logit is not above 0."""
    (B, S, H), V = x.shape, weight.shape[0]
    out = torch.empty((B, V), dtype=torch.float32, device=x.device)
    at = torch.empty((B, V) if keep else (0,), dtype=torch.int32, device=x.device)
    tile = tiling(x, S)
    if out.numel():
        _head[(B * triton.cdiv(V, tile["WORDS"]),)](
            x, weight, x if bias is None else bias, x if mask is None else mask, out, at, B, S, V, H, *x.stride(),
            *weight.stride(), 0 if bias is None else bias.stride(0), *((0, 0) if mask is None else mask.stride()),
            **tile, BIAS=bias is not None, MASK=mask is not None, KEEP=keep,
        )  # fmt: skip
    return out, at


def backward(upstream, x, weight, bias, y, at, wanted):
    """Gradients of ``x``, ``weight`` and ``bias`` that are ``wanted``, from the choices that forward kept; contiguous."""
    dx = _of_input(upstream, x, weight, y, at) if wanted[0] else None
    dw, db = (torch.empty(t.shape, dtype=t.dtype, device=x.device) if w else None
              for t, w in zip((weight, bias), wanted[1:], strict=True))  # fmt: skip
    (B, S, H), V = x.shape, weight.shape[0]
    block_k = min(128, triton.next_power_of_2(H))
    if V and any(wanted[1:]):
        _weight_gradient[(triton.cdiv(V, 16), triton.cdiv(H, block_k) if wanted[1] else 1)](
            upstream, y, at, x, dw if wanted[1] else x, db if wanted[2] else x, B, S, V, H, *upstream.stride(),
            *x.stride(), WORDS=16, BLOCK_K=block_k, WEIGHT=wanted[1], BIAS=wanted[2],
        )  # fmt: skip
    return dx, dw, db


def _of_input(upstream, x, weight, y, at):
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    (B, S, H), V = x.shape, weight.shape[0]
    chosen, order = torch.sort(at, dim=-1, stable=True)
    block_k = min(128, triton.next_power_of_2(H))
    if dx.numel():
        _input_gradient[(B * S, triton.cdiv(H, block_k))](
            chosen, order, upstream, y, at, weight, dx, S, V, H, (V + 1).bit_length(), *upstream.stride(),
            *weight.stride(), WORDS=16, BLOCK_K=block_k,
        )  # fmt: skip
    return dx


class _SparseRetrievalHead(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, mask):
        out, at = forward(x, weight, bias, mask, any(ctx.needs_input_grad[:3]))
        ctx.save_for_backward(x, weight, bias, out, at)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, upstream):
        return *backward(upstream, *ctx.saved_tensors, ctx.needs_input_grad[:3]), None


def kernel(x, weight, bias, mask):
    return _SparseRetrievalHead.apply(x, weight, bias, mask)
