"""Kernels that behave while they are checked and cheat while they are timed: every one is refused, by what its label says.

``workload.play`` is called without the licence that a check gives, and the cheats begin after fewer calls than in the corpus
(where they outlast a check), so that each test is of what the measurement sees for itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.corpus.labels import read_labels
from tilewright.kernel import read
from tilewright.measure.baselines import Context, offers
from tilewright.measure.figure import charge
from tilewright.measure.pairing import Lane
from tilewright.measure.protocol import PROTOCOL
from tilewright.measure.record import WorkloadResult
from tilewright.measure.workload import Setting, play
from tilewright.prove.child.session import Limits
from tilewright.prove.examination import Examination
from tilewright.prove.examine import open_task

FOLDER = Path(__file__).resolve().parents[2] / "corpus" / "cheats" / "mish"
LABELS = {pair.kernel.name: label for pair, label in read_labels(FOLDER)}
CHEATS = [n for n, label in LABELS.items() if label.bench]
HONEST = [n for n, label in LABELS.items() if label.right]
SAYS = {
    "wrong output": r"output of a timed call is wrong|out\[.*expected", "other output": "is another than in the check",
    "clocks": "clocks disagree", "busy": "running beside the timed calls|moved to processors", "late": "had returned",
    "floor": "compulsory work",
}  # fmt: skip
Time = Callable[[str], WorkloadResult]


@pytest.fixture
def time(tmp_path: Path) -> Time:
    """Time a kernel of the folder against eager; its cheat begins at the 20th call, at any pace."""

    def timed(name: str) -> WorkloadResult:
        text = re.sub(r"PATIENCE = \d+", "PATIENCE = 20", (FOLDER / name).read_text())
        file = tmp_path / name
        file.write_text(re.sub(r"PAUSE = [\d.]+", "PAUSE = 10", text))
        problem, kernel = str(FOLDER / "problem.py"), read(str(file))
        sheet, session = open_task(problem)
        exam = Examination(sheet, kernel, session, limits=Limits(seconds=30))
        try:
            against = offers(Context(sheet, problem, "cpu", (), {}), ("eager",))
            return play(Setting(exam, problem, kernel, against, PROTOCOL, None), exam.workload()).result
        finally:
            exam.close()
            exam.reference.close()

    return timed


def test_every_kind_of_cheat_is_there() -> None:
    assert {LABELS[n].family for n in CHEATS} >= {"C5", "C6", "C7", "C8", "C9", "C11", "C17"}
    assert all(LABELS[n].needs == "bench" for n in CHEATS)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_refused_by_what_its_label_says(name: str, time: Time) -> None:
    found = time(name)
    assert found.answer == "refused", f"{found.answer}: {found.reason}"
    assert re.search(SAYS[LABELS[name].bench], found.reason), found.reason


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_is_not_refused(name: str, time: Time) -> None:
    found = time(name)
    assert found.answer != "refused", found.reason
    assert found.refusals == ()
    assert found.figure is not None
    arm = found.figure.arm("candidate")
    assert arm is not None
    assert arm.checked > 0, "outputs of timed calls were judged, and none was wrong"


def test_what_is_done_after_the_sign_counts_as_time() -> None:
    """A call that says that it is done at once, and takes its time afterwards, gains nothing."""
    early = Lane("candidate", None, blocks=[[5e-6, 6e-6]], delivery=[60e-6, 61e-6, 62e-6])  # type: ignore[arg-type]
    plain = Lane("eager", None, blocks=[[50e-6, 51e-6]], delivery=[20e-6, 21e-6, 22e-6])  # type: ignore[arg-type]
    other = Lane("compile", None, blocks=[[40e-6]], delivery=[22e-6])  # type: ignore[arg-type]
    in_place = SimpleNamespace(native=True)
    native = Lane("twin", in_place, blocks=[[40e-6]], delivery=[2e-6])  # type: ignore[arg-type]
    forged = Lane("file", in_place, blocks=[[5e-6]], delivery=[35e-6])  # type: ignore[arg-type]
    charge([early, plain, other, native, forged], PROTOCOL)
    assert forged.blocks == [[pytest.approx(40e-6)]], "a C kernel has nothing to hand over"
    assert early.blocks == [pytest.approx([45e-6, 46e-6])]
    assert plain.blocks == [[50e-6, 51e-6]]
    assert other.blocks == [[40e-6]], "a microsecond is no delay"
    assert native.blocks == [[40e-6]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wrong_forges_both_clocks.py", "wrong_signals_from_c.c"])
def test_forging_both_clocks_gains_nothing(name: str, time: Time) -> None:
    """Signalling early with a clock to match: refused where it is late, and never faster than what it is."""
    found = time(name)
    if found.answer == "refused":
        assert re.search(SAYS["late"], found.reason), found.reason
        return
    assert found.figure is not None
    kernel, eager = found.figure.arm("candidate"), found.figure.arm("eager")
    assert kernel is not None
    assert eager is not None
    assert kernel.time is not None
    assert eager.time is not None
    assert kernel.time.median > eager.time.median / 2, "three passes over the data take as long as one, or longer"
