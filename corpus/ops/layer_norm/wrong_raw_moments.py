"""The variance of a piece is the mean square less the square of the mean: nothing is left of it at a large mean."""

import torch
import triton
import triton.language as tl


@triton.jit
def _moments(x_ptr, part_ptr, N, pieces, sxm, sxn, PIECE: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    first = program % pieces * PIECE
    cols = first + tl.arange(0, PIECE)
    inside = cols < N
    x = tl.load(x_ptr + program // pieces * sxm + cols * sxn, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / tl.minimum(N - first, PIECE)
    tl.store(part_ptr + program * 2, mean)
    tl.store(part_ptr + program * 2 + 1, tl.sum(x * x, axis=0) - mean * mean * tl.minimum(N - first, PIECE))


@triton.jit
def _scaled(x_ptr, w_ptr, b_ptr, y_ptr, stat_ptr, part_ptr, N, pieces, eps, sxm, sxn, sw, sb, PIECE: tl.constexpr,
            PIECES: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    row, piece = program // pieces, program % pieces
    every = tl.arange(0, PIECES)
    held = every < pieces
    count = tl.where(held, tl.minimum(N - every * PIECE, PIECE), 0).to(tl.float32)
    means = tl.load(part_ptr + (row * pieces + every) * 2, mask=held, other=0.0)
    squares = tl.load(part_ptr + (row * pieces + every) * 2 + 1, mask=held, other=0.0)
    mean = tl.sum(count * means, axis=0) / N
    apart = tl.where(held, means - mean, 0.0)
    scale = tl.rsqrt(tl.sum(squares + count * apart * apart, axis=0) / N + eps)
    tl.store(stat_ptr + row * 2, mean, mask=piece == 0)
    tl.store(stat_ptr + row * 2 + 1, scale, mask=piece == 0)
    cols = piece * PIECE + tl.arange(0, PIECE)
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols * sw, mask=cols < N, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols * sb, mask=cols < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + row * N + cols, (x - mean) * scale * w + b, mask=cols < N)


@triton.jit
def _backward(x_ptr, w_ptr, stat_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr, M, N, stripe, sxm, sxn, sw, sdm, sdn,
              BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    inside = cols < N
    w = tl.load(w_ptr + cols * sw, mask=inside, other=0.0).to(tl.float32)
    of_weight = tl.zeros((BLOCK,), tl.float32)
    of_bias = tl.zeros((BLOCK,), tl.float32)
    for row in range(program * stripe, tl.minimum(program * stripe + stripe, M)):
        mean = tl.load(stat_ptr + row * 2)
        scale = tl.load(stat_ptr + row * 2 + 1)
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=inside, other=0.0).to(tl.float32)
        unit = (x - mean) * scale
        dy = tl.load(dy_ptr + row * sdm + cols * sdn, mask=inside, other=0.0).to(tl.float32)
        of_weight += dy * unit
        of_bias += dy
        level = tl.sum(dy * w, axis=0) / N
        inner = tl.sum(dy * w * unit, axis=0) / N
        tl.store(dx_ptr + row * N + cols, (dy * w - level - unit * inner) * scale, mask=inside)
    tl.store(dw_ptr + program * N + cols, of_weight, mask=inside)
    tl.store(db_ptr + program * N + cols, of_bias, mask=inside)


@triton.jit
def _fold(part_ptr, out_ptr, N, shares, SHARES: tl.constexpr, COLS: tl.constexpr):
    cols = tl.program_id(0).to(tl.int64) * COLS + tl.arange(0, COLS)[None, :]
    total = tl.zeros((SHARES, COLS), tl.float32)
    for start in range(0, shares, SHARES):
        share = start + tl.arange(0, SHARES)[:, None].to(tl.int64)
        total += tl.load(part_ptr + share * N + cols, mask=(share < shares) & (cols < N), other=0.0)
    tl.store(out_ptr + cols, tl.sum(total, axis=0)[None, :], mask=cols < N)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        M, N = x.shape
        y = torch.empty((M, N), dtype=x.dtype, device=x.device)
        stats = torch.empty((M, 2), dtype=torch.float32, device=x.device)
        pieces = triton.cdiv(N, 1024)
        parts = torch.empty((M * pieces, 2), dtype=torch.float32, device=x.device)
        if M:
            _moments[(M * pieces,)](x, parts, N, pieces, *x.stride(), PIECE=1024)
            _scaled[(M * pieces,)](x, weight, bias, y, stats, parts, N, pieces, eps, *x.stride(), weight.stride(0),
                                   bias.stride(0), PIECE=1024, PIECES=triton.next_power_of_2(pieces))
        ctx.save_for_backward(x, weight, stats)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, stats = ctx.saved_tensors
        M, N = x.shape
        dx = torch.empty((M, N), dtype=x.dtype, device=x.device)
        dw = torch.empty(N, dtype=weight.dtype, device=x.device)
        db = torch.empty(N, dtype=weight.dtype, device=x.device)
        stripe = max(triton.cdiv(M, 16), 1)
        shares = triton.cdiv(M, stripe)
        of_weight = torch.empty((shares, N), dtype=torch.float32, device=x.device)
        of_bias = torch.empty((shares, N), dtype=torch.float32, device=x.device)
        if shares:
            _backward[(shares,)](x, weight, stats, dy, dx, of_weight, of_bias, M, N, stripe, *x.stride(),
                                 weight.stride(0), *dy.stride(), BLOCK=triton.next_power_of_2(N))
        _fold[(triton.cdiv(N, 32),)](of_weight, dw, N, shares, SHARES=16, COLS=32)
        _fold[(triton.cdiv(N, 32),)](of_bias, db, N, shares, SHARES=16, COLS=32)
        return dx, dw, db, None


def kernel(x, weight, bias, eps):
    return _Norm.apply(x, weight, bias, eps)
