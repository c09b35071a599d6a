"""What a run began with holds when it goes on."""

from __future__ import annotations

from pathlib import Path

from tilewright.kernel import read
from tilewright.search.measured import Options
from tilewright.search.start import Request, _recorded

ROOT = Path(__file__).resolve().parents[2]


def test_the_rules_of_a_run_are_recorded() -> None:
    problem, kernel = ROOT / "examples/07_search_rowsum/problem.py", ROOT / "examples/07_search_rowsum/kernel.c"
    options = Options(strict=True, overrides="rules.toml", reference="slow", device="cpu")
    request = Request(str(problem), str(kernel), ("3trials",), "random", (), 1, 1, options)
    held = _recorded(request, read(str(kernel)))
    assert held["strict"] is True
    assert held["reference"] == "slow"
    assert held["contract"] == str(Path("rules.toml").absolute())
