"""Honesty finds results that no launch gave, and lets honest mixes of torch and kernels pass."""

from __future__ import annotations

import pytest
from trial import RIGHT, SOFTMAX, trial

from tilewright.kernel import read
from tilewright.prove.child.device_source import DeviceSource

HONEST = {
    "plain": "def kernel(x):\n    return launch(x)",
    "torch before and after": "def kernel(x):\n    return launch((x * 2.0).contiguous() / 2.0).clone()",
    "two kernels": "def kernel(x):\n    return launch(launch(x).log())",
    "tail by torch": "def kernel(x):\n    return torch.cat([launch(x[:-1]), launch(x[-1:])])",
    "reraises": (
        "def kernel(x):\n    try:\n        return launch(x)\n    except Exception as e:\n"
        "        raise RuntimeError('launch') from e"
    ),
    "another way for other input": (
        "def kernel(x):\n    if x.dtype is torch.float64:\n        return torch.softmax(x, -1)\n    return launch(x)"
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_lets_be(name, tmp_path):
    report = trial(tmp_path, RIGHT + HONEST[name] + "\n", "honesty")["honesty"]
    assert report.status == "pass", report


MIXED = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x, w: torch.softmax(x @ w, -1),
    inputs={"x": TensorSpec("M K"), "w": TensorSpec("K N")},
    dims={"M": Dim(1, 64), "N": Dim(1, 64), "K": Dim(1, 64)}, workloads=[{"M": 6, "N": 12, "K": 5}],
)
"""


def test_a_library_product_and_one_kernel_are_honest(tmp_path):
    result = trial(tmp_path, RIGHT + "def kernel(x, w):\n    return launch(x @ w)\n", "values", "honesty", task=MIXED)
    assert result.failed is None
    assert result["honesty"].status == "pass"


def test_all_by_the_library_is_not(tmp_path):
    text = RIGHT + "def kernel(x, w):\n    launch(x)\n    return torch.softmax(x @ w, -1)\n"
    finding = trial(tmp_path, text, "honesty", task=MIXED).finding
    assert finding.cls == "cheat"
    assert "does not depend on any launch: torch ran" in finding.summary


TWO = SOFTMAX.replace("torch.softmax(x, -1)", "(torch.softmax(x, -1), x.sum(-1))").replace(
    'outputs={"y": TensorSpec("M N")}, ', ""
)


@pytest.mark.parametrize("factor", ["0.0", "1e-30", "1e-6"])
def test_a_launch_that_is_added_for_show(factor, tmp_path):
    text = RIGHT + f"def kernel(x):\n    return torch.softmax(x, -1) + {factor} * launch(x)\n"
    finding = trial(tmp_path, text, "honesty").finding
    assert finding.cls == "cheat"
    assert "torch ran _softmax" in finding.summary


def test_a_small_branch_by_a_kernel_is_honest(tmp_path):
    task = SOFTMAX.replace("torch.softmax(x, -1)", "x + 1e-6 * torch.softmax(x, -1)")
    result = trial(tmp_path, RIGHT + "def kernel(x):\n    return x + 1e-6 * launch(x)\n", "honesty", task=task)
    assert result["honesty"].status == "pass", result["honesty"]


def test_each_of_several_outputs_must_depend_on_a_launch(tmp_path):
    finding = trial(tmp_path, RIGHT + "def kernel(x):\n    return launch(x), x.sum(-1)\n", "honesty", task=TWO).finding
    assert "'out.1' does not depend on any launch" in finding.summary


def test_no_launch_says_what_ran_instead(tmp_path):
    finding = trial(tmp_path, RIGHT + "def kernel(x):\n    return torch.softmax(x, -1)\n", "honesty").finding
    assert finding.summary.startswith("no kernel is launched: torch ran _softmax")
    assert finding.got == "none"
    assert finding.expected == "at least one launch"


def test_dead_launches_are_remarked(tmp_path):
    text = RIGHT + "def kernel(x):\n    launch(x * 2)\n    return launch(x)\n"
    report = trial(tmp_path, text, "honesty")["honesty"]
    assert report.status == "pass"
    assert "launch 1 (softmax_kernel) changes no output" in report.meaning


def test_torch_kernels_need_no_launch(tmp_path):
    report = trial(tmp_path, "import torch\ndef kernel(x):\n    return torch.softmax(x, -1)\n", "honesty")["honesty"]
    assert report.status == "pass"
    assert "2 experiments" in report.meaning


def test_late_results(tmp_path):
    text = """
import threading, time, torch
def kernel(x):
    y = torch.softmax(x, -1)
    def later():
        time.sleep(0.02)
        y.zero_()
    threading.Thread(target=later).start()
    return y
"""
    finding = trial(tmp_path, text, "honesty").finding
    assert finding.cls == "cheat"
    assert "changes after the call has returned" in finding.summary


@pytest.mark.parametrize("line", [
    "def k(x_ptr, n: tl.constexpr = open({marker!r}, 'w')): pass",
    "def k(x_ptr, n: open({marker!r}, 'w')): pass",
    "def k(x_ptr, n: tl.constexpr) -> open({marker!r}, 'w'): pass",
])  # fmt: skip
def test_the_evaluator_runs_no_code_of_a_definition(line, tmp_path):
    marker = str(tmp_path / "marker")
    text = "import triton\nimport triton.language as tl\n@triton.jit\n" + line.format(marker=marker) + "\n"
    source = DeviceSource({str(tmp_path / "k.py"): text})
    source._module(str(tmp_path / "k.py"), text, {})
    assert not (tmp_path / "marker").exists()


def test_the_evaluator_binds_no_names_of_others(tmp_path):
    import triton.language as tl

    before = tl.load
    text = "import triton.language as tl\ntl.load = tl.store\ntl.a, b = 1, 2\nc, d = 3, 4\n"
    module = DeviceSource({})._module(str(tmp_path / "k.py"), text, {})
    assert tl.load is before
    assert not hasattr(tl, "a")
    assert module.d == 4


def test_reading_a_kernel_runs_nothing(tmp_path):
    path = tmp_path / "k.py"
    path.write_text("import os\nos._exit(3)\ndef kernel(x):\n    return x\n")
    assert read(str(path)).entry == "kernel"


HANDED_ON = SOFTMAX.replace("torch.softmax(x, -1)", "(torch.softmax(x, -1), {second})").replace(
    'outputs={"y": TensorSpec("M N")}, ', ""
)


@pytest.mark.parametrize("second", ["x", "x[1:]", "x.clone()", "x + 0"])
@pytest.mark.parametrize("ours", ["", ".clone()"])
def test_an_input_handed_on_needs_no_launch(tmp_path, second, ours):
    kernel = RIGHT + f"def kernel(x):\n    return launch(x), ({second.removesuffix('.clone()')}){ours}\n"
    result = trial(tmp_path, kernel, "honesty", task=HANDED_ON.replace("{second}", second))
    assert result["honesty"].status == "pass", result.reports


def test_an_output_that_only_equals_an_input_does_where_it_is_all_there_is(tmp_path):
    task = SOFTMAX.replace("torch.softmax(x, -1)", "torch.relu(x)").replace(
        'TensorSpec("M N")}, out', 'TensorSpec("M N", values=uniform(0.5, 1))}, out').replace(
        "TensorSpec\n", "TensorSpec, uniform\n")  # fmt: skip
    assert "uniform(0.5" in task
    finding = trial(tmp_path, RIGHT + "def kernel(x):\n    return torch.relu(x)\n", "honesty", task=task).finding
    assert "no kernel is launched" in finding.summary
