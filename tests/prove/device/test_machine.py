"""What a child with a GPU is given, and under which seal it starts."""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.errors import EnvironmentProblem
from tilewright.prove.child.session import Limits, Session
from tilewright.prove.device import errors, machine


def test_a_child_may_use_more_memory_and_processes_and_knows_its_device() -> None:
    limits = machine.given(Limits(seconds=7.0), "cuda", ("+/dev", "seccomp"), "3")
    assert limits.seconds == 7.0
    assert limits.memory_bytes == machine.HOST_BYTES
    assert limits.device["environment"]["CUDA_VISIBLE_DEVICES"] == "3"
    assert (limits.device["reach"], limits.device["without"]) == (["/dev"], ["seccomp"])


@pytest.mark.parametrize("without", machine.LADDER, ids=lambda w: ", ".join(w) or "full")
def test_each_seal_of_the_ladder_can_be_had(without: tuple[str, ...]) -> None:
    limits = machine.given(Limits(), "cpu", without, "0")
    with Session("device", limits=limits, sandbox="best", name="device") as s:
        answer, _ = s.ask_raw({"do": "hello"})
        assert answer["name"] == "host memory"
        assert bool(s.sealed["landlock"]) == ("landlock" not in without)
        assert s.sealed["seccomp"] == ("seccomp" not in without)
        assert "namespaces" not in without or s.sealed["namespaces"] == []


def test_the_strictest_seal_that_works_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []

    def hello(kind: str, sandbox: str, limits: machine.DeviceLimits) -> Any:
        tried.append(limits.device["reach"] + limits.device["without"])
        works = "landlock" in limits.device["without"]
        return {"name": "card", "capability": [9, 0], "memory": 1} if works else "no"

    monkeypatch.setattr(machine, "_hello", hello)
    device = machine.start("cpu")
    assert device.without == ("landlock",)
    assert tried == [[], ["/dev"], ["/dev", "/proc"], ["landlock"]]


@pytest.mark.parametrize("sandbox", ["best", "require"])
def test_a_device_that_starts_under_no_seal_is_told_with_the_drivers_words(
    monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    monkeypatch.setattr(machine, "_hello", lambda *_: "Error 304")
    with pytest.raises(EnvironmentProblem, match="does not start in a sealed child") as caught:
        machine.start("cpu", sandbox=sandbox)
    said = str(caught.value.detail).splitlines()
    assert said[0] == "full seal: Error 304"
    assert len(said) == (len(machine.LADDER) if sandbox == "best" else 1)


@pytest.mark.parametrize(
    ("e", "fault"),
    [
        (RuntimeError("CUDA error: an illegal memory access was encountered\nmore"), True),
        (RuntimeError("CUDA error: invalid argument"), False),
        (ValueError("illegal memory access"), False),
    ],
)
def test_faults_after_which_a_context_is_lost(e: Exception, fault: bool) -> None:
    assert errors.is_fault(e) is fault
    if fault:
        assert str(errors.fault(e)) == "an illegal memory access was encountered"
