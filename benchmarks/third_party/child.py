"""``python child.py SITE PACKAGE WORK SECONDS CASE...``: cases of a driver, each in a fork of this process.

The parent imports what all need and runs no tensor operation, since a fork after one may hang in OpenMP."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

os.environ["TORCHDYNAMO_DISABLE"] = "1"  # kernels are evaluated as written, not compiled again
sys.path.insert(0, str(Path(__file__).resolve().parent))
import harness


def main() -> None:
    site, package, work, seconds = sys.argv[1:5]
    warnings.filterwarnings("ignore")
    driver = importlib.import_module(f"drivers.{package}")
    harness.prepare(Path(site).resolve())
    for name in getattr(driver, "PRELOAD", ()):
        importlib.import_module(name)
    for case in sys.argv[5:]:
        log = Path(work) / f"{package}.{case}.jsonl"
        log.unlink(missing_ok=True)
        start = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            one(Path(site).resolve(), driver, case, log)
        ended = wait(pid, float(seconds))
        spent = round(time.perf_counter() - start, 1)
        with log.open("a") as f:
            f.write(json.dumps({"kind": "case", "seconds": spent, "ended": ended}) + "\n")
        print(f"{package} {case}: {spent} s {ended}", flush=True)


def one(site: Path, driver: object, case: str, log: Path) -> None:
    """A case, to the end of this process."""
    written = harness.Log(log)
    c = harness.case(site, written)
    code = 0
    try:
        getattr(driver, f"case_{case}")(c)
        written.write(kind="end")
    except BaseException as e:
        c.failed("case", e)
        code = 1
    os._exit(code)


def wait(pid: int, seconds: float) -> str:
    """Nothing where the case ended well, else how it ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else f"exit {code}"
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return f"stopped after {seconds:.0f} s"


if __name__ == "__main__":
    main()
