"""Weight and bias are read at stride 1: a slice of a larger parameter tensor is misread."""
import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, sxm, sxn, sw, sb, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    keep = cols < N
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=keep, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(keep, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / N
    w = tl.load(w_ptr + cols, mask=keep, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=keep, other=0.0).to(tl.float32)
    y = centred * (1.0 / tl.sqrt(variance + eps)) * w + b
    tl.store(y_ptr + row * N + cols, y, mask=keep)


def kernel(x, weight, bias, eps):
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M:
        _layer_norm[(M,)](x, weight, bias, y, N, eps, x.stride(0), x.stride(1), weight.stride(0), bias.stride(0),
                          BLOCK=triton.next_power_of_2(N))
    return y
