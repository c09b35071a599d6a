"""What the parent itself sees of a child that it times: threads, helper processes, memory, whether it had to wait."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

THREADS, PARENT = 17, 1  # fields of /proc/PID/stat after the name


class Watched:
    """A child by its process id. ``seen`` is False where this machine hides it (another process namespace)."""

    def __init__(self, pid: int, server: int):
        self.pid = pid
        self._stat = self._open(f"/proc/{pid}/stat")
        self._wait = self._open(f"/proc/{pid}/schedstat")
        self.seen = self._stat >= 0 and self._fields()[PARENT] == str(server)
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
