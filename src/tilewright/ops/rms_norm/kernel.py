"""RMS norm: a row is read once, held in registers and written once; so is its gradient.

Rows up to ``WHOLE`` elements are handled whole, several short ones at a time. Longer ones are cut into pieces: one launch
adds up the squares of each piece, the next adds the pieces in order and scales. The tiling depends on the row length
alone, so a row's bits don't depend on its batch.

Backward runs a fixed number of programs, each over its own stripe of rows. A program keeps its share of the weight's
gradient in registers; ``_fold`` adds the shares up in one order: no atomics.
"""

import torch
import triton
import triton.language as tl

WHOLE = 32768
WHOLE_BACKWARD = 16384
PIECE = 16384
WARPS_AT_WORK = 132 * 16


@triton.jit
def _gain(w_ptr, cols, N, offset, sw, ACC: tl.constexpr):
    return tl.load(w_ptr + cols * sw, mask=cols < N, other=0.0).to(ACC) + tl.cast(offset, ACC)


@triton.jit
def _rows(x_ptr, add_ptr, w_ptr, y_ptr, h_ptr, scale_ptr, M, N, eps: tl.float64, offset: tl.float64, sxm, sxn, sam, san,
          sw, ROWS: tl.constexpr, BLOCK: tl.constexpr, ADD: tl.constexpr, WEIGHT: tl.constexpr):  # fmt: skip
    """Norms of ``ROWS`` whole rows; with ``ADD`` of the sum with another tensor, which is stored too."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (row < M) & (cols < N)
    h = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    if ADD:
        h += tl.load(add_ptr + row * sam + cols * san, mask=inside, other=0.0).to(ACC)
        rounded = h.to(h_ptr.dtype.element_ty)
        tl.store(h_ptr + row * N + cols, rounded, mask=inside)
        h = rounded.to(ACC)
    scale = tl.rsqrt(tl.sum(h * h, axis=1) / N + tl.cast(eps, ACC))[:, None]
    tl.store(scale_ptr + row, scale, mask=row < M)
    y = h * scale
    if WEIGHT:
        y *= _gain(w_ptr, cols, N, offset, sw, ACC)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _squares(x_ptr, add_ptr, h_ptr, part_ptr, N, pieces, sxm, sxn, sam, san, PIECE: tl.constexpr, ADD: tl.constexpr):
    """Sum of squares of one piece of one row."""
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    cols = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    h = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(ACC)
    if ADD:
        h += tl.load(add_ptr + row * sam + cols * san, mask=inside, other=0.0).to(ACC)
        rounded = h.to(h_ptr.dtype.element_ty)
        tl.store(h_ptr + row * N + cols, rounded, mask=inside)
        h = rounded.to(ACC)
    tl.store(part_ptr + program, tl.sum(h * h, axis=0))


@triton.jit
def _scaled(h_ptr, w_ptr, y_ptr, scale_ptr, part_ptr, N, pieces, eps: tl.float64, offset: tl.float64, shm, shn, sw,
            PIECE: tl.constexpr, PIECES: tl.constexpr, WEIGHT: tl.constexpr):  # fmt: skip
    """Norms of one piece of one row, from the sums of all its pieces."""
    ACC: tl.constexpr = tl.float64 if h_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row, piece = program // pieces, program % pieces
    every = tl.arange(0, PIECES)
    total = tl.sum(tl.load(part_ptr + row * pieces + every, mask=every < pieces, other=0.0), axis=0)
    scale = tl.rsqrt(total / N + tl.cast(eps, ACC))
    tl.store(scale_ptr + row, scale, mask=piece == 0)
    cols = piece * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    y = tl.load(h_ptr + row * shm + cols * shn, mask=inside, other=0.0).to(ACC) * scale
    if WEIGHT:
        y *= _gain(w_ptr, cols, N, offset, sw, ACC)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _rows_backward(h_ptr, w_ptr, scale_ptr, dy_ptr, dh_ptr, dx_ptr, part_ptr, M, N, stripe, offset: tl.float64, shm, shn,
                   sw, sdm, sdn, sgm, sgn, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr,
                   ADD: tl.constexpr, WEIGHT: tl.constexpr, DX: tl.constexpr, DW: tl.constexpr):  # fmt: skip
    """Gradients of a stripe of whole rows; the stripe's share of the weight's gradient stays in registers."""
    ACC: tl.constexpr = tl.float64 if h_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    first = program * stripe
    cols = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    share = tl.zeros((ROWS, BLOCK), ACC)
    for start in tl.range(first, tl.minimum(first + stripe, M), ROWS, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)[:, None]
        inside = (row < M) & (cols < N)
        h = tl.load(h_ptr + row * shm + cols * shn, mask=inside, other=0.0).to(ACC)
        dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
        scale = tl.load(scale_ptr + row, mask=row < M, other=0.0)
        unit = h * scale
        if DW:
            share += dy * unit
        if DX:
            if WEIGHT:
                dy *= _gain(w_ptr, cols, N, offset, sw, ACC)
            along = tl.sum(dy * unit, axis=1)[:, None] / N
            dx = (dy - unit * along) * scale
            if ADD:
                dx += tl.load(dh_ptr + row * sgm + cols * sgn, mask=inside, other=0.0).to(ACC)
            tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    if DW:
        tl.store(part_ptr + program * N + cols, tl.sum(share, axis=0)[None, :], mask=cols < N)


@triton.jit
def _along(h_ptr, w_ptr, scale_ptr, dy_ptr, part_ptr, N, pieces, offset: tl.float64, shm, shn, sw, sdm, sdn,
           PIECE: tl.constexpr, WEIGHT: tl.constexpr):  # fmt: skip
    """How much of the gradient points along the row: the sum over one piece of one row."""
    ACC: tl.constexpr = tl.float64 if h_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    cols = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    h = tl.load(h_ptr + row * shm + cols * shn, mask=inside, other=0.0).to(ACC)
    dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
    if WEIGHT:
        dy *= _gain(w_ptr, cols, N, offset, sw, ACC)
    tl.store(part_ptr + program, tl.sum(dy * (h * tl.load(scale_ptr + row)), axis=0))


@triton.jit
def _pieces_backward(h_ptr, w_ptr, scale_ptr, dy_ptr, dh_ptr, dx_ptr, along_ptr, part_ptr, M, N, pieces, stripe,
                     offset: tl.float64, shm, shn, sw, sdm, sdn, sgm, sgn, PIECE: tl.constexpr, PIECES: tl.constexpr,
                     ADD: tl.constexpr, WEIGHT: tl.constexpr, DX: tl.constexpr, DW: tl.constexpr):  # fmt: skip
    """Gradients of one piece of each row of a stripe."""
    ACC: tl.constexpr = tl.float64 if h_ptr.dtype.element_ty == tl.float64 else tl.float32
    program = tl.program_id(0).to(tl.int64)
    first = program // pieces * stripe
    cols = program % pieces * PIECE + tl.arange(0, PIECE)
    inside = cols < N
    every = tl.arange(0, PIECES)
    share = tl.zeros((PIECE,), ACC)
    for row in range(first, tl.minimum(first + stripe, M)):
        scale = tl.load(scale_ptr + row)
        unit = tl.load(h_ptr + row * shm + cols * shn, mask=inside, other=0.0).to(ACC) * scale
        dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(ACC)
        if DW:
            share += dy * unit
        if DX:
            if WEIGHT:
                dy *= _gain(w_ptr, cols, N, offset, sw, ACC)
            along = tl.sum(tl.load(along_ptr + row * pieces + every, mask=every < pieces, other=0.0), axis=0) / N
            dx = (dy - unit * along) * scale
            if ADD:
                dx += tl.load(dh_ptr + row * sgm + cols * sgn, mask=inside, other=0.0).to(ACC)
            tl.store(dx_ptr + row * N + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    if DW:
        tl.store(part_ptr + program // pieces * N + cols, share, mask=inside)


@triton.jit
def _fold(part_ptr, out_ptr, N, shares, SHARES: tl.constexpr, COLS: tl.constexpr):
    """The sum of all stripes' shares, in one order."""
    cols = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((SHARES, COLS), part_ptr.dtype.element_ty)
    for start in range(0, shares, SHARES):
        share = start + tl.arange(0, SHARES)[:, None].to(tl.int64)
        total += tl.load(part_ptr + share * N + cols, mask=(share < shares) & (cols < N), other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0)[None, :].to(out_ptr.dtype.element_ty), mask=cols < N)


