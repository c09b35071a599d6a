"""Two traces on one set of inputs: do they compute the same function?

* in the field: on random residues, equal formulas agree; different ones agree with a probability near the field's
  inverse (``ir/domains/field.py``);
* in real arithmetic: float64 without the roundings of the kernel's dtypes, on given inputs, and by gradient ascent from
  them towards the largest difference.

The difference in real arithmetic is measured against what float64 itself loses there: both programs are evaluated once
more on inputs moved by one unit in the last place, and how far they move is the noise below which nothing is said.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import Unsupported
from ..ir.domains.base import Domain
from ..ir.domains.bound import Bound
from ..ir.torch_ops.context import TORCH_FLOATS, Value
from ..ir.values import struct
from .branches import Sites, flip
from .child.device_source import DeviceSource
from .element import Elements
from .number_systems import Draw, Numbers, Watching
from .replay_trace import Plan, Replay

NEAR = 1e-13
NOISE, LOST = 64.0, 2.0
SLACK, COARSE = 4096.0, 0.02
MUTE = 0.5
Sides = tuple[dict[str, Value], dict[str, Value]]


@dataclass
class Agreement:
    """``status``: ``equal``, ``different``, ``unsupported``. ``output``, ``index``, ``count`` of ``total``: where they
    differ; ``where``: the line that wrote it (or that is unsupported); ``assumptions`` and ``constants`` from the
    ledger."""

    status: str
    reason: str = ""
    where: str = ""
    output: str = ""
    index: list[int] = field(default_factory=list)
    count: int = 0
    total: int = 0
    draws: int = 0
    conditions: list[str] = field(default_factory=list)
    assumptions: list[list[str]] = field(default_factory=list)
    constants: list[list[Any]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    work: int = 0


@dataclass
class Difference:
    """On one set of inputs: ``relative`` is the largest |kernel − reference| over the reference (or the output's scale,
    where that is larger) that stands out of float64's noise; ``ratio`` the largest in units of the dtype's rounding;
    ``kernel`` and ``reference`` the two numbers there; ``unsteady``: integers that differ, but turn with the inputs' last
    bit."""

    relative: float = 0.0
    ratio: float = 0.0
    output: str = ""
    index: list[int] = field(default_factory=list)
    kernel: float = 0.0
    reference: float = 0.0
    where: str = ""
    start: int = 0
    compared: int = 0
    unsteady: int = 0


class Pair:
    """A kernel's trace and a reference's. ``inputs``: those of the traced calls; integers among them stay as they
    are."""

    def __init__(self, kernel: Mapping[str, Any], reference: Mapping[str, Any], inputs: Mapping[str, torch.Tensor],
                 sources: DeviceSource | None, seconds: float | None = None):  # fmt: skip
        self.kernel, self.reference = kernel, reference
        self.inputs, self.sources, self.seconds = dict(inputs), sources, seconds
        self.stores: dict[str, str] = {}
        self.plans: dict[int, Plan] = {}
        self.conditions: set[str] = set()
        self.work = 0

    def values(self, domain: Domain, floats: Mapping[str, Any]) -> dict[str, Value]:
        return {n: Value(floats[n], t.dtype) if t.dtype in TORCH_FLOATS else Value(t, t.dtype)
                for n, t in self.inputs.items()}  # fmt: skip

    def both(self, domain: Domain, floats: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, Value]]:
        """Results of kernel and reference in one domain. Raises Unsupported where either can't be followed."""
        given = self.values(domain, floats)
        theirs = self.run(self.kernel, domain, given, True)
        try:
            ours = self.run(self.reference, domain, given, False)
        except Unsupported as e:
            raise Unsupported(f"the reference: {e.what}", where=e.where) from e
        missing = set(theirs) ^ set(ours)
        if missing:
            raise Unsupported(f"results that only one side has: {', '.join(sorted(missing))}")
        odd = next((n for n in ours if theirs[n].shape != ours[n].shape), None)
        if odd is not None:
            raise Unsupported(f"'{odd}' has other sizes than the reference's")
        return theirs, ours

    def run(self, trace: Mapping[str, Any], domain: Domain, given: Mapping[str, Value], mine: bool) -> dict[str, Value]:
        wanted = {n: given[n] for n in trace["inputs"] if n in given}
        replay = Replay(domain, self.sources if mine else None, self.seconds, self.plans)
        out = replay.run(trace, wanted)
        self.conditions |= replay.conditions
        if mine:
            self.stores = {n: replay.stores.get(p[0], "") for n, p in trace["outputs"].items()}
        return out

    def elements(self, inputs: Mapping[str, torch.Tensor], alone: bool = False, seconds: float = math.inf) -> Elements:
        """Both (``alone``: the kernel on both sides) as terms on one set of inputs, to be enclosed within ``seconds``.
        Raises Unsupported where either can't be followed."""
        return Elements(self.kernel_alone if alone else self.both, inputs, seconds)

    def kernel_alone(self, domain: Domain, floats: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, Value]]:
        """The kernel's results, twice."""
        out = self.run(self.kernel, domain, self.values(domain, floats), True)
        return out, out

    def bound(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """The kernel's float results without roundings, each with a bound on what its roundings do to it."""
        domain = Bound()
        floats = {n: domain.exact(t) for n, t in inputs.items() if t.dtype in TORCH_FLOATS}
        out = self.run(self.kernel, domain, self.values(domain, floats), True)
        return {n: (v.data.value.contiguous(), v.data.error.contiguous()) for n, v in out.items() if v.is_float}

    # -- the field
    def field(self, seeds: list[int]) -> Agreement:
        """Equal on every element of every draw, or where they differ."""
        assumptions: set[tuple[str, str]] = set()
        constants: dict[tuple[str, str], float] = {}
        functions: set[str] = set()
        total = 0
        for seed in seeds:
            domain = Draw(seed)
            floats = {n: struct(domain.random((t.numel(),)), lambda p: p.reshape(t.shape))  # noqa: B023
                      for n, t in self.inputs.items() if t.dtype in TORCH_FLOATS}  # fmt: skip
            try:
                theirs, ours = self.both(domain, floats)
            finally:
                self.work += domain.work
            total = 0
            for name, mine in ours.items():
                total += mine.data.shape.numel()
                found = self.unlike(domain, name, theirs[name], mine)
                if found is not None:
                    found.conditions = sorted(self.conditions)
                    return found
            assumptions |= domain.ledger.assumptions
            constants |= domain.ledger.constants
            functions |= domain.asked
        return Agreement("equal", total=total, draws=len(seeds), conditions=sorted(self.conditions),
                         assumptions=[list(a) for a in sorted(assumptions)],
                         constants=[[*k, v] for k, v in sorted(constants.items())],
                         functions=sorted(functions))  # fmt: skip

    def unlike(self, domain: Draw, name: str, theirs: Value, ours: Value) -> Agreement | None:
        if ours.data.shape.numel() == 0:
            return None
        if not ours.is_float or not theirs.is_float:
            same = theirs.data == ours.data if theirs.is_float == ours.is_float else torch.tensor(False)
        else:
            missing = domain.classify("isnan", ours.data, "output")
            if float(missing.double().mean()) > MUTE:
                raise Unsupported(
                    f"'{name}' has no value in the field (a division by zero)", where=self.stores.get(name)
                )
            same = domain.equal(theirs.data, ours.data)
        if bool(same.all()):
            return None
        bad = (~same).nonzero()
        return Agreement("different", output=name, index=bad[0].tolist() if bad.dim() > 1 else [], count=len(bad),
                         total=ours.data.shape.numel(), where=self.stores.get(name, ""))  # fmt: skip

    # -- real numbers
    def explains(self, results: Mapping[str, torch.Tensor], unit: float) -> str:
        """Why the kernel's trace can't be what gave these results; empty if it can: replayed in real arithmetic on the
        traced inputs it gives them within the dtype's rounding (many roundings: only what the trace lacks is
        sought)."""
        floats = self.doubles(self.inputs)
        with torch.no_grad():
            got = self.run(self.kernel, Numbers(), self.values(Numbers(), floats), True)
        for name, y in results.items():
            if name not in got:
                return f"it lacks '{name}'"
            z = got[name].data
            if z.shape != y.shape:
                return f"'{name}' has other sizes"
            if not y.is_floating_point():
                if y.numel() and float((y != z).double().mean()) > 0.01:
                    return f"'{name}' holds other integers than without rounding"
                continue
            y = y.double()
            known = torch.isfinite(y) & torch.isfinite(z)
            size = torch.where(known, y.abs(), torch.zeros_like(y))
            allowed = max(SLACK * unit, COARSE) * (size + (size.mean() if size.numel() else 0)) + 1e-30
            off = known & ((y - z).abs() > allowed)
            if float(off.double().mean()) > 0.01:
                return f"'{name}' has other values"
        return ""

    def real(self, inputs: Mapping[str, torch.Tensor], unit: float, start: int = 0) -> Difference:
        """The largest difference on one set of inputs. What stands out is measured once more against a bound on what
        float64 may have lost there."""
        floats = self.doubles(inputs)
        worst = Difference(start=start)
        with torch.no_grad():
            found = self.both(Numbers(), floats)
            if self.near(worst, *found):
                return worst
            sides = torch.Generator().manual_seed(start + 1)  # the same noise in each run
            nudged = {n: x * (1 + (2.0 * torch.randint(0, 2, x.shape, generator=sides) - 1) * 2.0**-52)
                      for n, x in floats.items()}  # fmt: skip
            moved = self.both(Numbers(), nudged)
            worst = self.apart(start, unit, found, moved, {})
            if worst.relative > NEAR and (lost := self.lost(floats)):
                worst = self.apart(start, unit, found, moved, lost)
        return worst

    def apart(
        self, start: int, unit: float, found: Sides, moved: Sides, lost: Mapping[str, torch.Tensor]
    ) -> Difference:
        """The largest difference between both sides beyond the noise: what both do when inputs are ``moved``, and what
        float64 may have ``lost``."""
        worst = Difference(start=start)
        (theirs, ours), (theirs2, ours2) = found, moved
        for name, mine in ours.items():
            if mine.data.numel() == 0:
                continue
            k, r, k2, r2 = (v[name].data for v in (theirs, ours, theirs2, ours2))
            if not mine.is_float or not theirs[name].is_float:
                self.unequal(worst, name, k, r, (k2 == k) & (r2 == r))
                continue
            noise = NOISE * ((k2 - k).abs() + (r2 - r).abs())
            noise = noise + torch.where(torch.isfinite(noise), noise, torch.zeros_like(noise)).mean()
            if name in lost:
                noise = torch.maximum(noise, LOST * lost[name])
            self.judge(worst, name, k, r, noise, unit)
        return worst

    def lost(self, floats: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """By result, a bound on what float64's own roundings do to both sides; nothing where none can be derived."""
        domain = Bound(2.0**-53)
        try:
            theirs, ours = self.both(domain, {n: domain.input(t) for n, t in floats.items()})
        except Unsupported:
            return {}
        return {n: torch.nan_to_num(theirs[n].data.error + v.data.error, nan=0.0)
                for n, v in ours.items() if v.is_float and theirs[n].is_float}  # fmt: skip

    @staticmethod
    def near(worst: Difference, theirs: Mapping[str, Value], ours: Mapping[str, Value]) -> bool:
        """Whether all agree to within ``NEAR``; then that is noted and no noise need be measured."""
        most, compared = 0.0, 0
        for n, v in ours.items():
            if v.data.numel() == 0:
                continue
            k, r = theirs[n].data.double(), v.data.double()
            same = (k == r) | (torch.isnan(k) & torch.isnan(r))
            gap = torch.where(same, torch.zeros_like(r), (k - r).abs() / r.abs().clamp_min(1e-300))
            most = max(most, float(torch.nan_to_num(gap, nan=math.inf).max()))
            compared += r.numel()
        if most <= NEAR:
            worst.compared, worst.relative = compared, most
        return most <= NEAR

    def unequal(self, worst: Difference, name: str, k: torch.Tensor, r: torch.Tensor, steady: torch.Tensor) -> None:
        """Integers and booleans: any that differ, and did not move with the inputs' last bit."""
        worst.compared += r.numel()
        bad = (k != r) & steady
        worst.unsteady += int(((k != r) & ~steady).sum())
        if bool(bad.any()) and worst.relative < 1.0:
            first = int(bad.reshape(-1).nonzero()[0])
            worst.relative, worst.ratio, worst.output, worst.where = 1.0, 1e6, name, self.stores.get(name, "")
            worst.index = [int(i) for i in torch.unravel_index(torch.tensor(first), r.shape)] if r.dim() else []
            worst.kernel, worst.reference = float(k.reshape(-1)[first]), float(r.reshape(-1)[first])

    def judge(
        self, worst: Difference, name: str, k: torch.Tensor, r: torch.Tensor, noise: torch.Tensor, unit: float
    ) -> None:
        """Keep the larger of ``worst`` and what this output shows."""
        known = torch.isfinite(k) & torch.isfinite(r) & torch.isfinite(noise)
        if not bool(known.any()):
            return
        worst.compared += int(known.sum())
        scale = torch.where(known, r.abs(), torch.zeros_like(r)).mean()
        size = torch.maximum(r.abs(), scale * 1e-3).clamp_min(1e-300)
        gap = torch.where(known, (k - r).abs(), torch.zeros_like(r))
        gap = torch.where(gap > torch.where(known, noise, torch.zeros_like(r)), gap, torch.zeros_like(gap))
        relative = gap / size
        top = int(relative.reshape(-1).argmax())
        value = float(relative.reshape(-1)[top])
        worst.ratio = max(worst.ratio, float((gap / budget(r, unit)).max()))
        if value > worst.relative:
            worst.relative, worst.output, worst.where = value, name, self.stores.get(name, "")
            worst.index = [int(i) for i in torch.unravel_index(torch.tensor(top), r.shape)] if r.dim() else []
            worst.kernel, worst.reference = float(k.reshape(-1)[top]), float(r.reshape(-1)[top])

    @staticmethod
    def doubles(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {n: t.double() for n, t in inputs.items() if t.is_floating_point()}

    def climb(self, inputs: Mapping[str, torch.Tensor], unit: float, steps: int, seconds: float,
              bounds: Mapping[str, list[float]]) -> tuple[dict[str, torch.Tensor], float]:  # fmt: skip
        """Adam (Kingma & Ba, 2015) on the largest difference over its budget. Returns the best inputs and their
        ratio."""
        start = {n: t.double().clone().requires_grad_(True) for n, t in inputs.items() if t.is_floating_point()}
        spread = {
            n: float(t.detach().std()) if t.numel() > 1 else float(t.detach().abs().max()) for n, t in start.items()
        }
        groups = [{"params": [t], "lr": 0.1 * (spread[n] if math.isfinite(spread[n]) and spread[n] > 0 else 1.0)}
                  for n, t in start.items()]  # fmt: skip
        adam = torch.optim.Adam(groups)
        best, ratio = {n: t.detach().clone() for n, t in start.items()}, 0.0
        deadline = time.monotonic() + seconds
        for _ in range(steps):
            adam.zero_grad()
            with torch.enable_grad():
                goal = self.goal(start, unit)
            if goal is None or not goal.requires_grad:
                break
            value = float(goal.detach())
            if value > ratio:
                best, ratio = {n: t.detach().clone() for n, t in start.items()}, value
            (-torch.log(goal.clamp_min(1e-300))).backward()
            adam.step()
            with torch.no_grad():
                for n, t in start.items():
                    t.nan_to_num_(nan=0.0)
                    t.clamp_(*bounds.get(n, [-1e4, 1e4]))
            if time.monotonic() > deadline:
                break
        return {n: best.get(n, t) for n, t in inputs.items()}, ratio

    def flips(self, bounds: Mapping[str, list[float]]) -> list[tuple[str, dict[str, torch.Tensor]]]:
        """Inputs on which comparisons of the kernel come out otherwise (``branches.py``), with their lines."""

        def run(floats: Mapping[str, torch.Tensor]) -> Sites:
            domain = Watching()
            with torch.enable_grad():
                self.run(self.kernel, domain, self.values(domain, floats), True)
            return domain.sites

        own = {n: t for n, t in self.inputs.items() if not t.is_floating_point()}
        return [(where, {**own, **found}) for where, found in flip(run, self.doubles(self.inputs), bounds)]

    def goal(self, floats: Mapping[str, torch.Tensor], unit: float) -> torch.Tensor | None:
        theirs, ours = self.both(Numbers(), floats)
        best: torch.Tensor | None = None
        for name, mine in ours.items():
            if not mine.is_float or mine.data.numel() == 0:
                continue
            k, r = theirs[name].data, mine.data
            ratio = (k - r).abs() / budget(r.detach(), unit)
            ratio = torch.where(torch.isfinite(ratio), ratio, torch.zeros_like(ratio)).max()
            best = ratio if best is None else torch.maximum(best, ratio)
        return best


def budget(r: torch.Tensor, unit: float) -> torch.Tensor:
    """A rough error budget: a few roundings of the output and of its typical size."""
    typical = torch.nan_to_num(r.abs(), nan=0.0, posinf=0.0).mean()
    return (4 * unit * (r.abs() + typical)).clamp_min(1e-300)
