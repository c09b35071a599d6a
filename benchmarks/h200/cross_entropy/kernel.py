"""One program a row: maximum and sum of exponentials in one pass over the logits (M. Milakov, N. Gimelshein, Online
normalizer calculation for softmax, 2018), each lane for itself; lanes are joined at the end of the row."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_loss(x_ptr, target_ptr, loss_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -3.4028235e38, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, V, BLOCK):
        cols = start + lanes
        x = tl.load(x_ptr + row * V + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, x)
        total = total * tl.exp(top - new) + tl.exp(x - new)
        top = new
    highest = tl.max(top, axis=0)
    total = tl.sum(total * tl.exp(top - highest), axis=0)
    target = tl.load(target_ptr + row)
    picked = tl.load(x_ptr + row * V + target).to(tl.float32)
    tl.store(loss_ptr + row, tl.log(total) + highest - picked)


def kernel(logits, target):
    M, V = logits.shape
    losses = torch.empty(M, device=logits.device, dtype=torch.float32)
    row_loss[(M,)](logits, target, losses, V, BLOCK=4096, num_warps=8)
    return losses.mean().to(logits.dtype)
