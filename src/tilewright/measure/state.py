"""The machine's state at a measurement: what must be alike for two measurements to be compared, and what explains noise."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from . import cores


def snapshot(device: str = "cpu") -> dict[str, Any]:
    """The state now. On a GPU also clocks, power, temperature and why it throttles, where the driver tells."""
    found: dict[str, Any] = {"load": list(os.getloadavg()), "processors": len(cores.allowed()) or os.cpu_count(),
                             "clocks": clocks(), "stolen": _stolen(), "temperature": _temperature()}  # fmt: skip
    if device.startswith("cuda"):
        from .gpu_state import snapshot as of_gpu

        found["gpu"] = of_gpu(device)
    return found


def versions() -> dict[str, str]:
    """Versions that a time depends on."""
    from .. import __version__

    found = {"tilewright": __version__, "python": sys.version.split()[0], "torch": torch.__version__,
             "kernel": platform.release()}  # fmt: skip
    with contextlib.suppress(ImportError):
        import triton

        found["triton"] = triton.__version__
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    return found


def alike(a: dict[str, Any], b: dict[str, Any]) -> tuple[str, ...]:
    """In what two measurements' machines and versions differ, so that their times don't compare; empty if in nothing."""
    return tuple(sorted(k for k in a.keys() | b.keys() if a.get(k) != b.get(k)))


def cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Hardware")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def last_cache(cpu: int = 0) -> int:
    """Bytes of the largest cache that a core uses; 32 MiB where the system does not say."""
    best = 0
    for index in Path(f"/sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
        with contextlib.suppress(OSError, ValueError):
            text = (index / "size").read_text().strip()
            best = max(best, int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1], 0))
    return best or 32 << 20


def clocks() -> dict[str, Any]:
    """Clock of the cores in MHz, and the governor, where the system tells."""
    found: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("cpu MHz")]
        found["mhz"] = [float(line.partition(":")[2]) for line in lines]
    with contextlib.suppress(OSError):
        found["governor"] = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()
    return found


def _stolen() -> int:
    """Ticks that a hypervisor gave to others since boot."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/stat").read_text().splitlines()[0].split()[8])
    return 0


def _temperature() -> float | None:
    """Degrees Celsius of the hottest zone; None where there is none."""
    found = []
    for zone in Path("/sys/class/thermal").glob("thermal_zone*/temp"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(zone.read_text()) / 1000)
    return max(found, default=None)


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Within: this thread stays on one processor."""
    before = cores.allowed()
    if len(before) > 1:
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        if len(before) > 1:
            os.sched_setaffinity(0, before)
