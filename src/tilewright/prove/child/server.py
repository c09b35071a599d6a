"""Fork server: imports what children need and then only forks. It never runs a tensor operation or user code.

A forked child hangs in OpenMP when its parent ran a parallel region before the fork, so nothing here may compute.
Requests come over descriptor 3: ``spawn`` (with the child's end of a socket pair) and ``kill``; the answers are the
child's pid, and later its exit status. When a child ends, all that it started ends: a process namespace sees to that,
and where there is none this process is the one that orphans fall to, and it kills them.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import shutil
import signal
import socket
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from . import namespaces, preload, syscalls, transport, worker

CONTROL = 3
HEARTBEAT_S = 1.0
FIRST = 2  # children of a check that are waited for; after them there is time
IDLE_S = 0.2
PREFIX = "tw-scratch-"


class Server:
    """The loop and what it knows: children by pid with their scratch folders."""

    def __init__(self, control: socket.socket):
        self.control = control
        self.parent = os.getppid()
        self.children: dict[int, str] = {}
        self.scratch, self.lock = _scratch_root()
        self.count = 0
        self.problems = 0
        self.processes = namespaces.own_processes()
        self.wake_r, wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, _leave)
        with contextlib.suppress(OSError):
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # children of the same user can't look into this process

    def serve(self) -> None:
        """Until the parent goes: it closes its end, or it is no longer our parent (a copy of its end may live on)."""
        rest: Iterator[None] | None = preload.later(lambda: self.problems > 1)
        while os.getppid() == self.parent:
            watched: list[Any] = [self.control, self.wake_r]
            idle = IDLE_S if rest and self.count >= FIRST else HEARTBEAT_S
            ready, _, _ = select.select(watched, [], [], idle)
            if not ready and rest and self.count >= FIRST and next(rest, self) is self:
                rest = None
                gc.freeze()
            if self.wake_r in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self.wake_r, 4096)
                self.reap()
            if self.control in ready:
                request, fds = transport.receive(self.control)
                if "kill" in request:
                    self.kill(request["kill"])
                else:
                    self.spawn(request, fds)

    def spawn(self, request: dict[str, Any], fds: list[int]) -> None:
        """Fork a child for a request."""
        self.count += 1
        self.problems += request["role"] == "reference"
        scratch = os.path.join(self.scratch, str(self.count))
        os.mkdir(scratch, 0o700)
        apart = request.get("sandbox", "best") != "none"
        with namespaces.for_next_child(self.processes) if apart else contextlib.nullcontext():
            pid = os.fork()
            if pid == 0:
                self.become_child(request, fds, scratch)
        self.children[pid] = scratch
        transport.close(fds)
        transport.send(self.control, {"spawned": pid, "ticket": request["ticket"]})

    def become_child(self, request: dict[str, Any], fds: list[int], scratch: str) -> NoReturn:
        """What runs after the fork."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            self.control.close()
            code = worker.enter(request, fds, scratch)
        finally:
            os._exit(code)

    def kill(self, pid: int) -> None:
        """Kill a child and its group; what is left of its descendants falls to us and goes when it is reaped."""
        if pid in self.children:
            for send in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    send(pid, signal.SIGKILL)

    def reap(self) -> None:
        """Take in what ended, tell the parent, and kill what it left behind."""
        ended = _wait_all()
        for pid, status in ended.items():
            if pid in self.children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
                self.sweep(set(self.children) - set(ended))
                _remove(self.children.pop(pid))
                transport.send(self.control, {"exited": pid, "status": os.waitstatus_to_exitcode(status)})

    def sweep(self, living: set[int], seconds: float = 2.0) -> None:
        """Kill every descendant that belongs to no living child. Killing one may orphan more, hence the loop."""
        if os.readlink("/proc/self") != str(os.getpid()):  # another namespace's view: the numbers there are not ours
            return
        deadline = time.monotonic() + seconds
        while strays := [p for p in children_of(os.getpid()) if p not in living and p not in self.children]:
            for pid in strays:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in strays:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                return
            time.sleep(0.001)

    def close(self) -> None:
        """End all children and what they started, and remove the scratch folders."""
        for pid in self.children:
            self.kill(pid)
        deadline = time.monotonic() + 3.0
        while self.children and time.monotonic() < deadline:
            for pid in _wait_all():
                self.children.pop(pid, None)
            time.sleep(0.001)
        self.sweep(set(), 3.0)
        _remove(self.scratch)


def main() -> None:
    """Serve until the parent's end of the control socket closes; then no child outlives us."""
    control = socket.socket(fileno=CONTROL)
    control.setblocking(True)
    here = Server(control)
    gc.collect()
    gc.freeze()
    gc.enable()
    try:
        transport.send(control, {"ready": True, "versions": worker.versions()})
        here.serve()
    except (transport.ProtocolFault, SystemExit):
        pass
    except BaseException:
        traceback.print_exc()  # the exit below would swallow it
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        here.close()
        os._exit(0)  # nothing to clean up, and native libraries complain at interpreter exit


def _leave(*_: object) -> None:
    raise SystemExit


def _wait_all() -> dict[int, int]:
    """Everything that has ended and was not yet waited for: pid to status."""
    ended: dict[int, int] = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended[pid] = status
    return ended


def children_of(pid: int) -> list[int]:
    """Direct children of a process."""
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # a kernel without that file
        return [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent_of(p) == pid]


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def _scratch_root() -> tuple[str, int]:
    """A folder for the children's scratch folders, in which they can't look around, and the lock on it. ``/var/tmp``
    comes first: ``/tmp`` is where problems under test lie, so children may read it. Folders that no server holds a lock
    on, since it was killed, are removed."""
    for base in ("/var/tmp", tempfile.gettempdir()):
        if os.access(base, os.W_OK | os.X_OK):
            for old in Path(base).glob(f"{PREFIX}*"):
                _remove_if_stale(old)
            root = tempfile.mkdtemp(prefix=PREFIX, dir=base)
            os.chmod(root, 0o711)
            lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            return root, lock
    raise OSError(f"no folder for temporary files can be written (tried /var/tmp and {tempfile.gettempdir()})")


def _remove_if_stale(folder: Path) -> None:
    with contextlib.suppress(OSError):
        if time.time() - folder.stat().st_ctime < 60:  # its server may not have locked it yet
            return
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(str(folder))
        finally:
            os.close(fd)


def _remove(folder: str) -> None:
    def unlock(function: Any, path: str, _: Any) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)

    shutil.rmtree(folder, onerror=unlock)
