"""A policy fitted on recorded trees (``fit.py``): the parent is drawn by a softmax over a few features of each node.

With the weights that were fitted offline it is used online like any other strategy: ``learned:weights=FILE``. Without a
file the weights are those below, which say what greedy says, a little softer.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

from ...errors import UserError
from .. import tree as t

FEATURES = ("score", "rank", "children", "yield", "depth", "age", "step")
DEFAULT = {"score": 0.0, "rank": -2.0, "children": -0.5, "yield": 0.5, "depth": 0.0, "age": 0.0, "step": 0.0}


class Strategy(t.Strategy):
    """``weights``: a JSON file, or the weights themselves."""

    name = "learned"

    def __init__(self, weights: str | dict[str, float] | None = None):
        self.weights = dict(DEFAULT) | (_read(weights) if isinstance(weights, str) else weights or {})

    def ask(self, tree: t.Tree, rng: Random) -> t.Choice:
        parents = self.parents(tree)
        logits = [sum(self.weights[n] * x for n, x in f.items()) for f in features(tree, parents)]
        top = max(logits)
        return t.Choice(rng.choices(parents, [math.exp(x - top) for x in logits])[0].number)


def features(tree: t.Tree, parents: list[t.Node]) -> list[dict[str, float]]:
    """By node, in the order given (fastest first), each about 0..1.

    score: how close to the fastest; rank: place over log; children: log of their number; yield: share of children that
    were faster; depth; age: how long ago it came; step: rank again, but only late in the run.
    """
    children: dict[int, list[t.Node]] = {}
    depth: dict[int, int] = {}
    for n in tree:  # a parent always comes before its children
        depth[n.number] = 0 if n.parent is None else depth[n.parent] + 1
        if n.parent is not None:
            children.setdefault(n.parent, []).append(n)
    best = (parents[0].score or 0.0) or 1.0
    size = len(tree)
    found = []
    for rank, n in enumerate(parents):
        own = children.get(n.number, [])
        gained = sum(c.score is not None and c.score > (n.score or 0.0) for c in own)
        place = math.log1p(rank)
        found.append({"score": (n.score or 0.0) / best, "rank": place, "children": math.log1p(len(own)),
                      "yield": (gained + 0.5) / (len(own) + 1), "depth": math.log1p(depth[n.number]),
                      "age": 1 - n.number / size, "step": place * min(size / 50, 1.0)})  # fmt: skip
    return found


def _read(file: str) -> dict[str, float]:
    try:
        weights = json.loads(Path(file).read_text())["weights"]
        return {n: float(weights[n]) for n in FEATURES}
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise UserError(f"'{file}' holds no fitted policy: {type(e).__name__}: {e}",
                        remedy="make one with `tilewright study FILE --fit POLICY.json`") from None  # fmt: skip
