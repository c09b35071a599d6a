"""Always the fastest: (1+1) evolution. A better child takes its parent's place, a worse one is forgotten.

Source: I. Rechenberg, Evolutionsstrategie, 1973.
"""

from __future__ import annotations

from random import Random

from .. import tree as t


class Strategy(t.Strategy):
    name = "greedy"

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        return t.Choice(self.parents(tree)[0].number)
