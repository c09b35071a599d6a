"""What the winner of a search changed, in words: each declared parameter from its old value to its new one, each rewrite by
its name, each with the id of the trial that brought it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import UserError
from ..search.proposers._declared import read
from ..search.tree import Node, Scalar, Tree
from . import search_facts


@dataclass(frozen=True)
class Change:
    """One difference between the start and the winner. ``number``: the trial that brought it; ``gain``: that trial's ratio
    over its parent, where both were timed."""

    number: int
    words: str
    gain: float | None


def parameters(source: str) -> dict[str, Scalar]:
    """Declared parameters and their values, whichever way the file declares them; none where that can't be read."""
    for language in ("native", "triton"):
        try:
            found = read(source, language).now
        except UserError:
            continue
        if found:
            return found
    return {}


def changes(tree: Tree, number: int | None) -> list[Change]:
    """The steps from the start to a node, those of parameters as old and new values."""
    if number is None or number not in tree.nodes:
        return []
    line = tree.lineage(number)
    return [Change(b.number, _words(a, b), search_facts.gain(tree, b)) for a, b in itertools.pairwise(line)]


def summary(tree: Tree, number: int | None) -> str:
    """All of it in one line: parameters of the start as they ended, the rewrites on the way, parameters that came with
    them: ``TILE 8 to 32, LANES 1 to 8; c-lanes: 4 lanes (#3)``."""
    if number is None or number not in tree.nodes:
        return ""
    line = tree.lineage(number)
    told = [_told(parameters(line[0].source) or line[0].proposal.parameters, _values(line[-1]))]
    told += [f"{_rewrite(n)} (#{n.number})" for a, n in itertools.pairwise(line) if not _only_values(a, n)]
    return "; ".join(t for t in told if t)


def _values(node: Node) -> Mapping[str, Scalar]:
    return parameters(node.source) or node.proposal.parameters


def _only_values(a: Node, b: Node) -> bool:
    """Whether ``b`` is ``a`` with other values of the same parameters."""
    return bool(_values(a)) and set(_values(a)) == set(_values(b)) and bool(b.proposal.parameters)


def _words(a: Node, b: Node) -> str:
    who = b.proposal.proposer
    if _only_values(a, b):
        return f"{who}: {_told(_values(a), _values(b)) or b.proposal.title}"
    return f"{who}: {_rewrite(b)}"


def _rewrite(node: Node) -> str:
    p = node.proposal
    named = ": ".join(dict.fromkeys(x for x in (p.skill, p.title) if x))
    return named or f"written by {p.proposer}"


def _told(before: Mapping[str, Scalar], after: Mapping[str, Scalar]) -> str:
    """``TILE 8 to 32`` for what changed, ``GROUP=8`` for what is new."""
    said = [f"{n} {before[n]} to {v}" if n in before else f"{n}={v}" for n, v in after.items() if before.get(n) != v]
    return ", ".join(said)
