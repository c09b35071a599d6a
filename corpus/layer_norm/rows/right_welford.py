"""Mean and second moment merged tile by tile (Chan's form of Welford's method), tail tile with its own count."""
import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, sxm, sxn, sw, sb, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    mean = 0.0
    second = 0.0
    for start in range(0, N, BLOCK):
        cols = start + lanes
        keep = cols < N
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=keep, other=0.0).to(tl.float32)
        count = tl.minimum(BLOCK, N - start) * 1.0
        tile_mean = tl.sum(x, axis=0) / count
        off = tl.where(keep, x - tile_mean, 0.0)
        delta = tile_mean - mean
        both = start + count
        second = second + tl.sum(off * off, axis=0) + delta * delta * (start * count / both)
        mean = mean + delta * (count / both)
    scale = 1.0 / tl.sqrt(second / N + eps)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        keep = cols < N
        x = tl.load(x_ptr + row * sxm + cols * sxn, mask=keep, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + cols * sw, mask=keep, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + cols * sb, mask=keep, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * N + cols, (x - mean) * scale * w + b, mask=keep)


def kernel(x, weight, bias, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M:
        _layer_norm[(M,)](x, weight, bias, y, N, eps, x.stride(0), x.stride(1), weight.stride(0), bias.stride(0),
                          BLOCK=128)
    return y
