"""What tests on a GPU share. Without one they are skipped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.kernel import read
from tilewright.prove.device import machine
from tilewright.prove.device.examination import DeviceExamination
from tilewright.prove.examine import open_task
from tilewright.prove.gates import gate
from tilewright.prove.verdict import GateReport

Reports = Callable[..., dict[str, GateReport]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = os.path.dirname(__file__)
    for item in items:
        if str(item.fspath).startswith(here):
            item.add_marker(pytest.mark.gpu)
            if not os.path.exists("/dev/nvidiactl"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(scope="session")
def place() -> machine.Device:
    return machine.start("cuda")


@pytest.fixture
def reports(tmp_path: Path, place: machine.Device) -> Reports:
    """``reports(task, kernel, gate…)``: what gates say of a kernel text (``suffix`` .py or .cu) on the device."""

    def run(task: str, kernel: str, *names: str, suffix: str = ".py") -> dict[str, GateReport]:
        (tmp_path / "problem.py").write_text(task)
        path = tmp_path / f"candidate{suffix}"
        path.write_text(kernel)
        sheet, reference = open_task(str(tmp_path / "problem.py"))
        spec = f"{path}::kernel" if suffix == ".py" else str(path)
        exam = DeviceExamination(place, sheet, read(spec), reference, seed=7, gate_seconds=6.0)
        try:
            return {n: gate(n).run(exam.at(gate(n))) for n in names}
        finally:
            exam.close()
            exam.reference.close()

    return run
