"""Online: the maximum and the sum of exponentials are found in one pass, the sum being rescaled when the maximum grows.

``for j m = max(m, x[j]);  s = 0; for j s += exp(x[j] - m);`` → one loop over j.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._access import facts
from ._c import Loop, Node, Source, bare, loop, loops
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site
from .c_lanes import declared, reduction

FLOATS = ("float", "double")


class Online(CSkill):
    name = "c-online-softmax"
    what = "maximum and sum of exponentials in one pass"
    holds = "both loops run over the same elements (the first may start one later, from element 0), the sum starts at 0"
    keeps = "the sum up to rounding; infinities and NaN come out as before"
    source = "Milakov and Gimelshein, Online normalizer calculation for softmax, 2018"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            first = loop(source, node)
            best = None if isinstance(first, str) else reduction(source, first)
            if best is None or best[0] == "sum" or isinstance(first, str):
                continue
            after = _sum_after(source, node)
            if after is not None:
                yield self._pair(source, first, (best[1], best[2]), *after)

    def _pair(self, source: Source, first: Loop, best: tuple[str, Node], second: Loop, total: str, made: Node | None,
              inner: Node) -> Found:  # fmt: skip
        m, term = best
        line = source.line(first.node)
        want = source.renamed(term, {first.var: second.var})
        difference = bare(inner)
        if difference is None or _parts(source, difference) != (want, m):
            return Refusal(line, f"the sum is not over exp({want} - {m})")
        if reason := _refused(source, first, second, m, total, made, term):
            return Refusal(line, reason)
        return Site(line, f"'{m}' and '{total}' in one pass", _one_pass(source, first, second, m, total, want))


def _sum_after(source: Source, node: Node) -> tuple[Loop, str, Node | None, Node] | None:
    """The next loop in the block if it sums ``exp(…)``: (loop, sum, its declaration, argument of exp)."""
    here, made = node.next_named_sibling, None
    while here is not None and here.type in ("declaration", "comment"):
        made, here = (here if here.type == "declaration" else made), here.next_named_sibling
    second = loop(source, here) if here is not None and here.type == "for_statement" else ""
    if isinstance(second, str) or (found := reduction(source, second)) is None or found[0] != "sum":
        return None
    call = bare(found[2])
    if call is None or call.type != "call_expression" or source.text(call.child_by_field_name("function")) != "expf":
        return None
    return second, found[1], made, call.child_by_field_name("arguments").named_children[0]  # type: ignore[union-attr]


def _parts(source: Source, node: Node) -> tuple[str, str]:
    if node.type != "binary_expression" or source.text(node.child_by_field_name("operator")) != "-":
        return "", ""
    return source.text(node.child_by_field_name("left")), source.text(node.child_by_field_name("right"))


def _refused(source: Source, first: Loop, second: Loop, m: str, total: str, made: Node | None, term: Node) -> str:
    f = facts(source, first.body, second.body)
    start = None if made is None else next(
        (d.child_by_field_name("value") for d in made.children_by_field_name("declarator")
         if d.type == "init_declarator" and source.text(d.child_by_field_name("declarator")) == total), None)  # fmt: skip
    if f.trouble or f.arrays(write=True):
        return f.trouble or "the loops write an array"
    if start is None or source.text(start).rstrip("f0.") or len(made.children_by_field_name("declarator")) != 1:  # type: ignore[union-attr]
        return f"'{total}' does not start at 0 between the loops"
    if declared(source, first.node, m) != "float" or source.text(made.child_by_field_name("type")) not in FLOATS:  # type: ignore[union-attr]
        return "the maximum is no float, or the sum neither float nor double"
    if first.high != second.high or not (first.unit and second.unit):
        return "the two loops run over different elements"
    if first.low == second.low:
        return ""
    begins = f"{m} = {source.renamed(term, {first.var: second.low})}"
    if first.low == "1" and second.low == "0" and begins in source.raw[: first.node.start_byte].decode():
        return ""
    return "the two loops start at different elements"


def _one_pass(source: Source, first: Loop, second: Loop, m: str, total: str, want: str) -> str:
    pad, v = source.indent(first.node), source.fresh("value")
    lines = [
        f"{second.head()} {{", f"    const float {v} = {want};",
        f"    if ({v} > {m}) {{", f"        {total} *= expf({m} - {v});", f"        {m} = {v};", "    }",
        f"    if ({v} != -INFINITY) {total} += expf({v} - {m});", "}",
    ]  # fmt: skip
    text = "\n".join((pad if i else "") + line for i, line in enumerate(lines))
    return source.edit((first.node.start_byte, first.node.end_byte, ""),
                       (second.node.start_byte, second.node.end_byte, text))  # fmt: skip


SKILL = Online()
