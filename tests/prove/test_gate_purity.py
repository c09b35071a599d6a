"""Purity sees what is kept between calls, and lets honest caches be."""

from __future__ import annotations

import pytest
from trial import RIGHT, SOFTMAX, trial

MODULE_TASK = """
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return x * self.weight
N = 12
def get_inputs():
    return [torch.randn(6, N)]
def get_init_inputs():
    return [N]
"""

MODULE = """
import torch
import triton
import triton.language as tl

@triton.jit
def scale(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * n
    x = tl.load(x_ptr + row + i, mask=i < n)
    tl.store(y_ptr + row + i, x * tl.load(w_ptr + i, mask=i < n), mask=i < n)

class Base(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
        self.packed = None
    def launch(self, x, w):
        y = torch.empty_like(x)
        scale[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
kernel = None
"""

FAULTS = {
    "input overwritten": (
        "def kernel(x):\n    y = launch(x)\n    x.mul_(1.0).add_(1.0)\n    return y",
        "wrong",
        "is overwritten",
    ),
    "output in the input's memory": (
        "def kernel(x):\n    y = launch(x)\n    x.copy_(y)\n    return x[:]",
        "wrong",
        "is overwritten",
    ),
    "one buffer for all calls": (
        "held = {}\ndef kernel(x):\n    y = held.setdefault(x.shape, torch.empty_like(x))\n"
        "    y.copy_(launch(x))\n    return y",
        "wrong",
        "still holds",
    ),
    "cache by shape": (
        "held = {}\ndef kernel(x):\n    if x.shape not in held:\n        held[x.shape] = launch(x)\n"
        "    return held[x.shape].clone()",
        "cheat",
        "result of an earlier call",
    ),
    "cache by sum": (
        "held = {}\ndef kernel(x):\n    k = (round(float(x.double().sum()), 6), x.shape)\n"
        "    if k not in held:\n        held[k] = launch(x)\n    return held[k].clone()",
        "cheat",
        "a sample can't tell",
    ),
    "cache by the first row": (
        "held = {}\ndef kernel(x):\n    k = (float(x[0].sum()), x.shape)\n    if k not in held:\n"
        "        held[k] = launch(x)\n    return held[k].clone()",
        "cheat",
        "a sample can't tell",
    ),
    "maximum of the first call kept": (
        "first = []\ndef kernel(x):\n    first.append(x.shape[1])\n"
        "    return launch(x) if x.shape[1] <= first[0] else launch(x[:, :first[0]]).repeat(1, 2)[:, :x.shape[1]]",
        "wrong",
        "other sizes before",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_sees(name, tmp_path):
    text, cls, words = FAULTS[name]
    finding = trial(tmp_path, RIGHT + text + "\n", "purity").finding
    assert (finding.cls, words in finding.summary) == (cls, True), finding


HONEST = {
    "plain": "def kernel(x):\n    return launch(x)",
    "scratch kept": (
        "held = {}\ndef kernel(x):\n    s = held.setdefault(x.shape, torch.empty_like(x))\n    s.copy_(x)\n"
        "    return launch(s)"
    ),
    "cache that minds versions": (
        "held = {}\ndef kernel(x):\n    k = (id(x), x._version)\n    if k not in held:\n        held.clear()\n"
        "        held[k] = (x, launch(x))\n    return held[k][1].clone()"
    ),
    "sizes by shape": "from functools import lru_cache\n@lru_cache\ndef block(n):\n    return n\n"
    "def kernel(x):\n    block(x.shape[1])\n    return launch(x)",
}


@pytest.mark.parametrize("name", HONEST)
def test_lets_be(name, tmp_path):
    result = trial(tmp_path, RIGHT + HONEST[name] + "\n", "purity")
    assert result["purity"].status == "pass", result["purity"]


def test_alias_is_allowed_by_contract(tmp_path):
    task = SOFTMAX.replace("torch.softmax(x, -1)", "x * 1.0").replace("Contract(", 'Contract(aliasing="allowed", ')
    text = "import torch\ndef kernel(x):\n    return x[:]\n"
    assert trial(tmp_path, text, "purity", task=task)["purity"].status == "pass"
    forbidden = task.replace('aliasing="allowed", ', "")
    finding = trial(tmp_path, text, "purity", task=forbidden).finding
    assert finding.cls == "policy"
    assert "shares memory with input 'x'" in finding.summary


def test_a_view_where_the_reference_gives_one(tmp_path):
    task = SOFTMAX.replace("torch.softmax(x, -1)", "x.t()").replace('outputs={"y": TensorSpec("M N")}, ', "")
    result = trial(tmp_path, "import torch\ndef kernel(x):\n    return x.t()\n", "purity", task=task)
    assert result["purity"].status == "pass", result["purity"]


def test_module_that_keeps_its_weights(tmp_path):
    stale = (
        MODULE + "class kernel(Base):\n    def forward(self, x):\n        if self.packed is None:\n"
        "            self.packed = self.weight.detach().clone()\n        return self.launch(x, self.packed)\n"
    )
    finding = trial(tmp_path, stale, "values", "purity", task=MODULE_TASK).finding
    assert finding.gate == "purity"
    assert "parameters that change" in finding.summary
    good = MODULE + "class kernel(Base):\n    def forward(self, x):\n        return self.launch(x, self.weight)\n"
    assert trial(tmp_path, good, "purity", task=MODULE_TASK)["purity"].status == "pass"
