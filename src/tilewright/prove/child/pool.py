"""The parent's hold on fork servers: start one, spawn children, learn how they ended."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

from ...errors import EnvironmentProblem, InternalError
from . import messages

START_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 10.0
MESSAGE_TIMEOUT_S = 30.0
DIED = "run the command again; 'tilewright doctor' says whether the process comes up at all"
KEEP = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "OPENBLAS_CORETYPE",
        "OPENBLAS_L2_SIZE", "TRITON_CACHE_DIR", "CC", "CXX")  # fmt: skip


class Ended:
    """How a child ended: ``code`` as subprocess has it (negative: signal)."""

    def __init__(self, code: int):
        self.code = code

    def __str__(self) -> str:
        if self.code < 0:
            try:
                name = signal.Signals(-self.code).name
            except ValueError:
                name = f"signal {-self.code}"
            return f"killed by {name}"
        return f"exited with status {self.code}"


class ForkServer:
    """One fork server. ``interpret``: Triton is imported in interpreter mode there (it can't be switched later)."""

    def __init__(self, *, interpret: bool = False):
        self.interpret = interpret
        self.owner = os.getpid()
        self._lost = False  # its connection broke: it is going or gone, whether or not the system says so yet
        self._tickets = itertools.count()
        self._pids: dict[int, int] = {}
        self._ended: dict[int, Ended] = {}
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        env = {k: v for k, v in os.environ.items() if k in KEEP}
        env.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1",
                   TOKENIZERS_PARALLELISM="false", PYTHONHASHSEED="0", CUDA_VISIBLE_DEVICES="",
                   PYTORCH_NVML_BASED_CUDA_CHECK="1")  # asking whether there is CUDA must not start it  # fmt: skip
        if interpret:
            env["TRITON_INTERPRET"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(theirs.fileno()), json.dumps(sys.path)], env=env,
            pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        theirs.close()
        self._control = ours
        self.versions: dict[str, str] = {}
        self._ready = False
        atexit.register(self.close)

    def wait_ready(self) -> None:
        if self._ready:
            return
        try:
            head, _ = messages.receive(self._control, START_TIMEOUT_S)
        except (messages.ProtocolFault, messages.Timeout) as e:
            code = self._process.poll()
            raise EnvironmentProblem(
                f"the process that starts sealed children did not come up ({e or 'no answer'}; exit status {code})",
                remedy="run 'tilewright doctor'",
            ) from None
        self.versions = head.get("versions", {})
        self._ready = True

    def spawn(self, request: dict[str, Any], fds: tuple[int, ...]) -> int:
        """Fork a child; returns its pid."""
        with self._lock:
            self.wait_ready()
            ticket = next(self._tickets)
            try:
                messages.send(self._control, {**request, "ticket": ticket}, fds)
            except messages.ProtocolFault as e:
                raise self._died(e) from None
            self._drain(lambda: ticket in self._pids, START_TIMEOUT_S)
            if ticket not in self._pids:
                raise InternalError("the fork server did not answer")
            return self._pids.pop(ticket)

    def _died(self, e: Exception) -> EnvironmentProblem:
        self._lost = True
        return EnvironmentProblem(f"the process that starts sealed children died: {e}", remedy=DIED)

    @property
    def process_id(self) -> int:
        """Of the server, or of the process that waits for it."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self.owner == os.getpid() and not self._lost and self._process.poll() is None

    def kill(self, pid: int) -> None:
        with self._lock, contextlib.suppress(messages.ProtocolFault):
            messages.send(self._control, {"kill": pid})

    def ended(self, pid: int, timeout: float = 0.0) -> Ended | None:
        """How the child ended, or None if it still runs after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while True:  # in slices, so that other threads can spawn meanwhile
            with self._lock:
                self._drain(lambda: pid in self._ended, min(0.05, timeout))
                if pid in self._ended or time.monotonic() >= deadline:
                    return self._ended.get(pid)

    def _drain(self, done: Any, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while not done():
            if not select.select([self._control], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return
            try:  # once it began, a message is read whole: half of one would garble all that follow
                head, _ = messages.receive(self._control, MESSAGE_TIMEOUT_S)
            except (messages.ProtocolFault, messages.Timeout) as e:
                raise self._died(e) from None
            if "spawned" in head:
                self._pids[head["ticket"]] = head["spawned"]
            elif "exited" in head:
                self._ended[head["exited"]] = Ended(head["status"])

    def close(self) -> None:
        """End the server and with it all children. In a fork of the process that opened it: only let go."""
        atexit.unregister(self.close)
        with contextlib.suppress(OSError):
            self._control.close()
        if self.owner != os.getpid():
            return
        if not self._ready:  # it still imports, and would look at its connection after that only
            self._process.terminate()
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_BOOT = """
import gc, os, sys, json
fd = int(sys.argv[1])
if fd != 3:
    os.dup2(fd, 3, inheritable=False); os.close(fd)
else:
    os.set_inheritable(3, False)
sys.path[:] = json.loads(sys.argv[2])
sys.argv = ["tilewright-child"]
gc.disable()  # looking through what is being imported, again and again, takes a fifth of the time
from tilewright.prove.child import namespaces
namespaces.prepare()  # before torch, which starts threads
from tilewright.prove.child.server import main
main()
"""

_servers: dict[bool, ForkServer] = {}
_servers_lock = threading.Lock()


def server(*, interpret: bool = False) -> ForkServer:
    """The fork server of this process, started at first use, and again after it died."""
    with _servers_lock:
        found = _servers.get(interpret)
        if found is None or not found.alive:
            if found is not None:
                found.close()
            _servers[interpret] = ForkServer(interpret=interpret)
        return _servers[interpret]


def begin() -> None:
    """Start the fork server ahead of need, so that it imports torch while the caller does. Nothing where there is none."""
    if sys.platform == "linux":
        server()


def shutdown() -> None:
    """End all fork servers and with them all children."""
    while _servers:
        _servers.popitem()[1].close()
