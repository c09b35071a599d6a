"""Try every escape in sealed children, from the parent's side: put up marks, listeners and a victim, run the attempts,
and look at what came of them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import landlock
from .escapes import ESCAPES, Escape
from .session import Limits, Session

LIMITS = Limits(seconds=20.0, memory_bytes=512 << 20, file_bytes=64 << 20, processes=32, scratch_bytes=24 << 20)
HANG_S = 0.5


@dataclass(frozen=True)
class Tried:
    """One attempt: ``state`` is ``closed``, ``open`` or ``not tried``, ``how`` what showed it."""

    name: str
    state: str
    how: str
    means: str


def try_all(policy: str = "best", only: str | None = None) -> list[Tried]:
    """Every escape (or those whose name contains ``only``), each in a child sealed by ``policy``."""
    chosen = [e for e in ESCAPES if only is None or only in e.name]
    out: dict[str, Tried] = {}
    with _scene() as scene, Session("reference", sandbox=policy, limits=LIMITS) as bystander:
        scene["processes"] += [bystander.server.process_id, bystander.pid]
        with Session("escapes", sandbox=policy, limits=LIMITS) as child:
            for e in chosen:
                if not e.alone:
                    out[e.name] = _try(e, child, scene)
        for e in chosen:
            if e.alone:
                with Session("escapes", sandbox=policy, limits=LIMITS) as child:
                    out[e.name] = _alone(e, child, scene)
    return [out[e.name] for e in chosen]


def _try(e: Escape, child: Session, scene: dict[str, Any]) -> Tried:
    answer, _ = child.ask_raw({"do": "try", "name": e.name, "target": scene})
    if "error" in answer:
        return Tried(e.name, "closed", answer["error"]["message"], e.means)
    state = "open" if answer["open"] else "not tried" if answer["how"].startswith("nothing to try") else "closed"
    if seen := _seen_outside(e, scene):
        return Tried(e.name, "open", seen, e.means)
    return Tried(e.name, state, str(answer["how"])[:300], e.means)


def _seen_outside(e: Escape, scene: dict[str, Any]) -> str | None:
    """What the parent itself sees, whatever the child says."""
    for mark in (scene["home_mark"], *scene["outside_marks"]):
        if os.path.exists(mark):
            os.unlink(mark)
            return f"{mark} was written"
    if e.name == "signal another process" and not _runs(scene["victim"]):
        return "a process outside was killed"
    return None


def _alone(e: Escape, child: Session, scene: dict[str, Any]) -> Tried:
    if e.name == "hang and ignore signals":
        child.ask_raw({"do": "try", "name": e.name, "target": scene}, seconds=HANG_S)
        ended = child.server.ended(child.pid, 5.0)
        return Tried(e.name, "closed" if ended else "open", str(ended or "it still runs"), e.means)
    if e.name == "leave a daemon behind":
        child.ask_raw({"do": "try", "name": e.name, "target": scene})
        child.server.ended(child.pid, 5.0)
        left = _with_argument(scene["sleeper"][1])
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return Tried(
            e.name, "open" if left else "closed", f"left {left}" if left else "it died with the child", e.means
        )
    return _try(e, child, scene)


@contextlib.contextmanager
def _scene() -> Iterator[dict[str, Any]]:
    """Marks, a victim and listeners; taken down at the end."""
    mark = f"tilewright-escape-{secrets.token_hex(6)}"
    home, temporary = os.path.expanduser("~"), tempfile.gettempdir()
    secret = [e.path for e in os.scandir(home) if e.name.startswith(".")
              and not e.name.startswith(tuple(k.split("/")[0] for k in landlock.HOME_KEPT))]  # fmt: skip
    secret = [s for s in secret if not any(p.startswith(s) for p in (sys.prefix, sys.base_prefix, temporary))]
    buffer = ctypes.create_string_buffer(b"expected")
    sleeper = shutil.which("sleep") or "/bin/sleep"
    with contextlib.ExitStack() as stack:
        victim = subprocess.Popen([sleeper, "600"], stdin=subprocess.DEVNULL)
        stack.callback(victim.wait)
        stack.callback(victim.kill)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind("\0" + mark)
        unix.listen(1)
        yield {
            "home_mark": os.path.join(home, mark),
            "outside_marks": [os.path.join(d, mark) for d in (temporary, "/tmp", "/var/tmp", "/dev/shm", os.getcwd())],
            "secrets": secret, "processes": [os.getpid(), victim.pid], "victim": victim.pid,
            "port": tcp.getsockname()[1], "socket": "\0" + mark, "address": ctypes.addressof(buffer),
            "limits": vars(LIMITS), "sleeper": [sleeper, f"{10**6 + secrets.randbelow(10**6)}"],
        }  # fmt: skip


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _with_argument(argument: str) -> list[int]:
    """Processes that were started with this argument."""
    time.sleep(0.05)
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
            if argument.encode() in f.read().split(b"\0") and _runs(int(pid)):
                found.append(int(pid))
    return found
