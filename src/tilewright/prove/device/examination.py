"""One kernel before one task on a device. Gates that look at launches' own text look at the evaluated kernel instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..child.kernel_session import KernelSession
from ..examination import Examination
from ..verdict import GateReport
from .machine import Device
from .session import Compiled, DeviceSession

if TYPE_CHECKING:
    from ..gate import Gate

EVALUATED = frozenset({"masked lanes", "coverage", "races", "bounds", "configurations", "resources", "rounding",
                       "algebra"})  # fmt: skip
WITHOUT_A_GPU = frozenset({"task audit", "compile"})


class DeviceExamination(Examination):
    """As ``Examination``; calls run on ``place``. ``twin``: the same kernel evaluated without the device."""

    def __init__(self, place: Device, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.place, self.compiled = place, Compiled()
        self._twin: Examination | None = None

    @property
    def twin(self) -> Examination:
        """The examination without the device; made at first use."""
        if self._twin is None:
            self._twin = Examination(self.sheet, self.kernel, self.reference, strict=self.strict, seed=self.seed,
                                     limits=self.limits, sandbox=self.sandbox, gate_seconds=self.gate_seconds,
                                     progress=self.progress)  # fmt: skip
            self._twin.tensors = self.tensors
        return self._twin

    def at(self, gate: Gate) -> Examination:
        """Gates that read launches look at the evaluated kernel."""
        return self.twin if gate.name in EVALUATED and self.kernel.language in ("triton", "torch") else self

    def _session(self, *, fresh: bool = False, slot: str = "main") -> KernelSession:
        old = self._kernels.get(slot)
        if old is not None and (fresh or old.dead):
            old.close()
            old = None
        if old is None:
            old = DeviceSession(self.kernel, device=self.place, compiled=self.compiled, limits=self.limits,
                                sandbox=self.sandbox)  # fmt: skip
            old.built = ""  # type: ignore[attr-defined]
            self._kernels[slot] = old
            self.sealed = {**(old.sealed or self.sealed), "device": self.place.name}
        return old

    def close(self) -> None:
        super().close()
        if self._twin is not None:
            self._twin.close()


def untried(exam: Examination, gate: Gate) -> GateReport | None:
    """What a gate says of CUDA C++ on a machine without a GPU, where nothing can be called."""
    if exam.place is not None or exam.kernel.language != "cuda" or gate.name in WITHOUT_A_GPU:
        return None
    role, absent = gate.role(exam), gate.absent(exam)
    if absent:
        return GateReport(name=gate.name, role=role, status="not applicable", reason=absent)
    reason = "CUDA C++ needs a GPU to run: tilewright check --device cuda"
    return GateReport(name=gate.name, role=role, status="inconclusive", reason=reason)
