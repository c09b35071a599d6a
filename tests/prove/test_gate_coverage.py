"""Gate coverage: who writes the outputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from trial import RIGHT as BASE
from trial import trial

from tilewright.prove.child.footprint import pack, unpack
from tilewright.prove.gates import _symbolic
from tilewright.prove.gates.coverage import written_of

RIGHT = BASE + "\nkernel = launch\n"
SKIPS = RIGHT.replace("e / tl.sum(e, axis=0), mask=mask)", "e / tl.sum(e, axis=0), mask=mask & (cols != 7))")
FILLED = SKIPS.replace("y = torch.empty_like(x)", "y = torch.softmax(x, -1)")


def test_an_element_that_no_launch_writes(tmp_path: Path) -> None:
    finding = trial(tmp_path, SKIPS, "coverage").finding
    assert (finding.gate, finding.cls) == ("coverage", "wrong")
    assert finding.replays
    assert "of 'out' are written by no launch" in finding.summary
    assert "[0, 7]" in finding.where


def test_what_torch_wrote_is_no_fault(tmp_path: Path) -> None:
    report = trial(tmp_path, FILLED, "coverage")["coverage"]
    assert report.status == "pass"
    assert "of them not by launches" in report.meaning
    assert not report.claims


def test_a_right_kernel_passes_with_a_claim(tmp_path: Path) -> None:
    report = trial(tmp_path, RIGHT, "coverage")["coverage"]
    assert report.status == "pass"
    assert "by one program" in report.claims[-1].strength


def test_every_size_of_the_contract_is_proved_covered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("z3")
    for name in ("OBSERVE_S", "SECONDS", "MORE_S"):
        monkeypatch.setattr(_symbolic, name, 30.0)
    report = trial(tmp_path, RIGHT, "coverage")["coverage"]
    assert "all sizes: proved" in report.meaning
    assert report.claims[0].domain.startswith("every M in 1..64, N in 1..64")
    assert "every element of what the launches fill is written" in report.claims[0].strength
    (tmp_path / "filled").mkdir()
    filled = trial(tmp_path / "filled", FILLED, "coverage")["coverage"]
    assert "is not settled" in filled.meaning, "rows of 8 and more skip a column"
    assert not filled.claims


def test_masks_travel() -> None:
    mask = torch.rand(77) < 0.5
    assert torch.equal(unpack(pack(mask), 77), mask)


def test_masks_of_several_launches_add_up() -> None:
    first, second = torch.arange(6) < 2, torch.arange(6) == 4
    launches = [{"storages": {"y": 3}, "writes": {"y": {"size": 6, "written": int(m.sum()), "mask": pack(m)}}}
                for m in (first, second)]  # fmt: skip
    assert torch.equal(written_of(launches, [3, 0, [3, 2], [2, 1]]), (first | second).view(3, 2))
    assert written_of(launches, [9, 0, [3, 2], [2, 1]]) is None
    assert written_of(launches, [3, 0, [3, 99], [2, 1]]) is None, "a place that makes no sense decides nothing"
