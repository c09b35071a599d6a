"""The measurer of a suite: ``bench`` for what can be timed here, and a plain reason for what can't."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..kernel import read as read_kernel
from ..prove.verdict import Verdict
from .measured import HONEST, from_measurement
from .pairing import Entry
from .run import Measured

ON_CPU = ("native", "torch")
"""Languages whose kernels are timed on the CPU; the others are evaluated there, not run."""


@dataclass
class Bench:
    """Calls ``measure.bench`` for one accepted kernel after another. ``hidden``: how many hidden workloads each is tried
    on; ``kinds``: kinds of baselines (None: all)."""

    device: str
    ledger: str | None = None
    baseline: str = HONEST
    quick: bool = False
    hidden: int = 0
    kinds: tuple[str, ...] | None = None
    check_only: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> dict[str, str]:
        """What makes a run another one."""
        return {"device": self.device, "baseline": self.baseline, "quick": str(self.quick), "hidden": str(self.hidden),
                "kinds": str(self.kinds), "check only": str(self.check_only)}  # fmt: skip

    @property
    def checking(self) -> dict[str, Any]:
        """Options of the check that license a measurement here."""
        return {} if self.device == "cpu" else {"device": self.device}

    def __call__(self, entry: Entry, verdict: Verdict) -> Measured:
        if why := self.obstacle(read_kernel(str(entry.kernel)).language):
            return Measured(why=why)
        from ..measure import bench, protocol

        options = bench.Options(device=self.device, hidden=self.hidden, kinds=self.kinds, **self.options)
        rules = protocol.quick() if self.quick else protocol.PROTOCOL
        done = bench.bench(
            str(entry.problem.path), str(entry.kernel), ledger=self.ledger, protocol=rules, options=options
        )
        if done.measurement is None:
            return Measured(why=f"checked again before timing and not accepted: {done.verdict.reason}")
        return from_measurement(done.measurement, self.baseline)

    def obstacle(self, language: str) -> str:
        """Why kernels in ``language`` can't be timed here; empty if they can."""
        if self.check_only:
            return "checked only, as asked"
        if self.device == "cpu" and language not in ON_CPU:
            return f"kernels in {language} are timed on a GPU (--device cuda), and this run is on the CPU"
        return ""
