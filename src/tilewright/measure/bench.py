"""``bench``: is an accepted kernel faster than the best that is right? The order of work.

read the kernel → an accepted verdict, from the ledger or by a check now → ceilings of this machine → baselines →
each workload (shown, then hidden) → one answer → the ledger
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..api import examine_and_record, open_ledger
from ..errors import EnvironmentProblem, KernelError, Unsupported, UserError
from ..kernel import Kernel, read
from ..ledger import contract_hash, measurements
from ..prove.child.session import Limits
from ..prove.examination import Examination
from ..prove.examine import open_task
from ..prove.verdict import Verdict
from ..task.task import TaskSheet, Workload
from . import baselines, ceilings, conclude, hidden, state
from .baselines import Context, Offer
from .protocol import PROTOCOL, Protocol
from .record import Baseline, Cache, Ceilings, Launch, Measurement, WorkloadResult
from .stage import secret
from .workload import Setting, name_of, play

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..prove.device.machine import Device

Show = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Options:
    """What a run may be told. ``kinds``: kinds of baselines (None: all); ``files``: kernel files as baselines; ``hidden``:
    how many hidden workloads; ``purpose``: what they are spent on (a search); ``workloads``: instead of the task's."""

    strict: bool = False
    overrides: str | None = None
    reference: str | None = None
    sandbox: str = "best"
    device: str = "cpu"
    kinds: tuple[str, ...] | None = None
    files: tuple[str, ...] = ()
    hidden: int = 0
    purpose: str = ""
    cold: bool = False
    fresh: bool = False
    timeout: float = 60.0
    gate_seconds: float = 20.0
    workloads: tuple[Workload, ...] = ()


@dataclass(frozen=True)
class Benched:
    """The answer, or the verdict that stands in its way."""

    verdict: Verdict
    measurement: Measurement | None = None

    @property
    def exit_code(self) -> int:
        """0 measured, 1 kernel not accepted, 3 too noisy or refused."""
        return 1 if self.measurement is None else self.measurement.exit_code


def bench(
    problem: str, kernel: str | Kernel, *, ledger: str | None = None, protocol: Protocol = PROTOCOL,
    options: Options | None = None, progress: Any = None, check_progress: Any = None,
) -> Benched:  # fmt: skip
    """Measure ``kernel`` against the baselines of ``problem``. ``progress``: a context manager that gives
    ``(what, done, most) -> None``.

    Raises UserError and EnvironmentProblem as ``check`` does, Unsupported for a kernel that can't be timed on this device.
    """
    o = options or Options()
    source = read(kernel) if isinstance(kernel, str) else kernel
    _timeable(source, o.device)
    _asked(o)
    book, started = open_ledger(ledger), time.monotonic()
    verdict = licensed(book, ledger, problem, source, o, check_progress)
    if not verdict.accepted:
        return Benched(verdict)
    sheet, session = open_task(problem, overrides=o.overrides, reference=o.reference, sandbox=o.sandbox)
    _measurable(sheet, o.device)
    exam = Examination(sheet, source, session, strict=o.strict, limits=Limits(seconds=o.timeout), sandbox=o.sandbox)
    try:
        with progress or nullcontext(_nothing) as show:
            run = Run(book, exam, problem, source, protocol, o, verdict, show, ledger)
            return Benched(verdict, run.measure(started))
    finally:
        exam.close()
        exam.reference.close()


def _nothing(what: str, done: int, most: int) -> None:
    pass


def _asked(o: Options) -> None:
    """Raises UserError for options that can't be, before any work."""
    baselines.named(o.kinds)
    for file in o.files:
        _timeable(read(file), o.device)
    if o.kinds is not None and not o.kinds and not o.files:
        raise UserError("there is nothing to compare with: no kind of baseline, and no file",
                        remedy="name a kind (eager, compile, …), or a kernel file")  # fmt: skip
    if o.hidden < 0:
        raise UserError(f"{o.hidden} hidden workloads", remedy="give a number from 0 up")


