"""Namespaces of a sealed child: its own processes, network, mounts, shared memory, host name and users.

A process namespace is entered by fork, the others by the child itself. So the server takes a new process namespace for
its children, forks, and goes back to its own (``for_next_child``): the child is process 1 of a fresh one, one fork is
enough, and when it ends, however it ends, the kernel kills all that it started. A user needs privileges over a user
namespace to do that, which only a process with one thread can enter: the server does so before it imports torch
(``prepare``). Root needs none, and gives each child a user id of its own instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from typing import NoReturn

from . import syscalls

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
FLAGS = {"net": NEWNET, "mount": NEWNS, "ipc": NEWIPC, "uts": NEWUTS}
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
NOBODY = 65534


# ------------------------------------------------------------------------------------------------------- the server


def prepare() -> None:
    """Gain the privileges to make namespaces, where that takes a user namespace and one is granted. Call it while the
    process has one thread; it may return in a child of the calling process, which then only waits. Tried first in a
    process that is thrown away: some systems grant a user namespace without any privilege in it, and there is no way
    back out of one."""
    if allowed():
        return
    ids = os.geteuid(), os.getegid()
    if not _trial(lambda: enter_user_namespace(*ids) and _unshare(NEWPID | sum(FLAGS.values()))):
        return
    enter_user_namespace(*ids)
    _unshare(NEWPID | NEWNS)  # going back to a process namespace takes privileges over it, so the server needs its own
    caller = os.getppid()
    pid = os.fork()
    if pid:
        _stand_by(pid, caller)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    with contextlib.suppress(OSError):
        syscalls.mount("none", "/", None, MS_REC | MS_PRIVATE)
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _stand_by(server: int, caller: int) -> NoReturn:
    """Wait for the server, which can't see its caller from inside, and end as it ends or when the caller has gone."""
    os.closerange(3, 256)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == caller:
        signal.sigtimedwait({signal.SIGCHLD}, 1.0)
        pid, status = os.waitpid(server, os.WNOHANG)
        if pid:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    os._exit(1)


def allowed() -> bool:
    """Whether this process may make namespaces as it stands."""
    return _trial(lambda: _unshare(NEWPID | sum(FLAGS.values())))


def _trial(attempt: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if attempt() else 1
        finally:
            os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def _unshare(flags: int) -> bool:
    return syscalls.libc.unshare(flags) == 0


def enter_user_namespace(inside_uid: int, inside_gid: int) -> bool:
    """A user namespace in which this user alone exists, under the given ids. Whether it was had."""
    uid, gid = os.geteuid(), os.getegid()
    if not _unshare(NEWUSER):
        return False
    try:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{inside_uid} {uid} 1")
        _write("/proc/self/gid_map", f"{inside_gid} {gid} 1")
    except OSError:
        return False
    return True


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def own_processes() -> int:
    """A descriptor of this process's own process namespace, to go back to."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def for_next_child(own: int) -> Iterator[None]:
    """Fork inside this context: the child is process 1 of a new namespace, where that is allowed."""
    server = os.getpid()
    fresh = _unshare(NEWPID)
    try:
        yield
    finally:
        if os.getpid() == server and fresh:
            syscalls.checked(syscalls.libc.setns(own, NEWPID), "setns")


# -------------------------------------------------------------------------------------------------------- the child


def enter(scratch: str, size: int, hidden: list[str]) -> list[str]:
    """The other namespaces, for a child that already has its processes to itself; the names of all it has."""
    if os.getpid() != 1:
        return []
    names = ["pid"]
    if not _unshare(sum(FLAGS.values())):
        return names
    names += [n for n in FLAGS if n != "mount"]
    if own_mounts(scratch, size, hidden):
        names.append("mount")
    return names


def own_mounts(scratch: str, size: int, hidden: list[str]) -> bool:
    """Everything read-only, ``scratch`` an empty file system in memory of ``size`` bytes, ``hidden`` folders empty,
    and only our own processes in ``/proc``. Whether that could be done; a container may forbid the last, and then
    Landlock and the user id keep other processes out of reach."""
    try:
        syscalls.mount("none", "/", None, MS_REC | MS_PRIVATE)
        for path in hidden:
            with contextlib.suppress(OSError):
                syscalls.mount("none", path, "tmpfs", MS_NOSUID | MS_NODEV, "size=4k,mode=755")
        read_only()
        with contextlib.suppress(OSError):  # after the line above: a user namespace is set up by writing there
            syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
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
