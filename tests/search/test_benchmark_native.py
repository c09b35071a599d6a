"""``benchmarks/search/native.py`` in a tiny form: two points, recorded, searched, gone on with."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.search.space import load

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "search" / "native.py"
LONG = pytest.mark.skipif("TILEWRIGHT_LONG" not in os.environ, reason="a run of minutes: make test-long")
pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler")


def script(tmp_path: Path, *more: str) -> dict:
    arguments = [sys.executable, str(SCRIPT), "--out", str(tmp_path / "n.json"), "--spaces", str(tmp_path / "spaces"),
                 "--work", str(tmp_path / "work"), "--only", "softmax", "--seeds", "2", *more]  # fmt: skip
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "n.json").read_text())


def test_all_points_are_scanned_and_searched_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    made = script(tmp_path, "--vary", "LANES,KEEP", "--live-seconds", "0")
    found = made["kernels"]["softmax"]
    assert (found["points"], found["wrong"], found["trials"]) == (12, 0, 3)
    assert not found["exhaustive"], "a part of the space is not called all of it"
    assert not made["goal reached"], "and without a live search nothing is reached"
    assert found["live"] is None
    (space,) = load(tmp_path / "spaces" / "softmax.json")
    assert len(space.entries) == 12
    assert math.exp(space.best) == pytest.approx(max(1.0, found["best"]["ratio"]))
    if found["strategies"]:
        assert all(0 < s["reached"] <= 1 + 1e-9 for s in found["strategies"].values())
        assert 0 < found["samplers"]["model"]["reached"] <= 1 + 1e-9
    assert made["versions"]["torch"]
    assert made["machine"]["processors"] >= 1
    points = next((tmp_path / "work").glob("softmax-*/points.jsonl"))
    first = points.read_text()
    points.write_text("".join(first.splitlines(keepends=True)[:5]))  # as if it had been stopped there
    (points.parent / "scan.json").unlink()
    script(tmp_path, "--vary", "LANES,KEEP", "--live-seconds", "0")
    assert points.read_text().splitlines()[:5] == first.splitlines()[:5], "what was timed is not timed again"
    assert len(points.read_text().splitlines()) == 12


def test_a_point_that_computes_something_else_is_wrong(tmp_path: Path) -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    import scan

    text = (ROOT / "examples" / "07_search_softmax" / "kernel.c").read_text()
    bad = scan.varied(text, "KEEP").rstrip()
    assert bad.endswith("}")
    bad = bad[:-1] + "    if (KEEP) y[-1] += 0.01f;\n}\n"
    problem = ROOT / "examples" / "07_search_softmax" / "problem.py"
    rows = {r["at"]["KEEP"]: r for r in scan.scan(problem, bad, tmp_path / "p.jsonl")}
    assert rows[1] == {"at": {"KEEP": 1}, "failure": "wrong"}
    assert rows[0]["ratio"] > 0


@LONG
def test_a_live_search_is_measured_beside_the_best_of_the_scan(tmp_path: Path) -> None:
    found = script(tmp_path, "--vary", "LANES", "--live-seconds", "90")["kernels"]["softmax"]
    assert found["live"]["trials"] <= found["trials"] == 3
    assert set(found["live over the best known"]) & {"ratio", "refused"}
