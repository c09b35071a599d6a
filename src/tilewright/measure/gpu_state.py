"""State of an NVIDIA GPU: clocks, power, temperature, why it throttles, who else uses it. Asked of ``nvidia-smi``."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import Any

FIELDS = {
    "name": "name", "driver": "driver_version", "sm_mhz": "clocks.sm", "memory_mhz": "clocks.mem",
    "max_sm_mhz": "clocks.max.sm", "power_w": "power.draw", "limit_w": "power.limit", "celsius": "temperature.gpu",
    "throttle": "clocks_throttle_reasons.active", "used_mib": "memory.used", "persistence": "persistence_mode",
    "mig": "mig.mode.current", "ecc": "ecc.mode.current",
}  # fmt: skip
IDENTITY = ("name", "driver", "limit_w", "max_sm_mhz", "mig", "ecc")
HARMLESS = 0x1 | 0x2  # idle, and clocks set by the user
SECONDS = 10.0


def snapshot(device: str = "cuda") -> dict[str, Any]:
    """The state now; ``{}`` where the tool is missing. Numbers are numbers, what a card does not tell is left out."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return {}
    command = [
        tool,
        f"--query-gpu={','.join(FIELDS.values())}",
        "--format=csv,noheader,nounits",
        f"--id={index(device)}",
    ]
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode == 0:
            return parse(done.stdout)
    return {}


def index(device: str) -> str:
    """``cuda:1`` → ``1``."""
    return device.partition(":")[2] or "0"


def parse(line: str) -> dict[str, Any]:
    """One line of the tool's answer."""
    found: dict[str, Any] = {}
    for name, text in zip(FIELDS, (x.strip() for x in line.strip().splitlines()[0].split(",")), strict=False):
        if text.startswith("[") or text in ("", "N/A"):
            continue
        found[name] = int(text, 16) if text.startswith("0x") else _number(text)
    return found


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def identity(device: str = "cuda") -> dict[str, Any]:
    """What must be alike for two measurements on a GPU to be compared."""
    now = snapshot(device)
    return {k: now[k] for k in IDENTITY if k in now}


def throttled(state: dict[str, Any]) -> str:
    """Why the card was held back when the state was taken, as the driver's bits; empty if it was not."""
    bits = int(state.get("throttle", 0)) & ~HARMLESS
    names = {0x4: "power cap", 0x8: "hardware slowdown", 0x10: "sync boost", 0x20: "software thermal",
             0x40: "hardware thermal", 0x80: "power brake", 0x100: "display clock"}  # fmt: skip
    return ", ".join(n for b, n in names.items() if bits & b) or (f"0x{bits:x}" if bits else "")
