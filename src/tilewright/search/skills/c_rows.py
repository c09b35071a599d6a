"""Rows: the loop of a sum goes outside, and the sums of a whole row are kept in the output.

``for j { s = 0; for k s += E(j, k); y[j] = s; }`` → ``for j y[j] = 0; for k for j y[j] += E(j, k);``
The inner loop then has no sum in it: it can be vectorised without a change of rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ._access import Facts, facts
from ._c import Loop, Node, Source, enclosing, loop, loops, statements, walk
from ._order import injective
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site


@dataclass(frozen=True)
class Shape:
    """``outer`` holds: a declaration of ``total`` = ``start``, ``inner`` with ``total += term``, ``target = total``."""

    outer: Loop
    inner: Loop
    total: str
    type: str
    start: Node
    term: Node
    target: Node


class Rows(CSkill):
    name = "c-rows"
    what = "the loop of a sum goes outside and the sums of a row are kept in the output"
    holds = "the sum has the output's type; each element of the output is one sum's; nothing else reads the output"
    keeps = "every bit: each sum adds the same terms in the same order"
    source = "scalar expansion and loop distribution: Allen and Kennedy, 2001"
    example = ("matmul.py", "naive.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            shape = _shape(source, node)
            if shape is None:
                continue
            reason = _refused(source, shape)
            line = source.line(node)
            yield (
                Refusal(line, reason)
                if reason
                else Site(
                    line,
                    f"'{shape.inner.var}' outside '{shape.outer.var}', sums kept in the output",
                    _moved(source, shape),
                )
            )


def _shape(source: Source, node: Node) -> Shape | None:
    outer = loop(source, node)
    if isinstance(outer, str) or len(parts := statements(outer.body)) != 3:
        return None
    made, middle, last = parts
    if made.type != "declaration" or middle.type != "for_statement" or last.type != "expression_statement":
        return None
    inner, d = loop(source, middle), made.child_by_field_name("declarator")
    if (
        isinstance(inner, str)
        or d is None
        or d.type != "init_declarator"
        or len(made.children_by_field_name("declarator")) > 1
    ):
        return None
    total = source.text(d.child_by_field_name("declarator"))
    step, store = added(source, inner, total), last.named_children[0]
    if (
        step is None
        or store.type != "assignment_expression"
        or source.text(store.child_by_field_name("right")) != total
    ):
        return None
    start, target = d.child_by_field_name("value"), store.child_by_field_name("left")
    if start is None or target is None or source.text(store.child_by_field_name("operator")) != "=":
        return None
    return Shape(outer, inner, total, source.text(made.child_by_field_name("type")), start, step, target)


def added(source: Source, inner: Loop, total: str) -> Node | None:
    """``E`` of a loop that does nothing but ``total += E``."""
    body = statements(inner.body)
    if len(body) != 1 or body[0].type != "expression_statement":
        return None
    e = body[0].named_children[0]
    if e.type != "assignment_expression" or source.text(e.child_by_field_name("operator")) != "+=":
        return None
    return e.child_by_field_name("right") if source.text(e.child_by_field_name("left")) == total else None


def _refused(source: Source, s: Shape) -> str:
    f: Facts = facts(source, s.outer.body)
    written = [a for a in f.accesses if a.write]
    if f.trouble:
        return f.trouble
    if f.changed or len(written) != 1:
        return "the loop changes more than the sum and one element of the output"
    array, index = written[0].array, written[0].index
    if any(a.array == array and not a.write for a in f.accesses):
        return f"'{array}' is read while its rows are summed"
    if index is None or s.outer.var not in index.names or injective(source, index, [s.outer]):
        return f"'{source.text(s.target)}' is not another element for each {s.outer.var}"
    own = next((p.type for p in source.parameters(enclosing(s.outer.node)) if p.name == array), "")
    if own != s.type:
        return f"the sum is a {s.type} and '{array}' holds {own or 'something else'}: rounding would change"
    depends = {source.text(n) for b in (s.inner.low_node, s.inner.high_node) for n in walk(b) if n.type == "identifier"}
    if s.outer.var in depends or any(n.type == "call_expression" for n in walk(s.inner.high_node)):
        return f"the bounds of '{s.inner.var}' depend on '{s.outer.var}'"
    return f"the sum reads '{s.total}'" if any(source.text(n) == s.total for n in walk(s.term)) else ""


def _moved(source: Source, s: Shape) -> str:
    pad, to = source.indent(s.outer.node), source.text(s.target)
    lines = [
        "{", f"    {s.outer.head()} {to} = {source.text(s.start)};", f"    {s.inner.head()}",
        f"        {s.outer.head()} {to} += {source.text(s.term)};", "}",
    ]  # fmt: skip
    text = "\n".join((pad if n else "") + line for n, line in enumerate(lines))
    return source.edit((s.outer.node.start_byte, s.outer.node.end_byte, text))


SKILL = Rows()
