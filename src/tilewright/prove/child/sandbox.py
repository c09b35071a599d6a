"""Seal a child process.

Two lines of defence, each complete enough to stand alone where the other can't be had:

* namespaces (``namespaces.py``): no other processes, no network, a read-only tree, a scratch folder in memory;
* no_new_privs, Landlock (``landlock.py``), a system call filter (``seccomp.py``), a user id of its own under root,
  no capabilities, limits on memory, files, processes and processor time. This works in containers.

``best`` takes what this machine grants and records it; ``require`` refuses to run with less than everything.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import tempfile
from typing import Any

from . import landlock, namespaces, seccomp, syscalls

POLICIES = ("require", "best", "none")
FIRST_UID, UIDS = 61184, 4336  # the range that systemd keeps for short-lived users
OPEN_FILES = 1024
SCRATCH_BYTES = 1 << 30
CPU_FACTOR, CPU_LEAST = 20, 600  # a backstop only: the parent's clock ends a hang
ESSENTIAL = ("pid", "net", "mount", "ipc")


class NotSealed(Exception):
    """``require`` was asked for and something is missing; the message says what."""

    tilewright_kind = "sandbox"
    remedy = "use --sandbox best, or a machine or container that grants these ('tilewright doctor' lists them)"


def enter(
    policy: str, limits: dict[str, Any], *, scratch: str | None = None, reads: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Seal this freshly forked process as far as ``policy`` asks; returns what is on. ``scratch``: an existing folder
    to make private and writable; ``reads``: further folders that may be read. ``limits["device"]``, for a child with a
    GPU: ``environment``, ``local_sockets``, folders within its ``reach`` and measures to go ``without``. Raises
    NotSealed (``require``)."""
    if policy not in POLICIES:
        raise ValueError(f"unknown sandbox policy {policy!r}; known: {', '.join(POLICIES)}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    state: dict[str, Any] = {"policy": policy}
    device = limits.get("device") or {}
    os.environ.update({n: str(v) for n, v in device.get("environment", {}).items()})
    without = device.get("without", ())
    server = os.getppid()
    if policy == "none":
        signal_death(server)
        return state
    scratch = scratch or tempfile.mkdtemp(prefix="tw-scratch-")
    granted = landlock.readable(reads)  # before the user changes: whose home it is decides what is secret
    held = landlock.abi() and "landlock" not in without
    hidden = [] if held else [p for p in landlock.secret_folders() if os.path.isdir(p)]
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # the server is not; /proc/self is closed to such a process
    _first_to_die()
    size = limits.get("scratch_bytes", SCRATCH_BYTES)
    state["namespaces"] = [] if "namespaces" in without else namespaces.enter(scratch, size, hidden)
    own_count = "user" not in without and _drop_user(scratch, state)
    signal_death(server)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # reset by the change of user
    _home(scratch)
    state["rlimits"] = _limit(limits, own_count=own_count)
    _lock(state, scratch, granted, device)
    if policy == "require" and (lacking := missing(state)):
        raise NotSealed(f"the sandbox can't be had in full here; missing: {', '.join(lacking)}")
    return state


def missing(state: dict[str, Any]) -> list[str]:
    """What of the full sandbox a state lacks, in words."""
    have = state.get("namespaces", [])
    gone = [f"{n} namespace" for n in ESSENTIAL if n not in have]
    gone += [] if state.get("no_new_privs") else ["no_new_privs"]
    gone += [] if state.get("landlock") else ["Landlock"]
    gone += [] if state.get("seccomp") else ["system call filter (seccomp)"]
    return gone


def signal_death(parent: int) -> None:
    """Die when ``parent`` does."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _first_to_die() -> None:
    """When memory runs out the system should take this process, not the user's."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as f:
        f.write("800")


def _drop_user(scratch: str, state: dict[str, Any]) -> bool:
    """Give up the user's privileges. Root becomes a user that nothing else is (so that its processes can be counted and
    no other can be signalled) and keeps the right to read, which Landlock then narrows; without it a kernel under
    ``/root`` could not be loaded. Anyone else enters a user namespace. Whether the child's processes are counted
    apart from all others."""
    reading = (syscalls.CAP_DAC_READ_SEARCH,) if os.geteuid() == 0 else ()
    own = os.geteuid() == 0 and _own_user(scratch)
    if not own and "mount" in state["namespaces"] and namespaces.enter_user_namespace(*[namespaces.NOBODY] * 2):
        own, reading = True, ()
        state["namespaces"].append("user")
    with contextlib.suppress(OSError):
        syscalls.drop_bounding_set(*reading)
    try:
        syscalls.set_capabilities(*reading)
        for c in reading:
            syscalls.prctl(syscalls.PR_CAP_AMBIENT, 2, c)
    except OSError:
        with contextlib.suppress(OSError):
            syscalls.set_capabilities()
    state["uid"] = os.getuid()
    return own


def _own_user(scratch: str) -> bool:
    number = os.stat("/proc/self/ns/pid").st_ino if os.getpid() == 1 else os.getpid()
    uid = FIRST_UID + number % UIDS
    syscalls.prctl(syscalls.PR_SET_KEEPCAPS, 1)
    try:
        os.chown(scratch, uid, uid)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        return True
    except OSError:  # a container that maps only root
        return False


def _home(scratch: str) -> None:
    for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"):
        os.environ[name] = scratch
    tempfile.tempdir = scratch


def _limit(limits: dict[str, Any], *, own_count: bool) -> dict[str, int]:
    """Set the limits, each on top of what the process holds already; returns them as asked."""
    asked: dict[str, int] = {}
    seconds = int(max(CPU_LEAST, CPU_FACTOR * limits.get("seconds", 0)))
    wanted = {"cpu": (resource.RLIMIT_CPU, seconds, seconds)}
    wanted["open_files"] = (resource.RLIMIT_NOFILE, OPEN_FILES, OPEN_FILES)
    if memory := limits.get("memory_bytes"):
        mapped, data = _held()
        wanted["memory"] = (resource.RLIMIT_DATA, memory, data + memory)
        if not any(e.startswith("nvidia") for e in os.listdir("/dev")):  # CUDA reserves address space by the terabyte
            wanted["address_space"] = (resource.RLIMIT_AS, 2 * memory, mapped + 2 * memory)
    if file := limits.get("file_bytes"):
        wanted["file"] = (resource.RLIMIT_FSIZE, file, file)
    if processes := limits.get("processes"):
        wanted["processes"] = (resource.RLIMIT_NPROC, processes, processes + (0 if own_count else _tasks_of_user()))
    for name, (number, ask, value) in wanted.items():
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(number, (value, value))
            asked[name] = ask
    return asked


def _held() -> tuple[int, int]:
    """Bytes of address space and of private writable memory that this process has."""
    fields = {}
    with open("/proc/self/status") as f:
        for line in f:
            name, _, rest = line.partition(":")
            fields[name] = rest.split()
    return int(fields["VmSize"][0]) << 10, int(fields["VmData"][0]) << 10


def _tasks_of_user() -> int:
    """Processes and threads of this user, which all count against its limit."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count


def _lock(state: dict[str, Any], scratch: str, granted: list[str], device: dict[str, Any]) -> None:
    """The measures that can't be taken back. ``device``: what a child with a GPU is given; its driver binds a local
    socket."""
    without = device.get("without", ())
    state.update(no_new_privs=False, landlock=0, seccomp=False)
    with contextlib.suppress(OSError):
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        state["no_new_privs"] = True
    with contextlib.suppress(OSError):
        if "landlock" not in without:
            state["landlock"] = landlock.restrict(granted, [scratch], also=device.get("reach", ()))
    if seccomp.supported() and "seccomp" not in without:
        held = "pid" in state["namespaces"] or state["landlock"] >= 6
        with contextlib.suppress(OSError):
            local = bool(device.get("local_sockets"))
            seccomp.install(seccomp.program(signals_to=None if held else os.getpid(), local_sockets=local))
            state["seccomp"] = True
