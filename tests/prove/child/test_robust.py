"""Nothing is left running, whoever dies, and in whatever order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from regimes import popen

from tilewright.errors import EnvironmentProblem
from tilewright.prove.child import pool
from tilewright.prove.child.session import Session

PARENT = """
import sys, time
from tilewright.prove.child.session import Session
from tilewright.prove.child import pool
children = [Session("reference") for _ in range(2)]
print("up", pool.server().process_id, flush=True)
try:
    time.sleep(600)
finally:
    print("leaving", flush=True)
"""


def family(root: int) -> list[int]:
    """A process and all that descend from it, as the system's table has them."""
    table = [line.split() for line in subprocess.run(["ps", "-eo", "pid=,ppid=,stat="], capture_output=True, text=True,
                                                     check=True).stdout.splitlines()]  # fmt: skip
    found = [root]
    for pid in found:
        found += [int(p) for p, parent, _ in table if int(parent) == pid]
    return found


def running(pids: list[int]) -> list[int]:
    out = subprocess.run(["ps", "-o", "pid=,stat=", "-p", ",".join(map(str, pids))], capture_output=True, text=True)
    return [int(line.split()[0]) for line in out.stdout.splitlines() if not line.split()[1].startswith("Z")]


def gone(pids: list[int], seconds: float = 15.0) -> bool:
    deadline = time.monotonic() + seconds
    while running(pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not running(pids)


@pytest.mark.slow
@pytest.mark.parametrize(("regime", "how"), [
    ("root", signal.SIGKILL), ("other", signal.SIGKILL), ("forbidden", signal.SIGKILL), ("root", signal.SIGINT),
    ("forbidden", signal.SIGTERM),
])  # fmt: skip
def test_when_the_parent_dies_all_do(regime: str, how: int, tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)
    for folder in tmp_path.parents[:2]:
        os.chmod(folder, 0o755)
    parent = popen(regime, [sys.executable, "-c", PARENT], str(tmp_path), stdout=subprocess.PIPE,
                   stderr=subprocess.DEVNULL)  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline().startswith("up")
    all_of_it = family(parent.pid)
    assert len(all_of_it) >= 4, all_of_it
    os.kill(parent.pid, how)
    parent.wait(20)
    assert gone(all_of_it), running(all_of_it)
    parent.stdout.close()


def test_a_dead_server_is_told_and_replaced() -> None:
    child = Session("reference")
    os.kill(pool.server().process_id, signal.SIGKILL)
    with pytest.raises(EnvironmentProblem, match="the process that starts sealed children died"):
        child.server.ended(child.pid, 10.0)
    with Session("reference") as again:
        assert again.dead is None
    child.close()


def test_many_at_once_and_no_zombie() -> None:
    def one(_: int) -> bool:
        with Session("reference") as s:
            return s.dead is None and bool(s.sealed)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(one, range(24)))
    server = pool.server().process_id
    deadline = time.monotonic() + 10
    while len(family(server)) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert family(server) == [server]


def test_servers_start_side_by_side() -> None:
    servers = [pool.ForkServer(), pool.ForkServer(interpret=True)]
    for s in servers:
        s.wait_ready()
    pids = [s.process_id for s in servers]
    for s in servers:
        s.close()
    assert gone(pids)
