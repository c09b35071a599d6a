"""Run a recorded launch by evaluating its Triton IR (``ir/``) in the machine domain: bit-faithful dtypes, every program
of the grid at once, every access checked. This is how Triton kernels run on a machine without a GPU.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import KernelError, Unsupported
from ...ir import launch
from ...ir.compile import compile
from ...ir.domains.machine import Machine
from ...ir.index import too_large
from ...ir.records import Result
from ...ir.sums import sums
from . import binaries
from .device_source import DeviceSource, decode
from .footprint import footprint
from .transport import Bundle

SHOWN = 8


class LaunchRefused(Exception):
    """The launch is no launch: it does not compile, or its arguments don't fit. The candidate's fault."""

    tilewright_kind = "launch"


class IrEngine:
    """Engine over Tilewright's IR evaluator."""

    name = "ir"

    def __init__(self, sources: dict[str, str]):
        self.sources = DeviceSource(sources)
        self.binaries: dict[Any, dict[str, Any]] = {}

    def run(self, head: dict[str, Any], bundle: Bundle) -> dict[str, Any]:
        """Compute the launch in ``bundle``'s memory; returns what it did that it should not."""
        fn = self.sources.function(head["file"], head["function"], head.get("globals", {}))
        if problem := too_large(head["grid"]):
            raise LaunchRefused(f"a GPU refuses this grid: {problem}")
        tensors = bundle.tensors()
        values = {n: decode(v, self.sources, tensors) for n, v in head["arguments"].items()}
        options = {k: decode(v, self.sources, {}) for k, v in head.get("options", {}).items()}
        domain = Machine(masked_zero=not head.get("undefined"))
        try:
            results = [launch.run(fn, tuple(head["grid"]), (), {**values, **options}, domain=domain, programs=part)
                       for part in parts(head["grid"], head.get("order", 0))]  # fmt: skip
        except KernelError as e:
            refused = LaunchRefused(e.what)
            refused.where = e.where  # type: ignore[attr-defined]
            raise refused from e
        except Unsupported as e:
            e.tilewright_kind = "unsupported"  # type: ignore[attr-defined]
            raise
        if len(results) == 1:
            extra = {"binary": self._binary(fn, {**values, **options}, head["grid"])} if head.get("binary") else {}
            added = {"sums": [list(s) for s in sums(compile(fn, (), {**values, **options}).program)]}
            return {**describe(results[0]), **footprint(results[0], bundle), **added, **extra}
        both = [describe(r) for r in results]
        return {k: sum(b[k] for b in both) if k == "programs" else [x for b in both for x in b[k]] for k in both[0]}

    def _binary(self, fn: Any, arguments: dict[str, Any], grid: list[int]) -> dict[str, Any]:
        """What the machine code tells; each specialisation is compiled once."""
        compiled = compile(fn, (), arguments)
        key = (compiled.program.sha256, compiled.options.get("num_warps"), compiled.options.get("num_stages"))
        if key not in self.binaries:
            try:
                self.binaries[key] = binaries.describe(compiled)
            except (
                Exception
            ) as e:  # what the compiler's later stages refuse: told, and never held against the evaluator
                self.binaries[key] = {"refused": str(e).strip()[:2000] or type(e).__name__}
        return {**self.binaries[key], "sectors": binaries.sectors(fn, grid, arguments)}


def parts(grid: list[int], order: int) -> list[list[int] | None]:
    """Which programs run one part after another: all in the launch's order (0), the second half first (1), or every
    second program first (2). A result that depends on it depends on what a GPU decides anew each time."""
    count = math.prod(grid)
    if order == 0 or count < 2:
        return [None]
    if order == 1:
        return [list(range(count // 2, count)), list(range(count // 2))]
    return [list(range(1, count, 2)), list(range(0, count, 2))]


def describe(r: Result) -> dict[str, Any]:
    """Faults, races and undefined values of a launch as data."""
    return {
        "faults": [{"kind": f.kind, "where": f.where, "argument": f.argument, "offset": f.offset, "size": f.size,
                    "program": list(f.program), "count": f.count, "text": str(f)} for f in r.faults[:SHOWN]],
        "races": [{"kind": x.kind, "where": x.where, "argument": x.argument, "offset": x.offset, "count": x.count,
                   "same_value": x.same_value,
                   "programs": list(x.programs), "text": str(x)} for x in r.races[:SHOWN]],
        "undefined": [{"kind": u.kind, "where": u.where, "count": u.count, "message": u.message}
                      for u in r.undefined[:SHOWN]],
        "programs": r.evaluated,
    }  # fmt: skip
