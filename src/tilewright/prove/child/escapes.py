"""Ways out of a sealed child, each tried: the attempts, which run in the child, and the parent's look at what came of
them. An attempt that succeeds is harmless: it touches only marks and a victim process that the parent put up.

An attempt returns what it achieved, in words, or raises; where the parent can see for itself, its word decides.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import syscalls
from .transport import Bundle

Target = dict[str, Any]  # what the parent put up: paths, process ids, ports, limits
INTERFACES = {"perf_event_open": (298, 241), "bpf": (321, 280), "io_uring_setup": (425, 425),
               "userfaultfd": (323, 282), "keyctl": (250, 219)}  # fmt: skip


@dataclass(frozen=True)
class Escape:
    """``alone``: in a child of its own, since it takes the child down. ``means``: what is lost if it is open."""

    name: str
    means: str
    attempt: Callable[[Target], str]
    alone: bool = False


class Closed(Exception):
    """The way is closed; the message says how it showed."""


class Role:
    """Serves ``try``: one attempt by name."""

    def __init__(self, others: list[Any]):
        pass

    def on_try(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Answers ``{"open": bool, "how": str}``."""
        attempt = next(e.attempt for e in ESCAPES if e.name == head["name"])
        try:
            return {"open": True, "how": attempt(head["target"])}, []
        except (Closed, OSError, MemoryError) as e:
            return {"open": False, "how": str(e) or type(e).__name__}, []


# ------------------------------------------------------------------------------------------------------ attempts


def write_home(t: Target) -> str:
    with open(t["home_mark"], "w") as f:
        f.write("x")
    return f"wrote {t['home_mark']}"


def write_outside(t: Target) -> str:
    return _first(t["outside_marks"], lambda path: _write(path))


def _write(path: str) -> str:
    with open(path, "w") as f:
        f.write("x")
    return f"wrote {path}"


def read_secrets(t: Target) -> str:
    if not t["secrets"]:
        raise Closed("nothing to try: no dot entries in the home directory")
    return _first(t["secrets"], _look)


def _look(path: str) -> str:
    if os.path.isdir(path):
        os.listdir(path)
    else:
        with open(path, "rb") as f:
            f.read(1)
    return f"read {path}"


def read_environment(t: Target) -> str:
    return _first(_foreign(t), lambda p: _read_proc(p, "environ"))


def read_memory(t: Target) -> str:
    def one(pid: int) -> str:
        with open(f"/proc/{pid}/maps") as f:
            first = f.readline().split("-")[0]
        if not first:
            raise Closed(f"the memory map of process {pid} reads as empty")
        start = int(first, 16)
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        try:
            os.pread(fd, 16, start)
        finally:
            os.close(fd)
        return f"read the memory of process {pid}"

    return _first(_foreign(t), one)


def read_memory_by_call(t: Target) -> str:
    class Vec(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    def one(pid: int) -> str:
        here, there = ctypes.create_string_buffer(8), Vec(t["address"], 8)
        ours = Vec(ctypes.addressof(here), 8)
        got = syscalls.libc.process_vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(there), 1, 0)
        syscalls.checked(got, "process_vm_readv")
        return f"read the memory of process {pid}"

    return _first(_foreign(t), one)


def _read_proc(pid: int, name: str) -> str:
    with open(f"/proc/{pid}/{name}", "rb") as f:
        f.read(16)
    return f"read /proc/{pid}/{name}"


def _foreign(t: Target) -> list[int]:
    """Processes that are not this one: those the parent named (if they are no number of ours) and all in sight."""
    seen = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    return [p for p in dict.fromkeys([*t["processes"], *seen]) if p != os.getpid()]


def trace(t: Target) -> str:
    """The victim only, and without stopping it: a stopped parent could not tell."""
    syscalls.checked(syscalls.libc.ptrace(0x4206, t["victim"], None, None), "ptrace")
    return "traces a process outside"


def kill_others(t: Target) -> str:
    for pid in t["processes"]:
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                os.kill(pid, 0)
                return f"may signal process {pid}"
    os.kill(t["victim"], signal.SIGKILL)
    return "killed a process outside"


def network(t: Target) -> str:
    return _first([socket.AF_INET, socket.AF_INET6, socket.AF_UNIX], lambda family: _connect(family, t))


def _connect(family: int, t: Target) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(1)
        host: dict[int, Any] = {socket.AF_INET: ("127.0.0.1", t["port"]), socket.AF_INET6: ("::1", t["port"])}
        s.connect(host.get(family) or t["socket"])
    return "connected to a listener outside"


def listen(t: Target) -> str:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
    return "opened a port"


def inherited(t: Target) -> str:
    extra = sorted(int(f) for f in os.listdir("/proc/self/fd") if int(f) > 2)
    named = {fd: _link(fd) for fd in extra}
    ours = [fd for fd, to in named.items() if to.startswith("socket:")][:1]  # the channel to the parent
    left = {fd: to for fd, to in named.items() if fd not in ours and to and not to.startswith("/proc/")}
    if not left:
        raise Closed("only its own channel is open")
    return f"holds {left}"


