"""The fifteen forgeries, under each set of privileges that sealed children must hold under."""

from __future__ import annotations

import sys

import pytest
from regimes import ROOT, run

FORGERIES = ROOT / "tests" / "prove" / "test_forgeries.py"


@pytest.mark.slow
@pytest.mark.parametrize("regime", ["root", "other", "forbidden"])
def test_no_forgery_is_accepted(regime: str) -> None:
    options = ["-o", "addopts=", "-q", "-p", "no:cacheprovider", "--tb=line"]
    done = run(regime, [sys.executable, "-m", "pytest", str(FORGERIES), *options], timeout=900)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    assert " passed" in done.stdout
