"""Processors: the parent and the child it times each have their own, where there are two."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator


def allowed() -> set[int]:
    """Processors that this process may use; empty where that can't be asked."""
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def of(pid: int) -> set[int]:
    """Processors that another process may use; empty where that can't be asked."""
    with contextlib.suppress(OSError, AttributeError):
        return set(os.sched_getaffinity(pid))
    return set()


@contextlib.contextmanager
def apart(pid: int) -> Iterator[set[int]]:
    """Within: the child ``pid`` (0: not known) has one processor and this thread the others; gives the child's, empty where
    it could not be had. No garbage is collected meanwhile."""
    before, collects = allowed(), gc.isenabled()
    gc.disable()
    own: set[int] = set()
    try:
        if len(before) > 1 and pid:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(pid, {max(before)})
                own = {max(before)}
                os.sched_setaffinity(0, before - own)
        yield own
    finally:
        if own:
            os.sched_setaffinity(0, before)
        if collects:
            gc.enable()


def waited_ns() -> int:
    """Nanoseconds that this thread was ready to run and did not."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as f:
            return int(f.read().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
