"""Reciprocal: division by a value that does not change in the loop becomes multiplication by its inverse.

``for j y[j] = e[j] / s;`` → ``const float r = 1.0f / s; for j y[j] = e[j] * r;``
"""

from __future__ import annotations

from collections.abc import Iterator

from ._access import facts
from ._c import Node, Source, innermost, loop, loops, walk
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site
from .c_lanes import declared


class Reciprocal(CSkill):
    name = "c-reciprocal"
    what = "division by a loop constant becomes multiplication by its inverse"
    holds = "the divisor is a local float or double that the loop does not change"
    keeps = "each quotient up to one more rounding"
    source = "strength reduction: Allen and Cocke, A catalogue of optimizing transformations, 1971"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            if innermost(node) and not isinstance(loop(source, node), str):
                for division in [n for n in walk(node.child_by_field_name("body")) if _divides(source, n)]:
                    yield self._at(source, node, division)

    def _at(self, source: Source, node: Node, division: Node) -> Found:
        divisor = division.child_by_field_name("right")
        name, line, f = source.text(divisor), source.line(division), facts(source, node)
        if divisor is None or divisor.type != "identifier":
            return Refusal(line, f"the divisor '{name}' is no plain variable")
        if name in f.changed | f.own:
            return Refusal(line, f"the loop changes '{name}'")
        kind = declared(source, node, name)
        if kind not in ("float", "double"):
            return Refusal(line, f"'{name}' is {kind or 'declared elsewhere'}, not a local float or double")
        left, inverse = division.child_by_field_name("left"), source.fresh(f"{name}_inverse")
        pad, one = source.indent(node), "1.0f" if kind == "float" else "1.0"
        head = f"{{\n{pad}    const {kind} {inverse} = {one} / {name};\n{pad}    "
        assert left is not None
        text = source.edit((node.start_byte, node.start_byte, head), (node.end_byte, node.end_byte, f"\n{pad}}}"),
                           (left.end_byte, division.end_byte, f" * {inverse}"))  # fmt: skip
        return Site(line, f"times the inverse of '{name}'", text)


def _divides(source: Source, node: Node) -> bool:
    return node.type == "binary_expression" and source.text(node.child_by_field_name("operator")) == "/"


SKILL = Reciprocal()
