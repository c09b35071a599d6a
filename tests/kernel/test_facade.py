"""The façade in a process of its own: what public packages do at import and in backward code works on host tensors."""

from __future__ import annotations

import subprocess
import sys

BACKWARD = """
import torch
from tilewright.kernel.languages import _facade
_facade.install()

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * torch.full((), 2.0, device=g.device)

for way in (lambda y, x: (y.backward(), x.grad)[1], lambda y, x: torch.autograd.grad(y, x)[0]):
    x = torch.ones(3, device="cuda", requires_grad=True)
    assert way(Twice.apply(x).sum(), x).tolist() == [2.0] * 3
"""
DYNAMO = """
import torch
from tilewright.kernel.languages import _facade
_facade.install()
import torch._dynamo.trace_rules
torch._dynamo.disable(lambda: None)
torch._dynamo.trace_rules.get_torch_obj_rule_map()
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_backward_code_may_ask_for_the_device() -> None:
    done = run(BACKWARD)
    assert done.returncode == 0, done.stderr


def test_dynamo_takes_the_answers() -> None:
    done = run(DYNAMO)
    assert done.returncode == 0, done.stderr
