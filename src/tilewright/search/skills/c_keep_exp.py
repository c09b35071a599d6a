"""Once: what one loop computes for a sum and the next computes again is kept in the output.

``for j s += E(j);  for j y[j] = E(j) / s;`` → ``for j { t = E(j); y[j] = t; s += t; }  for j y[j] = y[j] / s;``
"""

from __future__ import annotations

from collections.abc import Iterator

from ._access import PURE, facts
from ._c import Loop, Node, Source, bare, enclosing, loop, loops, statements, walk
from ._order import injective
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site
from .c_rows import added


class KeepExp(CSkill):
    name = "c-keep-exp"
    what = "a value that is summed and computed again afterwards is kept in the output"
    holds = (
        "same bounds, same expression of the same type as the output, which it does not read; nothing changes between"
    )
    source = "common subexpressions across loops: Allen and Cocke, 1971"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            after = _next(node)
            first = loop(source, node)
            second = None if after is None else loop(source, after)
            if isinstance(first, Loop) and isinstance(second, Loop):
                found = self._pair(source, first, second)
                if found is not None:
                    yield found

    def _pair(self, source: Source, first: Loop, second: Loop) -> Found | None:
        done = statements(first.body)
        e = done[0].named_children[0] if len(done) == 1 and done[0].type == "expression_statement" else None
        total = (
            source.text(e.child_by_field_name("left")) if e is not None and e.type == "assignment_expression" else ""
        )
        term, store = added(source, first, total), _store(source, second)
        if term is None or store is None or not any(n.type == "call_expression" for n in walk(term)):
            return None
        target, value = store
        want = source.renamed(term, {first.var: second.var})
        again = [n for n in walk(value) if source.text(n) == want]
        if not again:
            return None
        line = source.line(first.node)
        if reason := self._refused(source, first, second, total, term, target):
            return Refusal(line, reason)
        return Site(line, f"'{source.text(term)}' computed once", self._kept(source, first, total, term, target, again[0],
                                                                            second.var))  # fmt: skip

    def _refused(self, source: Source, first: Loop, second: Loop, total: str, term: Node, target: Node) -> str:
        if (first.low, first.high, first.step) != (second.low, second.high, second.step) or not first.unit:
            return "the two loops run over different elements"
        f = facts(source, first.body, second.body)
        if f.trouble:
            return f.trouble
        written = [a for a in f.accesses if a.write]
        if f.changed != {total} or len(written) != 1 or written[0].index is None:
            return "the loops change more than the sum and the output"
        array, index = written[0].array, written[0].index
        if any(a.array == array and not a.write for a in f.accesses):
            return f"'{array}' is read as well"
        if second.var not in index.names or injective(source, index, [second]):
            return f"'{source.text(target)}' is not another element for each {second.var}"
        own = next((p.type for p in source.parameters(enclosing(first.node)) if p.name == array), "")
        kind = _kind(source, term)
        return "" if kind and kind == own else f"'{source.text(term)}' and '{array}' differ in type"

    def _kept(self, source: Source, first: Loop, total: str, term: Node, target: Node, again: Node, var: str) -> str:
        kind, one, pad = _kind(source, term), source.fresh("kept"), source.indent(first.node)
        place = source.renamed(target, {var: first.var})
        body = (f"{{\n{pad}    const {kind} {one} = {source.text(term)};\n{pad}    {place} = {one};\n"
                f"{pad}    {total} += {one};\n{pad}}}")  # fmt: skip
        return source.edit((first.body.start_byte, first.body.end_byte, body),
                           (again.start_byte, again.end_byte, source.text(target)))  # fmt: skip


def _store(source: Source, made: Loop) -> tuple[Node, Node] | None:
    """Target and value of a loop that does nothing but ``y[e] = value``."""
    body = statements(made.body)
    e = body[0].named_children[0] if len(body) == 1 and body[0].type == "expression_statement" else None
    if e is None or e.type != "assignment_expression" or source.text(e.child_by_field_name("operator")) != "=":
        return None
    left, right = e.child_by_field_name("left"), e.child_by_field_name("right")
    return (left, right) if left is not None and right is not None and left.type == "subscript_expression" else None


def _kind(source: Source, term: Node) -> str:
    """The type of a call of a known function: ``expf`` gives a float."""
    call = bare(term)
    name = (
        source.text(call.child_by_field_name("function")) if call is not None and call.type == "call_expression" else ""
    )
    return "float" if name.removesuffix("f") in PURE and name.endswith("f") else "double" if name in PURE else ""


def _next(node: Node) -> Node | None:
    """The loop right behind a statement."""
    here = node.next_named_sibling
    while here is not None and here.type == "comment":
        here = here.next_named_sibling
    return here if here is not None and here.type == "for_statement" else None


SKILL = KeepExp()
