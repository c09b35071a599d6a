"""Unrolling: the compiler is asked to repeat the body of an innermost loop, so that fewer steps and tests are made.

``for j …`` → ``#pragma GCC unroll`` by a parameter. What is computed does not change.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Source, innermost, loop, loops
from ._rewrite import CSkill, knob
from ._skill import Found, Refusal, Site


class Unroll(CSkill):
    name = "c-unroll"
    what = "an innermost loop is unrolled by the compiler, by a declared factor"
    holds = "an innermost counted loop that has no such request yet"
    source = "GCC manual, loop-specific pragmas"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        for node in loops(source):
            if not innermost(node):
                continue
            made, line = loop(source, node), source.line(node)
            if isinstance(made, str):
                yield Refusal(line, made)
            elif "unroll" in pragma(source, node):
                yield Refusal(line, "the loop is unrolled by request already")
            else:
                n = source.fresh("UNROLL")
                text = before(source, node, f"#pragma GCC unroll {n.lower()}",
                              knob(n, 4, "1 2 4 8 16") + f"\nenum {{ {n.lower()} = {n} }};")  # fmt: skip
                yield Site(line, f"the loop over {made.var} unrolled", text)


def pragma(source: Source, node: object) -> str:
    """The pragmas right before a statement."""
    found, here = "", node.prev_sibling  # type: ignore[attr-defined]
    while here is not None and here.type == "preproc_call":
        found, here = found + source.text(here), here.prev_sibling
    return found


def before(source: Source, node: object, line: str, top: str = "") -> str:
    """The text with a pragma in front of a statement (which gets braces where it is the body of another)."""
    start, end = node.start_byte, node.end_byte  # type: ignore[attr-defined]
    pad = source.indent(node)  # type: ignore[arg-type]
    alone = node.parent.type not in ("compound_statement", "preproc_if", "preproc_else")  # type: ignore[attr-defined]
    if not alone and source.raw[:start].endswith(f"\n{pad}".encode()):
        start -= len(pad)
    head = f"{{\n{line}\n{pad}" if alone else f"{line}\n{pad if start == node.start_byte else ''}"  # type: ignore[attr-defined]
    edits = [(start, start, head)] + ([(end, end, f"\n{pad}}}")] if alone else [])
    if top:
        edits.append((source.top(), source.top(), top))
    return source.edit(*edits)


SKILL = Unroll()
