"""The façade in a process of its own: what public packages do at import and in backward code works on host tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


MISSING = """
import sys
import torch
from tilewright.errors import Unsupported
from tilewright.kernel.languages import _facade
_facade.install()

class Mine(torch.cuda.CUDAGraph):
    pass

assert not isinstance(torch.ones(1), torch.cuda.CUDAGraph)
ways = {
    "CUDAGraph": lambda: torch.cuda.CUDAGraph(),
    "graph": lambda: torch.cuda.graph(None),
    "make_graphed_callables": lambda: torch.cuda.make_graphed_callables(abs, ()),
    "graph_pool_handle": lambda: torch.cuda.graph_pool_handle(),
    "MemPool": lambda: torch.cuda.MemPool(),
    "get_rng_state": lambda: torch.cuda.get_rng_state(),
    "Event.elapsed_time": lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event()),
}
for name, way in ways.items():
    line = way.__code__.co_firstlineno
    try:
        way()
    except Unsupported as e:
        assert isinstance(e, RuntimeError), "as torch raises one"
        assert e.what == f"'torch.cuda.{name}' needs a GPU", e.what
        assert e.where == f"<string>:{line}", (name, e.where, line)
        assert e.tilewright_kind == "unsupported"
    else:
        sys.exit(name)
try:
    Mine()
except Unsupported:
    pass
else:
    sys.exit("a graph of its own kind")
with torch.cuda.nvtx.range("a note"):
    torch.cuda.nvtx.mark("another")
assert torch.cuda.device_count() == 1
assert torch.cuda.get_device_capability() == (9, 0)
try:
    torch.cuda.seed(1, 2, 3)
except Unsupported:
    sys.exit("a mistake of the caller's is no limit of ours")
except TypeError:
    pass
"""
GRAPH = """
import torch


def kernel(x):
    y = torch.empty_like(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        double[(1,)](x, y, x.numel(), BLOCK=1024)
    graph.replay()
    return y


import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
"""
PROBLEM = """
import torch
from tilewright.task import Dim, Task, TensorSpec

TASK = Task(name="double", reference=lambda x: x * 2, inputs={"x": TensorSpec("N")}, outputs={"y": TensorSpec("N")},
            dims={"N": Dim(1, 1024)}, workloads=[{"N": 300}])
"""


def test_what_needs_a_device_is_unsupported_by_name_and_line() -> None:
    done = run(MISSING)
    assert done.returncode == 0, done.stderr


def test_a_cuda_graph_leaves_the_verdict_open(tmp_path: Path) -> None:
    from tilewright import check

    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "kernel.py").write_text(GRAPH)
    verdict = check(str(tmp_path / "problem.py"), str(tmp_path / "kernel.py"), ledger=str(tmp_path / "l.sqlite"))
    assert verdict.verdict == "incomplete", verdict.reason
    assert "'torch.cuda.CUDAGraph' needs a GPU at kernel.py:7" in verdict.reason
