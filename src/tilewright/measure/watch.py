"""What the parent itself sees of a child that it times: threads, helper processes, memory, whether it had to wait."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")
THREADS, PARENT = 17, 1  # fields of /proc/PID/stat after the name


def locate(pid: int, server: int, proc: Path = PROC) -> int | None:
    """The process id, as this process sees it, of the child that its server calls ``pid``. A server without privileges
    lives in a process namespace of its own, below a process that waits for it. None where it can't be found."""
    if _field(proc / str(pid) / "stat", PARENT) == str(server):
        return pid
    for middle in _children(proc, server):
        for found in _children(proc, middle):
            if str(pid) in _inside(proc / str(found) / "status")[1:]:
                return found
    return None


def _children(proc: Path, pid: int) -> list[int]:
    with contextlib.suppress(OSError, ValueError):
        return [int(x) for x in (proc / str(pid) / "task" / str(pid) / "children").read_text().split()]
    return []


def _field(stat: Path, which: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()[which]
    return ""


def _inside(status: Path) -> list[str]:
    """The ids that a process has in each process namespace it is in, the outermost first."""
    with contextlib.suppress(OSError):
        for line in status.read_text().splitlines():
            if line.startswith("NSpid:"):
                return line.split()[1:]
    return []


class Watched:
    """A child by its process id at its server. ``seen`` is False where this machine hides it."""

    def __init__(self, pid: int, server: int):
        found = locate(pid, server)
        self.seen = found is not None
        self.pid = found or 0
        self._stat = self._open(f"/proc/{found}/stat")
        self._wait = self._open(f"/proc/{found}/schedstat")
        self.threads_at_rest = self.threads() if self.seen else 0

    def threads(self) -> int:
        """Threads of the child now; 0 where that can't be seen."""
        return int(self._fields()[THREADS]) if self._stat >= 0 else 0

    def helpers(self) -> int:
        """Processes that the child has started and that still live."""
        with contextlib.suppress(OSError):
            return len(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())
        return 0

    def waited_ns(self) -> int:
        """Nanoseconds that the child was ready to run and did not."""
        if not self.seen or self._wait < 0:
            return 0
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(os.pread(self._wait, 200, 0).split()[1])
        return 0

    def memory(self) -> tuple[int, int]:
        """Bytes resident now, and the most there have been since the last ``forget_peak``."""
        found = {}
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                name, _, rest = line.partition(":")
                if name in ("VmRSS", "VmHWM"):
                    found[name] = int(rest.split()[0]) << 10
        return found.get("VmRSS", 0), found.get("VmHWM", 0)

    def forget_peak(self) -> bool:
        """Set the peak back to what is resident now. Whether this machine allows it."""
        try:
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        except OSError:
            return False
        return True

    def busy(self) -> str:
        """What the child does beside waiting for a call, in words; empty if nothing."""
        if not self.seen:
            return ""
        extra = self.threads() - self.threads_at_rest
        if extra > 0:
            return f"{extra} thread{'s' * (extra > 1)} running beside the timed calls"
        helpers = self.helpers()
        return f"{helpers} process{'es' * (helpers > 1)} running beside the timed calls" if helpers else ""

    def close(self) -> None:
        for fd in (self._stat, self._wait):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _fields(self) -> list[str]:
        try:
            return os.pread(self._stat, 2000, 0).decode(errors="replace").rpartition(")")[2].split()
        except OSError:
            return ["?"] * (THREADS + 1)

    @staticmethod
    def _open(path: str) -> int:
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return -1
