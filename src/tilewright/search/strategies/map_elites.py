"""The fastest of each kind: an archive whose cells are kernel descriptors, and a parent from any cell with equal chance.

A kind is what the kernel is like (vector width, tiling, unrolling, launches …, numbers in powers of two), never how long
its text is. Source: J.-B. Mouret and J. Clune, Illuminating search spaces by mapping elites, 2015.
"""

from __future__ import annotations

from random import Random

from .. import tree as t
from ..descriptors import axes, cell
from ._options import amount, whole


class Strategy(t.Strategy):
    """``greed``: how often the fastest cell of all is taken instead. ``dimensions``: of the archive."""

    name = "map-elites"

    def __init__(self, greed: float = 0.25, dimensions: int = 2):
        self.greed = amount(self.name, "greed", greed, most=1)
        self.dimensions = whole(self.name, "dimensions", dimensions)

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        elites = list(archive(self.parents(tree), axes(tree, self.dimensions)).values())
        parent = elites[0] if rng.random() < self.greed else rng.choice(elites)
        others = [n for n in elites if n is not parent]
        return t.Choice(parent.number, others=(rng.choice(others).number,) if others else ())


def archive(ranked: list[t.Node], over: list[str]) -> dict[tuple[object, ...], t.Node]:
    """The first of each cell, in the order given."""
    cells: dict[tuple[object, ...], t.Node] = {}
    for n in ranked:
        cells.setdefault(cell(n.descriptors, over), n)
    return cells
