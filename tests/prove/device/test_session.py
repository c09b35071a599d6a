"""A kernel in the child for devices, with host memory in the device's place: what needs no GPU of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tilewright.errors import EnvironmentProblem, UserError
from tilewright.kernel import read
from tilewright.prove.case import Recipe
from tilewright.prove.device import machine
from tilewright.prove.device.examination import DeviceExamination
from tilewright.prove.examine import check, open_task
from tilewright.prove.gates import gate
from tilewright.prove.verdict import GateReport

ROOT = Path(__file__).resolve().parents[3]
TASK = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(
    reference=lambda x: torch.softmax(x, -1),
    inputs={"x": TensorSpec("M N")}, outputs={"y": TensorSpec("M N")},
    dims={"M": Dim(1, 64), "N": Dim(1, 64)}, workloads=[{"M": 6, "N": 12}],
    contract=Contract(batch_invariant=("M",)),
)
"""
RIGHT = "import torch\ndef kernel(x):\n    return torch.softmax(x, -1)\n"


@pytest.fixture(scope="module")
def place() -> machine.Device:
    return machine.start("cpu")


def reports(folder: Path, place: machine.Device, kernel: str, *names: str) -> dict[str, GateReport]:
    """What gates say of a kernel text."""
    (folder / "problem.py").write_text(TASK)
    (folder / "candidate.py").write_text(kernel)
    sheet, reference = open_task(str(folder / "problem.py"))
    exam = DeviceExamination(place, sheet, read(f"{folder / 'candidate.py'}::kernel"), reference, seed=7)
    try:
        return {n: gate(n).run(exam.at(gate(n))) for n in names}
    finally:
        exam.close()
        exam.reference.close()


def test_a_right_kernel_passes(tmp_path: Path, place: machine.Device) -> None:
    got = reports(
        tmp_path, place, RIGHT, "interface", "values", "written", "purity", "honesty", "determinism", "strides"
    )
    assert {n: (r.status, r.reason) for n, r in got.items() if r.status != "pass"} == {}


def test_an_input_that_is_overwritten_comes_back_changed(tmp_path: Path, place: machine.Device) -> None:
    kernel = "import torch\ndef kernel(x):\n    y = torch.softmax(x, -1)\n    x[0] = 7.0\n    return y\n"
    found = reports(tmp_path, place, kernel, "purity")["purity"].findings[0]
    assert "input 'x' is overwritten" in found.summary


def test_a_write_past_an_output_is_seen_in_the_zone_behind_it(tmp_path: Path, place: machine.Device) -> None:
    kernel = (
        "import ctypes\nimport torch\n\n\ndef kernel(x):\n    y = torch.empty_like(x)\n    y.copy_(torch.softmax(x, -1))\n"
        "    n = y.numel() * y.element_size()\n    ctypes.memset(y.data_ptr() + n, 0, 8)\n    return y\n"
    )
    found = reports(tmp_path, place, kernel, "written")["written"].findings[0]
    assert "past the end of" in found.summary
    assert found.cls == "wrong"


def test_an_element_that_is_never_written_is_poison(tmp_path: Path, place: machine.Device) -> None:
    kernel = (
        "import torch\n\n\ndef kernel(x):\n    y = torch.empty_like(x)\n    y[:, :-1] = torch.softmax(x, -1)[:, :-1]\n"
        "    if x.shape[1] < 3:\n        y[:, -1] = torch.softmax(x, -1)[:, -1]\n    return y\n"
    )
    found = reports(tmp_path, place, kernel, "written")["written"].findings[0]
    assert "never written" in found.summary


def test_states_of_modules_and_evaluated_gates_keep_working(tmp_path: Path, place: machine.Device) -> None:
    assert reports(tmp_path, place, RIGHT, "algebra")["algebra"].status == "pass"


def test_without_a_gpu_the_option_is_a_clear_error(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "candidate.py").write_text(RIGHT)
    with pytest.raises(EnvironmentProblem, match="no CUDA device on this machine"):
        check(str(tmp_path / "problem.py"), f"{tmp_path / 'candidate.py'}::kernel", device="cuda")


def test_an_unknown_device_is_named() -> None:
    with pytest.raises(UserError, match="device is 'tpu'"):
        machine.named("tpu")


def test_a_kernel_in_c_runs_on_no_device() -> None:
    with pytest.raises(UserError, match="a kernel in C runs on the CPU") as caught:
        check("examples/03_native/problem.py", str(ROOT / "examples/03_native/right.c"), device="cuda")
    assert "leave out --device cuda" in str(caught.value)


FAULTY = """import torch


def kernel(x):
    if x.shape[0] == 6:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\\nCompile with …")
    return torch.softmax(x, -1)
"""


def test_a_fault_of_the_device_ends_its_child_and_the_next_call_has_a_fresh_one(
    tmp_path: Path, place: machine.Device
) -> None:
    (tmp_path / "problem.py").write_text(TASK)
    (tmp_path / "candidate.py").write_text(FAULTY)
    sheet, reference = open_task(str(tmp_path / "problem.py"))
    exam = DeviceExamination(place, sheet, read(f"{tmp_path / 'candidate.py'}::kernel"), reference, seed=7)
    try:
        given = exam.workload()
        first = exam.session()
        outcome = exam.run(exam.make(Recipe(given)))
        assert outcome.trouble is not None
        assert (outcome.trouble.type, outcome.trouble.kind) == ("DeviceFault", "launch")
        assert outcome.trouble.message == "an illegal memory access was encountered"
        assert outcome.trouble.where.endswith("candidate.py:6")
        other = exam.make(Recipe(given.model_copy(update={"dims": {"M": 2, "N": 3}})))
        assert not exam.judge(other, exam.run(other)).failed
        assert exam.session() is not first
    finally:
        exam.close()
        reference.close()
