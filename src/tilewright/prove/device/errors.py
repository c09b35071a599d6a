"""What the CUDA runtime still has to say after a call: an error of a launch that nobody asked about."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch

CANDIDATES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so")


@functools.cache
def runtime() -> Any:
    """The runtime library that this process uses, or None."""
    names = [_loaded("libcudart")] if _loaded("libcudart") else []
    for name in (*names, *CANDIDATES):
        try:
            library = ctypes.CDLL(name)
            library.cudaGetErrorString.restype = ctypes.c_char_p
            return library
        except OSError:
            continue
    return None


def _loaded(stem: str) -> str:
    """Path of a library that is mapped here already."""
    with open("/proc/self/maps") as f:
        for line in f:
            path = line.rstrip("\n").split(" ", 5)[-1].strip()
            if stem in path.rpartition("/")[2]:
                return path
    return ""


def forget() -> None:
    """Clear what an earlier call left."""
    if (library := runtime()) is not None:
        library.cudaGetLastError()


def pending() -> str:
    """Name of the error that the last launch left behind and that nobody took; empty if there is none."""
    library = runtime()
    code = library.cudaGetLastError() if library is not None else 0
    return library.cudaGetErrorString(code).decode() if code else ""


class DeviceFault(RuntimeError):
    """The device reported a fault after the call: an illegal access, a trap, a launch that failed."""

    tilewright_kind = "launch"


STICKY = ("illegal memory access", "misaligned address", "unspecified launch failure", "device-side assert",
          "illegal instruction", "invalid program counter", "hardware stack error", "invalid address space",
          "launch timed out")  # fmt: skip


def is_fault(e: BaseException) -> bool:
    """Whether an exception tells of a fault on the device, after which its context is lost."""
    return isinstance(e, RuntimeError) and any(s in str(e) for s in STICKY)


def synchronise(device: torch.device) -> None:
    """Wait for all streams. Raises DeviceFault with the driver's words."""
    if device.type != "cuda":
        return
    try:
        torch.cuda.synchronize()
    except RuntimeError as e:
        raise fault(e) from None


def fault(e: BaseException) -> DeviceFault:
    """A device's fault in the driver's words."""
    return DeviceFault(_first(str(e)).removeprefix("CUDA error: "))


def _first(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip()), "the device reported a fault")
