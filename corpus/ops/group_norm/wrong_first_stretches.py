"""Gradients of weight and bias take one share for each sample: places beyond the first stretch are lost."""

import torch
import triton
import triton.language as tl

WHOLE = 16384
PIECE = 8192
STRETCH = 4096


@triton.jit
def _placed(unit, w_ptr, b_ptr, c, inside, sw, sb, WEIGHT: tl.constexpr, BIAS: tl.constexpr):
    y = unit
    if WEIGHT:
        y *= tl.load(w_ptr + c * sw, mask=inside, other=0.0).to(unit.dtype)
    if BIAS:
        y += tl.load(b_ptr + c * sb, mask=inside, other=0.0).to(unit.dtype)
    return y


@triton.jit
def _rows(x_ptr, w_ptr, b_ptr, y_ptr, stat_ptr, rows, G, K, S, L, eps: tl.float64, sxn, sxc, sxs, sw, sb,
          ROWS: tl.constexpr, BLOCK: tl.constexpr, WEIGHT: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    """Norms of ``ROWS`` whole groups."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    i = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (row < rows) & (i < L)
    c = row % G * K + i // S
    x = tl.load(x_ptr + row // G * sxn + c * sxc + i % S * sxs, mask=inside, other=0.0).to(ACC)
    mean = tl.sum(x, axis=1)[:, None] / L
    centred = tl.where(inside, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=1)[:, None] / L + tl.cast(eps, ACC))
    tl.store(stat_ptr + row * 2, mean, mask=row < rows)
    tl.store(stat_ptr + row * 2 + 1, scale, mask=row < rows)
    y = _placed(centred * scale, w_ptr, b_ptr, c, inside, sw, sb, WEIGHT, BIAS)
    tl.store(y_ptr + row * L + i, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _moments(x_ptr, part_ptr, G, K, S, L, pieces, sxn, sxc, sxs, PIECE: tl.constexpr):
    """Mean of one piece of one group, and the sum of squares about it."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row, first = program // pieces, program % pieces * PIECE
    i = first + tl.arange(0, PIECE)
    inside = i < L
    at = row // G * sxn + (row % G * K + i // S) * sxc + i % S * sxs
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(ACC)
    mean = tl.sum(x, axis=0) / tl.minimum(L - first, PIECE)
    centred = tl.where(inside, x - mean, 0.0)
    tl.store(part_ptr + program * 2, mean)
    tl.store(part_ptr + program * 2 + 1, tl.sum(centred * centred, axis=0))


@triton.jit
def _joined(part_ptr, stat_ptr, L, pieces, eps: tl.float64, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """Mean and scale of one group from the moments of all its pieces, ``PIECES`` at a time."""
    ACC: tl.constexpr = part_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    weighed = tl.zeros((PIECES,), ACC)
    for start in range(0, pieces, PIECES):
        every = start + tl.arange(0, PIECES).to(tl.int64)
        held = every < pieces
        count = tl.where(held, tl.minimum(L - every * PIECE, PIECE), 0).to(ACC)
        weighed += count * tl.load(part_ptr + (row * pieces + every) * 2, mask=held, other=0.0)
    mean = tl.sum(weighed, axis=0) / L
    squares = tl.zeros((PIECES,), ACC)
    for start in range(0, pieces, PIECES):
        every = start + tl.arange(0, PIECES).to(tl.int64)
        held = every < pieces
        count = tl.where(held, tl.minimum(L - every * PIECE, PIECE), 0).to(ACC)
        at = part_ptr + (row * pieces + every) * 2
        apart = tl.where(held, tl.load(at, mask=held, other=0.0) - mean, 0.0)
        squares += tl.load(at + 1, mask=held, other=0.0) + count * apart * apart
    tl.store(stat_ptr + row * 2, mean)
    tl.store(stat_ptr + row * 2 + 1, tl.rsqrt(tl.sum(squares, axis=0) / L + tl.cast(eps, ACC)))


@triton.jit
def _scaled(x_ptr, w_ptr, b_ptr, y_ptr, stat_ptr, G, K, S, L, pieces, sxn, sxc, sxs, sw, sb, PIECE: tl.constexpr,
            WEIGHT: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    """Norms of one piece of one group."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    i = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = i < L
    c = row % G * K + i // S
    mean = tl.load(stat_ptr + row * 2)
    x = tl.load(x_ptr + row // G * sxn + c * sxc + i % S * sxs, mask=inside, other=0.0).to(mean.dtype)
    unit = (x - mean) * tl.load(stat_ptr + row * 2 + 1)
    y = _placed(unit, w_ptr, b_ptr, c, inside, sw, sb, WEIGHT, BIAS)
    tl.store(y_ptr + row * L + i, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _tile(x_ptr, dy_ptr, stat_ptr, lines, C, K, S, stretches, sxn, sxc, sxs, sdn, sdc, sds, ROWS: tl.constexpr,
          BLOCK: tl.constexpr):  # fmt: skip
    """A stretch of ``ROWS`` channels: which they are, what is inside, normalised input, incoming gradient, scale."""
    program = tl.program_id(0).to(tl.int64)
    line = program // stretches * ROWS + tl.arange(0, ROWS)[:, None]
    s = program % stretches * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = (line < lines) & (s < S)
    n, c = line // C, line % C
    at = stat_ptr + (n * (C // K) + c // K) * 2
    mean = tl.load(at, mask=line < lines, other=0.0)
    scale = tl.load(at + 1, mask=line < lines, other=0.0)
    x = tl.load(x_ptr + n * sxn + c * sxc + s * sxs, mask=inside, other=0.0).to(mean.dtype)
    dy = tl.load(dy_ptr + n * sdn + c * sdc + s * sds, mask=inside, other=0.0).to(mean.dtype)
    return line, s, inside, tl.where(inside, (x - mean) * scale, 0.0), dy, scale


@triton.jit
def _sums(x_ptr, dy_ptr, stat_ptr, part_ptr, lines, C, K, S, stretches, apart, sxn, sxc, sxs, sdn, sdc, sds,
          ROWS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    """Over a stretch of each of ``ROWS`` channels: sums of the gradient times the normalised input, and of the gradient."""
    line, _place, _inside, unit, dy, _scale = _tile(
        x_ptr, dy_ptr, stat_ptr, lines, C, K, S, stretches, sxn, sxc, sxs, sdn, sdc, sds, ROWS, BLOCK
    )
    share = line // C * stretches + tl.program_id(0).to(tl.int64) % stretches
    at = part_ptr + share * C + line % C
    tl.store(at, tl.sum(dy * unit, axis=1)[:, None], mask=line < lines)
    tl.store(at + apart, tl.sum(dy, axis=1)[:, None], mask=line < lines)


@triton.jit
def _levels(part_ptr, w_ptr, level_ptr, G, K, L, stretches, apart, sw, BLOCK: tl.constexpr, WEIGHT: tl.constexpr):
    """Two means over one group: of the weighted gradient, and of it times the normalised input."""
    ACC: tl.constexpr = part_ptr.dtype.element_ty
    row = tl.program_id(0).to(tl.int64)
    along = tl.zeros((BLOCK,), ACC)
    level = tl.zeros((BLOCK,), ACC)
    for start in range(0, K * stretches, BLOCK):
        i = start + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < K * stretches
        c = row % G * K + i % K
        at = part_ptr + (row // G * stretches + i // K) * (G * K) + c
        of_unit = tl.load(at, mask=inside, other=0.0)
        plain = tl.load(at + apart, mask=inside, other=0.0)
        if WEIGHT:
            w = tl.load(w_ptr + c * sw, mask=inside, other=0.0).to(ACC)
            of_unit *= w
            plain *= w
        along += of_unit
        level += plain
    tl.store(level_ptr + row * 2, tl.sum(level, axis=0) / L)
    tl.store(level_ptr + row * 2 + 1, tl.sum(along, axis=0) / L)


@triton.jit
def _slopes(x_ptr, w_ptr, dy_ptr, dx_ptr, stat_ptr, level_ptr, lines, C, K, S, stretches, sxn, sxc, sxs, sdn, sdc, sds, sw,
            ROWS: tl.constexpr, BLOCK: tl.constexpr, WEIGHT: tl.constexpr):  # fmt: skip
    """Gradient of the input over a stretch of each of ``ROWS`` channels."""
    line, s, inside, unit, dy, scale = _tile(
        x_ptr, dy_ptr, stat_ptr, lines, C, K, S, stretches, sxn, sxc, sxs, sdn, sdc, sds, ROWS, BLOCK
    )
    if WEIGHT:
        dy *= tl.load(w_ptr + line % C * sw, mask=line < lines, other=0.0).to(dy.dtype)
    at = level_ptr + (line // C * (C // K) + line % C // K) * 2
    level = tl.load(at, mask=line < lines, other=0.0)
    along = tl.load(at + 1, mask=line < lines, other=0.0)
    dx = (dy - level - unit * along) * scale
    tl.store(dx_ptr + line * S + s, dx.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _fold(part_ptr, out_ptr, C, shares, SHARES: tl.constexpr, COLS: tl.constexpr):
    """The sum of all shares of each channel, in one order."""
    c = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((SHARES, COLS), part_ptr.dtype.element_ty)
    for start in range(0, shares, SHARES):
        share = start + tl.arange(0, SHARES)[:, None].to(tl.int64)
        total += tl.load(part_ptr + share * C + c, mask=(share < shares) & (c < C), other=0.0)
    tl.store(out_ptr + c, tl.sum(total, axis=0)[None, :].to(out_ptr.dtype.element_ty), mask=c < C)


def tiling(L: int) -> dict[str, int]:
    """Groups and elements of a tile, and warps, by the size of a group alone."""
    block = triton.next_power_of_2(L)
    return {"ROWS": max(1, min(64, 2048 // block)), "BLOCK": block, "num_warps": min(32, max(4, block // 512))}


def tiling_backward(S: int) -> dict[str, int]:
    """Channels and places of a tile, and warps, by the places of a channel alone."""
    block = min(triton.next_power_of_2(max(S, 1)), STRETCH)
    rows = max(1, min(256, 2048 // block))
    return {"ROWS": rows, "BLOCK": block, "num_warps": max(4, min(16, rows * block // 512))}


def _given(x, tensor):
    return (x, 0) if tensor is None else (tensor, tensor.stride(0))


def forward(x, groups, weight, bias, eps):
    """``y``, and mean and scale of each group (N * groups, 2). ``x``: (N, C, S) of any strides."""
    N, C, S = x.shape
    K, rows = C // groups, N * groups
    L = K * S
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.empty((N, C, S), dtype=x.dtype, device=x.device)
    stats = torch.empty((rows, 2), dtype=wide, device=x.device)
    (w, sw), (b, sb) = _given(x, weight), _given(x, bias)
    flags = {"WEIGHT": weight is not None, "BIAS": bias is not None}
    if rows and L and L <= WHOLE:
        tile = tiling(L)
        _rows[(triton.cdiv(rows, tile["ROWS"]),)](
            x, w, b, y, stats, rows, groups, K, S, L, eps, *x.stride(), sw, sb, **tile, **flags,
        )  # fmt: skip
    elif rows and L:
        pieces = triton.cdiv(L, PIECE)
        parts = torch.empty((rows * pieces, 2), dtype=wide, device=x.device)
        _moments[(rows * pieces,)](
            x, parts, groups, K, S, L, pieces, *x.stride(), PIECE=PIECE, num_warps=8,
        )  # fmt: skip
        _joined[(rows,)](
            parts, stats, L, pieces, eps, PIECE=PIECE, PIECES=min(triton.next_power_of_2(pieces), 1024), num_warps=4,
        )  # fmt: skip
        _scaled[(rows * pieces,)](
            x, w, b, y, stats, groups, K, S, L, pieces, *x.stride(), sw, sb, PIECE=PIECE, **flags, num_warps=8,
        )  # fmt: skip
    return y, stats


def backward(dy, x, stats, groups, weight, bias, need_x=True, need_weight=True, need_bias=True):
    """Gradients of input, weight and bias; None for what is not needed."""
    N, C, S = x.shape
    need_weight, need_bias = need_weight and weight is not None, need_bias and bias is not None
    K, lines, tile = C // groups, N * C, tiling_backward(S)
    stretches = triton.cdiv(S, tile["BLOCK"])
    shares = N * stretches
    programs = triton.cdiv(lines, tile["ROWS"]) * stretches
    w, sw = _given(x, weight)
    parts = torch.empty((2, shares, C), dtype=stats.dtype, device=x.device)
    dx = torch.empty((N, C, S), dtype=x.dtype, device=x.device) if need_x else None
    strides = (*x.stride(), *dy.stride())
    if programs:
        _sums[(programs,)](x, dy, stats, parts, lines, C, K, S, stretches, shares * C, *strides, **tile)
    if programs and need_x:
        levels = torch.empty((N * groups, 2), dtype=stats.dtype, device=x.device)
        _levels[(N * groups,)](
            parts, w, levels, groups, K, K * S, stretches, shares * C, sw,
            BLOCK=min(triton.next_power_of_2(K * stretches), 1024), WEIGHT=weight is not None, num_warps=4,
        )  # fmt: skip
        _slopes[(programs,)](
            x, w, dy, dx, stats, levels, lines, C, K, S, stretches, *strides, sw, **tile, WEIGHT=weight is not None,
        )  # fmt: skip
    return dx, _folded(parts[0, :N], weight, need_weight), _folded(parts[1, :N], bias, need_bias)


def _folded(parts, like, need):
    if not need:
        return None
    shares, C = parts.shape
    out = torch.empty(C, dtype=like.dtype, device=like.device)
    if C:
        _fold[(triton.cdiv(C, 32),)](parts, out, C, shares, SHARES=64, COLS=32)
    return out


class _GroupNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, groups, weight, bias, eps):
        y, stats = forward(x, groups, weight, bias, eps)
        ctx.save_for_backward(x, stats, weight, bias)
        ctx.groups = groups
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, stats, weight, bias = ctx.saved_tensors
        needs = [ctx.needs_input_grad[i] for i in (0, 2, 3)]
        dx, dw, db = backward(dy, x, stats, ctx.groups, weight, bias, *needs)
        return dx, None, dw, db, None


def kernel(x, groups, weight, bias, eps):
    return _GroupNorm.apply(x, groups, weight, bias, eps)


def plain(x, groups, eps):
    return _GroupNorm.apply(x, groups, None, None, eps)


def gradients(dy, x, stats, groups, weight):
    """Backward by itself; ``weight`` stands for the bias too, of which its gradient takes shape and dtype alone."""
    return backward(dy, x, stats, groups, weight, weight)
