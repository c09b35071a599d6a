"""check, replay, show: exit codes, output, JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from .conftest import RIGHT, Run


def test_a_wrong_kernel_is_rejected_with_its_smallest_case_and_replays(folder: Path, tilewright: Run) -> None:
    report, junit, sarif = folder / "v.json", folder / "v.xml", folder / "v.sarif"
    done = tilewright("check", "problem.py", "wrong.py", "--json", report, "--junit", junit, "--sarif", sarif)
    assert done.returncode == 1, done.stderr
    assert "REJECT" in done.stdout
    verdict = json.loads(report.read_text())
    finding = next(f for g in verdict["gates"] if g["role"] != "advisory" for f in g["findings"])
    assert verdict["verdict"] == "reject"
    assert finding["case"]["dims"]["M"] * finding["case"]["dims"]["N"] <= 16, (
        "shrunk from 16 x 15 at least to a few rows"
    )
    assert {"kernel_sha256", "task_sha256", "sandbox", "seconds", "versions", "claims", "domain"} <= set(verdict)
    assert verdict["claims"] == []
    suites = ET.parse(junit).getroot()
    assert suites.findall(".//failure")
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["level"] == "error"

    again = tilewright("replay", finding["id"])
    assert again.returncode == 1, again.stderr
    assert "still fails" in again.stdout
    (folder / "wrong.py").write_text(RIGHT)
    repaired = tilewright("replay", finding["id"])
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert "no longer fails" in repaired.stdout


def test_the_script_shows_the_failure_without_tilewright(folder: Path, tilewright: Run) -> None:
    report = folder / "v.json"
    tilewright("check", "problem.py", "wrong.py", "--json", report)
    id = next(f for g in json.loads(report.read_text())["gates"] for f in g["findings"])["id"]
    made = tilewright("replay", id, "--script", "--output", folder / "show.py")
    assert made.returncode == 0, made.stderr
    hidden = (
        "import sys; sys.modules['tilewright'] = None; import runpy; runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    shown = subprocess.run([sys.executable, "-c", hidden, str(folder / "show.py")], capture_output=True, text=True)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert "expected" in shown.stdout.lower()


def test_a_right_kernel_is_accepted_with_its_domain_and_claims(folder: Path, tilewright: Run) -> None:
    done = tilewright("check", "problem.py", "right.py", "--json", "-")
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["verdict"] == "accept"
    assert verdict["domain"]["dims"] == {"M": [1, 512], "N": [1, 512]}
    assert {c["kind"] for c in verdict["claims"]} >= {"sampled"}
    shown = tilewright("show")
    assert shown.returncode == 0
    assert verdict["id"] in shown.stdout


def test_every_command_has_help(tilewright: Run) -> None:
    top = tilewright("--help")
    for command in ("check", "audit", "compare", "corpus", "doctor", "replay", "show"):
        assert command in top.stdout
        text = tilewright(command, "--help")
        assert text.returncode == 0
        assert "Usage" in text.stdout
    assert tilewright("--version").stdout.startswith("tilewright 0.")


def test_replay_of_files_that_moved_says_what_to_do(folder: Path, tilewright: Run) -> None:
    tilewright("check", "problem.py", "wrong.py", "--json", "v.json")
    verdict = json.loads((folder / "v.json").read_text())
    id = next(f for g in verdict["gates"] for f in g["findings"])["id"]
    (folder / "wrong.py").rename(folder / "moved.py")
    told = tilewright("replay", id)
    assert told.returncode == 2, told.stdout
    assert "wrong.py', is not there any more" in told.stderr
    assert f"tilewright replay {id} --kernel FILE" in told.stderr
    assert f"tilewright replay {id} --script" in told.stderr
    assert tilewright("replay", id, "--kernel", "moved.py").returncode == 1, "and that works"
    assert tilewright("replay", id, "--script", "--output", "show.py").returncode == 0
    bad = tilewright("replay", id, "--script", "--output", "moved.py/show.py")
    assert bad.returncode == 2
    assert "can't write" in bad.stderr
    (folder / "problem.py").rename(folder / "other.py")
    told = tilewright("replay", id, "--kernel", "moved.py")
    assert told.returncode == 2
    assert "problem.py', is not there any more" in told.stderr
    assert "--script" in told.stderr
