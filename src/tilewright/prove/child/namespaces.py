"""Namespaces of a sealed child: its own processes, network, mounts, shared memory and host name.

    fork server ─ outer ─ init (process 1 of the new namespace) ─ worker

The outer process is the one that the server knows: it ends as the worker ended. Init only reaps; when it goes, the
kernel kills all that is left in the namespace, and it goes when the worker or the outer process does. A user needs a
user namespace for this; root needs none, and gives the worker a user id of its own instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import struct
from typing import NoReturn

from . import syscalls

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
FLAGS = {"pid": NEWPID, "net": NEWNET, "mount": NEWNS, "ipc": NEWIPC, "uts": NEWUTS}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
NOBODY = 65534


def unshare() -> list[str]:
    """New namespaces for this process and (processes) its children; their names, none where they are forbidden.
    The process must have one thread."""
    everything = sum(FLAGS.values())
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and syscalls.libc.unshare(everything) == 0:
        return list(FLAGS)
    if syscalls.libc.unshare(everything | NEWUSER) != 0:
        return []
    with contextlib.suppress(OSError):
        _write("/proc/self/setgroups", "deny")
    try:
        _write("/proc/self/uid_map", f"{NOBODY} {uid} 1")
        _write("/proc/self/gid_map", f"{NOBODY} {gid} 1")
    except OSError:
        pass  # as some distributions have it: the namespace is there, and grants nothing
    return ["user", *FLAGS]


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def split() -> None:
    """Fork twice, into the new process namespace; only the worker returns."""
    reader, writer = os.pipe()
    init = os.fork()
    if init:
        os.close(writer)
        _only_keep(reader)
        _mirror(init, reader)
    os.close(reader)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if _hung_up(writer):  # the outer process died before the line above
        os._exit(1)
    mount_proc()
    worker = os.fork()
    if worker:
        _only_keep(writer)
        _reap(worker, writer)
    os.close(writer)
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def mount_proc() -> bool:
    """A view of processes that shows only this namespace's own, where that may be mounted."""
    try:
        syscalls.mount("proc", "/proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
        return True
    except OSError:
        return False


def _hung_up(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLERR)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _only_keep(fd: int) -> None:
    """Close every other descriptor, so that none outlives the worker here, and be invisible to it."""
    os.closerange(0, fd)
    os.closerange(fd + 1, 4096)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def _reap(worker: int, report: int) -> NoReturn:
    """Process 1: wait for the worker, then leave, whereupon the kernel kills the rest of the namespace."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            os.write(report, struct.pack("i", status))
            os._exit(0)


def _mirror(init: int, report: int) -> NoReturn:
    """The outer process: end as the worker ended."""
    told = os.read(report, 4)
    os.waitpid(init, 0)
    status = struct.unpack("i", told)[0] if len(told) == 4 else signal.SIGKILL
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


# -------------------------------------------------------------------------------------------------------- mounts


def own_mounts(scratch: str, size: int, hidden: list[str]) -> bool:
    """Everything read-only, ``scratch`` an empty file system in memory of ``size`` bytes, ``hidden`` folders empty.
    Whether that could be done."""
    try:
        syscalls.mount("none", "/", None, MS_REC | MS_PRIVATE)
        for path in hidden:
            with contextlib.suppress(OSError):
                syscalls.mount("none", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=755")
        read_only()
        syscalls.mount("scratch", scratch, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes=32k,mode=700")
        return True
    except OSError:
        return False


class _Attributes(ctypes.Structure):
    _fields_ = [("set", ctypes.c_uint64), ("clear", ctypes.c_uint64), ("propagation", ctypes.c_uint64),
                ("userns", ctypes.c_uint64)]  # fmt: skip


def read_only() -> None:
    """Make the whole tree of mounts read-only. Raises OSError."""
    wanted = _Attributes(MS_RDONLY | MS_NOSUID, 0, 0, 0)
    try:  # one call since Linux 5.12
        syscalls.syscall(442, -100, b"/", 0x8000, ctypes.byref(wanted), ctypes.sizeof(wanted), what="mount_setattr")
        return
    except OSError as e:
        if e.errno != 38:
            raise
    with open("/proc/self/mountinfo") as f:
        points = [line.split()[4].encode().decode("unicode_escape") for line in f]
    for point in points:
        try:
            syscalls.mount("none", point, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID)
        except OSError:
            if point == "/":
                raise
