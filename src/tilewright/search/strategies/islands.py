"""Several populations that rarely meet: each island takes its turn, picks a parent by tournament, and every so often sees
the best of its neighbour.

Source: R. Tanese, Distributed genetic algorithms, 1989.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from .. import tree as t
from ._options import whole


class Strategy(t.Strategy):
    name = "islands"

    def __init__(self, islands: int = 3, tournament: int = 3, migration: int = 12):
        self.count = whole(self.name, "islands", islands)
        self.tournament = whole(self.name, "tournament", tournament)
        self.migration = whole(self.name, "migration", migration)

    def begin(self, arms: Mapping[str, Sequence[str]]) -> None:
        super().begin(arms)
        self.turn = 0
        self.home: dict[int, int] = {}

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        here, there = self.turn % self.count, (self.turn + 1) % self.count
        mine, theirs = self._people(tree, here), self._people(tree, there)
        if theirs and self.turn % self.migration >= self.migration - self.count:  # each island once a migration
            mine = [*mine, theirs[0]]
        drawn = [rng.choice(mine) for _ in range(self.tournament)] if mine else [self.parents(tree)[-1]]
        best = max(drawn, key=lambda n: (n.score or 0.0, -n.number))
        return t.Choice(best.number, others=tuple(n.number for n in theirs[:1]))

    def _people(self, tree: t.Tree, island: int) -> list[t.Node]:
        """Fastest first. The first kernel lives everywhere."""
        return [n for n in self.parents(tree) if self.home.get(n.number, island) == island]

    def tell(self, node: t.Node) -> None:
        super().tell(node)
        if node.number:
            self.home[node.number] = self.turn % self.count
        self.turn += 1

    def declined(self, choice: t.Choice, reason: str) -> None:
        super().declined(choice, reason)
        self.turn += 1
