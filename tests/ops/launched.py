"""The kernel route of an operator on the CPU, under Triton's interpreter: ``python launched.py NAME`` exits 0, or says what
differs from the reference. What launchers hand to kernels is the subject; tilewright check judges the kernels.
"""

import os
import subprocess
import sys
from importlib.metadata import version
from typing import Any

import pytest


def check(name: str) -> None:
    """Run this file in a process of its own, since Triton reads the variable when it is imported."""
    if version("triton") < "3.7":
        pytest.skip("the interpreter of this Triton fails with a current NumPy")
    done = subprocess.run([sys.executable, __file__, name], env={**os.environ, "TRITON_INTERPRET": "1"},
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]


def compare(name: str) -> None:
    """Each declared call, forward and backward, with each result's gradient sent and with one left out."""
    from tilewright.ops._builder import Built, find
    from tilewright.ops._hazards import Case

    _without_libdevice()
    Built.route = lambda self, arguments: self.op.outside(*arguments) or "kernel"  # type: ignore[method-assign]
    built = find(name)
    for call in built.op.calls:
        case = Case(built, call)
        one(case, call.name)


def _without_libdevice() -> None:
    """The interpreter has no libdevice: what kernels take from it, by what it has."""
    import triton.language as tl
    from triton.language.extra import libdevice

    libdevice.tanh = lambda x: 2.0 * tl.sigmoid(2.0 * x) - 1.0
    # W. Kahan's form, which keeps the digits of small values.
    libdevice.log1p = lambda x: tl.where(
        1.0 + x == 1.0, x, tl.log(1.0 + x) * (x / tl.where(x == 0.0, 1.0, 1.0 + x - 1.0))
    )


def one(case: Any, what: str) -> None:
    import torch

    from tilewright.ops._hazards.case import close

    names = case.differentiable(case.arguments())
    found = []
    for function in (case.public, case.reference):
        own = {n: v.clone().requires_grad_(n in names) if isinstance(v, torch.Tensor) else v
               for n, v in case.arguments().items()}  # fmt: skip
        results = function(**own)
        sent = case.cotangents(results)
        grads = torch.autograd.grad(results, [own[n] for n in names], sent, retain_graph=True) if names else ()
        alone = torch.autograd.grad(results[0], [own[names[0]]], sent[0]) if names else ()
        found.append([*results, *grads, *alone])
    for i, (got, wanted) in enumerate(zip(*found, strict=True)):
        close(got, wanted, f"{what}: value {i}", epsilons=256)


if __name__ == "__main__":
    import tilewright.ops  # noqa: F401

    compare(sys.argv[1])