def _link(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def become_root(t: Target) -> str:
    if os.getuid() == 0:
        return "it is root"
    os.setresuid(0, 0, 0)
    return "became root"


def regain_privileges(t: Target) -> str:
    syscalls.checked(syscalls.libc.unshare(0x10000000), "unshare")
    return "made a user namespace, with every privilege in it"


def mount(t: Target) -> str:
    syscalls.mount("none", _scratch(), "tmpfs", 0)
    return "mounted a file system"


def kernel_interfaces(t: Target) -> str:
    column = 0 if os.uname().machine == "x86_64" else 1

    def one(name: str) -> str:
        got = syscalls.libc.syscall(ctypes.c_long(INTERFACES[name][column]), *[ctypes.c_long(0)] * 5)
        code = ctypes.get_errno()
        if got < 0 and code in (errno.EPERM, errno.ENOSYS, errno.EACCES):
            raise OSError(code, f"{name}: {os.strerror(code)}")
        return f"{name} is answered"

    return _first(list(INTERFACES), one)


def too_many_processes(t: Target) -> str:
    made: list[int] = []
    try:
        while len(made) < 2 * t["limits"]["processes"]:
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            made.append(pid)
    except OSError as e:
        raise Closed(f"stopped after {len(made)} processes ({e.strerror})") from None
    finally:
        for pid in made:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return f"started {len(made)} processes"


def too_much_memory(t: Target) -> str:
    held: list[mmap.mmap] = []
    step, limit = 64 << 20, t["limits"]["memory_bytes"]
    try:
        while len(held) * step <= limit:
            held.append(mmap.mmap(-1, step, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    except (OSError, MemoryError) as e:
        raise Closed(f"stopped after {len(held) * step >> 20} MiB ({e})") from None
    return f"holds {len(held) * step >> 20} MiB"


def _scratch() -> str:
    return os.environ.get("TMPDIR", "/tmp")


def too_large_file(t: Target) -> str:
    path = os.path.join(_scratch(), "large")
    with open(path, "wb") as f:
        try:
            f.truncate(t["limits"]["file_bytes"] + 1)
        finally:
            os.unlink(path)
    return "made a file beyond the limit"


def fill_scratch(t: Target) -> str:
    """Write more than the scratch folder's size, in files that each are within the limit."""
    left, n = t["limits"]["scratch_bytes"] + (1 << 20), 0
    try:
        while left > 0:
            with open(os.path.join(_scratch(), f"fill{n}"), "wb") as f:
                f.write(b"\1" * (1 << 20))
            left, n = left - (1 << 20), n + 1
    finally:
        for i in range(n + 1):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(_scratch(), f"fill{i}"))
    return f"wrote {n} MiB"


def hang(t: Target) -> str:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
    return "slept"


def outlive(t: Target) -> str:
    """Leave a daemon behind: two forks, a session of its own, another program."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(t["sleeper"][0], t["sleeper"])
        os._exit(0)
    time.sleep(0.2)
    os._exit(0)


def _first(options: Any, attempt: Callable[[Any], str]) -> str:
    """What the first option that works achieved; raises what the last one raised."""
    last: Exception = Closed("nothing there to try")
    for option in options:
        try:
            return attempt(option)
        except (OSError, Closed) as e:
            last = e
    raise last


ESCAPES = (
    Escape("write in the home directory", "changes your files", write_home),
    Escape("write outside its scratch folder", "changes your files", write_outside),
    Escape("read secrets in the home directory", "reads keys and tokens", read_secrets),
    Escape("read another process's environment", "reads tokens", read_environment),
    Escape("read another process's memory", "reads the expected results", read_memory),
    Escape("read another process's memory by system call", "reads the expected results", read_memory_by_call),
    Escape("trace another process", "changes the verdict", trace),
    Escape("signal another process", "ends the check, or your programs", kill_others),
    Escape("connect to the network", "sends out what it reads", network),
    Escape("listen on the network", "can be steered from outside", listen),
    Escape("use inherited descriptors", "forges messages", inherited),
    Escape("become root", "undoes the limits", become_root),
    Escape("make a user namespace", "gains privileges", regain_privileges),
    Escape("mount a file system", "changes what others see", mount),
    Escape("use rarely needed kernel interfaces", "widens the way into the kernel", kernel_interfaces),
    Escape("start too many processes", "stops the machine", too_many_processes, alone=True),
    Escape("take too much memory", "stops the machine", too_much_memory, alone=True),
    Escape("write too large a file", "fills the disk", too_large_file),
    Escape("fill the scratch folder", "fills the disk", fill_scratch),
    Escape("hang and ignore signals", "stops the check", hang, alone=True),
    Escape("leave a daemon behind", "goes on after the check", outlive, alone=True),
)  # fmt: skip
