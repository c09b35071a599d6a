"""Run a suite: check every pair, measure what was accepted, keep both in the ledger, go on where it stopped.

Checks run beside each other; measurements run one at a time, after all checks, on a machine that does nothing else.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from ..api import examine_and_record, open_ledger, silent
from ..errors import TilewrightError
from ..ledger.audits import Audit, AuditItem
from ..prove.verdict import Verdict
from . import scores
from .pairing import Entry, Pairing
from .problem import Suite
from .scores import Result, Timing

BENCH = " [bench]"
Notice = Callable[[str, str, bool], None]
"""``notice(name, word, resumed)``, as results come in."""


@dataclass(frozen=True)
class Measured:
    """What a measurement of one kernel came to. ``ids`` are its records in the ledger (attempts, where it is too noisy or
    refused); ``why`` says what kept it from being measured, or why it was refused."""

    answer: str = ""
    timings: tuple[Timing, ...] = ()
    transfer: str = ""
    why: str = ""
    ids: tuple[str, ...] = ()


class Measurer(Protocol):
    """Times one accepted kernel."""

    def __call__(self, entry: Entry, verdict: Verdict) -> Measured: ...


@dataclass
class Outcome:
    """One pair with all that is known of it. ``why`` says why there is no measurement."""

    entry: Entry
    verdict: Verdict | None = None
    error: str = ""
    measured: Measured | None = None

    @property
    def word(self) -> str:
        return self.verdict.verdict if self.verdict else "error"

    @property
    def cls(self) -> str:
        if self.word != "reject" or self.verdict is None:
            return ""
        return next((f.cls for g in self.verdict.gates if g.role != "advisory" for f in g.findings if f.replays), "")

    def result(self) -> Result:
        """In the form in which it is scored."""
        m, p = self.measured or Measured(), self.entry.problem
        timings = tuple(Timing(**{**asdict(t), "weight": p.workloads.get(t.workload, 0.0 if p.workloads else 1.0)})
                        for t in m.timings)  # fmt: skip
        reason = m.why if self.word == "accept" else self.verdict.reason if self.verdict else self.error.splitlines()[0]
        return Result(p.name, p.category, self.word, self.cls, reason, m.answer, timings, p.weight, m.transfer)  # type: ignore[arg-type]


@dataclass
class Done:
    """A finished run. ``resumed`` counts the checks and measurements that an earlier process had done."""

    suite: Suite
    pairing: Pairing
    outcomes: list[Outcome] = field(default_factory=list)
    resumed: int = 0

    @property
    def methods(self) -> tuple[str, ...]:
        return self.pairing.methods

    def results(self, method: str) -> list[Result]:
        """One result a problem, in the suite's order; those without a kernel are ``missing``."""
        mine = {o.entry.problem.name: o.result() for o in self.outcomes if o.entry.method == method}
        return [mine.get(p.name) or Result(p.name, p.category, "missing", reason="no kernel", weight=p.weight)
                for p in self.suite.problems]  # fmt: skip

    def unmeasured(self) -> Counter[str]:
        """Why accepted kernels have no measurement."""
        return Counter(
            o.measured.why for o in self.outcomes if o.word == "accept" and o.measured and not o.measured.timings
        )

    @property
    def exit_code(self) -> int:
        """0 all accepted, 1 some rejected, 3 none rejected but some incomplete or refused, 2 an error."""
        words = {o.word for o in self.outcomes}
        unsure = "incomplete" in words or any(
            r.answer in ("too noisy", "refused") for r in map(Outcome.result, self.outcomes)
        )
        return 2 if "error" in words else 1 if "reject" in words else 3 if unsure else 0


def run_suite(
    suite: Suite, pairing: Pairing, measure: Measurer, *, jobs: int = 2, ledger: str | None = None, fresh: bool = False,
    notice: Notice | None = None, key: dict[str, str] | None = None, **options: Any,
) -> Done:  # fmt: skip
    """Check and measure all pairs. An unfinished run of the same suite, kernels and options goes on, unless ``fresh``.

    ``key`` says what else makes a run another one (the device and the protocol of ``measure``).
    """
    book = open_ledger(ledger)
    prints = {e.name + tail: fingerprint(e) for e in pairing.entries for tail in ("", BENCH)}
    asked = {"suite": str(suite.root.absolute()), "entries": sorted(prints), "key": key or {},
             "options": {k: str(v) for k, v in options.items()}}  # fmt: skip
    run = book.audit(asked, prints, fresh=fresh)
    tell = notice or (lambda name, word, resumed: None)
    done = Done(suite, pairing, [Outcome(e) for e in pairing.entries])
    finished = run.done()
    for o in done.outcomes:
        _recall(o, finished, book)
        if o.verdict is not None:
            done.resumed += 1
            tell(o.entry.name, o.word, True)
    _check(done, run, jobs, tell, {"ledger": ledger, **options})
    for o in done.outcomes:
        if o.verdict is not None and o.verdict.accepted and not _remembered(o, finished, done, tell):
            _measure(o, run, measure, tell)
    run.close()
    return done