def _timeable(kernel: Kernel, device: str) -> None:
    if device == "cpu" and kernel.language not in ("native", "torch"):
        raise Unsupported(f"a kernel in '{kernel.language}' can't be timed on the CPU: it is evaluated there, not run",
                          where=kernel.path, remedy="run bench on a machine with a GPU, with --device cuda")  # fmt: skip
    if device != "cpu" and kernel.language == "native":
        raise Unsupported("a kernel in C runs on the CPU", where=kernel.path, remedy="leave out --device")


def _measurable(sheet: TaskSheet, device: str) -> None:
    changed = [n for n, s in sheet.inputs.items() if getattr(s, "mutated", False)]
    if changed and device != "cpu":
        raise Unsupported(f"'{changed[0]}' is written in place, and such tasks are timed on the CPU only as yet",
                          where=sheet.path, remedy="time a form of the task that returns its result")  # fmt: skip


def licensed(
    book: Ledger, ledger: str | None, problem: str, kernel: Kernel, o: Options, progress: Any = None
) -> Verdict:
    """The verdict that lets this kernel be timed on this class of device: from the ledger, else by a check now."""
    sheet, session = open_task(problem, overrides=o.overrides, reference=o.reference, sandbox=o.sandbox)
    session.close()
    mode = "strict" if o.strict else "default"
    known = measurements.licence(book.store, kernel.sha256(), sheet.sha256(), contract_hash(sheet, mode),
                                 device_class(o.device), state.versions())  # fmt: skip
    if known is not None:
        return book.verdict(known).verdict
    extra = {} if o.device == "cpu" else {"device": o.device}
    return examine_and_record(
        problem, kernel, strict=o.strict, ledger=ledger, overrides=o.overrides, reference=o.reference, sandbox=o.sandbox,
        gate_seconds=o.gate_seconds, timeout=o.timeout, progress=progress, **extra,  # type: ignore[arg-type]
    ).verdict  # fmt: skip


def device_class(device: str) -> str:
    """``cpu``, or the architecture of a GPU (``sm_90``): the class for which a verdict licenses a time."""
    if not device.startswith("cuda"):
        return "cpu"
    from .cuda import architecture

    return architecture()


