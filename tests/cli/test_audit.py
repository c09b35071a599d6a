"""audit and compare: many kernels, resumed after a kill; old against new."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from .conftest import RIGHT, Run


def test_audit_counts_and_writes(folder: Path, tilewright: Run) -> None:
    done = tilewright("audit", ".", "--json", "out.json", "--junit", "out.xml", "--jobs", 2, "--seed", 5)
    assert done.returncode == 1, done.stderr
    data = json.loads((folder / "out.json").read_text())
    assert {r["name"]: r["verdict"] for r in data["results"]} == {"right.py": "accept", "wrong.py": "reject"}
    assert data["summary"]["rejected"]["wrong"] + data["summary"]["rejected"]["inaccurate"] == 1
    assert "2 kernels" in done.stdout
    findings = [f for r in data["results"] for g in r["report"]["gates"] for f in g["findings"]]
    assert {f["case"]["options"]["root"] for f in findings} == {5}, "the seed that was given"
    again = tilewright("audit", ".", "--jobs", 2)
    assert "already done" not in again.stdout, "a finished audit begins anew"


def test_a_killed_audit_goes_on_where_it_was(folder: Path, tilewright: Run) -> None:
    for i in range(4):
        (folder / f"right{i}.py").write_text(RIGHT + f"# {i}\n")
    env = {**os.environ, "TILEWRIGHT_LEDGER": str(folder / "ledger.sqlite")}
    command = [sys.executable, "-m", "tilewright", "audit", ".", "--jobs", "1"]
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    seen = 0
    for line in process.stderr:
        seen += line.startswith("[")
        if seen == 2:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.2)
    resumed = tilewright("audit", ".", "--jobs", 2, "--json", "out.json")
    assert resumed.returncode == 1, resumed.stderr
    assert "already done" in resumed.stderr
    data = json.loads((folder / "out.json").read_text())
    assert data["summary"]["total"] == 6
    assert data["summary"]["accept"] == 5


def test_compare_finds_the_regression_and_is_calm_about_none(folder: Path, tilewright: Run) -> None:
    worse = tilewright("compare", "right.py", "wrong.py", "--problem", "problem.py")
    assert worse.returncode == 1, worse.stdout + worse.stderr
    answer = worse.stdout[worse.stdout.index("REGRESSION") :]
    assert "wrong.py (reject, " in answer
    assert "right.py (accept, " in answer
    assert "double_relu" in answer
    again = re.findall(r"again +([\w ]+): tilewright replay (\w+)", answer)
    assert again[0][0] == "shapes", answer
    assert len(again) == worse.stdout.count("worse"), "one line for each gate that got worse"
    for _, id in again[:2]:
        replayed = tilewright("replay", id)
        assert (replayed.returncode, "still fails" in replayed.stdout) == (1, True), replayed.stdout + replayed.stderr
    assert "kernel         wrong.py" in worse.stdout, "the finding names its file"
    same = tilewright("compare", "right.py", "right.py", "--problem", "problem.py")
    assert same.returncode == 0, same.stdout + same.stderr
    better = tilewright("compare", "wrong.py", "right.py", "--problem", "problem.py")
    assert better.returncode == 0
    assert "better" in better.stdout
