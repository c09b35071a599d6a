"""Fork server: imports what children need and then only forks. It never runs a tensor operation or user code.

A forked child hangs in OpenMP when its parent ran a parallel region before the fork, so nothing here may compute.
Requests come over descriptor 3: ``spawn`` (with the child's end of a socket pair) and ``kill``; the answers are the
child's pid, and later its exit status.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
from typing import Any

from . import transport, worker

CONTROL = 3


def main() -> None:
    """Serve until the parent's end of the control socket closes; then no child outlives us."""
    control = socket.socket(fileno=CONTROL)
    control.setblocking(True)
    children: dict[int, str] = {}
    wake_r, wake_w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    transport.send(control, {"ready": True, "versions": worker.versions()})
    try:
        while True:
            ready, _, _ = select.select([control, wake_r], [], [])
            if wake_r in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake_r, 4096)
                _reap(control, children)
            if control in ready:
                request, fds = transport.receive(control)
                _handle(control, request, fds, children)
    except transport.ProtocolFault:
        pass
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        os._exit(0)  # nothing to clean up, and native libraries complain at interpreter exit


def _handle(control: socket.socket, request: dict[str, Any], fds: list[int], children: dict[int, str]) -> None:
    if "kill" in request:
        pid = request["kill"]
        if pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            code = worker.enter(request, fds)
        finally:
            os._exit(code)
    children[pid] = request.get("name", "")
    transport.close(fds)
    transport.send(control, {"spawned": pid, "ticket": request["ticket"]})


def _reap(control: socket.socket, children: dict[int, str]) -> None:
    while children:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # whatever the child left running in its group
            del children[pid]
            transport.send(control, {"exited": pid, "status": os.waitstatus_to_exitcode(status)})
