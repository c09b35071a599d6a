"""A task with its examination, and a protocol that is over in seconds."""

from pathlib import Path

import pytest

from tilewright.kernel import read
from tilewright.measure.baselines import Context, offers
from tilewright.measure.protocol import quick
from tilewright.measure.workload import Setting, play
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task

HERE = Path(__file__).parent
PROBLEM = str(HERE / "problem.py")
FAST = quick().model_copy(
    update={"blocks_least": 3, "blocks_few": 2, "blocks_most": 4, "calls_least": 3, "calls_most": 6,
            "turn_seconds": 0.002, "checks_least": 6, "figure_seconds": 3.0}
)  # fmt: skip


@pytest.fixture
def timed():
    """``timed(kernel, …)``: a kernel at the task's workload, without a check before."""
    opened = []

    def run(kernel, *, files=(), kinds=("eager",), protocol=FAST, ceilings=None, **more):
        source = read(str(HERE / kernel))
        sheet, session = open_task(PROBLEM)
        exam = Examination(sheet, source, session)
        opened.append(exam)
        context = Context(sheet, PROBLEM, files=tuple(str(HERE / f) for f in files))
        setting = Setting(exam, PROBLEM, source, offers(context, kinds), protocol, ceilings, **more)
        return play(setting, exam.workload())

    yield run
    for exam in opened:
        exam.close()
        exam.reference.close()
