"""Backward scales the stored gradient in place and returns it: a second backward through the same graph scales it twice."""
import torch
import triton
import triton.language as tl


@triton.jit
def _forward(x_ptr, label_ptr, loss_ptr, grad_ptr, V, ignore, sxb, sxv, slb, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    keep = cols < V
    label = tl.load(label_ptr + row * slb)
    x = tl.load(x_ptr + row * sxb + cols * sxv, mask=keep, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    e = tl.exp(x - top)
    total = tl.sum(e, axis=0)
    picked = tl.sum(tl.where(cols == label, x, 0.0), axis=0)
    live = label != ignore
    tl.store(loss_ptr + row, tl.where(live, tl.log(total) - (picked - top), 0.0))
    # The true class is formed as minus the sum of the others: softmax - 1 would cancel.
    others = tl.sum(tl.where(cols == label, 0.0, e), axis=0)
    grad = tl.where(cols == label, -others, e) / total
    tl.store(grad_ptr + row * V + cols, tl.where(live, grad, 0.0), mask=keep)


@triton.jit
def _backward(grad_ptr, up_ptr, dx_ptr, V, su, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    up = tl.load(up_ptr + row * su).to(tl.float32)
    grad = tl.load(grad_ptr + row * V + cols, mask=cols < V, other=0.0)
    tl.store(dx_ptr + row * V + cols, grad * up, mask=cols < V)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, labels, ignore_index):
        B, V = logits.shape
        losses = torch.empty((B,), dtype=logits.dtype, device=logits.device)
        grad = torch.empty((B, V), dtype=torch.float32, device=logits.device)
        _forward[(B,)](logits, labels, losses, grad, V, ignore_index, logits.stride(0), logits.stride(1),
                       labels.stride(0), BLOCK=triton.next_power_of_2(V))
        ctx.save_for_backward(grad)
        ctx.dtype = logits.dtype
        return losses

    @staticmethod
    def backward(ctx, upstream):
        (grad,) = ctx.saved_tensors
        B, V = grad.shape
        _backward[(B,)](grad, upstream, grad, V, upstream.stride(0), BLOCK=triton.next_power_of_2(V))
        return grad.to(ctx.dtype), None, None


def kernel(logits, labels, ignore_index):
    return _CrossEntropy.apply(logits, labels, ignore_index)
