"""Which device a check runs on, and what its children are given of it.

``RLIMIT_AS`` can't hold a process that uses CUDA: the driver reserves address space by the terabyte. Host memory is held
by ``RLIMIT_DATA``, device memory by the share that torch's allocator may take (a candidate that calls ``cudaMalloc`` by
itself gets past that; ``free_bytes`` is asked after each gate, and a child's memory goes when the child does).
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import EnvironmentProblem, UserError
from ..child.session import Limits, Session, trouble

DEVICES = ("cpu", "cuda")
NODES = ("/dev/nvidiactl", "/dev/dxg")
SHARE = 0.45  # of device memory; a check has two children on it at times
HOST_BYTES = 48 << 30
SECONDS = 600.0
LADDER = ((), ("+/dev",), ("+/dev", "+/proc"), ("landlock",), ("user",), ("seccomp",), ("namespaces",),
          ("namespaces", "landlock"), ("namespaces", "user", "seccomp", "landlock"))  # fmt: skip


@dataclass(frozen=True)
class DeviceLimits(Limits):
    """Limits of a child with a GPU. ``device``: ``environment``, ``local_sockets``, measures to go ``without``."""

    device: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """A device that was started once in a sealed child. ``without``: measures of the seal that its driver does not
    start under here; ``+FOLDER``: one whose files it must read and write."""

    kind: str
    name: str
    capability: tuple[int, int]
    memory: int = 0
    without: tuple[str, ...] = ()
    visible: str = "0"

    @property
    def target(self) -> str:
        """As compilers call it, and the class of device that a verdict holds for: ``sm_90``."""
        return f"sm_{self.capability[0]}{self.capability[1]}" if self.kind == "cuda" else self.kind

    def limits(self, limits: Limits) -> DeviceLimits:
        """``limits`` for a child on this device."""
        return given(limits, self.kind, self.without, self.visible)


def given(limits: Limits, kind: str, without: tuple[str, ...], visible: str) -> DeviceLimits:
    """What a child on a device may use."""
    environment = {"CUDA_VISIBLE_DEVICES": visible, "TW_DEVICE": kind, "TW_DEVICE_SHARE": SHARE,
                   "PYTORCH_NVML_BASED_CUDA_CHECK": "0", "CUDA_MODULE_LOADING": "LAZY"}  # fmt: skip
    device = {"environment": environment, "local_sockets": True,
              "without": [w for w in without if not w.startswith("+")],
              "reach": [w[1:] for w in without if w.startswith("+")]}  # fmt: skip
    plain = {f: getattr(limits, f) for f in Limits.__dataclass_fields__}
    return replace(DeviceLimits(**plain, device=device), memory_bytes=max(limits.memory_bytes, HOST_BYTES),
                   processes=max(limits.processes, 256))  # fmt: skip


def named(device: str) -> str:
    """The name of a device option, checked. Raises UserError."""
    if device not in DEVICES:
        raise UserError(f"device is '{device}'", remedy=f"use one of {', '.join(DEVICES)}")
    return device


def runs_there(language: str, path: str) -> None:
    """Raises UserError for kernels that no device runs."""
    if language == "native":
        raise UserError("a kernel in C runs on the CPU", where=path, remedy="leave out --device cuda")


@functools.cache
def started(kind: str, sandbox: str) -> Device:
    """The device, started once for all checks of this process."""
    return start(kind, sandbox=sandbox)


def start(kind: str = "cuda", *, sandbox: str = "best", limits: Limits | None = None) -> Device:
    """Start the device in a sealed child and say what it is. Under ``best`` the strictest seal that the driver starts
    under is taken. Raises EnvironmentProblem, with the driver's words, where there is no device."""
    if kind == "cuda" and not any(os.path.exists(n) for n in NODES):
        raise EnvironmentProblem(
            "no CUDA device on this machine (there is no /dev/nvidiactl)",
            remedy="leave out --device cuda: Triton kernels are evaluated, and CUDA C++ is compiled, without a GPU",
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    said: list[str] = []
    for without in LADDER if sandbox == "best" else LADDER[:1]:
        found = _hello(kind, sandbox, given(limits or Limits(), kind, without, visible))
        if isinstance(found, dict):
            major, minor = found["capability"]
            return Device(kind, str(found["name"]), (int(major), int(minor)), int(found["memory"]), without, visible)
        said.append(f"{', '.join(without) or 'full seal'}: {found}")
    raise EnvironmentProblem("the CUDA device does not start in a sealed child", detail="\n".join(said),
                             remedy="look at the driver's words above; does 'nvidia-smi' work?")  # fmt: skip


def _hello(kind: str, sandbox: str, limits: DeviceLimits) -> dict[str, Any] | str:
    """What the device says of itself, or why it does not start."""
    try:
        with Session("device", limits=limits, sandbox=sandbox, name="device") as s:
            answer, _ = s.ask_raw({"do": "hello"}, seconds=120.0)
            return str(trouble(answer["error"]).message) if "error" in answer else answer
    except EnvironmentProblem as e:
        return e.what