def tiling(N: int) -> dict[str, int]:
    """Rows and columns of a tile, and warps, by the row length alone."""
    block = triton.next_power_of_2(N)
    return {"ROWS": max(1, min(64, 2048 // block)), "BLOCK": block, "num_warps": min(32, max(4, block // 1024))}


def tiling_backward(N: int, itemsize: int) -> dict[str, int]:
    """The same for backward, where three times as much lies in registers; loads run ahead as far as shared memory goes."""
    block = triton.next_power_of_2(N)
    rows = max(1, min(64, 2048 // block))
    stages = max(1, min(3, (192 << 10) // (3 * rows * block * itemsize)))
    return {"ROWS": rows, "BLOCK": block, "STAGES": stages, "num_warps": min(32, max(4, block // 512))}


def forward(x, residual, weight, eps, offset):
    """``y``, the sum that was normalised (``x`` itself without a residual), and the scale of each row."""
    M, N = x.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    scale = torch.empty(M, dtype=wide, device=x.device)
    add, more = residual is not None, x if residual is None else residual
    h = torch.empty((M, N), dtype=x.dtype, device=x.device) if add else x
    w, sw = (x, 0) if weight is None else (weight, weight.stride(0))
    flags = {"ADD": add, "WEIGHT": weight is not None}
    if M and N and N <= WHOLE:
        tile = tiling(N)
        _rows[(triton.cdiv(M, tile["ROWS"]),)](
            x, more, w, y, h, scale, M, N, eps, offset, *x.stride(), *more.stride(), sw, **tile, **flags,
        )  # fmt: skip
    elif M and N:
        pieces = triton.cdiv(N, PIECE)
        parts = torch.empty(M * pieces, dtype=wide, device=x.device)
        _squares[(M * pieces,)](
            x, more, h, parts, N, pieces, *x.stride(), *more.stride(), PIECE=PIECE, ADD=add, num_warps=16,
        )  # fmt: skip
        _scaled[(M * pieces,)](
            h, w, y, scale, parts, N, pieces, eps, offset, *h.stride(), sw, PIECE=PIECE,
            PIECES=triton.next_power_of_2(pieces), WEIGHT=weight is not None, num_warps=16,
        )  # fmt: skip
    return y, h, scale


def backward(dy, dh, h, scale, weight, offset, need_x=True, need_weight=True):
    """Gradients of input (and residual: it is the same one) and weight; None for what is not needed."""
    M, N = h.shape
    need_weight = need_weight and weight is not None
    flags = {"ADD": dh is not None, "WEIGHT": weight is not None, "DX": need_x, "DW": need_weight}
    w, sw = (h, 0) if weight is None else (weight, weight.stride(0))
    more = dy if dh is None else dh
    strides = (*h.stride(), sw, *dy.stride(), *more.stride())
    dx = torch.empty((M, N), dtype=h.dtype, device=h.device) if need_x else h
    tile = tiling_backward(N, h.element_size()) if N <= WHOLE_BACKWARD else {"ROWS": 1, "num_warps": 16}
    stripe = triton.cdiv(triton.cdiv(M, WARPS_AT_WORK // tile["num_warps"]), tile["ROWS"]) * tile["ROWS"]
    shares = triton.cdiv(M, max(stripe, 1))
    parts = torch.empty((shares if need_weight else 0, N), dtype=scale.dtype, device=h.device)
    if M and N and N <= WHOLE_BACKWARD:
        _rows_backward[(shares,)](
            h, w, scale, dy, more, dx, parts, M, N, stripe, offset, *strides, **tile, **flags,
        )  # fmt: skip
    elif M and N:
        pieces = triton.cdiv(N, PIECE)
        along = torch.empty(M * pieces if need_x else 0, dtype=scale.dtype, device=h.device)
        if need_x:
            _along[(M * pieces,)](
                h, w, scale, dy, along, N, pieces, offset, *strides[:5], PIECE=PIECE, WEIGHT=weight is not None,
                num_warps=16,
            )  # fmt: skip
        _pieces_backward[(shares * pieces,)](
            h, w, scale, dy, more, dx, along, parts, M, N, pieces, stripe, offset, *strides, PIECE=PIECE,
            PIECES=triton.next_power_of_2(pieces), **flags, num_warps=16,
        )  # fmt: skip
    dw = torch.empty(N, dtype=weight.dtype, device=h.device) if need_weight else None
    if need_weight and N:
        _fold[(triton.cdiv(N, 32),)](parts, dw, N, shares, SHARES=64, COLS=32)
    return dx if need_x else None, dw


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, weight, eps, offset):
        y, h, scale = forward(x, residual, weight, eps, offset)
        ctx.save_for_backward(h, scale, weight)
        ctx.offset = offset
        ctx.add = residual is not None
        ctx.set_materialize_grads(False)
        return (y, h) if ctx.add else y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy, dh=None):
        h, scale, weight = ctx.saved_tensors
        if dy is None:
            return dh, dh, None, None, None
        of_x, of_residual, of_weight = ctx.needs_input_grad[:3]
        dx, dw = backward(dy, dh, h, scale, weight, ctx.offset, of_x or of_residual, of_weight)
        return dx if of_x else None, dx if of_residual else None, dw, None, None


def kernel(x, weight, eps, offset):
    return _RMSNorm.apply(x, None, weight, eps, offset)


def plain(x, eps):
    return _RMSNorm.apply(x, None, None, eps, 0.0)


def residual(x, residual, weight, eps, offset):
    return _RMSNorm.apply(x, residual, weight, eps, offset)
