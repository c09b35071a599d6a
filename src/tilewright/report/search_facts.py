"""What a report of a search says, as data: what each skill and each step gave, what it cost, what was predicted."""

from __future__ import annotations

import itertools
import statistics
from collections import Counter
from dataclasses import dataclass

from ..search.finalists import Conclusion
from ..search.tree import Node, Tree


@dataclass(frozen=True)
class Skill:
    """How often something was tried and what came of it. ``gain``: median ratio over the parent where it was right."""

    name: str
    tried: int
    right: int
    faster: int
    gain: float | None


@dataclass(frozen=True)
class Step:
    """One edge on the way to the winner: ``gain`` is its ratio over its parent, ``share`` its part of the whole gain."""

    number: int
    what: str
    gain: float
    share: float | None


@dataclass(frozen=True)
class Without:
    """A tried version that differs from the winner in one parameter alone, and how much slower (or faster) it was."""

    parameter: str
    value: object
    instead: object
    number: int
    ratio: float | None
    loss: str


def gain(tree: Tree, node: Node) -> float | None:
    """Ratio over the parent, where both were timed."""
    before = tree[node.parent].timing if node.parent is not None else None
    return None if before is None or node.timing is None or not node.ok else node.timing.ratio / before.ratio


def what(node: Node, parent: Node | None = None) -> str:
    """Who did it, and what: in the proposer's words, else the parameters that changed."""
    p = node.proposal
    before = parent.proposal.parameters if parent is not None else p.parameters
    changed = ", ".join(f"{k}={v}" for k, v in p.parameters.items() if before.get(k) != v)
    return ": ".join(x for x in (p.proposer, p.title or p.skill or changed) if x)


def skills(tree: Tree) -> list[Skill]:
    """By proposer and skill, the most useful first."""
    groups: dict[str, list[Node]] = {}
    for n in tree:
        if n.parent is not None:
            groups.setdefault(": ".join(x for x in (n.proposal.proposer, n.proposal.skill) if x), []).append(n)
    found = []
    for name, many in groups.items():
        gains = [g for n in many if (g := gain(tree, n)) is not None]
        found.append(Skill(name, len(many), sum(n.ok for n in many), sum(g > 1 for g in gains),
                           statistics.median(gains) if gains else None))  # fmt: skip
    return sorted(found, key=lambda s: (-(s.gain or 0), s.name))


def way(tree: Tree, number: int | None) -> list[Step]:
    """The edges from the start to a node."""
    if number is None:
        return []
    line = tree.lineage(number)
    whole = sum((b.score or 0.0) - (a.score or 0.0) for a, b in itertools.pairwise(line))
    steps = []
    for a, b in itertools.pairwise(line):
        one = (b.score or 0.0) - (a.score or 0.0)
        steps.append(Step(b.number, what(b, a), gain(tree, b) or 1.0, one / whole if whole else None))
    return steps


def ablation(tree: Tree, number: int | None) -> list[Without]:
    """For each parameter of a node: the fastest tried version in which that one alone is another."""
    if number is None:
        return []
    winner = tree[number]
    mine, found = winner.proposal.parameters, []
    for name, value in mine.items():
        others = [n for n in tree if {k for k in mine if n.proposal.parameters.get(k) != mine[k]} == {name}
                  and set(n.proposal.parameters) == set(mine)]  # fmt: skip
        if not others:
            continue
        best = max(others, key=lambda n: n.score if n.score is not None else float("-inf"))
        ratio = best.timing.ratio if best.ok and best.timing else None
        before = winner.timing.ratio if winner.timing else 1.0
        loss = compared(ratio / before) if ratio else best.failure.kind if best.failure else "not timed"
        found.append(Without(name, value, best.proposal.parameters[name], best.number, ratio, loss))
    return found


def compared(ratio: float) -> str:
    """A speed over the winner's, in words. A trial may have been timed as faster than the winner while searching: the
    finalists' rounds decided.

    >>> compared(0.8), compared(1.4), compared(1.0001)
    ('20.0% slower', '40.0% faster by the times of the search', 'as fast')
    """
    share = 100 * (ratio - 1)
    if abs(share) < 0.05:
        return "as fast"
    return f"{-share:.1f}% slower" if share < 0 else f"{share:.1f}% faster by the times of the search"


def predictions(tree: Tree) -> list[tuple[float, float, str]]:
    """Predicted and measured gain over the parent, where both are known."""
    found = []
    for n in tree:
        measured = gain(tree, n)
        if measured is not None and n.parent is not None and n.proposal.predicted and n.proposal.predicted > 0:
            found.append((n.proposal.predicted, measured, f"#{n.number} {what(n, tree[n.parent])}"))
    return found


def failures(tree: Tree) -> list[tuple[str, int, str]]:
    """Kind, how many, and an example."""
    counted = Counter(n.failure.kind for n in tree if n.failure is not None)
    example = {n.failure.kind: f"#{n.number}: {n.failure.message}" for n in tree if n.failure is not None}
    return [(kind, number, example[kind]) for kind, number in counted.most_common()]


def prices(conclusion: Conclusion) -> list[tuple[str, str]]:
    """Cost, and cost for each per cent of the proved gain (its lower bound); the latter only where something was gained."""
    c = conclusion.cost
    parts = [
        ("wall time", c.seconds, "s"),
        ("GPU time", c.gpu_seconds, "s"),
        ("tokens", c.tokens, ""),
        ("money", c.money, ""),
    ]
    cents = 100 * ((conclusion.low or 1.0) - 1.0) if conclusion.answer == "faster" else 0.0
    found = []
    for name, amount, unit in parts:
        if amount:
            each = f", {amount / cents:.3g} {unit}".rstrip() + " for each per cent gained" if cents > 0 else ""
            found.append((name, f"{amount:.4g} {unit}".rstrip() + each))
    return found
