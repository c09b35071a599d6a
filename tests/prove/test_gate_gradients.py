"""Gradients and laws: planted faults of backward passes, broken laws, and right kernels that pass."""

from __future__ import annotations

import pytest
import torch
from trial import RIGHT, SOFTMAX, trial

from tilewright.prove.cotangents import COTANGENTS
from tilewright.task import laws

TASK = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x, w: torch.tanh(x) * w,
    inputs={"x": TensorSpec("M N", requires_grad=True), "w": TensorSpec("N", requires_grad=True)},
    dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 5, "N": 7}],
    contract=Contract(gradients="promised"),
)
"""
KERNEL = """
import torch
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return torch.tanh(x) * w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        t = torch.tanh(x)
        dx = g * w * (1 - t * t)
        dw = (g * t).sum(0)
        return dx, dw
def kernel(x, w):
    return Scaled.apply(x, w)
"""
DENSE = "g.as_strided(g.shape, (g.shape[1], 1)) if g.stride() != (0, 0) else g"
FAULTS = {
    "missing term": ("(1 - t * t)", "(1 - t)", "grad of x"),
    "one upstream for all": ("(g * t).sum(0)", "(g[:1] * t).sum(0)", "grad of w"),
    "upstream read as dense": ("dx = g", f"g = {DENSE}\n        dx = g", "grad of"),
    "upstream overwritten": (
        "dx = g * w",
        "g.mul_(1.0) if 0 in g.stride() else g.mul_(0.5)\n        dx = 2 * g * w",
        "",
    ),
    "no gradient for w": ("return dx, dw", "return dx, None", "no gradient reaches 'w'"),
    "second backward doubled": (
        "dw = ",
        "ctx.n = getattr(ctx, 'n', 0) + 1\n        dx = dx * ctx.n\n        dw = ",
        "second backward differs",
    ),
    "detached": ("Scaled.apply(x, w)", "Scaled.apply(x, w).detach()", "carry no gradient"),
    "only if both": ("dw = ", "dx = dx if all(ctx.needs_input_grad) else dx * 0.5\n        dw = ", "grad of x"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_sees(name, tmp_path):
    old, new, words = FAULTS[name]
    assert old in KERNEL
    finding = trial(tmp_path, KERNEL.replace(old, new), "gradients", task=TASK).finding
    assert finding.cls in ("wrong", "inaccurate"), finding
    assert words in finding.summary, finding


def test_passes_a_right_kernel(tmp_path):
    report = trial(tmp_path, KERNEL, "gradients", task=TASK)["gradients"]
    assert (report.status, report.role, report.cases > 10) == ("pass", "deciding", True), report


def test_no_backward_is_a_remark_where_none_is_promised(tmp_path):
    task = TASK.replace('"promised"', '"advisory"')
    text = "import torch\ndef kernel(x, w):\n    return (torch.tanh(x) * w).detach()\n"
    report = trial(tmp_path, text, "gradients", task=task).reports[0]
    assert (report.role, report.status) == ("advisory", "inconclusive")
    assert "has no backward" in report.reason


def test_excluded_is_not_tried(tmp_path):
    report = trial(tmp_path, KERNEL, "gradients", task=TASK.replace('"promised"', '"excluded"')).reports[0]
    assert report.status == "not applicable"


def test_cotangents_keep_shape_and_differ_in_layout():
    c = torch.randn(4, 6)
    made = {n: f(c) for n, f in COTANGENTS.items()}
    assert all(m.shape == c.shape and m.dtype == c.dtype for m in made.values())
    assert made["expanded"].stride() == (0, 0)
    assert made["transposed"].stride() == (1, 4)
    assert torch.equal(made["sliced"], c)
    assert not made["sliced"].is_contiguous()


# ------------------------------------------------------------------------------------------------------------- laws

LAWS = SOFTMAX.replace("from tilewright.task import", "from tilewright.task import laws,").replace(
    "contract=", '''laws={
        "rows": laws.permutes("x"), "shift": laws.shift_invariant("x"), "one": laws.sums_to(1.0), "own": own,
    }, contract=''').replace("TASK =", '''def own(run, inputs):
    first = run()
    torch.testing.assert_close(run(x=inputs["x"]), first)
    return True
TASK =''')  # fmt: skip


def test_laws_hold_for_a_right_kernel(tmp_path):
    report = trial(tmp_path, RIGHT + "def kernel(x):\n    return launch(x)\n", "metamorphic", task=LAWS).reports[0]
    assert report.status == "pass", report
    assert "laws: rows, shift, one, own" in report.claims[0].domain


BROKEN = {
    "one": "def kernel(x):\n    return launch(x) * 1.01",
    "shift": "def kernel(x):\n    y = launch(x)\n    return y * (1 + (x.amax(-1, keepdim=True) > 3.5) * 0.001)",
    "rows": "def kernel(x):\n    y = launch(x).clone()\n    y[0] = y[0].flip(0)\n    return y",
    "own": "n = 0\ndef kernel(x):\n    global n\n    n += 1\n    return launch(x) + n % 2 * 1e-3 * (x == x.max())",
}


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_law_is_named(law, tmp_path):
    task = LAWS.replace(
        '"rows": laws.permutes("x"), "shift": laws.shift_invariant("x"), "one": laws.sums_to(1.0), "own": own',
        {
            "one": '"one": laws.sums_to(1.0)',
            "shift": '"shift": laws.shift_invariant("x")',
            "rows": '"rows": laws.permutes("x")',
            "own": '"own": own',
        }[law],
    )
    report = trial(tmp_path, RIGHT + BROKEN[law] + "\n", "metamorphic", task=task).reports[0]
    assert report.status == "fail", report
    assert f"the law '{law}' does not hold" in report.reason, report


def test_a_law_that_the_reference_breaks_says_nothing(tmp_path):
    task = LAWS.replace("laws.sums_to(1.0)", "laws.sums_to(2.0)")
    report = trial(tmp_path, RIGHT + "def kernel(x):\n    return launch(x)\n", "metamorphic", task=task).reports[0]
    assert "the reference itself breaks the law 'one'" in report.reason
    assert report.status != "fail"


def test_gradient_law(tmp_path):
    task = TASK.replace("from tilewright.task import", "from tilewright.task import laws,").replace(
        "torch.tanh(x) * w", "torch.log_softmax(x, -1) + 0 * w").replace(
        "contract=", 'laws={"zero": laws.gradient_sums_to_zero("x")}, contract=')  # fmt: skip
    good = "import torch\ndef kernel(x, w):\n    return torch.log_softmax(x, -1) + 0 * w\n"
    assert trial(tmp_path, good, "metamorphic", task=task).reports[0].status == "pass"
    bad = "import torch\ndef kernel(x, w):\n    return torch.log_softmax(x, -1) + 0.01 * (x - x.detach()) + 0 * w\n"
    assert "the law 'zero' does not hold" in trial(tmp_path, bad, "metamorphic", task=task).finding.summary


def test_runner_asks_then_answers():
    run = laws.Runner({"x": 1, "y": 2}, known=["first"])
    assert run(x=5) == "first"
    with pytest.raises(laws.Needed) as asked:
        run(y=7)
    assert asked.value.inputs == {"x": 1, "y": 7}
    assert not isinstance(asked.value, Exception)
    with pytest.raises(TypeError, match="run\\(\\) got 'z', which is no input; inputs: x, y"):
        run(z=1)
