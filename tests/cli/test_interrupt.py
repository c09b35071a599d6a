"""Ctrl-C: a word, exit code 2, no process left, and an audit that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from .conftest import RIGHT, Run


def test_ctrl_c_in_an_audit(folder: Path, tilewright: Run) -> None:
    for i in range(4):
        (folder / f"right{i}.py").write_text(RIGHT + f"# {i}\n")
    env = {**os.environ, "TILEWRIGHT_LEDGER": str(folder / "ledger.sqlite")}
    command = [sys.executable, "-m", "tilewright", "audit", ".", "--jobs", "1"]
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    first = process.stderr.readline()
    assert first.startswith("[1/6]")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 2, rest
    assert "stopped by Ctrl-C" in rest
    assert "Traceback" not in rest
    resumed = tilewright("audit", ".", "--jobs", "1")
    assert "already done" in resumed.stderr
    assert "6 kernels" in resumed.stdout
