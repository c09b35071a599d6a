"""Lanes: a sum or a maximum is taken in several lanes at once, which are put together at the end.

``for j s += E(j);`` → ``for j += LANES for l lane[l] += E(j + l);`` and the rest one by one. A compiler may not do this
by itself, since it changes the order of a sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._access import _declaration, facts
from ._c import Loop, Node, Source, bare, innermost, loop, loops, statements, walk
from ._rewrite import CSkill, knob
from ._skill import Found, Refusal, Site


class Lanes(CSkill):
    name = "c-lanes"
    what = "a sum or maximum is taken in several lanes, put together at the end"
    holds = "the loop steps by one and does nothing but add to (or take the maximum into) one float variable"
    keeps = "a maximum exactly; a sum up to rounding, as a rule with a smaller error than one by one"
    source = "accumulator splitting; error of blocked sums: Higham, The accuracy of floating point summation, 1993"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            made = loop(source, node)
            if isinstance(made, str) or not innermost(node):
                continue
            found = reduction(source, made)
            if found is None:
                continue
            kind, total, term = found
            line = source.line(node)
            if reason := _refused(source, made, total, term):
                yield Refusal(line, reason)
            else:
                yield Site(line, f"'{total}' in lanes", _lanes(source, made, kind, total, term))


def reduction(source: Source, made: Loop) -> tuple[str, str, Node] | None:
    """``("sum" or "max", variable, term)`` of a loop that does nothing else: ``s += E``, ``if (E > m) m = E``,
    ``m = E > m ? E : m``, ``m = fmaxf(m, E)``."""
    body = statements(made.body)
    if len(body) != 1:
        return None
    node = body[0]
    if node.type == "if_statement" and node.child_by_field_name("alternative") is None:
        return _greater(source, node)
    e = node.named_children[0] if node.type == "expression_statement" and node.named_children else None
    if e is None or e.type != "assignment_expression":
        return None
    left, op, right = (e.child_by_field_name(n) for n in ("left", "operator", "right"))
    if left is None or right is None or left.type != "identifier":
        return None
    if source.text(op) == "+=":
        return "sum", source.text(left), right
    return _largest(source, source.text(left), bare(right)) if source.text(op) == "=" else None


def _greater(source: Source, node: Node) -> tuple[str, str, Node] | None:
    test, then = bare(node.child_by_field_name("condition")), statements(node.child_by_field_name("consequence"))  # type: ignore[arg-type]
    if test is None or test.type != "binary_expression" or source.text(test.child_by_field_name("operator")) != ">":
        return None
    term, total = test.child_by_field_name("left"), source.text(test.child_by_field_name("right"))
    done = then[0].named_children[0] if len(then) == 1 and then[0].named_children else None
    if done is None or term is None or source.text(done) != f"{total} = {source.text(term)}":
        return None
    return "max", total, term


def _largest(source: Source, total: str, right: Node | None) -> tuple[str, str, Node] | None:
    if right is None:
        return None
    if right.type == "conditional_expression":
        test, yes, no = (right.child_by_field_name(n) for n in ("condition", "consequence", "alternative"))
        test = bare(test)
        if test is None or yes is None or test.type != "binary_expression" or source.text(no) != total:
            return None
        if source.text(test) == f"{source.text(yes)} > {total}":
            return "max", total, yes
    if right.type == "call_expression" and source.text(right.child_by_field_name("function")) in ("fmaxf", "fmax"):
        args = right.child_by_field_name("arguments").named_children  # type: ignore[union-attr]
        others = [a for a in args if source.text(a) != total]
        if len(args) == 2 and len(others) == 1:
            return "fmax", total, others[0]
    return None


def _refused(source: Source, made: Loop, total: str, term: Node) -> str:
    f = facts(source, term)
    if not made.unit:
        return f"'{made.var}' does not step by one"
    if f.trouble:
        return f.trouble
    if made.high.isdigit() or f"#define {made.high} " in source.raw.decode():
        return f"the loop is short: {made.high} is a constant"
    if total in {source.text(n) for n in walk(term)}:
        return f"what is added depends on '{total}'"
    kind = declared(source, made.node, total)
    if kind not in ("float", "double"):
        return f"'{total}' is {kind or 'declared elsewhere'}, not a local float or double"
    names = {source.text(n) for b in (made.low_node, made.high_node) for n in walk(b)}
    return f"the bounds depend on '{total}'" if total in names else ""


def declared(source: Source, node: Node, name: str) -> str:
    """The type that a local scalar is declared with."""
    made = _declaration(source, node, name)
    return "" if made is None or made.parent is None else source.text(made.parent.child_by_field_name("type"))


def _lanes(source: Source, made: Loop, kind: str, total: str, term: Node) -> str:
    n, lane, one = source.fresh("LANES"), source.fresh(f"{total}_lane"), source.fresh("lane")
    v, ctype, pad = made.var, declared(source, made.node, total), source.indent(made.node)
    at = source.renamed(term, {v: f"({v} + {one})"})
    each = f"for (int {one} = 0; {one} < {n}; {one}++)"
    lines = [
        "{", f"    {ctype} {lane}[{n}];",
        f"    {each} {lane}[{one}] = {'0' if kind == 'sum' else total};",
        f"    {made.type} {v} = {made.low};",
        f"    for (; {v} + {n} <= {made.high}; {v} += {n})",
        f"        {each} {_into(kind, f'{lane}[{one}]', at, ctype)}",
        f"    for (; {v} < {made.high}; {v}++) {_into(kind, total, source.text(term), ctype)}",
        f"    {each} {_into(kind, total, f'{lane}[{one}]', ctype)}", "}",
    ]  # fmt: skip
    text = "\n".join((pad if i else "") + line for i, line in enumerate(lines))
    top = source.top()
    return source.edit((top, top, knob(n, 16, "4 8 16 32 64")), (made.node.start_byte, made.node.end_byte, text))


def _into(kind: str, total: str, term: str, ctype: str) -> str:
    if kind == "sum":
        return f"{total} += {term};"
    if kind == "fmax":
        return f"{total} = {'fmaxf' if ctype == 'float' else 'fmax'}({total}, {term});"
    return f"{total} = {term} > {total} ? {term} : {total};"


SKILL = Lanes()
