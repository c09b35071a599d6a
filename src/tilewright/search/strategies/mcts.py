"""Tree search with progressive widening: a node gets another child only as often as it is visited, so that a tree whose
moves can't be counted grows in depth as well.

From the root: where ``children <= k · visits^a`` (and it is not dry), widen here; else go down to the child with the
largest upper bound of its worth. Worth of a subtree: its fastest kernel, scaled over the tree to 0..1.
Sources: R. Coulom, Computing Elo ratings of move patterns, 2007; A. Couëtoux et al., Continuous upper confidence trees,
2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from .. import tree as t
from ._options import amount


class Strategy(t.Strategy):
    name = "mcts"

    def __init__(self, k: float = 1.0, a: float = 0.5, c: float = 0.5):
        self.k, self.a, self.c = (amount(self.name, n, v) for n, v in (("k", k), ("a", a), ("c", c)))

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        visits, worth = _totals(tree)
        scale = _scale(worth)
        here = tree.root
        while True:
            children = tree.children(here.number)
            right = [n for n in children if n.ok]
            room = len(children) <= self.k * visits[here.number] ** self.a and self.dry.get(here.number, 0) < t.DRY
            if room or not right:
                return t.Choice(here.number if room and here.ok else self.parents(tree)[0].number)
            here = max(right, key=lambda n: (self._bound(n, here, visits, scale(worth[n.number])), -n.number))

    def _bound(self, n: t.Node, parent: t.Node, visits: dict[int, int], worth: float) -> float:
        return worth + self.c * math.sqrt(math.log(visits[parent.number]) / visits[n.number])


def _totals(tree: t.Tree) -> tuple[dict[int, int], dict[int, float]]:
    """Nodes below and including each, and the best score among them. A child always has a larger number."""
    visits = {n.number: 1 for n in tree}
    worth = {n.number: n.score if n.score is not None else -math.inf for n in tree}
    for number in sorted(tree.nodes, reverse=True):
        parent = tree[number].parent
        if parent is not None:
            visits[parent] += visits[number]
            worth[parent] = max(worth[parent], worth[number])
    return visits, worth


def _scale(worth: dict[int, float]) -> Callable[[float], float]:
    known = [w for w in worth.values() if w > -math.inf] or [0.0]
    low, span = min(known), (max(known) - min(known)) or 1.0
    return lambda w: (w - low) / span if w > -math.inf else 0.0
