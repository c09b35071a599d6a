"""May the iterations of a loop nest be put in another order? A dependence test (Allen, Kennedy, 2001) for the case that
kernels are written in: every access to a written array has the same subscript, and that subscript names another element
for every value of the variables in it. Then two iterations meet in an element only if they differ in the other variables
alone. With one such variable their order stays; with two or more a sum may be reordered and nothing else may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ._access import Facts, facts
from ._c import Loop, Node, Source, loop, statements, walk
from ._poly import Poly, poly


@dataclass(frozen=True)
class Order:
    """``refused``: why the order must stay as it is; ``sums``: variables along which a sum would be reordered."""

    refused: str = ""
    sums: tuple[str, ...] = ()
    facts: Facts | None = None


def nest(source: Source, node: Node) -> tuple[list[Loop], str]:
    """Loops from here inward as long as each holds nothing but the next, and why it ends (empty: at a body)."""
    found: list[Loop] = []
    while True:
        made = loop(source, node)
        if isinstance(made, str):
            return found, made
        found.append(made)
        inner = statements(made.body)
        if len(inner) != 1 or inner[0].type != "for_statement":
            return found, ""
        node = inner[0]


def order(source: Source, loops: Sequence[Loop]) -> Order:
    """Whether the iterations of these perfectly nested loops may run in any order."""
    body = loops[-1].body
    f = facts(source, body)
    names = {x.var for x in loops}
    for x in loops:
        if bad := _bounds(source, x, names, f):
            return Order(bad)
    if f.trouble:
        return Order(f.trouble)
    if f.changed:
        return Order(f"'{sorted(f.changed)[0]}' is carried from one iteration to the next")
    sums: tuple[str, ...] = ()
    for array in sorted(f.arrays(write=True)):
        one = _array(source, array, loops, f)
        if one.refused:
            return one
        sums += one.sums
    return Order(sums=sums, facts=f)


def _bounds(source: Source, x: Loop, names: set[str], f: Facts) -> str:
    for node in (x.low_node, x.high_node):
        for n in walk(node):
            if n.type in ("call_expression", "subscript_expression", "assignment_expression", "update_expression"):
                return f"the bounds of '{x.var}' are not plain: {source.text(node)}"
            if n.type == "identifier" and (inner := source.text(n)) in names | f.changed:
                return f"the bounds of '{x.var}' depend on '{inner}'"
    return ""


def _array(source: Source, array: str, loops: Sequence[Loop], f: Facts) -> Order:
    touched = [a for a in f.accesses if a.array == array]
    index = touched[0].index
    if index is None and len({source.text(a.node) for a in touched}) == 1:
        return Order(f"which element '{source.text(touched[0].node)}' is changes inside the loops")
    if any(a.index is None or a.index != index for a in touched) or index is None:
        return Order(f"'{array}' is written and also used at another place: " + " and ".join(
            dict.fromkeys(source.text(a.node) for a in touched)))  # fmt: skip
    inside = [x for x in loops if x.var in index.names]
    if bad := injective(source, index, inside):
        return Order(f"'{array}': {bad}")
    others = [x.var for x in loops if x not in inside]
    if len(others) < 2:
        return Order()
    if all(a.op == "+=" for a in touched if a.write) and all(a.write for a in touched):
        return Order(sums=tuple(others))
    return Order(f"the order of {' and '.join(others)} decides what '{array}' holds")


def injective(source: Source, index: Poly, loops: Sequence[Loop]) -> str:
    """Why two iterations may meet in one element although they differ in these variables; empty if they can't.

    Variables sorted by their step: each must step over all that the ones below it reach. Sizes are not negative.
    """
    steps: list[tuple[Poly, Loop]] = []
    names = {x.var for x in loops}
    for x in loops:
        step = index.step(x.var)
        if step is None or step.names & names or not step.terms or not _at_least(step, Poly.constant(0)):
            return f"the subscript is not linear in '{x.var}'"
        steps.append((step, x))
    while len(steps) > 1:
        low = next((s for s in steps if all(_at_least(o[0], _reach(source, s)) for o in steps if o is not s)), None)
        if low is None:
            vars_ = ", ".join(x.var for _, x in steps)
            return f"different ({vars_}) may be the same element"
        steps.remove(low)
    return ""


def _reach(source: Source, s: tuple[Poly, Loop]) -> Poly | None:
    """Step times extent."""
    high, low = poly(source, s[1].high_node), poly(source, s[1].low_node)
    return None if high is None or low is None else s[0] * (high - low)


def _at_least(a: Poly, b: Poly | None) -> bool:
    return b is not None and all(c >= 0 for _, c in (a - b).terms)
