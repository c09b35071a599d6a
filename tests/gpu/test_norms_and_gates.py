"""Norms and gated activations on a device: their error against float64 beside eager PyTorch's, forward and backward."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tilewright import ops

DEVICE = os.environ.get("TILEWRIGHT_TEST_DEVICE", "cuda")
Function = Callable[..., torch.Tensor]
PAIRS: dict[str, tuple[Function, Function, str]] = {
    "rms_norm": (ops.rms_norm, lambda x, w: F.rms_norm(x, w.shape, w, 1e-6), "MN N"),
    "residual": (
        lambda x, r, w: ops.rms_norm_residual(x, r, w)[0],
        lambda x, r, w: F.rms_norm(x + r, w.shape, w, 1e-6),
        "MN MN N",
    ),
    "layer_norm": (ops.layer_norm, lambda x, w, b: F.layer_norm(x, w.shape, w, b), "MN N N"),
    "swiglu": (ops.swiglu, lambda g, u: F.silu(g) * u, "MN MN"),
    "geglu": (ops.geglu, lambda g, u: F.gelu(g) * u, "MN MN"),
    "geglu_tanh": (
        lambda g, u: ops.geglu(g, u, approximate="tanh"),
        lambda g, u: F.gelu(g, approximate="tanh") * u,
        "MN MN",
    ),
    "relu_squared": (ops.relu_squared, lambda x: F.relu(x).square(), "MN"),
}
SIZES = [(1, 1), (3, 100), (257, 129), (300, 8192), (64, 11008), (5, 16384), (3, 20000), (2, 70001)]


def results(function: Function, given: list[torch.Tensor], dy: torch.Tensor) -> list[torch.Tensor]:
    own = [t.detach().requires_grad_() for t in given]
    y = function(*own)
    return [y.detach(), *torch.autograd.grad(y, own, dy.to(y.dtype))]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", SIZES)
def test_no_further_from_float64_than_eager(name: str, dtype: torch.dtype, size: tuple[int, int]) -> None:
    ours, eager, shapes = PAIRS[name]
    torch.manual_seed(5)
    given = [torch.randn(size if s == "MN" else size[-1:], device=DEVICE).to(dtype) for s in shapes.split()]
    dy = torch.randn(size, device=DEVICE)
    truth = results(eager, [t.double() for t in given], dy.to(dtype).double())
    found = [results(f, given, dy) for f in (ours, eager)]
    for i, (t, got, base) in enumerate(zip(truth, *found, strict=True)):
        off, allowed = ((v.double() - t).abs().max().item() for v in (got, base))
        # Two roundings of the largest value: where eager is exact by luck, that is no one's error.
        spare = 2 * torch.finfo(dtype).eps * t.abs().max().item()
        assert off <= 1.5 * allowed + spare, f"value {i}: off by {off:.3g}, eager by {allowed:.3g}"


@pytest.mark.parametrize("name", PAIRS)
def test_same_bits_each_time(name: str) -> None:
    ours, _, shapes = PAIRS[name]
    given = [torch.randn((513, 1000) if s == "MN" else (1000,), device=DEVICE).bfloat16() for s in shapes.split()]
    dy = torch.randn(513, 1000, device=DEVICE)
    first = results(ours, given, dy)
    for _ in range(20):
        for a, b in zip(first, results(ours, given, dy), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("function", [ops.swiglu_packed, ops.geglu_packed])
def test_packed_is_unpacked(function: Function) -> None:
    x, dy = torch.randn(33, 200, device=DEVICE), torch.randn(33, 100, device=DEVICE)
    single = ops.swiglu if function is ops.swiglu_packed else ops.geglu
    y, dx = results(function, [x], dy)
    z, dgate, dup = results(single, list(x.chunk(2, -1)), dy)
    assert torch.equal(y, z)
    assert torch.equal(dx, torch.cat([dgate, dup], -1))
