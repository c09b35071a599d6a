"""Who is worth asking: a bandit over proposers, and below it one over each proposer's skills, on the fastest kernel.

Reward: log of the gain over the parent, none for a failure, a slower kernel or nothing new. Thompson sampling from a
normal posterior with a cautious prior; old rewards fade, since a skill that was applied is used up.
Sources: W. Thompson, On the likelihood that one unknown probability exceeds another, 1933; hierarchical and fading
variants after A. Garivier and E. Moulines, On upper-confidence bound policies for switching bandit problems, 2011.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from .. import tree as t
from ._options import amount, whole

PRIOR_MEAN, PRIOR_SPREAD = 0.1, 0.3
CAP = math.log(4)
VAIN = 2
"""So often may a proposer have nothing for a skill at a node before it is not asked for that again."""


@dataclass
class Arm:
    """Faded count and sum of rewards."""

    count: float = 0.0
    total: float = 0.0

    def add(self, reward: float, fade: float) -> None:
        self.count, self.total = self.count * fade + 1, self.total * fade + reward

    def draw(self, rng: Random) -> float:
        mean = (PRIOR_MEAN + self.total) / (1 + self.count)
        return rng.gauss(mean, PRIOR_SPREAD / math.sqrt(1 + self.count))


class Strategy(t.Strategy):
    """``spread``: how many of the fastest may be the parent, the fastest being the likeliest."""

    name = "bandit"

    def __init__(self, spread: int = 3, fade: float = 0.95):
        self.spread, self.fade = whole(self.name, "spread", spread), amount(self.name, "fade", fade, most=1)

    def begin(self, arms: Mapping[str, Sequence[str]]) -> None:
        super().begin(arms)
        self.known: dict[tuple[str, str], Arm] = {}
        self.scores: dict[int, float | None] = {}
        self.vain: dict[tuple[int, str, str], int] = {}

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        parents = self.parents(tree)[: self.spread]
        parent = rng.choices(parents, [2.0**-i for i in range(len(parents))])[0]
        live = self._live(parent.number) or [(p, s) for p in sorted(self.arms) for s in self.arms[p] or ("",)]
        proposer = max(sorted({p for p, _ in live}), key=lambda p: self._arm(p, "").draw(rng))
        skill = max((s for p, s in live if p == proposer), key=lambda s: self._arm(proposer, s).draw(rng))
        return t.Choice(parent.number, proposer, skill or None)

    def _live(self, parent: int) -> list[tuple[str, str]]:
        """Proposers and skills that have not run dry at this node."""
        every = [(p, s) for p in sorted(self.arms) for s in self.arms[p] or ("",)]
        return [(p, s) for p, s in every if self.vain.get((parent, p, s), 0) < VAIN]

    def _arm(self, proposer: str, skill: str) -> Arm:
        return self.known.setdefault((proposer, skill), Arm())

    def tell(self, node: t.Node) -> None:
        super().tell(node)
        self.scores[node.number] = node.score
        if node.parent is None:
            return
        before = self.scores[node.parent]
        gain = (
            (node.score - before)
            if node.score is not None and before is not None
            else float(node.ok and before is None)
        )
        self._reward(node.proposal.proposer, node.proposal.skill, min(max(gain, 0.0), CAP))

    def declined(self, choice: t.Choice, reason: str) -> None:
        key = (choice.parent, choice.proposer or "", choice.skill or "")
        self.vain[key] = self.vain.get(key, 0) + 1
        if not self._live(choice.parent):
            self.dry[choice.parent] = t.DRY
        self._reward(choice.proposer or "", choice.skill or "", 0.0)

    def _reward(self, proposer: str, skill: str, reward: float) -> None:
        self._arm(proposer, "").add(reward, self.fade)
        if skill:
            self._arm(proposer, skill).add(reward, self.fade)
