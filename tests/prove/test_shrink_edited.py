"""Shrinking a case whose values were edited, and layouts that vanish at small sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from trial import RIGHT, SOFTMAX, trial

from tilewright.kernel import read
from tilewright.prove.case import Recipe
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task
from tilewright.prove.gate import Check
from tilewright.prove.gates.algebra import Witnessed
from tilewright.prove.shrink import shrink
from tilewright.task.task import Workload

PROBLEM = """
import torch
from tilewright.task import Dim, Task, TensorSpec
TASK = Task(reference=lambda x, w: x * w, inputs={"x": TensorSpec("M N"), "w": TensorSpec("N")},
            outputs={"y": TensorSpec("M N")}, dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 33, "N": 40}])
"""
KERNEL = "import torch\ndef kernel(x, w):\n    return x * w + 1e-3 * (x[:1, 5:6] > 900).any()\n"


@pytest.fixture
def exam(tmp_path: Path):
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "kernel.py").write_text(KERNEL)
    sheet, reference = open_task(str(tmp_path / "problem.py"))
    made = Examination(sheet, read(str(tmp_path / "kernel.py")), reference, seed=3)
    yield made
    made.close()
    made.reference.close()


def test_edited_values_are_cut_to_smaller_sizes(exam):
    """A witness that only its own values make: other values at a smaller size are right."""
    drawn = exam.make(Recipe(Workload(dims={"M": 33, "N": 40}, dtype="float32"), seed=1))
    x = drawn.inputs["x"].clone()
    x[0, 5] = 1000.0
    case = drawn.with_inputs(x=x)
    gate = Witnessed()
    small, shown = shrink(exam, gate, case, gate.check(exam, case))
    assert small.dims == {"M": 1, "N": 6}
    assert shown.failed
    assert small.inputs["x"][0, 5] > 900
    assert small.inputs["w"].shape == (6,)
    assert small.changed, "it can't be drawn again from its recipe"


def test_simpler_values_are_tried_at_smaller_sizes(exam):
    """What is planted at one place is seldom planted there at another size; once all is zero, the size matters alone."""
    drawn = exam.make(Recipe(Workload(dims={"M": 33, "N": 40}, dtype="float32"), seed=1))

    class Once(Witnessed):
        def check(self, exam, case):
            drawn_again = case.dims["M"] < 33 and not case.changed
            return Check(cls=None if drawn_again else "wrong", summary="it is wrong")

    small, _ = shrink(exam, Once(), drawn, Check(cls="wrong"))
    assert small.dims == {"M": 1, "N": 1}


def test_layouts_stay_what_they_are(exam):
    drawn = exam.make(Recipe(Workload(dims={"M": 33, "N": 40}, dtype="float32"), layout="transposed", seed=1))
    drawn.inputs["x"][0, 5] = 1000.0
    case = drawn.with_inputs(x=drawn.inputs["x"])
    gate = Witnessed()
    small, _ = shrink(exam, gate, case, gate.check(exam, case))
    assert small.dims["N"] == 6
    assert torch.equal(small.inputs["x"].isfinite(), torch.ones(small.dims["M"], 6).bool())


def test_a_witness_of_the_algebra_gate_is_small(tmp_path):
    finding = trial(tmp_path, RIGHT.replace('other=-float("inf")', "other=0.0") + "kernel = launch\n", "algebra",
                    task=SOFTMAX).finding  # fmt: skip
    assert finding.case.dims["M"] == 1
    assert finding.case.dims["N"] <= 7, "the first sizes with a masked lane"


def test_a_finding_of_strides_is_still_strided(tmp_path):
    finding = trial(tmp_path, "import torch\ndef kernel(x):\n    y = torch.softmax(x, -1)\n"
                    "    return y if x.is_contiguous() else y * 1.5\n", "strides").finding  # fmt: skip
    assert "strides (" in finding.summary
    wrong = "import torch\ndef kernel(x):\n    return torch.softmax(x, -1) * 1.5\n"
    finding = trial(tmp_path, wrong, "strides").finding
    assert "strides (" in finding.summary
