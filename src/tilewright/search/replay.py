"""Searching a recorded space: who proposes, and who answers what a version is worth."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from ..task.task import TaskSheet
from .cascade import Checked, Timed
from .limits import Limits
from .run import Subject
from .space import Space
from .tree import BaseProposer, Context, Failure, Node, Proposal, Proposer


def subject(space: Space) -> Subject:
    """What is searched, where it is a record."""
    return Subject(sheet=TaskSheet(name=space.name), problem=space.name, kernel_path=space.name, language="recorded",
                   entry="", start=space.entries[space.start].proposal)  # fmt: skip


def proposers(space: Space) -> dict[str, Proposer]:
    """One for each proposer that took part in the record."""
    return {name: SpaceProposer(space, name) for name in space.proposers()}


class SpaceProposer(BaseProposer):
    """Proposes what was recorded as proposed from the parent by ``name`` and is not in the tree yet, in any order."""

    name = "recorded"

    def __init__(self, space: Space, name: str):
        self.space, self.label = space, name
        self.seen: set[str] = set()
        parameters = [sorted(e.proposal.parameters) for e in space.entries.values() if e.proposal.proposer == name]
        self._arms = tuple(space.skills(name) or sorted({p for many in parameters for p in many}))

    @property
    def arms(self) -> Sequence[str]:
        return self._arms

    def propose(self, context: Context) -> Proposal | None:
        parent = context.parent.proposal
        found = [e.proposal for sha in self.space.moves.get(parent.sha256(), ()) if sha not in self.seen
                 if (e := self.space.entries[sha]).proposal.proposer == self.label
                 if not context.skill or context.skill in (e.proposal.skill, *_changed(parent, e.proposal))]  # fmt: skip
        return context.rng.choice(found) if found else None

    def tell(self, node: Node) -> None:
        self.seen.add(node.proposal.sha256())


def _changed(a: Proposal, b: Proposal) -> list[str]:
    return [n for n, v in b.parameters.items() if a.parameters.get(n) != v]


class Recorded:
    """The evaluator of a space. ``spread``: standard deviation of made-up noise on the log ratio, for tests of what noise
    does; a run over it is then called synthetic."""

    def __init__(self, space: Space, spread: float = 0.0, seed: int = 0):
        self.space, self.spread, self.seed = space, spread, seed
        self.kind = space.kind if spread == 0 else "synthetic"
        self.noise = 0.0

    def check(self, proposal: Proposal, number: int, limits: Limits) -> Checked:
        entry = self.space.entries[proposal.sha256()]
        failure = None if entry.accepted else entry.failure or Failure(kind="undecided", message="not accepted")
        return Checked(
            accepted=entry.accepted, failure=failure, descriptors=dict(entry.descriptors), seconds=entry.seconds
        )

    def begin(self, root: Proposal, checked: Checked) -> None:
        return None

    def time(self, proposal: Proposal, checked: Checked, full: bool) -> Timed:
        entry = self.space.entries[proposal.sha256()]
        if entry.timing is None:
            return Timed(failure=entry.failure)
        shift = math.exp(self._draw("time", proposal.sha256(), full))
        ratio, wide = entry.timing.ratio * shift, math.exp(2 * self.spread)
        low, high = (ratio / wide, ratio * wide) if self.spread else (entry.timing.low, entry.timing.high)
        changes = {"ratio": ratio, "low": low, "high": high, "full": full, "measurement": ""}
        return Timed(timing=entry.timing.model_copy(update=changes))

    def final_round(self, nodes: list[Node], number: int) -> dict[int, float | Failure]:
        return {n.number: (self.space.entries[n.proposal.sha256()].score or 0.0) + self._draw("final", n.number, number)
                for n in nodes}  # fmt: skip

    def close(self) -> None:
        return None

    def _draw(self, *what: object) -> float:
        return random.Random(f"{self.seed}/{what}").gauss(0, self.spread) if self.spread else 0.0
