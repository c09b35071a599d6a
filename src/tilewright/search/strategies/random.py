"""Any kernel that is right, by anyone: the yardstick that every other strategy must beat."""

from __future__ import annotations

from random import Random

from .. import tree as t


class Strategy(t.Strategy):
    name = "random"

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        return t.Choice(rng.choice(self.parents(tree)).number)
