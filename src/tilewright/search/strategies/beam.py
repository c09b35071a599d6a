"""The fastest few, each in its turn: the one of them that has the fewest children is next.

Source: B. Lowerre, The Harpy speech recognition system, 1976.
"""

from __future__ import annotations

from random import Random

from .. import tree as t
from ._options import whole


class Strategy(t.Strategy):
    name = "beam"

    def __init__(self, width: int = 4):
        self.width = whole(self.name, "width", width)

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        beam = self.parents(tree)[: self.width]
        return t.Choice(min(beam, key=lambda n: len(tree.children(n.number))).number)
