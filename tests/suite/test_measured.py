"""What scores take from a measurement."""

from __future__ import annotations

import pytest

from report import made_up
from tilewright.measure.record import Transfer
from tilewright.suite.measured import from_measurement
from tilewright.suite.measuring import Bench


def test_timings_against_the_honest_baseline_of_each_workload() -> None:
    found = from_measurement(made_up.faster())
    assert found.answer == "faster"
    assert [(t.workload, round(t.speedup, 2)) for t in found.timings] == [
        ("M=8192 N=8192", 1.22), ("M=4096 N=1000", 1.22), ("M=128 N=100000", 0.93)]  # fmt: skip
    assert found.timings[0].floor == pytest.approx(0.86, abs=0.01)
    assert found.ids == ("fedcba987654",)
    assert found.transfer == "slower"


def test_timings_against_a_named_baseline() -> None:
    assert {round(t.speedup, 2) for t in from_measurement(made_up.faster(), "eager").timings} == {1.9}
    absent = from_measurement(made_up.faster(), "vendor")
    assert absent.answer == ""
    assert absent.why == "no measurement against the baseline 'vendor'"


def test_hidden_workloads_are_no_timings() -> None:
    m = made_up.faster()
    hidden = m.workloads[0].model_copy(update={"kind": "hidden"})
    assert len(from_measurement(m.model_copy(update={"workloads": (hidden, *m.workloads[1:])})).timings) == 2


@pytest.mark.parametrize(("kept", "cause", "became"), [
    (4, "", "holds"), (0, "wrong beyond the shown workloads", "wrong"), (3, "tuned to the shown workloads", "slower"),
    (3, "benign", "gone"),
])  # fmt: skip
def test_transfer(kept: int, cause: str, became: str) -> None:
    t = Transfer(shown=3, hidden=4, kept=kept, rate=kept / 4, cause=cause)
    assert from_measurement(made_up.faster(transfer=t)).transfer == became
    assert from_measurement(made_up.faster(transfer=None)).transfer == ""


def test_a_refusal_keeps_its_reason() -> None:
    found = from_measurement(made_up.refused())
    assert found.answer == "refused"
    assert "call 17 of block 2" in found.why
    assert found.timings == ()


def test_what_can_be_timed_where() -> None:
    assert Bench("cpu").obstacle("native") == ""
    assert (
        Bench("cpu").obstacle("triton")
        == "kernels in triton are timed on a GPU (--device cuda), and this run is on the CPU"
    )
    assert Bench("cuda").obstacle("triton") == ""
    assert Bench("cuda", check_only=True).obstacle("triton") == "checked only, as asked"
    assert Bench("cuda").checking == {"device": "cuda"}
    assert Bench("cpu").checking == {}
