"""sparse_retrieval_head on a device: the kernel route against the reference, and the memory of large vocabularies."""

from __future__ import annotations

import pytest
import torch

import tilewright.ops  # noqa: F401  registers the operators
from tilewright import ops
from tilewright.ops._builder import REGISTRY, find
from tilewright.ops._hazards import Case
from tilewright.ops._hazards.case import close
from tilewright.prove.examine import check

NAMES = ("sparse_retrieval_head",)
CALLS = [(name, call.name) for name in NAMES for call in find(name).op.calls]
PAIRS = [(name, pair) for name in NAMES for pair in find(name).op.pairs]


def values(case: Case, function: object) -> list[torch.Tensor]:
    """Results and gradients for random cotangents."""
    names = case.differentiable(case.arguments())
    own = {n: v.clone().requires_grad_(n in names) if isinstance(v, torch.Tensor) else v
           for n, v in case.arguments().items()}  # fmt: skip
    results = function(**own)  # type: ignore[operator]
    return [*results, *torch.autograd.grad(results, [own[n] for n in names], case.cotangents(results))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("name", "call"), CALLS)
def test_kernel_route_is_the_reference(name: str, call: str, dtype: torch.dtype) -> None:
    case = Case(REGISTRY[name], next(c for c in find(name).op.calls if c.name == call), dtype=dtype, device="cuda")
    found = [values(case, function) for function in (case.public, case.reference)]
    for i, (got, wanted) in enumerate(zip(*found, strict=True)):
        close(got, wanted, f"{name} {call}: value {i}", epsilons=256 if got.dtype == torch.float32 else 16)


@pytest.mark.parametrize(("name", "pair"), PAIRS, ids=[f"{n}-{p.task}" for n, p in PAIRS])
def test_kernels_are_accepted(name: str, pair: object) -> None:
    folder = find(name).op.folder
    verdict, _ = check(
        str(folder / pair.task), f"{folder / pair.kernel}::{pair.entry}", device="cuda", gate_seconds=6.0
    )
    assert verdict.verdict == "accept", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])


@pytest.mark.parametrize("words", [30522, 250002])
def test_no_logits_in_memory(words: int) -> None:
    x = torch.randn(4, 256, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(words, 128, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    mask = torch.arange(256, device="cuda") < torch.tensor([[256], [100], [1], [0]], device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    y = ops.sparse_retrieval_head(x, weight, mask=mask)
    assert torch.cuda.max_memory_allocated() - before < 40 * words  # of 512 * 4 * words for the logits in bfloat16
    assert (y[3] == 0).all()
    wanted = find("sparse_retrieval_head").op.reference(x, weight[:500], None, mask)
    torch.testing.assert_close(y[:, :500], wanted, rtol=1e-3, atol=1e-4)
    up = torch.randn_like(y)
    runs = [torch.autograd.grad(ops.sparse_retrieval_head(x, weight, mask=mask), (x, weight), up) for _ in range(3)]
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0], strict=True))