def fingerprint(entry: Entry) -> str:
    """Hash of the problem's files and the kernel's as they are now."""
    h = hashlib.sha256()
    path = entry.problem.path
    for p in (*(sorted(path.rglob("*.py")) if path.is_dir() else [path]), entry.kernel):
        h.update(p.read_bytes())
    return h.hexdigest()


def _recall(o: Outcome, finished: dict[str, AuditItem], book: Any) -> None:
    item = finished.get(o.entry.name)
    if item is not None and item.verdict:
        o.verdict = book.verdict(item.verdict).verdict


def _remembered(o: Outcome, finished: dict[str, AuditItem], done: Done, tell: Notice) -> bool:
    item = finished.get(o.entry.name + BENCH)
    if item is None:
        return False
    body = item.body
    o.measured = Measured(body["answer"], tuple(Timing(**t) for t in body["timings"]), body["transfer"], body["why"],
                          tuple(body["ids"]))  # fmt: skip
    done.resumed += 1
    tell(o.entry.name + BENCH, o.measured.answer, True)
    return True


def _check(done: Done, run: Audit, jobs: int, tell: Notice, options: dict[str, Any]) -> None:
    todo = [o for o in done.outcomes if o.verdict is None]
    pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="suite")
    try:
        futures = {pool.submit(_one, o, run, options): o for o in todo}
        for f in as_completed(futures):
            f.result()
            tell(futures[f].entry.name, futures[f].word, False)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _one(o: Outcome, run: Audit, options: dict[str, Any]) -> None:
    name = o.entry.name
    run.start(name)
    try:
        o.verdict = examine_and_record(
            str(o.entry.problem.path), str(o.entry.kernel), progress=silent(), **options
        ).verdict
        run.finish(name, o.verdict.id)
    except TilewrightError as e:
        o.error = str(e)
        run.fail(name, {"error": o.error})


def _measure(o: Outcome, run: Audit, measure: Measurer, tell: Notice) -> None:
    """What can't be measured here, or was too noisy, is not kept as done: another machine, or a quieter hour, may."""
    assert o.verdict is not None
    name = o.entry.name + BENCH
    run.start(name)
    try:
        o.measured = measure(o.entry, o.verdict)
    except TilewrightError as e:
        o.measured = Measured(why=str(e).splitlines()[0])
    if o.measured.answer not in ("", "too noisy"):
        run.finish(name, o.verdict.id, asdict(o.measured))
    else:
        run.fail(name, {"error": o.measured.why})
    tell(name, o.measured.answer or "not measured", False)


def data(done: Done, thresholds: Sequence[float]) -> dict[str, Any]:
    """As JSON: ``{suite, methods: {name: {scores, results}}, strays}``; NaN is null."""
    methods = {m: {"scores": scores.data(rows, thresholds), "results": [_row(done, m, r) for r in rows]}
               for m in done.methods for rows in [done.results(m)]}  # fmt: skip
    return {"suite": {"root": str(done.suite.root), "format": done.suite.format, "problems": len(done.suite.problems)},
            "methods": methods, "strays": {str(p): why for p, why in done.pairing.strays.items()}}  # fmt: skip


def _row(done: Done, method: str, r: Result) -> dict[str, Any]:
    o = next((o for o in done.outcomes if o.entry.method == method and o.entry.problem.name == r.problem), None)
    kept = list(o.measured.ids) if o and o.measured else []
    void = o is not None and o.measured is not None and o.measured.answer in ("too noisy", "refused")
    ids = {"verdict": o.verdict.id if o and o.verdict else "", "measurements": [] if void else kept,
           "attempts": kept if void else []}  # fmt: skip
    return {**asdict(r), "kernel": str(o.entry.kernel) if o else "", **({"ids": ids} if o else {})}
