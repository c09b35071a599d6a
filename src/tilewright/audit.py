"""Audit: check many (problem, kernel) pairs, in parallel, resumable. What is finished is in the ledger."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .api import examine_and_record, open_ledger, silent
from .errors import TilewrightError, UserError
from .ledger import Ledger
from .prove.verdict import Verdict

PROBLEM_NAMES = ("problem.py", "reference.py")
SUFFIXES = (".py", ".c", ".cu")
CLASSES = ("wrong", "cheat", "inaccurate", "deviates", "policy")


@dataclass(frozen=True)
class Pair:
    """A problem and a kernel; ``name`` is unique within the audit."""

    name: str
    problem: Path
    kernel: Path

    def fingerprint(self) -> str:
        """Hash of what both files hold now."""
        h = hashlib.sha256()
        for p in (self.problem, self.kernel):
            h.update(p.read_bytes())
        return h.hexdigest()


@dataclass
class Row:
    """One result: a verdict, or the message of the error that prevented one."""

    pair: Pair
    verdict: Verdict | None = None
    error: str = ""

    @property
    def word(self) -> str:
        return self.verdict.verdict if self.verdict else "error"

    @property
    def cls(self) -> str:
        """Class of the first finding that decides; empty for kernels that are not rejected."""
        if self.verdict is None or self.verdict.verdict != "reject":
            return ""
        return next(f.cls for g in self.verdict.gates if g.role != "advisory" for f in g.findings if f.replays)


@dataclass
class Audited:
    """All results of an audit, in order, and their summary."""

    rows: list[Row] = field(default_factory=list)
    resumed: int = 0

    def summary(self) -> dict[str, Any]:
        """Counts: verdicts, and the classes of the rejected."""
        words = Counter(r.word for r in self.rows)
        classes = Counter(r.cls for r in self.rows if r.cls)
        return {"total": len(self.rows), **{w: words[w] for w in ("accept", "reject", "incomplete", "error")},
                "rejected": {c: classes[c] for c in CLASSES}}  # fmt: skip

    @property
    def exit_code(self) -> int:
        """0 all accepted, 1 some rejected, 3 none rejected but some incomplete, 2 an error."""
        words = {r.word for r in self.rows}
        return 2 if "error" in words else 1 if "reject" in words else 3 if "incomplete" in words else 0

    def data(self) -> dict[str, Any]:
        """As JSON: ``{results: [{name, problem, kernel, verdict, …}], summary}``."""
        results = []
        for r in self.rows:
            entry: dict[str, Any] = {"name": r.pair.name, "problem": str(r.pair.problem), "kernel": str(r.pair.kernel),
                                     "verdict": r.word, "class": r.cls}  # fmt: skip
            if r.verdict is not None:
                entry |= {"id": r.verdict.id, "reason": r.verdict.reason, "seconds": r.verdict.seconds,
                          "report": r.verdict.model_dump(mode="json")}  # fmt: skip
            else:
                entry["error"] = r.error
            results.append(entry)
        return {"results": results, "summary": self.summary()}


def discover(folder: Path, problem_glob: str | None = None, kernel_glob: str | None = None) -> list[Pair]:
    """Pairs below ``folder``. Without globs: each folder with a ``problem.py``, every other kernel file in it (names that
    begin with ``_`` left out). With globs: problems and kernels of the same folder, or of the same stem."""
    if not folder.is_dir():
        raise UserError(f"'{folder}' is not a folder", remedy="tilewright audit DIR")
    if problem_glob or kernel_glob:
        pairs = _globbed(folder, problem_glob or "**/problem.py", kernel_glob or "**/kernel*")
    else:
        pairs = [_pair(folder, p, k) for p in sorted(folder.rglob("problem.py")) for k in _kernels(p)]
    if not pairs:
        raise UserError(
            f"no (problem, kernel) pair below '{folder}'",
            remedy="put problem.py and kernel.py into one folder, or give --problem-glob and --kernel-glob",
        )
    return pairs


def _kernels(problem: Path) -> Iterator[Path]:
    for p in sorted(problem.parent.iterdir()):
        plain = p.is_file() and p.suffix in SUFFIXES and not p.name.startswith("_")
        if plain and p.name not in PROBLEM_NAMES and not p.name.endswith("contract.py"):
            yield p


def _globbed(folder: Path, problems: str, kernels: str) -> list[Pair]:
    candidates = _matching(folder, kernels, "--kernel-glob")
    found = []
    for p in _matching(folder, problems, "--problem-glob"):
        beside = [k for k in candidates if k.parent == p.parent and k != p]
        same = [k for k in candidates if k.stem == p.stem and k != p]
        found += [_pair(folder, p, k) for k in (same or beside)]
    return found


def _matching(folder: Path, pattern: str, option: str) -> list[Path]:
    """The files below ``folder`` that a pattern matches. Raises UserError for one that is none, or that leads elsewhere."""
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise UserError(f"{option} '{pattern}' leads out of '{folder}'",
                        remedy=f"give a pattern of names below it, such as {option} 'level1/*.py'")  # fmt: skip
    try:
        return sorted(p for p in folder.glob(pattern) if p.is_file())
    except (ValueError, NotImplementedError, IndexError):
        raise UserError(f"{option} '{pattern}' is no pattern of file names",
                        remedy=f"for example {option} '**/kernel*.py'") from None  # fmt: skip


def _pair(folder: Path, problem: Path, kernel: Path) -> Pair:
    return Pair(str(kernel.relative_to(folder)), problem, kernel)


def audit(
    pairs: list[Pair], *, jobs: int = 2, ledger: str | None = None, fresh: bool = False, strict: bool = False,
    notice: Callable[[Row, bool], None] | None = None, **options: Any,
) -> Audited:  # fmt: skip
    """Check all pairs. An unfinished audit of the same folder and options goes on where it stopped, unless ``fresh``.
    ``notice(row, resumed)`` is called as results come in."""
    book = open_ledger(ledger)
    key = {
        "pairs": sorted(p.name for p in pairs),
        "root": str(pairs[0].problem.parent.parent.absolute()),
        "strict": strict,
        "options": {k: str(v) for k, v in options.items()},
    }
    run = book.audit(key, {p.name: p.fingerprint() for p in pairs}, fresh=fresh)
    rows: dict[str, Row] = {}
    notice = notice or (lambda row, resumed: None)
    for name, item in run.done().items():
        pair = next(p for p in pairs if p.name == name)
        rows[name] = Row(pair, book.verdict(item.verdict).verdict if item.verdict else None, item.body.get("error", ""))
        notice(rows[name], True)
    resumed = len(rows)
    todo = [p for p in pairs if p.name not in rows]
    _work(todo, run, rows, jobs, notice, {"ledger": ledger, "strict": strict, **options})
    run.close()
    return Audited([rows[p.name] for p in pairs], resumed)


def _work(todo: list[Pair], run: Any, rows: dict[str, Row], jobs: int, notice: Callable[[Row, bool], None],
          options: dict[str, Any]) -> None:  # fmt: skip
    pool = ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="audit")
    running: set[Future[Row]] = set()
    queue = iter(todo)
    try:
        while True:
            for pair in queue:
                run.start(pair.name)
                running.add(pool.submit(_one, pair, options))
                if len(running) >= jobs:
                    break
            if not running:
                return
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for f in finished:
                row = f.result()
                rows[row.pair.name] = row
                if row.verdict is not None:
                    run.finish(row.pair.name, row.verdict.id)
                else:
                    run.fail(row.pair.name, {"error": row.error})
                notice(row, False)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _one(pair: Pair, options: dict[str, Any]) -> Row:
    try:
        result = examine_and_record(str(pair.problem), str(pair.kernel), progress=silent(), **options)
        return Row(pair, result.verdict)
    except TilewrightError as e:
        return Row(pair, error=str(e))


__all__ = ["Audited", "Ledger", "Pair", "Row", "audit", "discover"]
