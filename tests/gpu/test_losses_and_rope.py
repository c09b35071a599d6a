"""Cross entropy, divergences and rope on a device: the kernel route against the reference, forward and backward."""

from __future__ import annotations

import pytest
import torch

import tilewright.ops  # noqa: F401  registers the operators
from tilewright.ops._builder import REGISTRY, find
from tilewright.ops._hazards import Case
from tilewright.ops._hazards.case import close
from tilewright.prove.examine import check

NAMES = ("cross_entropy", "linear_cross_entropy", "linear_kl_divergence", "linear_js_divergence", "kl_divergence",
         "js_divergence", "rope", "rope_")  # fmt: skip
CALLS = [(name, call.name) for name in NAMES for call in find(name).op.calls]
PAIRS = [(name, pair) for name in NAMES for pair in find(name).op.pairs]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_kernel_route_is_the_reference(name: str, call: str, dtype: torch.dtype) -> None:
    built = REGISTRY[name]
    case = Case(built, next(c for c in built.op.calls if c.name == call), dtype=dtype, device="cuda")
    names = case.differentiable(case.arguments())
    found = []
    for function in (case.public, case.reference):
        own = {n: v.clone().requires_grad_(n in names) if isinstance(v, torch.Tensor) else v
               for n, v in case.arguments().items()}  # fmt: skip
        results = function(**own)
        grads = torch.autograd.grad(results, [own[n] for n in names], case.cotangents(results)) if names else ()
        found.append([*results, *grads])
    for i, (got, wanted) in enumerate(zip(*found, strict=True)):
        close(got, wanted, f"{name} {call}: value {i}", epsilons=256 if dtype == torch.float32 else 16)


@pytest.mark.parametrize(("name", "pair"), PAIRS, ids=[f"{n}-{p.task}" for n, p in PAIRS])
def test_kernels_are_accepted(name: str, pair: object) -> None:
    folder = find(name).op.folder
    verdict, _ = check(
        str(folder / pair.task), f"{folder / pair.kernel}::{pair.entry}", device="cuda", gate_seconds=6.0
    )
    assert verdict.verdict == "accept", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])
