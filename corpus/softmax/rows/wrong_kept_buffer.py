"""The output buffer is kept per shape and handed out again: the next call of the same shape overwrites the result of the last."""
import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x_ptr, y_ptr, N, sxm, sxn, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    keep = cols < N
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=keep, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * N + cols, e / tl.sum(e, axis=0), mask=keep)


_BUFFERS = {}


def kernel(x):
    M, N = x.shape
    key = (M, N, x.dtype)
    if key not in _BUFFERS:
        _BUFFERS[key] = torch.empty((M, N), dtype=x.dtype, device=x.device)
    y = _BUFFERS[key]
    if y.numel():
        _softmax[(M,)](x, y, N, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(N))
    return y
