"""patch on a device: kernels in a plain decoder, and what the fused loss holds at its peak."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch

from tilewright import ops

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "h200" / "patch"))
import plain


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_plain_decoder_trains_as_before(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    model = plain.Decoder(plain.Sizes(2, 256, 512, 8, 2, 1031, 2, 300)).to("cuda", dtype).train()
    twin = copy.deepcopy(model)
    assert len(ops.patch(twin).replaced) == 10
    tokens = torch.randint(1031, (2, 300), device="cuda")
    a, b = (m(tokens, tokens)[0] for m in (model, twin))
    rounding = torch.finfo(dtype).eps
    torch.testing.assert_close(b, a, rtol=8 * rounding, atol=0.0)
    grads = [torch.autograd.grad(loss, list(m.parameters())) for loss, m in ((a, model), (b, twin))]
    for old, new in zip(*grads, strict=True):
        assert (new - old).float().norm() <= 16 * rounding * old.float().norm()


def test_the_loss_of_a_head_holds_256_rows_of_logits() -> None:
    M, K, V = 4096, 512, 32064
    x, w = (torch.randn(s, device="cuda", dtype=torch.bfloat16, requires_grad=True) for s in ((M, K), (V, K)))
    target = torch.randint(V, (M,), device="cuda")
    ops.linear_cross_entropy(x, w, target).backward()  # compiles, and makes the workspace of products
    x.grad = w.grad = None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    ops.linear_cross_entropy(x, w, target).backward()
    extra = torch.cuda.max_memory_allocated() - before - x.grad.nbytes - w.grad.nbytes
    assert extra <= 1.1 * 256 * V * 2 + x.nbytes, extra / 2**20
