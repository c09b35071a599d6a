"""Seal a child process."""

from __future__ import annotations

import resource
import signal
from typing import Any


def enter(policy: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Seal this process as far as ``policy`` asks; returns what was closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cap := limits.get("file_bytes"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (cap, cap))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return {"policy": policy}