class Run:
    """One run of ``bench`` with an accepted kernel."""

    def __init__(self, book: Ledger, exam: Examination, problem: str, kernel: Kernel, protocol: Protocol, o: Options,
                 verdict: Verdict, show: Show, ledger: str | None):  # fmt: skip
        self.book, self.exam, self.problem, self.kernel = book, exam, problem, kernel
        self.protocol, self.o, self.verdict, self.show, self.ledger = protocol, o, verdict, show, ledger
        self.notes: list[str] = list(exam.sheet.notes)

    def measure(self, started: float) -> Measurement:
        """All workloads, one answer, kept: as a measurement, or as an attempt where it claims nothing."""
        before = state.snapshot(self.o.device)
        tops = self._ceilings()
        setting = self._setting(tops)
        shown, bases, compile_s = self._play(setting, self._workloads())
        secrets, spent = self._hidden(setting)
        seconds = time.monotonic() - started
        made = conclude.conclude(self, shown, secrets, spent, bases, tops, compile_s, before, seconds)
        measurements.register_protocol(self.book.store, made.protocol, made.protocol_version, self.protocol.body())
        keep = measurements.attempt if made.void else measurements.record
        return keep(self.book.store, made, conclude.machine(self.o.device))

    def _ceilings(self) -> Ceilings | None:
        self.show("measuring this machine", 0, 1)
        try:
            return ceilings.ceilings(self.o.device)
        except EnvironmentProblem as e:
            self.notes.append(f"no floor: {e.what}")
            return None

    def _setting(self, tops: Ceilings | None) -> Setting:
        opened = {"overrides": self.o.overrides, "reference": self.o.reference}
        context = Context(self.exam.sheet, self.problem, self.o.device, self.o.files,
                          {k: v for k, v in opened.items() if v})  # fmt: skip
        offers = baselines.offers(context, self.o.kinds)
        verdicts = {x.name: self._verdict_of(x) for x in offers if x.kind == "file" and x.source is not None}
        caches: tuple[Cache, ...] = ("warm", "cold") if self.o.cold else ("warm",)
        launches: tuple[Launch, ...] = ("plain", "graph") if self.o.device != "cpu" else ("plain",)
        return Setting(self.exam, self.problem, self.kernel, offers, self.protocol, tops, caches, verdicts, self.show,
                       launches, self._place())  # fmt: skip

    def _place(self) -> Device | None:
        if self.o.device == "cpu":
            return None
        from . import cuda

        return cuda.start(self.o.sandbox)

    def _verdict_of(self, offer: Offer) -> Verdict:
        self.show(f"checking {offer.name}", 0, 1)
        assert offer.source is not None
        assert offer.source.kernel is not None
        _timeable(offer.source.kernel, self.o.device)
        return licensed(self.book, self.ledger, self.problem, offer.source.kernel, self.o)

    def _workloads(self) -> tuple[Workload, ...]:
        given = self.o.workloads or self.exam.sheet.workloads or (self.exam.workload(),)
        return tuple(w if w.dtype else w.model_copy(update={"dtype": self.exam.dtypes()[0]}) for w in given)

    def _play(
        self, setting: Setting, workloads: Sequence[Workload]
    ) -> tuple[list[WorkloadResult], list[Baseline], float]:
        """Each workload, those that an interrupted run of the same command finished taken from the ledger."""
        key = {"bench": self.kernel.sha256(), "task": self.exam.sheet.sha256(), "protocol": self.protocol.sha256(),
               "machine": conclude.machine(self.o.device), "cold": self.o.cold, "kinds": self.o.kinds,
               "files": [o.source.kernel.sha256() for o in setting.offers if o.source and o.source.kernel],
               "mode": self.verdict.mode}  # fmt: skip
        names = [name_of(w) for w in workloads]
        bases: dict[str, Baseline] = {}
        audit = self.book.audit(key, dict.fromkeys(names, "1"), fresh=self.o.fresh)
        done, found, ready = audit.done(), [], 0.0
        for w, name in zip(workloads, names, strict=True):
            if name in done:
                kept = done[name].body
            else:
                audit.start(name)
                played = play(setting, w)
                kept = {"result": played.result.model_dump(mode="json"), "compile_s": played.compile_s,
                        "baselines": [b.model_dump(mode="json") for b in played.baselines],
                        "notes": list(played.notes)}  # fmt: skip
                audit.finish(name, self.verdict.id or None, kept)
            found.append(WorkloadResult.model_validate(kept["result"]))
            ready = max(ready, kept["compile_s"])
            self.notes += [n for n in kept["notes"] if n not in self.notes]
            conclude.merge(bases, [Baseline.model_validate(b) for b in kept["baselines"]])
        audit.close()
        if names and set(names) <= set(done):
            self.notes.append("all workloads were taken from an earlier, interrupted run")
        return found, list(bases.values()), ready

    def _hidden(self, setting: Setting) -> tuple[list[WorkloadResult], int]:
        """Hidden workloads are drawn, counted, and only then used."""
        if not self.o.hidden:
            return [], 0
        drawn = hidden.draw(self.exam.sheet, self.o.hidden, secret())
        if not drawn:
            raise KernelError("the contract leaves no workload that was not announced",
                              remedy="widen the ranges of the task's dims, or leave out --hidden")  # fmt: skip
        task, kernel = self.exam.sheet.sha256(), self.kernel.sha256()
        purpose = self.o.purpose or f"bench {kernel[:24]} {task[:24]}"
        spent = measurements.spend_hidden(self.book.store, purpose, kernel, task, {"dims": [w.dims for w in drawn]})
        with_dtype = [w if w.dtype else w.model_copy(update={"dtype": self.exam.dtypes()[0]}) for w in drawn]
        return [play(setting, w).result for w in with_dtype], spent
