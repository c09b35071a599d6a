"""Split-K: the sum of products over the inner dimension is taken in several stretches at once, added up at the end.

``for k s += A(k) * B(k);`` → ``for k < K / SPLIT_K: for p part[p] += A(k + p · K / SPLIT_K) * B(…);``, the rest one by one.
One sum must wait for each addition before the next; several need not.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Loop, Node, Source, bare, innermost, loop, loops, walk
from ._rewrite import CSkill, knob
from ._skill import Found, Refusal, Site
from .c_lanes import _refused, declared, reduction


class SplitK(CSkill):
    name = "c-split-k"
    what = "a sum of products is taken in several stretches of its loop at once"
    holds = "the loop runs from 0 by one and does nothing but add products of two elements to one float variable"
    keeps = "each sum up to rounding, as a rule with a smaller error than one by one"
    source = "splitting of the inner dimension: Agarwal et al., A three-dimensional approach to parallel matrix " \
        "multiplication, 1995; Osama et al., Stream-K, 2023"  # fmt: skip
    example = ("matmul.py", "naive.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            made = loop(source, node)
            if isinstance(made, str) or not innermost(node):
                continue
            found = reduction(source, made)
            if found is None or found[0] != "sum":
                continue
            _, total, term = found
            line = source.line(node)
            if reason := _not_products(source, made, term) or _refused(source, made, total, term):
                yield Refusal(line, reason)
            else:
                yield Site(
                    line, f"'{total}' split along '{made.var}', in another order", _split(source, made, total, term)
                )


def _not_products(source: Source, made: Loop, term: Node) -> str:
    """Why this is not the sum of a product of matrices; empty where it is."""
    product = bare(term)
    sides = [bare(product.child_by_field_name(n)) for n in ("left", "right")] if product is not None else []
    times = product is not None and product.type == "binary_expression" and source.text(
        product.child_by_field_name("operator")) == "*"  # fmt: skip
    if not times or any(s is None or s.type != "subscript_expression" for s in sides):
        return "what is added is no product of two elements"
    if not all(made.var in {source.text(n) for n in walk(s)} for s in sides):
        return f"a factor does not depend on '{made.var}'"
    return "" if made.low == "0" else f"'{made.var}' does not begin at 0"


def _split(source: Source, made: Loop, total: str, term: Node) -> str:
    n, part, p, each = (source.fresh(x) for x in ("SPLIT_K", f"{total}_part", "part", "each"))
    v, ctype, pad = made.var, declared(source, made.node, total), source.indent(made.node)
    at = source.renamed(term, {v: f"({v} + {p} * {each})"})
    every = f"for (int {p} = 0; {p} < {n}; {p}++)"
    lines = [
        "{", f"    {ctype} {part}[{n}];", f"    {every} {part}[{p}] = 0;",
        f"    const {made.type} {each} = ({made.high}) / {n};",
        f"    for ({made.type} {v} = 0; {v} < {each}; {v}++)",
        f"        {every} {part}[{p}] += {at};",
        f"    for ({made.type} {v} = {n} * {each}; {v} < {made.high}; {v}++) {total} += {source.text(term)};",
        f"    {every} {total} += {part}[{p}];", "}",
    ]  # fmt: skip
    text = "\n".join((pad if i else "") + line for i, line in enumerate(lines))
    top = source.top()
    return source.edit((top, top, knob(n, 4, "2 4 8 16")), (made.node.start_byte, made.node.end_byte, text))


SKILL = SplitK()
