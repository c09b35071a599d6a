"""max_sim on a device: the kernel route against the reference, large sizes, memory, the retrieval example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tilewright.ops  # noqa: F401  registers the operators
from tilewright import ops
from tilewright.ops._builder import REGISTRY, find
from tilewright.ops._hazards import Case
from tilewright.ops._hazards.case import close
from tilewright.prove.examine import check

NAMES = ("max_sim", "max_sim_pairs", "max_sim_packed", "max_sim_int8")
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


def test_many_documents_take_no_memory_and_the_same_bits_twice() -> None:
    q = torch.randn(4, 32, 128, device="cuda", dtype=torch.float16)
    d = torch.randn(2000, 300, 128, device="cuda", dtype=torch.float16)
    mask = torch.arange(300, device="cuda") < torch.randint(1, 301, (2000, 1), device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    first = ops.max_sim(q, d, d_mask=mask)
    assert torch.cuda.max_memory_allocated() - before < 1 << 20
    assert torch.equal(first, ops.max_sim(q, d, d_mask=mask))
    wanted = find("max_sim").op.reference(q[:, :, :], d[:50], None, mask[:50])
    torch.testing.assert_close(first[:, :50], wanted, rtol=1e-3, atol=1e-2)


def test_gradients_repeat_where_documents_fall_into_pieces() -> None:
    q = torch.randn(8, 32, 64, device="cuda", requires_grad=True)
    d = torch.randn(700, 40, 64, device="cuda", requires_grad=True)
    up = torch.randn(8, 700, device="cuda")
    runs = [torch.autograd.grad(ops.max_sim(q, d), (q, d), up) for _ in range(5)]
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0], strict=True))
    wanted = torch.autograd.grad(find("max_sim").op.reference(q, d), (q, d), up)
    torch.testing.assert_close(runs[0], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("example", ["late_interaction", "sparse"])
def test_retrieval_example(example: str) -> None:
    path = Path(__file__).resolve().parents[2] / "examples" / "08_retrieval" / f"{example}.py"
    done = subprocess.run([sys.executable, str(path), "--device", "cuda", "--steps", "60"], capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "the document is among the first 5" in done.stdout
