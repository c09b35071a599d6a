"""The parent's side of a kernel on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ...kernel import Kernel
from ...task.calling import Calling
from ..child.kernel_session import KernelSession
from ..child.session import Inputs, Outcome, Session, Trouble, trouble
from ..child.transport import Bundle
from .machine import SECONDS, Device

OPTIONS = ("mode", "only", "salt", "stream", "graph", "far", "zones")


class Compiled:
    """What children of one kernel compiled so far, shared by the sessions of an examination."""

    def __init__(self) -> None:
        self.files: dict[str, torch.Tensor] = {}


class DeviceSession(KernelSession):
    """The candidate in its sealed child, on a device. ``call`` takes ``stream``, ``graph`` and ``far`` beside what a
    call on the CPU takes; ``order`` and ``binary`` mean nothing here."""

    def __init__(self, kernel: Kernel, *, device: Device, compiled: Compiled | None = None, **options: Any):
        self.kernel, self.device, self.compiled = kernel, device, compiled or Compiled()
        self.engine, self.evaluator, self._held = "device", None, None
        self.more: dict[str, Any] = {}
        self.found: list[dict[str, Any]] = []
        self.harvested = False
        options["reads"] = (*options.get("reads", ()), str(Path(kernel.path).resolve().parent))
        if options.get("limits") is not None:
            options["limits"] = device.limits(options["limits"])
        Session.__init__(self, "device", name="kernel", **options)
        self.load_trouble = self._load()

    def _load(self) -> Trouble | None:
        sheet = {"path": str(Path(self.kernel.path).resolve()), "text": self.kernel.text, "entry": self.kernel.entry}
        bundles = (Bundle.pack(self.compiled.files),) if self.compiled.files else ()
        answer, _ = self.ask_raw({"do": "load", "language": self.kernel.language, "kernel": sheet}, bundles,
                                 seconds=SECONDS)  # fmt: skip
        return trouble(answer["error"]) if "error" in answer else None

    def build(self, how: Calling, state: Mapping[str, torch.Tensor]) -> Trouble | None:
        """Make the callable; a kernel may be compiled for it."""
        usual, self.limits = self.limits, replace(self.limits, seconds=SECONDS)
        try:
            return super().build(how, state)
        finally:
            self.limits = usual

    def call(self, inputs: Inputs, **options: Any) -> Outcome:
        """One call on the device."""
        self.more = {n: options[n] for n in OPTIONS if n in options}
        self.more.setdefault("zones", options.get("guard", 0xFF))
        known = {n: v for n, v in options.items() if n not in ("stream", "graph", "far", "zones")}
        outcome = super().call(inputs, **known)
        outcome.launches = self.found
        if outcome.trouble is not None and outcome.trouble.type == "DeviceFault":  # its context is lost
            self.server.kill(self.pid)
            self.dead = outcome.trouble
        return outcome

    def ask_raw(self, head: dict[str, Any], bundles: tuple[Bundle, ...] = (), **options: Any) -> Any:
        """As ever; a call carries the options of this one."""
        return super().ask_raw({**head, **self.more} if head.get("do") == "call" else head, bundles, **options)

    def _outcome(self, answer: dict[str, Any], *rest: Any) -> Outcome:
        seen = super()._outcome(answer, *rest)
        self.found = list(answer.get("launches", []))
        if seen.ok:
            zones = tuple((str(z), int(n)) for z, n in answer.get("zones", ()))
            seen.damage = (*seen.damage, *zones)
            seen.seen["left"] = str(answer.get("left", ""))
        return seen

    def close(self) -> None:
        if not self.harvested and self.dead is None:
            self.harvest()
        super().close()

    def harvest(self) -> None:
        """Keep what this child compiled for those to come."""
        answer, out = self.ask_raw({"do": "harvest"}, seconds=30.0)
        if "error" not in answer and out:
            self.compiled.files.update(out[0].tensors(copy=True))
            self.harvested = bool(self.compiled.files)
            for b in out:
                b.close()
