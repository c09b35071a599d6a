"""attention_kl on a device: the kernel route against the reference, memory of long sequences, the distillation example."""

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

NAMES = ("attention_kl",)
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


@pytest.mark.parametrize("divergence", ["forward", "reverse", "js"])
def test_no_attention_matrix_in_memory(divergence: str) -> None:
    torch.manual_seed(0)
    shapes = ((1, 4, 8192, 64), (1, 2, 8192, 64), (1, 4, 8192, 32), (1, 1, 8192, 32))
    given = [torch.randn(s, device="cuda", dtype=torch.bfloat16, requires_grad=True) for s in shapes]
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    runs = [torch.autograd.grad(ops.attention_kl(*given, causal=True, divergence=divergence), given) for _ in range(3)]
    assert torch.cuda.max_memory_allocated() - before < 64 << 20  # one matrix of one side in bfloat16 is 512 MiB
    assert all(torch.equal(a, b) for run in runs[1:] for a, b in zip(run, runs[0], strict=True))


def test_distillation_example() -> None:
    path = Path(__file__).resolve().parents[2] / "examples" / "09_distillation" / "attention.py"
    done = subprocess.run([sys.executable, str(path), "--device", "cuda", "--steps", "60"], capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    before, after = (float(line.split()[-1]) for line in done.stdout.splitlines())
    assert after < 0.8 * before
