"""Powers of two: ``expf(v)`` becomes ``exp2f(v * log2(e))``, which hardware and libraries compute with less work."""

from __future__ import annotations

from collections.abc import Iterator

from ._c import Source, walk
from ._rewrite import CSkill
from ._skill import Found, Refusal, Site

CALLS = {"expf": ("exp2f", "1.44269504f"), "exp": ("exp2", "1.4426950408889634")}


class Exp2(CSkill):
    name = "c-exp2"
    what = "exp(v) becomes exp2(v * log2(e))"
    holds = "calls of expf or exp from math.h"
    keeps = "each value up to the rounding of the product: a relative error that grows with |v|"
    source = "exp(v) = 2^(v log2 e)"
    example = ("row_softmax.py", "softmax.c")

    def look(self, source: Source) -> Iterator[Found]:
        calls = [n for n in walk(source.root) if n.type == "call_expression"
                 and source.text(n.child_by_field_name("function")) in CALLS]  # fmt: skip
        if not calls:
            return
        line = source.line(calls[0])
        own = {n for n in CALLS if n in source.functions}
        if own or "<math.h>" not in source.raw.decode():
            yield Refusal(line, "exp is not the one of math.h")
            return
        edits = []
        for n in calls:
            callee, inner = n.child_by_field_name("function"), n.child_by_field_name("arguments")
            assert callee is not None
            assert inner is not None
            new, scale = CALLS[source.text(callee)]
            edits += [(callee.start_byte, callee.end_byte, new), (inner.start_byte, inner.start_byte + 1, "(("),
                      (inner.end_byte - 1, inner.end_byte, f") * {scale})")]  # fmt: skip
        yield Site(line, f"{len(calls)} calls by powers of two", source.edit(*edits))


SKILL = Exp2()
