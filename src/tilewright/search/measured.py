"""The real evaluator: ``check`` says whether a candidate is right, ``measure`` how fast it is. Nothing here has a clock of
its own, and no candidate runs outside the sealed children of those two.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..api import Progress, examine_and_record, open_ledger
from ..errors import EnvironmentProblem, KernelError, LedgerError, Unsupported
from ..kernel import Kernel, read
from ..ledger import measurements
from ..measure import ceilings, hidden
from ..measure.stage import secret
from ..prove.examination import Examination
from ..prove.examine import open_task
from ..prove.verdict import Verdict
from ..task.task import TaskSheet, Workload
from . import pairs
from .cascade import Checked, Timed, failure_of, written
from .descriptors import describe
from .limits import Limits
from .tree import Cost, Failure, Node, Proposal, Timing
from .where import timeable

WORKLOADS_MOST = 4
"""Workloads of the task on which a search measures."""


@dataclass(frozen=True)
class Options:
    """How ``check`` and ``measure`` are told to work."""

    ledger: str | None = None
    strict: bool = False
    overrides: str | None = None
    reference: str | None = None
    sandbox: str = "best"
    gate_seconds: float = 10.0
    device: str = "cpu"
    hidden: int = 1
    extra: dict[str, Any] = field(default_factory=dict)


class _Late(Exception):
    """The check took longer than its limit."""


class Measured:
    """``start``: the kernel that the run begins with. ``folder`` keeps the sources of all candidates."""

    kind = "measured"
    noise = pairs.PROTOCOL.smallest_effect

    def __init__(self, problem: str, start: Kernel, folder: Path, options: Options, run: str = ""):
        self.problem, self.start, self.folder, self.o, self.run = problem, start, folder, options, run
        timeable(start, options.device, options.sandbox)
        self.sheet, self.reference = open_task(problem, overrides=options.overrides, reference=options.reference,
                                               sandbox=options.sandbox)  # fmt: skip
        self.exam = Examination(self.sheet, start, self.reference, strict=options.strict, sandbox=options.sandbox)
        self.book = open_ledger(options.ledger)
        self.yardstick: Kernel | None = None
        self._tops: Any = None
        self._place: Any = None
        self._spent: set[str] = set()
        self.notes: list[str] = []

    # right?

    def kernel(self, proposal: Proposal, number: int) -> Kernel:
        """The proposal as files of its own. Raises KernelError for what can't be read, ValueError for bad names."""
        path = written(proposal, self.folder / f"{number:04d}", Path(self.start.path).name)
        return read(f"{path}::{self.start.entry}", self.start.language)

    def check(self, proposal: Proposal, number: int, limits: Limits) -> Checked:
        began = time.monotonic()
        try:
            kernel = self.kernel(proposal, number)
            verdict = self._examine(kernel, limits)
        except _Late:
            failure = Failure(kind="timeout", message=f"the check took longer than {limits.check:.0f} s")
        except KernelError as e:
            failure = Failure(kind="compile", message=e.what, where=e.where or "")
        except Unsupported as e:
            failure = Failure(kind="undecided", message=e.what, where=e.where or "")
        except ValueError as e:
            failure = Failure(kind="cheating", message=str(e))
        else:
            return Checked(kernel=kernel.sha256(), verdict=verdict.id, accepted=verdict.accepted,
                           failure=failure_of(verdict), descriptors=describe(proposal, kernel.language),
                           seconds=time.monotonic() - began)  # fmt: skip
        return Checked(failure=failure, seconds=time.monotonic() - began)

    def _examine(self, kernel: Kernel, limits: Limits) -> Verdict:
        o = self.o
        extra = {} if o.device == "cpu" else {"device": o.device}
        return examine_and_record(
            self.problem, kernel, strict=o.strict, ledger=o.ledger, overrides=o.overrides, reference=o.reference,
            sandbox=o.sandbox, gate_seconds=min(o.gate_seconds, limits.check), timeout=limits.call,
            progress=_until(time.monotonic() + limits.check), **extra,  # type: ignore[arg-type]
        ).verdict  # fmt: skip

    # fast?

    def begin(self, root: Proposal, checked: Checked) -> None:
        """The starting kernel is the yardstick if it was accepted; else the reference itself is."""
        self.yardstick = self.kernel(root, 0) if checked.accepted else None

    def time(self, proposal: Proposal, checked: Checked, full: bool) -> Timed:
        """Paired times against the yardstick on the task's own workloads."""
        began = time.monotonic()
        kernel = self._find(proposal, checked)
        rows: dict[str, pairs.Pair] = {}
        for w in self.workloads():
            pair = self._pair(kernel, w, pairs.FULL if full else pairs.QUICK)
            if isinstance(pair, Failure):
                return Timed(failure=pair, cost=self._cost(began))
            rows[pairs.name_of(w)] = pair
        joined = pairs.joined([p.ratios for p in rows.values()])
        timing = Timing(seconds=sum(p.seconds for p in rows.values()), ratio=joined.median, low=joined.low,
                        high=joined.high, samples=sum(len(p.ratios) for p in rows.values()), full=full,
                        workloads={n: p.seconds for n, p in rows.items()})  # fmt: skip
        return Timed(timing=timing, cost=self._cost(began))

    def _cost(self, began: float) -> Cost:
        spent = time.monotonic() - began
        return Cost(seconds=spent, gpu_seconds=spent if self.o.device != "cpu" else 0.0)

    def _find(self, proposal: Proposal, checked: Checked) -> Kernel:
        """The candidate's files as the check read them; nothing else may be timed under its verdict."""
        made = self.book.verdict(checked.verdict).kernel
        path = Path(made.path)
        if not path.exists():
            written(proposal, path.parent, path.name)
        kernel = read(f"{path}::{made.entry}", made.language)
        if kernel.sha256() != checked.kernel:
            raise KernelError(f"{made.path} is not what was checked any more", remedy="leave the run's folder alone")
        return kernel

    def _pair(self, kernel: Kernel, workload: Workload, protocol: Any) -> pairs.Pair | Failure:
        self.exam.kernel = kernel
        return pairs.pair(
            self.exam, self.problem, kernel, self.yardstick, workload, protocol, self.tops(), self.place()
        )

    def place(self) -> Any:
        """The device, started once; None for the CPU."""
        if self._place is None and self.o.device != "cpu":
            from ..measure import cuda

            self._place = cuda.start(self.o.sandbox)
        return self._place

    def tops(self) -> Any:
        """What this machine can do at most, measured once a process."""
        if self._tops is None:
            try:
                self._tops = (ceilings.ceilings(self.o.device),)
            except EnvironmentProblem as e:
                self.notes.append(f"no floor: {e.what}")
                self._tops = (None,)
        return self._tops[0]

    def workloads(self) -> list[Workload]:
        """Those of the task that are shown, each with a dtype."""
        shown = [w for w in self.sheet.workloads if w.kind != "hidden"] or [self.exam.workload()]
        return [w if w.dtype else w.model_copy(update={"dtype": self.exam.dtypes()[0]}) for w in shown[:WORKLOADS_MOST]]

    # the finalists

    def final_round(self, nodes: list[Node], number: int) -> dict[int, float | Failure]:
        """Workloads drawn for this round alone, the same for all finalists; all processes are new."""
        drawn = hidden.draw(self.sheet, self.o.hidden, secret())
        if drawn:
            self._count(nodes)
        else:
            self.notes.append("the contract leaves no hidden workload: finalists met new values at the given sizes")
            drawn = self.workloads()[: self.o.hidden]
        dtyped = [w if w.dtype else w.model_copy(update={"dtype": self.exam.dtypes()[0]}) for w in drawn]
        return {n.number: self._final(n, dtyped) for n in nodes}

    def _final(self, node: Node, workloads: list[Workload]) -> float | Failure:
        kernel = self._find(node.proposal, Checked(kernel=node.kernel, verdict=node.verdict))
        logs = []
        for w in workloads:
            pair = self._pair(kernel, w, pairs.ROUND)
            if isinstance(pair, Failure):
                return pair
            logs.append(pair.log)
        return sum(logs) / len(logs)

    def _count(self, nodes: list[Node]) -> None:
        """The ledger counts who was shown to hidden workloads, and for what."""
        for n in nodes:
            if n.kernel not in self._spent:
                self._spent.add(n.kernel)
                with contextlib.suppress(LedgerError):  # spent often already: the round is judged all the same
                    measurements.spend_hidden(self.book.store, f"search {self.run}", n.kernel, self.sheet.sha256(), {})

    def verdict(self, node: Node) -> Verdict | None:
        return self.book.verdict(node.verdict).verdict if node.verdict else None

    def close(self) -> None:
        self.exam.close()
        self.reference.close()


@contextlib.contextmanager
def _until(deadline: float) -> Iterator[Progress]:
    """Progress that ends a check which takes too long."""

    def show(gate: str, cases: int) -> None:
        if time.monotonic() > deadline:
            raise _Late

    yield show


def shown(sheet: TaskSheet) -> TaskSheet:
    """The sheet as proposers may see it."""
    return sheet.model_copy(update={"workloads": tuple(w for w in sheet.workloads if w.kind != "hidden")})
