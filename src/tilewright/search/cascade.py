"""One trial, cheap stages first: parse → check (compile and smoke are its first gates) → quick time → full time.

An Evaluator does the work; this file says in which order, and what a failure is called.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Protocol

from ..prove.finding import Finding
from ..prove.verdict import Verdict
from ..task.tensors import Model
from .limits import Limits
from .tree import Cost, Failure, Kind, Node, Proposal, Scalar, Timing


class Checked(Model):
    """What the check of a candidate gave. ``kernel``: its sha256; ``verdict``: its id in the ledger."""

    kernel: str = ""
    verdict: str = ""
    accepted: bool = False
    failure: Failure | None = None
    descriptors: dict[str, Scalar] = {}
    seconds: float = 0.0


class Timed(Model):
    """What timing gave: a timing, or why there is none."""

    timing: Timing | None = None
    failure: Failure | None = None
    cost: Cost = Cost()


class Evaluator(Protocol):
    """What a run needs of the world. ``kind`` is what the ledger calls its times: measured, replayed, synthetic.
    ``noise``: relative gains up to this are within what two runs of the same kernel differ by.

    ``begin`` is given the first kernel after its check: it is the yardstick of all ratios if it was accepted. ``time`` is
    only ever called for what ``check`` accepted.
    """

    kind: str
    noise: float

    def check(self, proposal: Proposal, number: int, limits: Limits) -> Checked: ...

    def begin(self, root: Proposal, checked: Checked) -> None: ...

    def time(self, proposal: Proposal, checked: Checked, full: bool) -> Timed: ...

    def final_round(self, nodes: list[Node], number: int) -> dict[int, float | Failure]:
        """By node: log of the yardstick's time over the node's, a mean over all hidden workloads, in fresh processes;
        or why there is none."""
        ...

    def close(self) -> None: ...


def parse(proposal: Proposal, language: str) -> Failure | None:
    """Faults that need no process to be seen. Runs nothing."""
    if not proposal.source.strip():
        return Failure(kind="compile", message="the proposal is empty")
    if "\0" in proposal.source:
        return Failure(kind="compile", message="the proposal holds a NUL character")
    if language in ("triton", "torch"):
        try:
            ast.parse(proposal.source)
        except (SyntaxError, ValueError, RecursionError) as e:
            line = getattr(e, "lineno", None)
            return Failure(kind="compile", message=f"{type(e).__name__}: {e}", where=f"line {line}" if line else "")
    return None


def failure_of(verdict: Verdict) -> Failure | None:
    """The typed failure that a verdict is; None for an accept."""
    if verdict.accepted:
        return None
    deciding = [f for g in verdict.gates if g.role != "advisory" for f in g.findings if f.replays]
    told = tuple(f"{f.gate}: {f.summary}" for f in deciding[:5])
    if verdict.verdict == "incomplete" or not deciding:
        return Failure(kind="undecided", message=verdict.reason, findings=told)
    first = deciding[0]
    return Failure(kind=_kind(first, verdict), message=verdict.reason, findings=told, where=first.where)


def _kind(f: Finding, verdict: Verdict) -> Kind:
    if f.cls == "cheat":
        return "cheating"
    if f.got == "hangs":
        return "timeout"
    gate = next((g.name for g in verdict.gates if f in g.findings), f.gate)
    if gate == "determinism":
        return "unstable"
    if f.got in ("raises", "can't be called", "launch fails", "crashes", "ends the process", "runs out of memory"):
        return "compile" if _compiling(f) else "launch"
    return "wrong"


COMPILING = ("does not compile", "CompilationError", "SyntaxError", "IndentationError", "ImportError", "CompileError",
             "NameError", "ModuleNotFoundError")  # fmt: skip


def _compiling(f: Finding) -> bool:
    return any(word in f.summary for word in COMPILING)


def slower(timing: Timing, parent: Node | None) -> Failure | None:
    """A failure where the interval lies wholly below what the parent reached."""
    before = parent.timing if parent is not None else None
    if before is None or timing.high >= before.ratio:
        return None
    share = 100 * (1 - timing.ratio / before.ratio)
    return Failure(kind="slower", message=f"{share:.1f}% slower than its parent #{parent.number}" if parent else "")


def worth_full(timing: Timing, best: Node | None) -> bool:
    """Whether a quick time leaves it open that this is the new best."""
    return best is None or best.timing is None or timing.high > best.timing.low


def written(proposal: Proposal, folder: Path, name: str) -> Path:
    """The proposal's files below ``folder``; the path of the entry file. Names that leave the folder are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    for other, text in proposal.files.items():
        target = (folder / other).resolve()
        if not target.is_relative_to(folder.resolve()) or target.name == name:
            raise ValueError(f"the proposal writes to '{other}'")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (folder / name).write_text(proposal.source)
    return folder / name
