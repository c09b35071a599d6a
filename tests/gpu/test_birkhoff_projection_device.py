"""birkhoff_projection on a device: both forms against the reference, forward and backward, and in any batch."""

from __future__ import annotations

import pytest
import torch

from tilewright import ops
from tilewright.ops._builder import find
from tilewright.prove.examine import check

PAIRS = [(name, pair) for name in ("sinkhorn", "birkhoff") for pair in find(name).op.pairs]


def results(x: torch.Tensor, dy: torch.Tensor, iterations: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    own = x.detach().requires_grad_()
    y = ops.birkhoff_projection(own, iterations=iterations)
    return y.detach(), torch.autograd.grad(y, own, dy.to(y.dtype))[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("iterations", [1, 20, None])
@pytest.mark.parametrize("n", range(2, 9))
def test_near_float64(n: int, iterations: int | None, dtype: torch.dtype) -> None:
    torch.manual_seed(n)
    x, dy = torch.randn(777, n, n, device="cuda").to(dtype), torch.randn(777, n, n, device="cuda").to(dtype)
    got = results(x, dy, iterations)
    truth = results(x.double(), dy.double(), iterations)
    eps = torch.finfo(dtype).eps if dtype != torch.float32 else 1e-6
    for g, t in zip(got, truth, strict=True):
        assert (g.double() - t).abs().max() <= 8 * eps * max(1.0, float(t.abs().max()))


@pytest.mark.parametrize("iterations", [20, None])
def test_a_matrix_is_the_same_in_any_batch(iterations: int | None) -> None:
    torch.manual_seed(3)
    x, dy = (torch.randn(1000, 4, 4, device="cuda") * s for s in (5.0, 1.0))
    x[500:] *= 50
    whole = results(x, dy, iterations)
    for part in (slice(0, 1), slice(499, 501), slice(100, 900)):
        for a, b in zip(results(x[part], dy[part], iterations), whole, strict=True):
            assert torch.equal(a, b[part])


def test_scratch_is_bounded() -> None:
    x = torch.randn(1 << 20, 4, 4, device="cuda", requires_grad=True)
    y = ops.birkhoff_projection(x)
    dy = torch.randn_like(y)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    torch.autograd.grad(y, x, dy)
    assert torch.cuda.max_memory_allocated() - before < x.numel() * 4 + (40 << 20)


@pytest.mark.parametrize(("name", "pair"), PAIRS, ids=lambda v: v if isinstance(v, str) else v.entry)
def test_kernels_are_accepted(name: str, pair: object) -> None:
    folder = find(name).op.folder
    verdict, _ = check(
        str(folder / pair.task), f"{folder / pair.kernel}::{pair.entry}", device="cuda", gate_seconds=6.0
    )
    assert verdict.verdict == "accept", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])
