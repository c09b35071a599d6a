"""Running a program with a time limit, and ending all that it started: its process group, and what left the group."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MARK = "TILEWRIGHT_STARTED"
GRACE = 2.0  # seconds between asking a group to end and ending it


@dataclass(frozen=True)
class Ended:
    """``code`` is None where the time was over; ``output`` the end of what it printed."""

    code: int | None
    output: str
    seconds: float


def run(command: Sequence[str], folder: Path, env: Mapping[str, str], seconds: float, log: Path) -> Ended:
    """Raises OSError where the program can't be started. Nothing that it started lives when this returns."""
    mark, started = secrets.token_hex(8), time.monotonic()
    with log.open("wb") as out:
        child = subprocess.Popen(command, cwd=folder, env={**env, MARK: mark}, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        try:
            code = _wait(child, seconds)
        finally:
            _end(child, mark)
    return Ended(code, _tail(log), time.monotonic() - started)


def _wait(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE)
        return None


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for _ in range(10):  # what is being started while we look is found the next time
        if not (left := marked(mark)):
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def marked(mark: str) -> list[int]:
    """Processes that were started with this mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def _tail(log: Path, size: int = 4000) -> str:
    with log.open("rb") as f:
        f.seek(max(0, log.stat().st_size - size))
        return f.read().decode(errors="replace")
